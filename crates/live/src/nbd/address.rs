//! Where a server listens.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use freewheel_nbd::{self as protocol, Uri};
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use thiserror::Error;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port of this machine; only loopback addresses are taken.
    Tcp(SocketAddr),
}

/// Why a server cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Connections from elsewhere would be neither encrypted nor authenticated.
    #[error(
        "{address} can be reached from other machines, and connections are not encrypted yet (TLS \
         is to come): listen on 127.0.0.1 or [::1], or on a Unix socket, and let `ssh -L` carry \
         connections from elsewhere"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// A running server has the socket.
    #[error("{}: another server listens here; stop it, or give another path", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("{address}: {source}")]
    System {
        /// Where.
        address: Address,
        /// What the system says.
        source: io::Error,
    },
    /// An export that the protocol does not allow.
    #[error(transparent)]
    Export(#[from] protocol::BadExport),
}

impl Address {
    /// What clients are to be given to connect to `export`.
    pub fn uri(&self, export: &str) -> Uri {
        let address = match self {
            Self::Unix(path) => {
                protocol::Address::Unix { socket: path.to_string_lossy().into_owned() }
            }
            Self::Tcp(address) => {
                let (host, port) = (address.ip().to_string(), address.port());
                protocol::Address::Tcp { host, port }
            }
        };
        Uri { tls: false, address, export: export.into(), tls_hostname: None }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(out, "{}", path.display()),
            Self::Tcp(address) => write!(out, "{address}"),
        }
    }
}

/// A listening socket. That of a Unix socket takes its path with it when it goes.
pub(super) struct Listener {
    socket: Socket,
    address: Address,
}

enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    pub fn bind(address: &Address) -> Result<Self, ListenError> {
        let at = |source| ListenError::System { address: address.clone(), source };
        let (socket, address) = match address {
            Address::Unix(path) => (Socket::Unix(bind_unix(path)?), address.clone()),
            Address::Tcp(wanted) if !wanted.ip().is_loopback() => {
                return Err(ListenError::NotLoopback { address: *wanted });
            }
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted).map_err(at)?;
                let bound = listener.local_addr().map_err(at)?;
                (Socket::Tcp(listener), Address::Tcp(bound))
            }
        };
        match &socket {
            Socket::Unix(listener) => listener.set_nonblocking(true),
            Socket::Tcp(listener) => listener.set_nonblocking(true),
        }
        .map_err(at)?;
        Ok(Self { socket, address })
    }

    /// Where it listens; the port that the system chose when none was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next connection; `WouldBlock` when there is none.
    pub fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Socket::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // A reply waits for nothing that might be sent with it.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            // Somebody may have removed it before.
            let _ = fs::remove_file(path);
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Unix(listener) => listener.as_fd(),
            Socket::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// Binds a socket. The one that a server left behind which was killed is replaced.
fn bind_unix(path: &Path) -> Result<UnixListener, ListenError> {
    let at = |source| ListenError::System { address: Address::Unix(path.into()), source };
    let in_use = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => error,
        bound => return bound.map_err(at),
    };
    let is_socket = fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    match UnixStream::connect(path) {
        Ok(_) => Err(ListenError::InUse { path: path.into() }),
        Err(error) if is_socket && error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(at)?;
            UnixListener::bind(path).map_err(at)
        }
        Err(_) => Err(at(in_use)),
    }
}

/// A connection. TLS will be a third kind, which reads and writes through its own layer.
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
        }
    }

    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&mut &*stream).read(buffer),
            Self::Tcp(stream) => (&mut &*stream).read(buffer),
        }
    }

    /// Writes all parts, however many calls it takes. An error leaves the stream in between.
    pub fn write_all(&self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let written = match self {
                Self::Unix(stream) => (&mut &*stream).write_vectored(parts),
                Self::Tcp(stream) => (&mut &*stream).write_vectored(parts),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => IoSlice::advance_slices(&mut parts, length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes as much of the parts as goes without waiting, and says how many bytes.
    pub fn write_now(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let fd = match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        };
        let how = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(sendmsg(fd, parts, &mut SendAncillaryBuffer::default(), how)?)
    }

    /// How long one read may wait; for ever when `None`.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(timeout),
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// How long one write may wait.
    pub fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_write_timeout(Some(timeout)),
            Self::Tcp(stream) => stream.set_write_timeout(Some(timeout)),
        }
    }

    /// Ends one direction or both, for all clones. A connection that is gone already is as ended.
    pub fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }
}
