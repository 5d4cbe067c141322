//! Error codes of replies.

use std::fmt;

/// Reason why a request failed, as the protocol says it ("Error values").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Errno {
    /// Not permitted: a write to a read-only export.
    Perm = 1,
    /// Input or output failed.
    Io = 5,
    /// No memory.
    NoMem = 12,
    /// An invalid request.
    Inval = 22,
    /// No space: a write beyond the end.
    NoSpc = 28,
    /// Too long.
    Overflow = 75,
    /// A fast zero that would not be fast.
    NotSup = 95,
    /// The server is shutting down.
    Shutdown = 108,
}

impl Errno {
    const ALL: [Errno; 8] = [
        Errno::Perm,
        Errno::Io,
        Errno::NoMem,
        Errno::Inval,
        Errno::NoSpc,
        Errno::Overflow,
        Errno::NotSup,
        Errno::Shutdown,
    ];

    /// The number on the wire.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// The code of a reply; one that the protocol does not know counts as `Inval`, as it asks of
    /// clients.
    pub fn from_code(code: u32) -> Self {
        Self::ALL.into_iter().find(|errno| errno.code() == code).unwrap_or(Errno::Inval)
    }

    /// Error to answer when the operating system said `errno` (Linux numbers): `EROFS` and `EACCES` become
    /// `Perm`, `EDQUOT` and `EFBIG` become `NoSpc`. `Overflow` and `NotSup` have meanings of their own in
    /// the protocol and are never made here; they and all others become `Io`.
    pub fn from_linux(errno: i32) -> Self {
        const EACCES: i32 = 13;
        const EFBIG: i32 = 27;
        const EROFS: i32 = 30;
        const EDQUOT: i32 = 122;
        match errno {
            1 | EACCES | EROFS => Errno::Perm,
            12 => Errno::NoMem,
            22 => Errno::Inval,
            28 | EFBIG | EDQUOT => Errno::NoSpc,
            108 => Errno::Shutdown,
            _ => Errno::Io,
        }
    }

    /// Name in C.
    pub fn name(self) -> &'static str {
        match self {
            Errno::Perm => "EPERM",
            Errno::Io => "EIO",
            Errno::NoMem => "ENOMEM",
            Errno::Inval => "EINVAL",
            Errno::NoSpc => "ENOSPC",
            Errno::Overflow => "EOVERFLOW",
            Errno::NotSup => "ENOTSUP",
            Errno::Shutdown => "ESHUTDOWN",
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
