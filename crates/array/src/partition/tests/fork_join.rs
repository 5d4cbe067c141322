//! Equations 18 to 25 against a simulated array of queues.

use freewheel_units::Prng;

use super::*;
use crate::partition::{
    ArrayModel, DiskQueue, ForkJoin, Load, Moments, closed_model_unit, normal_maximum,
};

/// Mean response of requests, and mean and variance of the waits of their subrequests, in seconds.
struct Simulated {
    response_s: f64,
    wait_s: f64,
    wait_variance: f64,
}

/// Requests of `parallelism` subrequests on that many of `disks` disks, chosen at random, each first come
/// first served. A service time is a seek of the paper's disk, a rotation and `transfer_s`.
fn simulate(disks: usize, parallelism: usize, rate: f64, transfer_s: f64, seed: u64) -> Simulated {
    let prng = &mut Prng::new(seed, "fork-join");
    let seek_of = seek_times();
    let mut free_at = vec![0.0f64; disks];
    let mut order: Vec<usize> = (0..disks).collect();
    let (mut now, mut responses, mut waits, mut squares) = (0.0, 0.0, 0.0, 0.0);
    let warm_up = 5_000;
    let requests = 60_000.max(400_000 / parallelism);
    for number in 0..warm_up + requests {
        now += prng.exponential(1.0 / rate);
        let mut last = now;
        for chosen in 0..parallelism {
            order.swap(chosen, chosen + prng.below((disks - chosen) as u64) as usize);
            let disk = order[chosen];
            let distance = (prng.unit() - prng.unit()).abs() * seek_of.len() as f64;
            let service = seek_of[distance as usize] + prng.unit() * tr96_rotation_s() + transfer_s;
            let begin = now.max(free_at[disk]);
            free_at[disk] = begin + service;
            last = last.max(begin + service);
            if number >= warm_up {
                waits += begin - now;
                squares += (begin - now) * (begin - now);
            }
        }
        if number >= warm_up {
            responses += last - now;
        }
    }
    let subrequests = (requests * parallelism) as f64;
    let wait_s = waits / subrequests;
    let wait_variance = squares / subrequests - wait_s * wait_s;
    Simulated { response_s: responses / requests as f64, wait_s, wait_variance }
}

/// Mean time in seconds of a read or write seek by distance, for the paper's disk half full.
fn seek_times() -> Vec<f64> {
    let drive = drive("tr96");
    let time = |distance| {
        let of = |switches| drive.seek().time_ns(freewheel_units::Op::Read, distance, switches);
        (of(false) as f64 + 10.0 * of(true) as f64) / 11.0 * 1e-9
    };
    (0..718).map(time).collect()
}

fn tr96_rotation_s() -> f64 {
    60.0 / 4400.0
}

#[test]
fn disk_waits_as_equations_20_to_23() {
    let disk = tr96();
    let service = disk.service(35.0);
    for utilisation in [0.1, 0.5, 0.8] {
        let rate = utilisation / service.mean;
        let queue = DiskQueue::new(rate, service).unwrap();
        assert_near(queue.utilisation(), utilisation, 1e-9);
        let simulated = simulate(1, 1, rate, disk.transfer(35.0).mean, 4);
        assert_near(queue.wait_s(), simulated.wait_s, 0.05);
        assert_near(queue.wait_variance(), simulated.wait_variance, 0.15);
        assert_near(queue.response_s(), simulated.response_s, 0.03);
        let whole = queue.response_variance() - queue.wait_variance();
        assert_near(whole, service.variance(), 1e-9);
    }
    assert_eq!(DiskQueue::new(1.0 / service.mean, service), None);
}

#[test]
fn known_queues_have_their_textbook_waits() {
    // M/M/1: the wait has mean rho / (mu - lambda), and variance rho (2 - rho) / (mu - lambda)².
    let exponential = Moments { mean: 1.0, second: 2.0, third: 6.0 };
    let queue = DiskQueue::new(0.75, exponential).unwrap();
    assert_near(queue.wait_s(), 3.0, 1e-12);
    assert_near(queue.wait_variance(), 15.0, 1e-12);
    // M/D/1: half the mean wait.
    assert_near(DiskQueue::new(0.75, Moments::constant(1.0)).unwrap().wait_s(), 1.5, 1e-12);
}

