//! The balancer against a search through all moves, and against the best of all placements.

use freewheel_units::{Blocks, Bytes, Prng};

use super::*;
use crate::array::partition::{DiskModel, DiskUse};
use crate::drive::Drive;

/// A slow disk of 1996 and a faster one.
fn models() -> [DiskModel; 2] {
    let model = |text: &str| {
        let usage = DiskUse { filled_share: 0.5, read_share: 1.0, block: Bytes::new(512) };
        DiskModel::of(&Drive::build(&toml::from_str(text).unwrap()).unwrap(), &usage)
    };
    [
        model(include_str!("../../../../../drives/tr96.toml")),
        model(include_str!("../../../../../drives/atlas10k.toml")),
    ]
}

fn disk(model: usize) -> BalanceDisk {
    BalanceDisk { model, blocks: Blocks::new(1_000_000) }
}

fn random_files(prng: &mut Prng, count: usize, disks: u32) -> Vec<BalanceFile> {
    let mut file = || BalanceFile {
        blocks: Blocks::new(1000 + prng.below(50_000)),
        request: Blocks::new(1 + prng.below(200)),
        rate: 12.0 * prng.unit() * prng.unit(),
        disk: Some(prng.below(u64::from(disks)) as u32),
    };
    (0..count).map(|_| file()).collect()
}

/// Every file to every other disk, each worked out from new.
fn best_by_trial(
    models: &[DiskModel],
    disks: &[BalanceDisk],
    files: &[BalanceFile],
    spec: &RebalanceSpec,
) -> Option<f64> {
    let present = |files: &[BalanceFile]| {
        let balancer = Balancer::new(models, disks, files);
        balancer.loads().iter().map(QueueLoad::requests_present).sum::<f64>()
    };
    let before = present(files);
    let mut nets = Vec::new();
    for file in 0..files.len() {
        for to in 0..disks.len() as u32 {
            let from = files[file].disk.unwrap();
            let mut moved = files.to_vec();
            moved[file].disk = Some(to);
            let saved = before - present(&moved);
            let mut balancer = Balancer::new(models, disks, files);
            let room = (1.0 - spec.free_share) * disks[to as usize].blocks.get() as f64;
            let is_full = (balancer.used()[to as usize] + files[file].blocks).get() as f64 > room;
            if to == from || is_full || saved < spec.gain_min * before {
                continue;
            }
            let cost = balancer.copy_cost(file, from, to, spec);
            nets.push(saved * spec.horizon_s - cost.waiting_s);
        }
    }
    nets.into_iter().filter(|net| *net > 0.0).max_by(f64::total_cmp)
}

#[test]
fn the_move_is_the_best_of_all_moves() {
    let (models, prng) = (models(), &mut Prng::new(1, "rebalance"));
    let spec = RebalanceSpec { horizon_s: 7200.0, ..RebalanceSpec::default() };
    let (mut moved, mut none) = (0, 0);
    for _ in 0..60 {
        let disks = [disk(0), disk(1), disk(0), disk(1)];
        let files = random_files(prng, 14, 4);
        let found = Balancer::new(&models, &disks, &files).next_move(&spec).ok();
        let net = found.map(|found| found.saved * spec.horizon_s - found.cost.waiting_s);
        match (net, best_by_trial(&models, &disks, &files, &spec)) {
            (Some(net), Some(best)) => {
                assert!((net / best - 1.0).abs() < 1e-6, "{net} {best}");
                moved += 1;
            }
            (None, None) => none += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(moved > 30, "{moved} moves, {none} without");
}

#[test]
fn move_after_move_comes_near_the_best_placement() {
    let (models, prng) = (models(), &mut Prng::new(2, "rebalance"));
    let spec = RebalanceSpec { gain_min: 0.001, ..RebalanceSpec::default() };
    let disks = [disk(0), disk(1), disk(1)];
    let mut worst: f64 = 1.0;
    for _ in 0..20 {
        let files = random_files(prng, 8, 3);
        let mut balancer = Balancer::new(&models, &disks, &files);
        while let Ok(wanted) = balancer.next_move(&spec) {
            balancer.apply(&wanted);
        }
        let all = |number: u32| {
            let mut placed = files.clone();
            for (at, file) in placed.iter_mut().enumerate() {
                file.disk = Some(number / 3u32.pow(at as u32) % 3);
            }
            Balancer::new(&models, &disks, &placed).response_s().unwrap_or(f64::INFINITY)
        };
        let best = (0..3u32.pow(8)).map(all).min_by(f64::total_cmp).unwrap();
        worst = worst.max(balancer.response_s().unwrap() / best);
    }
    assert!(worst < 1.15, "{worst}");
}

#[test]
fn new_files_go_where_clients_wait_least_and_only_where_there_is_room() {
    let models = models();
    let file = |blocks, rate| BalanceFile {
        blocks: Blocks::new(blocks),
        request: Blocks::new(16),
        rate,
        disk: None,
    };
    // The fast disk takes the hottest file, and the slow one has no room for the large one.
    let small = BalanceDisk { model: 0, blocks: Blocks::new(50_000) };
    let files = [file(90_000, 1.0), file(10_000, 30.0), file(10_000, 10.0)];
    let mut balancer = Balancer::new(&models, &[small, disk(1)], &files);
    assert_eq!(balancer.place_new(0.05), Ok(vec![(1, 1), (2, 1), (0, 1)]));
    assert_eq!(balancer.used()[1], Blocks::new(110_000));
    let mut full = Balancer::new(&models, &[small], &files);
    assert_eq!(full.place_new(0.05), Err(0));
}

#[test]
fn what_forbids_a_move_is_said() {
    let models = models();
    let file = |disk, rate| BalanceFile {
        blocks: Blocks::new(900_000),
        request: Blocks::new(16),
        rate,
        disk: Some(disk),
    };
    let next = |files: &[BalanceFile], spec: &RebalanceSpec| {
        Balancer::new(&models, &[disk(0), disk(0)], files).next_move(spec)
    };
    let spec = RebalanceSpec::default();
    assert_eq!(next(&[file(0, 0.0)], &spec), Err(NoMove::NoLoad));
    assert_eq!(next(&[file(0, 20.0), file(1, 0.0)], &spec), Err(NoMove::TooLittleGain));
    let small = |rate| BalanceFile { blocks: Blocks::new(70_000), ..file(0, rate) };
    let full = [small(15.0), small(15.0), file(1, 0.0)];
    assert_eq!(next(&full, &spec), Err(NoMove::NoRoom));
    let free = [small(15.0), small(15.0)];
    let hurried = RebalanceSpec { horizon_s: 0.1, ..spec };
    assert_eq!(next(&free, &hurried), Err(NoMove::NoPayback));
    assert!(next(&free, &spec).is_ok());
}

#[test]
fn an_overloaded_disk_has_a_wait_that_grows_with_its_load() {
    let service = models()[0].service(16.0);
    let wait = |busy: f64| QueueLoad::new(busy / service.mean, &service).wait_s();
    let slope = |busy: f64| (wait(busy + 0.001) - wait(busy)) / 0.001;
    assert!(wait(0.99) < wait(1.5) && wait(1.5) < wait(3.0) && wait(3.0).is_finite());
    // It has no step and no kink at 95 %.
    assert!((wait(0.9501) / wait(0.9499) - 1.0).abs() < 0.01);
    assert!((slope(0.951) / slope(0.948) - 1.0).abs() < 0.1);
}
