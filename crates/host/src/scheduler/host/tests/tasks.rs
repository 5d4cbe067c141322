//! Background tasks of the scheduler.

use std::collections::BTreeSet;

use freewheel_model::drive::{Departure, Position};
use freewheel_units::Blocks;

use super::*;
use crate::tasks::{Sample, ServedTaskError, ServedTaskReport, Stratum, TaskState, delivery_bias};
use freewheel_freeblock::PromoteTail;

/// More than any test hands on.
const ROOM: u64 = 1 << 40;

impl TestHost {
    pub(super) fn create(&mut self, ordered: impl Into<ServedOrder>) -> u64 {
        let ordered = ordered.into();
        let (has_reader, since) = (ordered.has_reader, ordered.parts.skip_since);
        let id = self.scheduler.tasks_mut().create(self.now, ordered).unwrap();
        if has_reader {
            let written = self.scheduler.written().since(since, self.blocks());
            self.scheduler.tasks_mut().reader_came(self.now, id, ROOM, &written).unwrap();
        }
        id
    }

    fn task(&self, id: u64) -> ServedTaskReport {
        self.scheduler.tasks().report(id, self.now).unwrap()
    }

    /// Random reads, and writes with this chance, until the task is over.
    fn load_until_over(&mut self, id: u64, seed: u64, writes: f64) {
        let mut prng = Prng::new(seed, "requests of a client");
        for _ in 0..60_000 {
            let blocks = 1 + prng.below(24);
            let start = prng.below(self.blocks() - blocks);
            if writes > 0.0 && prng.chance(writes / 8.0) {
                self.erase(Erase::Zeroes { keep: false }, start, blocks, false);
            } else if prng.chance(writes) {
                let bytes = (blocks * BLOCK_BYTES) as usize;
                let data = (0..bytes).map(|_| prng.below(256) as u8).collect();
                self.write(start, data, false);
            } else {
                self.read(start, blocks);
            }
            self.run_until(self.now + us(prng.below(9000)));
            if self.task(id).state.is_over() {
                return self.run_until(self.now + us(1_000_000));
            }
        }
        panic!("a scan of so small a drive ends: {:?}", self.task(id));
    }

    /// Puts something on the media that tells each block from all others.
    fn fill(&mut self) {
        let mut prng = Prng::new(9, "what is on the media");
        self.media.iter_mut().for_each(|byte| *byte = prng.below(256) as u8);
    }
}

/// Data that a task delivered, each block at most once.
fn image(outputs: &[ServedTaskOutput], bytes: usize) -> (Vec<u8>, BTreeSet<u64>) {
    let (mut image, mut there) = (vec![0; bytes], BTreeSet::new());
    for output in outputs {
        let ServedTaskOutput::Data { start, data, .. } = output else { continue };
        let from = (start.get() * BLOCK_BYTES) as usize;
        image[from..from + data.len()].copy_from_slice(data);
        for block in start.get()..start.get() + data.len() as u64 / BLOCK_BYTES {
            assert!(there.insert(block), "{block} is handed on once");
        }
    }
    (image, there)
}

fn named(report: &ServedTaskReport) -> Vec<u64> {
    let ranges = report.unreadable.iter();
    ranges.flat_map(|run| run.start.get()..run.start.get() + run.blocks.get()).collect()
}

#[test]
fn scan_hands_on_each_block_once() {
    for same_track in [SameTrack::Merge, SameTrack::Distinct] {
        let mut world = TestHost::without_tasks(&[], same_track);
        world.fill();
        let before = world.media.clone();
        let id = world.create(read_by(world.whole(TaskKind::Scan)));
        world.load_until_over(id, 4, 0.0);
        let (image, there) = image(&world.outputs(), before.len());
        assert_eq!(
            there.len() as u64,
            world.blocks(),
            "and the last blocks, which are no whole one"
        );
        assert!(image == before);
        assert_eq!(world.task(id).delivered.get(), world.blocks());
    }
}

