//! Measured cost of free work to clients: it is switched off in random short slots, and the responses there
//! are compared with those just before and after.
//!
//! ```text
//!   frame   |....|....|....| on | off | on |....|....|    one slot without free work, at a random place
//!   slot                        |warm |measured...|       first the buffer and the queue get used to it
//!   pair    responses of requests that arrived in `off`, and in the two slots beside it
//! ```
//! The cost is the weighted mean of the pairs' differences, over the weighted mean of the responses without
//! free work. Its standard error comes from how much the pairs differ among each other, so bursts and
//! phases of the load are in it. No model of the drive is needed.
//!
//! Non-goals: what takes longer than a slot to show, and work in idle time, which continues in the slots.

use std::collections::BTreeMap;

use freewheel_units::{Prng, SimDuration, SimTime};
use serde::Serialize;

/// Part of a slot that is not measured: its first quarter.
const WARM_PARTS: u64 = 4;

/// Pairs, and requests without free work, below which a cost is not told. Assumed: a standard error of
/// fewer pairs is itself off by a quarter and more.
const PAIRS_MIN: u64 = 8;
const REQUESTS_MIN: u64 = 200;

/// The greatest share of slots without free work: each needs neighbours with it, and a choice of places.
pub(crate) const OFF_SHARE_MAX: f64 = 0.25;

/// Slots without free work, and the comparison of responses.
#[derive(Debug, Clone)]
pub(crate) struct OffSlots {
    seed: u64,
    slot_ns: u64,
    /// Slots of a frame.
    slots: u64,
    /// Pairs that may still change, by their frame.
    open: BTreeMap<u64, Pair>,
    sums: CostSums,
}

/// Part of a frame to which a request belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotPart {
    Off,
    Beside,
}

/// Responses in a slot without free work, and in the slots beside it.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    off: Responses,
    on: Responses,
    /// Free work was done in the slots beside it.
    has_free_work: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Responses {
    number: u64,
    sum_ns: u64,
}

impl Responses {
    fn add(&mut self, response: SimDuration) {
        self.number += 1;
        self.sum_ns += response.ns();
    }

    fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.number as f64
    }
}

impl OffSlots {
    /// Slots of this length, of which `share` are without free work. None for a share of zero.
    pub fn new(seed: u64, slot: SimDuration, share: f64) -> Option<Self> {
        let slots = (share > 0.0).then(|| (1.0 / share).round() as u64)?;
        let slot_ns = slot.ns().max(1);
        Some(Self { seed, slot_ns, slots, open: BTreeMap::new(), sums: CostSums::default() })
    }

    /// Slots from another seed.
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// True if free work is off.
    pub fn is_off(&self, now: SimTime) -> bool {
        let slot = now.ns() / self.slot_ns;
        slot % self.slots == self.off_slot(slot / self.slots)
    }

    /// Free work was done at `now`.
    pub fn worked(&mut self, now: SimTime) {
        if let Some((frame, SlotPart::Beside)) = self.part_of(now) {
            self.open.entry(frame).or_default().has_free_work = true;
        }
    }

    /// A client's request that arrived at `arrival` is done after `response`.
    pub fn record(&mut self, arrival: SimTime, response: SimDuration) {
        let Some((frame, part)) = self.part_of(arrival) else { return };
        if arrival.ns() % self.slot_ns < self.slot_ns / WARM_PARTS {
            return;
        }
        // Two frames later no request waits any more.
        while let Some(oldest) = self.open.first_entry().filter(|open| open.key() + 1 < frame) {
            self.sums.add(&oldest.remove());
        }
        let pair = self.open.entry(frame).or_default();
        match part {
            SlotPart::Off => pair.off.add(response),
            SlotPart::Beside => pair.on.add(response),
        }
    }

    /// Sums measured so far.
    pub fn sums(&self) -> CostSums {
        let mut sums = self.sums;
        self.open.values().for_each(|pair| sums.add(pair));
        sums
    }

