//! Judgement of ends of commands in any order of completion, and commands sent where deciding takes time.

use super::*;
use crate::SameTrack;
use freewheel_freeblock::tasks::{CADENCE, Extent, TaskId, TaskSpec, Tasks};
use freewheel_freeblock::uses;
use freewheel_freeblock::{NoPlanner, Options, PromotionId};

fn atlas10k() -> Drive {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    Drive::build(&spec).unwrap().with_overhead(ByOp::default())
}

/// Knows where the head is.
fn knowing(drive: &Drive) -> PredictiveScheduler {
    let spec = PredictionSpec { lead_time: SimDuration::MAX, ..PredictionSpec::default() };
    let policy = PolicySpec::Fcfs;
    let mut host = PredictiveScheduler::new(drive, SimDuration::ZERO, policy, spec).unwrap();
    let exact = Observed { turns: 0, phase_ns: 0, is_plausible: true };
    (0..3).for_each(|_| host.clock.follow(SimTime::ZERO, &exact));
    host.head.is_known = true;
    host
}

fn arrives(
    host: &mut PredictiveScheduler,
    (sequence, start): (u64, u64),
    promotion: Option<PromotionId>,
    now: SimTime,
) {
    let (op, start, blocks) = (Op::Read, Lbn::new(start), 8);
    let request = Foreground { op, start, blocks, sequence, promotion };
    host.arrived(request, None, now, &mut NoPlanner);
}

/// Knows where the head is, and has sent one request to each of these blocks: the first time behind
/// free work that has come back.
fn behind_free_work(drive: &Drive, starts: [u64; 2]) -> PredictiveScheduler {
    let mut host = knowing(drive);
    let head = host.head;
    host.gap = Some(OpenGap { head, taken_up: SimTime::ZERO, is_interrupted: false });
    for (sequence, start) in (0..).zip(starts) {
        arrives(&mut host, (sequence, start), None, SimTime::ZERO);
        host.decide(SimTime::ZERO, &mut NoPlanner);
        host.next_command(SimTime::ZERO, &mut NoPlanner).unwrap();
    }
    host
}

/// Sends two commands, the first or the second a turn late: did that teach anything, and was a delay
/// counted?
fn taught_and_counted(drive: &Drive, starts: [u64; 2], place: usize) -> (bool, bool) {
    let mut host = behind_free_work(drive, starts);
    let mut untaught = host.learner.clone().unwrap();
    let InFlight { command, prediction, .. } = &host.in_flight[place];
    let now = host.clock.host(prediction.end.at) + drive.rotation().period();
    let finished = host.finished(command.id, now, now, &mut NoPlanner);
    assert!(host.gap.is_none(), "the request after the free work may be over");
    untaught.worked(finished.head);
    let learner = host.learner.unwrap();
    let is_taught = format!("{learner:?}") != format!("{untaught:?}");
    (is_taught, host.account.delayed > 0)
}

#[test]
fn overtaking_commands_teach_nothing() {
    let drive = atlas10k();
    for number in 1..100 {
        let starts = [number * 100_003, number * 50_021];
        let in_order = taught_and_counted(&drive, starts, 0);
        assert_eq!(in_order, (true, true), "{starts:?}");
        let overtaking = taught_and_counted(&drive, starts, 1);
        assert_eq!(overtaking, (false, false), "{starts:?}");
    }
}

/// A scan of all of it.
fn scan(drive: &Drive) -> (Tasks, TaskId) {
    let mut tasks = Tasks::new(&Arc::new(drive.clone()), Options::default(), CADENCE);
    let scan = tasks.register(SimTime::ZERO, uses::scan(drive.blocks(), 8)).unwrap();
    (tasks, scan)
}

/// The trust that is left when twenty reads have come back where the media would not have ended.
fn trust_behind_surprises(drive: &Drive, promotion: Option<PromotionId>) -> u32 {
    let mut host = knowing(drive);
    let mut now = SimTime::ZERO;
    for number in 1..=20 {
        arrives(&mut host, (number, number * 100_003), promotion, now);
        host.decide(now, &mut NoPlanner);
        let command = host.next_command(now, &mut NoPlanner).unwrap();
        let end = host.clock.host(host.in_flight[0].prediction.end.at);
        now = end + drive.rotation().period() / 3;
        host.finished(command.id, now, now, &mut NoPlanner);
    }
    assert_eq!(host.account.surprises, 20);
    host.trust
}

