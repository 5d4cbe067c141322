//! Blocks in memory.

use super::LogicalBlock;
use crate::lru::LruList;

/// Logical blocks in memory in the order of their last use, each clean or dirty.
#[derive(Debug, Clone)]
pub(super) struct BufferCache {
    capacity: u32,
    lru: LruList,
    state: Vec<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Clean,
    Dirty,
}

impl BufferCache {
    pub fn new(capacity: u32, logical_blocks: u32) -> Self {
        let state = vec![State::Absent; logical_blocks as usize];
        Self { capacity, lru: LruList::new(logical_blocks), state }
    }

    pub fn contains(&self, block: LogicalBlock) -> bool {
        self.state[block as usize] != State::Absent
    }

    pub fn is_dirty(&self, block: LogicalBlock) -> bool {
        self.state[block as usize] == State::Dirty
    }

    pub fn is_full(&self) -> bool {
        self.lru.len() == self.capacity
    }

    /// A block is used; it comes into the cache, which must have room for it, if it is not there.
    pub fn use_block(&mut self, block: LogicalBlock) {
        self.put(block, self.is_dirty(block));
    }

    /// As [`Self::use_block`], and from now on it is clean or dirty.
    pub fn put(&mut self, block: LogicalBlock, dirty: bool) {
        if self.contains(block) {
            self.lru.remove(block);
        }
        self.state[block as usize] = if dirty { State::Dirty } else { State::Clean };
        self.lru.push(block);
        assert!(self.lru.len() <= self.capacity, "the cache has room");
    }

    pub fn remove(&mut self, block: LogicalBlock) {
        if self.contains(block) {
            self.lru.remove(block);
            self.state[block as usize] = State::Absent;
        }
    }

    /// Takes out the block that was not used for longest, and says whether it is dirty.
    pub fn evict(&mut self) -> Option<(LogicalBlock, bool)> {
        let oldest = self.lru.oldest()?;
        let dirty = self.is_dirty(oldest);
        self.remove(oldest);
        Some((oldest, dirty))
    }
}
