//! Emulated drives: a modelled drive that answers over NBD when a real one would, and its disturbances.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use freewheel::drives;
//! use freewheel::emulation::{Emulation, EmulationOptions};
//! use freewheel::serving::{Access, Address, Server, Stop};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (spec, _) = drives::load("atlas10k")?;
//! let drive = Arc::new(Emulation::start(&spec, "atlas10k", EmulationOptions::default())?);
//! let at = Address::Unix("/tmp/disk".into());
//! let server = Server::bind(&at, Access::default(), vec![drive], Default::default(), |_| {})?;
//! let stop = Stop::new()?;
//! stop.on_signals()?;
//! server.run(&stop)?;
//! # Ok(())
//! # }
//! ```

pub use freewheel_live::emulate::{Emulation, Options as EmulationOptions, PowerSwitch};
pub use freewheel_model::electronics::spec::{SectorFormat, WriteCache};
pub use freewheel_report::{Replies, Syncs};
pub use freewheel_sim::black_box::{Activity, BadBlocks, Behaviour, JitterShape, SpindleDrift};
