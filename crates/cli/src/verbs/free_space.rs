//! Warnings about a file system that may have too little room.

use freewheel::measures::Bytes;
use freewheel::serving::FreeSpace;

use crate::output;

/// Remarks on it if there is less than may come; `place` is where, and `but` what that means.
pub fn note(room: Option<FreeSpace>, place: &str, but: &str) {
    let Some(FreeSpace { left, wanted }) = room.filter(FreeSpace::is_short) else { return };
    let [left, wanted] = [left, wanted].map(Bytes::capacity);
    output::note(&format!("{left} are left where {place} and {wanted} may come: {but}"));
}

/// The consequence for a file with holes that clients write to.
pub const WRITES_FAIL: &str = "when the file system is full, writes fail";
