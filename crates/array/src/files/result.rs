//! Results of a run with files on several disks beside the sums of all runs.

use std::collections::BTreeMap;

use freewheel_model::stats::Summary;
use freewheel_units::Bytes;
use serde::Serialize;

use super::cooled::CoolingWork;
use super::new_files::NewFilesWork;
use super::requests::DriftWork;
use crate::cooling::Refusal;

/// Files by class, and what cooling did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilesRun {
    /// The classes.
    pub classes: Vec<ClassResult>,
    /// The drive of each disk.
    pub drives: Vec<String>,
    /// Share of each disk that files fill at the end.
    pub filled: Vec<f64>,
    /// Movement of the hot set, where there was drift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftResult>,
    /// Files created and deleted, where there were some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_files: Option<NewFilesResult>,
    /// Files that got other stripes, where stripes follow the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restriping: Option<RestripingResult>,
    /// Moves during the run, where there was cooling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooling: Option<CoolingResult>,
}

/// Files of one class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassResult {
    /// Name of the file.
    pub name: String,
    /// Number of files at the beginning.
    pub files: u64,
    /// Bytes of these.
    pub bytes: Bytes,
    /// Stripes of the files, where not every file is whole on one disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stripes: Option<ClassStripes>,
    /// Response times of their requests.
    pub response: Summary,
}

/// Stripes of the files of a class: files of other sizes or requests may have other ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClassStripes {
    /// Least bytes of a run.
    pub unit_min: Bytes,
    /// Most bytes of a run.
    pub unit_max: Bytes,
    /// Fewest disks of a file.
    pub width_min: u32,
    /// Most disks of a file.
    pub width_max: u32,
}

impl ClassStripes {
    /// Stripes of files of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            unit_min: self.unit_min.min(other.unit_min),
            unit_max: self.unit_max.max(other.unit_max),
            width_min: self.width_min.min(other.width_min),
            width_max: self.width_max.max(other.width_max),
        }
    }
}

/// Movement of the hot set in the whole run, the warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DriftResult {
    /// Changes of the hot set.
    pub changes: u64,
    /// Files that took another's share of the requests, counted each time.
    pub files: u64,
}

impl DriftResult {
    pub(super) fn of(work: DriftWork) -> Self {
        Self { changes: work.changes, files: work.files }
    }
}

/// Files created and deleted in the whole run, the warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NewFilesResult {
    /// Files that were created, each in the place of another one.
    pub created: u64,
    /// Bytes of these.
    pub bytes: Bytes,
    /// Files that were deleted.
    pub deleted: u64,
    /// Files that no disk had room for in one piece: clients overwrote the old ones instead.
    pub without_room: u64,
}

impl NewFilesResult {
    pub(super) fn of(work: NewFilesWork) -> Self {
        Self {
            created: work.created,
            bytes: work.blocks.bytes(),
            deleted: work.deleted,
            without_room: work.without_room,
        }
    }
}

/// Restriping in the whole run, the warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RestripingResult {
    /// Checks of the load.
    pub checks: u64,
    /// Checks after which files were to get other stripes.
    pub triggered: u64,
    /// Files that got them.
    pub files: u64,
    /// Bytes of these.
    pub bytes: Bytes,
    /// Files whose new stripes no disks had room for.
    pub without_room: u64,
    /// Copies that had begun and were not complete at the end.
    pub unfinished: u64,
    /// Clients' writes that were held while their blocks were copied.
    pub held_writes: u64,
    /// Time during which a read or a write of a copy was under way.
    pub copying_ns: u64,
}

impl RestripingResult {
    pub(super) fn of(work: &CoolingWork) -> Self {
        Self {
            checks: work.restriping.checks,
            triggered: work.restriping.triggered,
            files: work.moves,
            bytes: work.blocks.bytes(),
            without_room: work.restriping.without_room,
            unfinished: work.unfinished,
            held_writes: work.held,
            copying_ns: work.copying.ns(),
        }
    }
}

/// Work of cooling in the whole run, the warm-up included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoolingResult {
    /// Looks at the disks.
    pub steps: u64,
    /// Moves that came to their end.
    pub moves: u64,
    /// Bytes that they moved.
    pub bytes: Bytes,
    /// Steps without a move, by reason.
    pub refusals: BTreeMap<String, u64>,
    /// Clients' writes that were held while their blocks were copied.
    pub held_writes: u64,
    /// Most moves at once.
    pub at_once: u64,
    /// Moves that had begun and were not complete at the end.
    pub unfinished: u64,
    /// Time during which a read or a write of a copy was under way; in gaps, a whole copy.
    pub copying_ns: u64,
}

impl CoolingResult {
    pub(super) fn of(work: CoolingWork) -> Self {
        let refusals = work.counts.refusals.iter();
        Self {
            steps: work.counts.steps,
            moves: work.moves,
            bytes: work.blocks.bytes(),
            refusals: refusals
                .map(|(&refusal, &count)| (refusal_name(refusal).to_owned(), count))
                .collect(),
            held_writes: work.held,
            at_once: work.at_once,
            unfinished: work.unfinished,
            copying_ns: work.copying.ns(),
        }
    }
}

/// The name of a reason in results.
fn refusal_name(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Balanced => "balanced",
        Refusal::SourceQueued => "source queued",
        Refusal::NoCandidate => "no candidate",
        Refusal::NoWait => "clients do not wait",
        Refusal::NoTarget => "no target",
        Refusal::TargetTooHot => "target too hot",
        Refusal::NotWorthIt => "not worth it",
    }
}
