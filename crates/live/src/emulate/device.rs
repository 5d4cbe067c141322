//! A drive in real time: a thread that does each thing when it is due.

use std::collections::{BTreeMap, VecDeque};
use std::hint;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use freewheel_model::stats::Distribution;
use freewheel_sim::black_box::EmulatedDrive;
use freewheel_units::SimTime;
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

use super::adapter::{Finished, HostAdapter, Request};

/// Time before a deadline at which the thread stops sleeping and looks at the clock instead. The kernel
/// wakes threads up to 50 us late on purpose (timer slack), and the rest is for the way back onto a
/// processor.
const SPIN: Duration = Duration::from_micros(100);

/// Real time in the simulator's terms: nanoseconds since the device was made.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Simulated time at an instant; zero before the beginning.
    pub(crate) fn at(&self, instant: Instant) -> SimTime {
        let ns = instant.saturating_duration_since(self.0).as_nanos();
        SimTime::from_ns(ns.try_into().unwrap_or(u64::MAX))
    }

    /// Time of the drive, with its lateness.
    pub fn now(&self) -> SimTime {
        self.at(Instant::now())
    }

    fn until(&self, time: SimTime) -> Duration {
        Duration::from_nanos(time.saturating_since(self.now()).ns())
    }
}

/// Claim of the device's thread to a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Before all ordinary threads (`SCHED_FIFO`).
    Realtime,
    /// Like everybody: the system does not permit more.
    Ordinary,
}

impl Priority {
    /// The best that this thread may have.
    pub(crate) fn raise() -> Self {
        // The lowest of the real-time priorities: it is above all that is not real-time.
        let lowest = ThreadPriorityValue::try_from(1).map(ThreadPriority::Crossplatform);
        let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        let raised = lowest.map(|priority| {
            set_thread_priority_and_policy(thread_native_id(), priority, fifo).is_ok()
        });
        if raised == Ok(true) { Self::Realtime } else { Self::Ordinary }
    }
}

/// Work and lateness of a device.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// Requests done.
    pub requests: u64,
    /// From the time of a reply until the drive's thread hands it over.
    pub lateness: Distribution,
    /// Time of the hand-over: mostly the system's time to wake the client, which comes to what reaches the
    /// client late.
    pub handing: Distribution,
}

/// Called with a request that is done, in the device's thread: it must not block.
pub type Done = Box<dyn FnOnce(&Finished) + Send>;

/// A request on its way to the adapter.
struct Arrived {
    at: SimTime,
    request: Request,
    /// The connection that it came on, if it is a client's.
    connection: Option<u64>,
    done: Done,
}

enum Message {
    Request(Arrived),
    /// The client of this connection has gone.
    Left(u64),
    PowerCut,
    Finish,
}

/// A modelled drive that takes as long as a real one.
pub struct Device {
    clock: Clock,
    priority: Priority,
    inbox: Sender<Message>,
    thread: Mutex<Option<JoinHandle<Account>>>,
}

impl Device {
    /// Starts the thread of this drive.
    pub fn start(drive: EmulatedDrive) -> std::io::Result<Self> {
        let clock = Clock::start();
        let (inbox, messages) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let thread = thread::Builder::new().name("drive".into()).spawn(move || {
            // After a failed start no thread listens.
            let _ = tell.send(Priority::raise());
            DeviceThread::new(clock, drive, messages).run()
        })?;
        let priority = told.recv().unwrap_or(Priority::Ordinary);
        Ok(Self { clock, priority, inbox, thread: Mutex::new(Some(thread)) })
    }

    /// Claim that its thread has to a processor.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The time by which it works.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Gives it a request that came at `at`, on a client's `connection` if that may end before. `done`
    /// is dropped without a call when the device ends before, or when the client has gone.
    pub fn submit(&self, at: SimTime, request: Request, connection: Option<u64>, done: Done) {
        // A device that has ended drops it.
        let _ = self.inbox.send(Message::Request(Arrived { at, request, connection, done }));
    }

    /// The client of a connection has gone: its requests get no further commands.
    pub fn left(&self, connection: u64) {
        let _ = self.inbox.send(Message::Left(connection));
    }

