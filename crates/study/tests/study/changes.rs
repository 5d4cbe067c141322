//! What would help: changes that must help a load, and results that are the runs' own.

use std::io::Write;

use freewheel_sim::Completion;
use freewheel_sim::config::{Experiment, SimConfig, TraceWorkload, Workload};
use freewheel_study::changes::{Changes, Part};
use freewheel_study::{Study, StudyOptions, study};
use freewheel_units::{Op, Prng};

/// 2,000 reads and writes of a region of 6 MiB, 20 ms apart: far less than the drive can serve.
fn trace() -> tempfile::NamedTempFile {
    let mut prng = Prng::new(1, "changes");
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns").unwrap();
    for at in 0..2000_u64 {
        let op = if prng.below(3) == 0 { "W" } else { "R" };
        writeln!(file, "{},{op},{},4096,0,", at * 20_000_000, prng.below(1536) * 4096).unwrap();
    }
    file
}

fn studied(file: &tempfile::NamedTempFile) -> Study {
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let options = StudyOptions { scrub: false, ..StudyOptions::new(trace, "atlas10k") };
    study(&options, &|_| {}).unwrap()
}

fn best_of(changes: &Changes, part: Part) -> f64 {
    let tried = changes.tried.iter().find(|tried| tried.change.part() == part);
    tried.expect("each part has changes").effect.mean
}

#[test]
fn a_cache_that_holds_all_data_and_a_write_buffer_help_and_together_they_help_more() {
    let file = trace();
    let changes = studied(&file).changes.unwrap();
    // The region is read again and again, so after the warm-up most reads hit.
    assert!(best_of(&changes, Part::ReadCache) < -0.3, "{}", best_of(&changes, Part::ReadCache));
    assert!(best_of(&changes, Part::WriteBuffer) < -0.1);
    let together = changes.together.as_ref().unwrap();
    assert!(together.steps.len() >= 2);
    let alone = changes.tried.iter().find(|tried| tried.change.part() != Part::Drives).unwrap();
    assert!(together.effect.mean < alone.effect.mean - 0.02);
    let means: Vec<f64> = changes.tried.iter().map(|tried| tried.effect.mean).collect();
    assert!(means.is_sorted(), "the best is first: {means:?}");
}

#[test]
fn responses_are_those_of_a_plain_run_without_the_warm_up() {
    let file = trace();
    let study = studied(&file);
    let changes = study.changes.as_ref().unwrap();
    // The drive has no queue of its own, so the baseline is FCFS.
    assert!(!study.baseline().own_queue);
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let text = "workload = { kind = \"trace\", file = \"\" }\ndrive = \"atlas10k\"";
    let mut config = SimConfig::parse(text, "test", &[]).unwrap();
    config.workload = Workload::Trace(trace);
    let mut all = Vec::new();
    let mut observe = |completion: &Completion| {
        if matches!(completion.request.op, Op::Read | Op::Write) {
            all.push((completion.request.tag, completion.response().ns()));
        }
    };
    Experiment::new(config).unwrap().run_observed(Some(&mut observe), &mut |_, _| {}).unwrap();
    all.retain(|&(tag, _)| tag >= changes.warm_up_requests);
    let sum: u64 = all.iter().map(|&(_, response)| response).sum();
    let by_slice: u64 = changes.today.by_slice.iter().map(|slice| slice.sum_ns).sum();
    assert_eq!((sum, all.len() as u64), (by_slice, changes.today.response.count));
    assert_eq!(changes.today.response.mean_ns, sum as f64 / all.len() as f64);
}
