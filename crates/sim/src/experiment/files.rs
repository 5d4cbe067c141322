//! Runs of experiments with files on the disks of an array.

use std::sync::Arc;

use freewheel_freeblock::Planner;
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::stats::Distribution;
use freewheel_model::zoned::spec::ZonedKind;
use freewheel_units::{BLOCK_BYTES, Blocks};

use super::{Experiment, Run};
use crate::background::IdleConfig;
use crate::completion::Completion;
use crate::config::{
    ConfigError, CoolingConfig, CopiesConfig, FilesWorkload, Layout, SimConfig, Workload,
};
use crate::engine::VolumeLayout;
use crate::files::{
    ArmMover, Choice, CooledRequests, CoolingWork, DriftWork, FileMap, FileRequests, FilesSetup,
    GapMover, Layouts, NewFilesWork, SharedMover, TracedRequests, mover,
};
use crate::result::{
    ClassResult, CoolingResult, DriftResult, FilesRun, NewFilesResult, RestripingResult, Tally,
    refusal_name,
};
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
        let map = setup.place()?.map;
        let SimConfig { seed, warm_up, .. } = experiment.config;
        let mut traced = TracedRequests::new(&map, &setup.traced, 1.0);
        let mut poisson = workload.log.is_none().then(|| poisson(workload, setup, &map, seed));
        let clients: &mut dyn Source = match &mut poisson {
            Some(poisson) => poisson,
            None => &mut traced,
        };
        let warm_up = (experiment.requests() as f64 * warm_up) as u64;
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
        let (mut tally, work) = match (&workload.cooling, &workload.restriping) {
            (None, Some(config)) => {
                let layouts = Layouts::new(&map);
                let choice = Choice::Stripes(Box::new(setup.restriper(config)));
                let spec = mover(config.piece, config.rate);
                let mut restriped = CooledRequests::new(clients, &layouts, choice, spec);
                let source: &mut dyn Source = &mut restriped;
                let tally = run.volume(source, layout)?;
                (tally, Some(restriped.work()))
            }
            (None, None) => (run.volume(clients, layout)?, None),
            (Some(cooling), _) => {
                let in_gaps = cooling.copies == CopiesConfig::Gaps;
                let mover =
                    in_gaps.then(|| GapMover::shared(&experiment.planned_on(&setup.drives())));
                let mut gaps = match (&mover, &experiment.config.host) {
                    (None, _) => Vec::new(),
                    (Some(mover), None) => {
                        ArmMover::all(mover, cooling.idle_after.map(IdleConfig::of))
                    }
                    (Some(mover), Some(_)) => ArmMover::all_outside(mover),
                };
                let mut cooled = cooled(clients, &map, setup, cooling, mover);
                let source: &mut dyn Source = &mut cooled;
                let mut run = run.within();
                run.planners.extend(gaps.iter_mut().map(|arm| arm as &mut dyn Planner));
                let tally = run.volume(source, layout)?;
                (tally, Some(cooled.work()))
            }
        };
        let drift = poisson.as_ref().and_then(FileRequests::drifted);
        let created = poisson.as_ref().and_then(FileRequests::created);
        let is_restriped = workload.restriping.is_some();
        tally.files(files_run(setup, &map, &by_class, (work, drift, created), is_restriped));
        Ok(tally)
    }
}

/// Poisson arrivals, with drift if there is some.
fn poisson<'a>(
    workload: &'a FilesWorkload,
    setup: &'a FilesSetup,
    map: &'a FileMap,
    seed: u64,
) -> FileRequests<'a> {
    let align = Blocks::new(workload.align.get() / BLOCK_BYTES);
    let all = FileRequests::new(map, setup.first_loads(), workload.requests, seed).aligned(align);
    let all = all.changing(&workload.rates);
    let all = match &workload.drift {
        Some(drift) => all.drifting(drift, setup.first_classes(), seed),
        None => all,
    };
    match setup.new_files(map) {
        Some(new_files) => all.creating(new_files, setup.created_loads()),
        None => all,
    }
}

fn cooled<'a>(
    clients: &'a mut (dyn Source + 'a),
    map: &'a FileMap,
    setup: &FilesSetup,
    config: &CoolingConfig,
    in_gaps: Option<SharedMover>,
) -> CooledRequests<'a, &'a mut (dyn Source + 'a)> {
    let cooling = setup.cooling(config);
    let rate: f64 = setup.first_loads().iter().map(|load| load.rate).sum();
    let reads: f64 = setup.first_loads().iter().map(|load| load.rate * load.reads).sum();
    match in_gaps {
        None => {
            let choice = Choice::daemon(cooling, &setup.drives(), map, reads / rate);
            CooledRequests::new(clients, map, choice, cooling.mover)
        }
        Some(mover) => {
            // A copy in gaps costs clients no time, so the rule needs no loads to weigh it.
            let choice = Choice::Daemon(Box::new(cooling), None);
            CooledRequests::new(clients, map, choice, cooling.mover).in_gaps(mover)
        }
    }
}

fn files_run(
    setup: &FilesSetup,
    map: &FileMap,
    by_class: &[Distribution],
    (work, drift, created): (Option<CoolingWork>, Option<DriftWork>, Option<NewFilesWork>),
    is_restriped: bool,
) -> FilesRun {
    let (sizes, stripes) = (setup.class_sizes(), setup.class_stripes());
    let class = |number: usize| ClassResult {
        name: setup.classes[number].clone(),
        files: sizes[number].0,
        bytes: sizes[number].1,
        stripes: stripes[number],
        response: by_class[number].summary(),
    };
    let placement = map.placement().borrow();
    let filled = |disk: u32| {
        let capacity = setup.drive(disk).blocks().get() as f64;
        1.0 - placement.space(disk).free().get() as f64 / capacity
    };
    let restriping = |work: &CoolingWork| RestripingResult {
        checks: work.restriping.checks,
        triggered: work.restriping.triggered,
        files: work.moves,
        bytes: work.blocks.bytes(),
        without_room: work.restriping.without_room,
        unfinished: work.unfinished,
        held_writes: work.held,
        copying_ns: work.copying.ns(),
    };
    let cooling = |work: CoolingWork| CoolingResult {
        steps: work.counts.steps,
        moves: work.moves,
        bytes: work.blocks.bytes(),
        refusals: work
            .counts
            .refusals
            .iter()
            .map(|(&refusal, &count)| (refusal_name(refusal).to_owned(), count))
            .collect(),
        held_writes: work.held,
        at_once: work.at_once,
        unfinished: work.unfinished,
        copying_ns: work.copying.ns(),
    };
    FilesRun {
        classes: (0..setup.classes.len()).map(class).collect(),
        drives: (0..setup.disks()).map(|disk| setup.spec(disk).name.clone()).collect(),
        filled: (0..setup.disks()).map(filled).collect(),
        drift: drift.map(|DriftWork { changes, files }| DriftResult { changes, files }),
        new_files: created.map(|work| NewFilesResult {
            created: work.created,
            bytes: work.blocks.bytes(),
            deleted: work.deleted,
            without_room: work.without_room,
        }),
        restriping: work.as_ref().filter(|_| is_restriped).map(restriping),
        cooling: work.filter(|_| !is_restriped).map(cooling),
    }
}
