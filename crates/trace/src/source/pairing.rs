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
//!
//! A drive may know no FUA. Linux then writes without it and flushes after that: the second flush is the end
//! of the write, and no separate request (`block/blk-flush.c`, which ends the request with a completion
//! of no blocks):
//!
//! ```text
//! Q FWFSM 4000 + 16    a flush and a write with FUA are queued
//! D FN  C FN           the flush
//! D WSM 4000 + 16  C   the write, without FUA
//! D FN  C FN           what FUA asks for
//! C WSM 4000           the write has ended
//! ```

use std::collections::{BTreeMap, VecDeque};

use freewheel_units::{Blocks, Op, SimTime};

use super::Position;
use super::block_event::{BlockEvent, Stage, Transfer};
use super::spans::{Place, Span, Spans};
use crate::Record;
use crate::record::Extent;

/// Requests that wait for their completion. The oldest one above that is delivered without.
const OUTSTANDING_MAX: usize = 1 << 16;
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
    /// Numbers of writes with FUA that were written without it, in the order in which their blocks were:
    /// a flush ends them.
    writes: VecDeque<u64>,
    /// Requests that the last issued flush covers; `None` if none was.
    issued: Option<Covered>,
    /// True if the trace tells of flushes that are issued.
    are_issued: bool,
}

/// Requests that a flush covers.
#[derive(Debug, Clone, Copy)]
struct Covered {
    /// Flushes below this number.
    below: u64,
    /// This number of the writes.
    writes: usize,
}

impl Flushes {
    fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.writes.is_empty()
    }

    fn forget(&mut self, number: u64) {
        self.numbers.retain(|&other| other != number);
        if let Some(at) = self.writes.iter().position(|&other| other == number) {
            self.writes.remove(at);
            if let Some(issued) = self.issued.as_mut().filter(|issued| at < issued.writes) {
                issued.writes -= 1;
            }
        }
    }
}

/// Matches events, and delivers requests in the order in which they were queued.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    waiting: VecDeque<Waiting>,
    /// Number of the first of `waiting`.
    first: u64,
    /// The requests under way.
    under_way: Spans,
    flushes: BTreeMap<u32, Flushes>,
    unmatched: Unmatched,
}

impl Pairing {
    /// Takes the next event, in order of time.
    pub fn observe(&mut self, event: &BlockEvent, at: Position) {
        match event.stage {
            Stage::Queued => self.queue(event, at),
            // Requests were seen being queued before they joined others.
            Stage::MergedBehind | Stage::MergedBefore => {}
            Stage::Inserted | Stage::Issued => self.issue(event, at),
            Stage::Completed => self.complete(event),
            Stage::Ended => self.end(event),
        }
    }

