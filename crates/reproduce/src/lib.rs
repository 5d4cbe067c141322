//! The papers' claims: each experiment, ours beside theirs, and whether it is inside the band.
//!
//! To add a claim: write a function that runs it in the file of its paper, and a row in [`CLAIMS`].

mod beyond_ends;
mod beyond_margins;
mod beyond_migration;
mod beyond_price;
mod beyond_scrub;
mod beyond_tasks;
mod beyond_uses;
pub mod decisions;
mod fast02;
mod fast02_conservatism;
mod fast02_cpu;
mod fast02_foreground;
mod fast02_prediction;
mod fast02_real_time;
mod fast02_scan;
mod fast02_small_files;
mod generated;
mod osdi00;
mod osdi00_cleaning;
mod osdi00_decisions;
mod osdi00_scan;
mod public_traces;
mod recordings;
mod row;
mod sizes;
mod sustained;
mod tr03;
mod tr03_arms;
mod tr03_buffers;
mod tr03_caches;
mod tr03_deviations;
mod tr03_measure;
mod tr03_prefetch;
mod tr03_replay;
mod tr03_sensitivity;
mod tr03_summary;
mod tr03_system;
mod tr03_tables;
mod tr03_traces;
mod tr03_years;
mod tr96;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use freewheel_sim::config::ConfigError;
use freewheel_study::figure::Figure;
use freewheel_units::SimDuration;
use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;

pub use fast02_real_time::{
    Comparison, REAL_TIME, RealTimeRun, beside_virtual_time, real_time_experiment,
};
pub use row::{BEYOND, Counts, Deviation, HOLDS, Kind, Row, Verdict};
use tr03::TracedRuns;

