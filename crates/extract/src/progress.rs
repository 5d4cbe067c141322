//! Progress of an extraction, reported as its commands are sent.

use freewheel_units::{SimDuration, SimTime};

/// Progress of an extraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtractStep<'a> {
    /// Name of the measurement.
    pub name: &'a str,
    /// The part, where a step has an unknown number of parts; may be empty.
    pub part: &'a str,
    /// Part of `total`, in units of the step's own.
    pub done: u64,
    /// All units of the step.
    pub total: u64,
    /// Commands in all steps until now, also those of sessions before.
    pub commands: u64,
    /// Time on the drive until now, also of sessions before.
    pub drive_time: SimDuration,
}

/// Told how far an extraction is: at the beginning and at the end of every step, and between them with
/// the first answer after half a second of the drive's time. The answers of a journal make no report,
/// as that takes no time.
pub type ExtractProgress<'a> = &'a dyn Fn(&ExtractStep<'_>);

/// From a report to the next within a step.
const TELL_EVERY: SimDuration = SimDuration::from_ms(500);

/// The step that continues.
pub(super) struct StepProgress<'a> {
    tell: ExtractProgress<'a>,
    name: &'static str,
    part: String,
    done: u64,
    total: u64,
    told: SimTime,
}

impl<'a> StepProgress<'a> {
    pub fn new(tell: ExtractProgress<'a>) -> Self {
        let (part, told) = (String::new(), SimTime::ZERO);
        Self { tell, name: "", part, done: 0, total: 0, told }
    }

    /// Another step continues from now.
    pub fn begin(&mut self, name: &'static str, total: u64) {
        (self.name, self.done, self.total) = (name, 0, total);
        self.part.clear();
    }

    /// The step has reached this unit. Reports never go back.
    pub fn reached(&mut self, done: u64) {
        self.done = self.done.max(done);
    }

    /// Begins this part of the step.
    pub fn part(&mut self, part: String) {
        self.part = part;
    }

    /// True if the next report is due.
    pub fn is_due(&self, now: SimTime) -> bool {
        !self.name.is_empty() && now >= self.told + TELL_EVERY
    }

    /// Reports the progress of the step, which is over only with its end.
    pub fn tell(&mut self, now: SimTime, commands: u64) {
        self.told = now;
        self.say(self.done.min(self.total.saturating_sub(1)), now, commands);
    }

    /// Tells that the step is over.
    pub fn end(&mut self, now: SimTime, commands: u64) {
        self.say(self.total, now, commands);
        self.name = "";
    }

    fn say(&self, done: u64, now: SimTime, commands: u64) {
        let Self { name, part, total, .. } = self;
        if !name.is_empty() {
            let drive_time = now.saturating_since(SimTime::ZERO);
            let (total, part) = (*total, part.as_str());
            (self.tell)(&ExtractStep { name, part, done, total, commands, drive_time });
        }
    }
}
