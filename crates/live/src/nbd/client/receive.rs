//! The thread that takes answers in.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use freewheel_nbd::client::{Asked, Event, Reply, Session};
use freewheel_nbd::{Command, Violation};
use thiserror::Error;

use super::super::stream::is_timeout;
use super::{Answer, Lost, RequestError, Shared, lock, weight};

/// Bytes read at once where no data are under way.
const BUFFER_BYTES: usize = 128 << 10;

/// Reads a connection to its end.
pub(super) struct Receiver<T, F> {
    shared: Arc<Shared<T>>,
    session: Session,
    answered: F,
    /// Commands and tags that the callers want back, by cookie, with the value of `waited` at which this
    /// thread learned of each.
    tags: BTreeMap<u64, (Command, T, Duration)>,
    /// Time since it began in which neither requests were being sent nor data were coming at the least rate.
    waited: Duration,
    /// That time when something came last.
    waited_when_it_came: Duration,
    /// Time of the last update of `waited`, and the time that requests had been sent for until then.
    waited_until: Instant,
    sent_for: Duration,
    /// Time of the next look for an overdue answer.
    looks_at: Instant,
    /// Memory of [`Flight::fresh`](super::Flight), to be used again.
    adopted: Vec<(Asked, T)>,
}

/// Reasons why no further answers come.
#[derive(Debug, Error)]
enum Ended {
    #[error(transparent)]
    Violation(#[from] Violation),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "a request has had no answer for {0:?} (data slower than the least rate are no answer)"
    )]
    Overdue(Duration),
}

impl<T, F: FnMut(Answer<T>)> Receiver<T, F> {
    pub fn new(shared: Arc<Shared<T>>, session: Session, answered: F) -> Self {
        let begun = Instant::now();
        Self {
            shared,
            session,
            answered,
            tags: BTreeMap::new(),
            waited: Duration::ZERO,
            waited_when_it_came: Duration::ZERO,
            waited_until: begun,
            sent_for: Duration::ZERO,
            looks_at: begun,
            adopted: Vec::new(),
        }
    }

    /// Answers everything, if need be with the loss of the connection, of which `told` hears first.
    pub fn run(mut self, told: impl FnOnce(&Lost)) {
        let Err(ended) = self.receive();
        let lost = self.shared.lose(&ended);
        if !self.shared.is_ending.load(Ordering::SeqCst) {
            told(&lost);
        }
        // No further request is taken: these are the last.
        let at = Instant::now();
        self.adopt(at);
        for (_, (command, tag, _)) in std::mem::take(&mut self.tags) {
            self.shared.end(weight(command));
            (self.answered)(unanswered(command, tag, &lost, at));
        }
    }

    fn receive(&mut self) -> Result<std::convert::Infallible, Ended> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            // The rest of data goes where it belongs, all else through the buffer.
            let space = self.session.space();
            let in_place = space.is_some();
            let read = self.shared.stream.read(space.unwrap_or(&mut buffer));
            let at = Instant::now();
            let length = match read {
                Ok(0) => {
                    self.session.ended()?;
                    return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
                }
                Ok(length) => length,
                // A part of a record is no answer either.
                Err(error) if is_timeout(&error) || error.kind() == ErrorKind::Interrupted => {
                    self.adopt(at);
                    self.look(at)?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let mut bytes = if in_place { &[][..] } else { &buffer[..length] };
            // What the server answers was asked before.
            self.adopt(at);
            if in_place {
                self.session.filled(length);
                self.were_coming(length as u64);
            }
            self.waited_when_it_came = self.waited;
            while let Some(event) = self.session.feed(&mut bytes)? {
                if let Event::Reply(reply) = event {
                    self.answer(reply, at);
                }
            }
            if at >= self.looks_at {
                self.look(at)?;
            }
        }
    }

    /// True if the oldest request is overdue. Cookies go up.
    fn look(&mut self, now: Instant) -> Result<(), Ended> {
        let limits = self.shared.limits;
        let (Some(longest), Some(pause)) = (limits.answer, limits.look_every()) else {
            return Ok(());
        };
        self.looks_at = now + pause;
        let oldest = self.tags.first_key_value().map(|(_, &(_, _, since))| since);
        if oldest.is_some_and(|since| self.waited.saturating_sub(since) >= longest) {
            Err(Ended::Overdue(longest))
        } else {
            Ok(())
        }
    }

    /// Takes the requests that were made meanwhile, and what sending took.
    fn adopt(&mut self, now: Instant) {
        let mut flight = lock(&self.shared.flight);
        std::mem::swap(&mut self.adopted, &mut flight.fresh);
        let sent_for = flight.sending(now);
        drop(flight);
        let since_then = now.saturating_duration_since(self.waited_until);
        self.waited += since_then.saturating_sub(sent_for - self.sent_for);
        (self.waited_until, self.sent_for) = (now, sent_for);
        for (asked, tag) in self.adopted.drain(..) {
            self.tags.insert(asked.cookie(), (asked.command(), tag, self.waited));
            self.session.expect(asked);
        }
    }

    /// These bytes of data were coming since something came last: that time does not count, as far as the
    /// least rate explains it.
    fn were_coming(&mut self, bytes: u64) {
        let since = self.waited - self.waited_when_it_came;
        self.waited -= since.min(self.shared.limits.time_of(bytes));
        let of_later =
            self.tags.values_mut().rev().take_while(|(_, _, since)| *since > self.waited);
        of_later.for_each(|(_, _, since)| *since = self.waited);
    }

    fn answer(&mut self, reply: Reply, at: Instant) {
        let Reply { cookie, command, result, data, extents } = reply;
        let Some((_, tag, _)) = self.tags.remove(&cookie) else { return };
        // First, so that the caller's function can make another one.
        self.shared.end(weight(command));
        let result = result.map_err(RequestError::Failed);
        (self.answered)(Answer { tag, command, result, data, extents, at });
    }
}

impl<T, F> Drop for Receiver<T, F> {
    /// Answers all requests in flight, also when the caller's function panics.
    fn drop(&mut self) {
        self.shared.lose(&"the thread that receives has ended");
        let mut flight = lock(&self.shared.flight);
        flight.requests = 0;
        let unheard = std::mem::take(&mut flight.fresh);
        drop(flight);
        self.shared.landed.notify_all();
        drop(unheard);
    }
}

fn unanswered<T>(command: Command, tag: T, lost: &Lost, at: Instant) -> Answer<T> {
    let result = Err(RequestError::Lost(lost.clone()));
    Answer { tag, command, result, data: Vec::new(), extents: Vec::new(), at }
}