#[test]
fn extent_task_hands_on_blocks_once() {
    for (kind, writes) in [(TaskKind::Scan, 0.0), (TaskKind::Backup, 0.5)] {
        let mut world = TestHost::without_tasks(&[], SameTrack::Distinct);
        world.fill();
        let before = world.media.clone();
        let last = world.blocks() / 8 * 8 - 8;
        let many = (0..200).map(|number| Extent::new(1000 + number * 48, 24));
        let tail = Extent::new(last, world.blocks() - last);
        let wanted: Vec<Extent> =
            [Extent::new(40, 8)].into_iter().chain(many).chain([tail]).collect();
        let blocks = |extents: &[Extent]| -> BTreeSet<u64> {
            let block =
                |extent: &Extent| extent.start.get()..extent.start.get() + extent.blocks.get();
            extents.iter().flat_map(block).collect()
        };
        let expected = blocks(&wanted);
        let parts = TaskParts { wanted, ..TaskParts::default() };
        let id = world.create(ServedOrder { parts, ..read_by(world.whole(kind)) });
        assert_eq!(world.task(id).blocks.get(), expected.len() as u64);
        assert_eq!(world.task(id).left.get(), expected.len() as u64);
        world.load_until_over(id, 7, writes);
        let (image, there) = image(&world.outputs(), before.len());
        assert_eq!(there, expected, "and the last blocks, which are no whole one");
        for at in there.iter().map(|block| (block * BLOCK_BYTES) as usize) {
            assert!(image[at..at + 512] == before[at..at + 512]);
        }
        let report = world.task(id);
        assert_eq!((report.left.get(), report.delivered.get()), (0, expected.len() as u64));
    }
}

#[test]
fn backup_is_snapshot_under_writes() {
    for seed in 1..4 {
        let mut world = TestHost::without_tasks(&[], SameTrack::Distinct);
        world.fill();
        let before = world.media.clone();
        let spec = TaskOrder { block_size: blocks(40), ..world.whole(TaskKind::Backup) };
        let id = world.create(read_by(spec));
        world.load_until_over(id, seed, 0.5);
        let (image, there) = image(&world.outputs(), before.len());
        assert_eq!(there.len() as u64, world.blocks());
        assert!(image == before, "seed {seed}");
        assert!(world.media != before, "it was written over");
        assert!(world.task(id).copied.get() > 1000, "{:?}", world.task(id).copied);
    }
}

#[test]
fn backup_is_snapshot_under_full_erase() {
    for can in [true, false] {
        let mut world = TestHost::without_tasks(&[], SameTrack::Distinct);
        world.scheduler.abilities = Abilities { write_zeroes: can, ..world.scheduler.abilities };
        world.fill();
        let before = world.media.clone();
        let spec = read_by(world.whole(TaskKind::Backup));
        let id = world.create(spec);
        let aborted = world.create(read_by(world.whole(TaskKind::Backup)));
        world.run_until(world.now + us(100_000));
        world.erase(Erase::Zeroes { keep: false }, 0, world.blocks(), false);
        world.run_until(world.now + us(50_000));
        world.scheduler.tasks_mut().abort(world.now, aborted).unwrap();
        // No backup reads it before it is erased.
        world.read(0, 8);
        world.run_until(world.now + us(30_000_000));
        assert_eq!(world.task(id).state, TaskState::Done, "{:?}", world.task(id));
        let mut outputs = world.outputs();
        outputs
            .retain(|output| matches!(output, ServedTaskOutput::Data { task, .. } if *task == id));
        let (image, there) = image(&outputs, before.len());
        assert_eq!(there.len() as u64, world.blocks());
        assert!(image == before);
        assert!(world.media.iter().all(|&byte| byte == 0));
        let (_, (_, read)) = world.answers.last().unwrap();
        assert!(read.as_ref().unwrap().iter().all(|&byte| byte == 0));
    }
}

#[test]
fn backup_continues_with_missing_blocks_only() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Distinct);
    world.fill();
    let half = world.blocks() / 2 / 2048 * 2048;
    let old = world.media[..(half * BLOCK_BYTES) as usize].to_vec();
    let since = world.now;
    world.write(2048 + 5, vec![7; 512], false);
    world.run_until(world.now + us(50_000));
    let before = world.media.clone();
    let skip = vec![Extent::new(0, half)];
    let parts = TaskParts { skip, skip_since: since, ..TaskParts::default() };
    let id = world.create(ServedOrder { parts, ..read_by(world.whole(TaskKind::Backup)) });
    world.load_until_over(id, 2, 0.5);
    let (mut image, there) = image(&world.outputs(), before.len());
    assert!(!there.contains(&0) && there.contains(&2048), "the region that was written");
    for block in (0..half).filter(|block| !there.contains(block)) {
        let at = (block * BLOCK_BYTES) as usize;
        image[at..at + 512].copy_from_slice(&old[at..at + 512]);
    }
    assert!(image == before, "of the moment when it went on");
    assert!(world.task(id).blocks.get() > world.blocks() - half);
}

