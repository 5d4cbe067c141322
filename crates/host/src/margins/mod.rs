//! Margins of free work, learned from the ends of commands for a budget of delays.
//!
//! A command is late when its seek took longer than the time left until its first sector passed, its
//! *slack*. A late command ends one turn later:
//!
//! ```text
//!   seek as predicted   |=====seek=====|--slack--|sector        in time
//!   seek a bit longer   |=====seek=======|-slack-|sector        in time: its error is below the slack
//!   seek much longer    |=====seek=================|   a turn later |sector
//! ```
//! The host cannot see by how much a seek was off. Each end of a command, free work or not, tells whether
//! the error was beyond the slack; and slacks range up to a turn. [`Lateness`] learns from that how often
//! a movement is late by its slack: for each class of movements by distance, by direction and by the
//! operation at its end. A direction with few movements starts from what both directions show together.
//!
//! A margin costs its time on every movement, a late command costs a turn. The margin is the slack with
//! the least total cost, as a newsvendor weighs unsold papers against missing ones.
//!
//! The price of a late command comes from an account of time ([`DelayBudget`]). The account earns a share
//! of the head's time at work; a delay of a foreground command by free work is taken out. On a full
//! account a late command costs its turn: more delays would lose more time than shorter margins win. The
//! emptier the account, the higher the price; an overdrawn account stops free work. This is an integral
//! controller of the price. It keeps the budget for every delay it sees, of any cause: for seeks
//! that are off by more than the longest margin (an eighth of a turn), or when the learned curves are wrong.
//!
//! Non-goals: commands that a drive delays for its own reasons, with any slack.

mod delay_budget;
mod in_use;
mod lateness;

use freewheel_units::{Op, SimDuration};

use self::delay_budget::{DelayBudget, TURN_PRICE};
use self::in_use::MarginCounts;
use self::lateness::{BINS, BINS_A_TURN, Curve, Lateness};
use crate::predict::{Conservatism, PredictionSpec};
use freewheel_model::drive::{
    SEEK_CLASSES, SEEK_DISTANCES, SeekMargins, seek_class, seek_class_distance,
};

pub use self::in_use::MarginInUse;

/// Commands between one look at the margins and the next while none is late.
const LOOK_EVERY: u32 = 32;

/// Budgets are counted in millionths.
const MILLION: f64 = 1e6;

/// The margin that learning begins with: with this conservatism fast02's foreground is hardly delayed.
const START: SimDuration = SimDuration::from_us(300);

/// A movement that has been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Movement {
    /// Operation at its end.
    pub op: Op,
    /// Cylinders; the same one for a change of heads.
    pub from: u32,
    pub to: u32,
    /// Time between its predicted end and the sector.
    pub slack: SimDuration,
    pub is_late: bool,
}

/// Learns the margins of one drive.
#[derive(Debug, Clone)]
pub(crate) struct Learner {
    period: SimDuration,
    /// Margin before anything is known, in bins.
    start: usize,
    /// Movements that end with reads, and with writes.
    ended: [Ended; 2],
    /// All classes together.
    all: Lateness,
    delay_budget: DelayBudget,
    margins: SeekMargins,
    until_look: u32,
    /// Margins differ from those handed out last.
    is_news: bool,
}

/// Observations of the movements that end with the same operation.
#[derive(Debug, Clone)]
struct Ended {
    classes: Vec<Lateness>,
    /// In the same order.
    counts: Vec<MarginCounts>,
    /// By distance: both directions together.
    distances: Vec<Lateness>,
}

impl Learner {
    /// For a drive that turns once in `period`; None where the margins are constant.
    pub fn for_spec(spec: &PredictionSpec, period: SimDuration) -> Option<Self> {
        let millionths = (spec.budget * MILLION).round() as u32;
        (spec.conservatism == Conservatism::Learned).then(|| Self::new(period, START, millionths))
    }

