//! Every policy against its rule, applied to every waiting request one by one.

use freewheel_model::drive::{Drive, Position};
use freewheel_model::sched::linux::LINUX_SCHEDULERS;
use freewheel_model::sched::{CommandMark, Moment, POLICIES, PolicySpec, Waiting};
use freewheel_testkit::drives::any_drive;
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use proptest::prelude::*;

/// Memory of C-LOOK and LOOK: their place, and the requests they knew on getting there.
#[derive(Default)]
struct Sweep {
    at: Lbn,
    known: u64,
    latest: u64,
    downwards: bool,
}

impl Sweep {
    /// Goes to `picked`; `anew` when a sweep begins there.
    fn serve(&mut self, picked: Waiting, anew: bool) -> Waiting {
        if anew || picked.target.start != self.at {
            self.at = picked.target.start;
            self.known = self.latest;
        }
        picked
    }

    /// At the address of the sweep only what was known on arrival counts as ahead.
    fn is_ahead(&self, w: &Waiting, downwards: bool) -> bool {
        match w.target.start.cmp(&self.at) {
            std::cmp::Ordering::Equal => w.sequence <= self.known,
            order => order.is_lt() == downwards,
        }
    }
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
        PolicySpec::SstfLw { latency_weight } => by(&|w| {
            let missing = moment.drive.rotation().period().saturating_sub(position(w).rotate);
            i128::from(position(w).seek.ns())
                + (missing.ns() as f64 * latency_weight).floor() as i128
        }),
        PolicySpec::Asatf { age_factor } => by(&|w| {
            let waited = (moment.now - w.arrival).ns() as f64;
            i128::from(position(w).total().ns()) - (waited * age_factor).floor() as i128
        }),
        PolicySpec::Clook => {
            let wraps = !queue.iter().any(|w| sweep.is_ahead(w, false));
            let picked = by(&|w| {
                let start = i128::from(w.target.start.get());
                if wraps || sweep.is_ahead(w, false) { start } else { i128::MAX }
            });
            sweep.serve(picked, wraps)
        }
        PolicySpec::Look => {
            if !queue.iter().any(|w| sweep.is_ahead(w, sweep.downwards)) {
                sweep.downwards = !sweep.downwards;
                sweep.known = sweep.latest;
            }
            let picked = by(&|w| {
                let distance = i128::from(w.target.start.get().abs_diff(sweep.at.get()));
                if sweep.is_ahead(w, sweep.downwards) { distance } else { i128::MAX }
            });
            sweep.serve(picked, false)
        }
        PolicySpec::LinuxNone
        | PolicySpec::MqDeadline(_)
        | PolicySpec::Kyber(_)
        | PolicySpec::Bfq(_) => {
            unreachable!("{spec} stands in front of a drive: its oracle is in tests/linux")
        }
    }
}

fn random_waiting(prng: &mut Prng, drive: &Drive, now: SimTime, sequence: u64) -> Waiting {
    // Often an address asked for before: what sweeps must not get stuck at.
    let capacity = drive.blocks().get();
    let start = if prng.chance(0.3) { capacity / 3 } else { prng.below(capacity) };
    let blocks = 1 + prng.below((drive.blocks().get() - start).min(8));
    let op = if prng.chance(0.6) { Op::Read } else { Op::Write };
    let target = drive.target(Lbn::new(start), Blocks::new(blocks), op);
    Waiting { target, arrival: now, sequence, fua: false, mark: CommandMark::None }
}

