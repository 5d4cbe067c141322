//! A write buffer: completes writes in memory and destages them later (tr03 section 4.3).
//!
//! It hides the latency of writes, joins writes to the same place, and writes neighbours together.
//! The price is what a power cut would lose, if the memory is volatile.
//!
//! ```text
//!   share of dirty blocks
//!   1.0 |                          .--- full: writes wait, destages have the priority of reads
//!   0.8 |--------- high mark -----/------------------------------
//!       |                        /  \   destage, behind reads
//!   0.2 |--------- low mark ----/----\---------------------------
//!   0   |______________________/______\____  time
//! ```
//!
//! Besides, a block is due when its oldest data reach the age limit. [`WriteBuffer::next_destage`] names
//! blocks in that order: due ones, then those not written for longest, each with its dirty neighbours.
//!
//! A block that is written again while its destage is under way stays in the buffer and becomes dirty
//! again: the destage carries the older data. Destages of one block never overlap, so the disk receives
//! its versions in order.

use std::collections::BTreeSet;
use std::ops::Range;

use freewheel_units::{Blocks, Bytes, SimDuration, SimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keys::Keys;
use crate::drive::Divisor;
use crate::lru::{Links, List};

/// Order in which blocks leave a write buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "DestageOrderConfig")]
pub enum DestageOrder {
    /// Least recently written.
    // Keeps blocks that are written again and again.
    #[default]
    Lrw,
    /// Wise Ordering for Writes: ascending over the disk, and past blocks that were written again.
    // Gill and Modha, FAST 2005: round and round, and past those written since the last round.
    Wow,
}

/// A buffer for writes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "WriteBufferConfig")]
pub struct WriteBufferSpec {
    /// Memory of the buffer.
    pub size: Bytes,
    /// Share of dirty blocks above which it destages, 0 to 1. At 1 it destages when a write finds no
    /// room.
    pub high_mark: f64,
    /// Share of dirty blocks below which it stops, at most `high_mark`.
    pub low_mark: f64,
    /// Order in which blocks are destaged.
    pub order: DestageOrder,
    /// Age at which data are destaged regardless of the marks. Without it there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<SimDuration>,
    /// True if a power cut loses its data. If so, flushes wait for destages, and writes with FUA go to the
    /// media. If not, both end in the buffer, and writes to the drive carry FUA.
    // So data never move on to a less safe place.
    pub volatile: bool,
    /// Most of one destage, at least one block. A request waits for a destage that has begun.
    pub destage_maximum: Bytes,
    /// Most destages at once, at least one: reads wait behind them where a write waits for room. The number
    /// of the cache's `queue_depth` without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destages: Option<u32>,
    /// True if blocks that pass under the head while it waits for a client's data are written, too.
    #[serde(skip_serializing_if = "is_false")]
    pub destage_in_gaps: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Default for WriteBufferSpec {
    /// tr03's system with few resources.
    fn default() -> Self {
        Self {
            size: Bytes::new(4 << 20),
            high_mark: 0.8,
            low_mark: 0.2,
            order: DestageOrder::Lrw,
            max_age: Some(SimDuration::from_secs(30)),
            volatile: false,
            destage_maximum: Bytes::new(1 << 20),
            destages: None,
            destage_in_gaps: false,
        }
    }
}

/// Counts of writes by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteCounts {
    /// Writes taken into memory.
    pub writes: u64,
    /// Writes that made a clean buffer block dirty: a write miss of tr03.
    pub misses: u64,
    /// Destages.
    pub destages: u64,
    /// Blocks of 512 bytes that were destaged.
    pub destaged_blocks: u64,
    /// Blocks of 512 bytes that were written in rotational gaps instead.
    pub in_gaps_blocks: u64,
    /// Most blocks of 512 bytes in memory that were not on the disk: what a power cut would lose then.
    pub at_risk_max: u64,
    /// Sum over time of those blocks, in blocks times nanoseconds.
    pub at_risk_ns: u128,
}

/// A buffer block in memory.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// 512-byte blocks that are newer than the disk and not on their way.
    dirty: u64,
    /// 512-byte blocks on their way to the disk.
    under_way: u64,
    /// Order of the last write.
    written: u64,
    /// Written again since it became dirty, or since the WOW hand passed it.
    is_recent: bool,
    /// Time at which its oldest dirty data were written.
    since: Since,
    /// Time at which the oldest data on their way were written.
    under_way_since: Since,
}

