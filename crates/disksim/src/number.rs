//! Numbers in their written form: exact decimals, so that no value is rounded twice.

use freewheel_model::drive::spec::Turn;
use freewheel_units::SimDuration;

/// ± mantissa / 10^scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    mantissa: u128,
    scale: u32,
}

/// Digits that are kept: one more than a double holds.
const DIGITS_MAX: usize = 18;
const SCALE_MAX: u32 = 18;

impl Decimal {
    pub const ONE: Self = Self { negative: false, mantissa: 1, scale: 0 };

    /// `12`, `-0.015`, `1.5e-3`, `0x1f`. None for other texts, and for more than 18 digits before
    /// the point.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            let mantissa = u128::from(u64::from_str_radix(hex, 16).ok()?);
            return Some(Self { negative, mantissa, scale: 0 });
        }
        let (digits, exponent) = match digits.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (digits, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        // Digits that no double holds are cut.
        let kept = DIGITS_MAX.saturating_sub(whole.trim_start_matches('0').len());
        let fraction = fraction.get(..kept).unwrap_or(fraction).trim_end_matches('0');
        let all = format!("{whole}{fraction}");
        let is_number = !whole.is_empty() || !fraction.is_empty();
        if !is_number || !all.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let significant = all.trim_start_matches('0');
        if significant.len() > DIGITS_MAX || !(-18..=18).contains(&exponent) {
            return None;
        }
        let mantissa: u128 = if significant.is_empty() { 0 } else { significant.parse().ok()? };
        let scale = i32::try_from(fraction.len()).ok()? - exponent;
        let number = match u32::try_from(scale) {
            Ok(scale) => Self { negative, mantissa, scale },
            Err(_) => {
                let mantissa = mantissa * 10u128.pow(scale.unsigned_abs());
                Self { negative, mantissa, scale: 0 }
            }
        };
        (number.scale <= SCALE_MAX).then_some(number.without_trailing_zeros())
    }

    fn without_trailing_zeros(mut self) -> Self {
        while self.scale > 0 && self.mantissa.is_multiple_of(10) {
            self.mantissa /= 10;
            self.scale -= 1;
        }
        self
    }

    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub fn is_negative(self) -> bool {
        self.negative && !self.is_zero()
    }

    pub fn is_whole(self) -> bool {
        self.scale == 0
    }

    /// The number if it is whole and fits.
    pub fn whole<T: TryFrom<u128>>(self) -> Option<T> {
        if self.is_negative() || self.scale > 0 { None } else { T::try_from(self.mantissa).ok() }
    }

    pub fn f64(self) -> f64 {
        let size = self.mantissa as f64 / 10f64.powi(self.scale as i32);
        if self.is_negative() { -size } else { size }
    }

    pub fn abs(self) -> Self {
        Self { negative: false, ..self }
    }

    /// This many milliseconds times `scale`, to the nearest nanosecond; None when negative or
    /// longer than 1000 s.
    pub fn ms(self, scale: Self) -> Option<SimDuration> {
        if self.is_negative() || scale.is_negative() {
            return None;
        }
        let product = self.mantissa.checked_mul(scale.mantissa)?.checked_mul(1_000_000)?;
        let ns = divide_rounded(product, 10u128.checked_pow(self.scale + scale.scale)?);
        u64::try_from(ns).ok().filter(|&ns| ns <= 1_000_000_000_000).map(SimDuration::from_ns)
    }

    /// Time of a turn at this many turns a minute, to the nearest nanosecond.
    pub fn period_of_rpm(self) -> Option<SimDuration> {
        if self.is_negative() || self.is_zero() {
            return None;
        }
        let above = 60_000_000_000u128.checked_mul(10u128.pow(self.scale))?;
        u64::try_from(divide_rounded(above, self.mantissa)).ok().map(SimDuration::from_ns)
    }

    /// This many parts of a turn that has `parts`, whole turns left away; exact. None when the
    /// fraction does not fit.
    pub fn turn(self, parts: u64) -> Option<Turn> {
        let below = 10u128.pow(self.scale) * u128::from(parts);
        let within = self.mantissa % below.max(1);
        let above = if self.is_negative() && within > 0 { below - within } else { within };
        // 63 of 334 stays 63/334; only powers of ten are cut.
        let shared = if self.scale == 0 { 1 } else { common_divisor(above, below) };
        Turn::from_ratio(narrow(above, shared)?, narrow(below, shared)?)
    }

    /// Fraction to the nearest thousand-millionth of a turn, if it does not fit.
    pub fn turn_rounded(self, parts: u64) -> Turn {
        Turn::from_ratio(self.nano_turns(parts) as u64, NANO_TURNS as u64).unwrap_or_default()
    }

    /// This many parts of a turn that has `parts` in thousand-millionths of a turn, whole turns
    /// left away, rounded.
    pub fn nano_turns(self, parts: u64) -> i64 {
        let below = 10u128.pow(self.scale) * u128::from(parts.max(1));
        let within = (self.mantissa % below) * NANO_TURNS as u128;
        let nano = divide_rounded(within, below) as i64;
        (if self.is_negative() { -nano } else { nano }).rem_euclid(NANO_TURNS)
    }
}

fn narrow(n: u128, shared: u128) -> Option<u64> {
    u64::try_from(n / shared).ok()
}

/// Thousand-millionths in a turn.
pub(crate) const NANO_TURNS: i64 = 1_000_000_000;

fn divide_rounded(above: u128, below: u128) -> u128 {
    above.saturating_add(below / 2) / below
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn milliseconds_become_the_nearest_nanosecond() {
        let ns = |text| decimal(text).ms(Decimal::ONE).map(SimDuration::ns);
        assert_eq!(ns("0.344920"), Some(344_920));
        assert_eq!(ns("0.0000005"), Some(1));
        assert_eq!(ns("1.5e-3"), Some(1_500));
        assert_eq!(ns("-0.015"), None);
        assert_eq!(ns("0.33333333333333333333333"), Some(333_333));
        assert_eq!(decimal("0.2").ms(decimal("2.5")), Some(SimDuration::from_us(500)));
    }

    #[test]
    fn turn_keeps_sector_fractions_and_cuts_decimals() {
        assert_eq!(decimal("63.000000").turn(334).unwrap().to_string(), "63/334");
        assert_eq!(decimal("12.5").turn(100).unwrap().to_string(), "1/8");
        assert_eq!(decimal("0.141669").turn(1).unwrap().to_string(), "141669/1000000");
        assert_eq!(decimal("-1").turn(10).unwrap().to_string(), "9/10");
        assert_eq!(decimal("0.14166900012").turn(1), None);
        let rounded = decimal("0.14166900012").turn_rounded(1);
        assert_eq!(rounded.to_string(), "141669000/1000000000");
        assert_eq!(decimal("335").turn(334).unwrap().to_string(), "1/334");
    }

    #[test]
    fn non_number_is_none() {
        for text in ["", "-", ".", "e5", "1.2.3", "12a", "1e99", "1234567890123456789012"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
