//! Every policy as its paper writes it down, over plain vectors: the oldest key of a list comes first.

use std::collections::BTreeMap;

use freewheel_model::cache::CachePolicy;

/// A cache of keys, slow and obvious.
pub trait Naive {
    /// A use of a key: whether it was in the cache.
    fn process(&mut self, key: u64) -> bool;

    /// Takes a key out.
    fn remove(&mut self, key: u64);

    /// Keys in the cache.
    fn len(&self) -> usize;
}

/// The oracle of a policy, for at least one key.
pub fn naive(policy: CachePolicy, capacity: usize) -> Box<dyn Naive> {
    match policy {
        CachePolicy::Lru => Box::new(Lru { capacity, keys: Vec::new() }),
        CachePolicy::Arc => Box::new(Arc { capacity, ..Arc::default() }),
        CachePolicy::Lirs => Box::new(Lirs { capacity, ..Lirs::default() }),
        CachePolicy::TwoQ => Box::new(TwoQ { capacity, ..TwoQ::default() }),
        CachePolicy::S3Fifo => Box::new(S3Fifo { capacity, ..S3Fifo::default() }),
        CachePolicy::Sieve => Box::new(Sieve { capacity, ..Sieve::default() }),
        CachePolicy::WTinyLfu => Box::new(WTinyLfu::new(capacity)),
        CachePolicy::Fifo => Box::new(Fifo { capacity, keys: Vec::new() }),
        CachePolicy::Clock => Box::new(Clock { capacity, keys: Vec::new() }),
        CachePolicy::Lfu => Box::new(Lfu { capacity, keys: Vec::new() }),
    }
}

type List = Vec<u64>;

/// Takes a key out of a list; whether it was there.
fn take(list: &mut List, key: u64) -> bool {
    let before = list.len();
    list.retain(|&other| other != key);
    list.len() < before
}

struct Lru {
    capacity: usize,
    keys: List,
}

impl Naive for Lru {
    fn process(&mut self, key: u64) -> bool {
        let hit = take(&mut self.keys, key);
        if self.keys.len() == self.capacity {
            self.keys.remove(0);
        }
        self.keys.push(key);
        hit
    }

