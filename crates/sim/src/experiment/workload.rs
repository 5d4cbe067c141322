//! Layer "source" of a run: the requests of its workload.

use freewheel_freeblock::{Planner, TimedPlanner};
use freewheel_model::drive::Sectors;
use freewheel_model::log_disk::LogDiskSpec;
use freewheel_trace::{Record, TraceError};

use super::run::Run;
use super::streams::Stream;
use super::{Experiment, fleet, streams};
use crate::config::{
    ConfigError, Layout, PostmarkCleaner, PostmarkWorkload, ThinkTimeDistribution, TraceWorkload,
    Workload, cleaning_options, open, reopen, sector,
};
use crate::postmark::{FreeReads, NoFreeReads, cleaning_task};
use crate::result::{PostmarkResult, Tally};
use crate::source::{
    Closed, Fit, MarkedCommands, Merged, Open, Pattern, PatternSpec, Placement, Records, Replay,
    Source, ThinkTime, WithCompletions,
};

impl Run<'_> {
    /// Runs the volume with the source of its workload. The engine is compiled for closed clients, and once for
    /// all other sources: one for each source would cost every build many seconds.
    pub(super) fn workload(self) -> Result<Tally, ConfigError> {
        let experiment = self.experiment;
        match &experiment.config.workload {
            Workload::Closed { requests, .. } => {
                let clients = experiment.clients(experiment.until_done(*requests))?;
                let mut source = clients.expect("it is closed");
                match experiment.config.commands {
                    None => self.volume(source, experiment.striped()),
                    Some(_) => self.marked(&mut source),
                }
            }
            Workload::Open { requests, mean_gap, pattern } => {
                let pattern = experiment.pattern(pattern)?;
                let requests = experiment.until_done(*requests);
                let seed = experiment.config.seed;
                self.marked(&mut Open::new(pattern, *mean_gap, requests, seed))
            }
            Workload::Trace(workload) if workload.merge.is_empty() => {
                let records = experiment.records(workload)?;
                self.marked(&mut experiment.replay(workload, records)?)
            }
            Workload::Trace(workload) => self.marked(&mut experiment.merged(workload.fit)?),
            Workload::Postmark(workload) => self.postmark(workload),
            Workload::Files(workload) => self.files(workload),
        }
    }

    /// Runs the volume with `source`, with the marks of `[commands]` and its scrub, if there are any.
    fn marked(self, source: &mut dyn Source) -> Result<Tally, ConfigError> {
        let experiment = self.experiment;
        let Some(commands) = &experiment.config.commands else {
            return self.volume(source, experiment.striped());
        };
        let mut marked =
            MarkedCommands::new(source, commands.marks(), experiment.striping.blocks());
        let source: &mut dyn Source = &mut marked;
        let mut tally = self.volume(source, experiment.striped())?;
        tally.outside_scrub(marked.scrub());
        Ok(tally)
    }

    /// Runs PostMark, whose cleaner may use the gaps.
    fn postmark(self, workload: &PostmarkWorkload) -> Result<Tally, ConfigError> {
        assert!(self.planners.is_empty(), "the gaps of PostMark are its cleaner's");
        if workload.cleaner != PostmarkCleaner::Freeblock {
            return self.process(workload, NoFreeReads, None);
        }
        let block = LogDiskSpec::OSDI00.block;
        let (task, mut planner) = cleaning_task(&self.experiment.drive, block, cleaning_options());
        match self.timer {
            None => self.process(workload, task, Some(&mut planner)),
            Some(timer) => {
                self.process(workload, task, Some(&mut TimedPlanner::new(&mut planner, timer)))
            }
        }
    }

    fn process<F: FreeReads>(
        self,
        workload: &PostmarkWorkload,
        free_reads: F,
        planner: Option<&mut dyn Planner>,
    ) -> Result<Tally, ConfigError> {
        let experiment = self.experiment;
        let spec = experiment.postmark.expect("worked out when it was built");
        let mut process = workload.process(spec, free_reads, experiment.config.seed);
        let source: &mut dyn Source = &mut process;
        let mut run = self.within();
        run.planners.extend(planner.map(|planner| planner as &mut dyn Planner));
        let mut tally = run.volume(source, experiment.striped())?;
        tally.postmark(PostmarkResult::of(&process, workload.cleaner));
        Ok(tally)
    }
}

