//! A log-structured logical disk: every write goes to the end of a log of segments.
//!
//! Goals: MIT's LLD as osdi00 section 5 uses it (de Jonge, Kaashoek and Hsieh 1993). A map from
//! logical blocks to places, a segment under construction in memory that is written with one
//! request, a buffer cache that is written back as it runs out of room, and a cleaner that copies
//! live blocks out of segments until enough of them are free.
//! Non-goals: recovery, lists of blocks, blocks of several sizes.
//!
//! It is a state machine for one process that waits for everything: a [`Command`] goes in, requests
//! for the drive come out one after the other, each is reported done, until the command is.
//!
//! ```text
//!   command --> cache --miss or no room--> read, or into the segment under construction
//!                                              full: write it, open a free segment
//!                                              fewer free than the minimum: clean
//!   freeblock reads: segments chosen early --> wishes --> delivered in any order --> same segment
//! ```

mod buffer_cache;
pub mod cost_benefit;
mod segments;
mod spec;

use std::collections::BTreeSet;

use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime};

use buffer_cache::BufferCache;
use segments::Segments;

pub use spec::{CleanReads, Cleaner, LogDiskSpec};

/// Number by which the layer above knows a block.
pub type LogicalBlock = u32;

/// Place of a block in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Number of the segment.
    pub segment: u32,
    /// Index among the segment's data blocks.
    pub slot: u32,
}

/// Commands of the layer above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Bring a block into memory.
    Read(LogicalBlock),
    /// Give a whole block new contents, which go into the log when the cache runs out of room.
    Write(LogicalBlock),
    /// Like `Write`, but the contents go into the log at once.
    WriteThrough(LogicalBlock),
    /// Forget a block.
    Delete(LogicalBlock),
}

/// A request for the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogIo {
    /// Read or write.
    pub op: Op,
    /// First block on the drive.
    pub start: Lbn,
    /// Number of blocks on the drive.
    pub blocks: Blocks,
    /// Data blocks in it that cleaning moves, of `slots`.
    moved: u32,
    slots: u32,
}

impl LogIo {
    /// The part of its time that cleaning is to be charged with: all of a cleaner's read, and of a
    /// segment's write the share of copied blocks.
    pub fn cleaning_part(&self, time: SimDuration) -> SimDuration {
        time * u64::from(self.moved) / u64::from(self.slots)
    }
}

/// Something to ask a freeblock scheduler for: the place of one block on the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeRequest {
    /// Read it when that is free.
    Register(Lbn),
    /// Forget a registered read.
    Abort(Lbn),
}

/// Work of a log-structured disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogWork {
    /// Blocks read because a command needed them.
    pub fetched_blocks: u64,
    /// Blocks written because they were new.
    pub written_blocks: u64,
    /// Segments written.
    pub segments_written: u64,
    /// Live blocks copied by the foreground cleaner.
    pub copied_blocks: u64,
    /// Dead blocks that the foreground cleaner read.
    pub dead_blocks_read: u64,
    /// Live blocks copied because a freeblock read delivered them.
    pub free_copied_blocks: u64,
    /// Segments that the foreground cleaner was sent to.
    pub segments_cleaned: u64,
    /// Segments whose live blocks were registered as freeblock reads.
    pub segments_targeted: u64,
}

impl LogWork {
    /// Difference to `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            fetched_blocks: self.fetched_blocks - earlier.fetched_blocks,
            written_blocks: self.written_blocks - earlier.written_blocks,
            segments_written: self.segments_written - earlier.segments_written,
            copied_blocks: self.copied_blocks - earlier.copied_blocks,
            dead_blocks_read: self.dead_blocks_read - earlier.dead_blocks_read,
            free_copied_blocks: self.free_copied_blocks - earlier.free_copied_blocks,
            segments_cleaned: self.segments_cleaned - earlier.segments_cleaned,
            segments_targeted: self.segments_targeted - earlier.segments_targeted,
        }
    }
}

/// A log-structured logical disk.
#[derive(Debug, Clone)]
pub struct LogDisk {
    spec: LogDiskSpec,
    segments: Segments,
    cache: BufferCache,
    /// Remaining work for the command, the next last.
    steps: Vec<Step>,
    /// Steps that freeblock reads have delivered since the command last continued.
    delivered: Vec<Step>,
    in_flight: Option<InFlight>,
    is_cleaning: bool,
    /// Slots of the segment under construction with blocks that were copied into it.
    copied_in_open: BTreeSet<u32>,
    /// Segments that freeblock reads are cleaning.
    targets: BTreeSet<u32>,
    /// Places that are registered as freeblock reads and not delivered.
    wanted: BTreeSet<Place>,
    wishes: Vec<FreeRequest>,
    work: LogWork,
}

