//! Properties of drive files, for any bytes. No input panics. A file that is read, written and read
//! again is the same. Every block of a drive that builds has one place.
//!
//! Goals: one body for the fuzz target and for the ordinary test over the saved corpus
//! (`tests/fuzz_checks/sim.rs`).
//! Non-goals: the values of a clean file; tests of the library check them.

use std::sync::Arc;

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::DriveUnit;
use freewheel_sim::library;
use freewheel_units::{Lbn, Op, SimTime};

const ORIGIN: &str = "fuzz.toml";
/// Blocks of a drive whose places are looked at.
const PLACES: u64 = 64;

/// Reads `bytes` as a drive file and checks what must hold. Panics otherwise.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match library::parse(&text, ORIGIN) {
        Ok(spec) => check_spec(&spec),
        Err(error) => assert!(error.to_string().starts_with(ORIGIN), "{error}"),
    }
}

fn check_spec(spec: &DriveSpec) {
    let written = toml::to_string(spec).expect("a drive can be written");
    let read = library::parse(&written, ORIGIN).expect("a written drive can be read");
    // As texts: a number that is none is not equal to itself.
    assert_eq!(toml::to_string(&read).expect("again"), written);
    match library::build(spec, ORIGIN) {
        Ok(drive) => check_drive(spec, drive),
        Err(error) => assert!(error.to_string().starts_with(ORIGIN), "{error}"),
    }
}

fn check_drive(spec: &DriveSpec, drive: Drive) {
    let blocks = drive.blocks().get();
    assert!(blocks > 0);
    let layout = drive.layout();
    let step = (layout.blocks().get() / PLACES).max(1);
    let last = layout.blocks().get() - 1;
    for lbn in (0..last).step_by(step as usize).take(PLACES as usize).chain([last]) {
        let place = layout.locate(Lbn::new(lbn));
        assert!(place.cylinder < spec.cylinders && place.surface < spec.surfaces, "{place:?}");
        assert_eq!(layout.lbn_at(place), Some(Lbn::new(lbn)), "{place:?}");
    }
    let drive = Arc::new(drive);
    let mut unit = DriveUnit::new(&drive, &spec.electronics).expect("what builds has electronics");
    let mut now = SimTime::ZERO;
    // A sector of 4 KiB is asked for as a whole.
    let least = u64::from(spec.electronics.sector.logical_blocks());
    for (op, at) in [(Op::Read, 0), (Op::Write, blocks / 2), (Op::Read, blocks - 1)] {
        let served = unit.serve(now, op, Lbn::new(at - at % least), least as u32);
        assert!(served.end >= now, "{served:?} ends before {now:?}");
        now = served.end;
    }
}
