//! Both sessions over their saved fuzz corpora, and over seeded random damage to them: they never
//! panic, it makes no difference how a stream is cut, and what comes out is valid.
//! `cargo fuzz run nbd_server` in `fuzz/` goes on from the same corpus with the same checks.
#![allow(missing_docs)]

#[path = "../../../fuzz/src/damage.rs"]
mod damage;
#[path = "../../../fuzz/src/nbd.rs"]
mod nbd;

use proptest::prelude::*;

#[test]
fn the_server_survives_damage() {
    damage::check_corpus_and_mutations("nbd_server", nbd::check_server);
}

#[test]
fn the_client_survives_damage() {
    damage::check_corpus_and_mutations("nbd_client", nbd::check_client);
}

proptest! {
    #[test]
    fn the_sessions_survive_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        nbd::check_server(&bytes);
        nbd::check_client(&bytes);
    }
}
