//! Requests out of events of a block layer: queued, issued to the drive, completed.
//!
//! Goals: a request is delivered with its completion also where the block layer merged it with others or
//! split it; memory does not grow with the length of the trace.
//! Non-goals: the time of issue, which a record has no place for; it counts as arrival of requests that
//! were not seen being queued.
//!
//! Events are matched by device, operation and blocks. A completion covers all requests that were merged
//! into one command; of a request that was split, the last completion counts. Of equal requests the
//! oldest completes first.

use std::collections::{BTreeMap, VecDeque};

use freewheel_units::{Blocks, Op, SimTime};

use super::{Position, ReorderBuffer, Source, Stop};
use crate::Record;
use crate::record::Extent;

/// Requests that wait for their completion. The oldest one above that is delivered without.
const OUTSTANDING_MAX: usize = 1 << 16;
/// Events that wait for an earlier one. Processors hand over what they recorded in turns, in pieces of
/// at most 512 KiB, which is about 11,000 events.
const WINDOW_EVENTS: usize = 1 << 16;

/// What an event says of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Queued,
    Issued,
    Completed,
}

/// An event of a block layer that is about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockEvent {
    pub time: SimTime,
    pub device: u32,
    pub stage: Stage,
    /// What is read, written or trimmed; `None` for a flush alone.
    pub data: Option<Transfer>,
    /// Whether the drive's cache is flushed before.
    pub flushes: bool,
}

/// The part of a request that has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub op: Op,
    pub extent: Extent,
    pub fua: bool,
}

/// A stream of such events.
pub(crate) trait EventStream: Send {
    /// The next event; `None` at the end.
    fn next(&mut self) -> Result<Option<BlockEvent>, Stop>;

    /// Where that was.
    fn position(&self) -> Position;
}

/// Place and number of a request that is under way, in the order in which a completion is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    device: u32,
    op: u8,
    start: u64,
    number: u64,
}

impl Place {
    fn new(device: u32, op: Op, start: u64, number: u64) -> Self {
        Self { device, op: op as u8, start, number }
    }
}

/// A request that was not delivered yet.
#[derive(Debug)]
struct Waiting {
    record: Record,
    at: Position,
    blocks_left: Blocks,
    is_done: bool,
}

/// Flushes of a device that are under way.
#[derive(Debug, Default)]
struct Flushes {
    /// Numbers of the requests, ascending.
    numbers: VecDeque<u64>,
    /// Requests below this number were queued before the last flush was issued; `None` if none was.
    issued_below: Option<u64>,
}

/// Matches events, and delivers requests in the order in which they were queued.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    waiting: VecDeque<Waiting>,
    /// Number of the first of `waiting`.
    first: u64,
    /// Ends of the requests under way.
    under_way: BTreeMap<Place, u64>,
    flushes: BTreeMap<u32, Flushes>,
    /// Blocks of the longest request so far: how far before a completion its requests may begin.
    longest: u64,
}

impl Pairing {
    /// Takes the next event, in order of time.
    pub fn observe(&mut self, event: &BlockEvent, at: Position) {
        match event.stage {
            Stage::Queued => self.queue(event, at),
            Stage::Issued => self.issue(event, at),
            Stage::Completed => self.complete(event),
        }
    }

    /// The next request that is complete, or that need not be waited for; any request when
    /// `has_ended`.
    pub fn pop(&mut self, has_ended: bool) -> Option<(Record, Position)> {
        let first = self.waiting.front()?;
        if !first.is_done && !has_ended && self.waiting.len() <= OUTSTANDING_MAX {
            return None;
        }
        let Waiting { record, at, is_done, .. } = self.waiting.pop_front()?;
        if !is_done {
            self.forget(&record);
        }
        self.first += 1;
        Some((record, at))
    }

    fn forget(&mut self, record: &Record) {
        if record.op == Op::Flush {
            let flushes = self.flushes.entry(record.device).or_default();
            flushes.numbers.retain(|&number| number != self.first);
            return;
        }
        let place = Place::new(record.device, record.op, record.start.get(), self.first);
        self.under_way.remove(&place);
    }

