//! Order in which changes are shown.

use super::{ChangeCost, Changes, NOTICEABLE, Part, Tried};

/// Parts with a row each, where something helps.
const PARTS: [Part; 5] =
    [Part::Order, Part::ReadCache, Part::Prefetch, Part::WriteBuffer, Part::Drives];

/// Most changes of a ranking.
const ROWS: usize = 8;

/// A change of the goal under each replay; twice the same where there is one.
pub(super) type Gains = [f64; 2];

/// The one under which it is worse.
fn surest(gains: Gains) -> f64 {
    gains[0].max(gains[1])
}

/// True if a change gains about as much as another one under both replays.
fn is_about_as_good(gains: Gains, best: Gains) -> bool {
    (0..2).all(|replay| gains[replay] < best[replay] + NOTICEABLE)
}

/// Cheapest of the choices whose gains are about as good as the best.
pub(super) fn cheapest_of_best<T>(
    choices: impl Iterator<Item = (T, Gains)>,
    cost: impl Fn(&T) -> ChangeCost,
) -> Option<(T, f64)> {
    let choices: Vec<(T, Gains)> = choices.collect();
    let all = choices.iter().map(|&(_, gains)| gains);
    let best = all.min_by(|&a, &b| surest(a).total_cmp(&surest(b)))?;
    let choices = choices.into_iter().filter(|&(_, gains)| is_about_as_good(gains, best));
    // Of equal costs the best counts.
    choices
        .min_by(|(a, x), (b, y)| cost(a).cmp(&cost(b)).then(surest(*x).total_cmp(&surest(*y))))
        .map(|(choice, gains)| (choice, surest(gains)))
}

impl Changes {
    /// The best change of a part: of those that help about as much, the cheapest.
    pub fn best_of(&self, part: Part) -> Option<&Tried> {
        let all = self.tried.iter().filter(|tried| tried.change.part() == part);
        let all = all.map(|tried| (tried, tried.gains(self.goal)));
        cheapest_of_best(all, |tried| tried.cost).map(|(tried, _)| tried)
    }

    /// The best change of each part, as far as it may help, and then the next best that need less than these or
    /// bring more; at most eight. The cheapest kind comes first, and within a kind what is surest to help.
    pub fn ranking(&self) -> Vec<&Tried> {
        let best = PARTS.iter().filter_map(|&part| self.best_of(part));
        let mut list: Vec<&Tried> = best.filter(|tried| self.may_help(tried)).collect();
        let others: Vec<&Tried> = self
            .tried
            .iter()
            .filter(|tried| list.iter().all(|other| other.title != tried.title))
            .filter(|tried| self.is_worth_a_row(tried))
            .collect();
        list.extend(others.into_iter().take(ROWS.saturating_sub(list.len())));
        list.sort_by(|a, b| {
            let by_class = a.cost.class().cmp(&b.cost.class());
            by_class.then(a.surest(self.goal).total_cmp(&b.surest(self.goal)))
        });
        list
    }

    /// Number of changes of the ranking: the best of each part, and then those that are surest to help.
    pub(super) fn best(&self, count: usize) -> Vec<&Tried> {
        let mut list = self.ranking();
        list.sort_by(|a, b| {
            let by_part = self.is_best(b).cmp(&self.is_best(a));
            by_part.then(a.surest(self.goal).total_cmp(&b.surest(self.goal)))
        });
        list.truncate(count);
        list
    }

    fn is_best(&self, tried: &Tried) -> bool {
        self.best_of(tried.change.part()).is_some_and(|best| best.title == tried.title)
    }

    /// The best change of each part of which none helps.
    pub fn without_help(&self) -> impl Iterator<Item = &Tried> {
        let best = PARTS.iter().filter_map(|&part| self.best_of(part));
        best.filter(|tried| !self.may_help(tried))
    }

    /// True if a change helps noticeably under one replay at least.
    fn may_help(&self, tried: &Tried) -> bool {
        let [own, other] = tried.gains(self.goal);
        own.min(other) <= -NOTICEABLE
    }

    /// True if a change may help, and none of its part that costs no more does about as much.
    fn is_worth_a_row(&self, tried: &Tried) -> bool {
        let goal = self.goal;
        let replaces = |other: &Tried| {
            other.change.part() == tried.change.part()
                && is_about_as_good(other.gains(goal), tried.gains(goal))
        };
        // Of equal costs the first is better, or as good.
        let place = self.tried.iter().position(|other| other.title == tried.title).unwrap_or(0);
        let (before, behind) = self.tried.split_at(place);
        let is_replaced = before.iter().filter(|other| other.cost <= tried.cost).any(replaces)
            || behind.iter().filter(|other| other.cost < tried.cost).any(replaces);
        self.may_help(tried) && !is_replaced
    }
}

impl ChangeCost {
    /// Class of the price: nothing, a program, memory, memory that lasts, drives.
    pub fn class(&self) -> u32 {
        match self {
            Self::Setting => 0,
            Self::Software => 1,
            Self::Memory { .. } => 2,
            Self::NonVolatileMemory { .. } => 3,
            Self::Drives { .. } => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Bytes;

    use super::*;

    #[test]
    fn ranking_of_equal_effects_takes_cheapest() {
        let memory = |mib: u64| ChangeCost::Memory { bytes: Bytes::new(mib << 20) };
        let best = |list: &[(ChangeCost, f64)]| {
            let gains = list.iter().map(|&(cost, gain)| (cost, [gain, gain]));
            cheapest_of_best(gains, |&cost| cost).map(|(cost, _)| cost)
        };
        let sizes = [(memory(512), -0.50), (memory(256), -0.49), (memory(64), -0.30)];
        assert_eq!(best(&sizes), Some(memory(256)));
        let kinds = [(ChangeCost::Drives { more: 1 }, -0.5), (ChangeCost::Software, -0.485)];
        assert_eq!(best(&kinds), Some(ChangeCost::Software));
        assert_eq!(best(&[]), None);
        // Equal under one replay is not equal.
        let sizes = [(memory(256), [-0.25, -0.01]), (memory(8), [0.0, 0.0])];
        let (cheapest, gain) = cheapest_of_best(sizes.into_iter(), |&cost| cost).unwrap();
        assert_eq!((cheapest, gain), (memory(256), -0.01));
    }
}
