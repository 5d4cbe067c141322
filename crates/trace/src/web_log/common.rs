//! Common and Combined Log Format of web servers:
//! `host ident user [day/month/year:hour:minute:second zone] "GET path HTTP/1.0" status bytes`.
//!
//! Source: Apache HTTP Server, "Log Files". Combined Log Format adds `"referer" "agent"`, which do not
//! matter here. `-` for the bytes means none.

use chrono::DateTime;

use super::{Entry, SECOND_MAX};
use crate::fault::Fault;
use crate::scan::whole_number;

/// A line without its end.
pub(super) fn parse(line: &[u8]) -> Result<Entry<'_>, Fault> {
    let (_, rest) = cut(line, b" [", "time")?;
    let (time, rest) = cut(rest, b"] \"", "time")?;
    let second = second(time)?;
    let (request, rest) = request(rest)?;
    let mut fields = rest.split(|&byte| byte == b' ');
    let status = fields.next().unwrap_or_default();
    let bytes = bytes(fields.next().unwrap_or_default())?;
    let mut words = request.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    if words.next() != Some(b"GET") {
        return Ok(Entry::OtherMethod);
    }
    let path = words.next().unwrap_or_default();
    Ok(match (status, bytes) {
        (b"200", 0) => Entry::WithoutBytes,
        (b"200", bytes) => Entry::Request { second, name: path, bytes },
        _ => Entry::OtherStatus,
    })
}

/// What is before the first `mark`, and what is behind it.
fn cut<'a>(
    line: &'a [u8],
    mark: &[u8],
    field: &'static str,
) -> Result<(&'a [u8], &'a [u8]), Fault> {
    let at = line.windows(mark.len()).position(|window| window == mark);
    let at = at.ok_or_else(|| Fault::new(field, line, "it stands between [ and ] \""))?;
    Ok((&line[..at], &line[at + mark.len()..]))
}

/// Seconds since 1970.
fn second(time: &[u8]) -> Result<u64, Fault> {
    let text = std::str::from_utf8(time).unwrap_or_default();
    let parsed = DateTime::parse_from_str(text, "%d/%b/%Y:%H:%M:%S %z");
    let seconds = parsed.ok().and_then(|time| u64::try_from(time.timestamp()).ok());
    seconds.filter(|&second| second <= SECOND_MAX).ok_or_else(|| {
        Fault::new("time", time, "not of the form 01/Aug/1995:02:00:00 -0400, from 1970 to 2554")
    })
}

/// The request line, and what follows its closing quote. A path may hold quotes: the one that closes has
/// a status of three digits behind it.
fn request(rest: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let closes =
        |window: &[u8]| window.starts_with(b"\" ") && window[2..5].iter().all(u8::is_ascii_digit);
    let at = rest.windows(5).position(closes);
    let at = at.ok_or_else(|| {
        Fault::new("request", rest, "no status of three digits follows its closing quote")
    })?;
    Ok((&rest[..at], &rest[at + 2..]))
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

    #[test]
    fn a_quote_in_the_path_does_not_end_the_request() {
        let line = b"a - - [01/Jan/1970:00:00:05 +0000] \"GET /a\"b HTTP/1.0\" 200 7";
        let is = Entry::Request { second: 5, name: b"/a\"b", bytes: 7 };
        assert_eq!(parse(line).unwrap(), is);
    }

    #[test]
    fn each_field_that_is_wrong_is_named() {
        for (line, field) in [
            ("a - - GET /a", "time"),
            ("a - - [01/Jan/1970:00:00:05 +0000 \"GET /a", "time"),
            ("a - - [01/Jan/1969:00:00:05 +0000] \"GET /a\" 200 1", "time"),
            ("a - - [01/Jan/1970:00:00:05 +0000] \"GET /a\" x 1", "request"),
            ("a - - [01/Jan/1970:00:00:05 +0000] \"GET /a\" 200 one", "bytes"),
            ("a - - [01/Jan/1970:00:00:05 +0000] \"GET /a\" 200", "bytes"),
        ] {
            assert_eq!(parse(line.as_bytes()).unwrap_err().field, field, "{line}");
        }
    }
}
