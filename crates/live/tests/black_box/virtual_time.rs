//! In virtual time: from event to event.

use std::collections::BTreeMap;
use std::sync::Arc;

use freewheel_live::emulate::{COMMAND_BLOCKS_MAX, HostAdapter, Request};
use freewheel_model::drive::Drive;
use freewheel_model::electronics::DriveUnit;
use freewheel_model::electronics::spec::WriteCache;
use freewheel_model::sched::{CommandMark, Waiting};
use freewheel_sim::black_box::{BadBlocks, Behaviour, EmulatedDrive};
use freewheel_sim::library;
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use super::suite::SUITE;
use super::{Ask, BlackBox, FLUSH, Outcome, drive, request, spec};

/// A drive whose time is that of its last answer.
pub struct Virtual {
    adapter: HostAdapter,
    blocks: Blocks,
    pub now: SimTime,
}

impl Virtual {
    pub fn new(drive: EmulatedDrive) -> Self {
        let blocks = drive.blocks();
        Self { adapter: HostAdapter::new(drive), blocks, now: SimTime::ZERO }
    }
}

impl BlackBox for Virtual {
    fn blocks(&self) -> Blocks {
        self.blocks
    }

    fn play(&mut self, script: &[Ask]) -> Vec<Outcome> {
        let begin = self.now;
        let mut coming = script.iter().enumerate().peekable();
        let mut outcomes = BTreeMap::new();
        loop {
            let arrival = coming.peek().map(|(_, ask)| begin + ask.after);
            match (self.adapter.next_event(), arrival) {
                (Some(event), arrival) if arrival.is_none_or(|arrival| event <= arrival) => {
                    self.now = event;
                    let mut done = None;
                    self.adapter.advance(event, |finished| done = Some(finished));
                    let Some(done) = done else { continue };
                    let asked = begin + script[done.id as usize].after;
                    let (due, bad) = (done.at, done.bad);
                    let outcome = Outcome { asked, due, handed: event, bad };
                    assert_eq!(outcomes.insert(done.id, outcome), None);
                }
                (_, Some(arrival)) => {
                    let (id, ask) = coming.next().unwrap();
                    self.now = arrival;
                    self.adapter.submit(arrival, id as u64, ask.request);
                }
                _ => break,
            }
        }
        assert!(self.adapter.is_idle());
        outcomes.into_values().collect()
    }
}

#[test]
fn suite_holds_in_virtual_time() {
    for (name, test) in SUITE {
        println!("{name}");
        test(|drive| Box::new(Virtual::new(drive)));
    }
}

#[test]
fn long_request_takes_time_of_commands() {
    let longest = u64::from(COMMAND_BLOCKS_MAX);
    let pieces = [(0, longest), (longest, longest), (2 * longest, 5)];
    let ask = |(start, blocks)| Ask {
        after: SimDuration::ZERO,
        request: request(Op::Write, start, blocks),
    };
    let fresh = || Virtual::new(drive(&Behaviour::default(), BadBlocks::default()));
    let whole = fresh().play(&[ask((0, 2 * longest + 5))]);
    let pieces = fresh().play(&pieces.map(ask));
    assert_eq!(whole[0].due, pieces.iter().map(|piece| piece.due).max().unwrap());
    // 64 MiB at what the outermost zone gives at most.
    assert!(whole[0].took() > SimDuration::from_secs(2), "{}", whole[0].took());
}

fn cached() -> Virtual {
    let behaviour = Behaviour { write_cache: Some(WriteCache::On), ..Behaviour::default() };
    Virtual::new(drive(&behaviour, BadBlocks::default()))
}

#[test]
fn forced_write_timed_without_write_cache() {
    let write = request(Op::Write, 3_000_000, 64);
    let forced = cached().ask(Request { fua: true, ..write });
    let behaviour = Behaviour { write_cache: Some(WriteCache::Off), ..Behaviour::default() };
    let plain = Virtual::new(drive(&behaviour, BadBlocks::default())).ask(write);
    assert_eq!(forced.due, plain.due);
    assert!(cached().ask(write).due < forced.due);
}

#[test]
fn forced_write_skips_other_cached_blocks() {
    let spec = library::spec("exos-x24-24tb").unwrap();
    let last = |request_behind| {
        let drive = EmulatedDrive::new(&spec, "it", &Behaviour::default(), BadBlocks::default(), 1);
        let mut drive = Virtual::new(drive.unwrap());
        for place in 1..9 {
            let write = drive.ask(request(Op::Write, place * 5_000_000_000, 8));
            assert!(write.took() < SimDuration::from_ms(1), "{}", write.took());
        }
        drive.ask(request_behind).took()
    };
    // Eight cached writes take some 100 ms, one some 12 ms.
    let forced = last(Request { fua: true, ..request(Op::Write, 2_500_000_000, 8) });
    let flush = last(FLUSH);
    assert!(forced > SimDuration::from_ms(2) && forced * 2 < flush, "{forced} and {flush}");
}

#[test]
fn forced_write_timed_as_simulated_drive() {
    let mut unit =
        DriveUnit::new(&Arc::new(Drive::build(&spec()).unwrap()), &spec().electronics).unwrap();
    let mut emulated = cached();
    let prng = &mut Prng::new(1, "forced writes");
    for _ in 0..200 {
        let (start, fua) = (prng.below(17_000_000), prng.chance(0.5));
        let op = if prng.chance(0.5) { Op::Write } else { Op::Read };
        let outcome = emulated.ask(Request { fua, ..request(op, start, 8) });
        let target = unit.drive().target(Lbn::new(start), Blocks::new(8), op);
        let arrival = outcome.asked;
        let served = unit.serve_alone(&Waiting {
            target,
            arrival,
            sequence: 0,
            fua,
            mark: CommandMark::None,
        });
        assert_eq!(outcome.due, served.end, "{op:?} of {start}, FUA {fua}");
    }
}

fn ask() -> impl Strategy<Value = Ask> {
    let op = prop_oneof![3 => Just(Op::Read), 3 => Just(Op::Write), 1 => Just(Op::Flush)];
    (op, 0u64..17_000_000, 1u64..200_000, any::<bool>(), 0u64..20_000_000).prop_map(
        |(op, start, blocks, fua, after)| {
            let fua = fua && op == Op::Write;
            // Mostly short ones.
            let blocks = if blocks % 16 == 0 { blocks } else { blocks % 64 + 1 };
            let request = Request { fua, ..request(op, start, blocks) };
            Ask { after: SimDuration::from_ns(after), request }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn request_answered_once_after_arrival(
        mut script in prop::collection::vec(ask(), 1..60), depth in 1u32..8
    ) {
        script.sort_by_key(|ask| ask.after);
        let behaviour = Behaviour { queue_depth: Some(depth), ..Behaviour::default() };
        let mut drive = Virtual::new(drive(&behaviour, BadBlocks::default()));
        let outcomes = drive.play(&script);
        prop_assert_eq!(outcomes.len(), script.len());
        prop_assert!(outcomes.iter().all(|outcome| outcome.due >= outcome.asked));
    }
}
