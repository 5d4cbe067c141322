//! Options of the handshake, and why a server may refuse one.

use std::fmt;

use crate::wire::rep;

/// An option by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OptionCode(pub u32);

impl OptionCode {
    /// Choose an export without a way to be refused, and begin.
    pub const EXPORT_NAME: Self = Self(1);
    /// Give up.
    pub const ABORT: Self = Self(2);
    /// Name all exports.
    pub const LIST: Self = Self(3);
    /// Go on under TLS.
    pub const STARTTLS: Self = Self(5);
    /// Tell of an export.
    pub const INFO: Self = Self(6);
    /// Tell of an export, and begin.
    pub const GO: Self = Self(7);
    /// Answer reads in chunks.
    pub const STRUCTURED_REPLY: Self = Self(8);
    /// Name metadata contexts.
    pub const LIST_META_CONTEXT: Self = Self(9);
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: Self = Self(10);
    /// Longer headers (an experimental extension, which is refused).
    pub const EXTENDED_HEADERS: Self = Self(11);
}

impl fmt::Display for OptionCode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::EXPORT_NAME => "EXPORT_NAME",
            Self::ABORT => "ABORT",
            Self::LIST => "LIST",
            Self::STARTTLS => "STARTTLS",
            Self::INFO => "INFO",
            Self::GO => "GO",
            Self::STRUCTURED_REPLY => "STRUCTURED_REPLY",
            Self::LIST_META_CONTEXT => "LIST_META_CONTEXT",
            Self::SET_META_CONTEXT => "SET_META_CONTEXT",
            Self::EXTENDED_HEADERS => "EXTENDED_HEADERS",
            Self(other) => return write!(out, "option {other}"),
        };
        out.write_str(name)
    }
}

/// Reason why an option was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OptionError {
    /// The server does not know the option.
    Unsup,
    /// The server knows it and is not allowed to do it.
    Policy,
    /// The option is malformed, or not valid now.
    Invalid,
    /// The server's platform cannot do it.
    Platform,
    /// Not without TLS.
    TlsReqd,
    /// There is no such export.
    Unknown,
    /// The server is shutting down.
    Shutdown,
    /// Not without having asked for the block sizes.
    BlockSizeReqd,
    /// Too long to handle.
    TooBig,
    /// Not without extended headers.
    ExtHeaderReqd,
    /// A number that the protocol does not know, without its highest bit.
    Other(u32),
}

impl OptionError {
    const KNOWN: [OptionError; 10] = [
        OptionError::Unsup,
        OptionError::Policy,
        OptionError::Invalid,
        OptionError::Platform,
        OptionError::TlsReqd,
        OptionError::Unknown,
        OptionError::Shutdown,
        OptionError::BlockSizeReqd,
        OptionError::TooBig,
        OptionError::ExtHeaderReqd,
    ];

    /// The type of the reply on the wire.
    pub(crate) fn reply_type(self) -> u32 {
        let known = Self::KNOWN.iter().position(|known| *known == self);
        let number = match self {
            OptionError::Other(number) => number,
            _ => known.map_or(0, |position| position as u32 + 1),
        };
        rep::ERROR_BIT | number
    }

    /// The error of a reply of this type; `None` when it is none.
    pub(crate) fn from_reply_type(reply_type: u32) -> Option<Self> {
        let number = reply_type & !rep::ERROR_BIT;
        let known = number.checked_sub(1).and_then(|at| Self::KNOWN.get(at as usize)).copied();
        (reply_type & rep::ERROR_BIT != 0).then(|| known.unwrap_or(OptionError::Other(number)))
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            OptionError::Unsup => "it does not know this option",
            OptionError::Policy => "it is not allowed to",
            OptionError::Invalid => "it holds the option for invalid",
            OptionError::Platform => "its platform cannot",
            OptionError::TlsReqd => "it requires TLS first",
            OptionError::Unknown => "it has no such export",
            OptionError::Shutdown => "it is shutting down",
            OptionError::BlockSizeReqd => "it requires a client that asks for block sizes",
            OptionError::TooBig => "the option is too long",
            OptionError::ExtHeaderReqd => "it requires extended headers first",
            OptionError::Other(number) => return write!(out, "error {number}"),
        };
        out.write_str(words)
    }
}
