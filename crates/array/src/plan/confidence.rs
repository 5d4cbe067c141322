//! Confidence of a run's mean: from the means of its equal parts.

/// Parts of a run.
pub const PARTS: usize = 10;
/// Student's t for this number of means less one, two-sided 95 %.
const T_95: f64 = 2.262;

/// Sums of responses in equal parts of a run. Their spread says how far the mean of all of them is to be
/// trusted, also where responses hang on those before.
pub struct PartSums {
    each: u64,
    sums: [f64; PARTS],
}

impl PartSums {
    /// Sums for a run of so many requests.
    pub fn new(requests: u64) -> Self {
        Self { each: requests.div_ceil(PARTS as u64).max(1), sums: [0.0; PARTS] }
    }

    /// Adds the response of request `number`.
    pub fn add(&mut self, number: u64, response_s: f64) {
        let part = (number / self.each) as usize;
        self.sums[part.min(PARTS - 1)] += response_s;
    }

    /// Mean of each part.
    pub fn means(&self) -> [f64; PARTS] {
        self.sums.map(|sum| sum / self.each as f64)
    }
}

/// Half of the interval that holds the mean of what these are samples of, with 95 % confidence.
pub fn half_interval(parts: &[f64; PARTS]) -> f64 {
    let count = PARTS as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (part - mean) * (part - mean)).sum();
    T_95 * libm::sqrt(squares / (count - 1.0) / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_is_that_of_parts_means() {
        // The deviation of 0, 1, ..., 9 is 3.0277.
        let expected = T_95 * 3.027_650_354 / 10f64.sqrt();
        let mut parts = PartSums::new(40);
        (0..40).for_each(|number| parts.add(number, (number / 4) as f64));
        assert_eq!(parts.means(), std::array::from_fn(|part| part as f64));
        assert!((half_interval(&parts.means()) / expected - 1.0).abs() < 1e-6);
    }
}
