//! The journal of an extraction over its saved fuzz corpus, and over seeded random damage to it:
//! no input panics, and every journal that is read has its commands in order. `cargo fuzz run extraction_journal` in
//! `fuzz/` continues from the same corpus with the same checks.

use freewheel_fuzz_checks::{damage, journal};

#[test]
fn clean_sample_has_current_version() {
    let text = include_str!("../../../../fuzz/corpus/extraction_journal/plain");
    assert_eq!(freewheel_extract::read_journal(text, &journal::HEAD).unwrap().len(), 5);
}

#[test]
fn journal_survives_damage() {
    damage::check_corpus_and_mutations("extraction_journal", journal::check);
}
