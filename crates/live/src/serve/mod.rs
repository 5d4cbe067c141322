//! A scheduler in front of a device: foreground requests by NBD, free work in their gaps.
//!
//! ```text
//!   connection's thread   arrival stamped
//!     Serving::submit     a message to the scheduler's thread
//!       Desk              order of what overlaps, data, answers                (told the time)
//!         External        which command next, and what goes in the gap before  (virtual time too)
//!       Backend           the device: its threads stamp when commands come back
//!     responder           the answer, by the scheduler's thread
//! ```

pub mod backend;
mod desk;
mod order;

use std::collections::{BTreeMap, VecDeque};
use std::hint;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::external::{Account, External};
use freewheel_model::freeblock::tasks::{CADENCE, Event, TaskError, TaskSpec, Tasks};
use freewheel_model::freeblock::{Options as PlannerOptions, Rule};
use freewheel_model::stats::Distribution;
use freewheel_nbd::{BlockSizes, Command, Errno, Export, Features, Span};
use freewheel_units::{BLOCK_BYTES, Blocks, Lbn, Op, SimTime};
use thiserror::Error;

use self::backend::{Back, Backend, CameBack, Failed};
use self::desk::{Answer, Desk, Request, Unreadable};
use crate::nbd::{Responder, Service};

/// How long before a decision the thread looks at the clock instead of sleeping.
const SPIN: Duration = Duration::from_micros(100);

/// Most blocks of one request: as an emulated drive takes.
const REQUEST_BYTES_MAX: u32 = 32 << 20;

/// Nodes that one decision of the planner looks at, at most: about half of a millisecond.
const DECISION_NODES_MAX: u64 = 500;

/// Why a device cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The drive's file and the device are not the same size.
    #[error(
        "the device has {found} blocks of 512 B and {name} has {wanted}: give the file of this drive \
         with --drive"
    )]
    Size {
        /// Name of the drive's file.
        name: String,
        /// Of the device.
        found: Blocks,
        /// Of the drive's file.
        wanted: Blocks,
    },
    /// More than one arm.
    #[error(
        "{name} has {actuators} actuators, and the scheduler follows one arm: serve each half as a \
         device of its own, with a copy of the drive's file in which `actuators = 1`"
    )]
    Actuators {
        /// The drive.
        name: String,
        /// Its arms.
        actuators: u32,
    },
    /// Zones that only take writes in order.
    #[error(
        "{name} is host-managed, and NBD has no zones: such a drive cannot be served; if only its \
         conventional zones are in use, remove `zoned` in a copy of its file"
    )]
    Zoned {
        /// The drive.
        name: String,
    },
    /// The task cannot be had.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Its thread cannot be started.
    #[error("the scheduler's thread: {0}")]
    Thread(io::Error),
}

/// Whether a drive of this file, named `name` in errors, can be served.
pub fn check(spec: &DriveSpec, name: &str) -> Result<(), ServeError> {
    if spec.actuators != 1 {
        return Err(ServeError::Actuators { name: name.into(), actuators: spec.actuators });
    }
    if spec.zoned.is_some() {
        return Err(ServeError::Zoned { name: name.into() });
    }
    Ok(())
}

/// What is served, and by what.
pub struct Setup {
    /// The drive that the device is taken for.
    pub drive: Arc<Drive>,
    /// The export's name.
    pub name: String,
    /// The scheduler for it.
    pub scheduler: External,
    /// How gaps are filled.
    pub rule: Rule,
    /// The background task to begin with.
    pub task: Option<TaskSpec>,
}

/// What became of it.
#[derive(Debug, Clone)]
pub struct Report {
    /// What the scheduler saw and did.
    pub account: Account,
    /// Response times of foreground requests.
    pub responses: Distribution,
    /// How long it was up.
    pub elapsed: Duration,
    /// Blocks of 512 B that the background task has been given.
    pub delivered: u64,
    /// Times that the task was done.
    pub rounds: u64,
    /// Blocks that could not be read for it.
    pub unreadable: Vec<Unreadable>,
}

