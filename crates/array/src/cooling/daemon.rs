//! The daemon of tr96 figure 5: from the hottest disk to the coolest, the extent that cools most for its size.
//!
//! Step 5 as printed compares the target's new heat with the extent's own and never holds, as the new heat
//! includes the extent. By the paper's text the target must not become hotter than the source was.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::variance::{Considered, MoveCosts, variance_gain};
use crate::heat::DiskHeats;
use crate::placement::{ExtentId, Placement};
use crate::space::SpaceStatus;

/// Settings of the cooling of disks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoolingSpec {
    /// delta: the share by which the hottest disk must exceed the mean; 0.05 in tr96.
    pub threshold: f64,
    /// True if a queue at the hottest disk forbids moves. With it, a disk that is overloaded from the start
    /// is never cooled.
    pub queue_veto: bool,
    /// Unit of a move: an extent or a file's part.
    pub unit: CoolingUnit,
    /// Extents that a step looks at. Where one may not move, the next one may; the paper looks at 1.
    pub candidates_max: u32,
    /// Disks that a step looks at, the hottest first. Where one may give no extent, the next one may; the paper
    /// looks at 1.
    pub sources_max: u32,
    /// Multiple of the mean disk's requests that must be present at the source, where those are counted.
    /// Averages over 256 arrivals, which follow each other, scatter by about a fifth at disks that are
    /// alike.
    pub waits_factor: f64,
}

/// Parts that move at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CoolingUnitConfig")]
pub enum CoolingUnit {
    /// Extents, the hottest for its size first, to disks without another extent of the file.
    #[default]
    Extents,
    /// The same parts, the hottest first, to any other disk: balance goes before parallelism.
    Fragments,
}

/// Test that a move must pass to be worth its cost.
#[derive(Debug, Clone, Copy)]
pub enum Worth<'a> {
    /// The target stays cooler than the source was (figure 5).
    TargetStaysCooler,
    /// Disk heat variance falls by more than the move costs.
    Variance {
        /// Seconds within which a move must pay.
        horizon_s: f64,
        /// Cost of moves by the queueing model.
        costs: &'a MoveCosts<'a>,
    },
}

/// Inputs of a cooling step.
#[derive(Debug, Clone, Copy)]
pub struct CoolingView<'a> {
    /// Places of all extents. Those that are being moved still have their old ones.
    pub placement: &'a Placement,
    /// Heats of extents and disks.
    pub heats: &'a DiskHeats,
    /// Requests that wait at each disk.
    pub queues: &'a [u32],
    /// Requests that wait or are served at each disk, averaged over the recent past; empty where they are
    /// not counted. Clients wait no longer at the source than elsewhere: then no move helps them, at any
    /// heat.
    pub present: &'a [f64],
    /// True for disks that take part in a move: they are neither source nor target of another one. Empty
    /// where no move is under way.
    pub taken: &'a [bool],
}

impl CoolingView<'_> {
    fn is_taken(&self, disk: u32) -> bool {
        self.taken.get(disk as usize).is_some_and(|taken| *taken)
    }

    fn present_mean(&self) -> f64 {
        self.present.iter().sum::<f64>() / self.present.len().max(1) as f64
    }
}

/// A move that a step wants.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct CoolingMove {
    pub extent: ExtentId,
    /// From where.
    pub from: u32,
    pub to: u32,
    /// The heat that goes with it.
    pub heat: f64,
}

/// Reason why a step moves no extent. With several candidates or sources, why the last one may not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// The hottest disk without a move is within the threshold.
    Balanced,
    /// Requests wait at the hottest disk.
    SourceQueued,
    /// The hottest disk has no extent whose heat is known.
    NoCandidate,
    /// Clients do not wait longer at the hottest disk than at the others.
    NoWait,
    /// No disk may take the extent.
    NoTarget,
    /// The coolest possible target would become as hot as the source was.
    TargetTooHot,
    /// The move would cost more than it saves.
    NotWorthIt,
}

/// Outcomes of steps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoolingCounts {
    /// All steps.
    pub steps: u64,
    /// Steps that wanted a move.
    pub moves: u64,
    /// The others.
    pub refusals: BTreeMap<Refusal, u64>,
}

/// Decides about moves, one a step.
#[derive(Debug, Clone, PartialEq)]
pub struct CoolingDaemon {
    spec: CoolingSpec,
    counts: CoolingCounts,
}

impl CoolingDaemon {
    /// A daemon without steps.
    pub fn new(spec: CoolingSpec) -> Self {
        Self { spec, counts: CoolingCounts::default() }
    }

    /// Outcomes of the steps so far.
    pub fn counts(&self) -> &CoolingCounts {
        &self.counts
    }

    /// One invocation. The caller does the move before the next one.
    pub fn step(
        &mut self,
        view: &CoolingView<'_>,
        worth: &Worth<'_>,
    ) -> Result<CoolingMove, Refusal> {
        let decision = self.decide(view, worth);
        self.counts.steps += 1;
        match decision {
            Ok(_) => self.counts.moves += 1,
            Err(refusal) => *self.counts.refusals.entry(refusal).or_default() += 1,
        }
        decision
    }

