//! The server's end of a connection.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (exports, stream): (Vec<freewheel_nbd::Export>, std::net::TcpStream) = todo!();
//! use freewheel_nbd::server::{Event, Session, Settings};
//! use std::io::{Read, Write};
//! # let mut stream = stream;
//! let mut session = Session::new(Settings { exports, ..Settings::default() })?;
//! let mut buffer = vec![0; 64 << 10];
//! let mut length = 0;
//! loop {
//!     let mut bytes = &buffer[..length];
//!     while let Some(event) = session.feed(&mut bytes)? {
//!         match event {
//!             Event::Send(bytes) => stream.write_all(&bytes)?,
//!             Event::Start(_) | Event::StartTls => {}
//!             Event::Request(request) => {
//!                 // Do it; then, on any thread:
//!                 stream.write_all(&request.ticket.done())?;
//!                 session.answered(1);
//!             }
//!             Event::Close(_) => return Ok(()),
//!         }
//!     }
//!     length = stream.read(&mut buffer)?;
//! }
//! # }
//! ```

mod options;
mod reply;
mod ticket;

use std::collections::VecDeque;

use crate::command::{Command, Frame, RequestRules};
use crate::violation::{unexpected, wrong_length};
use crate::wire::{self, Inbox, OPTION_MAGIC, PAYLOAD_BYTES_TOLERATED, SERVER_MAGIC};
use crate::{BadExport, Errno, Export, Limits, OptionCode, OptionError, Violation};

pub use ticket::{Chunks, Ticket};

/// Encryption of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    /// Never: `STARTTLS` is refused.
    #[default]
    Off,
    /// If the client wants it.
    Offered,
    /// Always: all else is refused before (`ERR_TLS_REQD`).
    Required,
}

/// Settings of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Exports that can be connected to. Unless one has the empty name, clients that give no name get the
    /// first.
    pub exports: Vec<Export>,
    /// Encryption of connections.
    pub tls: Tls,
    /// Limits of a client's requests.
    pub limits: Limits,
}

/// Events in the bytes of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// These bytes are to be sent, before anything that later events lead to.
    Send(Vec<u8>),
    /// All further bytes, those not taken yet included, belong to the TLS handshake. Do it, as its
    /// server, and call [`Session::tls_established`].
    StartTls,
    /// The client has chosen an export; requests follow.
    Start(Started),
    /// Something to be done.
    Request(Request),
    /// Close the connection, after replying to all requests.
    Close(Close),
}

/// Agreement of client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Index into [`Settings::exports`].
    pub export: usize,
    /// Reads are answered in chunks. Tickets see to it.
    pub structured: bool,
    /// The client has promised to keep to the block sizes.
    pub block_sizes_agreed: bool,
    /// The client may ask for `BLOCK_STATUS`.
    pub block_status: bool,
}

/// A valid request: in range, aligned to the minimum block size, flags allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Request {
    pub ticket: Ticket,
    pub command: Command,
    /// The data of a write, as long as its span; empty otherwise.
    pub data: Vec<u8>,
}

/// Reason why a connection is closed in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Close {
    /// The client gave up the negotiation.
    Aborted,
    /// The client is done.
    Disconnected,
    /// The client asked for an export in the old way, which has no refusal but closing.
    Refused {
        /// The name it gave.
        name: String,
        /// Reason of the refusal.
        error: OptionError,
    },
}

/// Memory that a payload has before any of it has come, in bytes; then it doubles.
const PAYLOAD_AT_ONCE: usize = 256 << 10;

/// Longest payload whose memory is kept for the next one, in bytes.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// Position of the session in the stream.
#[derive(Debug)]
enum State {
    Greeting,
    ClientFlags,
    OptionHead,
    OptionData { option: OptionCode, length: u32 },
    OptionSkip { left: u32 },
    Tls,
    RequestHead,
    Payload { ticket: Ticket, command: Command, data: Vec<u8>, filled: usize, length: usize },
    PayloadSkip { left: u32 },
    Closed,
    Broken(Violation),
}

