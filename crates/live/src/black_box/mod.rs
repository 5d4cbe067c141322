//! A device in real time as a black box, on the clock of this host: it answers the same calls as a drive
//! in virtual time.
//!
//! ```text
//!   RealDrive::submit     in the caller's thread
//!     Backend             a file, a block device, an NBD export, an emulated drive
//!       BackendCompletion stamped by the thread that received it
//!   RealDrive::next_answer
//! ```
//!
//! How late a command leaves, and how late its answer is noticed, depends on the load of the host.
//! Measurements have to expect that, and to repeat commands.

use std::collections::{BTreeMap, VecDeque};
use std::hint;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use freewheel_model::electronics::spec::SectorFormat;
use freewheel_nbd::Uri;
use freewheel_sim::black_box::{Answer, BlackBox, Command, DriveGone};
use freewheel_units::{BLOCK_BYTES, Blocks, Lbn, Op, SimTime};
use thiserror::Error;

use crate::emulate::{Clock, Priority};
use crate::serve::backend::{
    Back, Backend, BackendCompletion, Claim, DeviceCommand, DeviceErrorKind, DeviceOp, ExportError,
    FileBackend, NbdBackend, OpenError,
};

/// Sectors whose data are kept for writes: more than any buffer has segments, and then some.
const KEPT_MAX: usize = 1 << 14;
/// Time before a deadline at which the caller's thread stops sleeping and looks at the clock: the kernel
/// wakes threads up to 50 us late on purpose.
const SPIN: Duration = Duration::from_micros(200);

/// Reason why a device is no black box.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum RealDriveError {
    /// The file or device.
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Export(#[from] ExportError),
    /// Answers would come from memory.
    #[error(
        "{}: single blocks of 512 B cannot be read past the page cache there, so answers would come \
         from memory: give a device with sectors of 512 B, or a file on a file system that knows \
         O_DIRECT",
        path.display()
    )]
    PageCache { path: PathBuf },
    /// The device takes no single sectors of this format.
    #[error(
        "{name}: takes multiples of {bytes} bytes only, and a drive of {given} is asked for less"
    )]
    LargeSectors {
        name: String,
        /// Bytes of the drive's sector.
        bytes: u32,
        /// As which it was to be read.
        given: SectorFormat,
    },
}

/// A device with the time of this host, from when it was opened.
pub struct RealDrive {
    /// For errors.
    name: String,
    device: Arc<dyn Backend>,
    sector: SectorFormat,
    clock: Clock,
    came: Receiver<BackendCompletion>,
    commands: BTreeMap<u64, Command>,
    /// Answers that were waited for in vain, and not later.
    early: VecDeque<Answer>,
    gone: Option<DriveGone>,
    kept: RecentBlocks,
    /// Memory for data, to be used again.
    spare: Vec<Vec<u8>>,
}

/// Data of the blocks that were read last.
struct RecentBlocks {
    /// Their number, at most.
    most: usize,
    /// With which read they came.
    data: BTreeMap<u64, (u64, Box<[u8]>)>,
    /// The block that came with each.
    order: BTreeMap<u64, u64>,
    reads: u64,
}

impl RecentBlocks {
    /// For sectors of `sector_blocks` blocks.
    fn new(sector_blocks: u32) -> Self {
        let most = KEPT_MAX * sector_blocks as usize;
        Self { most, data: BTreeMap::new(), order: BTreeMap::new(), reads: 0 }
    }

    fn keep(&mut self, start: Lbn, data: &[u8]) {
        for (block, bytes) in (start.get()..).zip(data.chunks_exact(BLOCK_BYTES as usize)) {
            self.reads += 1;
            if let Some((before, _)) = self.data.insert(block, (self.reads, bytes.into())) {
                self.order.remove(&before);
            }
            self.order.insert(self.reads, block);
        }
        while self.order.len() > self.most {
            let oldest = self.order.pop_first();
            oldest.map(|(_, oldest)| self.data.remove(&oldest));
        }
    }

    fn holds(&self, start: Lbn, blocks: u32) -> bool {
        (start.get()..).take(blocks as usize).all(|block| self.data.contains_key(&block))
    }

