//! Experiments on top of the simulator: what a trace would gain from each policy, and what the
//! papers claim.

pub mod claims;
mod page;
mod chart;
pub mod advise;

pub use advise::{Study, StudyError, StudyOptions, study};
