//! Selection of the notices that are worth a line, among many alike.

use std::collections::BTreeMap;
use std::time::Duration;

use super::stream::Owner;

/// Longest time between two notices that are alike, while such events go on. At a line every ten minutes,
/// all reasons of one owner together stay far below 1 MB a day.
const EVERY_MAX: Duration = Duration::from_secs(600);

/// Owners that are counted apart; all further ones count as one.
const OWNERS_MAX: usize = 32;

/// Thins notices out: of one reason and one owner at most one in `every`, and fewer while they go on.
pub(super) struct Repeats {
    every: Duration,
    rows: BTreeMap<Row, Said>,
}

/// Notices that count as alike.
type Row = (Option<Owner>, &'static str);

/// Notices of a row that were written.
struct Said {
    /// Time of the last, since the server began.
    at: Duration,
    /// The earliest time of its next line.
    until: Duration,
    /// Events since then.
    left_out: u64,
}

impl Repeats {
    /// Says one in this time at first.
    pub fn new(every: Duration) -> Self {
        Self { every, rows: BTreeMap::new() }
    }

    /// Worth of an event at `now`, since the server began: None, or the number of those before it that were
    /// left out.
    pub fn worth(
        &mut self,
        owner: Option<Owner>,
        reason: &'static str,
        now: Duration,
    ) -> Option<u64> {
        let owner = owner.filter(|owner| self.is_told_apart(*owner, now));
        let row = (owner, reason);
        let Some(said) = self.rows.get_mut(&row) else {
            let until = now + self.every;
            self.rows.insert(row, Said { at: now, until, left_out: 0 });
            return Some(0);
        };
        if now < said.until {
            said.left_out += 1;
            return None;
        }
        // The next gap is twice as long while events go on. Quiet shorter than the longest gap does not
        // count: else events that keep just outside each gap would have a line each.
        let gap = said.until.saturating_sub(said.at);
        let goes_on = now < said.until + EVERY_MAX;
        let next = if goes_on { (2 * gap).min(EVERY_MAX.max(self.every)) } else { self.every };
        let left_out = said.left_out;
        *said = Said { at: now, until: now + next, left_out: 0 };
        Some(left_out)
    }

    /// True if there is room to count for an owner apart. Rows that have been quiet make room.
    fn is_told_apart(&mut self, owner: Owner, now: Duration) -> bool {
        let mut owners: Vec<Owner> = self.rows.keys().filter_map(|&(owner, _)| owner).collect();
        owners.dedup();
        if owners.len() < OWNERS_MAX || owners.contains(&owner) {
            return true;
        }
        self.rows.retain(|_, said| now < said.until + EVERY_MAX);
        let mut owners: Vec<Owner> = self.rows.keys().filter_map(|&(owner, _)| owner).collect();
        owners.dedup();
        owners.len() < OWNERS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(1);

    fn machine(number: u32) -> Option<Owner> {
        Some(Owner::Machine(std::net::Ipv4Addr::from(number).into()))
    }

    #[test]
    fn repeats_of_notice_are_thinned() {
        let mut repeats = Repeats::new(EVERY);
        let mut lines = Vec::new();
        // Ten a second for a minute.
        for tenth in 0..600 {
            let now = Duration::from_millis(100 * tenth);
            if let Some(left_out) = repeats.worth(machine(1), "slow", now) {
                lines.push((now.as_secs(), left_out));
            }
        }
        assert_eq!(lines, [(0, 0), (1, 9), (3, 19), (7, 39), (15, 79), (31, 159)]);
    }

    #[test]
    fn repeats_counted_per_reason_and_owner() {
        let mut repeats = Repeats::new(EVERY);
        let all =
            [(machine(1), "slow"), (machine(1), "stalled"), (machine(2), "slow"), (None, "slow")];
        for (owner, reason) in all {
            assert_eq!(repeats.worth(owner, reason, Duration::ZERO), Some(0));
            assert_eq!(repeats.worth(owner, reason, Duration::ZERO), None);
        }
    }

    #[test]
    fn repeats_interval_resets_after_ten_minutes() {
        let mut repeats = Repeats::new(EVERY);
        let mut worth = |seconds: u64| {
            repeats.worth(machine(1), "slow", Duration::from_secs(seconds)).is_some()
        };
        assert!(worth(0) && worth(1) && !worth(2) && worth(3));
        // Four seconds are the gap by now, and eight after a minute.
        assert!(!worth(4));
        assert!(worth(60) && !worth(67) && worth(68));
        assert!(worth(800) && worth(801));
        let mut quiet = Repeats::new(EVERY);
        for hour in 0..10_u64 {
            let at = |seconds: u64| Duration::from_secs(3600 * hour + seconds);
            assert_eq!(quiet.worth(machine(1), "slow", at(0)), Some(0));
            assert_eq!(quiet.worth(machine(1), "slow", at(2)), Some(0), "one in the time");
        }
    }

    #[test]
    fn repeats_bound_log_bytes_per_day() {
        let lines_a_day = |owners: u32| {
            let mut repeats = Repeats::new(EVERY);
            let mut lines = 0;
            for second in 0..86_400_u32 {
                let now = Duration::from_secs(second.into());
                for reason in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
                    let owner = machine(second % owners);
                    lines += u64::from(repeats.worth(owner, reason, now).is_some());
                }
            }
            lines
        };
        let line_bytes = 400;
        assert!(lines_a_day(1) * line_bytes < 1 << 20, "{}", lines_a_day(1));
        assert!(lines_a_day(100_000) * line_bytes < 40 << 20, "{}", lines_a_day(100_000));
    }

    #[test]
    fn repeats_without_time_say_everything() {
        let mut repeats = Repeats::new(Duration::ZERO);
        assert!((0..10).all(|_| repeats.worth(None, "slow", Duration::ZERO) == Some(0)));
    }
}
