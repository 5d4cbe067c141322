//! Numbers of the protocol, and the two ways bytes become values: out of a stream that comes in
//! pieces, and out of a message that is complete.

/// First eight bytes of a server: `NBDMAGIC`.
pub(crate) const SERVER_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second eight bytes of a newstyle server, and the first of every option: `IHAVEOPT`.
pub(crate) const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Second eight bytes of an oldstyle server.
pub(crate) const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
pub(crate) const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Flags of the greeting and of the client's answer to it: the same two bits both ways.
pub(crate) const FIXED_NEWSTYLE: u16 = 1 << 0;
pub(crate) const NO_ZEROES: u16 = 1 << 1;

/// Zero bytes after the answer to `EXPORT_NAME`, unless both sides do without.
pub(crate) const EXPORT_NAME_ZEROES: usize = 124;

/// Longest string that the protocol allows, in bytes.
pub const STRING_BYTES_MAX: usize = 4096;
/// A payload up to this length is no attack, under any agreed maximum ("Size constraints").
pub(crate) const PAYLOAD_BYTES_TOLERATED: u32 = 1 << 25;
/// Longest data of one chunk: their offset is counted in the chunk's length.
pub(crate) const CHUNK_DATA_BYTES_MAX: u32 = u32::MAX - 8;
/// Most extents that a server should send at once.
pub(crate) const EXTENTS_MAX: u32 = 1 << 20;
/// A read up to here must be possible in one piece (`NBD_CMD_FLAG_DF`).
pub(crate) const UNFRAGMENTED_BYTES_MIN: u32 = 1 << 16;

/// Answers of the server to an option.
pub(crate) mod rep {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERROR_BIT: u32 = 1 << 31;
}

/// Information of `INFO` and `GO` about an export.
pub(crate) mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

pub(crate) mod flag {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const FLUSH: u16 = 1 << 2;
    pub const FUA: u16 = 1 << 3;
    pub const ROTATIONAL: u16 = 1 << 4;
    pub const TRIM: u16 = 1 << 5;
    pub const WRITE_ZEROES: u16 = 1 << 6;
    pub const DF: u16 = 1 << 7;
    pub const MULTI_CONN: u16 = 1 << 8;
    pub const CACHE: u16 = 1 << 10;
    pub const FAST_ZERO: u16 = 1 << 11;
}

pub(crate) mod cmd {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

pub(crate) mod cmd_flag {
    pub const FUA: u16 = 1 << 0;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Types of chunks of structured replies.
pub(crate) mod chunk {
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR_BIT: u16 = 1 << 15;
    pub const ERROR: u16 = ERROR_BIT + 1;
    pub const ERROR_OFFSET: u16 = ERROR_BIT + 2;
    /// The flag of the last chunk of a reply.
    pub const DONE: u16 = 1 << 0;
}

/// The one metadata context of the protocol itself.
pub(crate) const BASE_ALLOCATION: &str = "base:allocation";
/// Our number for it. Any would do.
pub(crate) const ALLOCATION_ID: u32 = 1;

/// Gathers a message of known length from a stream that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    held: Vec<u8>,
}

impl Inbox {
    /// The next `N` bytes once all have come. A part of them is kept until the next call, which must ask for
    /// the same number.
    #[inline]
    pub fn array<const N: usize>(&mut self, bytes: &mut &[u8]) -> Option<[u8; N]> {
        if self.held.is_empty()
            && let Some((now, rest)) = bytes.split_first_chunk::<N>()
        {
            *bytes = rest;
            return Some(*now);
        }
        if !self.gather(bytes, N) {
            return None;
        }
        let whole = self.held.first_chunk::<N>().copied();
        self.held.clear();
        whole
    }

    /// The next `length` bytes once all have come; as [`array`](Self::array).
    pub fn vec(&mut self, bytes: &mut &[u8], length: usize) -> Option<Vec<u8>> {
        self.gather(bytes, length).then(|| std::mem::take(&mut self.held))
    }

    /// True if no byte of a message has come yet.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    fn gather(&mut self, bytes: &mut &[u8], length: usize) -> bool {
        let missing = length - self.held.len();
        let (now, rest) = bytes.split_at(missing.min(bytes.len()));
        self.held.extend_from_slice(now);
        *bytes = rest;
        self.held.len() == length
    }
}

/// Drops up to `left` bytes of the stream, and returns how many are still to come.
pub(crate) fn skip(bytes: &mut &[u8], left: u32) -> u32 {
    let now = bytes.len().min(left as usize);
    *bytes = &bytes[now..];
    left - now as u32
}

/// As much of a text as the protocol lets a string have.
pub(crate) fn cut(text: &str) -> &str {
    let mut end = text.len().min(STRING_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads a complete message from its beginning; `None` where it is too short.
pub(crate) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (now, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*now)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (now, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(now)
    }
}
