//! Wanted blocks, and the result of an exhaustive search for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use freewheel_freeblock::{LayerKey, Opportunity};
use freewheel_model::drive::{Departure, Drive, Position};
use freewheel_units::{Blocks, Lbn, Op, SimTime};

/// Part of a wanted block in consecutive sectors of one track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub first: u64,
    pub blocks: u32,
    pub at: Position,
}

/// Wanted blocks, as a plain list.
pub struct Oracle {
    pub drive: Arc<Drive>,
    /// Pieces still wanted, of every wanted block of every layer.
    pub wanted: BTreeMap<(usize, u64), Vec<Piece>>,
    pub layers: Vec<LayerKey>,
    /// Weight of a block on each cylinder.
    pub region_weights: Vec<u64>,
}

impl Oracle {
    /// No block is wanted, and all count the same everywhere.
    pub fn new(drive: &Arc<Drive>) -> Self {
        let region_weights = vec![1; drive.seek().distance_max() as usize + 1];
        Self {
            drive: Arc::clone(drive),
            wanted: BTreeMap::new(),
            layers: Vec::new(),
            region_weights,
        }
    }

    /// Worth of a piece of a layer with this key.
    fn worth(&self, piece: &Piece, key: &LayerKey) -> u64 {
        u64::from(piece.blocks * key.weight) * self.region_weights[piece.at.cylinder as usize]
    }

    /// Number of wanted blocks of a layer from `from` to `to`.
    pub fn count(&self, layer: usize, from: u64, to: u64) -> u64 {
        self.wanted.range((layer, from)..(layer, to)).count() as u64
    }

    pub fn want(&mut self, layer: usize, block: u64) {
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
    pub fn held(&self) -> u64 {
        let sizes = self.wanted.iter().map(|(&(layer, _), pieces)| {
            let size = self.layers[layer].size;
            let left: u32 = pieces.iter().map(|piece| piece.blocks).sum();
            if left < size { u64::from(size) } else { 0 }
        });
        sizes.sum()
    }

    /// Worth of the best track in the gap, where one reads or writes.
    pub fn best(&self, gap: &Opportunity) -> u64 {
        self.best_with(gap, |_| true)
    }

    /// Best worth when blocks that come in pieces are begun on some cylinders only.
    pub fn best_with(&self, gap: &Opportunity, begins_on: impl Fn(u32) -> bool) -> u64 {
        let mut tracks: BTreeMap<(u32, u32, bool), u64> = BTreeMap::new();
        for (&(layer, _), pieces) in &self.wanted {
            let key = self.layers[layer];
            let is_whole = pieces[0].blocks == key.size;
            let is_held = pieces.iter().map(|piece| piece.blocks).sum::<u32>() < key.size;
            let may_be_had = |piece: &&Piece| {
                (is_whole || is_held || begins_on(piece.at.cylinder))
                    && self.passes(gap, piece, key.op).is_some()
            };
            for piece in pieces.iter().filter(may_be_had) {
                let at = (piece.at.cylinder, piece.at.surface, key.op == Op::Write);
                *tracks.entry(at).or_default() += self.worth(piece, &key);
            }
        }
        tracks.into_values().max().unwrap_or(0)
    }

    /// Passage of the piece under the head, in nanoseconds from the beginning of the gap, if it can be had
    /// there without another stop.
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
    pub fn best_path(&self, gap: &Opportunity) -> u64 {
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
            match from == to {
                true => Some(0),
                false => (is_there || goes)
                    .then(|| seek.between_ns(op, from.cylinder, to.cylinder, true)),
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

    /// Worth of all wanted pieces in a range, which are then wanted no longer; and the blocks that this
    /// completes.
    pub fn take(&mut self, from: u64, to: u64, op: Op) -> (u64, Vec<(usize, u64)>) {
        let (mut worth, mut complete) = (0, Vec::new());
        let Self { wanted, layers, region_weights, .. } = self;
        for (&(layer, block), pieces) in wanted {
            let key = layers[layer];
            if key.op != op {
                continue;
            }
            pieces.retain(|piece| {
                let inside = from <= piece.first && piece.first + u64::from(piece.blocks) <= to;
                let region_weight = region_weights[piece.at.cylinder as usize];
                worth += u64::from(inside) * u64::from(piece.blocks * key.weight) * region_weight;
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
    pub fn blocks(&self) -> Blocks {
        Blocks::new(self.blocks.into())
    }
}
