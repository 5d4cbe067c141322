//! Large requests, which go to the scheduler in pieces.
//!
//! ```text
//!   request of 32 MiB --> queue of its connection --> pieces of 1 MiB --> order, scheduler, device
//!                                                     at most 4 MiB of one client at once
//! ```
//! Connections of one client give pieces in turn. A client therefore waits for at most a few MiB of
//! another's requests, both for the arm and for a request that overlaps. Requests of one connection that
//! overlap keep their order: a request that overlaps with a queued one is queued after it.

use std::collections::{BTreeMap, VecDeque};

use crate::Client;
use crate::device::DeviceErrorKind;
use freewheel_units::{BLOCK_BYTES, Lbn, Op, SimTime};

use super::erase::Erase;
use super::{Answer, HostScheduler, Request, RequestOwner, bytes_of};
use crate::device::DeviceError;

/// Longest piece, in blocks of 512 B: 1 MiB, which a drive of today moves in about a turn.
pub(crate) const PIECE_BLOCKS: u64 = 1 << 11;

/// Requests up to this length go to the scheduler at once, in blocks of 512 B: 64 KiB.
const SMALL_BLOCKS: u64 = 1 << 7;

/// Most blocks of 512 B that the scheduler has of one client's large requests: 4 MiB, enough pieces for the
/// policy to choose from.
const WINDOW_BLOCKS: u64 = 1 << 13;

/// Operation of a request, with its data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Read {
        /// The client is sent the data.
        keeps: bool,
    },
    Write,
    Erase(Erase),
}

/// A request that goes in pieces and is not answered.
struct LargeRequest {
    client: Client,
    action: Action,
    start: u64,
    end: u64,
    fua: bool,
    arrival: SimTime,
    /// First block that is in no piece yet.
    next: u64,
    /// Pieces that have not come back.
    under_way: u32,
    failed: Option<DeviceError>,
    /// Data to write, or data that were read.
    data: Vec<u8>,
}

impl LargeRequest {
    fn conflicts(&self, from: u64, to: u64, writes: bool) -> bool {
        let self_writes = !matches!(self.action, Action::Read { .. });
        (writes || self_writes) && self.start < to && from < self.end
    }

    /// No further piece is made.
    fn is_handed_out(&self) -> bool {
        self.next == self.end || self.failed.is_some()
    }

    /// Takes the next piece off: its bounds.
    fn next_piece(&mut self, longest: u64) -> (u64, u64) {
        let from = self.next;
        self.next = (from + 1).next_multiple_of(longest).min(self.end);
        self.under_way += 1;
        (from, self.next)
    }

    /// Data to write to these blocks.
    fn written(&mut self, from: u64, to: u64) -> Vec<u8> {
        if (from, to) == (self.start, self.end) {
            return std::mem::take(&mut self.data);
        }
        self.data[bytes_of(Lbn::new(self.start), Lbn::new(from), (to - from) as u32)].to_vec()
    }

    /// Stores the data that were read of these blocks.
    fn was_read(&mut self, from: u64, data: Vec<u8>) {
        if data.len() == self.data.len() {
            self.data = data;
            return;
        }
        let at = ((from - self.start) * BLOCK_BYTES) as usize;
        self.data[at..at + data.len()].copy_from_slice(&data);
    }
}

#[derive(Default)]
pub(crate) struct LargeRequests {
    open: BTreeMap<u64, LargeRequest>,
    /// Requests of each connection of which a piece is still to be made, in order.
    queues: BTreeMap<Client, VecDeque<u64>>,
    /// Blocks of each client at the scheduler.
    admitted: BTreeMap<u64, u64>,
    /// The connection of each client that gave the last piece.
    turns: BTreeMap<u64, u64>,
}

