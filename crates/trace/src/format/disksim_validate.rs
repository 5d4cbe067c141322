//! DiskSim's `validate` traces: requests sent to a real drive one at a time, with the response
//! measured.
//!
//! `R|W hit-kind first-block blocks measured_us delay_us`, between blanks; blocks have 512 bytes. The
//! delay runs from the completion of the request in the line before to the arrival of this one.
//! Descriptions of the format say that it precedes the next request. But only in this reading do reads
//! from neighbouring tracks end at the angles of the drive's layout (`freewheel drive validate` shows
//! it). The first request arrives at 0. The hit kind is a guess of the measuring program, and is
//! dropped.

use freewheel_units::{Op, SimDuration, SimTime};

use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, most_lines_parse};

pub(super) const ROW: Row = Row {
    format: Format::DisksimValidate,
    name: "disksim-validate",
    description: "text: R or W, hit kind, block, blocks (512 B), measured response in us, delay before it in us",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| most_lines_parse(head, &mut DisksimValidate::default()),
    open: Some(|input, _| {
        Ok(Box::new(LineSource::new(input.into_stream(), DisksimValidate::default())))
    }),
};

/// Remembers when the request in the line before was done.
#[derive(Default)]
struct DisksimValidate {
    completed: Option<SimTime>,
}

impl LineDecoder for DisksimValidate {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::blank(line);
        let op = op(fields.next("op")?)?;
        fields.next("hit_kind")?;
        let (start, count) = (fields.next("block")?.number()?, fields.next("blocks")?.number()?);
        let extent = Extent::of_blocks(start, count)?;
        let (measured, delay) = (fields.next("measured_us")?, fields.next("delay_us")?);
        fields.end()?;
        let after = self.completed.map(|completed| later(completed, delay)).transpose()?;
        let arrival = after.unwrap_or(SimTime::ZERO);
        let completion = later(arrival, measured)?;
        self.completed = Some(completion);
        Ok(Record { completion: Some(completion), ..extent.request(arrival, op, 0) })
    }
}

fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"R" => Ok(Op::Read),
        b"W" => Ok(Op::Write),
        _ => Err(token.fault("neither R nor W")),
    }
}

/// `from` plus the microseconds in `token`.
fn later(from: SimTime, token: Token) -> Result<SimTime, Fault> {
    let length = token.time(TimeUnit::Microseconds)?;
    let sum = from.ns().checked_add(SimDuration::from_ns(length.ns()).ns());
    sum.filter(|&ns| ns < 1 << 63).map(SimTime::from_ns).ok_or(token.fault("too late"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_runs_from_completion_to_arrival() {
        let mut decoder = DisksimValidate::default();
        let first = decoder.parse(b"W Hit    4583176   4    663.00000  7").unwrap();
        let second = decoder.parse(b"R Miss   16   8    1000.5  45422.00000").unwrap();
        assert_eq!(first.arrival, SimTime::ZERO);
        assert_eq!(first.completion, Some(SimTime::from_ns(663_000)));
        assert_eq!((first.op, first.start.get(), first.blocks.get()), (Op::Write, 4_583_176, 4));
        assert_eq!(second.arrival, SimTime::from_ns(663_000 + 45_422_000));
        assert_eq!(
            second.completion.map(|t| t - second.arrival),
            Some(SimDuration::from_ns(1_000_500))
        );
    }

    #[test]
    fn times_summing_past_end_refused() {
        let mut decoder = DisksimValidate::default();
        let long = b"R Hit 0 1 9000000000000000 9000000000000000";
        assert!((0..4).any(|_| decoder.parse(long).is_err()));
    }
}
