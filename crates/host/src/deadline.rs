//! Time limit of a decision: by when its command must leave, and how long decisions took so far.
//!
//! The caller gives the time. A decision begins as long before the drive needs its command as nearly all
//! decisions take. Where the drive waits already, the decision gets what most decisions take.

use freewheel_freeblock::SearchProgress;
use freewheel_units::{SimDuration, SimTime};

/// Durations of decisions, from their begin until their command is at the drive. In virtual time they take
/// none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deciding {
    /// Most decisions: the time for one when the drive is idle and waits for it.
    pub usual: SimDuration,
    /// Nearly all decisions: how long before the drive needs a command its decision begins.
    pub most: SimDuration,
}

/// Longest search. It holds up the thread, which has clients to answer, even when the drive needs its
/// next command much later.
const SEARCH_MAX: SimDuration = SimDuration::from_ms(5);

/// Earliest begin of a decision, before the drive needs its command: a request that arrives after the
/// choice has to wait for the next one.
const BEFORE_MAX: SimDuration = SimDuration::from_ms(2);

/// Gain of a quantile: each longer time raises it by a tenth.
const GAIN: f64 = 0.1;

/// A quantile of times, of which some were cut short and are only known to be longer. By stochastic
/// approximation (Robbins and Monro 1951) of its logarithm.
#[derive(Debug, Clone)]
struct Quantile {
    ns: f64,
    /// Factor for a time that is longer than the quantile.
    up: f64,
    /// Factor for a time that is shorter.
    down: f64,
    max: SimDuration,
}

impl Quantile {
    fn new(first: SimDuration, above: f64, max: SimDuration) -> Self {
        // Both steps average zero when the part `above` of all times is longer.
        let (up, down) = (libm::exp(GAIN * (1.0 - above)), libm::exp(GAIN * -above));
        Self { ns: first.ns() as f64, up, down, max }
    }

    fn observe(&mut self, took: SimDuration, is_cut_short: bool) {
        let took_ns = took.ns() as f64;
        // A time that was cut short below the quantile does not tell on which side it would have ended.
        if is_cut_short && took_ns < 0.75 * self.ns {
            return;
        }
        let is_above = is_cut_short || took_ns > self.ns;
        let factor = if is_above { self.up } else { self.down };
        self.ns = (self.ns * factor).min(self.max.ns() as f64);
    }

    fn get(&self) -> SimDuration {
        SimDuration::from_ns(self.ns as u64)
    }
}

/// Learns how long decisions take.
#[derive(Debug, Clone)]
pub struct DecisionDeadline {
    usual: Quantile,
    most: Quantile,
    sending: Quantile,
}

impl Default for DecisionDeadline {
    /// The first values are assumed, and forgotten after some hundred decisions.
    fn default() -> Self {
        let us = SimDuration::from_us;
        Self {
            usual: Quantile::new(us(100), 0.1, BEFORE_MAX),
            most: Quantile::new(us(300), 0.01, BEFORE_MAX),
            sending: Quantile::new(us(20), 0.1, BEFORE_MAX),
        }
    }
}

/// A decision that has been made, and its command sent.
#[derive(Debug, Clone, Copy)]
pub struct DecisionTiming {
    /// Time at which it should have begun.
    pub due: SimTime,
    /// Time at which its search had ended.
    pub decided: SimTime,
    /// Time at which its command had been sent.
    pub sent: SimTime,
    /// True if it searched for free work.
    pub has_searched: bool,
    /// True if its search was cut short.
    pub is_cut_short: bool,
}

impl DecisionDeadline {
    /// Learns from a decision.
    pub fn observe(&mut self, made: &DecisionTiming) {
        let DecisionTiming { due, decided, sent, has_searched, is_cut_short } = *made;
        self.sending.observe(sent - decided, false);
        // Without wanted blocks there is no search, and its time is not that of a search.
        if has_searched {
            self.usual.observe(sent - due, is_cut_short);
        }
        self.most.observe(sent - due, is_cut_short);
    }

    /// Durations of decisions, their sending included.
    pub fn deciding(&self) -> Deciding {
        let most = self.most.get();
        Deciding { usual: self.usual.get().min(most), most }
    }

    /// The search of a decision that begins at `began`.
    pub fn search(&self, began: SimTime) -> Search {
        let sending = self.sending.get();
        Search { began, sending, searches: 0, until: SimTime::ZERO, is_cut_short: false }
    }
}

/// The time of one decision's search.
#[derive(Debug, Clone)]
pub struct Search {
    began: SimTime,
    sending: SimDuration,
    /// Searches left when `until` was set.
    searches: u64,
    until: SimTime,
    /// True if it had to end early.
    pub is_cut_short: bool,
}

