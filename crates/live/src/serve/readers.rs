//! Data and events of background tasks on their way to who wants them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use freewheel_freeblock::tasks::Extent;
use freewheel_host::tasks::ServedTaskReport;
use freewheel_units::{Lbn, SimTime};
use tokio::sync::mpsc;

/// Data that have been handed on and not been taken, at most: two seconds of free bandwidth of a
/// drive of today.
pub(super) const HANDED_ON_MAX: u64 = 64 << 20;

/// News of a background task.
#[derive(Debug, Clone)]
pub enum News {
    /// Progress of a running task.
    Progress(Box<ServedTaskReport>),
    /// Blocks cannot be read for it.
    Unreadable {
        /// Number of the task.
        task: u64,
        /// Blocks that cannot be read.
        extent: Extent,
    },
    /// The task has begun another round.
    Round(Box<ServedTaskReport>),
    /// The task is over.
    Over(Box<ServedTaskReport>),
}

/// An item for the reader of a task.
#[derive(Debug)]
pub enum Item {
    /// Blocks.
    Data {
        /// The first, of 512 B.
        start: Lbn,
        /// Contents of the blocks.
        data: Vec<u8>,
        /// Time at which they had been read, since the server began.
        at: SimTime,
    },
    /// Blocks that cannot be read.
    Unreadable(Extent),
    /// The end of the data.
    Over(Box<ServedTaskReport>),
}

/// The data of a task, as they come.
#[derive(Debug)]
pub struct Reader {
    items: mpsc::UnboundedReceiver<Item>,
    taken_bytes: Arc<AtomicU64>,
}

impl Reader {
    /// The next item; None when the server has ended. What is taken makes room for more.
    pub async fn next(&mut self) -> Option<Item> {
        let item = self.items.recv().await?;
        if let Item::Data { data, .. } = &item {
            self.taken_bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        Some(item)
    }
}

/// The other end of it.
pub(super) struct Sink {
    pub items: mpsc::UnboundedSender<Item>,
    taken_bytes: Arc<AtomicU64>,
    pub sent: u64,
}

impl Sink {
    pub fn room(&self) -> u64 {
        let under_way = self.sent.saturating_sub(self.taken_bytes.load(Ordering::Relaxed));
        HANDED_ON_MAX.saturating_sub(under_way)
    }
}

/// A reader, and the sink of its data.
pub(super) fn reader() -> (Sink, Reader) {
    let (items, receiver) = mpsc::unbounded_channel();
    let taken_bytes = Arc::new(AtomicU64::new(0));
    let sink = Sink { items, taken_bytes: Arc::clone(&taken_bytes), sent: 0 };
    (sink, Reader { items: receiver, taken_bytes })
}
