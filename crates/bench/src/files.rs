//! Files on many disks: requests a second, memory, and the time of a plan.

use std::sync::Arc;
use std::time::Instant;

use freewheel_array::allocation::{Allocator, DiskOrder, NewHeat, Passes};
use freewheel_array::files::{FileLoad, FileMap, FileOnDisks, MappedFile, place, unsynchronised};
use freewheel_array::placement::{Extent, ExtentId, FileId, Placement};
use freewheel_array::rebalance::{BalanceDisk, BalanceFile, Balancer, DriveModel, RebalanceSpec};
use freewheel_model::drive::Drive;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::files::{Arrivals, FilesExperiment, simulate};
use freewheel_sim::library;
use freewheel_units::{Blocks, Prng};

use crate::case::RUNS;
use crate::print_origin;
use crate::record::{Origin, peak_memory_bytes};

/// Prints all three; memory last, as the peak of a process never falls.
pub fn run() {
    print_origin(&Origin::here(), &format!("median of {RUNS} runs, one core"));
    for unit in [520, 70] {
        requests(unit);
    }
    plan();
    many_extents();
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// A million whole-file requests of 260 KB to 32 disks of tr96, cut into runs of `unit` blocks.
fn requests(unit: u64) {
    const REQUESTS: u64 = 1_000_000;
    let drive = library::spec("tr96").expect("a shipped drive");
    let disks = unsynchronised(&drive, 32).expect("a shipped drive");
    let blocks = Blocks::new(520);
    let file = FileOnDisks {
        blocks,
        unit: Blocks::new(unit),
        width: 32,
        boundary: Blocks::new(1),
        heat: 1.0,
    };
    let capacities: Vec<Blocks> = disks.iter().map(|disk| disk.blocks()).collect();
    let allocator = &mut Allocator::new(DiskOrder::RoundRobin, Passes::ByStatus, NewHeat::AtOnce);
    let files =
        place(&[file; 2000], 0..2000, &capacities, allocator).expect("the disks are larger");
    let load = FileLoad { blocks, request: blocks, rate: 0.05, reads: 0.7 };
    let loads = [load; 2000];
    let experiment = FilesExperiment {
        disks: &disks,
        map: &files.map,
        arrivals: Arrivals::Poisson { loads: &loads, requests: REQUESTS },
        policy: PolicySpec::Fcfs,
        cache: None,
        warm_up: 0.0,
        seed: 1,
    };
    let mut hash = String::new();
    let seconds = median(
        std::iter::repeat_with(|| {
            let began = Instant::now();
            hash = simulate(&experiment, &mut |_| {}).expect("requests that fit").result_hash;
            began.elapsed().as_secs_f64()
        })
        .take(RUNS)
        .collect(),
    );
    let pieces = 520u64.div_ceil(unit);
    println!("{REQUESTS} file requests, 32 disks, {pieces} pieces each: {seconds:.2} s  {hash}");
}

/// A plan for 100,000 files on 100 disks of which ten have half of the load.
fn plan() {
    const FILES: u64 = 100_000;
    const DISKS: u32 = 100;
    let drive = library::drive("exos-x24-24tb").expect("a shipped drive").1;
    let disk = BalanceDisk { model: 0, blocks: drive.blocks() };
    let models = [DriveModel::new(Arc::new(drive), 0.8)];
    let prng = &mut Prng::new(1, "bench plan");
    let files: Vec<BalanceFile> = (0..FILES)
        .map(|_| {
            let is_hot = prng.chance(0.5);
            let disk = if is_hot { prng.below(10) } else { prng.below(u64::from(DISKS)) };
            BalanceFile {
                blocks: Blocks::new(1 + prng.below(8_000_000)),
                request: Blocks::new(8 << prng.below(8)),
                rate: 0.06 * prng.unit() * prng.unit(),
                disk: Some(disk as u32),
            }
        })
        .collect();
    let began = Instant::now();
    let mut balancer = Balancer::new(&models, &[disk; DISKS as usize], &files);
    let spec = RebalanceSpec { gain_min: 0.00001, ..RebalanceSpec::default() };
    let before = balancer.response_s().map_or(f64::NAN, |seconds| 1000.0 * seconds);
    let mut moves = 0;
    while let Ok(wanted) = balancer.next_move(&spec) {
        balancer.apply(&wanted);
        moves += 1;
        if moves == 1000 {
            break;
        }
    }
    let after = balancer.response_s().map_or(f64::NAN, |seconds| 1000.0 * seconds);
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "plan for {FILES} files on {DISKS} disks: {seconds:.2} s, {moves} moves, {before:.1} to {after:.1} ms"
    );
}

/// 1,000 disks with 10,000,000 extents, and a million requests to them.
fn many_extents() {
    const DISKS: u32 = 1000;
    const EXTENTS: u32 = 10_000_000;
    let drive = Arc::new(library::drive("exos-x24-24tb").expect("a shipped drive").1);
    let disks: Vec<Arc<Drive>> = (0..DISKS).map(|_| Arc::clone(&drive)).collect();
    let mut placement = Placement::new(DISKS, disks[0].blocks());
    let blocks = Blocks::new(2048);
    let mut files = Vec::new();
    for number in 0..EXTENTS {
        let place = placement.reserve(number % DISKS, blocks).expect("the disks are larger");
        let (file, id) = (FileId(number), ExtentId(number));
        placement.insert(id, Extent { file, blocks, place });
        files.push(MappedFile { blocks, unit: blocks, first_extent: id, width: 1 });
    }
    let map = FileMap::new(files, placement, disks[0].blocks());
    let load = FileLoad { blocks, request: Blocks::new(16), rate: 0.001, reads: 0.7 };
    let loads = vec![load; EXTENTS as usize];
    let experiment = FilesExperiment {
        disks: &disks,
        map: &map,
        arrivals: Arrivals::Poisson { loads: &loads, requests: 1_000_000 },
        policy: PolicySpec::Fcfs,
        cache: None,
        warm_up: 0.0,
        seed: 1,
    };
    let began = Instant::now();
    let hash = simulate(&experiment, &mut |_| {}).expect("requests that fit").result_hash;
    let seconds = began.elapsed().as_secs_f64();
    let peak = peak_memory_bytes()
        .map_or("unknown".into(), |bytes| format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30)));
    println!(
        "{DISKS} disks, {EXTENTS} extents: peak {peak}; 1000000 requests in {seconds:.2} s  {hash}"
    );
}
