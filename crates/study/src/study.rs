//! A trace replayed on a drive under every policy, and the estimate of a scrub beside it.

use freewheel_freeblock::Timer;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::{QueueSpec, WriteCache};
use freewheel_model::sched::PolicySpec;
use freewheel_model::stats::Summary;
use freewheel_model::zoned::spec::ZonedKind;
use freewheel_sim::config::{ConfigError, SimConfig, TraceWorkload, Workload, check_timing, open};
use freewheel_sim::experiment::{Experiment, Observer};
use freewheel_sim::fidelity::{ReplayFidelity, replay_fidelity};
use freewheel_sim::library;
use freewheel_sim::source::{Fit, KeptRecords, RecordKeeper};
use freewheel_sim::{Completion, OtherTimes, RunResult};
use freewheel_trace::{Character, Characterizer, TraceInfo, TraceReader};
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes};
use rayon::prelude::*;
use serde::Serialize;

use crate::assumed_values::{AssumedValues, GoalValue, count_moves, move_values};
use crate::cache_curves::{Knee, knees};
use crate::changes::{
    BaseSystem, Changes, ChangesBench, STARTS, VariantOfSystem, catalogue, most_changes,
    most_checks, most_runs, relative, try_changes,
};
use crate::drive_fit::{self, DriveFit};
use crate::measured_part::{MeasuredPart, warm_up};
use crate::options::{StudyError, StudyOptions};
use crate::place_time::{PlaceTime, PlaceTimeCollector};
use crate::progress::{Amount, ProgressSink, StudyProgress, WorkCounter};
use crate::replays::{OtherReplay, has_other, other, with_reference};
use crate::scrub::{
    IDLE_RUNS, IdleScrub, PauseSearch, SCRUB_EFFORTS, ScrubEstimate, estimate, idle_scrub,
};
use crate::trace_runs::{
    REQUESTS_MIN, first_pass, has_growing_queue, measured_whole, outlasts, overview,
    trace_on_drive, whole_ns,
};

/// A study: its options, the character of the trace, and the run of each policy.
#[derive(Debug, Serialize)]
#[allow(missing_docs)]
pub struct Study {
    /// Version of this document's shape.
    pub schema_version: u32,
    /// Version of the program.
    pub version: &'static str,
    pub options: StudyOptions,
    /// The drive in a few numbers.
    pub drive: DriveSummary,
    /// True if requests were replayed a think time after the request they waited for.
    pub dependent_replay: bool,
    /// The replay that [`Self::dependent_replay`] is compared with, where the trace can be replayed in both
    /// ways.
    pub other_replay: Option<OtherReplay>,
    /// Size of the trace's address space.
    pub trace_space_bytes: u64,
    pub trace: Character,
    /// The part of the trace that every run of policies and changes measures.
    pub measured: MeasuredPart,
    /// Results of each policy, FCFS first, and last of the drive's own queue, where it has one.
    pub runs: Vec<PolicyRun>,
    /// Estimate of a scrub in the rotational gaps of [`Study::baseline`], if it was asked for and there are
    /// enough requests to say anything of.
    pub scrub: Option<ScrubEstimate>,
    /// A scrub in the idle time of [`Study::baseline`], if an estimate was asked for and there are enough
    /// requests.
    pub idle_scrub: Option<IdleScrub>,
    /// Places and times of requests in the baseline's run.
    pub place_time: PlaceTime,
    /// Changes that would help, if they were asked for and there are enough requests to say anything of.
    pub changes: Option<Changes>,
    /// Baseline's [`StudyOptions::goal`] when assumed values of the drive are others; None without
    /// [`StudyOptions::changes`].
    pub assumed_values: Option<AssumedValues>,
    /// Exactness of the trace's arrivals in the replay, with each request's recorded response time; None
    /// for a replay at traced times, and where no completion is recorded.
    pub fidelity: Option<ReplayFidelity>,
    /// Results of the trace on other drives.
    pub beside: Vec<DriveBeside>,
    /// The baseline with the other arrivals that a coarse clock allows; None where the clock is fine.
    pub other_times: Option<OtherTimes>,
}

/// The trace on another drive, which serves requests in the order of its queue, or as they come.
#[derive(Debug, Serialize)]
pub struct DriveBeside {
    /// The drive in a few numbers.
    pub drive: DriveSummary,
    /// Results of the run.
    pub run: PolicyRun,
}

