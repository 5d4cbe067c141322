//! The best path of the head over the tracks of one cylinder.
//!
//! **Problem.** A change of heads takes little of a turn. Where wanted blocks are sparse, a gap that visits
//! several tracks of a cylinder takes several times what the best one of them offers. Which blocks?
//!
//! Wanted blocks become *steps*, each with its time and surface. A path is a *chain*: steps of which each
//! can be reached from the one before, either on the same surface or a change of heads later.
//!
//! ```text
//!  time      0    1    2    3    4    5    6      a change of heads takes 1
//!  surface 0 [A 8]               [D 8]
//!  surface 1           [B16]          [E 8]
//!  surface 2      [C 8]     [F 8]
//! ```
//!
//! In order of their beginnings: A has weight 8. C begins as A ends, too soon to change heads: 8. B
//! follows A, which ended at 1, by a change of heads: 8 + 16 = 24. F: on its surface after C, 16. D
//! follows B, which ended at 3: 24 + 8 = 32. E stays on B's surface: 24 + 8 = 32. The heaviest chain is
//! A, B, D with 32.
//!
//! One pass finds it. When a step begins, every chain that ended a change of heads ago is known, as its
//! steps began earlier; so the best chain before a step is the best on its surface or the best of those.
//!
//! Steps of different layers may overlap. On one surface all of them are taken, and the chain ends with
//! the last of them. A lighter chain that ends sooner may then be overlooked; without overlap the chain
//! found is the heaviest.

use freewheel_units::Op;

use super::cylinder_range::CylinderRange;
use super::field::Field;
use super::reach::{DwellWindow, Reach};
use super::tracks::{Tracks, Window};
use super::wanted::{Item, Sum, Timed};
use freewheel_model::drive::Position;

/// A wanted block or piece with the time in which it passes, in ns from the beginning of the gap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub start: u64,
    pub end: u64,
    pub surface: u32,
    pub item: Item,
    /// Worth of the item times the weight of its region.
    pub worth: u64,
}

/// The heaviest chains over a set of steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chains {
    /// With more items on a cylinder, a chain stays on the best track.
    steps_max: u32,
    steps: Vec<Step>,
    /// Beginnings of the steps with their numbers in `steps`: sorting numbers is faster than sorting steps.
    begins: Vec<(u64, u32)>,
    /// By slice of the time: where its next beginning goes.
    slices: Vec<u32>,
    /// By place in the order of beginnings: the heaviest chain that ends with that step.
    chains: Vec<Ended>,
    /// Ends of chains, and their places, ascending.
    by_end: Vec<(u64, u32)>,
    /// By number of chains of `by_end`: weight and last step of the best among them.
    best_by_end: Vec<(u64, u32)>,
    /// By surface: weight and last step of the best chain that ends there.
    on_surface: Vec<(u64, u32)>,
}

/// The heaviest chain that ends with a step.
#[derive(Debug, Clone, Copy)]
struct Ended {
    weight: u64,
    /// Time at which it has ended.
    end: u64,
    /// Place of the step before.
    before: u32,
    /// The step in `steps`.
    step: u32,
}

const NONE: u32 = u32::MAX;

/// A chain, by its last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    pub worth: u64,
    last: u32,
}

impl Chain {
    pub const EMPTY: Self = Self { worth: 0, last: NONE };
}

/// Worth of what passes on a cylinder when no other is visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CylinderWorth {
    /// Items on all tracks.
    pub items: u32,
    /// Sum over all tracks, each without regard to the others: no chain is heavier.
    pub sum: u32,
    /// Worth on the best track.
    pub most: u32,
    pub surface: u32,
    /// Surfaces with items, the lowest bit for the first.
    pub surfaces: u64,
    /// Bound on the worth of a chain over several tracks.
    pub switching: u64,
}

impl CylinderWorth {
    pub fn new(field: &Field<'_>, reach: &Reach<'_>, cylinder: u32, op: Op) -> Self {
        let Field { tracks, wanted, .. } = field;
        let (mut within, mut visits) = (Self::default(), Visits::NONE);
        for surface in 0..tracks.surfaces() {
            let at = Position { cylinder, surface };
            let Some(place) = tracks.place(at) else { continue };
            let Some((_, window)) = visits.get(tracks, reach, at, op) else { continue };
            let passing = tracks.passing(&place, &window);
            let Sum { items, value } = wanted.value(tracks, at, &place, passing, op, 0);
            within.items += items;
            within.sum += value;
            within.surfaces |= u64::from(items > 0) << surface;
            if value > within.most {
                // The first of equal tracks.
                (within.most, within.surface) = (value, surface);
            }
        }
        within.switching = visits.switching(field, reach, cylinder, op);
        within
    }

    /// The greatest worth of any chain, if it is sure to be that of the best track.
    pub fn alone(&self, steps_max: u32) -> Option<u32> {
        (self.items > steps_max || self.switching <= self.most.into()).then_some(self.most)
    }

