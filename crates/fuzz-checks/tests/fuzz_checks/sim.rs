//! Drive files and experiments over their saved fuzz corpora, and over seeded random damage to them.
//! None panics, and a value that is written and read again is the same. `cargo fuzz run drive_file` and
//! `cargo fuzz run experiment` in `fuzz/` start from the same corpora with the same checks.

use freewheel_fuzz_checks::{damage, drive, experiment};

#[test]
fn drive_files_survive_damage() {
    damage::check_corpus_and_mutations("drive_file", drive::check);
}

#[test]
fn experiments_survive_damage() {
    damage::check_corpus_and_mutations("experiment", experiment::check);
}