#[test]
fn surprises_cost_trust_unless_promoted() {
    let drive = atlas10k();
    let (mut tasks, scan) = scan(&drive);
    let promoted = tasks.promote_next(scan, Lbn::ZERO, 8).unwrap().unwrap();
    assert_eq!(trust_behind_surprises(&drive, None), TRUST_MAX - 20);
    assert_eq!(trust_behind_surprises(&drive, Some(promoted.id)), TRUST_MAX);
}

#[test]
fn promoted_reads_earn_no_trust() {
    let drive = atlas10k();
    let (mut tasks, scan) = scan(&drive);
    let promoted = tasks.promote_next(scan, Lbn::ZERO, 8).unwrap().unwrap().id;
    for (promotion, earned) in [(None, 5), (Some(promoted), 0)] {
        let mut host = knowing(&drive);
        host.trust = TRUST_MAX / 2;
        let mut now = SimTime::ZERO;
        for number in 1..=5 {
            arrives(&mut host, (number, number * 100_003), promotion, now);
            host.decide(now, &mut NoPlanner);
            let command = host.next_command(now, &mut NoPlanner).unwrap();
            now = host.clock.host(host.in_flight[0].prediction.end.at);
            host.finished(command.id, now, now, &mut NoPlanner);
        }
        assert_eq!(host.trust, TRUST_MAX / 2 + earned);
    }
}

/// Decides in steps. Returns when the command had to leave, or None where the search had no node to look
/// at.
fn searched_until(
    host: &mut PredictiveScheduler,
    now: SimTime,
    planner: &mut dyn Planner,
) -> Option<SimTime> {
    let start = host.begin_decision(now, planner);
    assert_ne!(start, DecisionStart::NotDue);
    let DecisionStart::Searching { by } = start else { return None };
    let has_nodes = !host.search(planner, 0).is_done();
    while !host.search(planner, 8).is_done() {}
    host.end_decision(planner);
    has_nodes.then_some(by)
}

#[test]
fn stepwise_decision_sends_same_commands() {
    let drive = atlas10k();
    let (mut tasks, _) = scan(&drive);
    let mut with_free_work = 0;
    for number in 1..50 {
        let commands = [false, true].map(|in_steps| {
            let mut host = knowing(&drive);
            arrives(&mut host, (number, number * 100_003), None, SimTime::ZERO);
            if in_steps {
                searched_until(&mut host, SimTime::ZERO, &mut tasks);
            } else {
                assert!(host.decide(SimTime::ZERO, &mut tasks));
            }
            let next = |_| host.next_command(SimTime::ZERO, &mut NoPlanner);
            (0..2).filter_map(next).collect::<Vec<_>>()
        });
        assert_eq!(commands[0], commands[1], "{number}");
        with_free_work += u32::from(!commands[0][0].runs.is_empty());
    }
    assert!(with_free_work > 25, "{with_free_work}");
}

#[test]
fn search_without_steps_ends_with_decision() {
    let drive = atlas10k();
    let (mut tasks, _) = scan(&drive);
    let planners: [&mut dyn Planner; 2] = [&mut tasks, &mut NoPlanner];
    for planner in planners {
        let mut host = knowing(&drive);
        arrives(&mut host, (1, 80_021), None, SimTime::ZERO);
        let start = host.begin_decision(SimTime::ZERO, planner);
        assert!(matches!(start, DecisionStart::Searching { .. }), "{start:?}");
        host.end_decision(planner);
        assert_eq!(host.begin_decision(SimTime::ZERO, planner), DecisionStart::NotDue);
        let sent: Vec<Command> =
            (0..2).filter_map(|_| host.next_command(SimTime::ZERO, &mut NoPlanner)).collect();
        assert!(sent.iter().any(|command| command.foreground.is_some()), "{sent:?}");
    }
}