/// An experiment of a paper.
#[derive(Clone, Copy)]
pub struct Claim {
    /// Paper and figure or table.
    pub id: &'static str,
    /// Title of the figure or table.
    pub title: &'static str,
    /// Drive and workload.
    pub setting: &'static str,
    run: fn(&Context<'_>) -> Result<Outcome, ConfigError>,
}

/// Every claim that can be run.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "osdi00.fig2",
        title: "Disk head usage of five drives",
        setting: "random: closed, 1 outstanding, 4 KB, uniform, 2:1 reads to writes",
        run: osdi00::fig2,
    },
    Claim {
        id: "osdi00.fig3",
        title: "Disk head usage by request size",
        setting: "Atlas 10K, random, 4 KB to 256 KB",
        run: osdi00::fig3,
    },
    Claim {
        id: "osdi00.fig4",
        title: "Disk head usage by access locality",
        setting: "Atlas 10K, random, 0 to 100 % of requests near the one before",
        run: osdi00::fig4,
    },
    Claim {
        id: "osdi00.fig5",
        title: "Disk head usage by scheduling policy",
        setting: "Atlas 10K, random with 20 outstanding",
        run: osdi00::fig5,
    },
    Claim {
        id: "osdi00.fig6",
        title: "SPTF-SWn%: between SPTF and SSTF",
        setting: "Atlas 10K, random with 20 outstanding, n from 0 to infinite",
        run: osdi00::fig6,
    },
    Claim {
        id: "osdi00.sec4",
        title: "Processor time of a freeblock decision",
        setting: "Atlas 10K, greedy rule, blocks of 4 KB, 20 to 100 % of the drive wanted, and one on every track; SPTF-SW40% with 20 outstanding; on this machine",
        run: osdi00_decisions::sec4,
    },
    Claim {
        id: "osdi00.fig7",
        title: "LFS segment cleaning: LLD with three cleaners",
        setting: "Atlas 10K with one surface, log of 400 MiB, PostMark's second pass of 25,000 transactions",
        run: osdi00_cleaning::fig7,
    },
    Claim {
        id: "osdi00.fig8",
        title: "Free scan behind transactions",
        setting: "Atlas 10K, closed, MPL 1 to 20, 30 ms think, 2:1 reads, sizes exponential with mean 8 KB and rounded up to multiples of 4 KB (mean 10.2 KB), as DiskSim's generator makes them; scans in 4 KB blocks, two a seed, greedy rule",
        run: osdi00_scan::fig8,
    },
    Claim {
        id: "osdi00.fig9",
        title: "Progress of a scan",
        setting: "as figure 8, MPL 7",
        run: osdi00_scan::fig9,
    },
    Claim {
        id: "osdi00.fig10",
        title: "Any X % of the blocks suffice",
        setting: "as figure 8, MPL 10",
        run: osdi00_scan::fig10,
    },
    Claim {
        id: "beyond.fig8",
        title: "Figure 8 with plans of several stops, prices by region, and other foreground policies",
        setting: "as figure 8, MPL 10, a scan a seed",
        run: osdi00_scan::beyond,
    },
    Claim {
        id: "beyond.tasks",
        title: "Several tasks at once: shared blocks, priority, deadline, shares",
        setting: "as figure 8, MPL 10, FCFS; a scan, and a tenth of the drive that is urgent",
        run: beyond_tasks::tasks,
    },
    Claim {
        id: "beyond.uses",
        title: "What free bandwidth is good for: prefetching, prewriting, comparing, sampling",
        setting: "as figure 8, MPL 10, FCFS; blocks of 4 KB, 2 or 4 MiB of memory",
        run: beyond_uses::uses,
    },
    Claim {
        id: "fast02.fig4",
        title: "One command at the drive, or two",
        setting: "Atlas 10K as a black box, random 16 KB, bus overlap that varies",
        run: fast02_prediction::fig4,
    },
    Claim {
        id: "fast02.fig7",
        title: "Predicted head times from outside the drive",
        setting: "Atlas 10K as a black box, random 4 KB, two commands at the drive",
        run: fast02_prediction::fig7,
    },
    Claim {
        id: "fast02.fig7b",
        title: "Predicted head times of large requests",
        setting: "as figure 7, exponential around 40 KB, bus overlap that varies",
        run: fast02_prediction::fig7b,
    },
    Claim {
        id: "fast02.fig7c",
        title: "Predicted head times of small files",
        setting: "Atlas 10K as a black box, one process that reads 10,000 of 100,000 files of 3 KB through a file system",
        run: fast02_small_files::fig7c,
    },
    Claim {
        id: "fast02.fig8",
        title: "SPTF outside the drive and inside",
        setting: "Atlas 10K as a black box, 1 to 16 outstanding; Cheetah 18LP, 16",
        run: fast02_foreground::fig8,
    },
    Claim {
        id: "fast02.fig9",
        title: "Foreground and free bandwidth by conservatism",
        setting: "Atlas 10K as a black box, transactions of osdi00.fig8 at MPL 10, a scan by the greedy rule",
        run: fast02_conservatism::fig9,
    },
    Claim {
        id: "fast02.fig10",
        title: "What scheduling from outside costs",
        setting: "as figure 9, SPTF-SW60%",
        run: fast02_conservatism::fig10,
    },
    Claim {
        id: "fast02.cpu",
        title: "Processor time of a scheduler outside the drive",
        setting: "Atlas 10K as a black box, transactions at MPL 10, SPTF; on this machine",
        run: fast02_cpu::cpu,
    },
    Claim {
        id: "fast02.scan",
        title: "A full scan during transactions",
        setting: "as figure 9, SSTF, conservatism of 0.3 ms",
        run: fast02_scan::scan,
    },
    Claim {
        id: "beyond.fast02",
        title: "Outside the drive with plans of several stops, tracks of the foreground included",
        setting: "as figure 9, jitter of 50 us, four policies",
        run: fast02_scan::beyond,
    },
    Claim {
        id: "beyond.margins",
        title: "Margins of free work learned outside the drive, against one constant",
        setting: "as beyond.fast02, SPTF-SW60%; three drives; a budget of 5 ms a second of the head's time",
        run: beyond_margins::margins,
    },
    Claim {
        id: "beyond.price",
        title: "What a scan outside the drive costs clients under recorded loads",
        setting: "6 TB, loads scaled to it, SPTF-SW, greedy rule, blocks of 64 KiB, jitter of 50 us; a budget of 0.5 % of the head's time, against constant margins of 60 us",
        run: beyond_price::price,
    },
    Claim {
        id: "beyond.scrub",
        title: "How good the estimate of a scrub's time is: against whole scans",
        setting: "Atlas 10K, closed, MPL 10, 30 ms think, sizes as in osdi00.fig8, 2:1 reads, FCFS; blocks of 16 KiB; loads by where they lie, and the recorded ones; bands are what the README says of estimates",
        run: beyond_scrub::scrub,
    },
    Claim {
        id: "beyond.scrub-24tb",
        title: "The same on 24 TB, for as much as can be simulated in minutes",
        setting: "24 TB without its electronics, recorded pgbench load scaled to it, FCFS, greedy rule; blocks of 256 KiB",
        run: beyond_scrub::large,
    },
    Claim {
        id: "beyond.migration",
        title: "Moving files between disks in rotational gaps",
        setting: "four Atlas 10K, FCFS, 210 requests a second of 8 KB, 90 of them to the first disk; 30 of its files of 4 MiB move to the others",
        run: beyond_migration::migration,
    },
    Claim {
        id: "beyond.restripe",
        title: "Striping the hottest files anew when the load has grown",
        setting: "tr96's array and skewed workload, 10 and then 80 requests a second; 200 of 2000 files; new places, without the cost of the copies",
        run: tr96::restripe,
    },
    Claim {
        id: "beyond.ends",
        title: "When a background task ends, as predicted after 300 requests of the foreground",
        setting: "random 8 KB, FCFS but where the row says otherwise, blocks of the usual size; Atlas 10K, whole rounds",
        run: beyond_ends::ends,
    },
    Claim {
        id: "tr03.replay",
        title: "Replay by dependence on the last completed request",
        setting: "each trace with recorded completions; every request takes its recorded time, window of 64, think times kept",
        run: tr03_replay::replay,
    },
    Claim {
        id: "tr03.tab2",
        title: "Read caching",
        setting: "two systems, Ultrastar 73LZX; 8 MB a disk, and 1 % of the storage used, against 512 KB; prefetching off",
        run: tr03_tables::tab2,
    },
    Claim {
        id: "tr03.tab3",
        title: "Prefetching with reads that miss",
        setting: "two systems, Ultrastar 73LZX; fetch units of 64 KB, read-ahead of 32 KB, conditional sequential prefetch, against none",
        run: tr03_prefetch::tab3,
    },
    Claim {
        id: "tr03.tab4",
        title: "Prefetching in time that is lost",
        setting: "two systems, Ultrastar 73LZX; reading on to 128 KB in idle time, free blocks, just-in-time seeks, on top of table 3",
        run: tr03_prefetch::tab4,
    },
    Claim {
        id: "tr03.tab5",
        title: "Prefetching of both kinds",
        setting: "two systems, Ultrastar 73LZX; table 3 with idle reading and free blocks, against no prefetching",
        run: tr03_prefetch::tab5,
    },
    Claim {
        id: "tr03.tab6",
        title: "Write buffering",
        setting: "two systems, Ultrastar 73LZX; 4 MB for 30 s, and 0.1 % of the storage used for an hour, against write-through",
        run: tr03_tables::tab6,
    },
    Claim {
        id: "tr03.tab7",
        title: "Scheduling of the arm",
        setting: "two systems, Ultrastar 73LZX; ASATF with age factor 0.01 against FCFS, both at depth 8",
        run: tr03_tables::tab7,
    },
    Claim {
        id: "tr03.tab8",
        title: "Depth of the queue",
        setting: "two systems, Ultrastar 73LZX; 1 to 16 requests in the storage system, ASATF",
        run: tr03_tables::tab8,
    },
    Claim {
        id: "tr03.tab9",
        title: "Striping over four disks",
        setting: "two systems, Ultrastar 73LZX; stripe unit of 2 MB, against one disk",
        run: tr03_tables::tab9,
    },
    Claim {
        id: "tr03.tab10",
        title: "Every optimisation by itself",
        setting: "two systems, Ultrastar 73LZX; each base without one technique and with it",
        run: tr03_summary::tab10,
    },
    Claim {
        id: "tr03.tab11",
        title: "A year of better disks",
        setting: "two systems, Ultrastar 73LZX; seek times -8 %, speed +9 %, linear density +21 %, track density +24 %, alone and together",
        run: tr03_years::tab11,
    },
    Claim {
        id: "tr03.tabA3",
        title: "Larger disks",
        setting: "two systems, Ultrastar 73LZX; up to 5 times the surfaces, data on the outer cylinders",
        run: tr03_years::tab_a3,
    },
    Claim {
        id: "tr03.fig24",
        title: "Seeks and rotational latency against the advertised ones",
        setting: "two systems, Ultrastar 73LZX; means over disk requests",
        run: tr03_years::fig24,
    },
    Claim {
        id: "tr03.fig4",
        title: "Read misses by cache size",
        setting: "two systems, Ultrastar 73LZX; 512 KB to 32 MB, 0.06 to 8 % of the storage used, blocks of 512 B to 16 KB; prefetching off",
        run: tr03_caches::fig4,
    },
    Claim {
        id: "tr03.fig5",
        title: "How much prefetching is best (figures 5 to 7, A-2 to A-15)",
        setting: "two systems, Ultrastar 73LZX; fetch units and read-ahead of 8 to 256 KB, segments of 4 to 64 KB, triggers of 1 to 3, backward, preemptible read-ahead of 32 to 512 KB; against none",
        run: tr03_sensitivity::fig5,
    },
    Claim {
        id: "tr03.fig8",
        title: "Cache size when data are prefetched",
        setting: "two systems, Ultrastar 73LZX; few resources, 512 KB to 32 MB",
        run: tr03_caches::fig8,
    },
    Claim {
        id: "tr03.fig9",
        title: "Write bursts",
        setting: "two systems, Ultrastar 73LZX; destaging at once, buffers by size and by share of the storage used",
        run: tr03_buffers::fig9,
    },
    Claim {
        id: "tr03.fig10",
        title: "Repeated writes",
        setting: "two systems, Ultrastar 73LZX; many resources, destaging when full alone, buffers by share of the storage used",
        run: tr03_buffers::fig10,
    },
    Claim {
        id: "tr03.fig11",
        title: "Marks and age of a write buffer",
        setting: "two systems, Ultrastar 73LZX; many resources, highMark 0.2 to 1, lowMark 0.2, ages of 30 s to no limit",
        run: tr03_buffers::fig11,
    },
    Claim {
        id: "tr03.fig14",
        title: "The age factor of ASATF",
        setting: "two systems, Ultrastar 73LZX; W from 0 to 10, depth 8",
        run: tr03_arms::fig14,
    },
    Claim {
        id: "tr03.fig15",
        title: "Stripe units and numbers of disks",
        setting: "two systems, Ultrastar 73LZX; units of 64 KB to 512 MB over 4 disks; 1 to 8 disks with a unit of 2 MB",
        run: tr03_arms::fig15,
    },
    Claim {
        id: "tr03.fig25",
        title: "What responses are made of",
        setting: "two systems, Ultrastar 73LZX; the bases as they are",
        run: tr03_arms::fig25,
    },
    Claim {
        id: "tr03.fits",
        title: "Curves through years of better disks",
        setting: "two systems, Ultrastar 73LZX; many resources, half a year to five years, Levenberg-Marquardt",
        run: tr03_years::fits,
    },
    Claim {
        id: "tr96.model",
        title: "The analytic model: stripe units, and responses against simulation",
        setting: "32 disks of 539 MB, half full; whole files of classes A and B; grids of 1 KB to 4 MB on 1 to 32 disks at 5 to 90 % load",
        run: tr96::model,
    },
    Claim {
        id: "tr96.tab3",
        title: "Response by stripe unit, light load",
        setting: "32 disks of 539 MB, 10,000 files, one request a second, every active file as likely",
        run: tr96::tab3,
    },
    Claim {
        id: "tr96.tab4",
        title: "Response by size of request, light load",
        setting: "as table 3",
        run: tr96::tab4,
    },
    Claim {
        id: "tr96.tab5",
        title: "Response by load",
        setting: "as table 3, 20 to 140 requests a second",
        run: tr96::tab5,
    },
    Claim {
        id: "tr96.tab6",
        title: "Skewed access, with and without disk cooling",
        setting: "as table 3, Zipf-like access (70 % of the requests to 30 % of the files)",
        run: tr96::tab6,
    },
    Claim {
        id: "tr96.tab7",
        title: "Cooling under the requests of a web server",
        setting: "a day of NASA's web server of 1995 up to 1000 times as fast, 32 disks of 539 MB, track striping",
        run: tr96::tab7,
    },
    Claim {
        id: "tr96.fig8",
        title: "Cooling under a trace of 14 disks with a peak of load",
        setting: "DiskSim's ascii trace, each device on an Atlas 10K, fragments of 16 MiB, a last third at the load that keeps the hottest disk busy for 95 % of the time",
        run: tr96::fig8,
    },
    Claim {
        id: "tr96.alloc",
        title: "Greedy allocation: figure 3, and the bound",
        setting: "random instances of 2 to 4 disks against exhaustive search",
        run: tr96::allocation,
    },
];

