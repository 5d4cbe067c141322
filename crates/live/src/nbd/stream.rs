//! The bytes of a connection: as they are, or from some point on through TLS.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

// Rustix has no process 0 in its type, which is what the kernel says of a peer in another container.
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv, sockopt};

use super::socket::Socket;
use super::tls::Layer;

/// A connection, shared by the thread that reads it and those that write.
pub(super) struct Stream {
    socket: Socket,
    tls: OnceLock<Layer>,
}

/// Who is at the other end of a connection, as far as can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Peer {
    /// A process of this machine.
    Process(i32),
    /// A machine, by its address.
    Machine(IpAddr),
}

impl fmt::Display for Peer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(0) => write!(out, "what runs in other containers"),
            Self::Process(number) => write!(out, "process {number}"),
            Self::Machine(address) => write!(out, "{address}"),
        }
    }
}

/// Who has connections, as far as can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// A user of this machine, by number.
    User(u32),
    /// Anybody on this machine, by TCP.
    Loopback,
    /// A machine, by its address.
    Machine(IpAddr),
}

impl fmt::Display for Owner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(number) => write!(out, "user {number}"),
            Self::Loopback => write!(out, "the loopback address"),
            Self::Machine(address) => write!(out, "{address}"),
        }
    }
}

/// Ends a TCP connection whose other machine does not answer the system's questions any more: it asks
/// after `idle`, and gives up when data are not acknowledged for as long.
pub(super) fn keep_alive(stream: &TcpStream, idle: Duration) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, idle.max(Duration::from_secs(1)))?;
    sockopt::set_tcp_user_timeout(stream, idle.as_millis() as u32)?;
    Ok(())
}

/// True if a read or write ended because its time was over.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

impl Stream {
    pub fn new(socket: Socket) -> io::Result<Self> {
        if let Socket::Tcp(stream) = &socket {
            // Messages leave at once, without waiting for a fuller packet.
            stream.set_nodelay(true)?;
        }
        Ok(Self { socket, tls: OnceLock::new() })
    }

    /// Peer of the connection. `None` of one that is gone already, and of one over the loopback, where all
    /// clients have the same address.
    pub fn peer(&self) -> Option<Peer> {
        match &self.socket {
            Socket::Unix(stream) => {
                // 0 for all that this process cannot see, as those of other containers.
                let process = getsockopt(stream, PeerCredentials).ok()?.pid();
                Some(Peer::Process(process))
            }
            Socket::Tcp(stream) => {
                let address = stream.peer_addr().ok()?.ip().to_canonical();
                (!address.is_loopback()).then_some(Peer::Machine(address))
            }
        }
    }

    /// The user of the process at the other end of a Unix socket.
    fn user(stream: &UnixStream) -> Option<u32> {
        Some(getsockopt(stream, PeerCredentials).ok()?.uid())
    }

    /// Owner of the places that this connection takes: a user of this machine, or a machine, where all of
    /// the loopback is one.
    pub fn owner(&self) -> Option<Owner> {
        match &self.socket {
            Socket::Unix(stream) => Self::user(stream).map(Owner::User),
            Socket::Tcp(stream) => {
                let address = stream.peer_addr().ok()?.ip().to_canonical();
                Some(if address.is_loopback() { Owner::Loopback } else { Owner::Machine(address) })
            }
        }
    }

    /// Continues through TLS. Its handshake begins with these bytes of the other side, which have been read
    /// already, and must end in time. Other threads must not write meanwhile.
    pub fn encrypt(
        &self,
        connection: rustls::Connection,
        early: &[u8],
        until: Instant,
    ) -> io::Result<()> {
        let layer = Layer::establish(connection, &self.socket, early, until)?;
        let fresh = self.tls.set(layer).is_ok();
        assert!(fresh, "the session allows one handshake");
        Ok(())
    }

    /// Reads some bytes; none are there at the end. For one thread at a time.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.tls.get() {
            Some(tls) => tls.read(&self.socket, buffer),
            None => self.socket.read(buffer),
        }
    }

    /// True if the bytes are not encrypted.
    pub fn is_plain(&self) -> bool {
        self.tls.get().is_none()
    }

    /// Reads the bytes that a plain stream has, without waiting; `None` when it has none. For one thread at
    /// a time.
    pub fn read_now(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        assert!(self.is_plain(), "single bytes of TLS have no meaning");
        match recv(&self.socket, buffer, RecvFlags::DONTWAIT) {
            Ok((length, _)) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes all parts, however many calls it takes. One that begins after `until` is not made. An error
    /// leaves the stream in between. For one thread at a time.
    pub fn write_all(&self, parts: &mut [IoSlice<'_>], until: Option<Instant>) -> io::Result<()> {
        match self.tls.get() {
            Some(tls) => tls.write_all(&self.socket, parts, until),
            None => self.socket.write_all(parts, until),
        }
    }

    /// Writes as much of the parts as goes without waiting, and says how many bytes. None go
    /// through TLS: who must not wait has no time to encrypt either.
    pub fn write_now(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.tls.get() {
            Some(_) => Ok(0),
            None => self.socket.write_now(parts),
        }
    }

    /// Sets the longest wait of one read; without end when `None`.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.set_read_timeout(timeout)
    }

    /// Sets the longest wait of one write.
    pub fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        match &self.socket {
            Socket::Unix(stream) => stream.set_write_timeout(Some(timeout)),
            Socket::Tcp(stream) => stream.set_write_timeout(Some(timeout)),
        }
    }

    /// Ends both directions in order: over TLS it says so, if that goes without waiting.
    pub fn finish(&self) {
        if let Some(tls) = self.tls.get() {
            tls.say_farewell(&self.socket);
        }
        self.shutdown(Shutdown::Both);
    }

    /// Ends one direction or both. A connection that is gone already is as ended.
    pub fn shutdown(&self, how: Shutdown) {
        let _ = match &self.socket {
            Socket::Unix(stream) => stream.shutdown(how),
            Socket::Tcp(stream) => stream.shutdown(how),
        };
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