/// Time at which data were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Since {
    time: SimTime,
    /// Number of the write, which tells equal times apart.
    write: u64,
}

/// The writes that a flush waits for: those up to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushPoint {
    write: u64,
}

/// Writes in memory, of one disk.
#[derive(Debug, Clone)]
pub struct WriteBuffer {
    spec: WriteBufferSpec,
    /// Buffer blocks in memory.
    capacity: u32,
    /// Most blocks of 512 bytes in one destage.
    destage_max: u64,
    /// Blocks of 512 bytes in a buffer block.
    size: Divisor,
    /// Numbers of the buffer blocks in memory.
    numbers: Keys,
    /// By slot.
    entries: Vec<Entry>,
    /// Dirty entries by their last write. An entry of which a part is on its way is in neither list:
    /// its newer data must not leave before that part has arrived.
    by_write: List,
    write_links: Links,
    /// Buffer blocks by the age of their data.
    by_age: List,
    /// Entries of which a part is on its way, by the age of that part.
    under_way: List,
    /// Links of both lists.
    age_links: Links,
    /// Numbers in ascending order, which only WOW asks for.
    by_location: Option<BTreeSet<u64>>,
    /// A flush waits for the data up to this write.
    drain_to: u64,
    /// Buffer block at which the next search of WOW begins.
    hand: u64,
    clock: u64,
    is_destaging: bool,
    /// A write waits for room.
    is_short: bool,
    at_risk: u64,
    at_risk_since: SimTime,
    /// Buffer blocks that may be wholly dirty; empty unless gaps are used.
    whole: Vec<u64>,
    counts: WriteCounts,
}

/// Bits `range` of a word, at least one.
#[inline]
fn mask(range: Range<u64>) -> u64 {
    debug_assert!(!range.is_empty());
    // Shifting down first makes the right number of ones; a shift by 64 would overflow.
    u64::MAX >> (64 - (range.end - range.start)) << range.start
}

/// Number of consecutive bits of a word that are set from `from` on.
fn ones_from(word: u64, from: u64) -> u64 {
    u64::from((word >> from).trailing_ones())
}

impl WriteBuffer {
    /// An empty buffer with buffer blocks of this many blocks of 512 bytes. Panics when it is not 1 to 64, or
    /// when a destage is less than one buffer block.
    pub fn new(spec: WriteBufferSpec, buffer_block: Blocks) -> Self {
        assert!((1..=64).contains(&buffer_block.get()), "1 to 64 blocks in a buffer block");
        let destage_max = spec.destage_maximum.blocks_rounded_up();
        assert!(destage_max >= buffer_block, "a destage has room for a buffer block");
        Self {
            spec,
            capacity: (spec.size.get() / buffer_block.bytes().get()) as u32,
            destage_max: destage_max.get(),
            size: Divisor::new(buffer_block.get()),
            numbers: Keys::default(),
            entries: Vec::new(),
            by_write: List::EMPTY,
            write_links: Links::default(),
            by_age: List::EMPTY,
            under_way: List::EMPTY,
            age_links: Links::default(),
            // Other orders do without the tree, which costs time at each block.
            by_location: (spec.order == DestageOrder::Wow).then(BTreeSet::new),
            drain_to: 0,
            hand: 0,
            clock: 0,
            is_destaging: false,
            is_short: false,
            at_risk: 0,
            at_risk_since: SimTime::ZERO,
            whole: Vec::new(),
            counts: WriteCounts::default(),
        }
    }

    /// Settings of the buffer.
    pub fn spec(&self) -> &WriteBufferSpec {
        &self.spec
    }

    /// Counts up to `now`.
    pub fn counts(&self, now: SimTime) -> WriteCounts {
        WriteCounts {
            at_risk_ns: self.counts.at_risk_ns + self.risk_since_count(now),
            ..self.counts
        }
    }

