//! The scheduler's thread.

use std::collections::{BTreeMap, VecDeque};
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use freewheel_freeblock::tasks::Extent;
use freewheel_host::deadline::{DecisionDeadline, DecisionTiming, Search};
use freewheel_host::scheduler::{Answer, OWN_COMMANDS, Request};
use freewheel_host::tasks::{ServedTaskError, ServedTaskOutput, ServedTaskReport, ServedTaskSpec};
use freewheel_host::{Account, Client, DecisionStart, HostScheduler, MarginInUse};
use freewheel_model::stats::Distribution;
use freewheel_units::{Lbn, Op, SimDuration, SimTime};
use tokio::sync::{broadcast, mpsc};

use super::backend::{Backend, BackendCompletion, DeviceError, errno_of};
use super::{Decisions, Message, Notice, Report};
use crate::nbd::{Caller, Responder};
use crate::stopwatch::Stopwatch;

/// How long before a decision the thread looks at the clock instead of sleeping.
const SPIN: Duration = Duration::from_micros(100);

/// How long before a decision no other work begins.
const NEAR: SimDuration = SimDuration::from_us(500);

/// Nodes of a search between two looks at the clock, which take a part of the time of a node.
const NODES_A_STEP: u64 = 8;

/// How often it looks whether data have been taken.
const LOOK: Duration = Duration::from_millis(50);

/// How often it says how far tasks are.
const PROGRESS: SimDuration = SimDuration::from_secs(1);

/// Data that have been handed on and not been taken, at most: two seconds of free bandwidth of a
/// drive of today.
const HANDED_ON_MAX: u64 = 64 << 20;

/// A question for the scheduler's thread.
pub(super) type Ask = Box<dyn FnOnce(&mut SchedulerThread) + Send>;

/// What has become of a background task.
#[derive(Debug, Clone)]
pub enum News {
    /// Progress of a running task.
    Progress(Box<ServedTaskReport>),
    /// Blocks cannot be read for it.
    Unreadable {
        /// Its number.
        task: u64,
        /// Which blocks.
        extent: Extent,
    },
    /// It has begun another round.
    Round(Box<ServedTaskReport>),
    /// It is over.
    Over(Box<ServedTaskReport>),
}

/// An item for the reader of a task.
#[derive(Debug)]
pub enum Item {
    /// Blocks.
    Data {
        /// The first, of 512 B.
        start: Lbn,
        /// What is in them.
        data: Vec<u8>,
        /// When they had been read, since the server began.
        at: SimTime,
    },
    /// Blocks that cannot be read.
    Unreadable(Extent),
    /// The end of the data.
    Over(Box<ServedTaskReport>),
}

/// The data of a task, as they come.
#[derive(Debug)]
pub struct Reader {
    items: mpsc::UnboundedReceiver<Item>,
    taken: Arc<AtomicU64>,
}

impl Reader {
    /// The next item; None when the server has ended. What is taken makes room for more.
    pub async fn next(&mut self) -> Option<Item> {
        let item = self.items.recv().await?;
        if let Item::Data { data, .. } = &item {
            self.taken.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        Some(item)
    }
}

/// The other end of it.
struct Sink {
    items: mpsc::UnboundedSender<Item>,
    taken: Arc<AtomicU64>,
    sent: u64,
}

impl Sink {
    fn room(&self) -> u64 {
        let under_way = self.sent.saturating_sub(self.taken.load(Ordering::Relaxed));
        HANDED_ON_MAX.saturating_sub(under_way)
    }
}

/// The server as it is.
#[derive(Debug, Clone)]
pub struct Status {
    /// Begin of the server, in nanoseconds of Unix time; it identifies the server.
    pub began_unix_ns: u64,
    /// Since then.
    pub elapsed: SimDuration,
    /// For how long no client's request has been there; none while one is.
    pub idle: Option<SimDuration>,
    /// What the scheduler saw and did.
    pub account: Account,
    /// The margins of free work that it has learned, where it has.
    pub margins: Vec<MarginInUse>,
    /// What its decisions about gaps have cost.
    pub decisions: Decisions,
    /// Response times of clients' requests.
    pub responses: Distribution,
    /// How far commands ended from where they were predicted to, either way.
    pub errors: Distribution,
    /// The warnings so far.
    pub notices: Vec<String>,
    /// Background tasks.
    pub tasks: Vec<ServedTaskReport>,
}

/// The state of the scheduler's thread; control asks it by these methods.
pub struct SchedulerThread {
    scheduler: HostScheduler,
    /// Times its decisions about gaps.
    stopwatch: Arc<Stopwatch>,
    device: Arc<dyn Backend>,
    messages: Receiver<Message>,
    /// Messages that have been taken out of the way and not been dealt with.
    taken: VecDeque<Message>,
    responders: BTreeMap<u64, (bool, Responder)>,
    deadline: DecisionDeadline,
    /// The command that the device got last of those that are decided on.
    last_sent: u64,
    began: Instant,
    began_unix_ns: u64,
    /// What became of tasks, once it is to end.
    last_reports: Option<Vec<ServedTaskReport>>,
    news: broadcast::Sender<News>,
    notice: Notice,
    /// What has been said by it.
    notices: Vec<String>,
    has_said_gone: bool,
    has_said_little: bool,
    sinks: BTreeMap<u64, Sink>,
    progress_at: SimTime,
}

impl SchedulerThread {
    pub(super) fn new(
        (scheduler, stopwatch): (HostScheduler, Arc<Stopwatch>),
        device: Arc<dyn Backend>,
        messages: Receiver<Message>,
        (news, notice): (broadcast::Sender<News>, Notice),
    ) -> Self {
        Self {
            scheduler,
            stopwatch,
            device,
            messages,
            taken: VecDeque::new(),
            responders: BTreeMap::new(),
            deadline: DecisionDeadline::default(),
            last_sent: u64::MAX,
            began: Instant::now(),
            began_unix_ns: unix_ns(),
            last_reports: None,
            news,
            notice,
            notices: Vec::new(),
            has_said_gone: false,
            has_said_little: false,
            sinks: BTreeMap::new(),
            progress_at: SimTime::ZERO,
        }
    }

