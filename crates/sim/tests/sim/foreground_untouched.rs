//! The foreground is the same to the nanosecond with and without free work in its gaps, and what is
//! counted of the gaps adds up.

use std::sync::Arc;

use crate::common::setting::{Setting, any_setting};
use freewheel_freeblock::tasks::{CADENCE, Counts, Extent, Pace, Priority, TaskSpec, Tasks, Until};
use freewheel_freeblock::uses::scan;
use freewheel_freeblock::{
    ForegroundEvent, ForegroundObserver, FreeRun, GapUse, Opportunity, Options, Planner, Rule,
};
use freewheel_model::drive::spec::{ByOp, CurveSpec, DriveSpec, Mapping, SeekSpec, Turn, ZoneSpec};
use freewheel_model::drive::{Drive, Physical, Position};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::FreeTime;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::{Experiment, Planners};
use freewheel_sim::source::PatternSpec;
use freewheel_testkit::drives::random_spec;
use freewheel_units::{Bytes, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

fn busy(setting: &Setting, greed_ns: u64) -> Busy {
    Busy { greed_ns, ..Busy::new(&setting.drive, setting.seed) }
}

/// Tries random runs on the source track, on the destination track and elsewhere. Takes each run that
/// leaves the head in time, or up to `greed_ns` late.
struct Busy {
    drive: Arc<Drive>,
    prng: Prng,
    greed_ns: u64,
    /// Expected end of each run of the plan at hand.
    expected: Vec<(FreeRun, SimTime)>,
    /// Least time to spare in any gap that was used on another track than the destination.
    least_spare_ns: u64,
    blocks: u64,
    foreground_blocks: u64,
}

impl Busy {
    fn new(drive: &Arc<Drive>, seed: u64) -> Self {
        Self {
            drive: Arc::clone(drive),
            prng: Prng::new(seed, "busy planner"),
            greed_ns: 0,
            expected: Vec::new(),
            least_spare_ns: u64::MAX,
            blocks: 0,
            foreground_blocks: 0,
        }
    }

    fn block_on(&mut self, at: Position) -> Option<Lbn> {
        let layout = self.drive.layout();
        let sectors = layout.zones()[layout.zone_at(at.cylinder, at.surface)?].blocks_per_track();
        let sector = self.prng.below(sectors.into()) as u32;
        layout.lbn_at(Physical { cylinder: at.cylinder, surface: at.surface, sector })
    }

    fn any_run(&mut self, gap: &Opportunity) -> Option<FreeRun> {
        let start = match self.prng.below(3) {
            0 => self.block_on(gap.from)?,
            1 => self.block_on(gap.to)?,
            _ => Lbn::new(self.prng.below(self.drive.blocks().get())),
        };
        let left = self.drive.blocks().get() - start.get();
        let wanted = (1 + self.prng.below(6)).min(left) as u32;
        let blocks = self.drive.layout().run(start, wanted).blocks;
        let op = if self.prng.chance(0.5) { Op::Read } else { Op::Write };
        Some(FreeRun { start, blocks, op })
    }
}

impl Planner for Busy {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        assert!(self.expected.is_empty(), "{} runs were never done", self.expected.len());
        assert!(gap.latency() > SimDuration::ZERO);
        let mut at = gap.departure();
        for _ in 0..30 {
            let Some(run) = self.any_run(gap) else { continue };
            let after = at.after(&run.access(&self.drive, &at), run.op);
            let arrival = gap.arrival(&self.drive, &after);
            if arrival.ns() > gap.due.ns() + self.greed_ns {
                continue;
            }
            at = after;
            if at.from != gap.to {
                let spare = gap.due.saturating_since(arrival).ns();
                self.least_spare_ns = self.least_spare_ns.min(spare);
            }
            runs.push(run);
            self.expected.push((run, at.begin));
        }
        self.expected.reverse();
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        assert_eq!(self.expected.pop(), Some((*run, at)));
        self.blocks += u64::from(run.blocks);
    }
}

impl ForegroundObserver for Busy {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        if let ForegroundEvent::Passed { blocks, .. } = event {
            self.foreground_blocks += u64::from(blocks);
        }
    }
}

/// Fills every gap with one run, come what may.
struct Reckless(FreeRun);

