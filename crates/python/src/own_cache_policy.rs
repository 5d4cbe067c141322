//! Cache policies written in Python.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use freewheel::caches::KeyPolicy;
use pyo3::prelude::*;

use crate::fault::Fault;
use crate::job::Watch;
use crate::own_policy::{methods, name_of};

/// A class of cache policies, or whatever makes one when it is called with a capacity in blocks.
pub struct OwnCachePolicy {
    /// Name of the class.
    pub name: String,
    make: Arc<Py<PyAny>>,
}

/// What makes a policy for a cache of so many blocks.
type Make = Box<dyn Fn(u32) -> Box<dyn KeyPolicy> + Send + Sync>;

impl OwnCachePolicy {
    /// A policy that `make` makes.
    pub fn new(make: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = name_of("cache policy", make, "class with hit, admit and remove")?;
        Ok(Self { name, make: Arc::new(make.clone().unbind()) })
    }

    /// What makes a policy for each cache of a run.
    pub fn watched(&self, watch: &Arc<Watch>) -> Make {
        let (name, make, watch) = (self.name.clone(), Arc::clone(&self.make), Arc::clone(watch));
        Box::new(move |capacity| {
            let [hit, admit, remove] = watch.call(|py| {
                let object = make.bind(py).call1((capacity,))?;
                methods("cache policy", &object, ["hit", "admit", "remove"])
            });
            let (name, watch) = (name.clone(), Arc::clone(&watch));
            let held = BTreeSet::new();
            Box::new(InPython { name, hit, admit, remove, watch, capacity, held })
        })
    }
}

/// The policy of a cache, and the keys in it.
struct InPython {
    name: String,
    hit: Py<PyAny>,
    admit: Py<PyAny>,
    remove: Py<PyAny>,
    watch: Arc<Watch>,
    capacity: u32,
    held: BTreeSet<u64>,
}

impl InPython {
    /// The key that left for `key`.
    fn evicted(&self, key: u64, said: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let wrong = |says: String| {
            let says = format!("cache policy {}: admit({key}) {says}", self.name);
            let help = "admit(key) gives the key that leaves a full cache for this one, or None while there is room";
            Err(Fault::Argument(says, help).raise(said.py()))
        };
        if said.is_none() {
            return if self.held.len() < self.capacity as usize {
                Ok(None)
            } else {
                wrong(format!("gave None, and the cache is full: it holds {}", self.capacity))
            };
        }
        match said.extract::<u64>() {
            Ok(evicted) if self.held.contains(&evicted) => Ok(Some(evicted)),
            _ => wrong(format!("gave {}, which is not in the cache", said.repr()?)),
        }
    }
}

impl KeyPolicy for InPython {
    fn hit(&mut self, key: u64) {
        self.watch.call(|py| self.hit.call1(py, (key,)).map(drop));
    }

    fn admit(&mut self, key: u64) -> Option<u64> {
        let evicted = self.watch.call(|py| {
            let said = self.admit.bind(py).call1((key,))?;
            self.evicted(key, &said)
        });
        if let Some(evicted) = evicted {
            self.held.remove(&evicted);
        }
        self.held.insert(key);
        evicted
    }

    fn remove(&mut self, key: u64) {
        self.held.remove(&key);
        self.watch.call(|py| self.remove.call1(py, (key,)).map(drop));
    }
}

impl fmt::Debug for InPython {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("InPython").field("name", &self.name).finish_non_exhaustive()
    }
}
