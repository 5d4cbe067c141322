//! One client: its bytes in, its requests to the service.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use freewheel_nbd::server::{Event, Request, Session};
use freewheel_nbd::{Command, Violation};
use thiserror::Error;

use super::limits::Limits;
use super::outbox::{Message, Outbox};
use super::service::{Caller, Responder, Service};
use super::stream::{Stream, is_timeout};
use super::tls::ServerTls;

/// Bytes read at once where no payload is under way.
const BUFFER_BYTES: usize = 128 << 10;

/// Reason why a connection did not end in order.
#[derive(Debug, Error)]
pub(super) enum Broken {
    /// The client does not keep to the protocol.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The client took too long to choose an export.
    #[error("it chose no export for {0:?}")]
    Undecided(Duration),
    /// The client takes no answers.
    #[error("it read no part of an answer for {0:?}")]
    Stalled(Duration),
    /// The client stopped sending in the middle of a request.
    #[error("it sent no further part of a request for {0:?}")]
    Unfinished(Duration),
    /// The client sends a request too slowly.
    #[error("it took longer than {0:?} to send a request")]
    Slow(Duration),
    /// There is no place for it any more.
    #[error("{0}")]
    Refused(String),
    /// The system gives no thread for it.
    #[error(
        "no thread for it: {0}; allow the server more (systemd's TasksMax, pids.max of its control group, \
         ulimit -u)"
    )]
    NoThread(io::Error),
    /// The thread of the connection has failed.
    #[error("its thread has failed, which is a fault of the server")]
    Panicked,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Broken {
    /// Reason that counts as alike when notices are thinned out.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Violation(_) => "violation",
            Self::Undecided(_) => "undecided",
            Self::Stalled(_) => "stalled",
            Self::Unfinished(_) => "unfinished",
            Self::Slow(_) => "slow",
            Self::Refused(_) => "refused",
            Self::NoThread(_) => "no thread",
            Self::Panicked => "panicked",
            Self::Io(_) => "socket",
        }
    }
}

/// The reading side of a connection.
pub(super) struct Connection<'a> {
    pub caller: Caller,
    pub stream: Arc<Stream>,
    /// Time at which it came.
    pub begun: Instant,
    pub tls: Option<&'a ServerTls>,
    pub outbox: Arc<Outbox>,
    pub session: Session,
    pub services: &'a [Arc<dyn Service>],
    pub limits: &'a Limits,
    pub stopping: &'a AtomicBool,
    /// Takes a place among the clients that have chosen an export, or says why there is none.
    pub decide: &'a dyn Fn() -> Result<(), String>,
    /// That of the export, when one was chosen.
    pub service: Option<Arc<dyn Service>>,
    /// The client has said that it is done.
    pub is_done: bool,
    /// There is memory for the payload that is under way.
    pub has_reserved: bool,
    /// Pace of the client in the request that it is sending.
    pub pace: Option<Pace>,
    pub watch: Watch,
}

/// Pace of a client in a request that it has begun to send.
pub(super) struct Pace {
    /// Bytes that are still to come.
    owed: u64,
    /// Time allowed for all of it, and time so far.
    allowed: Duration,
    waited: Duration,
}

/// Time for which a thread polls for the next request before it sleeps. About the time in which two threads
/// are woken, the client's by the answer and this one by the next request. Polling in vain therefore costs
/// as much as sleeping would have (the rule of competitive spinning).
const WATCH: Duration = Duration::from_micros(50);

/// Looks for the next request of a client that asks again as soon as it has its answer.
pub(super) struct Watch {
    /// There is another processor for the client.
    is_possible: bool,
    /// The last request of a client without open requests came within the time.
    is_worth_it: bool,
}

impl Watch {
    pub fn new() -> Self {
        let is_possible = thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        Self { is_possible, is_worth_it: false }
    }

    /// Reads, and waits for something to read. What a client is owed will be sent by another thread,
    /// for which the processor is left free.
    fn read(&mut self, stream: &Stream, into: &mut [u8], owes_nothing: bool) -> io::Result<usize> {
        if !owes_nothing || !self.is_possible || !stream.is_plain() {
            return stream.read(into);
        }
        let begun = Instant::now();
        while self.is_worth_it {
            if let Some(length) = stream.read_now(into)? {
                return Ok(length);
            }
            self.is_worth_it = begun.elapsed() < WATCH;
        }
        let length = stream.read(into)?;
        self.is_worth_it = begun.elapsed() < WATCH;
        Ok(length)
    }
}

/// Decision whether a connection continues.
#[derive(PartialEq)]
enum ClientState {
    On,
    Away,
}

