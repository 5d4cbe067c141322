//! Wikipedia's caching data of 2019, one request a line, between tabs or blanks:
//! `relative_unix hashed_path_query image_type response_size time_firstbyte`.
//!
//! Source: Wikitech, "Analytics/Data Lake/Traffic/Caching". The data of texts lack `image_type`. A number
//! replaces path and query, and the status is not there: every answer with a byte counts.

use std::borrow::Cow;

use super::entry::{Asked, Entry, time_ns};
use crate::fault::Fault;
use crate::scan::whole_number;

/// A line without its end.
pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, Fault> {
    let fields = fields(line);
    let (second, path, size) = match fields[..] {
        [second, path, _, size, _] | [second, path, size, _] => (second, path, size),
        _ => return Err(Fault::new("line", line, "it has neither 4 nor 5 columns")),
    };
    let time_ns = time(second)?;
    let is_hash = path.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    if path.is_empty() || !is_hash {
        return Err(Fault::new("hashed_path_query", path, "not a whole number"));
    }
    let (host, path) = (Cow::default(), Cow::Borrowed(path));
    Ok(match number("response_size", size)? {
        0 => Entry::WithoutBytes,
        bytes => Entry::Request(Asked { time_ns, host, path, bytes, is_part: false }),
    })
}

fn fields(line: &[u8]) -> Vec<&[u8]> {
    if line.contains(&b'\t') {
        line.split(|&byte| byte == b'\t').collect()
    } else {
        line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect()
    }
}

/// True if a line is none of a block trace, whose columns are whole numbers. Here a type is a word, and the
/// time to the first byte has a point. Some lines may lack both, and most have one.
pub(super) fn is_told_from_a_trace(line: &[u8]) -> bool {
    let fields = fields(line);
    let has_type = fields.len() == 5 && fields[2].iter().any(u8::is_ascii_alphabetic);
    let is_text = fields.len() == 4 && fields[3].contains(&b'.');
    has_type || is_text
}

fn time(second: &[u8]) -> Result<u64, Fault> {
    let ns = i128::from(number("relative_unix", second)?) * 1_000_000_000;
    time_ns(Some(ns), second, "past 2^64 ns")
        .map_err(|fault| Fault { field: "relative_unix", ..fault })
}

fn number(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    whole_number(text).ok_or_else(|| Fault::new(field, text, "not a whole number"))
}
