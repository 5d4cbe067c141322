//! Both sessions over their saved fuzz corpora, and over seeded random damage to them. The sessions never
//! panic, return only valid events, and treat a stream the same in any pieces. `cargo fuzz run
//! nbd_server` in `fuzz/` continues from the same corpus with the same checks.

use freewheel_fuzz_checks::{damage, nbd};
use proptest::prelude::*;

#[test]
fn server_survives_damage() {
    damage::check_corpus_and_mutations("nbd_server", nbd::check_server);
}

#[test]
fn client_survives_damage() {
    damage::check_corpus_and_mutations("nbd_client", nbd::check_client);
}

proptest! {
    #[test]
    fn sessions_survive_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        nbd::check_server(&bytes);
        nbd::check_client(&bytes);
    }
}
