//! A scrub in idle time: what is left out of long stretches must not change what it says.

use std::io::Write;

use freewheel_sim::background::FreeblockConfig;
use freewheel_sim::config::{Experiment, SimConfig, TraceWorkload};
use freewheel_study::{StudyOptions, study};
use freewheel_units::{Prng, SimDuration};

/// 60 bursts of ten reads and writes, with 3 s between them.
fn bursts() -> tempfile::NamedTempFile {
    let mut prng = Prng::new(1, "idle scrub");
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    writeln!(file, "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns").unwrap();
    for at in 0..600_u64 {
        let arrival = at / 10 * 3_000_000_000 + at % 10 * 1_000_000;
        let op = if prng.below(3) == 0 { "W" } else { "R" };
        writeln!(file, "{arrival},{op},{},4096,0,", prng.below(1 << 20) * 4096).unwrap();
    }
    file
}

#[test]
fn a_scrub_of_cut_stretches_is_that_of_a_run_without_cuts() {
    let file = bursts();
    let trace = TraceWorkload { file: file.path().into(), ..TraceWorkload::default() };
    let options = StudyOptions {
        changes: false,
        scrub_effort: SimDuration::from_secs(1),
        ..StudyOptions::new(trace, "atlas10k")
    };
    let study = study(&options, &|_| {}).unwrap();
    let scrub = study.idle_scrub.as_ref().unwrap();
    let pause = scrub.pauses[1];
    let whole = |scrub: bool| {
        let mut text = format!(
            "drive = \"atlas10k\"\nqueue_depth = 1\n[workload]\nkind = \"trace\"\nfile = \"{}\"\n",
            file.path().display()
        );
        if scrub {
            let half = Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap();
            let run = 256 << 10;
            let half = half.drive.blocks().bytes().get() / 2 / run * run;
            text += &format!(
                "[freeblock]\nconservatism = \"100ms\"\n\
                 tasks = [{{ kind = \"scrub\", block_size = \"256KiB\", start = \"{half}B\", length = \"{half}B\" }}]\n\
                 idle = {{ after = \"20ms\", run_max = \"256KiB\" }}\n"
            );
        }
        let config = SimConfig::parse(&text, "test", &[]).unwrap();
        assert_eq!(
            config.freeblock.as_ref().map(|of: &FreeblockConfig| of.tasks.len()),
            scrub.then_some(1)
        );
        Experiment::new(config).unwrap().run().unwrap()
    };
    let (without, with) = (whole(false), whole(true));
    let rate = with.idle.unwrap().read_bytes as f64 * 1e9 / with.elapsed_ns as f64;
    assert!((pause.bytes_per_second / rate - 1.0).abs() < 0.03, "{pause:?}, {rate}");
    let mean = with.response.mean_ns / without.response.mean_ns - 1.0;
    assert!(mean > 0.02 && (pause.mean - mean).abs() < 0.05, "{pause:?}, {mean}");
    // Most of the time is left out, and no request is.
    assert_eq!((pause.requests, pause.pause_ns), (600, 20_000_000));
}
