//! Things in numbered slots: each keeps its slot until it is taken out, and slots are used again.

/// A table of things that are looked up by the number of their slot, in constant time.
///
/// ```
/// use freewheel_model::slab::Slab;
///
/// let mut slab = Slab::default();
/// let (a, b) = (slab.insert("a"), slab.insert("b"));
/// assert_eq!((slab.remove(a), slab.insert("c"), slab[b]), ("a", a, "b"));
/// ```
#[derive(Debug, Clone)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Puts a thing into the slot that became free last, or into the one after all others.
    #[inline]
    pub fn insert(&mut self, thing: T) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize] = Some(thing);
        slot
    }

    /// Takes a thing out. Panics for an empty slot.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a slot in use")
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True if there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: u32) -> &T {
        self.slots[slot as usize].as_ref().expect("a slot in use")
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        self.slots[slot as usize].as_mut().expect("a slot in use")
    }
}