    /// No chain is heavier.
    pub fn bound(&self) -> u64 {
        u64::from(self.sum).min(self.switching.max(self.most.into()))
    }
}

/// By how much edges of sectors, rounded to whole nanoseconds, may let two parts of a chain seem shorter.
const ROUNDING_NS: u64 = 2;

/// Stays on the tracks of one cylinder in one direction. They differ only by whether heads are switched on
/// the way there and on the way back, so four are computed at most.
struct Visits([Option<Visit>; 4]);

/// A stay and its window; None without time for it.
type Visit = Option<(DwellWindow, Window)>;

impl Visits {
    const NONE: Self = Self([None; 4]);

    #[inline]
    fn get(&mut self, tracks: &Tracks, reach: &Reach<'_>, at: Position, op: Op) -> Visit {
        let [from, to] = [reach.gap.from, reach.gap.to].map(|there| there.surface == at.surface);
        *self.0[usize::from(from) * 2 + usize::from(to)].get_or_insert_with(|| {
            let stay = reach.stay(at, op);
            let length = stay.length();
            (length > 0).then(|| (stay, tracks.window(reach.time(stay.from), length)))
        })
    }

    /// Bound on the worth of a chain that changes heads, within the stays so far: during a change no
    /// sector is transferred.
    fn switching(&self, field: &Field<'_>, reach: &Reach<'_>, cylinder: u32, op: Op) -> u64 {
        let from = self.0.iter().flatten().flatten().map(|(stay, _)| stay.from).min().unwrap_or(0);
        let to = self.0.iter().flatten().flatten().map(|(stay, _)| stay.to).max().unwrap_or(0);
        let switch = reach.cross_ns(0, 0, op);
        if switch < ROUNDING_NS {
            // Many changes could gain by rounding.
            return u64::MAX;
        }
        // Either part may seem shorter by the rounding of its edges. Each further change takes at least as
        // long as one more part gains by rounding.
        let length = (to + ROUNDING_NS).saturating_sub(from + switch);
        let sectors = field.tracks.sectors_max(CylinderRange::one(cylinder));
        field.ceiling().of(reach.sectors_in(length, sectors))
    }
}

/// Place at which steps are gathered.
pub(crate) struct StepSource {
    pub cylinder: u32,
    /// One bit each, the lowest for the first.
    pub surfaces: u64,
    pub op: Op,
    /// Weight of the cylinder's region.
    pub region_weight: u64,
}

impl Chains {
    pub fn new(steps_max: u32) -> Self {
        Self { steps_max, ..Self::default() }
    }

    /// The surfaces for a path on a cylinder: all, or with too many items the best one.
    pub fn surfaces(&self, field: &Field<'_>, reach: &Reach<'_>, cylinder: u32, op: Op) -> u64 {
        let Field { tracks, wanted, .. } = field;
        let sectors = tracks.sectors_max(CylinderRange::one(cylinder));
        let most = wanted.items_max(tracks, sectors, op).saturating_mul(tracks.surfaces());
        // Most cylinders have room for few items, and theirs need no count.
        if most <= self.steps_max {
            return u64::MAX >> (u64::BITS - tracks.surfaces());
        }
        let within = CylinderWorth::new(field, reach, cylinder, op);
        if within.items <= self.steps_max { within.surfaces } else { 1 << within.surface }
    }

    /// With more items on a cylinder, a chain stays on the best track.
    pub fn steps_max(&self) -> u32 {
        self.steps_max
    }

    /// Replaces the steps by all that passes there.
    pub fn gather(&mut self, field: &Field<'_>, reach: &Reach<'_>, source: StepSource) {
        let Field { tracks, wanted, .. } = field;
        let StepSource { cylinder, mut surfaces, op, region_weight } = source;
        self.steps.clear();
        let mut visits = Visits::NONE;
        while surfaces != 0 {
            let surface = surfaces.trailing_zeros();
            surfaces &= surfaces - 1;
            let on = Position { cylinder, surface };
            let Some((stay, window)) = visits.get(tracks, reach, on, op) else { continue };
            wanted.passages(tracks, on, op, stay, &window, &mut |Timed { at, item }, span| {
                let worth = u64::from(item.value) * region_weight;
                self.steps.push(Step { start: at, end: at + span, surface, item, worth });
            });
        }
    }

    /// Reverses time in a gap of `length` ns: chains then end where they began.
    pub fn reverse(&mut self, length: u64) {
        for step in &mut self.steps {
            // A chain that ends early in reversed time begins late: the head may arrive so late at the
            // cylinder.
            (step.start, step.end) = (length - step.end, length - step.start);
        }
    }