/// The drive in a few numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveSummary {
    /// Name in this study.
    pub name: String,
    /// Name given by the maker.
    pub model: String,
    /// Capacity of all actuators together.
    pub capacity_bytes: u64,
    /// Time of one turn.
    pub rotation_period_ns: u64,
    /// Mean rate at which sectors pass a head, over the capacity.
    pub media_bytes_per_second: f64,
    /// True if its electronics took part.
    pub electronics: bool,
    /// True if reads bring the blocks that pass before their own into the drive's buffer, so that the head
    /// cannot be elsewhere meanwhile.
    pub keeps_free_blocks_before: bool,
    /// Who sees to it that the zones of a shingled drive are written in order.
    pub zoned: Option<ZonedKind>,
    /// Values of the drive file that are assumed.
    pub assumed: Vec<String>,
}

/// One policy's run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyRun {
    /// The policy of the host, or of the drive's queue.
    pub policy: PolicySpec,
    /// True if it is the drive's own, in its command queue; else the drive was given one command at a time.
    pub own_queue: bool,
    /// Title of the policy or the queue.
    pub title: String,
    /// Result of the run.
    pub result: RunResult,
    /// Responses under the study's other replay.
    pub other_replay: Option<Summary>,
}

impl PolicyRun {
    /// Circumstances of the run, within a sentence.
    pub fn under(&self) -> String {
        if self.own_queue {
            format!("in the {}", self.title)
        } else {
            format!("under {}", self.title)
        }
    }

    /// Length of the whole run.
    pub fn seconds(&self) -> f64 {
        whole_ns(&self.result) as f64 / 1e9
    }

    /// Length of the part that is measured.
    pub fn measured_seconds(&self) -> f64 {
        self.result.elapsed_ns as f64 / 1e9
    }

    /// Seconds of work of the drive in that part.
    pub fn works_seconds(&self) -> f64 {
        self.result.utilisation * self.measured_seconds()
    }

    /// Rotational latency while the drive wrote back from its buffer: that of the head which is no
    /// request's.
    pub fn writing_back_rotate_ns(&self) -> u128 {
        self.result.head_time.rotate_ns.saturating_sub(self.result.stages.rotate_ns)
    }
}

/// Studies a trace. Policies run in parallel; the result does not depend on how many at once.
pub fn study(options: &StudyOptions, progress: ProgressSink<'_>) -> Result<Study, StudyError> {
    study_watched(options, None, progress)
}

/// Like [`study`]; the decisions of the scrub are made inside of calls of `around`, if it is there.
pub fn study_watched(
    options: &StudyOptions,
    around: Option<Timer<'_>>,
    progress: ProgressSink<'_>,
) -> Result<Study, StudyError> {
    check(options)?;
    let effort = options.scrub_effort;
    let mut options = options.clone();
    options.policies = distinct_after_fcfs(&options.policies);
    let (trace, kept) = characterize(&options.trace, options.seed, progress)?;
    let spec = library::spec(&options.drive).map_err(ConfigError::from)?;
    // Only such a drive knows where its blocks are, so no gap is planned inside it.
    options.scrub &= spec.electronics.media_cache.is_none();
    let zoned = spec.zoned.map(|zoned| zoned.kind);
    let tells_dependence = trace.info.tells_dependence();
    options.trace = with_reference(&options.trace, &options.drive, tells_dependence, zoned);
    let info = Some(trace.info.clone());
    let own_queue = own_queue(&options, &options.drive)?;
    let baseline = RequestOrder::of_today(own_queue);
    let warm_up = warm_up(&trace.info, options.changes);
    let config = SimConfig { warm_up, ..config(&options, baseline) };
    let mut experiment = Experiment::with_trace_info(config, info)?;
    kept.into_iter().for_each(|records| experiment.keep_records(records));
    if trace.info.reads + trace.info.writes == 0 {
        return Err(StudyError::Empty { file: options.trace.file.display().to_string() });
    }
    let is_enough = trace.info.reads + trace.info.writes >= REQUESTS_MIN;
    let has_scrub = options.scrub && options.gaps && is_enough;
    let work = WorkCounter::new(has_scrub, progress);
    let bench = Bench { options: &options, experiment: &experiment, own_queue, work: &work };
    let scrub = || {
        let scrub = || {
            estimate(&experiment, &options.trace, effort, around, &|done, total| {
                work.scrub_at(done, total)
            })
        };
        let scrub = has_scrub.then(scrub).transpose();
        work.scrub_at(1, 1);
        scrub
    };
    // The estimate is one long simulation: every other run is made on the other cores meanwhile.
    let (scrub, study) = rayon::join(scrub, || bench.study(trace));
    let (scrub, study) = (scrub?, study?);
    // A shingled drive may have refused most of the requests.
    let scrub = scrub.filter(|_| study.has_enough_responses());
    Ok(Study { scrub, ..study })
}

