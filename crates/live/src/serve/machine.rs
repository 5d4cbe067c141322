//! The work of a server between two waits, as a state machine: the caller passes the time.
//!
//! ```text
//!   Surroundings   the time, messages and the device      by the clock, or in virtual time
//!   ServerMachine  requests to HostScheduler, answers to replies, data of tasks to readers, control
//!     turn         takes what has come, answers, decides, sends
//!     wakes_at     when the next turn is due without a message
//! ```
//! [`SchedulerThread`](super::SchedulerThread) drives it by the clock. The test of power cuts drives it in
//! virtual time, on a simulated device, so the code under test is the code that runs.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use freewheel_freeblock::tasks::Extent;
use freewheel_host::deadline::{DecisionDeadline, DecisionTiming, Search};
use freewheel_host::scheduler::{Answer, OWN_COMMANDS, Request};
use freewheel_host::tasks::{ServedOrder, ServedTaskError, ServedTaskOutput, ServedTaskReport};
use freewheel_host::{Account, Client, DecisionStart, FreeCost, HostScheduler, MarginInUse};
use freewheel_model::stats::Distribution;
use freewheel_nbd::Errno;
use freewheel_units::{Blocks, Op, SimDuration, SimTime};
use tokio::sync::broadcast;

use super::backend::{DeviceCommand, DeviceError, errno_of};
use super::readers::{HANDED_ON_MAX, Item, News, Reader, Sink, reader};
use super::{Decisions, Notice, Report};

/// Time before a decision in which no other work begins.
const NEAR: SimDuration = SimDuration::from_us(500);

/// Nodes of a search between two looks at the clock, which take a part of the time of a node.
const NODES_A_STEP: u64 = 8;

/// Interval at which it looks whether data have been taken.
const LOOK: SimDuration = SimDuration::from_ms(50);

/// Interval at which it reports the progress of tasks.
const PROGRESS: SimDuration = SimDuration::from_secs(1);

/// Surroundings of a server: time, messages and device.
pub trait Surroundings: Sized {
    /// Stamp of an event's time.
    type Stamp;
    /// The way back to a client.
    type Reply: Reply;

    /// Now, since the server began.
    fn now(&self) -> SimTime;

    /// Time of a stamp.
    fn time(&self, stamp: Self::Stamp) -> SimTime;

    /// Takes a message that has come, if one has.
    fn next_message(&mut self) -> Option<Message<Self>>;

    /// Gives the device a command.
    fn submit(&mut self, command: DeviceCommand);
}

/// Answers one request of a client.
pub trait Reply {
    /// Who asked.
    fn client(&self) -> Client;

    /// Done: all the data of a read.
    fn data(self, data: Vec<u8>);

    /// Done, of any other request.
    fn done(self);

    /// Not done, and why.
    fn error(self, errno: Errno, text: &str);
}

/// A question for the server between two commands.
pub type Ask<S> = Box<dyn FnOnce(&mut ServerMachine<S>) + Send>;

/// A message to a server.
#[allow(missing_docs)]
pub enum Message<S: Surroundings> {
    Arrived(S::Stamp, Request, S::Reply),
    /// A command of the device.
    CameBack {
        id: u64,
        /// Earliest time at which it could be known.
        at: S::Stamp,
        /// The data of a read, and otherwise anything; or why the command failed.
        result: Result<Vec<u8>, DeviceError>,
    },
    /// The client of a connection has gone.
    Left(u64),
    /// The device has gone.
    Gone(DeviceError),
    Asked(Ask<S>),
    /// End: requests of clients are finished, and no other work begins.
    Finish,
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
    /// Observations and work of the scheduler.
    pub account: Account,
    /// The margins of free work that it has learned, where it has.
    pub margins: Vec<MarginInUse>,
    /// Cost of free work to clients, as measured in slots without it.
    pub free_cost: Option<FreeCost>,
    /// Cost of its decisions about gaps.
    pub decisions: Decisions,
    /// Response times of clients' requests.
    pub responses: Distribution,
    /// Distance of commands' ends from their predictions, either way.
    pub errors: Distribution,
    /// The warnings so far.
    pub notices: Vec<String>,
    /// Background tasks.
    pub tasks: Vec<ServedTaskReport>,
}

