//! NCQ priority and Command Duration Limits: cases by hand, and the choice against its rule.

use std::sync::Arc;

use freewheel_model::drive::spec::ByOp;
use freewheel_model::drive::{Drive, Position, Target};
use freewheel_model::electronics::LimitEnd::{self, Aborted, Kept, Missed};
use freewheel_model::electronics::spec::{AfterOp, ElectronicsSpec, OverheadSpec};
use freewheel_model::electronics::{DriveUnit, DurationLimit, DurationLimitsSpec, LimitPolicy};
use freewheel_model::sched::{CommandMark, PolicySpec};
use freewheel_testkit::drives::any_drive;
use freewheel_testkit::electronics::{any_electronics, up_to_us};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use super::any::any_wishes;
use super::hand::*;

fn marked(wish: Wish, mark: CommandMark) -> Wish {
    Wish { mark, ..wish }
}

fn waits_at_most(time_us: u64, policy: LimitPolicy) -> DurationLimit {
    DurationLimit { inactive: Some(us(time_us)), active: None, policy }
}

fn works_at_most(time_us: u64, policy: LimitPolicy) -> DurationLimit {
    DurationLimit { inactive: None, active: Some(us(time_us)), policy }
}

/// A queue of three under SPTF, with one descriptor for reads.
fn limited(limit: DurationLimit, lead: Option<SimDuration>) -> ElectronicsSpec {
    let limits = DurationLimitsSpec { read: vec![limit], write: Vec::new(), lead };
    ElectronicsSpec { duration_limits: Some(limits), ..queued(3, PolicySpec::Sptf) }
}

/// Reads of blocks 90, 50 and 10, of which the first names a descriptor.
fn three_reads() -> [Wish; 3] {
    let first = marked(reads(0, 90, 1), CommandMark::DurationLimit(1));
    [first, reads(0, 50, 1), reads(0, 10, 1)]
}

fn ends_and_limits(spec: &ElectronicsSpec, wishes: &[Wish]) -> Vec<(u64, LimitEnd)> {
    let outcomes = run_with(spec, wishes);
    let end = |o: &Outcome| (o.served.end.ns() / 1000, o.served.limit);
    outcomes.iter().map(end).collect()
}

#[test]
fn command_near_limit_precedes_nearer_blocks() {
    let spec = limited(waits_at_most(2000, LimitPolicy::Complete), Some(us(3000)));
    // Block 90 comes by at 9.0 ms, block 10 in the next turn, block 50 behind it.
    let expected = [(9100, Kept), (15_100, Kept), (11_100, Kept)];
    assert_eq!(ends_and_limits(&spec, &three_reads()), expected);
    // The longest seek and a turn are 11 ms.
    let spec = limited(waits_at_most(2000, LimitPolicy::Complete), None);
    assert_eq!(ends_and_limits(&spec, &three_reads()), expected);
    // After block 10, at 1.1 ms, the limit is near.
    let later = limited(waits_at_most(11_001, LimitPolicy::Complete), None);
    let then = [(9100, Kept), (15_100, Kept), (1100, Kept)];
    assert_eq!(ends_and_limits(&later, &three_reads()), then);
    let later = limited(waits_at_most(16_101, LimitPolicy::Complete), None);
    let by_position = [(9100, Kept), (5100, Kept), (1100, Kept)];
    assert_eq!(ends_and_limits(&later, &three_reads()), by_position);
}

/// Two reads that are due are always at the drive, as a scrub's with two outstanding.
#[test]
fn command_without_limit_is_not_starved() {
    let spec = limited(waits_at_most(2000, LimitPolicy::Complete), None);
    let due = |time_us, start| marked(reads(time_us, start, 1), CommandMark::DurationLimit(1));
    // Each comes as one before it ends.
    let wishes = [
        reads(0, 50, 1),
        due(0, 10),
        due(0, 20),
        due(1100, 30),
        due(2100, 40),
        due(3100, 60),
        due(5100, 70),
    ];
    let expected = [5100, 1100, 2100, 3100, 14_100, 16_100, 17_100];
    assert_eq!(ends_us(&run_with(&spec, &wishes)), expected);
}

