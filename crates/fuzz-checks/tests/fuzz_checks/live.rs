//! Answers and requests of control sockets, manifests, and extents: their saved fuzz corpora and seeded random
//! damage to them. No input panics, and a value that is written again reads the same. `cargo fuzz run
//! control_api` in `fuzz/` continues from the same corpus with the same checks, as do the other targets.

use freewheel_fuzz_checks::{blocks, control, damage, extents, manifest};

#[test]
fn manifest_survives_damage() {
    damage::check_corpus_and_mutations("backup_manifest", manifest::check);
}

#[test]
fn block_stream_survives_damage() {
    damage::check_corpus_and_mutations("task_blocks", blocks::check);
}

#[test]
fn control_interface_survives_damage() {
    damage::check_corpus_and_mutations("control_api", control::check);
}

#[test]
fn extent_list_survives_damage() {
    damage::check_corpus_and_mutations("extent_list", extents::check_list);
}

#[test]
fn file_system_survives_damage() {
    damage::check_corpus_and_mutations("ext4", extents::check_file_system);
}