    /// True if everything written is on the disk.
    pub fn is_empty(&self) -> bool {
        self.numbers.len() == 0
    }

    /// The part of `blocks` in each of its buffer blocks: number, and bits.
    fn parts(&self, blocks: Range<u64>) -> impl Iterator<Item = (u64, u64)> + use<> {
        let size = self.size.get();
        let (first, _) = self.size.divide(blocks.start);
        let (end, _) = self.size.divide(blocks.end + size - 1);
        // An empty range has no part, even in the middle of a buffer block.
        let end = if blocks.is_empty() { first } else { end };
        (first..end).map(move |number| {
            let first = number * size;
            let from = blocks.start.max(first) - first;
            (number, mask(from..blocks.end.min(first + size) - first))
        })
    }

    /// A buffer block in memory.
    #[inline]
    fn entry(&self, number: u64) -> Option<&Entry> {
        Some(&self.entries[self.numbers.find(number)? as usize])
    }

    /// Slot of a buffer block, which comes into memory if it is not there.
    #[inline]
    fn slot(&mut self, number: u64) -> u32 {
        self.numbers.find(number).unwrap_or_else(|| self.add(number))
    }

    fn add(&mut self, number: u64) -> u32 {
        let slot = self.numbers.insert(number);
        if slot as usize == self.entries.len() {
            self.entries.push(Entry::default());
            self.write_links.grow();
            self.age_links.grow();
        }
        // The slot may have belonged to another block.
        self.entries[slot as usize] = Entry::default();
        if let Some(numbers) = &mut self.by_location {
            numbers.insert(number);
        }
        slot
    }

    /// A clean buffer block leaves memory.
    fn drop_entry(&mut self, slot: u32) {
        let number = self.numbers.key(slot);
        if let Some(numbers) = &mut self.by_location {
            numbers.remove(&number);
        }
        self.numbers.remove(slot);
    }

    /// Lists a dirty entry of which no part is on its way.
    #[inline]
    fn list(&mut self, slot: u32) {
        let entries = &self.entries;
        self.by_write.insert(&mut self.write_links, slot, |slot| entries[slot as usize].written);
        self.by_age.insert(&mut self.age_links, slot, |slot| entries[slot as usize].since);
    }

    /// Takes such an entry out of the lists.
    #[inline]
    fn unlist(&mut self, slot: u32) {
        self.by_write.remove(&mut self.write_links, slot);
        self.by_age.remove(&mut self.age_links, slot);
    }

    /// True if a write of these blocks can be taken now. One that is larger than the whole buffer never
    /// can.
    pub fn has_room(&self, blocks: Range<u64>) -> bool {
        // Only new buffer blocks need room: a block in memory is overwritten in its place.
        let is_new = |(number, _): &(u64, u64)| self.numbers.find(*number).is_none();
        let new = self.parts(blocks).filter(is_new).count();
        self.numbers.len() + new <= self.capacity as usize
    }

    /// True if a write of these blocks fits into an empty buffer.
    pub fn can_hold(&self, blocks: Range<u64>) -> bool {
        self.parts(blocks).count() <= self.capacity as usize
    }

