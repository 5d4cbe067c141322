//! Choice of the stripe unit: one that is still the best when the load grows.
//!
//! Small units make a request that is alone short, and cost seeks on many disks. So the unit with the shortest
//! response today is often the first that cannot serve more. The plan looks at a load that is higher by the
//! headroom, takes the unit that is the best there, and says from which load on it no longer is.
//!
//! Buffers of drives, and requests that follow each other, hide what a unit costs the mechanics. Both may help
//! less on another day. So the drives have to serve that load at worst, too: by a simulation of the mechanics
//! alone, and by the model, in which requests lie anywhere.

use freewheel_units::Bytes;
use serde::Serialize;

use super::confidence::{PARTS, half_interval};

/// Responses of two units that differ by less than this share are the same.
const SAME: f64 = 0.02;
/// Responses that differ by more than this share differ, however unsure their difference is: bursts make every
/// difference unsure, and not every unit as good.
const UNSURE_MAX: f64 = 0.1;
/// Loads that are tried beyond the headroom, in multiples of it.
pub const BEYOND: [f64; 4] = [1.5, 2.0, 3.0, 4.0];

/// A simulated mean response, with its parts by equal numbers of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// Mean of all, in seconds.
    pub mean_s: f64,
    /// Means of the parts; none of a run that is too short for them.
    pub parts_s: Option<[f64; PARTS]>,
}

impl Mean {
    /// True if it is no longer than `best`, or only so little that another run may turn it round.
    fn is_as_good_as(&self, best: &Self) -> bool {
        let longer = self.mean_s - best.mean_s;
        longer <= f64::max(SAME * best.mean_s, f64::min(self.noise(best), UNSURE_MAX * best.mean_s))
    }

    /// Largest change of the difference to `other` in another run. Both have the same requests, so that a
    /// burst which both suffer is none of it.
    fn noise(&self, other: &Self) -> f64 {
        let (Some(own), Some(others)) = (self.parts_s, other.parts_s) else { return 0.0 };
        half_interval(&std::array::from_fn(|part| own[part] - others[part]))
    }
}

/// Drives that are busy for this share of the time at worst are saturated.
const SATURATED: f64 = 0.95;

/// Simulated results of every unit under a load.
#[derive(Debug, Clone, PartialEq)]
pub struct AtLoad {
    /// Factor of the load.
    pub factor: f64,
    /// Mean of each unit, ascending; none for one that cannot serve the load, or has no room.
    pub means: Vec<Option<Mean>>,
    /// Share of the time in which the drives are busy with each unit at worst.
    pub busy: Vec<f64>,
}

impl AtLoad {
    /// Units that serve this load, even at worst.
    fn serving(&self) -> Vec<bool> {
        self.means
            .iter()
            .zip(&self.busy)
            .map(|(mean, busy)| mean.is_some() && *busy < SATURATED)
            .collect()
    }

    /// The units among these with the shortest response, or with one as good.
    fn good(&self, is_meant: &[bool]) -> Vec<bool> {
        let Some(best) = self.best(is_meant).and_then(|unit| self.means[unit]) else {
            return vec![false; self.means.len()];
        };
        let is_good =
            |mean: &Option<Mean>| mean.as_ref().is_some_and(|mean| mean.is_as_good_as(&best));
        self.means.iter().zip(is_meant).map(|(mean, meant)| *meant && is_good(mean)).collect()
    }

    /// The unit among these with the shortest response.
    fn best(&self, is_meant: &[bool]) -> Option<usize> {
        let known = (0..self.means.len()).filter(|&unit| is_meant[unit]);
        let known = known.filter_map(|unit| Some((unit, self.mean_s(unit)?)));
        known.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(unit, _)| unit)
    }

    /// Mean with a unit, in seconds.
    pub fn mean_s(&self, unit: usize) -> Option<f64> {
        self.means[unit].map(|mean| mean.mean_s)
    }
}

/// The units that may be taken: those that are as good as the best with the headroom, and of these the ones that
/// are as good as the best of them now.
fn as_good(now: &AtLoad, with_headroom: &AtLoad) -> Vec<bool> {
    now.good(&with_headroom.good(&with_headroom.serving()))
}

/// The unit to take, the best with the headroom of those that may be taken, and the others. Of several that are
/// the same the largest, which costs the fewest seeks. None where no unit serves that load.
pub fn unit_to_take(now: &AtLoad, with_headroom: &AtLoad) -> Option<(usize, Vec<usize>)> {
    let good = as_good(now, with_headroom);
    let most_s = (1.0 + SAME) * with_headroom.mean_s(with_headroom.best(&good)?)?;
    let take = (0..good.len()).rfind(|&unit| {
        good[unit] && with_headroom.mean_s(unit).is_some_and(|mean_s| mean_s <= most_s)
    })?;
    Some((take, (0..good.len()).filter(|&unit| good[unit] && unit != take).collect()))
}

