//! Real time that calls take.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use freewheel_model::stats::Distribution;
use freewheel_units::SimDuration;

/// Times calls, from any thread.
#[derive(Debug, Default)]
pub struct Stopwatch(Mutex<Distribution>);

impl Stopwatch {
    /// Makes the call, and counts how long it took.
    pub fn time(&self, call: impl FnOnce()) {
        let took = timed(call);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).record(took);
    }

    /// Times of the calls so far.
    pub fn times(&self) -> Distribution {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes the call, and says how long it took.
pub fn timed(call: impl FnOnce()) -> SimDuration {
    let began = Instant::now();
    call();
    SimDuration::from_ns(began.elapsed().as_nanos() as u64)
}
