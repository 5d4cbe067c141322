//! A scan of every arm behind a load, in bursts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use freewheel_freeblock::{Effort, Planner, TimedPlanner, Timer};
use freewheel_sim::RunResult;
use freewheel_sim::config::ConfigError;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_units::{Prng, SimDuration, SimTime};

use super::burst::Burst;
use super::effort::Work;
use super::projection::{End, ProjectedScan, Projection, WHOLE, Watch};

/// Called with the progress of the estimate: done and all, in no unit.
pub type ScrubProgress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// The scan of one arm in bursts.
pub(super) struct Scanned {
    pub(super) blocks: u64,
    pub(super) bursts: Vec<Burst>,
    pub(super) simulated: SimDuration,
    pub(super) end: End,
    pub(super) effort: Effort,
    pub(super) work: Work,
}

impl Scanned {
    /// Bursts without one that the end of the load broke off.
    pub(super) fn ended_bursts(&self) -> &[Burst] {
        match (self.end, self.bursts.split_last()) {
            (End::LoadOver, Some((_, before))) => before,
            _ => &self.bursts,
        }
    }
}

/// Scans every arm of the volume behind this load.
pub(super) fn scan<S: Source>(
    experiment: &Experiment,
    source: &mut S,
    setting: ProjectedScan,
    around: Option<Timer<'_>>,
    progress: ScrubProgress<'_>,
) -> Result<(Vec<Scanned>, RunResult), ConfigError> {
    let arms = experiment.striping.arms();
    let watch = Arc::new(Watch::default());
    watch.unfinished.store(arms.into(), Ordering::Relaxed);
    let mut scans: Vec<Projection> = (0..arms)
        .map(|arm| {
            let prng = Prng::new(experiment.config.seed, &format!("leaps {arm}"));
            Projection::new(&experiment.drive, setting, prng, &watch)
        })
        .collect();
    let whole = WHOLE * u64::from(arms);
    let total = whole + 1;
    let mut source = Until { source, watch: &watch, requests: setting.pace.requests };
    let around = around.unwrap_or(&|decide: &mut dyn FnMut()| decide());
    let mut watched: Vec<TimedPlanner> =
        scans.iter_mut().map(|scan| TimedPlanner::new(scan, around)).collect();
    let planners = watched.iter_mut().map(|scan| scan as &mut dyn Planner).collect();
    let mut reported = u64::MAX;
    let mut report = |_: &_| {
        // It is over with the last request that there may be, if not before.
        let requests = watch.requests.load(Ordering::Relaxed) as f64 / setting.pace.requests as f64;
        let done = watch.done.load(Ordering::Relaxed).max((requests * whole as f64) as u64);
        if done != reported {
            reported = done;
            progress(done, total);
        }
    };
    let result = experiment
        .new_run()
        .with_planners(planners)
        .with_observer(&mut report)
        .simulate_source(&mut source)?;
    progress(total, total);
    let scans = scans.iter().map(|scan| Scanned {
        blocks: scan.blocks(),
        bursts: scan.bursts(),
        simulated: scan.simulated(),
        end: scan.end_of_scan(),
        effort: scan.effort(),
        work: scan.work(),
    });
    Ok((scans.collect(), result))
}

/// A load until the scans of all arms are over, or for this many requests.
pub(super) struct Until<'a, S> {
    pub(super) source: &'a mut S,
    pub(super) watch: &'a Watch,
    pub(super) requests: u64,
}

impl<S: Source> Source for Until<'_, S> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        let is_over = self.watch.requests.load(Ordering::Relaxed) >= self.requests;
        if is_over || self.watch.unfinished.load(Ordering::Relaxed) == 0 {
            return Ok(None);
        }
        self.source.next_arrival()
    }

    fn take(&mut self) -> Request {
        self.watch.requests.fetch_add(1, Ordering::Relaxed);
        self.source.take()
    }

    fn completed(&mut self, tag: u64, now: SimTime) {
        self.source.completed(tag, now);
    }

    fn progress(&self) -> (u64, u64) {
        self.source.progress()
    }
}
