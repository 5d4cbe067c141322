//! Connections: who may have one, and how all of them end.

mod cutter;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, ErrorKind};
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
use super::service::{Caller, Service};
use super::stop::Stop;
use super::stream::{Owner, Peer, Stream};
use super::tls::ServerTls;

/// What became of the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Served {
    /// Taken.
    pub connections: u64,
    /// Closed as they came, because there were too many, or too many of one peer.
    pub refused: u64,
    /// Ended by an error of the client or of its socket.
    pub broken: u64,
}

/// A server that listens.
pub struct Server {
    listener: Listener,
    shared: Arc<Shared>,
}

/// What the threads of all connections see.
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
    /// Held while all connections are cut: none is taken meanwhile.
    gate: Mutex<()>,
    notice: Notice,
}

#[derive(Default)]
struct State {
    /// By number.
    open: BTreeMap<u64, Open>,
    served: Served,
    /// The last one that came was closed.
    is_refusing: bool,
}

/// A connection that is open.
struct Open {
    peer: Option<Peer>,
    owner: Option<Owner>,
    caller: Caller,
    /// None of one that has just been taken.
    outbox: Option<Arc<Outbox>>,
}

impl State {
    /// Why a peer gets no further connection, if it does not.
    fn refusal(
        &self,
        peer: Option<Peer>,
        owner: Option<Owner>,
        connections_max: usize,
    ) -> Option<String> {
        if self.open.len() >= connections_max {
            return Some(format!("all {connections_max} connections that there may be are taken"));
        }
        let of_peer = self.open.values().filter(|open| open.peer == peer).count();
        let of_owner = self.open.values().filter(|open| open.owner == owner).count();
        let of_owner_max = (connections_max - connections_max / 4).max(1);
        // What cannot be told apart is no process, but may be many.
        let of_peer_max = match peer {
            Some(Peer::Process(number)) if number != 0 => (connections_max / 2).max(1),
            _ => of_owner_max,
        };
        let says = |who: &dyn Display, most| {
            format!("{who} has {most} connections, all that one client may have")
        };
        let too_many_of_peer = peer.filter(|_| of_peer >= of_peer_max);
        let too_many_of_owner = owner.filter(|_| of_owner >= of_owner_max);
        match (too_many_of_peer, too_many_of_owner) {
            (Some(peer), _) => Some(says(&peer, of_peer_max)),
            (None, Some(owner)) => Some(says(&owner, of_owner_max)),
            (None, None) => None,
        }
    }

    fn outboxes(&self) -> impl Iterator<Item = &Outbox> {
        self.open.values().filter_map(|open| open.outbox.as_deref())
    }

    /// A new connection of a peer, which has the number of the first of those that are open.
    fn caller(&self, number: u64, peer: Option<Peer>) -> Caller {
        let of_peer = |open: &&Open| peer.is_some() && open.peer == peer;
        let first = self.open.values().find(of_peer);
        Caller { peer: first.map_or(number, |open| open.caller.peer), connection: number }
    }
}

/// Called with a text for each connection that did not end in order, and for the first of a row that was
/// refused.
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
            state: Mutex::default(),
            ended: Condvar::new(),
            gate: Mutex::default(),
            notice: Box::new(notice),
        };
        Ok(Self { listener: Listener::bind(address, socket_mode)?, shared: Arc::new(shared) })
    }

    /// Where it listens; the port that the system chose when port 0 was asked for.
    pub fn address(&self) -> &Address {
        self.listener.address()
    }

    /// Whether clients must use TLS.
    pub fn tls_is_required(&self) -> bool {
        self.shared.tls.as_ref().is_some_and(ServerTls::is_required)
    }

    /// Serves until the stop. Then the server takes no connections any more, refuses further requests,
    /// answers those in flight, and closes the connections. An error when the listening socket fails.
    pub fn run(self, stop: &Stop) -> io::Result<Served> {
        let accepted = self.accept_until(stop);
        let Self { listener, shared } = self;
        drop(listener);
        let served = shared.finish();
        accepted.map(|()| served)
    }

    fn accept_until(&self, stop: &Stop) -> io::Result<()> {
        let mut next = 0;
        let mut watched = WatchedStreams::default();
        loop {
            let mut waits = vec![
                PollFd::new(&self.listener, PollFlags::IN),
                PollFd::from_borrowed_fd(stop.told(), PollFlags::IN),
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
                Err(error) if is_shortage(&error) => thread::sleep(Duration::from_millis(100)),
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
        let outbox = self.lock().open.get(&number).map(|open| open.outbox.clone());
        match outbox {
            None => true,
            Some(Some(outbox)) => {
                outbox.hang_up();
                true
            }
            Some(None) => {
                thread::sleep(Duration::from_millis(1));
                false
            }
        }
    }

    /// Gives a connection its thread; whether it has one.
    fn open(self: &Arc<Self>, number: u64, stream: &Arc<Stream>) -> bool {
        let (peer, owner) = (stream.peer(), stream.owner());
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        if let Some(why) = state.refusal(peer, owner, self.limits.connections_max) {
            state.served.refused += 1;
            if !std::mem::replace(&mut state.is_refusing, true) {
                drop(state);
                (self.notice)(&format!("connection {number} is closed, as others may be: {why}"));
            }
            return false;
        }
        state.is_refusing = false;
        state.served.connections += 1;
        let caller = state.caller(number, peer);
        state.open.insert(number, Open { peer, owner, caller, outbox: None });
        drop(state);
        let place = Place { shared: Arc::clone(self), caller, owner };
        let thread = thread::Builder::new().name(format!("nbd {number}"));
        let stream = Arc::clone(stream);
        let spawned = thread.spawn(move || place.serve(stream));
        if let Err(error) = &spawned {
            self.broke(number, &io::Error::from(error.kind()).into());
        }
        spawned.is_ok()
    }

    fn broke(&self, number: u64, why: &Broken) {
        self.lock().served.broken += 1;
        (self.notice)(&format!("connection {number}: {why}"));
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
        if let Some(open) = self.lock().open.get_mut(&caller.connection) {
            open.outbox = Some(Arc::clone(&outbox));
        }
        if self.stopping.load(Ordering::SeqCst) {
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
            service: None,
            is_done: false,
            has_reserved: false,
            pace: None,
            watch: Watch::new(),
        };
        thread::scope(|threads| {
            let sends = &outbox;
            threads.spawn(move || sends.send_until_ended(&inbox));
            let _end = End(&outbox);
            connection.serve()
        })
    }

    /// Stops all connections, and waits until they have ended.
    fn finish(&self) -> Served {
        self.stopping.store(true, Ordering::SeqCst);
        let mut state = self.lock();
        state.outboxes().for_each(Outbox::close_reading);
        let until = Instant::now() + self.limits.grace;
        while !state.open.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.outboxes().for_each(Outbox::cut);
                break;
            }
            let waited = self.ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.served
    }
}

