//! A backup against foreground writes in whole simulations. A write reaches the media, or a drive's
//! buffer, only after the backup has read the blocks that it replaces.

use std::collections::VecDeque;

use crate::common::setting::{Setting, any_setting};
use freewheel_freeblock::tasks::{BlockSelection, CADENCE, Event, Extent, Promoted, TaskId, Tasks};
use freewheel_freeblock::{
    Foreground, ForegroundEvent, ForegroundObserver, FreeRun, GapUse, Opportunity, Options,
    Planner, Promoter, Rule, uses,
};
use freewheel_sim::source::PatternSpec;
use freewheel_units::{Bytes, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

/// Tasks with a backup, the drive's contents, and what has come of them.
struct Watched {
    tasks: Tasks,
    backup: TaskId,
    size: u64,
    prng: Prng,
    /// True if reads are made before writes.
    copies: bool,
    waiting: VecDeque<Promoted>,
    asked_for: Option<u64>,
    /// Times each block of the backup has come.
    came: Vec<u32>,
    copied: u64,
    /// Blocks of 512 B that were written over before they had come.
    lost: u64,
}

impl Watched {
    fn new(setting: &Setting, rule: Rule, copies: bool) -> Self {
        let options = Options { rule, ..Options::default() };
        let mut tasks = Tasks::new(&setting.drive, options, CADENCE);
        let size = 1 + setting.seed % 9;
        let spec = uses::backup(setting.drive.blocks(), size as u32);
        let backup = tasks.register(SimTime::ZERO, spec).unwrap();
        Self {
            tasks,
            backup,
            size,
            prng: Prng::new(setting.seed, "promotions"),
            copies,
            waiting: VecDeque::new(),
            asked_for: None,
            came: vec![0; setting.drive.blocks().get() as usize],
            copied: 0,
            lost: 0,
        }
    }

    /// These blocks of 512 B are about to hold something else.
    fn written(&mut self, start: Lbn, blocks: u32) {
        let from = start.get() as usize;
        let lost = self.came[from..from + blocks as usize].iter().filter(|&&came| came == 0);
        self.lost += lost.count() as u64;
    }

    fn take_events(&mut self) {
        for event in self.tasks.events().collect::<Vec<_>>() {
            if let Event::Delivered { extent, .. } = event {
                let from = extent.start.get() as usize;
                for came in &mut self.came[from..from + extent.blocks.get() as usize] {
                    *came += 1;
                }
            }
        }
    }
}

impl Planner for Watched {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.tasks.plan(gap, runs);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
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

impl ForegroundObserver for Watched {
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

impl Watched {
    fn foreground_passed(&mut self, op: Op, start: Lbn, blocks: u32, at: SimTime) {
        if op == Op::Write {
            self.written(start, blocks);
        }
        self.tasks.foreground(ForegroundEvent::Passed { op, start, blocks, at });
        self.take_events();
    }

    fn foreground_arrived(&mut self, request: &Foreground, at: SimTime) {
        self.tasks.foreground(ForegroundEvent::Arrived { request, at });
        self.take_events();
    }

    /// Counts a write of the foreground as written: a later read would find it in the buffer.
    fn foreground_took(&mut self, request: &Foreground, _: SimDuration) {
        if request.op == Op::Write {
            self.written(request.start, request.blocks);
        }
    }

    fn foreground_done(&mut self, request: &Foreground, at: SimTime) {
        self.tasks.foreground(ForegroundEvent::Done { request, at });
        self.take_events();
    }
}

impl Promoter for Watched {
    fn read_before(&mut self, write: &Foreground, _: SimTime) -> Option<Promoted> {
        if self.copies && self.asked_for != Some(write.sequence) {
            let extent = Extent::new(write.start.get(), write.blocks.into());
            // A backup that is complete is not known any more.
            let reads = self.tasks.promote(self.backup, BlockSelection::Touching(&[extent]), 64);
            self.waiting.extend(reads.unwrap_or_default());
            self.asked_for = Some(write.sequence);
        }
        self.copied += u64::from(!self.waiting.is_empty());
        self.waiting.pop_front()
    }

    fn promote(&mut self, _: SimTime) -> Option<Promoted> {
        if !self.prng.chance(0.02) {
            return None;
        }
        self.tasks.promote_next(self.backup, Lbn::ZERO, 64).ok()?
    }
}

/// Many writes to few blocks.
fn crowded(setting: Setting) -> Setting {
    let pattern = PatternSpec { read_share: 0.3, ..setting.pattern };
    let pattern = PatternSpec { local_share: 0.8, local_sd: Bytes::new(512 * 40), ..pattern };
    Setting { pattern, requests: 150, ..setting }
}

fn run(setting: &Setting, rule: Rule, copies: bool) -> Watched {
    let mut watched = Watched::new(setting, rule, copies);
    let (result, _) = setting.run(Some(&mut watched));
    assert_eq!(result.requests, setting.requests, "every request is served");
    watched
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn backup_has_blocks_once_before_overwrite(
        setting in any_setting(), greedy in any::<bool>(),
    ) {
        let rule = if greedy { Rule::Greedy } else { Rule::Paths };
        let watched = run(&crowded(setting), rule, true);
        prop_assert_eq!(watched.lost, 0);
        // The last block of a drive that does not come out even overlaps the one before.
        let even = watched.came.len() as u64 / watched.size * watched.size;
        let once = watched.came[..(even.saturating_sub(watched.size)) as usize].iter();
        prop_assert!(once.clone().all(|&came| came <= 1), "{:?}", watched.came);
    }
}

#[test]
fn backup_order_check_detects_loss() {
    let settings = || (0..60).filter_map(Setting::random).map(crowded);
    let copied: u64 = settings().map(|setting| run(&setting, Rule::Paths, true).copied).sum();
    assert!(copied > 300, "{copied} reads before writes");
    // The canary: without them writes go over what has not been read.
    let lost: u64 = settings().map(|setting| run(&setting, Rule::Paths, false).lost).sum();
    assert!(lost > 1000, "{lost}");
}