impl Experiment {
    /// Requests of a workload of so many: as many as it takes where rounds are to be completed.
    fn until_done(&self, requests: u64) -> u64 {
        let freeblock = self.config.freeblock.as_ref();
        let has_rounds = freeblock
            .is_some_and(|freeblock| freeblock.tasks.iter().any(|task| task.rounds.is_some()));
        if has_rounds { u64::MAX } else { requests }
    }

    fn pattern(&self, spec: &PatternSpec) -> Result<Pattern, ConfigError> {
        Pattern::new(*spec, self.striping.blocks(), self.config.seed)
            .map_err(|message| ConfigError::Workload { message })
    }

    /// The clients of its closed workload, with `requests` in all; None for another workload.
    pub fn clients(&self, requests: u64) -> Result<Option<Closed>, ConfigError> {
        let Workload::Closed { outstanding, think_time, think_time_distribution, pattern, .. } =
            &self.config.workload
        else {
            return Ok(None);
        };
        let think_time = match think_time_distribution {
            ThinkTimeDistribution::Constant => ThinkTime::Constant(*think_time),
            ThinkTimeDistribution::Exponential => ThinkTime::Exponential(*think_time),
        };
        let (pattern, seed) = (self.pattern(pattern)?, self.config.seed);
        Ok(Some(Closed::new(pattern, *outstanding, think_time, requests, seed)))
    }

    /// The records of its trace, with completions inferred where the replay needs them.
    pub fn records(
        &self,
        workload: &TraceWorkload,
    ) -> Result<WithCompletions<Records>, ConfigError> {
        self.records_of(workload, self.streams.first())
    }

    fn records_of(
        &self,
        workload: &TraceWorkload,
        stream: Option<&Stream>,
    ) -> Result<WithCompletions<Records>, ConfigError> {
        let inferred = stream.and_then(|stream| stream.inferred.as_ref());
        let responses = inferred.map(|inferred| inferred.responses.clone());
        let records = match stream {
            Some(Stream { kept: Some(kept), .. }) => kept.clone().into(),
            Some(stream) => reopen(workload, stream.seed, &stream.trace)?.into(),
            None => open(workload, self.config.seed)?.into(),
        };
        Ok(WithCompletions::new(records, responses, workload.device))
    }

    /// `records` of its trace, or made of them, where and how they are replayed.
    pub fn replay<I: Iterator<Item = Result<Record, TraceError>>>(
        &self,
        workload: &TraceWorkload,
        records: I,
    ) -> Result<Replay<I>, ConfigError> {
        let placement = self.placement(workload.device, workload.fit)?;
        let total = self.trace.as_ref().map_or(0, |info| info.requests);
        Ok(Replay::new(records, placement, workload.timing(self.trace.as_ref()), total))
    }

    /// Traces of the experiment as independent streams.
    fn merged(&self, fit: Fit) -> Result<Merged<Replay<WithCompletions<Records>>>, ConfigError> {
        let replay = |(stream, place): (&Stream, Placement)| {
            let Stream { workload, trace, .. } = stream;
            let records = self.records_of(workload, Some(stream))?;
            Ok(Replay::new(records, place, workload.timing(Some(trace)), trace.requests))
        };
        let replays = self.streams.iter().zip(self.places(None, fit)?).map(replay);
        Ok(Merged::new(replays.collect::<Result<_, ConfigError>>()?))
    }

    /// Places of the trace on the volume, or on each independent drive; empty without a trace.
    pub(super) fn placements(&self) -> Result<Vec<Placement>, ConfigError> {
        let Workload::Trace(workload) = &self.config.workload else { return Ok(Vec::new()) };
        if self.config.array.layout == Layout::Striped {
            return self.places(workload.device, workload.fit);
        }
        let members = fleet::members(&self.config, self.trace.as_ref())?;
        members.iter().map(|member| self.placement(member.device, workload.fit)).collect()
    }

    fn placement(&self, device: Option<u32>, fit: Fit) -> Result<Placement, ConfigError> {
        Ok(self.places(device, fit)?.remove(0))
    }

    /// Places of its traces on the volume, one after the other.
    fn places(&self, device: Option<u32>, fit: Fit) -> Result<Vec<Placement>, ConfigError> {
        let least = sector(&self.config, &self.spec).logical_blocks();
        let places = streams::placements(&self.streams, device, self.striping.blocks(), fit)?;
        Ok(places.into_iter().map(|place| place.in_sectors(Sectors::of(least))).collect())
    }
}
