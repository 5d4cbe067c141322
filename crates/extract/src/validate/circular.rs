//! Statistics of directions (Fisher 1993, "Statistical Analysis of Circular Data").

use std::f64::consts::TAU;

use serde::Serialize;

/// Agreement of a number of angles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coherence {
    /// Number of angles.
    pub pairs: u64,
    /// Mean resultant length: 1 when all are the same, near 0 when all directions are alike.
    pub resultant_length: f64,
    /// Length by chance alone: 1 / sqrt(pairs).
    pub resultant_length_by_chance: f64,
    /// Probability of this long a resultant when all directions are alike (Rayleigh's test).
    pub p_value: f64,
    /// Mean direction in turns, -0.5 to 0.5.
    pub mean_turns: f64,
}

/// The coherence of angles in turns; None without any.
pub(super) fn coherence(turns: &[f64]) -> Option<Coherence> {
    if turns.is_empty() {
        return None;
    }
    let n = turns.len() as f64;
    let (mut east, mut north) = (0.0, 0.0);
    for turn in turns {
        let (sine, cosine) = libm::sincos(turn * TAU);
        east += cosine;
        north += sine;
    }
    let resultant = libm::hypot(east, north);
    Some(Coherence {
        pairs: turns.len() as u64,
        resultant_length: resultant / n,
        resultant_length_by_chance: 1.0 / n.sqrt(),
        p_value: rayleigh(n, resultant),
        mean_turns: libm::atan2(north, east) / TAU,
    })
}

/// P-value of Rayleigh's test for `n` directions whose sum has the length `resultant` (Zar 1999,
/// "Biostatistical Analysis", equation 27.4; good to three digits from ten directions on).
fn rayleigh(n: f64, resultant: f64) -> f64 {
    let within = 1.0 + 4.0 * n + 4.0 * (n * n - resultant * resultant);
    libm::exp(within.max(0.0).sqrt() - (1.0 + 2.0 * n)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use freewheel_units::Prng;

    #[test]
    fn equal_angles_have_full_resultant() {
        let found = coherence(&[0.9, -0.1, 3.9]).unwrap();
        assert!((found.resultant_length - 1.0).abs() < 1e-12);
        assert!((found.mean_turns + 0.1).abs() < 1e-12);
    }

    #[test]
    fn angles_spread_evenly_have_none() {
        let even: Vec<f64> = (0..100).map(|k| f64::from(k) / 100.0).collect();
        let found = coherence(&even).unwrap();
        assert!(found.resultant_length < 1e-12 && found.p_value > 0.99);
        assert_eq!(coherence(&[]), None);
    }

    #[test]
    fn random_angles_match_p_values() {
        let mut random = Prng::new(1, "angles");
        let mut below = [0; 2];
        for _ in 0..4000 {
            let angles: Vec<f64> = (0..50).map(|_| random.unit()).collect();
            let p = coherence(&angles).unwrap().p_value;
            below[0] += u32::from(p < 0.5);
            below[1] += u32::from(p < 0.05);
        }
        // Binomial: four standard deviations either way.
        assert!((1874..2127).contains(&below[0]), "{below:?}");
        assert!((144..256).contains(&below[1]), "{below:?}");
    }
}
