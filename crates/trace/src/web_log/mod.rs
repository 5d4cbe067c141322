//! Logs of web servers: files, their sizes, and when they were asked for.
//!
//! Goals: the files and requests that a server's disks would see, from the logs people have: Common and
//! Combined Log Format, and Wikipedia's caching data of 2019; plain, gzip or zstd.
//! Non-goals: block traces (see [`TraceReader`](crate::TraceReader)), clients, pages made by programs.
//!
//! A request counts if it is a GET that the server answered with 200 and at least a byte. The path with
//! its query names the file, as answers differ by query. A log has whole seconds: the requests of a
//! second are spread over it evenly, in the order of the log.

mod common;
mod wikipedia;

use std::collections::BTreeMap;
use std::path::Path;

use freewheel_units::SimTime;
use serde::Serialize;

use crate::error::{TraceError, path_text};
use crate::fault::{Fault, printable};
use crate::input::{Input, Stream};
use crate::source::{Lines, Stop};

const SECOND_NS: u64 = 1_000_000_000;
/// The last second of which every nanosecond fits into 64 bits.
const SECOND_MAX: u64 = u64::MAX / SECOND_NS - 1;

/// A server's log in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebLog {
    /// The files, in the order in which they are first asked for.
    pub files: Vec<WebFile>,
    /// The requests by arrival; the first second of the log is 0.
    pub requests: Vec<WebRequest>,
    /// Lines that are no such request.
    pub left_out: LeftOut,
}

/// A file of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WebFile {
    /// Its path with the query, or its number where the log has only that.
    pub name: String,
    /// The most bytes that a request of it was answered with.
    pub bytes: u64,
}

/// A request of a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WebRequest {
    /// When it arrived.
    pub arrival: SimTime,
    /// Index into [`WebLog::files`].
    pub file: u32,
    /// Bytes of the answer.
    pub bytes: u64,
}

/// Lines of a log that are no request of a file, by the first reason that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LeftOut {
    /// Requests other than GET.
    pub other_methods: u64,
    /// Answers other than 200, such as 304 (the client has the file) and 404.
    pub other_statuses: u64,
    /// Answers without a byte.
    pub without_bytes: u64,
    /// Lines that break the format, in lenient reading.
    pub malformed: u64,
}

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
enum Entry<'a> {
    Request { second: u64, name: &'a [u8], bytes: u64 },
    OtherMethod,
    OtherStatus,
    WithoutBytes,
}

/// Reads the lines of one format.
type Parse = for<'a> fn(&'a [u8]) -> Result<Entry<'a>, Fault>;

impl WebLog {
    /// Reads the log at `path`. A malformed line is an error, or is counted if reading is `lenient`.
    pub fn open(path: &Path, lenient: bool) -> Result<Self, TraceError> {
        let file = path_text(path);
        let input = Input::open(path, lenient)
            .map_err(|error| TraceError::io(&file, crate::read_error::plain(error)))?;
        let Some(parse) = format_of(&input.head) else {
            return Err(TraceError::NoWebLog { file });
        };
        let mut log = Reading::default();
        log.read(&file, input.into_stream(), parse, lenient)?;
        if log.requests.is_empty() {
            let LeftOut { other_methods, other_statuses, without_bytes, malformed } = log.left_out;
            let lines = other_methods + other_statuses + without_bytes + malformed;
            return Err(TraceError::NoWebRequest { file, lines });
        }
        Ok(log.finish())
    }
}

impl WebLog {
    /// Whether the file at `path` looks like a log: most of its first lines are entries.
    pub fn is_one(path: &Path) -> bool {
        let has_entries = |input: Input| {
            crate::source::whole_lines(&input.head).next().is_some()
                && format_of(&input.head).is_some()
        };
        Input::open(path, true).is_ok_and(has_entries)
    }
}

/// The format in which most of the first lines are entries.
fn format_of(head: &[u8]) -> Option<Parse> {
    let formats: [Parse; 2] = [common::parse, wikipedia::parse];
    let lines: Vec<&[u8]> = crate::source::whole_lines(head).take(100).collect();
    let parsed = |parse: &Parse| lines.iter().filter(|line| parse(line).is_ok()).count();
    formats.into_iter().find(|parse| parsed(parse) * 2 >= lines.len().max(1))
}

#[derive(Default)]
struct Reading {
    files: Vec<WebFile>,
    by_name: BTreeMap<Box<[u8]>, u32>,
    /// Second, file, bytes.
    requests: Vec<(u64, u32, u64)>,
    left_out: LeftOut,
}

impl Reading {
    fn read(
        &mut self,
        file: &str,
        stream: Stream,
        parse: Parse,
        lenient: bool,
    ) -> Result<(), TraceError> {
        let mut lines = Lines::new(stream);
        loop {
            let entry = match lines.advance() {
                Ok(false) => return Ok(()),
                Ok(true) if lines.line().is_empty() || is_header(lines.line()) => continue,
                Ok(true) => parse(lines.line()),
                Err(Stop::Fault(fault)) => Err(fault),
                Err(Stop::Io(error)) => return Err(TraceError::io(file, error)),
                Err(Stop::Broken(reason)) => unreachable!("a text has no container: {reason}"),
            };
            match entry {
                Ok(entry) => self.take(&entry),
                Err(_) if lenient => self.left_out.malformed += 1,
                Err(Fault { field, value, reason }) => {
                    let (file, line) = (file.to_owned(), lines.at.line.unwrap_or_default());
                    let reason = reason.into_owned();
                    return Err(TraceError::WebLogLine { file, line, field, value, reason });
                }
            }
        }
    }

