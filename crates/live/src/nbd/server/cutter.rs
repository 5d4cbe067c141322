//! Cutting all connections at once, as a power cut does.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{Server, Shared};

/// Time that connections have to notice that they were cut before they are cut again: one may just have
/// come.
const AGAIN: Duration = Duration::from_millis(10);

/// Cuts the connections of a server while it runs.
pub(crate) struct Cutter(Arc<Shared>);

impl Server {
    /// Handle that cuts the server's connections, from another thread.
    pub(crate) fn cutter(&self) -> Cutter {
        Cutter(Arc::clone(&self.shared))
    }
}

impl Cutter {
    /// Cuts all connections: no further answer leaves. `off` is to let go of their requests, as a connection
    /// ends with its last one; it may be called more than once. When no connection is left, and before one is
    /// taken again, `on` is called.
    pub fn cut_all<T>(&self, off: impl Fn(), on: impl FnOnce() -> T) -> T {
        let Self(shared) = self;
        let _gate = shared.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = shared.lock();
        while !state.places.is_empty() {
            state.outboxes.values().for_each(|outbox| outbox.cut());
            off();
            let waited = shared.ended.wait_timeout(state, AGAIN);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        on()
    }
}
