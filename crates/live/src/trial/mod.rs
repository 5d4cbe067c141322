//! An experiment of the simulator in real time: the drive in a process of its own, the scheduler in this
//! one, the experiment's clients over NBD, and its background task by the control interface.
//!
//! ```text
//!   play               the experiment's clients, by the clock                       load.rs
//!     Server, Serving  the scheduler outside the drive, as `freewheel serve` has it
//!       NbdBackend     to the drive's process, as `freewheel emulate` serves it
//! ```

mod load;

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use freewheel_sim::config::{ConfigError, Experiment};
use freewheel_units::SimDuration;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use thiserror::Error;

use crate::control::{
    ControlClient, ControlError, ControlServer, ControlServerError, TaskKind, TaskRequest,
};
use crate::nbd::{Address, Limits, ListenError, Server, Service, Stop};
use crate::serve::backend::{ExportError, NbdBackend};
use crate::serve::{Report, ServeError, Serving, Setup, Way};

pub use load::{PlayError, Played, play};

/// Why an experiment was not run in real time.
#[derive(Debug, Error)]
pub enum TrialError {
    /// Only closed workloads behind a scheduler outside the drive are.
    #[error("in real time an experiment needs `[external]` and a closed workload")]
    Experiment,
    /// It is wrong in itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The drive's process, a file or a socket.
    #[error("{what}: {source}")]
    System {
        /// What it was about.
        what: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The drive's process ended before it served.
    #[error("the drive's process: {0}")]
    Drive(String),
    /// There is no connection to it.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The scheduler cannot be had.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// Its server cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Nor its control interface.
    #[error(transparent)]
    ControlServer(#[from] ControlServerError),
    /// The task cannot be had.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The clients cannot go on.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// The scheduler's thread has failed.
    #[error("the scheduler's thread has failed")]
    Scheduler,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// What the clients saw.
    pub played: Played,
    /// What the scheduler saw.
    pub report: Report,
    /// What the drive's process printed at its end.
    pub drive: String,
}

/// Runs it for `length`. `emulator` makes the command that serves its drive at a Unix socket, until
/// `SIGTERM`; it may put files into the folder that it is given first, and says a line on stderr when it
/// serves.
pub fn run(
    experiment: &Experiment,
    length: SimDuration,
    emulator: impl FnOnce(&Path, &Path) -> io::Result<Command>,
) -> Result<Outcome, TrialError> {
    let system = |what| move |source| TrialError::System { what, source };
    let folder = tempfile::tempdir().map_err(system("a folder"))?;
    let socket = folder.path().join("drive");
    let command = emulator(folder.path(), &socket).map_err(system("the drive's file"))?;
    let drive = DriveProcess::start(command, &socket)?;
    let address = Address::Unix(socket);
    let way = Way::new();
    let device = NbdBackend::connect(&address.uri("", false), None, way.back(), way.gone())?;
    let setup = setup(experiment)?;
    let serving = Arc::new(Serving::start(setup, Arc::new(device), way)?);
    let played = play_in_front(experiment, length, &serving, &folder);
    let report = serving.finish();
    let played = played?;
    let report = report.ok_or(TrialError::Scheduler)?;
    Ok(Outcome { played, report, drive: drive.end().map_err(system("the drive's process"))? })
}

fn setup(experiment: &Experiment) -> Result<Setup, TrialError> {
    let Experiment { config, spec, drive, .. } = experiment;
    let external = config.external.as_ref().ok_or(TrialError::Experiment)?;
    Ok(Setup {
        scheduler: external.scheduler(spec, drive, config.scheduler)?,
        drive: Arc::clone(drive),
        name: spec.name.clone(),
        rule: config.freeblock.as_ref().map(|free| free.rule).unwrap_or_default(),
        job: None,
        notice: Box::new(|_| {}),
        ended: Box::new(|| {}),
    })
}

/// The clients, and the task if there is one, in front of the scheduler.
fn play_in_front(
    experiment: &Experiment,
    length: SimDuration,
    serving: &Arc<Serving>,
    folder: &TempDir,
) -> Result<Played, TrialError> {
    let mut clients = experiment.clients(u64::MAX)?.ok_or(TrialError::Experiment)?;
    let in_folder = |name: &str| -> PathBuf { folder.path().join(name) };
    let service: Arc<dyn Service> = Arc::clone(serving) as Arc<dyn Service>;
    let front = Address::Unix(in_folder("front"));
    let server = Server::bind(&front, None, vec![service], Limits::default(), |_| {})?;
    let control = ControlServer::start(Arc::clone(serving), &in_folder("control"))?;
    beside(server, || {
        if let Some(free) = &experiment.config.freeblock {
            let task = TaskRequest {
                block_size_bytes: free.block_size.get(),
                repeat: true,
                ..TaskRequest::new(TaskKind::Scan)
            };
            ControlClient::new(control.path())?.create(&task)?;
        }
        Ok(play(&mut clients, &front.uri("", false), length)?)
    })
}

/// Does what there is to do while the server runs.
fn beside<T>(
    server: Server,
    work: impl FnOnce() -> Result<T, TrialError>,
) -> Result<T, TrialError> {
    let stop = Stop::new().map_err(|source| TrialError::System { what: "a socket", source })?;
    thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&stop));
        let stops = StopsAtEnd(&stop);
        let done = work();
        drop(stops);
        let ended = running.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        let what = "the server in front";
        ended.map_err(|source| TrialError::System { what, source })?;
        done
    })
}

