//! The other arrivals that a coarse clock allows.

use freewheel_trace::TraceInfo;

use super::{Experiment, Progress};
use crate::config::{ConfigError, TraceWorkload, Workload};
use crate::result::OtherTimes;

impl Experiment {
    /// True if a trace has a clock so coarse that other arrivals are possible.
    pub fn has_coarse_times(&self) -> bool {
        let is_coarse = |trace: &TraceInfo| trace.survey.is_some_and(|survey| survey.is_coarse());
        self.traces().any(is_coarse)
    }

    /// Runs the experiment again with the requests of a coarse clock bunched where they were spread, or the
    /// other way round. `None` where no trace has a coarse clock.
    pub fn run_other_times(
        &self,
        progress: Progress<'_>,
    ) -> Result<Option<OtherTimes>, ConfigError> {
        let Workload::Trace(workload) = &self.config.workload else { return Ok(None) };
        if !self.has_coarse_times() {
            return Ok(None);
        }
        let coarse_times = workload.coarse_times.other();
        let mut other = self.clone();
        let with = |workload: &TraceWorkload| TraceWorkload { coarse_times, ..workload.clone() };
        other.config.workload = Workload::Trace(with(workload));
        for stream in &mut other.streams {
            stream.workload = with(&stream.workload);
            // Their times are those of this experiment.
            stream.kept = None;
        }
        let response = other.new_run().with_progress(progress).simulate()?.response;
        Ok(Some(OtherTimes { coarse_times, response }))
    }
}
