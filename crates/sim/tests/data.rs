//! The simulator against DiskSim's own output, which may not be redistributed, request by request.
#![allow(missing_docs)]

use freewheel_model::drive::{Drive, Position};
use freewheel_sim::library;
use freewheel_testkit::data;
use freewheel_units::{Blocks, Lbn, Op, SimTime};

/// Differences to DiskSim's response times in microseconds, sorted.
fn differences(drive: &str, file: &str) -> Vec<f64> {
    let path = data::file(&format!("validate/{file}-disksim-closed1.csv.zst"));
    let packed = std::fs::File::open(path).unwrap();
    let text = std::io::read_to_string(zstd::Decoder::new(packed).unwrap()).unwrap();
    let mut spec = library::spec(drive).unwrap();
    // DiskSim reads and writes in order in these runs, even where its parameters say otherwise. With
    // zero-latency access off the responses agree; with it on a tenth of them differ.
    (spec.zero_latency.read, spec.zero_latency.write) = (false, false);
    let drive = library::build(&spec, drive).unwrap();
    let mut at = (SimTime::ZERO, Position::default());
    let mut list: Vec<f64> =
        text.lines().skip(1).map(|line| difference(&drive, &mut at, line)).collect();
    list.sort_by(f64::total_cmp);
    list
}

/// One line of DiskSim's output: index, start, operation, LBN, blocks, response. Each request
/// starts when ours before it ends: DiskSim's clock drifts against the rotation by its rounding.
fn difference(drive: &Drive, at: &mut (SimTime, Position), line: &str) -> f64 {
    let fields: Vec<&str> = line.split(',').collect();
    let op = if fields[2] == "R" { Op::Read } else { Op::Write };
    let (lbn, blocks) = (fields[3].parse().unwrap(), fields[4].parse().unwrap());
    let target = drive.target(Lbn::new(lbn), Blocks::new(blocks), op);
    let access = drive.access(at.0, at.1, &target);
    *at = (at.0 + access.total(), access.end);
    (access.total().as_ms_f64() - fields[5].parse::<f64>().unwrap()).abs() * 1000.0
}

#[test]
fn disksim_matched_without_zero_latency_access() {
    for (drive, file) in
        [("atlas10k", "atlas10k"), ("cheetah4lp", "cheetah4LP"), ("cheetah9lp", "cheetah9LP")]
    {
        let list = differences(drive, file);
        let (median, p99) = (list[list.len() / 2], list[list.len() * 99 / 100]);
        println!("{drive}: difference to DiskSim, median {median:.3} us, p99 {p99:.3} us");
        // What remains beyond: writes that follow on the one before, where DiskSim's angles round
        // to just past the sector and it waits for a whole turn.
        assert!(median <= 0.05 && p99 <= 1.0, "{drive}: median {median} us, p99 {p99} us");
    }
}
