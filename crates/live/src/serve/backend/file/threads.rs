//! A file by threads, each of which waits for one command at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use rustix::fs::fallocate;

use super::{Opened, Work};
use crate::serve::backend::{Back, DeviceCommand, DeviceOp};
use crate::zero_range;

/// Starts `at_once` of them; they end when the sender has gone.
pub(super) fn start(
    opened: &Arc<Opened>,
    at_once: u32,
    back: &Back,
) -> io::Result<Sender<DeviceCommand>> {
    let (commands, inbox) = mpsc::channel();
    let inbox = Arc::new(Mutex::new(inbox));
    for number in 0..at_once {
        let (opened, inbox, back) = (Arc::clone(opened), Arc::clone(&inbox), Arc::clone(back));
        let name = format!("device {number}");
        thread::Builder::new().name(name).spawn(move || work(&opened, &inbox, &back))?;
    }
    Ok(commands)
}

/// Executes commands until all senders have gone.
fn work(opened: &Opened, inbox: &Mutex<Receiver<DeviceCommand>>, back: &Back) {
    let mut spare = Vec::new();
    loop {
        let next = inbox.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(command) = next else { return };
        let came = match opened.begin(command, &mut spare) {
            Ok(mut work) => {
                let done = wait_for(&opened.file, &mut work);
                opened.end(work, Instant::now(), done, &mut spare)
            }
            Err(came) => came,
        };
        back(came);
    }
}

fn wait_for(file: &File, work: &mut Work) -> io::Result<()> {
    let (offset, buffer) = (work.offset, &mut work.buffer);
    match work.what {
        DeviceOp::Flush => file.sync_data(),
        DeviceOp::Write { .. } => file.write_all_at(buffer.bytes(), offset),
        DeviceOp::Read => file.read_exact_at(buffer.bytes_mut(), offset),
        DeviceOp::Trim { .. } | DeviceOp::WriteZeroes { .. } => {
            let (how, length) = (zero_range::how(work.keeps_room()), work.length);
            fallocate(file, how, offset, length).map_err(io::Error::from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::backend::file::Buffer;

    #[test]
    fn flush_asks_for_sync() {
        let (what, buffer) = (DeviceOp::Flush, Buffer::of(Vec::new()));
        let mut work = Work { id: 1, what, offset: 0, length: 0, buffer, data: Vec::new() };
        // The system refuses to sync this file.
        let done = wait_for(&File::open("/dev/null").unwrap(), &mut work);
        assert_eq!(done.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
