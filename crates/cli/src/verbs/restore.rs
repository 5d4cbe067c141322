//! `freewheel restore`: the way back from backups to a file or a device.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::control::{BlockRange, Chain, Damage, InWords, Restore, Restored};
use freewheel::measures::{Bytes, Table, counted};
use serde::Serialize;

use super::control::blocks;
use super::free_space;
use crate::failure::Failure;
use crate::output;
use crate::progress::Bars;

/// Damaged regions that are named one by one.
const NAMED_MAX: usize = 20;

/// Write a backup, with all those that it is based on, to a file or device, or check it
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel restore /backups/tue.img.manifest
  freewheel restore /backups/tue.img.manifest --to /tmp/disk.img
  freewheel restore /backups/tue.img.manifest --to /dev/sdX

Without --to it reads every needed block, compares the checksums and writes nothing. The manifest
of a backup that was made with --since names its parent: that one's manifest and image are looked
for beside it, and then where they were. A parent that is missing or another one is an error.

The target is read first and written where it is other than the backup, so the same command goes
on after a kill. Then all of it is read back. A new file is called OUT.restoring until then, and
is sparse. A file that is there, a device that is in use, as by a mounted file system, and a larger
device are written with --force only.

What the backup did not select by --extents, --files or --allocated is zeros in a new file, and
stays as it is in a file or device that was there. Blocks that could not be read when the backup
was made become zeros, and make the exit code 1. A damaged MiB is not written: all of them are
named, the rest is restored, and a new file keeps the name OUT.restoring.")]
pub struct RestoreArgs {
    /// Manifest of the backup: F.manifest of a backup F
    manifest: PathBuf,
    /// File or device to write
    #[arg(long, value_name = "PATH")]
    to: Option<PathBuf>,
    /// Overwrite a file, a device that is in use, or the beginning of a larger one
    #[arg(long, requires = "to")]
    force: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    manifest: &'a Path,
    drive: &'a str,
    backups: usize,
    blocks: u64,
    target: Option<&'a Path>,
    written_bytes: u64,
    damaged: &'a [Damage],
    unreadable: &'a [BlockRange],
}

impl RestoreArgs {
    pub fn run(self) -> Result<(), Failure> {
        let chain = Chain::open(&self.manifest)?;
        let (backups, manifest) = (chain.backups(), chain.manifest.clone());
        let bars = Bars::default();
        let (damaged, restored) = match &self.to {
            None => (chain.damaged(|done, all| bars.set("check", done, all)), None),
            Some(to) => {
                let restore = Restore::open(chain, to, self.force)?;
                free_space::note(restore.room(), "the file is to be", "what is zeros takes none");
                let restored = restore.run(|done, all| bars.set("restore", done, all))?;
                (restored.damaged.clone(), Some(restored))
            }
        };
        let document = Document {
            manifest: &self.manifest,
            drive: &manifest.drive,
            backups,
            blocks: manifest.wanted_blocks(),
            target: restored.as_ref().map(|restored| &*restored.target),
            written_bytes: restored.as_ref().map_or(0, |restored| restored.written_bytes),
            damaged: &damaged,
            unreadable: &manifest.unreadable,
        };
        if self.json {
            output::print_document(&document)?;
        } else {
            output::print(&in_words(&document))?;
        }
        self.verdict(&document, restored.as_ref())
    }

    /// Damage, and blocks that the backup lacks, are failures.
    fn verdict(&self, document: &Document<'_>, restored: Option<&Restored>) -> Result<(), Failure> {
        let unreadable: u64 = document.unreadable.iter().map(|range| range.blocks).sum();
        if let [first, ..] = document.damaged {
            let regions = counted(document.damaged.len() as u64, "region");
            let error = Failure::failed(format!(
                "{regions} of the backup cannot be restored, the first of {}: {}",
                first.image.display(),
                first.why
            ));
            let rest = match restored {
                Some(restored) => format!("; the rest is in {}", restored.target.display()),
                None => String::new(),
            };
            return Err(error.with_help(format!(
                "put a sound copy of each named image in its place and give the same command again{rest}"
            )));
        }
        match unreadable {
            0 => Ok(()),
            count => Err(Failure::failed(format!(
                "{} could not be read when the backup was made, and {} zeros in it; {} lists them",
                counted(count, "block"),
                if count == 1 { "is" } else { "are" },
                self.manifest.display()
            ))),
        }
    }
}

fn in_words(document: &Document<'_>) -> String {
    let Document { backups, damaged, target, written_bytes, .. } = document;
    let mut table = Table::new("ll");
    let from = counted(*backups as u64, "backup");
    table.row(["read", &format!("{} of {from}", blocks(document.blocks))]);
    for Damage { range, image, .. } in damaged.iter().take(NAMED_MAX) {
        table.row(["damaged", &format!("{}, in {}", range.in_words(), image.display())]);
    }
    if let Some(more) = damaged.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        table.row(["damaged", &format!("{} more", counted(more as u64, "region"))]);
    }
    match target {
        Some(target) => {
            let written = Bytes::new(*written_bytes).human();
            table.row(["written", &format!("{written} that were other")]);
            table.row(["read back", &target.display().to_string()]);
        }
        None if damaged.is_empty() => {
            table.row(["sound", "every checksum is right"]);
        }
        None => {}
    }
    table.to_string()
}
