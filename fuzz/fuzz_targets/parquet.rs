#![no_main]

// libFuzzer aborts on every panic, so a panic of the Parquet library that the reader would catch
// and report as damage shows up here: look for one of ours in the backtrace.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    freewheel_fuzz::trace::check(bytes, freewheel_trace::Format::Parquet);
});
