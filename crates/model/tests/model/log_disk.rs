//! The log-structured disk: no block is lost by any request, and its books are right.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_model::log_disk::cost_benefit::{Candidate, best};
use freewheel_model::log_disk::{
    CleanReads, Cleaner, Command, FreeRequest, LogDisk, LogDiskSpec, LogIo, LogicalBlock, Place,
};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

/// Contents of a block on the media: whose they are, and which version. None where memory had
/// newer ones already when they were written.
type Contents = (LogicalBlock, Option<u64>);

/// A log-structured disk on media that remember what was written to them, beside a plain map of
/// what every block should hold.
struct Checked {
    disk: LogDisk,
    versions: BTreeMap<LogicalBlock, u64>,
    media: Vec<Vec<Contents>>,
    wanted: BTreeSet<Lbn>,
    /// Number of eight chances to deliver a freeblock read that are taken; eight deliver all.
    eagerness: u64,
    prng: Prng,
    now: u64,
    /// Every request, for tests of what is asked of the drive.
    log: Vec<LogIo>,
}

impl Checked {
    fn new(spec: LogDiskSpec, eagerness: u64) -> Self {
        Self {
            disk: LogDisk::new(spec),
            versions: BTreeMap::new(),
            media: vec![Vec::new(); spec.segments as usize],
            wanted: BTreeSet::new(),
            eagerness,
            prng: Prng::new(1, "deliveries"),
            now: 0,
            log: Vec::new(),
        }
    }

    fn now(&mut self) -> SimTime {
        self.now += 1;
        SimTime::from_ns(self.now)
    }

    fn run(&mut self, command: Command) {
        let now = self.now();
        let (block, writes) = match command {
            Command::Read(block) => (block, false),
            Command::Write(block) | Command::WriteThrough(block) => (block, true),
            Command::Delete(block) => (block, false),
        };
        if command == Command::Delete(block) {
            self.versions.remove(&block);
        }
        let mut io = self.disk.command(now, command);
        while let Some(request) = io {
            self.log.push(request);
            self.follow_wishes();
            match request.op {
                Op::Write => self.write(request, writes.then_some(block)),
                _ => self.read(request),
            }
            self.deliver();
            let now = self.now();
            io = self.disk.completed(now);
        }
        self.follow_wishes();
        if writes {
            *self.versions.entry(block).or_default() += 1;
        }
    }

    fn place_of(&self, start: Lbn) -> Place {
        let spec = self.disk.spec();
        let block = (start.get() - spec.start.get()) / spec.block.get();
        let of = u64::from(spec.segment_blocks);
        Place { segment: (block / of) as u32, slot: (block % of) as u32 }
    }

    /// The segment under construction comes onto the media, as a whole and never over live blocks.
    fn write(&mut self, io: LogIo, being_written: Option<LogicalBlock>) {
        let Place { segment, slot } = self.place_of(io.start);
        let spec = self.disk.spec();
        assert_eq!((segment, slot), (self.disk.open_segment(), 0));
        assert_eq!(io.blocks.get(), u64::from(spec.segment_blocks) * spec.block.get());
        let old = |block| self.disk.is_dirty(block) || Some(block) == being_written;
        let contents = |&block: &LogicalBlock| {
            (block, self.versions.get(&block).copied().filter(|_| !old(block)))
        };
        self.media[segment as usize] = self.disk.summary(segment).iter().map(contents).collect();
    }

    fn read(&self, io: LogIo) {
        let Place { segment, slot } = self.place_of(io.start);
        let end = slot + (io.blocks.get() / self.disk.spec().block.get()) as u32;
        assert_ne!(segment, self.disk.open_segment(), "what is in memory is not read");
        assert!(end as usize <= self.media[segment as usize].len(), "{io:?} reads a summary");
    }

    fn follow_wishes(&mut self) {
        for wish in self.disk.take_wishes() {
            match wish {
                FreeRequest::Register(start) => assert!(self.wanted.insert(start), "{start} twice"),
                FreeRequest::Abort(start) => assert!(self.wanted.remove(&start), "{start} unknown"),
            }
        }
    }

    /// Delivers some of what is wanted, in no particular order.
    fn deliver(&mut self) {
        while self.prng.below(8) < self.eagerness && !self.wanted.is_empty() {
            let index = self.prng.below(self.wanted.len() as u64) as usize;
            let start = *self.wanted.iter().nth(index).unwrap();
            self.wanted.remove(&start);
            self.disk.delivered(start);
        }
    }