#[test]
fn idle_drive_gets_request_in_time() {
    let drive = atlas10k();
    let (mut searched, mut at_once) = (0, 0);
    let (mut tasks, _) = scan(&drive);
    for number in 1..200 {
        let mut end = |usual, takes| {
            let mut host = knowing(&drive);
            host.decisions_take(Deciding { usual, most: usual });
            arrives(&mut host, (number, number * 80_021), None, SimTime::ZERO);
            let by = searched_until(&mut host, SimTime::ZERO, &mut tasks);
            // Without a search the request waits for none.
            let now = if by.is_some() { SimTime::ZERO + takes } else { SimTime::ZERO };
            assert!(by.is_none_or(|by| by == SimTime::ZERO + usual));
            while let Some(free) =
                host.next_command(now, &mut NoPlanner).filter(|it| it.foreground.is_none())
            {
                let end = host.clock.host(host.in_flight[0].prediction.end.at);
                host.finished(free.id, end, end, &mut tasks);
            }
            let last = host.in_flight.back().expect("the request has been sent");
            (last.prediction.end.at, by.is_some(), host.account.free_blocks)
        };
        let none = SimDuration::ZERO;
        let usual = SimDuration::from_ms(2);
        let (alone, _, _) = end(none, none);
        for takes in [none, usual / 2, usual] {
            let (then, is_searched, free) = end(usual, takes);
            assert_eq!(then, alone, "{number}, {free} blocks of free work");
            searched += u32::from(is_searched && free > 0);
            at_once += u32::from(!is_searched);
        }
    }
    assert!(searched > 50 && at_once > 50, "{searched} and {at_once}");
}

#[test]
fn busy_drive_decisions_begin_early() {
    let drive = atlas10k();
    let (mut tasks, _) = scan(&drive);
    for most in [0, 300, 700, 2000].map(SimDuration::from_us) {
        let mut host = knowing(&drive);
        host.spec.lead_time = SimDuration::from_us(300);
        host.decisions_take(Deciding { usual: most / 10, most });
        for request in [(1, 9_000_017), (2, 80_021)] {
            arrives(&mut host, request, None, SimTime::ZERO);
        }
        assert!(host.decide(SimTime::ZERO, &mut NoPlanner));
        host.next_command(SimTime::ZERO, &mut NoPlanner).unwrap();
        // The next one has to wait.
        assert!(!host.decide(SimTime::ZERO, &mut tasks));
        let needed = host.clock.host(host.in_flight[0].prediction.end.at);
        let decides_at = host.decides_at().unwrap();
        assert_eq!(decides_at + most.max(SimDuration::from_us(300)), needed);
        assert_eq!(searched_until(&mut host, decides_at, &mut tasks), Some(needed));
    }
}

/// One request that has been sent to a drive, behind another one.
fn in_order(drive: &Drive) -> PredictiveScheduler {
    let mut host = knowing(drive);
    for (sequence, start) in [(0, 3_000_000), (1, 9_000_000)] {
        arrives(&mut host, (sequence, start), None, SimTime::ZERO);
        host.decide(SimTime::ZERO, &mut NoPlanner);
        host.next_command(SimTime::ZERO, &mut NoPlanner).unwrap();
    }
    host
}

#[test]
fn late_reported_end_counts_as_timely() {
    let drive = atlas10k();
    let [at_once, late] = [0, 3_000_000].map(|late_ns| {
        let mut host = in_order(&drive);
        let InFlight { command, prediction, .. } = &host.in_flight[0];
        let ended = host.clock.host(prediction.end.at);
        let told = ended + SimDuration::from_ns(late_ns);
        let finished = host.finished(command.id, ended, told, &mut NoPlanner);
        let next = host.in_flight[0].prediction.end.at;
        (finished.error_ns, finished.head, next, host.account.surprises)
    });
    assert_eq!(at_once.0, Some(0));
    assert_eq!(late, at_once);
}

#[test]
fn overtaken_decision_is_sent_without_free_work() {
    let drive = atlas10k();
    let (mut tasks, _) = scan(&drive);
    let mut with_free_work = 0;
    for number in 1..50 {
        let commands = [false, true].map(|is_overtaken| {
            let mut host = knowing(&drive);
            arrives(&mut host, (number, number * 100_003), None, SimTime::ZERO);
            assert!(host.decide(SimTime::ZERO, &mut tasks));
            if is_overtaken {
                host.overtaken();
            }
            host.next_command(SimTime::ZERO, &mut NoPlanner).unwrap()
        });
        with_free_work += u32::from(!commands[0].runs.is_empty());
        assert_eq!((commands[1].start.get(), commands[1].blocks), (number * 100_003, 8));
        assert!(commands[1].runs.is_empty());
    }
    assert!(with_free_work > 25, "{with_free_work}");
}

