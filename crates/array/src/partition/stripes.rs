//! Figure 2 of tr96: from a degree of parallelism to the unit and the width of a file's stripes.

use super::array_model::{ArrayModel, Load};
use super::phase_a::ServiceEstimate;
use super::queueing::ForkJoin;

/// A file, lengths in blocks of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileProfile {
    /// L_i: its size.
    pub blocks: u64,
    /// R_i: mean blocks of a request to it, at least 1 and at most L_i.
    pub request: f64,
    /// Distribution of the first blocks of requests.
    pub starts: Starts,
}

/// Distribution of the first blocks of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Starts {
    /// At any block.
    #[default]
    Anywhere,
    /// At the first block of a run.
    AtRuns,
}

/// Striping of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripes {
    /// SU_i: blocks of a run.
    pub unit: u64,
    /// SW_i: disks over which the file is spread.
    pub width: u32,
}

/// Rounding of P-bar R_i / R-bar, which is seldom whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalised {
    /// Stays as it is: a file of any size has the unit that a global choice would have.
    #[default]
    Exact,
    /// Is rounded up to a whole number of disks.
    RoundedUp,
}

/// Rules by which files are partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// Phase A.
    pub service: ServiceEstimate,
    /// Phase B.
    pub fork_join: ForkJoin,
    /// Step 3 a.
    pub normalised: Normalised,
}

/// The result of Phase B that step 3 needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLimit {
    /// P-bar.
    pub parallelism: u32,
    /// R-bar in blocks.
    pub request: f64,
}

impl LoadLimit {
    /// Step 2. None when no degree of parallelism sustains the load.
    pub fn of(array: &ArrayModel, load: &Load, rules: &Rules) -> Option<Self> {
        let best = array.best(load, rules.fork_join)?;
        Some(Self { parallelism: best.parallelism, request: load.request })
    }

    /// P-bar R_i / R-bar: larger requests may use more disks.
    fn for_request(&self, request: f64, normalised: Normalised) -> f64 {
        let exact = f64::from(self.parallelism) * request / self.request;
        match normalised {
            Normalised::Exact => exact,
            Normalised::RoundedUp => libm::ceil(exact),
        }
    }
}

/// P_eff,i of steps 1 and 3: the smaller of both phases' results, at least 1. Without a `limit` the load
/// is light, and Phase A decides alone.
pub fn effective_parallelism(
    array: &ArrayModel,
    request: f64,
    limit: Option<&LoadLimit>,
    rules: &Rules,
) -> f64 {
    let optimal = array.disk.optimal_parallelism(request, array.disks, rules.service);
    let limited = limit.map_or(f64::INFINITY, |limit| limit.for_request(request, rules.normalised));
    f64::from(optimal).min(limited).max(1.0)
}

/// Step 4: SU_i and SW_i of a file, for its own P_eff,i, or for a global one with `file.request` as R-bar.
pub fn stripes(file: &FileProfile, parallelism: f64, disks: u32) -> Stripes {
    stripes_of_unit(file.blocks, unit(file, parallelism), disks)
}

/// SW_i of a file of `blocks` blocks for a given unit: as wide as its size and the array allow.
pub fn stripes_of_unit(blocks: u64, unit: u64, disks: u32) -> Stripes {
    let width = blocks.div_ceil(unit).clamp(1, u64::from(disks)) as u32;
    Stripes { unit, width }
}

/// SU_i in blocks, at least 1 and, for P = 1, as large as possible.
fn unit(file: &FileProfile, parallelism: f64) -> u64 {
    let size = file.blocks.max(1);
    if parallelism <= 1.0 {
        return size;
    }
    let is_inner = file.request > 1.0 && file.request < file.blocks as f64;
    // A request that begins within a run touches one run more than its length alone needs.
    let exact = match file.starts {
        Starts::Anywhere if is_inner => (file.request - 1.0) / (parallelism - 1.0),
        _ => file.request / parallelism,
    };
    (libm::ceil(exact) as u64).clamp(1, size)
}

/// Figure 2 b: one unit for all files from the mean request and the mean size.
pub fn global_unit(
    array: &ArrayModel,
    mean: &FileProfile,
    limit: Option<&LoadLimit>,
    rules: &Rules,
) -> u64 {
    unit(mean, effective_parallelism(array, mean.request, limit, rules))
}