impl LargeRequests {
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub fn has(&self, id: u64) -> bool {
        self.open.contains_key(&id)
    }

    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.open.keys().copied()
    }

    /// All are given up; their numbers.
    pub fn abandon(&mut self) -> Vec<u64> {
        let Self { open, .. } = std::mem::take(self);
        open.into_keys().collect()
    }

    /// True if the scheduler may have a request at once.
    fn may_pass(&self, client: Client, from: u64, to: u64, writes: bool) -> bool {
        let queued = self.queues.get(&client).into_iter().flatten();
        to - from <= SMALL_BLOCKS
            && queued.map(|id| &self.open[id]).all(|large| !large.conflicts(from, to, writes))
    }

    /// The request of a client that gives the next piece: the first of the connection whose turn it is.
    /// Erasures give one piece at a time: small ones would otherwise wait for all of a large one.
    fn next_of(&self, peer: u64) -> Option<(Client, u64)> {
        if self.admitted.get(&peer).is_some_and(|&blocks| blocks >= WINDOW_BLOCKS) {
            return None;
        }
        let after = self.turns.get(&peer).map_or(0, |last| last + 1);
        let of_peer = |from, to| {
            let bounds = Client { peer, connection: from }..=Client { peer, connection: to };
            self.queues.range(bounds)
        };
        let later = of_peer(after, u64::MAX).chain(of_peer(0, u64::MAX));
        let firsts = later.filter_map(|(&client, queue)| Some((client, *queue.front()?)));
        firsts.into_iter().find(|(_, id)| {
            let large = &self.open[id];
            !(matches!(large.action, Action::Erase(_)) && large.under_way > 0)
        })
    }

    /// Takes a request out of its queue.
    fn unqueue(&mut self, client: Client, id: u64) {
        if let Some(queue) = self.queues.get_mut(&client) {
            queue.retain(|&queued| queued != id);
            if queue.is_empty() {
                self.queues.remove(&client);
            }
        }
    }

    fn count(&mut self, peer: u64, blocks: u64) {
        *self.admitted.entry(peer).or_default() += blocks;
    }

    fn discount(&mut self, peer: u64, blocks: u64) {
        if let Some(admitted) = self.admitted.get_mut(&peer) {
            *admitted = admitted.saturating_sub(blocks);
            if *admitted == 0 {
                self.admitted.remove(&peer);
                self.turns.remove(&peer);
            }
        }
    }
}

impl HostScheduler {
    /// Queues a request that is large, or overlaps with one of its connection that is queued; gives it
    /// back if the scheduler may have it at once.
    pub(crate) fn queue_large(&mut self, request: Request, client: Client) -> Result<u64, Request> {
        let (action, start, blocks, fua) = match &request {
            Request::Flush => return Err(request),
            Request::Cache { start, blocks } => {
                (Action::Read { keeps: false }, *start, *blocks, false)
            }
            Request::Erase { how, start, blocks, fua } => {
                (Action::Erase(*how), *start, *blocks, *fua)
            }
            Request::Transfer { op, start, data, fua } => {
                let action =
                    if *op == Op::Write { Action::Write } else { Action::Read { keeps: true } };
                (action, *start, data.len() as u64 / BLOCK_BYTES, *fua)
            }
        };
        let (start, end) = (start.get(), start.get() + blocks);
        let writes = !matches!(action, Action::Read { .. });
        if self.large.may_pass(client, start, end, writes) {
            return Err(request);
        }
        let data = match request {
            Request::Transfer { data, .. } => data,
            _ => Vec::new(),
        };
        let (id, arrival) = (self.number(), self.now);
        let (next, under_way, failed) = (start, 0, None);
        let large = LargeRequest {
            client,
            action,
            start,
            end,
            fua,
            arrival,
            next,
            under_way,
            failed,
            data,
        };
        self.large.open.insert(id, large);
        self.large.queues.entry(client).or_default().push_back(id);
        self.admit(client.peer);
        Ok(id)
    }

    /// Gives the scheduler pieces of a client's requests until it has enough of them.
    fn admit(&mut self, peer: u64) {
        while let Some((client, id)) = self.large.next_of(peer) {
            self.large.turns.insert(peer, client.connection);
            let large = self.large.open.get_mut(&id).expect("it is not answered");
            let longest = match large.action {
                Action::Erase(how) => self.erased_at_once(how),
                _ => PIECE_BLOCKS,
            };
            let large = self.large.open.get_mut(&id).expect("it is not answered");
            let (from, to) = large.next_piece(longest);
            let data = match large.action {
                Action::Write => large.written(from, to),
                Action::Read { .. } => vec![0; ((to - from) * BLOCK_BYTES) as usize],
                Action::Erase(_) => Vec::new(),
            };
            let (action, is_last, fua) = (large.action, large.next == large.end, large.fua);
            if is_last {
                self.large.unqueue(client, id);
            }
            self.large.count(peer, cost(from, to));
            self.begin_piece(id, client, (action, fua), (from, to), data);
        }
    }

