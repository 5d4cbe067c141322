//! The name of a manifest whose backup was killed between the names of its two files.

use std::path::Path;

use freewheel_trace::{Others, open_own};
use freewheel_units::BLOCK_BYTES;
use rustix::fs::{FlockOperation, flock};

use super::error::BackupError;
use super::files::{give_name, manifest_of, partial, read_record, record, sync_folder};
use super::manifest::Manifest;

/// Gives the manifest of a complete copy its name if the copy alone has its own. Returns whether it was so.
pub fn name_manifest(out: &Path) -> Result<bool, BackupError> {
    let Ok(image) = open_own(out, false, Others::Nothing) else { return Ok(false) };
    // Until its maker has named both.
    if flock(&image, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    if is_there(&manifest_of(out)) || is_there(&partial(out)) {
        return Ok(false);
    }
    let Ok(Some(text)) = read_record(&record(out)) else { return Ok(false) };
    let is_of = |manifest: &Manifest| {
        let bytes = manifest.range.blocks * BLOCK_BYTES;
        manifest.has_all() && image.metadata().is_ok_and(|image| image.len() == bytes)
    };
    if !Manifest::parse(&text).is_ok_and(|manifest| is_of(&manifest)) {
        return Ok(false);
    }
    give_name(&record(out), &manifest_of(out))?;
    sync_folder(out)?;
    Ok(true)
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
