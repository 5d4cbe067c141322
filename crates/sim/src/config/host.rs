//! Scheduler in front of a drive, in an experiment.

use freewheel_host::{Conservatism, PredictionSpec, PredictiveScheduler, SameTrack};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::WriteCache;
use freewheel_model::sched::PolicySpec;
use freewheel_units::SimDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, is_default};
use crate::background::{CONSERVATISM_MAX, FreeblockConfig};
use crate::black_box::{BadBlocks, Behaviour, EmulatedDrive};
use crate::library::DriveError;

/// A scheduler outside the drive. It has the drive's file; of the drive itself it sees commands and the
/// times of their ends (fast02). Each actuator has a separate scheduler and appears as a separate
/// device, as on drives with a logical unit for each.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// The scheduler.
    pub scheduler: PredictionSpec,
    /// Behaviour of the drive beyond its file. By default the write cache is off, as the end of a
    /// cached write says little about the media. By default the drive has room for every command of the
    /// scheduler.
    pub behaviour: Behaviour,
    /// Runs the whole scheduler of `freewheel serve`, with one client. It holds a request back while it
    /// overlaps with an earlier one, has one flush at the drive at a time, and sends requests of more than
    /// 64 KiB in pieces of up to 1 MiB: their stage times are those of the last piece. Tasks are scans,
    /// scrubs and backups. How much of the gaps each used is not counted.
    #[serde(skip_serializing_if = "is_default")]
    pub server: bool,
}

/// Most commands at the drive: beyond them a scheduler would not decide anything.
const QUEUE_DEPTH_MAX: u32 = 64;

impl HostConfig {
    /// Err for values that cannot be, and for what such a scheduler does not do: key, value, and what
    /// is allowed.
    pub(crate) fn check(&self, freeblock: Option<&FreeblockConfig>) -> Result<(), String> {
        let PredictionSpec { queue_depth, conservatism, budget, .. } = self.scheduler;
        if !(1..=QUEUE_DEPTH_MAX).contains(&queue_depth) {
            return Err(format!(
                "`scheduler.queue_depth` is {queue_depth}: 1 to {QUEUE_DEPTH_MAX} commands are allowed"
            ));
        }
        if let Conservatism::Constant(margin) = conservatism
            && margin > CONSERVATISM_MAX
        {
            return Err(format!(
                "`scheduler.conservatism` is {margin}: at most {CONSERVATISM_MAX} are allowed"
            ));
        }
        self.scheduler
            .check_budget()
            .map_err(|rule| format!("`scheduler.budget` is {budget}: {rule}"))?;
        self.scheduler
            .check_off_slots()
            .map_err(|(key, value, rule)| format!("`scheduler.{key}` is {value}: {rule}"))?;
        self.behaviour.check().map_err(|error| {
            format!("`behaviour.{}` is {}: {}", error.key, error.value, error.rule)
        })?;
        let depth = self.behaviour.queue_depth.unwrap_or(queue_depth);
        if depth < queue_depth {
            return Err(format!(
                "`behaviour.queue_depth` is {depth}: the scheduler sends {queue_depth} commands at once (`scheduler.queue_depth`)"
            ));
        }
        if freeblock.is_some_and(|freeblock| {
            freeblock.conservatism != SimDuration::ZERO
                || freeblock.same_track != SameTrack::Distinct
        }) {
            return Err(
                "`freeblock.conservatism` and `freeblock.same_track` are of a planner inside \
                        the drive: with `host` give `scheduler.conservatism` and \
                        `scheduler.same_track`"
                    .into(),
            );
        }
        if let Some(freeblock) = freeblock.filter(|_| self.server) {
            freeblock.check_served()?;
        }
        if freeblock.is_some_and(|freeblock| freeblock.idle.is_some()) {
            return Err("`freeblock.idle`: a scheduler outside the drive does not use idle time \
                        yet; leave it out"
                .into());
        }
        Ok(())
    }

    /// The scheduler of a drive that its host takes to be `drive`, with the electronics' overheads.
    pub fn scheduler(
        &self,
        spec: &DriveSpec,
        drive: &Drive,
        policy: PolicySpec,
    ) -> Result<PredictiveScheduler, ConfigError> {
        let electronics = spec.electronics.with_processing(spec.overhead);
        let drive = drive.with_overhead(electronics.command_overhead());
        let scheduler = PredictiveScheduler::new(
            &drive,
            electronics.read_write_switch,
            policy,
            self.scheduler,
        )?;
        Ok(scheduler.with_media_sectors(electronics.sector.sectors()))
    }

    /// The drive itself, of the same file.
    pub(crate) fn emulated(
        &self,
        spec: &DriveSpec,
        name: &str,
        seed: u64,
    ) -> Result<EmulatedDrive, ConfigError> {
        let behaviour = Behaviour {
            queue_depth: self.behaviour.queue_depth.or(Some(self.scheduler.queue_depth)),
            write_cache: self.behaviour.write_cache.or(Some(WriteCache::Off)),
            ..self.behaviour
        };
        let bad = BadBlocks::default();
        Ok(EmulatedDrive::new(spec, name, &behaviour, bad, seed).map_err(DriveError::from)?)
    }
}
