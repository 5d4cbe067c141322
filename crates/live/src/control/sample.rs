//! Random samples of what a task reads, drawn before it begins.

use std::collections::BTreeSet;

use freewheel_freeblock::tasks::Extent;
use freewheel_host::tasks::{Sample, begin_of};
use freewheel_units::{BLOCK_BYTES, Prng};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::extents::Extents;

/// A random sample to read instead of all blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SampleRequest {
    /// Share of the units to draw: above 0 and at most 1. Each has the same chance. At most 500,000 units.
    pub share: f64,
    /// Size of a unit: a multiple of the task's blocks. When absent its block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit_bytes: Option<u64>,
    /// Seed of the draw: the same one draws the same units.
    #[serde(default)]
    pub seed: u64,
}

/// A sample, and how much of it has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SampleReport {
    /// Seed of the draw.
    pub seed: u64,
    /// Size of a unit.
    pub unit_bytes: u64,
    /// Units that it was drawn from.
    pub population: u64,
    /// Units of it.
    pub drawn: u64,
    /// Counts by tenth of the task's range, the first blocks first.
    pub tenths: Vec<SampleTenth>,
}

/// Progress of a sample in a tenth of the task's range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SampleTenth {
    /// First block of the tenth.
    pub first_block: u64,
    /// Blocks of the sample in it.
    pub drawn_blocks: u64,
    /// Blocks of them that were read or are unreadable.
    pub delivered_blocks: u64,
}

impl SampleReport {
    pub(super) fn new(range: Extent, sample: &Sample) -> Self {
        Self {
            seed: sample.seed,
            unit_bytes: sample.unit * BLOCK_BYTES,
            population: sample.population,
            drawn: sample.drawn,
            tenths: sample
                .places
                .iter()
                .enumerate()
                .map(|(number, place)| SampleTenth {
                    first_block: begin_of(range, number),
                    drawn_blocks: place.drawn,
                    delivered_blocks: place.delivered,
                })
                .collect(),
        }
    }
}

/// Draws a share of the units of these extents of a range, in ascending order and apart from each other,
/// or of all of it where there are none: the number that is nearest to the share and at least one, each set
/// of this size with the same chance. The task has blocks of `block` x 512 B.
pub(super) fn draw(
    (range, extents): (Extent, &[Extent]),
    sample: &SampleRequest,
    block: u32,
) -> Result<(Sample, Vec<Extent>), String> {
    let SampleRequest { share, unit_bytes, seed } = *sample;
    if !(share > 0.0 && share <= 1.0) {
        return Err(format!("sample.share is {share}: more than 0 and at most 1 is allowed"));
    }
    let block_bytes = u64::from(block) * BLOCK_BYTES;
    let unit_bytes = unit_bytes.unwrap_or(block_bytes);
    if unit_bytes == 0 || !unit_bytes.is_multiple_of(block_bytes) {
        return Err(format!(
            "sample.unit_bytes is {unit_bytes}: a multiple of {block_bytes}, the task's block, is \
             allowed"
        ));
    }
    let (unit, all) = (unit_bytes / BLOCK_BYTES, [range]);
    let extents = if extents.is_empty() { &all[..] } else { extents };
    let units_of = |extent: &Extent| extent.blocks.get().div_ceil(unit);
    let population: u64 = extents.iter().map(units_of).sum();
    let drawn = ((population as f64 * share).round() as u64).clamp(1, population.max(1));
    if drawn > Extents::MAX as u64 {
        return Err(format!(
            "sample: {drawn} units: at most {} are allowed; take larger ones by unit_bytes, or a \
             smaller share",
            Extents::MAX
        ));
    }
    let mut numbers = numbers(population, drawn, seed).into_iter().peekable();
    let (mut first, mut wanted) = (0, Vec::<Extent>::new());
    for extent in extents {
        let (start, blocks) = (extent.start.get(), extent.blocks.get());
        while let Some(number) = numbers.next_if(|number| *number < first + units_of(extent)) {
            let from = (number - first) * unit;
            push(&mut wanted, Extent::new(start + from, unit.min(blocks - from)));
        }
        first += units_of(extent);
    }
    Ok((Sample::new((range, &wanted), (seed, unit), (population, drawn)), wanted))
}

/// Adds an extent after the others, as a part of the last one if they touch.
fn push(extents: &mut Vec<Extent>, next: Extent) {
    match extents.last_mut() {
        Some(last) if last.start.get() + last.blocks.get() == next.start.get() => {
            last.blocks += next.blocks;
        }
        _ => extents.push(next),
    }
}

/// `drawn` different numbers below `population`, ascending (Floyd, in Bentley, Programming Pearls, 1987).
fn numbers(population: u64, drawn: u64, seed: u64) -> BTreeSet<u64> {
    let mut prng = Prng::new(seed, "sample");
    let mut numbers = BTreeSet::new();
    for last in population.saturating_sub(drawn)..population {
        let number = prng.below(last + 1);
        if !numbers.insert(number) {
            numbers.insert(last);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn drawn(extents: &[Extent], share: f64, seed: u64) -> (Sample, Vec<Extent>) {
        let sample = SampleRequest { share, unit_bytes: None, seed };
        draw((Extent::new(100, 1000), extents), &sample, 8).unwrap()
    }

    #[test]
    fn sample_draws_unit_pairs_equally_often() {
        // 2 of 5 units, of 8, 8, 3, 8 and 5 blocks, none of which touches the next but in the extents.
        let extents = [Extent::new(100, 19), Extent::new(500, 13)];
        let units = [(100, 8), (108, 8), (116, 3), (500, 8), (508, 5)];
        let mut pairs = BTreeMap::new();
        for seed in 0..10_000 {
            let (sample, wanted) = drawn(&extents, 0.4, seed);
            assert_eq!((sample.population, sample.drawn), (5, 2));
            let blocks: BTreeSet<u64> = wanted
                .iter()
                .flat_map(|extent| extent.start.get()..extent.start.get() + extent.blocks.get())
                .collect();
            let there: Vec<usize> =
                (0..5).filter(|&unit| blocks.contains(&units[unit].0)).collect();
            assert_eq!(there.len(), 2);
            let expected: u64 = there.iter().map(|&unit| units[unit].1).sum();
            assert_eq!(blocks.len() as u64, expected, "whole units");
            *pairs.entry(there).or_insert(0) += 1;
        }
        // Ten pairs; the standard deviation of each count is 30.
        assert_eq!(pairs.len(), 10);
        assert!(pairs.values().all(|count| (880..1120).contains(count)), "{pairs:?}");
    }

    #[test]
    fn sample_size_between_one_and_all() {
        assert_eq!(drawn(&[], 0.000_1, 1).0.drawn, 1);
        assert_eq!(drawn(&[], 1.0, 1).1, [Extent::new(100, 1000)]);
        assert_eq!(drawn(&[], 0.1, 1), drawn(&[], 0.1, 1));
        assert_ne!(drawn(&[], 0.1, 1).1, drawn(&[], 0.1, 2).1);
    }
}
