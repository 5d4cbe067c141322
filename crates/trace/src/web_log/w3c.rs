//! W3C Extended Log File Format, as Microsoft's IIS and Amazon's CloudFront write it: a line `#Fields:` names
//! the columns of the lines below it, between blanks or tabs.
//!
//! Source: W3C Working Draft WD-logfile-960323. Needed are `time`, `cs-method`, `cs-uri-stem` or `cs-uri`,
//! `sc-status` and `sc-bytes`; a date that is no column stands in a line `#Date:`. `sc-bytes` counts the
//! answer's head, too. Times are UTC. An empty value is `-`.

use std::borrow::Cow;

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};

use super::entry::{Asked, Entry, lower, time_ns};
use crate::fault::Fault;
use crate::scan::whole_number;

const FIELDS: &[u8] = b"#Fields:";
const DATE: &[u8] = b"#Date:";

/// The columns that name the site; the first of these that is there counts. In CloudFront's logs `cs(Host)` is
/// the distribution, and `x-host-header` the site that clients asked for.
const HOSTS: [&[u8]; 4] = [b"cs-host", b"x-host-header", b"cs(Host)", b"s-sitename"];

/// Columns of the lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Columns {
    names: Vec<Box<[u8]>>,
    /// Date of the last line `#Date:`.
    date: Option<NaiveDate>,
}

/// Columns that a log needs and that its line `#Fields:` does not name.
const NEEDED: [(&str, &[&[u8]]); 5] = [
    ("time", &[b"time"]),
    ("cs-method", &[b"cs-method"]),
    ("cs-uri-stem", &[b"cs-uri-stem", b"cs-uri"]),
    ("sc-status", &[b"sc-status"]),
    ("sc-bytes", &[b"sc-bytes"]),
];

impl Columns {
    /// Takes what a line that begins with `#` says about those below it.
    pub fn take_header(&mut self, line: &[u8]) {
        if let Some(names) = line.strip_prefix(FIELDS) {
            let names = names.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty());
            self.names = names.map(Box::from).collect();
        } else if let Some(date) = line.strip_prefix(DATE) {
            let text = std::str::from_utf8(date).unwrap_or_default().trim();
            let date = text.split(' ').next().unwrap_or_default();
            self.date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok();
        }
    }

    /// True if a line `#Fields:` with a web server's columns has been there.
    pub fn is_known(&self) -> bool {
        self.names.iter().any(|name| name.starts_with(b"cs-uri"))
    }

    /// Columns that are needed and not there.
    pub fn missing(&self) -> Vec<&'static str> {
        NEEDED
            .iter()
            .filter(|(_, names)| !names.iter().any(|name| self.place(name).is_some()))
            .map(|(name, _)| *name)
            .collect()
    }

    /// A line without its end.
    pub fn parse<'a>(&self, line: &'a [u8]) -> Result<Entry<'a>, Fault> {
        let values = values(line);
        if values.len() != self.names.len() {
            let reason =
                format!("it has {} columns, and #Fields names {}", values.len(), self.names.len());
            return Err(Fault::new("line", line, reason));
        }
        let of = |name: &[u8]| self.place(name).map(|at| values[at]).filter(|value| *value != b"-");
        let needed = |name: &'static str| {
            of(name.as_bytes()).ok_or_else(|| Fault::new(name, b"-", "every line needs it"))
        };
        let time_ns = self.time(of(b"date"), needed("time")?)?;
        let bytes = self.place(b"sc-bytes").map(|at| values[at]);
        let bytes =
            match bytes.ok_or_else(|| Fault::new("sc-bytes", line, "#Fields does not name it"))? {
                b"-" => 0,
                text => number("sc-bytes", text)?,
            };
        let host = HOSTS.iter().find(|name| self.place(name).is_some()).and_then(|name| of(name));
        let (host, path) = (lower(host.unwrap_or_default()), path(&of)?);
        let asked = Asked { time_ns, host, path, bytes, is_part: false };
        Ok(Entry::of(needed("cs-method")?, needed("sc-status")?, asked))
    }

    fn place(&self, name: &[u8]) -> Option<usize> {
        self.names.iter().position(|column| column.eq_ignore_ascii_case(name))
    }

    fn time(&self, date: Option<&[u8]>, time: &[u8]) -> Result<u64, Fault> {
        let date = match date {
            Some(date) => {
                NaiveDate::parse_from_str(std::str::from_utf8(date).unwrap_or_default(), "%Y-%m-%d")
                    .ok()
            }
            None => self.date,
        };
        let Some(date) = date else {
            return Err(Fault::new(
                "date",
                time,
                "no column and no line #Date: has it, as 2024-01-05",
            ));
        };
        let of_day =
            NaiveTime::parse_from_str(std::str::from_utf8(time).unwrap_or_default(), "%H:%M:%S%.f")
                .ok();
        let ns = of_day.map(|of_day| ns(NaiveDateTime::new(date, of_day)));
        time_ns(ns, time, "not of the form 09:29:40, from 1970 to 2554")
    }
}

/// Nanoseconds of a time in UTC.
pub(super) fn ns(time: NaiveDateTime) -> i128 {
    let time = time.and_utc();
    i128::from(time.timestamp()) * 1_000_000_000 + i128::from(time.timestamp_subsec_nanos())
}

