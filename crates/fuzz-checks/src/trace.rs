//! Properties of any bytes at all that are read as a trace, whichever parser reads them.
//!
//! Goals: one body for the fuzz targets and for the ordinary test over the saved corpus
//! (`tests/fuzz_checks/trace.rs`).
//! Non-goals: whether a clean trace is read right; the tests of each format show that.

use std::io::{Cursor, Write};

use freewheel_trace::{
    DATA_BLOCKS_MAX, Format, OpenOptions, REQUEST_BLOCKS_MAX, Record, TraceError, TraceReader,
    VOLUME_BLOCKS_MAX,
};
use freewheel_units::Op;

/// Reads `bytes` as `format`, strictly and leniently, and checks what must hold. Panics otherwise.
pub fn check(bytes: &[u8], format: Format) {
    let _ = Format::detect(bytes);
    let (strict, strict_error) = drain(bytes, format, false);
    let (lenient, lenient_error) = drain(bytes, format, true);
    // Strict reading ends at a malformed record, before those that wait for an earlier one are delivered.
    if strict_error.is_none() {
        assert!(strict == lenient, "lenience changes a clean trace");
    }
    for records in [&strict, &lenient] {
        assert!(records.is_sorted_by_key(|record| record.arrival), "records are out of order");
    }
    if let Some(TraceError::Malformed(malformed)) = lenient_error {
        assert_eq!(malformed.record, 0, "lenient reading stops at a record: {malformed}");
    }
    lenient.iter().for_each(check_record);
}

fn drain(bytes: &[u8], format: Format, lenient: bool) -> (Vec<Record>, Option<TraceError>) {
    let mut reader = match open(bytes, format, lenient) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut records = Vec::new();
    for record in reader.by_ref() {
        match record {
            Ok(record) => records.push(record),
            Err(error) => return (records, Some(error)),
        }
    }
    assert!(reader.next().is_none(), "the iterator continues after its end");
    (records, None)
}

fn open(bytes: &[u8], format: Format, lenient: bool) -> Result<TraceReader, TraceError> {
    // Spreading is part of what must hold.
    let spread = Some(1);
    let options = OpenOptions { format: Some(format), lenient, spread, ..OpenOptions::default() };
    if format != Format::Parquet {
        return TraceReader::from_reader("fuzz", Cursor::new(bytes.to_vec()), &options);
    }
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("a temporary file can be written");
    TraceReader::open(file.path(), &options)
}

fn check_record(record: &Record) {
    assert!(record.end().get() <= VOLUME_BLOCKS_MAX, "{record:?}");
    let most = if record.op.moves_data() { DATA_BLOCKS_MAX } else { REQUEST_BLOCKS_MAX };
    assert!(record.blocks.get() <= most, "{record:?}");
    assert_eq!(record.blocks.get() == 0, record.op == Op::Flush, "{record:?}");
    assert!(record.completion.is_none_or(|completion| completion >= record.arrival), "{record:?}");
}
