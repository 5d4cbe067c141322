//! Drives against traces measured on the real ones.
#![allow(missing_docs)]

use std::io::Write;
use std::path::Path;

use freewheel_extract::validate::{GapReading, ValidateError, Validation, validate};
use freewheel_sim::config::TraceWorkload;

fn trace(file: &Path) -> TraceWorkload {
    TraceWorkload { file: file.into(), ..TraceWorkload::default() }
}

fn validated(drive: &str, text: &str) -> Result<Validation, ValidateError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    validate(drive, &trace(file.path()))
}

/// None when the measured traces are not at hand; they may not be redistributed.
fn measured(drive: &str, file: &str) -> Option<Validation> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/validate");
    let path = folder.join(format!("{file}.trace.zst"));
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    Some(validate(drive, &trace(&path)).unwrap())
}

#[test]
fn demerit_figures_of_four_measured_drives_are_below_those_that_disksim_states() {
    // DiskSim 4.0 on the same traces with the same parameters, in us. Its own figures take each gap for
    // the one after its request.
    for (drive, file, disksim_us) in [
        ("atlas10k", "atlas10k", 268.0),
        ("cheetah9lp", "cheetah9LP", 107.0),
        ("cheetah4lp", "cheetah4LP", 318.0),
        ("ultrastar9es", "ibm18es", 136.0),
    ] {
        let Some(v) = measured(drive, file) else { return };
        println!("{drive}: demerit {:.3} ms", v.demerit_ms);
        assert!(v.demerit_ms * 1000.0 < disksim_us, "{drive}: demerit of {} ms", v.demerit_ms);
    }
}

#[test]
fn mean_responses_of_three_measured_drives_are_nearer_than_disksims() {
    // Errors of DiskSim's means, as shares: 3.971 ms for 3.893, 4.231 for 4.273, 5.070 for 5.328.
    for (drive, file, disksim) in [
        ("atlas10k", "atlas10k", 0.0200),
        ("cheetah9lp", "cheetah9LP", 0.0098),
        ("cheetah4lp", "cheetah4LP", 0.0484),
    ] {
        let Some(v) = measured(drive, file) else { return };
        println!("{drive}: mean error {:.4}", v.mean_error_share);
        assert!(v.mean_error_share.abs() < disksim, "{drive}: {}", v.mean_error_share);
    }
}

#[test]
fn the_mean_of_the_ultrastar_is_0_58_percent_off_where_disksims_is_0_48() {
    // Writes after writes take 0.09 ms less than its published overhead, which alone is 0.27 %.
    let Some(v) = measured("ultrastar9es", "ibm18es") else { return };
    println!("ultrastar9es: mean error {:.4}", v.mean_error_share);
    assert!((v.mean_error_share - 0.0058).abs() < 0.0003, "{}", v.mean_error_share);
}

#[test]
fn measured_drives_keep_step_over_the_gaps_when_a_gap_precedes_its_request() {
    for (drive, file) in [
        ("atlas10k", "atlas10k"),
        ("cheetah9lp", "cheetah9LP"),
        ("cheetah4lp", "cheetah4LP"),
        ("ultrastar9es", "ibm18es"),
    ] {
        let Some(v) = measured(drive, file) else { return };
        println!("{drive}: {}", v.phase.verdict);
        assert_eq!(v.phase.gaps, GapReading::AsRecorded, "{drive}");
        let near = v.phase.distances.iter().find(|row| row.distance == v.phase.main_distance);
        let near = near.unwrap();
        assert!(near.as_recorded.resultant_length > 0.85, "{drive}: {near:?}");
        assert!(near.one_later.p_value > 0.01, "{drive}: {near:?}");
        let resynchronised = near.resynchronised_median_ms.unwrap();
        assert!(resynchronised < 0.1, "{drive}: {near:?}");
        // Beyond the track that was visited last the phase is not known, and that is most visits.
        let ratio = v.per_request_error_sd_ms / v.phase.floor_sd_ms;
        assert!((0.95..1.15).contains(&ratio), "{drive}: {ratio}");
    }
}

#[test]
fn where_nothing_visits_the_media_twice_nothing_is_said_of_the_phase() {
    let one = validated("tr96", "R Hit 0 1 300 1000\n").unwrap();
    assert!(one.phase.verdict.starts_with("Not to be told"), "{}", one.phase.verdict);
    assert!(one.phase.distances.is_empty() && one.phase.resynchronised_sd_ms.is_none());
}

#[test]
fn a_trace_with_our_own_times_has_no_demerit_and_another_has_the_distance() {
    // The tr96 disk has no electronics: block 0 at time 0 is one sector, 194.8 us.
    let sector_us = 60e6 / 4400.0 / 70.0;
    let own = validated("tr96", &format!("R Hit 0 1 {sector_us:.3} 1000\n")).unwrap();
    assert!(own.demerit_ms < 1e-5, "{}", own.demerit_ms);
    let late = validated("tr96", &format!("R Hit 0 1 {:.3} 1000\n", sector_us + 2000.0)).unwrap();
    assert!((late.demerit_ms - 2.0).abs() < 1e-5, "{}", late.demerit_ms);
    assert_eq!((late.requests, late.parts.len()), (1, 1));
}

#[test]
fn what_cannot_be_compared_is_refused_with_its_record() {
    let beyond = validated("tr96", "R Hit 0 1 100 1000\nR Hit 9999999 1 100 1000\n");
    let message = beyond.unwrap_err().to_string();
    assert!(message.contains("record 2") && message.contains("larger drive"), "{message}");
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n";
    let overlapping = format!("{header}0,R,0,512,0,900\n100,R,0,512,0,1000\n");
    let message = validated("tr96", &overlapping).unwrap_err().to_string();
    assert!(message.contains("record 2") && message.contains("one request at a time"), "{message}");
    let unknown = validated("tr96", &format!("{header}0,R,0,512,0,\n")).unwrap_err().to_string();
    assert!(unknown.contains("was not recorded"), "{unknown}");
}
