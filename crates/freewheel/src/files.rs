//! Files: what one is, and files that appear when they are complete.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use freewheel_trace::{OpenOptions, TraceReader};

pub use freewheel_trace::{PendingFile, is_same_file, read_text};

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
}

/// No experiment and no drive file is longer: the kind of a longer file is not looked for in its text.
const DOCUMENT_BYTES_MAX: u64 = 1 << 20;

impl FileKind {
    /// What the file at `path` is meant as, right or wrong. None for a file of no kind that is known.
    ///
    /// ```
    /// use freewheel::files::FileKind;
    ///
    /// let drive = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/atlas10k.toml");
    /// assert_eq!(FileKind::of(drive.as_ref()), Some(FileKind::Drive));
    /// ```
    pub fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        if TraceReader::open(path, &OpenOptions::default()).is_ok() {
            return Some(Self::Trace);
        }
        if file.len() > DOCUMENT_BYTES_MAX {
            return None;
        }
        let document: toml::Table = read_text(path).ok()?.parse().ok()?;
        // A table that one of them cannot do without and the others do not have.
        let tables =
            [("workload", Self::Experiment), ("zones", Self::Drive), ("disks", Self::Snapshot)];
        let found = tables.into_iter().find(|(table, _)| document.contains_key(*table));
        found.map(|(_, kind)| kind)
    }
}

/// Which other file of its folder was probably meant by a `path` at which nothing is, as the end of a
/// message: "; did you mean `disk.toml`?". Empty where none was.
pub fn did_you_mean(path: &Path) -> String {
    if path.symlink_metadata().is_ok() {
        return String::new();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return String::new() };
    let name = |entry: io::Result<DirEntry>| entry.ok()?.file_name().into_string().ok();
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    let meant = path.file_name().unwrap_or_default().to_string_lossy();
    freewheel_units::did_you_mean(&meant, names.iter().map(String::as_str))
}
