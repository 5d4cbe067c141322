//! Reading traces out of memory.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use freewheel_trace::{Format, Malformed, OpenOptions, Record, TraceError, TraceReader};
use freewheel_units::{Blocks, Op, SimTime, VolumeBlock};

pub fn reader(bytes: &[u8], format: Option<Format>, lenient: bool) -> TraceReader {
    let options = OpenOptions { format, lenient, ..OpenOptions::default() };
    TraceReader::from_reader("trace", Cursor::new(bytes.to_vec()), &options).unwrap()
}

/// The records of a clean trace whose format has to be recognised.
pub fn records(bytes: &[u8], format: Format) -> Vec<Record> {
    let mut reader = reader(bytes, None, false);
    assert_eq!(reader.format(), format);
    let records = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.skipped(), 0);
    records
}

/// Fault of the first malformed record.
pub fn malformed(bytes: &[u8], format: Format) -> Malformed {
    match reader(bytes, Some(format), false).find_map(Result::err) {
        Some(TraceError::Malformed(malformed)) => *malformed,
        other => panic!("a malformed record was expected, not {other:?}"),
    }
}

/// The records and the count of those skipped.
pub fn lenient(bytes: &[u8], format: Format) -> (Vec<Record>, u64) {
    let mut reader = reader(bytes, Some(format), true);
    let records = reader.by_ref().map(Result::unwrap).collect();
    (records, reader.skipped())
}

/// A sample of the fuzz corpus, which was made by hand.
pub fn corpus(sample: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    fs::read(folder.join(sample)).unwrap()
}

/// Checks for each line that exactly this field of it is complained about, in record 1.
pub fn assert_faults(format: Format, header: &str, faults: &[(&str, &str)]) {
    for (line, field) in faults {
        let malformed = malformed(format!("{header}{line}\n").as_bytes(), format);
        assert_eq!((malformed.field, malformed.record), (*field, 1), "{line}: {malformed}");
    }
}

pub fn record(arrival_ns: u64, op: Op, device: u32, start: u64, blocks: u64) -> Record {
    Record {
        widened: false,
        arrival: SimTime::from_ns(arrival_ns),
        op,
        device,
        start: VolumeBlock::new(start),
        blocks: Blocks::new(blocks),
        completion: None,
        fua: false,
    }
}

/// Record of bytes that were no whole blocks.
pub fn widened(record: Record) -> Record {
    Record { widened: true, ..record }
}

pub fn completed(record: Record, completion_ns: u64) -> Record {
    Record { completion: Some(SimTime::from_ns(completion_ns)), ..record }
}

/// A record of HP SRT, version 4, of one request to disk 1, section 7.
pub fn hp_record(
    sec: u32,
    usec: u32,
    stop_us: u32,
    bytes: u32,
    sector: u32,
    flags: u32,
) -> Vec<u8> {
    let dev = 0x0800_0107;
    hp_words(&[56, 0x0004_0001, sec, usec, 9, stop_us, bytes, sector, dev, 4, 1, flags, 0, 1])
}

pub fn hp_words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

pub fn hp_header(sector_bytes: u32) -> Vec<u8> {
    format!("$$TR_IOREC-1.3 (a test)\nversion = 1.3;\n\t\tsectorsize  = {sector_bytes},\n\x0c")
        .into()
}

/// A record of vSCSI version 1.
pub fn vscsi_v1(cmd: u16, bytes: u32, block: u64, us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend([7u32, bytes, 1].iter().flat_map(|word| word.to_le_bytes()));
    record.extend([cmd, 0x0100].iter().flat_map(|half| half.to_le_bytes()));
    record.extend([block, us].iter().flat_map(|long| long.to_le_bytes()));
    record
}

/// A record of vSCSI version 2.
pub fn vscsi_v2(cmd: u16, bytes: u32, block: u64, us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend([cmd, 0x0200].iter().flat_map(|half| half.to_le_bytes()));
    record.extend([7u32, bytes, 1].iter().flat_map(|word| word.to_le_bytes()));
    record.extend([block, us, 1234].iter().flat_map(|long| long.to_le_bytes()));
    record
}
