//! A header to send, small enough to live on the stack.

use std::ops::Deref;

/// Longest header: a structured hole.
const BYTES_MAX: usize = 32;

/// Bytes to send before the data they belong to, without copying these: write both with one
/// vectored call. It dereferences to its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    bytes: [u8; BYTES_MAX],
    length: u8,
}

impl Head {
    /// Parts one after the other; at most [`BYTES_MAX`] in all.
    #[inline]
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut head = Self { bytes: [0; BYTES_MAX], length: 0 };
        for part in parts {
            let at = usize::from(head.length);
            head.bytes[at..at + part.len()].copy_from_slice(part);
            head.length += part.len() as u8;
        }
        head
    }
}

impl Deref for Head {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}
