//! The price of gaps for a scheduler outside the drive: gaps that it leaves to the drive, and what that saves.

use std::fmt::Write as _;

use freewheel_sim::RunResult;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_units::Prng;

const HOST: &str = "drive = \"ultrastar-hc310-6tb\"\nscheduler = { policy = \"sptf-sw\" }\n\
    freeblock = { tasks = [{ block_size = \"64KiB\" }] }\n\
    host = { behaviour = { seek_jitter = \"50us\" } }\n";

fn run(text: &str, overrides: &[&str]) -> RunResult {
    let overrides: Vec<String> = overrides.iter().map(|it| (*it).into()).collect();
    let config = SimConfig::parse(text, "a test", &overrides).unwrap();
    Experiment::new(config).unwrap().run().unwrap()
}

/// Blocks that pass are not read again, so a gap has hardly a price.
#[test]
fn random_loads_leave_hardly_any_gap() {
    let load =
        "workload = { kind = \"closed\", requests = 6000, outstanding = 8, think_time = \"30ms\" }";
    let result = run(&format!("{HOST}{load}"), &["host.scheduler.off_share=0"]);
    let host = result.host.unwrap();
    assert!(host.gaps_used * 10 > host.gaps * 8, "{host:?}");
    assert!(host.gaps_left * 50 < host.gaps, "{host:?}");
    assert!(host.lost_hits * 1000 < host.gaps, "{host:?}");
}

/// One request in four reads on, behind or before the last: such reads are hits, unless free work was there.
#[test]
fn sequential_reader_keeps_hits_and_gaps() {
    let mut csv = String::from("arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n");
    let (mut prng, mut next) = (Prng::new(1, "reads"), 1u64 << 40);
    for at in 0..12_000u64 {
        let offset = if at % 4 == 0 {
            next -= if at % 32 == 0 { 16 << 20 } else { 1 << 16 };
            next
        } else {
            prng.below(1 << 28) * 4096
        };
        let arrival = at * 25_000_000;
        writeln!(csv, "{arrival},R,{offset},65536,0,{}", arrival + 1).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reads.csv");
    std::fs::write(&file, csv).unwrap();
    let load = format!("workload = {{ kind = \"trace\", file = {file:?}, replay = \"arrivals\" }}");
    let text = format!("{HOST}{load}");
    let alone = run(&text, &["freeblock="]);
    let priced = run(&text, &[]);
    let unpriced = run(&text, &["host.scheduler.conservatism=\"60us\""]);
    let lost = |result: &RunResult| alone.buffer_reads.saturating_sub(result.buffer_reads);
    assert!(alone.buffer_reads > 1500, "{} hits", alone.buffer_reads);
    assert!(lost(&unpriced) > 400, "{} lost where every gap is taken", lost(&unpriced));
    assert!(lost(&priced) * 4 < lost(&unpriced), "{} of {}", lost(&priced), lost(&unpriced));
    let host = priced.host.unwrap();
    assert!(host.gaps_left * 10 > host.gaps && host.gaps_used * 10 > host.gaps, "{host:?}");
    let cost = priced.response.mean_ns / alone.response.mean_ns - 1.0;
    assert!(cost < 0.01, "{cost}");
}
