//! Files on several disks: against one disk alone, and against the analytic model of tr96.

use std::sync::Arc;

use freewheel_array::allocation::{Allocator, DiskOrder, NewHeat, Passes};
use freewheel_array::config::{CoolingRule, CoolingStep};
use freewheel_array::cooling::{CoolingSpec, CoolingUnit, MoverSpec, Refusal};
use freewheel_array::files::{
    Cooling, CoolingWork, FileLoad, FileOnDisks, FileRequest, Files, place, unsynchronised,
};
use freewheel_array::heat::{HeatAmount, HeatSpec, History};
use freewheel_array::placement::ExtentId;
use freewheel_model::cache::StorageCacheSpec;
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::sched::PolicySpec;
use freewheel_sim::Completion;
use freewheel_sim::files::{
    Arrivals, FilesExperiment, FilesResult, simulate, simulate_cooled, simulate_moved,
    simulate_moved_in_gaps,
};
use freewheel_units::{Blocks, Op, SimDuration, SimTime};

fn tr96() -> DriveSpec {
    shipped("tr96")
}

fn atlas10k() -> DriveSpec {
    shipped("atlas10k")
}

fn shipped(name: &str) -> DriveSpec {
    let file = format!("{}/../../drives/{name}.toml", env!("CARGO_MANIFEST_DIR"));
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
    let load = FileLoad { blocks: whole, request: whole, rate: rate / count as f64, reads: 0.7 };
    let experiment = FilesExperiment {
        disks: &unsynchronised(&tr96(), disks).unwrap(),
        map: &files.map,
        arrivals: Arrivals::Poisson { loads: &vec![load; count], requests },
        policy: PolicySpec::Fcfs,
        cache: None,
        warm_up: 0.05,
        seed: 1,
    };
    simulate(&experiment, &mut |_| {}).unwrap()
}

