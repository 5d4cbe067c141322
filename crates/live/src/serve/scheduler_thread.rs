//! The scheduler's thread.

use std::hint;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use freewheel_host::{Client, HostScheduler};
use freewheel_nbd::Errno;
use freewheel_units::SimTime;
use tokio::sync::broadcast;

use super::backend::{Backend, DeviceCommand};
use super::machine::{Message, Reply, ServerMachine, Surroundings};
use super::readers::News;
use super::{Notice, Report};
use crate::nbd::{Caller, Responder};

/// Time before a decision at which the thread looks at the clock instead of sleeping.
const SPIN: Duration = Duration::from_micros(100);

/// The state of the scheduler's thread; control asks it by these methods.
pub type SchedulerThread = ServerMachine<RealTime>;

/// The clock, a channel of messages, and a device.
pub struct RealTime {
    began: Instant,
    messages: Receiver<Message<Self>>,
    device: Arc<dyn Backend>,
}

impl Surroundings for RealTime {
    type Stamp = Instant;
    type Reply = Responder;

    fn now(&self) -> SimTime {
        self.time(Instant::now())
    }

    fn time(&self, stamp: Instant) -> SimTime {
        SimTime::from_ns(stamp.saturating_duration_since(self.began).as_nanos() as u64)
    }

    fn next_message(&mut self) -> Option<Message<Self>> {
        self.messages.try_recv().ok()
    }

    fn submit(&mut self, command: DeviceCommand) {
        self.device.submit(command);
    }
}

impl Reply for Responder {
    fn client(&self) -> Client {
        let Caller { peer, connection } = self.caller();
        Client { peer, connection }
    }

    fn data(self, data: Vec<u8>) {
        Responder::data(self, data);
    }

    fn done(self) {
        Responder::done(self);
    }

    fn error(self, errno: Errno, text: &str) {
        Responder::error(self, errno, text);
    }
}

impl SchedulerThread {
    pub(super) fn of(
        scheduler: HostScheduler,
        device: Arc<dyn Backend>,
        messages: Receiver<Message<RealTime>>,
        outlets: (broadcast::Sender<News>, Notice),
    ) -> Self {
        let blocks = device.blocks();
        let surroundings = RealTime { began: Instant::now(), messages, device };
        Self::new(surroundings, (scheduler, blocks), outlets, unix_ns())
    }

    pub(super) fn run(mut self) -> Report {
        loop {
            self.wait();
            if let Some(report) = self.turn() {
                return report;
            }
        }
    }

    /// Waits for a message, or until something has to be decided.
    fn wait(&mut self) {
        // It may have come while something was decided.
        if self.has_messages() {
            return;
        }
        let received = match self.wakes_at() {
            None => self.surroundings.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => self.surroundings.wait_until(until),
        };
        match received {
            Ok(message) => self.defer(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.finish(),
        }
    }
}

impl RealTime {
    fn wait_until(&self, until: SimTime) -> Result<Message<Self>, RecvTimeoutError> {
        let deadline = self.began + Duration::from_nanos(until.ns());
        let asleep = deadline.saturating_duration_since(Instant::now()).saturating_sub(SPIN);
        if !asleep.is_zero() {
            match self.messages.recv_timeout(asleep) {
                Err(RecvTimeoutError::Timeout) => {}
                other => return other,
            }
        }
        while Instant::now() < deadline {
            match self.messages.try_recv() {
                Ok(message) => return Ok(message),
                Err(_) => hint::spin_loop(),
            }
        }
        Err(RecvTimeoutError::Timeout)
    }
}

fn unix_ns() -> u64 {
    // A clock before 1970 tells servers apart as well.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
