//! The freeblock scheduler against an oracle that lets every wanted piece pass under the head, on
//! every track, one by one.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use freewheel_model::drive::{Departure, Drive, Position, SEEK_CLASSES, SeekMargins};
use freewheel_model::freeblock::{
    Ends, FreeRun, LayerKey, Opportunity, Options, Planner, Rule, Scheduler,
};
use freewheel_units::{Blocks, Bytes, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

use common::any_drive;
use freewheel_model::drive::spec::{ByOp, DriveSpec};

/// Part of a wanted block in consecutive sectors of one track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    first: u64,
    blocks: u32,
    at: Position,
}

/// What is wanted, as a plain list.
struct Oracle {
    drive: Arc<Drive>,
    /// Pieces still wanted, of every wanted block of every layer.
    wanted: BTreeMap<(usize, u64), Vec<Piece>>,
    layers: Vec<LayerKey>,
    /// What a block counts for on each cylinder.
    prices: Vec<u64>,
}

impl Oracle {
    /// Nothing is wanted, and all counts the same everywhere.
    fn new(drive: &Arc<Drive>) -> Self {
        let prices = vec![1; drive.seek().distance_max() as usize + 1];
        Self { drive: Arc::clone(drive), wanted: BTreeMap::new(), layers: Vec::new(), prices }
    }

    /// Worth of a piece of a layer with this key.
    fn worth(&self, piece: &Piece, key: &LayerKey) -> u64 {
        u64::from(piece.blocks * key.weight) * self.prices[piece.at.cylinder as usize]
    }

    /// How many blocks of a layer are wanted from `from` to `to`.
    fn count(&self, layer: usize, from: u64, to: u64) -> u64 {
        self.wanted.range((layer, from)..(layer, to)).count() as u64
    }

    fn want(&mut self, layer: usize, block: u64) {
        let key = self.layers[layer];
        let first = u64::from(key.offset) + block * u64::from(key.size);
        let mut pieces: Vec<Piece> = Vec::new();
        for lbn in first..first + u64::from(key.size) {
            let at = self.drive.layout().locate(Lbn::new(lbn));
            let place = Position { cylinder: at.cylinder, surface: at.surface };
            if let Some(last) = pieces.last_mut() {
                let before = self.drive.layout().locate(Lbn::new(lbn - 1));
                if last.at == place && before.sector + 1 == at.sector {
                    last.blocks += 1;
                    continue;
                }
            }
            pieces.push(Piece { first: lbn, blocks: 1, at: place });
        }
        self.wanted.entry((layer, block)).or_insert(pieces);
    }

    /// Blocks of 512 B that the blocks take of which some pieces are taken and some not.
    fn held(&self) -> u64 {
        let sizes = self.wanted.iter().map(|(&(layer, _), pieces)| {
            let size = self.layers[layer].size;
            let left: u32 = pieces.iter().map(|piece| piece.blocks).sum();
            if left < size { u64::from(size) } else { 0 }
        });
        sizes.sum()
    }

    /// Worth of the best track in the gap, where one reads or writes.
    fn best(&self, gap: &Opportunity) -> u64 {
        let mut tracks: BTreeMap<(u32, u32, bool), u64> = BTreeMap::new();
        for (&(layer, _), pieces) in &self.wanted {
            let key = self.layers[layer];
            for piece in pieces.iter().filter(|piece| self.passes(gap, piece, key.op).is_some()) {
                let at = (piece.at.cylinder, piece.at.surface, key.op == Op::Write);
                *tracks.entry(at).or_default() += self.worth(piece, &key);
            }
        }
        tracks.into_values().max().unwrap_or(0)
    }

