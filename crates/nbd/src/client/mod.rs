//! The client's end of a connection.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let mut stream: std::net::TcpStream = todo!();
//! use freewheel_nbd::client::{Event, Session, Settings};
//! use freewheel_nbd::{Command, Span};
//! use std::io::{Read, Write};
//! let mut session = Session::new(Settings::default());
//! let mut buffer = vec![0; 64 << 10];
//! let mut length = 0;
//! loop {
//!     let mut bytes = &buffer[..length];
//!     while let Some(event) = session.feed(&mut bytes)? {
//!         match event {
//!             Event::Send(bytes) => stream.write_all(&bytes)?,
//!             Event::Greeted => stream.write_all(&session.go("disk")?)?,
//!             Event::Started(export) => {
//!                 let read = Command::read(0, 4096);
//!                 let (_cookie, head) = session.request(read, Vec::new())?;
//!                 stream.write_all(&head)?;
//!             }
//!             Event::Reply(reply) => return Ok(reply.result?),
//!             other => return Err(format!("{other:?}").into()),
//!         }
//!     }
//!     length = stream.read(&mut buffer)?;
//!     if length == 0 {
//!         session.ended()?;
//!     }
//! }
//! # }
//! ```

mod coverage;
mod options;
mod replies;
mod requests;

use std::collections::{BTreeMap, VecDeque};

use thiserror::Error;

use crate::command::{Command, Extent, RequestRules};
use crate::wire::Inbox;
use crate::{BlockSizes, Errno, Features, Head, Limits, OptionCode, OptionError, Violation};

use options::Goal;
use replies::{Pending, Receiving};

pub use requests::{Asked, Requests};

/// Settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Ask for replies in chunks. Where the server refuses, simple ones do.
    pub structured: bool,
    /// Ask for `BLOCK_STATUS` (context `base:allocation`). Needs `structured`; where the server
    /// refuses, the export's features lack it.
    pub block_status: bool,
    /// Limits of the server's requests.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self { structured: true, block_status: false, limits: Limits::default() }
    }
}

/// Events in the bytes of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// These bytes are to be sent.
    Send(Vec<u8>),
    /// The greeting is over: ask with [`Session::go`], [`list`](Session::list),
    /// [`info`](Session::info), [`start_tls`](Session::start_tls) or [`abort`](Session::abort).
    Greeted,
    /// The answer to [`Session::list`]; ask on.
    Exports(Vec<ListedExport>),
    /// The answer to [`Session::info`]; ask on.
    Info(ExportInfo),
    /// The server refused what was asked for last; ask on, or abort.
    Refused(Refused),
    /// All further bytes, those not taken yet included, belong to the TLS handshake. Do it, as its
    /// client, and call [`Session::tls_established`].
    StartTls,
    /// The answer to [`Session::go`]: requests may be made.
    Started(ExportInfo),
    /// A request is done.
    Reply(Reply),
    /// The server agrees to the abort: close the connection.
    Aborted,
}

/// An export in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedExport {
    /// Name of the export.
    pub name: String,
    /// For people; may be empty.
    pub description: String,
}

/// Information of a server about an export.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportInfo {
    /// The server's name for it, or else the one that was asked for.
    pub name: String,
    /// For people; may be empty.
    pub description: String,
    /// Bytes.
    pub size: u64,
    /// Commands and flags of the export.
    pub features: Features,
    /// Limits of requests; the protocol's defaults where the server gives none.
    pub block_sizes: BlockSizes,
}

/// An option that the server refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the server refused {option}: {error}{}{message}", if message.is_empty() { "" } else { ": " })]
pub struct Refused {
    /// Option that was refused.
    pub option: OptionCode,
    /// Reason of the refusal.
    pub error: OptionError,
    /// In its words; may be empty.
    pub message: String,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The number that [`Session::request`] gave it.
    pub cookie: u64,
    /// Command that was asked for.
    pub command: Command,
    /// Success or error of the command.
    pub result: Result<(), Failure>,
    /// The buffer that was given with the request; of a read that was done, its data.
    pub data: Vec<u8>,
    /// Extents of a block status that was done, one after the other from the span's beginning.
    pub extents: Vec<Extent>,
}

/// Reason why a request failed on the server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{errno}{}{message}", if message.is_empty() { "" } else { ": " })]
pub struct Failure {
    /// The code.
    pub errno: Errno,
    /// In the server's words; may be empty.
    pub message: String,
    /// Offset in the export, if the server gave one.
    pub offset: Option<u64>,
}

/// A call that the session cannot carry out: no bytes are sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Misuse(String);

/// Position of the session in the stream.
#[derive(Debug)]
enum State {
    Greeting,
    Idle,
    OptionReply,
    OptionData { reply_type: u32, length: u32 },
    ExportName,
    Tls,
    Transmission(Receiving),
    Closed,
    Broken(Violation),
}

/// The client's end of one connection. See the [module](self).
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    state: State,
    inbox: Inbox,
    /// At most two: what to send, and what has happened.
    ready: VecDeque<Event>,
    fixed_newstyle: bool,
    no_zeroes: bool,
    encrypted: bool,
    /// `STRUCTURED_REPLY` was asked for, and with which outcome.
    structured: Option<bool>,
    /// Number of the metadata context that was chosen.
    context: Option<u32>,
    /// Goal of the caller, and the option that is under way for it.
    goal: Goal,
    asked: OptionCode,
    /// Replies to that option so far.
    replies: u32,
    terms: RequestRules,
    /// From the start of an export on, unless they were split off.
    requests: Option<Requests>,
    pending: BTreeMap<u64, Pending>,
}

