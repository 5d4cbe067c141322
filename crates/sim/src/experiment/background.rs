//! Background work of a run's arms.

use std::sync::Arc;

use freewheel_model::drive::SeekMargins;
use freewheel_units::SimDuration;

use super::Experiment;
use super::prepared::PreparedFor;
use crate::background::{Background, PreparedTasks, Unfinished, promotion_anchor};
use crate::config::ConfigError;

impl Experiment {
    /// Blocks that the background must read before the workload may end.
    pub(super) fn unfinished(&self) -> Option<Unfinished> {
        let config = self.config.freeblock.as_ref()?;
        let blocks = config.blocks_of_rounds(self.drive.blocks())?;
        Some(Unfinished::new(blocks * u64::from(self.arm_count())))
    }

    /// Background work of every arm; empty without any, and where a server has the tasks.
    pub(super) fn backgrounds(
        &self,
        unfinished: Option<&Unfinished>,
    ) -> Result<Vec<Background>, ConfigError> {
        let Some(config) = &self.config.freeblock else { return Ok(Vec::new()) };
        if self.config.host.is_some_and(|host| host.server) {
            // They are the server's.
            return Ok(Vec::new());
        }
        let planned_on = |arm| {
            let drive = self.drive_of(arm);
            match &self.config.host {
                Some(host) => Arc::new(host.scheduler.planners_drive(drive)),
                None if config.conservatism != SimDuration::ZERO => {
                    let margins = SeekMargins::constant(config.conservatism);
                    Arc::new(drive.with_seek_margins(margins))
                }
                None => Arc::clone(drive),
            }
        };
        let anchor = promotion_anchor(self.config.scheduler);
        let background = |arm| {
            let (drive, freeblock) = (Arc::clone(self.drive_of(arm)), config.clone());
            let of = PreparedFor { drive, freeblock, anchor, host: self.config.host };
            let make = |config: &_| PreparedTasks::new(&planned_on(arm), config, anchor);
            // Further drives of an array each need an index of their own, which is not kept.
            let tasks = match Arc::ptr_eq(&of.drive, &self.drive) {
                true => self.prepared.tasks(of, make),
                false => make(config),
            };
            let tasks =
                tasks.map_err(|error| ConfigError::Freeblock { message: error.to_string() })?;
            Ok(Background::new(tasks, config.idle.as_ref(), unfinished.cloned()))
        };
        (0..self.arm_count()).map(background).collect()
    }
}
