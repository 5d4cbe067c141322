//! A run of an experiment, and the layers that it leads through.
//!
//! ```text
//!   source (workload.rs) -> background -> drives, or drives behind a host -> Linux -> cache -> engine
//! ```
//! The engine knows the stages from the map on. What stands before it and behind it is put together here, and
//! each layer is a function: of the source here and in `workload.rs`, of the arms in `arms.rs`.

use freewheel_freeblock::{Planner, TimedPlanner, Timer};

use super::reporting::{REPORT_EVERY, REPORT_EVERY_DECIDED, Reporting};
use super::{Experiment, Observer, Planners, Progress, fleet};
use crate::background::{FreeblockConfig, STALLED_REQUESTS_MAX, Unfinished, UntilDone};
use crate::completion::Completion;
use crate::config::{ConfigError, HostConfig, Layout, Workload};
use crate::device::Device;
use crate::engine::{self, Arm, VolumeLayout, VolumeZones};
use crate::predicted_device::PredictedDevice;
use crate::result::{RunResult, Tally};
use crate::served_device::ServedDevice;
use crate::source::Source;

/// A run of an experiment that has not begun: what is added to the plan, and who watches.
///
/// ```
/// use freewheel_sim::config::SimConfig;
/// use freewheel_sim::experiment::Experiment;
///
/// let config = SimConfig { drive: "atlas10k".into(), ..SimConfig::default() };
/// let experiment = Experiment::new(config)?;
/// let mut seen = 0;
/// let result = experiment.new_run().with_observer(&mut |_| seen += 1).simulate()?;
/// assert_eq!(seen, result.requests);
/// # Ok::<(), freewheel_sim::config::ConfigError>(())
/// ```
pub struct Run<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) planners: Planners<'a>,
    pub(super) timer: Option<Timer<'a>>,
    pub(super) observer: Option<Observer<'a>>,
    pub(super) progress: Option<Progress<'a>>,
}

impl Experiment {
    /// A run that nobody watches.
    pub fn new_run(&self) -> Run<'_> {
        Run {
            experiment: self,
            planners: Planners::new(),
            timer: None,
            observer: None,
            progress: None,
        }
    }

    /// Runs the experiment, and nobody watches.
    pub fn run(&self) -> Result<RunResult, ConfigError> {
        self.new_run().simulate()
    }
}

impl<'a> Run<'a> {
    /// Fills the rotational gaps with these planners: none, or one for each arm.
    #[must_use]
    pub fn with_planners(self, planners: Planners<'a>) -> Self {
        Self { planners, ..self }
    }

    /// Makes each decision of the experiment's own free work inside a call of `timer`, but not those of a
    /// server. Independent drives call it on several threads.
    #[must_use]
    pub fn with_timer(self, timer: Timer<'a>) -> Self {
        Self { timer: Some(timer), ..self }
    }

    /// Shows every completion to `observer`.
    #[must_use]
    pub fn with_observer(self, observer: Observer<'a>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Reports to `progress` at times how far the run is.
    #[must_use]
    pub fn with_progress(self, progress: Progress<'a>) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// Runs the experiment. Independent drives run on all cores, and planners or an observer of theirs are an
    /// error. Panics when planners are present but not one for each arm, or beside a configured background.
    pub fn simulate(self) -> Result<RunResult, ConfigError> {
        let experiment = self.experiment;
        if self.observer.is_some() || !self.planners.is_empty() {
            experiment.config.check_observable()?;
        }
        if !self.planners.is_empty() {
            experiment.check_measured_whole("free work")?;
        }
        match experiment.config.array.layout {
            Layout::Striped => Ok(experiment.result(self.workload()?)),
            Layout::Independent => self.fleet(),
        }
    }

    /// Runs the volume with another `source` in place of its workload, and without its background. Independent
    /// drives would need a source each, and are an error. Panics when planners are present but not one for each
    /// arm.
    pub fn simulate_source(self, mut source: &mut dyn Source) -> Result<RunResult, ConfigError> {
        let Self { experiment, planners, observer, .. } = self;
        experiment.config.check_observable()?;
        experiment.check_measured_whole("a source of unknown length")?;
        let mut unseen = |_: &Completion| {};
        let observer: Observer<'_> = match observer {
            Some(observer) => observer,
            None => &mut unseen,
        };
        let layout = experiment.striped();
        let foreground = Foreground {
            experiment,
            layout,
            source: &mut source,
            observer,
            tasks: None,
            unfinished: None,
        };
        Ok(foreground.drives(planners)?.result())
    }

    /// The same run for a shorter time, so that it can hold what does not live as long.
    pub(super) fn within<'b>(self) -> Run<'b>
    where
        'a: 'b,
    {
        let Self { experiment, planners, timer, observer, progress } = self;
        Run {
            experiment,
            planners: planners.into_iter().map(|planner| planner as &mut dyn Planner).collect(),
            timer,
            observer: observer.map(|observer| observer as Observer<'b>),
            progress: progress.map(|progress| progress as Progress<'b>),
        }
    }

    /// Runs every independent drive.
    fn fleet(self) -> Result<RunResult, ConfigError> {
        let Self { experiment, timer, progress, .. } = self;
        let mut unheard = |_, _| {};
        let progress: Progress<'_> = match progress {
            Some(progress) => progress,
            None => &mut unheard,
        };
        let members = fleet::members(&experiment.config, experiment.trace.as_ref())?;
        fleet::run(&members, progress, |member, progress| {
            let alone = experiment.alone(member);
            Run { timer, ..alone.new_run() }.with_progress(progress).workload()
        })
    }

    /// Layer "background": the configured tasks, which plan in the gaps of every arm, and for which the source
    /// goes on until their rounds are complete.
    pub(super) fn volume<S: Source>(
        self,
        source: S,
        layout: VolumeLayout<'_>,
    ) -> Result<Tally, ConfigError> {
        let Self { experiment, planners, timer, observer, progress } = self;
        let unfinished = experiment.unfinished();
        // A trace ends without a bound on stalled requests.
        let stalled_requests_max = match experiment.config.workload {
            Workload::Trace(_) => u64::MAX,
            _ => STALLED_REQUESTS_MAX * u64::from(experiment.arm_count()),
        };
        let source = UntilDone::new(source, unfinished.clone(), stalled_requests_max);
        let mut backgrounds = experiment.backgrounds(unfinished.as_ref())?;
        assert!(planners.is_empty() || backgrounds.is_empty(), "an arm has one planner");
        let tasks = experiment.config.freeblock.as_ref();
        let is_decided = tasks.is_some() || !planners.is_empty();
        let every = if is_decided { REPORT_EVERY_DECIDED } else { REPORT_EVERY };
        let (mut unheard, mut unseen) = (|_, _| {}, |_: &Completion| {});
        let progress: Progress<'_> = match progress {
            Some(progress) => progress,
            None => &mut unheard,
        };
        let observer: Observer<'_> = match observer {
            Some(observer) => observer,
            None => &mut unseen,
        };
        let mut source = Reporting { source, progress, every, until_next: every };
        let unfinished = unfinished.as_ref();
        let foreground =
            Foreground { experiment, layout, source: &mut source, observer, tasks, unfinished };
        let mut tally = match timer {
            _ if backgrounds.is_empty() => foreground.drives(planners)?,
            None => foreground.drives(backgrounds.iter_mut().map(|arm| arm as _).collect())?,
            Some(timer) => {
                let timed = backgrounds.iter_mut().map(|arm| TimedPlanner::new(arm, timer));
                let mut timed: Vec<TimedPlanner<'_>> = timed.collect();
                foreground.drives(timed.iter_mut().map(|arm| arm as _).collect())?
            }
        };
        tally.background(backgrounds);
        source.report();
        Ok(tally)
    }
}

