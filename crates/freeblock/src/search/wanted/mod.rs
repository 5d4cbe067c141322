//! Wanted blocks.
//!
//! A *layer* holds the wanted blocks of one size, alignment and direction, as a bitmap. A block that does
//! not lie in consecutive sectors of one track comes in *pieces*, one for each extent. Pieces may be read
//! in different gaps; what has been read of the block is held in memory until the last piece has come.
//!
//! ```text
//!  sectors     0         8        16        24        30 | 0   2        10
//!  track       [ block 0 ][ block 1 ][ block 2 ][ block 3| block 3 ][ block 4
//!                                                piece A   piece B
//! ```
//!
//! With blocks of 8 sectors on a track of 30, block 3 has a piece of 6 sectors at the end of one extent and
//! one of 2 at the beginning of the next. After piece A, 8 blocks of 512 B are held until piece B has come.
//! A piece takes two bits a layer: whether it is wanted, and whether its block is held.

mod begins;
mod layer;
mod next;
mod ration;

use freewheel_units::{Blocks, Bytes, Op};

use super::arcs::Collect;
use super::reach::{DwellWindow, Reach};
use super::track_extent::TrackExtent;
use super::tracks::{Passing, TrackPlace, Tracks, Window, blocks_in};
use crate::bitmap::{Bitmap, take_long_run};
use begins::Begins;
pub(crate) use begins::Ration;
use freewheel_model::drive::Position;
use layer::BlockPiece;
pub(crate) use layer::Layer;
pub use layer::LayerKey;

/// Wanted blocks that have been read or written: `first..first + blocks` of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// Number of the layer.
    pub layer: usize,
    /// First wanted block, counted in the layer's blocks.
    pub first: u64,
    /// Number of blocks of the layer.
    pub blocks: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    layers: Vec<Layer>,
    /// Most memory that pieces of unfinished blocks may take, in blocks of 512 B.
    held_max: u64,
    held: u64,
    /// Cylinders on which blocks that come in pieces are begun.
    begins: Begins,
    /// Cylinders on which more may be taken than before, as a block of theirs was begun elsewhere.
    raised: Vec<u32>,
}

/// Something wanted in consecutive sectors: a wanted block, or a piece of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    /// First block of 512 B.
    pub first: u64,
    pub blocks: u32,
    pub op: Op,
    /// Worth: blocks of 512 B times weight.
    pub value: u32,
    /// Memory that it takes until the rest of its block has come, in blocks of 512 B.
    pub holds: u32,
}

/// Items, and their worth together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    pub items: u32,
    pub value: u32,
}

/// A bound on the worth of sectors by their number alone: the greater of reads and writes, as a plan does
/// one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ceiling {
    reads: CeilingOf,
    writes: CeilingOf,
}

/// A bound for one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CeilingOf {
    /// Sum of the weights of layers that want a turn's sectors or more: of each, all sectors may be wanted.
    weight: u64,
    /// Worth of all blocks of the other layers: a window may hold all of them.
    few: u64,
}

impl Ceiling {
    #[inline]
    pub fn of(&self, sectors: u64) -> u64 {
        self.reads.of(sectors).max(self.writes.of(sectors))
    }
}

impl CeilingOf {
    #[inline]
    fn of(&self, sectors: u64) -> u64 {
        sectors * self.weight + self.few
    }
}

/// An item of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timed {
    /// Beginning of the passage, in nanoseconds from the beginning of the gap.
    pub at: u64,
    pub item: Item,
}

/// A piece that may be taken, and the memory that it takes, in blocks of 512 B.
struct UsablePiece {
    from: u64,
    to: u64,
    holds: u32,
}

impl UsablePiece {
    fn blocks(&self) -> u32 {
        (self.to - self.from) as u32
    }
}

/// Pieces that may be taken on a cylinder.
struct PieceAllowance {
    /// True if blocks may be begun there, or only completed.
    begins: bool,
    /// Memory left for them, in blocks of 512 B.
    room: u64,
}

