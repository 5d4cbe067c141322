//! A scheduler in front of a device: foreground requests by NBD, free work in their gaps.
//!
//! ```text
//!   connection's thread   arrival stamped
//!     Serving::submit     a message to the scheduler's thread
//!       ServerMachine     what the thread does between two waits                   (told the time)
//!       HostScheduler     order of what overlaps, data, answers                (told the time)
//!         PredictiveScheduler  which command next, and what goes in the gap before  (virtual time too)
//!       Backend           the device: its threads stamp when commands come back
//!     responder           the answer, by the scheduler's thread
//!   control's thread      a question to the scheduler's thread, between two commands  (control)
//!     ServedTasks         background tasks: what is wanted, what has come, and for whom
//! ```

pub mod backend;
pub mod machine;
mod readers;
mod scheduler_thread;

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use freewheel_freeblock::{Effort, Options as PlannerOptions, Rule};
use freewheel_host::scheduler::{Erase, Request};
use freewheel_host::{Account, FreeCost, HostScheduler, MarginInUse, PredictiveScheduler};
use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::stats::Distribution;
use freewheel_nbd::{BlockSizes, Command, Errno, Export, Features, Span};
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Lbn, Op, SimDuration, SimTime};
use thiserror::Error;
use tokio::sync::{broadcast, oneshot};

use self::backend::{Abilities, Back, Backend, BackendCompletion, DeviceError};
use self::machine::{Ask, Message};
use self::scheduler_thread::RealTime;
use crate::nbd::{Caller, Responder, Service};

pub use freewheel_freeblock::tasks::TaskKind;
pub use freewheel_freeblock::{PredictionMark, TaskOrder};
pub use freewheel_host::scheduler::REGION_BLOCKS;
pub use freewheel_host::tasks::{
    RefreshReport, ServedOrder, ServedTaskError, ServedTaskReport, TaskParts, TaskState,
    shortest_track, usual_block,
};
pub use machine::Status;
pub use readers::{Item, News, Reader};
pub use scheduler_thread::SchedulerThread;

/// Most blocks of one request: as an emulated drive takes.
const REQUEST_BYTES_MAX: u32 = 32 << 20;

/// Events that are kept for a slow listener.
const NEWS_MAX: usize = 1024;

/// Most nodes that one decision of the planner looks at. Decisions keep to their time (`host`'s
/// `deadline`); this limit bounds their memory, 16 children of 16 B a node: 16 MiB.
const DECISION_NODES_MAX: u64 = 1 << 16;

/// Reason why a device cannot be served.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ServeError {
    /// The drive's file and the device are not the same size.
    #[error(
        "the device has {found} of 512 B and {name} has {wanted}: give the file of this drive \
         with --drive, or for a trial make a new file as large: truncate --size {} NEW",
        wanted.bytes().get()
    )]
    Size { name: String, found: Blocks, wanted: Blocks },
    /// More than one arm.
    #[error(
        "{name} has {actuators} actuators, and the scheduler follows one arm: serve each half as its \
         own device, with a copy of the drive's file in which `actuators = 1`"
    )]
    Actuators {
        name: String,
        /// Number of the drive's arms.
        actuators: u32,
    },
    /// Zones that only take writes in order.
    #[error(
        "{name} is host-managed, and NBD has no zones: such a drive cannot be served; if only its \
         conventional zones are in use, remove `zoned` in a copy of its file"
    )]
    Zoned { name: String },
    /// The task cannot be had.
    #[error(transparent)]
    Task(#[from] ServedTaskError),
    /// The thread cannot be started.
    #[error("the scheduler's thread: {0}")]
    Thread(io::Error),
}

/// Reason why there is no report of a server at its end.
#[derive(Debug, Error)]
pub enum FinishError {
    /// The thread panicked, or was ended before.
    #[error("the scheduler's thread has failed")]
    Failed,
    /// A command is still at the device.
    #[error(
        "the device has not completed its commands within {:.1} s: requests of clients that were not \
         answered may have been done or not",
        longest.as_secs_f64()
    )]
    DeviceOwes {
        /// Time of the wait.
        longest: Duration,
    },
}

