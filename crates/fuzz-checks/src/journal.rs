//! Properties of an extraction's journal, for any bytes. No input panics. A journal that is read,
//! written and read again is the same. A journal without its end has the answers of its beginning.
//!
//! Goals: one body for the fuzz target and for the ordinary test over the saved corpus
//! (`tests/fuzz_checks/extract.rs`).
//! Non-goals: the results of an extraction; tests of the crate check them.

use freewheel_extract::{JournalEntry, JournalError, JournalHead, read_journal};
use freewheel_units::SimTime;

/// That of the samples.
pub const HEAD: JournalHead = JournalHead { blocks: 17_942_304, seed: 1, writes: true };
/// Places at which a journal is cut off.
const CUTS: usize = 16;

/// Reads `bytes` as a journal and checks what must hold. Panics otherwise.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let entries: Vec<JournalEntry> = match read_journal(&text, &HEAD) {
        Ok(entries) => entries.into(),
        Err(JournalError::Line { line, .. }) => {
            return assert!((1..=text.lines().count()).contains(&line), "line {line}");
        }
        Err(JournalError::Other { .. }) => return,
    };
    check_order(&entries);
    let mut written = HEAD.line() + "\n";
    entries.iter().for_each(|entry| written += &(entry.line() + "\n"));
    assert_eq!(read_journal(&written, &HEAD), Ok(entries.clone().into()), "written again");
    for cut in 0..CUTS {
        let kept = &written[..written.len() * cut / CUTS];
        let read: Vec<JournalEntry> = read_journal(kept, &HEAD).expect("cut off").into();
        assert!(entries.starts_with(&read), "{} bytes", kept.len());
    }
}

/// A command is sent after the answer to the one before.
fn check_order(entries: &[JournalEntry]) {
    let (mut session, mut now) = (0, SimTime::ZERO);
    for entry in entries {
        assert!(entry.session >= session, "{entry:?} is of an earlier session");
        assert!(now <= entry.sent && entry.sent <= entry.end, "{entry:?} comes before {now:?}");
        (session, now) = (entry.session, entry.end);
    }
}
