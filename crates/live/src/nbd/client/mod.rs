//! A client of somebody else's export: requests from any thread, answers as they come.
//!
//! ```text
//!   Client::connect   socket, TLS if the URI says so, export                 the caller's thread
//!   Client::submit    a request with a tag of the caller's                   any thread
//!     Receiver        bytes -> Session -> the caller's function(answer)      one thread
//! ```
//!
//! Two locks: one keeps requests whole on the socket, the other guards a few numbers and is never
//! held while anything waits. The thread that receives takes the second only.
//!
//! Goals: a request that was taken is answered exactly once, with an error at the latest when the
//! connection is lost; an answer says when it came; memory has a bound.
//! Non-goals: connecting again, several connections to one export, order (the protocol has none).

mod connect;
mod receive;

use std::fmt::Display;
use std::io::IoSlice;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use freewheel_nbd::client::{Asked, ExportInfo, Failure, Requests};
use freewheel_nbd::{Command, Extent, Uri};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use super::stream::{Stream, is_timeout};
use receive::Receiver;

pub use connect::ConnectError;

/// Limits of a client's patience and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Requests in flight; further ones are refused.
    pub in_flight_max: usize,
    /// Data of requests in flight, in bytes; a request that would exceed it is refused, unless it
    /// is the only one.
    pub bytes_in_flight_max: u64,
    /// Longest time in which a server may read no part of a request. Over TCP, also how long a machine may
    /// acknowledge no packet, even without a request. Longer, and the connection is lost.
    pub stall: Duration,
    /// Longest time of the negotiation.
    pub negotiation: Duration,
    /// Longest time that a server may owe an answer, even while it answers other requests; checked at least
    /// every second. The time to send a request and to receive data at the least rate does not count: a
    /// slow network does not mean that the server has gone. `None` for no limit.
    pub answer: Option<Duration>,
    /// Least rate of a server. It may take `stall` and the length at this rate to read a request; data
    /// that come slower count towards `answer`.
    pub bytes_per_second_min: u64,
}

impl ClientLimits {
    /// Time of this many bytes at the least rate.
    fn time_of(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bytes_per_second_min.max(1) as f64)
    }

    /// Interval at which it is looked whether an answer is overdue.
    fn look_every(&self) -> Option<Duration> {
        let shortest = Duration::from_millis(1);
        self.answer.map(|longest| tenth(longest).clamp(shortest, Duration::from_secs(1)))
    }
}

/// At most a fifth late: a request may be known a tenth late, and be looked at a tenth late.
fn tenth(longest: Duration) -> Duration {
    longest / 10
}

impl Default for ClientLimits {
    /// As much as the server's own limits, and patience.
    fn default() -> Self {
        let server = super::Limits::default();
        Self {
            in_flight_max: server.in_flight_max as usize,
            bytes_in_flight_max: server.bytes_in_flight_max,
            stall: server.stall,
            negotiation: server.negotiation,
            answer: None,
            bytes_per_second_min: server.bytes_per_second_min,
        }
    }
}

/// Outcome of one request.
#[derive(Debug)]
pub struct Answer<T> {
    /// Tag that the caller gave with it.
    pub tag: T,
    /// Command that was asked for.
    pub command: Command,
    /// Success or error of the request.
    pub result: Result<(), RequestError>,
    /// Data of a read that was done; otherwise of no meaning.
    pub data: Vec<u8>,
    /// Extents of a block status that was done, one after the other from the span's beginning.
    pub extents: Vec<Extent>,
    /// Time right after the read, over TLS with the decryption, that brought the last byte of its header
    /// and data. Of a lost connection, when that was noticed.
    pub at: Instant,
}

/// Reason why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The server says no.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// There is no server any more. A write may have been done or not.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// The connection is gone for good.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{uri}: connection lost: {why}")]
pub struct Lost {
    uri: Arc<Uri>,
    why: Arc<str>,
}

/// A refused request: it was not sent, and gets no answer.
#[derive(Debug, Error)]
#[error("{why}")]
pub struct Refused<T> {
    /// Reason of the refusal.
    pub why: Refusal,
    /// Tag that came with it.
    pub tag: T,
}

/// Reason why a request was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum Refusal {
    /// As much is in flight as the limits allow: wait for an answer.
    #[error("{requests} requests with {bytes} bytes are in flight, which is the limit")]
    Full { requests: usize, bytes: u64 },
    /// The server would not take it: beyond the end, not aligned, not offered.
    #[error("{0}")]
    Invalid(String),
    /// The connection is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// A connection to one export. `T` is the caller's tag, which comes back with each answer.
