//! Blocks that pass the head before a fetch: those behind its last read, or those before its target.

use std::collections::VecDeque;

use freewheel_model::drive::Drive;
use freewheel_sim::CacheWork;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_units::{Blocks, Lbn, Op, SimDuration, SimTime, VolumeBlock};

const DISK: &str = r#"
    drive = "atlas10k"
    electronics = false
    scheduler = { policy = "fcfs" }
    cache = { size = "8MiB" }
    [workload]
    kind = "closed"
"#;

/// Requests of 8 blocks at their times.
struct Timed(VecDeque<(SimTime, Op, u64)>);

impl Source for Timed {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(self.0.front().map(|(time, ..)| *time))
    }

    fn take(&mut self) -> Request {
        let (_, op, start) = self.0.pop_front().unwrap();
        let (start, blocks) = (VolumeBlock::new(start), Blocks::new(8));
        Request { op, start, blocks, fua: false, tag: start.get() }
    }

    fn completed(&mut self, _: u64, _: SimTime) {}

    fn progress(&self) -> (u64, u64) {
        (0, self.0.len() as u64)
    }
}

/// Blocks that passed the head in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Passed {
    free: u64,
    behind: u64,
}

struct Run {
    work: CacheWork,
    ends: Vec<SimTime>,
}

impl Run {
    fn passed(&self) -> Passed {
        let brought = &self.work.prefetch;
        Passed {
            free: brought.free_blocks.brought_bytes / 512,
            behind: brought.just_in_time_seek.brought_bytes / 512,
        }
    }
}

fn experiment(kinds: &[&str]) -> Experiment {
    let keys = kinds.iter().map(|kind| format!("cache.opportunistic.{kind}=true"));
    Experiment::new(SimConfig::parse(DISK, "test", &keys.collect::<Vec<_>>()).unwrap()).unwrap()
}

fn run(requests: &[(u64, Op, u64)], kinds: &[&str]) -> Run {
    let requests = requests.iter().map(|&(us, op, start)| (at(us), op, start)).collect();
    let mut ends = Vec::new();
    let mut observer = |end: &freewheel_sim::Completion| ends.push(end.end);
    let result = experiment(kinds)
        .new_run()
        .with_observer(&mut observer)
        .simulate_source(&mut Timed(requests))
        .unwrap();
    Run { work: result.cache.unwrap(), ends }
}

fn at(us: u64) -> SimTime {
    SimTime::ZERO + SimDuration::from_us(us)
}

const BOTH: [&str; 2] = ["free_blocks", "just_in_time_seek"];

/// With both kinds, the last request of `requests` takes what `chosen` alone gives it, and none of the
/// other. Returns how many blocks that are.
fn chosen(requests: &[(u64, Op, u64)], chosen: &str) -> u64 {
    let but_one = &requests[..requests.len() - 1];
    let of_last = |kinds: &[&str]| {
        let [all, before] = [requests, but_one].map(|requests| run(requests, kinds).passed());
        Passed { free: all.free - before.free, behind: all.behind - before.behind }
    };
    let (alone, both) = (of_last(&[chosen]), of_last(&BOTH));
    assert_eq!(alone, both, "{requests:?}");
    let rest = if chosen == BOTH[0] { both.behind } else { both.free };
    assert_eq!(rest, 0, "{requests:?}");
    both.free + both.behind
}

/// Targets so far from the first read that the head has to leave its track, at any angle.
fn far() -> impl Iterator<Item = u64> {
    (0..20).map(|shift| 9_000_000 + 17 * shift)
}

/// A block that comes to the head at once when the run begins, so that no block passes before it, with half of
/// its track behind it.
fn near(drive: &Drive) -> u64 {
    let track = |block| drive.layout().track_bounds(Lbn::new(block));
    let comes_at_once = |&block: &u64| {
        let (start, end) = track(block);
        let is_early = block - start.get() < (end.get() - start.get()) / 2;
        is_early && latency(drive, SimTime::ZERO, 0, block) < SimDuration::from_us(20)
    };
    (40_000..60_000).find(comes_at_once).expect("one of many tracks has it")
}

#[test]
fn head_reading_on_lacks_blocks_before_target() {
    let near = near(&experiment(&[]).drive);
    let each = far().map(|far| chosen(&[(0, Op::Read, near), (1, Op::Read, far)], BOTH[1]));
    assert!(each.sum::<u64>() > 1000);
}