impl Planner for Reckless {
    fn plan(&mut self, _: &Opportunity, runs: &mut Vec<FreeRun>) {
        runs.push(self.0);
    }

    fn done(&mut self, _: &FreeRun, _: SimTime) {}
}

impl ForegroundObserver for Reckless {
    fn foreground(&mut self, _: ForegroundEvent<'_>) {}
}

/// The real planner with gaps that appear `longer_ns` longer than they are.
struct Misled {
    tasks: Tasks,
    longer_ns: u64,
}

impl Misled {
    /// Planner that scans the drive for ever, sector by sector.
    fn scanning(drive: &Arc<Drive>, rule: Rule, longer_ns: u64) -> Self {
        let options = Options { rule, ..Options::default() };
        let mut tasks = Tasks::new(drive, options, CADENCE);
        tasks.register(SimTime::ZERO, scan(drive.blocks(), 1)).unwrap();
        Self { tasks, longer_ns }
    }
}

impl Planner for Misled {
    fn plan(&mut self, gap: &Opportunity, runs: &mut Vec<FreeRun>) {
        let due = gap.due + SimDuration::from_ns(self.longer_ns);
        self.tasks.plan(&Opportunity { due, ..*gap }, runs);
    }

    fn done(&mut self, run: &FreeRun, at: SimTime) {
        self.tasks.done(run, at);
    }

