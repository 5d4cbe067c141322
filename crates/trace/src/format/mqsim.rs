//! Traces of the SSD simulator MQSim: `ns device block blocks type`, between blanks.
//!
//! Source: Tavakkol et al., "MQSim: A Framework for Enabling Realistic Studies of Modern Multi-Queue SSD
//! Devices", FAST 2018, and the description of traces that comes with it. Times are in nanoseconds,
//! blocks have 512 bytes, `type` is 1 for a read and 0 for a write. Times stay as they are.
//!
//! The columns are DiskSim's, whose times are in milliseconds: a wrong guess is wrong by a million. Times
//! in whole microseconds tell: read as milliseconds, all requests of a trace would come on whole seconds.
//! A trace that is logged by the second does that too, but repeats its seconds. Where neither is clear,
//! the user is asked.

use super::{Format, Question, Row, Timing, disksim_ascii};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, Token};
use crate::source::{LineDecoder, LineSource, most_lines_parse, parsed_lines};
use freewheel_units::{Op, SimTime};

const MICROSECOND_NS: u64 = 1000;
/// Records on whole microseconds that make a trace MQSim's.
const RECORDS_SURE: usize = 64;

pub(super) const ROW: Row = Row {
    format: Format::Mqsim,
    name: "mqsim",
    description: "text: arrival in ns, device, block, blocks (512 B), 1 read or 0 write",
    rebased: false,
    timing: Timing::Recorded,
    detect: |head| fits_both(head) && has_whole_microseconds(head),
    open: Some(|input| Ok(Box::new(LineSource::new(input.into_stream(), Mqsim)))),
};

/// What to ask where neither is clear.
pub(super) const QUESTION: Question = Question {
    is_met: |head| fits_both(head) && !has_whole_microseconds(head),
    says: "are its times in ns (mqsim) or in ms (disksim-ascii)",
    choices: [Format::Mqsim, Format::DisksimAscii],
};

struct Mqsim;

impl LineDecoder for Mqsim {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::blank(line);
        let arrival = SimTime::from_ns(fields.next("arrival_ns")?.number()?.value);
        let device = fields.next("device")?.number()?.to_u32()?;
        let (start, count) = (fields.next("block")?.number()?, fields.next("blocks")?.number()?);
        let extent = Extent::of_blocks(start, count)?;
        let op = op(fields.next("type")?)?;
        fields.end()?;
        Ok(extent.request(arrival, op, device))
    }
}

#[inline]
fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"1" => Ok(Op::Read),
        b"0" => Ok(Op::Write),
        _ => Err(token.fault("write 1 for a read or 0 for a write")),
    }
}

/// Whether the records are such of both formats; a decimal point makes them DiskSim's.
fn fits_both(head: &[u8]) -> bool {
    most_lines_parse(head, &mut Mqsim) && !disksim_ascii::has_fractions(head)
}

/// Whether all times are whole microseconds, and mostly different, on enough records to be no chance.
fn has_whole_microseconds(head: &[u8]) -> bool {
    let records = parsed_lines(head, &mut Mqsim);
    let is_whole = |record: &Record| record.arrival.ns().is_multiple_of(MICROSECOND_NS);
    let repeated = records.windows(2).filter(|pair| pair[0].arrival == pair[1].arrival).count();
    records.len() >= RECORDS_SURE && repeated * 2 < records.len() && records.iter().all(is_whole)
}