impl PieceAllowance {
    /// The piece of a wanted block, if it may be taken: of a block that is held always, of another if
    /// there is memory to hold it, which is taken from the room.
    fn take(&mut self, layer: &Layer, piece: &BlockPiece) -> Option<UsablePiece> {
        let holds = if layer.is_held(piece) { 0 } else { layer.block_held() };
        self.room = self.room.checked_sub(holds)?;
        Some(UsablePiece { from: piece.from, to: piece.to, holds: holds as u32 })
    }
}

impl Wanted {
    /// Nothing is wanted. Pieces of unfinished blocks may take `held_max` blocks of 512 B.
    pub fn new(tracks: &Tracks, held_max: u64) -> Self {
        let begins = Begins::new(tracks.cylinders());
        Self { layers: Vec::new(), held_max, held: 0, begins, raised: Vec::new() }
    }

    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The layer with this key that holds pieces, made if there is none.
    pub fn layer(&mut self, tracks: &Tracks, key: LayerKey) -> usize {
        self.layers
            .iter()
            .position(|layer| layer.key == key && layer.holds_pieces)
            .unwrap_or_else(|| self.add_layer(tracks, key, true))
    }

    /// Adds a layer, whether or not there is one with this key. Pieces of its blocks are held or
    /// not.
    pub fn add_layer(&mut self, tracks: &Tracks, key: LayerKey, holds_pieces: bool) -> usize {
        let capacity = tracks.drive().blocks().get();
        self.layers.push(Layer::new(key, holds_pieces, capacity, tracks.stretches()));
        self.layers.len() - 1
    }

    /// Puts such a layer, empty, in the place of one that is empty.
    pub fn replace_layer(
        &mut self,
        tracks: &Tracks,
        layer: usize,
        key: LayerKey,
        holds_pieces: bool,
    ) {
        assert!(self.layers[layer].wanted.is_empty(), "layer {layer} is in use");
        let capacity = tracks.drive().blocks().get();
        self.layers[layer] = Layer::new(key, holds_pieces, capacity, tracks.stretches());
    }

    /// Changes the weight of a layer.
    pub fn set_weight(&mut self, layer: usize, weight: u32) {
        assert!(weight > 0, "a weight of nothing");
        self.layers[layer].key.weight = weight;
    }

    /// The wanted blocks of a layer.
    pub fn blocks(&self, layer: usize) -> &Bitmap {
        &self.layers[layer].wanted
    }

    /// Memory that the bitmaps of all layers take.
    pub fn memory(&self) -> Bytes {
        self.layers.iter().fold(Bytes::ZERO, |sum, layer| {
            sum + (layer.wanted.memory() + layer.pieces.memory() + layer.pieces_of_held.memory())
        })
    }

    /// Data held of blocks of which pieces are missing.
    pub fn held(&self) -> Bytes {
        Blocks::new(self.held).bytes()
    }

    /// Wants the blocks `from..to` of a layer; how many were not wanted before.
    pub fn want(&mut self, tracks: &Tracks, layer: usize, from: u64, to: u64) -> u64 {
        let layer = &mut self.layers[layer];
        Layer::for_each_in_pieces(tracks, layer, from, to, |layer, block| {
            if !layer.wanted.contains(block) {
                layer.set_pieces(tracks, block, true);
                layer.in_pieces += 1;
            }
        });
        layer.wanted.insert(from, to)
    }

    /// Wants them no longer; how many were wanted.
    pub fn unwant(&mut self, tracks: &Tracks, layer: usize, from: u64, to: u64) -> u64 {
        let mut freed = 0;
        let layer = &mut self.layers[layer];
        Layer::for_each_in_pieces(tracks, layer, from, to, |layer, block| {
            if layer.wanted.contains(block) {
                freed += u64::from(layer.set_pieces(tracks, block, false));
                layer.in_pieces -= 1;
            }
        });
        self.held -= freed * layer.block_held();
        layer.wanted.remove(from, to)
    }

