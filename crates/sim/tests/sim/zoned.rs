//! Host-managed drives in a run: refused writes, and the results of the others.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_model::zoned::spec::{ZonedKind, ZonedSpec};
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Fit, Placement, Replay, ReplayTiming};
use freewheel_sim::{Completion, Refusal, RefusedWrites, RunResult};
use freewheel_trace::Record;
use freewheel_units::{Blocks, Op, Prng, SimTime, VolumeBlock};
use proptest::prelude::*;

/// Blocks of a zone. No stripe unit of the tests is a multiple or a part of it.
const ZONE: u64 = 40;
const CONVENTIONAL: u32 = 2;
/// Blocks of each drive at which requests aim.
const SPACE: u64 = 5 * ZONE;

/// The Atlas 10K with small zones, as they are managed.
fn experiment(kind: ZonedKind, more: &str) -> Experiment {
    let text = format!("drive = \"atlas10k\"\n{more}\n[workload]\nkind = \"closed\"\n");
    let mut experiment = Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap();
    experiment.spec.zoned = Some(ZonedSpec {
        kind,
        zone_blocks: Blocks::new(ZONE),
        conventional_zones: CONVENTIONAL,
        max_open_zones: 3,
    });
    experiment
}

fn managed(more: &str) -> Experiment {
    experiment(ZonedKind::HostManaged, more)
}

fn record(arrival_us: u64, op: Op, start: u64, blocks: u64) -> Record {
    Record {
        widened: false,
        arrival: SimTime::from_ns(arrival_us * 1000),
        op,
        device: 0,
        start: VolumeBlock::new(start),
        blocks: Blocks::new(blocks),
        completion: None,
        fua: false,
    }
}

/// Plays records by arrival; completions in the order of the records.
fn play(experiment: &Experiment, records: &[Record]) -> (RunResult, Vec<Completion>) {
    let capacity = experiment.striping.blocks();
    let devices = BTreeMap::from([(0, capacity.get())]);
    let placement = Placement::new(&devices, None, capacity, Fit::AsIs).unwrap();
    let list = records.iter().copied().map(Ok);
    let mut source = Replay::new(list, placement, ReplayTiming::TRACED, records.len() as u64);
    let mut done = Vec::new();
    let result = experiment
        .new_run()
        .with_observer(&mut |c| done.push(*c))
        .simulate_source(&mut source)
        .unwrap();
    done.sort_by_key(|c| c.request.tag);
    (result, done)
}

/// Zones block by block: a write pointer is the first block of its zone that is not written.
struct Oracle {
    drives: u64,
    stripe: u64,
    written: BTreeSet<(u64, u64)>,
}

impl Oracle {
    fn new(drives: u64, stripe: u64) -> Self {
        Self { drives, stripe, written: BTreeSet::new() }
    }

    /// Blocks of a request on each drive, in the order in which it comes to them.
    fn parts(&self, record: &Record) -> Vec<(u64, Vec<u64>)> {
        let mut parts: Vec<(u64, Vec<u64>)> = Vec::new();
        for block in record.start.get()..record.end().get() {
            let (unit, offset) = (block / self.stripe, block % self.stripe);
            let (drive, on_drive) = (unit % self.drives, unit / self.drives * self.stripe + offset);
            match parts.iter_mut().find(|(other, _)| *other == drive) {
                Some((_, blocks)) => blocks.push(on_drive),
                None => parts.push((drive, vec![on_drive])),
            }
        }
        parts
    }

    fn refusal(&self, drive: u64, blocks: &[u64]) -> Option<Refusal> {
        let zone = blocks[0] / ZONE;
        let boundary = if zone < u64::from(CONVENTIONAL) {
            u64::from(CONVENTIONAL) * ZONE
        } else {
            (zone + 1) * ZONE
        };
        if blocks.iter().any(|&block| block >= boundary) {
            return Some(Refusal::OverZoneBoundary);
        }
        if zone < u64::from(CONVENTIONAL) {
            return None;
        }
        let is_free = |block: &u64| !self.written.contains(&(drive, *block));
        match (zone * ZONE..boundary).find(is_free) {
            None => Some(Refusal::ZoneFull),
            Some(pointer) if pointer != blocks[0] => Some(Refusal::NotAtWritePointer),
            Some(_) => None,
        }
    }

