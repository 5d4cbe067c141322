//! Properties of lenience over clean input.

use freewheel_trace::Format;
use proptest::prelude::*;

/// A clean SPC trace; the first record is the earliest, and sizes are whole blocks, or it is not recognised.
fn clean_spc() -> impl Strategy<Value = String> {
    let line = (0u32..4, 0u64..1 << 40, 1u64..1 << 11, any::<bool>(), 0u64..1000, 0u32..1 << 20);
    let line = line.prop_map(|(asu, lba, blocks, is_read, seconds, fraction)| {
        let size = blocks * 512;
        let op = if is_read { 'r' } else { 'W' };
        format!("{asu},{lba},{size},{op},{seconds}.{fraction}\n")
    });
    let lines = prop::collection::vec(line, 0..50);
    lines.prop_map(|lines| format!("0,0,512,r,0\n{}", lines.concat()))
}

proptest! {
    #[test]
    fn strict_and_lenient_agree_when_clean(text in clean_spc()) {
        let strict = crate::common::records(text.as_bytes(), Format::Spc);
        let (lenient, skipped) = crate::common::lenient(text.as_bytes(), Format::Spc);
        prop_assert_eq!(strict.len(), text.lines().count());
        prop_assert_eq!(strict, lenient);
        prop_assert_eq!(skipped, 0);
    }
}
