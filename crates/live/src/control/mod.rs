//! Control of a running server: HTTP and JSON on a Unix socket, and a [`ControlClient`] of it.
//!
//! ```text
//!   ControlServer   a thread with its own runtime                             (axum, tokio)
//!     connections   bounds on their number and on the time of a request      (hyper)
//!     routes        a request -> a question to the scheduler's thread -> its answer as JSON
//!     Serving::ask  between two commands of the device; only a few questions at a time
//! ```
//! The runtime serves this interface alone; timed work runs on other threads.

mod api;
mod client;
mod connections;
mod http_error;
mod metrics;
mod names;
mod peers;
mod request;
mod routes;
mod sample;
mod sample_counter;
mod server_report;
mod stream;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use freewheel_nbd::Export;
use freewheel_units::{BLOCK_BYTES, Blocks, SimDuration, SimTime};
use thiserror::Error;
use tokio::net::UnixListener;
use tokio::runtime::{self, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::timeout;

use crate::nbd::{ListenError, PRIVATE_MODE, Service, SocketFile, bind_unix};
use crate::serve::{SchedulerThread, ServedTaskError, ServedTaskReport, Serving, shortest_track};

use self::peers::Peers;
pub use api::{
    BlockRange, Decisions, Durations, Expectation, LaggedNews, Margin, MovementDirection,
    MovementEnd, Refresh, Refusal, Route, Scheduling, ServerStatus, Task, UnreadableNews,
    WrittenRanges,
};

pub(crate) use api::BLOCKS_END;
pub use client::{BlockStream, ControlClient, ControlError};
pub use freewheel_freeblock::tasks::{Priority, TaskKind};
pub use freewheel_freeblock::{PromoteTail, TaskOrder};
pub use freewheel_host::tasks::TaskState;
pub use request::TaskRequest;
pub use sample::{SampleReport, SampleRequest, SampleTenth};
pub use sample_counter::{SampleBias, SampleCounter, SampleResult, ShareEstimate};
pub use server_report::ServerReport;
pub use stream::{NotARecord, Record, Records};

/// Questions to the scheduler's thread at once; others wait here.
const QUESTIONS_MAX: usize = 8;

/// Bytes of the largest request: a task of half a million extents, or one that skips this number.
const REQUEST_MAX: usize = 32 << 20;

/// Bytes of the largest body that may come beside any number of others.
const SHORT_BODY_MAX: u64 = 64 << 10;

/// Longer bodies that may come at once: they bound the memory for bodies to 64 MiB.
const LONG_BODIES_MAX: usize = 2;

/// Time that connections have to end with the server.
const GRACE: Duration = Duration::from_secs(1);

/// Limits of clients of the control interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlLimits {
    /// Connections at once; further ones are answered with 503.
    pub connections_max: usize,
    /// Longest time from one request to the head of the next, and from a head to the end of its body. A
    /// connection that takes longer is closed.
    pub request: Duration,
}

impl Default for ControlLimits {
    fn default() -> Self {
        Self { connections_max: 64, request: Duration::from_secs(10) }
    }
}

/// Reason why there is no control interface.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ControlServerError {
    /// The socket cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The permissions, thread or runtime failed.
    #[error("{}: {source}", path.display())]
    System { path: PathBuf, source: io::Error },
}

/// Reason why a question has no answer.
#[derive(Debug, Error)]
enum Unanswered {
    /// The scheduler's thread is at its end.
    #[error("the server is ending")]
    Ending,
    /// The question differs from the description.
    #[error("{why}: `freewheel tasks --openapi` describes what is understood")]
    NotUnderstood { status: StatusCode, why: String },
    /// The body of a request took too long.
    #[error("the body did not come within {0:?}: send all of it at once")]
    TooSlow(Duration),
    /// Other long bodies are under way.
    #[error(
        "{LONG_BODIES_MAX} requests with long bodies are under way: try again when one has ended"
    )]
    NoRoom,
    /// The request contradicts the server.
    #[error("{0}")]
    Request(String),
    #[error(transparent)]
    Task(#[from] ServedTaskError),
}

/// The length of a body; none of one in chunks, which does not say.
fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A server as its control interface sees it.
struct Controlled {
    serving: Arc<Serving>,
    drive: String,
    blocks: Blocks,
    questions: Semaphore,
    long_bodies: Semaphore,
    limits: ControlLimits,
}

impl Controlled {
    fn new(serving: Arc<Serving>, limits: ControlLimits) -> Self {
        let Export { name: drive, size, .. } = serving.export();
        let blocks = Blocks::new(size / BLOCK_BYTES);
        let questions = Semaphore::new(QUESTIONS_MAX);
        let long_bodies = Semaphore::new(LONG_BODIES_MAX);
        Self { serving, drive, blocks, questions, long_bodies, limits }
    }

