//! The suite for every black box, in virtual or real time.

use freewheel_model::sched::CommandMark;
use freewheel_sim::black_box::{Answer, BadBlocks, BlackBox, Command};
use freewheel_units::{Lbn, Op, Prng, SimDuration, SimTime};

/// Makes a drive for a test.
pub type Make = fn(&BadBlocks) -> Box<dyn BlackBox>;

type Test = (&'static str, fn(Make));

pub const SUITE: &[Test] = &[
    ("without a command there is no answer", without_a_command_there_is_no_answer),
    ("every command is answered once, after it was sent", every_command_is_answered_once),
    ("what is slept over is kept with its time", what_is_slept_over_is_kept),
    ("nobody waits for longer than said", nobody_waits_for_longer_than_said),
    ("time does not go back", time_does_not_go_back),
    ("a bad block is told, and all others are read", a_bad_block_is_told),
    ("a block that was read is written", a_block_that_was_read_is_written),
];

/// No single command takes longer, in virtual time or on a busy machine.
const AT_MOST: SimDuration = SimDuration::from_secs(20);

fn sound(make: Make) -> Box<dyn BlackBox> {
    make(&BadBlocks::default())
}

fn command(id: u64, op: Op, start: u64) -> Command {
    Command { id, op, start: Lbn::new(start), blocks: 1, fua: false, mark: CommandMark::None }
}

fn ask(drive: &mut dyn BlackBox, command: Command) -> (SimTime, Answer) {
    let sent = drive.now();
    drive.submit(command);
    let answer = drive.next_answer(sent + AT_MOST).unwrap().unwrap();
    assert!(answer.id == command.id && answer.at > sent && drive.now() >= answer.at);
    (sent, answer)
}

fn without_a_command_there_is_no_answer(make: Make) {
    let mut drive = sound(make);
    assert_eq!(drive.blocks().get(), 17_966_953);
    assert_eq!(drive.next_answer(SimTime::MAX), Ok(None));
    ask(&mut *drive, command(1, Op::Read, 5));
    assert_eq!(drive.next_answer(SimTime::MAX), Ok(None));
}

fn every_command_is_answered_once(make: Make) {
    let mut drive = sound(make);
    let mut prng = Prng::new(1, "places");
    let blocks = drive.blocks().get();
    for id in 100..130 {
        ask(&mut *drive, command(id, Op::Read, prng.below(blocks)));
        assert_eq!(drive.next_answer(SimTime::ZERO), Ok(None));
    }
}

fn what_is_slept_over_is_kept(make: Make) {
    let mut drive = sound(make);
    drive.submit(command(7, Op::Read, 9_000_000));
    let long = drive.now() + SimDuration::from_ms(300);
    drive.sleep_until(long);
    assert!(drive.now() >= long);
    let answer = drive.next_answer(SimTime::ZERO).unwrap().unwrap();
    assert!(answer.id == 7 && answer.at < long, "{answer:?}");
}

fn nobody_waits_for_longer_than_said(make: Make) {
    let mut drive = sound(make);
    // A seek over half the drive takes 5 ms at least.
    drive.submit(command(7, Op::Read, 9_000_000));
    let soon = drive.now() + SimDuration::from_us(200);
    assert_eq!(drive.next_answer(soon), Ok(None));
    let answer = drive.next_answer(soon + AT_MOST).unwrap().unwrap();
    assert!(answer.at > soon);
}

fn time_does_not_go_back(make: Make) {
    let mut drive = sound(make);
    let now = drive.now();
    drive.sleep_until(now + SimDuration::from_ms(3));
    let later = drive.now();
    assert!(later >= now + SimDuration::from_ms(3));
    drive.sleep_until(now);
    assert!(drive.now() >= later);
}

fn a_bad_block_is_told(make: Make) {
    let bad = BadBlocks::new([Lbn::new(80_003)], SimDuration::from_ms(20));
    let mut drive = make(&bad);
    assert!(ask(&mut *drive, command(1, Op::Read, 80_003)).1.bad.is_some());
    assert_eq!(ask(&mut *drive, command(2, Op::Read, 80_004)).1.bad, None);
    assert!(ask(&mut *drive, command(3, Op::Read, 80_003)).1.bad.is_some());
}

fn a_block_that_was_read_is_written(make: Make) {
    let mut drive = sound(make);
    for id in 0..10 {
        let block = 1_700_000 * id + 3;
        ask(&mut *drive, command(2 * id, Op::Read, block));
        assert!(drive.holds(Lbn::new(block), 1));
        assert_eq!(ask(&mut *drive, command(2 * id + 1, Op::Write, block)).1.bad, None);
    }
}
