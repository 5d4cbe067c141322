//! The table "Disk Usage" of Windows Performance Analyzer as CSV: exported by `wpaexporter`, or copied.
//!
//! Source: Microsoft's documentation of Windows Performance Analyzer and of `wpaexporter`; Dawson, "The
//! Lost Xperf Documentation: Disk Usage", which says what each column is. Columns are found by name, in any
//! order and among others:
//!
//! | column | |
//! |---|---|
//! | `IO Type` | `Read`, `Write` or `Flush` |
//! | `Init Time (s)` | arrival |
//! | `Size (B)` | bytes |
//! | `Min Offset`, or `Offset` | bytes, mostly in hexadecimal after `0x` |
//! | `Complete Time (s)` or `IO Time (us)` | completion; both may be missing, or must agree |
//! | `Disk`, or `Disks` | the device; may be missing |
//! | `Count` | requests that a line sums up: must be 1; may be missing |
//!
//! Times may be in s, ms or us, as the header says. Fields are separated by commas, semicolons or tabs, and
//! may stand in quotes; numbers may have thousands apart (see `quoted`).
//!
//! Records are put in order of arrival, and times are made relative to the first one.

use super::columns::{missing_columns, no_header};
use super::quoted::Separator;
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record, completion_after};
use crate::scan::{Number, TOO_LONG, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, first_line};
use freewheel_units::{Op, SimTime};

pub(super) const ROW: Row = Row {
    format: Format::WpaCsv,
    name: "wpa-csv",
    description: "CSV of Windows Performance Analyzer: IO Type, Init Time (s), Size (B), Min Offset, ...",
    rebased: true,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| WpaLayout::find(first_line(head)).is_ok(),
    open: Some(|input, _| {
        Ok(Box::new(LineSource::new(input.into_stream(), WpaCsv { layout: None })))
    }),
};

/// The columns that are read, those first that must be there.
const NAMES: [&str; 8] =
    ["IO Type", "Init Time", "Size", "Min Offset", "Complete Time", "IO Time", "Disk", "Count"];
const REQUIRED: usize = 4;
/// Other names of columns.
const ALIASES: [(&str, &str); 2] = [("offset", "min offset"), ("disks", "disk")];

/// Columns of one trace, and their units.
#[derive(Debug)]
struct WpaLayout {
    separator: Separator,
    /// For each column of a line the number of its name in `NAMES`, and the unit of its times.
    columns: Vec<Option<(usize, TimeUnit)>>,
}

/// A field with the unit that its column has where it is a time.
type Field<'a> = (Token<'a>, TimeUnit);

impl WpaLayout {
    fn find(header: &[u8]) -> Result<Self, Fault> {
        let separator = Separator::of(header);
        let columns = separator.fields(header).map(column).collect::<Result<Vec<_>, _>>()?;
        let missing: Vec<_> =
            (0..REQUIRED).filter(|name| is_missing(name, &columns)).map(|at| NAMES[at]).collect();
        match missing[..] {
            [] => Ok(Self { separator, columns }),
            _ => Err(missing_columns(header, &missing)),
        }
    }

    /// The fields of a line in the order of `NAMES`; `None` for a column that is not there.
    fn pick<'a>(&self, line: &'a [u8]) -> Result<[Option<Field<'a>>; NAMES.len()], Fault> {
        let mut found = [None; NAMES.len()];
        let mut fields = self.separator.fields(line);
        for column in &self.columns {
            let text = fields.next();
            let Some((name, unit)) = *column else { continue };
            let Some(text) = text else {
                return Err(Fault::new(NAMES[name], b"", "the line ends before this column"));
            };
            found[name] = Some((Token { name: NAMES[name], text }, unit));
        }
        Ok(found)
    }
}

fn is_missing(name: &usize, columns: &[Option<(usize, TimeUnit)>]) -> bool {
    !columns.iter().flatten().any(|(found, _)| found == name)
}

/// Meaning of a column; Err for one in a unit that is not read.
fn column(header: &[u8]) -> Result<Option<(usize, TimeUnit)>, Fault> {
    let (name, unit) = match header.iter().rposition(|&byte| byte == b'(') {
        Some(at) => (header[..at].trim_ascii(), header[at + 1..].trim_ascii_end()),
        None => (header, &b""[..]),
    };
    let name = name.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| alias.as_bytes() == name);
    let name = alias.map_or(&*name, |(_, name)| name.as_bytes());
    let number = NAMES.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name));
    let unit = unit.strip_suffix(b")").unwrap_or(unit);
    number.map(|number| Ok((number, self::unit(NAMES[number], unit)?))).transpose()
}