    /// The number of the next request.
    fn next_number(&self) -> u64 {
        self.first + self.waiting.len() as u64
    }

    fn queue(&mut self, event: &BlockEvent, at: Position) {
        // The drive flushes first, then moves the data: two requests.
        if event.flushes {
            self.add_flush(event, at);
        }
        if let Some(data) = event.data {
            self.add_data(event, data, at);
        }
    }

    fn add_flush(&mut self, event: &BlockEvent, at: Position) {
        let number = self.next_number();
        self.flushes.entry(event.device).or_default().numbers.push_back(number);
        let record = Extent::NONE.request(event.time, Op::Flush, event.device);
        self.waiting.push_back(Waiting { record, at, blocks_left: Blocks::ZERO, is_done: false });
    }

    fn add_data(&mut self, event: &BlockEvent, data: Transfer, at: Position) {
        let Transfer { op, extent, fua } = data;
        let record = Record { fua, ..extent.request(event.time, op, event.device) };
        let place = Place::new(event.device, op, extent.start.get(), self.next_number());
        self.under_way.insert(place, record.end().get());
        self.longest = self.longest.max(extent.blocks.get());
        self.waiting.push_back(Waiting { record, at, blocks_left: extent.blocks, is_done: false });
    }

    fn issue(&mut self, event: &BlockEvent, at: Position) {
        match event.data {
            Some(data) if self.overlapping(event.device, data).is_empty() => {
                self.add_data(event, data, at);
            }
            None if event.flushes => {
                let is_unknown =
                    self.flushes.get(&event.device).is_none_or(|known| known.numbers.is_empty());
                if is_unknown {
                    self.add_flush(event, at);
                }
                let issued_below = Some(self.next_number());
                self.flushes.entry(event.device).or_default().issued_below = issued_below;
            }
            _ => {}
        }
    }

    fn complete(&mut self, event: &BlockEvent) {
        if event.flushes {
            self.complete_flushes(event);
        }
        let Some(data) = event.data else { return };
        let (mut covered, end) = (data.extent.start.get(), end(data.extent));
        for (place, place_end) in self.overlapping(event.device, data) {
            // Blocks that an older request took are not those of a later one.
            let (from, to) = (covered.max(place.start), end.min(place_end));
            if from < to {
                covered = to;
                self.complete_part(place, Blocks::new(to - from), event.time);
            }
        }
    }

    fn complete_flushes(&mut self, event: &BlockEvent) {
        let Some(flushes) = self.flushes.get_mut(&event.device) else { return };
        let below = flushes.issued_below.take().unwrap_or(u64::MAX);
        let covered = flushes.numbers.partition_point(|number| *number < below);
        for number in flushes.numbers.drain(..covered) {
            finish(&mut self.waiting[(number - self.first) as usize], event.time);
        }
    }

    /// Requests under way that share blocks with `data`: the one that has just its blocks, or all.
    fn overlapping(&self, device: u32, data: Transfer) -> Vec<(Place, u64)> {
        let (start, end) = (data.extent.start.get(), end(data.extent));
        let place = |start| Place::new(device, data.op, start, 0);
        let same = self.under_way.range(place(start)..place(start + 1));
        if let Some((place, end)) = same.into_iter().find(|&(_, &other)| other == end) {
            return vec![(*place, *end)];
        }
        let reach = start.saturating_sub(self.longest);
        let near = self.under_way.range(place(reach)..place(end));
        near.filter(|&(_, &end)| end > start).map(|(place, end)| (*place, *end)).collect()
    }

    fn complete_part(&mut self, place: Place, blocks: Blocks, time: SimTime) {
        let waiting = &mut self.waiting[(place.number - self.first) as usize];
        waiting.blocks_left = Blocks::new(waiting.blocks_left.get().saturating_sub(blocks.get()));
        if waiting.blocks_left == Blocks::ZERO {
            finish(waiting, time);
            self.under_way.remove(&place);
        }
    }
}

