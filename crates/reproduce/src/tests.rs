//! Every claim in a short run: verdicts, the committed full run, and corridors around our own results.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use freewheel_units::SimDuration;
use rayon::prelude::*;
use serde::Deserialize;

use super::{BEYOND, CLAIMS, ReproduceOptions, Row, Verdict, reproduce};

/// The traces and logs that ship, in one folder: files that only some machines have are not found there.
fn shipped() -> tempfile::TempDir {
    let shipped = tempfile::tempdir().unwrap();
    for folder in ["recorded", "weblogs"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(folder);
        for file in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), shipped.path().join(file.file_name())).unwrap();
        }
    }
    shipped
}

/// The rows of all claims in a short run on what ships.
static SHORT: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let shipped = shipped();
    let recordings = Some(shipped.path().into());
    let options = ReproduceOptions { quick: true, seeds: vec![1], recordings };
    // What calls take differs from machine to machine, and is not judged here.
    let timer = |call: &mut dyn FnMut()| {
        call();
        SimDuration::from_us(1)
    };
    let rows = |id| reproduce(id, &options, &timer, &|_, _| {}).unwrap().rows;
    // Side by side: some claims have only one run at a time.
    CLAIMS.par_iter().flat_map_iter(|claim| rows(claim.id)).collect()
});

fn of<'a>(rows: &'a [Row], id: &str, quantity: &str) -> &'a Row {
    let found = rows.iter().find(|row| row.id == id && row.quantity == quantity);
    found.unwrap_or_else(|| panic!("{id} has no row `{quantity}`"))
}

