//! The scheduler outside a drive: its predictions, its reactions to surprises, and the cost of its free
//! work for the foreground.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use freewheel_freeblock::tasks::{CADENCE, Event, TaskSpec, Tasks};
use freewheel_freeblock::uses;
use freewheel_freeblock::{
    ForegroundEvent, ForegroundObserver, FreeRun, Opportunity, Options, Planner, ResumableSearch,
    Rule,
};
use freewheel_host::{
    Account, Conservatism, Finished, ForegroundPart, MarginInUse, PredictionSpec,
    PredictiveScheduler, SameTrack,
};
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::drive::{Drive, SeekDirection};
use freewheel_model::electronics::spec::{ElectronicsSpec, QueueSpec, SectorFormat, WriteCache};
use freewheel_model::sched::PolicySpec;
use freewheel_model::striping::Striping;
use freewheel_sim::black_box::{Activity, BadBlocks, Behaviour, EmulatedDrive};
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Closed, Pattern, PatternSpec, ThinkTime};
use freewheel_sim::{Arm, Completion, Device, PredictedDevice, library, run};
use freewheel_testkit::drives::{random_spec, with_remaps};
use freewheel_units::{Bytes, Lbn, Op, Prng, SimDuration, SimTime, VolumeBlock};
use proptest::prelude::*;

const MS: SimDuration = SimDuration::from_ms(1);

fn us(us: u64) -> SimDuration {
    SimDuration::from_us(us)
}

fn constant(margin_us: u64) -> Conservatism {
    Conservatism::Constant(us(margin_us))
}

/// A drive, what its host takes it for, and how it is scheduled.
#[derive(Debug, Clone)]
struct Setting {
    real: DriveSpec,
    believed: DriveSpec,
    behaviour: Behaviour,
    scheduler: PredictionSpec,
    policy: PolicySpec,
    requests: u64,
    think_time: SimDuration,
    free: bool,
    /// The free work writes every block once, and does not read.
    writes: bool,
    /// So often searches for free work may go on in a gap.
    steps_max: u64,
    /// Requests begin and end at any block of 512 B.
    of_512: bool,
}

/// Outcome of the run.
struct Outcome {
    completions: Vec<Completion>,
    finished: Vec<Finished>,
    account: Account,
    margins: Vec<MarginInUse>,
    /// Events of the scan.
    events: Vec<Event>,
}

impl Outcome {
    /// Errors of predicted head times, in nanoseconds.
    fn errors(&self) -> Vec<i64> {
        self.finished.iter().filter_map(|finished| finished.error_ns).collect()
    }

    /// Part of them that are within `ns`.
    fn share_within(&self, ns: i64) -> f64 {
        let errors = self.errors();
        let within = errors.iter().filter(|error| error.abs() <= ns).count();
        within as f64 / errors.len() as f64
    }

    /// Commands that came back behind one that was sent later.
    fn overtaken(&self) -> usize {
        let mut latest = 0;
        let is_overtaken = |finished: &&Finished| {
            latest = finished.command.id.max(latest);
            finished.command.id < latest
        };
        self.finished.iter().filter(is_overtaken).count()
    }

    /// Share of the head's time by which free work delayed the foreground, by the scheduler's account.
    fn delayed(&self) -> f64 {
        let head: SimDuration = self.finished.iter().map(|finished| finished.head).sum();
        self.account.delay_ns as f64 / head.ns() as f64
    }

    /// Every request was answered once, when all of its blocks had been moved once.
    fn assert_answered_once(&self, setting: &Setting) {
        assert_eq!(self.completions.len() as u64, setting.requests);
        let mut moved: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        let mut answered = BTreeSet::new();
        for Finished { command, done, .. } in &self.finished {
            let end = command.start.get() + u64::from(command.blocks);
            if let Some(ForegroundPart { sequence, start, blocks }) = command.foreground {
                assert_eq!(start.get() + u64::from(blocks), end, "they are its last");
                moved.entry(sequence).or_default().push((start.get(), end));
            }
            if let Some(done) = done {
                assert!(answered.insert(done.sequence), "{done:?} twice");
                let parts = moved.get_mut(&done.sequence).expect("it was sent");
                parts.sort_unstable();
                let joins = parts.windows(2).all(|pair| pair[0].1 == pair[1].0);
                let all = (parts[0].0, parts[parts.len() - 1].1);
                let first = done.start.get();
                assert!(joins && all == (first, first + u64::from(done.blocks)), "{parts:?}");
            }
        }
        assert_eq!(answered.len() as u64, setting.requests);
        assert_eq!(moved.len() as u64, setting.requests);
    }

    /// The first round of the scan delivered every block once, each of which a command had
    /// moved: what a client writes is known as well.
    fn assert_scanned(&self, setting: &Setting) {
        let blocks = Drive::build(&setting.believed).unwrap().blocks().get() as usize;
        let mut delivered = vec![0u32; blocks];
        let mut was_moved = vec![false; blocks];
        for Finished { command, .. } in &self.finished {
            let first = command.start.get() as usize;
            was_moved[first..first + command.blocks as usize].fill(true);
        }
        for event in &self.events {
            match event {
                Event::Delivered { extent, .. } => {
                    let first = extent.start.get() as usize;
                    for block in first..first + extent.blocks.get() as usize {
                        delivered[block] += 1;
                        assert!(was_moved[block], "block {block}");
                    }
                }
                Event::Done { .. } => {
                    let whole = &delivered[..blocks / 8 * 8];
                    assert!(whole.iter().all(|&times| times == 1), "each once");
                    return;
                }
                Event::Superseded { .. } => {}
            }
        }
        panic!("a scan of so small a drive ends");
    }
}

