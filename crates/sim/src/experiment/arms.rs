//! Layers of a run behind the engine's queue: the drives, and what stands before each of them.

use std::sync::Arc;

use freewheel_host::{PredictiveScheduler, SameTrack};
use freewheel_model::cache::{StorageCache, StorageCacheSpec};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_model::electronics::DriveUnit;
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_model::sched::linux::BlockLayer;
use freewheel_model::sched::{MarkedFirst, ParsePolicyError, Policy, PolicySpec};

use super::{Experiment, Planners};
use crate::arm_executor::ArmExecutor;
use crate::black_box::EmulatedDrive;
use crate::cached::CachedDevice;
use crate::cached_arm::behind_cache;
use crate::config::{ConfigError, HostConfig, SimConfig, Workload, sector};
use crate::device::{Device, Mechanics, WholeDrive};
use crate::engine::Arm;
use crate::gap_destages::GapDestages;
use crate::linux_device::LinuxDevice;
use crate::seek_errors::SeekErrors;

/// A drive, its mechanics alone, and as it looks from outside.
struct Sides {
    drive: Arc<Drive>,
    inside: Arc<Drive>,
    outside: Arc<Drive>,
}

impl Experiment {
    /// Arms of the volume, or disks that files lie on.
    pub(super) fn arm_count(&self) -> u32 {
        self.files.as_ref().map_or(self.striping.arms(), |files| files.disks())
    }

    /// The drive of an arm.
    pub(super) fn drive_of(&self, arm: u32) -> &Arc<Drive> {
        if let Some(files) = &self.files {
            return files.drive(arm);
        }
        let drive = (arm / self.drive.actuators()) as usize;
        drive.checked_sub(1).and_then(|other| self.others.get(other)).unwrap_or(&self.drive)
    }

    /// The drive file of an arm.
    fn spec_of(&self, arm: u32) -> &DriveSpec {
        self.files.as_ref().map_or(&self.spec, |files| files.spec(arm))
    }