    pub(super) fn run(mut self) -> Report {
        loop {
            self.wait();
            while let Ok(message) = self.messages.try_recv() {
                self.taken.push_back(message);
            }
            while let Some(message) = self.taken.pop_front() {
                self.take(message);
            }
            self.say_what_is_wrong();
            self.answer();
            self.send();
            // What came while something was decided may be what the drive waits for.
            if !self.taken.is_empty() {
                continue;
            }
            self.give_more();
            self.hand_on();
            if self.scheduler.is_idle()
                && let Some(tasks) = self.last_reports.take()
            {
                return self.report(tasks);
            }
        }
    }

    /// Decides what the device gets next, and sends it, until it has enough.
    fn send(&mut self) {
        loop {
            let began = self.now();
            let due = self.scheduler.command_due().map_or(began, |at| at.min(began));
            let mut search = self.deadline.search(began);
            let start = self.scheduler.begin_decision(began);
            let is_decided = start != DecisionStart::NotDue;
            let is_overtaken = match start {
                DecisionStart::Searching { by } => self.search(by, &mut search),
                _ => false,
            };
            // The drive is done before its time: what is decided on rests on a forecast that was wrong.
            if is_overtaken {
                self.scheduler.overtaken();
                return;
            }
            let decided = self.now();
            let Some(command) = self.scheduler.next_command(decided) else { return };
            if command.id < OWN_COMMANDS {
                self.last_sent = command.id;
            }
            self.device.submit(command);
            if is_decided {
                let (has_searched, is_cut_short) = (search.has_begun(), search.is_cut_short);
                let sent = self.now();
                self.deadline.heard(&DecisionTiming {
                    due,
                    decided,
                    sent,
                    has_searched,
                    is_cut_short,
                });
                self.scheduler.decisions_take(self.deadline.deciding());
            }
        }
    }

    /// Searches for free work until the deadline, and ends the decision. Returns whether the drive has
    /// come back meanwhile, before its time.
    fn search(&mut self, by: SimTime, search: &mut Search) -> bool {
        let stopwatch = Arc::clone(&self.stopwatch);
        let mut is_overtaken = false;
        stopwatch.time(|| {
            let mut nodes = 0;
            loop {
                let so_far = self.scheduler.search(nodes);
                if so_far.is_done() {
                    break;
                }
                is_overtaken |= self.take_messages();
                let may_go_on = !is_overtaken && search.may_go_on(self.now(), by, so_far);
                nodes = if may_go_on { NODES_A_STEP } else { 0 };
                if !may_go_on {
                    self.scheduler.give_up();
                }
            }
            self.scheduler.end_decision();
        });
        is_overtaken
    }

    /// Takes the messages that have come, for later. Returns whether the command that the device got
    /// last is among them.
    fn take_messages(&mut self) -> bool {
        let known = self.taken.len();
        self.taken.extend(self.messages.try_iter());
        let mut ends = self.taken.range(known..).filter_map(|message| match message {
            Message::BackendCompletion(end) => Some(end.id),
            _ => None,
        });
        ends.any(|id| id == self.last_sent)
    }

