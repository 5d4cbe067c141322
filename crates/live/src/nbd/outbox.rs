//! Messages to be sent on a connection, and the thread that sends them.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use freewheel_nbd::Head;

use super::budget::{Budget, MemoryHolder, OWN_BYTES};
use super::limits::Limits;
use super::stream::Stream;

/// Most bytes of buffers that a connection keeps to use them again.
const SPARE_BYTES_MAX: usize = 2 << 20;

/// Longest answer in bytes that the answering thread sends itself: copying more would keep a thread with
/// timed work.
const AT_ONCE_BYTES_MAX: usize = 64 << 10;

pub(super) struct Message {
    front: Front,
    data: Data,
    /// Bytes that have been sent.
    sent: usize,
    /// The weight of the request that it answers.
    answers: Option<u64>,
}

enum Front {
    Head(Head),
    Text(Vec<u8>),
}

/// Data of an answer.
pub(super) enum Data {
    /// A buffer that is used again.
    Own(Vec<u8>),
    /// Parts of what somebody else has as well, in their order.
    Shared(Vec<SharedPart>),
}

/// A part of bytes that do not change while it is there.
#[derive(Debug, Clone)]
pub struct SharedPart {
    bytes: Arc<Vec<u8>>,
    part: Range<usize>,
}

impl SharedPart {
    /// These of the bytes. Panics where there are no such.
    pub fn new(bytes: Arc<Vec<u8>>, part: Range<usize>) -> Self {
        assert!(part.start <= part.end && part.end <= bytes.len(), "{part:?} of {}", bytes.len());
        Self { bytes, part }
    }
}

impl Data {
    const NONE: Self = Self::Own(Vec::new());

    fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let (own, shared): (&[u8], &[SharedPart]) = match self {
            Self::Own(data) => (data, &[]),
            Self::Shared(parts) => (&[], parts),
        };
        let shared = shared.iter().map(|SharedPart { bytes, part }| &bytes[part.clone()]);
        std::iter::once(own).chain(shared)
    }

    pub fn len(&self) -> usize {
        self.slices().map(<[u8]>::len).sum()
    }
}

impl Message {
    pub fn short(head: Head) -> Self {
        Self::with_data(head, Data::NONE)
    }

    pub fn with_data(head: Head, data: Data) -> Self {
        Self { front: Front::Head(head), data, sent: 0, answers: None }
    }

    pub fn text(text: Vec<u8>) -> Self {
        Self { front: Front::Text(text), data: Data::NONE, sent: 0, answers: None }
    }

    /// Message that answers a request of this weight.
    pub fn answering(self, weight: u64) -> Self {
        Self { answers: Some(weight), ..self }
    }

    fn front(&self) -> &[u8] {
        match &self.front {
            Front::Head(head) => head,
            Front::Text(text) => text,
        }
    }

    fn slices(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.front()).chain(self.data.slices())
    }

    /// Bytes that have not been sent.
    fn left(&self) -> usize {
        self.front().len() + self.data.len() - self.sent
    }
}

/// The outgoing half of a connection, shared by its threads and by all that answer its requests.
pub(super) struct Outbox {
    stream: Arc<Stream>,
    /// The reading thread; its answers wait until all received requests have been read.
    reader: ThreadId,
    state: Mutex<State>,
    /// To the writing thread: something to send, or what is queued, or the end has come.
    to_send: Sender<Option<Message>>,
    /// For the reading thread: something has been sent.
    settled: Condvar,
    /// The client takes no answers any more.
    has_left: AtomicBool,
    /// Is called then.
    leaving: OnceLock<Leaving>,
    limits: Limits,
    /// That of all connections, and whose part of it this one takes.
    budget: Arc<Budget>,
    holder: MemoryHolder,
}

/// Tells a service that a client has gone.
pub(super) type Leaving = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct State {
    queue: VecDeque<Message>,
    /// Somebody is sending, and will send what is queued meanwhile.
    sending: bool,
    /// The client does not take anything any more: what is to be sent is dropped.
    broken: bool,
    /// Error of the socket, if sending failed.
    failure: Option<io::Error>,
    /// The connection is over.
    ended: bool,
    /// Requests that are not answered in full, and their weight in bytes.
    in_flight: u32,
    weight: u64,
    /// Bytes of a write whose data come.
    payload: u64,
    /// Part of the common budget that the connection holds.
    pooled: u64,
    /// Requests answered since the reader asked last.
    answered: u32,
    /// The reader waits for `settled`. Signalling is a system call, even without a waiter.
    awaited: bool,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
}