#[test]
fn head_paused_takes_blocks_before_target() {
    let near = near(&experiment(&[]).drive);
    let each = far().map(|far| chosen(&[(0, Op::Read, near), (50_000, Op::Read, far)], BOTH[0]));
    assert!(each.sum::<u64>() > 1000);
}

#[test]
fn head_after_write_takes_blocks_before_target() {
    let near = near(&experiment(&[]).drive);
    let each = far().map(|far| chosen(&[(0, Op::Write, near), (1, Op::Read, far)], BOTH[0]));
    assert!(each.sum::<u64>() > 1000);
}

#[test]
fn head_at_track_end_takes_earlier_blocks() {
    let drive = experiment(&[]).drive;
    let (_, end) = drive.layout().track_bounds(Lbn::new(near(&drive)));
    let last = end.get() - 8;
    let each = far().map(|far| chosen(&[(0, Op::Read, last), (1, Op::Read, far)], BOTH[0]));
    assert!(each.sum::<u64>() > 1000);
}

#[test]
fn head_with_full_memory_takes_earlier_blocks() {
    let drive = experiment(&[]).drive;
    let near = near(&drive);
    let (_, end) = drive.layout().track_bounds(Lbn::new(near));
    // The rest of the track, with a pause before each read.
    let behind = (near + 8..end.get()).step_by(8).map(|start| start.min(end.get() - 8));
    let mut requests: Vec<_> =
        behind.enumerate().map(|(n, start)| (50_000 * n as u64, Op::Read, start)).collect();
    let later_us = 50_000 * requests.len() as u64;
    let each = far().map(|far| {
        let mut requests = requests.clone();
        requests.extend([(later_us, Op::Read, near), (later_us + 1, Op::Read, far)]);
        chosen(&requests, BOTH[0])
    });
    assert!(each.sum::<u64>() > 1000);
    // Without them, the same head reads on.
    requests.clear();
    requests.extend([(later_us, Op::Read, near), (later_us + 1, Op::Read, 9_000_000)]);
    assert!(run(&requests, &BOTH).passed().behind > 0);
}

/// Sector for sector: what is under the head, from the end of the first read until the head must leave to be
/// in time, at the same end as without reading on.
#[test]
fn head_reads_on_until_seek_is_due() {
    let drive = experiment(&[]).drive;
    let near = near(&drive);
    for target in far() {
        let requests = [(0, Op::Read, near), (1, Op::Read, target)];
        let [plain, late] = [&[][..], &BOTH[1..]].map(|kinds| run(&requests, kinds));
        assert_eq!(plain.ends, late.ends);
        let latency = latency(&drive, plain.ends[0], near + 7, target);
        let expected = (near + 8..).take_while(|&block| {
            let is_on_track = on_track(&drive, block) == on_track(&drive, near);
            is_on_track && passes_ns(&drive, near + 8, block) <= latency.ns()
        });
        let expected = expected.count() as u64;
        assert!(late.passed().behind.abs_diff(expected) <= 1, "{expected} {:?}", late.passed());
        // That time is no service of the second read.
        let [plain, late] = [&plain, &late].map(|run| run.work.read_service_ns);
        let turn_ns = drive.rotation().period_ns();
        let sectors = drive.layout().track_bounds(Lbn::new(near));
        let part_ns = turn_ns * expected / (sectors.1.get() - sectors.0.get());
        let sector_ns = turn_ns / 200;
        assert!((plain - late).abs_diff(part_ns) <= sector_ns, "{} {part_ns}", plain - late);
    }
}

fn on_track(drive: &Drive, block: u64) -> (u32, u32) {
    let place = drive.layout().locate(Lbn::new(block));
    (place.cylinder, place.surface)
}

/// From the start of one block to the end of another on its track.
fn passes_ns(drive: &Drive, from: u64, to: u64) -> u64 {
    let (start, end) = drive.layout().track_bounds(Lbn::new(from));
    drive.rotation().period_ns() * (to + 1 - from) / (end.get() - start.get())
}

/// Latency of the first sector of `target` when the head leaves the track of `from` at once.
fn latency(drive: &Drive, now: SimTime, from: u64, target: u64) -> SimDuration {
    let place = drive.layout().locate(Lbn::new(from));
    let head =
        freewheel_model::drive::Position { cylinder: place.cylinder, surface: place.surface };
    let target = drive.target(Lbn::new(target), Blocks::new(1), Op::Read);
    drive.positioning(now, head, &target).rotate
}
