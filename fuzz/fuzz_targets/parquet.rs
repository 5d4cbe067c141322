#![no_main]

// The reader catches panics of the Parquet library and reports them as damage, so the fuzzer lets those
// pass. Any other panic aborts, as libFuzzer's own hook would.
libfuzzer_sys::fuzz_target!(
    init: {
        let abort = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_library = panic.location().is_some_and(|at| at.file().contains("/parquet-"));
            if !is_library {
                abort(panic);
            }
        }));
    },
    |bytes: &[u8]| {
        freewheel_fuzz_checks::trace::check(bytes, freewheel_trace::Format::Parquet);
    }
);
