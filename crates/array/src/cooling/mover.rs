//! Moving one extent while clients use it. A crash at any instant loses no data.
//!
//! The extent is copied piece by piece. One durable record then makes the copy the valid place:
//!
//! ```text
//! for each piece:  quiesce -> read -> write        reads: old place      writes: see `route`
//! flush target  -> record                          reads: old place      writes: both places
//! drain old place, release it                      reads: new place      writes: new place
//! ```
//!
//! Before the record is durable the map after a crash has the old place, and the copy lies in free space.
//! Afterwards it has the new place, and the old one is free. Clients' writes reach both places from the
//! moment on at which the copy could miss them.

use freewheel_units::{Blocks, Lbn, SimDuration, SimTime};
use thiserror::Error;

use crate::placement::{ExtentId, Place, Placement};

/// Settings of the mover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoverSpec {
    /// Blocks that are read and written at once.
    pub piece: Blocks,
    /// Blocks a second that are copied at most; None for as fast as the disks allow.
    pub rate: Option<Blocks>,
}

/// The record of a finished copy. The last record of an extent says where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relocated {
    /// The extent.
    pub extent: ExtentId,
    /// Place of the extent until this record is durable.
    pub from: Place,
    /// Place of the extent from then on.
    pub to: Place,
}

/// A part of an extent at one of its places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Disk and first block.
    pub place: Place,
    /// Blocks of the extent.
    pub blocks: Blocks,
}

/// Blocks of an extent, counted from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Span {
    pub first: u64,
    pub blocks: u64,
}

impl Span {
    /// The block after the last one.
    pub fn end(&self) -> u64 {
        self.first + self.blocks
    }

    /// True if both have a block in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.first < other.end() && other.first < self.end()
    }
}

/// Something that the caller does before it calls [`Mover::done`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveAction {
    /// Wait until no client's write to these blocks of the extent is outstanding.
    Quiesce(Span),
    /// Read these blocks of the old place.
    Read(Part),
    /// Write what was read.
    Write(Part),
    /// Make all that was written to this disk durable.
    Flush(u32),
    /// Make this record durable, as a whole.
    Record(Relocated),
    /// Wait until no client's command to these blocks is outstanding: their room becomes free.
    Drain(Part),
}

/// Next wish of the mover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoverState {
    /// There is no move.
    Idle,
    /// An action is under way.
    Busy,
    /// The next piece waits for [`Mover::resume`].
    Paused,
    /// The rate allows the next piece at this time.
    Wait(SimTime),
    /// An action for the caller.
    Do(MoveAction),
}

/// Places to which a client's write to an extent goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// To the place that the placement names.
    Valid,
    /// To the valid place and to this copy. The write is complete when both are; a flush covers both.
    Both(Place),
    /// Nowhere yet: these blocks are being copied.
    Wait,
}

/// Change at the end of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The move is not at its end.
    Continues,
    /// The extent has its new place from now on.
    Relocated(Relocated),
    /// The old place is free; the mover is idle.
    Finished(Relocated),
    /// The move was given up and the copy's room is free; the mover is idle.
    Cancelled(Relocated),
}

/// Reason why a move does not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StartError {
    /// One move at a time.
    #[error("another move is under way")]
    Busy,
    /// The target cannot take the extent.
    #[error("disk {0} has no room in one piece")]
    NoRoom(u32),
}

/// A record that contradicts the map it is replayed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("record {number} moves {extent} from a place where it is not")]
pub struct ReplayError {
    /// Number of the record, from 0.
    pub number: usize,
    /// Extent that the record moves.
    pub extent: ExtentId,
}

/// Brings a map that was saved up to date with the records since.
pub fn replay(placement: &mut Placement, records: &[Relocated]) -> Result<(), ReplayError> {
    for (number, record) in records.iter().enumerate() {
        let known = *placement.extent(record.extent);
        if known.place != record.from {
            return Err(ReplayError { number, extent: record.extent });
        }
        placement.reserve_at(record.to, known.blocks);
        placement.relocate(record.extent, record.to);
        placement.release(record.from, known.blocks);
    }
    Ok(())
}

/// Moves extents, one at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mover {
    spec: MoverSpec,
    job: Option<Job>,
    is_paused: bool,
    next_piece_at: SimTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Job {
    record: Relocated,
    blocks: u64,
    /// Blocks from the start that both places hold.
    copied: u64,
    next: Step,
    /// True if `next` is under way.
    is_running: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Quiesce,
    Read,
    Write,
    Flush,
    Record,
    Drain,
    /// Waits for the writes to the copy of a move that was given up.
    DrainCopy,
}

impl Mover {
    /// A mover without a move. Panics for pieces or a rate of no blocks.
    pub fn new(spec: MoverSpec) -> Self {
        assert!(spec.piece > Blocks::ZERO && spec.rate != Some(Blocks::ZERO), "{spec:?}");
        Self { spec, job: None, is_paused: false, next_piece_at: SimTime::ZERO }
    }

    /// The move under way.
    pub fn current(&self) -> Option<Relocated> {
        self.job.map(|job| job.record)
    }

    /// Reserves room on disk `to` and begins to move an extent there.
    pub fn start(
        &mut self,
        placement: &mut Placement,
        extent: ExtentId,
        to: u32,
    ) -> Result<(), StartError> {
        self.start_near(placement, extent, to, None)
    }

