//! Results of a run with files on several disks beside the sums of all runs.

use std::collections::BTreeMap;

use freewheel_model::array::cooling::Refusal;
use freewheel_model::stats::Summary;
use freewheel_units::Bytes;
use serde::Serialize;

/// Files by class, and what cooling did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilesRun {
    /// The classes.
    pub classes: Vec<ClassResult>,
    /// The drive of each disk.
    pub drives: Vec<String>,
    /// Share of each disk that files fill at the end.
    pub filled: Vec<f64>,
    /// Moves during the run, where there was cooling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooling: Option<CoolingResult>,
}

/// Files of one class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassResult {
    /// Name of the file.
    pub name: String,
    /// Number of files.
    pub files: u64,
    /// Bytes of all.
    pub bytes: Bytes,
    /// Response times of their requests.
    pub response: Summary,
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
    /// Time during which a read or a write of a copy was under way.
    pub copying_ns: u64,
}

/// The name of a reason in results.
pub(crate) fn refusal_name(refusal: Refusal) -> &'static str {
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