/// The path, and the query if there is one.
fn path<'a>(of: &dyn Fn(&[u8]) -> Option<&'a [u8]>) -> Result<Cow<'a, [u8]>, Fault> {
    let stem = of(b"cs-uri-stem").or_else(|| of(b"cs-uri"));
    let stem = stem.ok_or_else(|| Fault::new("cs-uri-stem", b"-", "every line needs it"))?;
    Ok(with_query(Cow::Borrowed(stem), of(b"cs-uri-query").unwrap_or_default()))
}

/// A path with a query that stands apart from it.
pub(super) fn with_query<'a>(path: Cow<'a, [u8]>, query: &[u8]) -> Cow<'a, [u8]> {
    if query.is_empty() || path.contains(&b'?') {
        path
    } else {
        Cow::Owned([&path, &b"?"[..], query].concat())
    }
}

/// The values of a line: between tabs, or between blanks, where a value with a blank is quoted.
fn values(line: &[u8]) -> Vec<&[u8]> {
    if line.contains(&b'\t') {
        return line.split(|&byte| byte == b'\t').collect();
    }
    let (mut values, mut rest) = (Vec::new(), line.trim_ascii());
    while !rest.is_empty() {
        let is_quoted = rest.first() == Some(&b'"');
        let mark = if is_quoted { b'"' } else { b' ' };
        let from = usize::from(is_quoted);
        let end = rest[from..].iter().position(|&byte| byte == mark);
        let end = end.map_or(rest.len(), |end| from + end);
        values.push(&rest[from..end]);
        rest = rest.get(end + from..).unwrap_or_default().trim_ascii_start();
    }
    values
}

fn number(field: &'static str, text: &[u8]) -> Result<u64, Fault> {
    whole_number(text).ok_or_else(|| Fault::new(field, text, "not a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(headers: &[&str]) -> Columns {
        let mut columns = Columns::default();
        headers.iter().for_each(|header| columns.take_header(header.as_bytes()));
        columns
    }

    fn asked<'a>(columns: &Columns, line: &'a str) -> Asked<'a> {
        match columns.parse(line.as_bytes()).unwrap() {
            Entry::Request(asked) => asked,
            other => panic!("{other:?}"),
        }
    }

    /// The seconds are from `date -u -d "2024-01-05 00:00:01" +%s`.
    #[test]
    fn w3c_columns_found_in_any_order() {
        let iis = columns(&[
            "#Fields: date time cs-method cs-uri-stem cs-uri-query s-sitename sc-status sc-bytes",
        ]);
        let line = "2024-01-05 00:00:01 GET /a.zip v=2 W3SVC1 200 1048576";
        let of = asked(&iis, line);
        assert_eq!((of.time_ns, of.bytes), (1_704_412_801_000_000_000, 1 << 20));
        assert_eq!((&*of.host, &*of.path), (&b"w3svc1"[..], &b"/a.zip?v=2"[..]));
        let other = columns(&[
            "#Date: 2024-01-05 11:12:13",
            "#Fields: sc-bytes sc-status cs-host cs-uri cs-method time",
        ]);
        let of = asked(&other, "77 206 One.example /a.zip?v=2 GET 00:00:01.25");
        assert_eq!((of.time_ns, of.bytes, of.is_part), (1_704_412_801_250_000_000, 77, true));
        assert_eq!((&*of.host, &*of.path), (&b"one.example"[..], &b"/a.zip?v=2"[..]));
    }

    #[test]
    fn cloudfront_lines_name_client_site() {
        let head = "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs-uri-query x-host-header";
        let line = "2024-01-05\t00:00:01\tFRA2\t99\t192.0.2.1\tGET\td1.cdn.example\t/a b.gif\t200\t-\t-\twww.example";
        let of = asked(&columns(&[head]), line);
        assert_eq!((&*of.host, &*of.path, of.bytes), (&b"www.example"[..], &b"/a b.gif"[..], 99));
    }

    #[test]
    fn w3c_missing_or_wrong_field_named() {
        let few = columns(&["#Fields: date time cs-uri-stem sc-status"]);
        assert!(few.is_known() && !columns(&["#Fields: a b"]).is_known());
        assert_eq!(few.missing(), ["cs-method", "sc-bytes"]);
        let all = columns(&["#Fields: date time cs-method cs-uri-stem sc-status sc-bytes"]);
        assert!(all.missing().is_empty());
        for (line, field) in [
            ("2024-01-05 00:00:01 GET /a 200", "line"),
            ("2024-01-05 0:00h GET /a 200 1", "time"),
            ("5.1.2024 00:00:01 GET /a 200 1", "date"),
            ("1969-01-05 00:00:01 GET /a 200 1", "time"),
            ("2024-01-05 00:00:01 GET - 200 1", "cs-uri-stem"),
            ("2024-01-05 00:00:01 GET /a 200 x", "sc-bytes"),
        ] {
            assert_eq!(all.parse(line.as_bytes()).unwrap_err().field, field, "{line}");
        }
        assert_eq!(all.parse(b"2024-01-05 00:00:01 POST /a 200 1"), Ok(Entry::OtherMethod));
        assert_eq!(all.parse(b"2024-01-05 00:00:01 GET \"/a b\" 304 -"), Ok(Entry::OtherStatus));
    }
}
