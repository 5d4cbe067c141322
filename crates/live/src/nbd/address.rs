//! Where a server listens.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use freewheel_nbd::{self as protocol, Uri};
use thiserror::Error;

use super::stream::{Socket, Stream};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port of this machine; connections to any but a loopback address are encrypted.
    Tcp(SocketAddr),
}

/// Why a server cannot listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Connections from elsewhere would be neither encrypted nor authenticated.
    #[error(
        "{address} can be reached from other machines, and connections to it must be encrypted: \
         give a folder with certificates for TLS (--tls-certificates DIR), or listen on 127.0.0.1 \
         or [::1], or on a Unix socket, and let `ssh -L` carry connections from elsewhere"
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
    /// What clients are to be given to connect to `export`, with TLS or without.
    pub fn uri(&self, export: &str, tls: bool) -> Uri {
        let address = match self {
            Self::Unix(path) => {
                protocol::Address::Unix { socket: path.to_string_lossy().into_owned() }
            }
            Self::Tcp(address) => {
                let (host, port) = (address.ip().to_string(), address.port());
                protocol::Address::Tcp { host, port }
            }
        };
        Uri { tls, address, export: export.into(), tls_hostname: None, tls_certificates: None }
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
    socket: Listening,
    address: Address,
}

enum Listening {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    pub fn bind(address: &Address) -> Result<Self, ListenError> {
        let at = |source| ListenError::System { address: address.clone(), source };
        let (socket, address) = match address {
            Address::Unix(path) => (Listening::Unix(bind_unix(path)?), address.clone()),
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted).map_err(at)?;
                let bound = listener.local_addr().map_err(at)?;
                (Listening::Tcp(listener), Address::Tcp(bound))
            }
        };
        match &socket {
            Listening::Unix(listener) => listener.set_nonblocking(true),
            Listening::Tcp(listener) => listener.set_nonblocking(true),
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
        let socket = match &self.socket {
            Listening::Unix(listener) => Socket::Unix(listener.accept()?.0),
            Listening::Tcp(listener) => Socket::Tcp(listener.accept()?.0),
        };
        Stream::new(socket)
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
            Listening::Unix(listener) => listener.as_fd(),
            Listening::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// Binds a socket. The one that a server left behind which was killed is replaced.
pub(crate) fn bind_unix(path: &Path) -> Result<UnixListener, ListenError> {
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