impl Session {
    /// A session on a new connection.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            state: State::Greeting,
            inbox: Inbox::default(),
            ready: VecDeque::new(),
            fixed_newstyle: false,
            no_zeroes: false,
            encrypted: false,
            structured: None,
            context: None,
            goal: Goal::Nothing,
            asked: OptionCode::ABORT,
            replies: 0,
            terms: RequestRules::default(),
            requests: None,
            pending: BTreeMap::new(),
        }
    }

    /// Takes bytes of the server up to the next event. Call it until it returns `None`. It leaves
    /// bytes only when it waits for [`Session::tls_established`].
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

    /// The rest of the data that are under way: read into it straight from the connection, then
    /// call [`filled`](Self::filled). `None` when a header is due: then use [`feed`](Self::feed).
    #[inline]
    pub fn space(&mut self) -> Option<&mut [u8]> {
        let State::Transmission(Receiving::Data { cookie, at, left, .. }) = self.state else {
            return None;
        };
        let pending = self.pending.get_mut(&cookie).filter(|_| left > 0)?;
        pending.buffer.get_mut(at..at + left as usize)
    }

    /// `bytes` bytes were read into [`space`](Self::space); then call [`feed`](Self::feed), which has the
    /// event if there is one. Panics when the space is smaller.
    #[inline]
    pub fn filled(&mut self, length: usize) {
        let State::Transmission(Receiving::Data { at, left, .. }) = &mut self.state else {
            assert_eq!(length, 0, "no data are under way");
            return;
        };
        assert!(length <= *left as usize, "more than the data's rest");
        *at += length;
        *left -= length as u32;
    }

    /// TLS has been established after [`Event::StartTls`]; negotiation begins anew: ask on.
    /// Panics when it was not asked for.
    pub fn tls_established(&mut self) {
        assert!(matches!(self.state, State::Tls), "TLS was not asked for");
        (self.encrypted, self.structured, self.context) = (true, None, None);
        self.state = State::Idle;
    }

    /// Numbers a request and makes its header. A write's data are to be sent after it, as long as
    /// its span. `buffer` is for the data of a read: it is given that length and comes back with
    /// the reply, as it does with any other request.
    pub fn request(&mut self, command: Command, buffer: Vec<u8>) -> Result<(u64, Head), Misuse> {
        if self.pending.len() >= self.settings.limits.in_flight_max as usize {
            let most = self.settings.limits.in_flight_max;
            return Err(Misuse(format!("{most} requests are in flight, which is in_flight_max")));
        }
        let (State::Transmission(_), Some(requests)) = (&self.state, &mut self.requests) else {
            return Err(Misuse("no export has been started: no request may be made".into()));
        };
        let (head, asked) = requests.request(command, buffer)?;
        let cookie = asked.cookie;
        self.expect(asked);
        Ok((cookie, head))
    }

    /// Splits off the part that makes requests, for another thread. This session makes none any more, and
    /// [expects](Self::expect) their replies. `None` when no export has been started.
    pub fn split_requests(&mut self) -> Option<Requests> {
        self.requests.take()
    }

    /// Takes the reply to a request when it comes; before the first byte of that is fed, and so
    /// best before the request is sent. How many there may be is up to the caller.
    pub fn expect(&mut self, asked: Asked) {
        self.pending.insert(asked.cookie, asked.pending);
    }

    /// Requests that wait for a reply.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// The farewell; wait for all replies first, and close the connection after it.
    pub fn disconnect(&mut self) -> Result<Head, Misuse> {
        match (&self.state, self.requests.take()) {
            (State::Transmission(_), Some(requests)) => {
                self.state = State::Closed;
                Ok(requests.disconnect())
            }
            _ => Err(Misuse("no export has been started: abort instead".into())),
        }
    }

    /// The server has closed the connection: whether it may do so now.
    pub fn ended(&self) -> Result<(), Violation> {
        let within = match &self.state {
            State::Broken(violation) => return Err(violation.clone()),
            State::Closed => return Ok(()),
            // Old servers do not reply to it.
            State::OptionReply if self.asked == OptionCode::ABORT => return Ok(()),
            State::Greeting => "its greeting",
            State::Idle => "the negotiation",
            State::OptionReply | State::OptionData { .. } => "an answer to an option",
            State::ExportName => "the answer to EXPORT_NAME, as servers do that lack the export",
            State::Tls => "the TLS handshake",
            State::Transmission(_) => "transmission, which only the client may end",
        };
        Err(Violation::Ended { within })
    }

    /// One step along the stream; false when there are not enough bytes for it.
    #[inline]
    fn step(&mut self, bytes: &mut &[u8]) -> Result<bool, Violation> {
        match &self.state {
            State::Transmission(_) => self.receive(bytes),
            State::Broken(violation) => Err(violation.clone()),
            State::Closed => {
                *bytes = &[];
                Ok(false)
            }
            State::Tls => Ok(false),
            _ => self.negotiate(bytes),
        }
    }
}