/// How much work to spend, and where things are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReproduceOptions {
    /// Shorter runs.
    pub quick: bool,
    /// Seeds of the random streams, one run of every claim for each. Numbers are medians over them. On traces
    /// each leaves another part of the trace out.
    pub seeds: Vec<u64>,
    /// Folder with the recorded traces; without it they are looked for.
    #[serde(skip)]
    pub recordings: Option<PathBuf>,
}

/// Seeds of a verdict, where none are asked for.
pub const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// Makes a call, and says how much time it took. The claims about processor time need it; all others
/// are the same on every machine.
pub type Timer<'a> = &'a (dyn Fn(&mut dyn FnMut()) -> SimDuration + Sync);

/// A claim that was run.
pub struct Reproduction {
    /// Id of the claim.
    pub id: &'static str,
    /// Rows of the claim, in the order of the paper.
    pub rows: Vec<Row>,
    /// The paper's figures, with ours and theirs.
    pub figures: Vec<Figure>,
}

struct Outcome {
    rows: Vec<Row>,
    figures: Vec<Figure>,
}

/// What an experiment gets.
struct Context<'a> {
    id: &'static str,
    options: &'a ReproduceOptions,
    /// Seed of every random stream.
    seed: u64,
    /// Place of the seed among those of the options.
    sample: usize,
    /// Runs on traces that all seeds share.
    traced: &'a TracedRuns,
    timer: Timer<'a>,
    progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Context<'_> {
    /// Whether this run is the one whose figures are shown, in full: it also has the points that are drawn
    /// and compared with nothing.
    fn draws(&self) -> bool {
        !self.options.quick && self.sample == 0
    }

    fn requests(&self) -> u64 {
        if self.options.quick { 5_000 } else { 20_000 }
    }

    /// Runs all on all cores, one at a time on each: they differ in how long they take.
    fn run_all<S: Sync, T: Send>(
        &self,
        settings: &[S],
        run: impl Fn(&S) -> Result<T, ConfigError> + Sync,
    ) -> Result<Vec<T>, ConfigError> {
        let done = AtomicU64::new(0);
        settings
            .par_iter()
            .with_max_len(1)
            .map(|setting| {
                let result = run(setting)?;
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                (self.progress)(done, settings.len() as u64);
                Ok(result)
            })
            .collect()
    }

    /// A recorded trace. Err says where it was looked for, and the way out.
    fn recording(&self, name: &str) -> Result<PathBuf, String> {
        recordings::recording(name, self.options.recordings.as_deref())
    }

    /// A public trace. Err says where it was looked for, and the way out.
    fn public_trace(&self, file: &str) -> Result<PathBuf, String> {
        recordings::public_trace(file, self.options.recordings.as_deref())
    }

    /// A log of a web server. Err says where it was looked for, and the way out.
    fn web_log(&self, file: &str) -> Result<PathBuf, String> {
        recordings::web_log(file, self.options.recordings.as_deref())
    }

    /// A number of the paper with a band of `tolerance` on either side.
    fn row(
        &self,
        quantity: &str,
        unit: &'static str,
        paper: f64,
        tolerance: f64,
        ours: f64,
    ) -> Row {
        let band = [paper - tolerance, paper + tolerance];
        self.row_of(quantity, unit, [paper; 2], band, ours)
    }

    /// A number for which the paper has one, or a range, with a band.
    fn row_of(
        &self,
        quantity: &str,
        unit: &'static str,
        paper: [f64; 2],
        band: [f64; 2],
        ours: f64,
    ) -> Row {
        self.row_in(quantity, unit, band, ours).of_paper(paper)
    }

    /// Something that must hold.
    fn holds(&self, quantity: &str, truth: bool) -> Row {
        self.row_of(quantity, HOLDS, [1.0; 2], [1.0; 2], u8::from(truth).into())
    }

    /// A number that must lie in a range.
    fn row_in(&self, quantity: &str, unit: &'static str, band: [f64; 2], ours: f64) -> Row {
        self.measured(quantity, unit, ours).within(band)
    }

    /// A number without a band.
    fn measured(&self, quantity: &str, unit: &'static str, ours: f64) -> Row {
        Row::new(self.id, quantity, unit, ours)
    }
}

