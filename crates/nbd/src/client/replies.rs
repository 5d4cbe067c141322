//! Replies to requests, in any order, their chunks joined.

use super::coverage::Coverage;
use super::{Event, Failure, Reply, Session, State};
use crate::command::{Command, Extent, Span};
use crate::violation::{unexpected, wrong_length};
use crate::wire::{CHUNK_MAGIC, Cursor, EXTENTS_MAX, SIMPLE_REPLY_MAGIC, STRING_BYTES_MAX, chunk};
use crate::{Errno, Violation};

/// Longest error chunk that is taken: its text, and a few fields that may follow it.
const ERROR_BYTES_MAX: u32 = STRING_BYTES_MAX as u32 + 256;

/// A request that waits for its reply.
#[derive(Debug)]
pub(super) struct Pending {
    pub command: Command,
    pub buffer: Vec<u8>,
    coverage: Coverage,
    contents: u32,
    extents: Vec<Extent>,
    failure: Option<Failure>,
}

impl Pending {
    pub fn new(command: Command, buffer: Vec<u8>) -> Self {
        Self {
            command,
            buffer,
            coverage: Coverage::default(),
            contents: 0,
            extents: Vec::new(),
            failure: None,
        }
    }

    fn is_read(&self) -> bool {
        matches!(self.command, Command::Read { .. })
    }
}

/// Position of the session in a reply.
#[derive(Debug, Clone, Copy)]
pub(super) enum Receiving {
    /// The 16 bytes with which every reply begins.
    Head,
    Length(Chunk),
    /// The offset of data.
    Offset(Chunk),
    /// Data into the buffer of this request.
    Data {
        cookie: u64,
        at: usize,
        left: u32,
        last: bool,
    },
    /// A chunk that is taken as a whole.
    Body(Chunk),
}

/// The header of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    cookie: u64,
    kind: u16,
    last: bool,
    length: u32,
}

impl Chunk {
    fn is_error(&self) -> bool {
        self.kind & chunk::ERROR_BIT != 0
    }
}

impl Session {
    #[inline]
    pub(super) fn receive(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        let State::Transmission(receiving) = self.state else { return Ok(false) };
        match receiving {
            Receiving::Head => {
                let Some(head) = self.inbox.array::<16>(bytes) else { return Ok(false) };
                self.reply_head(&head)?;
            }
            Receiving::Length(chunk) => {
                let Some(length) = self.inbox.array(bytes) else { return Ok(false) };
                self.chunk_length(Chunk { length: u32::from_be_bytes(length), ..chunk })?;
            }
            Receiving::Offset(chunk) => {
                let Some(offset) = self.inbox.array(bytes) else { return Ok(false) };
                let span = Span { offset: u64::from_be_bytes(offset), length: chunk.length - 8 };
                let at = self.content(&chunk, span)?;
                let Chunk { cookie, last, .. } = chunk;
                self.go_on(Receiving::Data { cookie, at, left: span.length, last });
            }
            Receiving::Data { cookie, left: 0, last, .. } => {
                self.go_on(Receiving::Head);
                if last {
                    self.finish(cookie)?;
                }
            }
            Receiving::Data { .. } => return Ok(self.copy_data(bytes)),
            Receiving::Body(chunk) => {
                let length = chunk.length as usize;
                let Some(body) = self.inbox.vec(bytes, length) else { return Ok(false) };
                self.go_on(Receiving::Head);
                self.chunk_body(&chunk, &body)?;
                if chunk.last {
                    self.finish(chunk.cookie)?;
                }
            }
        }
        Ok(true)
    }

    fn go_on(&mut self, receiving: Receiving) {
        self.state = State::Transmission(receiving);
    }

    fn copy_data(&mut self, bytes: &mut &[u8]) -> bool {
        let Some(space) = self.space() else { return false };
        let (now, rest) = bytes.split_at(space.len().min(bytes.len()));
        space[..now.len()].copy_from_slice(now);
        *bytes = rest;
        self.filled(now.len());
        !now.is_empty()
    }

    fn pending(&mut self, cookie: u64) -> Result<&mut Pending, Violation> {
        match self.pending.get_mut(&cookie) {
            Some(pending) => Ok(pending),
            None => unexpected(
                format!("a reply with cookie {cookie:#x}"),
                "the cookie of a request in flight",
            ),
        }
    }

