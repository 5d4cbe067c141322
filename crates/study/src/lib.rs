//! Experiments on top of the simulator: what a trace would gain from each policy, and what the
//! papers claim.

mod advise;
mod chart;
pub mod claims;
pub mod decisions;
mod drive_sheet;
mod extract;
mod free_work;
mod number;
mod page;
mod postmark;
mod scrub;
mod shingled;
mod sim_page;
mod stages;
mod validate;

pub use advise::{
    DriveSummary, Finding, PolicyRun, ProgressSink, Study, StudyError, StudyOptions, StudyProgress,
    study, study_watched,
};
pub use drive_sheet::{CheckRow, DriveSheet, SeekTime, ZoneSheet};
pub use extract::{
    Confidence, ExtractError, ExtractOptions, ExtractProgress, ExtractStep, ExtractedMisplaced,
    ExtractedSlip, ExtractedValue, Extraction, Journal, JournalEntry, JournalError, JournalHead,
    KeepEntry, extract, read_journal,
};
pub use free_work::{
    DeadlineWork, Delivered, FreeWork, FreeWorkPart, HeadUse, IdleCost, TaskWork, free_work_parts,
};
pub use number::four_digits;
pub use postmark::{PassTable, pass_tables};
pub use scrub::{
    ArmScrub, SCRUB_EFFORT, SCRUB_EFFORTS, ScrubEffort, ScrubEnd, ScrubEstimate, ScrubPart,
    ScrubPoint,
};
pub use sim_page::{PRICES_ARE, cautions, sim_html};
pub use stages::{StageRow, StageTable, stage_table};
pub use validate::{
    Coherence, Distance, GapReading, Part, PhaseAnalysis, PhaseClass, PhaseDistance,
    PhaseHistogram, PhaseLag, PhaseOperations, Quantile, ValidateError, Validation, validate,
};
