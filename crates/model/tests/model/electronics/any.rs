//! Properties that hold for any drive, electronics and commands.

use std::cmp::Reverse;
use std::sync::Arc;

use freewheel_model::drive::spec::ByOp;
use freewheel_model::drive::{Drive, Position, Target};
use freewheel_model::electronics::DriveUnit;
use freewheel_model::electronics::spec::{AfterOp, BusSpec, ElectronicsSpec, OverheadSpec};
use freewheel_model::sched::{CommandMark, PolicySpec};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use super::hand::*;
use freewheel_testkit::drives::any_drive;
use freewheel_testkit::electronics::*;

/// Commands in order of arrival, some of them at the same time, near each other often enough for
/// hits and overlaps.
pub fn any_wishes(prng: &mut Prng, drive: &Drive, count: usize, flushes: bool) -> Vec<Wish> {
    let capacity = drive.blocks().get();
    let (mut arrival, mut start) = (SimTime::ZERO, 0);
    let busy = prng.chance(0.5);
    let wish = |_| {
        arrival += up_to_us(prng, if busy { 5000 } else { 40_000 });
        start = match prng.below(3) {
            0 => prng.below(capacity),
            1 => (start + prng.below(24)) % capacity,
            _ => start.saturating_sub(prng.below(24)),
        };
        let blocks = 1 + prng.below((capacity - start).min(16)) as u32;
        let op = match prng.below(10) {
            0 if flushes => Op::Flush,
            0..=4 => Op::Write,
            _ => Op::Read,
        };
        Wish { arrival, op, start, blocks, fua: false, mark: CommandMark::None }
    };
    (0..count).map(wish).collect()
}

/// Every nanosecond in which a command is inside; a flush takes no place.
fn union_ns(wishes: &[Wish], outcomes: &[Outcome]) -> u64 {
    let commands = wishes.iter().zip(outcomes).filter(|(wish, _)| wish.op != Op::Flush);
    let span = |(_, o): (&Wish, &Outcome)| (o.submitted.ns(), o.served.end.ns());
    let mut spans: Vec<(u64, u64)> = commands.map(span).collect();
    spans.sort_unstable();
    let (mut sum, mut covered) = (0, 0);
    for (begin, end) in spans {
        sum += end.saturating_sub(begin.max(covered));
        covered = covered.max(end);
    }
    sum
}

/// First come, first served, one step after the other; no buffer.
struct Sequential<'a> {
    drive: &'a Drive,
    overheads: OverheadSpec,
    bus: BusSpec,
    spans: Vec<(u64, u64)>,
}

impl Sequential<'_> {
    fn ends(&mut self, wishes: &[Wish], depth: usize) -> Vec<u64> {
        let (mut submitted, mut ready, mut media_end) = (0, 0, 0);
        let (mut head, mut before) = (Position::default(), Op::Read);
        let mut ends: Vec<u64> = Vec::new();
        for wish in wishes {
            // The last of those inside but one leaves a place.
            let mut latest = ends.clone();
            latest.sort_unstable_by_key(|&end| Reverse(end));
            let place = latest.get(depth - 1).copied().unwrap_or(0);
            submitted = wish.arrival.ns().max(submitted).max(place);
            let target =
                self.drive.target(Lbn::new(wish.start), Blocks::new(wish.blocks.into()), wish.op);
            ready = ready.max(submitted) + self.overhead_ns(wish.op, before);
            let begin = ready.max(media_end);
            let access = self.drive.media_access(SimTime::from_ns(begin), head, &target);
            media_end = begin + access.total().ns();
            if wish.op == Op::Write {
                media_end +=
                    self.turns_lost_ns(wish, [ready, begin, media_end], access.transfer.ns());
                ends.push(media_end + self.overheads.write_completion.ns());
            } else {
                ends.push(self.end_of_read_ns(wish, begin, media_end, access.transfer.ns()));
            }
            (head, before) = (access.end, wish.op);
        }
        ends
    }

    fn overhead_ns(&self, op: Op, before: Op) -> u64 {
        let (by, disconnect) = match op {
            Op::Write => (self.overheads.write_miss, AfterOp::both(self.bus.write_disconnect)),
            _ => (self.overheads.read_miss, self.bus.read_disconnect),
        };
        let after = |times: AfterOp| {
            if before == Op::Write { times.after_write } else { times.after_read }
        };
        (after(by) + after(disconnect)).ns()
    }

    /// Turns until every block of a write is there when it passes: tried one after the other.
    fn turns_lost_ns(
        &mut self,
        wish: &Wish,
        [ready, begin, media_end]: [u64; 3],
        transfer: u64,
    ) -> u64 {
        let of_block = self.bus.write_block_time.unwrap_or(self.bus.block_time).ns();
        let blocks = u64::from(wish.blocks);
        let moving = self.bus.arbitration.ns() + of_block * blocks;
        let first = self.bus_from(begin, moving) + moving - of_block * (blocks - 1);
        let passes = media_end - transfer;
        let period = self.drive.rotation().period().ns();
        let is_there = |lost: u64| {
            (0..blocks).all(|at| {
                // They begin to come when the command is ready.
                let there = (first + at * of_block).saturating_sub(begin - ready).max(begin);
                there <= passes + lost + transfer * at / blocks
            })
        };
        (0..).map(|turns| turns * period).find(|&lost| is_there(lost)).unwrap()
    }

    /// Time at which the last data are across.
    fn end_of_read_ns(&mut self, wish: &Wish, begin: u64, media_end: u64, transfer: u64) -> u64 {
        let moving = (self.bus.arbitration + self.bus.block_time * u64::from(wish.blocks)).ns();
        // Busy from the first block on, or with the last alone.
        let all = moving + self.bus.reconnect.ns();
        let end = media_end + all.saturating_sub(transfer).max(self.bus.block_time.ns());
        let length = all.min(end - begin);
        let late = self.bus_from(end - length, length) - (end - length);
        end + late + self.overheads.read_completion.ns()
    }

    /// The first time from `from` on at which the bus is free that long.
    fn bus_from(&mut self, from: u64, length: u64) -> u64 {
        if length == 0 {
            return from;
        }
        let free = |&at: &u64| self.spans.iter().all(|&(s, e)| at + length <= s || e <= at);
        let later = self.spans.iter().map(|&(_, end)| end).filter(|&end| end > from);
        let start = later.chain([from]).filter(free).min().unwrap();
        self.spans.push((start, start + length));
        start
    }
}

