//! Adapter between hosts and a drive: requests in, commands out.

use std::collections::{BTreeMap, VecDeque};

use freewheel_model::sched::CommandMark;
use freewheel_sim::black_box::{Command, EmulatedDrive};
use freewheel_units::{Lbn, Op, SimTime};

/// Most blocks of one command: what the 16 bits of ATA's `READ DMA EXT` and its kin can say.
pub const COMMAND_BLOCKS_MAX: u32 = 1 << 16;

/// Request of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Read, write, or flush.
    pub op: Op,
    /// First block; of no meaning in a flush.
    pub start: Lbn,
    /// Number of blocks, at least one; of no meaning in a flush.
    pub blocks: u64,
    /// Force unit access: all its commands have it. Of no meaning in a flush.
    pub fua: bool,
    /// Mark of all its commands for the drive's queue. Of no meaning in a flush.
    pub mark: CommandMark,
}

/// A request that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// The number it was submitted with.
    pub id: u64,
    /// Time at which the host has its reply.
    pub at: SimTime,
    /// The first block found that could not be read, if there was one.
    pub bad: Option<Lbn>,
}

/// A drive behind an adapter that takes any number of requests of any length. The adapter cuts them into
/// commands, gives the drive commands up to its limit, and keeps the others in order. The caller gives the
/// time.
pub struct HostAdapter {
    drive: EmulatedDrive,
    /// The last time that it was told.
    now: SimTime,
    requests: BTreeMap<u64, RequestProgress>,
    /// Requests of which not all commands have been sent, in order.
    outside: VecDeque<u64>,
    /// Commands at the drive.
    commands: BTreeMap<u64, Sent>,
    next_command: u64,
    /// Reads and writes at the drive.
    in_flight: u32,
}

/// A command at the drive: its request, and its operation.
struct Sent {
    request: u64,
    op: Op,
}

struct RequestProgress {
    request: Request,
    /// First block for which no command has been sent.
    next: Lbn,
    left: u64,
    /// Commands at the drive.
    in_flight: u32,
    bad: Option<Lbn>,
}

impl HostAdapter {
    /// An adapter for this drive.
    pub fn new(drive: EmulatedDrive) -> Self {
        Self {
            drive,
            now: SimTime::ZERO,
            requests: BTreeMap::new(),
            outside: VecDeque::new(),
            commands: BTreeMap::new(),
            next_command: 0,
            in_flight: 0,
        }
    }

    /// True if all requests are done.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Takes a request that came at `now`; one that came before the last event counts as coming
    /// with it. `id` must not be that of a request that is not done.
    pub fn submit(&mut self, now: SimTime, id: u64, request: Request) {
        self.now = self.now.max(now);
        let left = if request.op == Op::Flush { 0 } else { request.blocks };
        let progress =
            RequestProgress { request, next: request.start, left, in_flight: 0, bad: None };
        let twice = self.requests.insert(id, progress);
        assert!(twice.is_none(), "request {id} is not done");
        if request.op == Op::Flush {
            // The writes that a flush covers have been answered, so it waits for no request.
            self.command(id, Op::Flush, Lbn::ZERO, 0);
        } else {
            self.outside.push_back(id);
            self.send();
        }
    }

    /// Gives up a request: no further command is sent for it. Returns whether it is over; otherwise it ends
    /// with its last command at the drive. A request that is done is over.
    pub fn give_up(&mut self, id: u64) -> bool {
        let Some(progress) = self.requests.get_mut(&id) else { return true };
        progress.left = 0;
        let is_over = progress.in_flight == 0;
        self.outside.retain(|&other| other != id);
        if is_over {
            self.requests.remove(&id);
        }
        is_over
    }

    /// The drive's power goes and comes back: no request that it has is ever done.
    pub fn power_cut(&mut self) {
        self.drive.power_cut();
        self.requests.clear();
        self.outside.clear();
        self.commands.clear();
        self.in_flight = 0;
    }

    /// Time of the next event, if no request is submitted before.
    pub fn next_event(&self) -> Option<SimTime> {
        self.drive.next_event().map(|event| event.time())
    }

    /// Processes the event at `now`. `tell` gets a completed request first: a client does not wait until
    /// the drive has its next command.
    pub fn advance(&mut self, now: SimTime, tell: impl FnOnce(Finished)) {
        self.now = self.now.max(now);
        let Some(reply) = self.drive.advance(now) else { return };
        let Sent { request: id, op } =
            self.commands.remove(&reply.id).expect("a command is somebody's");
        self.in_flight -= u32::from(op != Op::Flush);
        let progress = self.requests.get_mut(&id).expect("it is not done");
        progress.in_flight -= 1;
        progress.bad = progress.bad.or(reply.bad);
        let finished = Finished { id, at: reply.at, bad: progress.bad };
        if progress.left == 0 && progress.in_flight == 0 {
            self.requests.remove(&id);
            tell(finished);
        }
        self.send();
    }

    /// Sends commands as long as the drive takes some, of long requests one each in turn.
    fn send(&mut self) {
        while self.in_flight < self.drive.queue_depth()
            && let Some(&id) = self.outside.front()
        {
            let progress = self.requests.get_mut(&id).expect("it is not done");
            let blocks = progress.left.min(COMMAND_BLOCKS_MAX.into()) as u32;
            let (op, start) = (progress.request.op, progress.next);
            progress.next = Lbn::new(start.get() + u64::from(blocks));
            progress.left -= u64::from(blocks);
            if progress.left == 0 {
                self.outside.pop_front();
            } else {
                self.outside.rotate_left(1);
            }
            self.in_flight += 1;
            self.command(id, op, start, blocks);
        }
    }

    fn command(&mut self, request: u64, op: Op, start: Lbn, blocks: u32) {
        let id = self.next_command;
        self.next_command += 1;
        self.commands.insert(id, Sent { request, op });
        let progress = self.requests.get_mut(&request).expect("it is not done");
        progress.in_flight += 1;
        let Request { fua, mark, .. } = progress.request;
        self.drive.submit(self.now, Command { id, op, start, blocks, fua, mark });
    }
}
