//! Notices for the operator of a server. A thread of their own writes them: a terminal that is halted, or a
//! pipe without a reader, holds up this thread and no other.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

/// Notices that wait to be written; further ones are dropped and counted.
const WAITING_MAX: usize = 256;

/// Interval at which a full queue is looked at again.
const LOOK: Duration = Duration::from_millis(10);

/// Sends notices to the operator without waiting. Clones share one queue.
#[derive(Debug, Clone)]
pub struct Notices {
    queue: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

enum Entry {
    Notice(String),
    /// All before it have been written.
    Flush(SyncSender<()>),
}

impl Notices {
    /// Starts the thread, which calls `write` with one notice after the other. Only `write` may wait.
    pub fn start(write: impl FnMut(&str) + Send + 'static) -> io::Result<Self> {
        let (queue, entries) = mpsc::sync_channel(WAITING_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&dropped);
        thread::Builder::new()
            .name("notices".into())
            .spawn(move || write_all(&entries, &count, write))?;
        Ok(Self { queue, dropped })
    }

    /// Hands a notice over. Drops it where too many wait.
    pub fn say(&self, text: &str) {
        if self.queue.try_send(Entry::Notice(text.to_owned())).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all that was said has been written, but no longer than this. Whether it has been.
    pub fn flush(&self, longest: Duration) -> bool {
        let until = Instant::now() + longest;
        let (written, told) = mpsc::sync_channel(1);
        let mut entry = Entry::Flush(written);
        while let Err(TrySendError::Full(back)) = self.queue.try_send(entry) {
            if Instant::now() >= until {
                return false;
            }
            entry = back;
            thread::sleep(LOOK);
        }
        let left = until.saturating_duration_since(Instant::now());
        // A thread that has failed writes no more.
        told.recv_timeout(left) != Err(RecvTimeoutError::Timeout)
    }
}

fn write_all(entries: &Receiver<Entry>, dropped: &AtomicU64, mut write: impl FnMut(&str)) {
    for entry in entries {
        match entry {
            Entry::Notice(text) => write(&text),
            Entry::Flush(written) => drop(written.try_send(())),
        }
        // Those that came while the last one was written.
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            write(&format!(
                "{lost} notices are missing here: they came faster than they were written"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc::channel};

    use super::*;

    #[test]
    fn notices_written_in_order_before_flush() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&written);
        let notices =
            Notices::start(move |text| all.lock().unwrap().push(text.to_owned())).unwrap();
        for number in 0..100 {
            notices.say(&number.to_string());
        }
        assert!(notices.flush(Duration::from_secs(60)));
        let expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(*written.lock().unwrap(), expected);
    }

    #[test]
    fn notices_stalled_writer_blocks_nobody() {
        let (begun, begins) = channel();
        let (go_on, may_go_on) = channel::<()>();
        let written = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&written);
        let notices = Notices::start(move |text| {
            all.lock().unwrap().push(text.to_owned());
            begun.send(()).unwrap();
            // Its end lets all others pass.
            let _ = may_go_on.recv();
        })
        .unwrap();
        notices.say("first");
        begins.recv().unwrap();
        let before = Instant::now();
        (0..10_000).for_each(|number| notices.say(&number.to_string()));
        assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
        assert!(!notices.flush(Duration::from_millis(50)), "it is held up");
        drop(go_on);
        assert!(notices.flush(Duration::from_secs(60)));
        let written = written.lock().unwrap();
        let lost = 10_000 - WAITING_MAX;
        assert!(written[1].starts_with(&format!("{lost} notices are missing")), "{}", written[1]);
        assert_eq!(written.len(), 2 + WAITING_MAX);
    }
}