#[test]
fn command_past_limit_completes_or_aborts() {
    // Without a lead the limit is found out too late, at 5.1 ms.
    let lead = Some(us(1));
    let complete = limited(waits_at_most(2000, LimitPolicy::Complete), lead);
    let missed = [(9100, Missed), (5100, Kept), (1100, Kept)];
    assert_eq!(ends_and_limits(&complete, &three_reads()), missed);
    let abort = limited(waits_at_most(2000, LimitPolicy::Abort), lead);
    let aborted = [(2000, Aborted), (5100, Kept), (1100, Kept)];
    assert_eq!(ends_and_limits(&abort, &three_reads()), aborted);
    // One command at the drive waits for none.
    let alone = ElectronicsSpec { queue: None, ..abort };
    assert_eq!(ends_and_limits(&alone, &three_reads())[0], (9100, Kept));
}

#[test]
fn command_too_slow_ends_head_finishes_access() {
    let wishes = [marked(reads(0, 50, 1), CommandMark::DurationLimit(1)), reads(0, 80, 1)];
    let abort = limited(works_at_most(3000, LimitPolicy::Abort), None);
    // Block 50 is under the head from 5.0 to 5.1 ms at any limit, and block 80 at 8.0.
    assert_eq!(ends_and_limits(&abort, &wishes), [(3000, Aborted), (8100, Kept)]);
    let complete = limited(works_at_most(3000, LimitPolicy::Complete), None);
    assert_eq!(ends_and_limits(&complete, &wishes), [(5100, Missed), (8100, Kept)]);
}

#[test]
fn write_waiting_for_room_ends_at_limit() {
    let mut spec = electronics();
    spec.queue = Some(queue(8, PolicySpec::Fcfs));
    let write = vec![waits_at_most(1000, LimitPolicy::Abort)];
    spec.duration_limits = Some(DurationLimitsSpec { write, ..DurationLimitsSpec::default() });
    // Two segments take writes, and the first destage takes a turn and more.
    let far = |at: u64| writes(0, 2000 * at + 99, 100);
    let third = marked(far(3), CommandMark::DurationLimit(1));
    let outcomes = run_with(&spec, &[far(1), far(2), third]);
    let served = outcomes[2].served;
    // Processed in 30 us, and 1 ms of waiting.
    assert_eq!((served.limit, served.end), (Aborted, at(1030)));
    assert_eq!((served.overhead, served.queue), (us(30), us(1000)));
}

#[test]
fn high_priority_first_until_others_aged() {
    let high = |start| marked(reads(0, start, 1), CommandMark::HighPriority);
    let wishes = [reads(0, 10, 1), high(50), high(60), high(70)];
    let ends = |first: Option<SimDuration>| {
        let mut spec = queued(4, PolicySpec::Fcfs);
        spec.queue.as_mut().unwrap().high_priority_first = first;
        ends_us(&run_with(&spec, &wishes))
    };
    // A drive that does not look at priorities.
    assert_eq!(ends(None), [1100, 5100, 6100, 7100]);
    // At 5.1 ms block 10 has waited for less than 5.5 ms, at 6.1 for more.
    assert_eq!(ends(Some(us(5500))), [11_100, 5100, 6100, 17_100]);
    assert_eq!(ends(Some(SimDuration::from_secs(1))), [11_100, 5100, 6100, 7100]);
}

#[test]
fn descriptor_unknown_to_drive_is_no_limit() {
    let abort = limited(waits_at_most(1, LimitPolicy::Abort), None);
    let wishes = three_reads().map(|wish| marked(wish, CommandMark::DurationLimit(2)));
    assert_eq!(ends_us(&run_with(&abort, &wishes)), [9100, 5100, 1100]);
    let without = queued(3, PolicySpec::Sptf);
    assert_eq!(ends_us(&run_with(&without, &three_reads())), [9100, 5100, 1100]);
}

#[test]
fn limits_impossible_refused_with_key() {
    let refused = |limits: DurationLimitsSpec| {
        let mut spec = drive_spec();
        spec.electronics.duration_limits = Some(limits);
        Drive::build(&spec).unwrap_err().key
    };
    let none = DurationLimitsSpec::default;
    let eight = vec![waits_at_most(1, LimitPolicy::Abort); 8];
    let key = "electronics.duration_limits.write";
    assert_eq!(refused(DurationLimitsSpec { write: eight, ..none() }), key);
    let read = vec![DurationLimit::default()];
    assert_eq!(refused(DurationLimitsSpec { read, ..none() }), "electronics.duration_limits.read");
    let zero = vec![waits_at_most(0, LimitPolicy::Abort)];
    assert_eq!(refused(DurationLimitsSpec { write: zero, ..none() }), key);
    let lead = Some(SimDuration::from_secs(3601));
    assert_eq!(refused(DurationLimitsSpec { lead, ..none() }), "electronics.duration_limits.lead");
}