/// The unit of a column; seconds for one without times.
fn unit(name: &'static str, unit: &[u8]) -> Result<TimeUnit, Fault> {
    if name.ends_with("Time") {
        return time_unit(unit)
            .ok_or_else(|| Fault::new("header", unit, "times are read in (s), (ms) or (us)"));
    }
    if name == "Size" && !matches!(unit, b"" | b"B") {
        return Err(Fault::new("header", unit, "sizes are read in bytes: Size (B)"));
    }
    Ok(TimeUnit::Seconds)
}

fn time_unit(unit: &[u8]) -> Option<TimeUnit> {
    match unit {
        b"s" => Some(TimeUnit::Seconds),
        b"ms" => Some(TimeUnit::Milliseconds),
        b"us" => Some(TimeUnit::Microseconds),
        // The sign for micro is one of two letters, in one of two encodings.
        [sign @ .., b's'] if !sign.is_empty() && sign.iter().all(|byte| !byte.is_ascii()) => {
            Some(TimeUnit::Microseconds)
        }
        _ => None,
    }
}

struct WpaCsv {
    layout: Option<WpaLayout>,
}

impl LineDecoder for WpaCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        if line.starts_with(b"#") {
            return Ok(false);
        }
        self.layout = Some(WpaLayout::find(line)?);
        Ok(true)
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let layout = self.layout.as_ref().ok_or_else(|| no_header(line))?;
        let [io_type, init, size, offset, complete, io_time, disk, count] = layout.pick(line)?;
        let separator = layout.separator;
        let op = op(required(io_type).0)?;
        let init = required(init);
        let arrival = separator.time(init.0, init.1)?;
        let extent = match op {
            Op::Flush => Extent::NONE,
            _ => {
                let size = separator.number(required(size).0)?;
                Extent::of_bytes(offset_bytes(required(offset).0, separator)?, size)?
            }
        };
        check_count(count, separator)?;
        let completion = completion(init, complete, io_time, separator)?;
        let device = disk.map_or(Ok(0), |(disk, _)| separator.number(disk)?.to_u32())?;
        Ok(Record { completion, ..extent.request(arrival, op, device) })
    }
}

fn required(field: Option<Field>) -> Field {
    field.expect("the header has this column")
}

fn offset_bytes(token: Token, separator: Separator) -> Result<Number, Fault> {
    if token.text.starts_with(b"0x") { token.number_or_hex() } else { separator.number(token) }
}

fn check_count(count: Option<Field>, separator: Separator) -> Result<(), Fault> {
    let Some((count, _)) = count else { return Ok(()) };
    match separator.number(count)?.value {
        1 => Ok(()),
        _ => Err(count.fault("the line sums up requests: export the table with a line for each")),
    }
}

const OTHER_END: &str =
    "Init Time plus this is not Complete Time: check the units that the header gives";

/// The completion by its time, or else by the time that the request took. Where both are there, they must
/// agree to the last place that is written.
fn completion(
    (init, unit): Field,
    complete: Option<Field>,
    io_time: Option<Field>,
    separator: Separator,
) -> Result<Option<SimTime>, Fault> {
    let arrival = separator.time(init, unit)?;
    let took = io_time.map(|field| later(arrival, field, separator)).transpose()?;
    let Some((complete, complete_unit)) = complete else { return Ok(took) };
    let value = separator.time(complete, complete_unit)?.ns();
    let end = completion_after(arrival, Number { name: complete.name, value })?;
    let fields = [Some((init, unit)), Some((complete, complete_unit)), io_time];
    let rounding_ns: u64 = fields
        .into_iter()
        .flatten()
        .map(|(token, unit)| separator.resolution_ns(token, unit))
        .sum();
    match (io_time, took) {
        (Some((io_time, _)), Some(took)) if took.ns().abs_diff(end.ns()) > rounding_ns => {
            Err(io_time.fault(OTHER_END))
        }
        _ => Ok(Some(end)),
    }
}

/// The end of a request that took this time.
fn later(arrival: SimTime, (took, unit): Field, separator: Separator) -> Result<SimTime, Fault> {
    let end = arrival.ns().checked_add(separator.time(took, unit)?.ns());
    end.map(SimTime::from_ns).ok_or_else(|| took.fault(TOO_LONG))
}

fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"Read" => Ok(Op::Read),
        b"Write" => Ok(Op::Write),
        b"Flush" => Ok(Op::Flush),
        _ => Err(token.fault("write Read, Write or Flush")),
    }
}
