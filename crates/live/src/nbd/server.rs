//! Connections: who may have one, and how all of them end.

mod cutter;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use freewheel_nbd::server::{Session, Settings, Tls};
use freewheel_nbd::{self as protocol, Export};
use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;

use super::address::{Access, Address, ListenError, Listener};
use super::budget::{Budget, MemoryHolder};
use super::connection::{Broken, Connection, Watch};
use super::limits::Limits;
use super::outbox::Outbox;
use super::places::Places;
use super::repeats::Repeats;
use super::service::{Caller, Service};
use super::stop::Stop;
use super::stream::{Owner, Stream};
use super::tls::ServerTls;

/// Counts of the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Served {
    /// Taken.
    pub connections: u64,
    /// Closed as they came or before they were served, because there were too many, or too many of one peer.
    pub refused: u64,
    /// Ended by an error of the client or of its socket.
    pub broken: u64,
}

/// A server that listens.
pub struct Server {
    listener: Listener,
    shared: Arc<Shared>,
    grace: Duration,
}

/// State that the threads of all connections share.
struct Shared {
    services: Vec<Arc<dyn Service>>,
    exports: Vec<Export>,
    tls: Option<ServerTls>,
    limits: Limits,
    budget: Arc<Budget>,
    stopping: AtomicBool,
    state: Mutex<State>,
    /// A connection has ended.
    ended: Condvar,
    begun: Instant,
    /// Held while all connections are cut: none is taken meanwhile.
    gate: Mutex<()>,
    notice: Notice,
}

struct State {
    places: Places,
    /// Outboxes of connections whose threads have begun.
    outboxes: BTreeMap<u64, Arc<Outbox>>,
    served: Served,
    repeats: Repeats,
}

/// Called with a text for connections that did not end in order or were refused; of those that are alike
/// [only now and then](Limits::notice_every). Must not block: threads with requests call it.
type Notice = Box<dyn Fn(&str) + Send + Sync>;