/// The state of a server; control asks it by these methods.
pub struct ServerMachine<S: Surroundings> {
    pub(super) surroundings: S,
    scheduler: HostScheduler,
    /// Blocks of the device.
    blocks: Blocks,
    /// Messages that came during a decision, for the next turn.
    deferred: VecDeque<Message<S>>,
    replies: BTreeMap<u64, (bool, S::Reply)>,
    deadline: DecisionDeadline,
    /// Time of its searches for free work.
    search_times: Distribution,
    /// The command that the device got last of those that are decided on.
    last_sent: u64,
    began_unix_ns: u64,
    /// Reports of tasks, once the server is to end.
    last_reports: Option<Vec<ServedTaskReport>>,
    news: broadcast::Sender<News>,
    notice: Notice,
    /// Notices that it has written.
    notices: Vec<String>,
    has_reported_loss: bool,
    has_reported_flush: bool,
    has_reported_poor_prediction: bool,
    sinks: BTreeMap<u64, Sink>,
    progress_at: SimTime,
}

impl<S: Surroundings> ServerMachine<S> {
    /// A server of a device of `blocks` blocks that began at this Unix time, in nanoseconds.
    pub fn new(
        surroundings: S,
        (scheduler, blocks): (HostScheduler, Blocks),
        (news, notice): (broadcast::Sender<News>, Notice),
        began_unix_ns: u64,
    ) -> Self {
        Self {
            surroundings,
            scheduler,
            blocks,
            deferred: VecDeque::new(),
            replies: BTreeMap::new(),
            deadline: DecisionDeadline::default(),
            search_times: Distribution::default(),
            last_sent: u64::MAX,
            began_unix_ns,
            last_reports: None,
            news,
            notice,
            notices: Vec::new(),
            has_reported_loss: false,
            has_reported_flush: false,
            has_reported_poor_prediction: false,
            sinks: BTreeMap::new(),
            progress_at: SimTime::ZERO,
        }
    }

    /// Does what is to be done now. Returns what became of the server when it has ended.
    pub fn turn(&mut self) -> Option<Report> {
        self.take_messages();
        while let Some(message) = self.deferred.pop_front() {
            self.take(message);
        }
        self.report_faults();
        self.answer();
        self.send();
        // What came while something was decided may be what the drive waits for.
        if self.has_messages() {
            return None;
        }
        self.refill_planner();
        self.deliver_outputs();
        if !self.scheduler.is_idle() {
            return None;
        }
        self.last_reports.take().map(|tasks| self.report(tasks))
    }

