//! Requests whose data must last: answered when the drive is done and the store's file is synced.
//!
//! A thread syncs, so that neither the drive's thread nor that of a connection waits for a file. One sync
//! is for all requests that came before it began.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use freewheel_model::stats::Distribution;
use freewheel_units::Lbn;
use thiserror::Error;

use super::adapter::Finished;
use super::contents::Contents;
use super::device::Clock;

/// Reasons why a drive did not do a request.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    #[error("{0} cannot be read")]
    Unreadable(Lbn),
    /// Data that must last do not.
    #[error("written data may be missing in the emulated drive's store: {0}")]
    NotStored(Arc<str>),
}

/// Called once with how a request ended.
pub(super) type Answer = Box<dyn FnOnce(Result<(), Fault>) + Send>;

/// Outcome of a request at the drive.
pub(super) fn of_drive(finished: &Finished) -> Result<(), Fault> {
    match finished.bad {
        Some(lbn) => Err(Fault::Unreadable(lbn)),
        None => Ok(()),
    }
}

/// Requests that waited for the store's file.
#[derive(Debug, Clone, Default)]
pub struct SyncAccount {
    /// Requests answered.
    pub requests: u64,
    /// Delay until the file was synced, of requests that the drive had done before.
    pub late: Distribution,
}

/// A request that ends twice: at the drive, and in the store's file. Who is second answers it, so neither
/// waits.
pub(super) struct Both {
    drive: OnceLock<Finished>,
    file: OnceLock<Result<(), Arc<str>>>,
    answer: Mutex<Answer>,
}

impl Both {
    pub fn new(answer: Answer) -> Arc<Self> {
        Arc::new(Self { drive: OnceLock::new(), file: OnceLock::new(), answer: Mutex::new(answer) })
    }

    /// The drive is done.
    pub fn done(self: Arc<Self>, finished: &Finished) {
        let _ = self.drive.set(*finished);
        let _ = self.settle();
    }

    /// The file is synced, or there is none. The drive's end, if that came first.
    pub fn stored(self: Arc<Self>, result: Result<(), Arc<str>>) -> Option<Finished> {
        let _ = self.file.set(result);
        self.settle()
    }

    fn settle(self: Arc<Self>) -> Option<Finished> {
        // Of the two holders exactly one has it to itself.
        let Self { drive, file, answer } = Arc::into_inner(self)?;
        // A drive that ends, or whose client has gone, drops its part; then the answer is dropped.
        let (finished, stored) = (drive.into_inner()?, file.into_inner()?);
        let answer = answer.into_inner().unwrap_or_else(PoisonError::into_inner);
        answer(of_drive(&finished).and(stored.map_err(Fault::NotStored)));
        Some(finished)
    }
}

/// The thread that syncs.
pub(super) struct Syncs {
    /// `None` ends it.
    jobs: Sender<Option<Arc<Both>>>,
    thread: Mutex<Option<JoinHandle<SyncAccount>>>,
}

impl Syncs {
    pub fn start(contents: Arc<Contents>, clock: Clock) -> io::Result<Self> {
        let (jobs, inbox) = mpsc::channel();
        let thread = thread::Builder::new().name("store".into());
        let thread = thread.spawn(move || run(&contents, clock, &inbox))?;
        Ok(Self { jobs, thread: Mutex::new(Some(thread)) })
    }

    /// Answers a request when all that is in the store's file by now is synced.
    pub fn submit(&self, both: Arc<Both>) {
        // A thread that has ended drops it.
        let _ = self.jobs.send(Some(both));
    }

    /// Ends the thread when it has answered all. `None` when it has ended before.
    pub fn finish(&self) -> Option<SyncAccount> {
        let _ = self.jobs.send(None);
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?.join().ok()
    }
}

fn run(contents: &Contents, clock: Clock, inbox: &Receiver<Option<Arc<Both>>>) -> SyncAccount {
    let mut account = SyncAccount::default();
    while let Ok(Some(first)) = inbox.recv() {
        let mut jobs = vec![first];
        let mut is_last = false;
        for job in inbox.try_iter() {
            match job {
                Some(job) => jobs.push(job),
                None => is_last = true,
            }
        }
        let synced = contents.sync();
        for job in jobs {
            account.requests += 1;
            if let Some(finished) = job.stored(synced.clone()) {
                account.late.record(clock.now().saturating_since(finished.at));
            }
        }
        if is_last {
            break;
        }
    }
    account
}

#[cfg(test)]
mod tests {
    use freewheel_units::SimTime;

    use super::*;

    const FINISHED: Finished = Finished { id: 0, at: SimTime::ZERO, bad: None };

    fn both() -> (Arc<Both>, Arc<Both>, Receiver<Result<(), String>>) {
        let (tell, told) = mpsc::channel();
        let answer = move |ended: Result<(), Fault>| {
            tell.send(ended.map_err(|fault| fault.to_string())).unwrap();
        };
        let both = Both::new(Box::new(answer));
        (Arc::clone(&both), both, told)
    }

    #[test]
    fn sync_answered_after_drive_and_file() {
        let (at_drive, in_file, told) = both();
        at_drive.done(&FINISHED);
        assert!(told.try_recv().is_err());
        // The file is late, and so it says whose end was first.
        assert_eq!(in_file.stored(Ok(())), Some(FINISHED));
        assert_eq!(told.try_recv(), Ok(Ok(())));

        let (at_drive, in_file, told) = both();
        assert_eq!(in_file.stored(Err("no room".into())), None);
        assert!(told.try_recv().is_err());
        at_drive.done(&FINISHED);
        assert!(told.try_recv().unwrap().unwrap_err().ends_with("store: no room"));

        // A drive that drops its part drops the answer, so that no request waits for it.
        for drive_is_first in [true, false] {
            let (at_drive, in_file, told) = both();
            let (first, second) =
                if drive_is_first { (Some(at_drive), None) } else { (None, Some(at_drive)) };
            drop(first);
            assert_eq!(in_file.stored(Ok(())), None);
            drop(second);
            assert_eq!(told.recv(), Err(mpsc::RecvError));
        }
    }
}