impl Server {
    /// Listens at an address and serves these exports; clients that give no name get the first.
    /// Where other machines can connect, [`Access::tls`] must be given and verify its clients (or
    /// [do without](ServerTls::allow_clients_without_certificate)), and clients must use it.
    pub fn bind(
        address: &Address,
        access: Access,
        services: Vec<Arc<dyn Service>>,
        limits: Limits,
        notice: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, ListenError> {
        let exports: Vec<Export> = services.iter().map(|service| service.export()).collect();
        exports.iter().try_for_each(Export::check)?;
        let Access { tls, socket_mode } = access;
        let tls = match address {
            Address::Tcp(at) if !at.ip().is_loopback() => {
                let tls = tls.ok_or(ListenError::NotLoopback { address: *at })?;
                if !tls.may_leave_the_loopback() {
                    return Err(ListenError::ClientsNotVerified { address: *at });
                }
                Some(tls.required())
            }
            _ => tls,
        };
        let shared = Shared {
            services,
            exports,
            tls,
            limits,
            budget: Arc::new(Budget::new(limits.memory_max)),
            stopping: AtomicBool::new(false),
            state: Mutex::new(State {
                places: Places::default(),
                outboxes: BTreeMap::new(),
                served: Served::default(),
                repeats: Repeats::new(limits.notice_every),
            }),
            ended: Condvar::new(),
            begun: Instant::now(),
            gate: Mutex::default(),
            notice: Box::new(notice),
        };
        let listener = Listener::bind(address, socket_mode)?;
        Ok(Self { listener, shared: Arc::new(shared), grace: limits.grace })
    }

    /// Server with another time at a stop until requests in flight are answered.
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// Address of the server; with the port that the system chose when port 0 was asked for.
    pub fn address(&self) -> &Address {
        self.listener.address()
    }

    /// True if clients must use TLS.
    pub fn tls_is_required(&self) -> bool {
        self.shared.tls.as_ref().is_some_and(ServerTls::is_required)
    }

    /// Serves until the stop. Then the server takes no connections any more, refuses further requests,
    /// answers those in flight, and closes the connections. An error when the listening socket fails.
    pub fn run(self, stop: &Stop) -> io::Result<Served> {
        let accepted = self.accept_until(stop);
        let Self { listener, shared, grace } = self;
        drop(listener);
        let served = shared.finish(grace);
        accepted.map(|()| served)
    }

    fn accept_until(&self, stop: &Stop) -> io::Result<()> {
        let mut next = 0;
        let mut watched = WatchedStreams::default();
        let mut spare = SpareDescriptor::new();
        loop {
            let mut waits = vec![
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::from_borrowed_fd(stop.shutdown(), PollFlags::IN),
            ];
            waits.extend(watched.waits());
            match poll(&mut waits, None) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled?,
            };
            if !waits[1].revents().is_empty() {
                return Ok(());
            }
            let hung_up: Vec<bool> =
                waits[2..].iter().map(|wait| !wait.revents().is_empty()).collect();
            let has_come = !waits[0].revents().is_empty();
            drop(waits);
            watched.retain(&hung_up, |number| self.shared.hung_up(number));
            if !has_come {
                continue;
            }
            match self.listener.accept() {
                Ok(stream) => {
                    let stream = Arc::new(stream);
                    if self.shared.open(next, &stream) {
                        watched.0.push((next, stream));
                    }
                    next += 1;
                }
                Err(error) if is_fleeting(&error) => {}
                Err(error) if is_shortage(&error) => {
                    if !spare.close_one(&self.listener) {
                        thread::sleep(Duration::from_millis(100));
                    }
                    self.shared.refused(None, "descriptors", || {
                        format!(
                            "a connection is closed, as others may be: {error}; allow the server more \
                             (ulimit -n, systemd's LimitNOFILE)"
                        )
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Connections of which the system tells when their other end is closed, by number.
#[derive(Default)]
struct WatchedStreams(Vec<(u64, Arc<Stream>)>);

impl WatchedStreams {
    /// Polls for no events: the system always reports the end of both directions.
    fn waits(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.0.iter().map(|(_, stream)| PollFd::new(stream.as_ref(), PollFlags::empty()))
    }

    /// Lets go of those that have hung up, once somebody was told.
    fn retain(&mut self, hung_up: &[bool], tell: impl Fn(u64) -> bool) {
        let mut hung_up = hung_up.iter();
        self.0.retain(|&(number, _)| !(hung_up.next() == Some(&true) && tell(number)));
    }
}

/// A descriptor that is kept for the time when none is left: a client that waits to be accepted is then at
/// least closed, and does not wait for ever.
struct SpareDescriptor(Option<File>);

impl SpareDescriptor {
    fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Accepts a connection in the place of the spare one, and closes it. Whether it could.
    fn close_one(&mut self, listener: &Listener) -> bool {
        let was_there = self.0.take().is_some();
        let is_closed = listener.accept().is_ok();
        *self = Self::new();
        was_there && is_closed
    }
}

/// The client was gone before it was taken.
fn is_fleeting(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
    )
}

/// No descriptor or memory is left now; connections that end give some back.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The other end of a connection is closed. False while its thread has not begun.
    fn hung_up(&self, number: u64) -> bool {
        let state = self.lock();
        let outbox = state.outboxes.get(&number).map(Arc::clone);
        let is_open = state.places.has(number);
        drop(state);
        match outbox {
            None if is_open => {
                thread::sleep(Duration::from_millis(1));
                return false;
            }
            None => {}
            Some(outbox) => outbox.hang_up(),
        }
        true
    }

    /// Gives a connection its thread; whether it has one.
    fn open(self: &Arc<Self>, number: u64, stream: &Arc<Stream>) -> bool {
        let (peer, owner) = (stream.peer(), stream.owner());
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let arrived = state.places.arrive(number, (peer, owner), self.limits.connections_max);
        let arrival = match arrived {
            Ok(arrival) => arrival,
            Err(why) => {
                state.served.refused += 1;
                drop(state);
                self.say(owner, "refused", || {
                    format!("connection {number} is closed, as others may be: {why}")
                });
                return false;
            }
        };
        state.served.connections += 1;
        // One whose thread has not begun looks for itself.
        let displaced = arrival.displaced.and_then(|oldest| state.outboxes.get(&oldest).cloned());
        drop(state);
        if let Some(outbox) = displaced {
            outbox.cut();
        }
        let caller = arrival.caller;
        let place = Place { shared: Arc::clone(self), caller, owner, stream: Arc::clone(stream) };
        let thread = thread::Builder::new().name(format!("nbd {number}"));
        match thread.spawn(move || place.serve()) {
            Ok(_) => true,
            Err(error) => {
                self.broke(number, owner, &Broken::NoThread(error));
                false
            }
        }
    }

    fn broke(&self, number: u64, owner: Option<Owner>, why: &Broken) {
        self.lock().served.broken += 1;
        self.say(owner, why.reason(), || format!("connection {number}: {why}"));
    }

    fn refused(&self, owner: Option<Owner>, reason: &'static str, text: impl FnOnce() -> String) {
        self.lock().served.refused += 1;
        self.say(owner, reason, text);
    }

    /// One that had been taken is refused after all.
    fn turned_away(
        &self,
        owner: Option<Owner>,
        reason: &'static str,
        text: impl FnOnce() -> String,
    ) {
        self.lock().served.connections -= 1;
        self.refused(owner, reason, text);
    }

    /// Says it, unless as much was said of this reason and owner a moment ago.
    fn say(&self, owner: Option<Owner>, reason: &'static str, text: impl FnOnce() -> String) {
        let worth = self.lock().repeats.worth(owner, reason, self.begun.elapsed());
        match worth {
            None => {}
            Some(0) => (self.notice)(&text()),
            Some(1) => (self.notice)(&format!("{} (and one more like it before)", text())),
            Some(more) => (self.notice)(&format!("{} (and {more} more like it before)", text())),
        }
    }

    /// The life of a connection, in its own thread.
    fn serve(
        &self,
        caller: Caller,
        owner: Option<Owner>,
        stream: Arc<Stream>,
    ) -> Result<(), Broken> {
        stream.set_write_timeout(self.limits.stall)?;
        let holder = MemoryHolder { peer: caller.peer, owner };
        let (outbox, inbox) =
            Outbox::new(Arc::clone(&stream), self.limits, Arc::clone(&self.budget), holder);
        let outbox = Arc::new(outbox);
        let number = caller.connection;
        let mut state = self.lock();
        state.outboxes.insert(number, Arc::clone(&outbox));
        let is_displaced = state.places.is_displaced(number);
        drop(state);
        if is_displaced || self.stopping.load(Ordering::SeqCst) {
            return Ok(());
        }
        let session = Session::new(Settings {
            exports: self.exports.clone(),
            tls: match &self.tls {
                None => Tls::Off,
                Some(tls) if tls.is_required() => Tls::Required,
                Some(_) => Tls::Offered,
            },
            limits: protocol::Limits {
                in_flight_max: self.limits.in_flight_max,
                ..protocol::Limits::default()
            },
        });
        let mut connection = Connection {
            caller,
            stream,
            begun: Instant::now(),
            tls: self.tls.as_ref(),
            outbox: Arc::clone(&outbox),
            session: session.expect("the exports were checked"),
            services: &self.services,
            limits: &self.limits,
            stopping: &self.stopping,
            decide: &|| self.lock().places.decide(number, self.limits.connections_max),
            service: None,
            is_done: false,
            has_reserved: false,
            pace: None,
            watch: Watch::new(),
        };
        thread::scope(|threads| {
            let sends = &outbox;
            let thread = thread::Builder::new().name(format!("nbd {number} out"));
            thread
                .spawn_scoped(threads, move || sends.send_until_ended(&inbox))
                .map_err(Broken::NoThread)?;
            let _end = End(&outbox);
            connection.serve()
        })
    }

    /// Stops all connections, and waits until they have ended.
    fn finish(&self, grace: Duration) -> Served {
        self.stopping.store(true, Ordering::SeqCst);
        let mut state = self.lock();
        state.outboxes.values().for_each(|outbox| outbox.close_reading());
        let until = Instant::now() + grace;
        while !state.places.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.outboxes.values().for_each(|outbox| outbox.cut());
                break;
            }
            let waited = self.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.served
    }
}

/// A place among the connections. It is free again when the thread that has it ends, however it does, and
/// then the client hears of the end.
struct Place {
    shared: Arc<Shared>,
    caller: Caller,
    owner: Option<Owner>,
    stream: Arc<Stream>,
}

impl Place {
    fn serve(self) {
        let Self { shared, caller, owner, stream } = &self;
        let served = shared.serve(*caller, *owner, Arc::clone(stream));
        let number = caller.connection;
        let is_displaced = shared.lock().places.is_displaced(number);
        match served {
            _ if is_displaced => shared.turned_away(*owner, "displaced", || {
                format!(
                    "connection {number} had chosen no export, and was closed for newer ones, as others may be"
                )
            }),
            Err(Broken::Refused(why)) => shared.turned_away(*owner, "refused", || {
                format!("connection {number} is closed, as others may be: {why}")
            }),
            Err(broken) => shared.broke(number, *owner, &broken),
            Ok(()) => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let number = self.caller.connection;
        if thread::panicking() {
            self.shared.broke(number, self.owner, &Broken::Panicked);
        }
        // The stream is also with the thread that watches for its end.
        self.stream.shutdown(Shutdown::Both);
        let mut state = self.shared.lock();
        state.places.leave(number);
        state.outboxes.remove(&number);
        drop(state);
        self.shared.ended.notify_all();
    }
}

/// Ends a connection also when its thread panics.
struct End<'a>(&'a Outbox);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
