//! Requests in, device commands out, and the data between them: a whole server but its clock, its threads
//! and its device.

mod erase;
mod flushes;
mod large;
mod overlap_order;
mod refresh;
mod sectors;
mod written_regions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::device::DeviceErrorKind;
use crate::{
    Account, Client, Command, CostSums, Deciding, DecisionStart, Finished, ForegroundPart,
    MarginInUse, PredictiveScheduler,
};
use freewheel_freeblock::tasks::{CADENCE, Tasks};
use freewheel_freeblock::{Effort, Foreground, Options, SearchProgress};
use freewheel_model::drive::Sectors;
use freewheel_model::stats::Distribution;
use freewheel_units::{BLOCK_BYTES, Lbn, Op, SimDuration, SimTime};

pub use self::erase::Erase;
use self::erase::{Erasure, ErasurePiece};
use self::flushes::Flushes;
use self::large::LargeRequests;
use self::overlap_order::OverlapOrder;
pub use self::written_regions::{REGION_BLOCKS, WrittenRegions};
use crate::device::{Abilities, DeviceCommand, DeviceError, DeviceOp};
use crate::predict::PredictionMonitor;
use crate::tasks::{CommandData, OwnRead, ServedTasks};

/// A client's request. `start` is its first block of 512 B, `blocks` their number; with `fua` the blocks
/// are on the media before the answer.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Request {
    /// Reads into `data`, or writes it.
    Transfer {
        op: Op,
        start: Lbn,
        /// Whole blocks: the data to write, or a buffer to read into.
        data: Vec<u8>,
        /// Force unit access.
        fua: bool,
    },
    /// Reads blocks of 512 B, so that the device keeps them in its cache.
    Cache { start: Lbn, blocks: u64 },
    /// Erases blocks of 512 B.
    Erase {
        how: Erase,
        start: Lbn,
        blocks: u64,
        /// Force unit access.
        fua: bool,
    },
    /// Puts every answered write on the media.
    Flush,
}

/// A request's number and its outcome: the data of a read.
pub type Answer = (u64, Result<Vec<u8>, DeviceError>);

/// Owner of a request, which hears of its end.
#[derive(Clone)]
pub(crate) enum RequestOwner {
    Client(Client),
    /// Part of a client's large request.
    Piece {
        of: u64,
        client: Client,
    },
    Task(OwnRead),
    /// A refresh, of its write with this number.
    Refresh(u64),
    /// The erasure that has its place, of this client.
    Erasure(Client),
}

/// A foreground request that is not answered.
struct Pending {
    op: Op,
    start: Lbn,
    /// Number of blocks of 512 B.
    blocks: u64,
    /// Data of a write until it is sent, or of a read.
    data: Vec<u8>,
    fua: bool,
    arrival: SimTime,
    failed: Option<DeviceError>,
    /// The scheduler has completed all its commands.
    is_over: bool,
    /// Parts that the device is asked for again.
    retries: u32,
    /// The last part that has come, `start..end` of 512 B, of a read in parts.
    last_part: Option<(u64, u64)>,
    owner: RequestOwner,
    /// Place in the order: a new number, that of the failed read of which it is a half, or that of
    /// its erasure.
    place: u64,
}

impl Pending {
    fn bounds(&self) -> (u64, u64) {
        let start = self.start.get();
        (start, start + self.blocks)
    }
}

/// A task's read that failed while a client's write waits for it.
#[derive(Default)]
struct Divided {
    /// Parts that have not come back.
    left: u32,
    /// Reads that failed, the first one too.
    failures: u32,
}

/// Reads that may fail in one place of the order. A client waits meanwhile, and the device takes its
/// time for each failure. By halves 12 reads tell one bad sector from all others in 1 MiB, the longest
/// read before a write; so five bad sectors are found.
const FAILURES_MAX: u32 = 64;

