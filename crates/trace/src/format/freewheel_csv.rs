//! Freewheel's CSV, as the recorder writes it.
//!
//! `arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns`, with this header line. `op` is `R`, `W`,
//! `F` (cache flush) or `T` (trim). Offset and length of a flush are ignored. `complete_ns` is empty
//! where unknown. Time 0 is the start of the recording and is kept. `fua` is 0, or 1 for force unit
//! access.

use freewheel_units::{Op, SimTime};

use super::{Clock, Format, Row, Timing, UnitFound};
use crate::fault::{Fault, printable};
use crate::record::{Extent, Record, completion_after};
use crate::scan::{Fields, Number, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, first_line, most_lines_parse};

pub(crate) const HEADER: &str = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns";

pub(super) const ROW: Row = Row {
    format: Format::FreewheelCsv,
    name: "freewheel-csv",
    description: "CSV with header: arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns; op R W F T",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: Some(|_, _| UnitFound::Sure(TimeUnit::Nanoseconds)),
    may_be_objects: false,
    // No other format has this header, so a malformed record after it is an error of a CSV. A header
    // with some of these names is taken for a wrong header of this format, with an error that says so.
    detect: |head| {
        first_line(head) == HEADER.as_bytes()
            || names_columns(first_line(head)) && missing(first_line(head)).len() <= KNOWN_LACK_MAX
            || most_lines_parse(head, &mut FreewheelCsv { unit: TimeUnit::Nanoseconds })
    },
    open: Some(|input, how| {
        Ok(Box::new(LineSource::new(input.into_stream(), FreewheelCsv { unit: how.unit })))
    }),
};

/// Most of the six columns that a header of this format may lack.
const KNOWN_LACK_MAX: usize = 4;

/// True if a line holds names, where a record holds a number and a letter.
fn names_columns(line: &[u8]) -> bool {
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    fields.clone().count() > 1
        && fields.all(|field| field.first().is_some_and(u8::is_ascii_alphabetic))
}

/// The names among `names` that are not among `others`, both separated by commas.
fn without(names: &[u8], others: &[u8]) -> Vec<String> {
    let others = columns(others);
    let left = columns(names).into_iter().filter(|name| !others.contains(name));
    left.map(|name| printable(&name)).collect()
}

fn columns(line: &[u8]) -> Vec<Vec<u8>> {
    line.split(|&byte| byte == b',').map(|name| name.trim_ascii().to_vec()).collect()
}

fn missing(header: &[u8]) -> Vec<String> {
    without(HEADER.as_bytes(), header)
}

/// Fault of a line of names that is not our header.
fn header_fault(line: &[u8]) -> Fault {
    let differences =
        [list("missing", missing(line)), list("not known", without(line, HEADER.as_bytes()))];
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    let differences = match &differences[..] {
        [] => "the order or the number of columns differs".to_owned(),
        some => some.join("; "),
    };
    Fault::new("header", line, format!("{differences}; write {HEADER}"))
}

fn list(what: &str, names: Vec<String>) -> Option<String> {
    (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
}

struct FreewheelCsv {
    /// Unit of both times, if the names of their columns are wrong.
    unit: TimeUnit,
}

impl LineDecoder for FreewheelCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        match line == HEADER.as_bytes() {
            false if names_columns(line) => Err(header_fault(line)),
            is_header => Ok(is_header),
        }
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::comma(line);
        let arrival = fields.next("arrival_ns")?.number()?.time(self.unit.ns())?;
        let op = op(fields.next("op")?)?;
        let (offset, length) = (fields.next("offset_bytes")?, fields.next("length_bytes")?);
        let extent = extent(op, offset, length)?;
        let fua = flag(fields.next("fua")?)?;
        let completion = completion(arrival, fields.next("complete_ns")?, self.unit)?;
        fields.end()?;
        Ok(Record { completion, fua, ..extent.request(arrival, op, 0) })
    }
}

#[inline]
fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"R" => Ok(Op::Read),
        b"W" => Ok(Op::Write),
        b"F" => Ok(Op::Flush),
        b"T" => Ok(Op::Trim),
        _ => Err(token.fault("write R (read), W (write), F (flush) or T (trim)")),
    }
}

#[inline]
fn extent(op: Op, offset: Token, length: Token) -> Result<Extent, Fault> {
    let (offset, length) = (offset.number()?, length.number()?);
    if op == Op::Flush { Ok(Extent::NONE) } else { Extent::of_bytes(offset, length) }
}

#[inline]
fn flag(token: Token) -> Result<bool, Fault> {
    match token.text {
        b"0" => Ok(false),
        b"1" => Ok(true),
        _ => Err(token.fault("write 0 or 1")),
    }
}

#[inline]
fn completion(arrival: SimTime, token: Token, unit: TimeUnit) -> Result<Option<SimTime>, Fault> {
    if token.text.is_empty() {
        return Ok(None);
    }
    let completion = token.number()?;
    let value = completion.time(unit.ns())?.ns();
    completion_after(arrival, Number { value, ..completion }).map(Some)
}
