//! Number of disks that a request works.

/// Number of runs that a request touches which begins at any block: one of two neighbouring numbers.
pub struct Runs {
    fewer: u32,
    /// Chance of one more.
    more: f64,
}

impl Runs {
    /// `request` blocks begin k blocks before the end of a run, each k with the same chance. So they
    /// touch floor((R-1)/U) runs beside the first, and with the chance of the remainder one more.
    pub fn of(request: f64, unit: u64, disks: u32) -> Self {
        let exact = (request - 1.0).max(0.0) / unit as f64;
        let whole = libm::floor(exact);
        match 1.0 + whole < f64::from(disks) {
            true => Self { fewer: 1 + whole as u32, more: exact - whole },
            // Then it works every disk, with several runs on each.
            false => Self { fewer: disks, more: 0.0 },
        }
    }

    /// Mean number of runs.
    pub fn mean(&self) -> f64 {
        f64::from(self.fewer) + self.more
    }

    /// The mean of a quantity over the number of runs.
    pub fn mix(&self, of: impl Fn(u32) -> f64) -> f64 {
        let more = if self.more > 0.0 { self.more * of(self.fewer + 1) } else { 0.0 };
        (1.0 - self.more) * of(self.fewer) + more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_touched_by_request_match_count() {
        for (request, unit, disks) in [(5, 4, 9), (5, 5, 9), (1, 3, 9), (17, 4, 9), (40, 4, 6)] {
            let touched = |start: u64| u32::min(((start + request - 1) / unit + 1) as u32, disks);
            let counted: u32 = (0..unit).map(touched).sum();
            let runs = Runs::of(request as f64, unit, disks);
            let mean = f64::from(counted) / unit as f64;
            assert!((runs.mean() - mean).abs() < 1e-12, "{request} {unit}: {} {mean}", runs.mean());
            assert!((runs.mix(f64::from) - mean).abs() < 1e-12);
        }
    }
}