impl Connection<'_> {
    /// Serves the client until it goes, breaks the rules, or the server stops; then waits until
    /// its requests have been answered.
    pub fn serve(&mut self) -> Result<(), Broken> {
        let ended = self.receive();
        // A request may reach the service after the news that the client has gone.
        if self.outbox.has_left() {
            self.outbox.leave();
        }
        self.outbox.unreserve();
        self.outbox.wait_for_room(0, 0);
        match self.outbox.take_failure() {
            // A slow client has its own text.
            Some(error) if is_timeout(&error) && error.get_ref().is_none() => {
                Err(Broken::Stalled(self.limits.stall))
            }
            // What could not be sent was owed, but to a client that does not want it any more.
            Some(error) if has_gone(&error) && self.wants_nothing() => ended,
            Some(error) => Err(error.into()),
            None => ended,
        }
    }

    fn receive(&mut self) -> Result<(), Broken> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut length = 0;
        loop {
            if self.take(&buffer[..length])? == ClientState::Away {
                return Ok(());
            }
            let owes_nothing = self.outbox.flush();
            self.bound_negotiation()?;
            self.reserve_payload();
            // The rest of a payload goes where it belongs, all else through the buffer.
            let waits_since = self.waits_for_rest();
            let space = self.session.space();
            let in_place = space.is_some();
            let read = self.watch.read(&self.stream, space.unwrap_or(&mut buffer), owes_nothing);
            if let Some(since) = waits_since {
                self.bound_request(since)?;
            }
            length = match read {
                Ok(0) => return Ok(self.session.ended()?),
                Ok(length) if in_place => {
                    if let Some(request) = self.session.filled(length) {
                        self.pace = None;
                        self.submit(request);
                    }
                    0
                }
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                Err(error) if is_timeout(&error) => {
                    self.is_in_time()?;
                    0
                }
                // Of answers that were sent it need not have read the last bytes.
                Err(error) if has_gone(&error) && (self.wants_nothing() || self.outbox.flush()) => {
                    return Ok(self.session.ended()?);
                }
                Err(error) => return Err(error.into()),
            };
        }
    }

    /// Time at which the wait for the rest of a request begins; `None` where none is under way.
    fn waits_for_rest(&mut self) -> Option<Instant> {
        let owed = self.session.owed_bytes();
        match (&mut self.pace, owed) {
            // What a client owes grows with the next part alone, as the data behind a head.
            (Some(pace), Some(owed)) if owed <= pace.owed => pace.owed = owed,
            (pace, owed) => {
                *pace = owed.map(|owed| {
                    let allowed = self.limits.time_for(owed);
                    Pace { owed, allowed, waited: Duration::ZERO }
                });
            }
        }
        owed.map(|_| Instant::now())
    }

    /// Limits the time of a request, even if its bytes come steadily. Only time in which the server waits for
    /// the client counts.
    fn bound_request(&mut self, since: Instant) -> Result<(), Broken> {
        let Some(pace) = &mut self.pace else { return Ok(()) };
        pace.waited += since.elapsed();
        if pace.waited > pace.allowed { Err(Broken::Slow(pace.allowed)) } else { Ok(()) }
    }

    /// A read has brought no byte within its time. Between two requests that is allowed.
    fn is_in_time(&self) -> Result<(), Broken> {
        match self.session.ended() {
            _ if self.service.is_none() => Err(Broken::Undecided(self.limits.negotiation)),
            Err(_) => Err(Broken::Unfinished(self.limits.stall)),
            Ok(()) => Ok(()),
        }
    }

    /// True if the connection may end in order: the client has said that it is done, or has chosen no
    /// export, as probes of ports do. It need not read the answers.
    fn wants_nothing(&self) -> bool {
        self.is_done || self.service.is_none()
    }

    /// Does what these bytes ask for, all of them.
    fn take(&mut self, mut bytes: &[u8]) -> Result<ClientState, Broken> {
        loop {
            if self.stopping.load(Ordering::Relaxed) {
                self.session.shut_down();
            }
            let (answered, weight) = self.outbox.progress();
            self.session.answered(answered);
            if weight > self.limits.bytes_in_flight_max {
                self.outbox.wait_for_room(u32::MAX, self.limits.bytes_in_flight_max);
                continue;
            }
            let event = self.session.feed(&mut bytes)?;
            if event.is_some() {
                // What was begun has ended.
                self.pace = None;
            }
            match event {
                Some(Event::Send(bytes)) => self.outbox.push(Message::text(bytes)),
                Some(Event::Start(started)) => {
                    (self.decide)().map_err(Broken::Refused)?;
                    self.service = self.services.get(started.export).cloned();
                    self.stream.set_read_timeout(Some(self.limits.stall))?;
                    if let Some(service) = self.service.clone() {
                        let caller = self.caller;
                        self.outbox.on_leaving(Box::new(move || service.left(caller)));
                    }
                }
                Some(Event::Request(request)) => self.submit(request),
                Some(Event::StartTls) => self.encrypt(std::mem::take(&mut bytes))?,
                Some(Event::Close(_)) => {
                    self.is_done = true;
                    return Ok(ClientState::Away);
                }
                None if bytes.is_empty() => return Ok(ClientState::On),
                None => {
                    let in_flight_max = self.limits.in_flight_max.saturating_sub(1);
                    self.outbox.wait_for_room(in_flight_max, u64::MAX);
                }
            }
        }
    }

    /// Says yes to TLS and shakes hands, which these bytes of the client begin. It has as long as
    /// for the rest of the negotiation.
    fn encrypt(&mut self, early: &[u8]) -> Result<(), Broken> {
        self.outbox.flush();
        let tls = self.tls.expect("a session offers TLS only where there is some");
        let connection = tls.connection().map_err(io::Error::other)?;
        let until = self.begun + self.limits.negotiation;
        match self.stream.encrypt(connection, early, until) {
            Ok(()) => {}
            Err(error) if is_timeout(&error) => {
                return Err(Broken::Undecided(self.limits.negotiation));
            }
            Err(error) => return Err(error.into()),
        }
        self.session.tls_established();
        Ok(())
    }

    /// Waits for memory for a payload before its rest is read.
    fn reserve_payload(&mut self) {
        if !self.has_reserved
            && let Some(length) = self.session.payload_bytes()
        {
            self.has_reserved = self.outbox.reserve(length as u64);
        }
    }

    fn submit(&mut self, request: Request) {
        let Request { ticket, command, mut data } = request;
        // The rest in the socket of a client that has gone is read and dropped.
        if self.outbox.has_left() {
            self.has_reserved = false;
            return self.session.answered(1);
        }
        let weight = match command {
            // A service may do the last as a read.
            Command::Read { span, .. } | Command::Write { span, .. } | Command::Cache { span } => {
                u64::from(span.length)
            }
            _ => 0,
        };
        if !std::mem::take(&mut self.has_reserved) && !self.outbox.reserve(weight) {
            return self.session.answered(1);
        }
        self.outbox.began(weight);
        let responder = Responder::new(ticket, self.caller, Arc::clone(&self.outbox), weight);
        // Without one the responder says so; but requests come only after an export was chosen.
        if let Some(service) = &self.service {
            service.submit(command, &mut data, responder);
        }
        self.session.recycle(data);
    }

    /// Limits the time until a client has chosen an export.
    fn bound_negotiation(&self) -> Result<(), Broken> {
        if self.service.is_some() {
            return Ok(());
        }
        let longest = self.limits.negotiation;
        let left = longest.saturating_sub(self.begun.elapsed());
        if left.is_zero() {
            return Err(Broken::Undecided(longest));
        }
        Ok(self.stream.set_read_timeout(Some(left))?)
    }
}

