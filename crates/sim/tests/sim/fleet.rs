//! Independent drives: what holds for all of them together and for each.

use std::collections::BTreeMap;
use std::path::Path;

use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{Completion, DriveResult, RunResult};
use freewheel_trace::{ParquetWriter, Record};
use freewheel_units::{Blocks, Op, SimDuration, SimTime, VolumeBlock};

fn experiment(text: &str) -> Experiment {
    Experiment::new(SimConfig::parse(text, "test", &[]).unwrap()).unwrap()
}

fn refusal(text: &str) -> String {
    let config = SimConfig::parse(text, "test", &[]).unwrap();
    Experiment::new(config).unwrap_err().to_string()
}

const OPEN: &str = "kind = \"open\"\nmean_gap = \"9ms\"\nrequests = 700\n";
const CLOSED: &str = "kind = \"closed\"\noutstanding = 7\nthink_time = \"5ms\"\n\
                      think_time_distribution = \"exponential\"\nrequests = 700\n";

/// Text of an experiment, with and without electronics.
fn text(seed: u64, array: &str, electronics: bool, workload: &str) -> String {
    format!(
        "seed = {seed}\ndrive = \"cheetah4lp\"\nelectronics = {electronics}\n\
         scheduler = {{ policy = \"sptf\" }}\narray = {{ {array} }}\n[workload]\n{workload}"
    )
}

fn independent(drives: u32, electronics: bool, workload: &str) -> RunResult {
    let array = format!("layout = \"independent\", drives = {drives}");
    experiment(&text(5, &array, electronics, workload)).run().unwrap()
}

/// One drive alone, with the seed that it had among others.
fn alone(drive: &DriveResult, electronics: bool, workload: &str) -> (RunResult, Vec<Completion>) {
    let mut list = Vec::new();
    let experiment = experiment(&text(drive.seed, "", electronics, workload));
    let result = experiment.new_run().with_observer(&mut |c| list.push(*c)).simulate();
    (result.unwrap(), list)
}

fn assert_same(drive: &DriveResult, alone: &RunResult) {
    assert_eq!(drive.result_hash, alone.result_hash, "drive {}", drive.number);
    assert_eq!(drive.requests, alone.requests);
    assert_eq!(drive.response_ns_mean, alone.response.mean_ns);
    assert_eq!(drive.response_ns_p99, alone.response.p99_ns);
    assert_eq!(drive.elapsed_ns, alone.elapsed_ns);
    assert_eq!(drive.utilisation, alone.utilisation);
}

#[test]
fn fleet_drive_acts_as_when_alone() {
    for (electronics, workload) in [(false, OPEN), (true, OPEN), (false, CLOSED), (true, CLOSED)] {
        let together = independent(6, electronics, workload);
        for (number, drive) in together.drives.iter().enumerate() {
            assert_eq!(drive.number as usize, number);
            assert_same(drive, &alone(drive, electronics, workload).0);
        }
    }
}

#[test]
fn fleet_drive_depends_on_number_only() {
    let (few, many) = (independent(3, true, OPEN), independent(9, true, OPEN));
    assert_eq!(few.drives, many.drives[..3]);
    let mut hashes: Vec<&str> = many.drives.iter().map(|drive| &*drive.result_hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 9, "drives with the same requests");
}

/// Most requests outstanding at once: a request that comes when another ends comes after it.
fn outstanding_max(list: &[Completion]) -> u64 {
    let arrivals = list.iter().map(|c| (c.arrival, 1));
    let mut changes: Vec<_> = arrivals.chain(list.iter().map(|c| (c.end, -1))).collect();
    changes.sort_unstable();
    let mut level = 0i64;
    changes
        .iter()
        .map(|(_, change)| {
            level += change;
            level as u64
        })
        .max()
        .unwrap()
}

/// Several drives together, and the completions of each alone.
fn together_and_alone() -> (RunResult, Vec<Vec<Completion>>) {
    let together = independent(5, false, OPEN);
    let lists = together.drives.iter().map(|drive| alone(drive, false, OPEN).1).collect();
    (together, lists)
}

#[test]
fn fleet_counts_sum_all_completions() {
    let (together, lists) = together_and_alone();
    let all = lists.concat();
    assert_eq!(together.requests, all.len() as u64);
    let bytes = |op: Op| -> u64 {
        all.iter().filter(|c| c.request.op == op).map(|c| c.request.blocks.get() * 512).sum()
    };
    assert_eq!((together.read_bytes, together.write_bytes), (bytes(Op::Read), bytes(Op::Write)));
    let sum = |stage: fn(&Completion) -> u64| u128::from(all.iter().map(stage).sum::<u64>());
    let stages = &together.stages;
    assert_eq!(stages.queue_ns, sum(|c| c.queue.ns()));
    let head_ns = stages.seek_ns + stages.rotate_ns + stages.transfer_ns;
    let served = stages.overhead_ns + head_ns + stages.bus_ns;
    assert_eq!(served, sum(|c| c.service().ns()));
    assert_eq!(together.queue_ns_max, all.iter().map(|c| c.queue.ns()).max().unwrap());
}

