//! Memory for data of requests, of all connections of a server together.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::stream::Owner;

/// Data that each connection may have in flight beside the budget, in bytes: so small requests wait for no
/// large ones of others.
pub(super) const OWN_BYTES: u64 = 1 << 20;

/// Interval at which a connection that waits looks whether its client is still there.
const LOOK: Duration = Duration::from_millis(100);

/// Memory that connections may have in flight together, in addition to the minimum of each.
pub(super) struct Budget {
    pool: Mutex<Pool>,
    given: Condvar,
}

/// Holder of the part of the budget that a connection takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryHolder {
    pub peer: u64,
    /// Who has all connections of such peers, if that can be told.
    pub owner: Option<Owner>,
}

struct Pool {
    free: u64,
    /// Most of it that one peer may have, but for one request.
    share: u64,
    of_peers: BTreeMap<u64, u64>,
    /// Share of one owner, who may have many peers: the rest is for others.
    owner_share: u64,
    of_owners: BTreeMap<Owner, u64>,
}

/// Memory that `who` holds.
fn held<K: Ord>(all: &BTreeMap<K, u64>, who: &K) -> u64 {
    all.get(who).copied().unwrap_or(0)
}

fn give_back<K: Ord>(all: &mut BTreeMap<K, u64>, who: K, bytes: u64) {
    let has = all.remove(&who).unwrap_or(0);
    if has > bytes {
        all.insert(who, has - bytes);
    }
}

impl Pool {
    fn new(bytes: u64) -> Self {
        let (share, owner_share) = (bytes / 2, bytes - bytes / 4);
        let (of_peers, of_owners) = (BTreeMap::new(), BTreeMap::new());
        Self { free: bytes, share, of_peers, owner_share, of_owners }
    }

    /// Takes bytes for a peer, if its share has that many.
    fn take(&mut self, MemoryHolder { peer, owner }: MemoryHolder, bytes: u64) -> bool {
        let has = held(&self.of_peers, &peer);
        let of_owner = owner.map_or(0, |owner| held(&self.of_owners, &owner));
        let may = bytes <= self.free
            && fits(has, self.share, bytes)
            && fits(of_owner, self.owner_share, bytes);
        if may {
            self.free -= bytes;
            self.of_peers.insert(peer, has + bytes);
            if let Some(owner) = owner {
                self.of_owners.insert(owner, of_owner + bytes);
            }
        }
        may
    }

    fn give(&mut self, MemoryHolder { peer, owner }: MemoryHolder, bytes: u64) {
        self.free += bytes;
        give_back(&mut self.of_peers, peer, bytes);
        if let Some(owner) = owner {
            give_back(&mut self.of_owners, owner, bytes);
        }
    }
}

fn fits(has: u64, share: u64, bytes: u64) -> bool {
    has == 0 || has + bytes <= share
}

impl Budget {
    /// A budget of `bytes`, of which one peer may have a half, and one owner three quarters.
    pub fn new(bytes: u64) -> Self {
        Self { pool: Mutex::new(Pool::new(bytes)), given: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes for a peer and waits until they are free; false if the wait is given up before.
    pub fn take(&self, holder: MemoryHolder, bytes: u64, is_given_up: impl Fn() -> bool) -> bool {
        if bytes == 0 {
            return true;
        }
        let mut pool = self.lock();
        while !pool.take(holder, bytes) {
            if is_given_up() {
                return false;
            }
            let waited = self.given.wait_timeout(pool, LOOK);
            pool = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Gives back what a peer has taken.
    pub fn give(&self, holder: MemoryHolder, bytes: u64) {
        if bytes > 0 {
            self.lock().give(holder, bytes);
            self.given.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer without a known owner.
    fn peer(peer: u64) -> MemoryHolder {
        MemoryHolder { peer, owner: None }
    }

    #[test]
    fn budget_gives_one_peer_half() {
        let mut pool = Pool::new(100);
        assert!(pool.take(peer(1), 40) && !pool.take(peer(1), 11) && pool.take(peer(1), 10));
        assert!(pool.take(peer(2), 50) && !pool.take(peer(3), 1), "all is taken");
        pool.give(peer(1), 20);
        assert!(pool.take(peer(3), 20) && !pool.take(peer(2), 1));
        for (number, bytes) in [(1, 30), (2, 50), (3, 20)] {
            pool.give(peer(number), bytes);
        }
        assert!(pool.of_peers.is_empty() && pool.free == 100);
        assert!(pool.take(peer(1), 80), "a request longer than the share goes alone");
    }

    #[test]
    fn budget_leaves_quarter_to_other_users() {
        let mut pool = Pool::new(100);
        for (one, other) in [
            (Owner::User(1), Owner::User(2)),
            (Owner::Loopback, Owner::User(2)),
            (Owner::Machine([192, 0, 2, 1].into()), Owner::Machine([192, 0, 2, 2].into())),
        ] {
            let of = |peer, owner| MemoryHolder { peer, owner: Some(owner) };
            let taken = (0..100).filter(|&peer| pool.take(of(peer, one), 5)).count();
            assert_eq!(taken, 15, "{one}");
            assert!(pool.take(of(100, other), 25), "{other}");
            (0..15).for_each(|peer| pool.give(of(peer, one), 5));
            pool.give(of(100, other), 25);
            assert!(pool.of_owners.is_empty() && pool.of_peers.is_empty() && pool.free == 100);
            assert!(pool.take(of(0, one), 90), "a request longer than the share goes alone");
            assert!(!pool.take(of(1, one), 5));
            pool.give(of(0, one), 90);
        }
    }
}
