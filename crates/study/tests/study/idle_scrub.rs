//! A scrub in idle time gives the same results with the long idle stretches cut as with them whole.

use std::io::Write;

use freewheel_sim::config::{SimConfig, TraceWorkload};
use freewheel_sim::experiment::Experiment;
use freewheel_study::{StudyOptions, study};
use freewheel_units::{Prng, SimDuration};

/// Bursts of ten reads and writes, with 3 s between them.
fn bursts(count: u64) -> tempfile::NamedTempFile {
    let mut prng = Prng::new(1, "idle scrub");
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns").unwrap();
    for at in 0..10 * count {
        let arrival = at / 10 * 3_000_000_000 + at % 10 * 1_000_000;
        let op = if prng.below(3) == 0 { "W" } else { "R" };
        writeln!(file, "{arrival},{op},{},4096,0,", prng.below(1 << 20) * 4096).unwrap();
    }
    file
}

/// The scrub after pauses of 20 ms against a run of the whole trace.
fn is_that_of_a_run_without_cuts(drive: &str, queue_depth: u32, count: u64) {
    let file = bursts(count);
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let options = StudyOptions {
        changes: false,
        scrub_effort: SimDuration::from_secs(1),
        ..StudyOptions::new(trace, drive)
    };
    let study = study(&options, &|_| {}).unwrap();
    let mut pauses = study.idle_scrub.unwrap().pauses.into_iter();
    let pause = pauses.find(|pause| pause.pause_ns == 20_000_000).unwrap();
    let plain = format!(
        "drive = \"{drive}\"\nqueue_depth = {queue_depth}\n\
         [workload]\nkind = \"trace\"\nfile = \"{}\"\n",
        file.path().display()
    );
    let experiment =
        |text: &str| Experiment::new(SimConfig::parse(text, "test", &[]).unwrap()).unwrap();
    let arm = experiment(&plain).drive.blocks().bytes().get();
    let half = arm / 2 / (256 << 10) * (256 << 10);
    let scrub = format!(
        "[freeblock]\nconservatism = \"100ms\"\n\
         tasks = [{{ kind = \"scrub\", block_size = \"256KiB\", start = \"{half}B\", length = \"{}B\" }}]\n\
         idle = {{ after = \"20ms\", run_max = \"256KiB\" }}\n",
        half.min(64 << 30)
    );
    let [without, with] =
        [plain.clone(), plain + &scrub].map(|text| experiment(&text).run().unwrap());
    let rate = with.idle.unwrap().read_bytes as f64 * 1e9 / with.elapsed_ns as f64;
    assert!((pause.bytes_per_second / rate - 1.0).abs() < 0.05, "{drive}: {pause:?}, {rate}");
    let mean = with.response.mean_ns / without.response.mean_ns - 1.0;
    // The few requests of a test meet the reads at other moments.
    let tolerance = 0.05_f64.max(0.25 * mean);
    assert!(mean > 0.02 && (pause.mean - mean).abs() < tolerance, "{drive}: {pause:?}, {mean}");
    // Most of the time is left out, and no request is.
    assert_eq!((pause.requests, pause.pause_ns), (10 * count, 20_000_000));
}

#[test]
fn idle_scrub_cuts_match_uncut_run() {
    is_that_of_a_run_without_cuts("atlas10k", 1, 60);
}

#[test]
fn idle_scrub_arms_work_in_parallel() {
    is_that_of_a_run_without_cuts("exos-2x18-18tb", 32, 12);
}