    fn reply_head(&mut self, head: &[u8; 16]) -> Result<(), Violation> {
        let mut head = Cursor(head);
        let magic = head.u32().unwrap_or(0);
        let (first, cookie) = (head.u32().unwrap_or(0), head.u64().unwrap_or(0));
        match magic {
            SIMPLE_REPLY_MAGIC => self.simple_reply(cookie, first),
            CHUNK_MAGIC if self.terms.structured => {
                self.pending(cookie)?;
                let (flags, kind) = ((first >> 16) as u16, first as u16);
                let last = flags & chunk::DONE != 0;
                self.go_on(Receiving::Length(Chunk { cookie, kind, last, length: 0 }));
                Ok(())
            }
            CHUNK_MAGIC => unexpected("a chunk of a structured reply", "simple replies"),
            found => {
                let expected = if self.terms.structured { CHUNK_MAGIC } else { SIMPLE_REPLY_MAGIC };
                let (expected, found) = (expected.into(), found.into());
                Err(Violation::Magic { what: "a reply", expected, found })
            }
        }
    }

    fn simple_reply(&mut self, cookie: u64, code: u32) -> Result<(), Violation> {
        let structured = self.terms.structured;
        let pending = self.pending(cookie)?;
        let has_data = pending.is_read() || matches!(pending.command, Command::BlockStatus { .. });
        if structured && (pending.is_read() || has_data && code == 0) {
            return unexpected("a simple reply to a command with data", "chunks");
        }
        if code != 0 {
            let errno = Errno::from_code(code);
            pending.failure = Some(Failure { errno, message: String::new(), offset: None });
            return self.finish(cookie);
        }
        if !pending.is_read() {
            return self.finish(cookie);
        }
        let span = pending.command.span();
        pending.coverage.add(span);
        self.go_on(Receiving::Data { cookie, at: 0, left: span.length, last: true });
        Ok(())
    }

    /// Checks that a chunk is one that the request may have.
    fn chunk_length(&mut self, chunk: Chunk) -> Result<(), Violation> {
        let Chunk { cookie, kind, last, length } = chunk;
        let command = self.pending(cookie)?.command;
        let (expected, fits, next) = match (kind, command) {
            (chunk::NONE, _) if !last => {
                return unexpected("an empty chunk that is not the last", "the flag DONE with it");
            }
            (chunk::NONE, _) => ("0".into(), length == 0, Receiving::Body(chunk)),
            (chunk::OFFSET_DATA, Command::Read { span, .. }) => {
                let most = u64::from(span.length) + 8;
                let fits = length > 8 && u64::from(length) <= most;
                (format!("9 to {most}"), fits, Receiving::Offset(chunk))
            }
            (chunk::OFFSET_HOLE, Command::Read { .. }) => {
                ("12".into(), length == 12, Receiving::Body(chunk))
            }
            (chunk::BLOCK_STATUS, Command::BlockStatus { .. }) => {
                let count = length.saturating_sub(4) / 8;
                let fits = length % 8 == 4 && (1..=EXTENTS_MAX).contains(&count);
                (
                    format!("4 and 8 for each of 1 to {EXTENTS_MAX} extents"),
                    fits,
                    Receiving::Body(chunk),
                )
            }
            (kind, command) if !chunk.is_error() => {
                let found = format!("a chunk of type {kind} in reply to {command:?}");
                return unexpected(found, "a type that belongs to the command");
            }
            _ => {
                let least = if kind == chunk::ERROR_OFFSET { 14 } else { 6 };
                let fits = (least..=ERROR_BYTES_MAX).contains(&length);
                (format!("{least} to {ERROR_BYTES_MAX}"), fits, Receiving::Body(chunk))
            }
        };
        if !fits {
            return wrong_length("a chunk of a reply", expected, length);
        }
        self.go_on(next);
        Ok(())
    }

    /// Notes that this part of a read comes; returns where in the buffer it goes.
    fn content(&mut self, chunk: &Chunk, part: Span) -> Result<usize, Violation> {
        let most = self.settings.limits.fragments_max;
        let pending = self.pending(chunk.cookie)?;
        let span = pending.command.span();
        let end = part.offset.checked_add(part.length.into());
        if part.offset < span.offset || end.is_none_or(|end| end > span.end()) {
            let found = format!("{} bytes at {}", part.length, part.offset);
            return unexpected(
                found,
                format!("a part of {} bytes at {}", span.length, span.offset),
            );
        }
        pending.contents += 1;
        let whole = matches!(pending.command, Command::Read { dont_fragment: true, .. });
        if whole && pending.contents > 1 {
            return unexpected("a second part of a read", "one, as the flag DF asks");
        }
        if !pending.coverage.add(part) {
            let found = format!("{} bytes at {}", part.length, part.offset);
            return unexpected(found, "parts that do not overlap with earlier ones");
        }
        if pending.coverage.pieces() > most as usize {
            return Err(Violation::TooMany { what: "parts of a read apart", limit: most });
        }
        Ok((part.offset - span.offset) as usize)
    }