/// A wrong name is known before the long part begins.
fn check(options: &StudyOptions) -> Result<(), StudyError> {
    let effort = options.scrub_effort;
    if options.scrub && !SCRUB_EFFORTS.contains(&effort) {
        return Err(StudyError::ScrubEffort { effort });
    }
    let policies = distinct_after_fcfs(&options.policies);
    Experiment::check_each(
        policies.iter().map(|&policy| config(options, RequestOrder::Policy(policy))),
    )?;
    for drive in &options.beside {
        let options = StudyOptions { drive: drive.clone(), ..options.clone() };
        Experiment::check(&config(&options, RequestOrder::Policy(PolicySpec::Fcfs)))?;
    }
    Ok(())
}

/// Fits the drive of a study to the responses that its trace records. [`StudyOptions::fitted`] takes the
/// result, and [`StudyOptions::drive`] the file of the fitted drive.
pub fn fit_drive(
    options: &StudyOptions,
    progress: ProgressSink<'_>,
) -> Result<DriveFit, StudyError> {
    check(options)?;
    let order = RequestOrder::of_today(own_queue(options, &options.drive)?);
    let config = config(options, order);
    let info = overview(
        &options.trace,
        options.seed,
        |_| {},
        |done, total| progress(StudyProgress::Reading(Amount { done, total })),
    )?;
    let experiment = Experiment::with_trace_info(config, Some(info))?;
    let fit = drive_fit::fit(&experiment, &options.trace, progress)?;
    let file = options.trace.file.display().to_string();
    fit.ok_or(StudyError::TooFewResponses { file })
}

/// Cost of counting the misses of all caches, in runs.
const KNEES: usize = 4;

/// Assumed values of the drive with which the first changes run again.
const VALUES_MOVED: usize = 2;

/// The most circumstances in which they run again: another drive, the other replay, assumed values, other
/// starts.
const VARIANTS_MAX: usize = 2 + VALUES_MOVED + STARTS.len();

/// Every run of a study but the estimate of a scrub.
struct Bench<'a> {
    options: &'a StudyOptions,
    /// The baseline. Other runs are made out of it, so that they share its drive and its records.
    experiment: &'a Experiment,
    own_queue: Option<QueueSpec>,
    work: &'a WorkCounter<'a>,
}

