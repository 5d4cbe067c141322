//! A modelled drive as an NBD export, in real time.
//!
//! ```text
//!   connection's thread   arrival stamped; data to or from the store
//!     Device::submit      a message to the drive's thread
//!       HostAdapter       requests to commands, at most as many as the drive holds   (virtual time too)
//!         EmulatedDrive   when each is done                                     (virtual time too)
//!     done                at that time: the responder hands the answer to the connection
//! ```
//!
//! Data are moved when a request comes and not when it is answered. A client cannot tell the difference,
//! since it waits meanwhile, and the drive's thread never waits for a file.

mod adapter;
mod device;
mod store;

use std::io;
use std::path::PathBuf;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::SectorFormat;
use freewheel_nbd::{BlockSizes, Command, Errno, Export, Features, Span};
use freewheel_sim::black_box::{BadBlocks, Behaviour, EmulatedDrive};
use freewheel_sim::library::DriveError;
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Lbn, Op};
use thiserror::Error;

use crate::FreeSpace;
use crate::nbd::{Caller, Responder, Service};

pub use adapter::{COMMAND_BLOCKS_MAX, Finished, HostAdapter, Request};
pub use device::{Account, Clock, Device, Done, Priority};
pub use store::{Store, StoreError};

/// What is emulated beside the drive's file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What the drive does that its file does not say.
    pub behaviour: Behaviour,
    /// Blocks that cannot be read.
    pub bad: BadBlocks,
    /// Of every random stream.
    pub seed: u64,
    /// The file with its data; they are gone with the process when absent.
    pub store: Option<PathBuf>,
}

/// Why a drive cannot be emulated.
#[derive(Debug, Error)]
pub enum EmulateError {
    /// The file does not make a drive.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// More than one arm.
    #[error(
        "{name} has {actuators} actuators, and in real time only drives with one are emulated so \
         far: set `actuators = 1` in a copy of its file for one of them"
    )]
    Actuators {
        /// The drive.
        name: String,
        /// Its arms.
        actuators: u32,
    },
    /// Zones that only take writes in order.
    #[error(
        "{name} is host-managed, and NBD has no zones: remove `zoned` in a copy of its file for the \
         drive without them"
    )]
    Zoned {
        /// The drive.
        name: String,
    },
    /// Its data have no place.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its thread cannot be started.
    #[error("the drive's thread: {0}")]
    Thread(io::Error),
}

/// A drive with its data, to be served.
pub struct Emulation {
    export: Export,
    sector: SectorFormat,
    device: Device,
    store: Store,
}

impl Emulation {
    /// Starts the drive of a file, named `name` in errors.
    pub fn start(spec: &DriveSpec, name: &str, options: Options) -> Result<Self, EmulateError> {
        if spec.actuators != 1 {
            return Err(EmulateError::Actuators { name: name.into(), actuators: spec.actuators });
        }
        if spec.zoned.is_some() {
            return Err(EmulateError::Zoned { name: name.into() });
        }
        let Options { behaviour, bad, seed, store } = options;
        let drive =
            EmulatedDrive::new(spec, name, &behaviour, bad, seed).map_err(DriveError::from)?;
        let (size, sector) = (drive.blocks().bytes(), drive.sector());
        let store = match store {
            Some(path) => Store::open(&path, size)?,
            None => Store::anonymous(size)?,
        };
        let device = Device::start(drive).map_err(|error| {
            store.discard();
            EmulateError::Thread(error)
        })?;
        Ok(Self { export: export(spec, size, sector), sector, device, store })
    }

    /// Its blocks of 512 B.
    pub fn blocks(&self) -> Blocks {
        Blocks::new(self.export.size / BLOCK_BYTES)
    }

    /// Its sectors.
    pub fn sector(&self) -> SectorFormat {
        self.sector
    }

    /// What the file system of [`Options::store`] has for all that may be written, if it says so.
    pub fn room(&self) -> Option<FreeSpace> {
        self.store.room()
    }

    /// Removes the file of [`Options::store`], if this drive made it and no client has used it.
    pub fn discard_store(&self) {
        self.store.discard();
    }

    /// Its data.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Whether the drive's thread runs before all ordinary threads (`SCHED_FIFO`).
    pub fn has_realtime_priority(&self) -> bool {
        self.device.priority() == Priority::Realtime
    }

    /// The drive itself.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

fn export(spec: &DriveSpec, size: Bytes, sector: SectorFormat) -> Export {
    let features = Features {
        flush: true,
        fua: true,
        rotational: true,
        trim: true,
        write_zeroes: true,
        cache: true,
        multi_conn: true,
        ..Features::default()
    };
    let block_sizes = BlockSizes {
        minimum: sector.logical_blocks() * BLOCK_BYTES as u32,
        // As the page cache has it, and sectors of the media.
        preferred: 4096,
        payload_max: COMMAND_BLOCKS_MAX * BLOCK_BYTES as u32,
    };
    Export {
        name: spec.name.clone(),
        description: format!("{}, emulated in real time", spec.model),
        size: size.get(),
        features,
        block_sizes,
        block_sizes_required: false,
    }
}

/// Blocks of a span, which is aligned.
fn blocks(op: Op, span: Span, fua: bool) -> Request {
    let start = Lbn::new(span.offset / BLOCK_BYTES);
    Request { op, start, blocks: u64::from(span.length) / BLOCK_BYTES, fua }
}

const FLUSH: Request = Request { op: Op::Flush, start: Lbn::ZERO, blocks: 0, fua: false };

impl Service for Emulation {
    fn export(&self) -> Export {
        self.export.clone()
    }

    fn submit(&self, command: Command, data: &mut Vec<u8>, responder: Responder) {
        let arrival = self.device.clock().now();
        let connection = responder.caller().connection;
        let mut buffer = Vec::new();
        let moved = match command {
            Command::Read { span, .. } => {
                buffer = responder.buffer(span.length);
                self.store.read(span.offset, &mut buffer)
            }
            Command::Write { span, .. } => self.store.write(span.offset, data),
            Command::Trim { span, .. } => self.store.zero(span.offset, span.length.into(), false),
            Command::WriteZeroes { span, no_hole, .. } => {
                self.store.zero(span.offset, span.length.into(), no_hole)
            }
            Command::Flush | Command::Cache { .. } | Command::BlockStatus { .. } => Ok(()),
        };
        if let Err(error) = moved {
            let errno = error.raw_os_error().map_or(Errno::Io, Errno::from_linux);
            return responder.error(errno, &format!("the emulated drive's store: {error}"));
        }
        let request = match command {
            Command::Read { span, .. } | Command::Cache { span } => blocks(Op::Read, span, false),
            Command::Write { span, fua } | Command::WriteZeroes { span, fua, .. } => {
                blocks(Op::Write, span, fua)
            }
            Command::Flush | Command::Trim { fua: true, .. } => FLUSH,
            // The model knows no trim: it takes the drive no time.
            Command::Trim { fua: false, .. } => return responder.done(),
            Command::BlockStatus { .. } => {
                return responder
                    .error(Errno::Inval, "a drive does not know which blocks hold data");
            }
        };
        let is_read = matches!(command, Command::Read { .. });
        let done = move |finished: &Finished| match finished.bad {
            Some(lbn) => responder.error(Errno::Io, &format!("{lbn} cannot be read")),
            None if is_read => responder.data(buffer),
            None => responder.done(),
        };
        self.device.submit(arrival, request, Some(connection), Box::new(done));
    }

    fn left(&self, caller: Caller) {
        self.device.left(caller.connection);
    }
}