/// A place among the connections, which is free again when the thread that has it ends, however it
/// does.
struct Place {
    shared: Arc<Shared>,
    caller: Caller,
    owner: Option<Owner>,
}

impl Place {
    fn serve(self, stream: Arc<Stream>) {
        if let Err(broken) = self.shared.serve(self.caller, self.owner, stream) {
            self.shared.broke(self.caller.connection, &broken);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.lock().open.remove(&self.caller.connection);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections of these peers, in order; `None` where peers cannot be told apart.
    fn open(peers: &[Option<u8>]) -> State {
        let mut state = State::default();
        for (&of, number) in peers.iter().zip(0..) {
            let peer = of.map(machine);
            let caller = state.caller(number, peer);
            let owner = peer.map(|_| Owner::User(0));
            state.open.insert(number, Open { peer, owner, caller, outbox: None });
        }
        state
    }

    fn machine(number: u8) -> Peer {
        Peer::Machine([192, 0, 2, number].into())
    }

    #[test]
    fn the_peer_with_most_connections_leaves_room_for_others() {
        let refusal = |state: &State, peer: Peer, owner: Owner, most| {
            state.refusal(Some(peer), Some(owner), most)
        };
        let says = |why: Option<String>, what: &str| why.is_some_and(|why| why.contains(what));
        let mut state = open(&[Some(1); 6]);
        let [one, two] = [1, 2].map(|number| Owner::Machine([192, 0, 2, number].into()));
        state.open.values_mut().for_each(|open| open.owner = Some(one));
        assert!(says(refusal(&state, machine(1), one, 8), "192.0.2.1 has 6"));
        assert_eq!(refusal(&state, machine(2), two, 8), None);

        // A process has half, a user three quarters, and so has the loopback.
        let process = |number| Peer::Process(number);
        for (count, peer, owner, says_so) in [
            (4, process(7), Owner::User(5), Some("process 7 has 4")),
            (4, process(8), Owner::User(5), None),
            (6, process(8), Owner::User(5), Some("user 5 has 6")),
            (6, process(8), Owner::User(6), None),
            (6, process(8), Owner::Loopback, None),
        ] {
            let mut state = open(&[Some(1); 8][..count]);
            state.open.values_mut().for_each(|open| {
                (open.peer, open.owner) = (Some(process(7)), Some(Owner::User(5)));
            });
            let why = refusal(&state, peer, owner, 8);
            assert_eq!(why.is_some(), says_so.is_some(), "{count} {peer} {owner}");
            assert!(says_so.is_none_or(|what| says(why, what)), "{count} {peer} {owner}");
        }
        let mut state = open(&[None; 6]);
        state.open.values_mut().for_each(|open| open.owner = Some(Owner::Loopback));
        assert!(says(state.refusal(None, Some(Owner::Loopback), 8), "the loopback address has 6"));
        assert!(
            state
                .refusal(None, Some(Owner::Loopback), 6)
                .is_some_and(|why| why.starts_with("all 6"))
        );
        assert_eq!(refusal(&open(&[]), process(1), Owner::User(1), 1), None, "one is for somebody");
    }

    #[test]
    fn connections_of_a_machine_are_of_one_peer_and_those_of_the_loopback_each_of_its_own() {
        let state = open(&[Some(1), None, Some(2), Some(1), None]);
        let peers: Vec<u64> = state.open.values().map(|open| open.caller.peer).collect();
        assert_eq!(peers, [0, 1, 2, 0, 4]);
    }
}
