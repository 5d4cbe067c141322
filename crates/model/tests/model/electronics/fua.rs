//! Force unit access (FUA): what the media must have done before the drive answers.
//!
//! ATA (ACS-4, WRITE DMA FUA EXT and READ FPDMA QUEUED) and SCSI (SBC-3, the FUA bit) ask for the same:
//! a write is answered when its data are on the media, even with a write cache; a read comes from the
//! media, and newer data of these blocks that only the cache has are written before it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use freewheel_model::drive::{Access, Actuator, Departure, Drive, Exact, Latency, Target};
use freewheel_model::electronics::spec::{ElectronicsSpec, WriteCache};
use freewheel_model::electronics::{DriveUnit, NextEvent};
use freewheel_model::sched::PolicySpec;
use freewheel_units::{Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use super::any::any_wishes;
use super::hand::*;
use freewheel_testkit::drives::any_drive;
use freewheel_testkit::electronics::*;

/// Electronics that keep written data in the buffer until something asks for them.
fn lazy() -> ElectronicsSpec {
    buffered(|buffer| {
        buffer.destage_after_idle = SimDuration::from_secs(1000);
        buffer.read_hits_on_written = true;
    })
}

#[test]
fn fua_write_ends_on_media_others_buffered() {
    // 30 us for a hit and 80 us on the bus; block 50 comes by at 5 ms, and 8 blocks take 0.8 ms.
    let plain = run_with(&electronics(), &[writes(0, 50, 8)]);
    assert_eq!((ends_us(&plain), plain[0].served.hit), (vec![110], true));
    let forced = run_with(&electronics(), &[forced(writes(0, 50, 8))]);
    assert_eq!((ends_us(&forced), forced[0].served.hit), (vec![5800], false));
}

#[test]
fn fua_without_write_cache_changes_nothing() {
    let off = buffered(|buffer| buffer.write_cache = WriteCache::Off);
    for spec in [off, queued(1, PolicySpec::Fcfs)] {
        let all = [writes(0, 50, 8), writes(7_000, 20, 1), writes(30_000, 5_000, 16)];
        assert_eq!(run_with(&spec, &all.map(forced)), run_with(&spec, &all));
    }
}

#[test]
fn fua_write_waits_for_own_cached_blocks() {
    let dirty = writes(0, 50, 8);
    // Block 20 comes by at 2 ms. What waits in the buffer stays there.
    let mut unit = unit_with(&lazy());
    let elsewhere = run(&mut unit, &[dirty, forced(writes(1_000, 20, 1))]);
    assert_eq!((ends_us(&elsewhere), unit.dirty_blocks().get()), (vec![110, 2_100], 8));
    // The older data go first, from 5 to 5.8 ms. Block 54 has passed then: 15.4 to 15.6 ms.
    let mut unit = unit_with(&lazy());
    let overlapping = run(&mut unit, &[dirty, forced(writes(1_000, 54, 2))]);
    assert_eq!((ends_us(&overlapping), unit.dirty_blocks().get()), (vec![110, 15_600], 0));
}

#[test]
fn cached_write_after_fua_destages_later() {
    let mut unit = unit_with(&lazy());
    let list = [forced(writes(0, 50, 8)), writes(6_000, 50, 8), flushes(7_000)];
    // On the media at 5.8 ms, in the buffer at 6.11 ms, and on the media a turn after the first.
    assert_eq!(ends_us(&run(&mut unit, &list)), [5_800, 6_110, 15_800]);
}

#[test]
fn fua_read_comes_from_media_despite_buffer() {
    let both = |second| [reads(0, 10, 8), second];
    // 20 us for a hit and 80 us on the bus.
    let hit = run_with(&electronics(), &both(reads(40_000, 10, 8)));
    assert_eq!((ends_us(&hit)[1], hit[1].served.hit), (40_100, true));
    // Block 10 comes by at 41 ms; the bus has its last block 10 us later.
    let forced = run_with(&electronics(), &both(forced(reads(40_000, 10, 8))));
    assert_eq!((ends_us(&forced)[1], forced[1].served.hit), (41_810, false));
}

#[test]
fn fua_read_waits_for_cached_blocks() {
    let list = |second| [writes(0, 50, 8), second];
    // From the buffer, as this drive reads what was written from there: 20 and 20 us.
    assert_eq!(ends_us(&run_with(&lazy(), &list(reads(1_000, 54, 2))))[1], 1_040);
    // Written from 5 to 5.8 ms, read a turn after that.
    let mut unit = unit_with(&lazy());
    let outcomes = run(&mut unit, &list(forced(reads(1_000, 54, 2))));
    assert_eq!((ends_us(&outcomes)[1], unit.dirty_blocks().get()), (15_610, 0));
}

#[test]
fn fua_writes_queue_by_policy() {
    let sptf = ElectronicsSpec { queue: Some(queue(4, PolicySpec::Sptf)), ..lazy() };
    // At 5.8 ms both others wait. Block 62 comes by at 6.2 ms, block 55 at 15.5 ms.
    let list = [writes(0, 50, 8), writes(0, 55, 1), writes(0, 62, 1)].map(forced);
    assert_eq!(ends_us(&run_with(&sptf, &list)), [5_800, 15_600, 6_300]);
    let fcfs = ElectronicsSpec { queue: Some(queue(4, PolicySpec::Fcfs)), ..lazy() };
    assert_eq!(ends_us(&run_with(&fcfs, &list)), [5_800, 15_600, 16_300]);
}

/// Does what the mechanics say, and remembers operations and blocks in order.
#[derive(Default)]
struct Watching {
    seen: Vec<(Op, Range<u64>)>,
}

impl Actuator for Watching {
    fn access(
        &mut self,
        drive: &Drive,
        departure: &Departure,
        target: &Target,
        latency: Latency,
    ) -> Access {
        let start = target.start.get();
        self.seen.push((target.op, start..start + u64::from(target.blocks)));
        Exact.access(drive, departure, target, latency)
    }
}

/// Last write of each block of the media, told by everything that reaches them, and the times of submission
/// and answer: a plain model of what FUA promises.
struct Media<'a> {
    wishes: &'a [Wish],
    submitted: Vec<SimTime>,
    answered: Vec<Option<SimTime>>,
    /// The number of the write by block.
    holds: BTreeMap<u64, usize>,
    /// Commands that the media have served.
    checked: Vec<bool>,
}

