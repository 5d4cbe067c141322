//! Many drives, each with its trace: a study of each, as a row of one table.
//!
//! A drive that cannot be studied has a row that says why, so that one damaged trace does not end the study of
//! hundreds. Every drive is studied on one thread, so the rows are the same with any number of them. Memory
//! grows with the number of threads and of rows, not with that of requests.

mod member;
mod row;
mod run;
mod written;

pub use member::{FleetMember, NotAFleet, Place, Places, members};
pub use row::{
    AdviceChecks, FleetAdvice, FleetGapScrub, FleetIdleScrub, FleetNumbers, FleetRow, PartAdvice,
    TurnedAdvice,
};
pub use run::{
    Fleet, FleetChunk, FleetDone, FleetError, FleetOptions, FleetProgressSink, FleetRows, columns,
};
pub use written::WrittenReports;
