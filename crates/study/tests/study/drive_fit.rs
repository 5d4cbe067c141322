//! A drive whose answers we know is found from them.

use std::fmt::Write;

use freewheel_model::drive::scale::Scaling;
use freewheel_sim::Completion;
use freewheel_sim::config::{SimConfig, TraceWorkload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::library;
use freewheel_study::{DriveFit, StudyError, StudyOptions, fit_drive};
use freewheel_units::{BLOCK_BYTES, Op};

const DRIVE: &str = "cheetah9lp";
const REQUESTS: u64 = 3_000;
const HEADER: &str = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";

/// Random reads and writes at `REQUESTS` times, as another drive answered them: its seeks take 1.6 times as
/// long, and it turns at 7,200 a minute.
fn recorded(keep: impl Fn(u64) -> bool) -> tempfile::NamedTempFile {
    let text = format!(
        "seed = 3\ndrive = \"{DRIVE}\"\n[workload]\nkind = \"open\"\nmean_gap = \"25ms\"\nrequests = {REQUESTS}\n\
         [workload.pattern]\nread_share = 0.6\nsize = \"8KiB\"\n"
    );
    let config = SimConfig::parse(&text, "test", &[]).unwrap();
    let experiment = Experiment::new(config).unwrap();
    let spec = library::spec(DRIVE).unwrap();
    let rpm = 7_200.0 / 60e9 * spec.rotation_period.ns() as f64;
    let other = Scaling { seek: 1.6, rpm, ..Scaling::default() }.apply(&spec).unwrap();
    let mut all: Vec<Completion> = Vec::new();
    let mut observe = |completion: &Completion| all.push(*completion);
    let other = experiment.on_drive(other).unwrap();
    other.new_run().with_observer(&mut observe).simulate().unwrap();
    all.sort_by_key(|completion| completion.request.tag);
    let mut csv = HEADER.to_owned();
    for (number, Completion { request, arrival, end, .. }) in (0..).zip(&all) {
        let op = if request.op == Op::Read { "R" } else { "W" };
        let (start, bytes) = (request.start.get() * BLOCK_BYTES, request.blocks.bytes().get());
        let end = if keep(number) { end.ns().to_string() } else { String::new() };
        writeln!(csv, "{},{op},{start},{bytes},0,{end}", arrival.ns()).unwrap();
    }
    let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    std::fs::write(file.path(), csv).unwrap();
    file
}

fn fit_to(file: &tempfile::NamedTempFile) -> Result<DriveFit, StudyError> {
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    fit_drive(&StudyOptions::new(trace, DRIVE), &|_| {})
}

#[test]
fn drive_fit_judged_on_unseen_answers() {
    let fit = fit_to(&recorded(|_| true)).unwrap();
    assert!(fit.is_used() && fit.is_good());
    let [before, judged] = [&fit.before[1], fit.judged()];
    assert!(before.demerit_share > 0.4, "{before:?}");
    assert!(judged.demerit_share < 0.06, "{judged:?}");
    let near = |ours: f64, recorded: f64| (ours / recorded - 1.0).abs() < 0.08;
    assert!(near(judged.simulated.mean_ns, judged.recorded.mean_ns), "{judged:?}");
    assert!(near(judged.simulated.p50_ns, judged.recorded.p50_ns), "{judged:?}");
    assert!(near(judged.simulated.p99_ns, judged.recorded.p99_ns), "{judged:?}");
    // Longer seeks at one speed answer like shorter ones at a lower speed, so the two cannot be told apart
    // exactly.
    let values = &fit.values;
    assert!((1.2..2.0).contains(&values.seek) && values.rpm < 10_000.0, "{values:?}");
    assert!(!values.write_cache_off && values.overhead_ns < 1_000_000, "{values:?}");
    assert_eq!(fit.before[0].requests + fit.before[1].requests, REQUESTS);
}

/// The recorded system answers in a time that no disk has anything to do with.
#[test]
fn drive_fit_rejects_answers_of_no_disk() {
    let mut csv = HEADER.to_owned();
    for number in 0..1_000u64 {
        let (at, offset) = (number * 30_000_000, number * 7_919 % 1_000 * 4_096);
        let response = if number < 500 { 200_000_000 } else { 1_000_000 };
        writeln!(csv, "{at},R,{offset},4096,0,{}", at + response).unwrap();
    }
    let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    std::fs::write(file.path(), csv).unwrap();
    let fit = fit_to(&file).unwrap();
    assert!(!fit.is_good(), "{:?}", fit.judged());
}

#[test]
fn drive_fit_refuses_trace_without_responses() {
    let error = fit_to(&recorded(|number| number < 150)).unwrap_err();
    assert!(matches!(error, StudyError::TooFewResponses { .. }), "{error}");
}