impl Media<'_> {
    fn blocks(&self, number: usize) -> Range<u64> {
        let Wish { start, blocks, .. } = self.wishes[number];
        start..start + u64::from(blocks)
    }

    /// True if the host had the answer to one before it sent the other: only then is it older.
    fn is_before(&self, one: usize, other: usize) -> bool {
        let sent = self.submitted.get(other);
        one < other && sent.is_some_and(|sent| self.answered[one].is_some_and(|end| end <= *sent))
    }

    /// The data of a write reach the media: over none that are newer.
    fn reach(&mut self, number: usize) {
        for block in self.blocks(number) {
            let held = self.holds.insert(block, number);
            let lost = held.filter(|&held| self.is_before(number, held));
            assert_eq!(lost, None, "write {number} over a newer one at block {block}");
        }
    }

    /// The media serve a command: they have no data older than earlier writes.
    fn check(&mut self, number: usize) {
        self.checked[number] = true;
        let earlier = (0..self.submitted.len())
            .filter(|&write| self.wishes[write].op == Op::Write && self.is_before(write, number));
        for write in earlier {
            for block in self.blocks(write).filter(|block| self.blocks(number).contains(block)) {
                let held = self.holds.get(&block);
                let is_newest = held.is_some_and(|&held| !self.is_before(held, write));
                assert!(is_newest, "request {number} before write {write} is at block {block}");
            }
        }
    }
}

/// Lets a drive do all of it, and checks the promise of every command with FUA.
fn watch(unit: DriveUnit, wishes: &[Wish]) {
    let mut unit = unit.with_destage_shares();
    let mut watching = Watching::default();
    let mut media = Media {
        wishes,
        submitted: Vec::new(),
        answered: vec![None; wishes.len()],
        holds: BTreeMap::new(),
        checked: vec![false; wishes.len()],
    };
    let mut now = SimTime::ZERO;
    loop {
        let next = wishes.get(media.submitted.len()).filter(|_| unit.has_room());
        let arrival = next.map(|wish| wish.arrival.max(now));
        let event = unit.next_event();
        let Some(time) = arrival.into_iter().chain(event.map(NextEvent::time)).min() else { break };
        now = time;
        let completes = matches!(event, Some(NextEvent::Completion(end)) if end == now);
        let seen = watching.seen.len();
        if arrival == Some(now) && !completes {
            let sequence = media.submitted.len();
            media.submitted.push(now);
            submit_to(&mut unit, now, &wishes[sequence], sequence as u64, &mut watching);
        } else if let Some(done) = unit.advance(now, &mut watching) {
            let number = done.sequence as usize;
            media.answered[number] = Some(now);
            let is_kept = !wishes[number].fua || media.checked[number];
            assert!(is_kept, "{number} is done, and the media have done nothing for it");
        }
        // In one step what waits in the buffer goes before the command that it is in the way of.
        while let Some((sequence, _)) = unit.destage_share() {
            media.reach(sequence as usize);
        }
        for (op, blocks) in &watching.seen[seen..] {
            let Some(number) = in_flight(&media, *op, blocks) else { continue };
            if *op == Op::Write {
                media.reach(number);
            }
            media.check(number);
        }
    }
}

/// The command inside of just these blocks, but for a read without FUA of which the buffer has a part.
fn in_flight(media: &Media<'_>, op: Op, blocks: &Range<u64>) -> Option<usize> {
    let is_it = |&number: &usize| {
        media.wishes[number].op == op
            && media.blocks(number) == *blocks
            && media.answered[number].is_none()
    };
    (0..media.submitted.len()).find(is_it)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn fua_promise_kept_on_any_drive((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "forced");
        let mut spec = any_electronics(prng);
        if let Some(buffer) = &mut spec.buffer {
            // Mostly with data that wait in the buffer.
            buffer.segment_blocks = buffer.segment_blocks.max(16);
            buffer.destage_after_idle += up_to_us(prng, 200_000);
        }
        let mut wishes = any_wishes(prng, &drive, 80, false);
        wishes.iter_mut().for_each(|wish| wish.fua = prng.chance(0.3));
        // So that the blocks tell which command the media serve.
        let mut seen = BTreeSet::new();
        wishes.retain(|wish| seen.insert((wish.op == Op::Write, wish.start, wish.blocks)));
        watch(DriveUnit::new(&Arc::new(drive), &spec).unwrap(), &wishes);
    }

    #[test]
    fn commands_without_fua_are_unaffected((_, drive) in any_drive(), seed: u64) {
        // Without a buffer every command goes to the media: with the flag and without it.
        let prng = &mut Prng::new(seed, "plain");
        let spec = ElectronicsSpec { buffer: None, ..any_electronics(prng) };
        let mut wishes = any_wishes(prng, &drive, 60, true);
        let drive = Arc::new(drive);
        let plain = run(&mut DriveUnit::new(&drive, &spec).unwrap(), &wishes);
        wishes.iter_mut().for_each(|wish| wish.fua = prng.chance(0.5));
        prop_assert_eq!(run(&mut DriveUnit::new(&drive, &spec).unwrap(), &wishes), plain);
    }
}
