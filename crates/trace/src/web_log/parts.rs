//! The parts of a line in Common or Combined Log Format.

use crate::fault::Fault;

/// The parts of a line.
pub(super) struct Parts<'a> {
    /// Fields before the time: clients and users, and perhaps the site.
    pub front: &'a [u8],
    pub time: &'a [u8],
    pub request: &'a [u8],
    pub status: &'a [u8],
    pub bytes: &'a [u8],
    /// Fields after the bytes.
    pub rest: &'a [u8],
}

impl<'a> Parts<'a> {
    pub fn of(line: &'a [u8]) -> Result<Self, Fault> {
        let (before, rest) = cut(line, b"] \"")?;
        // An IPv6 address before the time may have brackets, too.
        let at = before.windows(2).rposition(|window| window == b" [");
        let at = at.ok_or_else(|| no_time(line))?;
        let (front, time) = (&before[..at], &before[at + 2..]);
        let (request, rest) = request(rest)?;
        let (status, rest) = word(rest);
        let (bytes, rest) = word(rest);
        Ok(Self { front, time, request, status, bytes, rest })
    }
}

/// The text up to the first blank, and what follows that.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    (&text[..end], text.get(end + 1..).unwrap_or_default())
}

/// Text before the first `mark`, and behind it.
fn cut<'a>(line: &'a [u8], mark: &[u8]) -> Result<(&'a [u8], &'a [u8]), Fault> {
    let at = line.windows(mark.len()).position(|window| window == mark);
    let at = at.ok_or_else(|| no_time(line))?;
    Ok((&line[..at], &line[at + mark.len()..]))
}

fn no_time(line: &[u8]) -> Fault {
    Fault::new("time", line, "it stands between [ and ] \"")
}

/// The request line, and what follows its closing quote. A path may hold quotes: the one that closes has
/// a status of three digits behind it.
fn request(rest: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let at = rest.windows(5).position(|window| {
        window.starts_with(b"\" ") && window[2..5].iter().all(u8::is_ascii_digit)
    });
    let at = at.ok_or_else(|| {
        Fault::new("request", rest, "no status of three digits follows its closing quote")
    })?;
    Ok((&rest[..at], &rest[at + 2..]))
}
