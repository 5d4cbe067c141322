//! Random drives with electronics and workloads, and runs of them with a planner of free work.

use std::sync::Arc;

use freewheel_freeblock::Planner;
use freewheel_model::drive::Drive;
use freewheel_model::electronics::DriveUnit;
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_model::striping::Striping;
use freewheel_sim::source::{
    Closed, Open, Pattern, PatternSpec, SizeDistribution, Source, ThinkTime,
};
use freewheel_sim::{
    Arm, ArmExecutor, Completion, Device, Mechanics, RunResult, SeekErrors, WholeDrive, run,
};
use freewheel_units::{Bytes, Prng, SimDuration};
use proptest::prelude::*;

use freewheel_testkit::drives::{random_spec, with_remaps};
use freewheel_testkit::electronics::{POLICIES, any_electronics};

/// A drive, its electronics if it has some, and a workload.
#[derive(Debug, Clone)]
pub struct Setting {
    pub drive: Arc<Drive>,
    pub electronics: Option<ElectronicsSpec>,
    pub policy: PolicySpec,
    pub pattern: PatternSpec,
    /// Requests outstanding; none for an open workload.
    pub outstanding: Option<u32>,
    pub gap: SimDuration,
    pub requests: u64,
    pub seed: u64,
}

impl Setting {
    pub fn random(seed: u64) -> Option<Self> {
        let prng = &mut Prng::new(seed, "settings");
        let mut spec = with_remaps(random_spec(seed), (seed % 3) as usize, seed);
        spec.seek.tolerance = SimDuration::from_us([0, 90][prng.below(2) as usize]);
        let drive = Arc::new(Drive::build(&spec).ok()?);
        let pattern = PatternSpec {
            read_share: [0.0, 0.5, 0.8, 1.0][prng.below(4) as usize],
            fua_share: [0.0, 0.4][(seed % 2) as usize],
            size: Bytes::new(512 * (1 + prng.below(12))),
            size_distribution: SizeDistribution::Exponential,
            align: Bytes::new(512),
            local_share: [0.0, 0.7][prng.below(2) as usize],
            local_sd: Bytes::new(512 * (30 + prng.below(60))),
        };
        // A local request is drawn anew until it lies on the drive, which a large one seldom does
        // when it is small.
        (drive.blocks().get() > 300).then_some(())?;
        Some(Self {
            drive,
            electronics: prng.chance(0.6).then(|| any_electronics(prng)),
            policy: POLICIES[prng.below(POLICIES.len() as u64) as usize],
            pattern,
            outstanding: prng.chance(0.6).then(|| 1 + prng.below(9) as u32),
            gap: SimDuration::from_us(1000 + prng.below(15_000)),
            requests: 80,
            seed,
        })
    }

    pub fn run(&self, planner: Option<&mut dyn Planner>) -> (RunResult, Vec<Completion>) {
        let pattern = Pattern::new(self.pattern, self.drive.blocks(), self.seed).unwrap();
        let (gap, requests, seed) = (self.gap, self.requests, self.seed);
        match self.outstanding {
            None => self.run_source(Open::new(pattern, gap, requests, seed), planner),
            Some(outstanding) => {
                let think_time = ThinkTime::Exponential(SimDuration::from_ns(gap.ns() / 4));
                self.run_source(
                    Closed::new(pattern, outstanding, think_time, requests, seed),
                    planner,
                )
            }
        }
    }

    fn run_source<S: Source>(
        &self,
        source: S,
        planner: Option<&mut dyn Planner>,
    ) -> (RunResult, Vec<Completion>) {
        let executor = ArmExecutor::new(SeekErrors::new(&self.drive, self.seed, 0));
        let executor = match planner {
            Some(planner) => executor.with_planner(planner),
            None => executor,
        };
        match &self.electronics {
            None => self.run_device(source, Mechanics::new(&self.drive, executor)),
            Some(spec) => {
                let unit = DriveUnit::new(&self.drive, spec).unwrap();
                self.run_device(source, WholeDrive::new(unit, executor))
            }
        }
    }

    fn run_device<S: Source, D: Device>(
        &self,
        mut source: S,
        device: D,
    ) -> (RunResult, Vec<Completion>) {
        let mut done = Vec::new();
        let policy = self.policy.build().unwrap();
        let arm = Arm { drive: Arc::clone(&self.drive), policy, device };
        let striping = Striping::single(self.drive.blocks());
        let result = run(&striping, None, &mut [arm], &mut source, &mut |c| done.push(*c)).unwrap();
        (result, done)
    }
}

pub fn any_setting() -> impl Strategy<Value = Setting> {
    any::<u64>().prop_filter_map("spec does not build, or is too small", Setting::random)
}
