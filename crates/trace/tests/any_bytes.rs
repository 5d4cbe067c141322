//! Properties of every parser over arbitrary input, and of lenience over clean input.

mod common;

use freewheel_trace::Format;
use proptest::prelude::*;

#[path = "../../../fuzz/src/trace.rs"]
mod fuzz;

fn stream_formats() -> impl Strategy<Value = Format> {
    let formats = Format::ALL.into_iter().filter(|format| *format != Format::Parquet);
    prop::sample::select(formats.collect::<Vec<_>>())
}

/// Lines of small numbers, words and separators: near enough to a trace to go deep.
fn trace_like_text() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        "[0-9]{1,20}",
        "[0-9]{1,5}\\.[0-9]{0,12}",
        "R|W|F|T|r|w|Read|Write|0|1|512|4096",
    ];
    let line = (prop::collection::vec(field, 1..9), prop::sample::select(&[",", " ", "\t"]));
    let line = line.prop_map(|(fields, separator)| fields.join(separator));
    prop::collection::vec(line, 0..30).prop_map(|lines| lines.join("\n"))
}

/// A clean SPC trace; the first record is the earliest.
fn clean_spc() -> impl Strategy<Value = String> {
    let line = (0u32..4, 0u64..1 << 40, 1u64..1 << 20, any::<bool>(), 0u64..1000, 0u32..1 << 20);
    let line = line.prop_map(|(asu, lba, size, is_read, seconds, fraction)| {
        let op = if is_read { 'r' } else { 'W' };
        format!("{asu},{lba},{size},{op},{seconds}.{fraction}\n")
    });
    let lines = prop::collection::vec(line, 0..50);
    lines.prop_map(|lines| format!("0,0,512,r,0\n{}", lines.concat()))
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_always_end(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        format in stream_formats(),
    ) {
        fuzz::check(&bytes, format);
    }

    #[test]
    fn text_like_a_trace_never_panics_and_always_ends(
        text in trace_like_text(),
        format in stream_formats(),
    ) {
        fuzz::check(text.as_bytes(), format);
    }

    #[test]
    fn strict_and_lenient_reading_agree_on_clean_input(text in clean_spc()) {
        let strict = common::records(text.as_bytes(), Format::Spc);
        let (lenient, skipped) = common::lenient(text.as_bytes(), Format::Spc);
        prop_assert_eq!(strict.len(), text.lines().count());
        prop_assert_eq!(strict, lenient);
        prop_assert_eq!(skipped, 0);
    }
}