    /// True if a turn is due at once.
    pub fn has_messages(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Keeps a message for the next turn.
    pub(super) fn defer(&mut self, message: Message<S>) {
        self.deferred.push_back(message);
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
            self.surroundings.submit(command);
            if is_decided {
                let (has_searched, is_cut_short) = (search.has_begun(), search.is_cut_short);
                let sent = self.now();
                self.deadline.observe(&DecisionTiming {
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
        let began = self.now();
        let (mut is_overtaken, mut nodes) = (false, 0);
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
        self.search_times.record(self.now().saturating_since(began));
        is_overtaken
    }

    /// Takes the messages that have come, for later. Returns whether the end of the command that the
    /// device got last is among them.
    fn take_messages(&mut self) -> bool {
        let mut has_ended = false;
        while let Some(message) = self.surroundings.next_message() {
            has_ended |= matches!(message, Message::CameBack { id, .. } if id == self.last_sent);
            self.deferred.push_back(message);
        }
        has_ended
    }

    /// Gives the planner more wanted blocks, and time for its index, unless a decision is near.
    fn refill_planner(&mut self) {
        let now = self.now();
        if !self.is_decision_near(now) {
            self.scheduler.tasks_mut().refill_planner(now);
        }
    }

    fn is_decision_near(&self, now: SimTime) -> bool {
        self.scheduler.decides_at().is_some_and(|at| at <= now + NEAR)
    }

    fn now(&self) -> SimTime {
        self.surroundings.now()
    }

    fn take(&mut self, message: Message<S>) {
        match message {
            Message::Arrived(at, request, reply) => {
                let reads = matches!(request, Request::Transfer { op: Op::Read, .. });
                let at = self.surroundings.time(at);
                let id = self.scheduler.arrived(request, reply.client(), at);
                self.replies.insert(id, (reads, reply));
            }
            Message::CameBack { id, at, result } => {
                self.scheduler.came_back(id, self.surroundings.time(at), result);
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

    /// Warns once that the device is gone, once that a flush has failed, and once that few commands meet
    /// their prediction.
    fn report_faults(&mut self) {
        if !self.has_reported_loss
            && let Some(why) = self.scheduler.device_error()
        {
            let text = format!(
                "the device is gone: {why}; every request fails from now on, and tasks are over: end \
                 this server, and start it again when the device is back"
            );
            self.has_reported_loss = true;
            self.say(text);
        }
        if !self.has_reported_flush
            && let Some(why) = self.scheduler.failed_flush()
        {
            let text = format!(
                "{why}: every FLUSH and FUA fails from now on; reads, other writes and tasks go on, so \
                 that data can be rescued"
            );
            self.has_reported_flush = true;
            self.say(text);
        }
        if !self.has_reported_poor_prediction
            && let Some(poor_prediction) = self.scheduler.prediction_monitor().poor_prediction()
        {
            self.has_reported_poor_prediction = true;
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
            let Some((reads, reply)) = self.replies.remove(&id) else { continue };
            match result {
                Ok(data) if reads => reply.data(data),
                Ok(_) => reply.done(),
                Err(DeviceError { kind, message }) => reply.error(errno_of(kind), &message),
            }
        }
    }

    /// Begins only requests of clients from now on.
    pub(super) fn finish(&mut self) {
        let now = self.now();
        self.last_reports.get_or_insert_with(|| self.scheduler.tasks().reports(now));
        self.scheduler.close();
        for task in self.sinks.keys() {
            // It may just have ended.
            let _ = self.scheduler.tasks_mut().abort(now, *task);
        }
    }

    /// Delivers the outputs of background tasks.
    fn deliver_outputs(&mut self) {
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
        self.report_progress(now);
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

    fn report_progress(&mut self, now: SimTime) {
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

    /// Time of the next turn, if no message comes before.
    pub fn wakes_at(&self) -> Option<SimTime> {
        let is_watched = !self.sinks.is_empty() || self.news.receiver_count() > 0;
        let looks_at = (is_watched && self.scheduler.tasks().any_runs()).then(|| self.now() + LOOK);
        // Near a decision it gives no more, and would turn in vain until then.
        let now = self.scheduler.tasks().has_ahead().then(|| self.now());
        let more_at = now.filter(|&now| !self.is_decision_near(now));
        self.scheduler.decides_at().into_iter().chain(looks_at).chain(more_at).min()
    }

    fn decisions(&self) -> Decisions {
        let (effort, times) = (self.scheduler.effort(), self.search_times.clone());
        Decisions { effort, times, before: self.scheduler.decides_before() }
    }

    fn free_cost(&self) -> Option<FreeCost> {
        self.scheduler.cost_sums().map(|sums| sums.cost())
    }

    fn report(&self, tasks: Vec<ServedTaskReport>) -> Report {
        Report {
            account: *self.scheduler.account(),
            margins: self.scheduler.margins(),
            free_cost: self.free_cost(),
            decisions: self.decisions(),
            responses: self.scheduler.responses().clone(),
            errors: self.scheduler.errors().clone(),
            elapsed: Duration::from_nanos(self.now().ns()),
            tasks,
            gone: self.scheduler.device_error().cloned(),
            failed_flush: self.scheduler.failed_flush().cloned(),
        }
    }
}

impl<S: Surroundings> ServerMachine<S> {
    /// The server as it is.
    pub fn status(&mut self) -> Status {
        let now = self.now();
        Status {
            began_unix_ns: self.began_unix_ns,
            elapsed: now - SimTime::ZERO,
            idle: self.scheduler.idle_since().map(|since| now.saturating_since(since)),
            account: *self.scheduler.account(),
            margins: self.scheduler.margins(),
            free_cost: self.free_cost(),
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
    pub fn create(&mut self, ordered: ServedOrder) -> Result<ServedTaskReport, ServedTaskError> {
        let now = self.now();
        let id = self.scheduler.tasks_mut().create(now, ordered)?;
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
        let since = self.scheduler.tasks().report(id, now)?.skip_since;
        let written = self.written(since);
        self.scheduler.tasks_mut().reader_came(now, id, HANDED_ON_MAX, &written)?;
        let (sink, reader) = reader();
        self.sinks.insert(id, sink);
        Ok(reader)
    }

    /// Extents that clients have written at `since` or later.
    pub fn written(&self, since: SimTime) -> Vec<Extent> {
        self.scheduler.written().since(since, self.blocks.get())
    }
}