impl Bench<'_> {
    /// The study without the estimate of a scrub. Runs that need no result of another are in parallel.
    fn study(&self, trace: Character) -> Result<Study, ConfigError> {
        let Self { options, experiment, .. } = *self;
        self.work.expect(self.most_runs());
        let fidelity = || {
            self.replays_as_recorded(&trace.info)
                .then(|| replay_fidelity(&options.trace, &trace.info, &mut |_, _| {}))
                .transpose()
        };
        let orders = || rayon::join(|| self.orders(), || other(experiment));
        let ((runs, other), (fidelity, (knees, (beside, other_times)))) =
            rayon::join(orders, || {
                rayon::join(fidelity, || {
                    rayon::join(
                        || self.knees(&trace.info),
                        || rayon::join(|| self.beside(), || self.other_times()),
                    )
                })
            });
        let ((runs, place_time), other, knees) = (runs?, other?, knees?);
        let warm_up = runs[0].result.warm_up_requests;
        let measured = MeasuredPart::behind(warm_up, &options.trace, &trace, options.seed)?;
        let mut study = Study {
            schema_version: 1,
            version: env!("CARGO_PKG_VERSION"),
            drive: summary(experiment),
            dependent_replay: experiment.is_dependent(),
            other_replay: None,
            trace_space_bytes: experiment.trace_space().get(),
            options: StudyOptions { trace: options.trace.shown(), ..options.clone() },
            fidelity: fidelity?,
            trace,
            measured,
            runs,
            scrub: None,
            idle_scrub: None,
            place_time,
            changes: None,
            assumed_values: None,
            beside: beside?,
            other_times: other_times?,
        };
        let has_changes = study.has_changes();
        if options.changes && !has_changes {
            let checks = if options.checks { self.moves() + self.checks() } else { 0 };
            self.work.forgo(self.replays() * self.most_changes() + checks);
        }
        if options.scrub && !study.has_scrub() {
            self.work.forgo(IDLE_RUNS);
        }
        if let Some(other) = &other {
            let (replay, responses) = self.other_replay(other, study.trace.info.span_ns)?;
            if !replay.has_growing_queue {
                for (run, response) in study.runs.iter_mut().zip(responses) {
                    run.other_replay = Some(response);
                }
            } else if has_changes {
                self.work.forgo(self.most_changes());
            }
            study.other_replay = Some(replay);
        }
        self.improve(&mut study, other, knees)?;
        Ok(study)
    }

    /// Adds what would help, how sure that is, and a scrub in idle time.
    fn improve(
        &self,
        study: &mut Study,
        other: Option<Experiment>,
        knees: Vec<Knee>,
    ) -> Result<(), ConfigError> {
        let Self { options, experiment, .. } = *self;
        let (has_changes, has_scrub) = (study.has_changes(), study.has_scrub());
        let is_served = study.other_replay.as_ref().is_some_and(|other| !other.has_growing_queue);
        let other = other.filter(|_| is_served);
        // Recorded completions say how requests waited for each other, so no change is ranked by the other
        // replay.
        let as_recorded = self.replays_as_recorded(&study.trace.info);
        let ranked = other.as_ref().filter(|_| !as_recorded);
        if has_changes && as_recorded && is_served {
            self.work.forgo(self.most_changes());
        }
        let studied = &*study;
        let changes = || has_changes.then(|| self.changes(studied, ranked, knees)).transpose();
        let has_checks = has_changes && options.checks;
        let values = || has_checks.then(|| self.assumed_values(studied)).transpose();
        let search = if options.gaps { PauseSearch::All } else { PauseSearch::First };
        let idle = || {
            has_scrub
                .then(|| idle_scrub(&measured_whole(experiment), search, self.work))
                .transpose()
        };
        let (changes, (values, idle)) = rayon::join(changes, || rayon::join(values, idle));
        (study.changes, study.assumed_values, study.idle_scrub) = (changes?, values?, idle?);
        if let (Some(changes), Some(values)) = (&mut study.changes, &study.assumed_values) {
            let variants = self.variants(values, other.as_ref().filter(|_| as_recorded))?;
            self.work.forgo(self.checks() - most_checks(variants.len()));
            self.bench(None).check(changes, &variants)?;
        }
        Ok(())
    }

    /// True if requests wait for each other as the trace records.
    fn replays_as_recorded(&self, info: &TraceInfo) -> bool {
        self.experiment.is_dependent() && info.tells_dependence()
    }

    /// Number of runs: one for each replay.
    fn replays(&self) -> usize {
        1 + usize::from(has_other(self.experiment))
    }

    /// The other replay, and the responses of every order under it.
    fn other_replay(
        &self,
        other: &Experiment,
        span_ns: u64,
    ) -> Result<(OtherReplay, Vec<Summary>), ConfigError> {
        let orders = self.all_orders();
        let runs = orders
            .par_iter()
            .map(|&order| {
                let SimConfig { scheduler, queue_depth, .. } = config(self.options, order);
                let config = SimConfig { scheduler, queue_depth, ..other.config.clone() };
                Ok(self.run(&other.with_config(config)?, order, None)?.result)
            })
            .collect::<Result<Vec<RunResult>, ConfigError>>()?;
        let baseline = &runs[if self.own_queue.is_some() { runs.len() - 1 } else { 0 }];
        let inferred_completions = baseline.inferred_completions.clone();
        let dependent = other.is_dependent();
        let has_growing_queue = has_growing_queue(dependent, span_ns, baseline);
        let replay = OtherReplay { dependent, inferred_completions, has_growing_queue };
        Ok((replay, runs.into_iter().map(|run| run.response).collect()))
    }

    fn most_runs(&self) -> usize {
        let other_times = usize::from(self.experiment.has_coarse_times());
        let (changes, others) = match self.options.changes {
            true if self.options.checks => {
                (self.most_changes(), self.moves() + self.checks() + KNEES)
            }
            true => (self.most_changes(), KNEES),
            false => (0, 0),
        };
        let replayed = self.replays() * (self.all_orders().len() + changes);
        let idle = if self.options.scrub { IDLE_RUNS } else { 0 };
        replayed + self.options.beside.len() + other_times + others + idle
    }

    /// Runs of all changes that there may be.
    fn most_changes(&self) -> usize {
        most_runs(most_changes(&self.setting(Vec::new(), 0, false)))
    }

    /// Runs of the first changes in all circumstances that there may be.
    fn checks(&self) -> usize {
        most_checks(VARIANTS_MAX)
    }

    /// Sizes at which the miss curve of the trace bends.
    fn knees(&self, info: &TraceInfo) -> Result<Vec<Knee>, ConfigError> {
        if !self.options.changes {
            return Ok(Vec::new());
        }
        let run = self.work.begin(KNEES);
        knees(&self.options.trace, info, self.options.seed, &|done, total| run.at(done, total))
    }

    /// Runs with moved values of the drive.
    fn moves(&self) -> usize {
        let assumed = assumed(&self.experiment.spec, self.experiment.has_electronics());
        count_moves(&self.experiment.spec, &keys(&assumed))
    }

    /// Every policy, and last the drive's own queue.
    fn all_orders(&self) -> Vec<RequestOrder> {
        let policies = self.options.policies.iter().map(|&policy| RequestOrder::Policy(policy));
        policies.chain(self.own_queue.map(RequestOrder::Drive)).collect()
    }

    /// Runs every order. With them, where and when the requests of the
    /// baseline arrive.
    fn orders(&self) -> Result<(Vec<PolicyRun>, PlaceTime), ConfigError> {
        let orders = self.all_orders();
        let baseline = if self.own_queue.is_some() { orders.len() - 1 } else { 0 };
        let mut places = place_time_collector(self.experiment);
        let others = || {
            let others = orders.par_iter().enumerate().filter(|&(number, _)| number != baseline);
            others
                .map(|(_, &order)| {
                    let config = self.config(self.options, order);
                    self.run(&self.experiment.with_config(config)?, order, None)
                })
                .collect::<Result<Vec<PolicyRun>, ConfigError>>()
        };
        let (run, others) = rayon::join(
            || {
                self.run(
                    self.experiment,
                    orders[baseline],
                    Some(&mut |completion: &Completion| places.observe(completion)),
                )
            },
            others,
        );
        let mut runs = others?;
        runs.insert(baseline, run?);
        Ok((runs, places.finish()))
    }

    /// The experiment of an order, which counts the same part of the trace as the baseline.
    fn config(&self, options: &StudyOptions, order: RequestOrder) -> SimConfig {
        SimConfig { warm_up: self.experiment.config.warm_up, ..config(options, order) }
    }

    fn run(
        &self,
        experiment: &Experiment,
        order: RequestOrder,
        observer: Option<Observer<'_>>,
    ) -> Result<PolicyRun, ConfigError> {
        let (policy, title) = match order {
            RequestOrder::Policy(policy) => (policy, policy.title()),
            RequestOrder::Drive(queue) => {
                (queue.scheduler, format!("drive's queue of {}", queue.depth))
            }
        };
        let work = self.work.begin(1);
        let mut report = |done, total| work.at(done, total);
        let mut run = experiment.new_run().with_progress(&mut report);
        if let Some(observer) = observer {
            run = run.with_observer(observer);
        }
        let result = run.simulate()?;
        let own_queue = matches!(order, RequestOrder::Drive(_));
        Ok(PolicyRun { policy, own_queue, title, result, other_replay: None })
    }

    /// Tries what would help the baseline.
    fn changes(
        &self,
        study: &Study,
        other: Option<&Experiment>,
        knees: Vec<Knee>,
    ) -> Result<Changes, ConfigError> {
        let written = study.trace.reuse.footprint_written_bytes;
        let all = catalogue(&self.setting(knees, written, study.has_growing_queue()));
        let replays = 1 + usize::from(other.is_some());
        self.work.forgo(replays * (self.most_changes() - most_runs(all.len())));
        try_changes(&self.bench(other), &all)
    }

    /// Bench on which changes are tried.
    fn bench<'b>(&'b self, other: Option<&'b Experiment>) -> ChangesBench<'b> {
        ChangesBench {
            own: self.experiment,
            other,
            goal: self.options.goal,
            cache_depth: self.options.cache_depth,
            work: self.work,
        }
    }

    fn setting(&self, read_knees: Vec<Knee>, written: u64, has_growing_queue: bool) -> BaseSystem {
        let buffer = self.experiment.spec.electronics.buffer.as_ref();
        let buffer = buffer.filter(|_| self.experiment.has_electronics());
        BaseSystem {
            read_knees,
            written: Bytes::new(written),
            has_write_cache: buffer.is_some_and(|buffer| buffer.write_cache != WriteCache::Off),
            is_host_managed: self
                .experiment
                .spec
                .zoned
                .is_some_and(|zoned| zoned.kind == ZonedKind::HostManaged),
            drive_queue: self.own_queue.map(|queue| queue.depth),
            has_growing_queue,
        }
    }

    /// Circumstances in which the first changes run again: a similar drive, the other replay where no
    /// change is ranked by it, the assumed values that matter most, and other starts. A replay by
    /// dependence shifts with its start as a whole, so there they are none.
    fn variants(
        &self,
        values: &AssumedValues,
        other: Option<&Experiment>,
    ) -> Result<Vec<VariantOfSystem>, ConfigError> {
        let moved = values.first(VALUES_MOVED);
        let moved = moved.map(|(key, by)| VariantOfSystem::assumed_value(key, by));
        let drive = VariantOfSystem::other_drive(self.experiment)?;
        let starts = VariantOfSystem::starts().filter(|_| !self.experiment.is_dependent());
        let other = other.map(VariantOfSystem::other_replay);
        Ok(drive.into_iter().chain(other).chain(moved).chain(starts).collect())
    }

    /// Moves the baseline's drive.
    fn assumed_values(&self, study: &Study) -> Result<AssumedValues, ConfigError> {
        let goal = self.options.goal;
        let ns = goal.ns(&study.baseline().result);
        let today = GoalValue { goal, ns };
        move_values(self.experiment, &keys(&study.drive.assumed), today, self.work)
    }

    /// The baseline with the other arrivals that a coarse clock allows.
    fn other_times(&self) -> Result<Option<OtherTimes>, ConfigError> {
        let run = self.experiment.has_coarse_times().then(|| self.work.begin(1));
        self.experiment
            .run_other_times(&mut |done, total| run.iter().for_each(|run| run.at(done, total)))
    }

    /// Runs the trace on the drives to compare with.
    fn beside(&self) -> Result<Vec<DriveBeside>, ConfigError> {
        self.options
            .beside
            .par_iter()
            .map(|drive| {
                let options = StudyOptions { drive: drive.clone(), ..self.options.clone() };
                let order = RequestOrder::of_today(own_queue(&options, drive)?);
                let experiment = self.experiment.with_config(self.config(&options, order))?;
                let run = self.run(&experiment, order, None)?;
                Ok(DriveBeside { drive: summary(&experiment), run })
            })
            .collect()
    }
}