    /// When the piece begins and ends under the head, in nanoseconds from the beginning of the gap,
    /// if it can be had there when nothing else is visited.
    fn passes(&self, gap: &Opportunity, piece: &Piece, op: Op) -> Option<(u64, u64)> {
        let departure = gap.departure();
        let mut arrival = departure.begin + self.drive.travel(&departure, piece.at, op, 0);
        if gap.ends.source_closed && piece.at == gap.from {
            return None;
        }
        if let Some(before) = gap.ends.destination_before
            && piece.at == gap.to
        {
            arrival = arrival.max(SimTime::from_ns(gap.due.ns() - before.ns()));
        }
        let there = Departure { begin: arrival, from: piece.at, last_op: op, ..departure };
        let target = self.drive.target(Lbn::new(piece.first), piece.blocks(), op);
        let access = self.drive.media_access_from(&there, &target, 0);
        let end = there.after(&access, op);
        // A stay is a turn at most.
        let is_in_time = access.total() <= self.drive.rotation().period()
            && gap.arrival(&self.drive, &end) <= gap.due;
        let since = |time: SimTime| (time - gap.begin).ns();
        is_in_time.then(|| (since(arrival + access.rotate), since(end.begin)))
    }

    /// Worth of the best path over the tracks of one cylinder, or over those of the source's and then
    /// those of the destination's: of the heaviest chain of pieces, by a look at every pair of them.
    fn best_path(&self, gap: &Opportunity) -> u64 {
        let [reads, writes] = [Op::Read, Op::Write].map(|op| self.best_path_of(gap, op));
        reads.max(writes)
    }

    fn best_path_of(&self, gap: &Opportunity, op: Op) -> u64 {
        let seek = self.drive.seek();
        let pieces = self.wanted.iter().flat_map(|(&(layer, _), pieces)| {
            pieces.iter().map(move |piece| (*piece, self.layers[layer]))
        });
        let mut passing: Vec<(u64, u64, Position, u64)> = pieces
            .filter(|(_, key)| key.op == op)
            .filter_map(|(piece, key)| {
                let (begin, end) = self.passes(gap, &piece, op)?;
                Some((begin, end, piece.at, self.worth(&piece, &key)))
            })
            .collect();
        passing.sort_unstable_by_key(|&(begin, ..)| begin);
        let moving = |from: Position, to: Position| {
            let is_there = from.cylinder == to.cylinder;
            let goes = from.cylinder == gap.from.cylinder && to.cylinder == gap.to.cylinder;
            let distance = from.cylinder.abs_diff(to.cylinder);
            match from == to {
                true => Some(0),
                false => (is_there || goes).then(|| seek.time_ns(op, distance, true)),
            }
        };
        let mut heaviest: Vec<u64> = Vec::new();
        for (number, &(begin, _, at, worth)) in passing.iter().enumerate() {
            let before = (0..number).filter(|&before| {
                let (_, end, from, _) = passing[before];
                moving(from, at).is_some_and(|moving| end + moving <= begin)
            });
            heaviest.push(worth + before.map(|before| heaviest[before]).max().unwrap_or(0));
        }
        heaviest.into_iter().max().unwrap_or(0)
    }

    /// Worth of all wanted pieces in a range, which are then wanted no longer; and the blocks that
    /// are complete thereby.
    fn take(&mut self, from: u64, to: u64, op: Op) -> (u64, Vec<(usize, u64)>) {
        let (mut worth, mut complete) = (0, Vec::new());
        let Self { wanted, layers, prices, .. } = self;
        for (&(layer, block), pieces) in wanted {
            let key = layers[layer];
            if key.op != op {
                continue;
            }
            pieces.retain(|piece| {
                let inside = from <= piece.first && piece.first + u64::from(piece.blocks) <= to;
                let price = prices[piece.at.cylinder as usize];
                worth += u64::from(inside) * u64::from(piece.blocks * key.weight) * price;
                !inside
            });
            if pieces.is_empty() {
                complete.push((layer, block));
            }
        }
        complete.iter().for_each(|block| drop(self.wanted.remove(block)));
        (worth, complete)
    }
}

impl Piece {
    fn blocks(&self) -> Blocks {
        Blocks::new(self.blocks.into())
    }
}

fn position(prng: &mut Prng, drive: &Drive) -> Position {
    let at = drive.layout().locate(Lbn::new(prng.below(drive.blocks().get())));
    Position { cylinder: at.cylinder, surface: at.surface }
}

