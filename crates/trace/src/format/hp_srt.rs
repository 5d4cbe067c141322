//! HP's disk traces of the 1990s (SRT), as of `hplajw`, `snake` and `cello`.
//!
//! A text header up to a form feed, then big-endian records of 32-bit words:
//!
//! | word | field | |
//! |---|---|---|
//! | 0 | size | bytes of this record: 52 before version 4, 56 in it |
//! | 1 | id | upper half: version 1 to 4; lower half: 1 request, 2 request that the tracer suspects |
//! | 2, 3 | sec, usec | arrival |
//! | 4, 5 | start, stop | microseconds after the arrival: passed to the disk, done |
//! | 6 | bytes | |
//! | 7 | sector | address |
//! | 8 | dev | bits 8 to 15 the disk, bits 0 to 7 the section |
//! | 9, 10 | driver, cylinder | not read |
//! | 11 | flags | bit 0 read |
//! | 12, 13 | info, queue length | not read |
//!
//! Source: the headers of the published traces; for the length of records by version and kind,
//! the reader in DiskSim 4.0.
//!
//! Sectors have the size in the header (`sectorsize`), or 256 bytes without one. They count from the
//! start of the *disk*, not of the section. In all 44,519 records of hplajw the traced cylinder is the
//! sector divided by 904, the sectors of a cylinder, in every section. The first sector of a section is
//! not below the section's offset in the header. So the disk is the device, and the section is dropped.
//!
//! Suspect requests are malformed records: lenient reading counts and skips them. Times are made
//! relative to the first record.

use super::{Clock, Format, Row, Timing};
use crate::fault::Fault;
use crate::record::{Extent, Record, completion_after};
use crate::scan::{Number, whole_number};
use crate::source::{BinaryDecoder, BinarySource};
use freewheel_units::{Op, SimTime};

const MAGIC: &[u8] = b"$$TR_IOREC";
const HEADER_END: u8 = 0x0c;
const SECTOR_BYTES: u64 = 256;
const KIND_REQUEST: u16 = 1;
const KIND_SUSPECT: u16 = 2;
const FLAG_READ: u32 = 1;

pub(super) const ROW: Row = Row {
    format: Format::HpSrt,
    name: "hp-srt",
    description: "HP SRT: text header, then big-endian records of 52 or 56 bytes",
    rebased: true,
    clock: Clock::Absolute,
    timing: Timing::Recorded,
    unit: None,
    may_be_objects: false,
    detect: |head| head.starts_with(MAGIC),
    open: Some(|input, _| {
        let (head, decoder) = (input.head.clone(), HpSrt { sector_bytes: SECTOR_BYTES });
        Ok(Box::new(BinarySource::new(&head, input.into_stream(), decoder)?))
    }),
};

struct HpSrt {
    sector_bytes: u64,
}

impl BinaryDecoder for HpSrt {
    fn begin(&mut self, head: &[u8]) -> Result<usize, Fault> {
        let Some(end) = head.iter().position(|&byte| byte == HEADER_END) else {
            let reason = "no form feed ends the header within the first 64 KiB";
            return Err(Fault::new("header", head, reason));
        };
        self.sector_bytes = sector_bytes(&head[..end])?;
        Ok(end + 1)
    }

    fn record_bytes(&self, prefix: &[u8; 8]) -> Option<usize> {
        let [size, version, kind] = [&prefix[..4], &prefix[4..6], &prefix[6..]].map(big_endian);
        let queue_length = usize::from(version == 4);
        let suspicion = usize::from(kind == u32::from(KIND_SUSPECT));
        let is_record = (1..=4).contains(&version)
            && (kind == u32::from(KIND_REQUEST) || kind == u32::from(KIND_SUSPECT));
        // Version 4 adds a word for the queue length, and a suspect record one more. The size must
        // agree with both, which makes a false start within damaged data unlikely.
        let bytes = 4 * (13 + queue_length + suspicion);
        (is_record && size as usize == bytes).then_some(bytes)
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Record, Fault> {
        if word(1, bytes) & 0xffff == u32::from(KIND_SUSPECT) {
            return Err(Fault::number(
                "id",
                word(1, bytes),
                "the tracer marked this request as suspect",
            ));
        }
        let arrival = arrival(unsigned("sec", word(2, bytes))?, unsigned("usec", word(3, bytes))?)?;
        let stop = unsigned("stop", word(5, bytes))?;
        let completion =
            completion_after(arrival, Number { value: arrival.ns() + stop.value * 1000, ..stop })?;
        let sector = unsigned("sector", word(7, bytes))?;
        let offset = Number { value: sector.value * self.sector_bytes, ..sector };
        let extent = Extent::of_bytes(offset, unsigned("bytes", word(6, bytes))?)?;
        Ok(Record {
            arrival,
            op: if word(11, bytes) & FLAG_READ != 0 { Op::Read } else { Op::Write },
            device: word(8, bytes) >> 8 & 0xff,
            start: extent.start,
            blocks: extent.blocks,
            widened: extent.widened,
            completion: Some(completion),
            fua: false,
        })
    }
}

fn word(index: usize, bytes: &[u8]) -> u32 {
    big_endian(&bytes[4 * index..4 * index + 4])
}

/// A number of up to four bytes.
fn big_endian(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// A signed field, which must not be negative.
fn unsigned(name: &'static str, word: u32) -> Result<Number, Fault> {
    i32::try_from(word).map_err(|_| Fault::number(name, word as i32, "negative"))?;
    Ok(Number { name, value: u64::from(word) })
}

fn arrival(sec: Number, usec: Number) -> Result<SimTime, Fault> {
    if usec.value >= 1_000_000 {
        return Err(usec.fault("not below a million"));
    }
    // At most 2^31 seconds, which is 2^61 ns, so no step overflows.
    Ok(SimTime::from_ns((sec.value * 1_000_000 + usec.value) * 1000))
}

/// Sector size of all disks in the header.
fn sector_bytes(header: &[u8]) -> Result<u64, Fault> {
    let mut sizes = header.split(|&byte| byte == b'\n').filter_map(sector_size);
    let Some(first) = sizes.next() else { return Ok(SECTOR_BYTES) };
    let first = first?;
    for size in sizes {
        if size? != first {
            let reason = "the header gives disks of different sector sizes, which is not supported";
            return Err(Fault::number("sectorsize", first, reason));
        }
    }
    Ok(first)
}

/// The value in a line like `sectorsize  = 256,`.
fn sector_size(line: &[u8]) -> Option<Result<u64, Fault>> {
    let rest = line.trim_ascii().strip_prefix(b"sectorsize")?.trim_ascii().strip_prefix(b"=")?;
    let text = rest.strip_suffix(b",").unwrap_or(rest).trim_ascii();
    let size = whole_number(text).filter(|size| (1..=1 << 16).contains(size));
    Some(size.ok_or_else(|| Fault::new("sectorsize", text, "not a number from 1 to 65536")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_tells_sector_size() {
        assert_eq!(sector_bytes(b"a = 1;\n\tsectorsize  = 512,\n"), Ok(512));
        assert_eq!(sector_bytes(b"a = 1;\n"), Ok(256));
        assert!(sector_bytes(b"sectorsize = 256,\nsectorsize = 512,\n").is_err());
        assert!(sector_bytes(b"sectorsize = 0,\n").is_err());
        assert!(sector_bytes(b"sectorsize = big,\n").is_err());
    }
}