    /// Starts a move as near as possible to this block of disk `to`; without one in its shortest free
    /// range.
    pub fn start_near(
        &mut self,
        placement: &mut Placement,
        extent: ExtentId,
        to: u32,
        near: Option<Lbn>,
    ) -> Result<(), StartError> {
        if self.job.is_some() {
            return Err(StartError::Busy);
        }
        let known = *placement.extent(extent);
        let room = placement.reserve_room(to, known.blocks, near);
        let to = room.ok_or(StartError::NoRoom(to))?;
        self.job = Some(Job {
            record: Relocated { extent, from: known.place, to },
            blocks: known.blocks.get(),
            copied: 0,
            next: Step::Quiesce,
            is_running: false,
        });
        Ok(())
    }

    /// Lets no further piece begin. What is under way is brought to its end.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Ends a pause.
    pub fn resume(&mut self) {
        self.is_paused = false;
    }

    /// Next action at `now`. An action that is returned is under way until [`Self::done`] or
    /// [`Self::failed`].
    pub fn poll(&mut self, now: SimTime) -> MoverState {
        let Some(job) = &mut self.job else { return MoverState::Idle };
        if job.is_running {
            return MoverState::Busy;
        }
        if job.next == Step::Quiesce {
            if self.is_paused {
                return MoverState::Paused;
            }
            if now < self.next_piece_at {
                return MoverState::Wait(self.next_piece_at);
            }
            let piece = job.piece(self.spec.piece).blocks;
            self.next_piece_at = now
                + self.spec.rate.map_or(SimDuration::ZERO, |rate| {
                    let ns = u128::from(piece) * 1_000_000_000 / u128::from(rate.get());
                    SimDuration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX / 4))
                });
        }
        job.is_running = true;
        MoverState::Do(job.action(self.spec.piece))
    }

    /// Time from which the rate allows the next piece, if no rule delays the piece.
    pub fn next_piece_at(&self) -> Option<SimTime> {
        let waits = self.job.is_some_and(|job| job.next == Step::Quiesce && !job.is_running);
        (waits && !self.is_paused).then_some(self.next_piece_at)
    }

    /// Route of a client's write to blocks of an extent. Reads always go to the valid place.
    pub fn route(&self, extent: ExtentId, span: Span) -> Route {
        let Some(job) = self.job.filter(|job| job.record.extent == extent) else {
            return Route::Valid;
        };
        let copies = matches!(job.next, Step::Quiesce | Step::Read | Step::Write);
        let is_between = job.next == Step::Quiesce && !job.is_running;
        if matches!(job.next, Step::Drain | Step::DrainCopy) {
            Route::Valid
        } else if copies && !is_between && job.piece(self.spec.piece).overlaps(&span) {
            Route::Wait
        } else if span.first < job.copied {
            Route::Both(job.record.to)
        } else {
            // The piece that holds these blocks is read after this write is complete.
            Route::Valid
        }
    }

    /// The action under way is complete. Panics without one.
    pub fn done(&mut self, placement: &mut Placement) -> Progress {
        let piece = self.spec.piece;
        let job = self.running();
        job.is_running = false;
        let record = job.record;
        match job.next {
            Step::Quiesce => job.next = Step::Read,
            Step::Read => job.next = Step::Write,
            Step::Write => {
                job.copied += job.piece(piece).blocks;
                job.next = if job.copied < job.blocks { Step::Quiesce } else { Step::Flush };
            }
            Step::Flush => job.next = Step::Record,
            Step::Record => {
                placement.relocate(record.extent, record.to);
                job.next = Step::Drain;
                return Progress::Relocated(record);
            }
            Step::Drain => {
                placement.release(record.from, Blocks::new(job.blocks));
                self.job = None;
                return Progress::Finished(record);
            }
            Step::DrainCopy => {
                placement.release(record.to, Blocks::new(job.blocks));
                self.job = None;
                return Progress::Cancelled(record);
            }
        }
        Progress::Continues
    }

    /// The action under way failed. The move is given up, but for a record: it may be durable all the
    /// same, so it is wanted again.
    pub fn failed(&mut self) {
        let job = self.running();
        job.is_running = false;
        if matches!(job.next, Step::Quiesce | Step::Read | Step::Write | Step::Flush) {
            job.discard();
        }
    }

    fn running(&mut self) -> &mut Job {
        self.job.as_mut().filter(|job| job.is_running).expect("an action under way")
    }
}

impl Job {
    /// Clients' writes to the copy may be outstanding, so its room is not free yet.
    fn discard(&mut self) {
        self.next = Step::DrainCopy;
    }

    /// The piece that is being copied, or is next.
    fn piece(&self, piece: Blocks) -> Span {
        Span { first: self.copied, blocks: piece.get().min(self.blocks - self.copied) }
    }

    fn action(&self, piece: Blocks) -> MoveAction {
        let span = self.piece(piece);
        let part = |place: Place| Part {
            place: Place { start: place.start + Blocks::new(span.first), ..place },
            blocks: Blocks::new(span.blocks),
        };
        match self.next {
            Step::Quiesce => MoveAction::Quiesce(span),
            Step::Read => MoveAction::Read(part(self.record.from)),
            Step::Write => MoveAction::Write(part(self.record.to)),
            Step::Flush => MoveAction::Flush(self.record.to.disk),
            Step::Record => MoveAction::Record(self.record),
            Step::Drain => MoveAction::Drain(Part {
                place: self.record.from,
                blocks: Blocks::new(self.blocks),
            }),
            Step::DrainCopy => {
                MoveAction::Drain(Part { place: self.record.to, blocks: Blocks::new(self.blocks) })
            }
        }
    }
}
