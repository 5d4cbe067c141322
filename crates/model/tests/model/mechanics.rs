//! Stage times against a slow, obvious account of which sector passes the head when.

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::drive::{
    Access, Drive, Position, Positionings, RemainingAccess, RunStart, Target,
};
use freewheel_testkit::drives::{any_departure, any_drive, any_position, passage};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

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

/// A command of up to 30 blocks, its begin, and the head's place then.
fn any_command(prng: &mut Prng, spec: &DriveSpec, drive: &Drive) -> (SimTime, Position, Target) {
    let start = prng.below(drive.blocks().get());
    let count = 1 + prng.below((drive.blocks().get() - start).min(30));
    let op = if prng.chance(0.5) { Op::Read } else { Op::Write };
    let now = SimTime::from_ns(prng.below(1 << 40));
    let target = drive.target(Lbn::new(start), Blocks::new(count), op);
    (now, any_position(prng, spec), target)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn stage_times_match_passing_sectors((spec, drive) in any_drive(), seed: u64) {
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
            let (now, from, target) = any_command(prng, &spec, &drive);
            let predicted = drive.positioning(now, from, &target);
            let access = drive.access(now, from, &target);
            prop_assert_eq!(predicted.seek, drive.seek_to(from, &target));
            prop_assert!(predicted.seek <= access.seek && predicted.rotate <= access.rotate);
            let one_track = target.is_one_run();
            if one_track {
                prop_assert_eq!(predicted.total() + access.overhead + access.transfer, access.total());
            }
        }
    }

    #[test]
    fn positioning_times_of_many_match_single((spec, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "bounds");
        for _ in 0..40 {
            let (now, from, target) = any_command(prng, &spec, &drive);
            let (predicted, start) = (drive.positioning(now, from, &target), RunStart::of(&target));
            let from_here = Positionings::new(&drive, now, from);
            prop_assert!(from_here.bound_ns(&start) <= predicted.total().ns(), "{:?}", target);
            prop_assert_eq!(from_here.total_ns(&start, || &target), predicted.total().ns());
            prop_assert_eq!(from_here.seek_ns(&start), predicted.seek.ns());
        }
    }

    #[test]
    fn access_legs_take_as_long_as_whole((spec, drive) in any_drive(), seed: u64) {
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
    fn access_ends_at_last_block((_, drive) in any_drive(), seed: u64) {
        let prng = &mut Prng::new(seed, "ends");
        let start = prng.below(drive.blocks().get());
        let count = 1 + prng.below(drive.blocks().get() - start);
        let target = drive.target(Lbn::new(start), Blocks::new(count), Op::Read);
        let end = drive.access(SimTime::ZERO, target.at, &target).end;
        let last = drive.layout().locate(Lbn::new(start + count - 1));
        prop_assert_eq!((end.cylinder, end.surface), (last.cylinder, last.surface));
    }
}
