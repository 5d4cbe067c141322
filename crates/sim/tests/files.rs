//! Files on several disks: against one disk alone, and against the analytic model of tr96.
#![allow(missing_docs)]

use std::path::Path;

use freewheel_model::array::allocation::{Allocator, DiskOrder, NewHeat, Passes};
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::files::{
    FileLoad, FileOnDisks, Files, FilesExperiment, FilesResult, place, simulate, unsynchronised,
};
use freewheel_units::Blocks;

fn tr96() -> DriveSpec {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives/tr96.toml");
    toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// `count` files of 520 blocks, cut into runs of `unit` blocks, each as wide as it can be.
fn files(count: usize, unit: u64, disks: u32) -> Files {
    let file = FileOnDisks {
        blocks: Blocks::new(520),
        unit: Blocks::new(unit),
        width: disks,
        boundary: Blocks::new(1),
        heat: 1.0,
    };
    let capacities = vec![Blocks::new(1_000_000); disks as usize];
    let allocator = &mut Allocator::new(DiskOrder::RoundRobin, Passes::ByStatus, NewHeat::AtOnce);
    place(&vec![file; count], 0..count, &capacities, allocator).unwrap()
}

fn run(files: &Files, disks: u32, rate: f64, requests: u64) -> FilesResult {
    let count = files.map.files().len();
    let whole = Blocks::new(520);
    let load = FileLoad { blocks: whole, request: whole, rate: rate / count as f64 };
    let experiment = FilesExperiment {
        disks: &unsynchronised(&tr96(), disks).unwrap(),
        map: &files.map,
        loads: &vec![load; count],
        policy: PolicySpec::Fcfs,
        read_share: 0.7,
        requests,
        warm_up: 0.05,
        seed: 1,
    };
    simulate(&experiment, &mut |_| {}).unwrap()
}

#[test]
fn an_experiment_is_the_same_twice_and_all_requests_are_done() {
    let files = files(200, 70, 8);
    let [first, second] = [run(&files, 8, 40.0, 5000), run(&files, 8, 40.0, 5000)];
    assert_eq!(first, second);
    assert_eq!(first.response.count, 4750);
    for disk in &first.disks {
        let parts = disk.seek + disk.rotate + disk.transfer;
        assert!((disk.utilisation - parts).abs() < 0.01, "{disk:?}");
    }
}

#[test]
fn files_on_more_disks_are_read_sooner_and_keep_more_disks_busy() {
    let narrow = run(&files(200, 520, 8), 8, 2.0, 4000);
    let wide = run(&files(200, 65, 8), 8, 2.0, 4000);
    assert!(wide.response.mean_ns < 0.6 * narrow.response.mean_ns);
    let busy = |result: &FilesResult| result.disks.iter().map(|disk| disk.utilisation).sum::<f64>();
    assert!(busy(&wide) > 1.5 * busy(&narrow));
}