/// The command queue of a drive, where it has one.
fn own_queue(options: &StudyOptions, drive: &str) -> Result<Option<QueueSpec>, ConfigError> {
    let queue = library::spec(drive)?.electronics.queue;
    Ok(queue.filter(|queue| queue.depth > 1 && options.electronics))
}

/// FCFS, and then each of the others once.
fn distinct_after_fcfs(policies: &[PolicySpec]) -> Vec<PolicySpec> {
    let mut distinct = vec![PolicySpec::Fcfs];
    for policy in policies {
        if !distinct.contains(policy) {
            distinct.push(*policy);
        }
    }
    distinct
}

/// Who decides which request is served next.
#[derive(Clone, Copy)]
enum RequestOrder {
    /// A policy; the drive is given one command at a time.
    Policy(PolicySpec),
    /// The drive, out of the commands in its queue.
    Drive(QueueSpec),
}

impl RequestOrder {
    /// Behaviour of a drive without changes.
    fn of_today(own_queue: Option<QueueSpec>) -> Self {
        own_queue.map_or(Self::Policy(PolicySpec::Fcfs), Self::Drive)
    }
}

fn config(options: &StudyOptions, order: RequestOrder) -> SimConfig {
    let (scheduler, queue_depth) = match order {
        RequestOrder::Policy(policy) => (policy, Some(1)),
        RequestOrder::Drive(queue) => (PolicySpec::Fcfs, Some(queue.depth)),
    };
    let on_drive =
        trace_on_drive(&options.trace, &options.drive, options.electronics, options.seed);
    SimConfig { scheduler, queue_depth, ..on_drive }
}

