//! Policies of eviction from outside this crate, which know keys and no slots.

use std::fmt;

use super::eviction::{Admission, Eviction};
use super::keys::Keys;

/// A policy of eviction over keys: for trying an idea without the slots that policies here share.
///
/// The cache looks keys up itself. So `hit` and `remove` get keys that are in it, and `admit` one that is not.
///
/// ```
/// use freewheel_model::cache::{KeyCache, KeyPolicy};
///
/// /// Evicts the largest key.
/// #[derive(Debug, Default)]
/// struct Largest(std::collections::BTreeSet<u64>, usize);
///
/// impl KeyPolicy for Largest {
///     fn hit(&mut self, _: u64) {}
///
///     fn admit(&mut self, key: u64) -> Option<u64> {
///         let evicted = if self.0.len() == self.1 { self.0.pop_last() } else { None };
///         self.0.insert(key);
///         evicted
///     }
///
///     fn remove(&mut self, key: u64) {
///         self.0.remove(&key);
///     }
/// }
///
/// let mut cache = KeyCache::with_policy(2, Box::new(Largest(Default::default(), 2)));
/// assert_eq!([1, 9, 2, 1, 9].map(|key| cache.process(key)), [false, false, false, true, false]);
/// ```
pub trait KeyPolicy: Send + fmt::Debug {
    /// A key in the cache is used.
    fn hit(&mut self, key: u64);

    /// A key comes into the cache. Returns the key that leaves for it: one in a full cache, which is another one.
    fn admit(&mut self, key: u64) -> Option<u64>;

    /// A key leaves the cache, as if it had never been there.
    fn remove(&mut self, key: u64);
}

/// Keys in slots for a policy that knows no slots.
#[derive(Debug)]
pub(super) struct ByKey {
    capacity: u32,
    keys: Keys,
    policy: Box<dyn KeyPolicy>,
}

impl ByKey {
    pub fn new(capacity: u32, policy: Box<dyn KeyPolicy>) -> Self {
        Self { capacity, keys: Keys::default(), policy }
    }
}

impl Eviction for ByKey {
    fn keys(&self) -> &Keys {
        &self.keys
    }

    fn is_resident(&self, _: u32) -> bool {
        true
    }

    fn hit(&mut self, slot: u32) {
        self.policy.hit(self.keys.key(slot));
    }

    /// Panics when the policy evicts none from a full cache, or a key that is not in it.
    fn admit(&mut self, key: u64, _: Option<u32>) -> Admission {
        let evicted = self.policy.admit(key).map(|evicted| {
            let slot = self.keys.find(evicted);
            let slot = slot.unwrap_or_else(|| panic!("{evicted} is evicted, and is not there"));
            self.keys.remove(slot);
            slot
        });
        let slot = self.keys.insert(key);
        assert!(self.len() <= self.capacity, "{key} was admitted to a full cache");
        Admission { slot, evicted }
    }

    fn remove(&mut self, slot: u32) {
        self.policy.remove(self.keys.key(slot));
        self.keys.remove(slot);
    }

    fn len(&self) -> u32 {
        self.keys.len() as u32
    }

    fn warm_lines(&self, _: u64) {}

    fn warm_victim(&self) {}
}
