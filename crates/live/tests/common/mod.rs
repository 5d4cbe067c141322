//! A client that waits, and servers to talk to.
#![allow(dead_code)]

pub mod held;
pub mod pki;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use freewheel_live::nbd::{Access, Address, Limits, Served, Server, ServerTls, Service, Stop};
use freewheel_nbd::client::{Event, ExportInfo, Reply, Session, Settings};
use freewheel_nbd::{Command, Errno, Span, Uri};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longer than anything here takes, on a machine that has other things to do.
pub const STALLED_REQUESTS_MAX: Duration = Duration::from_secs(30);

/// A server in a thread, stopped at the end.
pub struct Running {
    folder: tempfile::TempDir,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Served>>,
    pub notices: Arc<Mutex<Vec<String>>>,
}

impl Running {
    pub fn new(services: Vec<Arc<dyn Service>>, limits: Limits) -> Self {
        Self::encrypted(services, limits, None)
    }

    pub fn encrypted(
        services: Vec<Arc<dyn Service>>,
        limits: Limits,
        tls: Option<ServerTls>,
    ) -> Self {
        // Tests count notices: none is left out, unless a test is about that.
        let is_thinned = limits.notice_every != Limits::default().notice_every;
        let notice_every = if is_thinned { limits.notice_every } else { Duration::ZERO };
        let limits = Limits { notice_every, ..limits };
        let folder = tempfile::tempdir().unwrap();
        let notices = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&notices);
        let notice = move |text: &str| heard.lock().unwrap().push(text.to_owned());
        let address = Address::Unix(folder.path().join("socket"));
        let access = Access { tls, ..Access::default() };
        let server = Server::bind(&address, access, services, limits, notice).unwrap();
        let stop = Arc::new(Stop::new().unwrap());
        let told = Arc::clone(&stop);
        let thread = Some(thread::spawn(move || server.run(&told).unwrap()));
        Self { folder, stop, thread, notices }
    }

    pub fn of(service: impl Service + 'static) -> Self {
        Self::new(vec![Arc::new(service)], Limits::default())
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn uri(&self) -> Uri {
        Address::Unix(self.socket()).uri("", false)
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.socket(), "")
    }

    /// Tells it to stop without waiting.
    pub fn begin_stop(&self) {
        self.stop.stop();
    }

    /// Stops it and waits until every connection has been told: that of `idle`, the client that connected
    /// last, is closed then.
    pub fn begin_stop_and_wait(&self, mut idle: Client) {
        self.begin_stop();
        assert_eq!(idle.stream.read(&mut [0]).unwrap(), 0);
    }

    /// Stops it; returns its counts.
    pub fn stop(mut self) -> Served {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

/// A client of one export.
pub struct Client {
    pub stream: UnixStream,
    pub session: Session,
    pub info: ExportInfo,
}

impl Client {
    pub fn connect(socket: &Path, export: &str) -> Self {
        Self::try_connect(socket, export).expect("a greeting")
    }

    /// None if the server closes the connection before its greeting.
    pub fn try_connect(socket: &Path, export: &str) -> Option<Self> {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(STALLED_REQUESTS_MAX)).unwrap();
        stream.set_write_timeout(Some(STALLED_REQUESTS_MAX)).unwrap();
        let session = Session::new(Settings { block_status: true, ..Settings::default() });
        let mut client = Self { stream, session, info: ExportInfo::default() };
        assert_eq!(client.event()?, Event::Greeted);
        let go = client.session.go(export).unwrap();
        client.stream.write_all(&go).unwrap();
        match client.event() {
            Some(Event::Started(info)) => client.info = info,
            other => panic!("{other:?}"),
        }
        Some(client)
    }

    /// The next event but what is to be sent, which is sent; `None` at the end of the connection.
    pub fn event(&mut self) -> Option<Event> {
        let mut bytes = [0];
        let mut length = 0;
        loop {
            let mut part = &bytes[..length];
            while let Some(event) = self.session.feed(&mut part).unwrap() {
                match event {
                    Event::Send(bytes) => self.stream.write_all(&bytes).unwrap(),
                    event => return Some(event),
                }
            }
            // Byte by byte except for data, so that no byte is held between two calls.
            length = match self.session.space() {
                Some(space) => {
                    let read = self.stream.read(space).unwrap();
                    self.session.filled(read);
                    0
                }
                None => match self.stream.read(&mut bytes) {
                    Ok(0) => return None,
                    read => read.unwrap(),
                },
            };
        }
    }

    /// Makes a request with other numbers than its own, which no client of ours would send, and has the
    /// error.
    pub fn refusal(&mut self, command: Command, data: &[u8], sent: Span) -> Errno {
        let (_, head) = self.session.request(command, Vec::new()).unwrap();
        let mut head = head.to_vec();
        // The end of a request: where, and how much.
        let at = head.len() - 12;
        head[at..at + 8].copy_from_slice(&sent.offset.to_be_bytes());
        head[at + 8..].copy_from_slice(&sent.length.to_be_bytes());
        self.stream.write_all(&head).unwrap();
        self.stream.write_all(data).unwrap();
        self.reply().result.unwrap_err().errno
    }

    /// Makes a request and does not wait.
    pub fn ask(&mut self, command: Command, data: &[u8]) -> u64 {
        let (cookie, head) = self.session.request(command, Vec::new()).unwrap();
        self.stream.write_all(&head).unwrap();
        self.stream.write_all(data).unwrap();
        cookie
    }

    /// The next reply that comes.
    pub fn reply(&mut self) -> Reply {
        match self.event() {
            Some(Event::Reply(reply)) => reply,
            other => panic!("{other:?}"),
        }
    }

    /// True if an answer begins to come; reads no byte of it.
    pub fn is_told(&self) -> bool {
        let mut waits = [PollFd::new(&self.stream, PollFlags::IN)];
        let longest = Timespec::try_from(STALLED_REQUESTS_MAX).unwrap();
        poll(&mut waits, Some(&longest)).unwrap() == 1
    }

    pub fn call(&mut self, command: Command, data: &[u8]) -> Reply {
        let cookie = self.ask(command, data);
        let reply = self.reply();
        assert_eq!(reply.cookie, cookie);
        reply
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, Errno> {
        let reply = self.call(Command::read(offset, length), &[]);
        reply.result.map(|()| reply.data).map_err(|failure| failure.errno)
    }

    pub fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), Errno> {
        let span = Span { offset, length: data.len() as u32 };
        let reply = self.call(Command::Write { span, fua }, data);
        reply.result.map_err(|failure| failure.errno)
    }

    pub fn flush(&mut self) -> Result<(), Errno> {
        self.call(Command::Flush, &[]).result.map_err(|failure| failure.errno)
    }

    /// Goes without a word.
    pub fn vanish(self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
    }
}

/// Bytes that differ from place to place.
pub fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(next).collect()
}

/// True if it stays so for 50 ms: for events that must not happen, which no condition can wait for.
pub fn stays(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_millis(50);
    while Instant::now() < until {
        if !what() {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Waits until it is so, for a long while.
pub fn eventually(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + STALLED_REQUESTS_MAX;
    while Instant::now() < until {
        if what() {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}