/// A short run has one seed, which decides nothing where five disagree.
#[test]
fn short_run_passes_every_number() {
    let full = full_run();
    let is_unsteady = |row: &&Row| {
        let of = |full: &&Full| full.id == row.id && full.quantity == row.quantity;
        full.iter().find(of).is_some_and(|full| full.verdict == "unsteady")
    };
    let failed: Vec<&Row> =
        SHORT.iter().filter(|row| !row.verdict.passes()).filter(|row| !is_unsteady(row)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Numbers without a band, and goals that are reached by far: the least and the most that changes of the
/// code may make of them.
const CORRIDORS: &[(&str, &str, f64, f64)] = &[
    ("tr96.model", "equation 25 against simulation: mean error", 18.0, 26.0),
    ("tr96.alloc", "files of up to 3 extents on distinct disks: the same", 1.05, 1.3),
    ("tr96.model", "equation 25 against simulation: largest error", 150.0, 230.0),
    ("fast02.fig7", "4 KB: within 50 us", 97.4, 97.9),
    ("fast02.fig7", "Cheetah, 4 KB: within 50 us", 99.25, 99.45),
    ("fast02.fig9", "SSTF: free bandwidth lost at 0.3 ms, beginning of a scan", -19.0, -14.0),
    ("fast02.fig9", "SSTF: free bandwidth lost at 0.4 ms, beginning of a scan", -12.0, -8.0),
    ("fast02.fig9", "SPTF-SW60%: free bandwidth lost at 0.3 ms, beginning of a scan", -18.0, -13.0),
    ("fast02.fig9", "SPTF-SW60%: free bandwidth lost at 0.4 ms, beginning of a scan", -10.5, -6.5),
    ("fast02.fig9", "SPTF: free bandwidth lost at 0.3 ms, beginning of a scan", -12.5, -8.5),
    ("fast02.fig9", "SPTF: free bandwidth lost at 0.4 ms, beginning of a scan", -2.5, 0.5),
    ("fast02.fig9", "SSTF: free bandwidth over SPTF's, beginning of a scan", 1.57, 1.68),
    ("fast02.fig9", "SPTF-SW60%: free bandwidth of SSTF's, beginning of a scan", 90.0, 96.0),
    (
        "fast02.fig9",
        "SPTF-SW60%: free bandwidth lost from 0.3 to 0.4 ms, beginning of a scan",
        6.0,
        6.9,
    ),
    (
        "fast02.fig10",
        "free bandwidth below that in firmware, at 0.3 ms, beginning of a scan",
        32.0,
        34.0,
    ),
    (
        "fast02.fig10",
        "below that in firmware without same-track requests, at 0.3 ms, beginning of a scan",
        6.2,
        8.2,
    ),
    (
        "fast02.fig10",
        "below that in firmware without same-track requests, at 0.4 ms, beginning of a scan",
        6.5,
        8.5,
    ),
    ("fast02.scan", "free bandwidth, beginning of a scan", 6.2, 6.65),
    ("fast02.scan", "of the bandwidth of sequential reads, beginning of a scan", 25.6, 27.4),
    ("fast02.scan", "bandwidth used, times the foreground's, beginning of a scan", 5.4, 5.8),
    ("beyond.fig8", "FCFS, without chains and prices: full scans", 46.5, 49.0),
    ("beyond.fig8", "FCFS, without chains over a cylinder's tracks: full scans", 49.5, 52.0),
    ("beyond.fig8", "FCFS, without prices by region: full scans", 50.0, 52.5),
    (
        "beyond.tasks",
        "a tenth at high priority beside the scan, of its time at the same",
        41.0,
        55.0,
    ),
    ("beyond.tasks", "a tenth with a deadline between both, of the time it has", 70.0, 100.0),
    ("beyond.uses", "reads that prefetching had in memory, 70 % near the one before", 2.6, 5.2),
    (
        "beyond.uses",
        "writes that need no foreground request, with 128 dirty blocks at most",
        56.0,
        72.0,
    ),
    ("beyond.uses", "comparisons of one half of the drive with the other, with 4 MiB", 4.2, 9.0),
    ("beyond.uses", "a sample of 5 % of the blocks, whichever they are", 38.0, 58.0),
    ("beyond.fast02", "FCFS: free bandwidth of that in firmware", 85.0, 100.0),
    ("beyond.fast02", "SSTF: free bandwidth of that in firmware", 85.0, 100.0),
    ("beyond.fast02", "SPTF-SW60%: free bandwidth of that in firmware", 85.0, 100.0),
    ("beyond.fast02", "SPTF: free bandwidth of that in firmware", 85.0, 100.0),
    ("beyond.margins", "bare, learned: free bandwidth of that in firmware", 86.0, 92.0),
    ("beyond.margins", "bare, learned: response above", -1.0, 1.0),
    ("beyond.margins", "reads ahead, learned: free bandwidth of that in firmware", 86.0, 92.0),
    ("beyond.margins", "reads ahead, learned: response above", -1.0, 1.0),
    ("beyond.margins", "jitter grows, learned: free bandwidth of that in firmware", 85.0, 91.0),
    ("beyond.margins", "jitter grows, learned: response above", -1.0, 1.0),
    ("beyond.margins", "bare: free bandwidth, learned over the best constant", 96.0, 102.0),
    ("beyond.margins", "reads ahead: free bandwidth, learned over the best constant", 96.0, 102.0),
    ("beyond.margins", "jitter grows: free bandwidth, learned over the best constant", 98.0, 120.0),
    ("beyond.margins", "bare: free bandwidth, learned over 300 us", 105.0, 150.0),
    ("beyond.margins", "reads ahead: free bandwidth, learned over 300 us", 105.0, 150.0),
    ("beyond.margins", "jitter grows: free bandwidth, learned over 300 us", 105.0, 150.0),
];

#[test]
fn short_run_numbers_without_band_unchanged() {
    for &(id, quantity, least, most) in CORRIDORS {
        let ours = of(&SHORT, id, quantity).ours;
        assert!((least..=most).contains(&ours), "{id} {quantity}: {ours}, not {least} to {most}");
    }
}

/// A row of the committed full run.
#[derive(Debug, Deserialize)]
struct Full {
    id: String,
    quantity: String,
    unit: String,
    paper: Option<f64>,
    ours: Option<f64>,
    range: Option<[f64; 2]>,
    seeds: usize,
    seeds_inside: usize,
    kind: String,
    band: Option<[f64; 2]>,
    inside: bool,
    verdict: String,
    calibrated: Option<String>,
    deviation: Option<Known>,
    is_timing: bool,
}

#[derive(Debug, Deserialize)]
struct Known {
    value: f64,
    tolerance: f64,
    reason: String,
}

#[derive(Deserialize)]
struct FullRun {
    rows: Vec<Full>,
}

/// The rows of the full run that is committed.
fn full_run() -> Vec<Full> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/reproduce.json");
    let text = fs::read_to_string(path).expect("`make reproduce` writes it");
    serde_json::from_str::<FullRun>(&text).unwrap().rows
}

/// How far a short run may be from the full one: as far as seeds lie apart, a quarter of a band with two ends,
/// or a twentieth of the value, whichever is most.
fn tolerance(row: &Full) -> f64 {
    row.range.map_or(0.0, |[low, high]| high - low).max(tolerance_of_band(row))
}

fn tolerance_of_band(row: &Full) -> f64 {
    let value = row.ours.unwrap_or(0.0).abs();
    // Around zero a band has two ends, however small the value.
    let is_one_sided =
        |[low, high]: [f64; 2]| high - low > value.max(1.0) && !(low < 0.0 && high > 0.0);
    match row.band {
        Some([low, high]) if !is_one_sided([low, high]) => ((high - low) / 4.0).max(value / 20.0),
        // A change near zero, of few requests in a short run, scatters by more than itself.
        None if row.id == "fast02.fig4" && row.unit == "%" => (value / 20.0).max(1.5),
        _ => (value / 20.0).max(0.5),
    }
}

/// Reading JSON may change the last digit of a number.
fn is_same_band(a: Option<[f64; 2]>, b: Option<[f64; 2]>) -> bool {
    let is_close = |(a, b): (f64, f64)| (a - b).abs() <= 1e-12 * a.abs();
    match (a, b) {
        (Some(a), Some(b)) => a.into_iter().zip(b).all(is_close),
        (a, b) => a == b,
    }
}

/// Claims whose short run needs a trace that does not ship. `make test-data` compares them.
const ON_STAND_INS: [&str; 1] = ["tr96.fig8"];

#[test]
fn generated_traces_only_for_unshipped_ones() {
    let rows = SHORT.iter().filter(|row| row.verdict == Verdict::StandIn);
    let found: BTreeSet<&str> = rows.clone().map(|row| row.id).collect();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ON_STAND_INS);
    for row in rows {
        let says = row.stands_in.as_deref().unwrap();
        for part in
            ["a generated trace", "seed 1", "disksim-ascii.trace.zst", "https://", "SHA-256"]
        {
            assert!(says.contains(part), "{says}");
        }
    }
}

