//! The keys that a cache knows, in numbered slots.

use prefetch_index::prefetch_index;

use super::index::KeyIndex;

/// Keys in slots: those of resident data, and ghosts.
///
/// A slot keeps its number as long as its key is known, so data of the key can lie beside it. Memory
/// follows the number of keys that are known at once: 8 bytes each, where an entry of the crate `slab`
/// takes 16 and says in each look-up whether it is in use.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    index: KeyIndex,
    keys: Vec<u64>,
    free: Vec<u32>,
}

impl Keys {
    /// Number of known keys.
    #[inline]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Slot of a key that is known.
    #[inline]
    pub fn find(&self, key: u64) -> Option<u32> {
        self.index.find(key, |slot| self.keys[slot as usize])
    }

    /// The key in a slot.
    #[inline]
    pub fn key(&self, slot: u32) -> u64 {
        self.keys[slot as usize]
    }

    /// A slot for a key that is not known yet: a free one, or the one after all others. Panics at
    /// 2^32 - 1 keys.
    #[inline]
    pub fn insert(&mut self, key: u64) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| self.grow());
        self.keys[slot as usize] = key;
        self.index.insert(key, slot);
        slot
    }

    fn grow(&mut self) -> u32 {
        let slot = u32::try_from(self.keys.len()).ok().filter(|&slot| slot < u32::MAX);
        self.keys.push(0);
        slot.expect("fewer than 2^32 - 1 keys")
    }

    /// Forgets the key in a slot.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        self.index.remove(self.key(slot), slot);
        self.free.push(slot);
    }

    /// Forgets the key in a slot for another one that is not known yet.
    #[inline]
    pub fn replace(&mut self, slot: u32, key: u64) {
        self.index.remove(self.key(slot), slot);
        self.keys[slot as usize] = key;
        self.index.insert(key, slot);
    }

    /// Announces that `key` will be looked for soon.
    #[inline]
    pub fn warm_lines(&self, key: u64) {
        self.index.warm_lines(key);
    }

    /// The slot that `key` has most likely, once its [`Self::warm_lines`] is done; announces its key.
    #[inline]
    pub fn warm_slot(&self, key: u64) -> Option<u32> {
        let slot = self.index.likely(key)?;
        prefetch_index(&self.keys, slot as usize);
        Some(slot)
    }
}
