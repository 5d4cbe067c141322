//! Numbers of blocks and of bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::grouped;
use crate::parse::{ParseQuantityError, Units, format_quantity, parse_quantity, quantity_text};

/// Bytes in a block. Every address and block count in Freewheel is in blocks of this size;
/// a drive whose media sectors are larger still answers to them, as 512e drives do.
pub const BLOCK_BYTES: u64 = 512;

const BYTE_UNITS: Units = Units {
    table: &[
        ("B", 1),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ],
    allowed: "B, KiB, MiB, GiB, TiB, KB, MB, GB, TB",
    smallest: "bytes",
    example: "KiB",
};

/// A number of blocks of 512 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Blocks(u64);

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Blocks {
    /// No blocks.
    pub const ZERO: Self = Self(0);

    /// `count` blocks.
    #[inline]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// Number of blocks.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Their size.
    #[inline]
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 * BLOCK_BYTES)
    }
}

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    #[inline]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// `count` KiB.
    pub const fn from_kib(count: u64) -> Self {
        Self(count << 10)
    }

    /// Number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Blocks that hold this many bytes, the last perhaps only in part.
    #[inline]
    pub const fn blocks_rounded_up(self) -> Blocks {
        Blocks(self.0.div_ceil(BLOCK_BYTES))
    }

    /// Text for people: three significant digits in binary units, not exact.
    pub fn human(self) -> String {
        self.three_digits(1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
    }

    /// Like [`Self::human`] in decimal units, as makers of drives count.
    pub fn human_decimal(self) -> String {
        self.three_digits(1000.0, &["B", "KB", "MB", "GB", "TB", "PB"])
    }

    /// A drive's capacity in decimal units with three decimals, as data sheets give it.
    pub fn capacity(self) -> String {
        let (unit, name) = if self.0 >= 1_000_000_000_000 { (1e12, "TB") } else { (1e9, "GB") };
        format!("{:.3} {name}", self.0 as f64 / unit)
    }

    fn three_digits(self, step: f64, names: &[&str]) -> String {
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= step && unit + 1 < names.len() {
            value /= step;
            unit += 1;
        }
        let decimals = if unit == 0 || value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        format!("{value:.decimals$} {}", names[unit])
    }
}

impl Add for Blocks {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Blocks {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Blocks {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("negative block count"))
    }
}

impl Sum for Blocks {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} blocks", grouped(self.0))
    }
}

impl fmt::Display for Bytes {
    /// Exact, in the unit that makes the shortest text.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&format_quantity(self.0, BYTE_UNITS.table))
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_quantity(text, &BYTE_UNITS).map(Self)
    }
}

quantity_text!(Bytes, r"^[0-9_.]+ ?(B|[KMGT]i?B)$", "a size", "64KiB");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn binary_and_decimal_units_differ() {
        assert_eq!("64KiB".parse(), Ok(Bytes::new(65_536)));
        assert_eq!("64KB".parse(), Ok(Bytes::new(64_000)));
        assert_eq!("1.5 MiB".parse(), Ok(Bytes::new(1_572_864)));
    }

    #[test]
    fn block_count_rounds_up() {
        assert_eq!(Bytes::new(513).blocks_rounded_up(), Blocks::new(2));
        assert_eq!(Bytes::ZERO.blocks_rounded_up(), Blocks::ZERO);
    }

    #[test]
    fn size_prints_as_people_write() {
        let text = |bytes| Bytes::new(bytes).to_string();
        assert_eq!(text(9_100_000_000), "9.1GB");
        assert_eq!(text(65_536), "64KiB");
        assert_eq!(text(512), "512B");
    }

    proptest! {
        #[test]
        fn size_round_trips_through_text(count: u64) {
            let bytes = Bytes::new(count);
            prop_assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
    }
}