/// A step towards the end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Evict blocks until the cache has room.
    MakeRoom,
    /// Read a block into the cache, which has room.
    Fetch(LogicalBlock),
    /// A write of the layer above, for which the cache has room.
    Keep { block: LogicalBlock, dirty: bool },
    /// Put a block of the cache into the segment under construction.
    Append(LogicalBlock),
    /// Copy a block that was read, unless it is dead by now.
    Copy { block: LogicalBlock, from: Place, by: CopiedBy },
    /// Clean until enough segments are free.
    Clean,
    /// Copy the live blocks of a segment.
    CleanSegment(CleanRest),
}

/// Kind of the read that brought a copied block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopiedBy {
    Foreground,
    Freeblock,
}

/// Current activity of the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFlight {
    Fetch(LogicalBlock),
    Segment,
    /// Slots of it.
    Clean(CleanRest, u32),
}

/// Work of the foreground cleaner in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CleanRest {
    /// From this slot on.
    from: Place,
    reads: CleanReads,
}

impl LogDisk {
    /// An empty log. Panics when a segment has no data block, or when there are not more segments
    /// than cleaning needs.
    pub fn new(spec: LogDiskSpec) -> Self {
        assert!(spec.segment_blocks > 1 && spec.cache_blocks > 0, "{spec:?}");
        assert!(spec.segments > spec.free_min + 1, "{spec:?}");
        let logical_blocks = spec.capacity_blocks();
        Self {
            spec,
            segments: Segments::new(spec.segments, spec.slots(), logical_blocks),
            cache: BufferCache::new(spec.cache_blocks, logical_blocks),
            steps: Vec::new(),
            delivered: Vec::new(),
            in_flight: None,
            is_cleaning: false,
            copied_in_open: BTreeSet::new(),
            targets: BTreeSet::new(),
            wanted: BTreeSet::new(),
            wishes: Vec::new(),
            work: LogWork::default(),
        }
    }

    /// Layout and rules.
    pub fn spec(&self) -> &LogDiskSpec {
        &self.spec
    }

    /// Work so far.
    pub fn work(&self) -> LogWork {
        self.work
    }

    /// Place of a block in the log; None for a block that was never put there, or is deleted. What is in
    /// the cache may be newer.
    pub fn place(&self, block: LogicalBlock) -> Option<Place> {
        self.segments.place(block)
    }

    /// True if memory has newer contents of a block than the log.
    pub fn is_dirty(&self, block: LogicalBlock) -> bool {
        self.cache.is_dirty(block)
    }

    /// Blocks in the order of their slots in a segment, live or dead.
    pub fn summary(&self, segment: u32) -> &[LogicalBlock] {
        self.segments.summary(segment)
    }

    /// Live blocks of a segment.
    pub fn live(&self, segment: u32) -> u32 {
        self.segments.live(segment)
    }

    /// The segment under construction, which is in memory.
    pub fn open_segment(&self) -> u32 {
        self.segments.open()
    }

    /// True if a segment may be written over.
    pub fn is_free(&self, segment: u32) -> bool {
        self.segments.is_free(segment)
    }

    /// Number of free segments.
    pub fn free_segments(&self) -> u32 {
        self.segments.free_segments()
    }

    /// First block on the drive of a place.
    pub fn lbn(&self, place: Place) -> Lbn {
        let blocks =
            u64::from(place.segment) * u64::from(self.spec.segment_blocks) + u64::from(place.slot);
        self.spec.start + Blocks::new(blocks * self.spec.block.get())
    }

    fn place_of(&self, lbn: Lbn) -> Place {
        let blocks = (lbn.get() - self.spec.start.get()) / self.spec.block.get();
        let of = u64::from(self.spec.segment_blocks);
        Place { segment: (blocks / of) as u32, slot: (blocks % of) as u32 }
    }

    /// Begins a command. The next request to serve, or None when the command is done. Panics when the
    /// command before is not.
    pub fn command(&mut self, now: SimTime, command: Command) -> Option<LogIo> {
        assert!(self.in_flight.is_none() && self.steps.is_empty(), "a command at a time");
        self.steps.append(&mut self.delivered);
        match command {
            Command::Read(block) if self.cache.contains(block) => {
                self.cache.use_block(block);
            }
            Command::Read(block) => self.steps.extend([Step::Fetch(block), Step::MakeRoom]),
            Command::Write(block) => self.write(now, block, true),
            Command::WriteThrough(block) => {
                self.steps.push(Step::Append(block));
                self.write(now, block, false);
            }
            Command::Delete(block) => {
                self.cache.remove(block);
                let dead = self.segments.remove(block);
                self.died(dead);
            }
        }
        self.go_on(now)
    }