    /// Every block is where the map says, in its last version; every count is what counting gives.
    fn check(&self) {
        let spec = self.disk.spec();
        let mut live = vec![0; spec.segments as usize];
        for block in 0..spec.capacity_blocks() {
            let place = self.disk.place(block);
            let Some(&version) = self.versions.get(&block) else {
                assert_eq!(place, None, "{block} was deleted or never written");
                continue;
            };
            assert!(place.is_some() || self.disk.is_dirty(block), "{block} is lost");
            let Some(place) = place else { continue };
            live[place.segment as usize] += 1;
            assert_eq!(self.disk.summary(place.segment)[place.slot as usize], block);
            if place.segment != self.disk.open_segment() {
                let (owner, on_media) = self.media[place.segment as usize][place.slot as usize];
                assert_eq!(owner, block);
                assert!(self.disk.is_dirty(block) || on_media == Some(version), "{block} is old");
            }
        }
        let open = self.disk.open_segment();
        let mut free = 0;
        for segment in 0..spec.segments {
            assert_eq!(self.disk.live(segment), live[segment as usize], "segment {segment}");
            let is_empty = live[segment as usize] == 0 && segment != open;
            assert_eq!(self.disk.is_free(segment), is_empty, "segment {segment}");
            free += u32::from(is_empty);
        }
        assert_eq!(self.disk.free_segments(), free);
        assert!(free >= spec.free_min, "{free} segments are free");
        for &start in &self.wanted {
            let Place { segment, slot } = self.place_of(start);
            let block = self.disk.summary(segment)[slot as usize];
            assert_eq!(self.disk.place(block), Some(Place { segment, slot }), "wanted and dead");
            assert_ne!(segment, open);
        }
    }
}

/// Sixteen segments of eight blocks behind block 100.
fn small(clean_reads: CleanReads, cleaner: Cleaner) -> LogDiskSpec {
    LogDiskSpec {
        start: Lbn::new(100),
        segments: 16,
        segment_blocks: 8,
        block: Blocks::new(8),
        cache_blocks: 4,
        free_min: 2,
        clean_reads,
        cleaner,
    }
}

fn any_spec() -> impl Strategy<Value = LogDiskSpec> {
    let reads = prop::sample::select(vec![
        CleanReads::EveryBlock,
        CleanReads::Block,
        CleanReads::Run,
        CleanReads::Segment,
    ]);
    let freeblock = (3u32..8, 1u32..6)
        .prop_map(|(free_below, segments)| Cleaner::Freeblock { free_below, segments });
    let cleaner = prop_oneof![Just(Cleaner::Foreground), freeblock];
    (reads, cleaner, 1u32..12).prop_map(|(reads, cleaner, cache_blocks)| LogDiskSpec {
        cache_blocks,
        ..small(reads, cleaner)
    })
}

/// Commands on blocks that make up to three quarters of the log live.
fn any_commands() -> impl Strategy<Value = Vec<Command>> {
    let command = (0u32..80, 0u32..10).prop_map(|(block, kind)| match kind {
        0..2 => Command::Read(block),
        2..6 => Command::Write(block),
        6..9 => Command::WriteThrough(block),
        _ => Command::Delete(block),
    });
    prop::collection::vec(command, 1..600)
}

proptest! {
    #[test]
    fn log_keeps_blocks_and_counts(
        spec in any_spec(),
        eagerness in 0u64..=8,
        commands in any_commands(),
    ) {
        let mut checked = Checked::new(spec, eagerness);
        for command in commands {
            checked.run(command);
            checked.check();
        }
    }

    #[test]
    fn cleaner_picks_best_benefit_for_cost(
        candidates in prop::collection::vec((0u32..=127, 0u64..1_000_000_000_000), 0..40)
    ) {
        let candidates: Vec<Candidate> = (0..)
            .zip(&candidates)
            .map(|(segment, &(live, age))| Candidate { segment, live, age: SimDuration::from_ns(age) })
            .collect();
        let score = |c: &Candidate| {
            let u = f64::from(c.live) / 127.0;
            (1.0 - u) * c.age.ns() as f64 / (1.0 + u)
        };
        let cleanable = candidates.iter().filter(|c| c.live < 127);
        let greatest = cleanable.map(score).fold(None, |a: Option<f64>, b| {
            Some(a.map_or(b, |a| a.max(b)))
        });
        let chosen = best(candidates.iter().copied(), 127);
        prop_assert_eq!(chosen.is_some(), greatest.is_some());
        if let (Some(chosen), Some(greatest)) = (chosen, greatest) {
            // Rounding of the doubles, not of the rule.
            prop_assert!(score(&chosen) >= greatest * (1.0 - 1e-12));
        }
    }
}

