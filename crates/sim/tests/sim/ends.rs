//! Ends of background tasks on a drive with the tracks of a large one. Early predictions are compared
//! with whole rounds, in blocks of several sizes.

use std::sync::Arc;

use freewheel_freeblock::uses;
use freewheel_model::drive::spec::{CurveSpec, DriveSpec};
use freewheel_model::striping::Striping;
use freewheel_sim::background::TaskResult;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::library;
use freewheel_units::{Blocks, Bytes};

/// Cylinders of the smaller drive: a whole scan takes some 27,000 gaps.
const CYLINDERS: u32 = 600;

/// The tracks and surfaces of the 24 TB drive on far fewer cylinders. Seeks over an equal share of the
/// stroke take equal time.
fn fewer_cylinders() -> DriveSpec {
    let mut spec = library::spec("exos-x24-24tb").unwrap();
    let smaller = spec.cylinders / CYLINDERS;
    spec.cylinders = CYLINDERS;
    spec.zones.truncate(1);
    spec.zones[0].last_cylinder = CYLINDERS - 1;
    for curve in [Some(&mut spec.seek.read), spec.seek.write.as_mut()].into_iter().flatten() {
        let CurveSpec::PowerLinear { break_cylinders, .. } = curve else { panic!("{curve:?}") };
        *break_cylinders /= smaller;
    }
    spec
}

/// Block that a task without a size reads at once there.
fn usual_block() -> Bytes {
    let drive = library::build(&fewer_cylinders(), "fewer cylinders").unwrap();
    uses::usual_block(&drive, Blocks::new(1)).bytes()
}

/// A task beside ten clients that ends after `requests` requests, or with its first round.
fn task(kind: &str, block: Bytes, requests: u64, until: &str) -> TaskResult {
    let spec = fewer_cylinders();
    let drive = library::build(&spec, "fewer cylinders").unwrap();
    let text = format!(
        "electronics = false\n\
         workload = {{ kind = \"closed\", outstanding = 10, think_time = \"30ms\", requests = {requests}, \
         pattern = {{ size = \"8KiB\", align = \"4KiB\" }} }}\n\
         [freeblock]\nrule = \"paths\"\n[[freeblock.tasks]]\nkind = \"{kind}\"\nblock_size = \"{block}\"\n{until}"
    );
    let mut experiment = Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap();
    experiment.striping = Striping::single(drive.blocks());
    (experiment.drive, experiment.spec) = (Arc::new(drive), spec);
    experiment.run().unwrap().background.swap_remove(0).tasks.swap_remove(0)
}

/// Time at which its first round is complete.
fn round_ns(kind: &str, block: Bytes) -> u64 {
    let whole = task(kind, block, 300, "rounds = 1");
    let [round] = &whole.rounds[..] else { panic!("one round: {}", whole.rounds.len()) };
    round.elapsed_ns
}

#[test]
fn expected_end_within_sixth_of_true() {
    let block = usual_block();
    let whole_ns = round_ns("scrub", block) as f64;
    for (requests, part) in [(300, 0.01..0.02), (1000, 0.03..0.06)] {
        let begun = task("scrub", block, requests, "");
        let read = begun.unfinished.deliveries.blocks() as f64 / begun.blocks as f64;
        assert!(part.contains(&read), "{read} after {requests} requests");
        let predicted = begun.expected_end_ns.unwrap() as f64 / whole_ns;
        assert!((predicted - 1.0).abs() < 1.0 / 6.0, "{predicted:.3} after {requests} requests");
    }
}

#[test]
fn larger_blocks_speed_no_task() {
    let usual = usual_block();
    assert!(usual < Bytes::from_kib(256), "an eighth of a track");
    for kind in ["scrub", "scan"] {
        let seconds = [usual, Bytes::from_kib(256)].map(|block| {
            let seconds = round_ns(kind, block) as f64 / 1e9;
            println!("{kind} in blocks of {block}: {seconds:.0} s");
            seconds
        });
        assert!(seconds[0] < 1.01 * seconds[1], "{kind}: {seconds:?} s");
    }
}
