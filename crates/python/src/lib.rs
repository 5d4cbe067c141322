//! The package `freewheel` for Python.
//!
//! Goals: calls of the facade `freewheel` in the conventions of polars and pyarrow: keywords, results as frames
//! by the Arrow PyCapsule interface, the same bytes as the command line for the same experiment. The
//! interpreter goes on during a run, and Ctrl-C ends it.
//! Non-goals: anything that another surface would need too: that belongs into the facade. What Python says
//! better, as pictures by matplotlib, is in `python/freewheel`.
//!
//! Names and keywords are documented in `python/freewheel/_freewheel.pyi`, which mypy compares with this crate.

mod caches;
mod claims;
mod command;
mod config;
mod drive;
mod extraction;
mod fault;
mod fleets;
mod frame;
mod job;
mod objects;
mod own_cache_policy;
mod own_policy;
mod parts;
mod places;
mod plans;
mod report;
mod simulation;
mod studies;
mod sweeps;
mod table;
mod table_in;
mod toml_values;
mod trace;
mod values;

use pyo3::prelude::*;

/// What `freewheel` is made of.
#[pymodule]
mod _freewheel {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::caches::{CacheReport, cache_curves};
    #[pymodule_export]
    use super::claims::{ClaimsReport, claim_titles, reproduce};
    #[pymodule_export]
    use super::command::run_command_line;
    #[pymodule_export]
    use super::config::{SimConfig, schema};
    #[pymodule_export]
    use super::drive::{Drive, drive_names};
    #[pymodule_export]
    use super::extraction::{Extraction, Validation, extract, validate};
    #[pymodule_export]
    use super::fleets::{FleetReport, fleet, fleet_plan, run_fleet_chunk};
    #[pymodule_export]
    use super::frame::Frame;
    #[pymodule_export]
    use super::objects::{ObjectReport, object_curves};
    #[pymodule_export]
    use super::own_policy::{Moment, Request};
    #[pymodule_export]
    use super::parts::JobPlan;
    #[pymodule_export]
    use super::plans::{PlaceReport, StripeReport, plan_placement, plan_stripe};
    #[pymodule_export]
    use super::report::Report;
    #[pymodule_export]
    use super::simulation::{SimReport, simulate};
    #[pymodule_export]
    use super::studies::{StudyReport, study};
    #[pymodule_export]
    use super::sweeps::{SweepReport, run_sweep_chunk, sweep, sweep_plan};
    #[pymodule_export]
    use super::trace::{Trace, formats};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
