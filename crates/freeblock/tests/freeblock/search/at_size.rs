//! Both rules beside exhaustive searches on a drive of the library: its index has levels that random
//! small drives are without, and one track in ten has something on it.

use freewheel_freeblock::{Fineness, FreeRun, LayerKey, Options, Planner, Rule};
use freewheel_units::{Lbn, Op, SimTime};

use super::case::{Case, unlimited};
use super::oracle::Oracle;

/// Blocks that are wanted, of all sizes together. The Atlas 10K has 60,000 tracks.
const WANTED: u64 = 6000;

/// Sectors of the places that hold at most one wanted block each: nothing overlaps.
const PLACE: u64 = 128;

/// An Atlas 10K of which blocks of some sizes are wanted, a layer each.
fn sparse(sizes: &[u32], rule: Rule, fineness: Fineness) -> Case {
    let spec = toml::from_str(include_str!("../../../../../drives/atlas10k.toml")).unwrap();
    let mut case = Case::empty(spec, 1, Options { rule, fineness, ..unlimited() });
    let Case { scheduler, oracle, prng, .. } = &mut case;
    let layers: Vec<usize> = sizes
        .iter()
        .map(|&size| {
            let key = LayerKey { op: Op::Read, size, offset: 0, weight: 1 };
            oracle.layers.push(key);
            scheduler.layer(key)
        })
        .collect();
    let places = oracle.drive.blocks().get() / PLACE;
    for number in 0..WANTED as usize {
        let layer = layers[number % layers.len()];
        // Every layer has its places.
        let place = prng.below(places / layers.len() as u64) * layers.len() as u64 + layer as u64;
        let block = place * PLACE / u64::from(sizes[layer]);
        scheduler.want(layer, block, block + 1);
        oracle.want(layer, block);
    }
    case
}

/// Most of what is wanted of the first third of the drive comes, so that regions differ in weight.
fn wear_the_first_third(case: &mut Case) {
    let end = case.oracle.drive.blocks().get() / 3;
    let wanted: Vec<(usize, u64)> = case.oracle.wanted.keys().copied().collect();
    for (layer, block) in wanted {
        let blocks = case.oracle.layers[layer].size;
        let start = block * u64::from(blocks);
        if start < end && case.prng.chance(0.7) {
            let run = FreeRun { start: Lbn::new(start), blocks, op: Op::Read };
            case.scheduler.done(&run, SimTime::ZERO);
            case.oracle.take(start, start + u64::from(blocks), Op::Read);
        }
    }
    case.scheduler.deliveries().for_each(drop);
}

#[test]
fn both_rules_match_exhaustive_search_at_size() {
    for sizes in [&[1][..], &[8], &[128], &[1, 8, 128]] {
        for (rule, fineness) in [
            (Rule::Greedy, Fineness::Coarse),
            (Rule::Greedy, Fineness::Fine),
            (Rule::Paths, Fineness::Coarse),
        ] {
            let mut case = sparse(sizes, rule, fineness);
            wear_the_first_third(&mut case);
            let best_of = match rule {
                Rule::Greedy => Oracle::best,
                Rule::Paths => Oracle::best_path,
            };
            let mut found = 0;
            for _ in 0..20 {
                let (worth, best, in_time, runs) = case.gap_beside(best_of);
                assert!(in_time, "{rule:?}, {sizes:?}: {runs:?}");
                assert!(worth >= best, "{rule:?}, {sizes:?}: {worth} of {best}: {runs:?}");
                assert!(rule == Rule::Paths || worth == best, "{worth} of {best}: {runs:?}");
                found += u64::from(best > 0);
            }
            assert!(found >= 10, "{rule:?}, {sizes:?}: something in {found} gaps of 20");
        }
    }
}
