//! Parts of a drive that have been read, in any order.

use std::collections::BTreeMap;

use super::ranges::ByteRange;

/// Bytes by their places. Parts that follow on each other are read as one.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    parts: BTreeMap<u64, Vec<u8>>,
}

impl Parts {
    /// Adds what is at a place, each byte once.
    pub fn insert(&mut self, offset_bytes: u64, data: Vec<u8>) {
        self.parts.insert(offset_bytes, data);
    }

    /// These bytes, if all of them are there.
    pub fn get(&self, range: ByteRange) -> Option<Vec<u8>> {
        let (mut at, mut bytes) = (range.offset_bytes, Vec::new());
        while at < range.end() {
            let (start, data) = self.parts.range(..=at).next_back()?;
            let there = data.get((at - start) as usize..).filter(|data| !data.is_empty())?;
            let more = there.len().min((range.end() - at) as usize);
            bytes.extend_from_slice(&there[..more]);
            at += more as u64;
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_sequence_read_as_one() {
        let mut parts = Parts::default();
        parts.insert(20, vec![3, 4]);
        parts.insert(17, vec![0, 1, 2]);
        assert_eq!(parts.get(ByteRange::new(18, 4)), Some(vec![1, 2, 3, 4]));
        assert_eq!(parts.get(ByteRange::new(18, 5)), None);
        assert_eq!(parts.get(ByteRange::new(16, 2)), None);
        parts.insert(24, vec![9]);
        assert_eq!(parts.get(ByteRange::new(20, 5)), None, "across a hole");
    }
}
