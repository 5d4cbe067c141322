//! Requests as a block layer sent them to the drive, out of those that were queued.
//!
//! Goals: for each command one request of its blocks, queued when the first of its parts was; memory does
//! not grow with the length of the trace.
//! Non-goals: flushes, which stay as they were queued; trims of several ranges, whose command names one of
//! them.
//!
//! Events pass through a line. A queued request keeps its place in it until commands have taken its blocks, and
//! then gives way to those commands of which it is the oldest part:
//!
//! ```text
//! in    Q 0+8   Q 16+8   Q 8+8   M 8+8   D 0+16   C 0+16   D 16+8 ...
//! out   Q 0+16  Q 16+8                   D 0+16   C 0+16   D 16+8 ...
//! ```
//! So `pairing` meets the same events as of a host that queued what was issued. A large request that was split
//! becomes several at its time. A request that never was issued, as at the end of a recording, is as large as
//! it was by then. A completion that no issue explains, as of a device of the device mapper, is one.

use std::collections::VecDeque;

use freewheel_units::{Blocks, VolumeBlock};
use serde::Serialize;

use super::Position;
use super::block_event::{BlockEvent, Stage, Transfer};
use super::spans::{Place, Span, Spans};
use crate::record::Extent;

/// Events in the line. The oldest request above that is taken as it is.
const LINE_MAX: usize = 1 << 16;
/// Commands whose completion is awaited. A drive has fewer: beyond them completions are not recorded.
const COMMANDS_MAX: usize = 1 << 16;

/// Counts of requests at a block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LayerCounts {
    /// Requests that were queued, flushes apart.
    pub queued: u64,
    /// Requests of them that became part of an older one.
    pub merged: u64,
    /// Commands that were issued to a drive, flushes apart.
    pub issued: u64,
}

/// On which side of a waiting request another joined it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Behind,
    Before,
}

/// An event's place in the line.
#[derive(Debug)]
enum Slot {
    Event(BlockEvent),
    Queued(Queued),
}

/// A request that was queued.
#[derive(Debug)]
struct Queued {
    event: BlockEvent,
    data: Transfer,
    /// Blocks that no command has taken.
    left: u64,
    joined: Option<Side>,
    /// Commands of which it is the oldest part, in order of issue.
    commands: VecDeque<Extent>,
    /// True if it is the oldest part of any.
    has_commands: bool,
}

/// Rewrites what was queued to what was issued.
#[derive(Debug, Default)]
pub(super) struct Merging {
    line: VecDeque<(Slot, Position)>,
    /// Number of the first slot.
    first: u64,
    /// Pieces of queued requests that no command has taken, with the number of the slot.
    pieces: Spans,
    /// Commands that have not completed.
    commands: Spans,
    next_command: u64,
    counts: LayerCounts,
}

impl Merging {
    /// Takes the next event, in order of time.
    pub fn observe(&mut self, event: BlockEvent, at: Position) {
        let Some(data) = event.data else { return self.pass(event, at) };
        let device = event.device;
        match event.stage {
            Stage::Queued => {
                self.counts.queued += 1;
                self.queue(event, data, at);
            }
            Stage::MergedBehind => self.join(device, data, Side::Behind),
            Stage::MergedBefore => self.join(device, data, Side::Before),
            Stage::Inserted => {
                let is_known = |spans: &Spans| !spans.sharing(device, data, |_| true).is_empty();
                if !is_known(&self.pieces) && !is_known(&self.commands) {
                    self.queue(event, data, at);
                }
            }
            Stage::Issued => {
                self.issue(device, data);
                self.pass(event, at);
            }
            Stage::Completed => {
                self.complete(device, data);
                self.pass(event, at);
            }
            Stage::Ended => self.pass(event, at),
        }
    }

    /// Counts so far; of merged requests, those that have left the line.
    pub fn counts(&self) -> LayerCounts {
        self.counts
    }

    /// The next event that waits for no other; any when `has_ended`.
    pub fn pop(&mut self, has_ended: bool) -> Option<(BlockEvent, Position)> {
        loop {
            let is_forced = has_ended || self.line.len() > LINE_MAX;
            let (slot, at) = self.line.front_mut()?;
            let at = *at;
            let Slot::Queued(queued) = slot else {
                self.first += 1;
                let (slot, _) = self.line.pop_front()?;
                let Slot::Event(event) = slot else { unreachable!("it was looked at") };
                return Some((event, at));
            };
            if queued.left > 0 {
                if !is_forced {
                    return None;
                }
                self.settle();
                continue;
            }
            if let Some(extent) = queued.commands.pop_front() {
                let data = Some(Transfer { extent, ..queued.data });
                return Some((BlockEvent { data, stage: Stage::Queued, ..queued.event }, at));
            }
            self.counts.merged += u64::from(!queued.has_commands);
            self.line.pop_front();
            self.first += 1;
        }
    }