///
/// Dropping it closes the connection at once, and answers requests in flight with an error.
/// [`close`](Self::close) waits for them.
pub struct Client<T> {
    shared: Arc<Shared<T>>,
    info: ExportInfo,
    receiver: Option<JoinHandle<()>>,
}

/// State that all threads share.
struct Shared<T> {
    uri: Arc<Uri>,
    stream: Stream,
    limits: ClientLimits,
    /// Held while a request is written, so that requests do not mix.
    requests: Mutex<Requests>,
    flight: Mutex<Flight<T>>,
    /// For `close`: the last answer has come, or none will.
    landed: Condvar,
    /// The client is being dropped or closed.
    is_ending: AtomicBool,
}

struct Flight<T> {
    /// Requests that the receiver does not know yet.
    fresh: Vec<(Asked, T)>,
    requests: usize,
    bytes: u64,
    /// A caller waits until no request is in flight.
    closing: bool,
    lost: Option<Lost>,
    /// Since when a request is being sent.
    sends_since: Option<Instant>,
    /// Time that sending those before took.
    sent_for: Duration,
}

impl<T> Flight<T> {
    /// For how long requests have been under way to the server until now.
    fn sending(&self, now: Instant) -> Duration {
        let this = self.sends_since.map(|since| now.saturating_duration_since(since));
        self.sent_for + this.unwrap_or_default()
    }
}

/// A panic of another thread leaves the locked values consistent.
fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes by which a request counts.
fn weight(command: Command) -> u64 {
    match command {
        Command::Read { span, .. } | Command::Write { span, .. } => span.length.into(),
        _ => 0,
    }
}

impl<T: Send + 'static> Client<T> {
    /// Connects, and chooses the export of the URI. `answered` is called with every answer, in a thread of
    /// the client that receives no answer meanwhile: the function may submit requests, and should not wait.
    pub fn connect(
        uri: &Uri,
        limits: ClientLimits,
        answered: impl FnMut(Answer<T>) + Send + 'static,
    ) -> Result<Self, ConnectError> {
        Self::connect_watched(uri, limits, answered, |_| {})
    }

    /// Connects like [`Self::connect`]. `lost` is called in that thread when the connection is
    /// lost and this side did not close it: at once, before requests in flight are answered.
    pub fn connect_watched(
        uri: &Uri,
        limits: ClientLimits,
        answered: impl FnMut(Answer<T>) + Send + 'static,
        lost: impl FnOnce(&Lost) + Send + 'static,
    ) -> Result<Self, ConnectError> {
        let started = connect::connect(uri, &limits)?;
        let shared = Arc::new(Shared {
            uri: uri.clone().into(),
            stream: started.stream,
            limits,
            requests: Mutex::new(started.requests),
            flight: Mutex::new(Flight {
                fresh: Vec::new(),
                requests: 0,
                bytes: 0,
                closing: false,
                lost: None,
                sends_since: None,
                sent_for: Duration::ZERO,
            }),
            landed: Condvar::new(),
            is_ending: AtomicBool::new(false),
        });
        let receiver = Receiver::new(Arc::clone(&shared), started.session, answered);
        let thread = thread::Builder::new().name("nbd client".into());
        let receiver = thread.spawn(move || receiver.run(lost));
        let receiver = receiver.map_err(|source| connect::system(uri, source))?;
        Ok(Self { shared, info: started.info, receiver: Some(receiver) })
    }

    /// Information of the server about the export.
    pub fn info(&self) -> &ExportInfo {
        &self.info
    }

    /// Sends a request; returns its number in the protocol. `data` has a write's data, as long as its span,
    /// and is the caller's again afterwards. A read takes `data` as memory for its answer. The answer may come
    /// before this returns.
    ///
    /// Waits only while the server does not read: for [`ClientLimits::stall`] at most, and no longer than the
    /// least rate allows. Then the connection is lost, and the answer says so.
    pub fn submit(&self, command: Command, data: &mut Vec<u8>, tag: T) -> Result<u64, Refused<T>> {
        let is_write = matches!(command, Command::Write { .. });
        if is_write && data.len() as u64 != weight(command) {
            let why = Refusal::Invalid(format!("{} bytes of data for {command:?}", data.len()));
            return Err(Refused { why, tag });
        }
        let buffer = if is_write { Vec::new() } else { std::mem::take(data) };
        let mut requests = lock(&self.shared.requests);
        let (head, asked) = match requests.request(command, buffer) {
            Ok(made) => made,
            Err(misuse) => {
                let why = Refusal::Invalid(misuse.to_string());
                return Err(Refused { why, tag });
            }
        };
        let cookie = asked.cookie();
        // Before it is sent, as the reply may come at once.
        self.shared.begin(asked, weight(command), tag)?;
        let payload: &[u8] = if is_write { data } else { &[] };
        let mut parts = [IoSlice::new(&head), IoSlice::new(payload)];
        let limits = &self.shared.limits;
        let at_least_rate = limits.time_of((head.len() + payload.len()) as u64);
        let allowed =
            limits.stall + limits.answer.map_or(at_least_rate, |most| at_least_rate.min(most));
        let until = Instant::now() + allowed;
        let sent = self.shared.stream.write_all(&mut parts, Some(until));
        self.shared.has_sent();
        if let Err(error) = sent {
            let stall = limits.stall;
            match is_timeout(&error) {
                // Some of it was taken: the time for all of it was over.
                true if Instant::now() > until => self
                    .shared
                    .lose(&format!("the server took longer than {allowed:?} to read a request")),
                true => {
                    self.shared.lose(&format!("the server read no part of a request for {stall:?}"))
                }
                false => self.shared.lose(&error),
            };
        }
        Ok(cookie)
    }

    /// True if the socket takes a short request without a wait; a request that is being sent makes the next
    /// wait all the same.
    pub fn has_room(&self) -> bool {
        let mut waits = [PollFd::new(&self.shared.stream, PollFlags::OUT)];
        // What is lost takes everything, and answers it.
        poll(&mut waits, Some(&Timespec::default())) != Ok(0)
    }

    /// Waits until everything in flight is answered, and ends the connection in order. Not from the
    /// function that gets the answers: it would wait for itself.
    pub fn close(mut self) -> Result<(), Lost> {
        let mut flight = lock(&self.shared.flight);
        flight.closing = true;
        while flight.requests > 0 {
            flight = self.shared.landed.wait(flight).unwrap_or_else(PoisonError::into_inner);
        }
        let lost = flight.lost.clone();
        drop(flight);
        self.shared.is_ending.store(true, Ordering::SeqCst);
        if lost.is_none() {
            self.say_farewell();
        }
        self.join();
        lost.map_or(Ok(()), Err)
    }
}