    fn filled(&mut self, gap: &Opportunity, gap_use: &GapUse) {
        self.tasks.filled(gap, gap_use);
    }
}

impl ForegroundObserver for Misled {
    fn foreground(&mut self, event: ForegroundEvent<'_>) {
        if let ForegroundEvent::Passed { .. } = event {
            self.tasks.foreground(event);
        }
    }
}

/// An endless scan, and reads and writes of every kind.
fn any_tasks(setting: &Setting, rule: Rule) -> Tasks {
    let prng = &mut Prng::new(setting.seed, "tasks");
    let capacity = setting.drive.blocks();
    let options = Options { rule, ..Options::default() };
    let cadence = [CADENCE, SimDuration::from_ns(1 + prng.below(200_000_000))];
    let mut tasks = Tasks::new(&setting.drive, options, cadence[prng.below(2) as usize]);
    let scan = scan(capacity, 1 + prng.below(20) as u32);
    tasks.register(SimTime::ZERO, scan).unwrap();
    for _ in 0..prng.below(4) {
        let size = 1 + prng.below(30);
        let blocks = size * (1 + prng.below(capacity.get() / size));
        let start = prng.below(capacity.get() - blocks + 1);
        let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
        let deadline = Pace::Deadline(SimDuration::from_ns(1 + prng.below(1_000_000_000)));
        let spec = TaskSpec {
            priority: [Priority::Low, Priority::Normal, Priority::High][prng.below(3) as usize],
            pace: [Pace::ByPriority, Pace::Share(2), deadline][prng.below(3) as usize],
            counts: [Counts::ALL, Counts::READS, Counts::NONE][prng.below(3) as usize],
            until: [Until::All, Until::Enough(1)][prng.below(2) as usize],
            ..TaskSpec::new(op, size as u32, vec![Extent::new(start, blocks)])
        };
        tasks.register(SimTime::ZERO, spec).unwrap();
    }
    tasks
}

fn adds_up(free: &FreeTime) -> bool {
    let gap_use = (free.transfer_ns + free.unused_ns) as i128 + free.extra_seek_ns;
    gap_use == free.potential_ns as i128 && free.gaps_late == 0 && free.foreground_delay_ns == 0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn foreground_untouched(setting in any_setting()) {
        let (alone, expected) = setting.run(None);
        let mut planner = busy(&setting, 0);
        let (with, completions) = setting.run(Some(&mut planner));
        prop_assert_eq!(&completions, &expected);
        prop_assert_eq!(&with.result_hash, &alone.result_hash);
        prop_assert_eq!(with.head_time, alone.head_time);
        prop_assert!(alone.free.is_none());
        let free = with.free.unwrap().time;
        prop_assert!(adds_up(&free), "{:?}", free);
        prop_assert_eq!(free.read_bytes + free.write_bytes, planner.blocks * 512);
        if setting.electronics.is_none() {
            let rotate_ns = with.head_time.rotate_ns;
            prop_assert!(free.potential_ns <= rotate_ns, "{} of {}", free.potential_ns, rotate_ns);
            let moved = with.read_bytes + with.write_bytes;
            prop_assert_eq!(planner.foreground_blocks * 512, moved);
        }
    }

    #[test]
    fn foreground_untouched_by_tasks(setting in any_setting()) {
        let (alone, expected) = setting.run(None);
        for rule in [Rule::Greedy, Rule::Paths] {
            let mut tasks = any_tasks(&setting, rule);
            let (with, completions) = setting.run(Some(&mut tasks));
            prop_assert_eq!(&completions, &expected);
            prop_assert_eq!(with.head_time, alone.head_time);
            let free = with.free.unwrap().time;
            prop_assert!(adds_up(&free), "{:?}", free);
        }
    }

    #[test]
    fn late_head_delay_is_counted(setting in any_setting()) {
        let setting = Setting { electronics: None, requests: 1, outstanding: Some(1), ..setting };
        let prng = &mut Prng::new(setting.seed, "reckless");
        let start = Lbn::new(prng.below(setting.drive.blocks().get()));
        let (alone, expected) = setting.run(None);
        let mut planner = Reckless(FreeRun { start, blocks: 1, op: Op::Read });
        let (with, completions) = setting.run(Some(&mut planner));
        let free = with.free.unwrap().time;
        let delay = completions[0].end - expected[0].end;
        prop_assert_eq!(u128::from(delay.ns()), free.foreground_delay_ns);
        // It waits longer, and all else is as it was.
        prop_assert_eq!(completions[0].rotate, expected[0].rotate + delay);
        prop_assert_eq!(with.head_time.transfer_ns, alone.head_time.transfer_ns);
        prop_assert!(free.gaps_late > 0 || adds_up(&free), "{:?}", free);
    }
}

/// Two surfaces, four cylinders, eight sectors a track that pass in 1 ms each, all tracks in line.
fn in_line(head_switch: SimDuration) -> Setting {
    let zone = ZoneSpec {
        first_cylinder: 0,
        last_cylinder: 3,
        blocks_per_track: 8,
        first_block: Turn::default(),
        reserved_blocks: 0,
        track_skew: Turn::default(),
        cylinder_skew: Turn::default(),
        surface_blocks_per_track: Vec::new(),
        holes: Vec::new(),
        band_skews: Vec::new(),
        spares: 0,
        slips: Vec::new(),
        remaps: Vec::new(),
    };
    let spec = DriveSpec {
        surfaces: 2,
        cylinders: 4,
        rotation_period: SimDuration::from_ms(8),
        mapping: Mapping::Cylinder,
        surface_offsets: Vec::new(),
        sparing: Default::default(),
        head_switch,
        seek: SeekSpec {
            read: CurveSpec::Table { cylinders_ms: vec![(1, 2.0), (2, 2.0)] },
            write: None,
            write_settle: SimDuration::ZERO,
            tolerance: SimDuration::ZERO,
        },
        zero_latency: ByOp::default(),
        overhead: ByOp::default(),
        zones: vec![zone],
        ..random_spec(0)
    };
    Setting {
        drive: Arc::new(Drive::build(&spec).unwrap()),
        electronics: None,
        policy: PolicySpec::Fcfs,
        pattern: PatternSpec {
            size: Bytes::new(512),
            align: Bytes::new(512),
            ..PatternSpec::default()
        },
        outstanding: Some(1),
        gap: SimDuration::ZERO,
        requests: 200,
        seed: 1,
    }
}

/// True if the planner leaves the foreground as it is.
fn untouched(setting: &Setting, planner: &mut dyn Planner) -> bool {
    let expected = setting.run(None).1;
    setting.run(Some(planner)).1 == expected
}

/// The canary: were the comparison blind to a nanosecond, it would not see this planner.
#[test]
fn planner_too_greedy_by_nanosecond_caught() {
    // From one surface to the other just as a sector has passed: in time to the nanosecond for the
    // one after the next, and a nanosecond late for it.
    let just_in_time = in_line(SimDuration::from_ms(1));
    let just_too_late = in_line(SimDuration::from_ns(1_000_001));
    let mut honest = busy(&just_in_time, 0);
    assert!(untouched(&just_in_time, &mut honest));
    assert_eq!(honest.least_spare_ns, 0, "no plan needs the last nanosecond");
    assert!(untouched(&just_in_time, &mut busy(&just_in_time, 1)));
    assert!(untouched(&just_too_late, &mut busy(&just_too_late, 0)));
    assert!(!untouched(&just_too_late, &mut busy(&just_too_late, 1)));
}

/// The real rules use a gap to its last nanosecond, and one more is seen.
#[test]
fn real_planner_overstating_gaps_is_caught() {
    let just_in_time = in_line(SimDuration::from_ms(1));
    let just_too_late = in_line(SimDuration::from_ns(1_000_001));
    for rule in [Rule::Greedy, Rule::Paths] {
        let untouched_by = |longer_ns, setting: &Setting| {
            untouched(setting, &mut Misled::scanning(&setting.drive, rule, longer_ns))
        };
        assert!(untouched_by(0, &just_in_time), "{rule:?}");
        assert!(untouched_by(1, &just_in_time), "{rule:?}");
        assert!(untouched_by(0, &just_too_late), "{rule:?}");
        assert!(!untouched_by(1, &just_too_late), "{rule:?}");
    }
}

#[test]
fn tasks_use_most_random_gaps() {
    for rule in [Rule::Greedy, Rule::Paths] {
        let settings = (0..40).filter_map(Setting::random);
        let free = settings
            .map(|setting| setting.run(Some(&mut any_tasks(&setting, rule))).0.free.unwrap().time);
        let sums = free.fold((0, 0, 0), |(gaps, used, written), time| {
            (gaps + time.gaps, used + time.gaps_used, written + time.write_bytes)
        });
        assert!(sums.0 > 1000 && sums.1 * 2 > sums.0 && sums.2 > 0, "{rule:?}: {sums:?}");
    }
}

#[test]
fn random_gaps_mostly_used() {
    let sum = |free: fn(&FreeTime) -> u64| -> u64 {
        let settings = (0..60).filter_map(Setting::random);
        let time =
            |setting: Setting| setting.run(Some(&mut busy(&setting, 0))).0.free.unwrap().time;
        settings.map(time).map(|time| free(&time)).sum()
    };
    let (gaps, used) = (sum(|free| free.gaps), sum(|free| free.gaps_used));
    assert!(gaps > 1000 && used * 2 > gaps, "{used} of {gaps}");
}

#[test]
fn arms_have_own_planners_and_bandwidth() {
    for (name, electronics, arms) in
        [("atlas10k", false, 1), ("atlas10k", true, 1), ("exos-2x18-18tb", true, 2)]
    {
        let text = format!(
            // Else the drive has a use for the latency of its reads, and caches its writes.
            "drive = \"{name}\"\nelectronics = {electronics}\nkeep_free_blocks_before = false\n\
             scheduler.policy = \"sptf\"\n\
             [workload]\nkind = \"closed\"\noutstanding = 10\nrequests = 1500\n"
        );
        let config = SimConfig::parse(&text, "test", &[]).unwrap();
        let experiment = Experiment::new(config).unwrap();
        let alone = experiment.run().unwrap();
        let mut busy: Vec<Busy> = (0..arms).map(|arm| Busy::new(&experiment.drive, arm)).collect();
        let planners: Planners<'_> = busy.iter_mut().map(|busy| busy as &mut dyn Planner).collect();
        let with = experiment.new_run().with_planners(planners).simulate().unwrap();
        assert_eq!(with.result_hash, alone.result_hash);
        let free = with.free.unwrap();
        assert!(adds_up(&free.time) && busy.iter().all(|busy| busy.blocks > 0), "{name}");
        let bytes = free.time.read_bytes + free.time.write_bytes;
        assert_eq!(bytes, busy.iter().map(|busy| busy.blocks * 512).sum::<u64>());
        let seconds = with.elapsed_ns as f64 / 1e9;
        assert!((free.bytes_per_second * seconds / bytes as f64 - 1.0).abs() < 1e-9);
        let media = experiment.drive.mean_media_rate_bytes_per_second();
        let potential = free.time.potential_ns as f64 / with.elapsed_ns as f64 * media;
        assert!((free.potential_bytes_per_second / potential - 1.0).abs() < 1e-6);
        assert!(free.bytes_per_second < free.potential_bytes_per_second);
    }
}