impl Setting {
    /// An Atlas 10K without electronics, under a scan.
    fn bare() -> Self {
        let mut spec = library::spec("atlas10k").unwrap();
        spec.electronics = ElectronicsSpec::default();
        let behaviour = Behaviour {
            queue_depth: Some(2),
            write_cache: Some(WriteCache::Off),
            ..Behaviour::default()
        };
        let scheduler = PredictionSpec { conservatism: constant(0), ..PredictionSpec::default() };
        Self {
            believed: spec.clone(),
            real: spec,
            behaviour,
            scheduler,
            policy: PolicySpec::Fcfs,
            requests: 4000,
            think_time: MS * 30,
            free: true,
            writes: false,
            steps_max: u64::MAX,
            of_512: false,
        }
    }

    fn jittery(jitter: SimDuration) -> Self {
        let bare = Self::bare();
        let scheduler = PredictionSpec {
            conservatism: Conservatism::Constant(jitter + us(10)),
            ..bare.scheduler
        };
        let behaviour = Behaviour { seek_jitter: Some(jitter), ..bare.behaviour };
        Self { behaviour, scheduler, ..bare }
    }

    /// Forty cylinders of one surface, which a scan reads more than once.
    fn small() -> Self {
        let jittery = Self::jittery(us(50));
        let mut spec = jittery.real;
        spec.surfaces = 1;
        spec.cylinders = 40;
        spec.zones.truncate(1);
        let zone = &mut spec.zones[0];
        (zone.last_cylinder, zone.spares) = (39, 0);
        zone.slips.clear();
        Self {
            real: spec.clone(),
            believed: spec,
            policy: PolicySpec::Sstf,
            requests: 30_000,
            ..jittery
        }
    }

    /// fast02's OLTP workload but for the thinking: ten outstanding, two reads a write.
    fn transactions(&self, drive: &Drive) -> Closed {
        let is_small = self.of_512 || drive.blocks().get() < 100_000;
        let spec = PatternSpec {
            read_share: 2.0 / 3.0,
            size: Bytes::new(if is_small { 2048 } else { 8192 }),
            size_distribution: freewheel_sim::source::SizeDistribution::Exponential,
            align: Bytes::new(if is_small { 512 } else { 4096 }),
            ..PatternSpec::default()
        };
        let pattern = Pattern::new(spec, drive.blocks(), 1).unwrap();
        Closed::new(pattern, 10, ThinkTime::Constant(self.think_time), self.requests, 1)
    }

    fn run(&self) -> Outcome {
        let believed = Arc::new(library::build(&self.believed, "believed").unwrap());
        let electronics = self.believed.electronics.with_processing(self.believed.overhead);
        let host = believed.with_overhead(electronics.command_overhead());
        let switch = electronics.read_write_switch;
        let scheduler =
            PredictiveScheduler::new(&host, switch, self.policy, self.scheduler).unwrap();
        let scheduler = scheduler.with_media_sectors(electronics.sector.sectors());
        let (real, behaviour) = (&self.real, &self.behaviour);
        let drive = EmulatedDrive::new(real, "real", behaviour, BadBlocks::default(), 1).unwrap();
        let mut tasks = all_blocks(&scheduler.planners_drive(), self.writes);
        let mut planner = Impatient { tasks: &mut tasks, steps_max: self.steps_max };
        let planner = self.free.then_some(&mut planner as &mut dyn Planner);
        let (mut finished, mut completions) = (Vec::new(), Vec::new());
        let mut watch = |one: &Finished| finished.push(one.clone());
        let device = PredictedDevice::new(scheduler, drive, planner).watched_by(&mut watch);
        let policy = PolicySpec::Fcfs.build().unwrap();
        let mut arms = [Arm { drive: Arc::clone(&believed), policy, device }];
        let mut source = self.transactions(&believed);
        let striping = Striping::single(believed.blocks());
        let mut observe = |done: &Completion| completions.push(*done);
        run(&striping, None, &mut arms, &mut source, &mut observe).unwrap();
        let account = *arms[0].device.account();
        let margins = arms[0].device.work(SimTime::MAX).margins;
        drop(arms);
        let events = tasks.events().collect();
        Outcome { completions, finished, account, margins, events }
    }
}

/// A full scan in blocks of 4 KiB, or a write of all of them.
fn all_blocks(drive: &Arc<Drive>, writes: bool) -> Tasks {
    let options = Options { rule: Rule::Paths, ..Options::default() };
    let mut tasks = Tasks::new(drive, options, CADENCE);
    let of = if writes { uses::write } else { uses::scan };
    let spec: TaskSpec = of(drive.blocks(), 8);
    tasks.register(SimTime::ZERO, spec).unwrap();
    tasks
}

