//! Freeblock writes against foreground writes in whole simulations: what is on the drive in the end
//! is what the documented order says.
//!
//! The sequential model lets every write take place at the instant it is asked for: a foreground
//! write when it arrives, a freeblock write when it is registered, unless it is superseded.
//! Foreground writes are not told apart: their own order is the foreground policy's business, but
//! for promoted ones, which no later write of the same blocks may overtake.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use crate::common::setting::{Setting, any_setting};
use freewheel_freeblock::tasks::{
    CADENCE, Event, Extent, Promoted, TaskId, TaskSpec, Tasks, Until,
};
use freewheel_freeblock::{
    Foreground, ForegroundEvent, ForegroundObserver, FreeRun, GapUse, Opportunity, Options,
    Planner, Promoter, Rule,
};
use freewheel_model::drive::Drive;
use freewheel_model::electronics::DriveUnit;
use freewheel_model::electronics::spec::{BufferSpec, ElectronicsSpec, WriteCache};
use freewheel_model::sched::{CommandMark, Waiting};
use freewheel_sim::source::PatternSpec;
use freewheel_sim::{ArmExecutor, Device, SeekErrors, WholeDrive};
use freewheel_units::{Blocks, Bytes, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

/// Version of a foreground write. Freeblock writes have the number of their registration, and blocks
/// without a write have no version.
const FOREGROUND: u64 = u64::MAX;

/// Tasks with a write task to which blocks are added again and again. Holds the drive's contents, and
/// the expected contents.
struct Versions {
    tasks: Tasks,
    task: TaskId,
    size: u64,
    prng: Prng,
    /// True if the tasks hear of arriving and completed foreground requests.
    tells: bool,
    /// By block of 512 B: who wrote it last.
    contents: Vec<u64>,
    /// By block of 512 B: who should have, and when that was asked for.
    expected: Vec<(u64, u64)>,
    /// Things asked for so far.
    asked: u64,
    /// First blocks of what is to be written, with the number of its registration.
    pending: BTreeMap<u64, u64>,
    promoted: BTreeSet<u64>,
    /// Foreground writes that are not done, and their blocks that are not on the media.
    foreground: BTreeMap<u64, BTreeSet<u64>>,
    /// Promoted writes that are not done, by their sequence.
    promoted_requests: BTreeMap<u64, Range<u64>>,
    /// Foreground writes that came behind a promoted one of the same blocks.
    behind_promoted: u64,
    delivered: u64,
    superseded: u64,
    compared: u64,
}

impl Versions {
    fn new(setting: &Setting, rule: Rule, tells: bool) -> Self {
        let mut prng = Prng::new(setting.seed, "versions");
        let options = Options { rule, ..Options::default() };
        let mut tasks = Tasks::new(&setting.drive, options, CADENCE);
        let size = 1 + prng.below(12);
        let spec = TaskSpec {
            until: Until::Standing,
            ..TaskSpec::new(Op::Write, size as u32, Vec::new())
        };
        let task = tasks.register(SimTime::ZERO, spec).unwrap();
        let capacity = setting.drive.blocks().get() as usize;
        Self {
            tasks,
            task,
            size,
            prng,
            tells,
            contents: vec![0; capacity],
            expected: vec![(0, 0); capacity],
            asked: 0,
            pending: BTreeMap::new(),
            promoted: BTreeSet::new(),
            foreground: BTreeMap::new(),
            promoted_requests: BTreeMap::new(),
            behind_promoted: 0,
            delivered: 0,
            superseded: 0,
            compared: 0,
        }
    }

    fn ask(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    fn expect(&mut self, from: u64, blocks: u64, asked: u64, version: u64) {
        for expected in &mut self.expected[from as usize..(from + blocks) as usize] {
            *expected = (*expected).max((asked, version));
        }
    }

    /// Now and then wants blocks near `start` written anew.
    fn extend(&mut self, start: Lbn, at: SimTime) {
        if !self.prng.chance(0.3) {
            return;
        }
        let blocks = self.contents.len() as u64 / self.size;
        let near = (start.get() / self.size + self.prng.below(4)).min(blocks - 1);
        let count = (1 + self.prng.below(3)).min(blocks - near);
        let asked = self.ask();
        let extent = Extent::new(near * self.size, count * self.size);
        for block in near..near + count {
            if let Some(older) = self.pending.insert(block * self.size, asked) {
                self.expect_pieces(block * self.size, older);
            }
        }
        self.tasks.extend(at, self.task, &[extent]).unwrap();
        self.take_events();
    }

    fn take_events(&mut self) {
        let events: Vec<Event> = self.tasks.events().collect();
        for event in events {
            let (extent, is_delivered) = match event {
                Event::Delivered { extent, .. } => (extent, true),
                Event::Superseded { extent, .. } => (extent, false),
                Event::Done { .. } => continue,
            };
            let from = extent.start.get();
            for block in (from..from + extent.blocks.get()).step_by(self.size as usize) {
                if is_delivered { self.deliver(block) } else { self.supersede(block) }
            }
        }
    }

    fn deliver(&mut self, block: u64) {
        // A promoted one was asked for when it arrived.
        if !self.promoted.remove(&block) {
            let asked = self.pending.remove(&block).expect("what was to be written");
            self.expect(block, self.size, asked, asked);
            self.delivered += 1;
        }
    }

    fn supersede(&mut self, block: u64) {
        // A promoted one is a foreground write to the drive.
        if self.promoted.remove(&block) {
            return;
        }
        let asked = self.pending.remove(&block).expect("what was to be written");
        self.expect_pieces(block, asked);
        self.superseded += 1;
    }

    /// A block that is dropped may have been written in part, when it lies on several tracks.
    fn expect_pieces(&mut self, block: u64, asked: u64) {
        for at in block..block + self.size {
            if self.contents[at as usize] == asked {
                self.expect(at, 1, asked, asked);
            }
        }
    }

    /// While the foreground is at rest, the drive holds the expected contents.
    fn compare(&mut self) {
        assert!(self.foreground.is_empty());
        // What has been written of a block in pieces is not expected yet.
        for (&block, &asked) in &self.pending {
            for at in block..block + self.size {
                let (contents, expected) = (self.contents[at as usize], self.expected[at as usize]);
                assert!(contents == expected.1 || contents == asked, "block {at}");
            }
        }
        let in_pieces = |at: u64| self.pending.contains_key(&(at / self.size * self.size));
        for (at, (contents, (_, expected))) in self.contents.iter().zip(&self.expected).enumerate()
        {
            assert!(contents == expected || in_pieces(at as u64), "{contents} at {at}, {expected}");
        }
        self.compared += 1;
    }

    fn land(&mut self, sequence: u64) {
        let blocks = self.foreground.remove(&sequence).unwrap_or_default();
        blocks.into_iter().for_each(|at| self.contents[at as usize] = FOREGROUND);
    }

    /// The run is over: everything that the buffer still has is written.
    fn end(&mut self) {
        let sequences: Vec<u64> = self.foreground.keys().copied().collect();
        sequences.into_iter().for_each(|sequence| self.land(sequence));
        self.compare();
    }
}

fn range(start: Lbn, blocks: u32) -> Range<u64> {
    start.get()..start.get() + u64::from(blocks)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Planner for Versions {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        let anywhere = Lbn::new(self.prng.below(self.contents.len() as u64));
        self.extend(anywhere, gap.begin);
        self.tasks.plan(gap, runs);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        assert_eq!(run.op, Op::Write);
        for at in range(run.start, run.blocks) {
            let block = at / self.size * self.size;
            self.contents[at as usize] = self.pending[&block];
        }
        self.tasks.done(run, at);
        self.take_events();
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.tasks.filled(gap, gap_use);
    }

    fn promoter(&mut self) -> Option<&mut dyn Promoter> {
        Some(self)
    }
}

impl ForegroundObserver for Versions {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        match event {
            ForegroundEvent::Passed { op, start, blocks, at } => {
                self.foreground_passed(op, start, blocks, at)
            }
            ForegroundEvent::Arrived { request, at } => self.foreground_arrived(request, at),
            ForegroundEvent::TookHead { request, head } => self.foreground_took(request, head),
            ForegroundEvent::Done { request, at } => self.foreground_done(request, at),
        }
    }
}

impl Versions {
    fn foreground_passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        if op == Op::Write {
            for at in range(start, blocks) {
                self.contents[at as usize] = FOREGROUND;
                // Whichever of those that write it this is.
                if let Some(left) = self.foreground.values_mut().find(|left| left.contains(&at)) {
                    left.remove(&at);
                }
            }
        }
        self.tasks.foreground(ForegroundEvent::Passed { op, start, blocks, at });
        self.take_events();
    }

    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        if request.op == Op::Write {
            let asked = self.ask();
            let blocks = range(request.start, request.blocks);
            self.expect(blocks.start, request.blocks.into(), asked, FOREGROUND);
            let is_behind = |older: &Range<u64>| overlap(older, &blocks);
            self.behind_promoted += u64::from(self.promoted_requests.values().any(is_behind));
            if request.promotion.is_some() {
                self.promoted_requests.insert(request.sequence, blocks.clone());
            }
            self.foreground.insert(request.sequence, blocks.collect());
        }
        if self.tells {
            self.tasks.foreground(ForegroundEvent::Arrived { request, at });
            self.take_events();
        }
        self.extend(request.start, at);
    }

    /// The drive has served it: from there on it keeps the order of blocks itself.
    fn foreground_took(&mut self, request: &Foreground, _: SimDuration) {
        self.promoted_requests.remove(&request.sequence);
        if request.op == Op::Write {
            let blocks = range(request.start, request.blocks);
            for (sequence, older) in self.promoted_requests.range(..request.sequence) {
                assert!(!overlap(older, &blocks), "{sequence} after {}", request.sequence);
            }
        }
    }

    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        self.land(request.sequence);
        if self.tells || request.promotion.is_some() {
            self.tasks.foreground(ForegroundEvent::Done { request, at });
            self.take_events();
        }
        if self.foreground.is_empty() {
            self.compare();
        }
        self.extend(request.start, at);
    }
}

