//! Division by a number known beforehand, as one multiplication.

/// A divisor with its reciprocal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divisor {
    divisor: u64,
    /// floor((2^64 - 1) / divisor), or 2^64 / divisor where that is whole.
    reciprocal: u64,
}

impl Divisor {
    /// Panics on zero.
    pub const fn new(divisor: u64) -> Self {
        // For a power of two the estimate below is the quotient.
        let is_exact = divisor.is_power_of_two() && divisor > 1;
        Self { divisor, reciprocal: u64::MAX / divisor + is_exact as u64 }
    }

    /// The divisor.
    #[inline]
    pub const fn get(self) -> u64 {
        self.divisor
    }

    /// Quotient and remainder, exactly.
    #[inline]
    pub const fn divide(self, value: u64) -> (u64, u64) {
        // The reciprocal is at most 1 + 1/divisor too small in units of 2^-64, so the estimate
        // is the true quotient or at most two less. So neither step wraps around.
        let mut quotient = ((value as u128 * self.reciprocal as u128) >> 64) as u64;
        let mut remainder = value.wrapping_sub(quotient.wrapping_mul(self.divisor));
        while remainder >= self.divisor {
            remainder -= self.divisor;
            quotient += 1;
        }
        (quotient, remainder)
    }

    /// The remainder when `value` is divided.
    #[inline]
    pub const fn remainder(self, value: u64) -> u64 {
        self.divide(value).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divider_agrees_with_processor(value: u64, divisor in 1u64..) {
            prop_assert_eq!(
                Divisor::new(divisor).divide(value),
                (value / divisor, value % divisor)
            );
        }

        #[test]
        fn divider_agrees_for_small_divisors(value: u64, divisor in 1u64..5000) {
            prop_assert_eq!(
                Divisor::new(divisor).divide(value),
                (value / divisor, value % divisor)
            );
        }
    }
}
