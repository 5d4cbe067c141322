//! Properties of a backup's manifest, for any bytes. No input panics. A manifest that is read, written
//! and read again is the same, and equals itself in a comparison.
//!
//! Goals: one body for the fuzz target and for the ordinary test over the saved corpus
//! (`tests/fuzz_checks/live.rs`).
//! Non-goals: the values of a clean manifest; tests of the crate check them.

use freewheel_live::backup::{Manifest, ManifestError, Parent};
use twox_hash::XxHash3_128;

/// Reads `bytes` as a manifest and checks what must hold. Panics otherwise. The last line need not
/// have the checksum of those before it: damage to them would go no further.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = Manifest::parse(&text);
    let body = text.rfind("end ").map_or(&*text, |at| &text[..at]);
    let sealed = format!("{body}end {:032x}\n", XxHash3_128::oneshot(body.as_bytes()));
    match Manifest::parse(&sealed) {
        Ok(manifest) => check_manifest(&manifest),
        Err(ManifestError::Line { line, .. }) => {
            assert!((1..=sealed.lines().count()).contains(&line), "line {line}");
        }
        Err(_) => {}
    }
}

/// Checks a manifest from any source.
pub fn check_manifest(manifest: &Manifest) {
    let written = manifest.text();
    assert_eq!(Manifest::parse(&written).as_ref(), Ok(manifest), "written again: {written}");
    assert_eq!(manifest.differs(manifest), Ok(Vec::new()));
    assert_eq!(manifest.changes(manifest, None), Ok(Vec::new()));
    assert!(manifest.blocks() <= manifest.wanted_blocks());
    assert!(manifest.wanted_blocks() <= manifest.range.blocks);
    // A child of it differs in that line alone.
    let parent = Parent { checksum: manifest.began_ns.into(), file: manifest.drive.clone() + "x" };
    let child = manifest.clone().based_on(parent);
    assert_eq!(Manifest::parse(&child.text()).as_ref(), Ok(&child));
    assert_eq!(child.differs(manifest), Ok(Vec::new()));
    let complete = manifest.complete();
    let mut kept = manifest.clone();
    kept.keep_complete();
    assert_eq!(kept.complete(), complete);
    let wanted = manifest.wanted_in(&complete);
    assert_eq!(kept.blocks(), wanted.iter().map(|range| range.blocks).sum::<u64>());
    // Of what has been forgotten it is not known whether it has changed.
    let changes = kept.changes(manifest, Some(&[])).expect("of the same range");
    let (first, end) =
        (manifest.range.first_block, manifest.range.first_block + manifest.range.blocks);
    for change in changes {
        let range = change.range;
        assert!(range.first_block >= first && range.first_block + range.blocks <= end);
    }
}
