//! Files that are restriped, and the conditions for that.

use super::*;
use crate::partition::{
    ArrayModel, FileProfile, ForkJoin, Load, NotTriggered, RepartitionSpec, RepartitionTrigger,
    Repartitioner, Restriped, Rules, Starts, StripedFile, Stripes, stripes,
};
use crate::placement::FileId;

const RULES: Rules = Rules {
    service: super::super::ServiceEstimate::ClosedForm,
    fork_join: ForkJoin::SharedWaits,
    normalised: super::super::Normalised::Exact,
};
const QUIET: Load = Load { rate: 20.0, request: 260.0 };
const BUSY: Load = Load { rate: 140.0, request: 260.0 };

fn array() -> ArrayModel {
    ArrayModel { disk: tr96(), disks: 32 }
}

/// Read as a whole, and striped for `parallelism` of a request of 260 blocks.
fn file(number: u32, blocks: u64, rate: f64, parallelism: u32) -> StripedFile {
    let profile = FileProfile { blocks, request: blocks as f64, starts: Starts::AtRuns };
    let own = f64::from(parallelism) * blocks as f64 / 260.0;
    let stripes = stripes(&profile, own.clamp(1.0, 32.0), 32);
    StripedFile { file: FileId(number), profile, rate, stripes }
}

fn repartitioner(trigger: RepartitionTrigger, files_max: usize) -> Repartitioner {
    Repartitioner::new(RepartitionSpec { least_change_s: 0.001, files_max, trigger })
}

fn parallelism(load: &Load) -> u32 {
    array().best(load, RULES.fork_join).unwrap().parallelism
}

#[test]
fn repartition_begins_with_hottest_changed_files() {
    let before = parallelism(&QUIET);
    assert!(before > parallelism(&BUSY) && parallelism(&BUSY) == 3);
    // Heat: 5200, 260, 1000 and 20. File 3 fits one run either way, file 2 is right already.
    let files = [
        file(0, 520, 0.5, before),
        file(1, 520, 10.0, before),
        file(2, 1000, 1.0, 3),
        file(3, 20, 1.0, 3),
        file(4, 260, 1.5, before),
    ];
    let check = |files_max| {
        let mut repartitioner = repartitioner(RepartitionTrigger::Worsened, files_max);
        let first = repartitioner.check(&array(), &QUIET, &RULES, &files);
        assert_eq!(first, Err(NotTriggered::FirstInvocation));
        repartitioner.check(&array(), &BUSY, &RULES, &files).unwrap()
    };
    let striped =
        |file, width| Restriped { file: FileId(file), stripes: Stripes { unit: 87, width } };
    assert_eq!(check(9), [striped(1, 6), striped(4, 3), striped(0, 6)]);
    assert_eq!(check(1), [striped(1, 6)]);
    assert_eq!(check(0), []);
}

#[test]
fn trigger_needs_both_parts() {
    let files = [file(0, 520, 1.0, 3)];
    let mut steady = repartitioner(RepartitionTrigger::Worsened, 9);
    _ = steady.check(&array(), &BUSY, &RULES, &files);
    let slightly_less = Load { rate: 139.0, ..BUSY };
    let found = steady.check(&array(), &slightly_less, &RULES, &files);
    assert_eq!(found, Err(NotTriggered::SameParallelism));
    // More load makes the best response longer; less load shortens it and never triggers the paper's rule.
    assert_eq!(steady.check(&array(), &QUIET, &RULES, &files), Err(NotTriggered::SmallChange));
    let too_much = Load { rate: 1000.0, ..BUSY };
    assert_eq!(steady.check(&array(), &too_much, &RULES, &files), Err(NotTriggered::Overload));
    // Overload is not remembered: the comparison is with the quiet load.
    assert!(steady.check(&array(), &BUSY, &RULES, &files).is_ok());
}

#[test]
fn trigger_of_gain_works_both_ways() {
    let files = [file(0, 520, 1.0, 3)];
    let mut repartitioner = repartitioner(RepartitionTrigger::GainUnderNewLoad, 9);
    _ = repartitioner.check(&array(), &BUSY, &RULES, &files);
    let kept = array().response_s(&QUIET, 3, RULES.fork_join).unwrap();
    let best = array().best(&QUIET, RULES.fork_join).unwrap();
    assert!(kept > best.response_s + 0.001, "{kept} {best:?}");
    let restriped = repartitioner.check(&array(), &QUIET, &RULES, &files).unwrap();
    assert!(restriped[0].stripes.unit < 87);
    // The many disks of the quiet load cannot sustain the busy one.
    assert_eq!(array().response_s(&BUSY, best.parallelism, RULES.fork_join), None);
    assert!(repartitioner.check(&array(), &BUSY, &RULES, &restripe(&restriped)).is_ok());
    // An epsilon that no gain exceeds.
    let spec = RepartitionSpec {
        least_change_s: kept,
        files_max: 9,
        trigger: RepartitionTrigger::GainUnderNewLoad,
    };
    let mut reluctant = Repartitioner::new(spec);
    _ = reluctant.check(&array(), &BUSY, &RULES, &files);
    assert_eq!(reluctant.check(&array(), &QUIET, &RULES, &files), Err(NotTriggered::SmallChange));
}

fn restripe(restriped: &[Restriped]) -> [StripedFile; 1] {
    [StripedFile { stripes: restriped[0].stripes, ..file(0, 520, 1.0, 3) }]
}