    /// A write waits for room, or none does any more. As long as one does, blocks are destaged
    /// regardless of the marks.
    pub fn set_short(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// Takes a write. Panics without room for it.
    pub fn write(&mut self, blocks: Range<u64>, now: SimTime) {
        self.count_risk(now);
        self.counts.writes += 1;
        let mut is_miss = false;
        for (number, bits) in self.parts(blocks) {
            is_miss |= self.write_part(number, bits, now);
        }
        // One miss a write, however many buffer blocks it makes dirty: as tr03 counts.
        self.counts.misses += u64::from(is_miss);
        assert!(self.numbers.len() <= self.capacity as usize, "a write without room");
        self.counts.at_risk_max = self.counts.at_risk_max.max(self.at_risk);
        // Destaging begins above the high mark and ends below the low one, in `next_block`.
        self.is_destaging |= self.share() > self.spec.high_mark;
        self.check();
    }

    /// Returns whether the block was clean.
    fn write_part(&mut self, number: u64, bits: u64, now: SimTime) -> bool {
        self.clock += 1;
        let slot = self.slot(number);
        let entry = &mut self.entries[slot as usize];
        // A block counts once, though an older version of it may be on its way.
        self.at_risk += u64::from((bits & !entry.dirty & !entry.under_way).count_ones());
        let was_clean = entry.dirty == 0;
        if was_clean {
            entry.since = Since { time: now, write: self.clock };
        }
        // Only a second write shows that the block is in use: the first may be the last.
        entry.is_recent = !was_clean;
        entry.dirty |= bits;
        entry.written = self.clock;
        if entry.under_way == 0 {
            if was_clean {
                self.list(slot);
            } else {
                // The age stays that of the oldest data, so only the order of writes changes.
                self.by_write.renew(&mut self.write_links, slot);
            }
            self.note_whole(number);
        }
        was_clean
    }

    /// All bits of a buffer block.
    fn whole_block(&self) -> u64 {
        mask(0..self.size.get())
    }

    fn note_whole(&mut self, number: u64) {
        if self.spec.destage_in_gaps {
            self.whole.push(number);
        }
    }

    /// Calls `found` with each buffer block that is wholly dirty and waits, of those that have changed
    /// since the last call. A caller may write them in rotational gaps, see
    /// [`Self::begin_in_gap`].
    pub fn take_whole(&mut self, mut found: impl FnMut(Range<u64>)) {
        let (size, whole) = (self.size.get(), self.whole_block());
        // Noted blocks may have left since: each is looked at again. The memory is kept.
        let mut numbers = std::mem::take(&mut self.whole);
        for number in numbers.drain(..) {
            let entry = self.entry(number);
            if entry.is_some_and(|entry| entry.dirty == whole && entry.under_way == 0) {
                found(number * size..number * size + size);
            }
        }
        self.whole = numbers;
    }

    /// A rotational gap writes wholly dirty buffer blocks. They are on their way until
    /// [`Self::destaged`]. Panics for others.
    pub fn begin_in_gap(&mut self, blocks: Range<u64>) {
        let whole = self.whole_block();
        for (number, bits) in self.parts(blocks.clone()) {
            assert!(
                self.entry(number).is_some_and(|entry| is_whole(entry, bits, whole)),
                "buffer block {number} does not wait as a whole"
            );
            self.begin(number, bits);
        }
        self.counts.in_gaps_blocks += blocks.end - blocks.start;
        self.check();
    }

    /// Share of the buffer that is dirty and not on its way to the disk.
    fn share(&self) -> f64 {
        f64::from(self.by_write.len()) / f64::from(self.capacity)
    }

    /// Time at which the next block is due; None without an age limit or dirty blocks.
    pub fn next_due(&self) -> Option<SimTime> {
        let since = self.oldest_waiting()?.since;
        Some(since.time + self.spec.max_age?)
    }

    /// The entry with the oldest data, of those that may leave.
    #[inline]
    fn oldest_waiting(&self) -> Option<&Entry> {
        Some(&self.entries[self.by_age.oldest()? as usize])
    }

    /// Number of the oldest write of which memory has data that the disk has not.
    fn oldest(&self) -> Option<u64> {
        let waiting = self.oldest_waiting().map(|entry| entry.since.write);
        // Newer data of an entry wait for those on their way, which are older.
        let under_way = self.under_way.oldest();
        // Both lists begin with their oldest, so the older of two is the oldest of all.
        let under_way = under_way.map(|slot| self.entries[slot as usize].under_way_since.write);
        waiting.into_iter().chain(under_way).min()
    }

    /// Makes the data that are in memory now due, and says how to recognise that they are on the disk;
    /// None when memory holds none.
    pub fn flush_point(&mut self) -> Option<FlushPoint> {
        self.oldest()?;
        // Later writes have greater numbers, so that they never delay the flush.
        self.drain_to = self.clock;
        Some(FlushPoint { write: self.clock })
    }

    /// True if the disk has everything that was written before the flush.
    pub fn is_flushed(&self, point: FlushPoint) -> bool {
        self.oldest().is_none_or(|oldest| oldest > point.write)
    }

    /// True if a flush waits for data.
    pub fn is_draining(&self) -> bool {
        !self.is_flushed(FlushPoint { write: self.drain_to })
    }

    /// The next blocks to write to the disk: contiguous, all dirty. They are on their way until
    /// [`Self::destaged`]. None while no block is due and the share of dirty blocks is low enough.
    pub fn next_destage(&mut self, now: SimTime) -> Option<Range<u64>> {
        let number = self.next_block(now)?;
        // One access writes the whole run: the next block costs its transfer only.
        let blocks = self.dirty_neighbours(number);
        for (number, bits) in self.parts(blocks.clone()) {
            self.begin(number, bits);
        }
        self.counts.destages += 1;
        self.counts.destaged_blocks += blocks.end - blocks.start;
        self.check();
        Some(blocks)
    }

    fn next_block(&mut self, now: SimTime) -> Option<u64> {
        // The oldest first, also for a flush: data that arrive meanwhile never delay it.
        if let Some(slot) = self.by_age.oldest()
            && (self.entries[slot as usize].since.write <= self.drain_to
                || self.next_due().is_some_and(|due| due <= now))
        {
            return Some(self.numbers.key(slot));
        }
        // Due blocks leave in any case; marks and orders count only for the others.
        self.is_destaging &= self.share() >= self.spec.low_mark;
        if !self.is_destaging && !self.is_short {
            return None;
        }
        match self.spec.order {
            DestageOrder::Lrw => self.by_write.oldest().map(|slot| self.numbers.key(slot)),
            DestageOrder::Wow => self.next_by_location(),
        }
    }

    /// The next dirty block in ascending order from the hand on, past the end to the lowest again.
    /// Blocks written again since the hand last came by are left for one round.
    fn next_by_location(&mut self) -> Option<u64> {
        // Each step of the first round clears a mark, so a second round finds an unmarked block.
        for _ in 0..=2 * self.by_write.len() {
            let numbers = self.by_location.as_ref()?;
            let mut from_hand = numbers.range(self.hand..).chain(numbers.range(..self.hand));
            let number = *from_hand.find(|&&number| self.waiting_bits(number) != 0)?;
            // The hand has passed the block whether it is taken or only loses its mark.
            self.hand = number + 1;
            let slot = self.numbers.find(number)?;
            let entry = &mut self.entries[slot as usize];
            if !std::mem::take(&mut entry.is_recent) {
                return Some(number);
            }
        }
        None
    }

    /// The run of dirty 512-byte blocks around the first one of a buffer block, as far as a destage may
    /// reach: forward first. A cut lies between buffer blocks, so that the rest need not wait.
    fn dirty_neighbours(&self, number: u64) -> Range<u64> {
        let size = self.size.get();
        let dirty = self.waiting_bits(number);
        let first = u64::from(dirty.trailing_zeros());
        let mut blocks = number * size + first..number * size + first + ones_from(dirty, first);
        let has_room = |run: &Range<u64>, more| run.end - run.start + more <= self.destage_max;
        // The run continues in a neighbour as long as it reaches the edge between the two.
        while blocks.end.is_multiple_of(size) {
            let more = ones_from(self.waiting_bits(blocks.end / size), 0);
            if more == 0 || !has_room(&blocks, more) {
                break;
            }
            blocks.end += more;
        }
        while blocks.start.is_multiple_of(size) && blocks.start > 0 {
            // At the top of the word, so that the ones next to the edge are the leading ones.
            let before = self.waiting_bits(blocks.start / size - 1) << (64 - size);
            let more = u64::from(before.leading_ones());
            if more == 0 || !has_room(&blocks, more) {
                break;
            }
            blocks.start -= more;
        }
        blocks
    }

    /// Dirty bits of a buffer block that may leave. Data on their way must arrive before newer data of
    /// the same block leave.
    fn waiting_bits(&self, number: u64) -> u64 {
        let entry = self.entry(number).filter(|entry| entry.under_way == 0);
        entry.map_or(0, |entry| entry.dirty)
    }

    /// Blocks of one entry leave for the disk.
    fn begin(&mut self, number: u64, bits: u64) {
        let slot = self.numbers.find(number).expect("a dirty block has an entry");
        let entry = &mut self.entries[slot as usize];
        entry.dirty &= !bits;
        entry.under_way = bits;
        // The age leaves with the data; newer writes to the entry get an age of their own.
        entry.under_way_since = entry.since;
        self.unlist(slot);
        let entries = &self.entries;
        self.under_way
            .insert(&mut self.age_links, slot, |slot| entries[slot as usize].under_way_since);
    }

    /// Blocks that [`Self::next_destage`] or [`Self::supersede`] named have reached the disk.
    pub fn destaged(&mut self, blocks: Range<u64>, now: SimTime) {
        self.count_risk(now);
        for (number, bits) in self.parts(blocks) {
            // A write that superseded dirty blocks may cover others, too.
            let Some(slot) = self.numbers.find(number) else { continue };
            let entry = &mut self.entries[slot as usize];
            let bits = entry.under_way & bits;
            if bits == 0 {
                continue;
            }
            // One request at a time carries data of an entry, so no data are left on their way.
            entry.under_way = 0;
            self.under_way.remove(&mut self.age_links, slot);
            // A block that was written again meanwhile is still at risk.
            self.at_risk -= u64::from((bits & !entry.dirty).count_ones());
            if entry.dirty == 0 {
                self.drop_entry(slot);
            } else {
                self.list(slot);
                self.note_whole(number);
            }
        }
        self.check();
    }

    /// A write to the disk takes the place of dirty data: they are on their way with it until
    /// [`Self::destaged`]. False, and no change, while data of the same buffer blocks are on
    /// their way: they must arrive before the newer data leave.
    pub fn supersede(&mut self, blocks: Range<u64>, now: SimTime) -> bool {
        // All parts are looked at before any begins: a refusal must leave all as it was.
        if self
            .parts(blocks.clone())
            .any(|(number, _)| self.entry(number).is_some_and(|entry| entry.under_way != 0))
        {
            return false;
        }
        self.count_risk(now);
        for (number, bits) in self.parts(blocks) {
            let dirty = self.entry(number).map_or(0, |entry| entry.dirty & bits);
            if dirty != 0 {
                self.begin(number, dirty);
            }
        }
        self.check();
        true
    }

    /// Forgets dirty data, which are no longer wanted.
    pub fn forget(&mut self, blocks: Range<u64>, now: SimTime) {
        self.count_risk(now);
        for (number, bits) in self.parts(blocks) {
            let entry = self.entry(number);
            // Those on their way arrive; what waits behind them is as good as unwritten.
            let bits = entry.map_or(0, |entry| entry.dirty & bits);
            if bits != 0 {
                self.clean(number, bits);
            }
        }
        self.check();
    }

    /// Checks in debug builds what calls keep in step by hand: the lists, and the blocks at risk.
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let held = self.numbers.len();
        assert!(held <= self.capacity as usize, "{held} buffer blocks");
        assert_eq!(self.by_write.len(), self.by_age.len(), "both lists have the waiting entries");
        let listed = (self.by_write.len() + self.under_way.len()) as usize;
        assert_eq!(listed, held, "an entry in memory waits or is on its way");
        // Each entry has a block that the disk lacks, and at most its size.
        assert!((held as u64..=held as u64 * self.size.get()).contains(&self.at_risk));
    }

