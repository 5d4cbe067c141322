//! Stage times against a slow, obvious account of which sector passes the head when.
#![allow(missing_docs)]

mod common;

use common::any_drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::drive::{Access, Departure, Drive, Position, RemainingAccess, Target};
use freewheel_model::freeblock::Opportunity;
use freewheel_units::{Angle, Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

/// When the sector of `lbn` next begins to pass at or after `now`, and when it has passed.
fn passage(drive: &Drive, lbn: Lbn, now: SimTime) -> (SimTime, SimTime) {
    let place = drive.layout().locate(lbn);
    let zone = drive.layout().zone_at(place.cylinder).unwrap();
    let sectors = u64::from(drive.layout().zones()[zone].blocks_per_track());
    let start = drive.layout().track_start(place.cylinder, place.surface).unwrap();
    let angle = |sector: u64| start + Angle::from_ratio(sector, sectors);
    let begin = now + drive.rotation().wait(now, angle(u64::from(place.sector)));
    let end = begin + drive.rotation().wait(begin, angle(u64::from(place.sector) + 1));
    (begin, end)
}

/// Serves an access track by track and sector by sector.
fn oracle(
    drive: &Drive,
    spec: &DriveSpec,
    now: SimTime,
    from: Position,
    lbns: &[Lbn],
    op: Op,
) -> Access {
    let zero_latency =
        if op == Op::Read { spec.zero_latency.read } else { spec.zero_latency.write };
    let mut access = Access { overhead: drive.overhead(op), end: from, ..Access::default() };
    let mut at = now + access.overhead;
    let mut rest = lbns;
    while let Some(&first) = rest.first() {
        let place = |lbn| drive.layout().locate(lbn);
        let track = place(first);
        let ascending = rest.windows(2).take_while(|pair| {
            let (a, b) = (place(pair[0]), place(pair[1]));
            (b.cylinder, b.surface) == (track.cylinder, track.surface) && b.sector > a.sector
        });
        let count = 1 + ascending.count();
        let distance = access.end.cylinder.abs_diff(track.cylinder);
        let seek = drive.seek().time_ns(op, distance, access.end.surface != track.surface);
        access.seek += SimDuration::from_ns(seek);
        let arrival = at + SimDuration::from_ns(seek);
        let (mut end, mut transfer) = (arrival, SimDuration::ZERO);
        for &lbn in &rest[..count] {
            let earliest = if zero_latency { arrival } else { end };
            let (began, passed) = passage(drive, lbn, earliest);
            end = end.max(passed);
            transfer += passed - began;
        }
        access.transfer += transfer;
        access.rotate += (end - arrival) - transfer;
        access.end = Position { cylinder: track.cylinder, surface: track.surface };
        at = end;
        rest = &rest[count..];
    }
    access
}

fn any_position(prng: &mut Prng, spec: &DriveSpec) -> Position {
    Position {
        cylinder: prng.below(u64::from(spec.cylinders)) as u32,
        surface: prng.below(u64::from(spec.surfaces)) as u32,
    }
}

/// A head and where it goes: often on the track already, just when some sector's edge arrives.
fn any_departure(
    prng: &mut Prng,
    spec: &DriveSpec,
    drive: &Drive,
    most: u64,
) -> (Departure, Target) {
    let start = prng.below(drive.blocks().get());
    let count = 1 + prng.below((drive.blocks().get() - start).min(most));
    let op = |prng: &mut Prng| if prng.chance(0.5) { Op::Read } else { Op::Write };
    let target = drive.target(Lbn::new(start), Blocks::new(count), op(prng));
    let now = SimTime::from_ns(prng.below(1 << 40));
    let read_write_switch = SimDuration::from_us(if prng.chance(0.5) { 0 } else { 700 });
    let (begin, from) = if prng.chance(0.5) {
        (passage(drive, Lbn::new(start + prng.below(count)), now).0, target.at)
    } else {
        (now, any_position(prng, spec))
    };
    (Departure { begin, from, last_op: op(prng), read_write_switch }, target)
}

/// When the first of the blocks that are left is taken, by a head that arrives on the track of the
/// first: in order, or with zero latency whichever passes first of those on this visit.
fn first_data(drive: &Drive, spec: &DriveSpec, left: &[u64], arrival: SimTime, op: Op) -> SimTime {
    let zero_latency =
        if op == Op::Read { spec.zero_latency.read } else { spec.zero_latency.write };
    let place = |&lbn: &u64| drive.layout().locate(Lbn::new(lbn));
    let ascends = |pair: &&[u64]| {
        let (a, b) = (place(&pair[0]), place(&pair[1]));
        (a.cylinder, a.surface) == (b.cylinder, b.surface) && a.sector < b.sector
    };
    let on_visit = 1 + left.windows(2).take_while(ascends).count();
    let taken = if zero_latency { on_visit } else { 1 };
    let begins = |&lbn: &u64| passage(drive, Lbn::new(lbn), arrival).0;
    left[..taken].iter().map(begins).min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn stage_times_are_those_of_the_sectors_passing_by((spec, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "accesses");
        for _ in 0..40 {
            let start = prng.below(drive.blocks().get());
            // Up to six runs on a track stay one visit; longer accesses cross tracks and zones.
            let count = 1 + prng.below((drive.blocks().get() - start).min(120));
            let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
            let now = SimTime::from_ns(prng.below(1 << 40));
            let from = any_position(prng, &spec);
            let target = drive.target(Lbn::new(start), Blocks::new(count), op);
            // Often on the track already, just when some sector's edge arrives: to the nanosecond.
            let on_edge = passage(&drive, Lbn::new(start + prng.below(count)), now + drive.overhead(op)).0;
            let (now, from) = if prng.chance(0.4) {
                (SimTime::from_ns((on_edge - SimTime::ZERO).ns() - drive.overhead(op).ns()), target.at)
            } else {
                (now, from)
            };
            let lbns: Vec<Lbn> = (start..start + count).map(Lbn::new).collect();
            let expected = oracle(&drive, &spec, now, from, &lbns, op);
            prop_assert_eq!(drive.access(now, from, &target), expected, "{:?} {:?}", from, target);
        }
    }

    #[test]
    fn prediction_and_access_agree_to_the_nanosecond((spec, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "predictions");
        for _ in 0..40 {
            let start = prng.below(drive.blocks().get());
            let count = 1 + prng.below((drive.blocks().get() - start).min(30));
            let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
            let now = SimTime::from_ns(prng.below(1 << 40));
            let from = any_position(prng, &spec);
            let target = drive.target(Lbn::new(start), Blocks::new(count), op);
            let predicted = drive.positioning(now, from, &target);
            let access = drive.access(now, from, &target);
            prop_assert_eq!(predicted.seek, drive.seek_to(from, &target));
            prop_assert!(predicted.seek <= access.seek && predicted.rotate <= access.rotate);
            let one_track = drive.layout().run(Lbn::new(start), count as u32).blocks == count as u32;
            if one_track {
                prop_assert_eq!(predicted.total() + access.overhead + access.transfer, access.total());
            }
        }
    }

    #[test]
    fn the_legs_of_an_access_take_as_long_as_the_whole((spec, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "legs");
        for _ in 0..40 {
            let (departure, target) = any_departure(prng, &spec, &drive, 120);
            let error_ns = if prng.chance(0.5) { 0 } else { prng.below(2_000_000) as i64 - 1_000_000 };
            let whole = drive.media_access_from(&departure, &target, error_ns);
            let (mut at, mut rest, mut error) = (departure, RemainingAccess::whole(&target), error_ns);
            let mut sum = Access { end: departure.from, ..Access::default() };
            while let Some(leg) = drive.next_leg(&at, &rest, error) {
                let access = leg.access();
                prop_assert_eq!(drive.media_access_from(&at, &leg.target, error), access);
                sum.seek += access.seek;
                sum.rotate += access.rotate;
                sum.transfer += access.transfer;
                sum.end = access.end;
                (at, rest, error) = (at.after(&access, target.op), leg.rest, 0);
            }
            prop_assert_eq!(sum, whole, "{:?} {:?}", departure, target);
        }
    }

    #[test]
    fn a_leg_is_due_when_its_first_data_pass_and_is_the_same_from_anywhere_in_its_wait(
        (spec, drive) in any_drive(), seed: u64
    ) {
        let prng = &mut Prng::new(seed, "due");
        for _ in 0..40 {
            let (departure, target) = any_departure(prng, &spec, &drive, 120);
            let (mut at, mut rest) = (departure, RemainingAccess::whole(&target));
            let mut left: Vec<u64> = (0..target.blocks.into()).map(|n| target.start.get() + n).collect();
            while let Some(leg) = drive.next_leg(&at, &rest, 0) {
                let gap = Opportunity::before(&at, &leg, 0);
                prop_assert_eq!(gap.arrival(&drive, &at) + gap.latency(), gap.due);
                let first = first_data(&drive, &spec, &left, at.begin + leg.seek, target.op);
                prop_assert_eq!(gap.due, first, "{:?} {:?}", at, leg);
                let mut later = Departure { from: leg.target.at, last_op: target.op, ..at };
                later.begin = gap.due.max(gap.begin + leg.seek);
                later.begin = SimTime::from_ns(later.begin.ns() - prng.below(gap.latency().ns() + 1));
                let end = later.begin + drive.media_access_from(&later, &leg.target, 0).total();
                prop_assert_eq!(end, at.begin + leg.access().total(), "{:?}", later);
                let moved = leg.target.start.get()..leg.target.start.get() + u64::from(leg.target.blocks);
                left.retain(|lbn| !moved.contains(lbn));
                (at, rest) = (at.after(&leg.access(), target.op), leg.rest);
            }
            prop_assert!(left.is_empty(), "{} blocks in no leg", left.len());
        }
    }

    #[test]
    fn an_access_ends_where_its_last_block_is((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "ends");
        let start = prng.below(drive.blocks().get());
        let count = 1 + prng.below(drive.blocks().get() - start);
        let target = drive.target(Lbn::new(start), Blocks::new(count), Op::Read);
        let end = drive.access(SimTime::ZERO, target.at, &target).end;
        let last = drive.layout().locate(Lbn::new(start + count - 1));
        prop_assert_eq!((end.cylinder, end.surface), (last.cylinder, last.surface));
    }
}
