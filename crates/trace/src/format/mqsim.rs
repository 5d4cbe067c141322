//! Traces of the SSD simulator MQSim: `ns device block blocks type`, between blanks.
//!
//! Source: Tavakkol et al., "MQSim: A Framework for Enabling Realistic Studies of Modern Multi-Queue SSD
//! Devices", FAST 2018, and the description of traces that comes with it. Times are in nanoseconds,
//! blocks have 512 bytes, `type` is 1 for a read and 0 for a write. Times stay as they are.
//!
//! The columns are DiskSim's, whose times are in milliseconds and have a decimal point. Whole numbers may
//! be of any unit: MQSim's programs can be set to microseconds, too. Times that are all whole thousands
//! are nanoseconds that a clock of microseconds took, unless they repeat, as those of a log by the second
//! would. Where neither is clear, the person is asked (`five_columns`).

use std::ops::RangeInclusive;

use super::{Clock, Format, Row, Timing, UnitFound, disksim_ascii, five_columns};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, TimeUnit};
use crate::source::{LineDecoder, LineSource, most_lines_parse, parsed_lines};

const MICROSECOND_NS: u64 = 1000;
/// Records on whole microseconds that make a trace MQSim's.
const RECORDS_SURE: usize = 64;
/// No rate speaks for nanoseconds: SSDs are traced, whose rates are those of any unit.
const NO_RATE: RangeInclusive<f64> = 1.0..=0.0;

pub(super) const ROW: Row = Row {
    format: Format::Mqsim,
    name: "mqsim",
    description: "text: arrival in ns, device, block, blocks (512 B), 1 read or 0 write",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: Some(|head, is_named| {
        if is_named || has_whole_microseconds(head) {
            UnitFound::Sure(TimeUnit::Nanoseconds)
        } else {
            five_columns::unit(head, TimeUnit::Nanoseconds, &NO_RATE, is_named)
        }
    }),
    may_be_objects: false,
    detect: |head| most_lines_parse(head, &mut { IN_NS }) && !disksim_ascii::has_fractions(head),
    open: Some(|input, how| {
        Ok(Box::new(LineSource::new(input.into_stream(), Mqsim { unit: how.unit })))
    }),
};

struct Mqsim {
    unit: TimeUnit,
}

const IN_NS: Mqsim = Mqsim { unit: TimeUnit::Nanoseconds };

impl LineDecoder for Mqsim {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::blank(line);
        let arrival = fields.next("arrival_ns")?.number()?.time(self.unit.ns())?;
        let device = fields.next("device")?.number()?.to_u32()?;
        let (start, count) = (fields.next("block")?.number()?, fields.next("blocks")?.number()?);
        let extent = Extent::of_blocks(start, count)?;
        let op = five_columns::op(fields.next("type")?)?;
        fields.end()?;
        Ok(extent.request(arrival, op, device))
    }
}

/// True if all times are whole microseconds, and mostly different, on enough records to be no chance.
fn has_whole_microseconds(head: &[u8]) -> bool {
    let records = parsed_lines(head, &mut { IN_NS });
    let repeated = records.windows(2).filter(|pair| pair[0].arrival == pair[1].arrival).count();
    records.len() >= RECORDS_SURE
        && repeated * 2 < records.len()
        && records.iter().all(|record| record.arrival.ns().is_multiple_of(MICROSECOND_NS))
}
