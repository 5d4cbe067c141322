//! A drive as a host uses it, in virtual or real time.

use std::collections::VecDeque;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::SectorFormat;
use freewheel_units::{Blocks, Lbn, SimTime};
use thiserror::Error;

use super::{BadBlocks, Behaviour, Command, EmulatedDrive, EmulatedDriveError};

/// The answer to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Id of the command.
    pub id: u64,
    /// Arrival at the host.
    pub at: SimTime,
    /// The first block that could not be read, if there is one.
    pub bad: Option<Lbn>,
}

/// Reason for which a drive answers no more commands; names the drive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DriveGone(pub String);

/// A drive with its clock. A host sees commands and answers only; the implementation owns the time.
pub trait BlackBox {
    /// Number of blocks.
    fn blocks(&self) -> Blocks;
    /// Sector format, as far as known. A 4Kn drive receives whole sectors only.
    fn sector(&self) -> SectorFormat;
    /// The time at the host.
    fn now(&self) -> SimTime;
    /// Sends a command now. Panics when the command does not fit the drive, or when the drive has no
    /// room.
    ///
    /// A write carries no data: the implementation writes the data of the last read of its blocks, so
    /// that no data are lost. Callers must have read them before.
    fn submit(&mut self, command: Command);
    /// True if the implementation holds the data of all these blocks from earlier reads, so that it can
    /// write them.
    fn holds(&self, start: Lbn, blocks: u32) -> bool;
    /// Waits for the next answer, at most until a time. None when no answer arrives until then, or no
    /// command is under way. Err when the drive will never answer again.
    fn next_answer(&mut self, until: SimTime) -> Result<Option<Answer>, DriveGone>;
    /// Waits until a time, which may have passed. Answers that arrive meanwhile are kept.
    fn sleep_until(&mut self, time: SimTime);
}

/// An emulated drive in virtual time, which leaps from event to event.
pub struct VirtualDrive {
    drive: EmulatedDrive,
    now: SimTime,
    answers: VecDeque<Answer>,
}

impl VirtualDrive {
    /// At time zero.
    pub fn new(drive: EmulatedDrive) -> Self {
        Self { drive, now: SimTime::ZERO, answers: VecDeque::new() }
    }

    /// The drive of a file, with this behaviour and these bad blocks; `name` names it in errors.
    pub fn emulating(
        spec: &DriveSpec,
        name: &str,
        behaviour: &Behaviour,
        bad: BadBlocks,
        seed: u64,
    ) -> Result<Self, EmulatedDriveError> {
        EmulatedDrive::new(spec, name, behaviour, bad, seed).map(Self::new)
    }

    /// Lets the next event happen if it is not after `until`.
    fn step(&mut self, until: SimTime) -> bool {
        let next = self.drive.next_event().map(|event| event.time());
        let Some(time) = next.filter(|time| *time <= until) else { return false };
        self.now = self.now.max(time);
        if let Some(reply) = self.drive.advance(time) {
            self.answers.push_back(Answer { id: reply.id, at: reply.at, bad: reply.bad });
        }
        true
    }
}

impl BlackBox for VirtualDrive {
    fn blocks(&self) -> Blocks {
        self.drive.blocks()
    }

    fn sector(&self) -> SectorFormat {
        self.drive.sector()
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn submit(&mut self, command: Command) {
        self.drive.submit(self.now, command);
    }

    /// A drive in arithmetic holds no data that a write could lose.
    fn holds(&self, _: Lbn, _: u32) -> bool {
        true
    }

    fn next_answer(&mut self, until: SimTime) -> Result<Option<Answer>, DriveGone> {
        while self.answers.is_empty() && self.step(until) {}
        Ok(self.answers.pop_front())
    }

    fn sleep_until(&mut self, time: SimTime) {
        while self.step(time) {}
        self.now = self.now.max(time);
    }
}

#[cfg(test)]
mod tests {
    use freewheel_model::sched::CommandMark;

    use super::*;
    use crate::black_box::{BadBlocks, Behaviour};
    use crate::library;
    use freewheel_units::Op;

    fn drive() -> VirtualDrive {
        let spec = library::spec("atlas10k").unwrap();
        let bad = BadBlocks::default();
        VirtualDrive::new(
            EmulatedDrive::new(&spec, "atlas10k", &Behaviour::default(), bad, 1).unwrap(),
        )
    }

    fn read(id: u64, start: u64) -> Command {
        let mark = CommandMark::None;
        Command { id, op: Op::Read, start: Lbn::new(start), blocks: 1, fua: false, mark }
    }

    #[test]
    fn answer_time_same_waiting_or_sleeping() {
        let mut waited = drive();
        waited.submit(read(7, 123_456));
        let answer = waited.next_answer(SimTime::MAX).unwrap().unwrap();
        assert_eq!((answer.id, answer.at), (7, waited.now()));

        let mut slept = drive();
        slept.submit(read(7, 123_456));
        slept.sleep_until(SimTime::from_ns(1_000_000_000));
        assert_eq!(slept.now(), SimTime::from_ns(1_000_000_000));
        assert_eq!(slept.next_answer(SimTime::ZERO), Ok(Some(answer)));
    }

    #[test]
    fn answer_needs_command_and_time() {
        let mut drive = drive();
        assert_eq!(drive.next_answer(SimTime::MAX), Ok(None));
        drive.submit(read(1, 9));
        assert_eq!(drive.next_answer(SimTime::from_ns(1000)), Ok(None));
        assert!(drive.next_answer(SimTime::MAX).unwrap().is_some());
    }
}
