//! Confidence of a run's mean: from the means of its equal parts.

/// Parts of a run.
pub(super) const PARTS: usize = 10;
/// Student's t for this number of means less one, two-sided 95 %.
const T_95: f64 = 2.262;

/// Half of the interval that holds the mean of what these are samples of, with 95 % confidence.
pub(super) fn half_interval(parts: &[f64; PARTS]) -> f64 {
    let count = PARTS as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (part - mean) * (part - mean)).sum();
    T_95 * libm::sqrt(squares / (count - 1.0) / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_parts_means() {
        // The deviation of 0, 1, ..., 9 is 3.0277.
        let expected = T_95 * 3.027_650_354 / 10f64.sqrt();
        let parts = std::array::from_fn(|number| number as f64);
        assert!((half_interval(&parts) / expected - 1.0).abs() < 1e-6);
    }
}