    /// Events that found no request.
    pub fn unmatched(&self) -> Unmatched {
        self.unmatched
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
        if record.op == Op::Flush || record.fua {
            self.flushes.entry(record.device).or_default().forget(self.first);
        }
        if record.op == Op::Flush {
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
        self.waiting.push_back(Waiting { record, at, blocks_left: extent.blocks, is_done: false });
    }

    fn issue(&mut self, event: &BlockEvent, at: Position) {
        match event.data {
            Some(data) if self.overlapping(event.device, data).is_empty() => {
                self.add_data(event, data, at);
            }
            None if event.flushes => {
                if self.flushes.get(&event.device).is_none_or(Flushes::is_empty) {
                    self.add_flush(event, at);
                }
                let below = self.next_number();
                let flushes = self.flushes.entry(event.device).or_default();
                flushes.are_issued = true;
                flushes.issued = Some(Covered { below, writes: flushes.writes.len() });
            }
            _ => {}
        }
    }

    fn complete(&mut self, event: &BlockEvent) {
        if event.flushes {
            self.complete_flushes(event);
        }
        let Some(data) = event.data else { return };
        let (mut covered, end) = (data.start(), data.end());
        let requests = self.overlapping(event.device, data);
        self.unmatched.completions += u64::from(requests.is_empty());
        for (place, place_end) in requests {
            // Blocks that an older request took are not those of a later one.
            let (from, to) = (covered.max(place.start), end.min(place_end));
            if from < to {
                covered = to;
                self.complete_part(place, Blocks::new(to - from), event.time, data.fua);
            }
        }
    }

    fn complete_flushes(&mut self, event: &BlockEvent) {
        let Some(flushes) = self.flushes.get_mut(&event.device) else {
            self.unmatched.completions += u64::from(event.data.is_none());
            return;
        };
        let all = Covered { below: u64::MAX, writes: flushes.writes.len() };
        let Covered { below, writes } = flushes.issued.take().unwrap_or(all);
        let covered = flushes.numbers.partition_point(|number| *number < below);
        for number in flushes.numbers.drain(..covered) {
            finish(&mut self.waiting[(number - self.first) as usize], event.time);
        }
        // The end of the request may follow. Where none does, this is the time it was written by.
        for number in flushes.writes.drain(..writes) {
            note_completion(&mut self.waiting[(number - self.first) as usize], event.time);
        }
    }

    /// The end of a request whose commands were all seen before.
    fn end(&mut self, event: &BlockEvent) {
        let Some(Transfer { op, extent, .. }) = event.data else { return };
        let here = self.under_way.beginning_at(event.device, op, extent.start.get());
        let written = { here }.find(|(place, _)| self.is_written(place));
        let Some((place, _)) = written else {
            // A flush alone has a kind with a write in it, and ends so where no command is seen.
            let known = self.flushes.get(&event.device);
            if event.flushes && known.is_some_and(|known| !known.are_issued) {
                self.complete_flushes(event);
            }
            return;
        };
        finish(&mut self.waiting[(place.number - self.first) as usize], event.time);
        self.under_way.remove(&place);
        self.flushes.entry(event.device).or_default().forget(place.number);
    }

    fn is_written(&self, place: &Place) -> bool {
        self.waiting_at(place.number).blocks_left == Blocks::ZERO
    }

    fn waiting_at(&self, number: u64) -> &Waiting {
        &self.waiting[(number - self.first) as usize]
    }

    /// Requests under way that share blocks with `data`: the one that has just its blocks, or all.
    fn overlapping(&self, device: u32, data: Transfer) -> Vec<Span> {
        // A write whose blocks are done waits for its flush only.
        self.under_way.sharing(device, data, |place: &Place| {
            self.waiting_at(place.number).blocks_left > Blocks::ZERO
        })
    }

    /// Takes these blocks as done. `fua` says whether the command had it.
    fn complete_part(&mut self, place: Place, blocks: Blocks, time: SimTime, fua: bool) {
        let waiting = &mut self.waiting[(place.number - self.first) as usize];
        waiting.blocks_left = Blocks::new(waiting.blocks_left.get().saturating_sub(blocks.get()));
        if waiting.blocks_left > Blocks::ZERO {
            return;
        }
        if waiting.record.fua && waiting.record.op == Op::Write && !fua {
            note_completion(waiting, time);
            self.flushes.entry(place.device).or_default().writes.push_back(place.number);
        } else {
            finish(waiting, time);
            self.under_way.remove(&place);
        }
    }
}

/// Events that found no request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unmatched {
    /// Completions of requests that were seen neither being queued nor being issued.
    pub completions: u64,
}

/// Notes the time, which a later event may move.
fn note_completion(waiting: &mut Waiting, time: SimTime) {
    // Clocks of processors may differ by some nanoseconds.
    waiting.record.completion = Some(time.max(waiting.record.arrival));
}