    fn write(&mut self, now: SimTime, block: LogicalBlock, dirty: bool) {
        self.segments.touch(block, now);
        self.steps.push(Step::Keep { block, dirty });
        if !self.cache.contains(block) {
            self.steps.push(Step::MakeRoom);
        }
    }

    /// The request is done. The next one, or None when the command is done.
    /// Panics when there was no request.
    pub fn completed(&mut self, now: SimTime) -> Option<LogIo> {
        let in_flight = self.in_flight.take().expect("a request in flight");
        self.steps.append(&mut self.delivered);
        match in_flight {
            InFlight::Fetch(block) => self.cache.use_block(block),
            InFlight::Segment => self.segment_written(now),
            InFlight::Clean(rest, slots) => self.cleaner_read(rest, slots),
        }
        self.go_on(now)
    }

    /// A freeblock read of the block at `start` is done. It is copied when the command continues, or
    /// with the next one when there is none. What was aborted in the meantime is ignored.
    pub fn delivered(&mut self, start: Lbn) {
        let from = self.place_of(start);
        if self.wanted.remove(&from) {
            let block = self.segments.summary(from.segment)[from.slot as usize];
            self.delivered.push(Step::Copy { block, from, by: CopiedBy::Freeblock });
        }
    }

    /// Requests for the freeblock scheduler, in this order.
    pub fn take_wishes(&mut self) -> impl Iterator<Item = FreeRequest> {
        self.wishes.drain(..)
    }

    /// Does all that needs no drive.
    fn go_on(&mut self, now: SimTime) -> Option<LogIo> {
        while let Some(step) = self.steps.pop() {
            if let Some((io, in_flight)) = self.step(now, step) {
                self.in_flight = Some(in_flight);
                return Some(io);
            }
        }
        None
    }

    fn step(&mut self, now: SimTime, step: Step) -> Option<(LogIo, InFlight)> {
        match step {
            Step::MakeRoom => self.make_room(),
            Step::Fetch(block) => return self.fetch(block),
            Step::Keep { block, dirty } => self.cache.put(block, dirty),
            Step::Append(block) => {
                if let Some(place) = self.place(block)
                    && place.segment == self.open_segment()
                {
                    // Still in memory: its contents are replaced there.
                    self.segments.replaced(block);
                    self.copied_in_open.remove(&place.slot);
                    return None;
                }
                if self.segments.is_open_full() {
                    return Some(self.write_segment(step));
                }
                self.work.written_blocks += 1;
                let dead = self.segments.append(block);
                self.died(dead);
            }
            Step::Copy { block, from, by } if self.place(block) == Some(from) => {
                if by == CopiedBy::Freeblock && self.needs_room_to_clean() {
                    self.put_back(from);
                    return None;
                }
                if self.segments.is_open_full() {
                    return Some(self.write_segment(step));
                }
                match by {
                    CopiedBy::Foreground => self.work.copied_blocks += 1,
                    CopiedBy::Freeblock => self.work.free_copied_blocks += 1,
                }
                let dead = self.segments.append(block);
                self.copied_in_open.extend(self.place(block).map(|place| place.slot));
                self.died(dead);
            }
            Step::Copy { .. } => {}
            Step::Clean => self.clean(now),
            Step::CleanSegment(rest) => return self.clean_segment(rest),
        }
        None
    }

    fn make_room(&mut self) {
        if !self.cache.is_full() {
            return;
        }
        if let Some((block, true)) = self.cache.evict() {
            self.steps.push(Step::Append(block));
        }
    }

    /// A block in the segment under construction is in memory already, and one that was never written
    /// need not be read.
    fn fetch(&mut self, block: LogicalBlock) -> Option<(LogIo, InFlight)> {
        match self.place(block) {
            Some(place) if place.segment != self.segments.open() => {
                self.work.fetched_blocks += 1;
                Some((self.io(Op::Read, place, 1, 0), InFlight::Fetch(block)))
            }
            _ => {
                self.cache.use_block(block);
                None
            }
        }
    }

    /// Writes the segment under construction before `step` is done.
    fn write_segment(&mut self, step: Step) -> (LogIo, InFlight) {
        self.steps.push(step);
        self.work.segments_written += 1;
        let first = Place { segment: self.segments.open(), slot: 0 };
        (
            self.io(Op::Write, first, self.spec.segment_blocks, self.copied_in_open.len() as u32),
            InFlight::Segment,
        )
    }

    fn io(&self, op: Op, first: Place, blocks: u32, moved: u32) -> LogIo {
        let blocks = Blocks::new(u64::from(blocks) * self.spec.block.get());
        LogIo { op, start: self.lbn(first), blocks, moved, slots: self.spec.slots() }
    }

