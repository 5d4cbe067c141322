//! Images of file systems for the tests of their readers.

use std::ops::Range;

use freewheel_units::Prng;

use super::file_system::{Allocated, FileSystemError, between};
use super::parts::Parts;
use super::ranges::{ByteRange, Extents};

/// An image, and the blocks that are free on it.
pub(super) struct Image {
    pub bytes: Vec<u8>,
    /// First and last blocks.
    free: Vec<(u64, u64)>,
}

impl Image {
    /// An image with the lines `FIRST-LAST` of its free blocks.
    pub fn new(compressed: &[u8], free: &str) -> Self {
        Self {
            bytes: zstd::decode_all(compressed).unwrap(),
            free: free
                .lines()
                .map(|row| {
                    let (first, last) = row.split_once('-').unwrap();
                    (first.parse().unwrap(), last.parse().unwrap())
                })
                .collect(),
        }
    }

    pub fn allocated(&self) -> Result<Allocated, FileSystemError> {
        Allocated::find(self.bytes.len() as u64, |ranges: &Extents| {
            let mut parts = Parts::default();
            for range in ranges.ranges() {
                let data = self.bytes.get(range.offset_bytes as usize..range.end() as usize);
                data.into_iter().for_each(|data| parts.insert(range.offset_bytes, data.to_vec()));
            }
            Ok(parts)
        })
    }

    /// Bytes that are not free, of blocks of this size.
    pub fn expected(&self, block_bytes: u64, size_bytes: u64) -> Extents {
        between(
            &Extents::new(
                self.free
                    .iter()
                    .map(|(first, last)| {
                        ByteRange::new(first * block_bytes, (last + 1 - first) * block_bytes)
                    })
                    .collect(),
            ),
            ByteRange::new(0, size_bytes),
        )
    }

    /// Damages bytes at these places: what is found lies in the file system, or there is an error.
    pub fn damage_anywhere(mut self, places: &[Range<usize>], times: usize) {
        let mut prng = Prng::new(3, "damage");
        for _ in 0..times {
            let mut undo = Vec::new();
            for _ in 0..1 + prng.below(6) {
                let place = &places[prng.below(places.len() as u64) as usize];
                let at = place.start + prng.below(place.len() as u64) as usize;
                undo.push((at, self.bytes[at]));
                self.bytes[at] = prng.below(256) as u8;
            }
            if let Ok(allocated) = self.allocated() {
                let end = allocated.extents.ranges().last().map_or(0, |range| range.end());
                assert!(end <= allocated.size_bytes);
            }
            for (at, byte) in undo.into_iter().rev() {
                self.bytes[at] = byte;
            }
        }
    }
}