    fn remove(&mut self, key: u64) {
        take(&mut self.keys, key);
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Figure 4 of the paper, case by case.
#[derive(Default)]
struct Arc {
    capacity: usize,
    t1: List,
    t2: List,
    b1: List,
    b2: List,
    p: f64,
}

impl Arc {
    fn replace(&mut self, key: u64) {
        let t1 = self.t1.len() as f64;
        let yields = t1 > self.p || self.b2.contains(&key) && t1 == self.p;
        if t1 > 0.0 && yields || self.t2.is_empty() {
            self.b1.push(self.t1.remove(0));
        } else {
            self.b2.push(self.t2.remove(0));
        }
    }

    fn replace_if_full(&mut self, key: u64) {
        if self.len() == self.capacity {
            self.replace(key);
        }
    }
}

impl Naive for Arc {
    fn process(&mut self, key: u64) -> bool {
        let [b1, b2] = [self.b1.len(), self.b2.len()].map(|len| len as f64);
        if take(&mut self.t1, key) || take(&mut self.t2, key) {
            self.t2.push(key);
            return true;
        }
        if self.b1.contains(&key) {
            self.p = (self.p + f64::max(1.0, b2 / b1)).min(self.capacity as f64);
            self.replace_if_full(key);
            take(&mut self.b1, key);
            self.t2.push(key);
            return false;
        }
        if self.b2.contains(&key) {
            self.p = (self.p - f64::max(1.0, b1 / b2)).max(0.0);
            self.replace_if_full(key);
            take(&mut self.b2, key);
            self.t2.push(key);
            return false;
        }
        let all = self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len();
        let was_full = self.len() == self.capacity;
        if self.t1.len() + self.b1.len() == self.capacity {
            if self.t1.len() < self.capacity {
                self.b1.remove(0);
                self.replace_if_full(key);
            } else {
                self.t1.remove(0);
            }
        } else {
            if all >= 2 * self.capacity {
                self.b2.remove(0);
            }
            if was_full {
                self.replace(key);
            }
        }
        self.t1.push(key);
        false
    }

    fn remove(&mut self, key: u64) {
        let _ = take(&mut self.t1, key) || take(&mut self.t2, key);
    }

    fn len(&self) -> usize {
        self.t1.len() + self.t2.len()
    }
}

/// Section 3 of the paper: the stack with everything that has a recency, the queue of resident HIR keys.
#[derive(Default)]
struct Lirs {
    capacity: usize,
    stack: List,
    queue: List,
    lir: List,
    /// Evicted keys in the stack, in the order of eviction.
    ghosts: List,
}

impl Lirs {
    fn lir_capacity(&self) -> usize {
        self.capacity - (self.capacity / 100).max(1)
    }

    fn prune(&mut self) {
        while self.stack.first().is_some_and(|bottom| !self.lir.contains(bottom)) {
            let bottom = self.stack.remove(0);
            take(&mut self.ghosts, bottom);
        }
    }

    fn put_on_top(&mut self, key: u64) {
        take(&mut self.stack, key);
        self.stack.push(key);
    }

    fn becomes_lir(&mut self, key: u64) {
        self.lir.push(key);
        self.put_on_top(key);
        if self.lir.len() > self.lir_capacity() {
            let bottom = self.stack.remove(0);
            assert!(take(&mut self.lir, bottom));
            self.queue.push(bottom);
        }
    }

    fn evict(&mut self) {
        if self.len() == self.capacity {
            let victim = self.queue.remove(0);
            if self.stack.contains(&victim) {
                self.ghosts.push(victim);
            }
        }
    }
}

impl Naive for Lirs {
    fn process(&mut self, key: u64) -> bool {
        let is_resident = self.lir.contains(&key) || self.queue.contains(&key);
        if self.lir.contains(&key) {
            self.put_on_top(key);
        } else if self.queue.contains(&key) {
            take(&mut self.queue, key);
            if self.stack.contains(&key) {
                self.becomes_lir(key);
            } else {
                self.queue.push(key);
                self.put_on_top(key);
            }
        } else {
            self.evict();
            if take(&mut self.ghosts, key) {
                self.becomes_lir(key);
            } else if self.lir.len() < self.lir_capacity() {
                self.lir.push(key);
                self.put_on_top(key);
            } else {
                self.queue.push(key);
                self.put_on_top(key);
            }
        }
        self.prune();
        if self.ghosts.len() > 2 * self.capacity {
            let oldest = self.ghosts.remove(0);
            take(&mut self.stack, oldest);
        }
        is_resident
    }

    fn remove(&mut self, key: u64) {
        if take(&mut self.lir, key) || take(&mut self.queue, key) {
            take(&mut self.stack, key);
            self.prune();
        }
    }

    fn len(&self) -> usize {
        self.lir.len() + self.queue.len()
    }
}

/// The full version of the paper, with its "reclaimfor".
#[derive(Default)]
struct TwoQ {
    capacity: usize,
    am: List,
    a1_in: List,
    a1_out: List,
}

impl TwoQ {
    fn reclaim(&mut self) {
        if self.len() < self.capacity {
            return;
        }
        if self.a1_in.len() > self.capacity / 4 {
            self.a1_out.push(self.a1_in.remove(0));
            if self.a1_out.len() > self.capacity / 2 {
                self.a1_out.remove(0);
            }
        } else {
            self.am.remove(0);
        }
    }
}

impl Naive for TwoQ {
    fn process(&mut self, key: u64) -> bool {
        if take(&mut self.am, key) {
            self.am.push(key);
            return true;
        }
        if take(&mut self.a1_out, key) {
            self.reclaim();
            self.am.push(key);
            return false;
        }
        if self.a1_in.contains(&key) {
            return true;
        }
        self.reclaim();
        self.a1_in.push(key);
        false
    }

    fn remove(&mut self, key: u64) {
        let _ = take(&mut self.am, key) || take(&mut self.a1_in, key);
    }

    fn len(&self) -> usize {
        self.am.len() + self.a1_in.len()
    }
}

/// Algorithm 1 of the paper, with frequencies in a map, and with libCacheSim's start: until something
/// was evicted, what the small queue has no room for goes to the main one.
#[derive(Default)]
struct S3Fifo {
    capacity: usize,
    small: List,
    main: List,
    ghosts: List,
    frequency: BTreeMap<u64, u32>,
    has_evicted: bool,
}

impl S3Fifo {
    fn small_capacity(&self) -> usize {
        (self.capacity / 10).max(1)
    }

    fn evict(&mut self) {
        self.has_evicted = true;
        if self.main.len() > self.capacity - self.small_capacity() || self.small.is_empty() {
            self.evict_main();
        } else {
            self.evict_small();
        }
    }

    fn evict_small(&mut self) {
        while !self.small.is_empty() {
            let key = self.small.remove(0);
            if self.frequency.insert(key, 0).unwrap() > 1 {
                self.main.push(key);
                continue;
            }
            self.ghosts.push(key);
            if self.ghosts.len() > self.capacity * 9 / 10 {
                self.ghosts.remove(0);
            }
            return;
        }
    }

    fn evict_main(&mut self) {
        while !self.main.is_empty() {
            let key = self.main.remove(0);
            let frequency = self.frequency.get_mut(&key).unwrap();
            if *frequency == 0 {
                return;
            }
            *frequency -= 1;
            self.main.push(key);
        }
    }
}

impl Naive for S3Fifo {
    fn process(&mut self, key: u64) -> bool {
        if self.small.contains(&key) || self.main.contains(&key) {
            let frequency = self.frequency.get_mut(&key).unwrap();
            *frequency = (*frequency + 1).min(3);
            return true;
        }
        let was_ghost = take(&mut self.ghosts, key);
        while self.len() == self.capacity {
            self.evict();
        }
        self.frequency.insert(key, 0);
        let is_small_full = self.small.len() >= self.small_capacity();
        if was_ghost || is_small_full && !self.has_evicted {
            self.main.push(key);
        } else {
            self.small.push(key);
        }
        false
    }

    fn remove(&mut self, key: u64) {
        let _ = take(&mut self.small, key) || take(&mut self.main, key);
    }

    fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }
}

/// Algorithm 1 of the paper; the hand is an index.
#[derive(Default)]
struct Sieve {
    capacity: usize,
    keys: List,
    visited: Vec<bool>,
    hand: usize,
}

impl Sieve {
    fn evict(&mut self) {
        while self.visited[self.hand] {
            self.visited[self.hand] = false;
            self.hand = (self.hand + 1) % self.keys.len();
        }
        // The next key is at the hand's index now.
        self.keys.remove(self.hand);
        self.visited.remove(self.hand);
    }
}

impl Naive for Sieve {
    fn process(&mut self, key: u64) -> bool {
        if let Some(at) = self.keys.iter().position(|&other| other == key) {
            self.visited[at] = true;
            return true;
        }
        if self.keys.len() == self.capacity {
            self.evict();
        }
        // Past the newest key, the hand begins again at the oldest: before the new key comes.
        if self.hand == self.keys.len() {
            self.hand = 0;
        }
        self.keys.push(key);
        self.visited.push(false);
        false
    }