#[test]
fn jitterless_drive_predicted_to_nanosecond() {
    let outcome = Setting::bare().run();
    let errors = outcome.errors();
    assert!(errors.len() as u64 > Setting::bare().requests, "{} errors", errors.len());
    assert!(errors.iter().all(|error| error.abs() <= 1), "{:?}", errors.iter().max());
    assert_eq!((outcome.account.surprises, outcome.account.late), (0, 0));
}

#[test]
fn commands_sent_together_processed_in_turn() {
    let mut setting = Setting::bare();
    setting.real.overhead.read = us(700);
    setting.believed = setting.real.clone();
    setting.behaviour.queue_depth = Some(4);
    setting.scheduler =
        PredictionSpec { queue_depth: 4, same_track: SameTrack::Distinct, ..setting.scheduler };
    let outcome = setting.run();
    assert!(outcome.errors().iter().all(|&error| error == 0), "{:?}", outcome.account);
    assert!(outcome.account.commands > 100, "{:?}", outcome.account);
}

/// A planner whose search ends after `steps_max` steps.
struct Impatient<'a> {
    tasks: &'a mut Tasks,
    steps_max: u64,
}

impl Planner for Impatient<'_> {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        self.tasks.begin_search(gap);
        let mut steps = 0;
        while steps < self.steps_max && !self.tasks.step(8).is_done() {
            steps += 1;
        }
        self.tasks.end_search(runs);
    }

    fn predict_with(&mut self, drive: &Arc<Drive>) {
        self.tasks.predict_with(drive);
    }

    fn sent(&mut self, run: &FreeRun) {
        self.tasks.sent(run);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.tasks.done(run, at);
    }
}

impl ForegroundObserver for Impatient<'_> {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        self.tasks.foreground(event);
    }
}

#[test]
fn clients_unaffected_by_search_length() {
    for policy in [PolicySpec::Fcfs, PolicySpec::Sptf] {
        let setting = |steps_max| Setting { policy, steps_max, requests: 1500, ..Setting::bare() };
        let [none, some, all] = [0, 20, u64::MAX].map(|steps_max| setting(steps_max).run());
        let served = |outcome: &Outcome| -> Vec<_> {
            let of = |done: &Completion| (done.request.start, done.arrival, done.end);
            outcome.completions.iter().map(of).collect()
        };
        for one in [&none, &some] {
            assert!(served(one) == served(&all), "{policy:?}");
        }
        // Of a drive of which all is wanted most is had where the foreground is anyway.
        let free = [&none, &all].map(|outcome| outcome.account.free_blocks);
        assert!(free[0] < free[1], "{policy:?}: {free:?}");
    }
}

#[test]
fn gap_writes_predicted_and_delay_nobody() {
    let write = Setting { writes: true, ..Setting::bare() };
    // A drive that would answer at once, and has to wait for the media.
    let forced = buffering(write.clone(), WriteCache::On);
    let only_reads = |account: &Account| account.free_blocks - account.free_written_blocks;
    for (setting, is_forced) in [(write, false), (forced, true)] {
        let outcome = setting.run();
        let account = outcome.account;
        assert!(account.free_written_blocks > 20_000, "{account:?}");
        assert_eq!((only_reads(&account), account.merged), (0, 0), "{account:?}");
        let gap_writes = outcome.finished.iter().filter(|one| one.command.foreground.is_none());
        let errors: Vec<i64> = gap_writes.filter_map(|one| one.error_ns).collect();
        let exact = errors.iter().filter(|error| error.abs() <= 1).count();
        assert!(errors.len() > 500, "{}", errors.len());
        match is_forced {
            // Destages of clients' writes, which are not seen, move the head before some of them, and the
            // phase is learned anew from what came late.
            true => {
                let near = errors.iter().filter(|error| error.abs() <= 50_000).count();
                assert!(near * 2 > errors.len(), "{near} of {}", errors.len());
            }
            false => {
                assert_eq!(exact, errors.len());
                assert_eq!((account.late, account.delayed, account.surprises), (0, 0, 0));
            }
        }
    }
}

#[test]
fn gap_writes_keep_budget_writing_once() {
    let (outcome, later) = behind_a_scan(|plain| Setting { writes: true, ..plain });
    let budget = PredictionSpec::default().budget;
    assert!(outcome.account.free_written_blocks > 100_000, "{:?}", outcome.account);
    assert!(outcome.delayed() < budget && later < 2.0 * budget, "{} {later}", outcome.delayed());
    let small = Setting { writes: true, ..learning(Setting::small()) };
    let outcome = small.run();
    outcome.assert_answered_once(&small);
    let blocks = library::build(&small.real, "small").unwrap().blocks().get() as usize;
    let mut ends = vec![0; blocks / 8];
    for event in &outcome.events {
        if let Event::Delivered { extent, .. } | Event::Superseded { extent, .. } = event {
            let first = extent.start.get() as usize / 8;
            ends[first..first + extent.blocks.get() as usize / 8].iter_mut().for_each(|n| *n += 1);
        }
    }
    assert!(ends.iter().all(|&ends| ends == 1), "a block is written, or a client wrote it");
    let delivered = outcome.events.iter().map(|event| match event {
        Event::Delivered { extent, .. } => extent.blocks.get(),
        _ => 0,
    });
    assert!(delivered.sum::<u64>() <= outcome.account.free_written_blocks);
}

