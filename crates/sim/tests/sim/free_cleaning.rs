//! The cleaner's reads by the real freeblock scheduler. They deliver wanted blocks of the media, each
//! once, and the log neither loses nor doubles a block.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freewheel_freeblock::{ForegroundEvent, ForegroundObserver, Options, Rule};
use freewheel_model::drive::Drive;
use freewheel_model::log_disk::{
    CleanReads, Cleaner, Command, FreeRequest, LogDisk, LogDiskSpec, LogIo, LogicalBlock,
};
use freewheel_model::sched::PolicySpec;
use freewheel_model::striping::Striping;
use freewheel_sim::postmark::{CleaningTask, FreeReads, cleaning_task};
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_sim::{Arm, ArmExecutor, Mechanics, SeekErrors, run};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime, VolumeBlock};
use proptest::prelude::*;

use crate::common::one_surface::one_surface;

/// Logical blocks that are used, of 520 that there is room for.
const BLOCKS: u32 = 400;
const THINK: SimDuration = SimDuration::from_us(300);

fn spec(free_below: u32, segments: u32) -> LogDiskSpec {
    LogDiskSpec {
        start: Lbn::new(1_000),
        segments: 40,
        segment_blocks: 14,
        block: Blocks::new(8),
        cache_blocks: 8,
        free_min: 2,
        clean_reads: CleanReads::EveryBlock,
        cleaner: Cleaner::Freeblock { free_below, segments },
    }
}

/// A process that gives commands at random to a log on media that remember what was written.
struct Checked {
    disk: LogDisk,
    free_reads: CleaningTask,
    prng: Prng,
    commands_left: u32,
    command: Option<Command>,
    request: Option<(SimTime, LogIo)>,
    is_issued: bool,
    versions: BTreeMap<LogicalBlock, u64>,
    /// By first block on the drive.
    media: BTreeMap<Lbn, (LogicalBlock, Option<u64>)>,
    wanted: BTreeSet<Lbn>,
    delivered: u64,
}

impl Checked {
    fn new(spec: LogDiskSpec, free_reads: CleaningTask, commands: u32, seed: u64) -> Self {
        let mut checked = Self {
            disk: LogDisk::new(spec),
            free_reads,
            prng: Prng::new(seed, "commands"),
            commands_left: commands,
            command: None,
            request: None,
            is_issued: false,
            versions: BTreeMap::new(),
            media: BTreeMap::new(),
            wanted: BTreeSet::new(),
            delivered: 0,
        };
        checked.go_on(SimTime::ZERO, None);
        checked
    }

    fn any_command(&mut self) -> Command {
        let block = self.prng.below(BLOCKS.into()) as u32;
        match self.prng.below(16) {
            0 => Command::Delete(block),
            1..6 => Command::Read(block),
            _ => Command::WriteThrough(block),
        }
    }

    fn go_on(&mut self, now: SimTime, mut io: Option<LogIo>) {
        loop {
            for wish in self.disk.take_wishes() {
                match wish {
                    FreeRequest::Register(start) => {
                        assert!(self.wanted.insert(start), "{start} twice")
                    }
                    FreeRequest::Abort(start) => {
                        assert!(self.wanted.remove(&start), "{start} unknown")
                    }
                }
                self.free_reads.wish(wish);
            }
            if let Some(io) = io {
                self.request = Some((now + THINK, io));
                return;
            }
            // The contents that a command brings are there when it is done.
            if let Some(Command::WriteThrough(block)) = self.command {
                *self.versions.entry(block).or_default() += 1;
            }
            if self.commands_left == 0 {
                return;
            }
            self.commands_left -= 1;
            let command = self.any_command();
            if let Command::Delete(block) = command {
                self.versions.remove(&block);
            }
            self.command = Some(command);
            io = self.disk.command(now, command);
        }
    }

    /// Marks the memory of the segment under construction as written.
    fn written(&mut self, io: &LogIo) {
        for (slot, &block) in (0..).zip(self.disk.summary(self.disk.open_segment())) {
            let at = io.start + Blocks::new(slot * 8);
            assert!(!self.wanted.contains(&at), "{at} is wanted and written over");
            self.media.insert(at, (block, self.versions.get(&block).copied()));
        }
    }