    /// Gives the planner more of what is wanted, and time for its index, unless a decision is near.
    fn give_more(&mut self) {
        let now = self.now();
        if self.scheduler.decides_at().is_none_or(|at| at > now + NEAR) {
            self.scheduler.tasks_mut().give_more(now);
        }
    }

    fn now(&self) -> SimTime {
        self.time(Instant::now())
    }

    fn time(&self, at: Instant) -> SimTime {
        since(self.began, at)
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Arrived(at, request, responder) => {
                let reads = matches!(request, Request::Transfer { op: Op::Read, .. });
                let Caller { peer, connection } = responder.caller();
                let client = Client { peer, connection };
                let id = self.scheduler.arrived(request, client, self.time(at));
                self.responders.insert(id, (reads, responder));
            }
            Message::BackendCompletion(BackendCompletion { id, at, result }) => {
                self.scheduler.came_back(id, self.time(at), result);
            }
            Message::Left(connection) => {
                let now = self.now();
                self.scheduler.left(connection, now);
            }
            Message::Gone(why) => self.scheduler.device_gone(why),
            Message::Asked(ask) => ask(self),
            Message::Finish => self.finish(),
        }
    }

    /// Warns once that the device is gone, and once that few commands meet their prediction.
    fn say_what_is_wrong(&mut self) {
        if !self.has_said_gone
            && let Some(why) = self.scheduler.gone()
        {
            let text = format!(
                "the device is gone: {why}; every request fails from now on, and tasks are over: end \
                 this server, and start it again when the device is back"
            );
            self.has_said_gone = true;
            self.say(text);
        }
        if !self.has_said_little
            && let Some(poor_prediction) = self.scheduler.prediction_monitor().poor_prediction()
        {
            self.has_said_little = true;
            self.say(poor_prediction.to_string());
        }
    }

    fn say(&mut self, text: String) {
        (self.notice)(&text);
        self.notices.push(text);
    }

    fn answer(&mut self) {
        let answers: Vec<Answer> = self.scheduler.answers().collect();
        for (id, result) in answers {
            let Some((reads, responder)) = self.responders.remove(&id) else { continue };
            match result {
                Ok(data) if reads => responder.data(data),
                Ok(_) => responder.done(),
                Err(DeviceError { kind, message }) => responder.error(errno_of(kind), &message),
            }
        }
    }

    /// From now on only what clients want is begun.
    fn finish(&mut self) {
        let now = self.now();
        self.last_reports.get_or_insert_with(|| self.scheduler.tasks().reports(now));
        self.scheduler.close();
        for task in self.sinks.keys() {
            // It may just have ended.
            let _ = self.scheduler.tasks_mut().abort(now, *task);
        }
    }

    /// Hands on what background tasks have come to.
    fn hand_on(&mut self) {
        let now = self.now();
        let outputs: Vec<ServedTaskOutput> = self.scheduler.tasks_mut().outputs().collect();
        for output in outputs {
            self.tell(output, now);
        }
        for (task, sink) in &self.sinks {
            self.scheduler.tasks_mut().set_room(*task, sink.room());
        }
        let gone: Vec<u64> = self
            .sinks
            .iter()
            .filter(|(_, sink)| sink.items.is_closed())
            .map(|(&task, _)| task)
            .collect();
        for task in gone {
            self.sinks.remove(&task);
            // It may have ended before.
            let _ = self.scheduler.tasks_mut().abort(now, task);
        }
        self.say_progress(now);
    }

    fn tell(&mut self, output: ServedTaskOutput, now: SimTime) {
        // Events may have no listener, and a reader may just have gone.
        match output {
            ServedTaskOutput::Data { task, start, data, at } => {
                let Some(sink) = self.sinks.get_mut(&task) else { return };
                sink.sent += data.len() as u64;
                let _ = sink.items.send(Item::Data { start, data, at });
            }
            ServedTaskOutput::Unreadable { task, extent, .. } => {
                if let Some(sink) = self.sinks.get(&task) {
                    let _ = sink.items.send(Item::Unreadable(extent));
                }
                let _ = self.news.send(News::Unreadable { task, extent });
            }
            ServedTaskOutput::Round { task, .. } => {
                if let Ok(report) = self.scheduler.tasks().report(task, now) {
                    let _ = self.news.send(News::Round(Box::new(report)));
                }
            }
            ServedTaskOutput::Over { task, .. } => {
                let Ok(report) = self.scheduler.tasks().report(task, now) else { return };
                if let Some(sink) = self.sinks.remove(&task) {
                    let _ = sink.items.send(Item::Over(Box::new(report.clone())));
                }
                let _ = self.news.send(News::Over(Box::new(report)));
            }
        }
    }