    fn chunk_body(&mut self, chunk: &Chunk, body: &[u8]) -> Result<(), Violation> {
        match chunk.kind {
            chunk::NONE => Ok(()),
            chunk::OFFSET_HOLE => self.hole(chunk, body),
            chunk::BLOCK_STATUS => self.status(chunk, body),
            _ => self.error(chunk, body),
        }
    }

    fn hole(&mut self, chunk: &Chunk, body: &[u8]) -> Result<(), Violation> {
        let mut body = Cursor(body);
        let (offset, length) = (body.u64().unwrap_or(0), body.u32().unwrap_or(0));
        if length == 0 {
            return unexpected("a hole of no bytes", "at least one");
        }
        let at = self.content(chunk, Span { offset, length })?;
        self.pending(chunk.cookie)?.buffer[at..at + length as usize].fill(0);
        Ok(())
    }

    fn error(&mut self, chunk: &Chunk, body: &[u8]) -> Result<(), Violation> {
        let mut body = Cursor(body);
        let (code, length) = (body.u32().unwrap_or(0), body.u16().unwrap_or(0));
        if code == 0 {
            return unexpected("an error chunk without an error", "a code that is not zero");
        }
        let has_offset = chunk.kind == chunk::ERROR_OFFSET;
        let room = body.0.len() - if has_offset { 8 } else { 0 };
        if usize::from(length) > room.min(STRING_BYTES_MAX) {
            return wrong_length("the text of an error", format!("at most {room}"), length);
        }
        let text = body.bytes(length.into()).unwrap_or_default();
        let message = String::from_utf8_lossy(text).into_owned();
        let offset = if has_offset { body.u64() } else { None };
        let pending = self.pending(chunk.cookie)?;
        let span = pending.command.span();
        if offset.is_some_and(|at| !(span.offset..span.end()).contains(&at)) {
            let found = format!("an error at {}", offset.unwrap_or_default());
            return unexpected(found, format!("one in {} bytes at {}", span.length, span.offset));
        }
        let failure = Failure { errno: Errno::from_code(code), message, offset };
        pending.failure.get_or_insert(failure);
        Ok(())
    }

    fn status(&mut self, chunk: &Chunk, body: &[u8]) -> Result<(), Violation> {
        let context = self.context;
        let pending = self.pending(chunk.cookie)?;
        let mut body = Cursor(body);
        let id = body.u32();
        if id != context || !pending.extents.is_empty() {
            let found = format!("the status of metadata context {}", id.unwrap_or_default());
            return unexpected(found, format!("that of {} once", context.unwrap_or_default()));
        }
        let extents = body.0.chunks_exact(8).map(|extent| {
            let mut extent = Cursor(extent);
            Extent::from_wire(extent.u32().unwrap_or(0), extent.u32().unwrap_or(0))
        });
        pending.extents = extents.collect();
        check_extents(&pending.command, &pending.extents)
    }

    /// All chunks have come.
    fn finish(&mut self, cookie: u64) -> Result<(), Violation> {
        let Some(pending) = self.pending.remove(&cookie) else { return Ok(()) };
        self.go_on(Receiving::Head);
        let Pending { command, buffer, coverage, extents, failure, .. } = pending;
        let complete = match command {
            Command::Read { span, .. } => coverage.is_whole(span),
            Command::BlockStatus { .. } => !extents.is_empty(),
            _ => true,
        };
        if failure.is_none() && !complete {
            let found = format!("the end of the reply to {command:?}");
            return unexpected(found, "all that was asked for, or an error, before it");
        }
        let result = failure.map_or(Ok(()), Err);
        let reply = Reply { cookie, command, result, data: buffer, extents };
        self.ready.push_back(Event::Reply(reply));
        Ok(())
    }
}

/// Each extent but the first begins within the span; one, where one was asked for, ends there too.
fn check_extents(command: &Command, extents: &[Extent]) -> Result<(), Violation> {
    let Command::BlockStatus { span, one } = *command else { return Ok(()) };
    let asked = u64::from(span.length);
    let mut before = 0;
    for extent in extents {
        if extent.length == 0 || before >= asked {
            let found = format!("an extent of {} bytes after {before}", extent.length);
            return unexpected(found, format!("extents of some bytes that begin in {asked}"));
        }
        before += u64::from(extent.length);
    }
    if one && (extents.len() > 1 || before > asked) {
        let found = format!("{} extents of {before} bytes", extents.len());
        return unexpected(found, format!("one of at most {asked}"));
    }
    Ok(())
}
