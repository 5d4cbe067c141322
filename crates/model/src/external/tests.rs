//! What ends of commands are taken for, whatever the order in which they come back.

use super::*;
use crate::freeblock::Nothing;

/// Knows where the head is, and has sent one request to each of these blocks: the first time behind
/// free work that has come back.
fn behind_free_work(drive: &Drive, starts: [u64; 2]) -> External {
    let spec = ExternalSpec { decide_before: SimDuration::MAX, ..ExternalSpec::default() };
    let policy = PolicySpec::Fcfs;
    let mut external = External::new(drive, SimDuration::ZERO, policy, spec).unwrap();
    let exact = Observed { turns: 0, phase_ns: 0, is_plausible: true };
    (0..3).for_each(|_| external.clock.follow(SimTime::ZERO, &exact));
    external.head.is_known = true;
    let head = external.head;
    external.gap = Some(OpenGap { head, taken_up: SimTime::ZERO, is_interrupted: false });
    for (sequence, start) in (0..).zip(starts) {
        let (op, start, blocks) = (Op::Read, Lbn::new(start), 8);
        let request = Foreground { op, start, blocks, sequence, promotion: None };
        external.arrived(request, None, SimTime::ZERO, &mut Nothing);
        external.next_command(SimTime::ZERO, &mut Nothing).unwrap();
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
    let finished = external.finished(command.id, now, &mut Nothing);
    assert!(external.gap.is_none(), "the request behind the free work may be over");
    untaught.worked(finished.head);
    let learner = external.learner.unwrap();
    let is_taught = format!("{learner:?}") != format!("{untaught:?}");
    (is_taught, external.account.delayed > 0)
}

#[test]
fn commands_that_overtake_others_teach_nothing_and_count_as_no_delay() {
    let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
    let drive = Drive::build(&spec).unwrap().with_overhead(ByOp::default());
    for number in 1..100 {
        let starts = [number * 100_003, number * 50_021];
        let in_order = taught_and_counted(&drive, starts, 0);
        assert_eq!(in_order, (true, true), "{starts:?}");
        let overtaking = taught_and_counted(&drive, starts, 1);
        assert_eq!(overtaking, (false, false), "{starts:?}");
    }
}
