//! The importer over its saved fuzz corpus, and over seeded random damage to it. The importer never
//! panics, and a drive that it makes builds. `cargo fuzz run disksim_files` in `fuzz/` starts from the
//! same corpus with the same checks.

use freewheel_fuzz_checks::{damage, disksim};

#[test]
fn importer_survives_damage() {
    damage::check_corpus_and_mutations("disksim_files", disksim::check);
}
