//! A drive behind the whole scheduler of a server, as an arm of the simulator.
//!
//! ```text
//!   engine's queue (in order of arrival) --> one client of HostScheduler --> commands --> black box
//! ```
//! [`HostScheduler`] is what `freewheel serve` drives by the clock. Here it runs in virtual time: decisions take
//! none, and all data are zeroes. Beyond the [`PredictiveScheduler`] inside
//! it, a server holds a request back while it overlaps with an earlier one, cuts requests of more than 64 KiB into
//! pieces, and has one flush at the drive at a time.

use std::collections::{BTreeMap, VecDeque};

use freewheel_freeblock::Options;
use freewheel_host::device::{Abilities, DeviceCommand, DeviceOp};
use freewheel_host::scheduler::Request;
use freewheel_host::tasks::{ServedTaskError, usual_block};
use freewheel_host::{Client, DecisionStart, HostScheduler, PredictiveScheduler};
use freewheel_model::drive::Position;
use freewheel_model::electronics::{Done, NextEvent, Served};
use freewheel_model::sched::{CommandMark, Waiting};
use freewheel_units::{BLOCK_BYTES, Op, SimTime};

use crate::background::{BackgroundResult, FreeblockConfig, ServedBackground, Unfinished};
use crate::black_box::{self, EmulatedDrive, Reply};
use crate::device::{Device, Work};
use crate::predicted_device::work_outside;

/// The one client of the server.
const CLIENT: Client = Client::alone(0);

/// A request that the server has not answered.
struct Asked {
    /// Number of the request in the engine.
    sequence: u64,
    is_flush: bool,
}

/// A black box with a server's scheduler.
pub struct ServedDevice {
    scheduler: HostScheduler,
    drive: EmulatedDrive,
    /// Requests by the numbers of their answers.
    asked: BTreeMap<u64, Asked>,
    /// Memory of the reads at the drive, by their command.
    reading: BTreeMap<u64, Vec<u8>>,
    /// Requests that are done, and not reported yet.
    answered: VecDeque<Done>,
    /// Set while commands have come back and none was sent since, as everything of that instant has to be
    /// known first.
    came_back: Option<SimTime>,
    has_tasks: bool,
    /// Account of the tasks of an experiment.
    background: Option<ServedBackground>,
}

impl ServedDevice {
    /// A drive with a scheduler for what it [can do](Self::abilities).
    pub fn new(scheduler: HostScheduler, drive: EmulatedDrive) -> Self {
        Self {
            has_tasks: scheduler.tasks().any_runs(),
            scheduler,
            drive,
            asked: BTreeMap::new(),
            reading: BTreeMap::new(),
            answered: VecDeque::new(),
            came_back: None,
            background: None,
        }
    }

    /// A drive with a server for the tasks of an experiment, if it has some. The run waits for what they have
    /// `unfinished`.
    pub(crate) fn for_experiment(
        scheduler: PredictiveScheduler,
        drive: EmulatedDrive,
        tasks: Option<&FreeblockConfig>,
        unfinished: Option<Unfinished>,
    ) -> Result<Self, ServedTaskError> {
        let abilities = Self::abilities(&drive);
        let planned = scheduler.planners_drive();
        let block = usual_block(&planned, abilities.sector_blocks());
        let options = tasks.map_or_else(Options::default, FreeblockConfig::options);
        let mut scheduler = HostScheduler::for_device(scheduler, options, block, abilities);
        let mut background = None;
        if let Some(config) = tasks {
            let tasks = scheduler.tasks_mut();
            background =
                Some(ServedBackground::begin(tasks, config, &planned, options, unfinished)?);
        }
        Ok(Self { background, ..Self::new(scheduler, drive) })
    }

    /// Results of the experiment's tasks, if it has some.
    pub(crate) fn into_background(self, end: SimTime) -> Option<BackgroundResult> {
        let tasks = self.scheduler.tasks();
        self.background.map(|background| background.result(tasks, end))
    }

    /// Abilities of an emulated drive, as the scheduler has to know them.
    pub fn abilities(drive: &EmulatedDrive) -> Abilities {
        let sector = drive.sector();
        Abilities {
            sector_bytes: sector.logical_blocks() * BLOCK_BYTES as u32,
            physical_bytes: sector.physical_blocks() * BLOCK_BYTES as u32,
            flush: true,
            fua: true,
            ..Abilities::default()
        }
    }

    /// The scheduler, with its tasks.
    pub fn scheduler(&self) -> &HostScheduler {
        &self.scheduler
    }

