//! Bytes of a read that have come.

use std::collections::BTreeMap;

use crate::Span;

/// Disjoint pieces, those that touch joined.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// Beginning to end.
    pieces: BTreeMap<u64, u64>,
}

impl Coverage {
    /// Adds a piece; false when some of it was there already.
    pub fn add(&mut self, span: Span) -> bool {
        let (mut start, mut end) = (span.offset, span.end());
        let before = self.pieces.range(..end).next_back();
        match before.map(|(&first, &last)| (first, last)) {
            Some((_, last)) if last > start => return false,
            Some((first, last)) if last == start => start = first,
            _ => {}
        }
        if let Some(last) = self.pieces.remove(&end) {
            end = last;
        }
        self.pieces.insert(start, end);
        true
    }

    /// Pieces that do not touch.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// True if the pieces, all of which lie in the span, cover it.
    pub fn is_whole(&self, span: Span) -> bool {
        self.pieces.len() == 1 && self.pieces.get(&span.offset) == Some(&span.end())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn coverage_pieces_match_set_of_bytes(
            parts in proptest::collection::vec((0_u64..40, 1_u32..12), 0..30),
        ) {
            let (mut coverage, mut bytes) = (Coverage::default(), BTreeSet::new());
            for (offset, length) in parts {
                let span = Span { offset, length };
                let fresh = (offset..span.end()).all(|byte| !bytes.contains(&byte));
                prop_assert_eq!(coverage.add(span), fresh, "{:?}", span);
                if fresh {
                    bytes.extend(offset..span.end());
                }
                let is_end = |byte: &&u64| !bytes.contains(&(**byte + 1));
                prop_assert_eq!(coverage.pieces(), bytes.iter().filter(is_end).count());
                let all = Span { offset: 0, length: 20 };
                let exact = bytes.len() == 20 && bytes.iter().copied().eq(0..20);
                prop_assert_eq!(coverage.is_whole(all), exact);
            }
        }

        #[test]
        fn coverage_whole_in_any_order(
            order in Just((0_u64..16).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let (mut coverage, all) = (Coverage::default(), Span { offset: 64, length: 64 });
            for (index, part) in order.iter().enumerate() {
                prop_assert!(!coverage.is_whole(all), "after {} parts", index);
                let span = Span { offset: 64 + part * 4, length: 4 };
                prop_assert!(coverage.add(span));
            }
            prop_assert!(coverage.is_whole(all));
        }
    }
}
