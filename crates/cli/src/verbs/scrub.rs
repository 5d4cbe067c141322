//! `freewheel scrub`: checks that every block of a served drive can be read, and has its old contents.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::control::{
    ChangesByCause, ControlClient, InWords, Link, Manifest, Record, Task, TaskKind,
};
use freewheel::measures::counted;
use serde::Serialize;

use super::control::{ControlArgs, DetachArgs, PaceArgs, RangeArgs, Watch, ensure_done};
use super::selection::{Selection, SelectionArgs};
use crate::failure::Failure;
use crate::verbs::{scan, tasks};
use crate::{file, output};

/// Read every block of a served drive in its gaps: what cannot be read, and what has changed
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel scrub --control /tmp/disk.control
  freewheel scrub --control /tmp/disk.control --manifest today --against yesterday
  freewheel scrub --control /tmp/disk.control --detach --repeat
  freewheel scrub --control /tmp/disk.control --start 1TiB --length 10GiB
  freewheel scrub --control /tmp/disk.control --allocated --offset 1MiB

A manifest has a checksum for each MiB. --against says which of them are other than they were,
and whether clients have written there since: the server knows of writes as long as it runs, in
regions of a MiB. A region in which nobody has written and which has changed all the same has
changed silently; blocks that cannot be read or have changed silently make the exit code 1. A
MiB of which other blocks were read then than now is not comparable, and said to be so.")]
pub struct ScrubArgs {
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Write checksums of what was read to this file, when all of it was: not of a scrub that begins anew
    #[arg(long, value_name = "FILE", conflicts_with_all = ["detach", "repeat", "start", "length"])]
    manifest: Option<PathBuf>,
    /// Say what has changed since this manifest was written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["detach", "repeat", "start", "length"])]
    against: Option<PathBuf>,
    #[command(flatten)]
    wait: DetachArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    task: &'a Task,
    manifest: Option<&'a Path>,
    changed: Option<&'a ChangesByCause>,
}

impl ScrubArgs {
    pub fn run(self) -> Result<(), Failure> {
        let client = self.control.client()?;
        let old = self.against.as_deref().map(read).transpose()?;
        if let Some(path) = &self.manifest {
            file::ensure_new(path)?;
        }
        let order = self.range.limit(self.pace.order(TaskKind::Scrub))?;
        let mut request = self.wait.request(order);
        let selection = self.selection.limit(&client, &mut request)?;
        request.stream = self.manifest.is_some() || old.is_some();
        let task = self.pace.begin(&client, &request)?;
        if self.wait.detach {
            return tasks::print(&task, self.json, "has begun");
        }
        self.control.abort_on_signals(task.id)?;
        if !request.stream {
            let task = Watch::new(&client, task.id).until_over()?;
            scan::print(&task, self.json)?;
            ensure_done(&task)?;
            return verdict(&task, None);
        }
        let new = sum_up(&client, task.id, &selection)?;
        let changed = old.map(|old| changes(&client, &new, &old)).transpose()?;
        let task = Watch::new(&client, task.id).look()?;
        ensure_done(&task)?;
        let written = self.manifest.as_deref().map(|path| (path, write(path, &new)));
        let manifest =
            written.as_ref().filter(|(_, written)| written.is_ok()).map(|(path, _)| *path);
        // The result of a scrub may have taken days: print it before the manifest, which may fail.
        self.print(&Document { task: &task, manifest, changed: changed.as_ref() })?;
        if let Some((_, written)) = written {
            written?;
        }
        verdict(&task, changed.as_ref())
    }

    fn print(&self, document: &Document<'_>) -> Result<(), Failure> {
        if self.json {
            return output::print_document(document);
        }
        let Document { task, manifest, changed } = document;
        let changes = changed.map(InWords::in_words).unwrap_or_default();
        let checksums = manifest.map(|path| format!("checksums: {}\n", path.display()));
        output::print(&format!("{}{changes}{}", task.in_words(), checksums.unwrap_or_default()))
    }
}

fn write(path: &Path, manifest: &Manifest) -> Result<(), Failure> {
    file::write_together(&[(path, &manifest.text())])
        .map_err(|failure| failure.of_option("--manifest"))
}

fn read(path: &Path) -> Result<Manifest, Failure> {
    let read = Link::read(path).map_err(|error| {
        let failure = Failure::from(error).of_option("--against");
        if path.exists() {
            failure
        } else {
            failure.with_help(
                "give what `freewheel scrub --manifest FILE` wrote, or a backup's F.manifest",
            )
        }
    });
    Ok(read?.manifest)
}

/// Checksums of what a task reads.
fn sum_up(client: &ControlClient, id: u64, selection: &Selection) -> Result<Manifest, Failure> {
    let mut manifest = selection.manifest(&client.status()?);
    let mut watch = Watch::new(client, id);
    let mut data = client.data(id)?;
    loop {
        let record = watch.next_record(&mut data)?;
        manifest.take(&record).map_err(Failure::failed)?;
        if let Record::End(_) = record {
            return Ok(manifest);
        }
    }
}

fn changes(
    client: &ControlClient,
    new: &Manifest,
    old: &Manifest,
) -> Result<ChangesByCause, Failure> {
    let written = client.written(old.written_since_ns())?;
    let is_same = written.instance == old.instance && written.instance == new.instance;
    let ranges = is_same.then_some(&written.ranges[..]);
    let changes = new.changes_by_cause(old, ranges);
    changes.map_err(|error| Failure::failed(format!("--against: {error}")))
}

fn verdict(task: &Task, changed: Option<&ChangesByCause>) -> Result<(), Failure> {
    let silently = changed.map_or(0, |changed| changed.silently.len() as u64);
    match (task.unreadable_blocks, silently) {
        (0, 0) => Ok(()),
        (count, 0) => Err(Failure::failed(format!("{} cannot be read", counted(count, "block")))),
        (0, count) => {
            Err(Failure::failed(format!("silently changed: {}", counted(count, "range"))))
        }
        (unread, changed) => Err(Failure::failed(format!(
            "{} cannot be read; silently changed: {}",
            counted(unread, "block"),
            counted(changed, "range")
        ))),
    }
}
