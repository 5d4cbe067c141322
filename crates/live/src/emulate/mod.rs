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
//! since it waits meanwhile, and the drive's thread never waits for a file. A flush and a write with FUA
//! are answered when the drive is done and another thread has synced the store's file.

mod adapter;
mod contents;
mod device;
mod power;
mod store;
mod syncs;
mod volatile;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::LimitPolicy;
use freewheel_model::electronics::spec::{ElectronicsSpec, SectorFormat, WriteCache};
use freewheel_model::sched::CommandMark;
use freewheel_nbd::{BlockSizes, Command, Errno, Export, Features, Span};
use freewheel_sim::black_box::{BadBlocks, Behaviour, EmulatedDrive};
use freewheel_sim::library::DriveError;
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Lbn, Op, SimTime};
use thiserror::Error;

use crate::FreeSpace;
use crate::nbd::{Caller, Responder, Service};

pub use adapter::{COMMAND_BLOCKS_MAX, Finished, HostAdapter, Request};
pub use device::{Account, Clock, Device, Done, Priority};
pub use power::PowerSwitch;
pub use store::{Store, StoreError};
pub use syncs::SyncAccount;
pub use volatile::PowerCut;

use contents::Contents;
pub(crate) use syncs::Fault;
use syncs::{Both, Syncs, of_drive};
use volatile::Volatile;

/// Most memory of a drive's volatile cache; less where its buffer takes less.
const VOLATILE_BYTES_MAX: u64 = 64 << 20;

/// Options of an emulation beside the drive's file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Behaviour of the drive that its file does not tell.
    pub behaviour: Behaviour,
    /// Blocks that cannot be read.
    pub bad: BadBlocks,
    /// Seed of every random stream.
    pub seed: u64,
    /// The file with its data; they are gone with the process when absent.
    pub store: Option<PathBuf>,
    /// True if written data that are not flushed are lost or reordered, by the seed, when the process is
    /// killed or the [power is cut](Emulation::power_on).
    pub volatile_cache: bool,
}

/// Reason why a drive cannot be emulated.
#[derive(Debug, Error)]
#[allow(missing_docs)]
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
        name: String,
        /// Number of the drive's arms.
        actuators: u32,
    },
    /// Zones that only take writes in order.
    #[error(
        "{name} is host-managed, and NBD has no zones: remove `zoned` in a copy of its file for the \
         drive without them"
    )]
    Zoned { name: String },
    /// The data have no place.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A volatile cache of a drive that has none.
    #[error(
        "{name} answers writes when they are on the media, so it has nothing to lose: switch its write \
         cache on (--write-cache on, of a drive with a buffer), or leave --volatile-cache out"
    )]
    NothingVolatile { name: String },
    /// An export whose commands the drive would not look at, or that has no meaning.
    #[error("`{given}`: {why}")]
    Marked {
        given: String,
        /// Fault, and the way out.
        why: String,
    },
    /// The thread cannot be started.
    #[error("the drive's thread: {0}")]
    Thread(io::Error),
}

/// Reason why a drive did not end in order.
#[derive(Debug, Error)]
pub enum EndError {
    /// A thread of it panicked, or it has ended before.
    #[error("the drive's thread has failed")]
    Thread,
    /// Written data without a flush are not all in the store.
    #[error(
        "written data may be missing in its store, as the system could not write them: {0}: check the disk \
         and the room of its file system, and write the data anew"
    )]
    NotStored(Arc<str>),
}

/// Work of a drive.
#[derive(Debug, Clone, Default)]
pub struct EmulationAccount {
    /// Requests and their lateness.
    pub device: Account,
    /// Requests that waited for the store's file.
    pub syncs: SyncAccount,
}

/// Further export of a drive, whose clients' commands have a mark.
struct MarkedExport {
    emulation: Arc<Emulation>,
    name: String,
    mark: CommandMark,
}

impl Service for MarkedExport {
    fn export(&self) -> Export {
        Export { name: self.name.clone(), ..self.emulation.export() }
    }

    fn submit(&self, command: Command, data: &mut Vec<u8>, responder: Responder) {
        self.emulation.submit_marked(command, data, responder, self.mark);
    }