/// Checks that a drive of this file, named `name` in errors, can be served.
pub fn check(spec: &DriveSpec, name: &str) -> Result<(), ServeError> {
    if spec.actuators != 1 {
        return Err(ServeError::Actuators { name: name.into(), actuators: spec.actuators });
    }
    if spec.zoned.is_some() {
        return Err(ServeError::Zoned { name: name.into() });
    }
    Ok(())
}

/// Called with each warning for the operator of the server.
pub type Notice = Box<dyn Fn(&str) + Send>;

/// Device, drive and options of a server.
#[allow(missing_docs)]
pub struct Setup {
    /// The drive that the device is taken for.
    pub drive: Arc<Drive>,
    pub name: String,
    pub scheduler: PredictiveScheduler,
    /// Rule that fills gaps.
    pub rule: Rule,
    /// The background task to begin with.
    pub task: Option<TaskOrder>,
    /// Called with each warning.
    pub notice: Notice,
    /// Called when the scheduler's thread has ended, also when it has failed.
    pub ended: Box<dyn FnOnce() + Send>,
}

impl Setup {
    /// A server of this drive without a background task, which fills gaps by paths and drops warnings.
    pub fn new(drive: Arc<Drive>, name: String, scheduler: PredictiveScheduler) -> Self {
        Self {
            drive,
            name,
            scheduler,
            rule: Rule::Paths,
            task: None,
            notice: Box::new(|_| {}),
            ended: Box::new(|| {}),
        }
    }

    /// Begins with a scrub of the whole device, over and over, in blocks of this size; if not given, of the
    /// usual one for sectors of `sector_blocks`.
    pub fn scrubbing(self, block_size: Option<Bytes>, sector_blocks: u32) -> Self {
        let kind = TaskKind::Scrub;
        let scrub = TaskOrder { kind, block_size, repeat: true, ..TaskOrder::default() };
        let usual = usual_block(&self.drive, sector_blocks);
        Self { task: Some(scrub.completed(self.drive.blocks(), usual)), ..self }
    }
}

/// Calls it when it goes.
struct AtEnd(Option<Box<dyn FnOnce() + Send>>);

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(ended) = self.0.take() {
            ended();
        }
    }
}

/// Cost of decisions about gaps, those included that found no task with wishes.
#[derive(Debug, Clone)]
pub struct Decisions {
    /// Their number, and what was looked at for them.
    pub effort: Effort,
    /// Time that each took.
    pub times: Distribution,
    /// Time before the drive needs a command at which its decision begins, learned from recent decisions.
    pub before: SimDuration,
}

/// Results of a server.
#[derive(Debug, Clone)]
pub struct Report {
    /// Observations and work of the scheduler.
    pub account: Account,
    /// The margins of free work that it has learned, where it has.
    pub margins: Vec<MarginInUse>,
    /// Cost of free work to clients, as measured in slots without it.
    pub free_cost: Option<FreeCost>,
    /// Cost of its decisions about gaps.
    pub decisions: Decisions,
    /// Response times of foreground requests.
    pub responses: Distribution,
    /// Time from start to end.
    pub elapsed: Duration,
    /// Distance of commands' ends from their predictions, either way.
    pub errors: Distribution,
    /// Reports of background tasks, in the order in which they were asked for.
    pub tasks: Vec<ServedTaskReport>,
    /// Error by which the device was lost, if it was.
    pub gone: Option<DeviceError>,
    /// The error of every FLUSH and FUA since one had failed at the device, if one had.
    pub failed_flush: Option<DeviceError>,
}

/// Sectors of a device that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectorSizes {
    /// Bytes of a logical one: the device is only asked for whole ones.
    pub logical_bytes: u32,
    /// Bytes of one of the media, by the device or the drive's file.
    pub physical_bytes: u32,
}

impl Default for SectorSizes {
    /// Default for sectors of 512 B.
    fn default() -> Self {
        let bytes = BLOCK_BYTES as u32;
        Self { logical_bytes: bytes, physical_bytes: bytes }
    }
}