    /// Finds the heaviest chain. `switch` is the time in ns to change heads.
    pub fn solve(&mut self, surfaces: u32, switch: u64) -> Chain {
        self.sort();
        let Self { steps, begins, chains, by_end, on_surface, .. } = self;
        chains.clear();
        by_end.clear();
        on_surface.clear();
        on_surface.resize(surfaces as usize, (0, NONE));
        let (mut anywhere, mut best) = ((0, NONE), Chain::EMPTY);
        // Chains of `by_end` that a step may follow by now.
        let mut ended = 0;
        for (place, &(_, number)) in (0..).zip(begins.iter()) {
            let step = &steps[number as usize];
            // Chains that ended a change of heads ago may go on with this step. Steps come in order of
            // their beginnings, so they may go on with all later ones too.
            while let Some(&(end, chain)) = by_end.get(ended)
                && end + switch <= step.start
            {
                ended += 1;
                let weight = chains[chain as usize].weight;
                if weight > anywhere.0 {
                    anywhere = (weight, chain);
                }
            }
            // Of equal weight the chain that stays: no change of heads.
            let known = &mut on_surface[step.surface as usize];
            let (weight, before) = if known.0 >= anywhere.0 { *known } else { anywhere };
            let weight = weight + step.worth;
            // A step of another layer may lie within the one before it.
            let end = chains.get(before as usize).map_or(step.end, |chain| step.end.max(chain.end));
            chains.push(Ended { weight, end, before, step: number });
            insert(by_end, (end, place));
            // The heaviest chain of a surface; of equal ones the first, which ended no later.
            if weight > known.0 {
                *known = (weight, place);
            }
            if weight > best.worth {
                best = Chain { worth: weight, last: place };
            }
        }
        best
    }

    /// Brings the steps into the order of their beginnings: in it every step that may come before another
    /// is done before it.
    fn sort(&mut self) {
        let Self { steps, begins, slices, .. } = self;
        // Beginnings lie all over the stay. In as many slices of the time as there are steps few of them are
        // together, and those are sorted by comparison.
        let from = steps.iter().map(|step| step.start).min().unwrap_or(0);
        let to = steps.iter().map(|step| step.start).max().unwrap_or(0);
        let shift = (u64::BITS - (to - from).leading_zeros())
            .saturating_sub(steps.len().next_power_of_two().ilog2());
        slices.clear();
        slices.resize(((to - from) >> shift) as usize + 1, 0);
        for step in steps.iter() {
            slices[((step.start - from) >> shift) as usize] += 1;
        }
        let mut before = 0;
        for count in slices.iter_mut() {
            before += std::mem::replace(count, before);
        }
        begins.clear();
        begins.resize(steps.len(), (0, 0));
        for (number, step) in (0u32..).zip(steps.iter()) {
            let at = &mut slices[((step.start - from) >> shift) as usize];
            begins[*at as usize] = (step.start, number);
            *at += 1;
        }
        // Each slice now ends where the next one's first beginning went. Of steps that begin together the
        // one gathered first comes first: that of the lower surface.
        let mut first = 0;
        for &end in slices.iter() {
            let end = end as usize;
            if end > first + 1 {
                begins[first..end].sort_unstable();
            }
            first = end;
        }
    }

    /// Makes the chains ready for [`Self::ended_by`].
    pub fn order(&mut self) {
        self.best_by_end.clear();
        // Prefix maxima: the best chain ended by a time is one look-up.
        let mut heaviest = (0, NONE);
        for &(_, chain) in &self.by_end {
            let weight = self.chains[chain as usize].weight;
            if weight > heaviest.0 {
                heaviest = (weight, chain);
            }
            self.best_by_end.push(heaviest);
        }
    }

    /// The heaviest chain that has ended by `time`.
    pub fn ended_by(&self, time: u64) -> Chain {
        self.best_of(self.by_end.partition_point(|&(end, _)| end <= time))
    }

    /// The heaviest of the first chains to end.
    fn best_of(&self, ended: usize) -> Chain {
        ended.checked_sub(1).map_or(Chain::EMPTY, |at| {
            let (worth, last) = self.best_by_end[at];
            Chain { worth, last }
        })
    }

    /// The heaviest chain with each step as its last, and when it has ended.
    pub fn chains(&self) -> impl Iterator<Item = (u64, Chain)> {
        let numbered = (0..).zip(&self.chains);
        numbered.map(|(last, chain)| (chain.end, Chain { worth: chain.weight, last }))
    }

    /// The steps of a chain, the last one first.
    pub fn walk(&self, chain: Chain) -> impl Iterator<Item = &Step> {
        let mut at = chain.last;
        std::iter::from_fn(move || {
            let chain = self.chains.get(at as usize)?;
            at = chain.before;
            Some(&self.steps[chain.step as usize])
        })
    }
}

/// Inserts the end of a chain behind all that end no later.
#[inline]
fn insert(by_end: &mut Vec<(u64, u32)>, chain: (u64, u32)) {
    by_end.push(chain);
    // Of blocks of one size the first to begin is the first to end, so that it mostly stays the last. Where
    // sizes differ it passes those that began before it and end later.
    let mut at = by_end.len() - 1;
    while at > 0 && by_end[at - 1].0 > chain.0 {
        by_end[at] = by_end[at - 1];
        at -= 1;
    }
    by_end[at] = chain;
}