    /// For a drive that turns once in `period`. `start` is the margin before anything is known, `budget`
    /// parts of a million of the head's time that free work may delay the foreground by.
    pub fn new(period: SimDuration, start: SimDuration, budget: u32) -> Self {
        let bin_ns = period.ns() / BINS_A_TURN;
        let start = (start.ns().div_ceil(bin_ns.max(1)) as usize).min(BINS - 1);
        let mut learner = Self {
            period,
            start,
            ended: [Ended::default(), Ended::default()],
            all: Lateness::default(),
            delay_budget: DelayBudget::new(period, budget),
            margins: SeekMargins::constant(SimDuration::ZERO),
            until_look: 0,
            is_news: true,
        };
        learner.look();
        learner
    }

    /// The head has been at work for this time.
    pub fn worked(&mut self, head: SimDuration) {
        self.delay_budget.earn(head);
        self.until_look = self.until_look.saturating_sub(1);
    }

    /// A movement has been made.
    pub fn moved(&mut self, movement: &Movement) {
        let Movement { op, from, to, slack, is_late } = *movement;
        // Beyond there is no margin that would have helped.
        let Some(bin) = self.bin(slack) else { return };
        self.all.add(bin, is_late);
        let class = seek_class(from, to);
        let ended = &mut self.ended[number(op)];
        ended.distances[seek_class_distance(class)].add(bin, is_late);
        ended.classes[class].add(bin, is_late);
        ended.counts[class].movements += 1;
        ended.counts[class].late += u64::from(is_late);
        if is_late {
            self.until_look = 0;
        }
    }

    /// Free work has delayed the foreground by this time.
    pub fn delayed(&mut self, delay: SimDuration) {
        self.delay_budget.spend(delay);
        self.until_look = 0;
    }

    /// Free work has taken this time from clients by way of the drive's buffer.
    pub fn took(&mut self, time: SimDuration) {
        self.delay_budget.spend(time);
    }

    /// True if a gap of this length is worth the expected cost of free work in it to clients.
    pub fn is_worth(&self, gap: SimDuration, expected_ns: f64) -> bool {
        let price = f64::from(self.delay_budget.price()) / f64::from(TURN_PRICE);
        expected_ns * price <= gap.ns() as f64
    }

    /// True if there may be free work at all.
    pub fn may_risk(&self) -> bool {
        !self.delay_budget.is_overdrawn()
    }

    /// The margins, if they are others than last time.
    pub fn news(&mut self) -> Option<SeekMargins> {
        if self.until_look == 0 {
            self.look();
        }
        std::mem::take(&mut self.is_news).then_some(self.margins)
    }

    fn bin(&self, slack: SimDuration) -> Option<usize> {
        let bin = slack.ns() * BINS_A_TURN / self.period.ns();
        usize::try_from(bin).ok().filter(|&bin| bin < BINS)
    }

    fn look(&mut self) {
        self.until_look = LOOK_EVERY;
        let price = self.delay_budget.price();
        let of_all = self.all.curve(&Curve::step(self.start), lateness::OF_START);
        let mut margins = self.margins;
        for op in [Op::Read, Op::Write] {
            let Ended { classes, distances, .. } = &self.ended[number(op)];
            let of_distances: Vec<Curve> =
                distances.iter().map(|of| of.curve_or(&of_all, lateness::OF_OTHERS)).collect();
            for (class, known) in classes.iter().enumerate() {
                let of_both = &of_distances[seek_class_distance(class)];
                let bins = known.curve_or(of_both, lateness::OF_OTHERS).cheapest(price);
                margins.set(op, class, self.period * bins as u64 / BINS_A_TURN);
            }
        }
        self.is_news |= margins != self.margins;
        self.margins = margins;
    }
}

impl Default for Ended {
    fn default() -> Self {
        Self {
            classes: vec![Lateness::default(); SEEK_CLASSES],
            counts: vec![MarginCounts::default(); SEEK_CLASSES],
            distances: vec![Lateness::default(); SEEK_DISTANCES],
        }
    }
}

/// Place of an operation.
fn number(op: Op) -> usize {
    usize::from(op == Op::Write)
}

#[cfg(test)]
mod tests;