fn characterize(
    trace: &TraceWorkload,
    seed: u64,
    progress: ProgressSink<'_>,
) -> Result<(Character, Option<KeptRecords>), ConfigError> {
    let mut reader = open(trace, seed)?;
    check_timing(reader.format(), None, &trace.file)?;
    let report = &mut |reader: &TraceReader| {
        let (done, total) = (reader.compressed_bytes_read(), reader.compressed_bytes_total());
        progress(StudyProgress::Reading(Amount { done, total }));
    };
    let format = reader.format();
    check_timing(format, Some(reader.survey(report)?), &trace.file)?;
    let mut characterizer = Characterizer::new(reader.format());
    let mut keeper = RecordKeeper::default();
    let reader = first_pass(
        trace,
        reader,
        |record| characterizer.observe(record),
        |record| keeper.observe(record),
        |done, total| progress(StudyProgress::Reading(Amount { done, total })),
    )?;
    Ok((characterizer.finish().as_read_by(&reader), keeper.finish()))
}

/// Rows of places cover what the trace may touch.
fn place_time_collector(experiment: &Experiment) -> PlaceTimeCollector {
    let is_scaled = matches!(
        &experiment.config.workload,
        Workload::Trace(TraceWorkload { fit: Fit::Scale, .. })
    );
    let used = Blocks::new(experiment.trace_space().get().div_ceil(BLOCK_BYTES));
    PlaceTimeCollector::new(if is_scaled { experiment.striping.blocks() } else { used })
}