    /// Waits until there is memory for a body of this length, if that is known. A short one needs no permit.
    async fn room_for(
        &self,
        length: Option<u64>,
    ) -> Result<Option<SemaphorePermit<'_>>, Unanswered> {
        if length.is_some_and(|length| length <= SHORT_BODY_MAX) {
            return Ok(None);
        }
        match timeout(self.limits.request, self.long_bodies.acquire()).await {
            Ok(Ok(permit)) => Ok(Some(permit)),
            Ok(Err(_)) => Err(Unanswered::Ending),
            Err(_) => Err(Unanswered::NoRoom),
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut SchedulerThread) -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let _turn = self.questions.acquire().await.map_err(|_| Unanswered::Ending)?;
        self.serving.ask(ask).await.map_err(|_| Unanswered::Ending)
    }

    /// Asks for something whose answer is a task.
    async fn about(
        &self,
        ask: impl FnOnce(&mut SchedulerThread) -> Result<ServedTaskReport, ServedTaskError>
        + Send
        + 'static,
    ) -> Result<Task, Unanswered> {
        let (now, report) = self
            .ask(|scheduler_thread| (scheduler_thread.moment().0, ask(scheduler_thread)))
            .await?;
        Ok(Task::new(&report?, now))
    }

    async fn uptime(&self) -> SimTime {
        self.ask(|scheduler_thread| scheduler_thread.moment().0).await.unwrap_or(SimTime::ZERO)
    }

    async fn status(&self) -> Result<ServerStatus, Unanswered> {
        let status = self.ask(SchedulerThread::status).await?;
        let now = SimTime::ZERO + status.elapsed;
        Ok(ServerStatus {
            server_version: env!("CARGO_PKG_VERSION").into(),
            instance: status.began_unix_ns.to_string(),
            drive: self.drive.clone(),
            blocks: self.blocks.get(),
            track_bytes_min: u64::from(shortest_track(self.serving.drive())) * BLOCK_BYTES,
            block_size_bytes: u64::from(self.serving.usual_block()) * BLOCK_BYTES,
            sectors: self.serving.sectors().into(),
            uptime_ns: status.elapsed.ns(),
            idle_ns: status.idle.map(SimDuration::ns),
            scheduling: status.account.into(),
            margins: status.margins.into_iter().map(Margin::from).collect(),
            free_cost: status.free_cost.map(api::FreeCost::from),
            decisions: Decisions::new(&status.decisions),
            responses: Durations::new(&status.responses),
            prediction_errors: Durations::new(&status.errors),
            notices: status.notices,
            tasks: status.tasks.iter().map(|task| Task::new(task, now)).collect(),
        })
    }
}

/// The description of the interface, as OpenAPI in JSON.
pub fn openapi() -> String {
    let description = routes::all().into_openapi();
    // Every part of it can be JSON.
    description.to_pretty_json().unwrap_or_default() + "\n"
}

/// The control interface of a server that runs.
pub struct ControlServer {
    /// Goes after the thread has ended.
    file: SocketFile,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlServer {
    /// Listens at `path`, for the user alone. The socket of a server that was killed is replaced.
    pub fn start(
        serving: Arc<Serving>,
        path: &Path,
        limits: ControlLimits,
    ) -> Result<Self, ControlServerError> {
        let system = |source| ControlServerError::System { path: path.into(), source };
        // Where permissions of sockets have no effect, `Peers` refuses other users.
        let (listener, file) = bind_unix(path, PRIVATE_MODE)?;
        listener.set_nonblocking(true).map_err(system)?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(system)?;
        let listener = {
            let _inside = runtime.enter();
            UnixListener::from_std(listener).and_then(Peers::new).map_err(system)?
        };
        let (stop, shutdown) = watch::channel(false);
        let server = Arc::new(Controlled::new(serving, limits));
        let thread = thread::Builder::new().name("control".into());
        let thread = thread.spawn(move || serve(&runtime, listener, server, shutdown));
        let thread = Some(thread.map_err(system)?);
        Ok(Self { file, stop, thread })
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        self.file.path()
    }
}

impl Drop for ControlServer {
    /// Ends when the connections have been told, or soon after.
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

fn serve(
    runtime: &Runtime,
    listener: Peers,
    server: Arc<Controlled>,
    shutdown: watch::Receiver<bool>,
) {
    let limits = server.limits;
    let (router, _) = routes::all().with_state(server).split_for_parts();
    let router = router
        .fallback(routes::unknown)
        .method_not_allowed_fallback(routes::not_allowed)
        .layer(DefaultBodyLimit::max(REQUEST_MAX));
    runtime.block_on(async {
        tokio::select! {
            () = connections::serve(listener, router, limits, shutdown.clone()) => {}
            () = async { connections::ended(shutdown).await; tokio::time::sleep(GRACE).await } => {}
        }
    });
}
