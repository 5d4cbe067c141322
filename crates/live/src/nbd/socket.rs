//! The socket of a connection: one of this machine, or TCP.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

/// Most bytes of one call where time is bounded.
const CALL_BYTES_MAX: usize = 256 << 10;

/// Below TLS, if there is any.
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Number of these parts that go into one call together.
fn first_parts(parts: &[IoSlice<'_>]) -> usize {
    let mut room = CALL_BYTES_MAX;
    parts
        .iter()
        .take_while(|part| {
            let left = room.checked_sub(part.len());
            room = left.unwrap_or(0);
            left.is_some()
        })
        .count()
}

impl Socket {
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&mut &*stream).read(buffer),
            Self::Tcp(stream) => (&mut &*stream).read(buffer),
        }
    }

    pub fn write_all(
        &self,
        mut parts: &mut [IoSlice<'_>],
        until: Option<Instant>,
    ) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            // The system may wait anew for each buffer of a long call, so the time is looked at between
            // short ones.
            let written = match until {
                None => self.write(parts),
                Some(_) if parts[0].len() > CALL_BYTES_MAX => {
                    self.write(&[IoSlice::new(&parts[0][..CALL_BYTES_MAX])])
                }
                Some(_) => self.write(&parts[..first_parts(parts)]),
            };
            match written {
                Ok(1..) if until.is_some_and(|until| Instant::now() > until) => {
                    let says = "it took an answer too slowly";
                    return Err(io::Error::new(ErrorKind::TimedOut, says));
                }
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => IoSlice::advance_slices(&mut parts, length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&mut &*stream).write_vectored(parts),
            Self::Tcp(stream) => (&mut &*stream).write_vectored(parts),
        }
    }

    pub fn write_now(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let how = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(sendmsg(self.as_fd(), parts, &mut SendAncillaryBuffer::default(), how)?)
    }

    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(timeout),
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}
