//! The first three moments of a time.

/// Raw moments of a random time in seconds: E\[t\], E\[t²\] and E\[t³\].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    /// E\[t\] in s.
    pub mean: f64,
    /// E\[t²\] in s².
    pub second: f64,
    /// E\[t³\] in s³.
    pub third: f64,
}

impl Moments {
    /// A time that is always `value` seconds.
    pub fn constant(value: f64) -> Self {
        Self { mean: value, second: value * value, third: value * value * value }
    }

    /// A time uniform in 0..`width` seconds.
    pub fn uniform(width: f64) -> Self {
        let square = width * width;
        Self { mean: width / 2.0, second: square / 3.0, third: square * width / 4.0 }
    }

    /// The mixture of times, each with its chance; chances add up to 1.
    pub fn mixture(parts: impl IntoIterator<Item = Weighted>) -> Self {
        parts.into_iter().fold(Self::default(), |sum, part| Self {
            mean: sum.mean + part.chance * part.moments.mean,
            second: sum.second + part.chance * part.moments.second,
            third: sum.third + part.chance * part.moments.third,
        })
    }

    /// The sum of this time and another that does not depend on it.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (a, b) = (self, other);
        Self {
            mean: a.mean + b.mean,
            second: a.second + 2.0 * a.mean * b.mean + b.second,
            third: a.third + 3.0 * (a.second * b.mean + a.mean * b.second) + b.third,
        }
    }

    /// VAR\[t\] in s².
    pub fn variance(self) -> f64 {
        (self.second - self.mean * self.mean).max(0.0)
    }

    /// c² of equation 22: variance over the squared mean.
    pub fn squared_variation(self) -> f64 {
        self.variance() / (self.mean * self.mean)
    }
}

/// One of the times that a mixture draws from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighted {
    /// Chance of this time.
    pub chance: f64,
    /// Moments of the service time.
    pub moments: Moments,
}
