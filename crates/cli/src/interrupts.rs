//! Signals that end a verb which writes files.
//!
//! Goals: SIGINT, SIGTERM and SIGHUP remove temporary files and then act as usual; what a shell
//! ignores for this program, as `nohup` does, stays ignored.
//! Non-goals: servers and their clients, which end in order: `verbs::listen::stop`.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use freewheel::files::remove_temporary_files;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{emulate_default_handler, pipe};

/// From now on these signals leave no temporary file.
pub fn remove_temporary_files_first() -> io::Result<()> {
    let caught = Arc::new(AtomicUsize::new(0));
    let (mut told, tell) = UnixStream::pair()?;
    let ignored = ignored();
    for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !ignored.has(*signal)) {
        let number = signal.cast_unsigned() as usize;
        // First which one it was, and then that it came.
        signal_hook::flag::register_usize(signal, Arc::clone(&caught), number)?;
        pipe::register(signal, tell.try_clone()?)?;
    }
    thread::Builder::new().name("signals".into()).spawn(move || {
        // `tell` stays open in the handlers, so this ends with a signal only.
        if told.read_exact(&mut [0]).is_ok() {
            remove_temporary_files();
            // Does not return: the process ends as if the signal had not been caught.
            let _ = emulate_default_handler(caught.load(Ordering::SeqCst) as i32);
        }
    })?;
    Ok(())
}

/// Signals as a set of bits.
struct Signals(u64);

impl Signals {
    fn has(&self, signal: i32) -> bool {
        self.0 >> (signal - 1) & 1 == 1
    }
}

/// Signals that this process ignores from its start; none where the system does not say.
fn ignored() -> Signals {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    Signals(line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_bits_from_first_on() {
        let signals = Signals(0b10);
        assert!(signals.has(SIGINT) && !signals.has(SIGHUP) && !signals.has(SIGTERM));
    }
}