    fn ask(&mut self, now: SimTime, request: Request, sequence: u64) {
        let is_flush = matches!(request, Request::Flush);
        let number = self.scheduler.arrived(request, CLIENT, now);
        self.asked.insert(number, Asked { sequence, is_flush });
        self.send(now);
    }

    /// Sends the drive its next commands. Virtual time stands still while they are decided on.
    fn send(&mut self, now: SimTime) {
        self.came_back = None;
        loop {
            if let DecisionStart::Searching { .. } = self.scheduler.begin_decision(now) {
                while !self.scheduler.search(u64::MAX).is_done() {}
                self.scheduler.end_decision();
            }
            let Some(command) = self.scheduler.next_command(now) else { break };
            self.submit_command(now, command);
        }
        if self.scheduler.tasks().any_runs() {
            self.scheduler.tasks_mut().refill_planner(now);
        }
    }

    fn submit_command(&mut self, now: SimTime, command: DeviceCommand) {
        let DeviceCommand { id, what, start, data } = command;
        let blocks = (data.len() as u64 / BLOCK_BYTES) as u32;
        let (op, fua) = match what {
            DeviceOp::Read => (Op::Read, false),
            DeviceOp::Write { fua } => (Op::Write, fua),
            DeviceOp::Flush => (Op::Flush, false),
            DeviceOp::Trim { .. } | DeviceOp::WriteZeroes { .. } => {
                unreachable!("the drive has no such ability")
            }
        };
        if op == Op::Read {
            self.reading.insert(id, data);
        }
        let mark = CommandMark::None;
        self.drive.submit(now, black_box::Command { id, op, start, blocks, fua, mark });
    }

    /// Ends a command, and with it any number of requests.
    fn finish(&mut self, reply: &Reply, now: SimTime) {
        let inside = reply.served;
        let way = reply.at - inside.end;
        let served = Served { bus: inside.bus + way, end: reply.at, ..inside };
        let data = self.reading.remove(&reply.id).unwrap_or_default();
        self.scheduler.came_back(reply.id, now, Ok(data));
        self.came_back = Some(now);
        for (number, _) in self.scheduler.answers() {
            let Asked { sequence, is_flush } = self.asked.remove(&number).expect("it was asked");
            self.answered.push_back(Done { sequence, served, flush: is_flush });
        }
        let tasks = self.scheduler.tasks_mut();
        match &mut self.background {
            Some(background) => background.observe(tasks, now),
            // Nobody takes a task's data.
            None => drop(tasks.outputs()),
        }
    }

    fn decides_at(&self) -> Option<SimTime> {
        self.came_back.or(self.scheduler.decides_at())
    }
}

impl Device for ServedDevice {
    fn has_room(&self) -> bool {
        true
    }

    fn free_at(&self, now: SimTime) -> (SimTime, Position) {
        (now, Position::default())
    }

    fn submit(&mut self, now: SimTime, waiting: &Waiting) {
        let &Waiting { target, sequence, fua, .. } = waiting;
        let data = vec![0; target.blocks as usize * BLOCK_BYTES as usize];
        let request = Request::Transfer { op: target.op, start: target.start, data, fua };
        self.ask(now, request, sequence);
    }

    fn flush(&mut self, now: SimTime, sequence: u64) -> bool {
        self.ask(now, Request::Flush, sequence);
        true
    }

    fn next_event(&self) -> Option<NextEvent> {
        if let Some(done) = self.answered.front() {
            return Some(NextEvent::Completion(done.served.end));
        }
        let decision = self.decides_at().map(NextEvent::Decision);
        let events = self.drive.next_event().into_iter().chain(decision);
        events.min_by_key(|event| (event.time(), matches!(event, NextEvent::Decision(_))))
    }

    fn advance(&mut self, now: SimTime) -> Option<Done> {
        if let Some(done) = self.answered.pop_front() {
            return Some(done);
        }
        let inside = self.drive.next_event().filter(|event| event.time() <= now);
        if inside.is_none_or(|event| matches!(event, NextEvent::Decision(_)))
            && self.decides_at().is_some_and(|time| time <= now)
        {
            self.send(now);
            return None;
        }
        let reply = self.drive.advance(now)?;
        self.finish(&reply, now);
        self.answered.pop_front()
    }

    fn work(&self, _: SimTime) -> Work {
        let Self { scheduler, has_tasks, .. } = self;
        Work {
            margins: scheduler.margins(),
            cost: scheduler.cost_sums().filter(|_| *has_tasks),
            ..work_outside(&self.drive, scheduler.account(), *has_tasks)
        }
    }
}
