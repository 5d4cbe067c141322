//! Logs of web servers: files, their sizes, and when they were asked for.
//!
//! Goals: the files and requests that a server's disks would see, from the logs people have: Common and
//! Combined Log Format, W3C Extended Log File Format, one JSON object a line, and Wikipedia's caching data of
//! 2019; plain, gzip or zstd.
//! Non-goals: block traces (see [`TraceReader`](crate::TraceReader)), clients, pages made by programs.
//!
//! A request counts if it is a GET that the server answered with 200 or 206 and at least a byte. The path
//! with its query names the file, as answers differ by query; where a log has several sites, so does the
//! site. An answer 206 is a part of its file: the log does not say which, so it is read from the file's
//! beginning. Where a log has whole seconds, the requests of a second are spread over it evenly, in the order
//! of the log.

mod common;
mod entry;
mod json;
mod layout;
mod parts;
mod virtual_host;
mod w3c;
mod wikipedia;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use freewheel_units::SimTime;
use serde::Serialize;

use crate::error::{TraceError, path_text};
use crate::fault::{Fault, printable};
use crate::input::{Input, Stream};
use crate::source::{Lines, Stop};
use entry::{Asked, Entry};
use layout::LogLayout;
use virtual_host::without_port;

const SECOND_NS: u64 = 1_000_000_000;
/// The longest line that is read: agents, cookies and heads of a JSON line take some KiB.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A server's log in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebLog {
    /// The files, in the order in which they are first asked for.
    pub files: Vec<WebFile>,
    /// The requests by arrival; the first one is at 0.
    pub requests: Vec<WebRequest>,
    /// Lines that are no such request.
    pub left_out: LeftOut,
    /// Requests of parts of files.
    pub parts: PartAnswers,
    /// The sites that names of files begin with; none where one site has all.
    pub sites: Vec<String>,
}

/// A file of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WebFile {
    /// Path with the query, or a number where the log has only that. In a log of several sites the site and
    /// a blank stand before it.
    pub name: String,
    /// The most bytes that a request of it was answered with.
    pub bytes: u64,
    /// True if it was sent whole. Else `bytes` is less than its size.
    pub is_whole: bool,
}

/// A request of a file, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WebRequest {
    /// Time of arrival.
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
    /// Answers other than 200 and 206, such as 304 (the client has the file) and 404.
    pub other_statuses: u64,
    /// Answers without a byte.
    pub without_bytes: u64,
    /// Lines that break the format, in lenient reading.
    pub malformed: u64,
}

/// Answers 206, each with a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PartAnswers {
    /// Their number.
    pub answers: u64,
    /// Files that no request was sent whole: their sizes are lower bounds.
    pub files: u64,
}

impl WebLog {
    /// Reads the log at `path`. A malformed line is an error, or is counted if reading is `lenient`.
    pub fn open(path: &Path, lenient: bool) -> Result<Self, TraceError> {
        let file = path_text(path);
        let input = Input::open(path, lenient)
            .map_err(|error| TraceError::io(&file, crate::read_error::plain(error)))?;
        let Some(layout) = LogLayout::of(&input.head) else {
            let looks_like = layout::looks_like(&input.head);
            return Err(TraceError::NoWebLog { file, looks_like });
        };
        let mut log = Reading::default();
        log.read(&file, input.into_stream(), layout, lenient)?;
        if log.requests.is_empty() {
            let LeftOut { other_methods, other_statuses, without_bytes, malformed } = log.left_out;
            let lines = other_methods + other_statuses + without_bytes + malformed;
            return Err(TraceError::NoWebRequest { file, lines });
        }
        Ok(log.finish())
    }

    /// True if the file at `path` looks like a log: most of its first lines are entries.
    pub fn is_one(path: &Path) -> bool {
        Input::open(path, true).is_ok_and(|input| LogLayout::of(&input.head).is_some())
    }

    /// Message about the file at `path`, if it looks like a log of a web server and lacks something that a
    /// log needs.
    pub fn looks_like(path: &Path) -> Option<String> {
        let input = Input::open(path, true).ok()?;
        let is_one = LogLayout::of(&input.head).is_some();
        if is_one { None } else { layout::looks_like(&input.head) }
    }
}

type Name = (Box<[u8]>, Box<[u8]>);

/// A request as the log has it.
struct Read {
    time_ns: u64,
    file: u32,
    bytes: u64,
}

#[derive(Default)]
struct Reading {
    files: Vec<WebFile>,
    names: Vec<Name>,
    /// Files by site, a 0 and path.
    by_name: BTreeMap<Box<[u8]>, u32>,
    requests: Vec<Read>,
    left_out: LeftOut,
    part_answers: u64,
}

