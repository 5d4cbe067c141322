//! Shows that memory does not grow with the length of a run, on generated requests and on traces.

use std::path::{Path, PathBuf};
use std::time::Instant;

use freewheel_sim::RunResult;
use freewheel_trace::{ParquetWriter, Record};
use freewheel_units::{Blocks, Op, Prng, SimTime, VolumeBlock};

use crate::case::{self, bare_atlas, random};
use crate::print_origin;
use crate::record::{Origin, peak_memory_bytes};

/// Requests of a run.
const LONG_RUN: u64 = 100_000_000;

/// Prints time and peak memory of a long generated run, and of a long trace.
pub fn run() {
    print_origin(&Origin::here(), "1 run each");
    report("generated workload", || case::run(&random(&bare_atlas("fcfs"), 1, LONG_RUN)));
    let folder = Folder::new();
    let trace = folder.trace(LONG_RUN);
    report("trace", || case::run(&replay(&trace)));
}

fn report(what: &str, run: impl FnOnce() -> RunResult) {
    let start = Instant::now();
    let result = run();
    let peak = peak_memory_bytes().map_or("unknown".into(), |bytes| format!("{} MiB", bytes >> 20));
    println!(
        "{what} of {LONG_RUN} requests: {:.1} s, peak memory of this process {peak}, hash {}",
        start.elapsed().as_secs_f64(),
        result.result_hash
    );
}

/// The experiment that plays a trace on the bare Atlas 10K under FCFS.
pub fn replay(trace: &Path) -> String {
    let workload = format!("workload = {{ kind = \"trace\", file = {trace:?} }}\n");
    format!("{}\n{workload}", bare_atlas("fcfs"))
}

/// A folder that is deleted with its contents.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder. Panics on failure.
    pub fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("freewheel-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the trace");
        Self(folder)
    }

    /// Writes a Parquet trace of this many [`requests`]. Replaces an earlier trace.
    pub fn trace(&self, count: u64) -> PathBuf {
        let path = self.path("trace.parquet");
        let mut writer = ParquetWriter::create(&path).expect("room for the trace");
        let mut prng = Prng::new(1, "long trace");
        for (number, (is_read, start)) in (0..count).zip(requests(&mut prng)) {
            let record = Record {
                widened: false,
                arrival: SimTime::from_ns(number * SPACING_NS),
                op: if is_read { Op::Read } else { Op::Write },
                device: 0,
                start,
                blocks: Blocks::new(8),
                completion: None,
                fua: false,
            };
            writer.write(&record).expect("room for the trace");
        }
        writer.finish().expect("room for the trace");
        path
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Distance in time of two [`requests`].
pub const SPACING_NS: u64 = 10_000_000;

/// Random reads (two thirds) and writes of 4 KiB all over the Atlas 10K: whether it reads, and where.
pub fn requests(prng: &mut Prng) -> impl Iterator<Item = (bool, VolumeBlock)> {
    std::iter::repeat_with(move || {
        let is_read = prng.chance(2.0 / 3.0);
        (is_read, VolumeBlock::new(prng.below(2_240_000) * 8))
    })
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be deleted remains in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
