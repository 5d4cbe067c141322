//! Block traces of Florida International University:
//! `time pid process block blocks operation major minor md5`, between blanks.
//!
//! Source: README of the traces in the SNIA IOTTA repository; Koller and Rangaswami, "I/O Deduplication:
//! Utilizing Content Similarity to Improve I/O Performance", FAST 2010; Verma et al., "SRCMap: Energy
//! Proportional Storage Using Dynamic Consolidation", FAST 2010. The time is in nanoseconds, `block` and
//! `blocks` count 512 bytes, the operation is `R` or `W`. Hashes of the contents come last, or are missing;
//! they are not read. The name of a process may have blanks. The device is its major number times 2^20
//! plus its minor number.
//!
//! Records are put in order of arrival, and times are made relative to the first one.

use super::last_fields::LastFields;
use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, Number, Token};
use crate::source::{LineDecoder, LineSource, most_lines_parse};
use freewheel_units::Op;

const NANOSECOND_NS: u64 = 1;
const MINOR_BITS: u32 = 20;
/// No number of a device is that long, and every hash is longer.
const NUMBER_DIGITS_MAX: usize = 10;

pub(super) const ROW: Row = Row {
    format: Format::FiuText,
    name: "fiu-text",
    description: "text of FIU: ns, pid, process, block, blocks (512 B), R or W, major, minor, hashes",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| most_lines_parse(head, &mut FiuText),
    open: Some(|input, _| Ok(Box::new(LineSource::new(input.into_stream(), FiuText)))),
};

struct FiuText;

impl LineDecoder for FiuText {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut last = LastFields::new(line);
        while last.peek().is_some_and(is_hash) {
            last.next("md5")?;
        }
        let (minor, major) = (last.next("minor")?.number()?, last.next("major")?.number()?);
        let op = op(last.next("operation")?)?;
        let (blocks, block) = (last.next("blocks")?.number()?, last.next("block")?.number()?);
        let mut first = Fields::blank(last.rest());
        let arrival = first.next("time")?.number()?.time(NANOSECOND_NS)?;
        first.next("pid")?.number()?;
        first.next("process")?;
        Ok(Extent::of_blocks(block, blocks)?.request(arrival, op, device(major, minor)?))
    }
}

fn is_hash(word: &[u8]) -> bool {
    word.len() > NUMBER_DIGITS_MAX && word.iter().all(u8::is_ascii_hexdigit)
}

fn device(major: Number, minor: Number) -> Result<u32, Fault> {
    if major.value >= 1 << (u32::BITS - MINOR_BITS) {
        return Err(major.fault("above 4095"));
    }
    if minor.value >= 1 << MINOR_BITS {
        return Err(minor.fault("above 2^20 - 1"));
    }
    Ok((major.value as u32) << MINOR_BITS | minor.value as u32)
}

#[inline]
fn op(token: Token) -> Result<Op, Fault> {
    match token.text {
        b"R" => Ok(Op::Read),
        b"W" => Ok(Op::Write),
        _ => Err(token.fault("write R (read) or W (write)")),
    }
}