    fn left(&self, caller: Caller) {
        self.emulation.left(caller);
    }
}

/// A drive with its data, to be served.
pub struct Emulation {
    export: Export,
    sector: SectorFormat,
    device: Device,
    contents: Arc<Contents>,
    /// Synchronisation of a store whose file is kept.
    syncs: Option<Syncs>,
    /// Electronics of its file, and the commands that it holds.
    electronics: (ElectronicsSpec, u32),
    is_off: AtomicBool,
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
        let Options { behaviour, bad, seed, store, volatile_cache } = options;
        let drive =
            EmulatedDrive::new(spec, name, &behaviour, bad, seed).map_err(DriveError::from)?;
        let (size, sector) = (drive.blocks().bytes(), drive.sector());
        let electronics = (spec.electronics.clone(), drive.queue_depth());
        let volatile = if volatile_cache {
            Some(Volatile::new(
                volatile_room(spec, &behaviour)
                    .ok_or_else(|| EmulateError::NothingVolatile { name: name.into() })?,
                u64::from(sector.physical_blocks()) * BLOCK_BYTES,
                seed,
            ))
        } else {
            None
        };
        let store = match store {
            Some(path) => Store::open(&path, size)?,
            None => Store::anonymous(size)?,
        };
        let contents = Arc::new(Contents::new(store, volatile));
        let threads = Device::start(drive).and_then(|device| {
            let kept = contents.store().is_kept();
            let syncs = kept.then(|| Syncs::start(Arc::clone(&contents), device.clock()));
            Ok((device, syncs.transpose()?))
        });
        let (device, syncs) = threads.map_err(|error| {
            contents.store().discard();
            EmulateError::Thread(error)
        })?;
        let is_off = AtomicBool::new(false);
        let export = export(spec, size, sector);
        Ok(Self { export, sector, device, contents, syncs, electronics, is_off })
    }

    /// A further export of the drive, `NAME=MARK`: its clients' commands have the mark `high-priority`, or that
    /// of a duration limit, as `limit:1`. NBD has no bits for marks.
    pub fn marked(self: &Arc<Self>, given: &str) -> Result<Arc<dyn Service>, EmulateError> {
        let (name, mark) = given
            .split_once('=')
            .filter(|(name, _)| !name.is_empty() && *name != self.export.name)
            .ok_or_else(|| {
                fault(
                    "give NAME=high-priority or NAME=limit:1, of another name than the drive's",
                    given,
                )
            })?;
        let mark = match (mark, mark.strip_prefix("limit:").map(str::parse::<u8>)) {
            ("high-priority", _) => CommandMark::HighPriority,
            (_, Some(Ok(number))) => CommandMark::DurationLimit(number),
            _ => {
                return Err(fault(
                    "the mark is high-priority, or limit: and a number from 1 to 7",
                    given,
                ));
            }
        };
        self.looks_at(mark).map_err(|why| fault(&why, given))?;
        let emulation = Arc::clone(self);
        Ok(Arc::new(MarkedExport { emulation, name: name.into(), mark }))
    }

    /// Err where the drive does not look at a mark.
    fn looks_at(&self, mark: CommandMark) -> Result<(), String> {
        let (electronics, depth) = &self.electronics;
        if *depth < 2 {
            return Err(
                "the drive holds one command, and has no choice: give --queue-depth 2 or more"
                    .into(),
            );
        }
        let CommandMark::DurationLimit(number) = mark else {
            let looks = electronics.queue.is_some_and(|queue| queue.high_priority_first.is_some());
            let why = "the drive does not look at priorities: give `electronics.queue.high_priority_first` in a copy of its file";
            return if looks { Ok(()) } else { Err(why.into()) };
        };
        let limits = electronics.duration_limits.clone().unwrap_or_default();
        for (key, all) in [("read", &limits.read), ("write", &limits.write)] {
            let limit = usize::from(number).checked_sub(1).and_then(|at| all.get(at));
            match limit {
                None => {
                    return Err(format!(
                        "the drive has {} descriptors of {key}s: give `electronics.duration_limits.{key}` in a copy of its file",
                        all.len()
                    ));
                }
                Some(limit) if limit.policy == LimitPolicy::Abort => {
                    return Err(format!(
                        "descriptor {number} of {key}s ends commands without data, for which NBD has no answer: give it `policy = \"complete\"` in a copy of the drive's file"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Blocks of 512 B on the drive.
    pub fn blocks(&self) -> Blocks {
        Blocks::new(self.export.size / BLOCK_BYTES)
    }

    /// Sectors of the drive.
    pub fn sector(&self) -> SectorFormat {
        self.sector
    }

    /// Room of the file system of [`Options::store`] for all that may be written, if it reports it.
    pub fn room(&self) -> Option<FreeSpace> {
        self.contents.store().room()
    }

    /// Removes the file of [`Options::store`], if this drive made it and no client has used it.
    pub fn discard_store(&self) {
        self.contents.store().discard();
    }

    /// Data of the drive.
    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Gives the drive a request that came at `arrival`, on a client's `connection` if that may end before.
    /// Writes with FUA, and all that was written before a flush, are in the store's file and
    /// synced when `done` is called. `done` is dropped where [`Device::submit`] drops it.
    pub(crate) fn at_drive(
        &self,
        arrival: SimTime,
        request: Request,
        connection: Option<u64>,
        done: impl FnOnce(Result<(), Fault>) + Send + 'static,
    ) {
        let is_flush = request.op == Op::Flush;
        if !(is_flush || request.fua) || !self.contents.needs_flushes() {
            return self.device.submit(
                arrival,
                request,
                connection,
                Box::new(move |finished| done(of_drive(finished))),
            );
        }
        let both = Both::new(Box::new(done));
        let at_drive = Arc::clone(&both);
        self.device.submit(
            arrival,
            request,
            connection,
            Box::new(move |finished| at_drive.done(finished)),
        );
        let flushed = if is_flush { self.contents.flush() } else { Ok(()) };
        match &self.syncs {
            Some(syncs) if flushed.is_ok() => syncs.submit(both),
            _ => drop(both.stored(flushed)),
        }
    }

    /// The power goes: from now on requests are dropped without an answer, those that the drive has as well.
    pub fn power_off(&self) {
        self.is_off.store(true, Ordering::SeqCst);
        self.device.power_cut();
    }

    /// The power comes back: the drive is as it was at the start, and of the data in its volatile cache those
    /// are there that have reached the media, by the seed. No client that was there before may be left.
    pub fn power_on(&self) -> io::Result<PowerCut> {
        self.device.power_cut();
        let cut = self.contents.cut();
        self.is_off.store(false, Ordering::SeqCst);
        cut
    }

    /// Ends the drive in order when all requests are answered. If its file is kept, what its volatile cache
    /// holds is flushed, and the file is synced.
    pub fn finish(&self) -> Result<EmulationAccount, EndError> {
        let device = self.device.finish().ok_or(EndError::Thread)?;
        let syncs = match &self.syncs {
            Some(syncs) => syncs.finish().ok_or(EndError::Thread)?,
            None => SyncAccount::default(),
        };
        if self.contents.store().is_kept() {
            let stored = self.contents.flush().and_then(|()| self.contents.sync());
            stored.map_err(EndError::NotStored)?;
        }
        Ok(EmulationAccount { device, syncs })
    }

    /// True if the drive's thread runs before all ordinary threads (`SCHED_FIFO`).
    pub fn has_realtime_priority(&self) -> bool {
        self.device.priority() == Priority::Realtime
    }

    /// The drive itself.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

fn fault(why: &str, given: &str) -> EmulateError {
    EmulateError::Marked { given: given.into(), why: why.into() }
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

/// Largest volatile cache of a drive in bytes; `None` for a drive with its write cache off.
fn volatile_room(spec: &DriveSpec, behaviour: &Behaviour) -> Option<u64> {
    let buffer = spec.electronics.buffer.as_ref()?;
    let is_on = behaviour.write_cache.unwrap_or(buffer.write_cache) != WriteCache::Off;
    is_on.then(|| buffer.written_bytes_max().get().min(VOLATILE_BYTES_MAX))
}

/// Blocks of a span, which is aligned.
fn blocks(op: Op, span: Span, fua: bool, mark: CommandMark) -> Request {
    let start = Lbn::new(span.offset / BLOCK_BYTES);
    Request { op, start, blocks: u64::from(span.length) / BLOCK_BYTES, fua, mark }
}

const FLUSH: Request =
    Request { op: Op::Flush, start: Lbn::ZERO, blocks: 0, fua: false, mark: CommandMark::None };

impl Service for Emulation {
    fn export(&self) -> Export {
        self.export.clone()
    }

    fn submit(&self, command: Command, data: &mut Vec<u8>, responder: Responder) {
        self.submit_marked(command, data, responder, CommandMark::None);
    }

    fn left(&self, caller: Caller) {
        self.device.left(caller.connection);
    }
}

impl Emulation {
    /// Submits a command of a client, with a mark for the drive's queue.
    fn submit_marked(
        &self,
        command: Command,
        data: &mut [u8],
        responder: Responder,
        mark: CommandMark,
    ) {
        if self.is_off.load(Ordering::SeqCst) {
            // Its connection is cut, so that no client gets the error.
            return drop(responder);
        }
        let arrival = self.device.clock().now();
        let connection = responder.caller().connection;
        let mut buffer = Vec::new();
        let moved = match command {
            Command::Read { span, .. } => {
                buffer = responder.buffer(span.length);
                self.contents.read(span.offset, &mut buffer)
            }
            Command::Write { span, fua } => self.contents.write(span.offset, data, fua),
            Command::Trim { span, fua } => {
                self.contents.zero(span.offset, span.length.into(), false, fua)
            }
            Command::WriteZeroes { span, no_hole, fua, .. } => {
                self.contents.zero(span.offset, span.length.into(), no_hole, fua)
            }
            Command::Flush | Command::Cache { .. } | Command::BlockStatus { .. } => Ok(()),
        };
        if let Err(error) = moved {
            let errno = error.raw_os_error().map_or(Errno::Io, Errno::from_linux);
            return responder.error(errno, &format!("the emulated drive's store: {error}"));
        }
        let request = match command {
            Command::Read { span, .. } | Command::Cache { span } => {
                blocks(Op::Read, span, false, mark)
            }
            Command::Write { span, fua } | Command::WriteZeroes { span, fua, .. } => {
                blocks(Op::Write, span, fua, mark)
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
        self.at_drive(arrival, request, Some(connection), move |ended| match ended {
            Err(fault) => responder.error(Errno::Io, &fault.to_string()),
            Ok(()) if is_read => responder.data(buffer),
            Ok(()) => responder.done(),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;

    use freewheel_sim::library;

    use super::*;

    #[test]
    fn flushes_and_forced_writes_sync_store() {
        let spec = library::spec("atlas10k").unwrap();
        let start = || Emulation::start(&spec, "atlas10k", Options::default()).unwrap();
        let (sound, mut broken) = (start(), start());
        // The system refuses to sync this file.
        let store = Store::open(Path::new("/dev/null"), Bytes::ZERO).unwrap();
        assert!(store.sync().is_err());
        broken.contents = Arc::new(Contents::new(store, None));
        let syncs = Syncs::start(Arc::clone(&broken.contents), broken.device.clock());
        broken.syncs = Some(syncs.unwrap());
        let ask = |emulation: &Emulation, op, fua| {
            let (tell, told) = mpsc::channel();
            let request = Request { op, blocks: 8, fua, ..FLUSH };
            let arrival = emulation.device.clock().now();
            emulation.at_drive(arrival, request, None, move |ended| {
                tell.send(ended.map_err(|fault| fault.to_string())).unwrap();
            });
            told.recv().unwrap()
        };
        for (op, fua, fails) in [
            (Op::Write, false, false),
            (Op::Write, true, true),
            (Op::Flush, false, true),
            (Op::Read, false, false),
        ] {
            assert_eq!(ask(&sound, op, fua), Ok(()));
            let ended = ask(&broken, op, fua);
            assert_eq!(ended.is_err(), fails, "{op:?} {fua}: {ended:?}");
        }
        assert_eq!(sound.finish().unwrap().syncs.requests, 0, "it has no file to wait for");
        assert!(matches!(broken.finish(), Err(EndError::NotStored(_))));
    }
}