/// A device that is served.
pub struct Serving {
    export: Export,
    sectors: SectorSizes,
    drive: Arc<Drive>,
    usual_block: u32,
    news: broadcast::Sender<News>,
    inbox: Mutex<Sender<Message<RealTime>>>,
    thread: Mutex<Option<JoinHandle<Report>>>,
}

/// The way back from a device that is opened next, to a scheduler that is started then.
pub struct BackendChannel {
    inbox: Sender<Message<RealTime>>,
    messages: Receiver<Message<RealTime>>,
}

impl BackendChannel {
    /// A channel that no device uses yet.
    pub fn new() -> Self {
        let (inbox, messages) = mpsc::channel();
        Self { inbox, messages }
    }

    /// Channel that the device is given.
    pub fn back(&self) -> Back {
        let inbox = Mutex::new(self.inbox.clone());
        Arc::new(move |BackendCompletion { id, at, result }| {
            let inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
            // The scheduler may have ended.
            let _ = inbox.send(Message::CameBack { id, at, result });
        })
    }

    /// Callback for a device that may vanish: the device calls it with the reason.
    pub fn gone(&self) -> impl FnOnce(DeviceError) + Send + 'static {
        let inbox = self.inbox.clone();
        // The scheduler may have ended.
        move |why| drop(inbox.send(Message::Gone(why)))
    }
}

impl Default for BackendChannel {
    fn default() -> Self {
        Self::new()
    }
}

impl Serving {
    /// Starts scheduling for a device that was opened with this way back.
    pub fn start(
        setup: Setup,
        device: Arc<dyn Backend>,
        channel: BackendChannel,
    ) -> Result<Self, ServeError> {
        let (found, wanted) = (device.blocks(), setup.drive.blocks());
        if found != wanted {
            return Err(ServeError::Size { name: setup.name, found, wanted });
        }
        let Setup { drive, name, scheduler, rule, task, notice, ended } = setup;
        let abilities = device.abilities();
        let usual_block = usual_block(&drive, abilities.sector_blocks());
        let (mut scheduler, physical_blocks) =
            host_scheduler(scheduler, rule, usual_block, abilities);
        let physical_bytes = physical_blocks * BLOCK_BYTES as u32;
        let sectors = SectorSizes { logical_bytes: abilities.sector_bytes, physical_bytes };
        if let Some(task) = task {
            scheduler.tasks_mut().create(SimTime::ZERO, task.into())?;
        }
        let export = export(name, found, abilities);
        let BackendChannel { inbox, messages } = channel;
        let (news, _) = broadcast::channel(NEWS_MAX);
        let scheduler_thread =
            SchedulerThread::of(scheduler, device, messages, (news.clone(), notice));
        let thread = thread::Builder::new().name("scheduler".into()).spawn(|| {
            let _end = AtEnd(Some(ended));
            scheduler_thread.run()
        });
        let thread = Mutex::new(Some(thread.map_err(ServeError::Thread)?));
        Ok(Self { export, sectors, drive, usual_block, news, inbox: Mutex::new(inbox), thread })
    }

    /// Ends it when all that is in flight has come back. `None` when it has ended before.
    pub fn finish(&self) -> Option<Report> {
        self.tell(Message::Finish);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        thread.join().ok()
    }

    /// Like [`Self::finish`], but gives up after this time: a device may owe an answer for longer.
    pub fn finish_within(&self, longest: Duration) -> Result<Report, FinishError> {
        self.tell(Message::Finish);
        let until = Instant::now() + longest;
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        while thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            if Instant::now() >= until {
                return Err(FinishError::DeviceOwes { longest });
            }
            thread::sleep(Duration::from_millis(5));
        }
        let ended = thread.take().and_then(|thread| thread.join().ok());
        ended.ok_or(FinishError::Failed)
    }

    /// Has `ask` answered by the scheduler's thread, between two commands. The answer is missing when
    /// it has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut SchedulerThread) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (answer, receiver) = oneshot::channel();
        let ask: Ask<RealTime> = Box::new(move |scheduler_thread| {
            // The caller may have gone.
            let _ = answer.send(ask(scheduler_thread));
        });
        self.tell(Message::Asked(ask));
        receiver
    }

    /// The drive that the device is taken for.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Size of the shortest track: larger blocks of a task lie on several.
    pub fn shortest_track(&self) -> Bytes {
        Blocks::new(shortest_track(&self.drive).into()).bytes()
    }

    /// Sectors of the device.
    pub fn sectors(&self) -> SectorSizes {
        self.sectors
    }

    /// Default block size of a task, in blocks of 512 B.
    pub fn usual_block(&self) -> u32 {
        self.usual_block
    }

    /// Subscribes to the events of background tasks.
    pub fn news(&self) -> broadcast::Receiver<News> {
        let news = self.news.subscribe();
        // An idle thread sleeps until its next message, and would not notice the new listener.
        self.tell(Message::Asked(Box::new(|_| {})));
        news
    }

    fn tell(&self, message: Message<RealTime>) {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        // A scheduler that has ended drops it, which answers it with an error.
        let _ = inbox.send(message);
    }
}

