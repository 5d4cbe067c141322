//! Every claim in a short run: verdicts, the committed full run, and corridors around our own results.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Instant;

use freewheel_units::SimDuration;
use serde::Deserialize;

use super::{CLAIMS, ReproduceOptions, Row, Verdict, reproduce};

/// The rows of all claims in a short run.
static SHORT: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let options = ReproduceOptions { quick: true, seed: 1, recordings: None };
    let timer = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        call();
        SimDuration::from_ns(start.elapsed().as_nanos() as u64)
    };
    let rows = |id| reproduce(id, &options, &timer, &|_, _| {}).unwrap().rows;
    CLAIMS.iter().flat_map(|claim| rows(claim.id)).collect()
});

fn of<'a>(rows: &'a [Row], id: &str, quantity: &str) -> &'a Row {
    let found = rows.iter().find(|row| row.id == id && row.quantity == quantity);
    found.unwrap_or_else(|| panic!("{id} has no row `{quantity}`"))
}

#[test]
fn every_number_of_a_short_run_passes() {
    let failed: Vec<&Row> = SHORT.iter().filter(|row| !row.verdict.passes()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Numbers without a band, and goals that are reached by far: the least and the most that changes of the
/// code may make of them.
const CORRIDORS: &[(&str, &str, f64, f64)] = &[
    ("fast02.fig9", "SSTF: free bandwidth over SPTF's, beginning of a scan", 1.57, 1.68),
    (
        "fast02.fig10",
        "free bandwidth below that in firmware, at 0.3 ms, beginning of a scan",
        32.0,
        34.5,
    ),
    (
        "fast02.fig10",
        "below that in firmware without same-track requests, at 0.4 ms, beginning of a scan",
        6.5,
        8.5,
    ),
    ("fast02.scan", "free bandwidth, beginning of a scan", 6.2, 6.6),
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
        86.0,
        98.0,
    ),
    ("beyond.uses", "comparisons of one half of the drive with the other, with 4 MiB", 4.2, 9.0),
    ("beyond.uses", "a sample of 5 % of the blocks, whichever they are", 38.0, 58.0),
    ("beyond.fast02", "FCFS: free bandwidth of that in firmware", 85.0, 100.0),
    ("beyond.fast02", "SSTF: free bandwidth of that in firmware", 85.0, 100.0),
    ("beyond.fast02", "SPTF-SW60%: free bandwidth of that in firmware", 85.0, 100.0),
    ("beyond.fast02", "SPTF: free bandwidth of that in firmware", 85.0, 100.0),
    ("beyond.margins", "bare: free bandwidth, learned over the best constant", 96.0, 102.0),
    ("beyond.margins", "reads ahead: free bandwidth, learned over the best constant", 96.0, 102.0),
    ("beyond.margins", "jitter grows: free bandwidth, learned over the best constant", 98.0, 120.0),
    ("beyond.margins", "bare: free bandwidth, learned over 300 us", 105.0, 150.0),
    ("beyond.margins", "reads ahead: free bandwidth, learned over 300 us", 105.0, 150.0),
    ("beyond.margins", "jitter grows: free bandwidth, learned over 300 us", 105.0, 150.0),
];

#[test]
fn numbers_without_a_band_stay_where_they_are() {
    for &(id, quantity, least, most) in CORRIDORS {
        let ours = of(&SHORT, id, quantity).ours;
        assert!((least..=most).contains(&ours), "{id} {quantity}: {ours}, not {least} to {most}");
    }
}

/// A row of the committed full run.
#[derive(Deserialize)]
struct Full {
    id: String,
    quantity: String,
    unit: String,
    paper: Option<f64>,
    ours: Option<f64>,
    band: Option<[f64; 2]>,
    verdict: String,
    is_timing: bool,
}

#[derive(Deserialize)]
struct FullRun {
    rows: Vec<Full>,
}

/// How far a short run may be from the full one: a quarter of the band, or a twentieth of the value
/// where that is more. A short run has a tenth of the requests.
fn tolerance(row: &Full) -> f64 {
    let band = row.band.map_or(0.0, |[low, high]| (high - low) / 4.0);
    band.max(row.ours.unwrap_or(0.0).abs() / 20.0)
}

#[test]
fn a_short_run_says_what_the_committed_full_run_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/reproduce.json");
    let text = std::fs::read_to_string(path).expect("`make reproduce` writes it");
    let full: FullRun = serde_json::from_str(&text).unwrap();
    let known: BTreeMap<(&str, &str), &Full> =
        full.rows.iter().map(|row| ((row.id.as_str(), row.quantity.as_str()), row)).collect();
    for id in CLAIMS.iter().map(|claim| claim.id) {
        assert!(full.rows.iter().any(|row| row.id == id), "the full run has no row of {id}");
    }
    let mut compared = 0;
    for row in SHORT.iter() {
        let Some(full) = known.get(&(row.id, row.quantity.as_str())) else { continue };
        assert_eq!((row.unit, row.paper), (full.unit.as_str(), full.paper), "{row:?}");
        if row.is_timing {
            assert!(full.is_timing, "{row:?}");
            continue;
        }
        let verdict = serde_json::to_value(row.verdict).unwrap();
        assert_eq!(verdict.as_str(), Some(full.verdict.as_str()), "{row:?}");
        let ours = full.ours.expect("a full run runs everything");
        let apart = (row.ours - ours).abs();
        assert!(apart <= tolerance(full), "{row:?}: {ours} in the full run");
        compared += 1;
    }
    assert!(compared > 90, "{compared} rows were compared");
    let failed =
        full.rows.iter().filter(|row| ["drifted", "not-run"].contains(&row.verdict.as_str()));
    assert_eq!(failed.count(), 0);
}

#[test]
fn known_deviations_lie_outside_their_bands_and_tell_5_percent_of_drift() {
    for row in SHORT.iter().filter(|row| row.verdict == Verdict::KnownDeviation) {
        let known = row.deviation.as_ref().unwrap();
        let [low, high] = row.band.unwrap();
        assert!(!(low..=high).contains(&known.value), "{row:?}");
        // Values near zero have no 5 %.
        let drift = (0.05 * known.value.abs()).max(0.05 * (high - low));
        assert!(known.tolerance < drift.max(0.5) * 1.5, "{row:?}");
        assert!(known.reason.len() > 20, "{row:?}");
    }
}

#[test]
fn a_missing_recording_is_no_pass() {
    let empty = tempfile::tempdir().unwrap();
    let options = ReproduceOptions { quick: true, seed: 1, recordings: Some(empty.path().into()) };
    let timer = |call: &mut dyn FnMut()| {
        call();
        SimDuration::ZERO
    };
    let rows = reproduce("beyond.scrub-24tb", &options, &timer, &|_, _| {}).unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.verdict).collect::<Vec<_>>(), [Verdict::NotRun]);
}