#[test]
fn backup_has_no_earlier_reads() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Distinct);
    world.fill();
    world.create(TaskOrder { repeat: true, ..world.whole(TaskKind::Scrub) });
    let mut prng = Prng::new(3, "reads");
    let is_free = |world: &TestHost, id: &u64| world.scheduler.at_device[id].foreground.is_none();
    let free = loop {
        let start = prng.below(world.blocks() - 8);
        world.read(start, 8);
        world.run_until(world.now + us(1500));
        if let Some(&id) = world.inside.keys().find(|id| is_free(&world, id)) {
            break id;
        }
    };
    let (start, bytes) = (world.inside[&free].start.get(), world.inside[&free].data.len());
    assert!(bytes >= 16 * 512, "whole blocks of the backup");
    world.slow = Some(free);
    while world.late.is_none() {
        world.run_until(world.now + us(1000));
    }
    let write = world.write(start, vec![7; bytes], false);
    world.run_until(world.now + us(200_000));
    assert!(world.answers.iter().any(|(_, (id, _))| *id == write), "it is acknowledged");
    let before = world.media.clone();
    let id = world.create(read_by(world.whole(TaskKind::Backup)));
    while world.scheduler.tasks().has_ahead() {
        world.settle();
    }
    world.slow = None;
    let reply = world.late.take().unwrap();
    world.scheduler.came_back(free, world.now, reply);
    world.load_until_over(id, 1, 0.5);
    let (image, there) = image(&world.outputs(), before.len());
    assert_eq!(there.len() as u64, world.blocks());
    assert!(image == before);
}

/// A backup of a drive with these blocks bad, of which a client writes over 512 KiB from `start` on:
/// returns how long that takes, and the backup's report, once its data are checked.
fn written_over(bad: &[u64], start: u64) -> (SimDuration, ServedTaskReport) {
    let mut world = TestHost::without_tasks(bad, SameTrack::Merge);
    world.fill();
    let before = world.media.clone();
    let id = world.create(read_by(world.whole(TaskKind::Backup)));
    world.write(start, vec![7; 512 << 10], false);
    while world.answers.is_empty() {
        world.run_until(world.now + us(10_000));
    }
    let took = world.answers[0].0.saturating_since(SimTime::ZERO);
    world.scheduler.tasks_mut().promote(world.now, id).unwrap();
    world.run_until(world.now + us(60_000_000));
    let report = world.task(id);
    assert_eq!(report.state, TaskState::Done);
    let (image, there) = image(&world.outputs(), before.len());
    let lost: BTreeSet<u64> = named(&report).into_iter().collect();
    for block in 0..world.blocks() {
        let at = (block * BLOCK_BYTES) as usize;
        assert!(there.contains(&block) != lost.contains(&block), "{block} is there or named");
        assert!(lost.contains(&block) || image[at..at + 512] == before[at..at + 512], "{block}");
    }
    (took, report)
}

#[test]
fn backup_loses_only_bad_sectors() {
    let bad = [1003, 1004, 1200];
    let (_, report) = written_over(&bad, 512);
    assert_eq!(named(&report), bad);
}

#[test]
fn unreadable_large_sectors_are_named_whole() {
    let mut world = TestHost::sized(20, 4096, &[1003, 5000], SameTrack::Merge);
    world.fill();
    let before = world.media.clone();
    let spec = TaskOrder { block_size: blocks(40), ..world.whole(TaskKind::Scan) };
    let id = world.create(read_by(spec));
    world.scheduler.tasks_mut().promote(world.now, id).unwrap();
    world.run_until(world.now + us(30_000_000));
    let report = world.task(id);
    assert_eq!(report.state, TaskState::Done);
    assert_eq!(report.unreadable, [Extent::new(1000, 8), Extent::new(5000, 8)]);
    let (image, there) = image(&world.outputs(), before.len());
    assert_eq!(there.len() as u64, world.blocks() - 16);
    assert!(there.iter().all(|block| {
        let at = (block * BLOCK_BYTES) as usize;
        image[at..at + 512] == before[at..at + 512]
    }));
}

