//! An experiment of the simulator in real time. The drive has its own process; this one has the scheduler,
//! the experiment's clients over NBD, and its background task by the control interface.
//!
//! ```text
//!   play               the experiment's clients, by the clock                       load.rs
//!     Server, Serving  the scheduler in front of the drive, as `freewheel serve` has it
//!       NbdBackend     to the drive's process, as `freewheel emulate` serves it
//!   DriveProcess       from its first line to its last                              process.rs
//! ```

mod load;
mod process;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use freewheel_sim::config::ConfigError;
use freewheel_sim::experiment::Experiment;
use freewheel_units::SimDuration;
use tempfile::TempDir;
use thiserror::Error;

use crate::control::{
    ControlClient, ControlError, ControlLimits, ControlServer, ControlServerError, TaskKind,
    TaskOrder,
};
use crate::nbd::{Access, Address, Limits, ListenError, Server, Service, Stop};
use crate::serve::backend::{ExportError, NbdBackend};
use crate::serve::{BackendChannel, Report, ServeError, Serving, Setup};

use self::process::{DriveProcess, Timeouts};
pub use load::{PlayError, Played, play};

/// Reason why an experiment was not run in real time.
#[derive(Debug, Error)]
pub enum TrialError {
    /// Only closed workloads behind a scheduler outside the drive are.
    #[error("in real time an experiment needs `[host]` and a closed workload")]
    Experiment,
    /// The experiment has a fault.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The drive's process, a file or a socket.
    #[error("{what}: {source}")]
    System {
        /// The object of the step that failed.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// The drive's process ended before it served.
    #[error("the drive's process: {0}")]
    Drive(String),
    /// The process does not answer in time.
    #[error(
        "the drive's process: waited {limit:?} for {what}: try again when the machine is less busy; its \
         output: {said:?}"
    )]
    Overdue {
        /// Event that is waited for.
        what: &'static str,
        /// For how long.
        limit: Duration,
        /// Output meanwhile.
        said: String,
    },
    /// There is no connection to it.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The scheduler cannot be had.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The server cannot listen.
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

/// Results of the trial.
#[derive(Debug)]
pub struct Outcome {
    /// Observations of the clients.
    pub played: Played,
    /// Observations of the scheduler.
    pub report: Report,
    /// Output of the drive's process at its end.
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
    let folder = tempfile::tempdir()
        .map_err(move |source| TrialError::System { what: "a folder", source })?;
    let socket = folder.path().join("drive");
    let command = emulator(folder.path(), &socket)
        .map_err(move |source| TrialError::System { what: "the drive's file", source })?;
    let drive = DriveProcess::start(command, &socket, Timeouts::default())?;
    let address = Address::Unix(socket);
    let way = BackendChannel::new();
    let device = NbdBackend::connect(&address.uri("", false), None, way.back(), way.gone())?;
    let setup = setup(experiment)?;
    let serving = Arc::new(Serving::start(setup, Arc::new(device), way)?);
    let played = play_in_front(experiment, length, &serving, &folder);
    let report = serving.finish();
    let played = played?;
    let report = report.ok_or(TrialError::Scheduler)?;
    Ok(Outcome { played, report, drive: drive.end()? })
}

fn setup(experiment: &Experiment) -> Result<Setup, TrialError> {
    let Experiment { config, spec, drive, .. } = experiment;
    let host = config.host.as_ref().ok_or(TrialError::Experiment)?;
    let scheduler = host.scheduler(spec, drive, config.scheduler)?;
    let rule = config.freeblock.as_ref().map(|free| free.rule).unwrap_or_default();
    Ok(Setup { rule, ..Setup::new(Arc::clone(drive), spec.name.clone(), scheduler) })
}

/// The clients, and the task if there is one, in front of the scheduler.
fn play_in_front(
    experiment: &Experiment,
    length: SimDuration,
    serving: &Arc<Serving>,
    folder: &TempDir,
) -> Result<Played, TrialError> {
    let mut clients = experiment.clients(u64::MAX)?.ok_or(TrialError::Experiment)?;
    let service: Arc<dyn Service> = Arc::clone(serving) as Arc<dyn Service>;
    let front = Address::Unix(in_folder("front", folder));
    let server = Server::bind(&front, Access::default(), vec![service], Limits::default(), |_| {})?;
    let control = ControlServer::start(
        Arc::clone(serving),
        &in_folder("control", folder),
        ControlLimits::default(),
    )?;
    beside(server, || {
        if let Some(free) = experiment.config.freeblock.as_ref().and_then(|free| free.tasks.first())
        {
            let (kind, block_size) = (TaskKind::Scan, free.block_size);
            let scan = TaskOrder { kind, block_size, repeat: true, ..TaskOrder::default() };
            ControlClient::new(control.path())?.create(&scan.into())?;
        }
        Ok(play(&mut clients, &front.uri("", false), length)?)
    })
}

fn in_folder(name: &str, folder: &TempDir) -> PathBuf {
    folder.path().join(name)
}

/// Runs `work` while the server runs.
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

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use super::*;
    use crate::nbd::Memory;

    #[test]
    fn trial_panic_stops_server() {
        let folder = tempfile::tempdir().unwrap();
        let front = Address::Unix(folder.path().join("front"));
        let memory: Arc<dyn Service> = Arc::new(Memory::new("memory", 4096));
        let server =
            Server::bind(&front, Access::default(), vec![memory], Limits::default(), |_| {})
                .unwrap();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let panics = || beside::<()>(server, || panic!("as it happens"));
            tell.send(catch_unwind(AssertUnwindSafe(panics)).is_err()).unwrap();
        });
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