    /// Makes dirty blocks of one entry clean.
    fn clean(&mut self, number: u64, bits: u64) {
        let slot = self.numbers.find(number).expect("a dirty block has an entry");
        let entry = &mut self.entries[slot as usize];
        entry.dirty &= !bits;
        // What is on its way stays at risk until it has arrived.
        self.at_risk -= u64::from((bits & !entry.under_way).count_ones());
        if entry.dirty == 0 && entry.under_way == 0 {
            self.unlist(slot);
            self.drop_entry(slot);
        }
    }

    fn count_risk(&mut self, now: SimTime) {
        self.counts.at_risk_ns += self.risk_since_count(now);
        self.at_risk_since = now;
    }

    /// Blocks at risk times nanoseconds since the last count.
    fn risk_since_count(&self, now: SimTime) -> u128 {
        let span = now.saturating_since(self.at_risk_since).ns();
        u128::from(self.at_risk) * u128::from(span)
    }

    /// True if a 512-byte block is in memory, where it is newer than on the disk.
    pub fn holds(&self, block: u64) -> bool {
        let size = self.size.get();
        self.held_bits(block / size) >> (block % size) & 1 == 1
    }

    fn held_bits(&self, number: u64) -> u64 {
        self.entry(number).map_or(0, |entry| entry.dirty | entry.under_way)
    }