    fn take(&mut self, entry: &Entry<'_>) {
        match *entry {
            Entry::Request { second, name, bytes } => {
                let file = self.file(name);
                let known = &mut self.files[file as usize].bytes;
                *known = bytes.max(*known);
                self.requests.push((second, file, bytes));
            }
            Entry::OtherMethod => self.left_out.other_methods += 1,
            Entry::OtherStatus => self.left_out.other_statuses += 1,
            Entry::WithoutBytes => self.left_out.without_bytes += 1,
        }
    }

    fn file(&mut self, name: &[u8]) -> u32 {
        if let Some(&file) = self.by_name.get(name) {
            return file;
        }
        let file = self.files.len() as u32;
        self.by_name.insert(name.into(), file);
        self.files.push(WebFile { name: readable(name), bytes: 0 });
        file
    }

    /// Puts requests in order of their seconds, which a server writes in order of completion.
    fn finish(mut self) -> WebLog {
        self.requests.sort_by_key(|&(second, ..)| second);
        let first = self.requests[0].0;
        let mut requests = Vec::with_capacity(self.requests.len());
        for of_second in self.requests.chunk_by(|a, b| a.0 == b.0) {
            let many = of_second.len() as u64;
            for (at, &(second, file, bytes)) in of_second.iter().enumerate() {
                let within = SECOND_NS * at as u64 / many;
                let arrival = SimTime::from_ns((second - first) * SECOND_NS + within);
                requests.push(WebRequest { arrival, file, bytes });
            }
        }
        WebLog { files: self.files, requests, left_out: self.left_out }
    }
}

fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"#") || line.starts_with(b"relative_unix")
}

/// The name as text; other bytes are spelled out.
fn readable(name: &[u8]) -> String {
    std::str::from_utf8(name).map_or_else(|_| printable(name), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(text: &str, lenient: bool) -> Result<WebLog, TraceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, text).unwrap();
        WebLog::open(&path, lenient)
    }

    const LINES: &str = "\
a - - [01/Aug/1995:23:59:59 -0400] \"GET /b.html HTTP/1.0\" 200 30
a - - [02/Aug/1995:04:00:01 +0000] \"GET /a.gif HTTP/1.0\" 200 1000 \"-\" \"a browser\"
a - - [02/Aug/1995:00:00:01 -0400] \"GET /a.gif HTTP/1.0\" 200 900
a - - [02/Aug/1995:00:00:00 -0400] \"HEAD /a.gif HTTP/1.0\" 200 0
a - - [02/Aug/1995:00:00:00 -0400] \"GET /a.gif HTTP/1.0\" 304 -
a - - [02/Aug/1995:00:00:00 -0400] \"GET /b.html\" 200 -
a - - [02/Aug/1995:00:00:00 -0400] \"GET /b.html HTTP/1.0\" 200 50
";

    #[test]
    fn requests_are_in_order_of_seconds_and_spread_within_them() {
        let log = log(LINES, false).unwrap();
        let times: Vec<u64> = log.requests.iter().map(|request| request.arrival.ns()).collect();
        assert_eq!(times, [0, SECOND_NS, 2 * SECOND_NS, 2 * SECOND_NS + SECOND_NS / 2]);
        let files: Vec<u32> = log.requests.iter().map(|request| request.file).collect();
        assert_eq!(files, [0, 0, 1, 1]);
        let file = |name: &str, bytes| WebFile { name: name.into(), bytes };
        assert_eq!(log.files, [file("/b.html", 50), file("/a.gif", 1000)]);
        let left_out =
            LeftOut { other_methods: 1, other_statuses: 1, without_bytes: 1, malformed: 0 };
        assert_eq!(log.left_out, left_out);
    }

    #[test]
    fn a_malformed_line_is_named_or_counted() {
        let text = format!("{LINES}a - - [2 August] \"GET /a HTTP/1.0\" 200 1\n");
        let says = log(&text, false).unwrap_err().to_string();
        assert!(says.contains("line 8: time is `2 August`"), "{says}");
        assert_eq!(log(&text, true).unwrap().left_out.malformed, 1);
    }

    #[test]
    fn numbers_of_wikipedia_are_names() {
        let text = "relative_unix\thashed_path_query\timage_type\tresponse_size\ttime_firstbyte\n\
                    7\t-12\tjpeg\t100\t0.01\n9\t5\tpng\t0\t0.01\n8\t-12\tjpeg\t120\t0.2\n";
        let log = log(text, false).unwrap();
        assert_eq!(log.files, [WebFile { name: "-12".into(), bytes: 120 }]);
        assert_eq!((log.requests.len(), log.left_out.without_bytes), (2, 1));
        assert_eq!(log.requests[1].arrival.ns(), SECOND_NS);
    }

    proptest::proptest! {
        #[test]
        fn any_damage_of_a_line_is_an_entry_or_a_fault(at in 0..80usize, byte: u8, cut in 0..90usize) {
            for line in LINES.lines().chain(["18446744073709551615\t1\tpng\t5\t0.1"]) {
                let mut bytes = line.as_bytes().to_vec();
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
                bytes.truncate(cut);
                for parse in [common::parse, wikipedia::parse] {
                    if let Ok(Entry::Request { second, .. }) = parse(&bytes) {
                        proptest::prop_assert!(second <= SECOND_MAX);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_web_log_is_said_with_the_way_out() {
        let text = "a - - [01/Aug/1995:23:59:59 -0400] \"GET /b.html HTTP/1.0\" 404 30\n";
        let says = log(text, false).unwrap_err().to_string();
        assert!(says.contains("none of its 1 lines"), "{says}");
        let says = log("1,2,3\n", false).unwrap_err().to_string();
        assert!(says.contains("no web log") && says.contains("Common"), "{says}");
    }
}
