//! CSV of hfplayer, a replayer of block traces, with a header that names the columns.
//!
//! Source: Haghdoost et al., "On the Accuracy and Scalability of Intensive I/O Workload Replay", FAST
//! 2017, and the header of the traces that come with the program. The header begins with `#`. Read are
//! `ELAPSED_USECS.D` (arrival in microseconds since the start of the capture), `CMD.S` (`RD...` or
//! `WR...`), `LBA.I` and `NBLKS.I` (blocks of 512 bytes), and where they are there `LATENCY_USECS.D`,
//! which gives the completion, and `LUN_SSID.I`, the device. Times stay as they are.

use super::columns::{Columns, no_header, required};
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record, completion_later};
use crate::scan::{TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, first_line};
use freewheel_units::Op;

const NAMES: [&str; 6] =
    ["ELAPSED_USECS.D", "CMD.S", "LBA.I", "NBLKS.I", "LATENCY_USECS.D", "LUN_SSID.I"];
const REQUIRED: usize = 4;

pub(super) const ROW: Row = Row {
    format: Format::HfplayerCsv,
    name: "hfplayer-csv",
    description: "CSV with header: #...,ELAPSED_USECS.D,CMD.S,LBA.I,NBLKS.I (512 B),LATENCY_USECS.D,...",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| find(first_line(head)).is_ok(),
    open: Some(|input, _| {
        let decoder = HfplayerCsv { columns: None };
        Ok(Box::new(LineSource::new(input.into_stream(), decoder)))
    }),
};

struct HfplayerCsv {
    columns: Option<Columns<6>>,
}

fn find(header: &[u8]) -> Result<Columns<6>, Fault> {
    Columns::find(header.strip_prefix(b"#").unwrap_or(header), NAMES, REQUIRED)
}

impl LineDecoder for HfplayerCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        match find(line) {
            Ok(columns) => self.columns = Some(columns),
            // Another comment may stand before the header.
            Err(_) if line.starts_with(b"#") => return Ok(false),
            Err(fault) => return Err(fault),
        }
        Ok(true)
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let columns = self.columns.as_ref().ok_or_else(|| no_header(line))?;
        let [elapsed, cmd, lba, blocks, latency, lun] = columns.pick(line)?;
        let arrival = required(elapsed).time(TimeUnit::Microseconds)?;
        let op = op(required(cmd))?;
        let extent = Extent::of_blocks(required(lba).number()?, required(blocks).number()?)?;
        let completion = latency
            .map(|latency| completion_later(arrival, latency, TimeUnit::Microseconds))
            .transpose()?;
        let device = lun.map_or(Ok(0), |lun| lun.number()?.to_u32())?;
        Ok(Record { completion, ..extent.request(arrival, op, device) })
    }
}

#[inline]
fn op(cmd: Token) -> Result<Op, Fault> {
    match cmd.text {
        [b'R', b'D', ..] => Ok(Op::Read),
        [b'W', b'R', ..] => Ok(Op::Write),
        _ => Err(cmd.fault("neither RD... (a read) nor WR... (a write)")),
    }
}