    fn fill(&self, start: Lbn, data: &mut [u8]) {
        for (block, bytes) in (start.get()..).zip(data.chunks_exact_mut(BLOCK_BYTES as usize)) {
            let (_, kept) = self.data.get(&block).expect("a block is read before it is written");
            bytes.copy_from_slice(kept);
        }
    }
}

impl RealDrive {
    /// The device that `open` makes; `open` passes completions to the given function. This thread, and those
    /// that `open` starts, get priority over all ordinary threads from then on, if the system permits.
    pub fn new<E>(
        name: &str,
        open: impl FnOnce(Back) -> Result<Arc<dyn Backend>, E>,
    ) -> Result<Self, E> {
        Priority::raise();
        let (tell, came) = mpsc::channel();
        let tell = Mutex::new(tell);
        let back: Back = Arc::new(move |back| {
            // The drive may have been dropped meanwhile.
            let _ = tell.lock().unwrap_or_else(PoisonError::into_inner).send(back);
        });
        let device = open(back)?;
        let sector = sector_of(&*device);
        Ok(Self {
            name: name.into(),
            kept: RecentBlocks::new(sector.physical_blocks()),
            device,
            sector,
            clock: Clock::start(),
            came,
            commands: BTreeMap::new(),
            early: VecDeque::new(),
            gone: None,
            spare: Vec::new(),
        })
    }

    /// A file or block device, past the page cache. Before it is used, `others` gets its other
    /// users, if it has any.
    pub fn open(
        path: &Path,
        claim: Claim,
        others: impl FnOnce(&[String]),
    ) -> Result<Self, RealDriveError> {
        Self::new(&path.display().to_string(), |back| {
            let file = FileBackend::open(path, claim, None, 1, back)?;
            ensure_single_sectors(&path.display().to_string(), &file)?;
            if !file.is_direct() {
                return Err(RealDriveError::PageCache { path: path.into() });
            }
            if !file.other_users().is_empty() {
                others(file.other_users());
            }
            Ok(Arc::new(file) as Arc<dyn Backend>)
        })
    }

    /// An NBD export.
    pub fn connect(uri: &Uri, writes: bool) -> Result<Self, RealDriveError> {
        Self::new(&uri.to_string(), |back| {
            // The next answer tells of a lost connection.
            let export = if writes {
                NbdBackend::connect(uri, None, back, |_| {})?
            } else {
                NbdBackend::connect_to_read(uri, None, back, |_| {})?
            };
            ensure_single_sectors(&uri.to_string(), &export)?;
            Ok(Arc::new(export) as Arc<dyn Backend>)
        })
    }

    /// Black box of a device that does not tell its sectors, or not those of its media. Err where it tells
    /// that it takes no less than larger ones.
    pub fn with_sector(self, sector: SectorFormat) -> Result<Self, RealDriveError> {
        let bytes = self.device.abilities().sector_bytes;
        let least = sector.logical_blocks() * BLOCK_BYTES as u32;
        if bytes <= least {
            Ok(Self { kept: RecentBlocks::new(sector.physical_blocks()), sector, ..self })
        } else {
            Err(RealDriveError::LargeSectors { name: self.name, bytes, given: sector })
        }
    }

    fn wait_until(&self, time: SimTime) {
        thread::sleep(self.left(time).saturating_sub(SPIN));
        while self.clock.now() < time {
            hint::spin_loop();
        }
    }

    fn left(&self, time: SimTime) -> Duration {
        Duration::from_nanos(time.saturating_since(self.clock.now()).ns())
    }

    /// Makes an answer of what has come back.
    fn answer(&mut self, back: BackendCompletion) -> Result<Option<Answer>, DriveGone> {
        let Some(command) = self.commands.remove(&back.id) else { return Ok(None) };
        let at = self.clock.at(back.at);
        let bad = match back.result {
            Ok(data) => {
                if command.op == Op::Read {
                    self.kept.keep(command.start, &data);
                }
                self.spare.push(data);
                None
            }
            // Where exactly is not said.
            Err(failed) if failed.kind == DeviceErrorKind::Io => Some(command.start),
            Err(failed) => {
                let name = Some(&self.name).filter(|name| !failed.message.contains(*name));
                let name = name.map_or(String::new(), |name| format!("{name}: "));
                let gone = DriveGone(format!("{name}{}", failed.message));
                self.gone = Some(gone.clone());
                return Err(gone);
            }
        };
        Ok(Some(Answer { id: back.id, at, bad }))
    }
}

