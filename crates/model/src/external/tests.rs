//! What ends of commands are taken for, whatever the order in which they come back, and what is sent
//! where deciding takes time.

use super::*;
use crate::freeblock::tasks::{CADENCE, TaskId, Tasks};
use crate::freeblock::uses::data_mining;
use crate::freeblock::{Nothing, Options, PromotionId};

fn atlas10k() -> Drive {
    let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
    Drive::build(&spec).unwrap().with_overhead(ByOp::default())
}

/// Knows where the head is.
fn knowing(drive: &Drive) -> External {
    let spec = ExternalSpec { decide_before: SimDuration::MAX, ..ExternalSpec::default() };
    let policy = PolicySpec::Fcfs;
    let mut external = External::new(drive, SimDuration::ZERO, policy, spec).unwrap();
    let exact = Observed { turns: 0, phase_ns: 0, is_plausible: true };
    (0..3).for_each(|_| external.clock.follow(SimTime::ZERO, &exact));
    external.head.is_known = true;
    external
}

fn arrives(
    external: &mut External,
    (sequence, start): (u64, u64),
    promotion: Option<PromotionId>,
    now: SimTime,
) {
    let (op, start, blocks) = (Op::Read, Lbn::new(start), 8);
    let request = Foreground { op, start, blocks, sequence, promotion };
    external.arrived(request, None, now, &mut Nothing);
}

/// Knows where the head is, and has sent one request to each of these blocks: the first time behind
/// free work that has come back.
fn behind_free_work(drive: &Drive, starts: [u64; 2]) -> External {
    let mut external = knowing(drive);
    let head = external.head;
    external.gap = Some(OpenGap { head, taken_up: SimTime::ZERO, is_interrupted: false });
    for (sequence, start) in (0..).zip(starts) {
        arrives(&mut external, (sequence, start), None, SimTime::ZERO);
        external.decide(SimTime::ZERO, &mut Nothing, &mut to_the_end);
        external.next_command(SimTime::ZERO).unwrap();
    }
    external
}

/// Whether a command that comes back a turn late, the first or the second that was sent, has taught
/// anything, and whether a delay was counted.
fn taught_and_counted(drive: &Drive, starts: [u64; 2], place: usize) -> (bool, bool) {
    let mut external = behind_free_work(drive, starts);
    let mut untaught = external.learner.clone().unwrap();
    let AtDrive { command, forecast, .. } = &external.at_drive[place];
    let now = external.clock.host(forecast.end.at) + drive.rotation().period();
    let finished = external.finished(command.id, now, now, &mut Nothing);
    assert!(external.gap.is_none(), "the request behind the free work may be over");
    untaught.worked(finished.head);
    let learner = external.learner.unwrap();
    let is_taught = format!("{learner:?}") != format!("{untaught:?}");
    (is_taught, external.account.delayed > 0)
}

#[test]
fn commands_that_overtake_others_teach_nothing_and_count_as_no_delay() {
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
    let scan = tasks.register(SimTime::ZERO, data_mining(drive.blocks(), 8)).unwrap();
    (tasks, scan)
}

/// The trust that is left when twenty reads have come back where the media would not have ended.
fn trust_behind_surprises(drive: &Drive, promotion: Option<PromotionId>) -> u32 {
    let mut external = knowing(drive);
    let mut now = SimTime::ZERO;
    for number in 1..=20 {
        arrives(&mut external, (number, number * 100_003), promotion, now);
        external.decide(now, &mut Nothing, &mut to_the_end);
        let command = external.next_command(now).unwrap();
        let end = external.clock.host(external.at_drive[0].forecast.end.at);
        now = end + drive.rotation().period() / 3;
        external.finished(command.id, now, now, &mut Nothing);
    }
    assert_eq!(external.account.surprises, 20);
    external.trust
}

#[test]
fn surprises_cost_trust_and_those_of_promoted_reads_none() {
    let drive = atlas10k();
    let (mut tasks, scan) = scan(&drive);
    let promoted = tasks.promote_next(scan, Lbn::ZERO, 8).unwrap().unwrap();
    assert_eq!(trust_behind_surprises(&drive, None), TRUST_MAX - 20);
    assert_eq!(trust_behind_surprises(&drive, Some(promoted.id)), TRUST_MAX);
}

#[test]
fn ends_of_promoted_reads_that_were_foreseen_earn_no_trust() {
    let drive = atlas10k();
    let (mut tasks, scan) = scan(&drive);
    let promoted = tasks.promote_next(scan, Lbn::ZERO, 8).unwrap().unwrap().id;
    for (promotion, earned) in [(None, 5), (Some(promoted), 0)] {
        let mut external = knowing(&drive);
        external.trust = TRUST_MAX / 2;
        let mut now = SimTime::ZERO;
        for number in 1..=5 {
            arrives(&mut external, (number, number * 100_003), promotion, now);
            external.decide(now, &mut Nothing, &mut to_the_end);
            let command = external.next_command(now).unwrap();
            now = external.clock.host(external.at_drive[0].forecast.end.at);
            external.finished(command.id, now, now, &mut Nothing);
        }
        assert_eq!(external.trust, TRUST_MAX / 2 + earned);
    }
}

