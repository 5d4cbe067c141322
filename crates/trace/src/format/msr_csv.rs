//! The block traces of MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! Source: Narayanan, Donnelly and Rowstron, "Write Off-Loading", FAST 2008, and the README of the
//! traces in the SNIA IOTTA repository. `Timestamp` is a Windows FILETIME (100 ns since 1601),
//! `Offset` and `Size` are bytes, `ResponseTime` is in 100 ns and gives the completion. Times are
//! made relative to the first record. A header line is passed over.
//!
//! `DiskNumber` counts within a host. In a file of one host it is the device; in a merged file the
//! hosts are numbered in the order they appear, and the device is `host * 65536 + DiskNumber`.

use super::names::Names;
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record, completion_after};
use crate::scan::{Fields, Number, Token};
use crate::source::{LineDecoder, LineSource, most_lines_parse};
use freewheel_units::{Op, SimTime};

const TICK_NS: u64 = 100;
const DISKS_PER_HOST_MAX: u64 = 1 << 16;

pub(super) const ROW: Row = Row {
    format: Format::MsrCsv,
    name: "msr-csv",
    description: "CSV: FILETIME, host, disk, Read or Write, offset and size in bytes, response in 100 ns",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| most_lines_parse(head, &mut MsrCsv::default()),
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), MsrCsv::default())))),
};

#[derive(Default)]
struct MsrCsv {
    hosts: Names,
}

impl LineDecoder for MsrCsv {
    fn take_header(&mut self, line: &[u8]) -> Result<bool, Fault> {
        Ok(line.starts_with(b"Timestamp,"))
    }

    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::comma(line);
        let ticks = fields.next("Timestamp")?.number()?;
        let (host, disk) = (fields.next("Hostname")?, fields.next("DiskNumber")?.number()?);
        let op = op(fields.next("Type")?)?;
        let (offset, size) = (fields.next("Offset")?.number()?, fields.next("Size")?.number()?);
        let extent = Extent::of_bytes(offset, size)?;
        let (arrival, completion) = times(ticks, fields.next("ResponseTime")?.number()?)?;
        fields.end()?;
        let device = self.device(host, disk)?;
        let completion = Some(completion);
        Ok(Record { completion, ..extent.request(arrival, op, device) })
    }
}

impl MsrCsv {
    #[inline]
    fn device(&mut self, host: Token, disk: Number) -> Result<u32, Fault> {
        if disk.value >= DISKS_PER_HOST_MAX {
            return Err(disk.fault("above 65535"));
        }
        Ok(self.hosts.number(host)? * DISKS_PER_HOST_MAX as u32 + disk.value as u32)
    }
}

#[inline]
fn op(token: Token) -> Result<Op, Fault> {
    if token.text.eq_ignore_ascii_case(b"read") {
        Ok(Op::Read)
    } else if token.text.eq_ignore_ascii_case(b"write") {
        Ok(Op::Write)
    } else {
        Err(token.fault("write Read or Write"))
    }
}

#[inline]
fn times(ticks: Number, response: Number) -> Result<(SimTime, SimTime), Fault> {
    let arrival = ticks.time(TICK_NS)?;
    let end = ticks.value.checked_add(response.value).ok_or_else(|| response.too_long())?;
    let end_ns = end.checked_mul(TICK_NS).ok_or_else(|| response.too_long())?;
    let completion = completion_after(arrival, Number { value: end_ns, ..response })?;
    Ok((arrival, completion))
}