    fn remove(&mut self, key: u64) {
        if let Some(at) = self.keys.iter().position(|&other| other == key) {
            self.keys.remove(at);
            self.visited.remove(at);
            self.hand -= usize::from(at < self.hand);
            if self.hand == self.keys.len() {
                self.hand = 0;
            }
        }
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Section 4 of the paper: a window, a main cache of two segments, and frequencies.
struct WTinyLfu {
    capacity: usize,
    window: List,
    probation: List,
    protected: List,
    sketch: Sketch,
}

impl WTinyLfu {
    fn new(capacity: usize) -> Self {
        let [window, probation, protected] = [(); 3].map(|()| Vec::new());
        Self { capacity, window, probation, protected, sketch: Sketch::new(capacity) }
    }

    fn insert(&mut self, key: u64) {
        let window_capacity = (self.capacity / 100).max(1);
        let main_capacity = self.capacity - window_capacity;
        self.window.push(key);
        if self.window.len() <= window_capacity {
            return;
        }
        let candidate = self.window.remove(0);
        if self.probation.len() + self.protected.len() < main_capacity {
            return self.probation.push(candidate);
        }
        let segment =
            if self.probation.is_empty() { &mut self.protected } else { &mut self.probation };
        let Some(&victim) = segment.first() else { return };
        if self.sketch.frequency(candidate) > self.sketch.frequency(victim) {
            segment.remove(0);
            self.probation.push(candidate);
        }
    }
}

impl Naive for WTinyLfu {
    fn process(&mut self, key: u64) -> bool {
        self.sketch.add(key);
        if take(&mut self.window, key) {
            self.window.push(key);
        } else if take(&mut self.protected, key) {
            self.protected.push(key);
        } else if take(&mut self.probation, key) {
            self.protected.push(key);
            let main = self.capacity - (self.capacity / 100).max(1);
            if self.protected.len() > main * 8 / 10 {
                self.probation.push(self.protected.remove(0));
            }
        } else {
            self.insert(key);
            return false;
        }
        true
    }

    fn remove(&mut self, key: u64) {
        let _ = take(&mut self.window, key)
            || take(&mut self.probation, key)
            || take(&mut self.protected, key);
    }

    fn len(&self) -> usize {
        self.window.len() + self.probation.len() + self.protected.len()
    }
}

/// The sketch with a byte for each counter. Keys must share counters as in the packed one, so the hash
/// is the same.
struct Sketch {
    rows: [Vec<u8>; 4],
    additions: usize,
    sample: usize,
}

impl Sketch {
    fn new(capacity: usize) -> Self {
        let width = capacity.next_power_of_two().max(16);
        Self { rows: [(); 4].map(|()| vec![0; width]), additions: 0, sample: 10 * capacity }
    }

    fn columns(&self, key: u64) -> [usize; 4] {
        let hash = |key: u64| {
            let product = u128::from(key ^ 0x243f_6a88_85a3_08d3) * 0x1319_8a2e_0370_7345;
            (product % (1 << 64)) as u64 ^ (product / (1 << 64)) as u64
        };
        let (first, second) = (hash(key), hash(hash(key)));
        let halves = [first >> 32, first % (1 << 32), second >> 32, second % (1 << 32)];
        halves.map(|half| half as usize * self.rows[0].len() / (1 << 32))
    }

    fn frequency(&self, key: u64) -> u8 {
        let columns = self.columns(key);
        (0..4).map(|row| self.rows[row][columns[row]]).min().unwrap()
    }

    fn add(&mut self, key: u64) {
        let (columns, least) = (self.columns(key), self.frequency(key));
        for (row, column) in self.rows.iter_mut().zip(columns) {
            let counter = &mut row[column];
            if *counter == least && least < 15 {
                *counter += 1;
            }
        }
        self.additions += 1;
        if self.additions == self.sample {
            self.rows.iter_mut().flatten().for_each(|counter| *counter /= 2);
            self.additions /= 2;
        }
    }
}

struct Fifo {
    capacity: usize,
    keys: List,
}

impl Naive for Fifo {
    fn process(&mut self, key: u64) -> bool {
        if self.keys.contains(&key) {
            return true;
        }
        if self.keys.len() == self.capacity {
            self.keys.remove(0);
        }
        self.keys.push(key);
        false
    }

    fn remove(&mut self, key: u64) {
        take(&mut self.keys, key);
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Keys with their marks; the hand is at the first.
struct Clock {
    capacity: usize,
    keys: Vec<(u64, bool)>,
}

impl Naive for Clock {
    fn process(&mut self, key: u64) -> bool {
        if let Some((_, mark)) = self.keys.iter_mut().find(|(other, _)| *other == key) {
            *mark = true;
            return true;
        }
        if self.keys.len() == self.capacity {
            while self.keys[0].1 {
                let (passed, _) = self.keys.remove(0);
                self.keys.push((passed, false));
            }
            self.keys.remove(0);
        }
        self.keys.push((key, false));
        false
    }

    fn remove(&mut self, key: u64) {
        self.keys.retain(|(other, _)| *other != key);
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Keys with their uses, in the order of the last one.
struct Lfu {
    capacity: usize,
    keys: Vec<(u64, u32)>,
}

impl Naive for Lfu {
    fn process(&mut self, key: u64) -> bool {
        if let Some(at) = self.keys.iter().position(|(other, _)| *other == key) {
            let (key, uses) = self.keys.remove(at);
            self.keys.push((key, uses + 1));
            return true;
        }
        if self.keys.len() == self.capacity {
            let fewest = self.keys.iter().map(|(_, uses)| *uses).min().unwrap();
            let victim = self.keys.iter().position(|(_, uses)| *uses == fewest).unwrap();
            self.keys.remove(victim);
        }
        self.keys.push((key, 1));
        false
    }

    fn remove(&mut self, key: u64) {
        self.keys.retain(|(other, _)| *other != key);
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}
