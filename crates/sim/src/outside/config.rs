//! What an experiment says of a scheduler outside the drive.

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::external::{Conservatism, External, ExternalSpec, SameTrack};
use freewheel_model::onboard::spec::WriteCache;
use freewheel_model::sched::PolicySpec;
use freewheel_units::SimDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::background::FreeblockConfig;
use crate::black_box::{BadBlocks, EmulatedDrive, HabitError, Habits};
use crate::config::ConfigError;

/// A scheduler outside the drive: it has the drive's file, and of the drive itself no more than
/// commands and the times of their ends (fast02). Each actuator has a scheduler of its own and is seen
/// as a device of its own, as drives show them that have a logical unit for each.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExternalConfig {
    /// The scheduler.
    pub scheduler: ExternalSpec,
    /// What the drive does that its file does not say. When it says nothing of the write cache that is
    /// off, for the end of a write that is not on the media says nothing; and the drive takes as many
    /// commands as the scheduler sends.
    pub habits: Habits,
}

/// Most commands at the drive: beyond them a scheduler would not decide anything.
const AT_DRIVE_MAX: u32 = 64;

/// Longest margin: more than a turn leaves nothing of any gap.
pub const CONSERVATISM_MAX: SimDuration = SimDuration::from_ms(100);

impl ExternalConfig {
    /// Err for values that cannot be, and for what such a scheduler does not do: key, value, and what
    /// is allowed.
    pub(crate) fn check(&self, freeblock: Option<&FreeblockConfig>) -> Result<(), String> {
        let ExternalSpec { at_drive, conservatism, budget, .. } = self.scheduler;
        if !(1..=AT_DRIVE_MAX).contains(&at_drive) {
            return Err(format!(
                "`scheduler.at_drive` is {at_drive}: 1 to {AT_DRIVE_MAX} commands are allowed"
            ));
        }
        if let Conservatism::Constant(margin) = conservatism
            && margin > CONSERVATISM_MAX
        {
            return Err(format!(
                "`scheduler.conservatism` is {margin}: at most {CONSERVATISM_MAX} are allowed"
            ));
        }
        let wrong = |rule| format!("`scheduler.budget` is {budget}: {rule}");
        self.scheduler.check_budget().map_err(wrong)?;
        let wrong = |error: HabitError| {
            format!("`habits.{}` is {}: {}", error.key, error.value, error.rule)
        };
        self.habits.check().map_err(wrong)?;
        let depth = self.habits.queue_depth.unwrap_or(at_drive);
        if depth < at_drive {
            return Err(format!(
                "`habits.queue_depth` is {depth}: the scheduler sends {at_drive} commands at once (`scheduler.at_drive`)"
            ));
        }
        let is_limited = |freeblock: &FreeblockConfig| {
            freeblock.conservatism != SimDuration::ZERO
                || freeblock.same_track != SameTrack::Distinct
        };
        if freeblock.is_some_and(is_limited) {
            return Err(
                "`freeblock.conservatism` and `freeblock.same_track` are of a planner inside \
                        the drive: with `external` give `scheduler.conservatism` and \
                        `scheduler.same_track`"
                    .into(),
            );
        }
        if freeblock.is_some_and(|freeblock| freeblock.idle.is_some()) {
            return Err("`freeblock.idle`: a scheduler outside the drive does not use idle time \
                        yet; leave it out"
                .into());
        }
        if let Some(task) = freeblock.and_then(FreeblockConfig::writes) {
            return Err(format!(
                "`freeblock.task` is {}: a scheduler outside the drive reads in gaps, and writes nothing there yet; leave it or `external` out",
                task.word()
            ));
        }
        Ok(())
    }

    /// The scheduler of a drive that its host takes to be `drive`, with the electronics' overheads.
    pub fn scheduler(
        &self,
        spec: &DriveSpec,
        drive: &Drive,
        policy: PolicySpec,
    ) -> Result<External, ConfigError> {
        let onboard = spec.onboard.with_processing(spec.overhead);
        let drive = drive.with_overhead(onboard.command_overhead());
        let scheduler = External::new(&drive, onboard.read_write_switch, policy, self.scheduler)?;
        Ok(scheduler.with_media_sectors(onboard.sector.sectors()))
    }

    /// The drive itself, of the same file.
    pub(crate) fn emulated(
        &self,
        spec: &DriveSpec,
        name: &str,
        seed: u64,
    ) -> Result<EmulatedDrive, ConfigError> {
        let habits = Habits {
            queue_depth: self.habits.queue_depth.or(Some(self.scheduler.at_drive)),
            write_cache: self.habits.write_cache.or(Some(WriteCache::Off)),
            ..self.habits
        };
        Ok(EmulatedDrive::new(spec, name, &habits, BadBlocks::default(), seed)?)
    }
}