/// Stops the server also where something has panicked: the scope waits for its thread.
struct StopsAtEnd<'a>(&'a Stop);

impl Drop for StopsAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// How often it is looked whether the drive's process serves.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The drive, killed if it is not ended.
struct DriveProcess(Child);

impl DriveProcess {
    /// Waits until it has said a line and serves at this socket, or has ended.
    fn start(mut command: Command, socket: &Path) -> Result<Self, TrialError> {
        let what = "the drive's process";
        let system = |source| TrialError::System { what, source };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut this = Self(command.spawn().map_err(system)?);
        let mut says = BufReader::new(this.0.stderr.take().expect("it is a pipe"));
        let mut line = String::new();
        says.read_line(&mut line).map_err(system)?;
        // Its first line may also say why it is about to end.
        while !socket.exists() {
            if let Some(status) = this.0.try_wait().map_err(system)? {
                // What there is of its last words.
                let _ = says.read_to_string(&mut line);
                return Err(TrialError::Drive(format!("{status}: {}", line.trim_end())));
            }
            thread::sleep(LOOK_EVERY);
        }
        thread::spawn(move || io::copy(&mut says, &mut io::sink()));
        Ok(this)
    }

    /// What it prints as it ends in order.
    fn end(mut self) -> io::Result<String> {
        kill_process(Pid::from_child(&self.0), Signal::TERM)?;
        let mut text = String::new();
        let mut stdout = self.0.stdout.take().expect("it is a pipe");
        stdout.read_to_string(&mut text)?;
        self.0.wait()?;
        Ok(text)
    }
}

impl Drop for DriveProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use super::*;
    use crate::nbd::Memory;

    /// A process that does this, with its socket for `$1`.
    fn shell(script: &str, socket: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(socket);
        command
    }

    #[test]
    fn a_drive_that_says_why_and_ends_later_is_reported_with_all_that_it_said() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("drive");
        let script = "echo error: no such drive >&2; sleep 0.3; echo try another >&2; exit 3";
        match DriveProcess::start(shell(script, &socket), &socket) {
            Err(TrialError::Drive(text)) => {
                assert_eq!(text, "exit status: 3: error: no such drive\ntry another");
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it serves nothing"),
        }
    }

    #[test]
    fn a_drive_that_serves_is_ended_with_what_it_prints() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("drive");
        let script = "trap 'echo the end; exit 0' TERM; echo soon >&2; sleep 0.2; : > \"$1\"; \
                      while :; do sleep 0.05; done";
        let drive = DriveProcess::start(shell(script, &socket), &socket).unwrap();
        assert!(socket.exists());
        assert_eq!(drive.end().unwrap(), "the end\n");
    }

    #[test]
    fn a_panic_beside_the_server_stops_it() {
        let folder = tempfile::tempdir().unwrap();
        let front = Address::Unix(folder.path().join("front"));
        let memory: Arc<dyn Service> = Arc::new(Memory::new("memory", 4096));
        let server = Server::bind(&front, None, vec![memory], Limits::default(), |_| {}).unwrap();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let panics = || beside::<()>(server, || panic!("as it happens"));
            tell.send(catch_unwind(AssertUnwindSafe(panics)).is_err()).unwrap();
        });
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
