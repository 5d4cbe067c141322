//! Watch on the path of a served file.
//!
//! A file whose name was removed, or whose file system was unmounted lazily, is read and written as
//! before, and is gone with the server. Looking for the name may take long, as on a network file system
//! that does not answer: so a separate thread looks.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Ends the watch when it goes.
pub(super) struct Watch {
    _ends: Sender<()>,
}

/// Looks at a path every so often, as long as the file and the returned value are there. The first time that
/// the path does not lead to the file, `notice` is called.
pub(super) fn watch(
    path: &Path,
    file: Weak<File>,
    every: Duration,
    notice: impl FnOnce(&str) + Send + 'static,
) -> io::Result<Watch> {
    let (ends, ended) = mpsc::channel();
    let path = PathBuf::from(path);
    thread::Builder::new().name("watch".into()).spawn(move || {
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(every) {
            let Some(own) = file.upgrade().and_then(|file| file.metadata().ok()) else { return };
            if let Some(why) = lost(&own, fs::metadata(&path)) {
                let path = path.display();
                notice(&format!("{path}: {why}"));
                return;
            }
        }
    })?;
    Ok(Watch { _ends: ends })
}

/// Reason why the file at the path is another one. None where that is not known.
fn lost(own: &Metadata, there: io::Result<Metadata>) -> Option<&'static str> {
    if own.file_type().is_block_device() {
        // A device has its data without a name.
        return None;
    }
    match there {
        _ if own.nlink() == 0 => Some(
            "was removed while it is served: what clients write is lost when this server ends, unless \
             they copy it before",
        ),
        Ok(there) if (there.dev(), there.ino()) != (own.dev(), own.ino()) => Some(
            "is another file now: what clients write goes to the one that was there, which may have \
                 no name any more",
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(
            "is not there any more: it was renamed, or its file system unmounted, and what clients \
                 write goes there all the same",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// The notice after this has happened to a watched file. Checks that it comes once.
    fn said(happens: impl FnOnce(&Path)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        fs::write(&path, "data").unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        let (tell, told) = mpsc::channel();
        let notice = move |text: &str| tell.send(text.to_owned()).unwrap();
        let _watch = watch(&path, Arc::downgrade(&file), Duration::from_millis(1), notice).unwrap();
        assert!(told.recv_timeout(Duration::from_millis(20)).is_err(), "nothing has happened yet");
        happens(&path);
        let text = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(text.starts_with(&format!("{}: ", path.display())), "{text}");
        // The thread has ended, and with it the channel.
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Disconnected));
        text
    }

    #[test]
    fn watch_reports_unlinked_file() {
        let text = said(|path| fs::remove_file(path).unwrap());
        assert!(text.contains("was removed while it is served"), "{text}");
    }

    #[test]
    fn watch_reports_replaced_or_renamed_file() {
        let text = said(|path| {
            let other = path.with_extension("new");
            fs::hard_link(path, path.with_extension("kept")).unwrap();
            fs::write(&other, "other").unwrap();
            fs::rename(&other, path).unwrap();
        });
        assert!(text.contains("is another file now"), "{text}");
        let text = said(|path| fs::rename(path, path.with_extension("old")).unwrap());
        assert!(text.contains("is not there any more"), "{text}");
    }

    #[test]
    fn watch_ends_with_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        fs::write(&path, "data").unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        let (tell, told) = mpsc::channel::<()>();
        let notice = move |_: &str| drop(tell);
        let watch = watch(&path, Arc::downgrade(&file), Duration::from_secs(3600), notice).unwrap();
        drop((file, watch));
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Disconnected));
    }
}
