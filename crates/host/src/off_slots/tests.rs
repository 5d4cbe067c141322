//! The slots, and the statistics of their responses beside a slow obvious oracle.

use freewheel_units::{Prng, SimDuration, SimTime};
use proptest::prelude::*;

use super::*;

const SLOT: SimDuration = SimDuration::from_ms(100);

/// Requests by arrival and response in nanoseconds.
type Requests = Vec<(u64, u64)>;

fn slots(seed: u64, share: f64) -> OffSlots {
    OffSlots::new(seed, SLOT, share).unwrap()
}

/// Free work in every slot where it may be, beside each request.
fn recorded(mut slots: OffSlots, requests: &Requests) -> OffSlots {
    for &(arrival_ns, response_ns) in requests {
        let arrival = SimTime::from_ns(arrival_ns);
        if !slots.is_off(arrival) {
            slots.worked(arrival);
        }
        slots.record(arrival, SimDuration::from_ns(response_ns));
    }
    slots
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Everything from a list, in two passes: the slot of each request is looked up one by one, each pair's
/// means are kept, and residuals are formed when the cost is known.
fn oracle(slots: &OffSlots, requests: &Requests) -> (Vec<[Vec<f64>; 2]>, f64, f64) {
    let slot_ns = SLOT.ns();
    let is_off = |slot: u64| slots.is_off(SimTime::from_ns(slot * slot_ns));
    let measured = |slot: u64| {
        let of = requests.iter().filter(move |(arrival, _)| {
            arrival / slot_ns == slot && arrival % slot_ns >= slot_ns / 4
        });
        of.map(|&(_, response)| response as f64).collect::<Vec<f64>>()
    };
    let last = requests.iter().map(|(arrival, _)| arrival / slot_ns).max().unwrap_or(0);
    let pairs: Vec<[Vec<f64>; 2]> = (1..=last)
        .filter(|&slot| is_off(slot))
        .map(|slot| [measured(slot), [measured(slot - 1), measured(slot + 1)].concat()])
        .filter(|pair| pair.iter().all(|part| !part.is_empty()))
        .collect();
    let weight = |[off, on]: &[Vec<f64>; 2]| {
        let (off, on) = (off.len() as f64, on.len() as f64);
        off * on / (off + on)
    };
    let weighted = |of: &dyn Fn(&[Vec<f64>; 2]) -> f64| -> f64 {
        pairs.iter().map(|pair| weight(pair) * of(pair)).sum()
    };
    let without = weighted(&|[off, _]| mean(off));
    let cost = weighted(&|[off, on]| mean(on) - mean(off)) / without;
    let residual = |[off, on]: &[Vec<f64>; 2]| mean(on) - mean(off) - cost * mean(off);
    let squares: f64 = pairs.iter().map(|pair| (weight(pair) * residual(pair)).powi(2)).sum();
    let number = pairs.len() as f64;
    let error = (squares * number / (number - 1.0)).sqrt() / without;
    (pairs, cost, error)
}

/// A load whose pace and responses change, and whose responses are longer by `cost` beside free work.
fn load(slots: &OffSlots, seed: u64, number: usize, cost: f64) -> Requests {
    let mut prng = Prng::new(seed, "load");
    let mut now_ns = 0.0;
    (0..number)
        .map(|at| {
            // Phases of the load, as of any real one.
            let phase = 1.0 + (at / 700 % 3) as f64;
            now_ns += prng.exponential(2e6 * phase);
            let arrival_ns = now_ns as u64;
            let off = slots.is_off(SimTime::from_ns(arrival_ns));
            let with = if off { 1.0 } else { 1.0 + cost };
            (arrival_ns, (prng.exponential(5e6 * phase) * with) as u64 + 1)
        })
        .collect()
}

#[test]
fn slots_off_match_share_and_seed() {
    for (share, every) in [(0.01, 100), (0.05, 20), (0.25, 4)] {
        let off = |seed| -> Vec<u64> {
            let slots = slots(seed, share);
            let is_off = |slot: &u64| slots.is_off(SimTime::ZERO + SLOT * *slot);
            (0..every * 50).filter(is_off).collect()
        };
        let (one, other) = (off(1), off(2));
        assert_eq!(one.len(), 50, "{share}");
        assert_ne!(one, other);
        let ends = one.iter().filter(|slot| [0, every - 1].contains(&(*slot % every))).count();
        assert_eq!(ends, 0, "each has neighbours in its frame");
    }
    assert!(OffSlots::new(1, SLOT, 0.0).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..Default::default() })]

    #[test]
    fn cost_and_error_match_request_list(
        seed in 0u64..1000, number in 2000usize..8000, cost in -0.5f64..2.0, share in 0.03f64..0.25,
    ) {
        let slots = slots(seed, share);
        let requests = load(&slots, seed, number, cost);
        let (pairs, cost, error) = oracle(&slots, &requests);
        let told = recorded(slots, &requests).sums().cost();
        prop_assert_eq!(told.slots, pairs.len() as u64);
        let number = |part: usize| pairs.iter().map(|pair| pair[part].len() as u64).sum::<u64>();
        prop_assert_eq!((told.requests_without, told.requests_with), (number(0), number(1)));
        if let (Some(told_cost), Some(told_error)) = (told.cost, told.standard_error) {
            prop_assert!((told_cost - cost).abs() < 1e-9, "{} for {}", told_cost, cost);
            prop_assert!((told_error - error).abs() < 1e-6, "{} for {}", told_error, error);
        } else {
            prop_assert!(told.slots < PAIRS_MIN || told.requests_without < REQUESTS_MIN);
        }
    }
}

