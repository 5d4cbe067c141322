//! Fields and numbers out of a line of bytes.
//!
//! Goals: exact integers and exact decimal times, no float, no allocation on the way that works.
//! Non-goals: quoting, escapes, locales, exponents: no block trace has them.

use std::fmt;
use std::str::FromStr;

use freewheel_units::SimTime;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::fault::Fault;

/// Fault of a response time whose end is no time.
pub(crate) const TOO_LONG: &str = "the request would complete past 2^64 ns";

/// A field of a line: its name in the format and its bytes, without the blanks around them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub name: &'static str,
    pub text: &'a [u8],
}

/// A number of a record: the field it came from and its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    pub name: &'static str,
    pub value: u64,
}

/// The unit of a trace's times; its number is that of the decimal places down to a nanosecond.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum TimeUnit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds = 0,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds = 3,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds = 6,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds = 9,
}

/// A unit of time was asked for by a name that none has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{name}` is not a unit of time: write s, ms, us or ns")]
pub struct UnknownTimeUnit {
    /// The name given.
    pub name: String,
}

impl TimeUnit {
    /// Every unit, the longest first.
    pub const ALL: [Self; 4] =
        [Self::Seconds, Self::Milliseconds, Self::Microseconds, Self::Nanoseconds];

    /// Symbol of the operation, which is its name on the command line.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
        }
    }

    /// Nanoseconds in one of it.
    pub fn ns(self) -> u64 {
        10u64.pow(self as u32)
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.symbol())
    }
}

impl FromStr for TimeUnit {
    type Err = UnknownTimeUnit;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|unit| unit.symbol() == name);
        found.ok_or_else(|| UnknownTimeUnit { name: name.to_owned() })
    }
}

impl Number {
    #[cold]
    pub fn fault(self, reason: &'static str) -> Fault {
        Fault::number(self.name, self.value, reason)
    }

    #[cold]
    pub fn empty(self) -> Fault {
        self.fault("a request must cover at least one byte")
    }

    #[cold]
    pub fn too_far(self) -> Fault {
        self.fault("the request would end past the last address of 64 bits")
    }

    #[cold]
    pub fn too_long(self) -> Fault {
        self.fault(TOO_LONG)
    }

    /// The number as a device.
    pub fn to_u32(self) -> Result<u32, Fault> {
        u32::try_from(self.value).map_err(|_| self.fault("above 2^32 - 1"))
    }

    /// The number times `unit_ns` as a point in time.
    pub fn time(self, unit_ns: u64) -> Result<SimTime, Fault> {
        let ns = self.value.checked_mul(unit_ns);
        ns.map(SimTime::from_ns).ok_or_else(|| self.fault("past 2^64 ns"))
    }
}

impl Token<'_> {
    #[cold]
    pub fn fault(self, reason: &'static str) -> Fault {
        Fault::new(self.name, self.text, reason)
    }

    /// A whole decimal number below 2^64.
    #[inline]
    pub fn number(self) -> Result<Number, Fault> {
        match whole_number(self.text) {
            Some(value) => Ok(Number { name: self.name, value }),
            None => Err(self.fault("not a whole number from 0 to 2^64 - 1")),
        }
    }

    /// Number in decimal digits, or in hexadecimal ones after `0x`.
    #[inline]
    pub fn number_or_hex(self) -> Result<Number, Fault> {
        let Some(digits) = self.text.strip_prefix(b"0x") else { return self.number() };
        match hex_number(digits) {
            Some(value) => Ok(Number { name: self.name, value }),
            None => Err(self.fault("not a hexadecimal number from 0x0 to 0xffffffffffffffff")),
        }
    }

    /// A decimal number of this unit, to the nearest nanosecond.
    #[inline]
    pub fn time(self, unit: TimeUnit) -> Result<SimTime, Fault> {
        match decimal_ns(self.text, unit) {
            Some(ns) => Ok(SimTime::from_ns(ns)),
            None => Err(self.fault("not a decimal time from 0 to 2^64 ns")),
        }
    }
}

/// The fields of one line, left to right.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    rest: Option<&'a [u8]>,
    comma: bool,
}

impl<'a> Fields<'a> {
    /// Fields between commas; blanks around a field do not count.
    #[inline]
    pub fn comma(line: &'a [u8]) -> Self {
        Self { rest: Some(line), comma: true }
    }

    /// Fields between runs of spaces and tabs.
    #[inline]
    pub fn blank(line: &'a [u8]) -> Self {
        Self { rest: Some(line), comma: false }
    }

    /// The next field, which the format calls `name`.
    #[inline]
    pub fn next(&mut self, name: &'static str) -> Result<Token<'a>, Fault> {
        let text = if self.comma { self.next_comma() } else { self.next_blank() };
        match text {
            Some(text) => Ok(Token { name, text }),
            None => Err(Fault::new(name, b"", "the line ends before this column")),
        }
    }

    #[inline]
    fn next_comma(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let end = rest.iter().position(|&byte| byte == b',');
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(rest[..end.unwrap_or(rest.len())].trim_ascii())
    }

    #[inline]
    fn next_blank(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?.trim_ascii_start();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.rest = Some(&rest[end..]);
        (end > 0).then(|| &rest[..end])
    }

    /// Checks that no field is left.
    #[inline]
    pub fn end(self) -> Result<(), Fault> {
        match self.rest {
            None => Ok(()),
            Some(rest) if !self.comma && rest.trim_ascii().is_empty() => Ok(()),
            Some(rest) => Err(Fault::new("line", rest, "more columns than the format has")),
        }
    }
}

/// Digits only, below 2^64.
#[inline]
pub(crate) fn whole_number(text: &[u8]) -> Option<u64> {
    // 19 digits are always below 2^64, so only longer numbers need the check.
    if text.is_empty() || text.len() > 19 {
        return whole_number_checked(text);
    }
    let mut value = 0;
    for &byte in text {
        value = value * 10 + u64::from(digit(byte)?);
    }
    Some(value)
}

#[cold]
fn whole_number_checked(text: &[u8]) -> Option<u64> {
    let first = *text.first()?;
    text[1..].iter().try_fold(u64::from(digit(first)?), |value, &byte| {
        value.checked_mul(10)?.checked_add(u64::from(digit(byte)?))
    })
}

/// Hexadecimal digits only, at most 16.
#[inline]
fn hex_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |value, byte| {
        Some(value << 4 | char::from(*byte).to_digit(16).map(u64::from)?)
    })
}