#[test]
fn task_splitting_sector_is_refused() {
    let mut world = TestHost::sized(20, 4096, &[], SameTrack::Merge);
    let mut refused = |start, blocks, size| {
        let spec = TaskOrder::served(TaskKind::Scan, Extent::new(start, blocks), size);
        world.scheduler.tasks_mut().create(SimTime::ZERO, spec.into()).unwrap_err().to_string()
    };
    let size = refused(0, 800, 12);
    assert!(size.contains("reads at once 12 blocks") && size.contains("multiple of 8"), "{size}");
    assert!(refused(12, 800, 8).contains("begins at 12 blocks"));
    assert!(refused(8, 804, 8).contains("has 804 blocks"));
}

#[test]
fn write_over_bad_sectors_is_fast() {
    let bad: Vec<u64> = (512..1536).step_by(2).collect();
    let (took, report) = written_over(&bad, 512);
    let named = named(&report);
    assert!(bad.iter().all(|bad| named.contains(bad)));
    // Each of some 1000 reads that fail is 20 ms.
    assert!(took < us(6_000_000), "{took:?}");
}

#[test]
fn backup_reads_before_write_in_few_requests() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    world.create(read_by(world.whole(TaskKind::Backup)));
    world.run_until(world.now + us(1000));
    world.write(3, vec![7; 4096 * 512], false);
    let reads = world
        .scheduler
        .pending
        .values()
        .filter(|pending| matches!(pending.owner, RequestOwner::Task(_)));
    assert_eq!(reads.count(), 3, "at most 1 MiB at once");
}

#[test]
fn task_without_idle_time_lets_clients_proceed() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    let never = Some(SimDuration::from_secs(365 * 24 * 3600));
    let id = world.create(TaskOrder { idle_after: never, ..world.whole(TaskKind::Scan) });
    world.read(100, 8);
    world.run_until(world.now + us(1_000_000));
    assert_eq!(world.answers.len(), 1);
    assert_eq!(world.task(id).state, TaskState::Running);
}

#[test]
fn readerless_tasks_are_limited_and_end() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    let spec = read_by(world.whole(TaskKind::Scan));
    let create = |world: &mut TestHost| world.scheduler.tasks_mut().create(world.now, spec.clone());
    let ids: Vec<u64> = std::iter::from_fn(|| create(&mut world).ok()).take(1000).collect();
    assert_eq!(ids.len(), 32);
    assert_eq!(create(&mut world), Err(ServedTaskError::TooMany));
    world.run_until(world.now + us(59_000_000));
    assert!(ids.iter().all(|&id| world.task(id).state == TaskState::Waiting));
    world.run_until(world.now + us(2_000_000));
    assert!(ids.iter().all(|&id| world.task(id).state == TaskState::Aborted));
    let told = world.outputs();
    assert!(told.len() == 32 && matches!(told[0], ServedTaskOutput::Over { .. }));
    assert!(create(&mut world).is_ok());
}

#[test]
fn sample_account_tells_bias_to_clients() {
    let mut world = TestHost::without_tasks(&[4001], SameTrack::Merge);
    let range = world.whole(TaskKind::Scrub).range();
    let units = range.blocks.get() / 8;
    let wanted: Vec<Extent> =
        (0..units).step_by(4).map(|unit| Extent::new(range.start.get() + unit * 8, 8)).collect();
    let drawn = wanted.len() as u64;
    let sample = Some(Sample::new((range, &wanted), (1, 8), (units, drawn)));
    let parts = TaskParts { wanted, ..TaskParts::default() };
    let order = world.whole(TaskKind::Scrub).into();
    let id = world.create(ServedOrder { parts, sample, ..order });
    let mut prng = Prng::new(5, "reads of the first tenth");
    while world.task(id).left.get() > drawn * 8 / 2 {
        let start = prng.below(world.blocks() / 10);
        world.read(start, 8);
        world.run_until(world.now + us(prng.below(9000)));
    }
    let sample = |world: &TestHost| world.task(id).sample.unwrap();
    let places = sample(&world).places;
    let delivered: u64 = places.iter().map(|place| place.delivered).sum();
    assert_eq!(delivered, drawn * 8 - world.task(id).left.get());
    let strata = places.map(|place| Stratum {
        drawn: place.drawn as f64 / 8.0,
        delivered: place.delivered as f64 / 8.0,
        hits: 0.0,
    });
    let bias = delivery_bias(&strata).unwrap();
    assert!(bias.relative[0].unwrap() > 1.2, "{bias:?}");
    assert!(bias.chi_square > bias.critical, "{bias:?}");
    world.load_until_over(id, 3, 0.0);
    let all = sample(&world);
    assert!(all.places.iter().all(|place| place.drawn == place.delivered), "{all:?}");
    assert_eq!(world.task(id).unreadable_blocks.get(), 1, "it counts as delivered");
}

