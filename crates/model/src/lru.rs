//! Things in the order of their last use.

/// Numbered things (zones, blocks) from the longest unused to the last used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LruList {
    links: Links,
    list: List,
}

impl LruList {
    /// An empty list of things below `count`.
    pub fn new(count: u32) -> Self {
        Self { links: Links(vec![Link::ALONE; count as usize]), list: List::EMPTY }
    }

    pub fn len(&self) -> u32 {
        self.list.len()
    }

    /// Number least recently used.
    pub fn oldest(&self) -> Option<u32> {
        self.list.oldest()
    }

    /// Adds something that is not in the list as the last used.
    pub fn push(&mut self, item: u32) {
        self.list.push(&mut self.links, item);
    }

    /// Takes something that is in the list out of it.
    pub fn remove(&mut self, item: u32) {
        self.list.remove(&mut self.links, item);
    }
}

/// Neighbours of numbered things. Several lists share one array as long as each thing is in one list at
/// a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Links(Vec<Link>);

/// Neighbours in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    older: u32,
    newer: u32,
}

impl Link {
    const ALONE: Self = Self { older: NONE, newer: NONE };
}

impl Links {
    /// Makes room for one more thing, whose number is the count of those before.
    pub fn grow(&mut self) {
        self.0.push(Link::ALONE);
    }

    /// The next more recently used thing in the list of `item`.
    #[inline]
    pub fn newer(&self, item: u32) -> Option<u32> {
        some(self.0[item as usize].newer)
    }

    /// The next less recently used thing in the list of `item`.
    #[inline]
    pub fn older(&self, item: u32) -> Option<u32> {
        some(self.0[item as usize].older)
    }

    /// The neighbours, for a prefetch.
    #[inline]
    pub fn warm_lines(&self, item: u32) {
        prefetch_index::prefetch_index(&self.0, item as usize);
    }
}

/// The ends of a doubly linked list through [`Links`], so that every change costs the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct List {
    oldest: u32,
    newest: u32,
    len: u32,
}

/// No thing: there are fewer than 2^32 - 1.
const NONE: u32 = u32::MAX;

#[inline]
fn some(item: u32) -> Option<u32> {
    (item != NONE).then_some(item)
}

impl List {
    pub const EMPTY: Self = Self { oldest: NONE, newest: NONE, len: 0 };

    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Number least recently used.
    #[inline]
    pub fn oldest(&self) -> Option<u32> {
        some(self.oldest)
    }

    #[inline]
    pub fn newest(&self) -> Option<u32> {
        some(self.newest)
    }

    /// Adds something that is in no list of these links as the last used.
    #[inline]
    pub fn push(&mut self, links: &mut Links, item: u32) {
        links.0[item as usize] = Link { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = item,
            newest => links.0[newest as usize].newer = item,
        }
        self.newest = item;
        self.len += 1;
    }

    /// Adds something that is in no list of these links behind all whose key is no higher. The list is in
    /// ascending order of keys, and `item` belongs near one of its ends: the place is sought from both.
    #[inline]
    pub fn insert<K: Ord>(&mut self, links: &mut Links, item: u32, key: impl Fn(u32) -> K) {
        let (mut older, mut newer) = (self.newest(), self.oldest());
        while let Some(other) = older
            && key(other) > key(item)
        {
            older = links.older(other);
            match newer {
                Some(other) if key(other) <= key(item) => newer = links.newer(other),
                // The first that is newer, from the other end.
                Some(other) => {
                    older = links.older(other);
                    break;
                }
                None => unreachable!("one is newer"),
            }
        }
        if older == self.newest() {
            return self.push(links, item);
        }
        let newer = match older {
            None => std::mem::replace(&mut self.oldest, item),
            Some(older) => std::mem::replace(&mut links.0[older as usize].newer, item),
        };
        links.0[newer as usize].older = item;
        links.0[item as usize] = Link { older: older.unwrap_or(NONE), newer };
        self.len += 1;
    }

    /// Makes what was not used for longest the last used; returns it.
    #[inline]
    pub fn turn(&mut self, links: &mut Links) -> Option<u32> {
        let oldest = self.oldest()?;
        let newer = links.0[oldest as usize].newer;
        if newer != NONE {
            links.0[newer as usize].older = NONE;
            links.0[self.newest as usize].newer = oldest;
            links.0[oldest as usize] = Link { older: self.newest, newer: NONE };
            (self.oldest, self.newest) = (newer, oldest);
        }
        Some(oldest)
    }

    /// Takes something that is in this list out of it.
    #[inline]
    pub fn remove(&mut self, links: &mut Links, item: u32) {
        let Link { older, newer } = links.0[item as usize];
        match older {
            NONE => self.oldest = newer,
            older => links.0[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => links.0[newer as usize].older = older,
        }
        self.len -= 1;
    }

    /// Makes something that is in this list the last used.
    #[inline]
    pub fn renew(&mut self, links: &mut Links, item: u32) {
        if item != self.newest {
            self.remove(links, item);
            self.push(links, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    #[test]
    fn lru_list_stays_ordered_through_turns() {
        let prng = &mut Prng::new(1, "lists");
        let (mut links, mut list) = (Links::default(), List::EMPTY);
        (0..20).for_each(|_| links.grow());
        // The same things with their keys, in order.
        let (mut keys, mut plain) = ([0; 20], Vec::new());
        for step in 0..5_000_u64 {
            let item = prng.below(20) as u32;
            if let Some(at) = plain.iter().position(|&other| other == item) {
                plain.remove(at);
                list.remove(&mut links, item);
            } else if prng.chance(0.2) && !plain.is_empty() {
                assert_eq!(list.turn(&mut links), Some(plain[0]));
                plain.rotate_left(1);
                keys[plain[plain.len() - 1] as usize] = step;
            } else {
                keys[item as usize] = step.saturating_sub(prng.below(30));
                let behind = |other: &&u32| keys[**other as usize] > keys[item as usize];
                let at = plain.len() - plain.iter().rev().take_while(behind).count();
                plain.insert(at, item);
                list.insert(&mut links, item, |item| keys[item as usize]);
            }
            let newer = std::iter::successors(list.oldest(), |&item| links.newer(item));
            assert_eq!(newer.collect::<Vec<_>>(), plain);
            let older = std::iter::successors(list.newest(), |&item| links.older(item));
            assert!(older.eq(plain.iter().rev().copied()));
            assert_eq!(list.len() as usize, plain.len());
        }
    }
}