    /// Leaves out of a plan, in order of time, the pieces for which there is no memory when those
    /// before them are held: on each track alone there was.
    pub fn fit(&self, items: &mut Vec<Timed>) {
        let mut room = self.room();
        items.retain(|timed| match room.checked_sub(timed.item.holds.into()) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        });
    }

    fn allowance(&self, cylinder: u32) -> PieceAllowance {
        PieceAllowance { begins: self.begins_on(cylinder), room: self.room() }
    }

    /// Memory left for pieces, in blocks of 512 B.
    fn room(&self) -> u64 {
        self.held_max - self.held
    }

    /// Shows every wanted item in the part `from..to` of an extent, and its first sector.
    #[inline]
    fn items_in(
        layer: &Layer,
        stretch: &TrackExtent,
        from: u64,
        to: u64,
        allowance: &mut PieceAllowance,
        show: &mut impl FnMut(Item, u32),
    ) {
        let LayerKey { op, size, weight, .. } = layer.key;
        let (first, end) = layer.whole(from, to);
        layer.wanted.for_each(first, end, |block| {
            let first = layer.start(block);
            let item = Item { first, blocks: size, op, value: size * weight, holds: 0 };
            show(item, sector(first, stretch));
        });
        Self::pieces_in(layer, stretch, from, to, allowance, &mut |piece| {
            let (first, blocks, holds) = (piece.from, piece.blocks(), piece.holds);
            show(Item { first, blocks, op, value: blocks * weight, holds }, sector(first, stretch));
        });
    }

    /// Shows the pieces in the part `from..to` of an extent that may be taken within the allowance.
    #[inline]
    fn pieces_in(
        layer: &Layer,
        stretch: &TrackExtent,
        from: u64,
        to: u64,
        allowance: &mut PieceAllowance,
        show: &mut impl FnMut(UsablePiece),
    ) {
        // Pieces lie at the ends of an extent.
        let reaches_end = from <= stretch.first || to >= stretch.end();
        let takeable = layer.takeable(allowance.begins);
        // One look at both bits of the extent: most extents have no wanted piece.
        if from >= to || !reaches_end || !takeable.has_of_pair(2 * u64::from(stretch.id)) {
            return;
        }
        for piece in layer.pieces_of(stretch).into_iter().flatten() {
            if takeable.contains(piece.bit)
                && from <= piece.from
                && piece.to <= to
                && let Some(piece) = allowance.take(layer, &piece)
            {
                show(piece);
            }
        }
    }

    /// Worth of all that may be had on the track at `at` in direction `op` and lies wholly in the
    /// sectors that pass. If that is at most `known`, pieces may be left out.
    #[inline]
    pub fn value(
        &self,
        tracks: &Tracks,
        at: Position,
        place: &TrackPlace<'_>,
        passing: Passing,
        op: Op,
        known: u32,
    ) -> Sum {
        let (mut sum, mut most_in_pieces) = (Sum::default(), 0);
        self.for_each_part(tracks, at, place, passing, op, &mut |layer, stretch, (from, to)| {
            let LayerKey { size, weight, .. } = layer.key;
            let (first, end) = layer.whole(from, to);
            // Blocks of an extent are consecutive bits, so counting words counts whole blocks.
            let blocks = layer.wanted.count_in(first, end);
            sum.items += blocks;
            sum.value += blocks * size * weight;
            // Pieces take much longer to find than whole blocks are counted. One lies at each end of the
            // extent at most, and is shorter than a block: if that cannot beat `known`, none is sought.
            let ends = u32::from(from <= stretch.first) + u32::from(to >= stretch.end());
            // Without a plan to beat every piece counts, so one look tells whether any is to be sought.
            if known > 0 || ends > 0 && layer.pieces.has_of_pair(2 * u64::from(stretch.id)) {
                most_in_pieces += ends * (size - 1) * weight;
            }
        });
        if sum.value + most_in_pieces <= known || most_in_pieces == 0 {
            return sum;
        }
        let allowance = &mut self.allowance(at.cylinder);
        self.for_each_part(tracks, at, place, passing, op, &mut |layer, stretch, (from, to)| {
            Self::pieces_in(layer, stretch, from, to, allowance, &mut |piece| {
                sum.items += 1;
                sum.value += piece.blocks() * layer.key.weight;
            });
        });
        sum
    }

    /// Shows the parts of stretches of the track at `at` that lie in the sectors that pass, with
    /// every layer in direction `op`.
    #[inline]
    fn for_each_part(
        &self,
        tracks: &Tracks,
        at: Position,
        place: &TrackPlace<'_>,
        passing: Passing,
        op: Op,
        show: &mut impl FnMut(&Layer, &TrackExtent, (u64, u64)),
    ) {
        tracks.for_each_stretch(at, |stretch| {
            for part in passing.parts(place.sectors()) {
                let (from, to) = blocks_in(stretch, part);
                if from < to {
                    for layer in self.layers.iter().filter(|layer| layer.key.op == op) {
                        show(layer, stretch, (from, to));
                    }
                }
            }
        });
    }

    /// No track of this number of sectors has more items in direction `op`.
    pub fn items_max(&self, tracks: &Tracks, sectors: u32, op: Op) -> u32 {
        // A piece at either end of each extent.
        let pieces = 2 * tracks.extents_max();
        let layers = self.layers.iter().filter(|layer| layer.key.op == op);
        let most = layers.map(|layer| (sectors / layer.key.size).saturating_add(pieces));
        most.fold(0, u32::saturating_add)
    }

    /// Shows what [`Self::value`] counts, in no order.
    #[inline]
    fn items(
        &self,
        tracks: &Tracks,
        at: Position,
        place: &TrackPlace<'_>,
        passing: Passing,
        op: Op,
        show: &mut impl FnMut(Item, u32),
    ) {
        let allowance = &mut self.allowance(at.cylinder);
        self.for_each_part(tracks, at, place, passing, op, &mut |layer, stretch, (from, to)| {
            Self::items_in(layer, stretch, from, to, allowance, show);
        });
    }

    /// Shows what is wanted on a track during a stay there, each with the time it begins.
    #[inline]
    pub fn timed(
        &self,
        tracks: &Tracks,
        reach: &Reach<'_>,
        at: Position,
        op: Op,
        stay: DwellWindow,
        show: &mut impl FnMut(Timed),
    ) {
        if stay.length() > 0 {
            let window = tracks.window(reach.time(stay.from), stay.length());
            self.passages(tracks, at, op, stay, &window, &mut |timed, _| show(timed));
        }
    }

    /// Shows what is wanted on a track during a stay there that has a window, each with the time it begins
    /// and how long it takes.
    #[inline]
    pub fn passages(
        &self,
        tracks: &Tracks,
        at: Position,
        op: Op,
        stay: DwellWindow,
        window: &Window,
        show: &mut impl FnMut(Timed, u64),
    ) {
        let Some(place) = tracks.place(at) else { return };
        let rotation = tracks.drive().rotation();
        let phase = window.phase();
        let passing = tracks.passing(&place, window);
        self.items(tracks, at, &place, passing, op, &mut |item, sector| {
            // The next time that the item's first sector passes after the stay began.
            let begin = tracks.edge_ns(&place, sector);
            let at = stay.from + rotation.forward_ns(phase, begin);
            // The end as an angle, from the beginning on: an item may run over the end of a turn.
            let span =
                match rotation.forward_ns(begin, tracks.edge_ns(&place, sector + item.blocks)) {
                    // It ends where it begins: a whole track.
                    0 => rotation.period_ns(),
                    span => span,
                };
            show(Timed { at, item }, span);
        });
    }

    /// Adds to `into` what may be taken of an extent in these directions, as if memory had room. `begins`
    /// tells whether blocks in pieces are begun there.
    pub fn collect(
        &self,
        stretch: &TrackExtent,
        place: &TrackPlace<'_>,
        ops: &[Op],
        begins: bool,
        into: &mut impl Collect,
    ) {
        for layer in self.layers.iter().filter(|layer| ops.contains(&layer.key.op)) {
            let LayerKey { size, weight, .. } = layer.key;
            let (first, end) = layer.whole(stretch.first, stretch.end());
            let sector_of = |block: u64| sector(layer.start(block), stretch);
            // A track that is wholly wanted is one run; else words of the bitmap, from which long runs are
            // taken first, as the length of short ones is not predictable by a processor.
            if u64::from(layer.wanted.count_in(first, end)) == end - first {
                if first < end {
                    let count = (end - first) as u32;
                    into.add_run(place, sector_of(first), layer.size, count, size * weight);
                }
            } else {
                layer.wanted.for_each_word(first, end, |word, mut bits| {
                    while let Some((begin, count)) = take_long_run(&mut bits) {
                        let from = sector_of(word + u64::from(begin));
                        into.add_run(place, from, layer.size, count, size * weight);
                    }
                    if bits != 0 {
                        let begin = bits.trailing_zeros();
                        let from = sector_of(word + u64::from(begin));
                        into.add_each(place, from, size, bits >> begin, size * weight);
                    }
                });
            }
            // As if memory had room: a bound must not depend on how much is held now.
            let takeable = layer.takeable(begins);
            if takeable.has_of_pair(2 * u64::from(stretch.id)) {
                for piece in layer.pieces_of(stretch).into_iter().flatten() {
                    if takeable.contains(piece.bit) {
                        let blocks = (piece.to - piece.from) as u32;
                        into.add_piece(place, sector(piece.from, stretch), blocks, blocks * weight);
                    }
                }
            }
        }
    }

    /// True if anything may be taken of a cylinder, as if memory had room: where [`Self::collect`] adds
    /// something.
    pub fn is_any_on(&self, tracks: &Tracks, cylinder: u32) -> bool {
        let begins = self.begins_on(cylinder);
        let mut is_any = false;
        for surface in 0..tracks.surfaces() {
            tracks.for_each_stretch(Position { cylinder, surface }, |stretch| {
                is_any = is_any || self.layers.iter().any(|layer| has_any(layer, stretch, begins));
            });
            if is_any {
                break;
            }
        }
        is_any
    }

    /// The blocks `from..to` of 512 B were transferred for the layers that `serves` accepts. Complete blocks
    /// are wanted no longer and go to `deliver`. Returns whether less is wanted.
    pub fn moved(
        &mut self,
        tracks: &Tracks,
        from: u64,
        to: u64,
        serves: impl Fn(usize, &LayerKey) -> bool,
        deliver: &mut impl FnMut(&LayerKey, Delivered),
    ) -> bool {
        let mut is_less = false;
        for number in 0..self.layers.len() {
            if serves(number, &self.layers[number].key) {
                is_less |= self.moved_in(tracks, number, from, to, deliver);
            }
        }
        is_less
    }

    fn moved_in(
        &mut self,
        tracks: &Tracks,
        number: usize,
        from: u64,
        to: u64,
        deliver: &mut impl FnMut(&LayerKey, Delivered),
    ) -> bool {
        let layer = &self.layers[number];
        let key = layer.key;
        let (first, end) = layer.whole(from, to);
        let mut is_less = false;
        if first < end && layer.wanted.count_in(first, end) > 0 {
            // Whole blocks in the range are complete, with their pieces.
            layer.wanted.for_each_run(first, end, |first, end| {
                deliver(&key, Delivered { layer: number, first, blocks: end - first });
            });
            self.unwant(tracks, number, first, end);
            is_less = true;
        }
        // What lies only partly in the range, at its two ends.
        let layer = &self.layers[number];
        // At most one block lies across each end.
        let before = layer.containing(from).filter(|block| outside(block, layer, from, to));
        let behind = layer
            .containing(to - 1)
            .filter(|block| outside(block, layer, from, to))
            .filter(|&b| Some(b) != before);
        for block in [before, behind].into_iter().flatten() {
            if self.layers[number].wanted.contains(block)
                && self.layers[number].comes_in_pieces(tracks, block)
            {
                is_less |= self.moved_partly(tracks, number, block, from, to, deliver);
            }
        }
        is_less
    }

    fn moved_partly(
        &mut self,
        tracks: &Tracks,
        number: usize,
        block: u64,
        from: u64,
        to: u64,
        deliver: &mut impl FnMut(&LayerKey, Delivered),
    ) -> bool {
        let layer = &self.layers[number];
        let size = layer.block_held();
        // Another block is held only if memory lasts.
        let has_room = self.held + size <= self.held_max;
        let (mut taken, mut left, mut was_held) = (Vec::new(), Vec::new(), false);
        layer.for_each_piece(tracks, block, |on, piece| {
            was_held |= layer.is_held(piece);
            if layer.pieces.contains(piece.bit) {
                let is_taken = from <= piece.from && piece.to <= to;
                (if is_taken { &mut taken } else { &mut left }).push((on, piece.bit));
            }
        });
        // Without memory for the block its pieces stay wanted, as if they had not been read.
        let is_held = !left.is_empty();
        if taken.is_empty() || is_held && !was_held && !has_room {
            return false;
        }
        let layer = &mut self.layers[number];
        let key = layer.key;
        for (_, bit) in taken {
            // The piece has come: it is wanted no longer.
            layer.pieces.remove(bit, bit + 1);
            layer.pieces_of_held.remove(bit, bit + 1);
        }
        for (on, bit) in left {
            if layer.pieces_of_held.insert(bit, bit + 1) > 0 {
                // On a closed cylinder the other pieces may be taken from now on: its bounds must rise.
                let is_open = self.begins.is_open(on.cylinder);
                self.raised.extend((!is_open).then_some(on.cylinder));
            }
        }
        self.held = self.held + size * u64::from(is_held) - size * u64::from(was_held);
        if !is_held {
            let layer = &mut self.layers[number];
            layer.wanted.remove(block, block + 1);
            layer.in_pieces -= 1;
            deliver(&key, Delivered { layer: number, first: block, blocks: 1 });
        }
        true
    }

    /// A bound on the worth of sectors that pass, up to `turn` of them.
    pub fn ceiling(&self, turn: u32) -> Ceiling {
        let mut ceiling = Ceiling::default();
        for layer in &self.layers {
            let wanted = layer.wanted.count() * layer.size.get();
            let weight = u64::from(layer.key.weight);
            let of = match layer.key.op {
                Op::Write => &mut ceiling.writes,
                _ => &mut ceiling.reads,
            };
            // Fewer blocks than a turn's sectors: all of them may pass, and no more.
            if wanted < turn.into() {
                of.few += wanted * weight;
            } else {
                of.weight += weight;
            }
        }
        ceiling
    }

    /// Blocks of 512 B that are wanted, those of several layers more than once.
    pub fn left(&self) -> u64 {
        self.layers.iter().map(|layer| layer.wanted.count() * layer.size.get()).sum()
    }

    /// True if anything is wanted in direction `op`.
    #[inline]
    fn has(&self, op: Op) -> bool {
        self.layers.iter().any(|layer| layer.key.op == op && !layer.wanted.is_empty())
    }

    /// The directions in which anything is wanted.
    #[inline]
    pub fn ops(&self) -> &'static [Op] {
        match (self.has(Op::Read), self.has(Op::Write)) {
            (true, true) => &[Op::Read, Op::Write],
            (true, false) => &[Op::Read],
            (false, true) => &[Op::Write],
            (false, false) => &[],
        }
    }

    /// Wanted blocks of a layer.
    pub fn count(&self, layer: usize) -> u64 {
        self.layers[layer].wanted.count()
    }
}

fn sector(block: u64, stretch: &TrackExtent) -> u32 {
    stretch.sector + (block - stretch.first) as u32
}

/// True if anything may be taken of an extent for this layer.
fn has_any(layer: &Layer, stretch: &TrackExtent, begins: bool) -> bool {
    let (first, end) = layer.whole(stretch.first, stretch.end());
    let takeable = layer.takeable(begins);
    layer.wanted.count_in(first, end) > 0
        || takeable.has_of_pair(2 * u64::from(stretch.id))
            && layer
                .pieces_of(stretch)
                .into_iter()
                .flatten()
                .any(|piece| takeable.contains(piece.bit))
}

fn outside(block: &u64, layer: &Layer, from: u64, to: u64) -> bool {
    layer.start(*block) < from || layer.start(block + 1) > to
}
