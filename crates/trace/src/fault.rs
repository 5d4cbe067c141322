//! A malformed record, as its parser sees it.

use std::borrow::Cow;
use std::fmt;

/// Characters of an offending value that an error repeats.
const VALUE_CHARS_MAX: usize = 40;

/// A malformed record as its parser sees it, before the reader adds where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub field: &'static str,
    pub value: String,
    pub reason: Cow<'static, str>,
}

impl Fault {
    pub fn new(field: &'static str, value: &[u8], reason: impl Into<Cow<'static, str>>) -> Self {
        Self { field, value: printable(value), reason: reason.into() }
    }

    pub fn number(
        field: &'static str,
        value: impl fmt::Display,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { field, value: value.to_string(), reason: reason.into() }
    }
}

/// `value` in printable ASCII, cut with an ellipsis after 40 characters.
pub(crate) fn printable(value: &[u8]) -> String {
    // One byte gives at least one character, so bytes past the limit cannot be shown.
    let shown = &value[..value.len().min(VALUE_CHARS_MAX)];
    let text: String = shown.escape_ascii().map(char::from).take(VALUE_CHARS_MAX).collect();
    if value.len() > VALUE_CHARS_MAX { text + "..." } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_cut_and_controls_escaped() {
        assert_eq!(printable(b"12\x00"), "12\\x00");
        assert_eq!(printable(&[b'7'; 100]), "7".repeat(40) + "...");
    }
}
