//! Progress of the curves.

/// Progress of the curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheProgress<'a> {
    /// First pass over the trace, in bytes of the file.
    Reading {
        /// Read so far.
        done: u64,
        /// Bytes of the file.
        total: u64,
    },
    /// The pass that feeds the caches, in bytes of the file.
    Counting {
        /// Read so far.
        done: u64,
        /// Bytes of the file.
        total: u64,
    },
    /// One run with a drive, in requests.
    Running {
        /// Policy and size.
        run: &'a str,
        /// Issued so far.
        done: u64,
        /// Requests of the trace.
        total: u64,
    },
}

/// Receives progress, perhaps from several threads.
pub type CacheProgressSink<'a> = &'a (dyn Fn(CacheProgress<'_>) + Sync);
