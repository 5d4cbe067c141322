//! Reasons why a copy is not made, with the file that is in the way.

use std::io;
use std::path::PathBuf;

use freewheel_trace::NotOwn;
use freewheel_units::Bytes;
use thiserror::Error;

use super::manifest::{ManifestError, Parent, UnexpectedField};
use crate::control::BlockRange;
use crate::serve::backend::OpenError;

/// Reason why there is no copy.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum BackupError {
    #[error("{}: {source}", path.display())]
    System { path: PathBuf, source: io::Error },
    #[error("{}: is there already: choose another name, or remove it", path.display())]
    Exists { path: PathBuf },
    /// No file is allowed there to be as large as the drive.
    #[error("{}: no file here may have {bytes}: choose another file system, or raise ulimit -f", path.display())]
    TooLarge {
        path: PathBuf,
        /// The size of the drive.
        bytes: Bytes,
    },
    /// There is another file where one is made.
    #[error(
        "{}: is not the rest of a backup: choose another name, or remove it", path.display()
    )]
    Foreign { path: PathBuf },
    /// The file of a copy that continues may be another user's.
    #[error(
        "{}: {source}, and the data of a backup are for its maker alone: choose another name, or remove \
         it to begin anew",
        path.display()
    )]
    NotOwn {
        path: PathBuf,
        /// Reason for the refusal.
        source: NotOwn,
    },
    /// Another process makes it.
    #[error("{}: another backup or restore writes it", path.display())]
    InUse { path: PathBuf },
    /// The record of what is there is none, or of something else.
    #[error("{}: {source}: remove it and begin anew", path.display())]
    Manifest { path: PathBuf, source: ManifestError },
    /// Written data are not those that came.
    #[error(
        "{}: {count} ranges read back differ from what was written, the first from block {} on: the \
         disk that it is on is not to be trusted",
        path.display(), first.first_block
    )]
    Differs { path: PathBuf, first: BlockRange, count: usize },
    /// The server sent blocks that were not requested.
    #[error(transparent)]
    UnexpectedField(#[from] UnexpectedField),
    /// Blocks have not come.
    #[error("{missing} blocks have not come: {} is not complete", path.display())]
    Missing { path: PathBuf, missing: u64 },
    /// Blocks came more than once, so that their checksums are void.
    #[error("{extra} blocks have come twice: {} is not sound", path.display())]
    Twice { path: PathBuf, extra: u64 },
    /// A file that is read as a manifest is none.
    #[error("{}: {source}: give the F.manifest of a backup F", path.display())]
    NoManifest { path: PathBuf, source: ManifestError },
    /// The name of a manifest does not say where the blocks are.
    #[error(
        "{}: its name does not end in .manifest: the manifest of a backup F is F.manifest, beside F",
        path.display()
    )]
    NoImageName { path: PathBuf },
    /// A backup that is not complete is no parent.
    #[error(
        "{}: the backup is not complete: continue it to its end first, or name an earlier one",
        path.display()
    )]
    UnfinishedParent { path: PathBuf },
    /// A backup that is not complete cannot be restored.
    #[error("{}: the backup is not complete: continue it to its end first", path.display())]
    Unfinished { path: PathBuf },
    /// The parent is of another drive.
    #[error("{}: {source}: name a backup of this drive", path.display())]
    OtherDrive {
        /// The manifest of the parent.
        path: PathBuf,
        /// Difference to the parent.
        source: ManifestError,
    },
    /// The copy that continues has another parent, or none.
    #[error(
        "{}: the backup was begun {}: give the same --since, or remove the .partial files to begin anew",
        path.display(), since(parent.as_ref())
    )]
    AnotherParent { path: PathBuf, parent: Option<Parent> },
    /// The parent is not where it was.
    #[error(
        "{}: its parent {file} is neither beside it nor where it was: put that manifest and its image beside it",
        child.display()
    )]
    MissingParent {
        child: PathBuf,
        /// Path at which the parent was.
        file: String,
    },
    /// The parent's manifest is another one.
    #[error(
        "{}: is not the manifest that {} is based on, which has another checksum: put that one there again",
        path.display(), child.display()
    )]
    ChangedParent {
        /// The manifest in the place of the parent.
        path: PathBuf,
        child: PathBuf,
    },
    /// The parents lead back to a child.
    #[error("{}: is based on a backup that is based on it: it was not made so", path.display())]
    Circle {
        /// The manifest that comes again.
        path: PathBuf,
    },
    /// The blocks of a backup are missing.
    #[error(
        "{}: {source}: put the image of the backup there, beside its manifest, or name another backup; \
         the manifest of a scrub has none",
        path.display()
    )]
    Image { path: PathBuf, source: io::Error },
    /// The file with the blocks of a backup has another size.
    #[error(
        "{}: has {found}, and its manifest is of {wanted}: put the whole image there again",
        path.display()
    )]
    ImageSize {
        path: PathBuf,
        found: Bytes,
        /// The size by the manifest.
        wanted: Bytes,
    },
    /// There is a file that would be overwritten.
    #[error(
        "{}: is there already: choose another name, or overwrite it with --force",
        path.display()
    )]
    TargetExists { path: PathBuf },
    /// The target has no room for the drive.
    #[error("{}: has {found}, and the backup is of {wanted}: choose a larger one", path.display())]
    TargetTooSmall {
        path: PathBuf,
        found: Bytes,
        /// The size of the backup.
        wanted: Bytes,
    },
    /// The target is larger than the drive.
    #[error(
        "{}: has {found}, and the backup is of {wanted}: choose one of that size, or write to its beginning with --force",
        path.display()
    )]
    TargetTooLarge {
        path: PathBuf,
        found: Bytes,
        /// The size of the backup.
        wanted: Bytes,
    },
    /// The system has the target in use.
    #[error(
        "{}: is in use ({}): release it first, or overwrite it all the same with --force",
        path.display(), by.join(", ")
    )]
    TargetBusy {
        path: PathBuf,
        /// Users of the file.
        by: Vec<String>,
    },
    /// Another process has the target for itself.
    #[error(
        "{}: another process has it open for itself, as a server or a restore has: end that one first",
        path.display()
    )]
    TargetLocked { path: PathBuf },
    /// The target is part of the backup.
    #[error("{}: belongs to the backup that is restored: choose another target", path.display())]
    TargetOfChain { path: PathBuf },
    /// The target cannot be opened.
    #[error(transparent)]
    Target(OpenError),
}

/// Words for the parent with which a copy was begun.
fn since(parent: Option<&Parent>) -> String {
    parent.map_or("without --since".into(), |parent| format!("with --since {}", parent.file))
}