#[test]
fn short_run_matches_committed_full_run() {
    let full = full_run();
    let known: BTreeMap<(&str, &str), &Full> =
        full.iter().map(|row| ((row.id.as_str(), row.quantity.as_str()), row)).collect();
    for id in CLAIMS.iter().map(|claim| claim.id) {
        assert!(full.iter().any(|row| row.id == id), "the full run has no row of {id}");
    }
    let (mut compared, mut faults) = (0, Vec::new());
    for row in SHORT.iter() {
        let Some(full) = known.get(&(row.id, row.quantity.as_str())) else { continue };
        if row.verdict == Verdict::StandIn {
            continue;
        }
        assert_eq!((row.unit, row.paper), (full.unit.as_str(), full.paper), "{row:?}");
        assert_eq!((row.is_timing, &row.calibrated), (full.is_timing, &full.calibrated), "{row:?}");
        // A goal may hang on another number of the same run.
        if !row.id.starts_with(BEYOND) {
            assert!(is_same_band(row.band, full.band), "{row:?}: {:?}", full.band);
        }
        if row.is_timing {
            continue;
        }
        let verdict = serde_json::to_value(row.verdict).unwrap();
        let ours = full.ours.expect("a full run runs everything");
        // Short runs beyond the papers are of the beginning of a scan; corridors hold them. Where there is
        // but a limit, the verdict says it.
        let is_limit = full.band.is_some_and(|[low, _]| low == 0.0);
        let is_free = row.id.starts_with(BEYOND) || is_limit;
        let is_near = is_free || (row.ours - ours).abs() <= tolerance(full);
        let is_same = full.verdict == "unsteady" || verdict.as_str() == Some(full.verdict.as_str());
        if !is_near || !is_same {
            faults.push(format!(
                "{} {}: {} {:?} in short, {ours} {} in full",
                row.id, row.quantity, row.ours, row.verdict, full.verdict
            ));
        }
        compared += 1;
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(compared > 90, "{compared} rows were compared");
}

#[test]
fn full_run_verdicts_follow_from_numbers() {
    for row in full_run() {
        let ours = row.ours.unwrap_or(f64::NAN);
        let inside = row.band.is_none_or(|[low, high]| (low..=high).contains(&ours));
        let is_known = row
            .deviation
            .as_ref()
            .is_some_and(|known| (ours - known.value).abs() <= known.tolerance);
        assert_eq!(row.inside, inside, "{row:?}");
        let ends = row.band.zip(row.range).filter(|_| !row.is_timing);
        let is_around = ends.is_some_and(|([low, high], [least, most])| least < low && high < most);
        let is_unsteady = !row.is_timing && (1..row.seeds).contains(&row.seeds_inside);
        let expected = match (row.band, inside) {
            (None, _) => "measured",
            _ if is_unsteady => "unsteady",
            (_, false) if is_around => "unsteady",
            (_, false) if is_known => "known-deviation",
            // No seed is inside, and the scatter says that others may be: `Row::scatters_too_far`.
            (_, false) => {
                assert!(row.range.is_some_and(|[least, most]| least < most), "{row:?}");
                "unsteady"
            }
            (_, true) if row.kind == "own" => "goal-reached",
            (_, true) if row.calibrated.is_some() => "calibrated",
            (_, true) if row.kind == "number" => "reproduced",
            (_, true) => "holds",
        };
        assert_eq!(row.verdict, expected, "{row:?}");
    }
}

#[test]
fn full_run_stands_beside_papers_number() {
    let full = full_run();
    let numbers: Vec<&Full> = full.iter().filter(|row| row.kind == "number").collect();
    assert!(numbers.len() > 100, "{} numbers", numbers.len());
    for row in numbers {
        assert!(row.paper.is_some() && !row.id.starts_with(BEYOND), "{row:?}");
    }
}

/// Deviations near zero, whose tolerance is more than a twentieth of the value.
const SMALL: [&str; 2] = ["3 KB files: off by 0.4 to 1.2 ms", "3 KB files: turns longer"];

#[test]
fn full_run_deviation_tolerances_are_tight() {
    let mut seen = 0;
    for row in full_run() {
        let Some(known) = &row.deviation else { continue };
        let [low, high] = row.band.unwrap();
        assert!(row.verdict == "unsteady" || !(low..=high).contains(&known.value), "{row:?}");
        let spread = row.range.map_or(0.0, |[low, high]| (high - low) / 2.0);
        let most = (0.0501 * known.value.abs()).max(spread);
        assert!(known.tolerance <= most || SMALL.contains(&row.quantity.as_str()), "{row:?}");
        assert!(known.reason.len() > 20, "{row:?}");
        seen += 1;
    }
    assert!(seen > 5, "{seen} known deviations");
}

#[test]
fn recording_missing_is_no_pass() {
    let empty = tempfile::tempdir().unwrap();
    let options =
        ReproduceOptions { quick: true, seeds: vec![1], recordings: Some(empty.path().into()) };
    let timer = |call: &mut dyn FnMut()| {
        call();
        SimDuration::ZERO
    };
    let rows = reproduce("beyond.scrub-24tb", &options, &timer, &|_, _| {}).unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.verdict).collect::<Vec<_>>(), [Verdict::NotRun]);
}