/// Arrivals and picks in random order; the policy must name the oracle's request every time.
fn follows_its_rule(spec: PolicySpec, drive: &Drive, seed: u64, arrivals: u64) {
    let prng = &mut Prng::new(seed, "schedule");
    let mut policy = spec.build().unwrap();
    let (mut queue, mut sweep): (Vec<Waiting>, Sweep) = (Vec::new(), Sweep::default());
    let (mut now, mut head, mut sequence) = (SimTime::ZERO, Position::default(), 0);
    for _ in 0..60 {
        for _ in 0..prng.below(arrivals) {
            let waiting = random_waiting(prng, drive, now, sequence);
            sweep.latest = sequence;
            sequence += 1;
            queue.push(waiting);
            policy.push(waiting);
        }
        let moment = Moment { now, head, drive };
        assert_eq!(policy.len(), queue.len());
        if !queue.is_empty() && prng.chance(0.1) {
            let out_of_turn = queue.remove(prng.below(queue.len() as u64) as usize);
            assert_eq!(policy.take(out_of_turn.sequence), Some(out_of_turn), "{spec}");
            assert_eq!(policy.take(out_of_turn.sequence), None, "{spec} gives it once");
        }
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
    fn policies_pick_by_rule(
        (_, drive) in any_drive(), seed: u64, arrivals in 2u64..5
    ) {
        for row in POLICIES {
            // Parameters are binary fractions, so that the oracle's products are exact.
            match row.usual {
                PolicySpec::SptfSw { .. } => {
                    for window in [0.0, 0.125, 1.0, f64::INFINITY] {
                        follows_its_rule(PolicySpec::SptfSw { window }, &drive, seed, arrivals);
                    }
                }
                PolicySpec::SstfLw { .. } => {
                    for latency_weight in [0.0, 0.125, 1.0, 512.0] {
                        follows_its_rule(PolicySpec::SstfLw { latency_weight }, &drive, seed, arrivals);
                    }
                }
                PolicySpec::Asatf { .. } => {
                    for age_factor in [0.0, 0.0078125, 0.5, 1024.0] {
                        follows_its_rule(PolicySpec::Asatf { age_factor }, &drive, seed, arrivals);
                    }
                }
                plain => follows_its_rule(plain, &drive, seed, arrivals),
            }
        }
    }

    #[test]
    fn continuum_ends_are_sptf_sstf_and_fcfs((_, drive) in any_drive(), seed: u64) {
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
        prop_assert_eq!(order(PolicySpec::SstfLw { latency_weight: 0.0 }), order(PolicySpec::Sstf));
    }
}

/// A drive with a request for the same block always waiting, and one elsewhere.
#[test]
fn sweeps_starve_nobody_on_repeated_block() {
    let drive = (0..)
        .find_map(|seed| Drive::build(&freewheel_testkit::drives::random_spec(seed)).ok())
        .unwrap();
    let far = drive.target(Lbn::new(drive.blocks().get() - 1), Blocks::new(1), Op::Read);
    let hot = drive.target(Lbn::ZERO, Blocks::new(1), Op::Write);
    for spec in [PolicySpec::Clook, PolicySpec::Look] {
        let mut policy = spec.build().unwrap();
        let moment = Moment { now: SimTime::ZERO, head: Position::default(), drive: &drive };
        policy.push(Waiting {
            target: far,
            arrival: SimTime::ZERO,
            sequence: 0,
            fua: false,
            mark: CommandMark::None,
        });
        policy.push(Waiting {
            target: hot,
            arrival: SimTime::ZERO,
            sequence: 1,
            fua: false,
            mark: CommandMark::None,
        });
        let mut served = Vec::new();
        for sequence in 2..6 {
            served.push(policy.pick(&moment).unwrap().sequence);
            policy.push(Waiting {
                target: hot,
                arrival: SimTime::ZERO,
                sequence,
                fua: false,
                mark: CommandMark::None,
            });
        }
        assert!(served[..2].contains(&0), "{spec} served {served:?}");
    }
}

#[test]
fn linux_scheduler_is_no_drive_policy() {
    for row in LINUX_SCHEDULERS {
        let error = row.usual.build().err().expect("it stands in front of a drive").to_string();
        assert!(error.starts_with(&format!("`{}` is a scheduler of Linux", row.name)), "{error}");
        assert!(error.contains("one of fcfs, look"), "{error}");
    }
}

#[test]
fn long_queue_searched_exactly() {
    let spec = freewheel_testkit::drives::random_spec(
        (0..).find(|&s| Drive::build(&freewheel_testkit::drives::random_spec(s)).is_ok()).unwrap(),
    );
    let drive = Drive::build(&spec).unwrap();
    let prng = &mut Prng::new(5, "deep queue");
    let waiting: Vec<Waiting> = (0..3000)
        .map(|i| random_waiting(prng, &drive, SimTime::from_ns(i * 20_000_000), i))
        .collect();
    for policy_spec in ["sstf", "sptf", "sptf-sw:0.5", "asatf:0.0078125", "asatf:0.5"] {
        let policy_spec: PolicySpec = policy_spec.parse().unwrap();
        let mut policy = policy_spec.build().unwrap();
        waiting.iter().for_each(|w| policy.push(*w));
        let (mut queue, mut sweep) = (waiting.clone(), Sweep::default());
        let (mut now, mut head) = (SimTime::from_ns(61_000_000_000), Position::default());
        for _ in 0..60 {
            let moment = Moment { now, head, drive: &drive };
            let expected = oracle(policy_spec, &queue, &moment, &mut sweep);
            assert_eq!(policy.pick(&moment), Some(expected), "{policy_spec}");
            queue.retain(|w| w.sequence != expected.sequence);
            let access = drive.access(now, head, &expected.target);
            now += access.total();
            head = access.end;
        }
    }
}

/// Requests come and go until every part of the queue has been split and put together again. Many are for
/// a few places, so that ties and crowded cylinders occur.
#[test]
fn resizing_queue_searched_exactly() {
    let spec = toml::from_str(include_str!("../../../../drives/atlas10k.toml")).unwrap();
    let drive = Drive::build(&spec).unwrap();
    let policies =
        ["sstf", "sptf", "sptf-sw:0.5", "sstf-lw:0.5", "asatf:0", "asatf:0.0078125", "asatf:8"];
    for (seed, policy_spec) in policies.into_iter().enumerate() {
        let policy_spec: PolicySpec = policy_spec.parse().unwrap();
        let prng = &mut Prng::new(seed as u64, "churn");
        let mut policy = policy_spec.build().unwrap();
        let (mut queue, mut sweep): (Vec<Waiting>, Sweep) = (Vec::new(), Sweep::default());
        let (mut now, mut head, mut sequence) = (SimTime::ZERO, Position::default(), 0);
        for depth in [200, 5, 60, 0, 30, 1] {
            for _ in 0..250 {
                while queue.len() < depth + prng.below(3) as usize {
                    let mut waiting = random_waiting(prng, &drive, now, sequence);
                    if prng.chance(0.2) {
                        let start = Lbn::new(1_000 * prng.below(3));
                        waiting.target = drive.target(start, Blocks::new(8), Op::Read);
                    }
                    sequence += 1;
                    queue.push(waiting);
                    policy.push(waiting);
                }
                let moment = Moment { now, head, drive: &drive };
                if queue.is_empty() {
                    assert_eq!(policy.pick(&moment), None);
                    continue;
                }
                let expected = oracle(policy_spec, &queue, &moment, &mut sweep);
                assert_eq!(policy.pick(&moment), Some(expected), "{policy_spec} at {now}");
                queue.retain(|w| w.sequence != expected.sequence);
                assert_eq!(policy.len(), queue.len());
                let access = drive.access(now, head, &expected.target);
                now += access.total();
                head = access.end;
            }
        }
    }
}