    /// The drive's power goes and comes back: its requests are dropped, and it is as it was at the start.
    pub fn power_cut(&self) {
        let _ = self.inbox.send(Message::PowerCut);
    }

    /// Ends the drive at once and drops its open requests. `None` when it has ended before.
    pub fn finish(&self) -> Option<Account> {
        let _ = self.inbox.send(Message::Finish);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        thread.join().ok()
    }
}

/// State of the device's thread.
struct DeviceThread {
    clock: Clock,
    adapter: HostAdapter,
    messages: Receiver<Message>,
    /// Requests that the adapter has not been given, in the order of their coming.
    arrived: VecDeque<Arrived>,
    /// Requests that the adapter has, each with its connection.
    inside: BTreeMap<u64, (Option<u64>, Done)>,
    next_id: u64,
    finishing: bool,
    account: Account,
}

impl DeviceThread {
    fn new(clock: Clock, drive: EmulatedDrive, messages: Receiver<Message>) -> Self {
        Self {
            clock,
            adapter: HostAdapter::new(drive),
            messages,
            arrived: VecDeque::new(),
            inside: BTreeMap::new(),
            next_id: 0,
            finishing: false,
            account: Account::default(),
        }
    }

    fn run(mut self) -> Account {
        loop {
            self.wait();
            while let Ok(message) = self.messages.try_recv() {
                self.take(message);
            }
            if self.finishing {
                return self.account;
            }
            self.catch_up();
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Request(arrived) => self.arrived.push_back(arrived),
            Message::Left(connection) => self.client_left(connection),
            Message::PowerCut => {
                self.adapter.power_cut();
                self.arrived.clear();
                self.inside.clear();
            }
            Message::Finish => self.finishing = true,
        }
    }

    fn client_left(&mut self, connection: u64) {
        self.arrived.retain(|arrived| arrived.connection != Some(connection));
        let Self { adapter, inside, .. } = self;
        inside.retain(|&id, (of, _)| *of != Some(connection) || !adapter.give_up(id));
    }

    /// Waits for the next event or message, whichever comes first.
    fn wait(&mut self) {
        let Some(deadline) = self.adapter.next_event() else {
            match self.messages.recv() {
                Ok(message) => self.take(message),
                Err(_) => self.finishing = true,
            }
            return;
        };
        let asleep = self.clock.until(deadline).saturating_sub(SPIN);
        if !asleep.is_zero() {
            match self.messages.recv_timeout(asleep) {
                Ok(message) => return self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.finishing = true;
                    return;
                }
            }
        }
        while self.clock.now() < deadline {
            match self.messages.try_recv() {
                Ok(message) => return self.take(message),
                Err(_) => hint::spin_loop(),
            }
        }
    }

    /// Lets everything happen that is due, in the order of its time.
    fn catch_up(&mut self) {
        loop {
            let now = self.clock.now();
            let event = self.adapter.next_event().filter(|time| *time <= now);
            let arrival = self.arrived.front().map(|arrived| arrived.at);
            match (event, arrival) {
                (Some(event), None) => self.advance(event),
                (Some(event), Some(arrival)) if event <= arrival => self.advance(event),
                (_, Some(_)) => self.submit_next(),
                (None, None) => return,
            }
        }
    }

    fn advance(&mut self, time: SimTime) {
        let Self { clock, adapter, inside, account, .. } = self;
        adapter.advance(time, |finished| {
            let (_, done) = inside.remove(&finished.id).expect("it was submitted");
            let begun = clock.now();
            done(&finished);
            account.requests += 1;
            account.lateness.record(begun.saturating_since(finished.at));
            account.handing.record(clock.now().saturating_since(begun));
        });
    }

    fn submit_next(&mut self) {
        let Some(arrived) = self.arrived.pop_front() else { return };
        let Arrived { at, request, connection, done } = arrived;
        let id = self.next_id;
        self.next_id += 1;
        self.inside.insert(id, (connection, done));
        self.adapter.submit(at, id, request);
    }
}
