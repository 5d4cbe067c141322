//! Faults to plant: between scheduler and disk, and between scheduler and clients. Each breaks a promise
//! of the server, or is a fault of a disk that no server can hide; the checker has to see all of them.

use freewheel_live::serve::backend::{DeviceCommand, DeviceOp};
use freewheel_units::{Lbn, Prng, SimDuration, SimTime};

use crate::checker::Rule;
use crate::device::{Completed, Disk, SECTOR, bytes_of, values_of};

/// A fault to plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A flush is answered, and the disk hears of none.
    FlushSkipped,
    /// A flush is answered at once, and done later.
    FlushAnsweredEarly,
    /// A flush does not cover the writes that came back last.
    FlushBeforeWritesCameBack,
    /// A write with FUA reaches the disk without it.
    FuaWithoutSync,
    /// A client's FUA is dropped on its way to the scheduler.
    FuaDropped,
    /// A write is answered to the scheduler before the disk has it.
    WriteAnsweredEarly,
    /// A write is answered to the client when it arrives.
    WriteAnsweredOnArrival,
    /// A backup is given what is there now, and not what was there when it began.
    CopyBeforeWriteSkipped,
    /// A write is repeated after it has completed.
    RetryOfStaleData,
    /// A write takes effect after a later one that it overlaps with.
    OverlappingWritesReordered,
    /// A read brings what the media have, and not what the cache has.
    StaleRead,
    /// Blocks are erased after the answer, and after a later write.
    ErasedAfterLaterWrite,
    /// A flush that failed at the disk is answered with success.
    FlushErrorHidden,
    /// FLUSH succeeds for clients again after it has failed.
    FailedFlushForgotten,
    /// A write that failed at the disk is answered with success.
    WriteErrorHidden,
    /// A write goes to the sector behind its own: misdirected.
    WrongSector,
    /// The disk loses a write that it answered.
    LostWrite,
    /// Only the first half of a write is done.
    HalfOfAWrite,
    /// A read of several sectors brings the first of them only, over and over.
    WrongData,
}

/// All faults, with the rule that each of them breaks.
pub const FAULTS: [(Fault, Rule); 19] = [
    (Fault::FlushSkipped, Rule::Cut),
    (Fault::FlushAnsweredEarly, Rule::Cut),
    (Fault::FlushBeforeWritesCameBack, Rule::Cut),
    (Fault::FuaWithoutSync, Rule::Cut),
    (Fault::FuaDropped, Rule::Cut),
    (Fault::WriteAnsweredEarly, Rule::Cut),
    (Fault::WriteAnsweredOnArrival, Rule::Cut),
    (Fault::CopyBeforeWriteSkipped, Rule::Backup),
    (Fault::RetryOfStaleData, Rule::Read),
    (Fault::OverlappingWritesReordered, Rule::Read),
    (Fault::StaleRead, Rule::Read),
    (Fault::ErasedAfterLaterWrite, Rule::Read),
    (Fault::FlushErrorHidden, Rule::FailedFlush),
    (Fault::FailedFlushForgotten, Rule::FailedFlush),
    (Fault::WriteErrorHidden, Rule::Read),
    (Fault::WrongSector, Rule::Read),
    (Fault::LostWrite, Rule::Read),
    (Fault::HalfOfAWrite, Rule::Read),
    (Fault::WrongData, Rule::Read),
];

/// Share of the commands or answers that a fault meets; an error is hidden always.
pub const FAULTY: f64 = 0.2;

/// First number of commands that the scheduler did not send.
const PRIVATE: u64 = 1 << 63;

/// The disk, and the fault in front of it.
pub struct Wrapped {
    pub disk: Disk,
    pub fault: Option<Fault>,
    /// Commands that are answered without the disk.
    answered: Vec<Completed>,
    /// A write that waits for one that overlaps with it.
    held: Option<DeviceCommand>,
    prng: Prng,
    private: u64,
}

fn copy(command: &DeviceCommand, id: u64) -> DeviceCommand {
    DeviceCommand { id, what: command.what, start: command.start, data: command.data.clone() }
}

impl Wrapped {
    pub fn new(disk: Disk, fault: Option<Fault>, prng: Prng) -> Self {
        Self { disk, fault, answered: Vec::new(), held: None, prng, private: PRIVATE }
    }

    /// All that was under way is lost.
    pub fn power_cut(&mut self) {
        (self.held, self.answered) = (None, Vec::new());
        self.disk.power_cut();
    }

