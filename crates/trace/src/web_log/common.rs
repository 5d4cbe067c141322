//! Common and Combined Log Format of web servers:
//! `host ident user [day/month/year:hour:minute:second zone] "GET path HTTP/1.0" status bytes`.
//!
//! Source: Apache HTTP Server, "Log Files". Combined Log Format adds `"referer" "agent"`, which do not
//! matter here. `-` for the bytes means none. The site stands in front, behind, or nowhere; see
//! [`HostPlace`].

use std::borrow::Cow;

use chrono::DateTime;

use super::entry::{Asked, Entry, time_ns};
use super::parts::Parts;
use super::virtual_host::HostPlace;
use crate::fault::Fault;
use crate::scan::whole_number;

/// A line without its end.
pub(super) fn parse<'a>(line: &'a [u8], place: &HostPlace) -> Result<Entry<'a>, Fault> {
    let parts = Parts::of(line)?;
    let (time_ns, bytes) = (time(parts.time)?, bytes(parts.bytes)?);
    let mut words = parts.request.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let method = words.next().unwrap_or_default();
    let path = Cow::Borrowed(words.next().unwrap_or_default());
    let host = place.host(&parts);
    Ok(Entry::of(method, parts.status, Asked { time_ns, host, path, bytes, is_part: false }))
}

/// `01/Aug/1995:02:00:00 -0400`, in ns since 1970.
pub(super) fn time(text: &[u8]) -> Result<u64, Fault> {
    let readable = std::str::from_utf8(text).unwrap_or_default();
    let parsed = DateTime::parse_from_str(readable, "%d/%b/%Y:%H:%M:%S %z").ok();
    let ns = parsed.map(|time| i128::from(time.timestamp()) * 1_000_000_000);
    time_ns(ns, text, "not of the form 01/Aug/1995:02:00:00 -0400, from 1970 to 2554")
}

fn bytes(text: &[u8]) -> Result<u64, Fault> {
    match text {
        b"-" => Ok(0),
        digits => whole_number(digits)
            .ok_or_else(|| Fault::new("bytes", text, "neither a whole number nor -")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[u8]) -> Result<Entry<'_>, Fault> {
        parse(line, &HostPlace::Nowhere)
    }

    #[test]
    fn quote_in_path_keeps_request_open() {
        let line = b"a - - [01/Jan/1970:00:00:05 +0000] \"GET /a\"b HTTP/1.0\" 200 7";
        let Entry::Request(asked) = parsed(line).unwrap() else { panic!("no request") };
        assert_eq!((asked.time_ns, &*asked.path, asked.bytes), (5_000_000_000, &b"/a\"b"[..], 7));
        assert!(asked.host.is_empty() && !asked.is_part);
    }

    #[test]
    fn common_log_wrong_fields_named() {
        for (line, field) in [
            ("a - - GET /a", "time"),
            ("a - - [01/Jan/1970:00:00:05 +0000 \"GET /a", "time"),
            ("a - - [01/Jan/1969:00:00:05 +0000] \"GET /a\" 200 1", "time"),
            ("a - - [01/Jan/1970:00:00:05 +0000] \"GET /a\" x 1", "request"),
            ("a - - [01/Jan/1970:00:00:05 +0000] \"GET /a\" 200 one", "bytes"),
            ("a - - [01/Jan/1970:00:00:05 +0000] \"GET /a\" 200", "bytes"),
        ] {
            assert_eq!(parsed(line.as_bytes()).unwrap_err().field, field, "{line}");
        }
    }
}
