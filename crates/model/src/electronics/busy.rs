//! For how long a drive is busy: while a command is inside, and while it works on its own account.
//! That is writing back, and reading ahead what the host then asks for.

use freewheel_units::{SimDuration, SimTime};

/// The union of the times of commands and of the drive's own work.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Busy {
    /// Since when commands have been inside, if some are.
    since: Option<SimTime>,
    /// End of the drive's own work that began meanwhile.
    own_until: SimTime,
    /// Up to here every busy time is in `total`.
    counted_to: SimTime,
    total: SimDuration,
}

impl Busy {
    #[inline]
    pub fn command(&mut self, now: SimTime) {
        self.since.get_or_insert(now);
    }

    /// The last command inside is done.
    #[inline]
    pub fn commands_done(&mut self, now: SimTime) {
        if let Some(since) = self.since.take() {
            self.count(since, now.max(self.own_until));
        }
    }

    /// The drive works on its own account. Without commands inside, works come in order of time.
    #[inline]
    pub fn own_work(&mut self, begin: SimTime, end: SimTime) {
        match self.since {
            Some(_) => self.own_until = self.own_until.max(end),
            None => self.count(begin, end),
        }
    }

    /// Part of a time until now in no busy time so far.
    pub fn idle_within(&self, begin: SimTime, end: SimTime) -> SimDuration {
        let end = self.since.map_or(end, |since| end.min(since));
        end.saturating_since(begin.max(self.counted_to))
    }

    /// Time that seemed idle was work after all.
    pub fn idle_was_work(&mut self, time: SimDuration) {
        self.total += time;
    }

    #[inline]
    fn count(&mut self, begin: SimTime, end: SimTime) {
        self.total += end.saturating_since(begin.max(self.counted_to));
        self.counted_to = self.counted_to.max(end);
    }

    /// All of it, of commands that are done.
    pub fn total(&self) -> SimDuration {
        self.total
    }

    /// With the time until `now` of commands that are inside.
    pub fn total_until(&self, now: SimTime) -> SimDuration {
        let inside = self.since.map(|since| now.saturating_since(since.max(self.counted_to)));
        self.total + inside.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> SimTime {
        SimTime::ZERO + SimDuration::from_ms(ms)
    }

    #[test]
    fn busy_time_counts_overlaps_once() {
        let mut busy = Busy::default();
        busy.command(at(0));
        busy.command(at(2));
        // Writing back lasts until 3 ms after the last command.
        busy.own_work(at(4), at(13));
        assert_eq!(busy.total_until(at(7)), SimDuration::from_ms(7));
        busy.commands_done(at(10));
        assert_eq!(busy.total(), SimDuration::from_ms(13));
        busy.command(at(12));
        assert_eq!(busy.total_until(at(12)), SimDuration::from_ms(13));
        assert_eq!(busy.total_until(at(14)), SimDuration::from_ms(14));
        busy.commands_done(at(15));
        assert_eq!(busy.total(), SimDuration::from_ms(15));
        assert_eq!(busy.total_until(at(18)), SimDuration::from_ms(15));
        // Idle from 15 to 20 ms.
        busy.own_work(at(20), at(22));
        busy.command(at(21));
        busy.commands_done(at(25));
        assert_eq!(busy.total(), SimDuration::from_ms(20));
    }

    #[test]
    fn idle_time_lies_between_commands() {
        let mut busy = Busy::default();
        busy.command(at(0));
        busy.commands_done(at(10));
        assert_eq!(busy.idle_within(at(8), at(14)), SimDuration::from_ms(4));
        busy.command(at(15));
        assert_eq!(busy.idle_within(at(12), at(18)), SimDuration::from_ms(3));
        assert_eq!(busy.idle_within(at(16), at(18)), SimDuration::ZERO);
    }
}