/// Schedules requests and free work for one device.
pub struct HostScheduler {
    scheduler: PredictiveScheduler,
    abilities: Abilities,
    /// The error with which the device went away.
    device_error: Option<DeviceError>,
    tasks: ServedTasks,
    written: WrittenRegions,
    order: OverlapOrder,
    /// Places in the order whose read failed and is repeated in halves.
    divided: BTreeMap<u64, Divided>,
    pending: BTreeMap<u64, Pending>,
    erasures: BTreeMap<u64, Erasure>,
    large: LargeRequests,
    next_request: u64,
    at_device: BTreeMap<u64, Command>,
    /// Writes in gaps at the device, by their command: their places in the order.
    gap_writes: BTreeMap<u64, u64>,
    /// The flush before refreshes read back.
    refresh_flush: Option<u64>,
    flushes: Flushes,
    /// Pieces of erasures at the device, by their command.
    erase_commands: BTreeMap<u64, ErasurePiece>,
    /// Erasures with a piece ready, while the device has enough pieces; next first.
    queued_erasures: VecDeque<u64>,
    /// Erasures that wait for a reader of a backup to take data, and since when.
    waiting_for_reader: BTreeMap<u64, SimTime>,
    next_own: u64,
    /// Foreground parts whose command failed with free work in it; each is tried again alone.
    retry_queue: VecDeque<ForegroundPart>,
    outgoing: VecDeque<DeviceCommand>,
    answers: Vec<Answer>,
    responses: Distribution,
    /// Prediction errors of commands, without their sign.
    errors: Distribution,
    prediction_monitor: PredictionMonitor,
    /// Clients' requests that are not answered, and when the last one was.
    clients: u32,
    idle_since: SimTime,
    /// Set by `close`: tasks begin no more reads of their own.
    is_closing: bool,
    now: SimTime,
}

/// The client of promoted tasks' reads in the fair queue: no connection has this number.
const PROMOTED: Client = Client::alone(u64::MAX);

/// Numbers of commands that do not come from the predictive scheduler begin here.
pub const OWN_COMMANDS: u64 = 1 << 62;

impl HostScheduler {
    /// A scheduler for a device with these abilities.
    pub fn new(scheduler: PredictiveScheduler, tasks: ServedTasks, abilities: Abilities) -> Self {
        let mut tasks = tasks;
        // Without a flush there is no volatile cache.
        // A device with FUA brings a refresh's writes to the media by it, without a flush for each.
        let by_flush = abilities.flush && !abilities.fua;
        tasks.writes_by(by_flush, scheduler.media_sectors().blocks());
        Self {
            scheduler: scheduler.with_named_clients(),
            abilities,
            device_error: None,
            tasks,
            written: WrittenRegions::default(),
            order: OverlapOrder::default(),
            divided: BTreeMap::new(),
            pending: BTreeMap::new(),
            erasures: BTreeMap::new(),
            large: LargeRequests::default(),
            next_request: 0,
            at_device: BTreeMap::new(),
            gap_writes: BTreeMap::new(),
            refresh_flush: None,
            flushes: Flushes::default(),
            erase_commands: BTreeMap::new(),
            queued_erasures: VecDeque::new(),
            waiting_for_reader: BTreeMap::new(),
            next_own: OWN_COMMANDS,
            retry_queue: VecDeque::new(),
            outgoing: VecDeque::new(),
            answers: Vec::new(),
            responses: Distribution::default(),
            errors: Distribution::default(),
            prediction_monitor: PredictionMonitor::default(),
            clients: 0,
            idle_since: SimTime::ZERO,
            is_closing: false,
            now: SimTime::ZERO,
        }
    }

    /// A scheduler without tasks for a device with these abilities. Most tasks will have blocks of
    /// `usual_block`, and their gaps are planned with `options`.
    pub fn for_device(
        scheduler: PredictiveScheduler,
        options: Options,
        usual_block: u32,
        abilities: Abilities,
    ) -> Self {
        let scheduler = scheduler.with_sectors_of(abilities.sector_blocks());
        // Not every device tells, and not every drive's file.
        let told = abilities.physical_blocks().max(scheduler.media_sectors().blocks());
        let scheduler = scheduler.with_media_sectors(Sectors::of(told));
        let tasks = Tasks::new(&scheduler.planners_drive(), options, CADENCE);
        let tasks = ServedTasks::new(tasks, abilities.sector_blocks(), usual_block);
        Self::new(scheduler, tasks, abilities)
    }

    /// Sectors of the device's media.
    pub fn media_sectors(&self) -> Sectors {
        self.scheduler.media_sectors()
    }

    /// Counts of commands, gaps and prediction errors.
    pub fn account(&self) -> &Account {
        self.scheduler.account()
    }

    /// The learned margins of free work.
    pub fn margins(&self) -> Vec<MarginInUse> {
        self.scheduler.margins()
    }

