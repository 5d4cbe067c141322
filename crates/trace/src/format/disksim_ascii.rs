//! DiskSim's default text format: `ms device block blocks flags`, between blanks.
//!
//! Source: DiskSim 4.0 reference manual, section on input traces. Blocks have 512 bytes. `flags` is
//! hexadecimal; its bit 0 set means read. Times stay as they are: DiskSim's clock starts at 0 for any
//! first arrival.
//!
//! Detection requires a decimal point in at least one of the first times. MQSim uses the same columns
//! with times in whole nanoseconds (see `mqsim`). People write other units there: `five_columns`.

use super::{Clock, Format, Row, Timing, five_columns};
use crate::fault::Fault;
use crate::record::{Extent, Record};
use crate::scan::{Fields, TimeUnit, Token};
use crate::source::{LineDecoder, LineSource, most_lines_parse};
use freewheel_units::Op;

pub(super) const ROW: Row = Row {
    format: Format::DisksimAscii,
    name: "disksim-ascii",
    description: "text: arrival in ms, device, block, blocks (512 B), flags in hex (bit 0 read)",
    rebased: false,
    clock: Clock::FromStart,
    timing: Timing::Recorded,
    unit: Some(|head, is_named| {
        five_columns::unit(head, TimeUnit::Milliseconds, &five_columns::OF_A_DISK, is_named)
    }),
    may_be_objects: false,
    detect: |head| has_fractions(head) && most_lines_parse(head, &mut { IN_MS }),
    open: Some(|input, how| {
        let decoder = DisksimAscii { unit: how.unit };
        Ok(Box::new(LineSource::new(input.into_stream(), decoder)))
    }),
};

struct DisksimAscii {
    unit: TimeUnit,
}

const IN_MS: DisksimAscii = DisksimAscii { unit: TimeUnit::Milliseconds };

impl LineDecoder for DisksimAscii {
    fn parse(&mut self, line: &[u8]) -> Result<Record, Fault> {
        let mut fields = Fields::blank(line);
        let arrival = fields.next("arrival_ms")?.time(self.unit)?;
        let device = fields.next("device")?.number()?.to_u32()?;
        let (start, count) = (fields.next("block")?.number()?, fields.next("blocks")?.number()?);
        let extent = Extent::of_blocks(start, count)?;
        let op = op(fields.next("flags")?)?;
        fields.end()?;
        Ok(extent.request(arrival, op, device))
    }
}

fn op(flags: Token) -> Result<Op, Fault> {
    let digits = flags.text.strip_prefix(b"0x").unwrap_or(flags.text);
    match digits.last() {
        Some(&last) if digits.len() <= 8 && digits.iter().all(u8::is_ascii_hexdigit) => {
            Ok(if is_odd_digit(last) { Op::Read } else { Op::Write })
        }
        _ => Err(flags.fault("not a hexadecimal number of at most 8 digits")),
    }
}

/// Only the last hexadecimal digit holds bit 0.
fn is_odd_digit(digit: u8) -> bool {
    // ASCII `1`, `3` and so on are odd codes of odd digits. ASCII `a` is an odd code too, but of the
    // even digit 10: the parity flips for letters.
    (digit & 1 == 1) == digit.is_ascii_digit()
}

/// True if a time has a decimal point.
pub(super) fn has_fractions(head: &[u8]) -> bool {
    let times = head.split(|&byte| byte == b'\n').map(|line| Fields::blank(line).next("time"));
    times.flatten().any(|time| time.text.contains(&b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_bit_0_tells_reads() {
        for value in 0..16 {
            let want = if value & 1 == 1 { Op::Read } else { Op::Write };
            for text in [format!("{value:x}"), format!("{value:X}"), format!("0x4{value:x}")] {
                let token = Token { name: "flags", text: text.as_bytes() };
                assert_eq!(op(token), Ok(want), "{text}");
            }
        }
    }
}