impl Outbox {
    /// The outbox of a connection that this thread reads, and the signal of its writing thread.
    pub fn new(
        stream: Arc<Stream>,
        limits: Limits,
        budget: Arc<Budget>,
        holder: MemoryHolder,
    ) -> (Self, Receiver<Option<Message>>) {
        // Unbounded, so that threads that answer never wait here. Each message answers a request in
        // flight, and those are bounded.
        let (to_send, inbox) = mpsc::channel();
        let reader = thread::current().id();
        let (state, settled) = (Mutex::default(), Condvar::new());
        let (has_left, leaving) = (AtomicBool::new(false), OnceLock::new());
        let outbox = Self {
            stream,
            reader,
            state,
            to_send,
            settled,
            has_left,
            leaving,
            limits,
            budget,
            holder,
        };
        (outbox, inbox)
    }

    /// A panic in another thread leaves the state consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has been taken, whose memory was [reserved](Self::reserve).
    pub fn began(&self, weight: u64) {
        let mut state = self.lock();
        state.in_flight += 1;
        state.weight += weight;
        state.payload = 0;
        self.give_back(&mut state);
    }

    /// Waits until the server has memory for a request of this weight; false when the client has gone
    /// meanwhile. For the reader.
    pub fn reserve(&self, weight: u64) -> bool {
        let state = self.lock();
        // Within the connection's own bytes a request needs no part of the common budget.
        if wanted(&state, weight) <= state.pooled {
            self.lock_payload(state, weight, 0);
            return true;
        }
        // What is queued holds some of it.
        let state = self.flush_locked(state);
        let more = wanted(&state, weight).saturating_sub(state.pooled);
        drop(state);
        // Without the lock: other threads must be able to send answers, which frees memory.
        let is_taken = self.budget.take(self.holder, more, || self.has_left());
        self.lock_payload(self.lock(), weight, if is_taken { more } else { 0 });
        is_taken
    }

    fn lock_payload(&self, mut state: MutexGuard<'_, State>, weight: u64, more: u64) {
        state.payload = weight;
        state.pooled += more;
        self.give_back(&mut state);
    }

    /// No request comes of what was reserved.
    pub fn unreserve(&self) {
        let mut state = self.lock();
        state.payload = 0;
        self.give_back(&mut state);
    }

    /// Gives back what is not needed any more of the budget of all.
    fn give_back(&self, state: &mut State) {
        // Each connection has `OWN_BYTES` apart; only the rest counts in the budget of all.
        let needed = (state.weight + state.payload).saturating_sub(OWN_BYTES);
        let excess = state.pooled.saturating_sub(needed);
        state.pooled -= excess;
        self.budget.give(self.holder, excess);
    }

