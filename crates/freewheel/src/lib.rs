//! Freewheel as a library: simulates hard disks and schedules background work into rotational gaps.
//!
//! The command line stands on this crate alone. The root holds what one does with Freewheel; each module
//! holds what one of these jobs needs besides. [`Error`] is the one error.
//!
//! | job | begin with |
//! |---|---|
//! | open, inspect, convert a trace | [`TraceReader`], [`TraceInfo`], [`convert_trace`] |
//! | take, scale or import a drive | [`drives`], [`Scaling`] |
//! | run an experiment | [`SimConfig`], [`Experiment`] |
//! | study a trace | [`study`] |
//! | compare caches for a trace | [`cache_curves`] |
//! | plan stripes, and which files lie on which disks | [`plans`] |
//! | find out or validate a drive | [`extract`], [`validate`] |
//! | run many configurations of an experiment | [`sweeps`] |
//! | study a fleet of drives | [`fleets`] |
//! | reproduce the papers' claims | [`reproduce`] |
//! | emulate a drive; serve a device | [`emulation`]; [`serving`] |
//! | control a server; back up | [`control`] |
//!
//! ```
//! use freewheel::{Experiment, SimConfig};
//!
//! let text = r#"
//!     drive = "atlas10k"
//!     electronics = false
//!     scheduler = { policy = "sptf" }
//!     workload = { kind = "closed", outstanding = 20, requests = 1000 }
//! "#;
//! let result = Experiment::new(SimConfig::parse(text, "example", &[])?)?.run()?;
//! assert!(result.head_time.rotate_share() < 0.30);
//! # Ok::<(), freewheel::Error>(())
//! ```

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct RustGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/extending.md")]
struct ExtendingGuide;

mod error;
mod error_kind;
mod help;
mod in_words;
mod wrong_file_kind;

pub mod caches;
pub mod claims;
pub mod control;
pub mod drives;
pub mod emulation;
pub mod experiments;
pub mod extraction;
pub mod files;
pub mod fleets;
pub mod measures;
pub mod plans;
pub mod serving;
pub mod sweeps;
pub mod traces;

pub use caches::cache_curves;
pub use claims::reproduce;
pub use error::Error;
pub use error_kind::ErrorKind;
pub use experiments::study;
pub use extraction::{extract, validate};
pub use help::Surface;
pub use traces::convert_trace;

pub use freewheel_extract::Extraction;
pub use freewheel_model::drive::Drive;
pub use freewheel_model::drive::scale::Scaling;
pub use freewheel_model::drive::spec::DriveSpec;
pub use freewheel_model::sched::PolicySpec;
pub use freewheel_report::{DriveSheet, SimReport, StudyReport};
pub use freewheel_sim::RunResult;
pub use freewheel_sim::config::SimConfig;
pub use freewheel_sim::experiment::Experiment;
pub use freewheel_study::StudyOptions;
pub use freewheel_trace::{TraceInfo, TraceReader};
