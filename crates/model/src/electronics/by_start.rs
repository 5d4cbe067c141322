//! The segments of a buffer in order of their first blocks.

use freewheel_units::Lbn;

/// Segments that hold blocks. None is longer than `longest`, so those with a block at some place begin
/// shortly before it: few, and side by side here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ByStart {
    places: Vec<Place>,
    longest: u64,
}

/// A segment and its first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    start: u64,
    segment: u32,
}

impl ByStart {
    /// Without segments, none of which will hold more than `longest` blocks.
    pub fn new(longest: u64) -> Self {
        Self { places: Vec::new(), longest }
    }

    pub fn insert(&mut self, segment: usize, start: Lbn) {
        let place = Place::new(segment, start);
        let rank = self.rank_of(place);
        self.places.insert(rank, place);
    }

    /// Panics unless the segment was inserted with this start.
    pub fn remove(&mut self, segment: usize, start: Lbn) {
        let place = Place::new(segment, start);
        let rank = self.rank_of(place);
        assert!(self.places[rank] == place, "segment {segment} does not begin at {start}");
        self.places.remove(rank);
    }

    /// Every segment that may hold a block of `first..=last`, or end at `first`.
    #[inline]
    pub fn near(&self, first: Lbn, last: Lbn) -> impl Iterator<Item = usize> + Clone + '_ {
        let least = first.get().saturating_sub(self.longest);
        let rank = self.places.partition_point(|place| place.start < least);
        let near = self.places[rank..].iter().take_while(move |place| place.start <= last.get());
        near.map(|place| place.segment as usize)
    }

    /// The segment begins at `to` from now on. Panics unless it was inserted with `from`.
    pub fn replace(&mut self, segment: usize, from: Lbn, to: Lbn) {
        let (from, to) = (Place::new(segment, from), Place::new(segment, to));
        let (rank, next) = (self.rank_of(from), self.rank_of(to));
        assert!(self.places[rank] == from, "segment {segment} does not begin there");
        // Its own place is among those before a later one.
        let last = next - usize::from(from < to);
        if last > rank {
            self.places.copy_within(rank + 1..=last, rank);
        } else {
            self.places.copy_within(last..rank, last + 1);
        }
        self.places[last] = to;
    }

    #[inline]
    fn rank_of(&self, place: Place) -> usize {
        self.places.partition_point(|other| *other < place)
    }
}

impl Place {
    fn new(segment: usize, start: Lbn) -> Self {
        Self { start: start.get(), segment: segment as u32 }
    }
}
