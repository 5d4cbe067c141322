//! Drives against traces of access times. Those measured on real drives are in `data.rs`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use freewheel_extract::validate::{
    FioRow, GapReading, GapsBecause, ValidateError, Validation, fit, is_fio, validate, validate_fio,
};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{DriveSpec, Turn};
use freewheel_model::electronics::DriveUnit;
use freewheel_model::electronics::spec::{ElectronicsSpec, ReadAhead};
use freewheel_sim::config::TraceWorkload;
use freewheel_sim::library;
use freewheel_units::{Lbn, Op, Prng, SimDuration, SimTime};

fn trace(file: &Path) -> TraceWorkload {
    TraceWorkload { file: file.into(), ..TraceWorkload::default() }
}

fn validated(drive: &str, text: &str) -> Result<Validation, ValidateError> {
    validated_with(drive, text, None)
}

fn validated_with(
    drive: &str,
    text: &str,
    gaps: Option<GapReading>,
) -> Result<Validation, ValidateError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    validate(drive, &trace(file.path()), gaps)
}

#[test]
fn phase_is_silent_without_media_visits() {
    let one = validated("tr96", "R Hit 0 1 300 1000\n").unwrap();
    assert!(one.phase.verdict.starts_with("Not to be told"), "{}", one.phase.verdict);
    assert!(one.phase.distances.is_empty() && one.phase.resynchronised_sd_ms.is_none());
}

#[test]
fn demerit_of_own_times_is_zero() {
    // The tr96 disk has no electronics: block 0 at time 0 is one sector, 194.8 us.
    let sector_us = 60e6 / 4400.0 / 70.0;
    let own = validated("tr96", &format!("R Hit 0 1 {sector_us:.3} 1000\n")).unwrap();
    assert!(own.demerit_ms < 1e-5, "{}", own.demerit_ms);
    let late = validated("tr96", &format!("R Hit 0 1 {:.3} 1000\n", sector_us + 2000.0)).unwrap();
    assert!((late.demerit_ms - 2.0).abs() < 1e-5, "{}", late.demerit_ms);
    assert_eq!((late.requests, late.parts.len()), (1, 1));
}