    fn take_delivered(&mut self, now: SimTime) {
        let mut delivered = Vec::new();
        self.free_reads.take_delivered(now, &mut delivered);
        for start in delivered {
            assert!(self.wanted.remove(&start), "{start} is not wanted, or came twice");
            let (block, version) = self.media[&start];
            assert_eq!(version, self.versions.get(&block).copied(), "{block} is old");
            self.disk.delivered(start);
            self.delivered += 1;
        }
    }

    fn check(&self) {
        let mut live = 0;
        for block in 0..BLOCKS {
            let (place, version) = (self.disk.place(block), self.versions.get(&block));
            assert_eq!(place.is_some(), version.is_some(), "{block}");
            let Some(place) = place else { continue };
            live += 1;
            if place.segment != self.disk.open_segment() {
                assert_eq!(self.media[&self.disk.lbn(place)], (block, version.copied()));
            }
        }
        let counted: u32 = (0..self.disk.spec().segments).map(|s| self.disk.live(s)).sum();
        assert_eq!(counted, live, "a block that is live twice");
    }
}

impl Source for Checked {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(self.request.filter(|_| !self.is_issued).map(|(at, _)| at))
    }

    fn take(&mut self) -> Request {
        self.is_issued = true;
        let (_, LogIo { op, start, blocks, .. }) = self.request.unwrap();
        Request { op, start: VolumeBlock::new(start.get()), blocks, fua: false, tag: 0 }
    }

    fn completed(&mut self, _: u64, now: SimTime) {
        let (_, io) = self.request.take().unwrap();
        self.is_issued = false;
        self.take_delivered(now);
        if io.op == Op::Write {
            self.written(&io);
        }
        let next = self.disk.completed(now);
        self.go_on(now, next);
    }

    fn progress(&self) -> (u64, u64) {
        (0, 0)
    }
}

fn serve(drive: &Arc<Drive>, spec: LogDiskSpec, rule: Rule, seed: u64) -> Checked {
    let options = Options { rule, ..Options::default() };
    let (task, mut planner) = cleaning_task(drive, spec.block, options);
    let mut checked = Checked::new(spec, task, 3_000, seed);
    let executor = ArmExecutor::new(SeekErrors::new(drive, seed, 0)).with_planner(&mut planner);
    let policy = PolicySpec::Fcfs.build().unwrap();
    let device = Mechanics::new(drive, executor);
    let mut arms = [Arm { drive: Arc::clone(drive), policy, device }];
    run(&Striping::single(drive.blocks()), None, &mut arms, &mut checked, &mut |_| {}).unwrap();
    checked
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn cleaning_loses_no_live_block(
        free_below in 6u32..20,
        segments in 3u32..20,
        rule in prop::sample::select(vec![Rule::Greedy, Rule::Paths]),
        seed in 0u64..1_000_000,
    ) {
        let checked = serve(&one_surface(), spec(free_below, segments), rule, seed);
        checked.check();
        prop_assert!(checked.delivered > 100, "{} delivered", checked.delivered);
    }
}

#[test]
fn cleaning_hands_out_only_read_blocks() {
    let drive = one_surface();
    let (mut task, mut planner) = cleaning_task(&drive, Blocks::new(8), Options::default());
    let starts = [0, 8, 16].map(Lbn::new);
    starts.iter().for_each(|&start| task.wish(FreeRequest::Register(start)));
    let at = SimTime::from_ns;
    // The foreground passes over the first two, one after the other.
    planner.foreground(ForegroundEvent::Passed {
        op: Op::Read,
        start: starts[0],
        blocks: 8,
        at: at(100),
    });
    planner.foreground(ForegroundEvent::Passed {
        op: Op::Read,
        start: starts[1],
        blocks: 8,
        at: at(200),
    });
    let take = |task: &mut CleaningTask, now| {
        let mut delivered = Vec::new();
        task.take_delivered(now, &mut delivered);
        delivered
    };
    assert_eq!(take(&mut task, at(99)), []);
    assert_eq!(take(&mut task, at(100)), [starts[0]]);
    starts[1..].iter().for_each(|&start| task.wish(FreeRequest::Abort(start)));
    planner.foreground(ForegroundEvent::Passed {
        op: Op::Read,
        start: starts[2],
        blocks: 8,
        at: at(300),
    });
    assert_eq!(take(&mut task, at(400)), []);
}