#[test]
fn client_write_cancels_decided_ones() {
    let drive = atlas10k();
    let mut tasks = Tasks::new(&Arc::new(drive.clone()), Options::default(), CADENCE);
    tasks.register(SimTime::ZERO, uses::write(drive.blocks(), 8)).unwrap();
    let mut decided = 0;
    for number in 1..50 {
        let mut host = knowing(&drive);
        arrives(&mut host, (number, number * 100_003), None, SimTime::ZERO);
        assert!(host.decide(SimTime::ZERO, &mut tasks));
        let Some((start, _)) = host.next_free_write() else { continue };
        decided += 1;
        let (op, sequence, promotion) = (Op::Write, number + 1, None);
        let request = Foreground { op, start, blocks: 1, sequence, promotion };
        host.arrived(request, None, SimTime::ZERO, &mut NoPlanner);
        while let Some((from, blocks)) = host.next_free_write() {
            let run = from.get()..from.get() + u64::from(blocks);
            assert!(!run.contains(&start.get()), "{run:?} overwrites {start}");
            host.skip_free();
        }
    }
    assert!(decided > 10, "{decided}");
}

/// End of the request to this block, and the number of free commands before it, where one is sent at a
/// time.
fn end_of_request(drive: &Drive, start: u64, planner: &mut dyn Planner) -> (SimTime, u32) {
    let mut host = knowing(drive);
    host.spec.queue_depth = 1;
    // Without margins, which would hide a plan that is a little too long.
    (host.learner, host.cautious) = (None, Arc::clone(&host.drive));
    arrives(&mut host, (1, start), None, SimTime::ZERO);
    assert!(host.decide(SimTime::ZERO, planner));
    let (mut now, mut free) = (SimTime::ZERO, 0);
    loop {
        let command = host.next_command(now, planner).unwrap();
        let end = host.in_flight[0].prediction.end.at;
        if command.foreground.is_some() {
            return (end, free);
        }
        free += 1;
        now = host.clock.host(end);
        host.finished(command.id, now, now, planner);
    }
}

#[test]
fn free_commands_leave_requests_in_time() {
    // The planner ignores overheads, so that some of its plans are too long.
    let overhead = SimDuration::from_us(200);
    let drive = atlas10k().with_overhead(ByOp { read: overhead, write: overhead });
    let starts = (0..drive.blocks().get() - 8).step_by(400);
    let few: Vec<Extent> = starts.map(|start| Extent::new(start, 8)).collect();
    let mut commands = 0;
    for number in 1..20 {
        let start = number * 100_003;
        let (alone, _) = end_of_request(&drive, start, &mut NoPlanner);
        let mut tasks = Tasks::new(&Arc::new(drive.clone()), Options::default(), CADENCE);
        tasks.register(SimTime::ZERO, TaskSpec::new(Op::Read, 8, few.clone())).unwrap();
        let (behind, free) = end_of_request(&drive, start, &mut tasks);
        let late = behind.saturating_since(alone);
        assert!(late < SimDuration::from_us(1), "{late} behind {free} free commands, {start}");
        commands += free;
    }
    assert!(commands > 10, "{commands} free commands");
}

#[test]
fn plan_keeps_larger_command_per_track() {
    let drive = atlas10k();
    let (first, end) = drive.layout().track_bounds(Lbn::new(100_000));
    let read = |start: u64, blocks| FreeRun { start: Lbn::new(start), blocks, op: Op::Read };
    let next_track = read(end.get() + 8, 8);
    // The head comes by the track's last blocks and then by its first ones, as in fast02's figure 11.
    let (small, large) = (read(end.get() - 16, 8), read(first.get(), 24));
    // In the order of the track's blocks two pieces are one command.
    let rest = read(first.get() + 40, 8);
    let plan = vec![small, large, rest, next_track];
    let limited = |same_track: SameTrack| {
        let mut runs = plan.clone();
        same_track.limit(&drive, &mut runs);
        runs
    };
    assert_eq!(limited(SameTrack::Merge), [large, rest, next_track]);
    assert_eq!(limited(SameTrack::Never), [large, rest, next_track]);
    assert_eq!(limited(SameTrack::Distinct), plan);
}