/// What the arms of a volume serve, and who watches.
struct Foreground<'a, S> {
    experiment: &'a Experiment,
    layout: VolumeLayout<'a>,
    source: &'a mut S,
    observer: Observer<'a>,
    /// Tasks of a server, and the blocks of them that the source waits for.
    tasks: Option<&'a FreeblockConfig>,
    unfinished: Option<&'a Unfinished>,
}

impl<S: Source> Foreground<'_, S> {
    /// Layer "drive": bare mechanics, whole drives, or drives with a host's scheduler before each.
    fn drives(self, planners: Planners<'_>) -> Result<Tally, ConfigError> {
        let experiment = self.experiment;
        let arms = experiment.arm_count() as usize;
        let is_one_each = planners.is_empty() || planners.len() == arms;
        assert!(is_one_each, "a planner for each of {arms} arms");
        match &experiment.config.host {
            Some(host) if host.server => {
                assert!(planners.is_empty(), "a server plans for tasks of its own");
                return self.servers(host);
            }
            Some(host) => {
                let mut planners = planners.into_iter();
                let device =
                    |scheduler, drive| Ok(PredictedDevice::new(scheduler, drive, planners.next()));
                return self.engine(experiment.arms_behind_host(host, device)?);
            }
            None => {}
        }
        let mut destages = experiment.gap_destages()?;
        assert!(planners.is_empty() || destages.is_empty(), "an arm has one planner");
        let planners = planners.into_iter().map(|planner| planner as &mut dyn Planner);
        let destages = destages.iter_mut().map(|destages| destages as &mut dyn Planner);
        let planners = planners.chain(destages).collect();
        match experiment.has_electronics() {
            true => self.layers(experiment.whole_drives(planners)?),
            false => self.layers(experiment.bare_mechanics(planners)?),
        }
    }

    /// Drives with a server's scheduler before each, which has the tasks.
    fn servers(self, host: &HostConfig) -> Result<Tally, ConfigError> {
        let experiment = self.experiment;
        let (tasks, unfinished) = (self.tasks, self.unfinished);
        let mut arms = experiment.arms_behind_host(host, |scheduler, drive| {
            let device = ServedDevice::for_experiment(scheduler, drive, tasks, unfinished.cloned());
            device.map_err(|error| ConfigError::Freeblock { message: error.to_string() })
        })?;
        let mut tally = self.tally(&mut arms)?;
        tally.served(arms.into_iter().map(|arm| arm.device));
        Ok(tally)
    }

    /// Layers "Linux" and "cache" before the drives.
    fn layers<D: Device>(self, arms: Vec<Arm<D>>) -> Result<Tally, ConfigError> {
        let experiment = self.experiment;
        match (experiment.config.scheduler.is_linux(), &experiment.config.cache) {
            (false, None) => self.engine(arms),
            (true, None) => self.engine(experiment.behind_linux(arms)?),
            (false, Some(cache)) => self.engine(experiment.behind_cache(arms, cache)?),
            (true, Some(cache)) => {
                self.engine(experiment.behind_cache(experiment.behind_linux(arms)?, cache)?)
            }
        }
    }

    fn engine<D: Device>(self, mut arms: Vec<Arm<D>>) -> Result<Tally, ConfigError> {
        self.tally(&mut arms)
    }

    fn tally<D: Device>(self, arms: &mut [Arm<D>]) -> Result<Tally, ConfigError> {
        let Self { experiment, layout, source, observer, .. } = self;
        let Experiment { spec, drive, striping, .. } = experiment;
        let zones = VolumeZones::new(spec.zoned.as_ref(), drive, striping);
        Ok(engine::tally(layout, zones, arms, source, experiment.parts(), observer)?)
    }
}