/// True if the socket failed because the client is not there any more.
fn has_gone(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::super::socket::Socket;
    use super::*;

    #[test]
    fn connection_spins_for_recently_active_client() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let stream = Stream::new(Socket::Unix(here)).unwrap();
        let mut watch = Watch { is_possible: true, is_worth_it: false };
        let mut byte = [0];
        there.write_all(&[1, 2]).unwrap();
        assert_eq!(watch.read(&stream, &mut byte, true).unwrap(), 1);
        assert!(watch.is_worth_it);
        // An answer by another thread does not tell when this client asks next.
        assert_eq!(watch.read(&stream, &mut byte, false).unwrap(), 1);
        assert!(watch.is_worth_it);
        for _ in 0..2 {
            let mut late = there.try_clone().unwrap();
            let later = thread::spawn(move || {
                thread::sleep(100 * WATCH);
                late.write_all(&[3]).unwrap();
            });
            assert_eq!(watch.read(&stream, &mut byte, true).unwrap(), 1);
            assert_eq!((byte, watch.is_worth_it), ([3], false));
            later.join().unwrap();
        }
        drop(there);
        assert_eq!(watch.read(&stream, &mut byte, true).unwrap(), 0);
        assert_eq!(Watch { is_worth_it: true, ..watch }.read(&stream, &mut byte, true).unwrap(), 0);
    }
}