    /// Cost of free work to clients, as measured in slots without it; None where there are no such slots.
    pub fn cost_sums(&self) -> Option<CostSums> {
        self.scheduler.cost_sums()
    }

    /// Cost of the decisions about gaps.
    pub fn effort(&self) -> Effort {
        self.tasks.effort()
    }

    /// The background tasks.
    pub fn tasks(&self) -> &ServedTasks {
        &self.tasks
    }

    /// The background tasks, to change them.
    pub fn tasks_mut(&mut self) -> &mut ServedTasks {
        &mut self.tasks
    }

    /// Regions that clients have written, with times.
    pub fn written(&self) -> &WrittenRegions {
        &self.written
    }

    /// Prediction errors of commands, without their sign.
    pub fn errors(&self) -> &Distribution {
        &self.errors
    }

    /// Monitor of the commands that meet their prediction.
    pub fn prediction_monitor(&self) -> &PredictionMonitor {
        &self.prediction_monitor
    }

    /// Response times of clients' requests.
    pub fn responses(&self) -> &Distribution {
        &self.responses
    }

    /// The error with which the device went away, if it did.
    pub fn device_error(&self) -> Option<&DeviceError> {
        self.device_error.as_ref()
    }

    /// The device is gone: all requests of clients fail, those at the device included. Later commands
    /// are not sent, and late completions are ignored.
    pub fn device_gone(&mut self, why: DeviceError) {
        // Before the early return: tasks may have been added since the device went away.
        self.tasks.lose(&why.message, self.now);
        if self.device_error.is_some() {
            return;
        }
        let pending =
            std::mem::take(&mut self.pending).into_iter().filter_map(|(id, pending)| match pending
                .owner
            {
                // Each client's request is answered once: a large request and an erasure answer for their parts.
                RequestOwner::Client(_) => Some(id),
                RequestOwner::Piece { .. }
                | RequestOwner::Task(_)
                | RequestOwner::Refresh(_)
                | RequestOwner::Erasure(_) => None,
            });
        let mut failed: BTreeSet<u64> = pending.collect();
        let at_device = self.flushes.at_device.take();
        failed.extend(at_device.into_iter().flat_map(|(_, requests)| requests));
        failed.extend(self.flushes.waiting.drain(..));
        let erasures = std::mem::take(&mut self.erasures).into_iter();
        failed.extend(erasures.filter(|(_, erasure)| erasure.is_a_clients()).map(|(id, _)| id));
        failed.extend(self.large.abandon());
        self.order = OverlapOrder::default();
        self.divided.clear();
        self.waiting_for_reader.clear();
        self.queued_erasures.clear();
        self.retry_queue.clear();
        self.outgoing.clear();
        self.at_device.clear();
        self.gap_writes.clear();
        self.erase_commands.clear();
        // A refresh's flush shares the numbers of requests, but no client waits for its answer.
        let own = self.refresh_flush.take();
        failed.retain(|id| Some(*id) != own);
        for id in failed {
            self.client_request_ended();
            self.answers.push((id, Err(why.clone())));
        }
        self.device_error = Some(why);
        self.check();
    }