#[test]
fn cleaner_prefers_old_segment_over_emptier() {
    let candidate =
        |segment, live, age| Candidate { segment, live, age: SimDuration::from_secs(age) };
    // (1 - 0.75) * 100 / 1.75 = 14.3 against (1 - 0.5) * 10 / 1.5 = 3.3; u in quarters of 4.
    let chosen = best([candidate(0, 2, 10), candidate(1, 3, 100)].into_iter(), 4);
    assert_eq!(chosen.map(|c| c.segment), Some(1));
    let equals = best([candidate(5, 2, 10), candidate(6, 2, 10)].into_iter(), 4);
    assert_eq!(equals.map(|c| c.segment), Some(5));
    assert_eq!(best([candidate(0, 4, 1000)].into_iter(), 4), None, "cleaning it frees nothing");
}

#[test]
fn segment_written_when_full_by_one_request() {
    let mut checked = Checked::new(small(CleanReads::Block, Cleaner::Foreground), 0);
    for block in 0..7 {
        checked.run(Command::WriteThrough(block));
        // What is still in memory is replaced there.
        checked.run(Command::WriteThrough(block));
    }
    assert!(checked.log.is_empty());
    checked.run(Command::WriteThrough(7));
    let [io] = checked.log[..] else { panic!("{:?}", checked.log) };
    assert_eq!((io.op, io.start, io.blocks), (Op::Write, Lbn::new(100), Blocks::new(64)));
    // None of it was cleaning.
    assert_eq!(io.cleaning_part(SimDuration::from_ms(7)), SimDuration::ZERO);
}

#[test]
fn cache_serves_held_blocks_as_lru() {
    let mut checked = Checked::new(small(CleanReads::Block, Cleaner::Foreground), 0);
    // Blocks 0 to 6 fill segment 0; 7 to 10 stay in the segment under construction.
    for block in 0..11 {
        checked.run(Command::WriteThrough(block));
    }
    checked.log.clear();
    let reads = |checked: &mut Checked, block| {
        checked.run(Command::Read(block));
        checked.log.drain(..).count()
    };
    // The cache holds 7 to 10.
    assert_eq!(reads(&mut checked, 7), 0);
    assert_eq!(reads(&mut checked, 0), 1);
    assert_eq!(reads(&mut checked, 0), 0);
    // That drove out 8, which is in the segment under construction.
    assert_eq!(reads(&mut checked, 8), 0);
    assert_eq!(reads(&mut checked, 1), 1);
    let read = LogDisk::new(*checked.disk.spec()).lbn(Place { segment: 0, slot: 1 });
    assert_eq!(read, Lbn::new(108));
}

/// A log of which every segment but the last few is half live: even blocks live, odd ones dead.
fn half_live(clean_reads: CleanReads) -> Checked {
    let mut checked = Checked::new(small(clean_reads, Cleaner::Foreground), 0);
    for block in 0..13 * 7 {
        checked.run(Command::WriteThrough(block));
    }
    for block in (0..13 * 7).filter(|block| block % 2 == 1) {
        checked.run(Command::Delete(block));
    }
    checked.log.clear();
    checked
}

#[test]
fn cleaner_reads_blocks_runs_or_segments() {
    let reads = |clean_reads| {
        let mut checked = half_live(clean_reads);
        for block in 13 * 7..15 * 7 {
            checked.run(Command::WriteThrough(block));
        }
        assert!(checked.disk.work().segments_cleaned > 0);
        let sizes = checked.log.iter().filter(|io| io.op == Op::Read).map(|io| io.blocks.get() / 8);
        checked.check();
        sizes.collect::<Vec<u64>>()
    };
    // Live is every other block.
    assert!(reads(CleanReads::Block).iter().all(|&size| size == 1));
    assert!(reads(CleanReads::Block).len() > 1);
    assert!(reads(CleanReads::Segment).iter().all(|&size| size > 1));
    assert_eq!(reads(CleanReads::Run), reads(CleanReads::Block), "no live blocks side by side");
    assert!(reads(CleanReads::EveryBlock).iter().all(|&size| size == 1));
    assert!(reads(CleanReads::EveryBlock).len() > reads(CleanReads::Block).len());
}

#[test]
fn dead_blocks_read_to_last_live() {
    let mut checked = half_live(CleanReads::EveryBlock);
    for block in 13 * 7..15 * 7 {
        checked.run(Command::WriteThrough(block));
    }
    let reads = checked.log.iter().filter(|io| io.op == Op::Read).count() as u64;
    let work = checked.disk.work();
    assert_eq!(reads, work.copied_blocks + work.dead_blocks_read);
    // Of seven slots the even ones are live, or the odd ones, of which the last is the sixth.
    assert!(work.dead_blocks_read >= 3 * work.segments_cleaned, "{work:?}");
}

