//! Runs that go on while the interpreter does, show how far they are, and end by Ctrl-C.
//!
//! A run has a thread of its own. The caller's thread waits for it without the interpreter's lock, and looks
//! for signals now and then. A run that is given up unwinds from its next report of progress, so that its
//! files are cleaned up; nobody waits for that. It may call Python, as for a policy of the caller's.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::fault::Fault;

/// Between two looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a run that was given up may take to clean up before the caller goes on.
const CLEAN_UP: Duration = Duration::from_millis(50);
/// As the first thread of a process has.
const STACK_BYTES: usize = 8 << 20;

/// How far a run is, and whether anybody still wants it.
#[derive(Default)]
pub struct Watch {
    done: AtomicU64,
    total: AtomicU64,
    is_given_up: AtomicBool,
}

/// What a run that was given up unwinds with.
struct GivenUp;

/// What a run unwinds with in which Python raised an exception.
struct Raised(PyErr);

impl Watch {
    /// Reports how far the run is. Does not return where the run was given up.
    pub fn report(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.check();
    }

    /// Does not return where the run was given up.
    fn check(&self) {
        if self.is_given_up.load(Ordering::Relaxed) {
            // No panic: it says nothing, and ends in `run`.
            resume_unwind(Box::new(GivenUp));
        }
    }

    /// Calls Python from within a run. An exception there ends the run, and is what `run` fails by.
    pub fn call<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
        self.check();
        match Python::try_attach(call) {
            Some(Ok(value)) => value,
            Some(Err(error)) => resume_unwind(Box::new(Raised(error))),
            // The interpreter ends.
            None => resume_unwind(Box::new(GivenUp)),
        }
    }

    fn amount(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }
}

/// Who is shown how far a run is: `progress=None`, `True`, or what is called with done and total.
struct Audience<'py> {
    call: Option<Bound<'py, PyAny>>,
    told: (u64, u64),
}

impl<'py> Audience<'py> {
    fn new(py: Python<'py>, progress: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        let call = match progress {
            Some(progress) => {
                let call = py.import("freewheel._progress")?.call_method1("shown", (progress,))?;
                (!call.is_none()).then_some(call)
            }
            None => None,
        };
        Ok(Self { call, told: (0, 0) })
    }

    fn tell(&mut self, amount: (u64, u64)) -> PyResult<()> {
        if let Some(call) = self.call.as_ref().filter(|_| amount != self.told && amount.1 > 0) {
            call.call1(amount)?;
            self.told = amount;
        }
        Ok(())
    }
}

/// What a run gives, or what it ended by.
type Ended<T> = Result<Result<T, Fault>, Box<dyn Any + Send>>;

/// Does `work` on a thread of its own until it ends or a signal comes.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<Watch>) -> Result<T, Fault> + Send + 'static,
) -> PyResult<T> {
    let mut audience = Audience::new(py, progress)?;
    let watch = Arc::new(Watch::default());
    let own = Arc::clone(&watch);
    let (tell, told) = mpsc::sync_channel(1);
    let told = Told(Mutex::new(told));
    let thread = thread::Builder::new().name("freewheel".into()).stack_size(STACK_BYTES);
    let started = thread.spawn(move || {
        let ended: Ended<T> = catch_unwind(AssertUnwindSafe(|| work(&own)));
        // Nobody may be waiting any more.
        let _ = tell.send(ended);
    });
    started.map_err(|error| Fault::Other(format!("a thread for the run: {error}")).raise(py))?;
    let ended = wait(py, &told, &watch, &mut audience).inspect_err(|_| {
        watch.is_given_up.store(true, Ordering::Relaxed);
        let _ = told.within(py, CLEAN_UP);
    })?;
    let done = ended.unwrap_or_else(|panic| match panic.downcast::<Raised>() {
        Ok(raised) => Err(Fault::Python(raised.0)),
        Err(panic) => resume_unwind(panic),
    });
    let done = done.map_err(|fault| fault.raise(py))?;
    let (_, total) = watch.amount();
    audience.tell((total, total))?;
    Ok(done)
}

/// Waits for the end of the run. Err for an exception meanwhile, as by Ctrl-C.
fn wait<T: Send>(
    py: Python<'_>,
    told: &Told<T>,
    watch: &Watch,
    audience: &mut Audience<'_>,
) -> PyResult<Ended<T>> {
    loop {
        match told.within(py, LOOK_EVERY) {
            Ok(ended) => return Ok(ended),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals()?;
                audience.tell(watch.amount())?;
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Fault::Other("the run's thread has gone".into()).raise(py));
            }
        }
    }
}

/// Where the end of a run is told. Only so may it be used without the interpreter's lock.
struct Told<T>(Mutex<Receiver<Ended<T>>>);

impl<T: Send> Told<T> {
    /// Waits so long at most, without the lock.
    fn within(&self, py: Python<'_>, time: Duration) -> Result<Ended<T>, RecvTimeoutError> {
        py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(time))
    }
}
