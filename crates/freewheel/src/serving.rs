//! Serving: a scheduler in front of a device, which uses its rotational gaps, and the NBD server for it.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use freewheel::serving::{
//!     Access, Address, BackendChannel, Claim, FileBackend, HostConfig, Server, Serving, Setup, Stop,
//! };
//! use freewheel::{PolicySpec, drives};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (spec, drive) = drives::load("my-drive.toml")?;
//! let drive = Arc::new(drive);
//! let scheduler = HostConfig::default().scheduler(&spec, &drive, "sptf-sw".parse::<PolicySpec>()?)?;
//! let way = BackendChannel::new();
//! let device = Arc::new(FileBackend::open("/dev/sdx".as_ref(), Claim::Exclusive, None, 4, way.back())?);
//! let setup = Setup::new(drive, spec.name.clone(), scheduler).scrubbing(None, 1);
//! let serving = Arc::new(Serving::start(setup, device, way)?);
//! let at = Address::Unix("/tmp/disk".into());
//! let server = Server::bind(&at, Access::default(), vec![serving], Default::default(), |_| {})?;
//! let stop = Stop::new()?;
//! stop.on_signals()?;
//! server.run(&stop)?;
//! # Ok(())
//! # }
//! ```

use freewheel_live::nbd::Limits;
use freewheel_model::drive::spec::DriveSpec;

use crate::Error;

pub use freewheel_freeblock::checked_block_size;
pub use freewheel_host::{Conservatism, PredictionSpec, SameTrack};
pub use freewheel_live::control::{ControlServer, ServerReport};
pub use freewheel_live::nbd::{Access, Address, Served, Server, ServerTls, Service, Stop};
pub use freewheel_live::serve::backend::{
    Backend, Claim, EmulatedBackend, FileBackend, Io, NbdBackend,
};
pub use freewheel_live::serve::{BackendChannel, Serving, Setup};
pub use freewheel_live::{FreeSpace, Notices};
pub use freewheel_nbd::Uri;
pub use freewheel_sim::{CONSERVATISM_MAX, HostConfig};

/// Err where the system limits this process to less memory than a server may take with all its clients,
/// beside its present memory. A text where it has files for fewer clients than the server takes.
pub fn check_resources() -> Result<Option<String>, Error> {
    let limits = Limits::default();
    freewheel_live::check_memory(&limits)?;
    Ok(freewheel_live::clients_with_files(&limits).map(|clients| {
        format!(
            "the limit of open files (ulimit -n) suffices for about {clients} clients of {}: further \
             ones are refused",
            limits.connections_max
        )
    }))
}

/// Err for a drive that cannot be served, by its file; `name` names the drive in the error.
pub fn check(spec: &DriveSpec, name: &str) -> Result<(), Error> {
    Ok(freewheel_live::serve::check(spec, name)?)
}