    fn begin_piece(
        &mut self,
        of: u64,
        client: Client,
        (action, fua): (Action, bool),
        (from, to): (u64, u64),
        data: Vec<u8>,
    ) {
        let (start, owner) = (Lbn::new(from), RequestOwner::Piece { of, client });
        match action {
            Action::Erase(how) => {
                // A flush after the last piece covers all pieces, where the device has flushes.
                let fua = fua && !self.abilities.flush;
                self.erase(how, (from, to), fua, owner);
            }
            Action::Read { .. } => drop(self.enqueue_transfer(Op::Read, start, data, false, owner)),
            Action::Write => {
                self.prepare_write(from, to - from);
                self.enqueue_transfer(Op::Write, start, data, fua && self.abilities.fua, owner);
            }
        }
    }

    /// A piece of a request, of these blocks, has come back.
    pub(crate) fn piece_done(
        &mut self,
        of: u64,
        client: Client,
        (from, to): (u64, u64),
        result: Result<Vec<u8>, DeviceError>,
    ) {
        self.large.discount(client.peer, cost(from, to));
        let large = self.large.open.get_mut(&of).expect("it is not answered");
        large.under_way -= 1;
        match result {
            Ok(data) if large.action == (Action::Read { keeps: true }) => {
                large.was_read(from, data);
            }
            Ok(_) => {}
            Err(failed) => drop(large.failed.get_or_insert(failed)),
        }
        if large.is_handed_out() {
            let is_over = large.under_way == 0;
            self.large.unqueue(client, of);
            if is_over {
                self.large_done(of);
            }
        }
        self.admit(client.peer);
    }

    /// All pieces of a request have come back.
    fn large_done(&mut self, id: u64) {
        let large = &self.large.open[&id];
        let by_flush = match large.action {
            Action::Read { .. } => false,
            Action::Write => !self.abilities.fua,
            Action::Erase(_) => self.abilities.flush,
        };
        if large.fua && large.failed.is_none() && by_flush {
            return self.flush(id);
        }
        self.answer_large(id, None);
    }

    pub(crate) fn answer_large(&mut self, id: u64, failed: Option<DeviceError>) {
        let LargeRequest { arrival, failed: before, data, .. } =
            self.large.open.remove(&id).expect("it is not answered");
        self.responses.record(self.now.saturating_since(arrival));
        self.client_request_ended();
        let result = failed.or(before).map_or(Ok(data), Err);
        let answer: Answer = (id, result);
        self.answers.push(answer);
    }

    /// Adds a request that goes in pieces, which came at `at`: it may have waited during a decision.
    pub(crate) fn large_arrived(&mut self, id: u64, at: SimTime) {
        if let Some(large) = self.large.open.get_mut(&id) {
            large.arrival = at;
        }
    }

    /// The client of a connection has gone: its requests that the device has not begun are given up.
    pub fn left(&mut self, connection: u64, now: SimTime) {
        self.now = self.now.max(now);
        let of_it = self.large.open.iter_mut();
        let of_it = of_it.filter(|(_, large)| large.client.connection == connection);
        let mut over = Vec::new();
        for (&id, large) in of_it {
            // One that waits for its flush is done but for that.
            if !large.is_handed_out() {
                over.extend((large.under_way == 0).then_some(id));
                large.failed = Some(client_has_gone());
            }
        }
        self.large.queues.retain(|client, _| client.connection != connection);
        over.into_iter().for_each(|id| self.answer_large(id, None));
        self.stop_erasures_of(connection, &client_has_gone());
        for id in self.not_begun_of(connection) {
            // Another one that has just been given up may have had it begun.
            if self.pending.contains_key(&id) && self.withdraw(id) {
                self.answer(id, Some(client_has_gone()));
            }
        }
    }

    /// Requests and pieces of a connection that may not have been sent.
    fn not_begun_of(&self, connection: u64) -> Vec<u64> {
        let of_it = self.pending.iter().filter(|(_, pending)| match pending.owner {
            RequestOwner::Client(client) | RequestOwner::Piece { client, .. } => {
                client.connection == connection
            }
            RequestOwner::Task(_) | RequestOwner::Refresh(_) | RequestOwner::Erasure(_) => false,
        });
        // The last ones first: what waits for another one is gone before it could begin.
        of_it.rev().map(|(&id, _)| id).collect()
    }

    /// Takes back a request of which the device has no part yet; false if it has.
    fn withdraw(&mut self, id: u64) -> bool {
        let place = self.pending[&id].place;
        self.order.waits(place) || self.scheduler.withdraw(id, self.now, self.tasks.planner())
    }
}

fn client_has_gone() -> DeviceError {
    DeviceError { kind: DeviceErrorKind::Io, message: "its client has gone".into() }
}

/// Share of the window that a piece takes; a piece of an erasure takes a device as little time as data.
fn cost(from: u64, to: u64) -> u64 {
    (to - from).min(PIECE_BLOCKS)
}
