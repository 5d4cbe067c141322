//! The signal by which a server stops.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::{self, pipe};

/// Time that a process has to report why it ends.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Tells a server to stop, once and for all: from another thread, or by a signal.
#[derive(Debug)]
pub struct Stop {
    shutdown: UnixStream,
    trigger: UnixStream,
}

impl Stop {
    /// A stop that has not been signalled.
    pub fn new() -> io::Result<Self> {
        let (shutdown, trigger) = UnixStream::pair()?;
        trigger.set_nonblocking(true)?;
        Ok(Self { shutdown, trigger })
    }

    /// `SIGINT` and `SIGTERM` signal the stop from now on. The second signal ends the process at once, with
    /// exit code 1: a device that hangs may keep a server from its end.
    pub fn on_signals(&self) -> io::Result<()> {
        let is_second = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&is_second))?;
            flag::register(signal, Arc::clone(&is_second))?;
            pipe::register(signal, self.trigger.try_clone()?)?;
        }
        Ok(())
    }

    /// From now on this process ends at most this long after the stop is signalled, with exit code 1,
    /// even while it waits. Calls `last_words` before, for as long as a tenth of a second.
    pub fn end_within(
        &self,
        longest: Duration,
        last_words: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let shutdown = self.shutdown.try_clone()?;
        let thread = thread::Builder::new().name("stop".into());
        thread.spawn(move || {
            while let Err(error) = poll(&mut [PollFd::new(&shutdown, PollFlags::IN)], None) {
                // Any other is a shortage that passes.
                if error != Errno::INTR {
                    thread::sleep(LAST_WORDS);
                }
            }
            thread::sleep(longest);
            let words = thread::Builder::new().spawn(last_words);
            if words.is_ok() {
                thread::sleep(LAST_WORDS);
            }
            // Without handlers and destructors: they may wait for the same thing that kept the process.
            low_level::exit(1);
        })?;
        Ok(())
    }

    /// Stops it.
    pub fn stop(&self) {
        // When the socket is full it holds enough signals enough.
        let _ = (&self.trigger).write(&[0]);
    }

    /// Waits until the stop is signalled once more.
    pub fn wait(&self) {
        // The other end is kept here, so that only a signal or a stop ends this read.
        let _ = (&self.shutdown).read_exact(&mut [0]);
    }

    /// Becomes readable when the stop is signalled.
    pub(super) fn shutdown(&self) -> BorrowedFd<'_> {
        self.shutdown.as_fd()
    }
}
