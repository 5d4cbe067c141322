//! For how long a drive and each of its parts are busy.

use freewheel_model::drive::spec::DriveSpec;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{Completion, Resource, RunResult};

const OPEN: &str = "kind = \"open\"\nmean_gap = \"18ms\"\nrequests = 3000\n";

/// A run on the Atlas 10K, changed, and its completions.
fn run(workload: &str, change: impl FnOnce(&mut DriveSpec)) -> (RunResult, Vec<Completion>) {
    let text = format!("drive = \"atlas10k\"\nqueue_depth = 1000\n[workload]\n{workload}");
    let config = SimConfig::parse(&text, "test", &[]).unwrap();
    let mut experiment = Experiment::new(config).unwrap();
    change(&mut experiment.spec);
    let mut list = Vec::new();
    let result = experiment.new_run().with_observer(&mut |c| list.push(*c)).simulate();
    (result.unwrap(), list)
}

/// The slow and obvious way: every nanosecond in which a request is in a drive that takes them all.
fn union_ns(completions: &[Completion]) -> u64 {
    let mut times: Vec<(u64, u64)> =
        completions.iter().map(|c| (c.end.ns() - c.response().ns(), c.end.ns())).collect();
    times.sort_unstable();
    let (mut sum, mut covered) = (0, 0);
    for (begin, end) in times {
        sum += end.saturating_sub(begin.max(covered));
        covered = covered.max(end);
    }
    sum
}

#[test]
fn drive_busy_while_read_inside() {
    let reads = format!("{OPEN}pattern = {{ read_share = 1.0 }}\n");
    let (result, list) = run(&reads, |_| {});
    let busy_ns = union_ns(&list);
    assert_eq!(result.utilisation, busy_ns as f64 / result.elapsed_ns as f64);
    assert!((0.3..0.9).contains(&result.utilisation), "{}", result.utilisation);
    // Every read visits the media but a few, and their bus is short.
    let shares = result.busy_shares;
    assert!(shares.head < result.utilisation && shares.bus < 0.01);
    assert_eq!(shares.busiest, Resource::Head);
}

#[test]
fn write_back_counts_as_busy() {
    let writes = format!("{OPEN}pattern = {{ read_share = 0.0 }}\n");
    let (result, list) = run(&writes, |_| {});
    let commands = union_ns(&list) as f64 / result.elapsed_ns as f64;
    // The buffer takes a write at once, and the arm brings it to the media after the host has its
    // reply.
    assert!(result.buffer_writes > 1000 && result.destaging > 0.2, "{}", result.destaging);
    assert!(result.utilisation > commands + 0.05, "{} and {commands}", result.utilisation);
    assert!(result.utilisation >= result.busy_shares.head, "{}", result.utilisation);
    assert!(result.utilisation <= commands + result.destaging + 1e-9);
}

#[test]
fn slow_bus_named_on_busy_drive() {
    let large = "kind = \"closed\"\noutstanding = 4\nrequests = 1000\n\
                      pattern = { size = \"256KiB\" }\n";
    let on_rig = |spec: &mut DriveSpec| spec.electronics = spec.electronics_as_measured();
    let (slow, _) = run(large, on_rig);
    let shares = slow.busy_shares;
    assert_eq!(shares.busiest, Resource::Bus);
    // 5.2 MB/s of media of 28.
    assert!(slow.utilisation > 0.99 && shares.bus > 0.9, "{} {shares:?}", slow.utilisation);
    // The head waits turns for data of writes that are longer than the buffer.
    assert!(shares.head < shares.bus, "{shares:?}");
    assert!((4.5e6..5.3e6).contains(&slow.bytes_per_second), "{}", slow.bytes_per_second);
    // The drive's own interface leaves the media as the limit.
    let (own, _) = run(large, |_| {});
    assert_eq!(own.busy_shares.busiest, Resource::Head);
    assert!(own.bytes_per_second > 2.0 * slow.bytes_per_second, "{}", own.bytes_per_second);
}