#[test]
fn files_experiment_repeats_and_completes() {
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
fn files_on_more_disks_read_sooner() {
    let narrow = run(&files(200, 520, 8), 8, 2.0, 4000);
    let wide = run(&files(200, 65, 8), 8, 2.0, 4000);
    assert!(wide.response.mean_ns < 0.6 * narrow.response.mean_ns);
    let busy = |result: &FilesResult| result.disks.iter().map(|disk| disk.utilisation).sum::<f64>();
    assert!(busy(&wide) > 1.5 * busy(&narrow));
}

/// Two disks with two files each. Both hot ones lie on disk 0.
fn unbalanced() -> (Files, Vec<FileLoad>) {
    let blocks = Blocks::new(520);
    let file = FileOnDisks { blocks, unit: blocks, width: 1, boundary: Blocks::new(1), heat: 1.0 };
    let allocator = &mut Allocator::new(DiskOrder::RoundRobin, Passes::ByStatus, NewHeat::AtOnce);
    let files = place(&[file; 4], 0..4, &[Blocks::new(1_000_000); 2], allocator).unwrap();
    let load = |rate| FileLoad { blocks, request: blocks, rate, reads: READ_SHARE };
    (files, vec![load(2.5), load(0.1), load(2.5), load(0.1)])
}

/// Writes reach extents that move, too.
const READ_SHARE: f64 = 0.6;

fn on_two_disks(files: &Files, run: impl FnOnce(&FilesExperiment<'_>)) {
    let (_, loads) = unbalanced();
    run(&FilesExperiment {
        disks: &unsynchronised(&tr96(), 2).unwrap(),
        map: &files.map,
        arrivals: Arrivals::Poisson { loads: &loads, requests: 4000 },
        policy: PolicySpec::Fcfs,
        cache: None,
        warm_up: 0.25,
        seed: 1,
    });
}

/// At most `rate` blocks a second are copied.
fn cooled(
    threshold: f64,
    rate: Option<Blocks>,
    rule: CoolingRule,
) -> (FilesResult, CoolingWork, Files) {
    let (files, _) = unbalanced();
    let daemon = CoolingSpec {
        threshold,
        queue_veto: false,
        unit: CoolingUnit::Extents,
        candidates_max: 10,
        sources_max: 1,
        waits_factor: 1.5,
    };
    let heat =
        HeatSpec { accesses: 25, accesses_min: 5, history: History::Accesses, extents_max: 100 };
    let mover = MoverSpec { piece: Blocks::new(128), rate };
    let cooling = Cooling {
        daemon,
        rule,
        heat,
        amount: HeatAmount::Blocks,
        step: CoolingStep::Requests(100),
        near_hot: false,
        waits: false,
        waits_arrivals: 256,
        copies_first: false,
        moves: 1,
        mover,
    };
    let mut done = None;
    on_two_disks(&files, |experiment| {
        done = Some(simulate_cooled(experiment, cooling, &mut |_| {}).unwrap());
    });
    let (result, work) = done.unwrap();
    (result, work, files)
}

const COOLER: CoolingRule = CoolingRule::TargetStaysCooler;

fn disk(files: &Files, file: usize) -> u32 {
    let extent = files.map.files()[file].first_extent;
    files.map.placement().borrow().extent(extent).place.disk
}

#[test]
fn hot_file_moves_away_sharing_load() {
    let (result, work, files) = cooled(0.5, None, COOLER);
    let (uncooled, none, _) = cooled(f64::INFINITY, None, COOLER);
    assert_eq!((none.moves, none.counts.moves), (0, 0));
    assert!(work.moves >= 1 && work.blocks == Blocks::new(520 * work.moves), "{work:?}");
    assert_eq!(result.response.count, 3000);
    assert!(result.response.mean_ns < 0.8 * uncooled.response.mean_ns);
    assert_ne!(disk(&files, 0), disk(&files, 2));
    assert!(files.map.placement().borrow().faults().is_empty());
}

#[test]
fn move_with_rate_continues_after_pieces() {
    let (_, work, files) = cooled(0.5, Some(Blocks::new(64)), COOLER);
    assert!(work.moves >= 1, "{work:?}");
    assert_ne!(disk(&files, 0), disk(&files, 2));
}

#[test]
fn move_adding_variance_refused() {
    let (_, work, _) = cooled(0.5, None, CoolingRule::Variance(SimDuration::from_ms(100)));
    assert_eq!(work.moves, 0, "{work:?}");
    assert!(work.counts.refusals[&Refusal::NotWorthIt] > 0);
    let (_, work, files) = cooled(0.5, None, CoolingRule::Variance(SimDuration::from_secs(3600)));
    assert!(work.moves >= 1, "{work:?}");
    assert_ne!(disk(&files, 0), disk(&files, 2));
}

/// Between two requests that lie 100 s apart only the copy arrives and completes.
#[test]
fn move_with_rate_needs_no_requests() {
    let (files, _) = unbalanced();
    let at = |seconds| FileRequest {
        arrival: SimTime::ZERO + SimDuration::from_secs(seconds),
        op: Op::Read,
        file: 1,
        first: 0,
        blocks: Blocks::new(8),
    };
    let experiment = FilesExperiment {
        disks: &unsynchronised(&tr96(), 2).unwrap(),
        map: &files.map,
        arrivals: Arrivals::Traced { requests: &[at(0), at(100)], speedup: 1.0 },
        policy: PolicySpec::Fcfs,
        cache: None,
        warm_up: 0.0,
        seed: 1,
    };
    let mover = MoverSpec { piece: Blocks::new(52), rate: Some(Blocks::new(26)) };
    let moves = [(ExtentId(0), 1)];
    let (_, work) = simulate_moved(&experiment, &moves, mover, &mut |_| {}).unwrap();
    // Ten pieces begin 2 s apart.
    let end = (work.ends[0] - SimTime::ZERO).as_secs_f64();
    assert!((18.0..18.3).contains(&end), "{end}");
}

#[test]
fn disks_report_queue_length_and_heat() {
    let (files, loads) = unbalanced();
    on_two_disks(&files, |experiment| {
        let result = simulate(experiment, &mut |_| {}).unwrap();
        // A piece a request, so the disks' queues together hold what responses add up to (Little's law).
        let seconds = result.elapsed_ns as f64 / 1e9;
        let arrived = 4000.0 / seconds;
        let queue: f64 = result.disks.iter().map(|disk| disk.queue_mean).sum();
        let response_s = result.response.mean_ns / 1e9;
        assert!((queue / (arrived * response_s) - 1.0).abs() < 0.05, "{queue}");
        let pieces: f64 = result.disks.iter().map(|disk| disk.pieces_per_second).sum();
        assert!((pieces / arrived - 1.0).abs() < 1e-9);
        let rate: f64 = loads.iter().map(|load| load.rate).sum();
        let share = (loads[0].rate + loads[2].rate) / rate;
        let hot = result.disks[0].bytes_per_second / (pieces * 520.0 * 512.0);
        assert!((hot - share).abs() < 0.02, "{hot} {share}");
    });
}

#[test]
fn idle_daemon_changes_nothing() {
    let (uncooled, _, files) = cooled(f64::INFINITY, None, COOLER);
    on_two_disks(&files, |experiment| {
        assert_eq!(simulate(experiment, &mut |_| {}).unwrap(), uncooled);
    });
}

/// One hot file to the idle disk: nothing, commands among those of clients, or gaps.
enum MoveBy {
    Nothing,
    Commands,
    Gaps,
}

/// Completions of clients as tag and time, and when the move ended.
fn moved(by: &MoveBy, read_share: f64) -> (Vec<(u64, SimTime)>, Option<SimTime>, f64) {
    let drive = || Arc::new(Drive::build(&atlas10k()).unwrap());
    let disks = [drive(), drive()];
    let file = FileOnDisks {
        blocks: Blocks::new(1600),
        unit: Blocks::new(1600),
        width: 1,
        boundary: Blocks::new(1),
        heat: 1.0,
    };
    let mut allocator = Allocator::new(DiskOrder::RoundRobin, Passes::ByStatus, NewHeat::AtOnce);
    let capacities = disks.each_ref().map(|disk| disk.blocks());
    let files = place(&[file; 400], 0..400, &capacities, &mut allocator).unwrap();
    let load =
        FileLoad { blocks: file.blocks, request: Blocks::new(8), rate: 0.25, reads: read_share };
    let loads = [load; 400];
    let experiment = FilesExperiment {
        disks: &disks,
        map: &files.map,
        arrivals: Arrivals::Poisson { loads: &loads, requests: 6000 },
        policy: PolicySpec::Fcfs,
        cache: None,
        warm_up: 0.0,
        seed: 1,
    };
    let moves = [(ExtentId(0), 1)];
    let mut all = Vec::new();
    let mut see = |done: &Completion| all.push((done.request.tag, done.end));
    let mover = MoverSpec { piece: Blocks::new(128), rate: None };
    let end = match by {
        MoveBy::Nothing => {
            simulate(&experiment, &mut see).unwrap();
            None
        }
        MoveBy::Commands => {
            simulate_moved(&experiment, &moves, mover, &mut see).unwrap().1.ends.first().copied()
        }
        MoveBy::Gaps => {
            simulate_moved_in_gaps(&experiment, &moves, &mut see).unwrap().1.ends.first().copied()
        }
    };
    assert!(files.map.placement().borrow().faults().is_empty());
    (all, end, f64::from(disk(&files, 0)))
}

#[test]
fn move_in_gaps_changes_no_completion() {
    for read_share in [1.0, 0.6] {
        let (without, ..) = moved(&MoveBy::Nothing, read_share);
        let (gaps, end, on) = moved(&MoveBy::Gaps, read_share);
        let end = end.expect("6000 requests leave enough gaps");
        assert_eq!(on, 1.0);
        let before = |all: &[(u64, SimTime)]| -> Vec<(u64, SimTime)> {
            all.iter().copied().filter(|(_, at)| *at < end).collect()
        };
        assert!(before(&without).len() > 100, "{end}");
        assert_eq!(before(&gaps), before(&without));
        let (commands, ended, on) = moved(&MoveBy::Commands, read_share);
        assert_eq!(on, 1.0);
        assert!(ended.unwrap() < end);
        assert_ne!(before(&commands), before(&without));
    }
}

#[test]
fn disk_caches_answer_repeated_requests() {
    let files = files(40, 520, 2);
    let whole = Blocks::new(520);
    let load = FileLoad { blocks: whole, request: whole, rate: 0.2, reads: 1.0 };
    let disks = unsynchronised(&tr96(), 2).unwrap();
    let run = |cache: Option<&StorageCacheSpec>| {
        let experiment = FilesExperiment {
            disks: &disks,
            map: &files.map,
            arrivals: Arrivals::Poisson { loads: &[load; 40], requests: 2000 },
            policy: PolicySpec::Fcfs,
            cache,
            warm_up: 0.2,
            seed: 1,
        };
        simulate(&experiment, &mut |_| {}).unwrap()
    };
    // All files fit into the caches, so after the warm-up no block is read again.
    let cache: StorageCacheSpec = toml::from_str("size = \"16MiB\"").unwrap();
    let (without, with) = (run(None), run(Some(&cache)));
    assert_eq!(with.response.count, without.response.count);
    assert!(with.response.mean_ns < 0.05 * without.response.mean_ns, "{:?}", with.response);
}