/// Small random drives, policies and ways of sending, a scan behind a few clients.
fn any_setting() -> impl Strategy<Value = Setting> {
    any::<u64>().prop_filter_map("a drive that builds and is not too small", setting_of)
}

fn setting_of(seed: u64) -> Option<Setting> {
    let prng = &mut Prng::new(seed, "outside of a random drive");
    let spec = with_remaps(random_spec(seed), (seed % 3) as usize, seed);
    let drive = Drive::build(&spec).ok()?;
    (drive.blocks().get() > 300).then_some(())?;
    let same_tracks = [SameTrack::Merge, SameTrack::Distinct, SameTrack::Never];
    let policies = [PolicySpec::Fcfs, PolicySpec::Sstf, PolicySpec::Sptf, PolicySpec::Clook];
    let lead_time = if prng.chance(0.5) { us(prng.below(2000)) } else { SimDuration::MAX };
    let scheduler = PredictionSpec {
        queue_depth: 1 + prng.below(3) as u32,
        conservatism: constant(prng.below(2) * prng.below(300)),
        same_track: same_tracks[prng.below(3) as usize],
        lead_time,
        ..PredictionSpec::default()
    };
    let queue_depth = Some(scheduler.queue_depth);
    Some(Setting {
        believed: spec.clone(),
        real: spec,
        behaviour: Behaviour { queue_depth, ..Behaviour::default() },
        scheduler,
        policy: policies[prng.below(4) as usize],
        requests: 200,
        think_time: MS * 30,
        free: true,
        writes: seed.is_multiple_of(4),
        steps_max: u64::MAX,
        of_512: false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn random_jitterless_drive_predicted_never_late(
        setting in any_setting()
    ) {
        let outcome = setting.run();
        let errors = outcome.errors();
        prop_assert_eq!(outcome.completions.len() as u64, setting.requests);
        prop_assert!(errors.len() as u64 + 20 > setting.requests, "{} of them", errors.len());
        prop_assert!(errors.iter().all(|error| *error == 0), "{errors:?}");
        let Account { surprises, late, delayed, .. } = outcome.account;
        prop_assert_eq!((surprises, late, delayed), (0, 0, 0), "{:?}", outcome.account);
    }
}

/// Random drives whose seeks vary by anything up to a thirtieth of a turn.
fn any_jittery_setting() -> impl Strategy<Value = Setting> {
    (any_setting(), 0u64..200, 0u64..400).prop_map(|(plain, near, far)| {
        let turn = plain.real.rotation_period.ns();
        let of_turn = |part: u64| Some(SimDuration::from_ns(turn * part / 12_000));
        let behaviour = Behaviour {
            seek_jitter: of_turn(near),
            seek_jitter_far: of_turn(far),
            ..plain.behaviour
        };
        let scheduler = PredictionSpec {
            conservatism: Conservatism::Learned,
            queue_depth: plain.scheduler.queue_depth.max(2),
            ..plain.scheduler
        };
        let behaviour = Behaviour { queue_depth: Some(scheduler.queue_depth), ..behaviour };
        Setting { behaviour, scheduler, requests: 2000, ..plain }
    })
}

/// Most that may be delayed: what is earned, what can be saved up, and what is on its way when that is
/// spent.
fn allowed(outcome: &Outcome, setting: &Setting) -> SimDuration {
    let head: SimDuration = outcome.finished.iter().map(|finished| finished.head).sum();
    let earned = SimDuration::from_ns((head.ns() as f64 * setting.scheduler.budget) as u64);
    earned + setting.real.rotation_period * (16 + 1 + 4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..Default::default() })]

    #[test]
    fn learned_margins_hold_budget_everywhere(setting in any_jittery_setting()) {
        let outcome = setting.run();
        let (allowed, account) = (allowed(&outcome, &setting), outcome.account);
        prop_assert!(account.delay_ns <= allowed.ns().into(), "{allowed}: {account:?}");
        let quiet = Setting { behaviour: Behaviour::default(), ..setting.clone() };
        let behaviour = Behaviour { queue_depth: setting.behaviour.queue_depth, ..quiet.behaviour };
        let quiet = Setting { behaviour, ..quiet }.run();
        prop_assert_eq!((quiet.account.late, quiet.account.delayed), (0, 0));
    }
}

/// A margin is an eighth of a turn at most.
#[test]
fn learned_margins_hold_budget_despite_seek_errors() {
    let mut read = Vec::new();
    for jitter in [us(800), us(1000), us(2500)] {
        let jittery = Setting::jittery(jitter);
        let scheduler = PredictionSpec { conservatism: Conservatism::Learned, ..jittery.scheduler };
        let setting = Setting { scheduler, requests: 8000, ..jittery };
        let outcome = setting.run();
        let (allowed, account) = (allowed(&outcome, &setting), outcome.account);
        assert!(account.delay_ns <= allowed.ns().into(), "{jitter}: {allowed}: {account:?}");
        read.push(account.free_blocks);
    }
    assert!(read[0] > 10_000, "{read:?} blocks: some free work pays for itself");
}

