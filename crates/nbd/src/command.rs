//! Requests: their commands, their form on the wire, and their validity.

use crate::wire::{CHUNK_DATA_BYTES_MAX, REQUEST_MAGIC, cmd, cmd_flag};
use crate::{BlockSizes, Errno, Features};

/// A piece of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Span {
    pub offset: u64,
    pub length: u32,
}

impl Span {
    /// One past the last byte. Panics beyond 2^64, which no valid request reaches.
    pub fn end(self) -> u64 {
        self.offset + u64::from(self.length)
    }
}

/// Extent of an export in an answer of `BLOCK_STATUS` (context `base:allocation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// Bytes; not zero.
    pub length: u32,
    /// Not allocated.
    pub hole: bool,
    /// Reads as zeroes.
    pub zero: bool,
}

impl Extent {
    pub(crate) fn flags(self) -> u32 {
        u32::from(self.hole) | u32::from(self.zero) << 1
    }

    pub(crate) fn from_wire(length: u32, flags: u32) -> Self {
        Self { length, hole: flags & 1 != 0, zero: flags & 2 != 0 }
    }
}

/// Command of a request. `DISC` is not among them: it has no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Command {
    /// Data, please.
    Read {
        span: Span,
        /// In one piece (`DF`).
        dont_fragment: bool,
    },
    /// Data to keep.
    Write {
        span: Span,
        /// On the media before the reply.
        fua: bool,
    },
    /// All writes that were replied to are to be on the media before the reply.
    Flush,
    /// These data are no longer needed.
    Trim {
        span: Span,
        /// On the media before the reply.
        fua: bool,
    },
    /// These data will be needed.
    Cache { span: Span },
    /// These are to read as zeroes.
    WriteZeroes {
        span: Span,
        /// On the media before the reply.
        fua: bool,
        /// Allocated, so that later writes find space.
        no_hole: bool,
        /// Fail with `NotSup` at once where it is not faster than a write.
        fast: bool,
    },
    /// Reports allocated and zero parts.
    BlockStatus {
        span: Span,
        /// One extent only, no longer than the span.
        one: bool,
    },
}

impl Command {
    /// A read, which the server may split.
    pub fn read(offset: u64, length: u32) -> Self {
        Command::Read { span: Span { offset, length }, dont_fragment: false }
    }

    /// A write that a later flush makes durable.
    pub fn write(offset: u64, length: u32) -> Self {
        Command::Write { span: Span { offset, length }, fua: false }
    }

    /// The piece that it is about; empty for a flush.
    pub fn span(&self) -> Span {
        match *self {
            Command::Read { span, .. }
            | Command::Write { span, .. }
            | Command::Trim { span, .. }
            | Command::Cache { span }
            | Command::WriteZeroes { span, .. }
            | Command::BlockStatus { span, .. } => span,
            Command::Flush => Span::default(),
        }
    }

    /// As it stands on the wire.
    pub(crate) fn frame(&self, cookie: u64) -> Frame {
        let (kind, flags) = match *self {
            Command::Read { dont_fragment, .. } => (cmd::READ, bit(dont_fragment, cmd_flag::DF)),
            Command::Write { fua, .. } => (cmd::WRITE, bit(fua, cmd_flag::FUA)),
            Command::Flush => (cmd::FLUSH, 0),
            Command::Trim { fua, .. } => (cmd::TRIM, bit(fua, cmd_flag::FUA)),
            Command::Cache { .. } => (cmd::CACHE, 0),
            Command::WriteZeroes { fua, no_hole, fast, .. } => {
                let flags = bit(fua, cmd_flag::FUA) | bit(no_hole, cmd_flag::NO_HOLE);
                (cmd::WRITE_ZEROES, flags | bit(fast, cmd_flag::FAST_ZERO))
            }
            Command::BlockStatus { one, .. } => (cmd::BLOCK_STATUS, bit(one, cmd_flag::REQ_ONE)),
        };
        Frame { flags, kind, cookie, span: self.span() }
    }
}

fn bit(on: bool, flag: u16) -> u16 {
    if on { flag } else { 0 }
}

/// The header of a request, valid or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub flags: u16,
    pub kind: u16,
    pub cookie: u64,
    pub span: Span,
}

impl Frame {
    pub const BYTES: usize = 28;

    /// The frame after its magic, or the magic that was there instead.
    #[inline]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, u32> {
        let at = |index: usize, length: usize| &bytes[index..index + length];
        match u32::from_be_bytes(at(0, 4).try_into().unwrap_or_default()) {
            REQUEST_MAGIC => Ok(Self {
                flags: u16::from_be_bytes(at(4, 2).try_into().unwrap_or_default()),
                kind: u16::from_be_bytes(at(6, 2).try_into().unwrap_or_default()),
                cookie: u64::from_be_bytes(at(8, 8).try_into().unwrap_or_default()),
                span: Span {
                    offset: u64::from_be_bytes(at(16, 8).try_into().unwrap_or_default()),
                    length: u32::from_be_bytes(at(24, 4).try_into().unwrap_or_default()),
                },
            }),
            magic => Err(magic),
        }
    }

    #[inline]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.span.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.span.length.to_be_bytes());
        bytes
    }
}

