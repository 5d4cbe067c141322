//! From a URI to an export that takes requests.

use std::io::{self, ErrorKind, IoSlice};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::{Duration, Instant};

use freewheel_nbd::client::{self as codec, Event, ExportInfo, Requests, Session, Settings};
use freewheel_nbd::{Address, OptionCode, OptionError, Uri, Violation};
use thiserror::Error;

use super::ClientLimits;
use crate::nbd::socket::Socket;
use crate::nbd::stream::{Stream, is_timeout, keep_alive};
use crate::nbd::tls::{self, TlsError};

/// Bytes read at once before requests may be made.
const BUFFER_BYTES: usize = 16 << 10;

/// Reason why there is no connection.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ConnectError {
    /// No server answers, or TLS failed.
    #[error("{uri}: {source}")]
    System { uri: Box<Uri>, source: io::Error },
    /// The server breaks the rules.
    #[error("{uri}: {violation}")]
    Violation { uri: Box<Uri>, violation: Violation },
    /// The server does not want this.
    #[error("{uri}: {refused}{}", way_out(refused))]
    Refused {
        uri: Box<Uri>,
        /// Refusal of the server, with its reason.
        refused: codec::Refused,
    },
    /// This cannot be asked of the server.
    #[error("{uri}: {misuse}")]
    Misuse { uri: Box<Uri>, misuse: codec::Misuse },
    /// The server takes too long.
    #[error("{uri}: the server has not let us in after {after:?}")]
    Slow {
        uri: Box<Uri>,
        /// Time of the wait.
        after: Duration,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
}

fn way_out(refused: &codec::Refused) -> &'static str {
    if refused.error == OptionError::TlsReqd {
        "; write nbds for nbd in the URI, and tls-certificates=DIR"
    } else if refused.option == OptionCode::STARTTLS {
        "; without TLS the client sends no request: write nbd for nbds if TLS is not needed"
    } else {
        ""
    }
}

pub(super) fn system(uri: &Uri, source: io::Error) -> ConnectError {
    ConnectError::System { uri: uri.clone().into(), source }
}

/// A connection whose export was chosen.
pub(super) struct Started {
    pub stream: Stream,
    pub session: Session,
    pub requests: Requests,
    pub info: ExportInfo,
}

pub(super) fn connect(uri: &Uri, limits: &ClientLimits) -> Result<Started, ConnectError> {
    let tls = if uri.tls { Some(tls::client_connection(uri)?) } else { None };
    let until = Instant::now() + limits.negotiation;
    let negotiation = Negotiation { uri, limits, until };
    let failed = |error| negotiation.failed(error);
    let socket = match &uri.address {
        Address::Unix { socket } => Socket::Unix(unix(socket).map_err(failed)?),
        Address::Tcp { host, port } => Socket::Tcp(negotiation.tcp(host, *port).map_err(failed)?),
    };
    let stream = Stream::new(socket).map_err(failed)?;
    stream.set_write_timeout(limits.stall).map_err(failed)?;
    let (mut session, info) = negotiation.run(&stream, tls)?;
    stream.set_read_timeout(limits.look_every()).map_err(failed)?;
    let requests = session.split_requests().expect("an export has been started");
    Ok(Started { stream, session, requests, info })
}

fn unix(socket: &str) -> io::Result<UnixStream> {
    match socket.strip_prefix('\0') {
        Some(name) => UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?),
        None => UnixStream::connect(socket),
    }
}

/// The connection to make, and the time for it.
struct Negotiation<'a> {
    uri: &'a Uri,
    limits: &'a ClientLimits,
    until: Instant,
}

impl Negotiation<'_> {
    fn failed(&self, source: io::Error) -> ConnectError {
        let uri = self.uri.clone().into();
        if is_timeout(&source) {
            ConnectError::Slow { uri, after: self.limits.negotiation }
        } else {
            ConnectError::System { uri, source }
        }
    }

    /// The rest of the time.
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }

    /// The first address of the host that answers, or else why the last does not.
    fn tcp(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let mut tried = Err(io::Error::other("the host has no address"));
        for address in (host, port).to_socket_addrs()? {
            tried = TcpStream::connect_timeout(&address, self.left()?);
            if tried.is_ok() {
                break;
            }
        }
        let stream = tried?;
        keep_alive(&stream, self.limits.stall)?;
        Ok(stream)
    }

    fn run(
        &self,
        stream: &Stream,
        mut tls: Option<rustls::Connection>,
    ) -> Result<(Session, ExportInfo), ConnectError> {
        let mut session = Session::new(Settings { block_status: true, ..Settings::default() });
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let mut bytes = match self.read(stream, &mut buffer) {
                Ok(0) => return Err(self.ended(&session)),
                Ok(length) => &buffer[..length],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failed(error)),
            };
            let mut started = None;
            while let Some(event) = session.feed(&mut bytes).map_err(|it| self.violated(it))? {
                let say = match event {
                    Event::Send(bytes) => Ok(bytes),
                    Event::Greeted if tls.is_some() => session.start_tls(),
                    Event::Greeted => session.go(&self.uri.export),
                    Event::StartTls => {
                        let tls = tls.take().expect("it was asked for once");
                        let early = std::mem::take(&mut bytes);
                        let done = stream.encrypt(tls, early, self.until);
                        done.map_err(|error| self.failed(error))?;
                        session.tls_established();
                        session.go(&self.uri.export)
                    }
                    Event::Started(info) => {
                        started = Some(info);
                        continue;
                    }
                    Event::Refused(refused) => {
                        return Err(ConnectError::Refused {
                            uri: self.uri.clone().into(),
                            refused,
                        });
                    }
                    other => unreachable!("{other:?} was not asked for"),
                };
                let uri = || self.uri.clone().into();
                let say = say.map_err(|misuse| ConnectError::Misuse { uri: uri(), misuse })?;
                match stream.write_all(&mut [IoSlice::new(&say)], None) {
                    // Its last message before the end tells the reason; that is read next.
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                    sent => sent.map_err(|error| self.failed(error))?,
                }
            }
            if let Some(info) = started {
                return Ok((session, info));
            }
        }
    }

    fn read(&self, stream: &Stream, buffer: &mut [u8]) -> io::Result<usize> {
        stream.set_read_timeout(Some(self.left()?))?;
        stream.read(buffer)
    }

    fn violated(&self, violation: Violation) -> ConnectError {
        ConnectError::Violation { uri: self.uri.clone().into(), violation }
    }

    fn ended(&self, session: &Session) -> ConnectError {
        match session.ended() {
            Err(violation) => self.violated(violation),
            Ok(()) => self.failed(ErrorKind::UnexpectedEof.into()),
        }
    }
}
