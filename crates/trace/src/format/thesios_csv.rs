//! Traces of Google's storage servers synthesised by Thesios: CSV with a header that names the columns.
//!
//! Source: README of the published traces; Phothilimthana et al., "Thesios: Synthesizing Accurate
//! Counterfactual I/O Traces from I/O Samples", ASPLOS 2024. Read are `filename`, `file_offset`,
//! `op_type` (READ or WRITE), `request_io_size_bytes` and `start_time` (arrival at the server, in seconds
//! since 1970), and where it is there `simulated_latency` (seconds), which gives the completion. Times are
//! made relative to the first record.
//!
//! The traces tell where in a file a request lies, but not where on the disk the file lies. So a file
//! begins at one of 2^18 places 64 MiB apart, which a hash of its name chooses: 16 TiB in all. Runs
//! within a file stay what they were; distances between files are made up.

use super::columns::{Columns, no_header, required};
use super::{Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record, completion_later};
use crate::scan::{Number, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, Reordered, first_line};
use freewheel_units::Op;

const NAMES: [&str; 6] = [
    "filename",
    "file_offset",
    "op_type",
    "request_io_size_bytes",
    "start_time",
    "simulated_latency",
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
    timing: Timing::Recorded,
    detect: |head| Columns::find(first_line(head), NAMES, REQUIRED).is_ok(),
    open: Some(|input| {
        let lines = LineSource::new(input.into_stream(), ThesiosCsv { columns: None });
        Ok(Box::new(Reordered::new(lines)))
    }),
};

struct ThesiosCsv {
    columns: Option<Columns<6>>,
}

impl LineDecoder for ThesiosCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        if line.starts_with(b"#") {
            return Ok(false);
        }
        self.columns = Some(Columns::find(line, NAMES, REQUIRED)?);
        Ok(true)
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let columns = self.columns.as_ref().ok_or_else(|| no_header(line))?;
        let [filename, offset, op_type, size, start, latency] = columns.pick(line)?;
        let offset = required(offset).number()?;
        let begin = place(required(filename)) * PLACE_BYTES;
        let from_start = offset.value.checked_add(begin).ok_or_else(|| offset.too_far())?;
        let offset = Number { value: from_start, ..offset };
        let extent = Extent::of_bytes(offset, required(size).number()?)?;
        let op = op(required(op_type))?;
        let arrival = required(start).time(TimeUnit::Seconds)?;
        let later = |latency| completion_later(arrival, latency, TimeUnit::Seconds);
        let completion = latency.map(later).transpose()?;
        Ok(Record { completion, ..extent.request(arrival, op, 0) })
    }
}

/// The place of a file: FNV-1a of its name, whose bits a product with the golden ratio mixes.
fn place(filename: Token) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = filename.text.iter().fold(0xcbf2_9ce4_8422_2325, step);
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
