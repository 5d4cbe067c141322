//! Time at which the foreground's data are due at the end of a gap.

use freewheel_freeblock::Opportunity;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::drive::{Departure, Drive, RemainingAccess};
use freewheel_testkit::drives::{any_departure, any_drive, passage};
use freewheel_units::{Lbn, Op, Prng, SimTime};
use proptest::prelude::*;

/// Time at which the first of the remaining blocks is taken, by a head that arrives on the track of the
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
    fn leg_is_due_at_first_data(
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
}
