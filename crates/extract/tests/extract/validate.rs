//! Drives against traces of access times. Those measured on real drives are in `data.rs`.

use std::io::Write;
use std::path::Path;

use freewheel_extract::validate::{ValidateError, Validation, validate};
use freewheel_sim::config::TraceWorkload;

fn trace(file: &Path) -> TraceWorkload {
    TraceWorkload { file: file.into(), ..TraceWorkload::default() }
}

fn validated(drive: &str, text: &str) -> Result<Validation, ValidateError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    validate(drive, &trace(file.path()))
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