#[test]
fn segment_begun_by_freeblock_reads_live_only() {
    let cleaner = Cleaner::Freeblock { free_below: 6, segments: 16 };
    let mut checked = Checked::new(small(CleanReads::EveryBlock, cleaner), 0);
    let mut prng = Prng::new(7, "blocks");
    for _ in 0..4_000 {
        checked.run(Command::WriteThrough(prng.below(50) as u32));
    }
    let work = checked.disk.work();
    assert!(work.copied_blocks > 100, "{work:?}");
    assert_eq!(work.dead_blocks_read, 0);
}

#[test]
fn freeblock_reads_leave_foreground_cleaner_nothing() {
    let cleaner = Cleaner::Freeblock { free_below: 6, segments: 4 };
    let run = |eagerness| {
        let mut checked = Checked::new(small(CleanReads::Block, cleaner), eagerness);
        let mut prng = Prng::new(7, "blocks");
        for _ in 0..4_000 {
            checked.run(Command::WriteThrough(prng.below(50) as u32));
        }
        checked.check();
        checked.disk.work()
    };
    let (eager, idle) = (run(8), run(0));
    assert!(eager.free_copied_blocks > 0);
    assert_eq!((eager.segments_cleaned, eager.copied_blocks), (0, 0), "{idle:?}");
    assert_eq!(idle.free_copied_blocks, 0);
    assert!(idle.segments_cleaned > 0, "the foreground cleaner takes over");
}

#[test]
fn segment_dead_in_memory_free_once_written() {
    let mut checked = Checked::new(small(CleanReads::Block, Cleaner::Foreground), 0);
    for block in 0..7 {
        checked.run(Command::WriteThrough(block));
    }
    for block in 0..7 {
        checked.run(Command::Delete(block));
    }
    checked.run(Command::WriteThrough(7));
    checked.check();
    assert_eq!((checked.disk.open_segment(), checked.disk.free_segments()), (1, 15));
}

#[test]
fn log_nearly_full_survives_both_cleaners() {
    for (segments, eagerness) in [(1, 8), (3, 7), (6, 8), (6, 4), (12, 7), (12, 2)] {
        let cleaner = Cleaner::Freeblock { free_below: 14, segments };
        let mut checked = Checked::new(small(CleanReads::Block, cleaner), eagerness);
        let mut prng = Prng::new(9, "commands");
        for _ in 0..6_000 {
            // 88 of 91 blocks that fit besides the two free segments and the one under
            // construction.
            let block = prng.below(88) as u32;
            checked.run(match prng.below(8) {
                0 => Command::Write(block),
                1 => Command::Read(block),
                _ => Command::WriteThrough(block),
            });
            checked.check();
        }
        let work = checked.disk.work();
        assert!(work.copied_blocks > 0 && work.free_copied_blocks > 0, "{work:?}");
    }
}

#[test]
fn blocks_delivered_between_commands_copied_next() {
    let cleaner = Cleaner::Freeblock { free_below: 15, segments: 1 };
    let mut checked = Checked::new(small(CleanReads::Block, cleaner), 0);
    for block in (0..8).chain(0..3).chain(8..20) {
        checked.run(Command::WriteThrough(block));
    }
    checked.eagerness = 8;
    assert!(!checked.wanted.is_empty());
    checked.deliver();
    checked.run(Command::Read(19));
    checked.check();
    assert!(checked.disk.work().free_copied_blocks > 0);
}

#[test]
fn log_of_live_segments_is_rewritable() {
    let spec = small(CleanReads::Segment, Cleaner::Foreground);
    let usable = (spec.segments - spec.free_min - 1) * spec.slots();
    let mut checked = Checked::new(spec, 0);
    let mut prng = Prng::new(1, "rewritten");
    (0..usable).for_each(|block| checked.run(Command::WriteThrough(block)));
    for _ in 0..2000 {
        checked.run(Command::WriteThrough(prng.below(usable.into()) as u32));
        checked.check();
    }
}

#[test]
fn copied_block_replaced_is_no_copy() {
    let mut checked = half_live(CleanReads::Segment);
    let mut next = 13 * 7;
    while checked.disk.work().copied_blocks == 0 {
        checked.run(Command::WriteThrough(next));
        next += 1;
    }
    let copies: Vec<u32> = checked.disk.summary(checked.disk.open_segment()).to_vec();
    let copies = copies.into_iter().filter(|&block| block < 13 * 7).collect::<Vec<_>>();
    assert!(!copies.is_empty());
    copies.into_iter().for_each(|block| checked.run(Command::WriteThrough(block)));
    checked.log.clear();
    while checked.log.is_empty() {
        checked.run(Command::WriteThrough(next));
        next += 1;
    }
    assert_eq!(checked.log[0].op, Op::Write);
    assert_eq!(checked.log[0].cleaning_part(SimDuration::from_ms(7)), SimDuration::ZERO);
}