#[test]
fn learned_margins_read_more_than_constant() {
    let constant = Setting::jittery(us(50));
    let start = PredictionSpec { conservatism: self::constant(300), ..constant.scheduler };
    let scheduler = PredictionSpec { conservatism: Conservatism::Learned, ..constant.scheduler };
    let learned = Setting { scheduler, requests: 8000, ..constant.clone() }.run();
    let start = Setting { scheduler: start, requests: 8000, ..constant }.run();
    let blocks = [&learned, &start].map(|outcome| outcome.account.free_blocks);
    assert!(blocks[0] * 100 > blocks[1] * 106, "{blocks:?}");
    let head: SimDuration = learned.finished.iter().map(|finished| finished.head).sum();
    let share = learned.account.delay_ns as f64 / head.ns() as f64;
    assert!(share < PredictionSpec::default().budget, "{share}");
}

#[test]
fn learned_margins_longer_for_inward_jitter() {
    let even = Setting::jittery(us(30));
    let behaviour = Behaviour { seek_jitter_inward: Some(us(250)), ..even.behaviour };
    let scheduler = PredictionSpec { conservatism: Conservatism::Learned, ..even.scheduler };
    let outcome = Setting { behaviour, scheduler, requests: 20_000, ..even }.run();
    let known = outcome.margins.iter().filter(|of| of.movements > 400);
    let mean_us = |direction| {
        let of = known.clone().filter(|of| of.direction == Some(direction));
        let (sum_ns, number) = of.fold((0, 0), |(sum, of), one| (sum + one.margin_ns, of + 1));
        sum_ns / number / 1000
    };
    let inward = mean_us(SeekDirection::Inward);
    let outward = mean_us(SeekDirection::Outward);
    assert!(inward > 2 * outward, "{inward} us inward, {outward} us outward");
    assert!(outcome.delayed() < PredictionSpec::default().budget, "{}", outcome.delayed());
}

#[test]
fn learned_margins_ignore_internal_work() {
    let jittery = Setting::jittery(us(50));
    let scheduler = PredictionSpec { conservatism: Conservatism::Learned, ..jittery.scheduler };
    let quiet = Setting { scheduler, requests: 8000, ..jittery };
    let activity = Activity { every: MS * 500, lasts: MS * 20 };
    let behaviour = Behaviour { activity: Some(activity), ..quiet.behaviour };
    let busy = Setting { behaviour, ..quiet.clone() }.run();
    let a_gap =
        |outcome: &Outcome| outcome.account.free_blocks as f64 / outcome.account.gaps as f64;
    let (quiet, busy) = (a_gap(&quiet.run()), a_gap(&busy));
    assert!(busy > quiet * 0.96, "{busy} blocks a gap, {quiet} without");
}

#[test]
fn merged_free_work_leaves_foreground_unchanged() {
    let with = Setting::bare();
    let without = Setting { free: false, ..with.clone() };
    let (with, without) = (with.run(), without.run());
    assert!(with.account.free_blocks > 400_000, "{:?}", with.account);
    assert!(with.account.merged > 1000, "{:?}", with.account);
    let ends = |outcome: &Outcome| -> Vec<(VolumeBlock, SimTime)> {
        outcome.completions.iter().map(|done| (done.request.start, done.end)).collect()
    };
    assert_eq!(ends(&with), ends(&without));
}

#[test]
fn margin_covering_jitter_prevents_lateness() {
    let outcome = Setting::jittery(us(50)).run();
    assert!(outcome.account.late_behind_free <= 1, "{:?}", outcome.account);
    let bold = Setting::jittery(us(50));
    let bold = Setting { scheduler: Setting::bare().scheduler, ..bold }.run();
    assert!(bold.account.late_behind_free > 40, "{:?}", bold.account);
}

/// Requests in the order of their arrival, always enough of them: what delays one delays the end.
#[test]
fn foreground_delay_is_later_end() {
    let bold = Setting::jittery(us(50));
    let bold = Setting { scheduler: Setting::bare().scheduler, think_time: us(0), ..bold };
    let alone = Setting { free: false, ..bold.clone() };
    let end = |outcome: &Outcome| outcome.completions.iter().map(|done| done.end).max().unwrap();
    let (with, without) = (bold.run(), alone.run());
    let (later, delay) = (end(&with) - end(&without), with.account.delay_ns);
    let ratio = delay as f64 / later.ns() as f64;
    assert!(with.account.delayed > 100, "{:?}", with.account);
    assert!((0.8..1.25).contains(&ratio), "{later} later, {delay} ns counted");
    assert_eq!((without.account.delayed, without.account.delay_ns), (0, 0));
}

#[test]
fn head_times_predicted_like_fast02() {
    let outcome = Setting { free: false, ..Setting::jittery(us(50)) }.run();
    let share = outcome.share_within(50_000);
    assert!(share >= 0.975, "{share}");
}

