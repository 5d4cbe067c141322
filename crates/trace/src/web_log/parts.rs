//! The parts of a line in Common or Combined Log Format.

use crate::fault::Fault;

/// The parts of a line.
pub(super) struct Parts<'a> {
    /// What stands before the time: clients and users, and perhaps the site.
    pub front: &'a [u8],
    pub time: &'a [u8],
    pub request: &'a [u8],
    pub status: &'a [u8],
    pub bytes: &'a [u8],
    /// What stands behind the bytes.
    pub rest: &'a [u8],
}

impl<'a> Parts<'a> {
    pub fn of(line: &'a [u8]) -> Result<Self, Fault> {
        let (front, rest) = cut(line, b" [", "time")?;
        let (time, rest) = cut(rest, b"] \"", "time")?;
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