impl Search {
    /// True if the planner has searched.
    pub fn has_begun(&self) -> bool {
        self.searches > 0
    }

    /// True if the search may continue at `now`, if its command must leave at `by`. Several searches share
    /// the time: each gets an equal part of the rest when it begins.
    pub fn may_go_on(&mut self, now: SimTime, by: SimTime, so_far: SearchProgress) -> bool {
        if so_far.searches != self.searches {
            self.searches = so_far.searches;
            let end = by.min(self.began + SEARCH_MAX);
            let left = end.saturating_since(now).saturating_sub(self.sending);
            self.until = now + left / self.searches.max(1);
        }
        let may = now < self.until;
        self.is_cut_short |= !may;
        may
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    fn us(us: u64) -> SimDuration {
        SimDuration::from_us(us)
    }

    fn at(us: u64) -> SimTime {
        SimTime::from_ns(us * 1000)
    }

    fn so_far(searches: u64) -> SearchProgress {
        SearchProgress { nodes: 0, searches }
    }

    /// A hundred thousand decisions that take anything up to a millisecond, and are cut short at what is
    /// known to be needed; how many of the last nine in ten were.
    fn cut_short(deadline: &mut DecisionDeadline, of: impl Fn(Deciding) -> SimDuration) -> u64 {
        let mut prng = Prng::new(1, "decisions");
        let mut count = 0;
        for number in 0..100_000 {
            let wants = us(prng.below(1000));
            let allowed = of(deadline.deciding());
            let is_cut_short = wants > allowed;
            let sent = SimTime::ZERO + wants.min(allowed);
            let (due, decided) = (SimTime::ZERO, sent);
            deadline.observe(&DecisionTiming {
                due,
                decided,
                sent,
                has_searched: true,
                is_cut_short,
            });
            count += u64::from(is_cut_short && number >= 10_000);
        }
        count
    }

    #[test]
    fn busy_drive_cuts_short_one_percent() {
        let mut deadline = DecisionDeadline::default();
        let count = cut_short(&mut deadline, |deciding| deciding.most);
        assert!((700..1200).contains(&count), "{count}");
        let Deciding { usual, most } = deadline.deciding();
        assert!((us(850)..us(950)).contains(&usual), "{usual}");
        assert!((us(930)..us(1100)).contains(&most), "{most}");
    }

    #[test]
    fn waiting_drive_cuts_short_ten_percent() {
        let mut deadline = DecisionDeadline::default();
        let count = cut_short(&mut deadline, |deciding| deciding.usual);
        assert!((8000..11_000).contains(&count), "{count}");
    }

    #[test]
    fn endless_decisions_begin_within_allowed_lead() {
        let mut deadline = DecisionDeadline::default();
        for _ in 0..1000 {
            let sent = SimTime::ZERO + deadline.deciding().most;
            let (due, decided) = (SimTime::ZERO, sent);
            deadline.observe(&DecisionTiming {
                due,
                decided,
                sent,
                has_searched: true,
                is_cut_short: true,
            });
        }
        assert_eq!(deadline.deciding().most, BEFORE_MAX);
    }

    #[test]
    fn search_ends_when_command_is_due() {
        let deadline = DecisionDeadline::default();
        let end = SimTime::ZERO + (us(500) - deadline.sending.get());
        let just_before = SimTime::from_ns(end.ns() - 1);
        let mut search = deadline.search(at(0));
        let by = at(500);
        assert!(search.may_go_on(at(1), by, so_far(1)));
        assert!(search.may_go_on(just_before, by, so_far(1)));
        assert!(!search.is_cut_short);
        assert!(!search.may_go_on(end, by, so_far(1)));
        assert!(search.is_cut_short);
        assert!(!deadline.search(at(0)).may_go_on(at(501), by, so_far(1)), "too late already");
        let mut search = deadline.search(at(0));
        let by = at(1_000_000);
        assert!(search.may_go_on(at(1), by, so_far(1)));
        assert!(!search.may_go_on(SimTime::ZERO + SEARCH_MAX, by, so_far(1)));
    }

    #[test]
    fn first_of_two_searches_gets_half() {
        let mut deadline = DecisionDeadline::default();
        deadline.sending.ns = 0.0;
        let mut search = deadline.search(at(0));
        assert!(search.may_go_on(at(0), at(400), so_far(2)));
        assert!(search.may_go_on(at(199), at(400), so_far(2)));
        assert!(!search.may_go_on(at(200), at(400), so_far(2)));
        assert!(search.may_go_on(at(210), at(400), so_far(1)));
        assert!(search.may_go_on(at(399), at(400), so_far(1)));
        assert!(!search.may_go_on(at(400), at(400), so_far(1)));
    }
}
