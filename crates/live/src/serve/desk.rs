//! Requests in, commands out, and the data between them: all of a server but its clock, its threads
//! and its device.

use std::collections::{BTreeMap, VecDeque};

use freewheel_model::external::{Account, Command, External, Finished, Part};
use freewheel_model::freeblock::{Foreground, Planner};
use freewheel_model::stats::Distribution;
use freewheel_units::{BLOCK_BYTES, Lbn, Op, SimTime};

use super::backend::{BackendCommand, Failed};
use super::order::Order;

/// What a client asks for.
#[derive(Debug)]
pub(super) enum Request {
    /// Blocks, with room for what is read or what is written.
    Transfer { op: Op, start: Lbn, data: Vec<u8>, fua: bool },
    /// Everything that has been answered is to be on the media.
    Flush,
}

/// What a client is told: the data of a read.
pub(super) type Answer = (u64, Result<Vec<u8>, Failed>);

/// Blocks that a background task could not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable {
    /// First block of 512 B of the command that failed.
    pub start: Lbn,
    /// How many it had.
    pub blocks: u32,
}

/// A foreground request that is not answered.
struct Pending {
    op: Op,
    start: Lbn,
    data: Vec<u8>,
    fua: bool,
    arrival: SimTime,
    failed: Option<Failed>,
    /// The scheduler has nothing more to do for it.
    is_over: bool,
    /// Parts of it at the device again.
    retries: u32,
}

/// Schedules requests and free work for one device.
pub(super) struct Desk<P> {
    scheduler: External,
    planner: P,
    order: Order,
    pending: BTreeMap<u64, Pending>,
    next_request: u64,
    at_device: BTreeMap<u64, Command>,
    /// Flushes at the device, by their command, and whose they are.
    flushes: BTreeMap<u64, u64>,
    next_flush: u64,
    /// Foreground parts of commands that failed, to be tried without free work.
    again: VecDeque<Part>,
    out: VecDeque<BackendCommand>,
    answers: Vec<Answer>,
    unreadable: Vec<Unreadable>,
    responses: Distribution,
    now: SimTime,
}

/// Numbers of commands that the scheduler knows nothing of.
const OWN_COMMANDS: u64 = 1 << 62;

impl<P: Planner> Desk<P> {
    pub fn new(scheduler: External, planner: P) -> Self {
        Self {
            scheduler,
            planner,
            order: Order::default(),
            pending: BTreeMap::new(),
            next_request: 0,
            at_device: BTreeMap::new(),
            flushes: BTreeMap::new(),
            next_flush: OWN_COMMANDS,
            again: VecDeque::new(),
            out: VecDeque::new(),
            answers: Vec::new(),
            unreadable: Vec::new(),
            responses: Distribution::default(),
            now: SimTime::ZERO,
        }
    }

    pub fn account(&self) -> &Account {
        self.scheduler.account()
    }

    pub fn planner(&mut self) -> &mut P {
        &mut self.planner
    }

