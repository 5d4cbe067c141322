//! A service that answers at once: it shows a server's cost without that of a device.

use std::sync::{Arc, PoisonError, RwLock};

use freewheel_nbd::{Command, Export, Extent, Features, Span};

use super::service::{Responder, Service, SharedPart};

/// Memory is taken and locked in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;

/// From this length on a read is answered with the memory itself, in bytes: copying that would take
/// longer than the rest of the answer.
const SHARED_FROM: u32 = 64 << 10;

/// A disk in memory. Pieces that were never written take none and read as zeroes. What is being sent
/// is not written over: its piece is copied first.
pub struct Memory {
    name: String,
    size: u64,
    pieces: Vec<RwLock<Option<Arc<Vec<u8>>>>>,
    /// A piece that was never written.
    zeroes: Arc<Vec<u8>>,
}

impl Memory {
    /// A disk of `size` bytes, all zero.
    pub fn new(name: &str, size: u64) -> Self {
        let pieces = size.div_ceil(PIECE_BYTES as u64);
        Self {
            name: name.into(),
            size,
            pieces: (0..pieces).map(|_| RwLock::default()).collect(),
            zeroes: Arc::new(vec![0; PIECE_BYTES]),
        }
    }

    /// Calls with every piece of a span: its number, the part of it, and that part of the span.
    fn each(span: Span, mut call: impl FnMut(usize, std::ops::Range<usize>, usize)) {
        let (mut at, end) = (span.offset, span.end());
        while at < end {
            let (number, from) = (at / PIECE_BYTES as u64, (at % PIECE_BYTES as u64) as usize);
            let length = (PIECE_BYTES - from).min((end - at) as usize);
            call(number as usize, from..from + length, (at - span.offset) as usize);
            at += length as u64;
        }
    }

    fn read(&self, span: Span, data: &mut [u8]) {
        Self::each(span, |number, part, at| {
            let piece = self.pieces[number].read().unwrap_or_else(PoisonError::into_inner);
            let data = &mut data[at..at + part.len()];
            match &*piece {
                Some(bytes) => data.copy_from_slice(&bytes[part]),
                None => data.fill(0),
            }
        });
    }

    /// Present contents of a span, piece by piece.
    fn share(&self, span: Span) -> Vec<SharedPart> {
        let mut parts = Vec::new();
        Self::each(span, |number, part, _| {
            let piece = self.pieces[number].read().unwrap_or_else(PoisonError::into_inner);
            let bytes = Arc::clone(piece.as_ref().unwrap_or(&self.zeroes));
            parts.push(SharedPart::new(bytes, part));
        });
        parts
    }

    /// Puts a whole piece in the place of another, whose memory the next one gets, unless it is shared.
    /// False where these bytes are not exactly one piece.
    fn exchange(&self, span: Span, data: &mut Vec<u8>) -> bool {
        let is_piece = span.offset.is_multiple_of(PIECE_BYTES as u64)
            && data.len() == PIECE_BYTES
            && data.capacity() < 2 * PIECE_BYTES;
        if is_piece {
            let new = Arc::new(std::mem::take(data));
            let number = (span.offset / PIECE_BYTES as u64) as usize;
            let mut piece = self.pieces[number].write().unwrap_or_else(PoisonError::into_inner);
            *data = piece.replace(new).and_then(Arc::into_inner).unwrap_or_default();
        }
        is_piece
    }

    /// Changes a span piece by piece; `None` makes it zeroes.
    fn write(&self, span: Span, data: Option<&[u8]>) {
        Self::each(span, |number, part, at| {
            let mut piece = self.pieces[number].write().unwrap_or_else(PoisonError::into_inner);
            match data {
                Some(data) => {
                    let piece = piece.get_or_insert_with(|| vec![0; PIECE_BYTES].into());
                    Arc::make_mut(piece)[part.clone()].copy_from_slice(&data[at..at + part.len()]);
                }
                None if part.len() == PIECE_BYTES => *piece = None,
                None => {
                    if let Some(piece) = &mut *piece {
                        Arc::make_mut(piece)[part].fill(0);
                    }
                }
            }
        });
    }
}

impl Service for Memory {
    fn export(&self) -> Export {
        let features = Features {
            flush: true,
            fua: true,
            trim: true,
            write_zeroes: true,
            fast_zero: true,
            cache: true,
            multi_conn: true,
            dont_fragment: true,
            block_status: true,
            ..Features::default()
        };
        let description = "memory, gone when the server stops".into();
        Export {
            name: self.name.clone(),
            description,
            size: self.size,
            features,
            ..Export::default()
        }
    }

    fn submit(&self, command: Command, data: &mut Vec<u8>, responder: Responder) {
        match command {
            Command::Read { span, .. } if span.length >= SHARED_FROM => {
                responder.shared(self.share(span));
            }
            Command::Read { span, .. } => {
                let mut buffer = responder.buffer(span.length);
                self.read(span, &mut buffer);
                responder.data(buffer);
            }
            Command::BlockStatus { span, .. } => {
                let all = Extent { length: span.length, ..Extent::default() };
                responder.status(&[all]);
            }
            Command::Write { span, .. } => {
                if !self.exchange(span, data) {
                    self.write(span, Some(data));
                }
                responder.done();
            }
            Command::Trim { span, .. } | Command::WriteZeroes { span, .. } => {
                self.write(span, None);
                responder.done();
            }
            Command::Flush | Command::Cache { .. } => responder.done(),
        }
    }
}
