//! Runs of experiments with files on the disks of an array.

use std::sync::Arc;

use freewheel_array::config::{CopiesConfig, FilesWorkload};
use freewheel_array::files::{
    ArmMover, Choice, Clients, CooledRequests, GapMover, IdleGaps, Layouts, TracedRequests, mover,
};
use freewheel_freeblock::Planner;
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::stats::Distribution;
use freewheel_model::zoned::spec::ZonedKind;

use super::{Experiment, Run};
use crate::background::IdleConfig;
use crate::completion::Completion;
use crate::config::{ConfigError, Layout, SimConfig, Workload};
use crate::engine::VolumeLayout;
use crate::result::Tally;
use crate::source::Source;

/// Err for what does not go with files.
pub(super) fn check_files(config: &SimConfig, spec: &DriveSpec) -> Result<(), ConfigError> {
    let Workload::Files(workload) = &config.workload else { return Ok(()) };
    let refuses = spec.zoned.is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged);
    let writes = config.cache.as_ref().is_some_and(|cache| cache.write_buffer.is_some());
    let is_cooled = workload.cooling.is_some();
    let in_gaps = workload.cooling.is_some_and(|cooling| cooling.copies == CopiesConfig::Gaps);
    let is_outside = config.host.is_some();
    let not_with_it = [
        (
            config.array.layout == Layout::Independent,
            "`array.layout` is \"independent\": files lie on all drives, so leave it out",
        ),
        (
            is_outside && !workload.more_disks.is_empty(),
            "`host` needs disks that are alike: leave `more_disks` out",
        ),
        (
            is_outside && workload.cooling.is_some_and(|cooling| cooling.copies_first),
            "`host` and `cooling.copies_first` exclude each other, as the scheduler outside has an order of its own: leave one of them out",
        ),
        (
            in_gaps && config.host.is_some_and(|host| host.server),
            "`host.server` and `cooling.copies = \"gaps\"` exclude each other: a server has tasks of its own; leave one of them out",
        ),
        (
            is_outside && workload.cooling.is_some_and(|cooling| cooling.idle_after.is_some()),
            "`cooling.idle_after`: a scheduler outside the drive does not use idle time yet; leave it out",
        ),
        (
            config.freeblock.is_some() && !workload.more_disks.is_empty(),
            "`freeblock` needs disks that are alike: leave `more_disks` out",
        ),
        (refuses, "a host-managed drive does not take the writes of files: take another drive"),
        (
            in_gaps && !is_outside && config.has_electronics(spec),
            "`cooling.copies = \"gaps\"` needs `electronics = false`, or `host`: inside the drive its own buffer holds back writes that a copy has to see",
        ),
        (
            in_gaps && config.freeblock.is_some(),
            "`freeblock` and `cooling.copies = \"gaps\"` want the same gaps: leave one of them out",
        ),
        (
            in_gaps && config.cache.is_some(),
            "`cache` and `cooling.copies = \"gaps\"` exclude each other, as a cache holds back what a copy has to see: leave one of them out",
        ),
        (
            in_gaps && config.scheduler.is_linux(),
            "a scheduler of Linux holds back what a copy in gaps has to see: take another `scheduler.policy`, or leave `cooling.copies` out",
        ),
        (
            writes && workload.restriping.is_some(),
            "`restriping` and `cache.write_buffer` exclude each other, as a buffer holds back what is copied: leave one of them out",
        ),
        (
            writes && is_cooled,
            "`cooling` and `cache.write_buffer` exclude each other, as a buffer holds back what a move copies: leave one of them out",
        ),
    ];
    match not_with_it.iter().find(|(is_there, _)| *is_there) {
        Some((_, why)) => Err(ConfigError::Workload { message: format!("`kind` is files: {why}") }),
        None => Ok(()),
    }
}

impl Experiment {
    /// Drives as the planners of gaps see them.
    fn planned_on(&self, drives: &[Arc<Drive>]) -> Vec<Arc<Drive>> {
        match &self.config.host {
            None => drives.to_vec(),
            Some(host) => {
                let seen = |drive: &Arc<Drive>| Arc::new(host.scheduler.planners_drive(drive));
                drives.iter().map(seen).collect()
            }
        }
    }
}

impl Run<'_> {
    /// Runs disks with files on them, and what moves the files.
    pub(super) fn files(mut self, workload: &FilesWorkload) -> Result<Tally, ConfigError> {
        let experiment = self.experiment;
        let setup = experiment.files.as_ref().expect("made ready when it was built");
        let map = setup.place().map_err(|message| ConfigError::Workload { message })?.map;
        let layouts;
        let mut clients = match &workload.log {
            Some(_) => Clients::Traced(TracedRequests::new(&map, &setup.traced, 1.0)),
            None => Clients::Poisson(Box::new(setup.poisson(workload, &map))),
        };
        let warm_up = (experiment.requests() as f64 * experiment.config.warm_up) as u64;
        let mut by_class = vec![Distribution::default(); setup.classes.len()];
        let mut observer = self.observer.take();
        let mut observe = |done: &Completion| {
            if done.request.tag >= warm_up {
                let class = setup.class_of[map.file_at(done.request.start) as usize];
                by_class[class as usize].record(done.response());
            }
            if let Some(observer) = &mut observer {
                observer(done);
            }
        };
        let run = self.within().with_observer(&mut observe);
        let layout = VolumeLayout::Files(&map);
        let mut work = None;
        let mut tally = match (&workload.cooling, &workload.restriping) {
            (None, Some(config)) => {
                layouts = Layouts::new(&map);
                let choice = Choice::Stripes(Box::new(setup.restriper(config)));
                let spec = mover(config.piece, config.rate);
                let mut restriped = CooledRequests::new(clients, &layouts, choice, spec);
                let tally = run.volume(&mut restriped as &mut dyn Source, layout)?;
                let (ended, restriping) = restriped.end();
                (clients, work) = (ended, Some(restriping));
                tally
            }
            (None, None) => run.volume(&mut clients as &mut dyn Source, layout)?,
            (Some(cooling), _) => {
                let in_gaps = cooling.copies == CopiesConfig::Gaps;
                let mover =
                    in_gaps.then(|| GapMover::shared(&experiment.planned_on(&setup.drives())));
                let mut gaps = match (&mover, &experiment.config.host) {
                    (None, _) => Vec::new(),
                    (Some(mover), None) => {
                        let idle = cooling.idle_after.map(IdleConfig::of);
                        let idle = idle.map(|idle| IdleGaps {
                            timer: idle.timer(),
                            run_blocks: idle.run_blocks(),
                        });
                        ArmMover::all(mover, idle)
                    }
                    (Some(mover), Some(_)) => ArmMover::all_outside(mover),
                };
                let mut cooled = setup.cooled(clients, &map, cooling, mover);
                let mut run = run.within();
                run.planners.extend(gaps.iter_mut().map(|arm| arm as &mut dyn Planner));
                let tally = run.volume(&mut cooled as &mut dyn Source, layout)?;
                let (ended, cooling) = cooled.end();
                (clients, work) = (ended, Some(cooling));
                tally
            }
        };
        let is_restriped = workload.restriping.is_some();
        tally.files(setup.result(&map, &by_class, &clients, work, is_restriped));
        Ok(tally)
    }
}
