//! Devices and kinds of requests as Linux's block layer prints them: `8,16` and `FWFSM`.
//!
//! Source: `blk_fill_rwbs` in Linux's `kernel/trace/blktrace.c`.

use freewheel_units::{Blocks, Op, SimTime};

use crate::fault::Fault;
use crate::record::Extent;
use crate::scan::Token;
use crate::source::{BlockEvent, Stage, Transfer};

const MINOR_BITS: u32 = 20;

/// The device: its major number times 2^20 plus its minor number.
pub(super) fn device(token: Token) -> Result<u32, Fault> {
    let mut parts = token.text.split(|&byte| byte == b',');
    let mut part = || parts.next().and_then(|text| Token { text, ..token }.number().ok());
    match (part(), part()) {
        (Some(major), Some(minor)) if major.value < 1 << 12 && minor.value < 1 << MINOR_BITS => {
            Ok((major.value as u32) << MINOR_BITS | minor.value as u32)
        }
        _ => Err(token.fault("not the two numbers of a device, as in 8,16")),
    }
}

/// Meaning of the letters of a kind.
pub(super) struct Kind {
    pub op: Option<Op>,
    /// True if the drive's cache is flushed before.
    pub flushes: bool,
    pub fua: bool,
}

pub(super) fn kind(rwbs: Token) -> Result<Kind, Fault> {
    if !rwbs.text.iter().all(u8::is_ascii_uppercase) {
        return Err(rwbs.fault("not the letters of a kind, as R, WS or FWFS"));
    }
    let (flushes, rest) = match rwbs.text.strip_prefix(b"F") {
        Some(rest) => (true, rest),
        None => (false, rwbs.text),
    };
    let op = match rest.first() {
        Some(b'R') => Some(Op::Read),
        Some(b'W') => Some(Op::Write),
        Some(b'D') => Some(Op::Trim),
        _ => None,
    };
    Ok(Kind { op, flushes, fua: op.is_some() && rest[1..].contains(&b'F') })
}

/// The event of this kind; `None` where it is about no request. A request of several commands ends with a
/// completion of no blocks.
pub(super) fn block_event(
    (time, device): (SimTime, u32),
    stage: Stage,
    kind: &Kind,
    extent: Option<Extent>,
) -> Option<BlockEvent> {
    let is_empty = extent.is_some_and(|extent| extent.blocks == Blocks::ZERO);
    let (stage, extent) = match (is_empty, stage) {
        (true, Stage::Completed) if kind.op.is_some() => (Stage::Ended, extent),
        (true, stage) => (stage, None),
        (false, stage) => (stage, extent),
    };
    let data = kind.op.zip(extent).map(|(op, extent)| Transfer { op, extent, fua: kind.fua });
    let flushes = kind.flushes;
    (data.is_some() || flushes).then_some(BlockEvent { time, device, stage, data, flushes })
}