#[inline]
fn digit(byte: u8) -> Option<u8> {
    let digit = byte.wrapping_sub(b'0');
    (digit < 10).then_some(digit)
}

/// `text` of the form `12`, `12.5`, `.5` or `12.` in `unit`, to the nearest nanosecond.
#[inline]
pub(crate) fn decimal_ns(text: &[u8], unit: TimeUnit) -> Option<u64> {
    let places = unit as usize;
    let point = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or(b""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole_number(whole)? };
    // All 64 bits are checked: a time that overflows is a fault of the record, not a wrong time.
    let ns = whole.checked_mul(10u64.pow(places as u32))?;
    ns.checked_add(fraction_ns(fraction, places)?)
}

/// The first `places` digits as a whole number, rounded by the next digit.
#[inline]
fn fraction_ns(fraction: &[u8], places: usize) -> Option<u64> {
    let mut value = 0;
    for index in 0..places {
        value = value * 10 + u64::from(fraction.get(index).map_or(Some(0), |&byte| digit(byte))?);
    }
    let beyond = fraction.get(places..).unwrap_or(b"");
    if !beyond.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value + u64::from(beyond.first().is_some_and(|&byte| byte >= b'5')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimal_time_exact_beyond_float() {
        assert_eq!(
            decimal_ns(b"9007199.254740993", TimeUnit::Seconds),
            Some(9_007_199_254_740_993)
        );
        assert_eq!(decimal_ns(b"1532962.236498", TimeUnit::Milliseconds), Some(1_532_962_236_498));
    }

    #[test]
    fn digits_below_nanosecond_round_to_nearest() {
        assert_eq!(decimal_ns(b"0.0000004", TimeUnit::Milliseconds), Some(0));
        assert_eq!(decimal_ns(b"0.0000005", TimeUnit::Milliseconds), Some(1));
        assert_eq!(decimal_ns(b"0.9999999999", TimeUnit::Seconds), Some(1_000_000_000));
    }

    #[test]
    fn decimal_point_may_lack_one_side() {
        assert_eq!(decimal_ns(b".5", TimeUnit::Seconds), Some(500_000_000));
        assert_eq!(decimal_ns(b"5.", TimeUnit::Seconds), Some(5_000_000_000));
        assert_eq!(decimal_ns(b".", TimeUnit::Seconds), None);
        assert_eq!(decimal_ns(b"", TimeUnit::Seconds), None);
    }

    #[test]
    fn signs_exponents_and_overflow_are_refused() {
        for text in ["-1", "+1", "1e3", "1.2.3", "1.0x", "18446744074", "99999999999999999999"] {
            assert_eq!(decimal_ns(text.as_bytes(), TimeUnit::Seconds), None, "{text}");
        }
        assert_eq!(whole_number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(whole_number(b"18446744073709551616"), None);
        assert_eq!(whole_number(b""), None);
    }

    #[test]
    fn hexadecimal_takes_one_to_sixteen_digits() {
        let read = |text: &'static str| {
            Token { name: "f", text: text.as_bytes() }.number_or_hex().ok().map(|n| n.value)
        };
        assert_eq!(read("0x6c00556e00"), Some(463_862_066_688));
        assert_eq!(read("0xFFFFFFFFFFFFFFFF"), Some(u64::MAX));
        assert_eq!(read("10"), Some(10));
        for text in ["0x", "0x10000000000000000", "0xg", "0x-1", "6c"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn fields_lose_the_blanks_around_them() {
        let mut fields = Fields::comma(b" 1 ,, x");
        let texts: Vec<_> = (0..3).map(|_| fields.next("f").unwrap().text).collect();
        assert_eq!(texts, [&b"1"[..], b"", b"x"]);
        assert!(fields.next("f").is_err());
    }

    #[test]
    fn blank_fields_ignore_blank_count() {
        let mut fields = Fields::blank(b"  1 \t 2  ");
        assert_eq!(fields.next("a").unwrap().text, b"1");
        assert_eq!(fields.next("b").unwrap().text, b"2");
        assert!(fields.clone().end().is_ok());
        assert!(fields.next("c").is_err());
    }

    proptest! {
        #[test]
        fn whole_numbers_are_read_back(value: u64) {
            prop_assert_eq!(whole_number(value.to_string().as_bytes()), Some(value));
        }

        #[test]
        fn decimal_milliseconds_are_read_back(ns in 0..u64::MAX) {
            let text = format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000);
            prop_assert_eq!(decimal_ns(text.as_bytes(), TimeUnit::Milliseconds), Some(ns));
        }
    }
}