pub use desk::Unreadable as UnreadableBlocks;

enum Message {
    Arrived(Instant, Request, Responder),
    CameBack(CameBack),
    Finish,
}

/// A device that is served.
pub struct Serving {
    export: Export,
    inbox: Mutex<Sender<Message>>,
    thread: Mutex<Option<JoinHandle<Report>>>,
}

/// The way back from a device that is opened next, to a scheduler that is started then.
pub struct Way {
    inbox: Sender<Message>,
    messages: Receiver<Message>,
}

impl Way {
    /// A way that nobody uses yet.
    pub fn new() -> Self {
        let (inbox, messages) = mpsc::channel();
        Self { inbox, messages }
    }

    /// What the device is given.
    pub fn back(&self) -> Back {
        let inbox = Mutex::new(self.inbox.clone());
        Arc::new(move |came_back| {
            let inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
            // A scheduler that has ended wants nothing.
            let _ = inbox.send(Message::CameBack(came_back));
        })
    }
}

impl Default for Way {
    fn default() -> Self {
        Self::new()
    }
}

impl Serving {
    /// Starts scheduling for a device that was opened with this way back.
    pub fn start(setup: Setup, device: Arc<dyn Backend>, way: Way) -> Result<Self, ServeError> {
        let (found, wanted) = (device.blocks(), setup.drive.blocks());
        if found != wanted {
            return Err(ServeError::Size { name: setup.name, found, wanted });
        }
        let Setup { name, scheduler, rule, task, .. } = setup;
        let options =
            PlannerOptions { rule, budget: DECISION_NODES_MAX, ..PlannerOptions::default() };
        let mut tasks = Tasks::new(&scheduler.planners_drive(), options, CADENCE);
        if let Some(task) = task {
            tasks.register(SimTime::ZERO, task)?;
        }
        let export = export(name, found);
        let Way { inbox, messages } = way;
        let desk = Desk::new(scheduler, tasks);
        let works = Works::new(desk, device, messages);
        let thread = thread::Builder::new().name("scheduler".into()).spawn(|| works.run());
        let thread = Mutex::new(Some(thread.map_err(ServeError::Thread)?));
        Ok(Self { export, inbox: Mutex::new(inbox), thread })
    }

    /// Ends it when all that is in flight has come back. `None` when it has ended before.
    pub fn finish(&self) -> Option<Report> {
        self.tell(Message::Finish);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        thread.join().ok()
    }

    fn tell(&self, message: Message) {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        // A scheduler that has ended drops it, which answers it with an error.
        let _ = inbox.send(message);
    }
}

fn export(name: String, blocks: Blocks) -> Export {
    let features = Features {
        flush: true,
        fua: true,
        rotational: true,
        multi_conn: true,
        ..Features::default()
    };
    let block_sizes =
        BlockSizes { minimum: BLOCK_BYTES as u32, preferred: 4096, payload_max: REQUEST_BYTES_MAX };
    Export {
        description: format!("{name} behind Freewheel"),
        name,
        size: blocks.bytes().get(),
        features,
        block_sizes,
        block_sizes_required: false,
    }
}

impl Service for Serving {
    fn export(&self) -> Export {
        self.export.clone()
    }

    fn submit(&self, command: Command, data: &mut Vec<u8>, responder: Responder) {
        let arrival = Instant::now();
        let transfer = |op, span: Span, data, fua| Request::Transfer {
            op,
            start: Lbn::new(span.offset / BLOCK_BYTES),
            data,
            fua,
        };
        let request = match command {
            Command::Read { span, .. } => {
                transfer(Op::Read, span, responder.buffer(span.length), false)
            }
            Command::Write { span, fua } => transfer(Op::Write, span, std::mem::take(data), fua),
            Command::Flush => Request::Flush,
            _ => return responder.error(Errno::NotSup, "not offered"),
        };
        self.tell(Message::Arrived(arrival, request, responder));
    }
}