impl<T> Client<T> {
    fn say_farewell(&self) {
        let head = lock(&self.shared.requests).disconnect();
        // It has no reply: a server that has gone meanwhile is as good.
        let _ = self.shared.stream.write_all(&mut [IoSlice::new(&head)], None);
        self.shared.stream.finish();
    }

    fn join(&mut self) {
        let Some(receiver) = self.receiver.take() else { return };
        if receiver.thread().id() != thread::current().id() {
            // A panic of the caller's function has been reported by its own thread.
            let _ = receiver.join();
        }
    }
}

impl<T> Drop for Client<T> {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::SeqCst);
        let flight = lock(&self.shared.flight);
        let is_idle = flight.requests == 0 && flight.lost.is_none();
        drop(flight);
        if is_idle {
            self.say_farewell();
        }
        self.shared.stream.shutdown(Shutdown::Both);
        self.join();
    }
}

impl<T> Shared<T> {
    /// Takes a request into flight, which is sent next.
    fn begin(&self, asked: Asked, weight: u64, tag: T) -> Result<(), Refused<T>> {
        let mut flight = lock(&self.flight);
        let Flight { requests, bytes, lost, .. } = &*flight;
        let (requests, bytes) = (*requests, *bytes);
        let many = requests >= self.limits.in_flight_max;
        let much = requests > 0 && bytes + weight > self.limits.bytes_in_flight_max;
        let why = match lost {
            Some(lost) => Some(Refusal::Lost(lost.clone())),
            None if many || much => Some(Refusal::Full { requests, bytes }),
            None => None,
        };
        if let Some(why) = why {
            return Err(Refused { why, tag });
        }
        flight.requests += 1;
        flight.bytes += weight;
        flight.fresh.push((asked, tag));
        flight.sends_since = Some(Instant::now());
        Ok(())
    }

    /// The request that was begun last is on its way.
    fn has_sent(&self) {
        let mut flight = lock(&self.flight);
        flight.sent_for = flight.sending(Instant::now());
        flight.sends_since = None;
    }

    /// A request has been answered.
    fn end(&self, weight: u64) {
        let mut flight = lock(&self.flight);
        flight.requests -= 1;
        flight.bytes -= weight;
        if flight.closing && flight.requests == 0 {
            self.landed.notify_all();
        }
    }

    /// Ends the connection. The first reason given stays.
    fn lose(&self, why: &dyn Display) -> Lost {
        let lost = lock(&self.flight)
            .lost
            .get_or_insert_with(|| Lost { uri: Arc::clone(&self.uri), why: why.to_string().into() })
            .clone();
        self.stream.shutdown(Shutdown::Both);
        lost
    }
}