#[test]
fn incomparable_record_is_refused() {
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

/// Reads of a drive of ours, that jump to a track and back on it, as DiskSim writes them: with the pause
/// behind each read in its own line, or in the line of the next.
fn measured_here(delay_is_after: bool) -> String {
    let (_, drive) = library::drive("tr96").unwrap();
    let mut unit = DriveUnit::new(&Arc::new(drive), &ElectronicsSpec::default()).unwrap();
    let (mut random, mut now, mut pause) = (Prng::new(7, "delays"), SimTime::ZERO, 0);
    let mut lines = Vec::new();
    for _ in 0..200 {
        let track = random.below(unit.drive().blocks().get() / 70 - 1) * 70;
        for within in [40, 20, 5] {
            let before = pause;
            pause = 20_000 + random.below(40_000);
            let served = unit.serve(now, Op::Read, Lbn::new(track + within), 4);
            let us = (served.end - now).ns() as f64 / 1e3;
            let delay = if delay_is_after { pause } else { before };
            lines.push(format!("R Miss {} 4 {us:.3} {delay}\n", track + within));
            now = served.end + SimDuration::from_us(pause);
        }
    }
    lines.concat()
}

#[test]
fn phase_tells_which_request_was_delayed() {
    for (delay_is_after, gaps) in [(false, GapReading::AsRecorded), (true, GapReading::OneLater)] {
        let text = measured_here(delay_is_after);
        let found = validated("tr96", &text).unwrap();
        assert_eq!((found.gaps, found.gaps_because), (gaps, GapsBecause::Phase), "{found:?}");
        assert!(found.demerit_ms < 0.05, "{}", found.demerit_ms);
        // With gaps one later no record holds that before the second request: its response is up to a turn off.
        let turn_ms = 60e3 / 4400.0;
        let unknown = usize::from(gaps == GapReading::OneLater) as f64;
        let bound = 0.1 + unknown * turn_ms / f64::from(found.requests as u32).sqrt();
        let sd = found.per_request_error_sd_ms;
        assert!(sd < bound, "{sd} of {bound}");
        // Read the other way, each response has another angle.
        let other = match gaps {
            GapReading::AsRecorded => GapReading::OneLater,
            GapReading::OneLater => GapReading::AsRecorded,
        };
        let asked = validated_with("tr96", &text, Some(other)).unwrap();
        assert_eq!((asked.gaps, asked.gaps_because), (other, GapsBecause::Asked));
        assert!(asked.per_request_error_sd_ms > 2.0, "{}", asked.per_request_error_sd_ms);
        assert_eq!(asked.demerit_other_gaps_ms, found.demerit_ms);
        assert_eq!(found.demerit_other_gaps_ms, asked.demerit_ms);
    }
    let one = validated("tr96", "R Hit 0 1 300 1000\n").unwrap();
    assert_eq!((one.gaps, one.gaps_because), (GapReading::AsRecorded, GapsBecause::Format));
    assert!(one.gaps_in_words().contains("the spindle's phase does not tell"));
}

/// Answers of a drive that reads ahead after touching reads alone are explained by that.
#[test]
fn fitted_values_hold_on_other_half() {
    let (mut spec, drive) = library::drive("atlas10k").unwrap();
    spec.electronics.buffer.as_mut().unwrap().read_ahead = ReadAhead::AfterTouching;
    let mut unit = DriveUnit::new(&Arc::new(drive), &spec.electronics_as_measured()).unwrap();
    let (mut random, mut now, mut lines) = (Prng::new(3, "hidden"), SimTime::ZERO, String::new());
    for _ in 0..250 {
        let start = random.below(unit.drive().blocks().get() - 64);
        for (step, blocks) in [(0, 8), (8, 8), (16, 4)] {
            let served = unit.serve(now, Op::Read, Lbn::new(start + step), blocks);
            let us = (served.end - now).ns() as f64 / 1e3;
            lines += &format!("R Miss {} {blocks} {us:.3} 40000\n", start + step);
            now = served.end + SimDuration::from_ms(40);
        }
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    let found = fit("atlas10k", &trace(file.path()), None).unwrap();
    let keys: Vec<&str> = found.changes.iter().map(|change| change.key).collect();
    assert_eq!(keys.first(), Some(&"electronics.buffer.read_ahead"), "{found:?}");
    assert_eq!(found.changes[0].to, "after-touching");
    assert!(found.holds() && found.judged_ms[1] * 10.0 < found.judged_ms[0], "{found:?}");
    let own = fit("tr96", &trace(tr96_alone().path()), None).unwrap();
    assert!(own.changes.is_empty(), "{own:?}");
}

/// Reads at random places, each followed by one before it on its track, of a drive with this file.
fn read_at_random(spec: &DriveSpec) -> String {
    let drive = Drive::build(spec).unwrap();
    let mut unit = DriveUnit::new(&Arc::new(drive), &spec.electronics_as_measured()).unwrap();
    let (mut random, mut now, mut lines) = (Prng::new(5, "angles"), SimTime::ZERO, String::new());
    for _ in 0..1500 {
        let start = random.below(unit.drive().blocks().get() - 400);
        for place in [start + 60, start] {
            let pause = 8_000 + random.below(20_000);
            let served = unit.serve(now, Op::Read, Lbn::new(place), 2);
            let us = (served.end - now).ns() as f64 / 1e3;
            lines += &format!("R Miss {place} 2 {us:.3} {pause}\n");
            now = served.end + SimDuration::from_us(pause);
        }
    }
    lines
}

/// A drive whose zones begin elsewhere in the turn than its file says, and of which some have other skews.
#[test]
fn fit_finds_zone_angles_and_skews() {
    let (spec, _) = library::drive("cheetah9lp").unwrap();
    let mut hidden = spec.clone();
    for (index, zone) in (0_u64..).zip(&mut hidden.zones) {
        let (over, under) = zone.first_block.ratio();
        let further = (over * 1_000_003 / under + index * 123_457) % 1_000_003;
        zone.first_block = Turn::from_ratio(further, 1_000_003).unwrap();
        let sectors = u64::from(zone.blocks_per_track);
        if index % 3 == 1 {
            let (over, under) = zone.cylinder_skew.ratio();
            let whole = over * sectors / under;
            zone.cylinder_skew = Turn::from_ratio((whole + 7) % sectors, sectors).unwrap();
        }
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(read_at_random(&hidden).as_bytes()).unwrap();
    let found = fit("cheetah9lp", &trace(file.path()), Some(GapReading::OneLater)).unwrap();
    let zones = found.angles.iter().find(|angle| angle.key == "zones").unwrap();
    println!("{zones:?}");
    assert!(zones.kept && zones.resultant_lengths[1] > 0.98, "{zones:?}");
    assert!(zones.judged_sd_ms[1] < 0.2 * zones.judged_sd_ms[0], "{zones:?}");
    // Every track lies as far from the first one as on the hidden drive.
    let [truth, fitted] = [&hidden, &found.spec].map(|spec| Drive::build(spec).unwrap());
    let angle = |drive: &Drive, cylinder: u32, surface: u32| {
        drive.layout().track_start(cylinder, surface).unwrap().turns()
    };
    let apart = |cylinder: u32, surface: u32| {
        (angle(&truth, cylinder, surface) - angle(&fitted, cylinder, surface)).rem_euclid(1.0)
    };
    let all = apart(0, 0);
    for zone in &hidden.zones {
        for (cylinder, surface) in [(zone.first_cylinder, 0), (zone.last_cylinder, 3)] {
            let off = (apart(cylinder, surface) - all + 0.5).rem_euclid(1.0) - 0.5;
            assert!(off.abs() < 0.01, "cylinder {cylinder}: {off} of a turn");
        }
    }
    // Of the drive of the file no angle is changed.
    let mut own = tempfile::NamedTempFile::new().unwrap();
    own.write_all(read_at_random(&spec).as_bytes()).unwrap();
    let found = fit("cheetah9lp", &trace(own.path()), Some(GapReading::OneLater)).unwrap();
    assert!(found.angles.iter().all(|angle| !angle.kept), "{:?}", found.angles);
}

fn tr96_alone() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(measured_here(false).as_bytes()).unwrap();
    file
}

/// fio's output, with these numbers of its job: total, rate, mean and p99 in ms.
fn fio(jobs: &[(&str, u32, [f64; 4])]) -> String {
    let job = |&(rw, depth, [total, rate, mean, p99]): &(&str, u32, [f64; 4])| {
        let (read, write) = if rw == "randread" { (total, 0.0) } else { (0.0, total) };
        let ns = |ms: f64| ms * 1e6;
        let times = format!(
            "\"iops\": {rate}, \"clat_ns\": {{ \"mean\": {:.1}, \"percentile\": {{ \"50.000000\": {}, \
             \"99.000000\": {}, \"99.900000\": {} }} }}",
            ns(mean),
            ns(mean),
            ns(p99),
            ns(p99)
        );
        format!(
            "{{ \"jobname\": \"{rw}-{depth}\", \"job options\": {{ \"rw\": \"{rw}\", \"iodepth\": \"{depth}\" }}, \
             \"read\": {{ \"total_ios\": {read}, {times} }}, \"write\": {{ \"total_ios\": {write}, {times} }} }}"
        )
    };
    let jobs: Vec<String> = jobs.iter().map(job).collect();
    format!(
        "{{ \"fio version\": \"fio-3.36\", \"global options\": {{ \"bs\": \"4k\" }}, \"jobs\": [{}] }}",
        jobs.join(", ")
    )
}

#[test]
fn fio_comparison_names_key_of_deviation() {
    let reads = |rate: f64, mean: f64| [3000.0, rate, mean, 30.0];
    let text = fio(&[
        ("randread", 1, reads(57.0, 17.5)),
        ("randread", 16, reads(60.0, 266.0)),
        ("read", 1, reads(1.0, 1.0)),
    ]);
    assert!(is_fio(&text) && !is_fio("{}") && !is_fio("R Hit 0 1 2 3"));
    let found = validate_fio("exos-x24-24tb", "fio.json", &text).unwrap();
    assert_eq!((found.rows.len(), found.left_out.len()), (2, 1));
    let [alone, deep] = &found.rows[..] else { unreachable!("two rows") };
    assert!((11.0..12.5).contains(&alone.simulated.mean_ms), "{alone:?}");
    assert!(deep.simulated.requests_per_second > alone.simulated.requests_per_second);
    let says = found.advice.join(" ");
    assert!(says.contains("`seek`") && says.contains("reorders"), "{says}");
    // What the drive does in simulation is its own description.
    let figures = |row: &FioRow| {
        [
            3000.0,
            row.simulated.requests_per_second,
            row.simulated.mean_ms,
            row.simulated.p99_ms.unwrap(),
        ]
    };
    let own = fio(&[("randread", 1, figures(alone)), ("randread", 16, figures(deep))]);
    assert!(validate_fio("exos-x24-24tb", "fio.json", &own).unwrap().advice.is_empty());
    // Without one read at a time reordering cannot be told from seeks, and a difference is said all the same.
    let deep_alone = fio(&[("randread", 16, reads(60.0, 266.0))]);
    let says = validate_fio("exos-x24-24tb", "fio.json", &deep_alone).unwrap().advice;
    assert!(says.len() == 1 && says[0].contains("`--iodepth=1`"), "{says:?}");
    let untimed = deep_alone.replace("clat_ns", "nothing");
    let says = validate_fio("exos-x24-24tb", "fio.json", &untimed).unwrap_err().to_string();
    assert!(says.contains("randread-16: it has no mean time"), "{says}");
    let none = validate_fio("exos-x24-24tb", "fio.json", &fio(&[("read", 1, reads(1.0, 1.0))]));
    assert!(none.unwrap_err().to_string().contains("`rw=read` is not random"));
}
