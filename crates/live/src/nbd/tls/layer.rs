//! TLS between a connection's socket and its messages.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustls::Connection;

use crate::nbd::socket::Socket;

/// Encrypted bytes that are read, or gathered before they are sent, at once: four full records.
const BUFFER_BYTES: usize = 64 << 10;

/// An encrypted connection. One thread reads while another writes; neither holds the keys while it
/// waits for the socket. Beside the two buffers here rustls holds at most 64 KiB of a handshake and
/// as much of what is encrypted.
pub(in crate::nbd) struct Layer {
    connection: Mutex<Connection>,
    /// State of the thread that reads.
    incoming: Mutex<Incoming>,
    /// Bytes of the thread that writes: encrypted and not sent, in order.
    outgoing: Mutex<Vec<u8>>,
}

/// Bytes that have come and are not decrypted.
struct Incoming {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

/// A panic elsewhere leaves a state that either is consistent or ends the connection.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("TLS: {error}"))
}

impl Layer {
    /// Shakes hands. `early` are bytes of the other side that have been read already. The read
    /// timeout of the socket is different afterwards.
    pub fn establish(
        mut connection: Connection,
        socket: &Socket,
        early: &[u8],
        until: Instant,
    ) -> io::Result<Self> {
        let mut timed = Timed { socket, early, until };
        while connection.is_handshaking() || connection.wants_write() {
            connection.complete_io(&mut timed).map_err(|error| match error.get_ref() {
                Some(cause) => io::Error::new(error.kind(), format!("TLS handshake: {cause}")),
                None if error.kind() == ErrorKind::UnexpectedEof => {
                    let ended = "TLS handshake: the other side ended the connection";
                    io::Error::new(ErrorKind::UnexpectedEof, ended)
                }
                None => error,
            })?;
        }
        let mut bytes = vec![0; BUFFER_BYTES.max(timed.early.len())];
        let end = timed.early.len();
        bytes[..end].copy_from_slice(timed.early);
        Ok(Self {
            connection: Mutex::new(connection),
            incoming: Mutex::new(Incoming { bytes, begin: 0, end }),
            outgoing: Mutex::default(),
        })
    }

    /// Data from the other side. `Interrupted` when the socket brought a part of a record only: the
    /// caller checks its limits of time and reads again.
    pub fn read(&self, socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        let mut incoming = lock(&self.incoming);
        if let Some(length) = self.decrypt(&mut incoming, buffer)? {
            return Ok(length);
        }
        // Without the keys: others go on writing while this waits.
        let length = socket.read(&mut incoming.bytes)?;
        if length == 0 {
            // The other side ended without a farewell; the session notices a message that was cut short.
            return Ok(0);
        }
        (incoming.begin, incoming.end) = (0, length);
        self.decrypt(&mut incoming, buffer)?.ok_or(ErrorKind::Interrupted.into())
    }

    /// Data out of what has come; `None` when there are none.
    fn decrypt(&self, incoming: &mut Incoming, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut connection = lock(&self.connection);
        loop {
            match connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read.map(Some),
            }
            let mut left = &incoming.bytes[incoming.begin..incoming.end];
            if left.is_empty() {
                return Ok(None);
            }
            incoming.begin += connection.read_tls(&mut left)?;
            connection.process_new_packets().map_err(broken)?;
        }
    }

    pub fn write_all(
        &self,
        socket: &Socket,
        mut parts: &mut [IoSlice<'_>],
        until: Option<Instant>,
    ) -> io::Result<()> {
        let mut outgoing = lock(&self.outgoing);
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let mut connection = lock(&self.connection);
            let taken = connection.writer().write_vectored(parts)?;
            while connection.wants_write() {
                connection.write_tls(&mut *outgoing)?;
            }
            drop(connection);
            IoSlice::advance_slices(&mut parts, taken);
            if parts.is_empty() || outgoing.len() >= BUFFER_BYTES {
                let sent = socket.write_all(&mut [IoSlice::new(&outgoing)], until);
                outgoing.clear();
                sent?;
            }
        }
        Ok(())
    }

    /// Announces the end of the data, unless another thread is writing or the socket is full.
    pub fn say_farewell(&self, socket: &Socket) {
        let Ok(mut outgoing) = self.outgoing.try_lock() else { return };
        let mut connection = lock(&self.connection);
        connection.send_close_notify();
        while connection.wants_write() && connection.write_tls(&mut *outgoing).is_ok() {}
        // The connection ends here whether this is heard or not.
        let _ = socket.write_now(&[IoSlice::new(&outgoing)]);
    }
}

/// A socket for a handshake, which must be over in time however few bytes come at once.
struct Timed<'a> {
    socket: &'a Socket,
    early: &'a [u8],
    until: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.early.is_empty() {
            return self.early.read(buffer);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        self.socket.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write_all(&mut [IoSlice::new(bytes)], Some(self.until))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
