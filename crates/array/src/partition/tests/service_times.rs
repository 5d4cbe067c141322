//! Moments and distributions of service times against accesses of the modelled drive.

use freewheel_units::{Blocks, Lbn, Op, Prng, SimTime};

use super::*;
use crate::partition::Moments;
use freewheel_model::drive::Position;

/// Moments of single accesses of `blocks` blocks of 512 bytes, one after another with random pauses.
fn drawn(drive: &Drive, blocks: u64, filled_share: f64, draws: u32) -> Moments {
    let prng = &mut Prng::new(2, "accesses");
    let places = (drive.blocks().get() as f64 * filled_share) as u64 - blocks;
    let (mut now, mut head) = (SimTime::ZERO, Position::default());
    let mut sum = Moments::default();
    for _ in 0..=draws {
        let op = if prng.chance(0.7) { Op::Read } else { Op::Write };
        let target = drive.target(Lbn::new(prng.below(places)), Blocks::new(blocks), op);
        let access = drive.media_access(now, head, &target);
        let time = access.total().as_secs_f64();
        let first = now == SimTime::ZERO;
        head = access.end;
        now = now
            + access.total()
            + freewheel_units::SimDuration::from_ns(1 + prng.below(20_000_000));
        if !first {
            sum.mean += time;
            sum.second += time * time;
            sum.third += time * time * time;
        }
    }
    let n = f64::from(draws);
    Moments { mean: sum.mean / n, second: sum.second / n, third: sum.third / n }
}

#[test]
fn moments_match_accesses_on_library_drives() {
    for (name, _) in LIBRARY {
        let drive = drive(name);
        for (filled, blocks) in [(1.0, 2), (1.0, 128), (0.5, 8)] {
            let model = DiskModel::of(&drive, &usage(filled));
            let found = model.service(blocks as f64 / 2.0);
            let expected = drawn(&drive, blocks, filled, 20_000);
            // The Atlas has zero-latency access, which the model leaves out.
            let mean_band = if *name == "atlas10k" && blocks == 128 { 0.04 } else { 0.015 };
            assert_near(found.mean, expected.mean, mean_band);
            assert_near(found.variance(), expected.variance(), 0.07);
            assert_near(found.third, expected.third, 3.0 * mean_band);
        }
    }
}

#[test]
fn convolution_moments_match_density() {
    for name in ["tr96", "atlas10k"] {
        let model = DiskModel::of(&drive(name), &usage(0.8));
        let rotation = model.symbols().rotation_s;
        let sum = model.seek().moments().plus(Moments::uniform(rotation));
        // The mean is the area above the distribution function: the maximum of one.
        assert_near(model.positioning().expected_max_s(1), sum.mean, 1e-4);
        // E[t²] = 2 ∫ t (1 - F), and E[t³] = 3 ∫ t² (1 - F).
        let (mut second, mut third) = (0.0, 0.0);
        let step = 20e-6;
        for number in 0..5_000 {
            let time = step * (f64::from(number) + 0.5);
            let above = 1.0 - model.positioning().at_most(time);
            second += 2.0 * time * above * step;
            third += 3.0 * time * time * above * step;
        }
        assert_near(second, sum.second, 2e-3);
        assert_near(third, sum.third, 3e-3);
        let whole = model.service(8.0);
        assert_near(whole.mean, sum.mean + model.transfer(8.0).mean, 1e-4);
    }
}

#[test]
fn longest_positioning_matches_sampling() {
    let drive = drive("atlas10k");
    let model = DiskModel::of(&drive, &usage(1.0));
    let prng = &mut Prng::new(3, "positioning");
    let blocks = drive.blocks().get();
    let mut draw = || {
        let mut place = || drive.layout().locate(Lbn::new(prng.below(blocks)));
        let (from, to) = (place(), place());
        let op = if prng.chance(0.7) { Op::Read } else { Op::Write };
        let seek =
            drive.seek().between_ns(op, from.cylinder, to.cylinder, from.surface != to.surface);
        seek as f64 * 1e-9 + prng.unit() * model.symbols().rotation_s
    };
    for parallelism in [1, 2, 5, 20] {
        let draws = 20_000;
        let mut longest = || (0..parallelism).map(|_| draw()).fold(0.0, f64::max);
        let mean = (0..draws).map(|_| longest()).sum::<f64>() / f64::from(draws);
        assert_near(model.positioning().expected_max_s(parallelism), mean, 0.01);
    }
}

#[test]
fn zoned_transfer_has_closed_form_mean() {
    for (name, _) in LIBRARY {
        let model = DiskModel::of(&drive(name), &usage(0.7));
        for (request, parallelism) in [(1.0, 1.0), (260.0, 3.0), (4000.0, 32.0)] {
            let by_zones = model.transfer(request / parallelism);
            assert_near(by_zones.mean, model.symbols().transfer_s(request, parallelism), 1e-9);
        }
    }
}