#[test]
fn fleet_response_times_cover_all_completions() {
    let (together, lists) = together_and_alone();
    let mut responses: Vec<u64> = lists.concat().iter().map(|c| c.response().ns()).collect();
    responses.sort_unstable();
    let (count, summary) = (responses.len(), &together.response);
    assert_eq!(summary.mean_ns, responses.iter().sum::<u64>() as f64 / count as f64);
    assert_eq!((summary.min_ns, summary.max_ns), (responses[0], responses[count - 1]));
    let exact = responses[(count * 99).div_ceil(100) - 1];
    assert!(summary.p99_ns.abs_diff(exact) <= exact / 1000, "{} and {exact}", summary.p99_ns);
}

#[test]
fn fleet_shares_weigh_drives_by_time() {
    let (together, lists) = together_and_alone();
    let ends = lists.iter().map(|list| list.iter().map(|c| c.end.ns()).max().unwrap());
    let times: Vec<u64> = ends.collect();
    assert_eq!(together.elapsed_ns, *times.iter().max().unwrap());
    let time = times.iter().sum::<u64>() as f64;
    let all = lists.concat();
    let share = |stage: fn(&Completion) -> u64| all.iter().map(stage).sum::<u64>() as f64 / time;
    // Bare mechanics are busy for the service of each request.
    assert_eq!(together.utilisation, share(|c| c.service().ns()));
    assert_eq!(together.outstanding_mean, share(|c| c.response().ns()));
    let most = lists.iter().map(|list| outstanding_max(list)).max().unwrap();
    assert_eq!(together.outstanding_max, most);
}

/// Reads of 4 KiB every 3 ms that each took 5 ms, given with their devices and first blocks.
fn write_trace(path: &Path, reads: impl Iterator<Item = (u32, u64)>) {
    let mut writer = ParquetWriter::create(path).unwrap();
    for ((device, start), at) in reads.zip(0..) {
        let arrival = SimTime::ZERO + SimDuration::from_ms(3 * at);
        let (start, completion) = (VolumeBlock::new(start), arrival + SimDuration::from_ms(5));
        let (op, blocks, completion) = (Op::Read, Blocks::new(8), Some(completion));
        writer
            .write(&Record {
                widened: false,
                arrival,
                op,
                device,
                start,
                blocks,
                completion,
                fua: false,
            })
            .unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn trace_devices_get_own_drives() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.parquet");
    write_trace(&file, (0..300).map(|i| ([2, 9, 3, 9, 9][i as usize % 5], i * 7_919 % 1000 * 8)));
    let trace = |more: &str| format!("kind = \"trace\"\nfile = {file:?}\n{more}");
    let run = |text: &str| experiment(text).run().unwrap();
    let own = "layout = \"independent\"";
    let together = run(&text(1, own, true, &trace("")));
    let devices: BTreeMap<u32, u64> =
        together.drives.iter().map(|drive| (drive.device.unwrap(), drive.requests)).collect();
    assert_eq!(devices, BTreeMap::from([(2, 60), (3, 60), (9, 180)]));
    for drive in &together.drives {
        let device = trace(&format!("device = {}", drive.device.unwrap()));
        assert_same(drive, &run(&text(drive.seed, "", true, &device)));
        // Chosen among independent drives it is the same drive.
        assert_eq!(run(&text(1, own, true, &device)).drives, std::slice::from_ref(drive));
    }

    let three = "layout = \"independent\", drives = 3";
    assert_eq!(run(&text(1, three, true, &trace(""))).result_hash, together.result_hash);
    let two = refusal(&text(1, "layout = \"independent\", drives = 2", true, &trace("")));
    assert!(two.contains("`drives` is 2") && two.contains("3 devices that take part"), "{two}");
    let missing = refusal(&text(1, own, true, &trace("device = 4")));
    assert!(missing.contains("no device 4: its devices are 2, 3, 9"), "{missing}");
}

#[test]
fn trace_larger_than_drive_fits_fleet() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.parquet");
    // Of the 8.9 million blocks that a drive has.
    write_trace(&file, [(0, 8_000_000), (1, 8_000_000)].into_iter());
    let workload = format!("kind = \"trace\"\nfile = {file:?}\n");
    assert!(refusal(&text(1, "", true, &workload)).contains("the trace reaches"));
    let own = experiment(&text(1, "layout = \"independent\"", true, &workload));
    assert_eq!(own.trace_space().get(), 2 * 8_000_008 * 512);
    assert_eq!(own.run().unwrap().requests, 2);
}

#[test]
fn fleet_progress_climbs_to_all_requests() {
    let array = "layout = \"independent\", drives = 4";
    let workload = "kind = \"closed\"\nrequests = 150_000\n";
    let mut reports = Vec::new();
    let experiment = experiment(&text(1, array, false, workload));
    experiment
        .new_run()
        .with_progress(&mut |done, total| reports.push((done, total)))
        .simulate()
        .unwrap();
    assert!(reports.len() >= 12 && reports.is_sorted(), "{reports:?}");
    assert!(reports.iter().all(|(_, total)| *total == 600_000), "{reports:?}");
    assert_eq!(reports.last(), Some(&(600_000, 600_000)));
}

#[test]
fn fleet_completions_cannot_be_observed() {
    let experiment = experiment(&text(1, "layout = \"independent\"", false, CLOSED));
    let error = experiment.new_run().with_observer(&mut |_| {}).simulate().unwrap_err();
    assert!(error.to_string().contains("independent drives"), "{error}");
}
