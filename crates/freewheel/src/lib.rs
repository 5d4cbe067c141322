//! The stable interface of Freewheel: what its command line and other surfaces use.
//!
//! ```
//! use freewheel::sim::config::{Experiment, SimConfig};
//!
//! let text = r#"
//!     drive = "atlas10k"
//!     electronics = false
//!     scheduler = { policy = "sptf" }
//!     workload = { kind = "closed", outstanding = 20, requests = 1000 }
//! "#;
//! let result = Experiment::new(SimConfig::parse(text, "example", &[])?)?.run()?;
//! assert!(result.head_time.rotate_share() < 0.30);
//! # Ok::<(), freewheel::sim::config::ConfigError>(())
//! ```

pub use freewheel_disksim as disksim;
pub use freewheel_extract as extract;
pub use freewheel_freeblock as freeblock;
pub use freewheel_host as host;
pub use freewheel_live as live;
pub use freewheel_model as model;
pub use freewheel_nbd as nbd;
pub use freewheel_report as report;
pub use freewheel_reproduce as reproduce;
pub use freewheel_sim as sim;
pub use freewheel_study as study;
pub use freewheel_trace as trace;
pub use freewheel_units as units;