/// Why a claim was not run.
#[derive(Debug, Error)]
pub enum ReproduceError {
    /// There is no such claim.
    #[error("no claim is called `{id}`: there are {}", ids().join(", "))]
    Unknown {
        /// The id given.
        id: String,
    },
    /// The experiment itself failed.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

fn ids() -> Vec<&'static str> {
    CLAIMS.iter().map(|claim| claim.id).collect()
}

/// Runs the experiment behind a claim. `timer` times what claims about processor time are about;
/// `progress` gets done and total, from several threads.
pub fn reproduce(
    id: &str,
    options: &ReproduceOptions,
    timer: Timer<'_>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Reproduction, ReproduceError> {
    let claim = CLAIMS.iter().find(|claim| claim.id == id);
    let claim = claim.ok_or_else(|| ReproduceError::Unknown { id: id.into() })?;
    let traced = TracedRuns::default();
    let done = AtomicU64::new(0);
    let all = &options.seeds[..claim.seeds_of(options)];
    let seeds = all.len() as u64;
    let run = |(sample, &seed): (usize, &u64)| {
        // Parts of a claim, all of its seeds together.
        let progress = |_, total: u64| {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            progress(done.min(total * seeds), total * seeds);
        };
        let context = Context {
            id: claim.id,
            options,
            seed,
            sample,
            traced: &traced,
            timer,
            progress: &progress,
        };
        (claim.run)(&context)
    };
    let outcomes: Vec<Outcome> = match claim.needs_order() {
        true => all.iter().enumerate().map(run).collect::<Result<_, _>>()?,
        false => all.par_iter().enumerate().map(run).collect::<Result<_, _>>()?,
    };
    Ok(over_seeds(claim.id, outcomes))
}

