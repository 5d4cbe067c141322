//! Results for people and programs: findings, tables and charts, as terminal text, JSON and HTML.
//!
//! This crate lies above `extract`, `study` and `reproduce`: they return numbers and figures as data, and
//! name neither colours nor wording. So a change of wording compiles no simulation again, surfaces that
//! draw by themselves take the numbers without a drawing library, and no circle is left between results
//! and their pages.

mod axis;
mod bars;
mod cache_curves;
mod cache_work;
mod chart;
mod claims_page;
mod claims_report;
mod claims_text;
mod command_work;
mod drawing;
mod drive_identity;
mod drive_sheet;
mod drives_text;
mod extraction_text;
mod files_run;
mod finding;
mod fleet;
mod frame;
mod free_work;
mod legend;
mod numbers;
mod object_report;
mod page;
mod paint;
mod plan;
mod plot;
mod postmark;
mod replies;
mod rows;
mod served;
mod shingled;
mod sim_page;
mod sim_report;
mod sim_text;
mod size_chart;
mod stages;
mod study;
mod sweep_text;
mod table;
mod text;
mod trace_order;
mod trace_text;
mod tracks_page;
mod tracks_text;
mod validation_page;
mod validation_text;

pub use cache_curves::{CacheReport, Conclusions};
pub use cache_work::cache_rows;
pub use claims_page::claims_html;
pub use claims_report::ClaimsReport;
pub use drive_identity::DriveIdentity;
pub use drive_sheet::{CheckRow, DriveSheet, SeekTime, ZoneSheet};
pub use drives_text::DriveScale;
pub use finding::{Confidence, Cost, Finding, Number, Topic, Unit};
pub use fleet::{FleetReport, HOT_SHARE, REPORTS};
pub use free_work::{FreeWorkPart, free_work_parts};
pub use numbers::counted;
pub use object_report::ObjectReport;
pub use plan::{PlaceConclusions, PlaceReport, StripeConclusions, StripeReport};
pub use postmark::{PassTable, pass_tables};
pub use replies::{Replies, Syncs, Times};
pub use served::{
    ExpectedEnd, RefreshedBlocks, ServedChanges, ServedDecisions, ServedMargins, ServedSample,
    ServedShare, ServedTask, ServedTenths, ServerNumbers, TaskStage, block_range,
};
pub use sim_page::{cautions, sim_html};
pub use sim_report::{SimDocument, SimReport};
pub use stages::{StageRow, StageTable, stage_table};
pub use study::StudyReport;
pub use table::Table;
pub use text::Text;
pub use tracks_page::tracks_html;
pub use tracks_text::merged_tracks_text;
pub use validation_page::validation_html;