    fn own(&mut self) -> u64 {
        self.private += 1;
        self.private
    }

    fn answer(&mut self, now: SimTime, command: &DeviceCommand) {
        let DeviceCommand { id, what, start, data } = copy(command, command.id);
        let at = now + SimDuration::from_us(20);
        self.answered.push(Completed { id, at, what, start: start.get(), result: Ok(data) });
    }

    /// The disk does the command `us` later. The scheduler gets no answer by this.
    fn later(&mut self, now: SimTime, us: u64, command: DeviceCommand) {
        let id = self.own();
        self.disk.submit(now, SimDuration::from_us(us), DeviceCommand { id, ..command });
    }

    pub fn submit(&mut self, now: SimTime, mut command: DeviceCommand) {
        let writes = matches!(command.what, DeviceOp::Write { .. });
        let flushes = command.what == DeviceOp::Flush;
        let erases = !writes && !flushes && command.what != DeviceOp::Read;
        let sectors = command.data.len() / SECTOR;
        match self.fault.filter(|_| self.prng.chance(FAULTY)) {
            Some(Fault::FlushSkipped) if flushes => return self.answer(now, &command),
            Some(Fault::FlushAnsweredEarly) if flushes => {
                self.answer(now, &command);
                return self.later(now, 5000, command);
            }
            Some(Fault::FlushBeforeWritesCameBack) if flushes => self.disk.flush_backdated = 3,
            Some(Fault::FuaWithoutSync) if writes => {
                command.what = DeviceOp::Write { fua: false };
            }
            Some(Fault::WriteAnsweredEarly) if writes => {
                self.answer(now, &command);
                return self.later(now, 2000, command);
            }
            Some(Fault::RetryOfStaleData) if writes => {
                let again = copy(&command, 0);
                self.later(now, 15_000, again);
            }
            Some(Fault::OverlappingWritesReordered) if writes => {
                self.answer(now, &command);
                match self.held.take() {
                    None => self.held = Some(command),
                    Some(held) => {
                        self.later(now, 0, command);
                        self.later(now, 250_000, held);
                    }
                }
                return;
            }
            Some(Fault::ErasedAfterLaterWrite) if erases => {
                self.answer(now, &command);
                return self.later(now, 10_000, command);
            }
            Some(Fault::WrongSector) if writes => {
                let start = command.start.get();
                let has_room = start + (sectors as u64) < self.disk.media.len() as u64;
                command.start = Lbn::new(start + u64::from(has_room));
            }
            Some(Fault::LostWrite) if writes => return self.answer(now, &command),
            Some(Fault::HalfOfAWrite) if writes && sectors > 1 => {
                command.data.truncate(sectors / 2 * SECTOR);
            }
            _ => {}
        }
        self.disk.submit(now, SimDuration::ZERO, command);
        self.disk.flush_backdated = 0;
    }

    pub fn next_event(&self) -> Option<SimTime> {
        self.answered.iter().map(|answer| answer.at).chain(self.disk.next_event()).min()
    }

    pub fn completion(&mut self, now: SimTime) -> Option<Completed> {
        if let Some(at) = self.answered.iter().position(|answer| answer.at <= now) {
            return Some(self.answered.swap_remove(at));
        }
        loop {
            let mut completed = self.disk.completion(now)?;
            if completed.id >= PRIVATE {
                continue;
            }
            self.falsify(&mut completed);
            return Some(completed);
        }
    }

    fn falsify(&mut self, completed: &mut Completed) {
        let writes = matches!(completed.what, DeviceOp::Write { .. });
        let (start, reads) = (completed.start, completed.what == DeviceOp::Read);
        let is_met = self.prng.chance(FAULTY);
        match (self.fault, &mut completed.result) {
            (Some(Fault::FlushErrorHidden), result @ Err(_))
                if completed.what == DeviceOp::Flush =>
            {
                *result = Ok(Vec::new());
            }
            (Some(Fault::WriteErrorHidden), result @ Err(_)) if writes => *result = Ok(Vec::new()),
            (Some(Fault::StaleRead), Ok(data)) if reads && is_met => {
                let media = &self.disk.media[start as usize..];
                *data = bytes_of(media.iter().copied().take(data.len() / SECTOR));
            }
            (Some(Fault::WrongData), Ok(data)) if reads && is_met => {
                let first = values_of(data).next().unwrap_or(0);
                *data = bytes_of(std::iter::repeat_n(first, data.len() / SECTOR));
            }
            _ => {}
        }
    }
}
