//! Replies to requests, as headers: the data go beside them.

use crate::command::{Frame, Span};
use crate::wire::{ALLOCATION_ID, CHUNK_MAGIC, EXTENTS_MAX, SIMPLE_REPLY_MAGIC, chunk, cmd, cut};
use crate::{Errno, Extent, Head};

/// Makes the replies to one request, on any thread. A request is answered by one call of
/// [`done`](Self::done), [`data`](Self::data), [`status`](Self::status) or [`error`](Self::error),
/// or by [`chunks`](Self::chunks) to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    cookie: u64,
    span: Span,
    kind: u16,
    structured: bool,
}

impl Ticket {
    #[inline]
    pub(super) fn new(frame: &Frame, structured: bool) -> Self {
        Self { cookie: frame.cookie, span: frame.span, kind: frame.kind, structured }
    }

    /// The client's number for the request.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Success without data. Panics for a read and a block status, whose success has data.
    #[inline]
    pub fn done(self) -> Head {
        assert!(
            !matches!(self.kind, cmd::READ | cmd::BLOCK_STATUS),
            "success of this command has data"
        );
        self.simple(0)
    }

    /// Success of a read: what to send before its data, all of them. Panics for other commands.
    #[inline]
    pub fn data(self) -> Head {
        assert_eq!(self.kind, cmd::READ, "only a read is answered with data");
        if !self.structured {
            return self.simple(0);
        }
        self.data_chunk(self.span, true)
    }

    /// Failure. The text is for people; what is beyond 4096 bytes of it is left out, and all of it
    /// without structured replies.
    pub fn error(self, errno: Errno, text: &str) -> Vec<u8> {
        if !self.structured {
            return self.simple(errno.code()).to_vec();
        }
        self.error_chunk(chunk::ERROR, chunk::DONE, errno, text, &[])
    }

    /// The answer to a block status: extents one after the other from the span's beginning. Panics
    /// for other commands, without a extent, and for extents that are empty or begin beyond the span.
    /// When one extent was asked for, give one, no longer than the span. What is beyond 2^20 of them
    /// is left out, and asked for again.
    pub fn status(self, extents: &[Extent]) -> Vec<u8> {
        assert_eq!(self.kind, cmd::BLOCK_STATUS, "only a block status is answered with extents");
        let extents = &extents[..extents.len().min(EXTENTS_MAX as usize)];
        assert!(!extents.is_empty(), "a block status has at least one extent");
        let mut out = self
            .chunk_head(chunk::BLOCK_STATUS, chunk::DONE, 4 + 8 * extents.len() as u32)
            .to_vec();
        out.extend(ALLOCATION_ID.to_be_bytes());
        let mut before = 0;
        for extent in extents {
            assert!(extent.length > 0 && before < u64::from(self.span.length), "{extent:?}");
            out.extend(extent.length.to_be_bytes());
            out.extend(extent.flags().to_be_bytes());
            before += u64::from(extent.length);
        }
        out
    }

    /// Answers a read in pieces. `None` without structured replies: then use [`data`](Self::data).
    /// Not for reads that ask not to be fragmented.
    pub fn chunks(self) -> Option<Chunks> {
        let structured = self.structured && self.kind == cmd::READ;
        structured.then_some(Chunks { ticket: self, next: self.span.offset, failed: false })
    }

    #[inline]
    fn simple(self, code: u32) -> Head {
        Head::of(&[
            &SIMPLE_REPLY_MAGIC.to_be_bytes(),
            &code.to_be_bytes(),
            &self.cookie.to_be_bytes(),
        ])
    }

    #[inline]
    fn chunk_head(self, kind: u16, flags: u16, length: u32) -> [u8; 20] {
        let mut head = [0; 20];
        head[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
        head[4..6].copy_from_slice(&flags.to_be_bytes());
        head[6..8].copy_from_slice(&kind.to_be_bytes());
        head[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        head[16..].copy_from_slice(&length.to_be_bytes());
        head
    }

    #[inline]
    fn data_chunk(self, span: Span, last: bool) -> Head {
        let flags = if last { chunk::DONE } else { 0 };
        let head = self.chunk_head(chunk::OFFSET_DATA, flags, 8 + span.length);
        Head::of(&[&head, &span.offset.to_be_bytes()])
    }

    fn error_chunk(self, kind: u16, flags: u16, errno: Errno, text: &str, rest: &[u8]) -> Vec<u8> {
        let text = cut(text);
        let length = 6 + text.len() + rest.len();
        let mut out = self.chunk_head(kind, flags, length as u32).to_vec();
        out.extend(errno.code().to_be_bytes());
        out.extend((text.len() as u16).to_be_bytes());
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(rest);
        out
    }
}

/// A read answered in pieces, in the order of their addresses.
#[derive(Debug)]
#[must_use = "the client waits for the last chunk"]
pub struct Chunks {
    ticket: Ticket,
    next: u64,
    failed: bool,
}

impl Chunks {
    /// Data follow, of this many bytes. Panics when it is none, or more than is left of the read.
    pub fn data(&mut self, length: u32) -> Head {
        let span = self.advance(length);
        self.ticket.data_chunk(span, false)
    }

    /// This many bytes are zeroes. Panics as [`data`](Self::data).
    pub fn hole(&mut self, length: u32) -> Head {
        let span = self.advance(length);
        let head = self.ticket.chunk_head(chunk::OFFSET_HOLE, 0, 12);
        Head::of(&[&head, &span.offset.to_be_bytes(), &span.length.to_be_bytes()])
    }

    /// Reading failed at the next byte: this many bytes are passed over.
    /// Panics as [`data`](Self::data).
    pub fn error(&mut self, length: u32, errno: Errno, text: &str) -> Vec<u8> {
        let offset = self.advance(length).offset.to_be_bytes();
        self.failed = true;
        self.ticket.error_chunk(chunk::ERROR_OFFSET, 0, errno, text, &offset)
    }

    /// The last chunk. Panics when bytes are missing and no error was told.
    pub fn end(self) -> Head {
        let complete = self.next == self.ticket.span.end();
        assert!(complete || self.failed, "not all of the read was answered");
        Head::of(&[&self.ticket.chunk_head(chunk::NONE, chunk::DONE, 0)])
    }

    fn advance(&mut self, length: u32) -> Span {
        let span = Span { offset: self.next, length };
        let fits = length > 0 && span.end() <= self.ticket.span.end();
        assert!(fits, "{length} bytes at {} are not in the read", self.next);
        self.next = span.end();
        span
    }
}
