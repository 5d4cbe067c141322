//! Addresses of blocks: of one drive, and of a volume. Two types, so that they cannot be mixed.

use std::fmt;
use std::ops::Add;

use serde::{Deserialize, Serialize};

use crate::Blocks;

/// A number of a block of 512 bytes, on a drive or on a volume: for code that serves both.
pub trait BlockAddress: Copy + Ord + fmt::Debug + Add<Blocks, Output = Self> {
    /// The block with this number.
    fn from_number(number: u64) -> Self;
    /// The block's number.
    fn number(self) -> u64;
}

macro_rules! block_address {
    ($(#[$doc:meta])* $type:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $type(u64);

        impl $type {
            /// The first block.
            pub const ZERO: Self = Self(0);

            /// The block with this number.
            #[inline]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The block's number.
            #[inline]
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl BlockAddress for $type {
            #[inline]
            fn from_number(number: u64) -> Self {
                Self(number)
            }

            #[inline]
            fn number(self) -> u64 {
                self.0
            }
        }

        impl Add<Blocks> for $type {
            type Output = Self;
            #[inline]
            fn add(self, count: Blocks) -> Self {
                Self(self.0 + count.get())
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

block_address!(
    /// Logical block number on one drive, in blocks of 512 bytes.
    Lbn,
    "lbn "
);
block_address!(
    /// Block of a volume, which may lie on several drives, in blocks of 512 bytes.
    VolumeBlock,
    "block "
);