/// Rules that the two sides agreed on: they decide which requests are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RequestRules {
    pub size: u64,
    pub features: Features,
    pub block_sizes: BlockSizes,
    pub structured: bool,
    /// A metadata context was chosen.
    pub block_status: bool,
}

/// A request that is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub errno: Errno,
    pub reason: &'static str,
}

fn refuse<T>(errno: Errno, reason: &'static str) -> Result<T, Refusal> {
    Err(Refusal { errno, reason })
}

impl RequestRules {
    /// The command of a frame, if it is valid.
    pub fn admit(&self, frame: &Frame) -> Result<Command, Refusal> {
        self.admit_kind(frame.kind)?;
        self.admit_flags(frame)?;
        self.admit_span(frame)?;
        let (span, has) = (frame.span, |flag| frame.flags & flag != 0);
        let fua = has(cmd_flag::FUA);
        Ok(match frame.kind {
            cmd::READ => Command::Read { span, dont_fragment: has(cmd_flag::DF) },
            cmd::WRITE => Command::Write { span, fua },
            cmd::FLUSH => Command::Flush,
            cmd::TRIM => Command::Trim { span, fua },
            cmd::CACHE => Command::Cache { span },
            cmd::WRITE_ZEROES => Command::WriteZeroes {
                span,
                fua,
                no_hole: has(cmd_flag::NO_HOLE),
                fast: has(cmd_flag::FAST_ZERO),
            },
            _ => Command::BlockStatus { span, one: has(cmd_flag::REQ_ONE) },
        })
    }

    fn admit_kind(&self, kind: u16) -> Result<(), Refusal> {
        let features = &self.features;
        if features.read_only && matches!(kind, cmd::WRITE | cmd::TRIM | cmd::WRITE_ZEROES) {
            return refuse(Errno::Perm, "the export is read-only");
        }
        let offered = match kind {
            cmd::READ | cmd::WRITE => true,
            cmd::FLUSH => features.flush,
            cmd::TRIM => features.trim,
            cmd::CACHE => features.cache,
            cmd::WRITE_ZEROES => features.write_zeroes,
            cmd::BLOCK_STATUS => self.block_status,
            _ => return refuse(Errno::Inval, "there is no such command"),
        };
        if offered { Ok(()) } else { refuse(Errno::Inval, "this command was not offered") }
    }

    /// Force unit access is valid on every command where it was offered, the others on theirs.
    fn admit_flags(&self, frame: &Frame) -> Result<(), Refusal> {
        let features = &self.features;
        let fua = if features.fua { cmd_flag::FUA } else { 0 };
        let own = match frame.kind {
            cmd::READ if features.dont_fragment && self.structured => cmd_flag::DF,
            cmd::WRITE_ZEROES if features.fast_zero => cmd_flag::NO_HOLE | cmd_flag::FAST_ZERO,
            cmd::WRITE_ZEROES => cmd_flag::NO_HOLE,
            cmd::BLOCK_STATUS => cmd_flag::REQ_ONE,
            _ => 0,
        };
        match frame.flags & !(fua | own) {
            0 => Ok(()),
            _ => refuse(Errno::Inval, "a flag is not valid with this command"),
        }
    }

    fn admit_span(&self, frame: &Frame) -> Result<(), Refusal> {
        let Span { offset, length } = frame.span;
        if frame.kind == cmd::FLUSH {
            let empty = offset == 0 && length == 0;
            let fault = "offset and length of a flush must be zero";
            return if empty { Ok(()) } else { refuse(Errno::Inval, fault) };
        }
        if length == 0 {
            // The protocol leaves open what an empty request does.
            return refuse(Errno::Inval, "the length is zero");
        }
        if offset.checked_add(u64::from(length)).is_none_or(|end| end > self.size) {
            let writes = matches!(frame.kind, cmd::WRITE | cmd::WRITE_ZEROES);
            let errno = if writes { Errno::NoSpc } else { Errno::Inval };
            return refuse(errno, "it ends beyond the end of the export");
        }
        let minimum = self.block_sizes.minimum;
        if !offset.is_multiple_of(u64::from(minimum)) || !length.is_multiple_of(minimum) {
            return refuse(Errno::Inval, "it is not aligned to the minimum block size");
        }
        // A service may do CACHE as a read, so its data must fit into memory as well.
        let takes_memory = matches!(frame.kind, cmd::READ | cmd::WRITE | cmd::CACHE);
        if takes_memory && length > self.block_sizes.payload_max.min(CHUNK_DATA_BYTES_MAX) {
            let chunked = frame.kind == cmd::READ && self.structured;
            let errno = if chunked { Errno::Overflow } else { Errno::Inval };
            return refuse(errno, "it is longer than the longest payload");
        }
        Ok(())
    }
}