#[test]
fn replies_that_come_late_cost_little() {
    let setting = Setting::jittery(us(50));
    let behaviour = Behaviour { reply_jitter: us(80), ..setting.behaviour };
    let outcome = Setting { behaviour, ..setting }.run();
    assert!(outcome.account.late_behind_free <= 4, "{:?}", outcome.account);
    assert!(outcome.account.gaps > 3800, "{:?}", outcome.account);
}

#[test]
fn slow_spindle_is_followed() {
    let setting = Setting::jittery(us(50));
    let mut real = setting.real.clone();
    real.rotation_period = SimDuration::from_ns(real.rotation_period.ns() * 1_000_080 / 1_000_000);
    let outcome = Setting { real, ..setting }.run();
    assert!(outcome.account.late_behind_free <= 4, "{:?}", outcome.account);
    assert!(outcome.share_within(60_000) > 0.97, "{}", outcome.share_within(60_000));
}

#[test]
fn internal_activity_costs_only_own_time() {
    let quiet = Setting::jittery(us(50));
    let activity = Activity { every: MS * 500, lasts: MS * 20 };
    let behaviour = Behaviour { activity: Some(activity), ..quiet.behaviour };
    let busy = Setting { behaviour, ..quiet.clone() }.run();
    let seconds = busy.completions.last().unwrap().end.ns() as f64 / 1e9;
    let interruptions = seconds / 0.5;
    // An interruption before a media access shows as turns that are lost.
    let seen = busy.account.surprises + busy.account.late;
    assert!(seen as f64 > interruptions * 0.7, "{:?}", busy.account);
    let behind = busy.account.late_behind_free as f64;
    assert!(behind < 2.0 * interruptions, "{behind} late of {interruptions} interruptions");
    let quiet = quiet.run().account.gaps as f64;
    let lost = quiet - busy.account.gaps as f64;
    assert!(lost < 3.0 * interruptions, "{lost} gaps without a plan");
}

#[test]
fn buffer_reply_recognised_and_prediction_resumes() {
    let spec = library::spec("atlas10k").unwrap();
    let setting = Setting { real: spec.clone(), believed: spec, ..Setting::jittery(us(50)) };
    let outcome = setting.run();
    let surprises = outcome.account.surprises;
    assert!(surprises > 0, "a buffer of 10 segments is hit now and then");
    let unknown = outcome.finished.iter().filter(|finished| finished.error_ns.is_none()).count();
    assert!(unknown as u64 <= 2 * surprises + 20, "{unknown} behind {surprises}");
}

#[test]
fn own_track_commands_sent_where_allowed() {
    let paper = Setting::jittery(us(50));
    let distinct = PredictionSpec { same_track: SameTrack::Distinct, ..paper.scheduler };
    let never = PredictionSpec { same_track: SameTrack::Never, ..paper.scheduler };
    let free = |scheduler| Setting { scheduler, ..paper.clone() }.run();
    let (merge, distinct, never) = (free(paper.scheduler), free(distinct), free(never));
    assert_eq!((never.account.merged, merge.account.merged > 0), (0, true));
    let moved = [&never, &merge, &distinct].map(|outcome| outcome.account.free_blocks);
    assert!(moved[0] < moved[1] && moved[1] < moved[2], "{moved:?}");
    let believed = library::build(&paper.believed, "believed").unwrap();
    let track = |block: Lbn| {
        let at = believed.layout().locate(block);
        (at.cylinder, at.surface)
    };
    for outcome in [&merge, &never] {
        for pair in outcome.finished.windows(2) {
            let [before, after] = [&pair[0].command, &pair[1].command];
            let last = Lbn::new(before.start.get() + u64::from(before.blocks) - 1);
            let is_free = before.foreground.is_none() || after.foreground.is_none();
            assert!(!is_free || track(last) != track(after.start), "{before:?} {after:?}");
        }
    }
}

#[test]
fn scan_delivers_each_block_once() {
    let small = Setting::small();
    let outcome = small.run();
    outcome.assert_scanned(&small);
    outcome.assert_answered_once(&small);
    assert_eq!(outcome.overtaken(), 0, "two commands leave no choice");
}

#[test]
fn actuators_predicted_by_own_schedulers() {
    let text = "drive = \"exos-2x18-18tb\"\nhost = {}\n[workload]\nkind = \"closed\"\n\
                requests = 1000\noutstanding = 8\n";
    let config = SimConfig::parse(text, "test", &[]).unwrap();
    let result = Experiment::new(config).unwrap().run().unwrap();
    let seen = result.host.unwrap();
    assert_eq!(result.requests, 1000);
    // Neither knows its spindle at first.
    assert!((900..1000).contains(&seen.predicted), "{seen:?}");
    assert!(seen.within_50us * 20 > seen.predicted * 19, "{seen:?}");
}

/// A drive that takes the next command itself, by positioning time, of three that it has.
fn reordering(plain: Setting) -> Setting {
    let mut real = plain.real;
    let depth = 3;
    real.electronics.queue =
        Some(QueueSpec { depth, scheduler: PolicySpec::Sptf, ..QueueSpec::default() });
    let behaviour = Behaviour { queue_depth: None, ..plain.behaviour };
    let scheduler = PredictionSpec { queue_depth: depth, ..plain.scheduler };
    Setting { real, behaviour, scheduler, ..plain }
}