    /// Puts an event into the line that stays as it is.
    fn pass(&mut self, event: BlockEvent, at: Position) {
        self.line.push_back((Slot::Event(event), at));
    }

    fn queue(&mut self, event: BlockEvent, data: Transfer, at: Position) {
        // The drive flushes first: that part waits for no command.
        if event.flushes {
            self.pass(BlockEvent { data: None, ..event }, at);
        }
        let event = BlockEvent { flushes: false, ..event };
        let number = self.first + self.line.len() as u64;
        self.pieces.insert(Place::new(event.device, data.op, data.start(), number), data.end());
        let blocks = data.extent.blocks.get();
        let commands = VecDeque::new();
        let queued =
            Queued { event, data, left: blocks, joined: None, commands, has_commands: false };
        self.line.push_back((Slot::Queued(queued), at));
    }

    /// Notes that the request of these blocks that was queued last has joined another one.
    fn join(&mut self, device: u32, data: Transfer, side: Side) {
        let youngest = self
            .pieces
            .same(device, data)
            .rfind(|place| self.queued(place.number).joined.is_none());
        if let Some(Place { number, .. }) = youngest {
            self.queued_mut(number).joined = Some(side);
        }
    }

    /// A command takes its blocks from those that were queued. One that takes none and is under way is issued
    /// again, after the drive was busy.
    fn issue(&mut self, device: u32, data: Transfer) {
        let is_under_way = self.commands.same(device, data).next().is_some();
        if !self.take(device, data) && is_under_way {
            return;
        }
        self.counts.issued += 1;
        if self.commands.len() == COMMANDS_MAX {
            self.commands.clear();
        }
        let place = Place::new(device, data.op, data.start(), self.next_command);
        self.commands.insert(place, data.end());
        self.next_command += 1;
    }

    fn complete(&mut self, device: u32, data: Transfer) {
        let commands = self.commands.sharing(device, data, |_| true);
        if commands.is_empty() {
            self.take(device, data);
        }
        commands.iter().for_each(|(place, _)| self.commands.remove(place));
    }

    /// Takes the blocks of a command from the pieces that have them; a block that several have, from the piece
    /// that begins first, of those the oldest. The oldest request that gives any represents the command.
    /// Returns whether one did.
    fn take(&mut self, device: u32, data: Transfer) -> bool {
        let (mut covered, end) = (data.start(), data.end());
        let mut oldest: Option<u64> = None;
        for (place, piece_end) in self.pieces.sharing(device, data, |_| true) {
            let (from, to) = (covered.max(place.start), end.min(piece_end));
            if from >= to {
                continue;
            }
            covered = to;
            self.pieces.remove(&place);
            if place.start < from {
                self.pieces.insert(place, from);
            }
            if to < piece_end {
                self.pieces.insert(place.from(to), piece_end);
            }
            self.queued_mut(place.number).left -= to - from;
            oldest = Some(oldest.map_or(place.number, |other| other.min(place.number)));
        }
        if let Some(number) = oldest {
            self.stand_for(number, data.extent);
        }
        oldest.is_some()
    }

    /// The queued request of this number becomes a request of these blocks.
    fn stand_for(&mut self, number: u64, extent: Extent) {
        let queued = self.queued_mut(number);
        let widened = queued.data.extent.widened || extent.widened;
        queued.commands.push_back(Extent { widened, ..extent });
        queued.has_commands = true;
    }

    /// Takes the rest of the first request of the line as issued, with all that has joined it.
    fn settle(&mut self) {
        let number = self.first;
        let Queued { event: BlockEvent { device, .. }, data, .. } = *self.queued(number);
        let own = self.pieces.sharing(device, data, |place| place.number == number);
        for (place, piece_end) in own {
            let (mut from, mut to) = (place.start, piece_end);
            self.give_up((place, piece_end));
            while let Some((joined, joined_end)) = self.joined_to(device, data, from, to) {
                (from, to) = (from.min(joined.start), to.max(joined_end));
                self.give_up((joined, joined_end));
            }
            let (start, blocks) = (VolumeBlock::new(from), Blocks::new(to - from));
            self.stand_for(number, Extent { start, blocks, widened: data.extent.widened });
        }
    }

