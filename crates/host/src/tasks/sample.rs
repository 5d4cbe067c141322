//! Account of a random sample of a task's range, which was drawn before it began.
//!
//! A sample of the first blocks to pass the head depends on where clients send it. One that is drawn
//! beforehand does not, when all of it has come; until then the counts by tenth tell how far the part
//! that has come differs from the whole.

use freewheel_freeblock::tasks::Extent;

/// Parts of the drive by which a sample is counted.
const PLACES: usize = 10;

/// Counts of a sample in one tenth of the task's range, in blocks of 512 B.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SamplePlace {
    /// Blocks of the sample.
    pub drawn: u64,
    /// Members that were read or named unreadable.
    pub delivered: u64,
}

/// A sample, and how much of it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Seed of the draw.
    pub seed: u64,
    /// Blocks of 512 B of a unit; those at the ends of extents may be shorter.
    pub unit: u64,
    /// Units that it was drawn from.
    pub population: u64,
    /// Units of it.
    pub drawn: u64,
    /// Counts by tenth of the range, the first blocks first.
    pub places: [SamplePlace; PLACES],
}

impl Sample {
    /// A sample of these extents of a task's range, of which no block has come: `drawn` of `population`
    /// units of `unit` x 512 B.
    pub fn new(
        (range, wanted): (Extent, &[Extent]),
        (seed, unit): (u64, u64),
        (population, drawn): (u64, u64),
    ) -> Self {
        let places = [SamplePlace::default(); PLACES];
        let mut sample = Self { seed, unit, population, drawn, places };
        for extent in wanted {
            sample.count(range, *extent, |place| &mut place.drawn);
        }
        sample
    }

    /// Counts blocks that have come.
    pub fn deliver(&mut self, range: Extent, extent: Extent) {
        self.count(range, extent, |place| &mut place.delivered);
    }

    fn count(
        &mut self,
        range: Extent,
        extent: Extent,
        what: impl Fn(&mut SamplePlace) -> &mut u64,
    ) {
        let (mut at, end) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        while at < end {
            let place = place_of(range, at);
            let next = if place + 1 < PLACES { begin_of(range, place + 1) } else { end };
            *what(&mut self.places[place]) += next.min(end) - at;
            at = next.min(end);
        }
    }
}

/// The tenth of a range in which a block of it is.
fn place_of(range: Extent, block: u64) -> usize {
    let at = u128::from(block - range.start.get()) * PLACES as u128;
    (at / u128::from(range.blocks.get().max(1))) as usize
}

/// The first block of a tenth of a range.
pub fn begin_of(range: Extent, place: usize) -> u64 {
    let before = u128::from(range.blocks.get()) * place as u128;
    range.start.get() + before.div_ceil(PLACES as u128) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sample_counts_match_every_block(
            (start, blocks) in (0u64..1 << 40, 1u64..300),
            (from, length) in (0u64..300, 1u64..300),
        ) {
            let range = Extent::new(start, blocks);
            let from = from % blocks;
            let extent = Extent::new(start + from, length.min(blocks - from));
            let mut sample = Sample::new((range, &[extent]), (1, 1), (1, 1));
            sample.deliver(range, extent);
            prop_assert!(sample.places.iter().all(|place| place.drawn == place.delivered));
            let mut slow = [0; PLACES];
            for block in extent.start.get()..extent.start.get() + extent.blocks.get() {
                slow[place_of(range, block)] += 1;
            }
            prop_assert_eq!(sample.places.map(|place| place.delivered), slow);
        }
    }
}