#[test]
fn scan_lets_writes_pass() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Distinct);
    world.fill();
    let before = world.media.clone();
    let id = world.create(read_by(world.whole(TaskKind::Scan)));
    world.load_until_over(id, 1, 0.5);
    assert!(image(&world.outputs(), before.len()).0 != before);
    assert_eq!(world.task(id).copied.get(), 0);
}

#[test]
fn blocks_without_room_are_reread() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    world.fill();
    let before = world.media.clone();
    let id = world.create(read_by(world.whole(TaskKind::Scan)));
    let mut prng = Prng::new(5, "a slow reader");
    let mut load = Prng::new(6, "reads");
    while !world.task(id).state.is_over() {
        world.scheduler.tasks_mut().set_room(id, prng.below(64 << 10));
        for _ in 0..10 {
            let start = load.below(world.blocks() - 16);
            world.read(start, 16);
            world.run_until(world.now + us(8000));
        }
    }
    let (image, there) = image(&world.outputs(), before.len());
    assert_eq!(there.len() as u64, world.blocks());
    assert!(image == before);
    assert!(world.task(id).refused.get() > 100, "{:?}", world.task(id).refused);
}

#[test]
fn scrub_names_exactly_unreadable_blocks() {
    let bad = [5, 6, 4000, 9000, 9007, 13_001];
    let mut world = TestHost::without_tasks(&bad, SameTrack::Distinct);
    let id = world.create(world.whole(TaskKind::Scrub));
    world.load_until_over(id, 3, 0.0);
    let report = world.task(id);
    assert_eq!(named(&report), bad);
    assert_eq!(report.delivered.get() + bad.len() as u64, world.blocks());
    let told = world.outputs().into_iter();
    let told = told.filter(|output| matches!(output, ServedTaskOutput::Unreadable { .. }));
    assert_eq!(told.count(), bad.len());
}

#[test]
fn reader_gets_data_around_bad_block() {
    let bad = [700, 9000];
    let mut world = TestHost::without_tasks(&bad, SameTrack::Merge);
    world.fill();
    let before = world.media.clone();
    let id = world.create(read_by(world.whole(TaskKind::Scan)));
    world.load_until_over(id, 8, 0.0);
    let (image, there) = image(&world.outputs(), before.len());
    assert!(bad.iter().all(|bad| !there.contains(bad)));
    assert_eq!(there.len() as u64, world.blocks() - 2);
    assert!(there.iter().all(|&block| {
        let at = (block * BLOCK_BYTES) as usize;
        image[at..at + 512] == before[at..at + 512]
    }));
}

#[test]
fn idle_work_is_never_due() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    world.read(0, 8);
    let idle_after = Some(us(100_000));
    world.create(TaskOrder { idle_after, repeat: true, ..world.whole(TaskKind::Scrub) });
    world.run_until(world.now + us(1_000_000));
    let (id, command) = world.inside.pop_first().expect("it reads");
    world.scheduler.came_back(id, world.now, Ok(vec![0; command.data.len()]));
    assert!(world.scheduler.decides_at().is_some_and(|at| at + us(500_000) < world.now));
    assert_eq!(world.scheduler.command_due(), None);
}

