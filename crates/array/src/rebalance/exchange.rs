//! Two moves where one is not possible: a file with hardly any requests leaves the disk that a hot file
//! goes to.
//!
//! ```text
//!   hot disk    [ hot file ][ free ]          [ free     ][ cold ]
//!   cool disk   [ cold ][ other files ]       [ hot file ][ other files ]
//! ```
//! The cold file goes first, so neither move needs room that is not there. It may go to any disk. What both
//! save is worked out on a copy of the state, as the moves change each other's gain.

use freewheel_units::Blocks;

use super::balancer::{Balancer, RankedMove, RebalanceSpec};

/// Moves without room that are looked at: those that would save most.
const WANTED: usize = 16;
/// Files that may make room for one of them: the coldest ones of the target.
const COLDEST: usize = 256;

/// A move for which there is no room.
struct Wanted {
    saved: f64,
    file: usize,
    from: u32,
    to: u32,
}

impl Balancer<'_> {
    /// The pair of moves that saves most within the horizon, its cost deducted. The first makes room for
    /// the second. None where no pair saves enough: twice what one move has to save.
    pub fn next_exchange(&mut self, spec: &RebalanceSpec) -> Option<[RankedMove; 2]> {
        let least_saved = self.least_saved_by_both(spec);
        let mut best: Option<([RankedMove; 2], f64)> = None;
        for wanted in self.moves_without_room(spec, &least_saved) {
            let least_saved = least_saved[wanted.from as usize];
            for pair in self.pairs(&wanted, spec) {
                let saved: f64 = pair.iter().map(|wanted| wanted.saved).sum();
                let net = net_of_both(&pair, spec.horizon_s);
                let is_better = best.as_ref().is_none_or(|(_, of_best)| net > *of_best);
                if saved >= least_saved && net > 0.0 && is_better {
                    best = Some((pair, net));
                }
            }
        }
        best.map(|(pair, _)| pair)
    }

    /// Least saving of a pair. Beside a hopeless file every wait is endless: there it has to save anything.
    fn least_saved_by_both(&self, spec: &RebalanceSpec) -> Vec<f64> {
        self.least_saved(spec)
            .into_iter()
            .zip(0..)
            .map(|(one, disk)| match self.is_lost(disk) {
                true => f64::MIN_POSITIVE,
                false => 2.0 * one,
            })
            .collect()
    }

    /// Moves that would save enough and have no room, the best first.
    fn moves_without_room(&mut self, spec: &RebalanceSpec, least_saved: &[f64]) -> Vec<Wanted> {
        let cheapest_first = self.cheapest_first();
        let targets = self.targets(&cheapest_first);
        let mut all = Vec::new();
        for (file, from) in self.candidates(&cheapest_first) {
            let gone = self.less_present(file, from);
            let least_saved = least_saved[from as usize];
            if gone < least_saved {
                continue;
            }
            for &to in &targets {
                if to == from || !self.can_hold(to, file) {
                    continue;
                }
                let blocks = self.files()[file].blocks;
                let saved = gone - self.more_present(file, to);
                if saved >= least_saved && !self.has_room(to, blocks, spec.free_share) {
                    all.push(Wanted { saved, file, from, to });
                }
            }
        }
        all.extend(self.rescues_without_room(spec));
        all.sort_by(|a, b| b.saved.total_cmp(&a.saved));
        all.truncate(WANTED);
        all
    }

    /// Moves of files beside a hopeless one to disks that could serve them and have no room.
    fn rescues_without_room(&mut self, spec: &RebalanceSpec) -> Vec<Wanted> {
        let mut all = Vec::new();
        for (file, from) in self.beside_hopeless() {
            let (gone, blocks) = (self.less_present(file, from), self.files()[file].blocks);
            for to in self.rescuers(file) {
                if !self.has_room(to, blocks, spec.free_share) {
                    let saved = gone - self.more_present(file, to);
                    all.push(Wanted { saved, file, from, to });
                }
            }
        }
        all
    }

    /// The wanted move after one of the coldest file that makes enough room and has a place to go to.
    fn pairs(&self, wanted: &Wanted, spec: &RebalanceSpec) -> Vec<[RankedMove; 2]> {
        let &Wanted { file, from, to, .. } = wanted;
        let missing = self.missing(to, self.files()[file].blocks, spec.free_share);
        let coldest =
            self.coldest(to).take(COLDEST).filter(|other| self.files()[*other].blocks >= missing);
        let mut placed = coldest.map(|cold| (cold, self.places_for(cold, to, from, spec)));
        let Some((cold, places)) = placed.find(|(_, places)| !places.is_empty()) else {
            return Vec::new();
        };
        places
            .into_iter()
            .filter_map(|place| {
                let mut after = self.clone();
                let first = after.tried(cold, to, place, spec);
                let has_room = after.has_room(to, after.files()[file].blocks, spec.free_share);
                has_room.then(|| [first, after.tried(file, from, to, spec)])
            })
            .collect()
    }

    /// Candidate disks for a file of disk `of`: the one on which load is cheapest, and the one that the hot
    /// file leaves. Beside a hopeless file goes only a file without requests.
    fn places_for(&self, file: usize, of: u32, left: u32, spec: &RebalanceSpec) -> Vec<u32> {
        let blocks = self.files()[file].blocks;
        let takes = |disk: &u32| {
            *disk != of
                && (!self.is_lost(*disk) || self.files()[file].rate <= 0.0)
                && self.has_room(*disk, blocks, spec.free_share)
        };
        let cheapest = self.cheapest_first().into_iter().find(takes);
        let mut places: Vec<u32> = cheapest.into_iter().chain([left]).filter(takes).collect();
        places.dedup();
        places
    }

    /// Blocks by which the room for a file falls short.
    fn missing(&self, disk: u32, blocks: Blocks, free_share: f64) -> Blocks {
        let (size, free) = self.room(disk);
        let kept = free_share * size.get() as f64;
        let missing = blocks.get() as f64 + kept - free.get() as f64;
        Blocks::new(libm::ceil(missing.max(1.0)) as u64)
    }

    /// Moves a file, and says what that saved and cost.
    fn tried(&mut self, file: usize, from: u32, to: u32, spec: &RebalanceSpec) -> RankedMove {
        let present = |balancer: &Self| {
            let served = balancer.loads().into_iter().zip(0..);
            let served = served.filter(|(_, disk)| !balancer.is_lost(*disk));
            served.map(|(load, _)| load.compared_present()).sum::<f64>()
        };
        let (before, cost) = (present(self), self.copy_cost(file, from, to, spec));
        let is_rescue = self.is_lost(from);
        let endless = if is_rescue { self.less_present(file, from) } else { 0.0 };
        self.relocate(file, to);
        let saved = endless + before - present(self);
        // Of an endless wait there is no mean that could become shorter.
        let gain_s = if is_rescue { 0.0 } else { saved / self.rate() };
        RankedMove { file, from, to, gain_s, saved, cost }
    }
}

/// Net saving of both moves until the horizon, which begins with the first copy.
fn net_of_both(pair: &[RankedMove; 2], horizon_s: f64) -> f64 {
    let [first, second] = pair;
    let rest = (horizon_s - first.cost.copy_s).max(0.0);
    first.net(horizon_s) + second.net(rest)
}