#[test]
fn largest_of_normals_has_known_means() {
    // Exact: 0, 1/sqrt(pi), 1.5/sqrt(pi); then tables of order statistics (Harter 1961).
    let root = std::f64::consts::PI.sqrt();
    for (count, expected) in
        [(1, 0.0), (2, 1.0 / root), (3, 1.5 / root), (4, 1.02938), (10, 1.53875), (32, 2.06967)]
    {
        assert!(
            (normal_maximum(count) - expected).abs() < 1e-4,
            "{count}: {}",
            normal_maximum(count)
        );
    }
}

#[test]
fn slowest_subrequest_is_close_to_simulation() {
    let disk = tr96();
    let (mut paper, mut ours) = (Vec::new(), Vec::new());
    for parallelism in [2u32, 3, 4, 8, 16, 32] {
        for utilisation in [0.05, 0.3, 0.6, 0.8, 0.9] {
            let blocks = 260.0 / f64::from(parallelism);
            let service = disk.service(blocks);
            let rate = utilisation / service.mean;
            let queue = DiskQueue::new(rate, service).unwrap();
            let requests = rate * 32.0 / f64::from(parallelism);
            let simulated =
                simulate(32, parallelism as usize, requests, disk.transfer(blocks).mean, 5);
            let error = |correction| {
                queue.request_response_s(parallelism, 32, correction) / simulated.response_s - 1.0
            };
            paper.push(error(ForkJoin::Paper).abs());
            ours.push(error(ForkJoin::SharedWaits).abs());
        }
    }
    let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len() as f64;
    let worst = |errors: &[f64]| errors.iter().copied().fold(0.0, f64::max);
    assert!(mean(&ours) < 0.054 && worst(&ours) < 0.19, "{} {}", mean(&ours), worst(&ours));
    assert!(mean(&ours) < 0.5 * mean(&paper), "{} {}", mean(&ours), mean(&paper));
}

#[test]
fn array_response_is_queue_plus_correction() {
    let array = ArrayModel { disk: tr96(), disks: 32 };
    let load = Load { rate: 140.0, request: 260.0 };
    let queue = array.queue(&load, 3).unwrap();
    assert_near(
        queue.utilisation(),
        140.0 * 3.0 / 32.0 * array.disk.service(260.0 / 3.0).mean,
        1e-9,
    );
    let paper = array.response_s(&load, 3, ForkJoin::Paper).unwrap();
    let expected = queue.response_s() + queue.response_variance().sqrt() * 2.0 / 5.0f64.sqrt();
    assert_near(paper, expected, 1e-12);
    // A request on every disk: 32 positionings of 20 ms each for 140 requests a second are too many.
    assert_eq!(array.response_s(&load, 32, ForkJoin::Paper), None);
    assert_eq!(array.best(&Load { rate: 1000.0, request: 260.0 }, ForkJoin::Paper), None);
    for correction in [ForkJoin::Paper, ForkJoin::SharedWaits] {
        let best = array.best(&load, correction).unwrap();
        // The paper: at most 3 at 140 requests a second.
        assert!((2..=3).contains(&best.parallelism), "{best:?}");
        for parallelism in 1..=32 {
            let other = array.response_s(&load, parallelism, correction);
            assert!(other.is_none_or(|response_s| response_s >= best.response_s));
        }
    }
}

#[test]
fn chens_formula_is_root_of_factors() {
    // 18 ms of latency, 2500 blocks/s, 9 requests at a time, 260 blocks each, 32 disks.
    let unit = closed_model_unit(0.018, 2500.0, 9.0, 260.0, 32);
    assert_near(unit * unit, 45.0 * 8.0 * 260.0 / 32.0, 1e-12);
    assert_eq!(closed_model_unit(0.018, 2500.0, 1.0, 260.0, 32), 0.0);
    let array = ArrayModel { disk: tr96(), disks: 32 };
    let rate = 35.0 * 4400.0 / 60.0;
    let expected = closed_model_unit(array.disk.latency_s(), rate, 9.0, 260.0, 32);
    assert_near(array.closed_model_unit(260.0, 9.0), expected, 1e-6);
}
