//! Wikipedia's caching data of 2019, one request a line, between tabs:
//! `relative_unix hashed_path_query image_type response_size time_firstbyte`.
//!
//! Source: Wikitech, "Analytics/Data Lake/Traffic/Caching". The data of texts lack `image_type`. A number
//! stands for path and query, and the status is not there: every answer with a byte counts.

use super::{Entry, SECOND_MAX};
use crate::fault::Fault;
use crate::scan::whole_number;

/// A line without its end.
pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, Fault> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let (second, name, size) = match fields[..] {
        [second, name, _, size, _] | [second, name, size, _] => (second, name, size),
        _ => return Err(Fault::new("line", line, "it has neither 4 nor 5 columns between tabs")),
    };
    let time = second;
    let second = number("relative_unix", time)?;
    if second > SECOND_MAX {
        return Err(Fault::new("relative_unix", time, "past 2^64 ns"));
    }
    let is_hash = name.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    if name.is_empty() || !is_hash {
        return Err(Fault::new("hashed_path_query", name, "not a whole number"));
    }
    Ok(match number("response_size", size)? {
        0 => Entry::WithoutBytes,
        bytes => Entry::Request { second, name, bytes },
    })
}

fn number(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    whole_number(text).ok_or_else(|| Fault::new(field, text, "not a whole number"))
}
