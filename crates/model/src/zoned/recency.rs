//! Zones in the order of their last write.

/// A list of zones from the longest unwritten to the last written: a doubly linked list through
/// one array, so that every change costs the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recency {
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

/// No zone: there are fewer than 2^32 - 1.
const NONE: u32 = u32::MAX;

impl Recency {
    /// An empty list of zones below `zones`.
    pub fn new(zones: u32) -> Self {
        let links = vec![Link { older: NONE, newer: NONE }; zones as usize];
        Self { links, oldest: NONE, newest: NONE, len: 0 }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    /// The zone that was not written for longest.
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Adds a zone that is not in the list as the last written.
    pub fn push(&mut self, zone: u32) {
        self.links[zone as usize] = Link { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = zone,
            newest => self.links[newest as usize].newer = zone,
        }
        self.newest = zone;
        self.len += 1;
    }

    /// Takes a zone that is in the list out of it.
    pub fn remove(&mut self, zone: u32) {
        let Link { older, newer } = self.links[zone as usize];
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
