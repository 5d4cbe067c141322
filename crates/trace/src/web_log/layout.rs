//! Format of a log.

use super::entry::Entry;
use super::parts::Parts;
use super::virtual_host::HostPlace;
use super::w3c::Columns;
use super::{common, json, wikipedia};
use crate::fault::Fault;
use crate::input::without_byte_order_mark;
use crate::source::whole_lines;

/// Lines that a format is known by.
const LINES: usize = 100;

/// Layout of a log's lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LogLayout {
    Common(HostPlace),
    Wikipedia,
    W3c(Columns),
    Json,
}

impl LogLayout {
    /// The format in which most of the first lines are entries.
    pub fn of(head: &[u8]) -> Option<Self> {
        let lines: Vec<&[u8]> = whole_lines(head).take(LINES).collect();
        let parts: Vec<Parts<'_>> = lines.iter().filter_map(|line| Parts::of(line).ok()).collect();
        let w3c = Self::W3c(columns(head));
        let formats = [Self::Common(HostPlace::of(&parts)), Self::Wikipedia, w3c, Self::Json];
        let is_entry = |format: &Self, line: &[u8]| {
            let is_other = *format == Self::Wikipedia && !wikipedia::is_told_from_a_trace(line);
            !is_other && format.parse(line).is_ok()
        };
        formats.into_iter().find(|format| {
            !lines.is_empty()
                && lines.iter().filter(|line| is_entry(format, line)).count() * 2 >= lines.len()
        })
    }

    /// True if a line holds no entry. It may say how to read those below it.
    pub fn take_header(&mut self, line: &[u8]) -> bool {
        if let Self::W3c(columns) = self {
            columns.take_header(line);
        }
        line.starts_with(b"#") || line.starts_with(b"relative_unix")
    }

    /// A line without its end.
    pub fn parse<'a>(&self, line: &'a [u8]) -> Result<Entry<'a>, Fault> {
        let entry = match self {
            Self::Common(place) => common::parse(line, place),
            Self::Wikipedia => wikipedia::parse(line),
            Self::W3c(columns) => columns.parse(line),
            Self::Json => json::parse(line),
        };
        entry?.of_possible_size()
    }
}

/// The columns that the first line `#Fields:` names, with the date above it.
fn columns(head: &[u8]) -> Columns {
    let mut columns = Columns::default();
    let lines = without_byte_order_mark(head).split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    for line in lines.take_while(|line| line.is_empty() || line.starts_with(b"#")) {
        columns.take_header(line);
    }
    columns
}

/// Message about a text that is no log, with the missing parts.
pub(super) fn looks_like(head: &[u8]) -> Option<String> {
    let columns = columns(head);
    let first = whole_lines(head).next();
    if columns.is_known() {
        return Some(match columns.missing() {
            missing if missing.is_empty() => "W3C Extended Log File Format, and its lines do not have the columns that #Fields names".into(),
            missing => format!(
                "W3C Extended Log File Format, and #Fields does not name {}: switch that on in the server's settings",
                missing.join(", ")
            ),
        });
    }
    if let Some(missing) = first.and_then(json::missing) {
        return Some(if missing.is_empty() {
            "JSON lines of which fewer than half are requests".into()
        } else {
            format!("JSON lines without a key for {}", missing.join(", "))
        });
    }
    let is_log = whole_lines(head).take(LINES).any(|line| {
        let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).collect();
        words.iter().any(|word| matches!(word.trim_ascii_start(), b"GET" | b"\"GET"))
    });
    is_log.then(|| {
        "a log of requests, without the time in [ ], the request in \" \", status or bytes of the Common Log Format".into()
    })
}