#[test]
fn idle_time_is_used_if_asked() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    let patient = world.create(world.whole(TaskKind::Scrub));
    world.run_until(world.now + us(5_000_000));
    // The part of a block at the end is read separately.
    assert!(world.task(patient).delivered.get() < 8, "no gaps");
    let after = Some(us(100_000));
    world.read(0, 8);
    let id = world.create(TaskOrder { idle_after: after, ..world.whole(TaskKind::Scan) });
    world.run_until(world.now + us(95_000));
    assert!(world.task(id).delivered.get() < 24, "not yet");
    world.run_until(world.now + us(10_000_000));
    let report = world.task(id);
    assert_eq!(report.state, TaskState::Done);
    let half = report.predictions.iter().find(|predictions| predictions.percent == 50).unwrap();
    let rest = report.ended.unwrap().saturating_since(half.at).ns() as f64;
    let error = half.end.saturating_since(half.at).ns() as f64 / rest - 1.0;
    assert!(error.abs() < 0.2, "idle time is steady: {error:.2}");
}

#[test]
fn promoted_task_ends_without_gaps() {
    let mut world = TestHost::without_tasks(&[3333], SameTrack::Merge);
    let id = world.create(world.whole(TaskKind::Scrub));
    world.scheduler.tasks_mut().promote(world.now, id).unwrap();
    world.run_until(world.now + us(30_000_000));
    let report = world.task(id);
    assert_eq!((report.state, named(&report)), (TaskState::Done, vec![3333]));
    assert!(!report.predictions.is_empty());
}

/// A scan behind clients that keep to the drive's beginning: its report within a minute.
fn scanned(promote_tail: Option<PromoteTail>) -> ServedTaskReport {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    let id = world.create(TaskOrder { promote_tail, ..world.whole(TaskKind::Scan) });
    let mut prng = Prng::new(7, "near requests");
    let end = world.now + SimDuration::from_secs(60);
    while world.task(id).state == TaskState::Running && world.now < end {
        world.read(prng.below(2000), 8);
        world.run_until(world.now + us(8_000));
    }
    world.task(id)
}

#[test]
fn tail_of_round_is_promoted_within_cost() {
    let without = scanned(None);
    assert_eq!(without.tail_head, SimDuration::ZERO);
    let mut before =
        without.ended.map_or(SimDuration::from_secs(60), |at| at - without.round_began);
    for cost in [0.05, 0.4] {
        let report = scanned(Some(PromoteTail::at(cost)));
        assert_eq!(report.state, TaskState::Done, "{cost}");
        let took = report.ended.unwrap() - report.round_began;
        assert!(took < before, "{took} at {cost}, {before} at less");
        let share = report.tail_head.ns() as f64 / took.ns() as f64;
        assert!(share > cost / 10.0 && share <= cost + 0.01, "{share} of {cost}");
        before = took;
    }
}

#[test]
fn aborted_task_drops_reads_at_once() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    let id = world.create(read_by(world.whole(TaskKind::Scan)));
    world.scheduler.tasks_mut().promote(world.now, id).unwrap();
    world.run_until(world.now + us(50_000));
    let left = world.task(id).left;
    assert!(left.get() > 0 && !world.outputs().is_empty());
    world.scheduler.tasks_mut().abort(world.now, id).unwrap();
    world.run_until(world.now + us(1_000_000));
    assert_eq!(world.task(id).state, TaskState::Aborted);
    assert_eq!(world.task(id).left, left, "as much as it had not read");
    assert!(world.outputs().iter().all(|output| matches!(output, ServedTaskOutput::Over { .. })));
    assert!(world.scheduler.is_idle());
    assert!(world.scheduler.tasks_mut().abort(world.now, id).is_err(), "once");
}

#[test]
fn repeating_task_forgets_rereadable_blocks() {
    let mut world = TestHost::without_tasks(&[4000], SameTrack::Distinct);
    let id = world.create(TaskOrder { repeat: true, ..world.whole(TaskKind::Scrub) });
    world.scheduler.tasks_mut().promote(world.now, id).unwrap();
    while world.task(id).rounds < 1 {
        world.run_until(world.now + us(100_000));
    }
    assert_eq!(named(&world.task(id)), [4000]);
    world.write(4000, vec![1; 512], false);
    while world.task(id).rounds < 3 {
        world.run_until(world.now + us(100_000));
    }
    assert_eq!(named(&world.task(id)), [] as [u64; 0], "the drive has put it elsewhere");
    assert_eq!(world.task(id).state, TaskState::Running);
}