fn any_limits(prng: &mut Prng) -> DurationLimitsSpec {
    let mut descriptors = || -> Vec<DurationLimit> {
        let count = 1 + prng.below(7);
        let any = |_| {
            let mut time = || SimDuration::from_us(1 + prng.below(60_000));
            let (inactive, active) = (time(), time());
            let policy = if prng.chance(0.5) { LimitPolicy::Abort } else { LimitPolicy::Complete };
            let inactive = Some(inactive).filter(|_| prng.chance(0.8));
            let active = Some(active).filter(|_| inactive.is_none() || prng.chance(0.3));
            DurationLimit { inactive, active, policy }
        };
        (0..count).map(any).collect()
    };
    let (read, write) = (descriptors(), descriptors());
    DurationLimitsSpec { read, write, lead: prng.chance(0.7).then(|| up_to_us(prng, 20_000)) }
}

/// Names descriptors that exist and some that do not, priorities, and nothing.
fn mark_any(prng: &mut Prng, wishes: &mut [Wish]) {
    for wish in wishes {
        wish.mark = match prng.below(3) {
            0 => CommandMark::None,
            1 => CommandMark::HighPriority,
            _ => CommandMark::DurationLimit(1 + prng.below(8) as u8),
        };
    }
}

/// A command that waits, for the oracle.
struct Case {
    index: usize,
    submitted: SimTime,
    ready: SimTime,
    limit: Option<DurationLimit>,
    due: Option<SimTime>,
    high: bool,
}

fn target_of(drive: &Drive, wish: &Wish) -> Target {
    let Wish { op, start, blocks, .. } = *wish;
    drive.target(Lbn::new(start), Blocks::new(blocks.into()), op)
}

/// The place in `waiting` of the command that goes next: all of them are looked at.
fn chosen(
    drive: &Drive,
    (now, head): (SimTime, Position),
    spec: &ElectronicsSpec,
    wishes: &[Wish],
    waiting: &[Case],
) -> usize {
    let queue = spec.queue.unwrap();
    let lead = spec.duration_limits.as_ref().unwrap().lead.unwrap_or_else(|| {
        let farthest = drive.seek().distance_max();
        SimDuration::from_ns(drive.seek().time_ns(Op::Write, farthest, true))
            + drive.rotation().period()
    });
    let able = || (0..waiting.len()).filter(|&at| waiting[at].ready <= now);
    let urgent = able().filter(|&at| waiting[at].due.is_some_and(|due| due <= now + lead));
    if let Some(urgent) = urgent.min_by_key(|&at| (waiting[at].due, waiting[at].index)) {
        return urgent;
    }
    let of = |high: bool| able().filter(move |&at| waiting[at].high == high);
    let longest = queue.high_priority_first.unwrap_or_default();
    let is_old = of(false).any(|at| waiting[at].submitted + longest <= now);
    let has_high = of(true).next().is_some();
    let by_policy = |&at: &usize| {
        let target = target_of(drive, &wishes[waiting[at].index]);
        let by_position = queue.scheduler == PolicySpec::Sptf;
        let reach = by_position.then(|| drive.positioning(now, head, &target).total());
        (reach, waiting[at].index)
    };
    of(has_high && !is_old).min_by_key(by_policy).expect("a command is ready")
}

