//! A service whose answers the test gives, when it likes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use freewheel_live::nbd::{Caller, Responder, Service};
use freewheel_nbd::{Command, Export, Features};

use super::STALLED_REQUESTS_MAX;

/// Holds every request until the test takes it. Clones share what is held.
#[derive(Clone, Default)]
pub struct Held {
    requests: Arc<(Mutex<Vec<Request>>, Condvar)>,
    left: Arc<AtomicUsize>,
}

pub type Request = (Command, Responder);

impl Held {
    /// Waits until `count` requests are held, and takes them.
    pub fn take(&self, count: usize) -> Vec<Request> {
        let (requests, changed) = &*self.requests;
        let guard = requests.lock().unwrap();
        let few = |held: &mut Vec<_>| held.len() < count;
        let (mut guard, _) = changed.wait_timeout_while(guard, STALLED_REQUESTS_MAX, few).unwrap();
        assert!(guard.len() >= count, "{} requests came, not {count}", guard.len());
        guard.drain(..count).collect()
    }

    /// Number of times that the service was told that a client has gone; more than once for some.
    pub fn times_left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }

    /// True if the service was told that a client has gone.
    pub fn has_left(&self) -> bool {
        self.times_left() > 0
    }

    /// Number of requests held now.
    pub fn count(&self) -> usize {
        self.requests.0.lock().unwrap().len()
    }
}

impl Service for Held {
    fn export(&self) -> Export {
        let features = Features { flush: true, cache: true, ..Features::default() };
        Export { name: "held".into(), size: 1 << 30, features, ..Export::default() }
    }

    fn submit(&self, command: Command, _: &mut Vec<u8>, responder: Responder) {
        self.requests.0.lock().unwrap().push((command, responder));
        self.requests.1.notify_all();
    }

    fn left(&self, _: Caller) {
        self.left.fetch_add(1, Ordering::SeqCst);
    }
}

/// Answers a read with this byte throughout, and anything else with success.
pub fn answer((command, responder): Request, byte: u8) {
    match command {
        Command::Read { span, .. } => {
            let mut data = responder.buffer(span.length);
            data.fill(byte);
            responder.data(data);
        }
        _ => responder.done(),
    }
}