/// A drive with a buffer that answers writes as `write_cache` says.
fn buffering(plain: Setting, write_cache: WriteCache) -> Setting {
    let electronics = library::spec("atlas10k").unwrap().electronics;
    // A bus slower than the media would hide whose end is seen.
    let electronics = ElectronicsSpec { bus: None, ..electronics };
    let real = DriveSpec { electronics, ..plain.real };
    let behaviour = Behaviour { write_cache: Some(write_cache), ..plain.behaviour };
    Setting { believed: real.clone(), real, behaviour, ..plain }
}

/// Sends what the drive has room for at once, so that it has as much to choose from as may be.
fn eager(plain: Setting) -> Setting {
    let scheduler = PredictionSpec { lead_time: SimDuration::MAX, ..plain.scheduler };
    Setting { scheduler, ..plain }
}

fn learning(plain: Setting) -> Setting {
    let scheduler = PredictionSpec { conservatism: Conservatism::Learned, ..plain.scheduler };
    Setting { scheduler, ..plain }
}

/// Clients that never think, so that every delay shows at the end. Runs them with and without a scan;
/// returns the share by which the end is later.
fn behind_a_scan(make: impl Fn(Setting) -> Setting) -> (Outcome, f64) {
    let busy = Setting { think_time: us(0), requests: 20_000, ..Setting::jittery(us(50)) };
    let with = make(learning(busy));
    let alone = Setting { free: false, ..with.clone() }.run();
    let outcome = with.run();
    outcome.assert_answered_once(&with);
    let end = |of: &Outcome| of.completions.iter().map(|done| done.end).max().unwrap();
    let later = end(&outcome).ns() as f64 / end(&alone).ns() as f64 - 1.0;
    (outcome, later)
}

#[test]
fn reordering_drive_scan_is_whole() {
    let small = reordering(learning(Setting::small()));
    let outcome = small.run();
    assert!(outcome.overtaken() > 20, "{}", outcome.overtaken());
    outcome.assert_answered_once(&small);
    outcome.assert_scanned(&small);
    let often = eager(small);
    let outcome = often.run();
    assert!(outcome.overtaken() > 5000, "{}", outcome.overtaken());
    outcome.assert_answered_once(&often);
    outcome.assert_scanned(&often);
}

#[test]
fn reordering_drive_free_work_within_budget() {
    for (make, least) in
        [(reordering as fn(Setting) -> Setting, 50), (|plain| eager(reordering(plain)), 5000)]
    {
        let (outcome, later) = behind_a_scan(make);
        assert!(outcome.overtaken() > least, "{}", outcome.overtaken());
        let budget = PredictionSpec::default().budget;
        assert!(outcome.delayed() < budget, "{}", outcome.delayed());
        assert!(later < 2.0 * budget, "{later}");
    }
}

/// The host does not see the drive's own destages. The scheduler plans free work for gaps that do not
/// exist, and cannot tell its delays from those of destages. Hence the advice to switch the cache off.
#[test]
fn write_caching_drive_scan_is_whole() {
    let small = buffering(learning(Setting::small()), WriteCache::On);
    let outcome = small.run();
    outcome.assert_answered_once(&small);
    outcome.assert_scanned(&small);
    let budget = PredictionSpec::default().budget;
    let of = |cache| behind_a_scan(|plain| buffering(plain, cache));
    let [(on, later_on), (off, later_off)] = [WriteCache::On, WriteCache::Off].map(of);
    assert!(
        on.delayed() < 1.5 * budget && off.delayed() < budget,
        "{} {}",
        on.delayed(),
        off.delayed()
    );
    assert!(later_off < 2.0 * budget, "{later_off}");
    assert!((0.02..0.2).contains(&later_on), "{later_on}");
}

/// A drive of today with sectors of 4 KiB under requests of 512 B and more, a third of them writes: its
/// host knows of them or does not.
fn of_512e(plain: Setting, is_known: bool) -> Setting {
    let mut believed = library::spec("exos-7e8-8tb").unwrap();
    believed.electronics = ElectronicsSpec::default();
    let sector = SectorFormat::Emulated512;
    let mut real = believed.clone();
    real.electronics.sector = sector;
    believed.electronics.sector = if is_known { sector } else { SectorFormat::Native512 };
    Setting { real, believed, of_512: true, ..plain }
}

#[test]
fn part_sector_writes_predicted_when_known() {
    let outcome = of_512e(Setting::bare(), true).run();
    let account = outcome.account;
    let is_part = |finished: &&Finished| {
        let command = &finished.command;
        let edges = [command.start.get(), command.start.get() + u64::from(command.blocks)];
        command.op == Op::Write && edges.iter().any(|edge| !edge.is_multiple_of(8))
    };
    let parts = outcome.finished.iter().filter(is_part).count() as u64;
    println!("{account:?} {parts}");
    assert_eq!(account.part_sector_writes, parts);
    assert!(parts > 100, "{parts}");
    assert!(
        outcome.errors().iter().all(|error| error.abs() <= 1),
        "{:?}",
        outcome.errors().iter().max()
    );
    assert_eq!((account.surprises, account.late), (0, 0));
}