    /// Calls `missing` with each run of `blocks` that is not in memory.
    pub fn missing(&self, blocks: Range<u64>, mut missing: impl FnMut(Range<u64>)) {
        if self.is_empty() {
            return missing(blocks);
        }
        let size = self.size.get();
        let mut run = blocks.start..blocks.start;
        for (number, bits) in self.parts(blocks.clone()) {
            let mut absent = bits & !self.held_bits(number);
            while absent != 0 {
                let from = u64::from(absent.trailing_zeros());
                let count = ones_from(absent, from);
                let start = number * size + from;
                // Runs of neighbours are one.
                if run.end != start {
                    if !run.is_empty() {
                        missing(run);
                    }
                    run = start..start;
                }
                run.end += count;
                absent &= !mask(from..from + count);
            }
        }
        if !run.is_empty() {
            missing(run);
        }
    }
}

fn is_whole(entry: &Entry, bits: u64, whole: u64) -> bool {
    bits == whole && entry.dirty == whole && entry.under_way == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Room for this many buffer blocks of 4 KiB.
    fn spec(capacity: u64) -> WriteBufferSpec {
        WriteBufferSpec {
            size: Bytes::from_kib(4 * capacity),
            max_age: None,
            destage_maximum: Bytes::from_kib(20),
            ..WriteBufferSpec::default()
        }
    }

    fn buffer_of(spec: WriteBufferSpec) -> WriteBuffer {
        WriteBuffer::new(spec, Blocks::new(8))
    }

    fn at(ms: u64) -> SimTime {
        SimTime::from_ns(ms * 1_000_000)
    }

    /// Fills buffer blocks, one write each.
    fn write_blocks(buffer: &mut WriteBuffer, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|n| buffer.write(n * 8..n * 8 + 8, at(n)));
    }

    fn destages(buffer: &mut WriteBuffer) -> Vec<Range<u64>> {
        std::iter::from_fn(|| buffer.next_destage(at(1_000))).collect()
    }

    #[test]
    fn destaging_runs_between_high_and_low_mark() {
        let mut buffer = buffer_of(spec(10));
        // Every other block, so that none has a dirty neighbour.
        write_blocks(&mut buffer, (0..8).map(|n| 2 * n));
        assert_eq!(destages(&mut buffer), []);
        write_blocks(&mut buffer, [16]);
        // Nine are dirty. Below 0.2 of ten means one: eight go, least recently written first.
        let expected: Vec<Range<u64>> = (0..8).map(|n| n * 16..n * 16 + 8).collect();
        assert_eq!(destages(&mut buffer), expected);
    }

    #[test]
    fn block_written_again_goes_last() {
        let mut buffer = buffer_of(WriteBufferSpec { high_mark: 0.0, low_mark: 0.0, ..spec(9) });
        write_blocks(&mut buffer, [0, 2, 4]);
        write_blocks(&mut buffer, [0]);
        assert_eq!(destages(&mut buffer), [16..24, 32..40, 0..8]);
        let counts = buffer.counts(at(1_000));
        assert_eq!((counts.writes, counts.misses), (4, 3));
    }

    #[test]
    fn destage_takes_dirty_neighbours_only() {
        let mut buffer = buffer_of(WriteBufferSpec { high_mark: 0.0, low_mark: 0.0, ..spec(9) });
        write_blocks(&mut buffer, [3, 4]);
        buffer.write(20..22, at(5));
        // Blocks 22 and 23 are clean, so 20..22 stands alone.
        assert_eq!(destages(&mut buffer), [24..40, 20..22]);
    }

    #[test]
    fn destage_splits_long_dirty_run() {
        let marks = WriteBufferSpec { high_mark: 0.0, low_mark: 0.0, ..spec(40) };
        let mut buffer =
            buffer_of(WriteBufferSpec { destage_maximum: Bytes::from_kib(10), ..marks });
        // From the oldest block, in the middle, the run continues behind it, then before it.
        [32..75, 24..32, 4..24].into_iter().for_each(|blocks| buffer.write(blocks, at(1)));
        assert_eq!(destages(&mut buffer), [32..48, 48..64, 64..75, 16..32, 4..16]);
        let long = WriteBufferSpec { destage_maximum: Bytes::from_kib(500), ..marks };
        let mut buffer = buffer_of(long);
        [32..75, 24..32, 4..24].into_iter().for_each(|blocks| buffer.write(blocks, at(1)));
        assert!(destages(&mut buffer).into_iter().eq(std::iter::once(4..75)));
    }

    #[test]
    fn wow_sweeps_upwards_defers_rewritten_blocks() {
        let marks = WriteBufferSpec { high_mark: 0.0, low_mark: 0.0, ..spec(9) };
        let mut buffer = buffer_of(WriteBufferSpec { order: DestageOrder::Wow, ..marks });
        write_blocks(&mut buffer, [6, 2, 4, 4, 0]);
        assert_eq!(destages(&mut buffer), [0..8, 16..24, 48..56, 32..40]);
    }

    #[test]
    fn write_without_room_waits_for_destage() {
        let mut buffer = buffer_of(WriteBufferSpec { high_mark: 1.0, low_mark: 1.0, ..spec(2) });
        write_blocks(&mut buffer, [0, 2]);
        assert_eq!(destages(&mut buffer), [], "a full buffer alone destages nothing");
        assert!(!buffer.has_room(32..40) && buffer.has_room(0..8) && buffer.can_hold(0..16));
        assert!(!buffer.can_hold(0..24));
        buffer.set_short(true);
        assert_eq!(buffer.next_destage(at(9)), Some(0..8));
        assert!(!buffer.has_room(32..40), "its place is free when the disk has it");
        buffer.destaged(0..8, at(10));
        assert!(buffer.has_room(32..40));
    }

    #[test]
    fn power_cut_loss_counted_over_time() {
        let marks = WriteBufferSpec { high_mark: 0.0, low_mark: 0.0, ..spec(9) };
        let mut buffer = buffer_of(marks);
        buffer.write(0..3, at(1));
        assert_eq!(buffer.next_destage(at(2)), Some(0..3));
        buffer.write(2..4, at(3));
        buffer.destaged(0..3, at(5));
        assert_eq!(buffer.next_destage(at(5)), Some(2..4));
        // 3 blocks for 2 ms, 4 for 2 ms, and 2 since then.
        assert_eq!(buffer.counts(at(6)).at_risk_ns, (3 * 2 + 4 * 2 + 2) * 1_000_000);
        buffer.destaged(2..4, at(7));
        let counts = buffer.counts(at(9));
        assert_eq!(counts.at_risk_ns, (3 * 2 + 4 * 2 + 2 * 2) * 1_000_000);
        assert_eq!((counts.at_risk_max, buffer.is_empty()), (4, true));
    }

    #[test]
    fn gap_writes_whole_blocks_later_ones_wait() {
        let mut buffer = buffer_of(WriteBufferSpec { destage_in_gaps: true, ..spec(9) });
        buffer.write(8..28, at(1));
        let whole = |buffer: &mut WriteBuffer| {
            let mut found = Vec::new();
            buffer.take_whole(|blocks| found.push(blocks));
            found
        };
        // Of the third buffer block only a half is dirty.
        assert_eq!(whole(&mut buffer), [8..16, 16..24]);
        buffer.begin_in_gap(8..16);
        buffer.write(8..16, at(2));
        assert_eq!(whole(&mut buffer), [], "older data are on their way");
        buffer.destaged(8..16, at(3));
        assert_eq!(whole(&mut buffer).pop(), Some(8..16));
        let counts = buffer.counts(at(3));
        assert_eq!((counts.in_gaps_blocks, counts.destages, counts.at_risk_max), (8, 0, 20));
    }
}
