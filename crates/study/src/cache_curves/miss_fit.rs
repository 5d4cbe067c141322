//! The power law that LRU's misses follow as its cache grows, as tr03 fits it (section 4.1).

use freewheel_model::cache::CachePolicy;
use serde::Serialize;

use super::result::{MissRatio, PolicyCurve};
use crate::fit::{Form, fit};

/// Fit of LRU's misses to a power law of the size, a (x - b)^c.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum MissFit {
    /// Misses that follow the law: the points are close to the curve, and its exponent is known well.
    PowerLaw(PowerLaw),
    /// No curve of this form comes close.
    NoPowerLaw,
    /// Misses that differ by less than [`MissFit::SPREAD_MIN`] over all sizes.
    Flat,
    /// Fewer sizes than [`MissFit::SIZES_MIN`] below the footprint.
    TooFewSizes,
}

/// a (x - b)^c, in per cent of misses over a size of x MiB.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PowerLaw {
    /// a.
    pub factor: f64,
    /// b.
    pub offset_mib: f64,
    /// c.
    pub exponent: f64,
    /// Standard error of c.
    pub exponent_error: f64,
    /// Root of the mean squared distance of the points from the curve, in points.
    pub distance: f64,
}

impl MissFit {
    /// Fewest sizes: three parameters, and two points more to judge them by.
    pub const SIZES_MIN: usize = 5;
    /// Least difference between the largest and the smallest share of misses, in points.
    pub const SPREAD_MIN: f64 = 1.0;
    /// Largest distance of the points, as a share of that difference.
    const DISTANCE_MAX: f64 = 0.05;
    /// Largest error of the exponent, as a share of it.
    const ERROR_MAX: f64 = 0.5;

    /// Fits LRU's misses; None without LRU. Caches that hold the whole footprint are left out: all of them
    /// miss the same first reads.
    pub(super) fn of(curves: &[PolicyCurve], footprint_bytes: u64) -> Option<Self> {
        let lru = curves.iter().find(|curve| curve.policy == CachePolicy::Lru)?;
        Some(Self::through(
            &lru.miss_ratios
                .iter()
                .filter(|at| is_below(at, footprint_bytes))
                .map(point)
                .collect::<Vec<_>>(),
        ))
    }

    fn through(points: &[(f64, f64)]) -> Self {
        if points.len() < Self::SIZES_MIN {
            return Self::TooFewSizes;
        }
        let misses = points.iter().map(|(_, misses)| *misses);
        let spread = misses.clone().fold(f64::MIN, f64::max) - misses.fold(f64::MAX, f64::min);
        if spread < Self::SPREAD_MIN {
            return Self::Flat;
        }
        let Some(fit) = fit(Form::Power, points) else { return Self::NoPowerLaw };
        let ([factor, offset_mib, exponent], [.., exponent_error]) =
            (&fit.parameters[..], &fit.errors[..])
        else {
            unreachable!("a power law has three parameters")
        };
        let law = PowerLaw {
            factor: *factor,
            offset_mib: *offset_mib,
            exponent: *exponent,
            exponent_error: *exponent_error,
            distance: fit.distance,
        };
        if law.is_close(spread) { Self::PowerLaw(law) } else { Self::NoPowerLaw }
    }
}

fn is_below(at: &&MissRatio, footprint_bytes: u64) -> bool {
    at.size_bytes < footprint_bytes
}

fn point(at: &MissRatio) -> (f64, f64) {
    (at.size_bytes as f64 / f64::from(1 << 20), 100.0 * at.main())
}

impl PowerLaw {
    fn is_close(&self, spread: f64) -> bool {
        let is_known = self.exponent_error <= MissFit::ERROR_MAX * self.exponent.abs();
        self.distance <= MissFit::DISTANCE_MAX * spread && is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(misses: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..10).map(|step| f64::from(1 << step)).map(|mib| (mib, misses(mib))).collect()
    }

    #[test]
    fn miss_fit_finds_power_law_exponent() {
        for exponent in [-0.2, -0.5, -1.0] {
            let points = points(|mib| 90.0 * libm::pow(mib + 3.0, exponent));
            let MissFit::PowerLaw(law) = MissFit::through(&points) else { panic!("{points:?}") };
            assert!((law.exponent - exponent).abs() < 1e-3, "{law:?}");
            assert!((law.offset_mib + 3.0).abs() < 0.1 && law.distance < 1e-3, "{law:?}");
        }
    }

    #[test]
    fn miss_fit_scatter_is_exponent_error() {
        let scattered = |by: f64| {
            let points = points(|mib| 90.0 * libm::pow(mib + 3.0, -0.5));
            let each = (0..).zip(points).map(|(number, (mib, misses))| {
                (mib, misses + if number % 2 == 0 { by } else { -by })
            });
            match MissFit::through(&each.collect::<Vec<_>>()) {
                MissFit::PowerLaw(law) => law,
                other => panic!("{other:?}"),
            }
        };
        let (little, more) = (scattered(0.1), scattered(0.4));
        assert!((little.exponent + 0.5).abs() < 3.0 * little.exponent_error, "{little:?}");
        assert!((3.0..5.0).contains(&(more.exponent_error / little.exponent_error)), "{more:?}");
    }

    #[test]
    fn miss_fit_refuses_step_flat_few() {
        let step = points(|mib| if mib < 20.0 { 95.0 } else { 5.0 });
        assert_eq!(MissFit::through(&step), MissFit::NoPowerLaw);
        assert_eq!(MissFit::through(&points(|mib| 99.0 - mib / 1000.0)), MissFit::Flat);
        let few = &points(|mib| 90.0 / mib)[..MissFit::SIZES_MIN - 1];
        assert_eq!(MissFit::through(few), MissFit::TooFewSizes);
    }
}