    fn give_up(&mut self, (place, piece_end): Span) {
        self.pieces.remove(&place);
        self.queued_mut(place.number).left -= piece_end - place.start;
    }

    /// A piece that has joined what lies from `from` to `to`, if there is one.
    fn joined_to(&self, device: u32, data: Transfer, from: u64, to: u64) -> Option<Span> {
        let on = |span: &Span, side| self.queued(span.0.number).joined == Some(side);
        let behind = self.pieces.beginning_at(device, data.op, to).find(|it| on(it, Side::Behind));
        let mut before = self.pieces.ending_at(device, data.op, from);
        behind.or_else(|| before.find(|it| on(it, Side::Before)))
    }

    fn queued(&self, number: u64) -> &Queued {
        match &self.line[(number - self.first) as usize].0 {
            Slot::Queued(queued) => queued,
            Slot::Event(_) => unreachable!("a piece has the number of its request"),
        }
    }

    fn queued_mut(&mut self, number: u64) -> &mut Queued {
        match &mut self.line[(number - self.first) as usize].0 {
            Slot::Queued(queued) => queued,
            Slot::Event(_) => unreachable!("a piece has the number of its request"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Number;
    use freewheel_units::{Op, SimTime};
    use proptest::prelude::*;

    use Stage::{Completed, Inserted, Issued, MergedBefore, MergedBehind, Queued};

    fn event(stage: Stage, time: u64, start: u64, blocks: u64) -> BlockEvent {
        let number = |value| Number { name: "blocks", value };
        let extent = Extent::of_blocks(number(start), number(blocks)).unwrap();
        let data = Some(Transfer { op: Op::Write, extent, fua: false });
        BlockEvent { time: SimTime::from_ns(time), device: 0, stage, data, flushes: false }
    }

    /// A request: when it was queued, its first block, and the block behind it.
    type Request = (u64, u64, u64);

    fn queued(event: &BlockEvent) -> Option<Request> {
        let data = event.data.filter(|_| event.stage == Queued)?;
        Some((event.time.ns(), data.start(), data.end()))
    }

    /// The requests that come out of the line, and what was counted.
    fn requests(events: &[BlockEvent]) -> (Vec<Request>, LayerCounts) {
        let mut merging = Merging::default();
        let mut out = Vec::new();
        for event in events {
            merging.observe(*event, Position::default());
            out.extend(std::iter::from_fn(|| merging.pop(false)));
        }
        out.extend(std::iter::from_fn(|| merging.pop(true)));
        assert!(out.is_sorted_by_key(|(event, _)| event.time));
        let requests = out.iter().filter_map(|(event, _)| queued(event)).collect();
        (requests, merging.counts())
    }

    #[test]
    fn command_is_request_from_first_part() {
        let events = [
            event(Queued, 1, 8, 8),
            event(Queued, 2, 0, 8),
            event(Queued, 3, 64, 8),
            event(Queued, 4, 16, 8),
            event(MergedBehind, 4, 16, 8),
            event(Issued, 5, 0, 24),
            event(Completed, 9, 0, 24),
        ];
        let (requests, counts) = requests(&events);
        assert_eq!(requests, [(1, 0, 24), (3, 64, 72)]);
        assert_eq!(counts, LayerCounts { queued: 4, merged: 2, issued: 1 });
    }

    #[test]
    fn split_request_becomes_commands() {
        let events = [event(Queued, 1, 0, 16), event(Issued, 2, 8, 8), event(Issued, 3, 0, 8)];
        assert_eq!(requests(&events).0, [(1, 8, 16), (1, 0, 8)]);
        // A part that was never issued is a request, too.
        assert_eq!(requests(&events[..2]).0, [(1, 8, 16), (1, 0, 8)]);
    }

    #[test]
    fn waiting_at_end_keeps_merged_size() {
        let events = [
            event(Queued, 1, 8, 8),
            event(Queued, 2, 16, 8),
            event(MergedBehind, 2, 16, 8),
            event(Queued, 3, 0, 8),
            event(MergedBefore, 3, 0, 8),
            // It adjoins, and was not merged.
            event(Queued, 4, 24, 8),
        ];
        let (requests, counts) = requests(&events);
        assert_eq!(requests, [(1, 0, 24), (4, 24, 32)]);
        assert_eq!(counts, LayerCounts { queued: 4, merged: 2, issued: 0 });
    }

    #[test]
    fn command_issued_again_counts_once() {
        let events = [
            event(Queued, 1, 0, 8),
            event(Issued, 2, 0, 8),
            event(Issued, 3, 0, 8),
            event(Completed, 4, 0, 8),
            event(Queued, 5, 0, 8),
            event(Issued, 6, 0, 8),
        ];
        let (requests, counts) = requests(&events);
        assert_eq!(requests, [(1, 0, 8), (5, 0, 8)]);
        assert_eq!(counts, LayerCounts { queued: 2, merged: 0, issued: 2 });
        assert_eq!(self::requests(&events[..4]).1.issued, 1);
    }

    #[test]
    fn completion_without_issue_is_own_request() {
        // A later command must not take the first request, whose issue was lost.
        let events = [
            event(Queued, 1, 0, 8),
            event(Completed, 2, 0, 8),
            event(Queued, 3, 0, 8),
            event(Queued, 4, 8, 8),
            event(Issued, 5, 0, 16),
        ];
        assert_eq!(requests(&events).0, [(1, 0, 8), (3, 0, 16)]);
    }

    #[test]
    fn request_unseen_queued_exists_when_inserted() {
        let events = [
            event(Inserted, 1, 0, 8),
            event(Queued, 2, 8, 8),
            event(MergedBehind, 2, 8, 8),
            event(Issued, 3, 0, 16),
            event(Inserted, 4, 0, 16),
        ];
        let (requests, counts) = requests(&events);
        assert_eq!(requests, [(1, 0, 16)]);
        assert_eq!(counts, LayerCounts { queued: 1, merged: 1, issued: 1 });
    }

    #[test]
    fn flush_with_data_waits_for_nothing() {
        let flushing = BlockEvent { flushes: true, ..event(Queued, 1, 0, 8) };
        let mut merging = Merging::default();
        merging.observe(flushing, Position::default());
        let (flush, _) = merging.pop(false).unwrap();
        assert!(flush.flushes && flush.data.is_none());
        assert!(merging.pop(false).is_none());
    }

    #[test]
    fn unmatched_events_do_not_pile_up() {
        let mut merging = Merging::default();
        for number in 0..3 * LINE_MAX as u64 {
            merging.observe(event(Queued, number, number * 16, 8), Position::default());
            merging.observe(event(Issued, number, number * 16 + 8, 8), Position::default());
            while merging.pop(false).is_some() {}
            assert!(merging.line.len() <= LINE_MAX && merging.commands.len() <= COMMANDS_MAX);
        }
        assert!(merging.pieces.len() <= LINE_MAX);
    }

    /// A request in the slow way: when it was queued, its device, the blocks that no command has taken, on
    /// which side it has joined another, and its commands.
    struct Slow {
        time: u64,
        device: u32,
        left: Vec<u64>,
        joined: Option<Side>,
        commands: Vec<(u64, u64)>,
    }

    impl Slow {
        /// The beginning of the piece around `block`.
        fn piece_begin(&self, block: u64) -> u64 {
            let mut begin = block;
            while begin > 0 && self.left.contains(&(begin - 1)) {
                begin -= 1;
            }
            begin
        }

        /// Pieces of the request, ascending.
        fn pieces(&self) -> Vec<(u64, u64)> {
            let begins = self.left.iter().filter(|&&block| self.piece_begin(block) == block);
            let end = |begin: u64| (begin..).find(|block| !self.left.contains(block)).unwrap();
            begins.map(|&begin| (begin, end(begin))).collect()
        }

        fn drop_piece(&mut self, (begin, end): (u64, u64)) {
            self.left.retain(|block| !(begin..end).contains(block));
        }
    }

    /// Block by block: a command takes each of its blocks from the request that has it, or from the oldest
    /// piece that is just the command.
    fn take(slow: &mut [Slow], device: u32, (begin, end): (u64, u64)) -> bool {
        let of_device = |one: &Slow| one.device == device;
        let just =
            slow.iter().position(|one| of_device(one) && one.pieces().contains(&(begin, end)));
        let mut givers = Vec::new();
        for block in begin..end {
            let has = |at: &usize| of_device(&slow[*at]) && slow[*at].left.contains(&block);
            let all = (0..slow.len()).filter(has);
            // As they were before this command.
            let first = all.min_by_key(|&at| (slow[at].piece_begin(block), at));
            givers.extend(just.or(first).map(|at| (at, block)));
        }
        for (at, block) in &givers {
            slow[*at].left.retain(|other| other != block);
        }
        let oldest = givers.iter().map(|(at, _)| *at).min();
        if let Some(at) = oldest {
            slow[at].commands.push((begin, end));
        }
        oldest.is_some()
    }

    /// Requests that join the range from `begin` to `end`.
    fn joined(slow: &[Slow], device: u32, (begin, end): (u64, u64)) -> Option<(usize, (u64, u64))> {
        let pieces = slow.iter().enumerate().filter(|(_, one)| one.device == device);
        let pieces = pieces.flat_map(|(at, one)| one.pieces().into_iter().map(move |it| (at, it)));
        let on = |at: usize, side| slow[at].joined == Some(side);
        let behind = |&(at, it): &(usize, (u64, u64))| it.0 == end && on(at, Side::Behind);
        let before = |&(at, it): &(usize, (u64, u64))| it.1 == begin && on(at, Side::Before);
        let all: Vec<_> = pieces.collect();
        let key = |&(at, it): &(usize, (u64, u64))| (it.0, at);
        let behind = all.iter().copied().filter(behind).min_by_key(key);
        behind.or_else(|| all.iter().copied().filter(before).min_by_key(key))
    }

    fn naive(events: &[BlockEvent]) -> (Vec<Request>, u64) {
        let mut slow: Vec<Slow> = Vec::new();
        let mut commands: Vec<(u32, (u64, u64))> = Vec::new();
        let mut issued = 0;
        for event in events {
            let (data, device) = (event.data.unwrap(), event.device);
            let (begin, end) = (data.start(), data.end());
            let shares = |&(other, (from, to)): &(u32, (u64, u64))| {
                other == device && from < end && begin < to
            };
            match event.stage {
                Queued => slow.push(Slow {
                    time: event.time.ns(),
                    device,
                    left: (begin..end).collect(),
                    joined: None,
                    commands: Vec::new(),
                }),
                MergedBehind | MergedBefore => {
                    let side =
                        if event.stage == MergedBehind { Side::Behind } else { Side::Before };
                    let fits = |one: &&mut Slow| {
                        let is_same = one.pieces().contains(&(begin, end));
                        one.device == device && is_same && one.joined.is_none()
                    };
                    if let Some(one) = slow.iter_mut().rev().find(fits) {
                        one.joined = Some(side);
                    }
                }
                Issued => {
                    let took = take(&mut slow, device, (begin, end));
                    if took || !commands.contains(&(device, (begin, end))) {
                        commands.push((device, (begin, end)));
                        issued += 1;
                    }
                }
                Completed => {
                    let just = commands.iter().position(|it| *it == (device, (begin, end)));
                    if let Some(at) = just {
                        commands.remove(at);
                    } else if commands.iter().any(shares) {
                        commands.retain(|it| !shares(it));
                    } else {
                        take(&mut slow, device, (begin, end));
                    }
                }
                _ => unreachable!(),
            }
        }
        for at in 0..slow.len() {
            for piece in slow[at].pieces() {
                let mut whole = piece;
                slow[at].drop_piece(piece);
                while let Some((other, piece)) = joined(&slow, slow[at].device, whole) {
                    whole = (whole.0.min(piece.0), whole.1.max(piece.1));
                    slow[other].drop_piece(piece);
                }
                slow[at].commands.push(whole);
            }
        }
        let of = |one: Slow| {
            let time = one.time;
            one.commands.into_iter().map(move |(begin, end)| (time, begin, end))
        };
        (slow.into_iter().flat_map(of).collect(), issued)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn merging_matches_block_model(
            steps in prop::collection::vec((0u8..9, 0u32..2, 0u64..12, 1u64..7), 0..40),
        ) {
            let event = |(time, &(kind, device, start, blocks)): (usize, &(u8, u32, u64, u64))| {
                let stage = match kind {
                    0..4 => Queued,
                    4 => MergedBehind,
                    5 => MergedBefore,
                    6 | 7 => Issued,
                    _ => Completed,
                };
                BlockEvent { device, ..event(stage, time as u64, start, blocks) }
            };
            let events: Vec<BlockEvent> = steps.iter().enumerate().map(event).collect();
            let (requests, counts) = requests(&events);
            let (expected, issued) = naive(&events);
            prop_assert_eq!((&requests, counts.issued), (&expected, issued));
            let queued = events.iter().filter(|event| event.stage == Queued).count() as u64;
            let with_request = requests.iter().map(|it| it.0).collect::<std::collections::BTreeSet<_>>();
            prop_assert_eq!(counts.queued, queued);
            prop_assert_eq!(counts.merged, queued - with_request.len() as u64);
        }
    }
}