fn any_gap(prng: &mut Prng, drive: &Drive) -> Opportunity {
    let (from, to) = (position(prng, drive), position(prng, drive));
    let to = if prng.chance(0.2) { from } else { to };
    gap_between(drive, prng, from, to)
}

fn gap_between(drive: &Drive, prng: &mut Prng, from: Position, to: Position) -> Opportunity {
    let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
    let departure = Departure {
        begin: SimTime::from_ns((1 << 30) + prng.below(1 << 40)),
        from,
        last_op: if prng.chance(0.5) { Op::Read } else { Op::Write },
        read_write_switch: SimDuration::from_us(prng.below(3) * prng.below(700)),
    };
    let seek_error_ns = (prng.below(400_000) as i64 - 200_000) * prng.below(2) as i64;
    let seek = drive.travel(&departure, to, op, seek_error_ns);
    let Departure { begin, last_op, read_write_switch, .. } = departure;
    let latency = SimDuration::from_ns(prng.below(drive.rotation().period().ns()));
    let due = begin + seek + latency;
    let before = SimDuration::from_ns(prng.below((due - begin).ns() + 1));
    let ends = Ends {
        source_closed: prng.chance(0.3),
        destination_before: prng.chance(0.3).then_some(before),
    };
    Opportunity { begin, from, last_op, read_write_switch, to, op, seek, seek_error_ns, due, ends }
}

/// Does the runs one after the other; whether the head is on the destination in time.
fn execute(drive: &Drive, gap: &Opportunity, runs: &[FreeRun]) -> bool {
    let mut head = gap.departure();
    for run in runs {
        let target = drive.target(run.start, Blocks::new(run.blocks.into()), run.op);
        let access = drive.media_access_from(&head, &target, 0);
        head = head.after(&access, run.op);
    }
    gap.arrival(drive, &head) <= gap.due
}

/// With memory for the pieces of all blocks.
fn unlimited() -> Options {
    Options { held_max: Bytes::new(1 << 30), ..Options::default() }
}

struct Case {
    scheduler: Scheduler,
    oracle: Oracle,
    prng: Prng,
}

impl Case {
    /// Wants a random part of the drive in layers of random sizes.
    fn new(spec: DriveSpec, seed: u64, rule: Rule) -> Self {
        Self::with(spec, seed, Options { rule, ..unlimited() }, 3)
    }

    /// The same in at most so many layers.
    fn with(spec: DriveSpec, seed: u64, options: Options, layers_max: u64) -> Self {
        let mut prng = Prng::new(seed, "freeblock");
        // Out-of-order access is the foreground's; the oracle takes every piece from its beginning.
        let in_order = DriveSpec { zero_latency: ByOp { read: false, write: false }, ..spec };
        let drive = Arc::new(Drive::build(&in_order).unwrap());
        let mut scheduler = Scheduler::new(&drive, options);
        let mut oracle = Oracle::new(&drive);
        for _ in 0..1 + prng.below(layers_max) {
            let size = 1 + prng.below(12) as u32;
            let op = if prng.chance(0.7) { Op::Read } else { Op::Write };
            let offset = prng.below(size.into()) as u32;
            let key = LayerKey { op, size, offset, weight: 1 + prng.below(3) as u32 };
            if oracle.layers.contains(&key) || u64::from(offset + size) > drive.blocks().get() {
                continue;
            }
            let layer = scheduler.layer(key);
            oracle.layers.push(key);
            let blocks = (drive.blocks().get() - u64::from(offset)) / u64::from(size);
            let share = [0.02, 0.3, 1.0][prng.below(3) as usize];
            for block in (0..blocks).filter(|_| prng.chance(share)) {
                assert_eq!(scheduler.want(layer, block, block + 1), 1);
                oracle.want(layer, block);
            }
        }
        Self { scheduler, oracle, prng }
    }

