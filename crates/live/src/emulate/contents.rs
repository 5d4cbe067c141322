//! The data of a drive: its store, and in front of that its volatile cache, if it has one.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::store::Store;
use super::volatile::{PowerCut, Volatile, Written};

/// Contents of a drive. Threads of connections and the one that syncs use it; a drive's thread never does,
/// as it must not wait for a file.
pub(crate) struct Contents {
    store: Store,
    volatile: Option<Mutex<Volatile>>,
    /// First error that kept data from the store's file. The system may have dropped them since, so that a
    /// later sync does not report them.
    failed: OnceLock<Arc<str>>,
}

impl Contents {
    pub(super) fn new(store: Store, volatile: Option<Volatile>) -> Self {
        Self { store, volatile: volatile.map(Mutex::new), failed: OnceLock::new() }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// True if a flush has anything to do beside what the drive does.
    pub fn needs_flushes(&self) -> bool {
        self.volatile.is_some() || self.store.is_kept()
    }

    fn volatile(&self) -> Option<MutexGuard<'_, Volatile>> {
        let cache = self.volatile.as_ref()?;
        Some(cache.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads from `offset` on.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let end = offset + data.len() as u64;
        // Before the store: what is destaged meanwhile may be in both, but never in none.
        let cached = self.volatile().map_or_else(Vec::new, |cache| cache.overlay(offset, end));
        self.store.read(offset, data)?;
        for (at, length, what) in cached {
            let from = (at - offset) as usize;
            let part = &mut data[from..from + length as usize];
            match what {
                Written::Data(data) => part.copy_from_slice(&data),
                Written::Zeroes { .. } => part.fill(0),
            }
        }
        Ok(())
    }

    /// Writes from `offset` on; with `fua` past the volatile cache.
    pub fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        let Some(mut cache) = self.volatile() else { return self.store.write(offset, data) };
        let length = data.len() as u64;
        cache.write(&self.store, offset, length, Written::Data(data.into()))?;
        if fua { cache.destage(&self.store, offset, offset + length) } else { Ok(()) }
    }

    /// Makes zeroes, in a hole unless `keep` asks for the room to be kept.
    pub fn zero(&self, offset: u64, length: u64, keep: bool, fua: bool) -> io::Result<()> {
        let Some(mut cache) = self.volatile() else {
            return self.store.zero(offset, length, keep);
        };
        cache.write(&self.store, offset, length, Written::Zeroes { keep })?;
        if fua { cache.destage(&self.store, offset, offset + length) } else { Ok(()) }
    }

    /// Puts all that was written into the store's file, where a kill of the process does not reach it.
    pub fn flush(&self) -> Result<(), Arc<str>> {
        self.lasting(self.volatile().map_or(Ok(()), |mut cache| cache.flush(&self.store)))
    }

    /// Waits until what is in the store's file survives a crash of the machine.
    pub fn sync(&self) -> Result<(), Arc<str>> {
        match self.failed.get() {
            Some(why) => Err(Arc::clone(why)),
            None => self.lasting(self.store.sync()),
        }
    }

    /// The result, or what failed before.
    fn lasting(&self, result: io::Result<()>) -> Result<(), Arc<str>> {
        if let Err(error) = result {
            // Of several failures the first one is kept.
            let _ = self.failed.set(error.to_string().into());
        }
        match self.failed.get() {
            Some(why) => Err(Arc::clone(why)),
            None => Ok(()),
        }
    }

    /// The power goes: what is in the volatile cache reaches the store in part.
    pub fn cut(&self) -> io::Result<PowerCut> {
        self.volatile().map_or(Ok(PowerCut::default()), |mut cache| cache.cut(&self.store))
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Bytes;

    use super::*;

    #[test]
    fn flush_fails_forever_after_failure() {
        let store = Store::anonymous(Bytes::from_kib(64)).unwrap();
        let contents = Contents::new(store, None);
        assert_eq!((contents.flush(), contents.sync()), (Ok(()), Ok(())));
        let failed: Arc<str> = "no".into();
        assert_eq!(contents.lasting(Err(io::Error::other("no"))), Err(Arc::clone(&failed)));
        assert_eq!(contents.lasting(Err(io::Error::other("other"))), Err(Arc::clone(&failed)));
        // The next sync succeeds and does not report the loss.
        assert!(contents.store().sync().is_ok());
        assert_eq!((contents.flush(), contents.sync()), (Err(Arc::clone(&failed)), Err(failed)));
    }
}