#[test]
fn part_sectors_keep_free_work_budget() {
    let budget = PredictionSpec::default().budget;
    let of = |is_known| behind_a_scan(|plain| of_512e(plain, is_known));
    let [(known, later_known), (unknown, later_unknown)] = [true, false].map(of);
    for (outcome, later) in [(&known, later_known), (&unknown, later_unknown)] {
        println!("{:?} later {later} delayed {}", outcome.account, outcome.delayed());
        assert!(later < budget, "{later}");
    }
    assert!(known.delayed() < budget, "{}", known.delayed());
    // Nearly all gaps are used. Else turns that the drive itself needs count against free work, which
    // stops.
    assert!(known.account.gaps_used * 10 > known.account.gaps * 9, "{:?}", known.account);
    assert!(unknown.account.gaps_used * 10 < unknown.account.gaps, "{:?}", unknown.account);
}

/// An experiment on a 4Kn drive, even where its file says otherwise.
fn of_4kn(more: &str) -> String {
    format!(
        "drive = \"exos-x24-24tb\"\nscheduler = {{ policy = \"sptf\" }}\n\
         host.behaviour.sector = \"4kn\"\n{more}"
    )
}

const PATTERN_OF_4KN: &str = "workload = { kind = \"closed\", requests = 600, outstanding = 4, pattern = { size = \"64KiB\" } }\n";

#[test]
fn part_sectors_on_4kn_drive_refused() {
    let closed =
        |pattern: &str| format!("workload = {{ kind = \"closed\", pattern = {{ {pattern} }} }}\n");
    for (text, start) in [
        (closed("align = \"512B\""), "workload: `pattern.align` is 512B"),
        (closed("size = \"6KiB\""), "workload: `pattern.size` is 6KiB"),
        (
            format!("freeblock.tasks = [{{ block_size = \"512B\" }}]\n{PATTERN_OF_4KN}"),
            "freeblock: tasks[0]: `block_size` is 512B",
        ),
        (
            format!("freeblock.tasks = [{{ start = \"1KiB\" }}]\n{PATTERN_OF_4KN}"),
            "freeblock: tasks[0]: `start` is 1KiB",
        ),
        (
            format!("array = {{ drives = 2, stripe_unit = \"6KiB\" }}\n{PATTERN_OF_4KN}"),
            "array: `stripe_unit` is 6KiB",
        ),
    ] {
        let config = SimConfig::parse(&of_4kn(&text), "test", &[]).unwrap();
        let error = Experiment::check(&config).unwrap_err().to_string();
        assert!(error.starts_with(start) && error.contains("512e"), "{text}: {error}");
        let of_512e = ["host.behaviour.sector=512e".to_owned()];
        let config = SimConfig::parse(&of_4kn(&text), "test", &of_512e).unwrap();
        Experiment::check(&config).unwrap();
    }
}

#[test]
fn task_on_4kn_ends_with_sector() {
    for (keys, start) in [
        ("length = \"6KiB\"", "freeblock: tasks[0]: `length` is 6KiB"),
        ("length = \"6KiB\", block_size = \"2KiB\"", "freeblock: tasks[0]: `block_size` is 2KiB"),
        ("length = \"8KiB\", block_size = \"8KiB\"", ""),
    ] {
        let text = of_4kn(&format!("freeblock.tasks = [{{ {keys} }}]\n{PATTERN_OF_4KN}"));
        let checked = Experiment::check(&SimConfig::parse(&text, "test", &[]).unwrap());
        let error = checked.map_or_else(|error| error.to_string(), |()| String::new());
        assert!(
            error.starts_with(start) && error.is_empty() == start.is_empty(),
            "{keys}: {error}"
        );
    }
}

#[test]
fn drive_4kn_gets_only_whole_sectors() {
    for rule in ["paths", "greedy"] {
        let free = format!(
            "freeblock = {{ rule = \"{rule}\", tasks = [{{ block_size = \"64KiB\" }}] }}\n"
        );
        let text = of_4kn(&format!("{free}{PATTERN_OF_4KN}"));
        let experiment = Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap();
        // The drive panics when it is asked for less.
        let result = experiment.run().unwrap();
        assert_eq!(result.requests, 600);
        assert!(result.free.unwrap().time.read_bytes > 0);
    }
}

#[test]
fn trace_with_part_sectors_refused_on_4kn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.csv");
    std::fs::write(
        &file,
        "128166372003061629,usr,0,Read,4096,4096,10\n128166372003061639,usr,0,Read,512,4096,10\n",
    )
    .unwrap();
    let text = of_4kn(&format!("workload = {{ kind = \"trace\", file = {file:?} }}\n"));
    let run = |overrides: &[String]| {
        let config = SimConfig::parse(&text, "test", overrides).unwrap();
        Experiment::new(config).unwrap().run()
    };
    let error = run(&[]).unwrap_err().to_string();
    assert!(error.starts_with("record 2 of the trace asks for 8 blocks") && error.contains("512e"));
    run(&["host.behaviour.sector=512e".to_owned()]).unwrap();
}