    fn say_progress(&mut self, now: SimTime) {
        if self.news.receiver_count() == 0 || now < self.progress_at {
            return;
        }
        self.progress_at = now + PROGRESS;
        for report in self.scheduler.tasks().reports(now) {
            if !report.state.is_over() {
                let _ = self.news.send(News::Progress(Box::new(report)));
            }
        }
    }

    /// Waits for a message, or until something has to be decided.
    fn wait(&mut self) {
        // It may have come while something was decided.
        if !self.taken.is_empty() {
            return;
        }
        let decides_at =
            self.scheduler.decides_at().map(|time| self.began + Duration::from_nanos(time.ns()));
        let is_watched = !self.sinks.is_empty() || self.news.receiver_count() > 0;
        let looks_at =
            (is_watched && self.scheduler.tasks().any_runs()).then(|| Instant::now() + LOOK);
        let more_at = self.scheduler.tasks().has_ahead().then(Instant::now);
        let received = match decides_at.into_iter().chain(looks_at).chain(more_at).min() {
            None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => self.wait_until(until),
        };
        match received {
            Ok(message) => self.taken.push_back(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.finish(),
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

    fn decisions(&self) -> Decisions {
        let (effort, times) = (self.scheduler.effort(), self.stopwatch.times());
        Decisions { effort, times, before: self.scheduler.decides_before() }
    }

    fn report(&self, tasks: Vec<ServedTaskReport>) -> Report {
        Report {
            account: *self.scheduler.account(),
            margins: self.scheduler.margins(),
            decisions: self.decisions(),
            responses: self.scheduler.responses().clone(),
            errors: self.scheduler.errors().clone(),
            elapsed: self.began.elapsed(),
            tasks,
            gone: self.scheduler.gone().cloned(),
        }
    }
}

/// What control asks.
impl SchedulerThread {
    /// The server as it is.
    pub fn status(&mut self) -> Status {
        let now = self.now();
        Status {
            began_unix_ns: self.began_unix_ns,
            elapsed: now - SimTime::ZERO,
            idle: self.scheduler.idle_since().map(|since| now.saturating_since(since)),
            account: *self.scheduler.account(),
            margins: self.scheduler.margins(),
            decisions: self.decisions(),
            responses: self.scheduler.responses().clone(),
            errors: self.scheduler.errors().clone(),
            notices: self.notices.clone(),
            tasks: self.scheduler.tasks().reports(now),
        }
    }

    /// Now, since the server began; and when that was, in nanoseconds of Unix time.
    pub fn moment(&self) -> (SimTime, u64) {
        (self.now(), self.began_unix_ns)
    }

    /// A background task.
    pub fn task(&mut self, id: u64) -> Result<ServedTaskReport, ServedTaskError> {
        self.scheduler.tasks().report(id, self.now())
    }

    /// Begins a background task.
    pub fn create(&mut self, spec: ServedTaskSpec) -> Result<ServedTaskReport, ServedTaskError> {
        let now = self.now();
        let id = self.scheduler.tasks_mut().create(now, spec)?;
        self.scheduler.tasks().report(id, now)
    }

    /// Ends one.
    pub fn abort(&mut self, id: u64) -> Result<ServedTaskReport, ServedTaskError> {
        let now = self.now();
        self.scheduler.tasks_mut().abort(now, id)?;
        self.scheduler.tasks().report(id, now)
    }

    /// Reads the rest of a task by foreground requests.
    pub fn promote(&mut self, id: u64) -> Result<ServedTaskReport, ServedTaskError> {
        let now = self.now();
        self.scheduler.tasks_mut().promote(now, id)?;
        self.task(id)
    }

    /// Begins a task that waits for somebody to take its data.
    pub fn read(&mut self, id: u64) -> Result<Reader, ServedTaskError> {
        let now = self.now();
        let since = self.scheduler.tasks().report(id, now)?.spec.skip_since;
        let written = self.written(since);
        self.scheduler.tasks_mut().reader_came(now, id, HANDED_ON_MAX, &written)?;
        let (items, receiver) = mpsc::unbounded_channel();
        let taken = Arc::new(AtomicU64::new(0));
        self.sinks.insert(id, Sink { items, taken: Arc::clone(&taken), sent: 0 });
        Ok(Reader { items: receiver, taken })
    }

    /// Where clients have written at `since` or later.
    pub fn written(&self, since: SimTime) -> Vec<Extent> {
        self.scheduler.written().since(since, self.device.blocks().get())
    }
}

fn since(zero: Instant, at: Instant) -> SimTime {
    SimTime::from_ns(at.saturating_duration_since(zero).as_nanos() as u64)
}

fn unix_ns() -> u64 {
    // A clock before 1970 tells servers apart as well.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