/// True if a unit is still the best under this load, or as good.
pub fn holds(unit: usize, at: &AtLoad) -> bool {
    at.good(&at.serving())[unit]
}

/// The unit to take, and how far it holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StripeChoice {
    /// The unit.
    pub unit: Bytes,
    /// Other units that are as good: another seed or another day may turn them round.
    pub as_good: Vec<Bytes>,
    /// The highest load that was tried at which it is the best or as good, in multiples of the plan's load.
    pub holds_up_to: f64,
    /// Load at which another unit is better; none if it held at every load that was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<StripeTurn>,
}

/// A load at which the unit to take no longer holds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StripeTurn {
    /// The load, in multiples of the plan's.
    pub at: f64,
    /// The unit to take there; none if no unit serves that load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Bytes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means in ms of units under a load, without noise; 0 for a unit that cannot serve it.
    fn at(factor: f64, ms: &[f64]) -> AtLoad {
        let mean = |&ms: &f64| {
            (ms > 0.0).then(|| Mean { mean_s: ms / 1e3, parts_s: Some([ms / 1e3; PARTS]) })
        };
        AtLoad { factor, means: ms.iter().map(mean).collect(), busy: vec![0.1; ms.len()] }
    }

    fn take(now: &AtLoad, with_headroom: &AtLoad) -> Option<usize> {
        unit_to_take(now, with_headroom).map(|(unit, _)| unit)
    }

    #[test]
    fn unit_is_best_with_headroom() {
        let now = at(1.0, &[0.76, 0.9, 1.5, 2.3]);
        assert_eq!(take(&now, &at(2.0, &[0.0, 9.0, 2.0, 2.4])), Some(2));
        assert_eq!(take(&now, &now), Some(0));
        assert_eq!(take(&now, &at(2.0, &[0.0; 4])), None);
        assert!(holds(2, &at(3.0, &[0.0, 0.0, 2.02, 2.0])));
        assert!(!holds(2, &at(3.0, &[0.0, 0.0, 2.05, 2.0])));
        assert!(!holds(2, &at(3.0, &[0.0, 0.0, 0.0, 2.0])));
    }

    #[test]
    fn saturated_unit_has_no_headroom() {
        let now = at(1.0, &[0.76, 0.9, 1.5, 2.3]);
        let saturated = AtLoad { busy: vec![1.0, 0.95, 0.5, 0.2], ..now.clone() };
        assert_eq!(take(&now, &saturated), Some(2));
        assert!(holds(2, &saturated) && !holds(0, &saturated));
        assert_eq!(take(&now, &AtLoad { busy: vec![1.0; 4], ..now.clone() }), None);
    }

    #[test]
    fn units_good_now_and_later_are_named() {
        let with_headroom = at(2.0, &[2.0, 2.01, 2.02, 2.03]);
        let now = at(1.0, &[1.0, 1.5, 1.51, 2.0]);
        assert_eq!(unit_to_take(&now, &with_headroom), Some((0, vec![])));
        let now = at(1.0, &[2.0, 1.5, 1.51, 2.0]);
        assert_eq!(unit_to_take(&now, &with_headroom), Some((2, vec![1])));
        assert_eq!(unit_to_take(&at(1.0, &[1.0; 4]), &with_headroom), Some((3, vec![0, 1, 2])));
    }

    #[test]
    fn difference_within_noise_counts_as_none() {
        let parts = |of: fn(usize) -> f64| -> Mean {
            let parts_s: [f64; PARTS] = std::array::from_fn(of);
            Mean { mean_s: parts_s.iter().sum::<f64>() / PARTS as f64, parts_s: Some(parts_s) }
        };
        let best = parts(|_| 1.0);
        // 5 % longer, in every part or in one.
        assert!(!parts(|_| 1.05).is_as_good_as(&best));
        assert!(parts(|part| if part == 0 { 1.5 } else { 1.0 }).is_as_good_as(&best));
        // A burst that makes the response twice as long, and all of it in one part.
        assert!(!parts(|part| if part == 0 { 11.0 } else { 1.0 }).is_as_good_as(&best));
        // A burst in both is no noise of their difference.
        let burst = |more: f64| {
            let parts_s = std::array::from_fn(|part| if part == 0 { 9.1 } else { 0.1 } + more);
            Mean { mean_s: 1.0 + more, parts_s: Some(parts_s) }
        };
        assert!(!burst(0.05).is_as_good_as(&burst(0.0)));
    }
}
