//! Commands that wait for the media, and which of them goes next.
//!
//! ```text
//!   1. a command whose limit of waiting is about to end: of these the one whose limit ends first; after a queue's length of them in a
//!      row, the oldest command without a limit
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
    /// State of a drive that looks at marks.
    marked: Option<Box<Marked>>,
}

/// State for the choice between marked commands.
struct Marked {
    high: Box<dyn Policy>,
    /// Longest wait of an ordinary command behind those of high priority; None where the drive does not
    /// look at priorities.
    high_first: Option<SimDuration>,
    /// Arrival times of ordinary commands at the drive, with their sequences.
    ordinary_since: BTreeSet<(SimTime, u64)>,
    /// Times by which commands must begin to keep their limits, with their sequences.
    due: BTreeSet<(SimTime, u64)>,
    /// Time before that limit from which they go before all others.
    lead: SimDuration,
    /// Arrival times of commands without a limit, with their sequences.
    limitless_since: BTreeSet<(SimTime, u64)>,
    /// Commands that went by their limits, one after the other, while one without a limit waited.
    in_a_row: u32,
    /// Most of these: a host may always have one more at the drive that is due.
    in_a_row_max: u32,
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
        Ok(Self {
            ordinary,
            marked: looks_at_marks
                .then(|| {
                    Ok(Box::new(Marked {
                        high: queue.scheduler.build()?,
                        high_first: queue.high_priority_first,
                        ordinary_since: BTreeSet::new(),
                        due: BTreeSet::new(),
                        lead: limits
                            .and_then(|limits| limits.lead)
                            .unwrap_or_else(|| longest_way(drive)),
                        limitless_since: BTreeSet::new(),
                        in_a_row: 0,
                        in_a_row_max: queue.depth,
                    }))
                })
                .transpose()?,
        })
    }

    /// A command that came to the drive at `submitted`, and must begin by `due` to keep its limit.
    #[inline]
    pub fn push(&mut self, waiting: Waiting, submitted: SimTime, due: Option<SimTime>) {
        let Some(marked) = &mut self.marked else { return self.ordinary.push(waiting) };
        match due {
            Some(due) => marked.due.insert((due, waiting.sequence)),
            None => marked.limitless_since.insert((submitted, waiting.sequence)),
        };
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
        if let Some(sequence) = marked.by_limits(moment.now) {
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
        match due {
            Some(due) => marked.due.remove(&(due, sequence)),
            None => marked.limitless_since.remove(&(submitted, sequence)),
        };
    }
}

impl Marked {
    /// The command that goes next because a limit is about to end: that one, or another that such commands
    /// have held up for long enough.
    fn by_limits(&mut self, now: SimTime) -> Option<u64> {
        let due = self.due.first().filter(|(due, _)| *due <= now + self.lead);
        let Some(&(_, due)) = due else {
            self.in_a_row = 0;
            return None;
        };
        let Some(&(_, oldest)) = self.limitless_since.first() else { return Some(due) };
        if self.in_a_row < self.in_a_row_max {
            self.in_a_row += 1;
            return Some(due);
        }
        self.in_a_row = 0;
        Some(oldest)
    }

    /// True if an ordinary command has waited as long as it may behind those of high priority.
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
