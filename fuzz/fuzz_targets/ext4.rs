#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| freewheel_fuzz_checks::extents::check_file_system(bytes));