impl Promoter for Versions {
    fn read_before(&mut self, _: &Foreground, _: SimTime) -> Option<Promoted> {
        None
    }

    fn promote(&mut self, _: SimTime) -> Option<Promoted> {
        if !self.prng.chance(0.1) {
            return None;
        }
        let from = Lbn::new(self.prng.below(self.contents.len() as u64));
        let promoted = self.tasks.promote_next(self.task, from, 64).unwrap()?;
        for block in range(promoted.start, promoted.blocks).step_by(self.size as usize) {
            self.pending.remove(&block).expect("what was to be written");
            self.promoted.insert(block);
        }
        Some(promoted)
    }
}

/// Many writes to few blocks.
fn crowded(setting: Setting) -> Setting {
    let pattern = PatternSpec {
        read_share: 0.3,
        local_share: 0.8,
        local_sd: Bytes::new(512 * 20),
        ..setting.pattern
    };
    Setting { pattern, requests: 150, ..setting }
}

fn run(setting: &Setting, rule: Rule, tells: bool) -> Versions {
    let mut versions = Versions::new(setting, rule, tells);
    setting.run(Some(&mut versions));
    versions.end();
    versions
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn writes_follow_documented_order(
        setting in any_setting(), greedy in any::<bool>(),
    ) {
        run(&crowded(setting), if greedy { Rule::Greedy } else { Rule::Paths }, true);
    }
}

