//! Files: what one is, and files that appear when they are complete.

use std::fs;
use std::io::Read;
use std::path::Path;

use freewheel_trace::{OpenOptions, TraceError, TraceReader, WebLog};

pub use freewheel_trace::{
    Others, PendingFile, is_same_file, open_own, read_text, read_text_up_to, remove_temporary_files,
};

/// The kinds of files that Freewheel reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A trace, in any format that is read.
    Trace,
    /// The TOML file of an experiment.
    Experiment,
    /// The TOML file of a drive.
    Drive,
    /// The disks and files of a JBOD.
    Snapshot,
    /// The log of a web server.
    WebLog,
}

/// No experiment and no drive file is longer; of a longer document only this much is looked at.
const DOCUMENT_BYTES_MAX: u64 = 1 << 20;

impl FileKind {
    /// Kind that the file at `path` is meant as, right or wrong. None for a file of no kind that is known.
    ///
    /// ```
    /// use freewheel::files::FileKind;
    ///
    /// let drive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/atlas10k.toml");
    /// assert_eq!(FileKind::of(drive.as_ref()), Some(FileKind::Drive));
    /// ```
    pub fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        // A trace whose unit of time has to be asked for is one, too.
        if matches!(
            TraceReader::open(path, &OpenOptions::default()),
            Ok(_) | Err(TraceError::UncertainTimeUnit { .. })
        ) {
            return Some(Self::Trace);
        }
        if WebLog::is_one(path) {
            return Some(Self::WebLog);
        }
        // A long document, or one with a fault, is known by a line that only snapshots have.
        let Some(document) = document(path, file.len()) else {
            return has_line(path, "[[disks]]").then_some(Self::Snapshot);
        };
        // A table that one of them cannot do without and the others do not have.
        let tables =
            [("workload", Self::Experiment), ("zones", Self::Drive), ("disks", Self::Snapshot)];
        let found = tables.into_iter().find(|(table, _)| document.contains_key(*table));
        found.map(|(_, kind)| kind)
    }

    /// Message about a file of no kind that has the layout of a web server's log and lacks something that a
    /// log needs. None for any other.
    pub fn nearly_a_web_log(path: &Path) -> Option<String> {
        WebLog::looks_like(path)
    }
}

/// A TOML document that is not too long.
fn document(path: &Path, bytes: u64) -> Option<toml::Table> {
    if bytes > DOCUMENT_BYTES_MAX {
        return None;
    }
    read_text(path).ok()?.parse().ok()
}

/// True if the beginning of a text has this line.
fn has_line(path: &Path, wanted: &str) -> bool {
    let mut start = Vec::new();
    let read =
        fs::File::open(path).and_then(|file| file.take(DOCUMENT_BYTES_MAX).read_to_end(&mut start));
    read.is_ok() && String::from_utf8_lossy(&start).lines().any(|line| line.trim() == wanted)
}

/// Name of a similar file in the folder of a missing `path`, as the end of a message: "; did you mean
/// `disk.toml`?". Empty where none was.
pub fn did_you_mean(path: &Path) -> String {
    if path.symlink_metadata().is_ok() {
        return String::new();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return String::new() };
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    let meant = path.file_name().unwrap_or_default().to_string_lossy();
    freewheel_units::did_you_mean(&meant, names.iter().map(String::as_str))
}