/// What the scheduler's thread has.
struct Works {
    desk: Desk<Tasks>,
    device: Arc<dyn Backend>,
    messages: Receiver<Message>,
    /// Messages that have been taken out of the way and not been dealt with.
    taken: VecDeque<Message>,
    responders: BTreeMap<u64, (bool, Responder)>,
    began: Instant,
    finishing: bool,
    delivered: u64,
    rounds: u64,
}

impl Works {
    fn new(desk: Desk<Tasks>, device: Arc<dyn Backend>, messages: Receiver<Message>) -> Self {
        Self {
            desk,
            device,
            messages,
            taken: VecDeque::new(),
            responders: BTreeMap::new(),
            began: Instant::now(),
            finishing: false,
            delivered: 0,
            rounds: 0,
        }
    }

    fn run(mut self) -> Report {
        loop {
            self.wait();
            while let Ok(message) = self.messages.try_recv() {
                self.taken.push_back(message);
            }
            while let Some(message) = self.taken.pop_front() {
                self.take(message);
            }
            self.answer();
            while let Some(command) = self.desk.next_command(self.time(Instant::now())) {
                self.device.submit(command);
            }
            self.hear();
            if self.finishing && self.desk.is_idle() {
                return self.report();
            }
        }
    }

    fn time(&self, at: Instant) -> SimTime {
        SimTime::from_ns(at.saturating_duration_since(self.began).as_nanos() as u64)
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Arrived(at, request, responder) => {
                let reads = matches!(request, Request::Transfer { op: Op::Read, .. });
                let id = self.desk.arrived(request, self.time(at));
                self.responders.insert(id, (reads, responder));
            }
            Message::CameBack(CameBack { id, at, result }) => {
                self.desk.came_back(id, self.time(at), result);
            }
            Message::Finish => self.finishing = true,
        }
    }

    fn answer(&mut self) {
        let answers: Vec<Answer> = self.desk.answers().collect();
        for (id, result) in answers {
            let Some((reads, responder)) = self.responders.remove(&id) else { continue };
            match result {
                Ok(data) if reads => responder.data(data),
                Ok(_) => responder.done(),
                Err(Failed { errno, message }) => responder.error(errno, &message),
            }
        }
    }

    /// What has become of the background task.
    fn hear(&mut self) {
        let events: Vec<Event> = self.desk.planner().events().collect();
        for event in events {
            match event {
                Event::Delivered { extent, .. } => self.delivered += extent.blocks.get(),
                Event::Done { .. } => self.rounds += 1,
                Event::Superseded { .. } => {}
            }
        }
    }

    /// Waits for a message, or until something has to be decided.
    fn wait(&mut self) {
        let received = match self.desk.decides_at() {
            None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(time) => self.wait_until(self.began + Duration::from_nanos(time.ns())),
        };
        match received {
            Ok(message) => self.taken.push_back(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.finishing = true,
        }
    }

    fn wait_until(&self, deadline: Instant) -> Result<Message, RecvTimeoutError> {
        let asleep = deadline.saturating_duration_since(Instant::now()).saturating_sub(SPIN);
        if !asleep.is_zero() {
            match self.messages.recv_timeout(asleep) {
                Err(RecvTimeoutError::Timeout) => {}
                other => return other,
            }
        }
        while Instant::now() < deadline {
            match self.messages.try_recv() {
                Ok(message) => return Ok(message),
                Err(_) => hint::spin_loop(),
            }
        }
        Err(RecvTimeoutError::Timeout)
    }

    fn report(&mut self) -> Report {
        Report {
            account: *self.desk.account(),
            responses: self.desk.responses().clone(),
            elapsed: self.began.elapsed(),
            delivered: self.delivered,
            rounds: self.rounds,
            unreadable: self.desk.unreadable().to_vec(),
        }
    }
}
