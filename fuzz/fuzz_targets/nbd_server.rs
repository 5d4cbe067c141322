#![no_main]

#[path = "../src/nbd.rs"]
mod nbd;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nbd::check_server(bytes));
