//! Duration limits by outcome, and a scrub by the host, in words: the same in a terminal and on a page.

use freewheel_sim::RunResult;
use freewheel_units::{Bytes, grouped};

use crate::numbers::{ms, rate};

/// A subject and words about it; empty where commands carried nothing for the drive's queue.
pub(crate) fn command_rows(result: &RunResult) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let limits = &result.duration_limits;
    if limits.missed + limits.aborted() > 0 {
        let counts = [limits.missed, limits.aborted_reads, limits.aborted_writes];
        let [missed, reads, writes] = counts.map(grouped);
        let aborted = format!("aborted by limit: {reads} reads and {writes} writes");
        rows.push(("duration limits", format!("{missed} requests missed theirs; {aborted}")));
    }
    if let Some(scrub) = &result.outside_scrub {
        let aborted = match scrub.aborted {
            0 => String::new(),
            aborted => format!(", {} aborted by limit", grouped(aborted)),
        };
        let words = format!(
            "{} reads{aborted}, {}, {}; mean response {} ms",
            grouped(scrub.reads),
            Bytes::new(scrub.read_bytes).human(),
            rate(scrub.bytes_per_second()),
            ms(scrub.response.mean_ns)
        );
        rows.push(("scrub from outside", words));
    }
    rows
}
