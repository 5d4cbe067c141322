//! The greedy allocation of section 3.1: the example of figure 3, and its worst case.

use freewheel_array::allocation::{
    Allocator, DiskOrder, NewExtent, NewHeat, Passes, least_hottest, static_bound,
};
use freewheel_array::placement::{ExtentId, FileId, Placement};
use freewheel_sim::config::ConfigError;
use freewheel_units::{Blocks, Prng};

use crate::{Context, Outcome};

const INSTANCES: u64 = 20_000;

pub(crate) fn allocation(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let prng = &mut Prng::new(context.seed, "tr96 instances");
    let instances = if context.options.quick { INSTANCES / 4 } else { INSTANCES };
    let single = worst(prng, instances, 1);
    let several = worst(prng, instances / 5, 3);
    let rows = vec![
        context
            .holds("figure 3: extents on the disks as drawn", figure_3() == [1, 2, 3, 2])
            .calibrated_by("heats 9, 8, 5, 4 of its hottest extents")
            .standing_in("heats of our own: the heights of the picture are lost, and these give the picture"),
        context
            .row_in("files of one extent: hottest disk over the optimum's, of its bound", "", [0.0, 1.0], single)
            .noted(format!("{instances} random instances of 2 to 4 disks, 2 to 9 files; 1 is the bound 4/3 - 1/(3D)")),
        context
            .measured("files of up to 3 extents on distinct disks: the same", "", several)
            .noted("the bound is not one for these: {7}, {7}, {6, 7} on 2 disks gives 20 against 14"),
    ];
    Ok(Outcome { rows, figures: Vec::new() })
}

/// Disks, from 1, of the extents 2.2, 1.2, 3.1 and 3.3 of figure 3.
fn figure_3() -> [u32; 4] {
    let files = [vec![2.0, 8.0, 1.0], vec![3.0, 9.0, 2.5], vec![5.0, 1.5, 4.0]];
    let (_, disks) = greedy(&files, 3);
    [(2, 2), (1, 2), (3, 1), (3, 3)].map(|(file, extent)| disks[3 * (file - 1) + extent - 1] + 1)
}

/// The greatest ratio of greedy to best, as a share of the bound.
fn worst(prng: &mut Prng, instances: u64, extents_max: u64) -> f64 {
    (0..instances)
        .map(|_| {
            let disks = 2 + prng.below(3) as u32;
            let count = 2 + prng.below(8);
            let most = extents_max.min(u64::from(disks));
            let mut file = || -> Vec<f64> {
                (0..1 + prng.below(most)).map(|_| (1 + prng.below(20)) as f64).collect()
            };
            let files: Vec<Vec<f64>> = (0..count).map(|_| file()).collect();
            let (heats, _) = greedy(&files, disks);
            let hottest = heats.iter().copied().fold(0.0, f64::max);
            let best = least_hottest(&files, disks).expect("no more extents than disks");
            hottest / best / static_bound(disks)
        })
        .fold(0.0, f64::max)
}

/// The static greedy allocation: heats of the disks, and the disk of each extent.
fn greedy(files: &[Vec<f64>], disks: u32) -> (Vec<f64>, Vec<u32>) {
    let mut placement = Placement::new(disks, Blocks::new(1000));
    let mut heats = vec![0.0; disks as usize];
    let mut extents = Vec::new();
    for (file, of_file) in files.iter().enumerate() {
        for &heat in of_file {
            let id = ExtentId(extents.len() as u32);
            extents.push(NewExtent { id, file: FileId(file as u32), blocks: Blocks::new(1), heat });
        }
    }
    let mut allocator = Allocator::new(DiskOrder::Coolest, Passes::ByStatus, NewHeat::AtOnce);
    let placed = allocator.place_all(&mut placement, &mut heats, &extents);
    (heats, placed.into_iter().map(disk).collect())
}

fn disk(placed: Option<freewheel_array::allocation::Allocated>) -> u32 {
    placed.expect("there is room").place.disk
}
