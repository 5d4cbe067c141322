//! Statistics of files that come and go.

use freewheel_units::Prng;
use proptest::prelude::*;

use super::*;
use crate::partition::{
    ArrayModel, FileActivity, FileType, ForkJoin, NewFile, NotPartitioned, Rules, Starts, Stripes,
    Workload,
};
use crate::placement::FileId;

fn array() -> ArrayModel {
    ArrayModel { disk: tr96(), disks: 32 }
}

fn new(file: u32, file_type: u32, blocks: u64, hint: Option<FileActivity>) -> NewFile {
    let (file, file_type) = (FileId(file), FileType(file_type));
    NewFile { file, file_type, blocks, starts: Starts::Anywhere, hint }
}

proptest! {
    #[test]
    fn load_is_sum_over_present_files(seed: u64) {
        let prng = &mut Prng::new(seed, "files");
        let mut workload = Workload::default();
        let mut known: Vec<(FileId, FileType, FileActivity)> = Vec::new();
        for _ in 0..60 {
            let file = FileId(prng.below(12) as u32);
            known.retain(|(other, _, _)| *other != file);
            if prng.chance(0.3) {
                workload.remove(file);
            } else {
                let activity = FileActivity { rate: 0.1 + prng.unit(), request: 1.0 + 9.0 * prng.unit() };
                let file_type = FileType(prng.below(3) as u32);
                workload.set(file, file_type, activity);
                known.push((file, file_type, activity));
            }
        }
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * b.abs();
        let rate: f64 = known.iter().map(|(_, _, activity)| activity.rate).sum();
        let blocks: f64 = known.iter().map(|(_, _, activity)| activity.rate * activity.request).sum();
        match workload.load() {
            None => prop_assert!(known.is_empty()),
            Some(load) => prop_assert!(near(load.rate, rate) && near(load.request, blocks / rate)),
        }
        let of_type: Vec<_> = known.iter().filter(|(_, kind, _)| kind.0 == 1).collect();
        let rate: f64 = of_type.iter().map(|(_, _, activity)| activity.rate).sum();
        match workload.estimate(FileType(1)) {
            None => prop_assert!(of_type.is_empty()),
            Some(mean) => prop_assert!(near(mean.rate, rate / of_type.len() as f64)),
        }
        prop_assert_eq!(workload.files().count(), known.len());
    }
}

#[test]
fn new_file_is_striped_for_joint_load() {
    let rules = Rules { fork_join: ForkJoin::SharedWaits, ..Rules::default() };
    let mut workload = Workload::default();
    let busy = FileActivity { rate: 139.0, request: 260.0 };
    workload.set(FileId(0), FileType(0), busy);
    let hint = Some(FileActivity { rate: 1.0, request: 520.0 });
    let large = workload.partition(&new(1, 1, 520, hint), &array(), &rules).unwrap();
    // 3 disks for the mean request of 262 blocks, so 6 for 520: runs of 88.
    assert_near(large.parallelism, 3.0 * 520.0 / (262.0 - 2.0 / 14.0), 1e-3);
    assert_eq!(large.stripes, Stripes { unit: 88, width: 6 });
    // A second file of the type is taken for alike.
    let alike = workload.partition(&new(2, 1, 520, None), &array(), &rules).unwrap();
    assert_eq!(Some(alike.activity), hint);
    assert_near(workload.load().unwrap().rate, 141.0, 1e-12);
}

#[test]
fn failed_partition_leaves_no_trace() {
    let mut workload = Workload::default();
    workload.set(FileId(0), FileType(0), FileActivity { rate: 100.0, request: 260.0 });
    let before = workload.clone();
    let rules = Rules::default();
    let unknown = workload.partition(&new(1, 1, 520, None), &array(), &rules);
    assert_eq!(unknown, Err(NotPartitioned::UnknownActivity));
    let hint = Some(FileActivity { rate: 1000.0, request: 260.0 });
    let overload = workload.partition(&new(1, 1, 520, hint), &array(), &rules);
    assert_eq!(overload, Err(NotPartitioned::Overload));
    assert_eq!(workload.load(), before.load());
    assert_eq!(workload.activity(FileId(1)), None);
    assert!(workload.partition(&new(0, 0, 520, hint), &array(), &rules).is_err());
    assert_eq!(workload.activity(FileId(0)), before.activity(FileId(0)));
    // An idle file among idle ones is partitioned by phase A alone.
    let mut idle = Workload::default();
    let hint = Some(FileActivity { rate: 0.0, request: 260.0 });
    let found = idle.partition(&new(0, 0, 260, hint), &array(), &rules).unwrap();
    assert_eq!((found.parallelism, found.stripes.unit), (32.0, 9));
}
