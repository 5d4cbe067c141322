//! The server in virtual time: its state machine, and what surrounds it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use freewheel_host::Client;
use freewheel_live::serve::backend::DeviceCommand;
use freewheel_live::serve::machine::{Message, Reply, ServerMachine, Surroundings};
use freewheel_nbd::Errno;
use freewheel_nbd::server::Ticket;
use freewheel_units::{SimDuration, SimTime};

use crate::device::SECTOR;
use crate::faults::{Fault, Wrapped};

/// State that the server and the test share.
pub struct Shared {
    pub disk: Wrapped,
    pub now: SimTime,
    /// Step of the clock from one look at it to the next.
    pub look: SimDuration,
    pub inbox: VecDeque<Message<Virtual>>,
    /// Answers that have left: of which connection, and their bytes.
    pub answers: Vec<(u64, Vec<u8>)>,
    /// A client has been told that a FLUSH failed.
    pub has_told_failure: bool,
    /// Something that promises durable data was answered with success after a flush had failed at the disk.
    pub is_promised_after_failure: bool,
    /// Set to print the disk's events.
    pub is_traced: bool,
    /// Commands that the disk was given.
    pub commands: u64,
}

/// Time that only the test advances, and a simulated disk.
#[derive(Clone)]
pub struct Virtual(pub Rc<RefCell<Shared>>);

pub type Machine = ServerMachine<Virtual>;

impl Surroundings for Virtual {
    type Stamp = SimTime;
    type Reply = VirtualReply;

    fn now(&self) -> SimTime {
        let mut shared = self.0.borrow_mut();
        let now = shared.now + shared.look;
        shared.now = now;
        now
    }

    fn time(&self, stamp: SimTime) -> SimTime {
        stamp
    }

    fn next_message(&mut self) -> Option<Message<Self>> {
        let mut shared = self.0.borrow_mut();
        if let Some(message) = shared.inbox.pop_front() {
            return Some(message);
        }
        let now = shared.now;
        let completed = shared.disk.completion(now)?;
        let (id, at, result) = (completed.id, completed.at, completed.result);
        if shared.is_traced {
            let error = result.as_ref().err();
            println!("{:>12}   from the disk: {id:#x}, error {error:?}", now.ns() / 1000);
        }
        Some(Message::CameBack { id, at, result })
    }

    fn submit(&mut self, command: DeviceCommand) {
        let mut shared = self.0.borrow_mut();
        let now = shared.now;
        shared.commands += 1;
        if shared.is_traced {
            let (start, sectors) = (command.start.get(), command.data.len() / SECTOR);
            let DeviceCommand { id, what, .. } = command;
            println!("{:>12}   to the disk: {id:#x} {what:?} {start} + {sectors}", now.ns() / 1000);
        }
        shared.disk.submit(now, command);
    }
}

/// The way back to a client of the test.
pub struct VirtualReply {
    pub ticket: Ticket,
    pub client: Client,
    pub is_flush: bool,
    /// Set if its success tells that a flush has succeeded.
    pub is_durable: bool,
    /// Set if it has been answered, by a planted fault.
    pub is_answered: bool,
    pub shared: Rc<RefCell<Shared>>,
}

impl VirtualReply {
    fn send(&self, bytes: Vec<u8>) {
        if !self.is_answered {
            self.shared.borrow_mut().answers.push((self.client.connection, bytes));
        }
    }

    fn succeed(&self) {
        {
            let mut shared = self.shared.borrow_mut();
            let has_failed = shared.disk.disk.has_failed_flush && !self.is_answered;
            shared.is_promised_after_failure |= self.is_durable && has_failed;
        }
        self.send(self.ticket.done().to_vec());
    }

    /// Answers with success, before anything is done.
    pub fn answer_early(&mut self) {
        self.succeed();
        self.is_answered = true;
    }
}

impl Reply for VirtualReply {
    fn client(&self) -> Client {
        self.client
    }

    fn data(self, data: Vec<u8>) {
        let mut bytes = self.ticket.data().to_vec();
        bytes.extend(data);
        self.send(bytes);
    }

    fn done(self) {
        self.succeed();
    }

    fn error(mut self, errno: Errno, text: &str) {
        let forgets = {
            let mut shared = self.shared.borrow_mut();
            let forgets = shared.disk.fault == Some(Fault::FailedFlushForgotten);
            let was = shared.has_told_failure;
            shared.has_told_failure |= self.is_flush;
            self.is_flush && forgets && was
        };
        if forgets {
            return self.answer_early();
        }
        self.send(self.ticket.error(errno, text));
    }
}