/// Sectors as a device reports them; other sizes count as 512 B.
fn sector_of(device: &dyn Backend) -> SectorFormat {
    let abilities = device.abilities();
    match (abilities.sector_blocks(), abilities.physical_blocks()) {
        (8, _) => SectorFormat::Native4096,
        (1, 8) => SectorFormat::Emulated512,
        _ => SectorFormat::Native512,
    }
}

/// That a device can be asked for sectors of 512 B or 4 KiB one by one.
fn ensure_single_sectors(name: &str, device: &dyn Backend) -> Result<(), RealDriveError> {
    match device.abilities().sector_bytes {
        512 | 4096 => Ok(()),
        bytes => {
            let given = SectorFormat::Native4096;
            Err(RealDriveError::LargeSectors { name: name.into(), bytes, given })
        }
    }
}

impl BlackBox for RealDrive {
    fn blocks(&self) -> Blocks {
        self.device.blocks()
    }

    fn sector(&self) -> SectorFormat {
        self.sector
    }

    fn now(&self) -> SimTime {
        self.clock.now()
    }

    fn submit(&mut self, command: Command) {
        let Command { id, op, start, blocks, fua, .. } = command;
        let mut data = self.spare.pop().unwrap_or_default();
        let bytes = if op.moves_data() { u64::from(blocks) * BLOCK_BYTES } else { 0 };
        data.resize(bytes as usize, 0);
        if op == Op::Write {
            self.kept.fill(start, &mut data);
        }
        let twice = self.commands.insert(id, command);
        assert!(twice.is_none(), "command {id} is under way already");
        let what = match op {
            Op::Read => DeviceOp::Read,
            Op::Write => DeviceOp::Write { fua },
            Op::Flush => DeviceOp::Flush,
            Op::Trim => DeviceOp::Trim { blocks: blocks.into() },
        };
        self.device.submit(DeviceCommand { id, what, start, data });
    }

    fn holds(&self, start: Lbn, blocks: u32) -> bool {
        self.kept.holds(start, blocks)
    }

    fn next_answer(&mut self, until: SimTime) -> Result<Option<Answer>, DriveGone> {
        if let Some(gone) = &self.gone {
            return Err(gone.clone());
        }
        if let Some(answer) = self.early.pop_front() {
            return Ok(Some(answer));
        }
        while !self.commands.is_empty() {
            let left = Duration::from_nanos(until.saturating_since(self.clock.now()).ns());
            let Ok(back) = self.came.recv_timeout(left) else { return Ok(None) };
            if let Some(answer) = self.answer(back)? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    fn sleep_until(&mut self, time: SimTime) {
        self.wait_until(time);
        while let Ok(back) = self.came.try_recv() {
            // The next call for an answer tells that the device is gone.
            if let Ok(Some(answer)) = self.answer(back) {
                self.early.push_back(answer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that are all made of this byte.
    fn data(byte: u8, blocks: usize) -> Vec<u8> {
        vec![byte; blocks * BLOCK_BYTES as usize]
    }

    #[test]
    fn reread_block_is_kept_like_new() {
        let mut kept = RecentBlocks::new(1);
        kept.keep(Lbn::new(7), &data(1, 1));
        kept.keep(Lbn::new(1000), &data(2, KEPT_MAX - 1));
        kept.keep(Lbn::new(7), &data(3, 1));
        kept.keep(Lbn::new(100_000), &data(4, KEPT_MAX - 1));
        assert!(kept.holds(Lbn::new(7), 1) && kept.holds(Lbn::new(100_000), KEPT_MAX as u32 - 1));
        assert!(!kept.holds(Lbn::new(1000), 1) && !kept.holds(Lbn::new(6), 2));
        let mut back = data(0, 1);
        kept.fill(Lbn::new(7), &mut back);
        assert_eq!(back, data(3, 1), "what was read last");
        assert_eq!(kept.order.len(), kept.data.len());
    }
}
