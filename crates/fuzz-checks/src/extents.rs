//! Properties of extents, for any bytes as a list of them or as a file system. No input panics. Extents
//! are apart from each other and end where they must.
//!
//! Goals: one body for the fuzz targets and for the ordinary test over the saved corpora
//! (`tests/fuzz_checks/live.rs`).
//! Non-goals: the extents of clean input; tests of the crate check them.

use freewheel_live::extents::{Allocated, ByteRange, Extents, FileSystemError, Parts};

/// Size of the drive.
const DRIVE_BYTES: u64 = 8 << 20;

/// First byte of a superblock.
const SUPERBLOCK: usize = 1024;

/// Reads `bytes` as a list of extents and checks what must hold. Panics otherwise.
pub fn check_list(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Extents::parse(&text, DRIVE_BYTES) {
        Ok(extents) => check_extents(&extents),
        Err(error) => assert!((1..=text.lines().count()).contains(&error.line), "{error}"),
    }
}

/// Reads `bytes`, with zeros behind them, as a file system from its superblock on, and checks what must
/// hold. Panics otherwise.
pub fn check_file_system(bytes: &[u8]) {
    if let Ok(found) = Allocated::find(DRIVE_BYTES, |extents| -> Result<Parts, FileSystemError> {
        check_extents(extents);
        let mut parts = Parts::default();
        for range in extents.ranges() {
            let data =
                (range.offset_bytes..range.end()).map(|at| byte(at, bytes).copied().unwrap_or(0));
            parts.insert(range.offset_bytes, data.collect());
        }
        Ok(parts)
    }) {
        assert!(found.size_bytes <= DRIVE_BYTES);
        check_extents(&found.extents);
        check_extents(&found.metadata);
    }
}

fn byte(at: u64, bytes: &[u8]) -> Option<&u8> {
    (at as usize).checked_sub(SUPERBLOCK).and_then(|at| bytes.get(at))
}

fn check_extents(extents: &Extents) {
    let ends = extents.ranges().iter().map(|range| range.end());
    let starts = extents.ranges().iter().skip(1).map(|range| range.offset_bytes);
    assert!(ends.zip(starts).all(|(end, start)| end < start), "{extents:?}");
    let end = extents.ranges().last().map_or(0, |last| last.end());
    assert!(end <= DRIVE_BYTES, "{extents:?}");
    let whole = extents.widened(4096, ByteRange::new(0, DRIVE_BYTES));
    assert!(whole.bytes() >= extents.bytes());
    assert_eq!(whole.widened(4096, ByteRange::new(0, DRIVE_BYTES)), whole);
}
