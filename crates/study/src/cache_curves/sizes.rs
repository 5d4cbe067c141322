//! Sizes of caches: as given, or a ladder up to what the trace touches.

use std::fmt;
use std::str::FromStr;

use freewheel_units::Bytes;
use serde::{Serialize, Serializer};
use thiserror::Error;

/// Unit of the caches. Evictions and the footprint are counted in such cache blocks.
pub(super) const CACHE_BLOCK_BYTES: u64 = 4096;

/// The first size of a ladder, unless the footprint is small.
const LADDER_FROM_BYTES: u64 = 1 << 20;
/// Most sizes of a ladder.
const LADDER_SIZES: u32 = 12;

/// Fewer steps from the first usual size on show no curve.
const LADDER_STEPS_MIN: u32 = 3;

/// A share of a whole, above 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Share(f64);

/// The size of a cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CacheSize {
    /// This much memory.
    Memory(Bytes),
    /// A share of the footprint: the distinct blocks of 4 KiB that the trace reads or writes. A trace does not
    /// tell how much storage is allocated.
    OfFootprint(Share),
}

/// A text is no size of a cache, or no share.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ParseCacheSizeError {
    #[error("{reason}; a share of the trace's footprint ends in %, as `1%`")]
    Size {
        /// Fault of the text as a number of bytes.
        reason: String,
    },
    #[error("`{text}` is no share: write a number above 0 and at most 100 with %, as `1%`")]
    Share { text: String },
}

impl Share {
    /// A share of a whole; None unless it is above 0 and at most 1.
    pub fn new(share: f64) -> Option<Self> {
        (share > 0.0 && share <= 1.0).then_some(Self(share))
    }

    /// The share as a number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A share that was read from a percentage prints as that percentage.
        let percent = (self.0 * 1e8).round() / 1e6;
        write!(out, "{percent}%")
    }
}

impl FromStr for Share {
    type Err = ParseCacheSizeError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
        let share = number.and_then(|percent: f64| Self::new(percent / 100.0));
        share.ok_or_else(|| ParseCacheSizeError::Share { text: text.into() })
    }
}

impl fmt::Display for CacheSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(bytes) => bytes.fmt(out),
            Self::OfFootprint(share) => share.fmt(out),
        }
    }
}

impl FromStr for CacheSize {
    type Err = ParseCacheSizeError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().ends_with('%') {
            return text.parse().map(Self::OfFootprint);
        }
        let bytes = text.parse::<Bytes>();
        bytes
            .map(Self::Memory)
            .map_err(|error| ParseCacheSizeError::Size { reason: format!("{error}") })
    }
}

impl Serialize for CacheSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl CacheSize {
    pub(super) fn bytes(self, footprint_bytes: u64) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.get(),
            Self::OfFootprint(share) => (footprint_bytes as f64 * share.get()) as u64,
        }
    }

    /// In cache blocks: rounded down, at least one. Err with the bytes where these are too many to count.
    fn cache_blocks(self, footprint_bytes: u64) -> Result<u32, Bytes> {
        let bytes = self.bytes(footprint_bytes);
        let blocks = u32::try_from(bytes / CACHE_BLOCK_BYTES).ok();
        // The largest number of slots is no slot's number.
        let blocks = blocks.filter(|&blocks| blocks < u32::MAX);
        blocks.map(|blocks| blocks.max(1)).ok_or(Bytes::new(bytes))
    }
}

/// The capacities of these sizes in cache blocks, ascending, each once. Err names a size that is too large.
pub(super) fn capacities(sizes: &[CacheSize], footprint_bytes: u64) -> Result<Vec<u32>, Bytes> {
    let all = sizes.iter().map(|size| size.cache_blocks(footprint_bytes));
    let mut all = all.collect::<Result<Vec<_>, _>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// At most twelve powers of two of cache blocks, from 1 MiB to the first that holds the whole footprint. A small
/// footprint has a ladder that begins lower.
pub(super) fn ladder(footprint_bytes: u64) -> Vec<u32> {
    let all = footprint_bytes.div_ceil(CACHE_BLOCK_BYTES).clamp(1, 1 << 31);
    let last = all.next_power_of_two().ilog2();
    let usual = (LADDER_FROM_BYTES / CACHE_BLOCK_BYTES).ilog2();
    let first = if last >= usual + LADDER_STEPS_MIN {
        usual
    } else {
        last.saturating_sub(LADDER_SIZES - 1)
    };
    let steps = (last - first).clamp(1, LADDER_SIZES - 1);
    let mut powers: Vec<u32> =
        (0..=steps).map(|step| first + ((last - first) * step + steps / 2) / steps).collect();
    powers.dedup();
    powers.into_iter().map(|power| 1 << power).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn ladder_doubles_from_1_mib_to_everything() {
        let mib = |footprint: u64| -> Vec<u64> {
            ladder(footprint).iter().map(|&blocks| u64::from(blocks) * 4096 / MIB).collect()
        };
        assert_eq!(mib(512 * MIB), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
        assert_eq!(
            mib(16 * 1024 * MIB - 1),
            [1, 2, 8, 16, 32, 64, 256, 512, 1024, 2048, 8192, 16_384]
        );
        // The last one holds the footprint, the one before does not.
        for footprint in [MIB * 1024 + 1, MIB * 2048, MIB * 1024 * 5000] {
            let sizes = mib(footprint);
            assert!(sizes[0] == 1 && sizes.len() == 12, "{sizes:?}");
            assert!(sizes[11] * MIB >= footprint && sizes[10] * MIB < footprint, "{sizes:?}");
        }
    }

    #[test]
    fn ladder_of_small_footprint_below_1_mib() {
        assert_eq!(ladder(16 * 1024), [1, 2, 4]);
        assert_eq!(ladder(0), [1]);
        assert_eq!(ladder(4 * MIB)[..3], [1, 2, 4]);
        assert_eq!(ladder(8 * MIB), [256, 512, 1024, 2048]);
    }

    #[test]
    fn sizes_are_bytes_or_footprint_shares() {
        let sizes = ["64MiB", "1%", "5000B", "1B", "8KB"].map(|text| text.parse().unwrap());
        assert_eq!(capacities(&sizes, 100 * MIB), Ok(vec![1, 256, 16_384]));
        let printed = sizes.map(|size: CacheSize| size.to_string());
        assert_eq!(printed, ["64MiB", "1%", "5KB", "1B", "8KB"]);
        let large = CacheSize::Memory(Bytes::new(1 << 44));
        assert_eq!(capacities(&[large], 0), Err(Bytes::new(1 << 44)));
    }

    #[test]
    fn sizes_refused_say_how_written() {
        let error = |text: &str| text.parse::<CacheSize>().unwrap_err().to_string();
        assert!(error("64").contains("has no unit") && error("64").ends_with("as `1%`"));
        for text in ["0%", "101%", "x%", "NaN%", "-1%", "%"] {
            assert!(error(text).starts_with(&format!("`{text}` is no share")), "{text}");
        }
        assert_eq!("0.1%".parse::<Share>().unwrap().to_string(), "0.1%");
    }
}