    fn write(&mut self, record: &Record) -> Option<Refusal> {
        let parts = self.parts(record);
        let refused = parts.iter().find_map(|(drive, blocks)| self.refusal(*drive, blocks));
        if refused.is_none() {
            let each =
                |(drive, blocks): (u64, Vec<u64>)| blocks.into_iter().map(move |b| (drive, b));
            self.written.extend(parts.into_iter().flat_map(each));
        }
        refused
    }

    fn trim(&mut self, record: &Record) {
        for (drive, blocks) in self.parts(record) {
            let is_whole =
                |zone: u64| (zone * ZONE..(zone + 1) * ZONE).all(|b| blocks.contains(&b));
            self.written.retain(|&(other, block)| other != drive || !is_whole(block / ZONE));
        }
    }

    /// A block of the volume in a sequential zone at which a write would be taken.
    fn pointer(&self, prng: &mut Prng) -> u64 {
        let from = self.drives * (u64::from(CONVENTIONAL) * ZONE + prng.below(2 * ZONE));
        let is_taken = |block: &u64| {
            let record = record(0, Op::Write, *block, 1);
            self.parts(&record).iter().all(|(drive, blocks)| self.refusal(*drive, blocks).is_none())
        };
        (from..).find(is_taken).expect("zones without end")
    }
}

/// Requests to the first zones of each drive, most of the writes at a write pointer, and why each
/// is refused.
fn random_requests(seed: u64, drives: u64, stripe: u64) -> (Vec<Record>, Vec<Option<Refusal>>) {
    let prng = &mut Prng::new(seed, "zoned requests");
    let mut oracle = Oracle::new(drives, stripe);
    let mut now = 0;
    let draw = |_| {
        now += prng.below(3_000);
        let op = match prng.below(30) {
            0 => Op::Trim,
            1 => Op::Flush,
            2..6 => Op::Read,
            _ => Op::Write,
        };
        let at_pointer = op == Op::Write && prng.chance(0.6);
        let start = if at_pointer { oracle.pointer(prng) } else { prng.below(drives * SPACE) };
        let longest = if op == Op::Trim { drives * 3 * ZONE } else { 16 };
        let blocks = if op == Op::Flush { 0 } else { 1 + prng.below(longest) };
        let record = record(now, op, start, blocks);
        let refused = if op == Op::Write { oracle.write(&record) } else { None };
        if op == Op::Trim {
            oracle.trim(&record);
        }
        (record, refused)
    };
    (0..250).map(draw).unzip()
}

