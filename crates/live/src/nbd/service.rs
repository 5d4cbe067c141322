//! Interface of the data that a server serves.

use std::sync::Arc;

use freewheel_nbd::server::Ticket;
use freewheel_nbd::{Command, Errno, Export, Extent};

pub use super::outbox::SharedPart;
use super::outbox::{Data, Message, Outbox};

/// Something that can be read and written by blocks: one export.
///
/// Requests of one connection come in order from its thread, those of several at once. A request
/// may be answered there and then, or later by any thread, in any order.
pub trait Service: Send + Sync {
    /// Name, size, features and block sizes, which do not change while it is served.
    fn export(&self) -> Export;

    /// Does what a valid request asks for, and answers it: in range, aligned, within features and
    /// payload limit. `data` is what a write writes, and empty otherwise; it may be taken, and otherwise it
    /// is used again. May block, which holds up this connection and no other.
    fn submit(&self, command: Command, data: &mut Vec<u8>, responder: Responder);

    /// The client of a connection has gone, and no answer reaches it. What has not begun of its requests
    /// need not be done; their responders may be dropped. Must not block.
    fn left(&self, caller: Caller) {
        let _ = caller;
    }
}

/// Source of a request, in numbers that are unique as long as the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// Owner of the connection: a process of this machine, or another machine. Over the loopback, where
    /// processes cannot be told apart, each connection is its own peer.
    pub peer: u64,
    /// Number among all connections.
    pub connection: u64,
}

/// Answers one request. Dropped without an answer it answers with an error.
#[must_use = "a client waits for the answer"]
pub struct Responder {
    ticket: Ticket,
    caller: Caller,
    outbox: Arc<Outbox>,
    /// Bytes by which the request counts against the connection's memory.
    weight: u64,
    answered: bool,
}

impl Responder {
    pub(super) fn new(ticket: Ticket, caller: Caller, outbox: Arc<Outbox>, weight: u64) -> Self {
        Self { ticket, caller, outbox, weight, answered: false }
    }

    /// By which connection of whom the request came.
    pub fn caller(&self) -> Caller {
        self.caller
    }

    /// A buffer of this length for data. What is in it is arbitrary.
    pub fn buffer(&self, length: u32) -> Vec<u8> {
        let mut buffer = self.outbox.spare();
        buffer.resize(length as usize, 0);
        buffer
    }

    /// Done, without data. Panics for reads and block states.
    pub fn done(self) {
        let head = self.ticket.done();
        self.answer(Message::short(head));
    }

    /// Done, with all the data that were asked for. Panics for anything but a read, and for another
    /// length.
    pub fn data(self, data: Vec<u8>) {
        self.answer_read(Data::Own(data));
    }

    /// Answers with parts that follow on each other and are not copied.
    pub fn shared(self, parts: Vec<SharedPart>) {
        self.answer_read(Data::Shared(parts));
    }

    fn answer_read(self, data: Data) {
        assert_eq!(data.len() as u64, self.weight, "a read is answered in full");
        let head = self.ticket.data();
        self.answer(Message::with_data(head, data));
    }

    /// The answer to a block status; see [`Ticket::status`] for the allowed extents.
    pub fn status(self, extents: &[Extent]) {
        let text = self.ticket.status(extents);
        self.answer(Message::text(text));
    }

    /// Not done, and why.
    pub fn error(self, errno: Errno, text: &str) {
        let text = self.ticket.error(errno, text);
        self.answer(Message::text(text));
    }

    fn answer(mut self, message: Message) {
        self.answered = true;
        self.outbox.push(message.answering(self.weight));
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.answered {
            let text = self.ticket.error(Errno::Io, "the server failed to answer");
            self.outbox.push(Message::text(text).answering(self.weight));
        }
    }
}
