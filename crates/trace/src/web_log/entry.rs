//! Entry of a line of a log, in any format.

use std::borrow::Cow;

use super::SECOND_NS;
use crate::fault::Fault;

/// The last time that a log may have, in ns since 1970: the last whole second of 64 bits.
const TIME_NS_MAX: u64 = (u64::MAX / SECOND_NS - 1) * SECOND_NS;

/// Entry of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    Request(Asked<'a>),
    OtherMethod,
    OtherStatus,
    WithoutBytes,
}

/// A file, or a part of it, that was asked for and sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    /// Since 1970.
    pub time_ns: u64,
    /// The site; empty where the line names none.
    pub host: Cow<'a, [u8]>,
    /// Path with the query.
    pub path: Cow<'a, [u8]>,
    pub bytes: u64,
    /// True if the answer was 206: a part of the file.
    pub is_part: bool,
}

impl<'a> Entry<'a> {
    /// Entry by the answer: only a GET that was sent a file or a part of it is a read of a disk.
    pub fn of(method: &[u8], status: &[u8], asked: Asked<'a>) -> Self {
        let is_part = status == b"206";
        match (method, status) {
            (b"GET", b"200" | b"206") if asked.bytes == 0 => Self::WithoutBytes,
            (b"GET", b"200" | b"206") => Self::Request(Asked { is_part, ..asked }),
            (b"GET", _) => Self::OtherStatus,
            _ => Self::OtherMethod,
        }
    }
}

/// The largest file that there can be: systems count its bytes in 63 bits.
const BYTES_MAX: u64 = i64::MAX as u64;

impl Entry<'_> {
    /// Err for an answer that is larger than any file.
    pub fn of_possible_size(self) -> Result<Self, Fault> {
        match &self {
            Self::Request(Asked { bytes, .. }) if *bytes > BYTES_MAX => {
                let text = bytes.to_string();
                Err(Fault::new(
                    "bytes",
                    text.as_bytes(),
                    "more than any file has: at most 2^63 - 1",
                ))
            }
            _ => Ok(self),
        }
    }
}

/// A time since 1970. Err for one before, and for one whose nanoseconds leave 64 bits.
pub(super) fn time_ns(ns: Option<i128>, text: &[u8], form: &'static str) -> Result<u64, Fault> {
    let ns = ns.and_then(|ns| u64::try_from(ns).ok()).filter(|ns| *ns <= TIME_NS_MAX);
    ns.ok_or_else(|| Fault::new("time", text, form))
}

/// Host names do not differ by case.
pub(super) fn lower(host: &[u8]) -> Cow<'_, [u8]> {
    if host.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}
