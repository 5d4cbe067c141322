//! The drive's process: from its first word to its last.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::TrialError;
use crate::nbd::{ClientLimits, Limits};

/// Interval at which it is looked whether the process serves, or has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// For how long the process is waited for.
#[derive(Clone, Copy)]
pub(super) struct Timeouts {
    /// From its start until it serves.
    pub start: Duration,
    /// From `SIGTERM` until it has ended.
    pub end: Duration,
}

impl Default for Timeouts {
    /// The start takes as long as that of any server. The end takes twice the grace of its connections.
    fn default() -> Self {
        Self { start: ClientLimits::default().negotiation, end: 2 * Limits::default().grace }
    }
}

/// The drive, killed if it is not ended.
pub(super) struct DriveProcess {
    child: Child,
    timeouts: Timeouts,
}

impl DriveProcess {
    /// Waits until it has said a line and serves at this socket, or has ended.
    pub fn start(
        mut command: Command,
        socket: &Path,
        timeouts: Timeouts,
    ) -> Result<Self, TrialError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut this = Self { child: command.spawn().map_err(system)?, timeouts };
        let says = lines(this.child.stderr.take().expect("it is a pipe"));
        let until = Instant::now() + timeouts.start;
        let (mut said, mut is_heard) = (String::new(), false);
        loop {
            match says.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    is_heard = true;
                    thread::sleep(LOOK_EVERY);
                }
                Ok(line) => {
                    is_heard = true;
                    said += &line;
                }
            }
            // Its first line may also say why it is about to end.
            if is_heard && socket.exists() {
                return Ok(this);
            }
            if let Some(status) = this.child.try_wait().map_err(system)? {
                // Its last lines, as far as they have come.
                hear(&says, until, &mut said);
                return Err(TrialError::Drive(format!("{status}: {}", said.trim_end())));
            }
            if Instant::now() >= until {
                let what = if is_heard { "its socket" } else { "its first line" };
                return Err(overdue(what, timeouts.start, &said));
            }
        }
    }

    /// Stops it in order; returns its output.
    pub fn end(mut self) -> Result<String, TrialError> {
        let until = Instant::now() + self.timeouts.end;
        kill_process(Pid::from_child(&self.child), Signal::TERM).map_err(|e| system(e.into()))?;
        let prints = lines(self.child.stdout.take().expect("it is a pipe"));
        let mut text = String::new();
        let mut is_over = hear(&prints, until, &mut text);
        while is_over && self.child.try_wait().map_err(system)?.is_none() {
            is_over = Instant::now() < until;
            thread::sleep(LOOK_EVERY);
        }
        if is_over {
            Ok(text)
        } else {
            Err(overdue("its end after SIGTERM", self.timeouts.end, &text))
        }
    }
}

impl Drop for DriveProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn system(source: io::Error) -> TrialError {
    TrialError::System { what: "the drive's process", source }
}

fn overdue(what: &'static str, limit: Duration, said: &str) -> TrialError {
    TrialError::Overdue { what, limit, said: said.trim_end().into() }
}

/// Lines as they come. They are read also without a listener, since the process would wait otherwise.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let _ = tell.send(String::from_utf8_lossy(&line).into_owned() + "\n");
        }
    });
    told
}

/// Hears all that there is to hear. False when that has not ended by `until`.
fn hear(lines: &Receiver<String>, until: Instant, text: &mut String) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) => *text += &line,
            Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
        if left.is_zero() {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that does this, with its socket for `$1`.
    fn start(script: &str, timeouts: Timeouts) -> (Result<DriveProcess, TrialError>, bool) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("drive");
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&socket);
        (DriveProcess::start(command, &socket, timeouts), socket.exists())
    }

    fn failure<T>(result: Result<T, TrialError>) -> String {
        match result {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it does not go on"),
        }
    }

    /// Long enough for a shell on a machine that has other things to do.
    const SHORT: Duration = Duration::from_secs(3);

    #[test]
    fn drive_process_failure_reports_full_output() {
        let script = "echo error: no such drive >&2; sleep 0.3; echo try another >&2; exit 3";
        match start(script, Timeouts::default()).0 {
            Err(TrialError::Drive(text)) => {
                assert_eq!(text, "exit status: 3: error: no such drive\ntry another");
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it serves nothing"),
        }
    }

    #[test]
    fn drive_process_stopped_with_output_kept() {
        let script = "trap 'echo the end; exit 0' TERM; echo soon >&2; sleep 0.2; : > \"$1\"; \
                      while :; do sleep 0.05; done";
        let (drive, exists) = start(script, Timeouts::default());
        assert!(exists);
        assert_eq!(drive.unwrap_or_else(|error| panic!("{error}")).end().unwrap(), "the end\n");
    }

    #[test]
    fn drive_process_start_wait_is_limited() {
        let timeouts = Timeouts { start: SHORT, ..Timeouts::default() };
        let begun = Instant::now();
        let silent = failure(start("exec sleep 600", timeouts).0);
        assert!(silent.contains("3s for its first line"), "{silent}");
        let talks = failure(start("echo wait >&2; exec sleep 600", timeouts).0);
        assert!(talks.contains("3s for its socket") && talks.contains("wait"), "{talks}");
        assert!(begun.elapsed() < 10 * SHORT);
    }

    #[test]
    fn drive_process_killed_at_limit() {
        let timeouts = Timeouts { end: SHORT, ..Timeouts::default() };
        let serves = "trap 'echo never' TERM; : > \"$1\"; echo soon >&2;";
        let begun = Instant::now();
        for stays in ["", "exec >&-;"] {
            let script = format!("{serves} {stays} while :; do sleep 0.05; done");
            let drive = start(&script, timeouts).0.unwrap_or_else(|error| panic!("{error}"));
            let error = failure(drive.end());
            assert!(error.contains("3s for its end after SIGTERM"), "{error}");
        }
        assert!(begun.elapsed() < 10 * SHORT);
    }
}
