//! Experiments and studies: policies, the replay of traces, runs and their observation.

use freewheel_freeblock::Timer;
use freewheel_report::StudyReport;
use freewheel_sim::experiment::{Experiment, Progress};
use freewheel_sim::log::LogError;
use freewheel_sim::{Completion, RunResult};
use freewheel_study::{ProgressSink, StudyOptions};

use crate::Error;

pub use freewheel_live::stopwatch::{Stopwatch, timed};
pub use freewheel_model::sched::linux::LINUX_SCHEDULERS;
pub use freewheel_model::sched::{Moment, POLICIES, Policy, Waiting};
pub use freewheel_report::SimDocument;
pub use freewheel_sim::config::{CoarseTimes, ConfigError, TraceWorkload, key_and_value};
pub use freewheel_sim::log::{CompletionLog, CompletionRows};
pub use freewheel_sim::source::{Fit, ReplayMode};
pub use freewheel_study::changes::Goal;
pub use freewheel_study::{DriveFit, RemainingWork, SCRUB_EFFORT, StudyProgress};

/// Runs an experiment and watches it: `log` receives every completion, `stopwatch` times the decisions
/// about free work, `progress` gets done and total. [`Experiment::run`] makes no observation.
///
/// Errors: a log of independent drives, and damage that the first pass over a trace did not meet.
pub fn run_watched(
    experiment: &Experiment,
    log: Option<&mut CompletionLog>,
    stopwatch: Option<&Stopwatch>,
    progress: Progress<'_>,
) -> Result<RunResult, Error> {
    let mut record = log.map(|log| |completion: &Completion| log.record(completion));
    let time = |decide: &mut dyn FnMut()| stopwatch.into_iter().for_each(|s| s.time(&mut *decide));
    let mut run = experiment.new_run().with_progress(progress);
    if let Some(record) = &mut record {
        run = run.with_observer(record);
    }
    if stopwatch.is_some() {
        run = run.with_timer(&time);
    }
    Ok(run.simulate()?)
}

/// Rows of a group of [`run_collected`].
const GROUP_ROWS: usize = 1 << 17;

/// Runs an experiment and keeps every completion in memory, 92 bytes each, in groups of rows in order of
/// completion. `progress` is told done and total.
///
/// Errors: independent drives, and damage that the first pass over a trace did not meet.
pub fn run_collected(
    experiment: &Experiment,
    progress: Progress<'_>,
) -> Result<(RunResult, Vec<CompletionRows>), Error> {
    experiment.config.check_observable()?;
    let mut groups = Vec::new();
    let (mut rows, mut fits) = (CompletionRows::default(), true);
    let result = experiment
        .new_run()
        .with_observer(&mut |completion: &Completion| {
            fits &= rows.push(completion);
            if rows.len() == GROUP_ROWS {
                let next = CompletionRows::with_capacity(GROUP_ROWS);
                groups.push(std::mem::replace(&mut rows, next));
            }
        })
        .with_progress(progress)
        .simulate()?;
    if !fits {
        let reason = "a time of more than 292 years does not fit in int64".to_owned();
        return Err(LogError { file: "the completions".to_owned(), reason }.into());
    }
    if !rows.is_empty() {
        groups.push(rows);
    }
    Ok((result, groups))
}

/// Fits the drive of a study to the responses that its trace records. The study then takes the fit in
/// [`StudyOptions::fitted`], and the fitted drive by the path of its file.
///
/// Errors: a trace that records too few responses, and what [`study`] fails by.
pub fn fit_drive(options: &StudyOptions, progress: ProgressSink<'_>) -> Result<DriveFit, Error> {
    Ok(freewheel_study::fit_drive(options, progress)?)
}

/// Studies a trace on a drive: each scheduling policy, what would help, and a scrub in the rotational gaps.
///
/// ```
/// use freewheel::experiments::TraceWorkload;
/// use freewheel::{StudyOptions, study};
///
/// let file = "../../data/recorded/sqlite-ext4.csv.zst".into();
/// let trace = TraceWorkload { file, ..TraceWorkload::default() };
/// let options = StudyOptions {
///     policies: vec!["sptf".parse()?],
///     scrub: false,
///     ..StudyOptions::new(trace, "exos-x24-24tb")
/// };
/// let report = study(&options, None, &|_| {})?;
/// assert!(report.html().starts_with("<!DOCTYPE html>"));
/// println!("{}", report.text());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn study(
    options: &StudyOptions,
    stopwatch: Option<&Stopwatch>,
    progress: ProgressSink<'_>,
) -> Result<StudyReport, Error> {
    let around =
        |decide: &mut dyn FnMut()| stopwatch.into_iter().for_each(|s| s.time(&mut *decide));
    let around = stopwatch.is_some().then_some(&around as Timer<'_>);
    Ok(StudyReport::new(freewheel_study::study_watched(options, around, progress)?))
}