fn summary(experiment: &Experiment) -> DriveSummary {
    let (spec, drive) = (&experiment.spec, &experiment.drive);
    DriveSummary {
        name: spec.name.clone(),
        model: spec.model.clone(),
        capacity_bytes: drive.total_blocks().bytes().get(),
        rotation_period_ns: spec.rotation_period.ns(),
        media_bytes_per_second: drive.mean_media_rate_bytes_per_second(),
        electronics: experiment.has_electronics(),
        keeps_free_blocks_before: experiment.has_electronics()
            && spec
                .electronics
                .buffer
                .as_ref()
                .is_some_and(|buffer| buffer.keep_free_blocks_before),
        zoned: spec.zoned.map(|zoned| zoned.kind),
        assumed: assumed(spec, experiment.has_electronics()),
    }
}

/// Keys of the values of such lines.
fn keys(assumed: &[String]) -> Vec<&str> {
    assumed.iter().filter_map(|line| line.split(": ").next()).collect()
}

/// Values that are assumed, of those that take part.
fn assumed(spec: &DriveSpec, electronics: bool) -> Vec<String> {
    spec.sources
        .iter()
        .filter(|(key, text)| {
            text.split("; ").any(|part| part.starts_with("assumed"))
                && (electronics || !key.starts_with("electronics"))
        })
        .map(|(key, text)| format!("{key}: {text}"))
        .collect()
}

impl Study {
    /// The run that everything is compared with: what the drive does today. That is its own queue
    /// where it has one, else FCFS.
    pub fn baseline(&self) -> &PolicyRun {
        self.runs.iter().find(|run| run.own_queue).unwrap_or(&self.runs[0])
    }

    /// The experiments for the changes, as `freewheel sim` runs them: the system as it is, each change in
    /// order of gain, and the best together. None without changes.
    pub fn experiments(&self) -> Vec<(String, SimConfig)> {
        let Some(changes) = &self.changes else { return Vec::new() };
        let today = ("today".to_owned(), changes.today_config.clone());
        let tried = changes.tried.iter().map(|tried| (tried.title.clone(), tried.config.clone()));
        let together = changes.together.iter();
        let together = together.map(|of| ("best together".to_owned(), of.config.clone()));
        std::iter::once(today).chain(tried).chain(together).collect()
    }

    /// True if the baseline served enough requests to say anything of.
    fn has_enough_responses(&self) -> bool {
        self.baseline().result.response.count >= REQUESTS_MIN
    }

    /// True if changes are tried: a part of the requests fills caches only where some are.
    fn has_changes(&self) -> bool {
        self.has_enough_responses() && self.measured.warm_up_requests > 0
    }

    /// True if a scrub in idle time is tried.
    fn has_scrub(&self) -> bool {
        self.has_enough_responses() && self.options.scrub
    }

