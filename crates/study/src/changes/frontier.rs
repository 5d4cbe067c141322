//! Frontier of memory and drives: the systems that were tried and that no other one beats.

use freewheel_units::Bytes;
use serde::Serialize;

use super::{Candidate, ChangeCost, Combination, Goal, NOTICEABLE, UnderReplays};

/// A system of which none that was tried needs no more memory and drives and is noticeably better.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FrontierPoint {
    /// Names of the changes.
    pub titles: Vec<String>,
    /// Memory for copies of data that the drive has.
    pub memory: Bytes,
    /// Memory that keeps its data without power.
    pub non_volatile: Bytes,
    /// Further drives.
    pub drives: u32,
    /// Change of the goal against the system as it is, under the replay under which it is worse.
    pub change: f64,
    /// Improvement of today's goal beyond the best point that needs no more, as a share of today's.
    pub gain: f64,
    /// Memory of both kinds that it needs beyond that point.
    pub more_memory: Bytes,
    /// Drives that it needs beyond that point.
    pub more_drives: u32,
}

impl FrontierPoint {
    fn new(titles: Vec<String>, costs: impl Iterator<Item = ChangeCost>, change: f64) -> Self {
        let (memory, non_volatile) = (Bytes::ZERO, Bytes::ZERO);
        let mut point = Self {
            titles,
            memory,
            non_volatile,
            drives: 0,
            change,
            gain: -change,
            more_memory: Bytes::ZERO,
            more_drives: 0,
        };
        for cost in costs {
            match cost {
                ChangeCost::Setting | ChangeCost::Software => {}
                // Prefetching brings the memory of its control, and no more.
                ChangeCost::Memory { bytes } => point.memory = point.memory.max(bytes),
                ChangeCost::NonVolatileMemory { bytes } => point.non_volatile = bytes,
                ChangeCost::Drives { more } => point.drives = more,
            }
        }
        point
    }

    fn needs_no_more_than(&self, other: &Self) -> bool {
        self.memory <= other.memory
            && self.non_volatile <= other.non_volatile
            && self.drives <= other.drives
    }

    fn all_memory(&self) -> Bytes {
        self.memory + self.non_volatile
    }

    /// Compares it with the best of the points that need no more.
    fn beyond(&mut self, cheaper: &[Self]) {
        let base = cheaper.iter().filter(|other| other.needs_no_more_than(self));
        let base = base.min_by(|a, b| a.change.total_cmp(&b.change));
        let (change, memory, drives) = base
            .map_or((0.0, Bytes::ZERO, 0), |base| (base.change, base.all_memory(), base.drives));
        self.gain = change - self.change;
        self.more_memory = Bytes::new(self.all_memory().get() - memory.get());
        self.more_drives = self.drives - drives;
    }
}

/// The points that no other one beats, the cheapest first. One that is hardly better than a cheaper one is beaten.
pub(super) fn frontier(
    today: &UnderReplays,
    candidates: &[Candidate],
    together: Option<&(Combination, UnderReplays)>,
    goal: Goal,
) -> Vec<FrontierPoint> {
    let alone = candidates.iter().map(|Candidate { tried, run }| {
        let cost = std::iter::once(tried.cost);
        FrontierPoint::new(vec![tried.title.clone()], cost, run.surest(today, goal))
    });
    let together = together.map(|(combination, run)| {
        let titles = combination.steps.iter().map(|step| step.title.clone()).collect();
        let costs = combination.steps.iter().map(|step| step.cost);
        FrontierPoint::new(titles, costs, run.surest(today, goal))
    });
    let mut points: Vec<FrontierPoint> =
        alone.chain(together).filter(|point| point.change <= -NOTICEABLE).collect();
    // Cheapest first, and of one price the best first, so that every point is compared with those that may beat it.
    points.sort_by(|a, b| price(a).cmp(&price(b)).then(a.change.total_cmp(&b.change)));
    let mut frontier: Vec<FrontierPoint> = Vec::new();
    for point in points {
        if !frontier.iter().any(|other| {
            other.needs_no_more_than(&point) && other.change < point.change + NOTICEABLE
        }) {
            frontier.push(point);
        }
    }
    for place in 0..frontier.len() {
        let (cheaper, rest) = frontier.split_at_mut(place);
        rest[0].beyond(cheaper);
    }
    frontier
}

fn price(of: &FrontierPoint) -> (u32, Bytes, Bytes) {
    (of.drives, of.all_memory(), of.non_volatile)
}

#[cfg(test)]
mod tests {
    use super::super::{Change, Effect, Measured, Responses, Tried};
    use super::*;

    fn run(mean_ns: f64) -> UnderReplays {
        let mut own = Measured::default();
        own.response.mean_ns = mean_ns;
        own.by_slice = vec![Responses { sum_ns: mean_ns as u128, count: 1 }];
        UnderReplays { own, other: None }
    }

    fn candidate(title: &str, cost: ChangeCost, mean_ns: f64) -> Candidate {
        let change = Change::DriveQueue { depth: 1 };
        let config =
            freewheel_sim::config::SimConfig::parse("[workload]\nkind = \"closed\"\n", "test", &[]);
        let tried = Tried {
            change,
            title: title.into(),
            cost,
            control: None,
            measured: Measured::default(),
            effect: Effect::default(),
            other_replay: None,
            as_safe: None,
            variants: Vec::new(),
            config: config.unwrap(),
        };
        Candidate { tried, run: run(mean_ns) }
    }

    #[test]
    fn frontier_beats_costlier_hardly_better() {
        let memory = |mib: u64| ChangeCost::Memory { bytes: Bytes::new(mib << 20) };
        let all = [
            candidate("queue", ChangeCost::Setting, 90.0),
            candidate("8 MiB", memory(8), 91.0),
            candidate("64 MiB", memory(64), 50.0),
            candidate("512 MiB", memory(512), 49.0),
            candidate("2 drives", ChangeCost::Drives { more: 1 }, 20.0),
            candidate("4 drives", ChangeCost::Drives { more: 3 }, 19.0),
            candidate("nothing", ChangeCost::Setting, 99.0),
        ];
        let frontier = frontier(&run(100.0), &all, None, Goal::Mean);
        let titles: Vec<&str> = frontier.iter().map(|point| point.titles[0].as_str()).collect();
        assert_eq!(titles, ["queue", "64 MiB", "2 drives"]);
        let steps = frontier.iter().map(|of| (of.more_memory.get() >> 20, of.more_drives));
        assert_eq!(steps.collect::<Vec<_>>(), [(0, 0), (64, 0), (0, 1)]);
        let gains: Vec<f64> = frontier.iter().map(|point| (point.gain * 100.0).round()).collect();
        assert_eq!(gains, [10.0, 40.0, 70.0], "each beyond the setting");
    }
}