    /// Takes a message. The reader's messages leave at its next [`flush`](Self::flush). A message of another
    /// thread leaves at once, as far as the socket takes it; the writing thread sends the rest. Other
    /// threads never wait here, not even for a lock: its holder may have lost its processor.
    pub fn push(&self, message: Message) {
        // The reader batches: one system call sends the answers to all requests that one read brought.
        if thread::current().id() == self.reader {
            self.lock().queue.push_back(message);
            return;
        }
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.wake(Some(message)),
        };
        let mut message = message;
        // Only if no message is before it: bytes on the stream keep their order.
        let all = state.is_quiet() && self.send_now(&mut message);
        if all {
            state.settle(message);
            self.give_back(&mut state);
        } else {
            state.queue.push_back(message);
        }
        // A thread that is sending looks at the queue again before it ends, so it needs no wake-up.
        let (tell, wake) = (all && state.awaited, !all && !state.sending);
        drop(state);
        if tell {
            self.settled.notify_all();
        } else if wake {
            self.wake(None);
        }
    }

    /// Tells the writing thread that there is something to send: this, or what is queued.
    fn wake(&self, message: Option<Message>) {
        // When it has ended, the connection has, and so has everything in flight.
        let _ = self.to_send.send(message);
    }

    /// Sends what goes of a short message without waiting. Whether that was all; an error is left
    /// to who sends the rest.
    fn send_now(&self, message: &mut Message) -> bool {
        if message.left() > AT_ONCE_BYTES_MAX {
            return false;
        }
        let parts: Vec<IoSlice<'_>> = message.slices().map(IoSlice::new).collect();
        // After an error no byte counts as sent: the writing thread meets the same error, and reports it.
        message.sent = self.stream.write_now(&parts).unwrap_or(0);
        message.left() == 0
    }

    /// Sends what is queued, unless somebody is sending, who then sends it. Whether all that was
    /// asked for has been answered then.
    pub fn flush(&self) -> bool {
        self.flush_locked(self.lock()).in_flight == 0
    }

    fn flush_locked<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while !state.sending && !state.queue.is_empty() {
            // `sending` marks this thread as the only sender, so the lock can go while the socket waits.
            let batch = std::mem::take(&mut state.queue);
            let broken = state.broken;
            state.sending = true;
            drop(state);
            // Of a broken connection the queue is only emptied, so that its memory is given back.
            let sent = if broken { Ok(()) } else { self.send(&batch) };
            state = self.lock();
            state.sending = false;
            if let Err(error) = sent
                && !state.broken
            {
                state.broken = true;
                state.failure = Some(error);
                // The reader is to notice, too.
                self.stream.shutdown(Shutdown::Both);
                self.leave();
            }
            // Sent or not, these requests are over: a reader that waits for room must not wait for ever.
            batch.into_iter().for_each(|message| state.settle(message));
            self.give_back(&mut state);
            if state.awaited {
                self.settled.notify_all();
            }
        }
        state
    }

    /// Waits until something has been sent. For the reader.
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        // Set under the lock that the condition releases, so that no signal is lost.
        state.awaited = true;
        let mut state = self.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.awaited = false;
        state
    }

    fn send(&self, batch: &VecDeque<Message>) -> io::Result<()> {
        let parts = batch.iter().flat_map(Message::slices);
        let mut parts: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
        let mut parts = &mut parts[..];
        // Only the first message may have been sent in part: by the thread that answered it.
        IoSlice::advance_slices(&mut parts, batch.front().map_or(0, |first| first.sent));
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.stream.write_all(parts, Some(Instant::now() + self.limits.time_for(bytes)))
    }

    /// The writing thread: sends what others bring, until the end.
    pub fn send_until_ended(&self, inbox: &Receiver<Option<Message>>) {
        while let Ok(message) = inbox.recv() {
            let mut state = self.lock();
            state.queue.extend(message);
            // All that has come meanwhile leaves with the same call.
            state.queue.extend(inbox.try_iter().flatten());
            if self.flush_locked(state).ended {
                return;
            }
        }
    }

    /// Requests answered since the last call, and bytes in flight.
    pub fn progress(&self) -> (u32, u64) {
        let mut state = self.lock();
        (std::mem::take(&mut state.answered), state.weight)
    }

    /// Sends what is queued and waits until at most this many requests and bytes are in flight.
    pub fn wait_for_room(&self, in_flight_max: u32, weight_max: u64) {
        let mut state = self.flush_locked(self.lock());
        while state.in_flight > in_flight_max || state.weight > weight_max {
            state = self.wait(state);
        }
    }

    /// The error that stopped sending, if there was one.
    pub fn take_failure(&self) -> Option<io::Error> {
        self.lock().failure.take()
    }

    /// Ends the connection when everything has been sent.
    pub fn end(&self) {
        let mut state = self.flush_locked(self.lock());
        // Another thread may be in the middle of a message; its end comes after that.
        while state.sending {
            state = self.wait(state);
        }
        state.ended = true;
        drop(state);
        self.wake(None);
        self.stream.finish();
    }

    /// No more requests are to come: what has come is read to its end.
    pub fn close_reading(&self) {
        self.stream.shutdown(Shutdown::Read);
    }

    /// Cuts the connection off.
    pub fn cut(&self) {
        self.lock().broken = true;
        self.stream.shutdown(Shutdown::Both);
        self.leave();
    }

    /// The other end of the connection is closed: no answer reaches the client.
    pub fn hang_up(&self) {
        let mut state = self.lock();
        if !state.broken && !state.ended {
            state.broken = true;
            // Without a request in flight no answer is lost, and a client may hang up like that.
            state.failure = (state.in_flight > 0).then(|| ErrorKind::BrokenPipe.into());
            drop(state);
            self.leave();
        }
    }

    /// From now on this is called when the client takes no answers any more.
    pub fn on_leaving(&self, leaving: Leaving) {
        // The client may have left before the callback was there; then it is called now.
        let _ = self.leaving.set(leaving);
        if self.has_left() {
            self.leave();
        }
    }

    /// True if the client has stopped reading answers: its requests need no work any more.
    pub fn has_left(&self) -> bool {
        self.has_left.load(Ordering::SeqCst)
    }

    /// Tells the service that the client has gone. It may be told more than once.
    pub fn leave(&self) {
        self.has_left.store(true, Ordering::SeqCst);
        if let Some(leaving) = self.leaving.get() {
            leaving();
        }
    }

    /// A buffer that was used before, or an empty one.
    pub fn spare(&self) -> Vec<u8> {
        let mut state = self.lock();
        let spare = state.spare.pop().unwrap_or_default();
        state.spare_bytes -= spare.capacity();
        spare
    }
}

fn wanted(state: &State, weight: u64) -> u64 {
    (state.weight + weight).saturating_sub(OWN_BYTES)
}

impl State {
    /// True if a message that comes now is the next to leave.
    fn is_quiet(&self) -> bool {
        !self.sending && !self.broken && self.queue.is_empty()
    }

    /// A message has been sent or given up: counts its answers, and keeps its memory.
    fn settle(&mut self, message: Message) {
        if let Some(weight) = message.answers {
            self.answered += 1;
            self.in_flight -= 1;
            self.weight -= weight;
        }
        if let Data::Own(data) = message.data
            && data.capacity() > 0
            // Large buffers go back to the system: a connection keeps little memory while it is idle.
            && self.spare_bytes + data.capacity() <= SPARE_BYTES_MAX
        {
            self.spare_bytes += data.capacity();
            self.spare.push(data);
        }
    }
}