/// A standard error is right when errors in its units spread by one.
#[test]
fn cost_error_matches_standard_error() {
    for true_cost in [0.0, 0.05, 0.4] {
        let errors: Vec<f64> = (0..200)
            .map(|seed| {
                let slots = slots(seed, 0.1);
                let requests = load(&slots, seed, 6000, true_cost);
                let told = recorded(slots, &requests).sums().cost();
                (told.cost.unwrap() - true_cost) / told.standard_error.unwrap()
            })
            .collect();
        let spread = mean(&errors.iter().map(|error| error * error).collect::<Vec<_>>()).sqrt();
        assert!((0.85..1.25).contains(&spread), "{true_cost}: {spread}");
        assert!(mean(&errors).abs() < 0.3, "{true_cost}: {}", mean(&errors));
    }
}

#[test]
fn few_requests_tell_no_cost() {
    let few = slots(1, 0.1);
    let requests = load(&few, 1, 500, 0.1);
    let told = recorded(few, &requests).sums().cost();
    assert_eq!((told.cost, told.standard_error), (None, None), "{told:?}");
    assert!(told.to_string().starts_with("too few requests tell"), "{told}");
    let mut idle = slots(1, 0.1);
    for (arrival, response) in load(&idle, 1, 6000, 0.0) {
        idle.record(SimTime::from_ns(arrival), SimDuration::from_ns(response));
    }
    assert_eq!(idle.sums().cost().slots, 0);
}

#[test]
fn halves_of_pairs_add_up() {
    let all = slots(3, 0.1);
    let requests = load(&all, 3, 8000, 0.2);
    let recorded = recorded(all, &requests);
    let mut half = [CostSums::default(); 2];
    let pairs: Vec<Pair> = recorded.open.values().copied().collect();
    half[0].add(&pairs[0]);
    half[1].add(&pairs[1.min(pairs.len() - 1)]);
    let sum =
        recorded.sums.and(half[0]).and(if pairs.len() > 1 { half[1] } else { CostSums::default() });
    let (told, all) = (sum.cost(), recorded.sums().cost());
    assert_eq!(told.slots, all.slots);
    assert!((told.cost.unwrap() - all.cost.unwrap()).abs() < 1e-12);
}
