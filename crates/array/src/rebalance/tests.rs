//! The balancer against a search through all moves, and against the best of all placements.

use std::sync::Arc;

use freewheel_units::{Blocks, Prng};

use super::*;
use freewheel_model::drive::Drive;

/// A slow disk of 1996 and a faster one.
fn models() -> [DriveModel; 2] {
    let model = |text: &str| {
        DriveModel::new(Arc::new(Drive::build(&toml::from_str(text).unwrap()).unwrap()), 1.0)
    };
    [
        model(include_str!("../../../../drives/tr96.toml")),
        model(include_str!("../../../../drives/atlas10k.toml")),
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

/// Every file to every other disk, each moved on a copy.
fn best_by_trial(start: &Balancer<'_>, spec: &RebalanceSpec) -> Option<f64> {
    let present =
        |balancer: &Balancer<'_>| balancer.loads().iter().map(QueueLoad::compared_present).sum();
    let before: f64 = present(start);
    let mean = before / start.used().len() as f64;
    let mut nets = Vec::new();
    for (file, what) in start.files().iter().enumerate() {
        for to in 0..start.used().len() as u32 {
            let from = what.disk.unwrap();
            let mut moved = start.clone();
            if to == from || moved.used()[to as usize] + what.blocks > Blocks::new(950_000) {
                continue;
            }
            let cost = moved.copy_cost(file, from, to, spec);
            moved.relocate(file, to);
            let saved = before - present(&moved);
            let of_disk = start.loads()[from as usize].compared_present();
            if saved >= spec.gain_min * f64::max(of_disk, mean) {
                nets.push(saved * (spec.horizon_s - cost.copy_s).max(0.0) - cost.waiting_s);
            }
        }
    }
    nets.into_iter().filter(|net| *net > 0.0).max_by(f64::total_cmp)
}

#[test]
fn move_is_best_of_all() {
    let (models, prng) = (models(), &mut Prng::new(1, "rebalance"));
    let spec = RebalanceSpec { horizon_s: 7200.0, ..RebalanceSpec::default() };
    let (mut moved, mut none) = (0, 0);
    for _ in 0..60 {
        let disks = [disk(0), disk(1), disk(0), disk(1)];
        let files = random_files(prng, 14, 4);
        let mut balancer = Balancer::new(&models, &disks, &files);
        let best = best_by_trial(&balancer, &spec);
        let found = balancer.next_move(&spec).ok();
        let net = found.map(|found| found.net(spec.horizon_s));
        match (net, best) {
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

/// More disks and files than a search looks at.
#[test]
fn move_among_many_disks_nears_best() {
    let (models, prng) = (models(), &mut Prng::new(4, "rebalance"));
    let spec = RebalanceSpec { gain_min: 0.0001, ..RebalanceSpec::default() };
    let disks: Vec<BalanceDisk> = (0..40).map(|number| disk(number % 2)).collect();
    let mut worst: f64 = 1.0;
    for _ in 0..3 {
        let mut files = random_files(prng, 1500, 40);
        files.iter_mut().for_each(|file| file.blocks = Blocks::new(file.blocks.get() / 4));
        files.iter_mut().for_each(|file| file.rate *= 0.1);
        // One disk has more files than are looked at.
        files[..300].iter_mut().for_each(|file| {
            (file.disk, file.blocks) = (Some(3), Blocks::new(1000));
        });
        let mut balancer = Balancer::new(&models, &disks, &files);
        let best = best_by_trial(&balancer, &spec).unwrap();
        worst = worst.min(balancer.next_move(&spec).unwrap().net(spec.horizon_s) / best);
    }
    assert!(worst > 0.9, "{worst}");
}

/// The dearest disks hold one file each, which would only change places. The fifth has two.
#[test]
fn disk_behind_stuck_dearer_ones_is_tried() {
    let models = models();
    let file = |disk, rate| BalanceFile {
        blocks: Blocks::new(50_000),
        request: Blocks::new(16),
        rate,
        disk: Some(disk),
    };
    let mut files: Vec<BalanceFile> = (0..6).map(|disk| file(disk, 60.0)).collect();
    files.extend([file(6, 20.0), file(6, 20.0)]);
    let mut balancer = Balancer::new(&models, &[disk(0); 8], &files);
    let spec = RebalanceSpec { gain_min: 0.0001, ..RebalanceSpec::default() };
    let found = balancer.next_move(&spec).unwrap();
    assert_eq!((found.from, found.to), (6, 7));
}

/// A file that no disk can serve, an overloaded disk that moves can help, and an idle one.
#[test]
fn hopeless_file_stays_and_hides_no_overload() {
    let models = models();
    let file = |disk, rate| BalanceFile {
        blocks: Blocks::new(50_000),
        request: Blocks::new(16),
        rate,
        disk: Some(disk),
    };
    let mut files = vec![file(0, 4000.0)];
    files.extend([file(1, 6.0); 10]);
    let mut balancer = Balancer::new(&models, &[disk(0); 3], &files);
    assert_eq!(balancer.hopeless().collect::<Vec<_>>(), [0]);
    assert!(balancer.is_lost(0) && balancer.loads()[1].busy > 1.0);
    assert_eq!(balancer.response_s(), None);
    let mut moves = 0;
    while let Ok(wanted) = balancer.next_move(&RebalanceSpec::default()) {
        assert_eq!((wanted.from, wanted.to), (1, 2));
        balancer.apply(&wanted);
        moves += 1;
    }
    assert!((4..=6).contains(&moves), "{moves}");
    assert_eq!(balancer.lost_rate(), 4000.0);
    // The mean is that of the two disks that can serve their load.
    let without = Balancer::new(&models, &[disk(0); 2], &[file(0, 6.0); 5]).response_s().unwrap();
    assert!(balancer.response_s().unwrap() < 2.0 * without);
}

/// Beside the hopeless file lie ten warm ones and an archive. Two disks can serve the warm ones.
#[test]
fn files_beside_hopeless_one_move_away() {
    let models = models();
    let file = |disk, rate| BalanceFile {
        blocks: Blocks::new(50_000),
        request: Blocks::new(16),
        rate,
        disk: Some(disk),
    };
    let mut files = vec![file(0, 4000.0), file(0, 0.0)];
    files.extend([file(0, 6.0); 10]);
    let mut balancer = Balancer::new(&models, &[disk(0); 3], &files);
    let spec = RebalanceSpec::default();
    while let Ok(wanted) = balancer.next_move(&spec) {
        assert_ne!(wanted.to, 0);
        balancer.apply(&wanted);
    }
    // The archive makes no client wait.
    let left: Vec<usize> = (0..12).filter(|&file| balancer.files()[file].disk == Some(0)).collect();
    assert_eq!((left, balancer.lost_rate()), (vec![0, 1], 4000.0));
    let even = Balancer::new(&models, &[disk(0); 2], &[file(0, 6.0); 5]).response_s().unwrap();
    assert!((balancer.response_s().unwrap() / even - 1.0).abs() < 0.01);
    // With a third of the disks, those stay that would overload another disk.
    let mut few = Balancer::new(&models, &[disk(0); 2], &files);
    while let Ok(wanted) = few.next_move(&spec) {
        few.apply(&wanted);
    }
    assert!(few.response_s().is_some() && few.lost_rate() > 4000.0, "{}", few.lost_rate());
}

/// Room for the warm file is on no disk; b's file alone would gain a little.
#[test]
fn file_lacking_room_is_named_as_reason() {
    let models = models();
    let file = |disk, blocks, rate| BalanceFile {
        blocks: Blocks::new(blocks),
        request: Blocks::new(16),
        rate,
        disk: Some(disk),
    };
    let on_a = [file(0, 200_000, 4000.0), file(0, 600_000, 6.0), file(0, 100_000, 6.0)];
    let full = [&on_a[..], &[file(1, 520_000, 6.0), file(2, 520_000, 6.0)]].concat();
    let mut balancer = Balancer::new(&models, &[disk(0); 3], &full);
    let spec = RebalanceSpec::default();
    let first = balancer.next_move(&spec).unwrap();
    assert_eq!((first.file, first.from), (2, 0));
    balancer.apply(&first);
    assert_eq!(balancer.next_move(&spec), Err(NoMove::NoRoom { file: 1 }));
    assert_eq!(balancer.next_exchange(&spec), None);
    // Here the other two disks have room for each other's file.
    let others = [file(1, 520_000, 0.01), file(2, 400_000, 6.0)];
    let mut balancer = Balancer::new(&models, &[disk(0); 3], &[&on_a[..2], &others].concat());
    assert_eq!(balancer.next_move(&spec), Err(NoMove::NoRoom { file: 1 }));
    let pair = balancer.next_exchange(&spec).unwrap();
    let [first, second] = pair;
    // Either of the two makes room on its disk by going to the other.
    assert_eq!((second.file, second.from, second.to), (1, 0, first.from));
    assert!(first.to > 0 && first.to != second.to, "{first:?}");
    pair.iter().for_each(|wanted| balancer.apply(wanted));
    assert_eq!(balancer.lost_rate(), 4000.0);
}

/// One disk of sixty is 73 % busy and the others are 16 % busy: its moves save little of all waiting.
#[test]
fn gain_of_move_ignores_disk_count() {
    let models = models();
    let file = |disk, rate| BalanceFile {
        blocks: Blocks::new(10_000),
        request: Blocks::new(16),
        rate,
        disk: Some(disk),
    };
    let moves = |disks: u32| {
        let mut files = vec![file(0, 1.0); 40];
        files.extend((1..disks).flat_map(|disk| [file(disk, 2.0); 4]));
        let all = vec![super::tests::disk(0); disks as usize];
        let mut balancer = Balancer::new(&models, &all, &files);
        let busy = balancer.loads()[0].busy;
        let spec = RebalanceSpec { gain_min: 0.05, ..RebalanceSpec::default() };
        let mut moves = 0;
        while let Ok(wanted) = balancer.next_move(&spec) {
            assert_eq!(wanted.from, 0);
            balancer.apply(&wanted);
            moves += 1;
        }
        (busy, moves)
    };
    let ((busy, few), (_, many)) = (moves(6), moves(60));
    assert!((0.6..0.8).contains(&busy), "{busy}");
    assert!(few > 3 && many >= few, "{few} {many}");
}

/// The cheapest disk is full. One with room would save less than is asked for; with less asked for, the file
/// goes there.
#[test]
fn full_disk_is_no_reason_beside_room() {
    let models = models();
    let file = |disk, blocks, rate| BalanceFile {
        blocks: Blocks::new(blocks),
        request: Blocks::new(16),
        rate,
        disk: Some(disk),
    };
    let files = [
        file(0, 300_000, 12.0),
        file(0, 300_000, 12.0),
        file(1, 900_000, 0.0),
        file(2, 300_000, 11.0),
    ];
    let next = |gain_min: f64| {
        let spec = RebalanceSpec { gain_min, ..RebalanceSpec::default() };
        Balancer::new(&models, &[disk(0); 3], &files).next_move(&spec)
    };
    assert_eq!(next(0.6), Err(NoMove::TooLittleGain));
    let refused = [0.3, 0.2, 0.1, 0.05].map(next);
    let is_full =
        |it: &Result<RankedMove, NoMove>| matches!(it, Err(NoMove::TargetFull { to: 1, .. }));
    assert!(refused.iter().any(is_full), "{refused:?}");
    assert_eq!(next(0.001).map(|wanted| (wanted.from, wanted.to)), Ok((0, 2)));
    // Without room anywhere that is the reason.
    let full = [files[0], files[1], files[2], file(2, 900_000, 11.0)];
    let spec = RebalanceSpec::default();
    let refused = Balancer::new(&models, &[disk(0); 3], &full).next_move(&spec);
    assert!(matches!(refused, Err(NoMove::NoRoom { .. })), "{refused:?}");
}

#[test]
fn cold_file_makes_room_for_hot() {
    let models = models();
    let file = |disk, blocks, rate| BalanceFile {
        blocks: Blocks::new(blocks),
        request: Blocks::new(16),
        rate,
        disk: Some(disk),
    };
    // Both disks keep 5 % free. Disk 1 has no room for a hot file until its archive leaves.
    let files = [
        file(0, 300_000, 20.0),
        file(0, 300_000, 20.0),
        file(1, 550_000, 0.01),
        file(1, 300_000, 1.0),
    ];
    let mut balancer = Balancer::new(&models, &[disk(0), disk(0), disk(0)][..2], &files);
    let spec = RebalanceSpec::default();
    assert!(matches!(balancer.next_move(&spec), Err(NoMove::NoRoom { .. })));
    // The archive is larger than what disk 0 has free; the small file is not.
    let [first, second] = balancer.next_exchange(&spec).unwrap();
    assert_eq!((first.file, first.from, first.to), (3, 1, 0));
    assert_eq!((second.from, second.to), (0, 1));
    let before = balancer.response_s().unwrap();
    balancer.apply(&first);
    balancer.apply(&second);
    let gain = before - balancer.response_s().unwrap();
    assert!((gain / (first.gain_s + second.gain_s) - 1.0).abs() < 1e-9, "{gain}");
    assert!(balancer.next_exchange(&spec).is_none());
}

/// Seeks by a sum over all pairs of files, from their places.
#[test]
fn seeks_after_moves_match_all_pairs() {
    let (models, prng) = (models(), &mut Prng::new(3, "rebalance"));
    let disks = [disk(0), disk(1), disk(0)];
    let files = random_files(prng, 12, 3);
    let mut balancer = Balancer::new(&models, &disks, &files);
    for _ in 0..200 {
        let (file, to) = (prng.below(12) as usize, prng.below(3) as u32);
        if balancer.used()[to as usize] + files[file].blocks < Blocks::new(900_000) {
            balancer.relocate(file, to);
        }
    }
    for (number, load) in balancer.loads().iter().enumerate() {
        let model = &models[disks[number].model];
        let here = || (0..12).filter(|&file| balancer.files()[file].disk == Some(number as u32));
        let (mut expected, mut rate, mut pairs) = (0.0, 0.0, 0.0);
        for file in here() {
            let what = &balancer.files()[file];
            let start = balancer.starts()[file];
            let zone = model.zone(start, what.blocks);
            expected += what.rate * model.after_seek(zone, what.request).mean;
            rate += what.rate;
            for other in here() {
                let [a, b] = [file, other].map(|file| {
                    let BalanceFile { blocks, rate, .. } = balancer.files()[file];
                    model.spread(balancer.starts()[file], blocks, rate).by_band()
                });
                for (i, a) in a.iter().enumerate() {
                    let seeks = b.iter().enumerate().map(|(j, b)| b * model.seek(i.abs_diff(j))[0]);
                    pairs += a * seeks.sum::<f64>();
                }
            }
        }
        expected += pairs / rate;
        assert!((load.busy / expected - 1.0).abs() < 1e-9, "{} {expected}", load.busy);
    }
}

#[test]
fn moves_approach_best_placement() {
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
fn new_files_go_where_waits_are_least() {
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
    // The larger disk has more room, and less than it keeps free.
    let large = BalanceDisk { model: 0, blocks: Blocks::new(1_000_000) };
    let kept = BalanceFile { disk: Some(0), ..file(900_000, 1.0) };
    let mut by_room = Balancer::new(&models, &[large, small], &[kept, file(47_000, 0.0)]);
    assert_eq!(by_room.place_by_room(0.06), Ok(()));
    assert_eq!(by_room.files()[1].disk, Some(1));
    // Unused files go where most room is, also by load.
    let archive = [file(10_000, 0.0); 4];
    let mut archive = Balancer::new(&models, &[disk(0), disk(0)], &archive);
    assert!(archive.place_new(0.05).is_ok());
    assert_eq!(archive.used(), [Blocks::new(20_000); 2]);
}

#[test]
fn response_near_overload_follows_queue() {
    let service = models()[0].after_seek(0, Blocks::new(16));
    let load = |busy: f64| QueueLoad::new(busy / service.mean, &service);
    let exact = 0.99 + 0.99 / service.mean * service.second * 0.99 / service.mean / (2.0 * 0.01);
    assert!((load(0.99).requests_present().unwrap() / exact - 1.0).abs() < 1e-9);
    assert_eq!(load(1.0).requests_present(), None);
}

#[test]
fn forbidden_move_names_reason() {
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
    assert!(matches!(next(&full, &spec), Err(NoMove::NoRoom { .. })));
    let free = [small(15.0), small(15.0)];
    let hurried = RebalanceSpec { horizon_s: 0.1, ..spec };
    assert_eq!(next(&free, &hurried), Err(NoMove::NoPayback));
    assert!(next(&free, &spec).is_ok());
}

#[test]
fn overloaded_disk_waits_grow_with_load() {
    let service = models()[0].after_seek(0, Blocks::new(16));
    let wait = |busy: f64| QueueLoad::new(busy / service.mean, &service).compared_wait_s();
    let slope = |busy: f64| (wait(busy + 0.001) - wait(busy)) / 0.001;
    assert!(wait(0.99) < wait(1.5) && wait(1.5) < wait(3.0) && wait(3.0).is_finite());
    // It has no step and no kink at 95 %.
    assert!((wait(0.9501) / wait(0.9499) - 1.0).abs() < 0.01);
    assert!((slope(0.951) / slope(0.948) - 1.0).abs() < 0.1);
}