#[test]
fn predicted_scan_end_is_within_half() {
    for (seed, size, outstanding) in [(1, 8, 1), (2, 8, 6), (5, 32, 3)] {
        let mut world = TestHost::sized(300, 512, &[], SameTrack::Merge);
        let id =
            world.create(TaskOrder { block_size: blocks(size), ..world.whole(TaskKind::Scan) });
        let mut prng = Prng::new(seed, "requests of a client");
        let mut asked = 0;
        while !world.task(id).state.is_over() {
            while asked < world.answers.len() + outstanding {
                let start = prng.below(world.blocks() - 16);
                world.read(start, 16);
                asked += 1;
            }
            world.run_until(world.now + us(500));
        }
        let report = world.task(id);
        let end = report.ended.unwrap();
        assert_eq!(report.predictions.len(), 8, "at every mark");
        for predictions in report.predictions.iter().filter(|predictions| predictions.percent >= 50)
        {
            let rest = end.saturating_since(predictions.at).ns() as f64;
            let expected = predictions.end.saturating_since(predictions.at).ns() as f64;
            let error = expected / rest - 1.0;
            assert!(error.abs() < 0.5, "load {seed} at {} %: {error:.2}", predictions.percent);
        }
    }
}

#[test]
fn predicted_backup_end_is_within_half() {
    for (seed, writes, is_beside) in [(1, 0.3, false), (2, 0.3, true), (3, 0.8, true)] {
        let mut world = TestHost::sized(60, 512, &[], SameTrack::Merge);
        let backup = TaskOrder { block_size: blocks(32), ..world.whole(TaskKind::Backup) };
        let id = world.create(read_by(backup));
        if is_beside {
            world.create(TaskOrder {
                block_size: blocks(32),
                repeat: true,
                ..world.whole(TaskKind::Scrub)
            });
        }
        let mut prng = Prng::new(seed, "requests of a client");
        let mut asked = 0;
        while !world.task(id).state.is_over() {
            while asked < world.answers.len() + 3 {
                let start = prng.below(world.blocks() - 16);
                if prng.chance(writes) {
                    world.write(start, vec![7; 16 * 512], false);
                } else {
                    world.read(start, 16);
                }
                asked += 1;
            }
            world.run_until(world.now + us(500));
            world.outputs();
        }
        let report = world.task(id);
        assert!(report.copied.get() > report.blocks.get() / 100, "{:?}", report.copied);
        let end = report.ended.unwrap();
        for predictions in report.predictions.iter().filter(|predictions| predictions.percent >= 25)
        {
            let rest = end.saturating_since(predictions.at).ns() as f64;
            let expected = predictions.end.saturating_since(predictions.at).ns() as f64;
            let error = expected / rest - 1.0;
            assert!(error.abs() < 0.5, "load {seed} at {} %: {error:.2}", predictions.percent);
        }
    }
}

/// Upkeep for the next decision: a planner shows where blocks that come in pieces are begun; its bounds are
/// brought up to date in the same step.
#[test]
fn upkeep_runs_between_decisions() {
    let mut world = TestHost::without_tasks(&[], SameTrack::Merge);
    let drive = Arc::clone(world.scheduler.tasks_mut().planner().drive());
    // Longer than a track, and there is memory for one of them.
    let size = 512;
    let held_max = Blocks::new(size.into()).bytes();
    let tasks = Tasks::new(&drive, Options { held_max, ..Options::default() }, CADENCE);
    let mut tasks = ServedTasks::new(tasks, 1, 128);
    let order = TaskOrder { block_size: blocks(size), ..world.whole(TaskKind::Scan) };
    let id = tasks.create(world.now, read_by(order)).unwrap();
    tasks.reader_came(world.now, id, ROOM, &[]).unwrap();
    let open = |tasks: &mut ServedTasks| {
        let planner = tasks.planner().scheduler();
        (0..=drive.seek().distance_max()).filter(|&cylinder| planner.begins_on(cylinder)).count()
    };
    while tasks.has_ahead() {
        tasks.refill_planner(world.now);
    }
    assert_eq!(open(&mut tasks), 0, "all were closed as soon as far more was wanted than fits");
    let head = Departure {
        begin: world.now,
        from: Position::default(),
        last_op: Op::Read,
        read_write_switch: SimDuration::ZERO,
    };
    for decisions in 1..=5 {
        tasks.planner().plan_idle(&head, size).unwrap();
        assert_eq!(open(&mut tasks), decisions - 1, "the decision found its work done");
        tasks.refill_planner(world.now);
        assert_eq!(open(&mut tasks), decisions, "each opens one for the next");
    }
}