    fn segment_written(&mut self, now: SimTime) {
        self.copied_in_open.clear();
        self.segments.open_next();
        self.want_segments(now);
        if !self.is_cleaning && self.free_segments() < self.spec.free_min {
            self.is_cleaning = true;
            self.steps.push(Step::Clean);
        }
    }

    /// Chooses the next segment for the foreground cleaner, if it is needed. Freeblock reads leave
    /// it alone from then on.
    fn clean(&mut self, now: SimTime) {
        let needed = self.free_segments() < self.spec.free_min;
        let best = self.segments.best_to_clean(now, &BTreeSet::new()).filter(|_| needed);
        self.is_cleaning = best.is_some();
        let Some(segment) = best else { return };
        self.work.segments_cleaned += 1;
        // What is live in it is known then, and was to be read one block at a time.
        let is_target = self.targets.remove(&segment);
        let reads = if is_target { CleanReads::Block } else { self.spec.clean_reads };
        let first = Place { segment, slot: 0 };
        while let Some(&place) = self.wanted.range(first..).next() {
            if place.segment != segment {
                break;
            }
            self.wanted.remove(&place);
            self.wishes.push(FreeRequest::Abort(self.lbn(place)));
        }
        self.steps.extend([Step::Clean, Step::CleanSegment(CleanRest { from: first, reads })]);
    }

    /// Reads the rest of a segment, or the first of it.
    fn clean_segment(&mut self, rest: CleanRest) -> Option<(LogIo, InFlight)> {
        let CleanRest { from, reads } = rest;
        let mut live = self.segments.live_slots(from.segment, from.slot).map(|(slot, _)| slot);
        let live_first = live.next()?;
        let first = if reads == CleanReads::EveryBlock { from.slot } else { live_first };
        let end = match reads {
            CleanReads::EveryBlock | CleanReads::Block => first + 1,
            CleanReads::Run => {
                (first + 1..).zip(live).take_while(|(next, slot)| next == slot).count() as u32
                    + first
                    + 1
            }
            CleanReads::Segment => live.last().unwrap_or(first) + 1,
        };
        let from = Place { slot: first, ..from };
        let io = self.io(Op::Read, from, end - first, self.spec.slots());
        Some((io, InFlight::Clean(CleanRest { from, reads }, end - first)))
    }

    /// Copies what the foreground cleaner has read, in the order of its slots, and continues.
    fn cleaner_read(&mut self, CleanRest { from, reads }: CleanRest, slots: u32) {
        let Place { segment, slot } = from;
        let behind = Place { segment, slot: slot + slots };
        self.steps.push(Step::CleanSegment(CleanRest { from: behind, reads }));
        let begin = self.steps.len();
        let read = self.segments.live_slots(segment, slot).take_while(|(at, _)| *at < behind.slot);
        self.steps.extend(read.map(|(slot, block)| Step::Copy {
            block,
            from: Place { segment, slot },
            by: CopiedBy::Foreground,
        }));
        let live = self.steps.len() - begin;
        self.work.dead_blocks_read += u64::from(slots) - live as u64;
        self.steps[begin..].reverse();
    }

    /// Registers freeblock reads for the segments to be cleaned at once.
    fn want_segments(&mut self, now: SimTime) {
        let Cleaner::Freeblock { free_below, segments } = self.spec.cleaner else { return };
        if self.free_segments() >= free_below {
            return;
        }
        while (self.targets.len() as u32) < segments {
            let Some(segment) = self.segments.best_to_clean(now, &self.targets) else { return };
            self.work.segments_targeted += 1;
            self.targets.insert(segment);
            for (slot, _) in self.segments.live_slots(segment, 0) {
                let place = Place { segment, slot };
                self.wanted.insert(place);
                self.wishes.push(FreeRequest::Register(self.lbn(place)));
            }
        }
    }

    /// True if the foreground cleaner needs all the room there is: emptying a segment may take a whole one.
    fn needs_room_to_clean(&self) -> bool {
        self.is_cleaning && self.free_segments() < 2
    }

    /// A block that was delivered cannot be copied now.
    fn put_back(&mut self, place: Place) {
        if self.targets.contains(&place.segment) {
            self.wanted.insert(place);
            self.wishes.push(FreeRequest::Register(self.lbn(place)));
        }
    }

    /// The block at this place is not needed any more.
    fn died(&mut self, place: Option<Place>) {
        let Some(place) = place else { return };
        if self.wanted.remove(&place) {
            self.wishes.push(FreeRequest::Abort(self.lbn(place)));
        }
        if self.segments.is_free(place.segment) {
            self.targets.remove(&place.segment);
        }
    }
}