fn finish(waiting: &mut Waiting, time: SimTime) {
    note_completion(waiting, time);
    waiting.is_done = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Number;
    use crate::timed::Spill;
    use freewheel_units::VolumeBlock;
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

    use Stage::{Completed, Ended, Issued, Queued};

    #[test]
    fn completion_covers_all_merged_requests() {
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
    fn split_request_completes_with_last_part() {
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
    fn equal_requests_complete_oldest_first() {
        let queued = |time| event(Queued, time, Op::Read, 4, 4);
        let completed = |time| event(Completed, time, Op::Read, 4, 4);
        let events = [queued(1), queued(2), completed(5), completed(8)];
        assert_eq!(pair(&events), [(1, 4, Some(5)), (2, 4, Some(8))]);
    }

    #[test]
    fn request_unseen_queued_arrives_when_issued() {
        let events = [event(Issued, 3, Op::Read, 0, 8), event(Completed, 5, Op::Read, 0, 8)];
        assert_eq!(pair(&events), [(3, 0, Some(5))]);
    }

    #[test]
    fn flush_completes_earlier_queued_requests() {
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
    fn preflush_write_is_flush_and_write() {
        let mut queued = event(Queued, 1, Op::Write, 8, 8);
        queued.flushes = true;
        let events =
            [queued, flush(Issued, 2), flush(Completed, 4), event(Completed, 6, Op::Write, 8, 8)];
        assert_eq!(pair(&events), [(1, 0, Some(4)), (1, 8, Some(6))]);
    }

    /// A write that is queued with FUA, and commands without it.
    fn write(stage: Stage, time: u64, fua: bool) -> BlockEvent {
        let mut event = event(stage, time, Op::Write, 8, 8);
        event.data = event.data.map(|data| Transfer { fua, ..data });
        event
    }

    fn ended(time: u64) -> BlockEvent {
        let mut event = event(Ended, time, Op::Write, 8, 8);
        let none = |data: Transfer| Extent { blocks: Blocks::ZERO, ..data.extent };
        event.data = event.data.map(|data| Transfer { extent: none(data), ..data });
        event
    }

    #[test]
    fn postflush_is_fua_without_drive_fua() {
        let mut queued = write(Queued, 1, true);
        queued.flushes = true;
        let mut events = vec![
            queued,
            flush(Issued, 2),
            flush(Completed, 4),
            write(Issued, 5, false),
            write(Completed, 6, false),
            flush(Issued, 7),
            flush(Completed, 9),
            ended(10),
        ];
        assert_eq!(pair(&events), [(1, 0, Some(4)), (1, 8, Some(10))]);
        // Without the end of the request, its last flush ends it.
        events.pop();
        assert_eq!(pair(&events), [(1, 0, Some(4)), (1, 8, Some(9))]);
        // A flush of another request after that is a separate one.
        events.extend([flush(Queued, 20), flush(Issued, 21), flush(Completed, 22)]);
        assert_eq!(pair(&events), [(1, 0, Some(4)), (1, 8, Some(9)), (20, 0, Some(22))]);
    }

    #[test]
    fn flush_ends_all_writes_before_issue() {
        let mut second = write(Queued, 2, true);
        second.data.as_mut().unwrap().extent.start = VolumeBlock::new(80);
        let of_second = |stage, time| {
            let data = second.data.map(|data| Transfer { fua: false, ..data });
            BlockEvent { stage, data, time: SimTime::from_ns(time), ..second }
        };
        let events = [
            write(Queued, 1, true),
            second,
            write(Completed, 3, false),
            of_second(Completed, 4),
            flush(Issued, 5),
            flush(Completed, 7),
        ];
        assert_eq!(pair(&events), [(1, 8, Some(7)), (2, 80, Some(7))]);
        // Written after the issue: the flush does not cover it.
        let events = [
            write(Queued, 1, true),
            second,
            write(Completed, 3, false),
            flush(Issued, 5),
            of_second(Completed, 6),
            flush(Completed, 7),
            flush(Issued, 8),
            flush(Completed, 9),
        ];
        assert_eq!(pair(&events), [(1, 8, Some(7)), (2, 80, Some(9))]);
    }

    #[test]
    fn drive_fua_ends_write_by_command() {
        let events = [
            write(Queued, 1, true),
            write(Issued, 2, true),
            write(Completed, 3, true),
            ended(3),
            flush(Queued, 4),
            flush(Issued, 5),
            flush(Completed, 6),
        ];
        assert_eq!(pair(&events), [(1, 8, Some(3)), (4, 0, Some(6))]);
    }

    #[test]
    fn event_round_trips_through_words() {
        let mut events = vec![flush(Issued, 7), ended(9), write(Queued, 1, true)];
        events.extend([Op::Read, Op::Trim].map(|op| event(Completed, 5, op, 1 << 40, 77)));
        for event in events {
            assert_eq!(BlockEvent::from_words(event.to_words()), event);
        }
    }

    #[test]
    fn requests_without_completion_never_pile_up() {
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
            let blocks = data.start()..data.end();
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
        fn pairing_matches_block_model(
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
