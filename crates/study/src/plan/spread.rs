//! What balancers by bytes do: the same start, until every disk is about equally full.

use freewheel_model::array::rebalance::{Balancer, RebalanceSpec};

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

/// The file that brings the fullest and the emptiest disk nearest to the mean. Each move makes the sum of
/// squared distances smaller, so this comes to an end.
fn next(jbod: &Jbod, balancer: &Balancer<'_>, all: f64) -> Option<(usize, u32, u32)> {
    let used: Vec<f64> = balancer.used().iter().map(|blocks| blocks.get() as f64).collect();
    let size = |disk: usize| jbod.disks[disk].blocks.get() as f64;
    let mean = used.iter().sum::<f64>() / all;
    let distance = |disk: usize, more: f64| (used[disk] + more) / size(disk) - mean;
    let disks = 0..jbod.disks.len();
    let from = disks.clone().max_by(|&a, &b| distance(a, 0.0).total_cmp(&distance(b, 0.0)))?;
    let to = disks.min_by(|&a, &b| distance(a, 0.0).total_cmp(&distance(b, 0.0)))?;
    if distance(from, 0.0) <= THRESHOLD && distance(to, 0.0) >= -THRESHOLD {
        return None;
    }
    let after = |blocks: f64| {
        let (source, target) = (distance(from, -blocks), distance(to, blocks));
        source * source + target * target
    };
    let files = balancer.files().iter().enumerate();
    let here = files.filter(|(_, file)| {
        let end = used[to] + file.blocks.get() as f64;
        file.disk == Some(from as u32) && end <= size(to)
    });
    let ranked = here.map(|(number, file)| (after(file.blocks.get() as f64), number));
    let (best, file) = ranked.min_by(|a, b| a.0.total_cmp(&b.0))?;
    // Rounding could go round in circles without a hair's breadth.
    (best < after(0.0) * (1.0 - 1e-9)).then_some((file, from as u32, to as u32))
}
