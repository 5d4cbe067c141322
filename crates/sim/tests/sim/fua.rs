//! Force unit access from a workload to the media.

use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{Completion, RunResult};
use freewheel_trace::{Record, TraceWriter};
use freewheel_units::{Blocks, Op, Prng, SimTime, VolumeBlock};

fn parsed(text: &str) -> SimConfig {
    SimConfig::parse(text, "test", &[]).unwrap()
}

fn run(text: &str) -> (RunResult, Vec<Completion>) {
    let mut list = Vec::new();
    let experiment = Experiment::new(parsed(text)).unwrap();
    let result = experiment.new_run().with_observer(&mut |c| list.push(*c)).simulate().unwrap();
    (result, list)
}

const EXOS_BLOCKS: u64 = 24_000_000_000_000 / 512;

/// 500 writes of 4 KiB all over the Exos X24, 50 ms apart, of which those that it says have FUA.
fn replayed(has_fua: impl Fn(u64) -> bool) -> RunResult {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.parquet");
    let mut writer = TraceWriter::create(&file).unwrap();
    let prng = &mut Prng::new(1, "writes with FUA");
    for number in 0..500 {
        let start = VolumeBlock::new(prng.below(EXOS_BLOCKS / 8) * 8);
        let arrival = SimTime::from_ns(number * 50_000_000);
        let (blocks, fua) = (Blocks::new(8), has_fua(number));
        let record = Record {
            widened: false,
            arrival,
            op: Op::Write,
            device: 0,
            start,
            blocks,
            completion: None,
            fua,
        };
        writer.write(&record).unwrap();
    }
    writer.finish().unwrap();
    let workload = format!("workload = {{ kind = \"trace\", file = {file:?} }}\n");
    run(&format!("drive = \"exos-x24-24tb\"\n{workload}")).0
}

#[test]
fn fua_writes_take_seek_and_half_turn() {
    let ms = |ns: f64| ns / 1e6;
    let plain = replayed(|_| false);
    assert!(ms(plain.write_response.mean_ns) < 0.1, "{:?}", plain.write_response);
    assert_eq!(plain.fua_write_response, None);
    let all = replayed(|_| true);
    let forced = all.fua_write_response.unwrap();
    assert_eq!((forced, all.plain_write_ns_mean()), (all.write_response, None));
    // Half a turn of 8.33 ms and a write seek of 8 ms on average.
    assert!((10.0..14.0).contains(&ms(forced.mean_ns)), "{forced:?}");
    assert_eq!(all.buffer_writes, 0);
    let some = replayed(|number| number % 10 == 0);
    let forced = some.fua_write_response.unwrap();
    assert_eq!((forced.count, some.buffer_writes), (50, 450));
    assert!(ms(forced.mean_ns) > 5.0 && ms(some.plain_write_ns_mean().unwrap()) < 0.1);
}

/// Writes of which half have FUA.
fn closed(drive: &str, clients: u32, more: &str) -> String {
    format!(
        "drive = \"{drive}\"\n{more}\n[workload]\nkind = \"closed\"\noutstanding = {clients}\n\
         requests = 600\n[workload.pattern]\nread_share = 0.2\nfua_share = 0.5\nlocal_share = 0.5\n"
    )
}

#[test]
fn fua_writes_are_no_hits_anywhere() {
    let ways = [
        "scheduler = { policy = \"sptf\" }",
        "array = { drives = 3 }",
        "[cache]",
        "[cache.write_buffer]\nsize = \"64KiB\"\nvolatile = true",
        "[host]\nbehaviour = { write_cache = \"on\" }",
        "keep_free_blocks_before = false\n[[freeblock.tasks]]\nkind = \"scrub\"",
    ];
    for way in ways {
        let (result, list) = run(&closed("atlas10k", 4, way));
        let writes = || list.iter().filter(|c| c.request.op == Op::Write);
        let hits = |forced: bool| {
            let of = writes().filter(|c| c.request.fua == forced);
            let (hits, others): (Vec<&Completion>, Vec<&Completion>) = of.partition(|c| c.hit);
            (hits.len(), others.len())
        };
        assert_eq!(hits(true).0, 0, "{way}");
        assert!(hits(true).1 > 100 && hits(false).0 > 100, "{way}: {:?}", hits(false));
        let count = writes().filter(|c| c.request.fua).count() as u64;
        assert_eq!(result.fua_write_response.map(|summary| summary.count), Some(count), "{way}");
    }
}

#[test]
fn fleet_sums_fua_writes() {
    let text = closed("atlas10k", 4, "array = { drives = 3, layout = \"independent\" }");
    let result = Experiment::new(parsed(&text)).unwrap().run().unwrap();
    let forced = result.fua_write_response.unwrap();
    assert!(forced.count > 600, "{forced:?}");
    assert_eq!(forced.count + result.buffer_writes, result.write_response.count);
}
