//! Violations of the protocol, or of our limits, by the other side.

use thiserror::Error;

/// Reason why a connection cannot go on: close it. Every text says what was expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Violation {
    /// A message does not begin as it must.
    #[error("{what} must begin with {expected:#x}, found {found:#x}")]
    Magic { what: &'static str, expected: u64, found: u64 },
    /// The server speaks the negotiation of before 2011.
    #[error("the server speaks the oldstyle negotiation; expected the newstyle one")]
    Oldstyle,
    /// Flags that were not offered.
    #[error("the client set flags {found:#x}; only {allowed:#x} were offered")]
    ClientFlags {
        found: u32,
        /// Value that was offered.
        allowed: u32,
    },
    /// A message is longer than the protocol or our limits allow, or too short.
    #[error("{what} has length {found}; expected {expected}")]
    Length {
        what: &'static str,
        /// Values that are allowed.
        expected: String,
        found: u64,
    },
    /// Too many of something.
    #[error("more than {limit} {what}")]
    TooMany { what: &'static str, limit: u32 },
    /// A message that has no place here.
    #[error("{found}; expected {expected}")]
    Unexpected {
        found: String,
        /// Values that may come.
        expected: String,
    },
    /// The connection ended within something.
    #[error("the connection ended within {within}")]
    Ended {
        /// Within what.
        within: &'static str,
    },
}

pub(crate) fn unexpected<T>(
    found: impl Into<String>,
    expected: impl Into<String>,
) -> Result<T, Violation> {
    Err(Violation::Unexpected { found: found.into(), expected: expected.into() })
}

pub(crate) fn wrong_length<T>(
    what: &'static str,
    expected: impl Into<String>,
    found: impl Into<u64>,
) -> Result<T, Violation> {
    Err(Violation::Length { what, expected: expected.into(), found: found.into() })
}
