//! Cutting the power of emulated drives while they are served.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::SIGUSR1;
use signal_hook::low_level::pipe;

use super::{Emulation, PowerCut};
use crate::nbd::{Served, Server, Stop};

/// Cuts the power of drives: from another thread, or by a signal.
#[derive(Debug)]
pub struct PowerSwitch {
    requests: UnixStream,
    trigger: UnixStream,
    has_ended: AtomicBool,
}

impl PowerSwitch {
    /// An unused switch.
    pub fn new() -> io::Result<Self> {
        let (requests, trigger) = UnixStream::pair()?;
        trigger.set_nonblocking(true)?;
        Ok(Self { requests, trigger, has_ended: AtomicBool::new(false) })
    }

    /// From now on `SIGUSR1` cuts the power.
    pub fn on_signal(&self) -> io::Result<()> {
        pipe::register(SIGUSR1, self.trigger.try_clone()?).map(drop)
    }

    /// Cuts the power of the drives that [`Self::serve`] serves, now or when it begins.
    pub fn cut(&self) {
        // When the socket is full it has been told often enough.
        let _ = (&self.trigger).write(&[0]);
    }

    /// Runs the server of these drives until the stop. At each cut all connections end without an answer, and
    /// `on_cut` gets what became of each drive's volatile data; then the server continues as after power-on.
    pub fn serve(
        &self,
        server: Server,
        stop: &Stop,
        drives: &[Arc<Emulation>],
        on_cut: impl Fn(Vec<io::Result<PowerCut>>) + Send,
    ) -> io::Result<Served> {
        let cutter = server.cutter();
        thread::scope(|threads| {
            thread::Builder::new().name("power".into()).spawn_scoped(threads, move || {
                while self.is_told() {
                    on_cut(cutter.cut_all(
                        || drives.iter().for_each(|drive| drive.power_off()),
                        || drives.iter().map(|drive| drive.power_on()).collect(),
                    ));
                }
            })?;
            let served = server.run(stop);
            self.has_ended.store(true, Ordering::SeqCst);
            self.cut();
            served
        })
    }

    /// Waits for the next cut; false at the end.
    fn is_told(&self) -> bool {
        // The other end is kept here, so that only a cut or the end ends this read.
        let is_told = (&self.requests).read_exact(&mut [0]).is_ok();
        is_told && !self.has_ended.load(Ordering::SeqCst)
    }
}