impl Reading {
    fn read(
        &mut self,
        file: &str,
        stream: Stream,
        mut layout: LogLayout,
        lenient: bool,
    ) -> Result<(), TraceError> {
        let mut lines = Lines::up_to(stream, LINE_BYTES_MAX);
        loop {
            let entry = match lines.advance() {
                Ok(false) => return Ok(()),
                Ok(true) if lines.line().is_empty() || layout.take_header(lines.line()) => continue,
                Ok(true) => layout.parse(lines.line()),
                Err(Stop::Fault(fault)) => Err(fault),
                Err(Stop::Io(error)) => return Err(TraceError::io(file, error)),
                Err(stop) => unreachable!("a text has no container and is not sorted: {stop:?}"),
            };
            match entry {
                Ok(entry) => self.take(entry),
                Err(_) if lenient => self.left_out.malformed += 1,
                Err(Fault { field, value, reason }) => {
                    let (file, line) = (file.to_owned(), lines.at.line.unwrap_or_default());
                    let reason = reason.into_owned();
                    return Err(TraceError::WebLogLine { file, line, field, value, reason });
                }
            }
        }
    }

    fn take(&mut self, entry: Entry<'_>) {
        match entry {
            Entry::Request(asked) => self.take_request(&asked),
            Entry::OtherMethod => self.left_out.other_methods += 1,
            Entry::OtherStatus => self.left_out.other_statuses += 1,
            Entry::WithoutBytes => self.left_out.without_bytes += 1,
        }
    }

    fn take_request(&mut self, asked: &Asked<'_>) {
        let &Asked { time_ns, bytes, is_part, .. } = asked;
        // What a site's server has at two ports is one file on its disk.
        let file = self.file(without_port(&asked.host), &asked.path);
        let known = &mut self.files[file as usize];
        known.bytes = bytes.max(known.bytes);
        known.is_whole |= !is_part;
        self.part_answers += u64::from(is_part);
        self.requests.push(Read { time_ns, file, bytes });
    }

    fn file(&mut self, host: &[u8], path: &[u8]) -> u32 {
        let key = [host, b"\0", path].concat();
        if let Some(&file) = self.by_name.get(&*key) {
            return file;
        }
        let file = self.files.len() as u32;
        self.by_name.insert(key.into(), file);
        self.names.push((host.into(), path.into()));
        self.files.push(WebFile { name: String::new(), bytes: 0, is_whole: false });
        file
    }

    /// Names the files, and puts requests in the order of their times, as a server writes them in order of
    /// completion.
    fn finish(mut self) -> WebLog {
        let sites = self.name_files();
        let files = self.files.iter().filter(|file| !file.is_whole).count() as u64;
        let parts = PartAnswers { answers: self.part_answers, files };
        self.requests.sort_by_key(|read| read.time_ns);
        let requests = arrivals(&self.requests);
        WebLog { files: self.files, requests, left_out: self.left_out, parts, sites }
    }

    /// The site is part of a name where files have different ones. Returns these sites.
    fn name_files(&mut self) -> Vec<String> {
        let is_one_site = self.names.iter().all(|(host, _)| *host == self.names[0].0);
        for (file, (host, path)) in self.files.iter_mut().zip(&self.names) {
            file.name = if is_one_site || host.is_empty() {
                readable(path)
            } else {
                format!("{} {}", readable(host), readable(path))
            };
        }
        let hosts =
            self.names.iter().map(|(host, _)| host).filter(|host| !is_one_site && !host.is_empty());
        hosts.collect::<BTreeSet<_>>().into_iter().map(|host| readable(host)).collect()
    }
}

/// Requests in order of time, from the first one on. Where all times are whole seconds, those of a second
/// are spread over it.
fn arrivals(reads: &[Read]) -> Vec<WebRequest> {
    let begins_ns = reads[0].time_ns;
    let has_seconds_alone = reads.iter().all(|read| read.time_ns % SECOND_NS == 0);
    let mut requests = Vec::with_capacity(reads.len());
    for of_instant in reads.chunk_by(|a, b| a.time_ns == b.time_ns) {
        let many = of_instant.len() as u64;
        for (&Read { time_ns, file, bytes }, at) in of_instant.iter().zip(0..) {
            let within = if has_seconds_alone { SECOND_NS * at / many } else { 0 };
            let arrival = SimTime::from_ns(time_ns - begins_ns + within);
            requests.push(WebRequest { arrival, file, bytes });
        }
    }
    requests
}

/// The name as text; other bytes are spelled out.
fn readable(name: &[u8]) -> String {
    std::str::from_utf8(name).map_or_else(|_| printable(name), str::to_owned)
}

#[cfg(test)]
mod tests;