    /// Drives without their electronics.
    pub(super) fn bare_mechanics<'p>(
        &self,
        planners: Planners<'p>,
    ) -> Result<Vec<Arm<Mechanics<'p>>>, ConfigError> {
        let arm = |(number, executor)| {
            let drive = Arc::clone(self.drive_of(number));
            let device = Mechanics::new(&drive, executor);
            Ok(Arm { device, policy: self.policy(&drive)?, drive })
        };
        self.executors(planners).map(arm).collect()
    }

    /// Drives with their electronics.
    pub(super) fn whole_drives<'p>(
        &self,
        planners: Planners<'p>,
    ) -> Result<Vec<Arm<WholeDrive<'p>>>, ConfigError> {
        let mut sides = Vec::new();
        let arm = |(number, executor)| {
            let (inside, outside) = self.sides(&mut sides, number);
            let spec = self.spec_of(number);
            let electronics = spec.electronics.with_processing(spec.overhead);
            let device = WholeDrive::new(DriveUnit::new(&inside, &electronics)?, executor);
            Ok(Arm { device, policy: self.policy(&outside)?, drive: outside })
        };
        self.executors(planners).map(arm).collect()
    }

    /// Executors of all arms, with their numbers, and with a planner each where there are some.
    fn executors<'p>(
        &self,
        planners: Planners<'p>,
    ) -> impl Iterator<Item = (u32, ArmExecutor<'p>)> {
        let freeblock = self.config.freeblock.as_ref();
        let same_track = freeblock.map_or(SameTrack::Distinct, |freeblock| freeblock.same_track);
        let mut planners = planners.into_iter();
        (0..self.arm_count()).map(move |arm| {
            let errors = SeekErrors::new(self.drive_of(arm), self.config.seed, arm);
            let executor = ArmExecutor::new(errors);
            let executor = match planners.next() {
                Some(planner) => executor.with_planner(planner).with_same_track(same_track),
                None => executor,
            };
            (arm, executor)
        })
    }

    /// The mechanics of an arm's drive, and the drive as it looks from outside. Arms with one drive share
    /// both: those of `built`.
    fn sides(&self, built: &mut Vec<Sides>, arm: u32) -> (Arc<Drive>, Arc<Drive>) {
        let drive = self.drive_of(arm);
        let known = built.iter().find(|sides| Arc::ptr_eq(&sides.drive, drive));
        if let Some(Sides { inside, outside, .. }) = known {
            return (Arc::clone(inside), Arc::clone(outside));
        }
        let spec = self.spec_of(arm);
        let electronics = spec.electronics.with_processing(spec.overhead);
        let outside = Arc::new(drive.with_overhead(electronics.command_overhead()));
        let inside = Arc::new(drive.with_overhead(ByOp::default()));
        let drive = Arc::clone(drive);
        built.push(Sides { drive, inside: Arc::clone(&inside), outside: Arc::clone(&outside) });
        (inside, outside)
    }

    /// Whole drives as black boxes, each with a host's scheduler, which `device` puts before it.
    pub(super) fn arms_behind_host<D>(
        &self,
        host: &HostConfig,
        mut device: impl FnMut(PredictiveScheduler, EmulatedDrive) -> Result<D, ConfigError>,
    ) -> Result<Vec<Arm<D>>, ConfigError> {
        let SimConfig { scheduler: policy, seed, drive: name, .. } = &self.config;
        let arm = |number| {
            let drive = self.drive_of(number);
            // Spindles of several drives turn at rates of their own.
            let rotation_period = drive.rotation().period();
            let mut spec = DriveSpec { rotation_period, ..self.spec_of(number).clone() };
            if !self.has_electronics() {
                spec.electronics = ElectronicsSpec::default();
            }
            // Each drive has a separate seed for its behaviour.
            let seed = seed + u64::from(number);
            let scheduler = host.scheduler(&spec, drive, *policy)?.with_seed(seed);
            let device = device(scheduler, host.emulated(&spec, name, seed)?)?;
            Ok(Arm { drive: Arc::clone(drive), policy: PolicySpec::Fcfs.build()?, device })
        };
        (0..self.arm_count()).map(arm).collect()
    }

    /// Arms behind Linux's block layer.
    pub(super) fn behind_linux<D: Device>(
        &self,
        arms: Vec<Arm<D>>,
    ) -> Result<Vec<Arm<LinuxDevice<D>>>, ConfigError> {
        let behind = |(number, Arm { drive, policy, device })| {
            let depth = match self.has_electronics() {
                true => self.spec_of(number).electronics.queue.unwrap_or_default().depth,
                false => 1,
            };
            let layer = BlockLayer::new(&self.config.scheduler, depth)?.expect("it is of Linux");
            let device = LinuxDevice::new(device, &drive, layer);
            Ok(Arm { drive, policy, device })
        };
        (0..).zip(arms).map(behind).collect()
    }

    /// Arms behind the storage system's cache.
    pub(super) fn behind_cache<D: Device>(
        &self,
        arms: Vec<Arm<D>>,
        spec: &StorageCacheSpec,
    ) -> Result<Vec<Arm<CachedDevice<D>>>, ConfigError> {
        let sectors = sector(&self.config, &self.spec).sectors();
        let behind = |arm: Arm<D>| {
            let destages = self.policy(&arm.drive)?;
            let cache = StorageCache::new(*spec, arm.drive.blocks());
            let cache = match &self.own.cache {
                Some((_, make)) => cache.with_policy(|capacity| make(capacity)),
                None => cache,
            };
            let cache = match self.is_reordered_behind_cache() {
                true => cache.reading_ahead_in_fetches(),
                false => cache,
            };
            behind_cache(arm, cache, destages, sectors)
        };
        arms.into_iter().map(behind).collect()
    }

    /// True if requests below the cache are reordered: by a drive with a queue, or a scheduler before it.
    fn is_reordered_behind_cache(&self) -> bool {
        let queue = self.spec.electronics.queue.filter(|_| self.has_electronics());
        self.config.host.is_some()
            || self.config.scheduler.is_linux()
            || queue.is_some_and(|queue| queue.depth > 1)
    }

    /// Destages in gaps of every arm; empty without any.
    pub(super) fn gap_destages(&self) -> Result<Vec<GapDestages>, ConfigError> {
        let block = self.config.cache.as_ref().and_then(StorageCacheSpec::gaps_block);
        let Some(block) = block else { return Ok(Vec::new()) };
        let gaps = |arm| {
            GapDestages::new(self.drive_of(arm), block)
                .map_err(|error| ConfigError::Cache { message: error.to_string() })
        };
        (0..self.arm_count()).map(gaps).collect()
    }

    /// The policy of the queue of an arm with this drive: the caller's, if there is one. A scheduler of Linux has a
    /// queue behind it, and this one passes requests on.
    fn policy(&self, drive: &Arc<Drive>) -> Result<Box<dyn Policy>, ParsePolicyError> {
        let scheduler = self.config.scheduler;
        let policy = match &self.own.scheduler {
            Some((_, make)) => make(drive),
            None if scheduler.is_linux() => PolicySpec::Fcfs.build()?,
            None => scheduler.build()?,
        };
        let cooling = match &self.config.workload {
            Workload::Files(workload) => workload.cooling,
            _ => None,
        };
        Ok(match cooling.is_some_and(|cooling| cooling.copies_first) {
            true => Box::new(MarkedFirst::new(policy)),
            false => policy,
        })
    }
}
