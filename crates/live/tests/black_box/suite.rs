//! The suite. Every test takes a function that makes a black box of a drive.

use freewheel_live::emulate::Request;
use freewheel_model::electronics::spec::{SectorFormat, WriteCache};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::black_box::{Activity, BadBlocks, Behaviour, EmulatedDrive};
use freewheel_sim::library;
use freewheel_units::{Lbn, Op, Prng, SimDuration};

use super::{Ask, BlackBox, FLUSH, Make, Outcome, drive, request};

/// No single request of this drive takes longer: its longest seek, two turns and a good deal more.
const ONE_AT_MOST: SimDuration = SimDuration::from_ms(50);

/// Name of a test, and the test.
type Test = (&'static str, fn(Make));

pub const SUITE: &[Test] = &[
    ("the last block is there", the_last_block_is_there),
    ("answers come within bounds and never early", answers_come_within_bounds_and_never_early),
    ("a drive that holds one command answers in order", one_command_answers_in_order),
    (
        "a drive that holds many answers in its policy's order",
        many_commands_answer_in_its_policys_order,
    ),
    ("what does not fit waits and is answered", what_does_not_fit_waits),
    ("a flush waits for cached writes", a_flush_waits_for_cached_writes),
    ("a forced write waits for the media", a_forced_write_waits_for_the_media),
    ("a bad block fails until it is written", a_bad_block_fails_until_it_is_written),
    ("a bad block costs its recovery at every read", a_bad_block_costs_its_recovery_at_every_read),
    ("reading ahead ends before a bad block", reading_ahead_ends_before_a_bad_block),
    ("replies are under way no longer than said", replies_are_under_way_no_longer_than_said),
    ("its own activity is waited for", its_own_activity_is_waited_for),
    ("a part of a sector takes a turn more to write", a_part_of_a_sector_takes_a_turn_more),
    ("a bad sector fails whole and takes no part", a_bad_sector_fails_whole_and_takes_no_part),
    ("a drive of 4Kn serves whole sectors", a_drive_of_4kn_serves_whole_sectors),
];

fn sound(make: Make) -> Box<dyn BlackBox> {
    with(make, Behaviour::default())
}

fn with(make: Make, behaviour: Behaviour) -> Box<dyn BlackBox> {
    make(drive(&behaviour, BadBlocks::default()))
}

/// Random requests of 8 blocks, all at once.
fn burst(of: &dyn BlackBox, op: Op, count: u32, seed: u64) -> Vec<Ask> {
    let mut prng = Prng::new(seed, "burst");
    let places = of.blocks().get() / 8;
    let mut ask = |_| {
        let request = request(op, prng.below(places) * 8, 8);
        Ask { after: SimDuration::ZERO, request }
    };
    (0..count).map(&mut ask).collect()
}

fn assert_never_early(outcomes: &[Outcome]) {
    for outcome in outcomes {
        assert!(outcome.handed >= outcome.due && outcome.due > outcome.asked, "{outcome:?}");
    }
}

fn the_last_block_is_there(make: Make) {
    let mut drive = sound(make);
    let last = drive.blocks().get() - 1;
    assert_eq!(drive.blocks().bytes().get(), 9_199_079_936);
    let outcome = drive.ask(request(Op::Read, last, 1));
    assert_eq!(outcome.bad, None);
}

fn answers_come_within_bounds_and_never_early(make: Make) {
    let mut drive = sound(make);
    let asks = burst(&*drive, Op::Read, 12, 1);
    let one_by_one: Vec<Outcome> = asks.iter().map(|ask| drive.ask(ask.request)).collect();
    assert_never_early(&one_by_one);
    let longest = one_by_one.iter().map(Outcome::took).max().unwrap();
    assert!(longest < ONE_AT_MOST, "{longest}");
    let outcomes = drive.play(&asks);
    assert_never_early(&outcomes);
    let longest = outcomes.iter().map(Outcome::took).max().unwrap();
    assert!(longest < ONE_AT_MOST * 12, "{longest}");
}

/// True if answers are due in the order of the asks.
fn in_order(outcomes: &[Outcome]) -> bool {
    outcomes.is_sorted_by_key(|outcome| outcome.due)
}

fn one_command_answers_in_order(make: Make) {
    let mut drive = with(make, Behaviour { queue_depth: Some(1), ..Behaviour::default() });
    let script = burst(&*drive, Op::Read, 16, 2);
    assert!(in_order(&drive.play(&script)));
}

fn many_commands_answer_in_its_policys_order(make: Make) {
    let policy = |policy| Behaviour {
        queue_depth: Some(16),
        queue_policy: Some(policy),
        ..Behaviour::default()
    };
    let mut drive = with(make, policy(PolicySpec::Fcfs));
    let script = burst(&*drive, Op::Read, 16, 2);
    assert!(in_order(&drive.play(&script)));
    let mut drive = with(make, policy(PolicySpec::Sptf));
    let script = burst(&*drive, Op::Read, 16, 2);
    assert!(!in_order(&drive.play(&script)));
}

fn what_does_not_fit_waits(make: Make) {
    let mut drive = with(make, Behaviour { queue_depth: Some(2), ..Behaviour::default() });
    let script = burst(&*drive, Op::Read, 12, 3);
    let outcomes = drive.play(&script);
    assert_never_early(&outcomes);
    // A request is sent when one of those before it is left at most.
    for (at, outcome) in outcomes.iter().enumerate() {
        let before = outcomes[..at].iter().filter(|other| other.due > outcome.due);
        assert!(before.count() <= 1, "{outcomes:?}");
    }
}

fn cache_on() -> Behaviour {
    Behaviour { write_cache: Some(WriteCache::On), ..Behaviour::default() }
}

fn cached(make: Make) -> Box<dyn BlackBox> {
    with(make, cache_on())
}

fn a_flush_waits_for_cached_writes(make: Make) {
    let mut drive = cached(make);
    let nothing = drive.ask(FLUSH);
    assert_eq!(nothing.due, nothing.asked);
    let write = drive.ask(request(Op::Write, 1_000_000, 8));
    let flush = drive.ask(FLUSH);
    assert!(write.took() < SimDuration::from_ms(2), "{}", write.took());
    let both = flush.due - write.asked;
    assert!(both > SimDuration::from_ms(2) && both < ONE_AT_MOST * 2, "{both}");
    let nothing = drive.ask(FLUSH);
    assert_eq!(nothing.due, nothing.asked);
}

fn a_forced_write_waits_for_the_media(make: Make) {
    let mut drive = cached(make);
    let forced = Request { fua: true, ..request(Op::Write, 5_000_000, 8) };
    let outcome = drive.ask(forced);
    assert!(outcome.took() > SimDuration::from_ms(2), "{}", outcome.took());
    let nothing = drive.ask(FLUSH);
    assert_eq!(nothing.due, nothing.asked);
}

fn a_bad_block_fails_until_it_is_written(make: Make) {
    let recovery = SimDuration::from_ms(60);
    let bad = BadBlocks::new([Lbn::new(80_003)], recovery);
    let mut drive = make(drive(&Behaviour::default(), bad));
    let failed = drive.ask(request(Op::Read, 80_000, 8));
    assert_eq!(failed.bad, Some(Lbn::new(80_003)));
    assert!(failed.took() >= recovery, "{}", failed.took());
    assert_eq!(drive.ask(request(Op::Read, 80_004, 4)).bad, None);
    assert_eq!(drive.ask(request(Op::Write, 80_003, 1)).bad, None);
    assert_eq!(drive.ask(request(Op::Read, 80_000, 8)).bad, None);
}

fn a_bad_block_costs_its_recovery_at_every_read(make: Make) {
    let recovery = SimDuration::from_ms(60);
    let bad = || BadBlocks::new([Lbn::new(80_003)], recovery);
    let partly_written = Behaviour { sector: Some(SectorFormat::Emulated512), ..cache_on() };
    let spec = library::spec("exos-7e8-8tb").unwrap();
    let today = EmulatedDrive::new(&spec, "exos-7e8-8tb", &partly_written, bad(), 1).unwrap();
    for (mut drive, block) in [(make(drive(&cache_on(), bad())), 80_003), (make(today), 80_000)] {
        // The block itself, reads that begin before it, and one that reading ahead has prepared.
        let reads = [(80_003, 1), (80_003, 1), (80_000, 8), (80_000, 8), (79_992, 8), (80_000, 8)];
        for (start, blocks) in reads {
            let outcome = drive.ask(request(Op::Read, start, blocks));
            let fails = start + blocks > block;
            assert_eq!(outcome.bad.is_some(), fails, "{start} + {blocks}");
            assert_eq!(outcome.took() >= recovery, fails, "{start} + {blocks}: {}", outcome.took());
        }
        // What a drive has taken of a bad sector, in part, makes it no good one.
        if block == 80_000 {
            assert!(drive.ask(request(Op::Write, 80_003, 1)).bad.is_some());
            let outcome = drive.ask(request(Op::Read, 80_003, 1));
            assert!(outcome.bad.is_some() && outcome.took() >= recovery, "{outcome:?}");
        }
        assert_eq!(drive.ask(request(Op::Write, 80_000, 8)).bad, None);
        let outcome = drive.ask(request(Op::Read, 80_000, 8));
        assert!(outcome.bad.is_none() && outcome.took() < recovery, "{outcome:?}");
    }
}

fn reading_ahead_ends_before_a_bad_block(make: Make) {
    let reads = |bad: &[u64]| -> Vec<SimDuration> {
        let bad = BadBlocks::numbered(bad.iter().copied(), SimDuration::from_ms(60));
        let mut drive = make(drive(&Behaviour::default(), bad));
        let ask = |at, start| Ask {
            after: SimDuration::from_ms(40) * at,
            request: request(Op::Read, start, 8),
        };
        let outcomes = drive.play(&[ask(0, 80_000), ask(1, 80_016), ask(2, 80_048)]);
        outcomes.iter().map(Outcome::took).collect()
    };
    // The buffer always takes the same time, and the media never to the nanosecond.
    let sound = reads(&[]);
    assert!(sound[1] < sound[0] && sound[2] == sound[1], "{sound:?}");
    let bad = reads(&[80_030]);
    assert!(bad[1] == sound[1] && bad[2] > sound[1], "{bad:?}");
}

fn replies_are_under_way_no_longer_than_said(make: Make) {
    let jitter = SimDuration::from_ms(5);
    let read = request(Op::Read, 123_456, 8);
    let plain = sound(make).ask(read).took();
    let mut late = with(make, Behaviour { reply_jitter: jitter, ..Behaviour::default() });
    // A turn, as the two drives may have been asked at different angles.
    let most = plain + jitter + SimDuration::from_ms(6);
    let took = late.ask(read).took();
    assert!(took <= most, "{took} and not {most}");
}

fn its_own_activity_is_waited_for(make: Make) {
    let lasts = SimDuration::from_ms(80);
    let activity = Some(Activity { every: SimDuration::from_ms(10), lasts });
    let mut drive = with(make, Behaviour { activity, ..Behaviour::default() });
    let asks = burst(&*drive, Op::Read, 12, 4);
    let longest = asks.iter().map(|ask| drive.ask(ask.request).took()).max().unwrap();
    assert!(longest > ONE_AT_MOST, "{longest}");
}

/// A drive of today, whose tracks hold whole sectors of 4 KiB, and whose turn takes 8.3 ms.
fn of_sector(make: Make, sector: SectorFormat, bad: BadBlocks) -> Box<dyn BlackBox> {
    let spec = library::spec("exos-7e8-8tb").unwrap();
    let behaviour = Behaviour {
        sector: Some(sector),
        write_cache: Some(WriteCache::Off),
        ..Behaviour::default()
    };
    make(EmulatedDrive::new(&spec, "exos-7e8-8tb", &behaviour, bad, 1).unwrap())
}

/// Behind a write the head is at the sector's end: it takes a turn to come round for the whole one, and
/// two turns for a part of it.
fn a_part_of_a_sector_takes_a_turn_more(make: Make) {
    let turn = SimDuration::from_us(8333);
    let turns = |sector, start, blocks| {
        let mut drive = of_sector(make, sector, BadBlocks::default());
        drive.ask(request(Op::Write, 80_000, 8));
        let took = drive.play(&[
            Ask { after: SimDuration::ZERO, request: request(Op::Write, 80_000, 8) },
            Ask { after: SimDuration::ZERO, request: request(Op::Write, start, blocks) },
        ]);
        let between = took[1].due - took[0].due;
        (between.ns() + turn.ns() / 4) / turn.ns()
    };
    let (e512, n512) = (SectorFormat::Emulated512, SectorFormat::Native512);
    assert_eq!(turns(e512, 80_000, 8), 1);
    assert_eq!(turns(e512, 80_000, 1), 2);
    assert_eq!(turns(e512, 80_003, 5), 2);
    assert_eq!(turns(n512, 80_000, 1), 1);
}

fn a_bad_sector_fails_whole_and_takes_no_part(make: Make) {
    let bad = BadBlocks::new([Lbn::new(80_003)], SimDuration::from_ms(60));
    let mut drive = of_sector(make, SectorFormat::Emulated512, bad);
    assert_eq!(drive.ask(request(Op::Read, 80_007, 9)).bad, Some(Lbn::new(80_007)));
    assert_eq!(drive.ask(request(Op::Write, 79_990, 12)).bad, Some(Lbn::new(80_001)));
    assert_eq!(drive.ask(request(Op::Write, 80_003, 1)).bad, Some(Lbn::new(80_003)));
    assert_eq!(drive.ask(request(Op::Write, 80_000, 8)).bad, None);
    assert_eq!(drive.ask(request(Op::Write, 80_003, 1)).bad, None);
    assert_eq!(drive.ask(request(Op::Read, 80_000, 8)).bad, None);
}

fn a_drive_of_4kn_serves_whole_sectors(make: Make) {
    let mut drive = of_sector(make, SectorFormat::Native4096, BadBlocks::default());
    let asks = burst(&*drive, Op::Write, 12, 5);
    let outcomes = drive.play(&asks);
    assert_never_early(&outcomes);
    assert!(outcomes.iter().all(|outcome| outcome.bad.is_none()));
}