/// Medians of the rows of all seeds, and the figures of the first.
fn over_seeds(id: &'static str, outcomes: Vec<Outcome>) -> Reproduction {
    let mut outcomes = outcomes.into_iter();
    let Outcome { rows, figures } = outcomes.next().expect("at least one seed");
    let mut samples: Vec<Vec<Row>> = rows.into_iter().map(|row| vec![row]).collect();
    for row in outcomes.flat_map(|outcome| outcome.rows) {
        match samples.iter_mut().find(|sample| sample[0].quantity == row.quantity) {
            Some(sample) => sample.push(row),
            None => samples.push(vec![row]),
        }
    }
    Reproduction { id, rows: samples.into_iter().map(Row::median).collect(), figures }
}

impl Claim {
    /// How many of the seeds it runs on. Beyond the papers three are enough, as whole scans take minutes, and a
    /// short run shows one. A replay on a drive without jitter has no chance in it.
    fn seeds_of(&self, options: &ReproduceOptions) -> usize {
        let most = match self.id.starts_with(BEYOND) {
            true if options.quick || self.id == "beyond.scrub-24tb" => 1,
            true => 3,
            false => options.seeds.len(),
        };
        options.seeds.len().min(most)
    }

    /// Whether its seeds run one after the other: those on traces share runs, and those of processor time
    /// would disturb each other.
    fn needs_order(&self) -> bool {
        self.id.starts_with("tr03.") || ["osdi00.sec4", "fast02.cpu"].contains(&self.id)
    }
}

#[cfg(test)]
mod tests;