/// The order in which a drive serves reads that are all submitted as they arrive: of those that are
/// ready, the one reached first.
fn order_by_positioning(drive: &Drive, wishes: &[Wish], overhead: SimDuration) -> Vec<u64> {
    let (mut ready, mut free, mut head) = (SimTime::ZERO, SimTime::ZERO, Position::default());
    let mut waiting: Vec<(usize, SimTime, Target)> = Vec::new();
    for (index, wish) in wishes.iter().enumerate() {
        ready = ready.max(wish.arrival) + overhead;
        let blocks = Blocks::new(wish.blocks.into());
        waiting.push((index, ready, drive.target(Lbn::new(wish.start), blocks, Op::Read)));
    }
    let mut ends = vec![0; wishes.len()];
    while let Some(first) = waiting.iter().map(|&(_, ready, _)| ready).min() {
        let now = free.max(first);
        let able = (0..waiting.len()).filter(|&place| waiting[place].1 <= now);
        let reach = |&place: &usize| drive.positioning(now, head, &waiting[place].2).total();
        let (index, _, target) = waiting.remove(able.min_by_key(reach).unwrap());
        let access = drive.media_access(now, head, &target);
        (free, head) = (now + access.total(), access.end);
        ends[index] = free.ns();
    }
    ends
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn stage_times_add_up_for_any_drive((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "commands");
        let spec = any_electronics(prng);
        let mut unit = DriveUnit::new(&Arc::new(drive.clone()), &spec).unwrap();
        let wishes = any_wishes(prng, &drive, 80, true);
        // Each is done once, and no event lies in the past: `run` sees to that.
        let outcomes = run(&mut unit, &wishes);
        for (wish, Outcome { submitted, served: s }) in wishes.iter().zip(&outcomes) {
            let sum = s.overhead + s.queue + s.seek + s.rotate + s.transfer + s.bus;
            prop_assert_eq!(sum, s.end - *submitted, "{:?}", wish);
        }
        let depth = spec.queue.map_or(1, |queue| queue.depth as usize);
        for (wish, Outcome { submitted, .. }) in wishes.iter().zip(&outcomes) {
            let inside = |(w, o): &(&Wish, &Outcome)| {
                w.op != Op::Flush && o.submitted <= *submitted && *submitted < o.served.end
            };
            let inside = wishes.iter().zip(&outcomes).filter(inside).count();
            prop_assert!(inside <= depth || wish.op == Op::Flush, "{} inside", inside);
        }
        prop_assert!(unit.next_event().is_none());
    }

    #[test]
    fn drive_busy_time_bounded_by_work((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "busy");
        let mut unit = DriveUnit::new(&Arc::new(drive.clone()), &any_electronics(prng)).unwrap();
        let wishes = any_wishes(prng, &drive, 80, true);
        let outcomes = run(&mut unit, &wishes);
        let commands_ns = union_ns(&wishes, &outcomes);
        let visits = outcomes.iter().filter(|outcome| !outcome.served.hit);
        let visits_ns: u64 = visits.map(|outcome| outcome.served.head().ns()).sum();
        let (busy_ns, head_ns) = (unit.busy().ns(), unit.head_time().total().ns());
        // What the head did for no command: writing back, and reading ahead what was then asked for.
        let own_ns = head_ns - visits_ns;
        prop_assert!(own_ns >= unit.destaging().ns());
        prop_assert!(busy_ns >= commands_ns, "{busy_ns} of {commands_ns}");
        prop_assert!(busy_ns <= commands_ns + own_ns, "{busy_ns} of {commands_ns} and {own_ns}");
        prop_assert!(head_ns <= busy_ns, "the head {head_ns} of {busy_ns}");
        prop_assert!(unit.bus_used().ns() <= busy_ns, "the bus {:?} of {busy_ns}", unit.bus_used());
        let processing = unit.processing_time();
        prop_assert!(processing.ns() <= busy_ns, "electronics {processing:?} of {busy_ns}");
    }

    #[test]
    fn single_commands_same_by_call_and_events((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "one at a time");
        let spec = ElectronicsSpec { queue: None, ..any_electronics(prng) };
        let drive = Arc::new(drive);
        let wishes = any_wishes(prng, &drive, 60, false);
        let outcomes = run(&mut DriveUnit::new(&drive, &spec).unwrap(), &wishes);
        let mut unit = DriveUnit::new(&drive, &spec).unwrap();
        for (wish, outcome) in wishes.iter().zip(outcomes) {
            let served = unit.serve(outcome.submitted, wish.op, Lbn::new(wish.start), wish.blocks);
            prop_assert_eq!(served, outcome.served);
        }
    }

    #[test]
    fn unbuffered_fcfs_follows_plain_recurrence((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "recurrence");
        let depth = 1 + prng.below(6) as u32;
        let bus = BusSpec { hold: false, read_water_mark: 0, ..any_bus(prng) };
        let overheads = any_overheads(prng);
        let spec = ElectronicsSpec {
            overheads: Some(overheads),
            bus: Some(bus),
            ..queued(depth, PolicySpec::Fcfs)
        };
        let wishes = any_wishes(prng, &drive, 60, false);
        let outcomes = run(&mut DriveUnit::new(&Arc::new(drive.clone()), &spec).unwrap(), &wishes);
        let mut oracle = Sequential { drive: &drive, overheads, bus, spans: Vec::new() };
        let ends: Vec<u64> = outcomes.iter().map(|outcome| outcome.served.end.ns()).collect();
        prop_assert_eq!(ends, oracle.ends(&wishes, depth as usize));
    }

    #[test]
    fn ready_command_reached_first_is_chosen((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "ready");
        let overhead = up_to_us(prng, 2000);
        let drive = drive.with_overhead(ByOp::default());
        let read_miss = AfterOp::both(overhead);
        let spec = ElectronicsSpec {
            overheads: Some(OverheadSpec { read_miss, ..OverheadSpec::default() }),
            ..queued(60, PolicySpec::Sptf)
        };
        let mut wishes = any_wishes(prng, &drive, 60, false);
        wishes.iter_mut().for_each(|wish| wish.op = Op::Read);
        let outcomes = run(&mut DriveUnit::new(&Arc::new(drive.clone()), &spec).unwrap(), &wishes);
        let ends: Vec<u64> = outcomes.iter().map(|outcome| outcome.served.end.ns()).collect();
        prop_assert_eq!(ends, order_by_positioning(&drive, &wishes, overhead));
    }

    #[test]
    fn drive_without_electronics_equals_mechanics((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "plain");
        let mut unit = DriveUnit::new(&Arc::new(drive.clone()), &ElectronicsSpec::default()).unwrap();
        let (mut now, mut head) = (SimTime::ZERO, Default::default());
        for _ in 0..40 {
            let start = prng.below(drive.blocks().get());
            let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
            let target = drive.target(Lbn::new(start), Blocks::new(1), op);
            let access = drive.access(now, head, &target);
            let served = unit.serve(now, op, Lbn::new(start), 1);
            prop_assert_eq!(served.end, now + access.total());
            (now, head) = (served.end, access.end);
        }
    }
}
