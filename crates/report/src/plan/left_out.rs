//! What of a web server's log is left out.

use freewheel_trace::LeftOut;
use freewheel_units::grouped;

/// A sentence for it; none where every line counts.
pub(super) fn left_out(lines: Option<LeftOut>) -> Option<String> {
    let LeftOut { other_methods, other_statuses, without_bytes, malformed } = lines?;
    let parts = [
        (other_statuses, "answers other than 200"),
        (other_methods, "requests other than GET"),
        (without_bytes, "answers without a byte"),
        (malformed, "lines that break the format"),
    ];
    let there = parts.into_iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> =
        there.map(|(count, what)| format!("{} {what}", grouped(count))).collect();
    (!words.is_empty()).then(|| format!("Left out of the log: {}.", words.join(", ")))
}
