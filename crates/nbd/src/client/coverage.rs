//! Which bytes of a read have come.

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

    /// Whether it is all of this, given that it is nothing beyond.
    pub fn is_whole(&self, span: Span) -> bool {
        self.pieces.len() == 1 && self.pieces.get(&span.offset) == Some(&span.end())
    }
}
