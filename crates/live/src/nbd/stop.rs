//! How a server is told to stop.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// Tells a server to stop, once and for all: from another thread, or by a signal.
#[derive(Debug)]
pub struct Stop {
    told: UnixStream,
    tell: UnixStream,
}

impl Stop {
    /// Nothing has been told yet.
    pub fn new() -> io::Result<Self> {
        let (told, tell) = UnixStream::pair()?;
        tell.set_nonblocking(true)?;
        Ok(Self { told, tell })
    }

    /// `SIGINT` and `SIGTERM` stop it in order from now on. The second one ends the process at once,
    /// with exit code 1: a device that hangs may keep a server from its end.
    pub fn on_signals(&self) -> io::Result<()> {
        let is_second = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&is_second))?;
            flag::register(signal, Arc::clone(&is_second))?;
            pipe::register(signal, self.tell.try_clone()?)?;
        }
        Ok(())
    }

    /// Stops it.
    pub fn stop(&self) {
        // When the socket is full it has been told often enough.
        let _ = (&self.tell).write(&[0]);
    }

    /// Waits until it is told once more.
    pub fn wait(&self) {
        // The other end is kept here: nothing but a signal or a stop ends this.
        let _ = (&self.told).read_exact(&mut [0]);
    }

    /// Becomes readable when it is told.
    pub(super) fn told(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}
