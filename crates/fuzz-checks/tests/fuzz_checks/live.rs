//! Answers and requests of control sockets, manifests, and extents: their saved fuzz corpora and seeded random
//! damage to them. No input panics, and a value that is written again reads the same. `cargo fuzz run
//! control_api` in `fuzz/` continues from the same corpus with the same checks, as do the other targets.

use freewheel_fuzz_checks::{blocks, control, damage, extents, manifest};

#[test]
fn a_manifest_survives_damage() {
    damage::check_corpus_and_mutations("backup_manifest", manifest::check);
}

#[test]
fn a_stream_of_blocks_survives_damage() {
    damage::check_corpus_and_mutations("task_blocks", blocks::check);
}

#[test]
fn the_control_interface_survives_damage() {
    damage::check_corpus_and_mutations("control_api", control::check);
}

#[test]
fn a_list_of_extents_survives_damage() {
    damage::check_corpus_and_mutations("extent_list", extents::check_list);
}

#[test]
fn a_file_system_survives_damage() {
    damage::check_corpus_and_mutations("ext4", extents::check_file_system);
}