/// The scheduler for a device with these abilities, and the blocks of 512 B of a sector of its media. Most
/// tasks will have blocks of `usual_block`.
pub fn host_scheduler(
    scheduler: PredictiveScheduler,
    rule: Rule,
    usual_block: u32,
    abilities: Abilities,
) -> (HostScheduler, u32) {
    let options = PlannerOptions { rule, budget: DECISION_NODES_MAX, ..PlannerOptions::default() };
    let scheduler = HostScheduler::for_device(scheduler, options, usual_block, abilities);
    let physical_blocks = scheduler.media_sectors().blocks();
    (scheduler, physical_blocks)
}

/// The export of a device with these abilities.
pub fn export(name: String, blocks: Blocks, abilities: Abilities) -> Export {
    let Abilities { flush, fua, trim, .. } = abilities;
    let features = Features {
        flush,
        // Where there is none, a write and a flush behind it.
        fua: flush || fua,
        // TRIM is advice: a device without it ignores it.
        trim,
        // Where the device has none, zeroes are written.
        write_zeroes: true,
        rotational: true,
        cache: true,
        multi_conn: true,
        ..Features::default()
    };
    Export {
        description: format!("{name} behind Freewheel"),
        name,
        size: blocks.bytes().get(),
        features,
        block_sizes: block_sizes(abilities),
        block_sizes_required: false,
    }
}

/// Block sizes of the export. Parts of a logical sector are refused: a client reads the sector first, or a
/// write would wait for a turn. Of physical ones it is the drive that reads first, and waits.
fn block_sizes(abilities: Abilities) -> BlockSizes {
    let Abilities { sector_bytes, physical_bytes, .. } = abilities;
    // The protocol has powers of two, up to the longest payload.
    let can_be = physical_bytes.is_power_of_two() && physical_bytes <= REQUEST_BYTES_MAX;
    let physical_bytes = if can_be { physical_bytes } else { 0 };
    BlockSizes {
        minimum: sector_bytes,
        preferred: sector_bytes.max(physical_bytes).max(4096),
        payload_max: REQUEST_BYTES_MAX,
    }
}

/// The request to the scheduler that a client's command is; or the error that it is answered with. `buffer`
/// gives memory of a length for a read; a write takes its `data`.
pub fn request_of(
    command: Command,
    data: &mut Vec<u8>,
    buffer: impl FnOnce(u32) -> Vec<u8>,
) -> Result<Request, (Errno, &'static str)> {
    Ok(match command {
        Command::Read { span, .. } => {
            let data = buffer(span.length);
            Request::Transfer { op: Op::Read, start: start_of(span), data, fua: false }
        }
        Command::Write { span, fua } => {
            let data = std::mem::take(data);
            Request::Transfer { op: Op::Write, start: start_of(span), data, fua }
        }
        Command::Flush => Request::Flush,
        Command::Trim { span, fua } => erase(Erase::Trim, span, fua),
        Command::WriteZeroes { span, fua, no_hole, .. } => {
            erase(Erase::Zeroes { keep: no_hole }, span, fua)
        }
        // Its data are in memory for a while, as those of a read.
        Command::Cache { span } if span.length > REQUEST_BYTES_MAX => {
            return Err((Errno::Inval, "it is longer than the longest read"));
        }
        Command::Cache { span } => {
            Request::Cache { start: start_of(span), blocks: blocks_of(span) }
        }
        Command::BlockStatus { .. } => return Err((Errno::NotSup, "not offered")),
    })
}

