//! Addresses on which a server listens.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use freewheel_nbd::{self as protocol, Uri};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use thiserror::Error;

use super::socket::Socket;
use super::stream::{Stream, keep_alive};
use super::tls::ServerTls;
use crate::missing_folder;

/// Silence of a TCP connection after which the system asks whether the other machine is there.
const IDLE_CHECK: Duration = Duration::from_secs(30);

/// Connections that wait to be accepted; the system may lower this number.
const WAITING_MAX: i32 = 4096;

/// The mode of sockets that only their user may connect to.
pub(crate) const PRIVATE_MODE: u32 = 0o600;

/// Address on which a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A port of this machine; connections to any but a loopback address are encrypted, and clients
    /// there show a certificate.
    Tcp(SocketAddr),
}

/// Who may connect to a server.
#[derive(Debug, Clone)]
pub struct Access {
    /// Certificates, if the server encrypts.
    pub tls: Option<ServerTls>,
    /// The mode of the file of a Unix socket: a user who may write to the socket may read and write the disk.
    pub socket_mode: u32,
}

impl Default for Access {
    /// No TLS, and a Unix socket for the user alone.
    fn default() -> Self {
        Self { tls: None, socket_mode: PRIVATE_MODE }
    }
}

impl Access {
    /// With TLS.
    pub fn encrypted(tls: ServerTls) -> Self {
        Self { tls: Some(tls), ..Self::default() }
    }
}

/// Reason why a server cannot listen.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ListenError {
    /// Connections from elsewhere would be neither encrypted nor authenticated.
    #[error(
        "{address} can be reached from other machines, and connections to it must use TLS: \
         give --tls-verify-peer and --tls-certificates DIR, a folder with server-cert.pem, \
         server-key.pem and ca-cert.pem; or listen on 127.0.0.1 or [::1], or on a Unix socket, and \
         let `ssh -L` carry connections from elsewhere"
    )]
    NotLoopback { address: SocketAddr },
    /// Anybody from elsewhere would be served.
    #[error(
        "{address} can be reached from other machines, and clients there must show a certificate: \
         give --tls-verify-peer (clients need a certificate that ca-cert.pem in the folder of \
         --tls-certificates has signed), or --allow-clients-without-certificate to let anyone who \
         reaches the port read and write the disk"
    )]
    ClientsNotVerified { address: SocketAddr },
    /// A running server has the socket.
    #[error("{}: another server listens here; stop it, or give another path", path.display())]
    InUse { path: PathBuf },
    /// Something else has the path of the socket.
    #[error("{}: is there already and is no socket: remove it, or give another path", path.display())]
    NoSocket { path: PathBuf },
    #[error("{address}: {source}")]
    System { address: Address, source: io::Error },
    /// An export that the protocol does not allow.
    #[error(transparent)]
    Export(#[from] protocol::BadExport),
}

impl Address {
    /// URI for clients that connect to `export`, with TLS or without.
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
    _file: Option<SocketFile>,
}

enum Listening {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    pub fn bind(address: &Address, socket_mode: u32) -> Result<Self, ListenError> {
        let at = |source| ListenError::System { address: address.clone(), source };
        let (socket, address, file) = match address {
            Address::Unix(path) => {
                let (listener, file) = bind_unix(path, socket_mode)?;
                (Listening::Unix(listener), address.clone(), Some(file))
            }
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted).map_err(port_in_use).map_err(at)?;
                let bound = listener.local_addr().map_err(at)?;
                (Listening::Tcp(listener), Address::Tcp(bound), None)
            }
        };
        match &socket {
            Listening::Unix(listener) => listener.set_nonblocking(true),
            Listening::Tcp(listener) => listener.set_nonblocking(true),
        }
        .map_err(at)?;
        Ok(Self { socket, address, _file: file })
    }

    /// Address of the server; with the port that the system chose when none was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next connection; `WouldBlock` when there is none.
    pub fn accept(&self) -> io::Result<Stream> {
        let socket = match &self.socket {
            Listening::Unix(listener) => Socket::Unix(listener.accept()?.0),
            Listening::Tcp(listener) => {
                let stream = listener.accept()?.0;
                keep_alive(&stream, IDLE_CHECK)?;
                Socket::Tcp(stream)
            }
        };
        Stream::new(socket)
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

/// The file of a socket that was bound here. It goes with this, unless another one has taken its
/// place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode of the socket.
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.into(), identity: identity(path)? })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // Somebody may just have removed it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|data| (data.dev(), data.ino()))
}

/// Binds a socket whose file has this mode from the beginning. The one that a server left behind which was
/// killed is replaced.
pub(crate) fn bind_unix(path: &Path, mode: u32) -> Result<(UnixListener, SocketFile), ListenError> {
    let at = |source| ListenError::System { address: Address::Unix(path.into()), source };
    let listener = bind(path, mode)?;
    Ok((listener, SocketFile::new(path).map_err(at)?))
}

