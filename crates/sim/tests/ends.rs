//! Ends of background tasks that are foretold early, against whole rounds.
#![allow(missing_docs)]

use std::sync::Arc;

use freewheel_model::array::Striping;
use freewheel_model::drive::spec::{CurveSpec, DriveSpec};
use freewheel_model::freeblock::uses;
use freewheel_sim::background::TaskResult;
use freewheel_sim::config::{Experiment, SimConfig};
use freewheel_sim::library;
use freewheel_units::Blocks;

/// Cylinders of the smaller drive: a whole scan takes some 27,000 gaps.
const CYLINDERS: u32 = 600;

/// The tracks and surfaces of the 24 TB drive on far fewer cylinders, with seeks that take as long for the
/// same part of the stroke.
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

/// A scrub behind ten clients that ends after so many requests, or with its first round.
fn scrub(requests: u64, until: &str) -> TaskResult {
    let spec = fewer_cylinders();
    let drive = library::build(&spec, "fewer cylinders").unwrap();
    let block = uses::usual_block(&drive, Blocks::new(1)).bytes();
    let text = format!(
        "electronics = false\n\
         workload = {{ kind = \"closed\", outstanding = 10, think = \"30ms\", requests = {requests}, \
         pattern = {{ size = \"8KiB\", align = \"4KiB\" }} }}\n\
         [freeblock]\nrule = \"paths\"\ntask = \"scrub\"\nblock_size = \"{block}\"\n{until}"
    );
    let mut experiment = Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap();
    experiment.striping = Striping::single(drive.blocks());
    (experiment.drive, experiment.spec) = (Arc::new(drive), spec);
    experiment.run().unwrap().background.swap_remove(0).tasks.swap_remove(0)
}

#[test]
fn the_end_foretold_early_is_within_a_sixth_of_the_true_one_on_a_large_drive() {
    let whole = scrub(300, "rounds = 1");
    let [round] = &whole.rounds[..] else { panic!("one round: {}", whole.rounds.len()) };
    for (requests, part) in [(300, 0.01..0.02), (1000, 0.03..0.06)] {
        let begun = scrub(requests, "");
        let read = begun.unfinished.blocks() as f64 / begun.blocks as f64;
        assert!(part.contains(&read), "{read} after {requests} requests");
        let foretold = begun.expected_end_ns.unwrap() as f64 / round.elapsed_ns as f64;
        assert!((foretold - 1.0).abs() < 1.0 / 6.0, "{foretold:.3} after {requests} requests");
    }
}