    /// Blocks of a layer, wanted or not.
    fn blocks(&self, layer: usize) -> u64 {
        let LayerKey { offset, size, .. } = self.oracle.layers[layer];
        (self.oracle.drive.blocks().get() - u64::from(offset)) / u64::from(size)
    }

    /// Has random parts of the drive pass, and takes wishes back: some regions are behind others
    /// then.
    fn wear(&mut self) {
        let capacity = self.oracle.drive.blocks().get();
        let parts = if self.oracle.layers.is_empty() { 0 } else { self.prng.below(4) };
        for _ in 0..parts {
            let from = self.prng.below(capacity);
            let blocks = 1 + self.prng.below((capacity - from).min(1 << 12)) as u32;
            let run = FreeRun { start: Lbn::new(from), blocks, op: Op::Read };
            self.scheduler.done(&run, SimTime::ZERO);
            self.oracle.take(from, from + u64::from(blocks), Op::Read);
            let layer = self.prng.below(self.oracle.layers.len() as u64) as usize;
            let all = self.blocks(layer);
            let first = self.prng.below(all);
            let end = first + 1 + self.prng.below((all - first).min(40));
            let gone = self.oracle.count(layer, first, end);
            assert_eq!(self.scheduler.unwant(layer, first, end), gone);
            self.oracle
                .wanted
                .retain(|&(of, block), _| of != layer || !(first..end).contains(&block));
        }
        self.scheduler.deliveries().for_each(drop);
    }

    /// From now on movements take longer than on `plain`, by a random margin for each class of them.
    fn slow_down(&mut self, plain: &Drive) {
        let mut margins = SeekMargins::constant(SimDuration::ZERO);
        for op in [Op::Read, Op::Write] {
            for class in 0..SEEK_CLASSES {
                let us = self.prng.below(2) * self.prng.below(600);
                margins.set(op, class, SimDuration::from_us(us));
            }
        }
        self.oracle.drive = Arc::new(plain.with_seek_margins(margins));
        self.scheduler.foresee_with(&self.oracle.drive);
    }

    /// Plans a random gap and does the plan. Worth of the plan, what the oracle says is the best,
    /// and whether it was in time.
    fn gap(&mut self) -> (u64, u64, bool, Vec<FreeRun>) {
        self.gap_beside(Oracle::best)
    }