    fn decide(&self, view: &CoolingView<'_>, worth: &Worth<'_>) -> Result<CoolingMove, Refusal> {
        let heats = view.heats.of_disks();
        let coolest_first = coolest_first(heats);
        let mean = heats.iter().sum::<f64>() / heats.len() as f64;
        let mut refusal = Refusal::Balanced;
        let sources = coolest_first.iter().rev().filter(|disk| !view.is_taken(**disk));
        for &source in sources.take(self.spec.sources_max as usize) {
            if heats[source as usize] <= mean * (1.0 + self.spec.threshold) {
                break;
            }
            match self.decide_for(view, worth, source, &coolest_first) {
                Ok(wanted) => return Ok(wanted),
                Err(reason) => refusal = reason,
            }
        }
        Err(refusal)
    }

    /// The extent of a hot disk that is to move.
    fn decide_for(
        &self,
        view: &CoolingView<'_>,
        worth: &Worth<'_>,
        source: u32,
        coolest_first: &[u32],
    ) -> Result<CoolingMove, Refusal> {
        if self.spec.queue_veto && view.queues[source as usize] > 0 {
            return Err(Refusal::SourceQueued);
        }
        if view
            .present
            .get(source as usize)
            .is_some_and(|present| *present <= view.present_mean() * self.spec.waits_factor)
        {
            return Err(Refusal::NoWait);
        }
        let mut candidates = self.candidates(view, source);
        let mut refusal = Refusal::NoCandidate;
        for _ in 0..self.spec.candidates_max {
            let Some(candidate) = candidates.pop() else { break };
            match self.consider(view, worth, &candidate, source, coolest_first) {
                Ok(wanted) => return Ok(wanted),
                Err(reason) => refusal = reason,
            }
        }
        Err(refusal)
    }

    /// Extents of a disk, the best to move on top. A heap orders only those that are looked at.
    fn candidates(&self, view: &CoolingView<'_>, source: u32) -> BinaryHeap<Candidate> {
        view.placement
            .on_disk(source)
            .filter_map(|extent| {
                let heat = view.heats.table().heat(extent).filter(|heat| *heat > 0.0)?;
                let size = view.placement.extent(extent).blocks.get() as f64;
                let rank = match self.spec.unit {
                    CoolingUnit::Extents => heat / size,
                    CoolingUnit::Fragments => heat,
                };
                Some(Candidate { rank, heat, extent })
            })
            .collect()
    }

    fn consider(
        &self,
        view: &CoolingView<'_>,
        worth: &Worth<'_>,
        candidate: &Candidate,
        source: u32,
        coolest_first: &[u32],
    ) -> Result<CoolingMove, Refusal> {
        let known = view.placement.extent(candidate.extent);
        let mean = view.present_mean();
        let to = *coolest_first
            .iter()
            .find(|target| {
                let has_file = view.placement.holds_file(**target, known.file);
                **target != source
                    && !view.is_taken(**target)
                    && (self.spec.unit == CoolingUnit::Fragments || !has_file)
                    && view.placement.status(**target, known.blocks) == SpaceStatus::Free
                    && view.present.get(**target as usize).is_none_or(|present| *present < mean)
            })
            .ok_or(Refusal::NoTarget)?;
        let wanted =
            CoolingMove { extent: candidate.extent, from: source, to, heat: candidate.heat };
        let (from, blocks, heat) = (source, known.blocks, candidate.heat);
        judge(view.heats.of_disks(), &Considered { from, to, blocks, heat }, worth)?;
        Ok(wanted)
    }
}

/// A hotter target than the coolest allowed one would pass neither check, so one target is judged.
fn judge(heats: &[f64], considered: &Considered, worth: &Worth<'_>) -> Result<(), Refusal> {
    match worth {
        Worth::TargetStaysCooler => {
            let target_after = heats[considered.to as usize] + considered.heat;
            let stays_cooler = target_after < heats[considered.from as usize];
            if stays_cooler { Ok(()) } else { Err(Refusal::TargetTooHot) }
        }
        Worth::Variance { horizon_s, costs } => {
            let gain = variance_gain(heats, considered, *horizon_s, costs);
            if gain > 0.0 { Ok(()) } else { Err(Refusal::NotWorthIt) }
        }
    }
}

/// Disks by heat, the lowest number first among equals.
fn coolest_first(heats: &[f64]) -> Vec<u32> {
    let mut disks: Vec<u32> = (0..heats.len() as u32).collect();
    disks.sort_by(|&a, &b| heats[a as usize].total_cmp(&heats[b as usize]));
    disks
}

/// Ordered by rank; among equals the lowest number is the greatest.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    rank: f64,
    heat: f64,
    extent: ExtentId,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.total_cmp(&other.rank).then(other.extent.cmp(&self.extent))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}
