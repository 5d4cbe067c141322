//! Command Duration Limits: when a command must begin, and its end at a limit.
//!
//! A command's inactive time is what it waits in the drive ([`Served::queue`]), its active time all the
//! rest. Commands that wait for their turn at the media, and writes that wait for room in the buffer, are
//! ended at their limit where the policy says so. Waiting for the electronics or the bus ends no command: one
//! that comes too late by it is completed past its limit.
//!
//! At the limit of the active time the command ends, and the head finishes the access without it: the model
//! breaks off no access.

use std::collections::BTreeSet;

use freewheel_units::{SimDuration, SimTime};

use super::{Command, Done, DriveUnit, Served};
use crate::sched::{CommandMark, Waiting};
use crate::spec::duration_limits::{DurationLimit, DurationLimitsSpec, LimitPolicy};

/// Outcomes of a command's duration limit, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LimitEnd {
    /// The command kept it, or had none.
    #[default]
    Kept,
    /// The command was completed all the same, past its limit.
    Missed,
    /// The drive ended the command with an error.
    Aborted,
}

/// Limits that the drive knows, and commands that it must end.
#[derive(Debug)]
pub(super) struct Limits {
    pub spec: DurationLimitsSpec,
    /// Times at which waiting commands with the policy abort reach their limit, with their sequences.
    aborts: BTreeSet<(SimTime, u64)>,
}

impl Limits {
    pub fn new(spec: &DurationLimitsSpec) -> Self {
        Self { spec: spec.clone(), aborts: BTreeSet::new() }
    }
}

impl DriveUnit {
    /// The descriptor that a command names, if the drive has it.
    #[inline]
    pub(super) fn limit_of(&self, waiting: &Waiting) -> Option<&DurationLimit> {
        let CommandMark::DurationLimit(number) = waiting.mark else { return None };
        self.limits.as_ref()?.spec.descriptor(waiting.target.op, number)
    }

    /// Time by which a command that comes now must begin, after its processing, to keep its limit of
    /// waiting.
    #[inline]
    pub(super) fn due(&self, waiting: &Waiting, overhead: SimDuration) -> Option<SimTime> {
        // Processing is active time, so the limit of waiting begins behind it.
        Some(self.now + overhead + self.limit_of(waiting)?.inactive?)
    }

    /// A command waits for its turn, or for room.
    #[inline]
    pub(super) fn begin_to_wait(&mut self, command: &Command) {
        let Some(due) = command.due else { return };
        let aborts = self.limit_of(&command.waiting).map(|limit| limit.policy);
        if let (Some(LimitPolicy::Abort), Some(limits)) = (aborts, &mut self.limits) {
            // The sequence tells equal limits apart, and ends the oldest command first.
            limits.aborts.insert((due, command.waiting.sequence));
        }
    }

    /// A command has its turn, or its room.
    #[inline]
    pub(super) fn end_to_wait(&mut self, command: &Command) {
        if let (Some(due), Some(limits)) = (command.due, &mut self.limits) {
            limits.aborts.remove(&(due, command.waiting.sequence));
        }
    }

    /// Time at which the drive next ends a command that waits.
    #[inline]
    pub(super) fn next_abort(&self) -> Option<SimTime> {
        Some(self.limits.as_ref()?.aborts.first()?.0)
    }

    /// Ends the command that has reached its limit by now, if one has.
    pub(super) fn abort_due(&mut self) {
        // Decisions also happen for other reasons: then no limit has been reached.
        let Some(due) = self.next_abort().filter(|due| *due <= self.now) else { return };
        let (_, sequence) = self
            .limits
            .as_mut()
            .and_then(|limits| limits.aborts.pop_first())
            .expect("a command has reached its limit");
        let command = self.remove_waiting(sequence);
        self.queue_inside.forget(sequence, command.submitted, command.due);
        let end = due.max(self.now);
        // The command was processed and then only waited: no other stage has a part.
        let queue = end - command.submitted - command.overhead;
        let limit = LimitEnd::Aborted;
        let served = Served { overhead: command.overhead, queue, limit, end, ..Served::default() };
        self.report(Done { sequence, served, flush: false });
    }

    /// Takes a command that waits out of the drive.
    fn remove_waiting(&mut self, sequence: u64) -> Command {
        if let Some(index) = self.waiting.iter().position(|command| is_it(command, sequence)) {
            // The policy knows only commands whose processing is over.
            self.queue_inside.take(sequence);
            return self.waiting.swap_remove(index);
        }
        for queue in [&mut self.processing, &mut self.blocked] {
            if let Some(command) = queue
                .iter()
                .position(|command| is_it(command, sequence))
                .and_then(|at| queue.remove(at))
            {
                return command;
            }
        }
        unreachable!("a command that can be aborted waits")
    }

    /// A command as it ends under its limits: it missed one, or ends there.
    #[inline]
    pub(super) fn within_limits(&self, command: &Command, served: Served) -> Served {
        let Some(limit) = self.limit_of(&command.waiting) else { return served };
        // The active time is all that is no waiting in the drive.
        let active = served.overhead + served.head() + served.bus;
        let is_active_too_long = limit.active.is_some_and(|most| active > most);
        let has_waited_too_long = limit.inactive.is_some_and(|most| served.queue > most);
        if !is_active_too_long && !has_waited_too_long {
            return served;
        }
        match (limit.policy, limit.active) {
            // A limit of waiting that was missed at the electronics or the bus aborts no command: see the head
            // of this file.
            (LimitPolicy::Abort, Some(most)) if is_active_too_long => served.cut_at(most),
            _ => Served { limit: LimitEnd::Missed, ..served },
        }
    }
}

fn is_it(command: &Command, sequence: u64) -> bool {
    command.waiting.sequence == sequence
}

impl Served {
    /// Outcome that ends with an error after this active time, and not before its processing is over. Its
    /// stages are cut in their order.
    fn cut_at(self, active: SimDuration) -> Self {
        let active = active.max(self.overhead);
        // Stages are served in this order, so the limit cuts the last ones first.
        let mut left = active;
        let [overhead, seek, rotate, transfer, bus] =
            [self.overhead, self.seek, self.rotate, self.transfer, self.bus].map(
                |stage: SimDuration| {
                    let kept = stage.min(left);
                    left = left.saturating_sub(kept);
                    kept
                },
            );
        let all = self.overhead + self.head() + self.bus;
        let end = SimTime::from_ns(self.end.ns() - all.saturating_sub(active).ns());
        Self { overhead, seek, rotate, transfer, bus, end, limit: LimitEnd::Aborted, ..self }
    }
}
