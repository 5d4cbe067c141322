//! Memory for data of requests, of all connections of a server together.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Data that each connection may have in flight beside the budget, in bytes: so small requests wait for no
/// large ones of others.
pub(super) const OWN_BYTES: u64 = 1 << 20;

/// How often a connection that waits looks whether its client is still there.
const LOOK: Duration = Duration::from_millis(100);

/// What connections may have in flight together, beyond what each has of its own.
pub(super) struct Budget {
    pool: Mutex<Pool>,
    given: Condvar,
}

struct Pool {
    free: u64,
    /// Most of it that one peer may have, but for one request.
    share: u64,
    of_peers: BTreeMap<u64, u64>,
}

impl Pool {
    /// Takes so much for a peer, if there is as much for it.
    fn take(&mut self, peer: u64, bytes: u64) -> bool {
        let has = self.of_peers.get(&peer).copied().unwrap_or(0);
        let may = bytes <= self.free && (has == 0 || has + bytes <= self.share);
        if may {
            self.free -= bytes;
            self.of_peers.insert(peer, has + bytes);
        }
        may
    }

    fn give(&mut self, peer: u64, bytes: u64) {
        self.free += bytes;
        let has = self.of_peers.remove(&peer).unwrap_or(0);
        if has > bytes {
            self.of_peers.insert(peer, has - bytes);
        }
    }
}

impl Budget {
    /// Of so many bytes, of which one peer may have a half.
    pub fn new(bytes: u64) -> Self {
        let pool = Pool { free: bytes, share: bytes / 2, of_peers: BTreeMap::new() };
        Self { pool: Mutex::new(pool), given: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes so much for a peer, and waits until there is as much; false if it is given up before.
    pub fn take(&self, peer: u64, bytes: u64, is_given_up: impl Fn() -> bool) -> bool {
        if bytes == 0 {
            return true;
        }
        let mut pool = self.lock();
        while !pool.take(peer, bytes) {
            if is_given_up() {
                return false;
            }
            let waited = self.given.wait_timeout(pool, LOOK);
            pool = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Gives back what a peer has taken.
    pub fn give(&self, peer: u64, bytes: u64) {
        if bytes > 0 {
            self.lock().give(peer, bytes);
            self.given.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_has_half_of_the_budget_and_all_have_no_more_than_it() {
        let mut pool = Budget::new(100).pool.into_inner().unwrap();
        assert!(pool.take(1, 40) && !pool.take(1, 11) && pool.take(1, 10));
        assert!(pool.take(2, 50) && !pool.take(3, 1), "all is taken");
        pool.give(1, 20);
        assert!(pool.take(3, 20) && !pool.take(2, 1));
        for (peer, bytes) in [(1, 30), (2, 50), (3, 20)] {
            pool.give(peer, bytes);
        }
        assert!(pool.of_peers.is_empty() && pool.free == 100);
        assert!(pool.take(1, 80), "a request longer than the share goes alone");
    }
}
