//! Somebody else's NBD export as a device.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use freewheel_nbd::{Command, Features, Span, Uri};
use freewheel_units::{BLOCK_BYTES, Blocks};
use thiserror::Error;

use super::{
    Abilities, Back, Backend, BackendCompletion, DeviceCommand, DeviceError, DeviceErrorKind,
    DeviceOp, kind_of,
};
use crate::nbd::{Answer, Client, ClientLimits, ConnectError, Refusal, Refused, RequestError};

/// Reason why an export is no device.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ExportError {
    /// There is no connection to it.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The export takes no writes.
    #[error(
        "{uri}: the export is read-only, and it is to be written: have its server offer it for \
         writing (nbdkit without -r, qemu-nbd without --read-only)"
    )]
    ReadOnly { uri: Box<Uri> },
    /// The system gives no thread for it.
    #[error("{uri}: no thread for it: {source}")]
    Thread { uri: Box<Uri>, source: io::Error },
}

/// Longest data of a command that goes to the socket in the caller's thread: a socket that reports room has
/// more than that.
const AT_ONCE_BYTES_MAX: usize = 4 << 10;

/// An export that is asked over NBD.
pub struct NbdBackend {
    export: Arc<OpenExport>,
    /// To the thread that waits for the socket.
    later: Mutex<Sender<DeviceCommand>>,
    /// Commands that were given to that thread and have not been sent.
    waiting: Arc<AtomicUsize>,
}

/// The connection, and the way back.
struct OpenExport {
    client: Client<Tag>,
    back: Back,
}

/// Identifies the command of an answer.
struct Tag {
    id: u64,
    /// Part of a command that was sent in several, by number.
    part: Option<(Arc<Mutex<Parts>>, usize)>,
}

/// A command longer than the longest payload of the server.
struct Parts {
    left: usize,
    /// Room for what is read.
    data: Vec<u8>,
    /// First error of a part.
    failed: Option<DeviceError>,
}

impl Tag {
    /// Result of the command, if this was the last part to come.
    fn done(self, result: Result<Vec<u8>, DeviceError>) -> Option<Result<Vec<u8>, DeviceError>> {
        let Some((parts, at)) = self.part else { return Some(result) };
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            // The answer to a write has no data.
            Ok(read) if parts.data.len() < at + read.len() => {}
            Ok(read) => parts.data[at..at + read.len()].copy_from_slice(&read),
            Err(failed) => parts.failed = parts.failed.take().or(Some(failed)),
        }
        parts.left -= 1;
        if parts.left > 0 {
            return None;
        }
        let data = std::mem::take(&mut parts.data);
        Some(parts.failed.take().map_or(Ok(data), Err))
    }
}

impl NbdBackend {
    /// Connects to an export that can be written. `lost` is called when the connection is lost; commands fail
    /// with [`DeviceErrorKind::Gone`] from then on. The connection also counts as lost when a command takes
    /// longer than `longest`, if that is given.
    pub fn connect(
        uri: &Uri,
        longest: Option<Duration>,
        back: Back,
        lost: impl FnOnce(DeviceError) + Send + 'static,
    ) -> Result<Self, ExportError> {
        let export = Self::connect_to_read(uri, longest, back, lost)?;
        if export.export.client.info().features.read_only {
            return Err(ExportError::ReadOnly { uri: uri.clone().into() });
        }
        Ok(export)
    }

    /// Connects for reads alone: writes may fail.
    pub fn connect_to_read(
        uri: &Uri,
        longest: Option<Duration>,
        back: Back,
        lost: impl FnOnce(DeviceError) + Send + 'static,
    ) -> Result<Self, ExportError> {
        // The scheduler limits the number of commands.
        let limits = ClientLimits {
            in_flight_max: usize::MAX,
            bytes_in_flight_max: u64::MAX,
            answer: longest,
            ..ClientLimits::default()
        };
        let answers = back.clone();
        let client = Client::connect_watched(
            uri,
            limits,
            move |answer: Answer<Tag>| {
                let Answer { tag, result, data, at, .. } = answer;
                let id = tag.id;
                let result = result.map(|()| data).map_err(|error| failed(&error));
                if let Some(result) = tag.done(result) {
                    answers(BackendCompletion { id, at, result });
                }
            },
            move |why| lost(failed(&why.clone().into())),
        )?;
        let export = Arc::new(OpenExport { client, back });
        let (later, commands) = mpsc::channel::<DeviceCommand>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (sends, count) = (Arc::clone(&export), Arc::clone(&waiting));
        let thread = thread::Builder::new().name("nbd sender".into());
        let thread = thread.spawn(move || {
            for command in commands {
                sends.submit(command);
                count.fetch_sub(1, Ordering::SeqCst);
            }
        });
        thread.map_err(|source| ExportError::Thread { uri: uri.clone().into(), source })?;
        Ok(Self { export, later: Mutex::new(later), waiting })
    }
}