    fn gap_beside(
        &mut self,
        best: impl Fn(&Oracle, &Opportunity) -> u64,
    ) -> (u64, u64, bool, Vec<FreeRun>) {
        let drive = Arc::clone(&self.oracle.drive);
        let gap = any_gap(&mut self.prng, &drive);
        let mut runs = Vec::new();
        self.scheduler.plan(&gap, &mut runs);
        for (cylinder, price) in (0..).zip(&mut self.oracle.prices) {
            *price = self.scheduler.price(cylinder);
        }
        let best = best(&self.oracle, &gap);
        let in_time = runs.is_empty() || execute(&drive, &gap, &runs);
        let (mut worth, mut complete) = (0, Vec::new());
        for run in &runs {
            let (from, to) = (run.start.get(), run.start.get() + u64::from(run.blocks));
            let (more, blocks) = self.oracle.take(from, to, run.op);
            worth += more;
            complete.extend(blocks);
            self.scheduler.done(run, gap.due);
        }
        let mut delivered: Vec<(usize, u64)> = Vec::new();
        for delivery in self.scheduler.deliveries() {
            let first = delivery.delivered.first;
            let blocks = first..first + delivery.delivered.blocks;
            delivered.extend(blocks.map(|block| (delivery.delivered.layer, block)));
        }
        delivered.sort_unstable();
        complete.sort_unstable();
        assert_eq!(delivered, complete, "just the blocks that are complete are delivered, once");
        let held = Blocks::new(self.oracle.held()).bytes();
        assert_eq!(self.scheduler.held(), held, "of blocks that have come in part");
        for layer in 0..self.oracle.layers.len() {
            let blocks = self.blocks(layer);
            let from = self.prng.below(blocks);
            let to = from + self.prng.below(blocks - from + 1);
            let wanted = self.scheduler.wanted_in(layer, from, to);
            assert_eq!(wanted, self.oracle.count(layer, from, to), "{from}..{to} of {layer}");
        }
        (worth, best, in_time, runs)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn the_greedy_rule_takes_as_much_as_the_best_track_of_an_exhaustive_search(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let mut case = Case::new(spec, seed, Rule::Greedy);
        for _ in 0..30 {
            let (worth, best, in_time, runs) = case.gap();
            prop_assert_eq!(worth, best, "{:?}", runs);
            prop_assert!(in_time, "{:?}", runs);
            let track = |run: &FreeRun| {
                let at = case.oracle.drive.layout().locate(run.start);
                (at.cylinder, at.surface)
            };
            let first = runs.first().map(track);
            prop_assert!(runs.iter().all(|run| Some(track(run)) == first), "{:?}", runs);
        }
    }

    #[test]
    fn plans_are_as_good_and_in_time_while_the_margins_of_seeks_change(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        for rule in [Rule::Greedy, Rule::Paths] {
            let mut case = Case::new(spec.clone(), seed, rule);
            let plain = Arc::clone(&case.oracle.drive);
            for _ in 0..8 {
                case.slow_down(&plain);
                for _ in 0..4 {
                    let (worth, best, in_time, runs) = case.gap();
                    prop_assert!(in_time, "{:?}", runs);
                    prop_assert!(rule == Rule::Paths || worth == best, "{:?}", runs);
                    prop_assert!((best > 0) == (worth > 0), "{:?}", runs);
                }
            }
        }
    }

    #[test]
    fn a_plan_of_several_stops_is_in_time_and_takes_something_where_there_is_something(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let mut case = Case::new(spec, seed, Rule::Paths);
        for _ in 0..30 {
            let (worth, best, in_time, runs) = case.gap();
            prop_assert!(in_time, "seed {}: {:?}", seed, runs);
            prop_assert_eq!(worth > 0, best > 0, "{} of {}", worth, best);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..Default::default() })]