    /// True if no request waits and no command is at the device.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
            && self.at_device.is_empty()
            // A waiting flush has one at the device before it, so looking there is enough.
            && self.flushes.at_device.is_none()
            && self.erasures.is_empty()
            && self.large.is_empty()
    }

    /// Begins only clients' requests from now on.
    pub fn close(&mut self) {
        self.is_closing = true;
    }

    /// Time at which [`Self::begin_decision`] is due next, if no event comes before.
    pub fn decides_at(&self) -> Option<SimTime> {
        if self.device_error.is_some() {
            return None;
        }
        // Tasks read in idle time without any event of a client: the caller must be woken for them.
        let idle = self.tasks.wakes_at(self.idle_since());
        let expires = self.tasks.expires_at().into_iter().chain(self.copies_at());
        self.scheduler.decides_at().into_iter().chain(idle).chain(expires).min()
    }

    /// Time at which the next decision about a command is due. Work in idle time is never due.
    pub fn command_due(&self) -> Option<SimTime> {
        self.scheduler.decides_at().filter(|_| self.device_error.is_none())
    }

    /// The device completed a command during the search for free work, before its predicted end.
    pub fn overtaken(&mut self) {
        self.scheduler.overtaken();
    }

    /// Begin of the time without clients' requests; None while there is one.
    pub fn idle_since(&self) -> Option<SimTime> {
        // A server that ends has no idle time: tasks would begin reads that no client waits for.
        (self.clients == 0 && !self.is_closing).then_some(self.idle_since)
    }

    /// Takes the answers since the last call.
    pub fn answers(&mut self) -> std::vec::Drain<'_, Answer> {
        self.answers.drain(..)
    }

    /// Takes a client's request that arrived at `now`; returns the number of its answer.
    pub fn arrived(&mut self, request: Request, client: Client, now: SimTime) -> u64 {
        self.now = self.now.max(now);
        self.clients += 1;
        // Counted before: a request that is answered at once ends the same way as all others.
        let id = self.take_request(request, client);
        // It may have waited while something was decided.
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.arrival = now;
        }
        self.large_arrived(id, now);
        self.check();
        id
    }

    fn take_request(&mut self, request: Request, client: Client) -> u64 {
        if let Some(gone) = self.device_error.clone() {
            return self.answer_at_once(Err(gone));
        }
        // After a failed flush no promise about the media can be kept, so none is made.
        if let Some(failed) = self.refused_flush(&request) {
            return self.answer_at_once(Err(failed));
        }
        // TRIM is a hint, and success without an effect is right for a device that lacks it.
        if matches!(request, Request::Erase { how, .. } if !self.does(how)) {
            return self.answer_at_once(Ok(Vec::new()));
        }
        // In pieces, so that one client's large request does not hold up the others' short ones.
        let request = match self.queue_large(request, client) {
            Ok(queued) => return queued,
            Err(request) => request,
        };
        match request {
            Request::Flush => {
                let id = self.number();
                self.flush(id);
                id
            }
            Request::Cache { start, blocks } => {
                let data = vec![0; (blocks * BLOCK_BYTES) as usize];
                self.enqueue_transfer(Op::Read, start, data, false, RequestOwner::Client(client))
            }
            Request::Erase { how, start, blocks, fua } => {
                let bounds = (start.get(), start.get() + blocks);
                self.erase(how, bounds, fua, RequestOwner::Client(client))
            }
            Request::Transfer { op, start, data, fua } => {
                if op == Op::Write {
                    // A backup has the blocks as they were: its reads take their places in the order before
                    // the write.
                    self.prepare_write(start.get(), data.len() as u64 / BLOCK_BYTES);
                }
                self.enqueue_transfer(op, start, data, fua, RequestOwner::Client(client))
            }
        }
    }

    fn answer_at_once(&mut self, result: Result<Vec<u8>, DeviceError>) -> u64 {
        let id = self.number();
        self.client_request_ended();
        self.answers.push((id, result));
        id
    }

    fn number(&mut self) -> u64 {
        self.next_request += 1;
        self.next_request - 1
    }

    /// Begins the reads of backups before a client's write; the order of overlapping requests keeps them
    /// before it.
    fn prepare_write(&mut self, start: u64, blocks: u64) {
        let (from, to) = (start, start + blocks);
        self.written.mark(from, to, self.now);
        for read in self.tasks.before_write(from, to, self.now) {
            self.read_for_task(read);
        }
    }

    fn read_for_task(&mut self, read: OwnRead) {
        let data = vec![0; read.blocks as usize * BLOCK_BYTES as usize];
        self.enqueue_transfer(Op::Read, read.start, data, false, RequestOwner::Task(read));
    }

    /// Queues a transfer of a client or a task behind those it overlaps with; returns its number.
    fn enqueue_transfer(
        &mut self,
        op: Op,
        start: Lbn,
        data: Vec<u8>,
        fua: bool,
        owner: RequestOwner,
    ) -> u64 {
        // The number of the request is its place: later requests to the same blocks wait behind it.
        let place = self.next_request;
        let id = self.add(op, start, data, fua, owner, place);
        let (from, to) = self.pending[&id].bounds();
        if self.order.arrived(id, from..to, op == Op::Write) {
            self.release(id);
        }
        id
    }

    fn add(
        &mut self,
        op: Op,
        start: Lbn,
        data: Vec<u8>,
        fua: bool,
        owner: RequestOwner,
        place: u64,
    ) -> u64 {
        let id = self.number();
        let pending = Pending {
            op,
            start,
            blocks: data.len() as u64 / BLOCK_BYTES,
            data,
            fua,
            arrival: self.now,
            failed: None,
            is_over: false,
            retries: 0,
            last_part: None,
            owner,
            place,
        };
        self.pending.insert(id, pending);
        id
    }

    /// The next number of a command that does not come from the predictive scheduler.
    fn own_command(&mut self) -> u64 {
        self.next_own += 1;
        self.next_own - 1
    }

    /// Hands a request that waits for no other to the scheduler.
    fn release(&mut self, id: u64) {
        if self.erasures.contains_key(&id) {
            return self.continue_erasure(id);
        }
        // The order has let the request go: from here on the policy decides when it is sent.
        let Pending { op, start, blocks, ref owner, .. } = self.pending[&id];
        let blocks = blocks as u32;
        let (client, promotion) = match owner {
            RequestOwner::Client(client)
            | RequestOwner::Piece { client, .. }
            | RequestOwner::Erasure(client) => (Some(*client), None),
            // What is read again, or before a write, is little and should not wait, as what is refreshed.
            RequestOwner::Refresh(_) => (None, None),
            RequestOwner::Task(read) => (read.promotion.map(|_| PROMOTED), read.promotion),
        };
        let request = Foreground { op, start, blocks, sequence: id, promotion };
        self.scheduler.arrived(request, client, self.now, self.tasks.planner());
    }

    /// Sets how long decisions take.
    pub fn decisions_take(&mut self, deciding: Deciding) {
        self.scheduler.decisions_take(deciding);
    }

    /// Time before the device needs a command at which its decision begins.
    pub fn decides_before(&self) -> SimDuration {
        self.scheduler.decides_before()
    }

    /// Begins to decide at `now` on the next command for the device, if it is time for that. Until
    /// [`Self::end_decision`] a decision with a search allows only [`Self::search`] and
    /// [`Self::give_up`].
    pub fn begin_decision(&mut self, now: SimTime) -> DecisionStart {
        self.now = self.now.max(now);
        if self.device_error.is_some() {
            return DecisionStart::NotDue;
        }
        self.tasks.expire(self.now);
        self.continue_copies();
        // Flushes and retries go first and need no search, so the decision can wait for its turn.
        if !(self.outgoing.is_empty() && self.retry_queue.is_empty()) {
            return DecisionStart::NotDue;
        }
        self.read_for_tasks();
        // Both before the decision, so that their requests take part in it.
        self.write_for_tasks();
        self.check();
        self.scheduler.begin_decision(self.now, self.tasks.planner())
    }

    /// Looks at up to `nodes` nodes of the search under way.
    pub fn search(&mut self, nodes: u64) -> SearchProgress {
        self.scheduler.search(self.tasks.planner(), nodes)
    }

    /// Ends the search in the current direction, reads or writes, with the best so far.
    pub fn give_up(&mut self) {
        self.scheduler.give_up(self.tasks.planner());
    }

    /// Ends the search under way: the next command is decided with the best that was found.
    pub fn end_decision(&mut self) {
        self.scheduler.end_decision(self.tasks.planner());
    }

    /// The next command for the device at `now`, of what has been decided; None when it has enough.
    pub fn next_command(&mut self, now: SimTime) -> Option<DeviceCommand> {
        self.now = self.now.max(now);
        if self.device_error.is_some() {
            return None;
        }
        if let Some(own) = self.outgoing.pop_front() {
            return Some(own);
        }
        if let Some(part) = self.retry_queue.pop_front() {
            return Some(self.retry(part));
        }
        // A client's write may have come since the plan was made: its data must not be overwritten.
        self.skip_unsafe_writes();
        let command = self.scheduler.next_command(self.now, self.tasks.planner())?;
        let Command { id, op, start, blocks, .. } = command;
        // The number tells the tasks which writes came before this command, and which after it.
        self.tasks.sent(id);
        let mut extent = (start, blocks);
        let (what, data) = match (op, command.foreground) {
            (Op::Write, Some(part)) => {
                let fua = self.abilities.fua && self.pending[&part.sequence].fua;
                (DeviceOp::Write { fua }, self.written_by(&part))
            }
            (Op::Write, None) => {
                (DeviceOp::Write { fua: self.abilities.fua }, self.begin_gap_write(id, extent))
            }
            _ => {
                // Devices take whole sectors; the blocks beyond the wanted ones are dropped at the
                // command's end.
                extent = self.whole_sectors(start, blocks);
                (DeviceOp::Read, vec![0; extent.1 as usize * BLOCK_BYTES as usize])
            }
        };
        self.at_device.insert(id, command);
        self.check();
        Some(DeviceCommand { id, what, start: extent.0, data })
    }

    /// Makes the reads that tasks make like clients.
    fn read_for_tasks(&mut self) {
        while !self.is_closing
            && let Some(read) = self.tasks.next_read(self.now, self.idle_since())
        {
            self.read_for_task(read);
        }
    }

    fn written_by(&mut self, part: &ForegroundPart) -> Vec<u8> {
        let pending = self.pending.get_mut(&part.sequence).expect("it is not answered");
        let range = bytes_of(pending.start, part.start, part.blocks);
        // Mostly one command writes all of it: then the data move without a copy.
        if range.len() == pending.data.len() {
            return std::mem::take(&mut pending.data);
        }
        pending.data[range].to_vec()
    }

    /// Reads a foreground part again, alone, after a command with free work in it failed.
    fn retry(&mut self, part: ForegroundPart) -> DeviceCommand {
        let id = self.own_command();
        let ForegroundPart { start, blocks, .. } = part;
        // Without free work, so that an error now is that of the client's blocks.
        let runs = Vec::new();
        let command = Command { id, op: Op::Read, start, blocks, foreground: Some(part), runs };
        self.at_device.insert(id, command);
        let (start, blocks) = self.whole_sectors(start, blocks);
        let data = vec![0; blocks as usize * BLOCK_BYTES as usize];
        DeviceCommand { id, what: DeviceOp::Read, start, data }
    }

    /// A command has come back at `at`.
    pub fn came_back(&mut self, id: u64, at: SimTime, result: Result<Vec<u8>, DeviceError>) {
        self.now = self.now.max(at);
        self.end_command(id, at, result);
        self.check();
    }

    fn end_command(&mut self, id: u64, at: SimTime, result: Result<Vec<u8>, DeviceError>) {
        if let Err(failed) = &result
            && failed.kind == DeviceErrorKind::Gone
        {
            // The device may report its end by a command as well as by a message: both lead here.
            self.device_gone(failed.clone());
        }
        if self.device_error.is_some() {
            return;
        }
        if let Some((_, requests)) = self.flushes.at_device.take_if(|(flush, _)| *flush == id) {
            return self.flush_came_back(requests, result);
        }
        if let Some(piece) = self.erase_commands.remove(&id) {
            return self.piece_erased(&piece, result.map(drop));
        }
        // Flushes and erasures are found above; all others were sent as transfers.
        let command = self.at_device.remove(&id).expect("it was sent");
        let result = result.map(|data| self.without_the_rest(&command, data));
        let part = command.foreground;
        // A failed write in a gap is taken back before the tasks take the command's events.
        let gap_write = self.gap_write_came_back(&command, &result);
        let done = (id < OWN_COMMANDS).then(|| self.finished(&command, &result, at)).flatten();
        // Only now: a client's write to these blocks may begin at once.
        gap_write.into_iter().for_each(|place| self.place_is_free(place));
        match (&result, part) {
            // The free work in the command may have failed instead: try the part alone.
            (Err(_), Some(part)) if !command.runs.is_empty() => {
                self.retry_queue.push_back(part);
                self.pending.get_mut(&part.sequence).expect("it is not answered").retries += 1;
            }
            (_, Some(part)) => self.part_done(&part, &command, result),
            (_, None) => {}
        }
        if id >= OWN_COMMANDS {
            // The predictive scheduler does not know of retries, so their end is counted here.
            let part = part.expect("a retry is somebody's");
            self.pending.get_mut(&part.sequence).expect("it is not answered").retries -= 1;
        }
        if let Some(request) = done {
            let pending = self.pending.get_mut(&request.sequence);
            pending.expect("it is not answered").is_over = true;
        }
        if let Some(part) = part {
            self.request_done(part.sequence);
        }
    }

    /// Tells the scheduler that a command has completed, and the tasks which data it brought.
    fn finished(
        &mut self,
        command: &Command,
        result: &Result<Vec<u8>, DeviceError>,
        at: SimTime,
    ) -> Option<Foreground> {
        // Before the tasks: the planner turns moved runs into events, which they then handle.
        let finished = self.scheduler.finished(command.id, at, self.now, self.tasks.planner());
        let Finished { done, error_ns, head, .. } = finished;
        // Reads of tasks alone follow on each other, so that a buffer answers them; and no gap is lost.
        let pending = command.foreground.map(|part| &self.pending[&part.sequence]);
        if pending.is_some_and(|pending| {
            matches!(pending.owner, RequestOwner::Client(_) | RequestOwner::Piece { .. })
        }) {
            self.prediction_monitor.came_back(error_ns);
        }
        if let Some(error) = error_ns {
            self.errors.record(SimDuration::from_ns(error.unsigned_abs()));
        }
        // Without a task the data have no reader, and the rest costs time on the path of a reply.
        if !self.tasks.any_runs() {
            return done;
        }
        let part = command.foreground;
        self.head_took(command, head);
        let bounds = |start: Lbn, blocks: u32| (start.get(), start.get() + u64::from(blocks));
        let runs = command.runs.iter().map(|run| bounds(run.start, run.blocks));
        let requested = part.map(|part| bounds(part.start, part.blocks));
        let spans: Vec<_> = runs.chain(requested).collect();
        let mut data: Vec<(Lbn, &[u8])> = Vec::new();
        if let (Ok(read), Op::Read) = (result, command.op) {
            data.push((command.start, read));
        }
        let pending = part.and_then(|part| self.pending.get(&part.sequence));
        if let Some(pending) = pending.filter(|pending| pending.op == Op::Read)
            && let Some((from, to)) = pending.last_part
        {
            let here = bytes_of(pending.start, Lbn::new(from), (to - from) as u32);
            // A block of a task may straddle two parts of a request: the part before is at hand as well.
            data.push((Lbn::new(from), &pending.data[here]));
        }
        let has_failed = result.is_err();
        let (data, spans) = (&data[..], &spans[..]);
        let source = CommandData { data, spans, requested, command: command.id, has_failed };
        self.tasks.take_data(&source, self.now);
        done
    }

    /// Tells the tasks what head time a request took. Free work in a command takes head time that the
    /// request would have waited, so such a command says little about a client's request.
    fn head_took(&mut self, command: &Command, head: SimDuration) {
        let Some(part) = command.foreground else { return };
        let promotion = self.pending.get(&part.sequence).and_then(|pending| match &pending.owner {
            RequestOwner::Task(read) => read.promotion,
            _ => None,
        });
        // Promoted reads pay from a budget of head time, so theirs counts in any case.
        if promotion.is_some() || command.runs.is_empty() {
            let to = Lbn::new(part.start.get() + u64::from(part.blocks));
            self.tasks.head_took(promotion, head, to);
        }
    }

    /// A part of a request has been moved, or has failed.
    fn part_done(
        &mut self,
        part: &ForegroundPart,
        command: &Command,
        result: Result<Vec<u8>, DeviceError>,
    ) {
        let Some(pending) = self.pending.get_mut(&part.sequence) else { return };
        match result {
            Err(failed) => {
                let is_fua = pending.fua && self.abilities.fua;
                // The first error is the answer; the request still waits for its other parts.
                pending.failed.get_or_insert_with(|| failed.clone());
                if is_fua {
                    self.fua_failed(&failed);
                }
            }
            Ok(data) if pending.op == Op::Read => {
                let here = bytes_of(command.start, part.start, part.blocks);
                // One command brought all of the request: its memory becomes the answer.
                if here.len() == data.len() && data.len() == pending.data.len() {
                    pending.data = data;
                } else {
                    let there = bytes_of(pending.start, part.start, part.blocks);
                    pending.data[there].copy_from_slice(&data[here]);
                    let from = part.start.get();
                    pending.last_part = Some((from, from + u64::from(part.blocks)));
                }
            }
            Ok(_) => {}
        }
    }

    /// Answers a request of which all parts have come back.
    fn request_done(&mut self, id: u64) {
        let pending = &self.pending[&id];
        // Both must have ended: commands of the scheduler, and retries that it does not know of.
        if !pending.is_over || pending.retries > 0 {
            return;
        }
        if pending.fua && pending.failed.is_none() {
            // Without FUA a flush after the write makes the promise good.
            if !self.abilities.fua {
                return self.flush(id);
            }
            // The device may have reported the loss to another command.
            let failed = self.failed_flush().cloned();
            return self.answer(id, failed);
        }
        self.answer(id, None);
    }

    fn answer(&mut self, id: u64, failed: Option<DeviceError>) {
        let pending = self.pending.remove(&id).expect("it is not answered");
        let bounds = pending.bounds();
        if pending.op == Op::Write && !matches!(pending.owner, RequestOwner::Refresh(_)) {
            // A failed write may have changed blocks all the same, so tasks hear of it either way.
            let is_new = failed.is_none() && pending.failed.is_none();
            self.client_wrote(bounds, is_new);
        }
        let Pending { blocks, data, owner, arrival, place, .. } = pending;
        let result = match failed.or(pending.failed) {
            Some(failed) => Err(failed),
            None => Ok(data),
        };
        match owner {
            RequestOwner::Task(read) => self.read_done(&read, place, result.ok()),
            RequestOwner::Refresh(number) => {
                self.tasks.own_write_done(number, result.is_ok(), self.now);
            }
            RequestOwner::Erasure(_) => self.erased(place, blocks, result.err()),
            RequestOwner::Client(_) => {
                self.responses.record(self.now.saturating_since(arrival));
                self.client_request_ended();
                self.answers.push((id, result));
            }
            RequestOwner::Piece { of, client } => self.piece_done(of, client, bounds, result),
        }
        // Halves of a failed read still have the place: the write behind them waits for all.
        if !self.divided.contains_key(&place) {
            self.place_is_free(place);
        }
    }

    /// Frees a place in the order that has no command under way; an erasure may continue in it.
    fn place_is_free(&mut self, place: u64) {
        if self.erasures.contains_key(&place) {
            return self.continue_erasure(place);
        }
        for next in self.order.done(place) {
            self.release(next);
        }
    }

    /// A read of a task has completed. If it failed while a write waits for it, its halves are read in its
    /// place, and the write continues to wait.
    fn read_done(&mut self, own: &OwnRead, place: u64, data: Option<Vec<u8>>) {
        let mut divided = self.divided.remove(&place).unwrap_or_default();
        // Zero for the first read of the place, which was not counted as a part.
        divided.left = divided.left.saturating_sub(1);
        divided.failures += u32::from(data.is_none());
        // The client's write waits for these reads, so they must come to an end.
        let divisible = divided.failures < FAILURES_MAX;
        let instead = self.tasks.read_done(own.number, data, divisible, self.now);
        divided.left += instead.len() as u32;
        if divided.left > 0 {
            self.divided.insert(place, divided);
        }
        for read in instead {
            let data = vec![0; read.blocks as usize * BLOCK_BYTES as usize];
            let id = self.add(Op::Read, read.start, data, false, RequestOwner::Task(read), place);
            self.release(id);
        }
    }

    /// Checks in debug builds what calls keep in step by hand: sums, and what refers to what.
    fn check(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let is_a_clients = |pending: &Pending| matches!(pending.owner, RequestOwner::Client(_));
        let pending = self.pending.iter().filter(|(_, pending)| is_a_clients(pending));
        let erasures = self.erasures.iter().filter(|(_, erasure)| erasure.is_a_clients());
        let flushing = self.flushes.at_device.iter().flat_map(|(_, requests)| requests);
        let mut open: BTreeSet<u64> = pending.map(|(&id, _)| id).collect();
        open.extend(erasures.map(|(&id, _)| id));
        open.extend(flushing.chain(&self.flushes.waiting).copied());
        open.extend(self.large.numbers());
        if let Some(own) = self.refresh_flush {
            open.remove(&own);
        }
        assert_eq!(self.clients as usize, open.len(), "clients' requests without an answer");
        assert!(
            self.retry_queue.iter().all(|part| {
                let pending = self.pending.get(&part.sequence);
                pending.is_some_and(|pending| pending.retries > 0)
            }),
            "a part to retry counts at its request"
        );
        assert!(
            self.gap_writes.keys().all(|command| self.at_device.contains_key(command)),
            "a write in a gap is at the device"
        );
        assert!(
            self.divided.values().all(|divided| divided.left > 0),
            "a divided read has parts under way"
        );
        let is_quiet = self.device_error.is_none() || self.is_idle();
        assert!(is_quiet, "a device that is gone has no requests");
    }

    fn client_request_ended(&mut self) {
        self.clients -= 1;
        self.idle_since = self.now;
    }
}

/// Bytes of the blocks `start..` in data that begin at `from`.
fn bytes_of(from: Lbn, start: Lbn, blocks: u32) -> std::ops::Range<usize> {
    let begin = ((start.get() - from.get()) * BLOCK_BYTES) as usize;
    begin..begin + blocks as usize * BLOCK_BYTES as usize
}

#[cfg(test)]
mod tests;
