//! The best path of the head over the tracks of one cylinder.
//!
//! Changing heads costs little beside a turn: where wanted blocks are sparse, a gap that visits
//! several tracks of a cylinder takes several times what the best one of them offers. What is wanted
//! becomes *steps*, each with its time and surface; the best path is the heaviest chain of steps of
//! which each can be reached from the one before. Steps come in order of their start, so one pass
//! finds it: the best chain that stays on the surface, or the best of any that ended a head switch
//! ago.

use freewheel_units::Op;

use super::reach::Reach;
use super::tracks::Tracks;
use super::wanted::{Item, Timed, Wanted};
use crate::drive::Position;

/// Something wanted, with the time at which it passes, in nanoseconds from the beginning of the gap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub start: u64,
    pub end: u64,
    pub surface: u32,
    pub item: Item,
    /// Its worth times the price of its region.
    pub worth: u64,
}

/// The heaviest chains over a set of steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Chains {
    steps: Vec<Step>,
    /// For each step the heaviest chain that ends with it, and the step before it there.
    weights: Vec<u64>,
    before: Vec<u32>,
    /// Steps in order of their ends.
    by_end: Vec<u32>,
    /// Best chain among the first of `by_end`, and its last step.
    best_by_end: Vec<(u64, u32)>,
    on_surface: Vec<(u64, u32)>,
}

/// No step.
const NONE: u32 = u32::MAX;

/// A chain: its worth, and its last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    pub worth: u64,
    last: u32,
}

impl Chain {
    pub const EMPTY: Self = Self { worth: 0, last: NONE };
}

/// Worth of what can be had on a cylinder when no other is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Within {
    /// On all tracks together, each without regard to the others: no chain is heavier.
    pub sum: u32,
    /// On the best of them.
    pub most: u32,
    pub surface: u32,
}

impl Within {
    pub fn new(tracks: &Tracks, wanted: &Wanted, reach: &Reach<'_>, cylinder: u32, op: Op) -> Self {
        let mut within = Self::default();
        for surface in 0..tracks.surfaces() {
            let at = Position { cylinder, surface };
            let track = tracks.track(cylinder, surface);
            let stay = reach.stay(at, op);
            let Some(place) = tracks.place(at).filter(|_| stay.length() > 0) else { continue };
            let passing = tracks.passing(&place, reach.time(stay.from), stay.length());
            let value = wanted.value(tracks, track, &place, passing, op);
            within.sum += value;
            if value > within.most {
                (within.most, within.surface) = (value, surface);
            }
        }
        within
    }
}

impl Chains {
    /// Gathers all that is wanted in direction `op` on some surfaces of a cylinder.
    pub fn gather(
        &mut self,
        tracks: &Tracks,
        wanted: &Wanted,
        reach: &Reach<'_>,
        (cylinder, surfaces): (u32, std::ops::Range<u32>),
        op: Op,
        price: u64,
    ) {
        self.steps.clear();
        let rotation = tracks.drive().rotation();
        for surface in surfaces {
            let at = Position { cylinder, surface };
            let Some(place) = tracks.place(at) else { continue };
            wanted.timed(tracks, reach, at, op, reach.stay(at, op), &mut |Timed { at, item }| {
                let phase = rotation.phase_ns(reach.time(at));
                let sector = tracks.sector_on(tracks.track(cylinder, surface), item.first);
                let end = tracks.edge_ns(&place, sector + item.blocks);
                let span = match rotation.forward_ns(phase, end) {
                    0 => rotation.period_ns(),
                    span => span,
                };
                let worth = u64::from(item.value) * price;
                self.steps.push(Step { start: at, end: at + span, surface, item, worth });
            });
        }
    }

    /// Turns time around: chains then end where they begin, and begin where they end.
    pub fn reverse(&mut self, length: u64) {
        for step in &mut self.steps {
            (step.start, step.end) = (length - step.end, length - step.start);
        }
    }

    /// Finds the heaviest chain. `switch` is the time to change heads.
    pub fn solve(&mut self, surfaces: u32, switch: u64) -> Chain {
        self.steps.sort_unstable_by_key(|step| (step.start, step.surface, step.item.first));
        let steps = &self.steps;
        self.by_end.clear();
        self.by_end.extend(0..steps.len() as u32);
        self.by_end.sort_by_key(|&step| steps[step as usize].end);
        self.weights.clear();
        self.before.clear();
        self.best_by_end.clear();
        self.on_surface.clear();
        self.on_surface.resize(surfaces as usize, (0, NONE));
        let (mut ended, mut anywhere, mut best) = (0, (0, NONE), Chain::EMPTY);
        for (number, step) in steps.iter().enumerate() {
            let reachable = step.start.checked_sub(switch);
            while let Some(&candidate) = self.by_end.get(ended) {
                let candidate = candidate as usize;
                if candidate >= number || reachable.is_none_or(|by| steps[candidate].end > by) {
                    break;
                }
                if self.weights[candidate] > anywhere.0 {
                    anywhere = (self.weights[candidate], candidate as u32);
                }
                ended += 1;
            }
            let mut stays = self.on_surface[step.surface as usize];
            // Steps of different layers may overlap: then the chain goes on from what was over.
            while let Some(last) = steps.get(stays.1 as usize) {
                let moves = if last.surface == step.surface { 0 } else { switch };
                if last.end + moves <= step.start {
                    break;
                }
                let before = self.before[stays.1 as usize];
                stays = (self.weights.get(before as usize).copied().unwrap_or(0), before);
            }
            let (weight, before) = if stays.0 >= anywhere.0 { stays } else { anywhere };
            let weight = weight + step.worth;
            self.weights.push(weight);
            self.before.push(before);
            let known = &mut self.on_surface[step.surface as usize];
            if weight > known.0 {
                *known = (weight, number as u32);
            }
            if weight > best.worth {
                best = Chain { worth: weight, last: number as u32 };
            }
        }
        let mut heaviest = (0, NONE);
        for &step in &self.by_end {
            let weight = self.weights[step as usize];
            if weight > heaviest.0 {
                heaviest = (weight, step);
            }
            self.best_by_end.push(heaviest);
        }
        best
    }

    /// The heaviest chain that has ended by `time`.
    pub fn ended_by(&self, time: u64) -> Chain {
        let ended = self.by_end.partition_point(|&step| self.steps[step as usize].end <= time);
        ended.checked_sub(1).map_or(Chain::EMPTY, |at| {
            let (worth, last) = self.best_by_end[at];
            Chain { worth, last }
        })
    }

    /// Every step with the heaviest chain that ends with it.
    pub fn chains(&self) -> impl Iterator<Item = (&Step, Chain)> {
        self.steps.iter().enumerate().map(|(number, step)| {
            (step, Chain { worth: self.weights[number], last: number as u32 })
        })
    }

    /// The steps of a chain, the last one first.
    pub fn walk(&self, chain: Chain) -> impl Iterator<Item = &Step> {
        let mut at = chain.last;
        std::iter::from_fn(move || {
            let step = self.steps.get(at as usize)?;
            at = self.before[at as usize];
            Some(step)
        })
    }
}
