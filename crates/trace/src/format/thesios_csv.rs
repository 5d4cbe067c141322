//! Traces of Google's storage servers synthesised by Thesios: CSV with a header that names the columns.
//!
//! Source: README of the published traces; Phothilimthana et al., "Thesios: Synthesizing Accurate
//! Counterfactual I/O Traces from I/O Samples", ASPLOS 2024. Times are in seconds since 1970 and made
//! relative to the first record.
//!
//! A row is a request to a server, whose memory may serve it: `cache_hit` is 1 then, and the disk sees no
//! request. The reader gives the requests that the disk sees, with the disk's own size
//! (`disk_io_size_bytes`, which includes checksums), arrival (`simulated_disk_start_time`) and service
//! (`disk_time`), where the row has them. For caches it gives all requests, as the server sees them:
//! `request_io_size_bytes`, `start_time` and `simulated_latency`. Rows of size 0 are no requests. Both
//! kinds of rows that are left out are counted.
//!
//! The traces tell where in a file a request lies, but not where on the disk the file lies. So a file
//! begins at one of 2^18 places 64 MiB apart, which a hash of its name chooses: 16 TiB in all. Runs
//! within a file stay unchanged; distances between files are made up.

use super::columns::{Columns, no_header, required};
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record, completion_later};
use crate::scan::{Number, TimeUnit, Token};
use crate::source::{LeftOutRows, LineDecoder, LineSource, first_line};
use freewheel_units::{Op, SimTime};

const NAMES: [&str; 10] = [
    "filename",
    "file_offset",
    "op_type",
    "request_io_size_bytes",
    "start_time",
    "simulated_latency",
    "cache_hit",
    "disk_io_size_bytes",
    "simulated_disk_start_time",
    "disk_time",
];
const REQUIRED: usize = 5;
/// Places at which a file may begin, and their distance.
const PLACES: u64 = 1 << 18;
const PLACE_BYTES: u64 = 64 << 20;

pub(super) const ROW: Row = Row {
    format: Format::ThesiosCsv,
    name: "thesios-csv",
    description: "CSV with header: filename,file_offset,op_type,request_io_size_bytes,start_time (s),...",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| Columns::find(first_line(head), NAMES, REQUIRED).is_ok(),
    open: Some(|input, how| {
        let decoder = ThesiosCsv { of_server: how.cache_hits, ..ThesiosCsv::default() };
        Ok(Box::new(LineSource::new(input.into_stream(), decoder)))
    }),
};

#[derive(Default)]
struct ThesiosCsv {
    columns: Option<Columns<10>>,
    /// True if requests are those that the server sees, and not the disk.
    of_server: bool,
    left_out: LeftOutRows,
}

/// Size and times of a request.
struct Seen {
    bytes: Number,
    arrival: SimTime,
    completion: Option<SimTime>,
}

impl LineDecoder for ThesiosCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        if line.starts_with(b"#") {
            return Ok(false);
        }
        self.columns = Some(Columns::find(line, NAMES, REQUIRED)?);
        Ok(true)
    }

    fn take_other(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let Some(Ok(fields)) = self.columns.as_ref().map(|columns| columns.pick(line)) else {
            return Ok(false);
        };
        let [_, _, _, size, _, _, hit, ..] = fields;
        let is_hit = !self.of_server && hit.is_some_and(|hit| hit.text == b"1");
        let is_empty = required(size).number().is_ok_and(|size| size.value == 0);
        self.left_out.empty += u64::from(is_empty);
        self.left_out.cache_hits += u64::from(is_hit && !is_empty);
        Ok(is_hit || is_empty)
    }

    fn left_out(&self) -> LeftOutRows {
        self.left_out
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let columns = self.columns.as_ref().ok_or_else(|| no_header(line))?;
        let fields = columns.pick(line)?;
        let [filename, offset, op_type, ..] = fields;
        let offset = required(offset).number()?;
        let begin = place(required(filename)) * PLACE_BYTES;
        let from_start = offset.value.checked_add(begin).ok_or_else(|| offset.too_far())?;
        let offset = Number { value: from_start, ..offset };
        let op = op(required(op_type))?;
        let Seen { bytes, arrival, completion } = self.seen(&fields)?;
        let extent = Extent::of_bytes(offset, bytes)?;
        Ok(Record { completion, ..extent.request(arrival, op, 0) })
    }
}

impl ThesiosCsv {
    /// The request as the disk sees it, as far as the row says so, or as the server does.
    fn seen(&self, fields: &[Option<Token>; 10]) -> Result<Seen, Fault> {
        let [_, _, _, size, start, latency, _, disk_size, disk_start, disk_time] = *fields;
        let of_server = || {
            let arrival = required(start).time(TimeUnit::Seconds)?;
            let completion = latency
                .map(|latency| completion_later(arrival, latency, TimeUnit::Seconds))
                .transpose()?;
            Ok(Seen { bytes: required(size).number()?, arrival, completion })
        };
        let mut seen = of_server()?;
        if self.of_server {
            return Ok(seen);
        }
        // A row without a simulated disk has zeros in its columns.
        if let Some(bytes) = disk_size.map(Token::number).transpose()?.filter(|it| it.value > 0) {
            seen.bytes = bytes;
        }
        let disk_start = disk_start.map(|token| token.time(TimeUnit::Seconds)).transpose()?;
        let Some(arrival) = disk_start.filter(|&time| time > SimTime::ZERO) else {
            return Ok(seen);
        };
        let by_disk = disk_time.filter(|time| time.time(TimeUnit::Seconds) != Ok(SimTime::ZERO));
        let completion = by_disk
            .map(|time| completion_later(arrival, time, TimeUnit::Seconds))
            .transpose()?
            .or(seen.completion);
        Ok(Seen { arrival, completion: completion.map(|end| end.max(arrival)), ..seen })
    }
}

/// The place of a file: FNV-1a of its name, whose bits a product with the golden ratio mixes.
fn place(filename: Token) -> u64 {
    let hash = filename.text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACES.ilog2())
}

#[inline]
fn op(token: Token) -> Result<Op, Fault> {
    if token.text.eq_ignore_ascii_case(b"read") {
        Ok(Op::Read)
    } else if token.text.eq_ignore_ascii_case(b"write") {
        Ok(Op::Write)
    } else {
        Err(token.fault("write READ or WRITE"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_spread_over_the_places() {
        let names: Vec<String> = (0..1000).map(|number| format!("file{number}")).collect();
        let place = |name: &String| place(Token { name: "filename", text: name.as_bytes() });
        let places: std::collections::BTreeSet<u64> = names.iter().map(place).collect();
        // Of 1,000 files at 2^18 places, two share one in expectation.
        assert!(places.len() > 990 && places.iter().all(|&place| place < PLACES));
        assert!(
            *places.first().unwrap() < PLACES / 50 && *places.last().unwrap() > PLACES / 50 * 49
        );
    }
}