    /// Slot of a frame without free work: never the first or the last, so that its neighbours are of the
    /// same frame.
    fn off_slot(&self, frame: u64) -> u64 {
        let mut prng = Prng::new(self.seed.wrapping_add(frame), "slots without free work");
        1 + prng.below(self.slots - 2)
    }

    fn part_of(&self, time: SimTime) -> Option<(u64, SlotPart)> {
        let slot = time.ns() / self.slot_ns;
        let frame = slot / self.slots;
        match (slot % self.slots).abs_diff(self.off_slot(frame)) {
            0 => Some((frame, SlotPart::Off)),
            1 => Some((frame, SlotPart::Beside)),
            _ => None,
        }
    }
}

/// Sums over pairs of slots, from which a [`FreeCost`] follows. Sums of several drives add up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CostSums {
    pairs: u64,
    requests_off: u64,
    requests_on: u64,
    /// Sum of weights times the difference and the response without free work.
    difference: f64,
    without: f64,
    /// Sum of squared weights times their products.
    difference_squared: f64,
    product: f64,
    without_squared: f64,
}

impl CostSums {
    fn add(&mut self, pair: &Pair) {
        let Pair { off, on, has_free_work } = pair;
        if !has_free_work || off.number == 0 || on.number == 0 {
            return;
        }
        // Best where single responses vary alike.
        let weight = off.number as f64 * on.number as f64 / (off.number + on.number) as f64;
        let without = off.mean_ns();
        let difference = on.mean_ns() - without;
        let squared = weight * weight;
        *self = self.and(Self {
            pairs: 1,
            requests_off: off.number,
            requests_on: on.number,
            difference: weight * difference,
            without: weight * without,
            difference_squared: squared * difference * difference,
            product: squared * difference * without,
            without_squared: squared * without * without,
        });
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            pairs: self.pairs + other.pairs,
            requests_off: self.requests_off + other.requests_off,
            requests_on: self.requests_on + other.requests_on,
            difference: self.difference + other.difference,
            without: self.without + other.without,
            difference_squared: self.difference_squared + other.difference_squared,
            product: self.product + other.product,
            without_squared: self.without_squared + other.without_squared,
        }
    }

    /// The cost that they show.
    pub fn cost(&self) -> FreeCost {
        let is_enough = self.pairs >= PAIRS_MIN && self.requests_off >= REQUESTS_MIN;
        let is_told = is_enough && self.without > 0.0;
        let cost = is_told.then(|| self.difference / self.without);
        FreeCost {
            slots: self.pairs,
            requests_without: self.requests_off,
            requests_with: self.requests_on,
            cost,
            standard_error: cost.map(|cost| self.standard_error(cost)),
        }
    }

    /// Standard error of a ratio of two means over pairs (Cochran 1977, section 6.4): from the residuals of
    /// the pairs.
    fn standard_error(&self, cost: f64) -> f64 {
        let residuals = self.difference_squared - 2.0 * cost * self.product
            + cost * cost * self.without_squared;
        let pairs = self.pairs as f64;
        (residuals.max(0.0) * pairs / (pairs - 1.0)).sqrt() / self.without
    }
}

/// Cost of free work to clients, by slots without it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FreeCost {
    /// Slots without free work that have counterparts with it.
    pub slots: u64,
    /// Requests of clients in them.
    pub requests_without: u64,
    /// Requests of clients in the slots beside them.
    pub requests_with: u64,
    /// By how much longer the mean response is with free work, as a share. None when too few requests
    /// tell.
    pub cost: Option<f64>,
    /// Standard error of the cost.
    pub standard_error: Option<f64>,
}

impl std::fmt::Display for FreeCost {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { slots, requests_without, .. } = self;
        match (self.cost, self.standard_error) {
            (Some(cost), Some(error)) => write!(
                out,
                "free work costs clients {:.2} ± {:.2} % of the mean response (standard error; {requests_without} \
                 requests in {slots} slots without free work)",
                100.0 * cost,
                100.0 * error
            ),
            _ => write!(
                out,
                "too few requests tell what free work costs clients: {requests_without} in {slots} slots \
                 without free work"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
