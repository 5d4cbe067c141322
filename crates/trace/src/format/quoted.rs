//! Fields and numbers of CSV as programs with a screen export it: fields in quotes, separators by country,
//! thousands apart.
//!
//! Goals: a number with one separator in a doubtful place is refused, since it could be wrong by a factor.
//! Non-goals: quotes within quotes, and fields over several lines.

use std::borrow::Cow;

use crate::fault::Fault;
use crate::scan::{Number, TimeUnit, Token};
use freewheel_units::SimTime;

/// Digits between two separators of thousands.
const GROUP_DIGITS: usize = 3;
/// Separators of thousands: marks, blanks, apostrophes, and blanks that break no line.
const THOUSANDS: [&[u8]; 9] = [
    b",",
    b".",
    b" ",
    b"'",
    b"\xe2\x80\x99",
    b"\xc2\xa0",
    b"\xe2\x80\xaf",
    b"\xe2\x80\x89",
    // The same blank in Latin-1.
    b"\xa0",
];
const BAD_GROUPS: &str = "not a number with groups of three digits";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Separator(u8);

impl Separator {
    /// The separator of a trace with this header: a semicolon or a tab where it has one.
    pub fn of(header: &[u8]) -> Self {
        Self([b';', b'\t'].into_iter().find(|separator| header.contains(separator)).unwrap_or(b','))
    }

    /// The fields of a line, without quotes and the blanks around them.
    pub fn fields(self, line: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut is_quoted = false;
        line.split(move |&byte| {
            is_quoted ^= byte == b'"';
            byte == self.0 && !is_quoted
        })
        .map(|field| unquoted(field.trim_ascii()))
    }

    /// A whole number, which may have thousands apart.
    pub fn number(self, token: Token) -> Result<Number, Fault> {
        let digits = ungrouped(token.text).ok_or_else(|| token.fault(BAD_GROUPS))?;
        Ok(Number { name: token.name, ..Token { text: &digits, name: token.name }.number()? })
    }

    /// A time, which may have thousands apart and a decimal mark.
    pub fn time(self, token: Token, unit: TimeUnit) -> Result<SimTime, Fault> {
        let text = self.with_point(token.text).ok_or_else(|| token.fault(BAD_GROUPS))?;
        Token { text: &text, name: token.name }.time(unit)
    }

    /// Nanoseconds of one unit in the last place of a time.
    pub fn resolution_ns(self, token: Token, unit: TimeUnit) -> u64 {
        let digits = self.decimal_mark(token.text).map_or(0, |at| token.text.len() - at - 1);
        let tenths = u32::try_from(digits).ok().and_then(|digits| 10u64.checked_pow(digits));
        tenths.map_or(0, |tenths| unit.ns() / tenths)
    }

    /// A decimal number with a point as its mark, and no separator of thousands.
    fn with_point(self, text: &[u8]) -> Option<Cow<'_, [u8]>> {
        let Some(at) = self.decimal_mark(text) else { return ungrouped(text) };
        let whole = ungrouped(&text[..at])?;
        Some(Cow::Owned([&*whole, b".", &text[at + 1..]].concat()))
    }

    /// Place of the decimal mark: the last separator, if it is a point or cannot be one of thousands.
    fn decimal_mark(self, text: &[u8]) -> Option<usize> {
        let last = text.iter().rposition(|byte| matches!(byte, b'.' | b','))?;
        let is_alone = count(text[last], text) == 1;
        let has_other = text.iter().any(|&byte| matches!(&byte, b'.' | b',') && byte != text[last]);
        let can_be_mark = text[last] == b'.' || has_other || self.0 == b';';
        (is_alone && can_be_mark).then_some(last)
    }
}

fn count(mark: u8, text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == mark).count()
}

fn unquoted(field: &[u8]) -> &[u8] {
    let inner = field.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    inner.map_or(field, <[u8]>::trim_ascii)
}

/// The digits of a whole number without separators of thousands; `None` where groups are of other lengths,
/// the first is 0, or separators differ.
fn ungrouped(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if text.iter().all(u8::is_ascii_digit) {
        return Some(Cow::Borrowed(text));
    }
    let first = text.iter().position(|byte| !byte.is_ascii_digit())?;
    let (digits, mut rest) = text.split_at(first);
    let separator = THOUSANDS.into_iter().find(|separator| rest.starts_with(separator))?;
    let is_first = (1..=GROUP_DIGITS).contains(&first) && digits[0] != b'0';
    let mut digits = digits.to_vec();
    while let Some(group) = rest.strip_prefix(separator).filter(|_| is_first) {
        let (group, behind) = group.split_at_checked(GROUP_DIGITS)?;
        digits.extend_from_slice(group);
        rest = behind;
    }
    (rest.is_empty() && digits.iter().all(u8::is_ascii_digit)).then_some(Cow::Owned(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Separator = Separator(b',');
    const SEMICOLON: Separator = Separator(b';');

    #[test]
    fn separators_within_quotes_separate_nothing() {
        let fields: Vec<_> = COMMA.fields(b"a, \"4,096\" ,\"\", b ").collect();
        assert_eq!(fields, [&b"a"[..], b"4,096", b"", b"b"]);
        assert_eq!(Separator::of(b"IO Type;Size (B)"), SEMICOLON);
        assert_eq!(Separator::of(b"IO Type,Size (B)"), COMMA);
    }

    #[test]
    fn whole_numbers_take_any_thousands_sign() {
        for text in ["1234567", "1,234,567", "1.234.567", "1 234 567", "1\u{a0}234\u{a0}567"] {
            let number = COMMA.number(Token { name: "f", text: text.as_bytes() }).unwrap();
            assert_eq!(number.value, 1_234_567, "{text}");
        }
        for text in [
            "",
            "1,23",
            "1234,567",
            ",123",
            "1x234",
            "-1,234",
            "0,123",
            "012,345",
            "1,,234",
            "1,234.567",
            "1,234,",
            "1,2345",
            "1\u{3a9}234",
        ] {
            assert!(COMMA.number(Token { name: "f", text: text.as_bytes() }).is_err(), "{text}");
        }
    }

    #[test]
    fn decimal_mark_depends_on_field_separator() {
        let read = |separator: Separator, text: &'static str| {
            let token = Token { name: "f", text: text.as_bytes() };
            separator.time(token, TimeUnit::Milliseconds).ok().map(SimTime::ns)
        };
        assert_eq!(read(COMMA, "1,234.5"), Some(1_234_500_000));
        assert_eq!(read(COMMA, "1.234,5"), Some(1_234_500_000));
        assert_eq!(read(COMMA, "1,234"), Some(1_234_000_000));
        assert_eq!(read(SEMICOLON, "1,234"), Some(1_234_000));
        assert_eq!(read(SEMICOLON, "0.5"), Some(500_000));
        // With a comma between fields, one within a number is of thousands, and these are none.
        for text in ["0,5", "0,123", "0,123.5"] {
            assert_eq!(read(COMMA, text), None, "{text}");
        }
        assert_eq!(read(COMMA, "12,345678"), None);
    }
}