    pub fn responses(&self) -> &Distribution {
        &self.responses
    }

    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// Whether nothing waits and nothing is at the device.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.at_device.is_empty() && self.flushes.is_empty()
    }

    /// When [`Self::next_command`] has something to decide, if nothing happens before.
    pub fn decides_at(&self) -> Option<SimTime> {
        self.scheduler.decides_at()
    }

    /// What has been answered since the last call.
    pub fn answers(&mut self) -> std::vec::Drain<'_, Answer> {
        self.answers.drain(..)
    }

    /// A request has come at `now`; the number it is answered with.
    pub fn arrived(&mut self, request: Request, now: SimTime) -> u64 {
        self.now = self.now.max(now);
        let id = self.next_request;
        self.next_request += 1;
        match request {
            Request::Flush => self.flush(id),
            Request::Transfer { op, start, data, fua } => {
                let blocks = data.len() as u64 / BLOCK_BYTES;
                let range = start.get()..start.get() + blocks;
                let arrival = self.now;
                let (failed, is_over, retries) = (None, false, 0);
                let pending = Pending { op, start, data, fua, arrival, failed, is_over, retries };
                self.pending.insert(id, pending);
                if self.order.arrived(id, range, op == Op::Write) {
                    self.begin(id);
                }
            }
        }
        id
    }

    /// What the device is to do for everything before it to be on the media. What it covers has been
    /// answered, so it waits for nobody.
    fn flush(&mut self, request: u64) {
        let id = self.next_flush;
        self.next_flush += 1;
        self.flushes.insert(id, request);
        self.out.push_back(BackendCommand {
            id,
            op: Op::Flush,
            start: Lbn::ZERO,
            data: Vec::new(),
        });
    }

    /// Nothing that it overlaps with is before it any more.
    fn begin(&mut self, id: u64) {
        let Pending { op, start, ref data, .. } = self.pending[&id];
        let blocks = (data.len() as u64 / BLOCK_BYTES) as u32;
        let request = Foreground { op, start, blocks, sequence: id, promotion: None };
        self.scheduler.arrived(request, self.now, &mut self.planner);
    }

    /// The next command for the device at `now`; None when it has enough.
    pub fn next_command(&mut self, now: SimTime) -> Option<BackendCommand> {
        self.now = self.now.max(now);
        if let Some(own) = self.out.pop_front() {
            return Some(own);
        }
        if let Some(part) = self.again.pop_front() {
            return Some(self.retry(part));
        }
        let command = self.scheduler.next_command(self.now, &mut self.planner)?;
        let Command { id, op, start, blocks, .. } = command;
        let data = match (op, command.foreground) {
            (Op::Write, Some(part)) => self.written_by(&part),
            // Free writes have no data of their own yet: tasks only read.
            _ => vec![0; blocks as usize * BLOCK_BYTES as usize],
        };
        self.at_device.insert(id, command);
        Some(BackendCommand { id, op, start, data })
    }

    fn written_by(&mut self, part: &Part) -> Vec<u8> {
        let pending = self.pending.get_mut(&part.sequence).expect("it is not answered");
        let range = bytes_of(pending.start, part.start, part.blocks);
        if range.len() == pending.data.len() {
            return std::mem::take(&mut pending.data);
        }
        pending.data[range].to_vec()
    }

    /// A foreground part by itself, whose command failed with free work in it.
    fn retry(&mut self, part: Part) -> BackendCommand {
        let id = self.next_flush;
        self.next_flush += 1;
        let Part { start, blocks, .. } = part;
        let runs = Vec::new();
        let command = Command { id, op: Op::Read, start, blocks, foreground: Some(part), runs };
        self.at_device.insert(id, command);
        let data = vec![0; blocks as usize * BLOCK_BYTES as usize];
        BackendCommand { id, op: Op::Read, start, data }
    }

    /// A command has come back at `at`.
    pub fn came_back(&mut self, id: u64, at: SimTime, result: Result<Vec<u8>, Failed>) {
        self.now = self.now.max(at);
        if let Some(request) = self.flushes.remove(&id) {
            return self.flushed(request, result);
        }
        let command = self.at_device.remove(&id).expect("it was sent");
        if result.is_err() {
            let suspects = command.runs.iter();
            self.unreadable
                .extend(suspects.map(|run| Unreadable { start: run.start, blocks: run.blocks }));
        }
        let part = command.foreground;
        match (&result, part) {
            // It may be what was read beside it that failed.
            (Err(_), Some(part)) if !command.runs.is_empty() => {
                self.again.push_back(part);
                self.pending.get_mut(&part.sequence).expect("it is not answered").retries += 1;
            }
            (_, Some(part)) => self.part_done(&part, &command, result),
            (_, None) => {}
        }
        if id >= OWN_COMMANDS {
            let part = part.expect("a retry is somebody's");
            self.pending.get_mut(&part.sequence).expect("it is not answered").retries -= 1;
        } else {
            let Finished { done, .. } = self.scheduler.finished(id, self.now, &mut self.planner);
            if let Some(request) = done {
                let pending = self.pending.get_mut(&request.sequence);
                pending.expect("it is not answered").is_over = true;
            }
        }
        if let Some(part) = part {
            self.request_done(part.sequence);
        }
    }

    /// A part of a request has been moved, or has failed.
    fn part_done(&mut self, part: &Part, command: &Command, result: Result<Vec<u8>, Failed>) {
        let Some(pending) = self.pending.get_mut(&part.sequence) else { return };
        match result {
            Err(failed) => pending.failed = pending.failed.take().or(Some(failed)),
            Ok(data) if pending.op == Op::Read => {
                let here = bytes_of(command.start, part.start, part.blocks);
                if here.len() == data.len() && data.len() == pending.data.len() {
                    pending.data = data;
                } else {
                    let there = bytes_of(pending.start, part.start, part.blocks);
                    pending.data[there].copy_from_slice(&data[here]);
                }
            }
            Ok(_) => {}
        }
    }

    /// Answers a request of which all parts have come back.
    fn request_done(&mut self, id: u64) {
        let pending = &self.pending[&id];
        if !pending.is_over || pending.retries > 0 {
            return;
        }
        if pending.fua && pending.failed.is_none() {
            return self.flush(id);
        }
        self.answer(id, None);
    }

    fn flushed(&mut self, request: u64, result: Result<Vec<u8>, Failed>) {
        if self.pending.contains_key(&request) {
            return self.answer(request, result.err());
        }
        self.answers.push((request, result));
    }

    fn answer(&mut self, id: u64, failed: Option<Failed>) {
        let pending = self.pending.remove(&id).expect("it is not answered");
        self.responses.record(self.now.saturating_since(pending.arrival));
        let result = match failed.or(pending.failed) {
            Some(failed) => Err(failed),
            None => Ok(pending.data),
        };
        self.answers.push((id, result));
        for next in self.order.done(id) {
            self.begin(next);
        }
    }
}

/// Bytes of the blocks `start..` in data that begin at `from`.
fn bytes_of(from: Lbn, start: Lbn, blocks: u32) -> std::ops::Range<usize> {
    let begin = ((start.get() - from.get()) * BLOCK_BYTES) as usize;
    begin..begin + blocks as usize * BLOCK_BYTES as usize
}

#[cfg(test)]
mod tests;