fn count(refused: &[Option<Refusal>]) -> RefusedWrites {
    let of = |reason| refused.iter().filter(|&&r| r == Some(reason)).count() as u64;
    RefusedWrites {
        count: refused.iter().flatten().count() as u64,
        not_at_write_pointer: of(Refusal::NotAtWritePointer),
        over_zone_boundary: of(Refusal::OverZoneBoundary),
        zone_full: of(Refusal::ZoneFull),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn write_refusals_match_block_model(
        seed: u64, drives in 1u64..4, electronics: bool, outside: bool
    ) {
        // Of one drive the stripe unit is all of it.
        let stripe = if drives == 1 { u64::MAX } else { 24 };
        let (records, expected) = random_requests(seed, drives, stripe);
        let array = format!("drives = {drives}, stripe_unit = \"12KiB\"");
        let scheduler = if outside { "\nhost = {}" } else { "" };
        let more = format!("electronics = {electronics}\narray = {{ {array} }}{scheduler}");
        let (result, done) = play(&managed(&more), &records);
        let refused: Vec<Option<Refusal>> = done.iter().map(|c| c.refused).collect();
        prop_assert_eq!(&refused, &expected);
        prop_assert_eq!(result.refused_writes, count(&expected));
        prop_assert_eq!(result.requests as usize, records.len());
    }

    #[test]
    fn flush_waits_only_for_taken_writes(seed: u64) {
        let (records, refused) = random_requests(seed, 1, u64::MAX);
        let (_, done) = play(&managed("electronics = false"), &records);
        let origin = records[0].arrival;
        for (index, c) in done.iter().enumerate().filter(|(_, c)| c.request.op == Op::Flush) {
            let taken = |other: &usize| {
                records[*other].op == Op::Write && refused[*other].is_none()
            };
            let last = (0..index).filter(taken).map(|other| done[other].end).max();
            let arrival = SimTime::ZERO + (records[index].arrival - origin);
            prop_assert_eq!(c.end, last.unwrap_or(arrival).max(arrival));
        }
    }
}

#[test]
fn refusal_reasons_all_occur() {
    let refused: Vec<Option<Refusal>> =
        (0..20).flat_map(|seed| random_requests(seed, 2, 24).1).collect();
    let counts = count(&refused);
    let reasons = [counts.not_at_write_pointer, counts.over_zone_boundary, counts.zone_full];
    assert!(reasons.iter().all(|&count| count > 20), "{counts:?}");
    assert!((refused.len() as u64) > 2 * counts.count, "{counts:?}");
}

#[test]
fn zones_in_order_written_whole() {
    let first = u64::from(CONVENTIONAL) * ZONE;
    let writes: Vec<Record> =
        (0..100).map(|i| record(i * 100, Op::Write, first + i * 10, 10)).collect();
    for policy in ["fcfs", "sptf"] {
        let more = format!("scheduler = {{ policy = \"{policy}\" }}");
        let (result, _) = play(&managed(&more), &writes);
        assert_eq!(result.refused_writes, RefusedWrites::default());
        assert_eq!(result.write_response.count, 100);
    }
}

#[test]
fn flush_after_refused_writes_at_once() {
    let mut records: Vec<Record> = (0..5).map(|i| record(i, Op::Write, 505, 1)).collect();
    records.push(record(9, Op::Flush, 0, 0));
    let (result, done) = play(&managed(""), &records);
    assert_eq!(result.refused_writes.not_at_write_pointer, 5);
    assert_eq!((result.flush_response.count, result.flush_response.max_ns), (1, 0));
    assert!(done.iter().all(|c| c.arrival == c.end));
}

#[test]
fn refused_writes_count_nowhere() {
    let records = [record(0, Op::Write, 80, 8), record(50_000, Op::Write, 80, 8)];
    let (result, done) = play(&managed(""), &records);
    assert_eq!(done[1].refused, Some(Refusal::NotAtWritePointer));
    assert_eq!((result.write_response.count, result.response.count), (1, 1));
    assert_eq!(result.write_response.max_ns, done[0].response().ns());
    assert_eq!((result.requests, result.write_bytes), (2, 4096));
}

#[test]
fn read_beyond_write_pointer_from_media() {
    let records = [record(0, Op::Write, 80, 8), record(50_000, Op::Read, 100, 60)];
    let (result, done) = play(&managed("electronics = false"), &records);
    assert_eq!((result.refused_writes.count, result.read_response.count), (0, 1));
    assert!(done[1].transfer.ns() > 0);
}

#[test]
fn zone_rewritten_after_whole_trim() {
    let again = |trimmed: u64| {
        let write = |at| record(at, Op::Write, 80, ZONE);
        let records = [write(0), record(50_000, Op::Trim, 80, trimmed), write(100_000)];
        play(&managed(""), &records).1[2].refused
    };
    assert_eq!(again(ZONE), None);
    assert_eq!(again(ZONE - 1), Some(Refusal::ZoneFull));
}

#[test]
fn host_transparent_zones_change_nothing() {
    let (records, _) = random_requests(1, 1, u64::MAX);
    let mut without = managed("");
    without.spec.zoned = None;
    let (expected, _) = play(&without, &records);
    for kind in [ZonedKind::HostAware, ZonedKind::DriveManaged] {
        let (result, _) = play(&experiment(kind, ""), &records);
        assert_eq!(result, expected);
    }
}

#[test]
fn zones_span_arms_of_two_actuators() {
    let text = "drive = \"exos-2x18-18tb\"\n[workload]\nkind = \"closed\"\n";
    let mut experiment = Experiment::new(SimConfig::parse(text, "test", &[]).unwrap()).unwrap();
    let arm = experiment.drive.blocks().get();
    // The third zone begins on the first arm and ends on the second.
    let zone = arm / 2 - 100;
    experiment.spec.zoned = Some(ZonedSpec {
        kind: ZonedKind::HostManaged,
        zone_blocks: Blocks::new(zone),
        conventional_zones: 2,
        max_open_zones: 3,
    });
    let blocks = arm - 2 * zone + 8;
    let writes = [(2 * zone, blocks), (2 * zone + blocks, 8), (arm, 8)];
    let record = |(at, (start, blocks))| record(at, Op::Write, start, blocks);
    let records: Vec<Record> = (0..).zip(writes).map(record).collect();
    let (_, done) = play(&experiment, &records);
    let refused: Vec<Option<Refusal>> = done.iter().map(|c| c.refused).collect();
    assert_eq!(refused, [None, None, Some(Refusal::NotAtWritePointer)]);
}