#[test]
fn a_drive_that_waits_gets_its_request_in_time_however_long_most_decisions_take() {
    let drive = atlas10k();
    let (mut searched, mut at_once) = (0, 0);
    let (mut tasks, _) = scan(&drive);
    for number in 1..200 {
        let mut end = |usual, takes| {
            let mut external = knowing(&drive);
            external.decisions_take(Deciding { usual, most: usual });
            arrives(&mut external, (number, number * 80_021), None, SimTime::ZERO);
            let mut by = None;
            let mut may_go_on = |told, _: SoFar| {
                by = Some(told);
                true
            };
            assert!(external.decide(SimTime::ZERO, &mut tasks, &mut may_go_on));
            // Nobody waits for a search that is not made.
            let now = if by.is_some() { SimTime::ZERO + takes } else { SimTime::ZERO };
            assert!(by.is_none_or(|by| by == SimTime::ZERO + usual));
            while let Some(free) = external.next_command(now).filter(|it| it.foreground.is_none()) {
                let end = external.clock.host(external.at_drive[0].forecast.end.at);
                external.finished(free.id, end, end, &mut tasks);
            }
            let last = external.at_drive.back().expect("the request has been sent");
            (last.forecast.end.at, by.is_some(), external.account.free_blocks)
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
fn while_the_drive_is_busy_it_is_decided_as_early_as_decisions_take_and_searched_until_it_needs_it()
{
    let drive = atlas10k();
    let (mut tasks, _) = scan(&drive);
    for most in [0, 300, 700, 2000].map(SimDuration::from_us) {
        let mut external = knowing(&drive);
        external.spec.decide_before = SimDuration::from_us(300);
        external.decisions_take(Deciding { usual: most / 10, most });
        for request in [(1, 9_000_017), (2, 80_021)] {
            arrives(&mut external, request, None, SimTime::ZERO);
        }
        assert!(external.decide(SimTime::ZERO, &mut Nothing, &mut to_the_end));
        external.next_command(SimTime::ZERO).unwrap();
        // The next one has to wait.
        assert!(!external.decide(SimTime::ZERO, &mut tasks, &mut to_the_end));
        let needed = external.clock.host(external.at_drive[0].forecast.end.at);
        let decides_at = external.decides_at().unwrap();
        assert_eq!(decides_at + most.max(SimDuration::from_us(300)), needed);
        let mut by = None;
        let mut may_go_on = |told, _: SoFar| {
            by = Some(told);
            true
        };
        assert!(external.decide(decides_at, &mut tasks, &mut may_go_on));
        assert_eq!(by, Some(needed));
    }
}

/// One request that has been sent to a drive, behind another one.
fn in_order(drive: &Drive) -> External {
    let mut external = knowing(drive);
    for (sequence, start) in [(0, 3_000_000), (1, 9_000_000)] {
        arrives(&mut external, (sequence, start), None, SimTime::ZERO);
        external.decide(SimTime::ZERO, &mut Nothing, &mut to_the_end);
        external.next_command(SimTime::ZERO).unwrap();
    }
    external
}

#[test]
fn an_end_that_is_told_late_is_as_good_as_one_that_is_told_at_once() {
    let drive = atlas10k();
    let [at_once, late] = [0, 3_000_000].map(|late_ns| {
        let mut external = in_order(&drive);
        let AtDrive { command, forecast, .. } = &external.at_drive[0];
        let ended = external.clock.host(forecast.end.at);
        let told = ended + SimDuration::from_ns(late_ns);
        let finished = external.finished(command.id, ended, told, &mut Nothing);
        let next = external.at_drive[0].forecast.end.at;
        (finished.error_ns, finished.head, next, external.account.surprises)
    });
    assert_eq!(at_once.0, Some(0));
    assert_eq!(late, at_once);
}

#[test]
fn what_was_decided_when_the_drive_came_back_too_soon_is_sent_without_free_work() {
    let drive = atlas10k();
    let (mut tasks, _) = scan(&drive);
    let mut with_free_work = 0;
    for number in 1..50 {
        let commands = [false, true].map(|is_overtaken| {
            let mut external = knowing(&drive);
            arrives(&mut external, (number, number * 100_003), None, SimTime::ZERO);
            assert!(external.decide(SimTime::ZERO, &mut tasks, &mut to_the_end));
            if is_overtaken {
                external.overtaken();
            }
            external.next_command(SimTime::ZERO).unwrap()
        });
        with_free_work += u32::from(!commands[0].runs.is_empty());
        assert_eq!((commands[1].start.get(), commands[1].blocks), (number * 100_003, 8));
        assert!(commands[1].runs.is_empty());
    }
    assert!(with_free_work > 25, "{with_free_work}");
}

#[test]
fn a_plan_keeps_one_command_a_track_and_of_two_the_larger() {
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