    /// The policies outside the drive, FCFS first.
    pub fn policies(&self) -> impl Iterator<Item = &PolicyRun> {
        self.runs.iter().filter(|run| !run.own_queue)
    }

    /// The change of the mean response from the baseline to a run, as (new - old) / old, under the study's own
    /// replay and under the other one.
    pub fn mean_changes(&self, run: &PolicyRun) -> (f64, Option<f64>) {
        let baseline = self.baseline();
        let others = baseline.other_replay.as_ref().zip(run.other_replay.as_ref());
        let own = change(&baseline.result.response, &run.result.response);
        (own, others.map(|(old, new)| change(old, new)))
    }

    /// The larger of the two: what is certain of a change.
    pub fn worse_mean_change(&self, run: &PolicyRun) -> f64 {
        let (own, other) = self.mean_changes(run);
        other.map_or(own, |other| own.max(other))
    }

    /// The policy that is surest to help, or the baseline where none is sure to.
    pub fn surest_policy_or_today(&self) -> &PolicyRun {
        let surest = self.surest_policy();
        if self.worse_mean_change(surest) < 0.0 { surest } else { self.baseline() }
    }

    /// The policy with the smallest mean response time, the drive's own queue left aside.
    pub fn best_policy(&self) -> &PolicyRun {
        self.policies().min_by(|a, b| mean(a).total_cmp(&mean(b))).expect("FCFS is always run")
    }

    /// The policy that helps most under the replay under which it helps less.
    pub fn surest_policy(&self) -> &PolicyRun {
        self.policies()
            .min_by(|a, b| self.worse_mean_change(a).total_cmp(&self.worse_mean_change(b)))
            .expect("FCFS is always run")
    }

    /// The one with the largest.
    pub fn worst_policy(&self) -> &PolicyRun {
        self.policies().max_by(|a, b| mean(a).total_cmp(&mean(b))).expect("FCFS is always run")
    }

    /// Potential free bandwidth of a run: the share of time spent in rotational latency before requests
    /// times the mean media rate (osdi00 section 3). It may be exceeded while much is wanted. That of
    /// writing back is left out, as no gap is taken there.
    pub fn potential_bytes_per_second(&self, run: &PolicyRun) -> f64 {
        let share = run.result.stages.rotate_ns as f64 / run.result.elapsed_ns.max(1) as f64;
        share * self.drive.media_bytes_per_second
    }
}

fn change(old: &Summary, new: &Summary) -> f64 {
    relative(old.mean_ns, new.mean_ns)
}

fn mean(run: &&PolicyRun) -> f64 {
    run.result.response.mean_ns
}

/// Reason why a load is more than the drive can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overload {
    /// Replayed by arrivals, its queue grows with the length of the trace.
    Queue,
    /// Replayed by dependence, it waits for the drive, which works for longer than the trace lasts.
    Pace,
}

impl Study {
    /// None where the drive keeps up with the load in the baseline's run.
    pub fn overload(&self) -> Option<Overload> {
        self.overload_of(self.baseline())
    }

    /// True if response times are those of a queue that grows with the length of the trace.
    pub fn has_growing_queue(&self) -> bool {
        self.overload() == Some(Overload::Queue)
    }

    /// By arrivals many requests outstanding on average are not enough: one burst at the beginning of a long
    /// quiet trace has them, and the drive is done with it soon. By dependence a longer run is not enough: a
    /// drive that is somewhat slower than the traced one still has idle time at the recorded pace.
    pub fn overload_of(&self, run: &PolicyRun) -> Option<Overload> {
        let (result, span_ns) = (&run.result, self.trace.info.span_ns);
        if self.dependent_replay {
            let is_too_much = run.works_seconds() > self.measured.seconds();
            (outlasts(whole_ns(result), span_ns) && is_too_much).then_some(Overload::Pace)
        } else {
            has_growing_queue(false, span_ns, result).then_some(Overload::Queue)
        }
    }

    /// Span of the trace's arrivals.
    pub fn traced_seconds(&self) -> f64 {
        self.trace.info.span_ns as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_run_once_with_fcfs_first() {
        let asked = [PolicySpec::Sptf, PolicySpec::Fcfs, PolicySpec::Sptf];
        assert_eq!(distinct_after_fcfs(&asked), [PolicySpec::Fcfs, PolicySpec::Sptf]);
    }
}