/// Ends of commands that a drive without a buffer takes as they come: at each decision all that wait are
/// looked at.
fn ends_by_rule(
    drive: &Drive,
    spec: &ElectronicsSpec,
    overhead: SimDuration,
    wishes: &[Wish],
) -> Vec<(SimTime, LimitEnd)> {
    let limits = spec.duration_limits.as_ref().unwrap();
    let high_first = spec.queue.unwrap().high_priority_first;
    let mut ready = SimTime::ZERO;
    let mut waiting: Vec<Case> = Vec::new();
    for (index, wish) in wishes.iter().enumerate() {
        ready = ready.max(wish.arrival) + overhead;
        let table = if wish.op == Op::Write { &limits.write } else { &limits.read };
        let limit = match wish.mark {
            CommandMark::DurationLimit(number) => table.get(usize::from(number) - 1).copied(),
            _ => None,
        };
        let due = limit.and_then(|limit| Some(wish.arrival + overhead + limit.inactive?));
        let high = high_first.is_some() && wish.mark == CommandMark::HighPriority;
        waiting.push(Case { index, submitted: wish.arrival, ready, limit, due, high });
    }
    let mut ends = vec![(SimTime::ZERO, Kept); wishes.len()];
    let (mut free, mut head) = (SimTime::ZERO, Position::default());
    while let Some(first) = waiting.iter().map(|case| case.ready).min() {
        let now = free.max(first);
        // What reaches its limit before this decision is gone, and the first that is ready may be another.
        let gone = waiting.iter().position(|case| {
            let aborts = case.limit.is_some_and(|limit| limit.policy == LimitPolicy::Abort);
            aborts && case.due.is_some_and(|due| due < now)
        });
        if let Some(gone) = gone {
            let case = waiting.remove(gone);
            ends[case.index] = (case.due.unwrap(), Aborted);
            continue;
        }
        let picked = chosen(drive, (now, head), spec, wishes, &waiting);
        let case = waiting.remove(picked);
        let access = drive.media_access(now, head, &target_of(drive, &wishes[case.index]));
        (free, head) = (now + access.total(), access.end);
        let active = overhead + access.total();
        let limit = case.limit.unwrap_or_default();
        let too_long = limit.active.is_some_and(|most| active > most);
        let too_late = case.due.is_some_and(|due| now > due);
        ends[case.index] = match limit.policy {
            LimitPolicy::Abort if too_long => {
                let over = active.saturating_sub(limit.active.unwrap().max(overhead));
                (SimTime::from_ns(free.ns() - over.ns()), Aborted)
            }
            _ if too_long || too_late => (free, Missed),
            _ => (free, Kept),
        };
    }
    ends
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn queue_chooses_by_rule((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "limits");
        let overhead = up_to_us(prng, 2000);
        let drive = drive.with_overhead(ByOp::default());
        let scheduler = if prng.chance(0.5) { PolicySpec::Sptf } else { PolicySpec::Fcfs };
        let mut spec = queued(60, scheduler);
        spec.queue.as_mut().unwrap().high_priority_first =
            prng.chance(0.7).then(|| up_to_us(prng, 100_000));
        let miss = AfterOp::both(overhead);
        spec.overheads =
            Some(OverheadSpec { read_miss: miss, write_miss: miss, ..OverheadSpec::default() });
        spec.duration_limits = Some(any_limits(prng));
        let mut wishes = any_wishes(prng, &drive, 60, false);
        mark_any(prng, &mut wishes);
        let outcomes = run(&mut DriveUnit::new(&Arc::new(drive.clone()), &spec).unwrap(), &wishes);
        let ends: Vec<_> = outcomes.iter().map(|o| (o.served.end, o.served.limit)).collect();
        prop_assert_eq!(ends, ends_by_rule(&drive, &spec, overhead, &wishes));
    }

    #[test]
    fn limits_keep_commands_once_stages_add_up(
        (_, drive) in any_drive(), seed: u64
    ) {
        let prng = &mut Prng::new(seed, "limited");
        let mut spec = any_electronics(prng);
        spec.duration_limits = Some(any_limits(prng));
        if let Some(queue) = &mut spec.queue {
            queue.high_priority_first = prng.chance(0.5).then(|| up_to_us(prng, 100_000));
            queue.streams_first = prng.chance(0.3).then(|| up_to_us(prng, 100_000));
        }
        let mut wishes = any_wishes(prng, &drive, 80, true);
        mark_any(prng, &mut wishes);
        let mut unit = DriveUnit::new(&Arc::new(drive.clone()), &spec).unwrap();
        for (wish, Outcome { submitted, served: s }) in wishes.iter().zip(run(&mut unit, &wishes)) {
            let sum = s.overhead + s.queue + s.seek + s.rotate + s.transfer + s.bus;
            prop_assert_eq!(sum, s.end - submitted, "{:?}", wish);
            let has_limit = matches!(wish.mark, CommandMark::DurationLimit(_));
            prop_assert!(has_limit || s.limit == Kept, "{:?}", wish);
        }
        prop_assert!(unit.next_event().is_none());
    }
}
