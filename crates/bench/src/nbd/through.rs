//! A file behind NBD without a scheduler.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use freewheel_live::nbd::{Responder, Service};
use freewheel_live::serve::backend::{
    Back, Backend, BackendCompletion, Claim, DeviceCommand, DeviceOp, FileBackend, Io,
};
use freewheel_nbd::{BlockSizes, Command, Errno, Export, Features};
use freewheel_units::{BLOCK_BYTES, Lbn};

type Waiting = Mutex<BTreeMap<u64, (bool, Responder)>>;

/// The file, whose commands go to it as they come.
pub struct LoadRun {
    device: FileBackend,
    waiting: Arc<Waiting>,
    next: AtomicU64,
}

impl LoadRun {
    /// A device for `at_once` commands at a time, for reads only unless `writes`.
    pub fn new(path: &Path, io: Io, at_once: u32, writes: bool) -> Self {
        let waiting = Arc::new(Waiting::default());
        let waits = Arc::clone(&waiting);
        let back: Back = Arc::new(move |BackendCompletion { id, result, .. }| {
            let (reads, responder) =
                waits.lock().expect("nobody panics").remove(&id).expect("it was asked");
            match result.expect("a file that can be read and written") {
                data if reads => responder.data(data),
                _ => responder.done(),
            }
        });
        let claim = if writes { Claim::Exclusive } else { Claim::Read };
        let device = FileBackend::open(path, claim, Some(io), at_once, back);
        let device = device.unwrap_or_else(|error| panic!("{error}"));
        Self { device, waiting, next: AtomicU64::new(0) }
    }

    /// True if it goes past the page cache.
    pub fn is_direct(&self) -> bool {
        self.device.is_direct()
    }
}

impl Service for LoadRun {
    fn export(&self) -> Export {
        Export {
            name: "file".into(),
            description: String::new(),
            size: self.device.blocks().bytes().get(),
            features: Features { flush: true, ..Features::default() },
            block_sizes: BlockSizes { minimum: 512, preferred: 4096, payload_max: 32 << 20 },
            block_sizes_required: false,
        }
    }

    fn submit(&self, command: Command, data: &mut Vec<u8>, responder: Responder) {
        let (what, data) = match command {
            Command::Read { span, .. } => (DeviceOp::Read, responder.buffer(span.length)),
            Command::Write { .. } => (DeviceOp::Write { fua: false }, std::mem::take(data)),
            Command::Flush => (DeviceOp::Flush, Vec::new()),
            _ => return responder.error(Errno::NotSup, "not offered"),
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let start = Lbn::new(command.span().offset / BLOCK_BYTES);
        let waiting = (what == DeviceOp::Read, responder);
        self.waiting.lock().expect("nobody panics").insert(id, waiting);
        self.device.submit(DeviceCommand { id, what, start, data });
    }
}
