//! CSV of the cache simulator libCacheSim: when, which object, how large.
//!
//! Source: libCacheSim's reader of CSV and the examples of its use. A header names the columns, in any
//! order and among others. Without one, they are the time, the object and its size, and perhaps the number
//! of the next access to it. Times are in seconds below 2^32; fractions are left out, as by libCacheSim.
//! Sizes are in bytes, and a line with 0 holds no request. Every request is a read. Times are made relative
//! to the first record. What is said of objects in `libcachesim` holds here too.

use super::columns::{Columns, required};
use super::libcachesim::{ObjectRequest, Placer, SECOND_NS};
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::Record;
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, first_line, most_lines_parse, whole_lines};
use freewheel_units::Op;

/// The names that each column goes by.
const TIMES: [&str; 4] = ["time", "timestamp", "clock_time", "real_time"];
const OBJECTS: [&str; 7] = ["obj_id", "object_id", "objectid", "object", "obj", "key", "lbn"];
const SIZES: [&str; 5] = ["obj_size", "object_size", "size", "bytes", "size_bytes"];
/// Sizes of headerless lines up to this are something else: a direction, or a flag.
const FLAG_MAX: u64 = 2;

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
            LibcachesimCsv { columns: None, placer: Placer::new(how.objects) },
        );
        Ok(Box::new(lines))
    }),
};

/// Whether lines without a header are such, from the first one on, and their sizes are more than flags.
fn is_headerless(head: &[u8]) -> bool {
    let mut decoder = LibcachesimCsv { columns: None, placer: Placer::new(None) };
    let is_first = whole_lines(head).next().is_some_and(|line| decoder.parse(line).is_ok());
    let is_large = |line| {
        fields(line, None).is_ok_and(|[_, _, size]| size.number().is_ok_and(|n| n.value > FLAG_MAX))
    };
    is_first && most_lines_parse(head, &mut decoder) && whole_lines(head).any(is_large)
}

struct LibcachesimCsv {
    columns: Option<Columns<3>>,
    placer: Placer,
}

/// The columns that a header names.
fn find(header: &[u8]) -> Option<Columns<3>> {
    let lower = header.strip_prefix(b"#").unwrap_or(header).to_ascii_lowercase();
    let is_named = |name: &&str| {
        lower.split(|&byte| byte == b',').any(|column| column.trim_ascii() == name.as_bytes())
    };
    let name = |names: &[&'static str]| names.iter().find(|name| is_named(name)).copied();
    let names = [name(&TIMES)?, name(&OBJECTS)?, name(&SIZES)?];
    Columns::find(&lower, names, names.len()).ok()
}

/// The time, the object and the size in a line.
fn fields<'a>(line: &'a [u8], columns: Option<&Columns<3>>) -> Result<[Token<'a>; 3], Fault> {
    if let Some(columns) = columns {
        return Ok(columns.pick(line)?.map(required));
    }
    let mut fields = Fields::comma(line);
    let three = [fields.next("time")?, fields.next("obj_id")?, fields.next("obj_size")?];
    if let Ok(next) = fields.next("next_access_vtime")
        && next.text != b"-1"
    {
        next.number()?;
    }
    fields.end()?;
    Ok(three)
}

impl LineDecoder for LibcachesimCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        self.columns = find(line);
        Ok(self.columns.is_some())
    }

    fn take_other(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let fields = fields(line, self.columns.as_ref());
        Ok(fields.is_ok_and(|[_, _, size]| size.number().is_ok_and(|size| size.value == 0)))
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let [time, object, size] = fields(line, self.columns.as_ref())?;
        let seconds = time.time(TimeUnit::Seconds)?.ns() / SECOND_NS;
        if u32::try_from(seconds).is_err() {
            return Err(time.fault("not a time in seconds below 2^32"));
        }
        ObjectRequest {
            clock_time: seconds,
            obj_id: object.number()?.value,
            obj_size: size.number()?.value,
            op: Op::Read,
            tenant: 0,
        }
        .record(&mut self.placer)
    }
}
