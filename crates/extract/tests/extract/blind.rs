//! Drives of which everything is drawn at random.

use freewheel_extract::{Confidence, ExtractOptions, Extraction, Journal, extract};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::{CurveSpec, Turn};
use freewheel_model::electronics::spec::{SectorFormat, WriteCache};
use freewheel_units::{Op, Prng, SimDuration};

use crate::checks::{check_held_out, check_layout, check_mapping, check_seeks, difference};
use crate::hidden::{Hidden, emulated, extracted, hidden};

/// Drives with electronics drawn at random.
const ELECTRONICS: u64 = 24;

fn check(base: &str, seed: u64) {
    check_hidden(&hidden(base, seed), &format!("{base} {seed}"));
}

fn check_hidden(hidden: &Hidden, name: &str) -> Extraction {
    let found = extracted(hidden, false);
    check_layout(&hidden.spec, &found);
    check_mapping(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
    check_held_out(&found);
    let segments = found.spec.electronics.buffer.as_ref().map(|buffer| buffer.segments);
    assert_eq!(segments, hidden.spec.electronics.buffer.as_ref().map(|buffer| buffer.segments));
    let off = difference(&hidden.spec, &found.spec, false);
    println!(
        "{name}: {} commands, {:.0} s, jitter {:.1} us, responses off by {:.1} us",
        found.commands,
        found.drive_ns as f64 / 1e9,
        found.reply_jitter_ns / 1e3,
        off / 1e3
    );
    assert!(off < 100_000.0, "{off} ns");
    found
}

macro_rules! blind {
    ($($name:ident: $base:literal, $seed:literal;)*) => {
        $(#[test]
        fn $name() {
            check($base, $seed);
        })*
    };
}

blind! {
    a_hidden_drive_is_found_out_1: "atlas10k", 1;
    a_hidden_drive_is_found_out_2: "exos-7e8-8tb", 2;
    a_hidden_drive_is_found_out_3: "atlas10k", 3;
    a_hidden_drive_is_found_out_4: "exos-7e8-8tb", 4;
    a_hidden_drive_is_found_out_5: "exos-7e8-8tb", 5;
    a_hidden_drive_is_found_out_6: "atlas10k", 6;
    a_hidden_drive_is_found_out_7: "atlas10k", 7;
    a_hidden_drive_is_found_out_8: "exos-7e8-8tb", 8;
    a_hidden_drive_is_found_out_9: "exos-7e8-8tb", 9;
    a_hidden_drive_is_found_out_10: "atlas10k", 10;
    a_hidden_drive_is_found_out_11: "atlas10k", 11;
    a_hidden_drive_is_found_out_12: "exos-7e8-8tb", 12;
}

/// Drive with sectors of 4 KiB: all that is counted in blocks is counted in whole ones.
fn in_sectors(mut hidden: Hidden, sector: SectorFormat) -> Hidden {
    for zone in &mut hidden.spec.zones {
        let before = u64::from(zone.blocks_per_track);
        zone.blocks_per_track = zone.blocks_per_track.next_multiple_of(8);
        let per_track = u64::from(zone.blocks_per_track);
        let whole = |turn: Turn| {
            let sectors = (turn.angle().turns() * per_track as f64 / 8.0).ceil() as u64;
            Turn::from_ratio(sectors * 8 % per_track, per_track).unwrap()
        };
        (zone.track_skew, zone.cylinder_skew) = (whole(zone.track_skew), whole(zone.cylinder_skew));
        let slips = zone.slips.iter().map(|slip| slip / before * per_track + per_track / 16 * 8);
        zone.slips = slips.flat_map(|slip| slip..slip + 8).collect();
        zone.spares = (zone.spares % (per_track - 16)).next_multiple_of(8) + 8;
    }
    hidden.spec.electronics.sector = sector;
    hidden
}

#[test]
fn hidden_4kn_drives_are_found_exactly() {
    for seed in [31, 32] {
        let plain = hidden("exos-7e8-8tb", seed);
        let hidden = in_sectors(plain, SectorFormat::Native4096);
        let found = check_hidden(&hidden, &format!("4kn {seed}"));
        assert_eq!(found.spec.electronics.sector, SectorFormat::Native4096);
    }
}

#[test]
fn hidden_512e_drive_is_found_exactly() {
    let hidden = in_sectors(hidden("exos-7e8-8tb", 33), SectorFormat::Emulated512);
    let found = check_hidden(&hidden, "512e");
    assert_eq!(found.spec.electronics.sector, SectorFormat::Emulated512);
}

/// With times of writes that differ from those of reads.
fn hidden_writes(base: &str, seed: u64) -> Hidden {
    let mut hidden = hidden(base, seed);
    let mut prng = Prng::new(seed, "hidden writes");
    let mut us = |from: u64, to: u64| SimDuration::from_us(from + prng.below(to - from));
    hidden.spec.seek.write_settle = us(100, 700);
    hidden.spec.electronics.read_write_switch = us(0, 900);
    hidden.behaviour.write_cache = Some(WriteCache::Off);
    if let (CurveSpec::PowerLinear { full_ms, .. }, 1) = (&hidden.spec.seek.read, seed % 2) {
        let full_ms = full_ms + 1.0;
        hidden.spec.seek.write =
            Some(CurveSpec::ThreePoint { single_ms: 0.3, average_ms: full_ms / 2.0, full_ms });
    }
    hidden
}

fn check_writes(base: &str, seed: u64) {
    check_hidden_writes(&hidden_writes(base, seed), &format!("{base} {seed}"));
}

fn check_hidden_writes(hidden: &Hidden, name: &str) {
    let found = extracted(hidden, true);
    check_layout(&hidden.spec, &found);
    check_seeks(&hidden.spec, &found);
    let drive = Drive::build(&hidden.spec).unwrap();
    assert!(!found.write_seeks.is_empty());
    for &(distance, ns) in &found.write_seeks {
        let hidden = drive.seek().time_ns(Op::Write, distance, false) as f64;
        let off = (ns as f64 - hidden).abs();
        assert!(off < 50_000.0_f64.max(hidden * 0.02), "{distance}: {ns} for {hidden}");
    }
    let off = difference(&hidden.spec, &found.spec, true);
    println!("{name}: {} commands, responses off by {:.1} us", found.commands, off / 1e3);
    let (settle, hidden_settle) = (found.spec.seek.write_settle, hidden.spec.seek.write_settle);
    let (switch, hidden_switch) =
        (found.spec.electronics.read_write_switch, hidden.spec.electronics.read_write_switch);
    println!("settle {settle} for {hidden_settle}, switch {switch} for {hidden_switch}");
    assert!(off < 100_000.0, "{off} ns");
    if hidden.spec.seek.write.is_none() {
        assert!(settle.ns().abs_diff(hidden_settle.ns()) < 50_000, "{settle} for {hidden_settle}");
    }
    assert!(switch.ns().abs_diff(hidden_switch.ns()) < 50_000, "{switch} for {hidden_switch}");
}

#[test]
fn hidden_writes_are_found_1() {
    check_writes("exos-7e8-8tb", 21);
}

#[test]
fn hidden_writes_are_found_2() {
    check_writes("atlas10k", 22);
}

#[test]
fn hidden_writes_are_found_3() {
    check_writes("exos-7e8-8tb", 24);
}

#[test]
fn hidden_4kn_writes_are_found() {
    let hidden = in_sectors(hidden_writes("exos-7e8-8tb", 34), SectorFormat::Native4096);
    check_hidden_writes(&hidden, "4kn 34");
}

#[test]
fn cached_writes_are_refused_with_advice() {
    let mut hidden = hidden_writes("atlas10k", 22);
    hidden.behaviour.write_cache = Some(WriteCache::On);
    let mut drive = emulated(&hidden.spec, &hidden.behaviour, 1);
    let options = ExtractOptions { name: "found".into(), seed: 1, writes: true, surfaces: false };
    let error = extract(&mut drive, &options, Journal::default(), &|_| {}).unwrap_err();
    assert!(error.to_string().contains("hdparm -W0"), "{error}");
}

#[test]
fn heads_are_counted_despite_equal_skews() {
    for seed in [4, 8] {
        let mut hidden = hidden("exos-7e8-8tb", seed);
        hidden.spec.surfaces = 6;
        hidden.spec.head_switch = SimDuration::from_us(880);
        for zone in &mut hidden.spec.zones {
            let sectors = u64::from(zone.blocks_per_track);
            zone.cylinder_skew = Turn::from_ratio(sectors / 4, sectors).unwrap();
            zone.track_skew = zone.cylinder_skew;
        }
        let found = extracted(&hidden, false);
        check_layout(&hidden.spec, &found);
        check_mapping(&hidden.spec, &found);
        check_seeks(&hidden.spec, &found);
    }
}

/// A drive whose electronics are drawn at random, and whose answers come late by as much as those of a
/// busy host.
fn hidden_electronics(seed: u64) -> Hidden {
    let mut hidden = hidden("atlas10k", seed);
    hidden.behaviour.reply_jitter = SimDuration::from_us(25);
    // Of fewer the buffer would hold most.
    hidden.spec.surfaces = hidden.spec.surfaces.max(4);
    let mut prng = Prng::new(seed, "electronics");
    let mut flips = || prng.below(2) == 0;
    if flips() {
        let on = !hidden.spec.zero_latency.read;
        (hidden.spec.zero_latency.read, hidden.spec.zero_latency.write) = (on, on);
    }
    if let Some(buffer) = &mut hidden.spec.electronics.buffer {
        buffer.partial_hits ^= flips();
        buffer.keep_requested ^= flips();
        buffer.almost_hits ^= flips();
        buffer.read_ahead_on_hit ^= flips();
    }
    hidden
}

/// Values that are called measured are right in spite of jitter.
#[test]
fn electronics_called_measured_are_right() {
    let yes = |is: bool| String::from(if is { "yes" } else { "no" });
    let mut measured = 0;
    for seed in 1..=ELECTRONICS {
        let hidden = hidden_electronics(seed);
        let found = extracted(&hidden, false);
        let buffer = hidden.spec.electronics.buffer.unwrap();
        for (key, truth) in [
            ("zero_latency", yes(hidden.spec.zero_latency.read)),
            ("electronics.buffer.read_ahead", format!("{:?}", buffer.read_ahead)),
            ("electronics.buffer.partial_hits", yes(buffer.partial_hits)),
            ("electronics.buffer.keep_free_blocks_before", yes(buffer.keep_free_blocks_before)),
            ("electronics.buffer.keep_requested", yes(buffer.keep_requested)),
            ("electronics.buffer.almost_hits", yes(buffer.almost_hits)),
            ("electronics.buffer.read_ahead_on_hit", yes(buffer.read_ahead_on_hit)),
        ] {
            let value = found.values.iter().find(|value| value.key == key).unwrap();
            if value.confidence == Confidence::Measured {
                assert_eq!(value.value, truth, "{seed} {key}: {}", value.source);
                measured += 1;
            }
        }
    }
    assert!(measured > ELECTRONICS, "{measured} of {ELECTRONICS} drives");
}
