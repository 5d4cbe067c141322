//! Spans of blocks by device, operation and place: those that share blocks with another are found quickly.

use std::collections::BTreeMap;

use freewheel_units::Op;

use super::block_event::Transfer;

/// Place and number of a span, in the order in which they are looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub device: u32,
    op: u8,
    pub start: u64,
    pub number: u64,
}

impl Place {
    pub fn new(device: u32, op: Op, start: u64, number: u64) -> Self {
        Self { device, op: op as u8, start, number }
    }

    /// Transfer with another beginning.
    pub fn from(self, start: u64) -> Self {
        Self { start, ..self }
    }
}

/// A span: its place and the block behind it.
pub(super) type Span = (Place, u64);

#[derive(Debug, Default)]
pub(super) struct Spans {
    ends: BTreeMap<Place, u64>,
    /// Blocks of the longest so far: how far before a block its spans may begin.
    longest: u64,
}

impl Spans {
    pub fn insert(&mut self, place: Place, end: u64) {
        self.longest = self.longest.max(end - place.start);
        self.ends.insert(place, end);
    }

    pub fn remove(&mut self, place: &Place) {
        self.ends.remove(place);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn clear(&mut self) {
        self.ends.clear();
    }

    /// Numbers of the transfers that begin at `start`.
    pub fn beginning_at(
        &self,
        device: u32,
        op: Op,
        start: u64,
    ) -> impl DoubleEndedIterator<Item = Span> {
        self.ends
            .range(Place::new(device, op, start, 0)..=Place::new(device, op, start, u64::MAX))
            .map(|(place, &end)| (*place, end))
    }

    /// Numbers of the transfers that have just the blocks of `data`.
    pub fn same(&self, device: u32, data: Transfer) -> impl DoubleEndedIterator<Item = Place> {
        let here = self.beginning_at(device, data.op, data.start());
        here.filter(move |(_, end)| *end == data.end()).map(|(place, _)| place)
    }

    /// Numbers of the transfers that end at `end`.
    pub fn ending_at(&self, device: u32, op: Op, end: u64) -> impl Iterator<Item = Span> {
        let near = self.ends.range(
            Place::new(device, op, end.saturating_sub(self.longest), 0)
                ..Place::new(device, op, end, 0),
        );
        near.filter(move |&(_, &other)| other == end).map(|(place, &end)| (*place, end))
    }

    /// Transfers that share blocks with `data`, of those that `counts` lets through: the one with the
    /// lowest number that has just its blocks, or all, by their beginning and then their number.
    pub fn sharing(
        &self,
        device: u32,
        data: Transfer,
        counts: impl Fn(&Place) -> bool,
    ) -> Vec<Span> {
        let (start, end) = (data.start(), data.end());
        if let Some(same) = self.same(device, data).find(&counts) {
            return vec![(same, end)];
        }
        let place = |start| Place::new(device, data.op, start, 0);
        let near = self.ends.range(place(start.saturating_sub(self.longest))..place(end));
        let near = near.filter(|&(place, &other)| other > start && counts(place));
        near.map(|(place, &end)| (*place, end)).collect()
    }
}