/// The server's end of one connection. See the [module](self).
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    state: State,
    inbox: Inbox,
    /// At most two: bytes to send, and the event that follows.
    ready: VecDeque<Event>,
    /// Flags of the client.
    fixed_newstyle: bool,
    no_zeroes: bool,
    encrypted: bool,
    shutting_down: bool,
    options: u32,
    agreed: options::Agreed,
    terms: RequestRules,
    in_flight: u32,
    /// A payload's memory, to be used again.
    spare: Vec<u8>,
}

impl Session {
    /// A session on a new connection. An export that the protocol does not allow is an error.
    pub fn new(settings: Settings) -> Result<Self, BadExport> {
        settings.exports.iter().try_for_each(Export::check)?;
        Ok(Self {
            settings,
            state: State::Greeting,
            inbox: Inbox::default(),
            ready: VecDeque::new(),
            fixed_newstyle: false,
            no_zeroes: false,
            encrypted: false,
            shutting_down: false,
            options: 0,
            agreed: options::Agreed::default(),
            terms: RequestRules::default(),
            in_flight: 0,
            spare: Vec::new(),
        })
    }

    /// Takes bytes of the client up to the next event. Call it until it returns `None`, first of
    /// all with no bytes, for the greeting. It leaves bytes only when the session
    /// [is full](Self::is_full) or waits for [`Session::tls_established`].
    ///
    /// After an error the connection must be closed; the error stays.
    #[inline]
    pub fn feed(&mut self, bytes: &mut &[u8]) -> Result<Option<Event>, Violation> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.step(bytes) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(violation) => {
                    self.state = State::Broken(violation.clone());
                    return Err(violation);
                }
            }
        }
    }

    /// Space for the rest of the payload under way, as far as memory is free: read into it from the
    /// connection, then call [`filled`](Self::filled). `None` when a header is due: use
    /// [`feed`](Self::feed).
    #[inline]
    pub fn space(&mut self) -> Option<&mut [u8]> {
        match &mut self.state {
            State::Payload { data, filled, .. } => Some(&mut data[*filled..]),
            _ => None,
        }
    }

    /// The length of the payload that is under way, if one is.
    pub fn payload_bytes(&self) -> Option<usize> {
        match &self.state {
            State::Payload { length, .. } => Some(*length),
            _ => None,
        }
    }

    /// Bytes that the client still owes of a request that it has begun to send, at least; `None` between two
    /// requests and before an export is chosen.
    pub fn owed_bytes(&self) -> Option<u64> {
        match &self.state {
            State::Payload { filled, length, .. } => Some((length - filled) as u64),
            State::PayloadSkip { left } => Some((*left).into()),
            State::RequestHead if !self.inbox.is_empty() => Some(1),
            _ => None,
        }
    }

    /// `bytes` bytes were read into [`space`](Self::space). Panics when the space is smaller.
    #[inline]
    pub fn filled(&mut self, length: usize) -> Option<Request> {
        let State::Payload { data, filled, length: whole, .. } = &mut self.state else {
            assert_eq!(length, 0, "no payload is under way");
            return None;
        };
        assert!(length <= data.len() - *filled, "more than the payload's rest");
        *filled += length;
        if *filled < *whole {
            // Memory is taken for what has come, and not for what was announced.
            let grown = (2 * data.len()).min(*whole);
            let has_room = *filled < data.len();
            data.resize(if has_room { data.len() } else { grown }, 0);
            return None;
        }
        match std::mem::replace(&mut self.state, State::RequestHead) {
            State::Payload { ticket, command, data, .. } => {
                self.in_flight += 1;
                Some(Request { ticket, command, data })
            }
            _ => None,
        }
    }

    /// TLS has been established after [`Event::StartTls`]; negotiation begins anew.
    /// Panics when it was not asked for.
    pub fn tls_established(&mut self) {
        assert!(matches!(self.state, State::Tls), "TLS was not asked for");
        self.encrypted = true;
        self.state = State::OptionHead;
    }

    /// `count` requests have been replied to in full. Panics when fewer are open.
    #[inline]
    pub fn answered(&mut self, requests: u32) {
        self.in_flight -= requests;
    }

    /// True if the number of open requests is at [`Limits::in_flight_max`]: no bytes are taken until
    /// [`answered`](Self::answered) is called.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.in_flight >= self.settings.limits.in_flight_max
    }

    /// Gives memory back for the payload of a later write. What was in it is overwritten.
    #[inline]
    pub fn recycle(&mut self, data: Vec<u8>) {
        if data.capacity() > self.spare.capacity() && data.capacity() <= SPARE_BYTES_MAX {
            self.spare = data;
        }
    }

    /// From now on options and requests are refused because the server is shutting down.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    /// The client has closed the connection: whether it may do so now.
    pub fn ended(&self) -> Result<(), Violation> {
        let within = match &self.state {
            State::Broken(violation) => return Err(violation.clone()),
            // A client may look who is there and go.
            State::Greeting | State::ClientFlags | State::OptionHead | State::RequestHead
                if self.inbox.is_empty() =>
            {
                return Ok(());
            }
            State::Closed => return Ok(()),
            State::Greeting | State::ClientFlags => "the greeting",
            State::OptionHead | State::OptionData { .. } | State::OptionSkip { .. } => "an option",
            State::Tls => "the TLS handshake",
            State::RequestHead => "a request",
            State::Payload { .. } | State::PayloadSkip { .. } => "the data of a write",
        };
        Err(Violation::Ended { within })
    }

    /// One step along the stream; false when there are not enough bytes for it.
    #[inline]
    fn step(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        match &mut self.state {
            State::RequestHead => self.request_head(bytes),
            State::Payload { .. } => Ok(self.payload(bytes)),
            State::PayloadSkip { left } => {
                *left = wire::skip(bytes, *left);
                Ok(self.skipped(State::RequestHead))
            }
            State::Broken(violation) => Err(violation.clone()),
            State::Closed => {
                *bytes = &[];
                Ok(false)
            }
            State::Tls => Ok(false),
            _ => self.negotiate(bytes),
        }
    }

    fn negotiate(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        match &mut self.state {
            State::Greeting => {
                self.greet();
                Ok(true)
            }
            State::ClientFlags => self.client_flags(bytes),
            State::OptionData { option, length } => {
                let (option, length) = (*option, *length as usize);
                let Some(data) = self.inbox.vec(bytes, length) else { return Ok(false) };
                self.state = State::OptionHead;
                self.answer(option, &data);
                Ok(true)
            }
            State::OptionSkip { left } => {
                *left = wire::skip(bytes, *left);
                Ok(self.skipped(State::OptionHead))
            }
            _ => self.option_head(bytes),
        }
    }

    /// Continues when all bytes to skip have passed.
    fn skipped(&mut self, next: State) -> bool {
        let done =
            matches!(self.state, State::PayloadSkip { left: 0 } | State::OptionSkip { left: 0 });
        if done {
            self.state = next;
        }
        done
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.ready.push_back(Event::Send(bytes));
    }

    fn close(&mut self, close: Close) {
        self.state = State::Closed;
        self.ready.push_back(Event::Close(close));
    }

    fn greet(&mut self) {
        let mut greeting = Vec::with_capacity(18);
        greeting.extend(SERVER_MAGIC.to_be_bytes());
        greeting.extend(OPTION_MAGIC.to_be_bytes());
        greeting.extend((wire::FIXED_NEWSTYLE | wire::NO_ZEROES).to_be_bytes());
        self.send(greeting);
        self.state = State::ClientFlags;
    }

    fn client_flags(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        let Some(flags) = self.inbox.array(bytes) else { return Ok(false) };
        let flags = u32::from_be_bytes(flags);
        let (fixed, no_zeroes) = (u32::from(wire::FIXED_NEWSTYLE), u32::from(wire::NO_ZEROES));
        if flags & !(fixed | no_zeroes) != 0 {
            return Err(Violation::ClientFlags { found: flags, allowed: fixed | no_zeroes });
        }
        self.fixed_newstyle = flags & fixed != 0;
        self.no_zeroes = flags & no_zeroes != 0;
        self.state = State::OptionHead;
        Ok(true)
    }

    fn option_head(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        let Some(head) = self.inbox.array::<16>(bytes) else { return Ok(false) };
        let mut head = wire::Cursor(&head);
        let (magic, option, length) =
            (head.u64().unwrap_or(0), head.u32().unwrap_or(0), head.u32().unwrap_or(0));
        if magic != OPTION_MAGIC {
            let (what, expected) = ("an option", OPTION_MAGIC);
            return Err(Violation::Magic { what, expected, found: magic });
        }
        self.options += 1;
        let (option, limits) = (OptionCode(option), self.settings.limits);
        if self.options > limits.options_max {
            return Err(Violation::TooMany { what: "options", limit: limits.options_max });
        }
        if !self.fixed_newstyle && option != OptionCode::EXPORT_NAME {
            return unexpected(
                format!("{option} of a client that does not speak fixed newstyle"),
                "EXPORT_NAME",
            );
        }
        self.option_data(option, length)
    }

    /// Takes the data of an option, or skips them where they are too long.
    fn option_data(&mut self, option: OptionCode, length: u32) -> Result<bool, Violation> {
        let longest = self.settings.limits.option_bytes_max;
        if length <= longest {
            self.state = State::OptionData { option, length };
            return Ok(true);
        }
        if option == OptionCode::EXPORT_NAME || length > PAYLOAD_BYTES_TOLERATED {
            return wrong_length("an option", format!("at most {longest}"), length);
        }
        let text = format!("{option} has {length} bytes of data; at most {longest} are taken");
        self.send(reply::refusal(option, OptionError::TooBig, &text));
        self.state = State::OptionSkip { left: length };
        Ok(true)
    }

    #[inline]
    fn request_head(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        if self.is_full() {
            return Ok(false);
        }
        let Some(head) = self.inbox.array(bytes) else { return Ok(false) };
        let frame = Frame::decode(&head).map_err(|found| Violation::Magic {
            what: "a request",
            expected: wire::REQUEST_MAGIC.into(),
            found: found.into(),
        })?;
        if frame.kind == wire::cmd::DISC {
            self.close(Close::Disconnected);
            return Ok(true);
        }
        let ticket = Ticket::new(&frame, self.terms.structured);
        match self.terms.admit(&frame) {
            _ if self.shutting_down => {
                self.refuse(&frame, ticket, Errno::Shutdown, "the server is shutting down")?;
            }
            Ok(command) => self.accept(ticket, command),
            Err(refusal) => self.refuse(&frame, ticket, refusal.errno, refusal.reason)?,
        }
        Ok(true)
    }

    #[inline]
    fn accept(&mut self, ticket: Ticket, command: Command) {
        if let Command::Write { span, .. } = command {
            let length = span.length as usize;
            let mut data = std::mem::take(&mut self.spare);
            let ready = length.min(data.capacity().max(PAYLOAD_AT_ONCE));
            data.resize(ready, 0);
            self.state = State::Payload { ticket, command, data, filled: 0, length };
        } else {
            self.in_flight += 1;
            self.ready.push_back(Event::Request(Request { ticket, command, data: Vec::new() }));
        }
    }

    /// Replies with an error, and skips the data of a write.
    fn refuse(
        &mut self,
        frame: &Frame,
        ticket: Ticket,
        errno: Errno,
        reason: &str,
    ) -> Result<(), Violation> {
        let length = frame.span.length;
        if frame.kind == wire::cmd::WRITE && length > 0 {
            let longest = self.terms.block_sizes.payload_max.max(PAYLOAD_BYTES_TOLERATED);
            if length > longest {
                return wrong_length("the data of a write", format!("at most {longest}"), length);
            }
            self.state = State::PayloadSkip { left: length };
        }
        self.send(ticket.error(errno, reason));
        Ok(())
    }

    #[inline]
    fn payload(&mut self, bytes: &mut &[u8]) -> bool {
        let Some(space) = self.space() else { return false };
        let (now, rest) = bytes.split_at(space.len().min(bytes.len()));
        space[..now.len()].copy_from_slice(now);
        *bytes = rest;
        let request = self.filled(now.len()).map(Event::Request);
        let done = request.is_some();
        self.ready.extend(request);
        // Memory limits the bytes that were taken.
        done || !bytes.is_empty()
    }
}