#[test]
fn write_order_check_detects_violations() {
    let settings = || (0..40).filter_map(Setting::random).map(crowded);
    let runs: Vec<Versions> = settings().map(|setting| run(&setting, Rule::Greedy, true)).collect();
    let sum = |of: fn(&Versions) -> u64| runs.iter().map(of).sum::<u64>();
    let (delivered, superseded) = (sum(|run| run.delivered), sum(|run| run.superseded));
    assert!(delivered > 1000 && superseded > 200, "{delivered}, {superseded}");
    let behind = sum(|run| run.behind_promoted);
    assert!(behind > 20, "{behind} writes behind promoted ones");
    let compared = sum(|run| run.compared);
    assert!(compared > 5 * runs.len() as u64, "{compared} in {} runs", runs.len());
    // The canary: tasks that hear of no foreground requests get the order wrong.
    let deaf = |setting| {
        std::panic::catch_unwind(|| {
            run(&setting, Rule::Greedy, false);
        })
    };
    assert!(settings().take(10).any(|setting| deaf(setting).is_err()));
}

/// Notes when foreground requests are done.
#[derive(Default)]
struct Ends(Vec<(u64, SimTime)>);

impl Planner for Ends {
    fn plan(&mut self, _: &Opportunity, _: &mut Vec<FreeRun>) {}

    fn done(&mut self, _: &FreeRun, _: SimTime) {}
}

impl ForegroundObserver for Ends {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        if let ForegroundEvent::Done { request, at } = event {
            self.foreground_done(request, at);
        }
    }
}

impl Ends {
    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        self.0.push((request.sequence, at));
    }
}

#[test]
fn buffered_write_done_for_planners_on_media() {
    let drive = (0..)
        .find_map(|seed| Drive::build(&freewheel_testkit::drives::random_spec(seed)).ok())
        .unwrap();
    let drive = Arc::new(drive);
    let cached = BufferSpec {
        segments: 4,
        segment_blocks: 64,
        write_segments: 2,
        write_cache: WriteCache::On,
        ..BufferSpec::default()
    };
    let electronics = ElectronicsSpec { buffer: Some(cached), ..ElectronicsSpec::default() };
    let unit = DriveUnit::new(&drive, &electronics).unwrap();
    let mut ends = Ends::default();
    let executor = ArmExecutor::new(SeekErrors::new(&drive, 1, 0)).with_planner(&mut ends);
    let mut device = WholeDrive::new(unit, executor);
    let mut now = SimTime::ZERO;
    let mut taken = Vec::new();
    for (sequence, op, wait) in [(0, Op::Write, 0), (1, Op::Read, 0), (2, Op::Read, 1000)] {
        now += SimDuration::from_ms(wait);
        let start = Lbn::new(sequence * 40);
        let target = drive.target(start, Blocks::new(4), op);
        let waiting =
            Waiting { target, arrival: now, sequence, fua: false, mark: CommandMark::None };
        device.arrived(now, &waiting, None);
        device.submit(now, &waiting);
        loop {
            now = device.next_event().expect("a command is inside").time();
            if device.advance(now).is_some() {
                break;
            }
        }
        taken.push(now);
    }
    // The first read comes before the drive has had time to write.
    assert_eq!(ends.0.iter().map(|end| end.0).collect::<Vec<_>>(), [1, 0, 2]);
    assert!(ends.0[1].1 > taken[1] + SimDuration::from_ms(900));
}
