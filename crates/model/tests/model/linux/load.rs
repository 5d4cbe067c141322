//! Requests for tests, and a random load on a scheduler beside its oracle.

use freewheel_model::sched::CommandMark;
use freewheel_model::sched::PolicySpec;
use freewheel_model::sched::linux::{BlockLayer, IoRequest};
use freewheel_units::{Lbn, Op, Prng, SimDuration, SimTime};

pub fn at_ms(ms: u64) -> SimTime {
    SimTime::ZERO + SimDuration::from_ms(ms)
}

pub fn request(sequence: u64, op: Op, start: u64, blocks: u32, now: SimTime) -> IoRequest {
    let start = Lbn::new(start);
    let mark = CommandMark::None;
    IoRequest { op, start, blocks, fua: false, sequence, arrival: now, queued: now, mark }
}

pub fn layer(text: &str) -> BlockLayer {
    with(&text.parse().unwrap())
}

pub fn with(spec: &PolicySpec) -> BlockLayer {
    BlockLayer::new(spec, 32).unwrap().expect("a scheduler of Linux")
}

/// The slow form of a scheduler: the rules, applied to a list.
pub trait Oracle {
    fn arrive(&mut self, now: SimTime, request: IoRequest);
    fn dispatch(&mut self, now: SimTime) -> Option<IoRequest>;
    fn completed(&mut self, now: SimTime, request: &IoRequest, dispatched: SimTime);
}

/// Number of times that requests adjoin, how long a step is, and how many requests are at the drive at
/// most.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub step: SimDuration,
    pub depth: usize,
    pub places: u64,
}

/// Random arrivals, dispatches and completions; the scheduler must send what the oracle sends.
pub fn follows(mut layer: BlockLayer, oracle: &mut impl Oracle, seed: u64, load: Load) {
    let prng = &mut Prng::new(seed, "linux");
    let mut at_drive: Vec<(IoRequest, SimTime)> = Vec::new();
    let (mut arrived, mut done) = (0, 0);
    let mut now = SimTime::ZERO;
    for _ in 0..600 {
        now += SimDuration::from_ns(prng.below(2 * load.step.ns() + 1));
        for _ in 0..prng.below(4) {
            let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
            let blocks = 8 * (1 + prng.below(3)) as u32;
            let new = request(arrived, op, 8 * prng.below(load.places), blocks, now);
            let marks = [CommandMark::None, CommandMark::HighPriority];
            let mark = marks[usize::from(prng.chance(0.1))];
            let new = IoRequest { fua: prng.chance(0.05), mark, ..new };
            arrived += 1;
            layer.arrive(now, new);
            oracle.arrive(now, new);
        }
        if !at_drive.is_empty() && prng.chance(0.7) {
            let (request, dispatched) =
                at_drive.swap_remove(prng.below(at_drive.len() as u64) as usize);
            done += layer.completed(now, request.sequence).len() as u64;
            oracle.completed(now, &request, dispatched);
        }
        while at_drive.len() < load.depth {
            let sent = layer.dispatch(now);
            assert_eq!(sent, oracle.dispatch(now), "at {now}, {arrived} have arrived");
            let Some(sent) = sent else { break };
            at_drive.push((sent, now));
        }
    }
    assert!(done > 200, "{done} of {arrived} done");
}