    /// With one layer no run covers a piece that was left out.
    #[test]
    fn what_a_plan_reads_of_blocks_on_several_tracks_has_room_in_memory(
        (spec, drive) in any_drive(), seed: u64, held_max in 0u64..30, greedy: bool,
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let held_bytes = Blocks::new(held_max).bytes();
        let rule = if greedy { Rule::Greedy } else { Rule::Paths };
        let options = Options { rule, held_max: held_bytes, ..Options::default() };
        let mut case = Case::with(spec, seed, options, 1);
        for _ in 0..30 {
            let (worth, best, _, runs) = case.gap();
            prop_assert!(case.oracle.held() <= held_max, "{:?}", runs);
            prop_assert!(!greedy || worth <= best);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    #[test]
    fn a_plan_of_several_stops_takes_no_less_than_the_best_path_of_an_exhaustive_search(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        // Blocks of one layer do not overlap, and all are worth the same everywhere.
        let options = Options { rule: Rule::Paths, prices: false, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 1);
        for _ in 0..30 {
            let (worth, best, _, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
        }
    }

    /// Prices are worked out anew every so many decisions.
    #[test]
    fn with_prices_a_plan_is_worth_no_less_than_the_path_of_greatest_price(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let mut case = Case::with(spec, seed, Options { rule: Rule::Paths, ..unlimited() }, 1);
        case.wear();
        for _ in 0..40 {
            let (worth, best, in_time, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(in_time, "{:?}", runs);
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
            if case.prng.chance(0.1) {
                case.wear();
            }
        }
    }

    #[test]
    fn with_few_steps_a_plan_takes_no_less_than_the_best_track(
        (spec, drive) in any_drive(), seed: u64, steps_max in 0u32..20
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options { rule: Rule::Paths, prices: false, steps_max, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 3);
        for _ in 0..30 {
            let (worth, best, in_time, runs) = case.gap();
            prop_assert!(in_time, "{:?}", runs);
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
        }
    }

    #[test]
    fn a_plan_of_several_stops_takes_no_less_than_the_best_track(
        (spec, drive) in any_drive(), seed: u64
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options { rule: Rule::Paths, prices: false, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 3);
        for _ in 0..30 {
            let (worth, best, _, runs) = case.gap();
            prop_assert!(worth >= best, "{} of {}: {:?}", worth, best, runs);
        }
    }

    #[test]
    fn with_a_budget_of_nodes_a_plan_is_in_time_and_no_better_than_the_best(
        (spec, drive) in any_drive(), seed: u64, budget in 0u64..40
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options { rule: Rule::Greedy, budget, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 3);
        for _ in 0..30 {
            let exhausted = case.scheduler.effort().exhausted;
            let (worth, best, in_time, runs) = case.gap();
            prop_assert!(in_time, "{:?}", runs);
            prop_assert!(worth <= best, "{} of {}", worth, best);
            let counted = case.scheduler.effort().exhausted > exhausted;
            prop_assert!(worth == best || counted, "{} of {} without notice", worth, best);
        }
        prop_assert!(case.scheduler.effort().nodes <= 30 * budget);
    }

    #[test]
    fn with_a_budget_of_nodes_several_stops_are_in_time_and_miss_nothing_without_notice(
        (spec, drive) in any_drive(), seed: u64, budget in 0u64..40
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let options = Options { rule: Rule::Paths, prices: false, budget, ..unlimited() };
        let mut case = Case::with(spec, seed, options, 1);
        for _ in 0..30 {
            let exhausted = case.scheduler.effort().exhausted;
            let (worth, best, in_time, runs) = case.gap_beside(Oracle::best_path);
            prop_assert!(in_time, "{:?}", runs);
            let counted = case.scheduler.effort().exhausted > exhausted;
            prop_assert!(worth >= best || counted, "{} of {} without notice", worth, best);
        }
        prop_assert!(case.scheduler.effort().nodes <= 30 * budget);
    }

    #[test]
    fn one_run_on_a_track_after_the_other_all_is_found_that_is_wanted(
        (spec, drive) in any_drive(), seed: u64, most in 1u64..40
    ) {
        prop_assume!(drive.blocks() > Blocks::ZERO);
        let Case { mut scheduler, mut oracle, mut prng } = Case::new(spec, seed, Rule::Greedy);
        for layer in 0..oracle.layers.len() {
            let op = oracle.layers[layer].op;
            let mut from = 0;
            while scheduler.wanted(layer) > 0 {
                prop_assert_eq!(scheduler.wanted(layer), oracle.count(layer, 0, u64::MAX));
                let Some((first, end)) = scheduler.next_on_track(layer, from, most) else {
                    prop_assert!(from > 0, "{} are wanted somewhere", scheduler.wanted(layer));
                    from = 0;
                    continue;
                };
                prop_assert!(from <= first && first < end, "{first}..{end} from {from}");
                let start = Lbn::new(first);
                let track = oracle.drive.layout().track_bounds(start);
                prop_assert!(end <= track.1.get(), "{first}..{end} of {track:?}");
                prop_assert!(oracle.take(first, end, op).0 > 0, "nothing is wanted there");
                scheduler.done(&FreeRun { start, blocks: (end - first) as u32, op }, SimTime::ZERO);
                from = if prng.chance(0.5) { first } else { end };
            }
        }
    }
}

/// In how many gaps of thirty something is written, with a budget of so many nodes, where reads are
/// wanted everywhere and writes, which are worth more, in one place on the way.
fn gaps_with_writes(drive: &Arc<Drive>, budget: u64) -> u32 {
    let options = Options { rule: Rule::Paths, budget, ..Options::default() };
    let mut scheduler = Scheduler::new(drive, options);
    let key = |op, weight| LayerKey { op, size: 8, offset: 0, weight };
    let (reads, writes) = (scheduler.layer(key(Op::Read, 1)), scheduler.layer(key(Op::Write, 16)));
    let prng = &mut Prng::new(1, "budget");
    let blocks = drive.blocks().get() / 8;
    for _ in 0..blocks / 50 {
        let block = prng.below(blocks);
        scheduler.want(reads, block, block + 1);
    }
    scheduler.want(writes, blocks / 2, blocks / 2 + 2000);
    let mut gap = || {
        let at = |cylinder| Position { cylinder: cylinder as u32, surface: 0 };
        let (from, to) = (at(prng.below(2000)), at(7000 + prng.below(2000)));
        let mut runs = Vec::new();
        scheduler.plan(&gap_between(drive, prng, from, to), &mut runs);
        runs.iter().any(|run| run.op == Op::Write)
    };
    (0..30).map(|_| u32::from(gap())).sum()
}

#[test]
fn of_a_budget_of_nodes_reads_leave_writes_their_part() {
    let spec = toml::from_str(include_str!("../../../drives/atlas10k.toml")).unwrap();
    let drive = Arc::new(Drive::build(&spec).unwrap());
    let written = gaps_with_writes(&drive, u64::MAX);
    assert!(written >= 5, "{written}");
    // To one cylinder in each direction: eight levels of the tree, and a few more nodes.
    assert!(gaps_with_writes(&drive, 24) * 2 > written);
}

/// When the first sector of a piece reaches the head that goes there.
fn begins(drive: &Drive, head: &Departure, first: u64, op: Op) -> SimTime {
    let target = drive.target(Lbn::new(first), Blocks::new(1), op);
    let access = drive.media_access_from(head, &target, 0);
    head.begin + access.seek + access.rotate
}

proptest! {
    #[test]
    fn in_idle_time_what_is_nearest_is_done_until_nothing_is_left(
        (_, drive) in any_drive(), seed: u64,
    ) {
        // Room for a block of every size.
        prop_assume!(drive.blocks() > Blocks::new(9));
        let drive = Arc::new(drive);
        let prng = &mut Prng::new(seed, "idle");
        let mut scheduler = Scheduler::new(&drive, Options::default());
        let mut oracle = Oracle::new(&drive);
        for op in [Op::Read, Op::Write] {
            let size = 1 + prng.below(9) as u32;
            let key = LayerKey { op, size, offset: 0, weight: 1 };
            let layer = scheduler.layer(key);
            oracle.layers.push(key);
            for _ in 0..prng.below(20) {
                let block = prng.below(drive.blocks().get() / u64::from(size));
                scheduler.want(layer, block, block + 1);
                oracle.want(layer, block);
            }
        }
        let gap = any_gap(prng, &drive);
        let mut head = gap.departure();
        let most = 1 + prng.below(12) as u32;
        while let Some(run) = scheduler.plan_idle(&head, most) {
            let wanted = || oracle.wanted.iter().flat_map(|(&(layer, _), pieces)| {
                let op = oracle.layers[layer].op;
                pieces.iter().map(move |piece| (op, *piece))
            });
            let side = |cylinder: u32| {
                let here = head.from.cylinder;
                (here.abs_diff(cylinder), cylinder < here)
            };
            let nearest = wanted().map(|(_, piece)| side(piece.at.cylinder)).min().unwrap();
            let on_it = wanted().filter(|(_, piece)| side(piece.at.cylinder) == nearest);
            let first = on_it.map(|(op, piece)| begins(&drive, &head, piece.first, op)).min();
            let start = run.start.get();
            prop_assert_eq!(Some(begins(&drive, &head, start, run.op)), first);
            let at = drive.layout().locate(run.start);
            prop_assert_eq!(side(at.cylinder), nearest);
            let access = run.access(&drive, &head);
            head = head.after(&access, run.op);
            scheduler.done(&run, head.begin);
            let (worth, _) = oracle.take(start, start + u64::from(run.blocks), run.op);
            prop_assert!(worth >= run.blocks.into(), "all of it was wanted");
            prop_assert!(run.blocks <= most.max(9));
        }
        prop_assert!(oracle.wanted.is_empty());
    }
}