impl OpenExport {
    fn sector_bytes(&self) -> u32 {
        self.client.info().block_sizes.minimum.max(BLOCK_BYTES as u32)
    }

    /// Most bytes that are read or written at once: whole blocks.
    fn payload_max(&self) -> usize {
        let sizes = self.client.info().block_sizes;
        let block = self.sector_bytes();
        // The protocol has it no less than 512 and the minimum.
        (sizes.payload_max - sizes.payload_max % block) as usize
    }

    fn send(&self, command: Command, mut data: Vec<u8>, tag: Tag) {
        let Err(Refused { why, tag }) = self.client.submit(command, &mut data, tag) else { return };
        let kind = match why {
            Refusal::Lost(_) => DeviceErrorKind::Gone,
            Refusal::Invalid(_) | Refusal::Full { .. } => DeviceErrorKind::Invalid,
        };
        let (id, failed) = (tag.id, DeviceError { kind, message: why.to_string() });
        if let Some(result) = tag.done(Err(failed)) {
            (self.back)(BackendCompletion { id, at: Instant::now(), result });
        }
    }

    /// Waits while the server does not read, as long as [`ClientLimits`] allow.
    fn submit(&self, asked: DeviceCommand) {
        let DeviceCommand { id, what, start, data } = asked;
        let (offset, longest) = (start.get() * BLOCK_BYTES, self.payload_max());
        if data.len() <= longest {
            let command = command(what, offset, data.len());
            return self.send(command, data, Tag { id, part: None });
        }
        let (length, is_read) = (data.len(), what == DeviceOp::Read);
        let (room, written) = if is_read { (data, Vec::new()) } else { (Vec::new(), data) };
        let left = length.div_ceil(longest);
        let parts = Arc::new(Mutex::new(Parts { left, data: room, failed: None }));
        for at in (0..length).step_by(longest) {
            let end = length.min(at + longest);
            let data = if is_read { Vec::new() } else { written[at..end].to_vec() };
            let tag = Tag { id, part: Some((Arc::clone(&parts), at)) };
            self.send(command(what, offset + at as u64, end - at), data, tag);
        }
    }
}

fn failed(error: &RequestError) -> DeviceError {
    let kind = match error {
        RequestError::Failed(failure) => kind_of(failure.errno),
        RequestError::Lost(_) => DeviceErrorKind::Gone,
    };
    DeviceError { kind, message: error.to_string() }
}

/// The request to a server, for `length` bytes from `offset` on.
fn command(what: DeviceOp, offset: u64, length: usize) -> Command {
    let length = length as u64;
    match what {
        DeviceOp::Read => Command::Read { span: span(length, offset), dont_fragment: false },
        DeviceOp::Write { fua } => Command::Write { span: span(length, offset), fua },
        DeviceOp::Flush => Command::Flush,
        DeviceOp::Trim { blocks } => {
            Command::Trim { span: span(blocks * BLOCK_BYTES, offset), fua: false }
        }
        DeviceOp::WriteZeroes { blocks, keep } => Command::WriteZeroes {
            span: span(blocks * BLOCK_BYTES, offset),
            fua: false,
            no_hole: keep,
            fast: false,
        },
    }
}

fn span(length: u64, offset: u64) -> Span {
    Span { offset, length: length as u32 }
}

impl Backend for NbdBackend {
    fn blocks(&self) -> Blocks {
        Blocks::new(self.export.client.info().size / BLOCK_BYTES)
    }

    fn abilities(&self) -> Abilities {
        let features = self.export.client.info().features;
        let Features { flush, fua, trim, write_zeroes, .. } = features;
        let (sector_bytes, write_zeroes_kept) = (self.export.sector_bytes(), write_zeroes);
        Abilities {
            sector_bytes,
            physical_bytes: sector_bytes,
            flush,
            fua,
            trim,
            write_zeroes,
            write_zeroes_kept,
        }
    }

    /// Does not wait: what the socket may not take at once is sent by another thread, and then all that
    /// comes after it. For one thread at a time.
    fn submit(&self, command: DeviceCommand) {
        let is_short = !matches!(command.what, DeviceOp::Write { .. })
            || command.data.len() <= AT_ONCE_BYTES_MAX;
        let is_first = self.waiting.load(Ordering::SeqCst) == 0;
        if is_short && is_first && self.export.client.has_room() {
            return self.export.submit(command);
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread ends after this sender has gone.
        let _ = later.send(command);
    }
}
