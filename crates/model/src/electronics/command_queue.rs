//! Commands that wait for the media, and which of them goes next.
//!
//! ```text
//!   1. a command whose limit of waiting is about to end: of these the one whose limit ends first
//!   2. a command of high priority, by the positioning policy, until an ordinary one has waited too long
//!   3. an ordinary command, by the positioning policy, behind streams where the drive serves them first
//! ```
//! Without marks only the third is left, and a mark that the drive does not look at is none.
//!
//! Non-goal: two classes of commands whose limits are weighed against each other. A drive past its limits
//! serves in their order, and loses what positioning gains.

use std::collections::BTreeSet;

use freewheel_units::{SimDuration, SimTime};

use super::streams::StreamsFirst;
use crate::drive::Drive;
use crate::sched::{CommandMark, Moment, ParsePolicyError, Policy, Waiting};
use crate::spec::duration_limits::DurationLimitsSpec;
use crate::spec::electronics::QueueSpec;

/// The queue of a drive, for commands whose processing is over.
pub(super) struct CommandQueue {
    ordinary: Box<dyn Policy>,
    /// Where the drive looks at marks.
    marked: Option<Box<Marked>>,
}

/// What the choice between marked commands needs.
struct Marked {
    high: Box<dyn Policy>,
    /// How long an ordinary command waits behind those of high priority at most; None where the drive does not
    /// look at priorities.
    high_first: Option<SimDuration>,
    /// When the ordinary commands came to the drive, with their sequences.
    ordinary_since: BTreeSet<(SimTime, u64)>,
    /// When commands must begin to keep their limits, with their sequences.
    due: BTreeSet<(SimTime, u64)>,
    /// How long before that they go before all others.
    lead: SimDuration,
}

impl CommandQueue {
    /// An empty queue. An error when its policy has a parameter out of range.
    pub fn new(
        queue: &QueueSpec,
        limits: Option<&DurationLimitsSpec>,
        drive: &Drive,
    ) -> Result<Self, ParsePolicyError> {
        let ordinary = queue.scheduler.build()?;
        let ordinary: Box<dyn Policy> = match queue.streams_first {
            Some(age_limit) => Box::new(StreamsFirst::new(ordinary, age_limit)),
            None => ordinary,
        };
        let looks_at_marks = queue.high_priority_first.is_some() || limits.is_some();
        let marked = || {
            Ok(Box::new(Marked {
                high: queue.scheduler.build()?,
                high_first: queue.high_priority_first,
                ordinary_since: BTreeSet::new(),
                due: BTreeSet::new(),
                lead: limits.and_then(|limits| limits.lead).unwrap_or_else(|| longest_way(drive)),
            }))
        };
        Ok(Self { ordinary, marked: looks_at_marks.then(marked).transpose()? })
    }

    /// A command that came to the drive at `submitted`, and must begin by `due` to keep its limit.
    #[inline]
    pub fn push(&mut self, waiting: Waiting, submitted: SimTime, due: Option<SimTime>) {
        let Some(marked) = &mut self.marked else { return self.ordinary.push(waiting) };
        if let Some(due) = due {
            marked.due.insert((due, waiting.sequence));
        }
        if marked.high_first.is_some() && waiting.mark == CommandMark::HighPriority {
            return marked.high.push(waiting);
        }
        marked.ordinary_since.insert((submitted, waiting.sequence));
        self.ordinary.push(waiting);
    }

    /// Takes the command that goes next. The caller then [forgets](Self::forget) it.
    #[inline]
    pub fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting> {
        let Some(marked) = &mut self.marked else { return self.ordinary.pick(moment) };
        if let Some(&(due, sequence)) = marked.due.first()
            && due <= moment.now + marked.lead
        {
            return self.take(sequence);
        }
        if marked.ordinary_is_due(moment.now) {
            return self.ordinary.pick(moment);
        }
        marked.high.pick(moment).or_else(|| self.ordinary.pick(moment))
    }

    /// Takes this command out of turn.
    pub fn take(&mut self, sequence: u64) -> Option<Waiting> {
        let high = self.marked.as_mut().and_then(|marked| marked.high.take(sequence));
        high.or_else(|| self.ordinary.take(sequence))
    }

    /// A command that was taken needs no turn any more.
    #[inline]
    pub fn forget(&mut self, sequence: u64, submitted: SimTime, due: Option<SimTime>) {
        let Some(marked) = &mut self.marked else { return };
        marked.ordinary_since.remove(&(submitted, sequence));
        if let Some(due) = due {
            marked.due.remove(&(due, sequence));
        }
    }
}

impl Marked {
    /// Whether an ordinary command has waited as long as it may behind those of high priority.
    fn ordinary_is_due(&self, now: SimTime) -> bool {
        let oldest = self.ordinary_since.first();
        let longest = self.high_first.unwrap_or_default();
        oldest.is_some_and(|(submitted, _)| *submitted + longest <= now)
    }
}

/// The longest seek and a turn: another command takes hardly longer, which goes before one with a limit.
fn longest_way(drive: &Drive) -> SimDuration {
    let farthest = drive.seek().distance_max();
    let seek_ns = drive.seek().time_ns(freewheel_units::Op::Write, farthest, true);
    SimDuration::from_ns(seek_ns) + drive.rotation().period()
}
