//! A file by the system's ring, which one thread has.
//!
//! With no request under way the thread waits for a command, like a thread that reads and writes.
//! Otherwise it sleeps in the ring; the ring then also reads an event that the sender of a command raises.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::Instant;

use rustix::event::{EventfdFlags, eventfd};

use super::buffer::Buffer;
use super::uring::{Kind, Request, Ring, RingDone};
use super::{Opened, Work};
use crate::serve::backend::{
    Back, BackendCompletion, DeviceCommand, DeviceError, DeviceErrorKind, DeviceOp,
};
use crate::zero_range;

/// Waker of the thread.
struct Waker {
    event: Arc<File>,
    /// Set while the thread may be asleep in the ring.
    is_awaited: AtomicBool,
}

impl Waker {
    fn new() -> io::Result<Self> {
        // Reads of it are to wait in the ring.
        let event = eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Self { event: Arc::new(event.into()), is_awaited: AtomicBool::new(false) })
    }

    fn ring(&self) {
        // The event counts to 2^64, which is never reached.
        let _ = (&*self.event).write_all(&1_u64.to_ne_bytes());
    }
}

pub(super) struct Ringer(Arc<Waker>);

impl Ringer {
    /// A command has been sent.
    pub fn sent(&self) {
        // Either this sees that the thread is about to sleep, or the thread sees the command.
        fence(Ordering::SeqCst);
        if self.0.is_awaited.swap(false, Ordering::SeqCst) {
            self.0.ring();
        }
    }
}

/// Requests that are under way in the ring.
enum Tag {
    Waker,
    Command(Work),
}

struct Owner {
    ring: Ring<Tag>,
    bell: Arc<Waker>,
    opened: Arc<Opened>,
    inbox: Receiver<DeviceCommand>,
    back: Back,
    /// Buffers for the next requests.
    spare: Vec<Vec<u8>>,
    at_once: u32,
    at_work: u32,
}

/// Starts the thread, for `at_once` commands at a time; it ends when the sender has gone and all is done.
/// Fails where the system has no ring.
pub(super) fn start(
    opened: &Arc<Opened>,
    at_once: u32,
    back: &Back,
) -> io::Result<(Sender<DeviceCommand>, Ringer)> {
    let (commands, inbox) = mpsc::channel();
    let bell = Arc::new(Waker::new()?);
    let ringer = Ringer(Arc::clone(&bell));
    let (opened, back) = (Arc::clone(opened), Arc::clone(back));
    let (tell, told) = mpsc::channel();
    // The ring is the thread's that makes it.
    let run = move || {
        let ring = match Ring::new(at_once + 1) {
            Ok(ring) => ring,
            Err(error) => return drop(tell.send(Err(error))),
        };
        let spare = Vec::new();
        let mut owner = Owner { ring, bell, opened, inbox, back, spare, at_once, at_work: 0 };
        // The caller may have gone.
        let _ = tell.send(Ok(()));
        if let Err(error) = owner.run() {
            owner.fail(&error);
        }
    };
    thread::Builder::new().name("device ring".into()).spawn(run)?;
    told.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
    Ok((commands, ringer))
}

impl Owner {
    fn run(&mut self) -> io::Result<()> {
        self.listen();
        loop {
            self.begin_all();
            if self.at_work == 0 {
                if !self.begin_next() {
                    return Ok(());
                }
                // Its first requests may be over already, and the waker must be armed before the ring sleeps.
                continue;
            }
            self.ring.wait()?;
            let done = self.ring.take();
            let at = Instant::now();
            done.into_iter().for_each(|done| self.end(done, at));
        }
    }

    fn listen(&mut self) {
        let file = Arc::clone(&self.bell.event);
        let buffer = Buffer::of(vec![0; size_of::<u64>()]);
        self.ring.push(Request { file, kind: Kind::Read, offset: 0, buffer }, Tag::Waker);
    }

    /// Waits for a command and begins it; false when all senders have gone.
    fn begin_next(&mut self) -> bool {
        let command = self.inbox.recv();
        command.map(|command| self.begin(command)).is_ok()
    }

    /// Begins what has been sent, as far as there is room. The bell rings for what is sent then, if
    /// something is under way.
    fn begin_all(&mut self) {
        while self.at_work < self.at_once {
            match self.inbox.try_recv() {
                Ok(command) => self.begin(command),
                Err(TryRecvError::Empty) if self.at_work > 0 => {
                    if self.bell.is_awaited.swap(true, Ordering::SeqCst) {
                        return;
                    }
                    fence(Ordering::SeqCst);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        self.bell.is_awaited.store(false, Ordering::SeqCst);
    }

    fn begin(&mut self, command: DeviceCommand) {
        let mut work = match self.opened.begin(command, &mut self.spare) {
            Ok(work) => work,
            Err(came) => return (self.back)(came),
        };
        let kind = match work.what {
            DeviceOp::Read => Kind::Read,
            DeviceOp::Write { .. } => Kind::Write,
            DeviceOp::Flush => Kind::Sync,
            DeviceOp::Trim { .. } | DeviceOp::WriteZeroes { .. } => {
                Kind::Allocate { how: zero_range::how(work.keeps_room()), length: work.length }
            }
        };
        let (file, buffer) = (Arc::clone(&self.opened.file), std::mem::take(&mut work.buffer));
        let request = Request { file, kind, offset: work.offset, buffer };
        self.ring.push(request, Tag::Command(work));
        self.at_work += 1;
    }

    fn end(&mut self, done: RingDone<Tag>, at: Instant) {
        let RingDone { tag, buffer, result } = done;
        let Tag::Command(mut work) = tag else {
            return self.listen();
        };
        work.buffer = buffer;
        self.at_work -= 1;
        (self.back)(self.opened.end(work, at, result, &mut self.spare));
    }

    /// The ring itself has failed: all further commands fail.
    fn fail(&mut self, error: &io::Error) {
        let failed = |id| {
            let message = format!("the system's ring has failed: {error}");
            let result = Err(DeviceError { kind: DeviceErrorKind::Gone, message });
            BackendCompletion { id, at: Instant::now(), result }
        };
        for tag in self.ring.abandon() {
            if let Tag::Command(work) = tag {
                (self.back)(failed(work.id));
            }
        }
        while let Ok(command) = self.inbox.recv() {
            (self.back)(failed(command.id));
        }
    }
}

impl Drop for Owner {
    /// Ends the read of the bell, which the ring waits for, also where something has panicked.
    fn drop(&mut self) {
        self.bell.ring();
    }
}