/// Listens on a new socket at a free path.
fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path).map_err(|error| match error {
        Errno::NAMETOOLONG => {
            io::Error::other("the path of a socket has at most 107 bytes: choose a shorter one")
        }
        error => error.into(),
    })?;
    let flags = SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Linux gives the file the mode of the socket, less the umask, so that it never has another.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode))?;
    net::bind(&socket, &address)?;
    let listens = || {
        // No client can connect before the socket listens.
        if fs::symlink_metadata(path)?.mode() & 0o777 != mode {
            fs::set_permissions(path, Permissions::from_mode(mode))?;
        }
        net::listen(&socket, WAITING_MAX).map_err(io::Error::from)
    };
    if let Err(error) = listens() {
        // What is not listened on is not left behind.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(socket.into())
}

fn bind(path: &Path, mode: u32) -> Result<UnixListener, ListenError> {
    let at = |error| {
        let source = missing_folder::explain(path, error);
        ListenError::System { address: Address::Unix(path.into()), source }
    };
    let in_use = match listen(path, mode) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => error,
        bound => return bound.map_err(at),
    };
    let is_socket = fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    match UnixStream::connect(path) {
        Ok(_) => Err(ListenError::InUse { path: path.into() }),
        Err(error) if is_socket && error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(at)?;
            listen(path, mode).map_err(at)
        }
        Err(_) if !is_socket => Err(ListenError::NoSocket { path: path.into() }),
        Err(_) => Err(at(in_use)),
    }
}

/// Error of the system, with the way out if another process has the port.
fn port_in_use(error: io::Error) -> io::Error {
    if error.kind() != ErrorKind::AddrInUse {
        return error;
    }
    let says =
        "another server listens here; stop it, or give another port: port 0 takes a free one";
    io::Error::new(error.kind(), says)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn socket_folder_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error =
            bind_unix(&folder.path().join("no/such/socket"), PRIVATE_MODE).unwrap_err().to_string();
        let says = format!("there is no folder {}/no/such: create it", folder.path().display());
        assert!(error.contains(&says), "{error}");
    }

    #[test]
    fn socket_blocked_by_file_names_remedy() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = bind_unix(file.path(), PRIVATE_MODE).unwrap_err().to_string();
        assert!(error.ends_with("is no socket: remove it, or give another path"), "{error}");

        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let first = Listener::bind(&any, PRIVATE_MODE).unwrap();
        let error = Listener::bind(first.address(), PRIVATE_MODE).err().unwrap().to_string();
        assert!(error.contains("give another port"), "{error}");
    }

    #[test]
    fn socket_removes_only_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (listener, file) = bind_unix(&path, PRIVATE_MODE).unwrap();
        // The new file is made while the old one exists: a freed inode may be used again at once.
        fs::rename(&path, folder.path().join("elsewhere")).unwrap();
        let (_other, others) = bind_unix(&path, PRIVATE_MODE).unwrap();
        drop((listener, file));
        assert!(path.exists(), "it is another server's");
        drop(others);
        assert!(!path.exists());
    }

    fn mode(path: &Path) -> io::Result<u32> {
        Ok(fs::symlink_metadata(path)?.mode() & 0o777)
    }

    #[test]
    fn socket_has_requested_mode() {
        let folder = tempfile::tempdir().unwrap();
        for wanted in [0o600, 0o660, 0o666, 0o777] {
            let path = folder.path().join(format!("{wanted:o}"));
            let _bound = bind_unix(&path, wanted).unwrap();
            assert_eq!(mode(&path).unwrap(), wanted, "{wanted:o}");
            assert!(UnixStream::connect(&path).is_ok());
        }
    }

    #[test]
    fn socket_private_is_never_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            let watcher = threads.spawn(|| {
                let mut modes = BTreeSet::new();
                while !is_over.load(Ordering::Relaxed) {
                    modes.extend(mode(&path).ok());
                }
                modes
            });
            (0..2000).for_each(|_| drop(bind_unix(&path, PRIVATE_MODE).unwrap()));
            is_over.store(true, Ordering::Relaxed);
            let modes = watcher.join().unwrap();
            assert!(modes.iter().all(|&mode| mode == PRIVATE_MODE), "{modes:?}");
        });
    }

    #[test]
    fn socket_path_too_long_names_limit() {
        let folder = tempfile::tempdir().unwrap();
        let error = bind_unix(&folder.path().join("x".repeat(108)), PRIVATE_MODE).unwrap_err();
        assert!(error.to_string().contains("at most 107 bytes"), "{error}");
    }
}
