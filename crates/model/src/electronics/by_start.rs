//! The segments of a buffer in order of their first blocks.

use freewheel_units::Lbn;

/// Segments that hold blocks. None is longer than `longest`, so those with a block at some place begin
/// shortly before it: few, and side by side here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ByStart {
    /// In order of their starts. Those with the same start are in no order.
    places: Vec<Place>,
    longest: u64,
}

/// A segment and its first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    start: u64,
    segment: usize,
}

impl ByStart {
    /// Without segments, none of which will hold more than `longest` blocks.
    pub fn new(longest: u64) -> Self {
        Self { places: Vec::new(), longest }
    }

    pub fn insert(&mut self, segment: usize, start: Lbn) {
        let rank = self.rank_of(start.get());
        self.places.insert(rank, Place { start: start.get(), segment });
    }

    /// Panics unless the segment is here with this start.
    pub fn remove(&mut self, segment: usize, start: Lbn) {
        self.places.remove(self.find(segment, start));
    }

    /// The segment begins at `to` from now on. Panics unless it is here with the start `from`.
    pub fn replace(&mut self, segment: usize, from: Lbn, to: Lbn) {
        let rank = self.find(segment, from);
        let next = self.rank_of(to.get());
        // Its own place is among those before a later one.
        let last = next - usize::from(rank < next);
        if last > rank {
            self.places.copy_within(rank + 1..=last, rank);
        } else {
            self.places.copy_within(last..rank, last + 1);
        }
        self.places[last] = Place { start: to.get(), segment };
    }

    /// Every segment that may hold a block of `first..=last`, or end at `first`.
    #[inline]
    pub fn near(&self, first: Lbn, last: Lbn) -> impl Iterator<Item = usize> + Clone + '_ {
        let rank = self.rank_of(first.get().saturating_sub(self.longest));
        let near = self.places[rank..].iter().take_while(move |place| place.start <= last.get());
        near.map(|place| place.segment)
    }

    /// The rank of the first that begins at `start` or later.
    #[inline]
    fn rank_of(&self, start: u64) -> usize {
        self.places.partition_point(|place| place.start < start)
    }

    fn find(&self, segment: usize, start: Lbn) -> usize {
        let first = self.rank_of(start.get());
        let same = self.places[first..].iter().position(|place| place.segment == segment);
        let rank = first + same.expect("a segment with blocks has its place");
        assert!(self.places[rank].start == start.get(), "segment {segment} begins elsewhere");
        rank
    }
}