fn erase(how: Erase, span: Span, fua: bool) -> Request {
    Request::Erase { how, start: start_of(span), blocks: blocks_of(span), fua }
}

fn blocks_of(span: Span) -> u64 {
    u64::from(span.length) / BLOCK_BYTES
}

fn start_of(span: Span) -> Lbn {
    Lbn::new(span.offset / BLOCK_BYTES)
}

impl Service for Serving {
    fn export(&self) -> Export {
        self.export.clone()
    }

    fn submit(&self, command: Command, data: &mut Vec<u8>, responder: Responder) {
        let arrival = Instant::now();
        match request_of(command, data, |length| responder.buffer(length)) {
            Ok(request) => self.tell(Message::Arrived(arrival, request, responder)),
            Err((errno, why)) => responder.error(errno, why),
        }
    }

    fn left(&self, caller: Caller) {
        self.tell(Message::Left(caller.connection));
    }
}

#[cfg(test)]
mod tests {
    use super::backend::DeviceCommand;
    use super::*;
    use freewheel_host::PredictionSpec;
    use freewheel_model::sched::PolicySpec;
    use freewheel_sim::library;

    /// A device of this size that answers no command.
    struct NoBackend(Blocks);

    impl Backend for NoBackend {
        fn blocks(&self) -> Blocks {
            self.0
        }

        fn abilities(&self) -> Abilities {
            Abilities { flush: true, ..Abilities::default() }
        }

        fn submit(&self, _: DeviceCommand) {}
    }

    #[test]
    fn default_block_whole_sectors_half_track() {
        for name in library::names() {
            let (_, drive) = library::drive(name).unwrap();
            let zones = drive.layout().zones().iter();
            let shortest = zones.map(|zone| zone.blocks_per_track()).min().unwrap();
            let sizes = [1, 8, 16].map(|sector| (usual_block(&drive, sector), sector));
            for (size, sector) in sizes {
                assert!(size.is_multiple_of(sector) && 2 * size <= shortest, "{name}: {size}");
                assert!((8..=128).contains(&size), "{name}: {size}");
            }
        }
    }

    #[test]
    fn sectors_preferred_physical_least_logical() {
        let sizes = |sector_bytes, physical_bytes| {
            let sizes =
                block_sizes(Abilities { sector_bytes, physical_bytes, ..Abilities::default() });
            (sizes.minimum, sizes.preferred)
        };
        assert_eq!(sizes(512, 512), (512, 4096));
        assert_eq!(sizes(512, 4096), (512, 4096));
        assert_eq!(sizes(512, 16_384), (512, 16_384));
        assert_eq!(sizes(4096, 4096), (4096, 4096));
        assert_eq!(sizes(8192, 512), (8192, 8192));
        for no_size in [0, 12_288, 64 << 20] {
            assert_eq!(sizes(512, no_size), (512, 4096), "{no_size}");
        }
    }

    #[test]
    fn scheduler_failure_is_reported() {
        let (_, drive) = library::drive("atlas10k").unwrap();
        let drive = Arc::new(drive);
        let spec = PredictionSpec::default();
        let scheduler =
            PredictiveScheduler::new(&drive, SimDuration::ZERO, PolicySpec::Sptf, spec).unwrap();
        let (told, ended) = mpsc::channel();
        let setup = Setup {
            drive: Arc::clone(&drive),
            name: "nothing".into(),
            scheduler,
            rule: Rule::Paths,
            task: None,
            notice: Box::new(|_| {}),
            ended: Box::new(move || told.send(()).unwrap()),
        };
        let device = Arc::new(NoBackend(drive.blocks()));
        let serving = Serving::start(setup, device, BackendChannel::new()).unwrap();
        drop(serving.ask(|_| panic!("a scheduler that fails, on purpose")));
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok(()));
        assert!(serving.finish().is_none());
    }
}
