//! Blocks that have changed between two scrubs, by cause.

use std::ops::Range;

use super::blocks::{block_range, sum};

/// Changed ranges of blocks.
#[derive(Debug, Clone, Default)]
pub struct ServedChanges {
    /// Clients have written there.
    pub written: Vec<Range<u64>>,
    /// Nobody has written there.
    pub silently: Vec<Range<u64>>,
    /// The server that could know has ended since.
    pub unknown: Vec<Range<u64>>,
    /// Other blocks could be read then than now.
    pub not_comparable: Vec<Range<u64>>,
}

impl ServedChanges {
    /// A line for each cause, and the ranges that need a look.
    pub fn text(&self) -> String {
        let mut text = format!("changed in regions that clients wrote: {}\n", sum(&self.written));
        text += &part("changed silently", &self.silently);
        for (cause, ranges) in [
            ("changed by an unknown cause (the server was restarted)", &self.unknown),
            ("not comparable (other blocks were read then than now)", &self.not_comparable),
        ] {
            if !ranges.is_empty() {
                text += &part(cause, ranges);
            }
        }
        text
    }
}

fn part(cause: &str, ranges: &[Range<u64>]) -> String {
    let list: String = ranges.iter().map(|range| format!("  {}\n", block_range(range))).collect();
    format!("{cause}: {}\n{list}", sum(ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_known_causes_always_named() {
        let changes = ServedChanges {
            silently: std::iter::once(2048..4096).collect(),
            ..ServedChanges::default()
        };
        let lines = "changed in regions that clients wrote: 0 B\nchanged silently: 1.00 MiB\n  2,048 blocks of 512 B from 2048 on\n";
        assert_eq!(changes.text(), lines);
    }
}
