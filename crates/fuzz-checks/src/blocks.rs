//! Properties of a client's reading of a task's blocks, for any bytes. No input panics, and cuts of the
//! stream make no difference. A stream that is read, written and read again is the same. The manifest
//! made of it is readable.
//!
//! Goals: one body for the fuzz target and for the ordinary test over the saved corpus
//! (`tests/fuzz_checks/live.rs`).
//! Non-goals: the values of a clean stream; tests of the crate check them.

use freewheel_live::backup::Manifest;
use freewheel_live::control::{BlockRange, NotARecord, Record, Records};

use crate::manifest::check_manifest;

const MAGIC: &str = "freewheel-blocks 1\n";
/// Range that the client has asked for: neither whole regions nor all of the drive.
const RANGE: BlockRange = BlockRange { first_block: 1000, blocks: 9000 };

/// Reads `bytes` as a stream of blocks and checks what must hold. Panics otherwise.
pub fn check(bytes: &[u8]) {
    let (records, error) = read(bytes, bytes.len().max(1));
    for piece in [1, 13, 511] {
        let other = read(bytes, piece);
        assert_eq!((&records, &error), (&other.0, &other.1), "pieces of {piece} bytes");
    }
    let mut written = MAGIC.as_bytes().to_vec();
    for record in &records {
        written.extend(record.line().as_bytes());
        if let Record::Data { data, .. } = record {
            written.extend(data);
        }
    }
    assert_eq!(read(&written, 4096), (records.clone(), None), "written again");
    let mut manifest = Manifest::new("fuzz", RANGE, "1", 0);
    for record in &records {
        if manifest.take(record).is_err() {
            break;
        }
    }
    check_manifest(&manifest);
}

fn read(bytes: &[u8], piece: usize) -> (Vec<Record>, Option<NotARecord>) {
    let (mut reader, mut records) = (Records::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        reader.push(piece);
        loop {
            match reader.next_record() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => break,
                Err(error) => return (records, Some(error)),
            }
        }
    }
    (records, None)
}
