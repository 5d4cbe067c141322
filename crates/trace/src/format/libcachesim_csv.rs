//! CSV of the cache simulator libCacheSim: when, which object, how large.
//!
//! Source: libCacheSim's reader of CSV and the examples of its use. A header names the columns, in any
//! order and among others. Without one, they are the time, the object and its size, and perhaps the number
//! of the next access to it. Times are in seconds below 2^32 and keep their fractions, which libCacheSim
//! leaves out. Sizes are in bytes; a line with 0 holds no request, and is counted. The operation is a word,
//! as `get` or `set`; without such a column every request is a read. Times are made relative to the first
//! record. The text on objects in `libcachesim` holds here too.
//!
//! Three columns of numbers may be anything. Without a header they are taken for this format where times
//! never fall, a size is that of a block, and objects come again with the size that they had.

use super::columns::{Columns, required};
use super::libcachesim::{ObjectRequest, Placer};
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::Record;
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{
    LeftOutRows, LineDecoder, LineSource, first_line, most_lines_parse, whole_lines,
};
use freewheel_units::{BLOCK_BYTES, Op, SimTime};
use std::collections::BTreeMap;

/// The names that each column goes by.
const TIMES: [&str; 4] = ["time", "timestamp", "clock_time", "real_time"];
const OBJECTS: [&str; 6] = ["obj_id", "object_id", "objectid", "object", "obj", "key"];
const SIZES: [&str; 5] = ["obj_size", "object_size", "size", "bytes", "size_bytes"];
const OPERATIONS: [&str; 12] = [
    "op",
    "operation",
    "op_type",
    "optype",
    "io_type",
    "iotype",
    "type",
    "rw",
    "cmd",
    "command",
    "opcode",
    "method",
];
/// Columns that must be there: all but the operation.
const REQUIRED: usize = 3;
const READS: [&str; 5] = ["get", "gets", "read", "rd", "r"];
const WRITES: [&str; 12] = [
    "set", "put", "add", "cas", "replace", "append", "prepend", "incr", "decr", "update", "write",
    "w",
];
const TRIMS: [&str; 4] = ["delete", "del", "trim", "discard"];

pub(super) const ROW: Row = Row {
    format: Format::LibcachesimCsv,
    name: "libcachesim-csv",
    description: "libCacheSim's CSV: time in s, number of an object, size in bytes",
    rebased: true,
    clock: Clock::FromStart,
    timing: Timing::Seconds,
    unit: None,
    may_be_objects: true,
    detect: |head| find(first_line(head)).is_some() || is_headerless(head),
    open: Some(|input, how| {
        let lines = LineSource::new(
            input.into_stream(),
            LibcachesimCsv { placer: Placer::of(how), ..LibcachesimCsv::default() },
        );
        Ok(Box::new(lines))
    }),
};

/// True if lines without a header are such, from the first one on.
fn is_headerless(head: &[u8]) -> bool {
    let mut decoder = LibcachesimCsv::default();
    let is_first = whole_lines(head).next().is_some_and(|line| decoder.parse(line).is_ok());
    is_first && most_lines_parse(head, &mut decoder) && is_of_objects(head)
}

/// True if times never fall, a size is that of a block, and most objects that come again keep their size.
fn is_of_objects(head: &[u8]) -> bool {
    let (mut last, mut largest) = (SimTime::ZERO, 0);
    let (mut sizes, mut kept, mut changed) = (BTreeMap::new(), 0, 0);
    for (time, object, size) in whole_lines(head).filter_map(numbers) {
        if time < last {
            return false;
        }
        (last, largest) = (time, size.max(largest));
        match sizes.insert(object, size) {
            Some(before) if before == size => kept += 1,
            Some(_) => changed += 1,
            None => {}
        }
    }
    largest >= BLOCK_BYTES && kept > changed
}

/// Time, object and size in a line without a header.
fn numbers(line: &[u8]) -> Option<(SimTime, u64, u64)> {
    let [time, object, size, _] = fields(line, None).ok()?;
    let time = required(time).time(TimeUnit::Seconds).ok()?;
    Some((time, number(object)?, number(size)?))
}

fn number(token: Option<Token>) -> Option<u64> {
    required(token).number().ok().map(|number| number.value)
}

#[derive(Default)]
struct LibcachesimCsv {
    columns: Option<Columns<4>>,
    placer: Placer,
    left_out: LeftOutRows,
}

/// The columns that a header names.
fn find(header: &[u8]) -> Option<Columns<4>> {
    let lower = header.strip_prefix(b"#").unwrap_or(header).to_ascii_lowercase();
    let name = |names: &[&'static str]| {
        names
            .iter()
            .find(|name| {
                lower
                    .split(|&byte| byte == b',')
                    .any(|column| column.trim_ascii() == name.as_bytes())
            })
            .copied()
    };
    let op = name(&OPERATIONS).unwrap_or(OPERATIONS[0]);
    Columns::find(&lower, [name(&TIMES)?, name(&OBJECTS)?, name(&SIZES)?, op], REQUIRED).ok()
}

/// A field of each column, those first that must be there.
type Found<'a> = [Option<Token<'a>>; 4];

/// The time, the object, the size and the operation in a line.
fn fields<'a>(line: &'a [u8], columns: Option<&Columns<4>>) -> Result<Found<'a>, Fault> {
    if let Some(columns) = columns {
        return columns.pick(line);
    }
    let mut fields = Fields::comma(line);
    let three = [fields.next("time")?, fields.next("obj_id")?, fields.next("obj_size")?];
    if let Ok(next) = fields.next("next_access_vtime")
        && next.text != b"-1"
    {
        next.number()?;
    }
    fields.end()?;
    let [time, object, size] = three.map(Some);
    Ok([time, object, size, None])
}

impl LineDecoder for LibcachesimCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        self.columns = find(line);
        Ok(self.columns.is_some())
    }

    fn take_other(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let Ok([_, _, size, _]) = fields(line, self.columns.as_ref()) else { return Ok(false) };
        let is_empty = required(size).number().is_ok_and(|size| size.value == 0);
        self.left_out.empty += u64::from(is_empty);
        Ok(is_empty)
    }

    fn left_out(&self) -> LeftOutRows {
        self.left_out
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let [time, object, size, operation] = fields(line, self.columns.as_ref())?;
        let time = required(time);
        let arrival = time.time(TimeUnit::Seconds)?;
        let seconds = arrival.ns() / TimeUnit::Seconds.ns();
        if u32::try_from(seconds).is_err() {
            return Err(time.fault("not a time in seconds below 2^32"));
        }
        let request = ObjectRequest {
            clock_time: seconds,
            obj_id: required(object).number()?.value,
            obj_size: required(size).number()?.value,
            op: operation.map_or(Ok(Op::Read), op)?,
            tenant: 0,
        };
        Ok(Record { arrival, ..request.record(&mut self.placer)? })
    }
}

fn op(token: Token) -> Result<Op, Fault> {
    let word = token.text.to_ascii_lowercase();
    match (is_of(&READS, &word), is_of(&WRITES, &word), is_of(&TRIMS, &word)) {
        (true, ..) => Ok(Op::Read),
        (_, true, _) => Ok(Op::Write),
        (.., true) => Ok(Op::Trim),
        _ => Err(token.fault("write get, set or delete, or read, write or trim")),
    }
}

fn is_of(words: &[&str], word: &[u8]) -> bool {
    words.iter().any(|known| known.as_bytes() == word)
}