fn end(extent: Extent) -> u64 {
    (extent.start + extent.blocks).get()
}

fn finish(waiting: &mut Waiting, time: SimTime) {
    // Clocks of processors may differ by some nanoseconds.
    waiting.record.completion = Some(time.max(waiting.record.arrival));
    waiting.is_done = true;
}

/// The requests of a stream of events.
pub(crate) struct EventSource<E> {
    events: E,
    order: ReorderBuffer<(BlockEvent, Position)>,
    pairing: Pairing,
    has_ended: bool,
    at: Position,
}

impl<E: EventStream> EventSource<E> {
    pub fn new(events: E) -> Self {
        let (order, pairing) = (ReorderBuffer::default(), Pairing::default());
        Self { at: events.position(), events, order, pairing, has_ended: false }
    }

    /// Reads an event, or takes one out of those that wait for an earlier one.
    fn step(&mut self) -> Result<(), Stop> {
        if !self.has_ended && self.order.len() < WINDOW_EVENTS {
            match self.events.next()? {
                Some(event) => self.order.push(event.time, (event, self.events.position())),
                None => self.has_ended = true,
            }
        } else if let Some((event, at)) = self.order.pop() {
            self.pairing.observe(&event, at);
        }
        Ok(())
    }
}

impl<E: EventStream> Source for EventSource<E> {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        loop {
            let is_over = self.has_ended && self.order.len() == 0;
            if let Some((record, at)) = self.pairing.pop(is_over) {
                self.at = at;
                return Ok(Some(record));
            }
            let step = if is_over { Ok(()) } else { self.step() };
            // An error, and the end, are where the trace was read.
            self.at = self.events.position();
            if is_over {
                return Ok(None);
            }
            step?;
        }
    }

    fn position(&self) -> Position {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Number;
    use proptest::prelude::*;

    fn event(stage: Stage, time: u64, op: Op, start: u64, blocks: u64) -> BlockEvent {
        let number = |value| Number { name: "blocks", value };
        let extent = Extent::of_blocks(number(start), number(blocks)).unwrap();
        let data = Some(Transfer { op, extent, fua: false });
        BlockEvent { time: SimTime::from_ns(time), device: 0, stage, data, flushes: false }
    }

    fn flush(stage: Stage, time: u64) -> BlockEvent {
        BlockEvent { data: None, flushes: true, ..event(stage, time, Op::Write, 0, 1) }
    }

    /// Arrival, start and completion of the requests, in the order of their delivery.
    fn pair(events: &[BlockEvent]) -> Vec<(u64, u64, Option<u64>)> {
        let mut pairing = Pairing::default();
        events.iter().for_each(|event| pairing.observe(event, Position::default()));
        let records = std::iter::from_fn(|| pairing.pop(true)).map(|(record, _)| record);
        let row = |r: Record| (r.arrival.ns(), r.start.get(), r.completion.map(SimTime::ns));
        records.map(row).collect()
    }

    use Stage::{Completed, Issued, Queued};

    #[test]
    fn a_completion_covers_all_requests_that_were_merged() {
        let events = [
            event(Queued, 1, Op::Write, 8, 8),
            event(Queued, 2, Op::Write, 0, 8),
            event(Queued, 3, Op::Read, 0, 8),
            event(Issued, 4, Op::Write, 0, 16),
            event(Completed, 9, Op::Write, 0, 16),
        ];
        assert_eq!(pair(&events), [(1, 8, Some(9)), (2, 0, Some(9)), (3, 0, None)]);
    }

    #[test]
    fn a_request_that_was_split_completes_with_its_last_part() {
        let events = [
            event(Queued, 1, Op::Read, 0, 16),
            event(Issued, 2, Op::Read, 0, 8),
            event(Issued, 2, Op::Read, 8, 8),
            event(Completed, 5, Op::Read, 8, 8),
            event(Completed, 7, Op::Read, 0, 8),
        ];
        assert_eq!(pair(&events), [(1, 0, Some(7))]);
    }

    #[test]
    fn of_equal_requests_the_oldest_completes_first() {
        let queued = |time| event(Queued, time, Op::Read, 4, 4);
        let completed = |time| event(Completed, time, Op::Read, 4, 4);
        let events = [queued(1), queued(2), completed(5), completed(8)];
        assert_eq!(pair(&events), [(1, 4, Some(5)), (2, 4, Some(8))]);
    }

    #[test]
    fn a_request_that_was_not_seen_being_queued_arrives_when_it_is_issued() {
        let events = [event(Issued, 3, Op::Read, 0, 8), event(Completed, 5, Op::Read, 0, 8)];
        assert_eq!(pair(&events), [(3, 0, Some(5))]);
    }

    #[test]
    fn a_flush_completes_what_was_queued_before_it_was_issued() {
        let events = [
            flush(Queued, 1),
            flush(Issued, 2),
            flush(Queued, 3),
            flush(Completed, 7),
            flush(Issued, 8),
            flush(Completed, 9),
        ];
        assert_eq!(pair(&events), [(1, 0, Some(7)), (3, 0, Some(9))]);
    }

    #[test]
    fn a_write_that_flushes_first_is_a_flush_and_a_write() {
        let mut queued = event(Queued, 1, Op::Write, 8, 8);
        queued.flushes = true;
        let events =
            [queued, flush(Issued, 2), flush(Completed, 4), event(Completed, 6, Op::Write, 8, 8)];
        assert_eq!(pair(&events), [(1, 0, Some(4)), (1, 8, Some(6))]);
    }

    #[test]
    fn requests_without_completion_do_not_pile_up() {
        let mut pairing = Pairing::default();
        let mut delivered = 0;
        for number in 0..3 * OUTSTANDING_MAX as u64 {
            pairing.observe(&event(Queued, number, Op::Write, number * 8, 8), Position::default());
            delivered += usize::from(pairing.pop(false).is_some());
            assert!(pairing.waiting.len() <= OUTSTANDING_MAX);
        }
        assert_eq!(delivered, 2 * OUTSTANDING_MAX);
        assert_eq!(pairing.under_way.len(), OUTSTANDING_MAX);
    }

    /// The slow way, block by block: a completion takes of every block the oldest request that waits for
    /// it. Only for requests that do not overlap in part.
    fn naive(events: &[BlockEvent]) -> Vec<(u64, u64, Option<u64>)> {
        let mut requests: Vec<(u64, u64, Option<u64>, Vec<u64>)> = Vec::new();
        for event in events {
            let data = event.data.unwrap();
            let blocks = data.extent.start.get()..end(data.extent);
            let time = event.time.ns();
            if event.stage == Queued {
                requests.push((time, blocks.start, None, blocks.collect()));
                continue;
            }
            for block in blocks {
                let waits = |left: &Vec<u64>| left.contains(&block);
                if let Some(oldest) = requests.iter_mut().find(|request| waits(&request.3)) {
                    oldest.3.retain(|&other| other != block);
                    if oldest.3.is_empty() {
                        oldest.2 = Some(time);
                    }
                }
            }
        }
        requests.into_iter().map(|(arrival, start, done, _)| (arrival, start, done)).collect()
    }

    proptest! {
        #[test]
        fn completions_are_found_as_block_by_block(
            steps in prop::collection::vec((any::<bool>(), 0u64..6, 1u64..4), 0..60),
        ) {
            // Requests fill whole slots of 4 blocks; completions cover one slot to three.
            let event = |(time, &(is_queued, slot, slots)): (usize, &(bool, u64, u64))| {
                let (stage, slots) = if is_queued { (Queued, 1) } else { (Completed, slots) };
                event(stage, time as u64, Op::Read, slot * 4, slots * 4)
            };
            let events: Vec<BlockEvent> = steps.iter().enumerate().map(event).collect();
            prop_assert_eq!(pair(&events), naive(&events));
        }
    }
}
