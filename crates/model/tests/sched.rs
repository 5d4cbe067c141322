//! Every policy against its rule, applied to every waiting request one by one.
#![allow(missing_docs)]

mod common;

use common::any_drive;
use freewheel_model::drive::{Drive, Position};
use freewheel_model::sched::{Moment, POLICIES, PolicySpec, Waiting};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

/// What C-LOOK and LOOK remember.
#[derive(Default)]
struct Sweep {
    at: Lbn,
    downwards: bool,
}

/// The request each rule names, by looking at all of them. Ties go to the first arrival.
fn oracle(spec: PolicySpec, queue: &[Waiting], moment: &Moment<'_>, sweep: &mut Sweep) -> Waiting {
    let position = |w: &Waiting| moment.drive.positioning(moment.now, moment.head, &w.target);
    let by = |key: &dyn Fn(&Waiting) -> i128| {
        *queue.iter().min_by_key(|w| (key(w), w.sequence)).unwrap()
    };
    match spec {
        PolicySpec::Fcfs => by(&|_| 0),
        PolicySpec::Sstf => by(&|w| position(w).seek.ns().into()),
        PolicySpec::Sptf => by(&|w| position(w).total().ns().into()),
        PolicySpec::SptfSw { window } => {
            let shortest = queue.iter().map(|w| position(w).total().ns()).min().unwrap();
            let limit = shortest as f64 * (1.0 + window);
            let within =
                |w: &Waiting| window.is_infinite() || position(w).total().ns() as f64 <= limit;
            by(&|w| if within(w) { position(w).seek.ns().into() } else { i128::MAX })
        }
        PolicySpec::Asatf { age_factor } => by(&|w| {
            let waited = (moment.now - w.arrival).ns() as f64;
            i128::from(position(w).total().ns()) - (waited * age_factor).floor() as i128
        }),
        PolicySpec::Clook => {
            let picked = by(&|w| {
                let start = i128::from(w.target.start.get());
                if w.target.start >= sweep.at { start } else { start + (1 << 64) }
            });
            sweep.at = picked.target.start;
            picked
        }
        PolicySpec::Look => {
            let ahead = |w: &Waiting, downwards: bool| {
                if downwards { w.target.start <= sweep.at } else { w.target.start >= sweep.at }
            };
            if !queue.iter().any(|w| ahead(w, sweep.downwards)) {
                sweep.downwards = !sweep.downwards;
            }
            let downwards = sweep.downwards;
            let picked = by(&|w| {
                let distance = i128::from(w.target.start.get().abs_diff(sweep.at.get()));
                if ahead(w, downwards) { distance } else { i128::MAX }
            });
            sweep.at = picked.target.start;
            picked
        }
    }
}

fn random_waiting(prng: &mut Prng, drive: &Drive, now: SimTime, sequence: u64) -> Waiting {
    let start = prng.below(drive.blocks().get());
    let blocks = 1 + prng.below((drive.blocks().get() - start).min(8));
    let op = if prng.chance(0.6) { Op::Read } else { Op::Write };
    let target = drive.target(Lbn::new(start), Blocks::new(blocks), op);
    Waiting { target, arrival: now, sequence }
}

/// Arrivals and picks in random order; the policy must name the oracle's request every time.
fn follows_its_rule(spec: PolicySpec, drive: &Drive, seed: u64) {
    let prng = &mut Prng::new(seed, "schedule");
    let mut policy = spec.build().unwrap();
    let (mut queue, mut sweep): (Vec<Waiting>, Sweep) = (Vec::new(), Sweep::default());
    let (mut now, mut head, mut sequence) = (SimTime::ZERO, Position::default(), 0);
    for _ in 0..60 {
        for _ in 0..prng.below(4) {
            let waiting = random_waiting(prng, drive, now, sequence);
            sequence += 1;
            queue.push(waiting);
            policy.push(waiting);
        }
        let moment = Moment { now, head, drive };
        assert_eq!(policy.len(), queue.len());
        let picked = policy.pick(&moment);
        if queue.is_empty() {
            assert_eq!(picked, None);
            now += SimDuration::from_ms(3);
            continue;
        }
        let expected = oracle(spec, &queue, &moment, &mut sweep);
        assert_eq!(picked, Some(expected), "{spec} at {now} with {} waiting", queue.len());
        queue.retain(|w| w.sequence != expected.sequence);
        let access = drive.access(now, head, &expected.target);
        now += access.total();
        head = access.end;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_policy_picks_what_its_rule_says((_, drive) in any_drive(), seed: u64) {
        for row in POLICIES {
            // Parameters are binary fractions, so that the oracle's products are exact.
            match row.usual {
                PolicySpec::SptfSw { .. } => {
                    for window in [0.0, 0.125, 1.0, f64::INFINITY] {
                        follows_its_rule(PolicySpec::SptfSw { window }, &drive, seed);
                    }
                }
                PolicySpec::Asatf { .. } => {
                    for age_factor in [0.0, 0.0078125, 0.5, 1024.0] {
                        follows_its_rule(PolicySpec::Asatf { age_factor }, &drive, seed);
                    }
                }
                plain => follows_its_rule(plain, &drive, seed),
            }
        }
    }

    #[test]
    fn the_continuum_ends_in_sptf_and_sstf_and_in_fcfs((_, drive) in any_drive(), seed: u64) {
        let order = |spec: PolicySpec| {
            let prng = &mut Prng::new(seed, "continuum");
            let mut policy = spec.build().unwrap();
            for sequence in 0..30 {
                policy.push(random_waiting(prng, &drive, SimTime::from_ns(sequence * 1_000_000), sequence));
            }
            let (mut now, mut head) = (SimTime::from_ns(100_000_000), Position::default());
            let mut order = Vec::new();
            while let Some(waiting) = policy.pick(&Moment { now, head, drive: &drive }) {
                let access = drive.access(now, head, &waiting.target);
                now += access.total();
                head = access.end;
                order.push(waiting.sequence);
            }
            order
        };
        prop_assert_eq!(order(PolicySpec::Asatf { age_factor: 0.0 }), order(PolicySpec::Sptf));
        prop_assert_eq!(order(PolicySpec::Asatf { age_factor: 1e5 }), order(PolicySpec::Fcfs));
        prop_assert_eq!(order(PolicySpec::SptfSw { window: f64::INFINITY }), order(PolicySpec::Sstf));
    }
}
