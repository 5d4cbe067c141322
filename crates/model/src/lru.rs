//! Things in the order of their last use.

/// A list of numbered things (zones, blocks) from the longest unused to the last used: a doubly
/// linked list through one array, so that every change costs the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LruList {
    links: Vec<Link>,
    oldest: u32,
    newest: u32,
    len: u32,
}

/// Neighbours in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    older: u32,
    newer: u32,
}

/// Nothing: there are fewer than 2^32 - 1.
const NONE: u32 = u32::MAX;

impl LruList {
    /// An empty list of things below `count`.
    pub fn new(count: u32) -> Self {
        let links = vec![Link { older: NONE, newer: NONE }; count as usize];
        Self { links, oldest: NONE, newest: NONE, len: 0 }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    /// What was not used for longest.
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Adds something that is not in the list as the last used.
    pub fn push(&mut self, item: u32) {
        self.links[item as usize] = Link { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = item,
            newest => self.links[newest as usize].newer = item,
        }
        self.newest = item;
        self.len += 1;
    }

    /// Takes something that is in the list out of it.
    pub fn remove(&mut self, item: u32) {
        let Link { older, newer } = self.links[item as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.links[newer as usize].older = older,
        }
        self.len -= 1;
    }
}
