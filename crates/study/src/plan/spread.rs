//! What balancers by bytes do: the same start, until every disk is about equally full.

use freewheel_model::array::rebalance::{Balancer, RebalanceSpec};
use freewheel_units::Blocks;

use super::jbod::Jbod;
use super::outcome::Effort;

/// How far from the mean a disk's share of used bytes may stay: what HDFS's balancer leaves.
const THRESHOLD: f64 = 0.1;

/// Moves files from the fullest disk to the emptiest until all are within the threshold, or no file
/// brings them nearer.
pub(super) fn equal_bytes(
    jbod: &Jbod,
    balancer: &mut Balancer<'_>,
    spec: &RebalanceSpec,
) -> Effort {
    let mut effort = Effort::default();
    let size = |disk: usize| jbod.disks[disk].blocks.get() as f64;
    let all: f64 = (0..jbod.disks.len()).map(size).sum();
    while let Some((file, from, to)) = next(jbod, balancer, all) {
        let cost = balancer.copy_cost(file, from, to, spec);
        effort.moves += 1;
        effort.blocks += balancer.files()[file].blocks;
        effort.copy_s += cost.copy_s;
        balancer.relocate(file, to);
    }
    effort
}

/// The largest file that the fullest disk can give to the emptiest without either of them crossing the
/// mean. Files only leave disks above it for disks below it, so this comes to an end.
fn next(jbod: &Jbod, balancer: &Balancer<'_>, all: f64) -> Option<(usize, u32, u32)> {
    let used = balancer.used();
    let mean = used.iter().map(|blocks| blocks.get() as f64).sum::<f64>() / all;
    let share = |disk: usize| used[disk].get() as f64 / jbod.disks[disk].blocks.get() as f64;
    let disks = 0..jbod.disks.len();
    let from = disks.clone().max_by(|&a, &b| share(a).total_cmp(&share(b)))?;
    let to = disks.min_by(|&a, &b| share(a).total_cmp(&share(b)))?;
    if share(from) <= mean + THRESHOLD && share(to) >= mean - THRESHOLD {
        return None;
    }
    let size = |disk: usize| jbod.disks[disk].blocks.get() as f64;
    let most = f64::min((share(from) - mean) * size(from), (mean - share(to)) * size(to));
    let files = balancer.files().iter().enumerate();
    let fits = files.filter(|(_, file)| {
        file.disk == Some(from as u32)
            && file.blocks > Blocks::ZERO
            && file.blocks.get() as f64 <= most
    });
    let (file, _) = fits.max_by_key(|(number, file)| (file.blocks, std::cmp::Reverse(*number)))?;
    Some((file, from as u32, to as u32))
}
