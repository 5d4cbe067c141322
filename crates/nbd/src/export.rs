//! Offer of a server: exports, their features and their block sizes.

use thiserror::Error;

use crate::wire::{STRING_BYTES_MAX, UNFRAGMENTED_BYTES_MIN, flag};

/// Commands and flags of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Writes are refused with `EPERM`.
    pub read_only: bool,
    /// `FLUSH`.
    pub flush: bool,
    /// Force unit access, on any command that writes.
    pub fua: bool,
    /// Seeks cost time.
    pub rotational: bool,
    /// `TRIM`.
    pub trim: bool,
    /// `WRITE_ZEROES`.
    pub write_zeroes: bool,
    /// `WRITE_ZEROES` that fails at once where it would not be faster than a write. Needs
    /// `write_zeroes`.
    pub fast_zero: bool,
    /// `CACHE`.
    pub cache: bool,
    /// A flush on one connection covers all of them.
    pub multi_conn: bool,
    /// Reads in one piece on demand. Offered only under structured replies.
    pub dont_fragment: bool,
    /// `BLOCK_STATUS` of the context `base:allocation`. Offered only under structured replies. No
    /// transmission flag: it is agreed on by an option.
    pub block_status: bool,
}

impl Features {
    pub(crate) fn to_wire(self, structured: bool) -> u16 {
        let flags = self.flags();
        let set = flags.iter().filter(|(on, _)| *on).map(|(_, bit)| bit);
        let df = if structured && self.dont_fragment { flag::DF } else { 0 };
        set.fold(flag::HAS_FLAGS | df, |sum, bit| sum | bit)
    }

    /// From transmission flags; unknown ones are ignored, as the protocol asks.
    pub(crate) fn from_wire(flags: u16) -> Self {
        let has = |bit| flags & bit != 0;
        Self {
            read_only: has(flag::READ_ONLY),
            flush: has(flag::FLUSH),
            fua: has(flag::FUA),
            rotational: has(flag::ROTATIONAL),
            trim: has(flag::TRIM),
            write_zeroes: has(flag::WRITE_ZEROES),
            fast_zero: has(flag::FAST_ZERO),
            cache: has(flag::CACHE),
            multi_conn: has(flag::MULTI_CONN),
            dont_fragment: has(flag::DF),
            block_status: false,
        }
    }

    fn flags(self) -> [(bool, u16); 9] {
        [
            (self.read_only, flag::READ_ONLY),
            (self.flush, flag::FLUSH),
            (self.fua, flag::FUA),
            (self.rotational, flag::ROTATIONAL),
            (self.trim, flag::TRIM),
            (self.write_zeroes, flag::WRITE_ZEROES),
            (self.fast_zero, flag::FAST_ZERO),
            (self.cache, flag::CACHE),
            (self.multi_conn, flag::MULTI_CONN),
        ]
    }
}

/// Sizes that requests keep to, in bytes ("Size constraints").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of it. A power of two up to 65,536.
    pub minimum: u32,
    /// Requests of multiples of it are efficient. A power of two, at least 512 and `minimum`.
    pub preferred: u32,
    /// The longest payload of a read or write; at least `preferred`.
    pub payload_max: u32,
}

impl Default for BlockSizes {
    /// The protocol's defaults: any byte, 4 KiB, 32 MiB.
    fn default() -> Self {
        Self { minimum: 1, preferred: 4096, payload_max: 1 << 25 }
    }
}

impl BlockSizes {
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if !self.minimum.is_power_of_two() || self.minimum > 1 << 16 {
            return Some("the minimum block size must be a power of two up to 65536");
        }
        if !self.preferred.is_power_of_two() || self.preferred < self.minimum.max(512) {
            return Some(
                "the preferred block size must be a power of two, at least 512 and the minimum",
            );
        }
        (self.payload_max < self.preferred)
            .then_some("the longest payload must be at least the preferred block size")
    }
}

/// Something that clients can connect to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Export {
    /// Name of the export; at most 4096 bytes, no NUL. May be empty.
    pub name: String,
    /// For people; at most 4096 bytes, no NUL. May be empty.
    pub description: String,
    /// Bytes; a multiple of the minimum block size.
    pub size: u64,
    /// Commands and flags of the export.
    pub features: Features,
    /// Sizes that requests keep to; others are refused.
    pub block_sizes: BlockSizes,
    /// Turn clients away that do not ask for the block sizes (`ERR_BLOCK_SIZE_REQD`).
    pub block_sizes_required: bool,
}

/// An export that cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("export {name:?}: {fault}")]
pub struct BadExport {
    /// Name of the export.
    pub name: String,
    /// Fault, and the allowed values.
    pub fault: &'static str,
}

impl Export {
    /// Checks what the protocol asks of an export.
    pub fn check(&self) -> Result<(), BadExport> {
        match self.fault() {
            Some(fault) => Err(BadExport { name: self.name.clone(), fault }),
            None => Ok(()),
        }
    }

    fn fault(&self) -> Option<&'static str> {
        if !is_string(&self.name) {
            return Some("its name must have at most 4096 bytes and no NUL");
        }
        if !is_string(&self.description) {
            return Some("its description must have at most 4096 bytes and no NUL");
        }
        if self.features.fast_zero && !self.features.write_zeroes {
            return Some("fast_zero needs write_zeroes");
        }
        let one_piece = self.block_sizes.payload_max >= UNFRAGMENTED_BYTES_MIN;
        if self.features.dont_fragment && !one_piece {
            return Some("dont_fragment needs a longest payload of at least 65536 bytes");
        }
        let cut = "its size must be a multiple of the minimum block size";
        self.block_sizes.fault().or_else(|| (!self.whole()).then_some(cut))
    }

    fn whole(&self) -> bool {
        self.size.is_multiple_of(self.block_sizes.minimum.into())
    }
}

fn is_string(text: &str) -> bool {
    text.len() <= STRING_BYTES_MAX && !text.contains('\0')
}
