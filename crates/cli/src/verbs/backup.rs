//! `freewheel backup`: a copy of a served drive, as of one moment.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::control::{
    Backup, BlockRange, ControlClient, InWords, Link, Manifest, REGION_BLOCKS, Record, Task,
    TaskKind, TaskRequest, TaskState,
};
use freewheel::measures::{BLOCK_BYTES, counted};
use serde::Serialize;

use super::control::{ControlArgs, PaceArgs, Watch, blocks, ensure_done};
use super::free_space;
use super::selection::{Selection, SelectionArgs};
use crate::failure::Failure;
use crate::{file, output};

/// Copy a served drive to a file in its gaps, as of the moment at which it begins
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel backup /backups/disk.img --control /tmp/disk.control
  freewheel backup /backups/disk.img --control /tmp/disk.control --allocated
  freewheel backup /backups/tue.img --since /backups/disk.img.manifest --control /tmp/disk.control

What a client is about to write over is read first, and the write waits for that: the copy is
what was on the drive when the command began; of requests that were under way at that moment
each block of 512 B may be in it or not, as after a loss of power. The file is sparse. It is
called OUT.partial until all of it is there and was read back; OUT.manifest then has its
checksums. It is read back after the system was asked to drop it from memory, so from the disk
it is on, or from that disk's own buffer; a file system that keeps files in memory does not heed
that. No file that is there already is written over.

One that was cut off goes on when the same command is given again while the server still runs:
it keeps what clients have not written since, and is then a copy as of that later moment. What
is kept are MiB of which all blocks had come: with --block-size 1MiB all that had come, but fewer
gaps are long enough for it; with small blocks little before the end. Clients that write make 1MiB
a bad choice: each write copies a MiB, and a backup that does not take 64 MiB of copies in time
fails. OUT.partial is continued only if it is this user's alone. What is there is put on
record every 2 s, or after 16 times what that takes where that is longer, and when the command
fails: one that is killed loses what came after the last record. Blocks that cannot be read are
zeros in the copy, and make the exit code 1.

With --extents, --files or --allocated the copy is as large as the drive, and zeros elsewhere; it
goes on with the same extents only.

With --since every block is read all the same, as a drive has no list of what has changed. A MiB
whose checksum is that of the earlier backup is a hole in the file; until all of its blocks have
come it takes room. `freewheel restore` puts the backups together.")]
pub struct BackupArgs {
    /// File to make
    out: PathBuf,
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Store only what has another checksum than in the backup with this manifest
    #[arg(long, value_name = "MANIFEST")]
    since: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    out: &'a Path,
    task: &'a Task,
    kept_blocks: u64,
    since: Option<&'a Path>,
    stored_blocks: u64,
    unreadable: &'a [BlockRange],
}

impl BackupArgs {
    pub fn run(self) -> Result<(), Failure> {
        let mut asked = TaskRequest::from(self.pace.order(TaskKind::Backup));
        if !asked
            .order
            .block_size
            .is_none_or(|block| (REGION_BLOCKS * BLOCK_BYTES).is_multiple_of(block.get().max(1)))
        {
            return Err(Failure::wrong_use(
                "--block-size: a backup continues by whole MiB, so a power of two up to 1MiB is allowed",
            ));
        }
        let client = self.control.client()?;
        if Backup::name_manifest(&self.out)? {
            output::note(&is_complete(&self.out));
        }
        file::ensure_new(&self.out)?;
        let selection = self.selection.limit(&client, &mut asked)?;
        let empty = selection.manifest(&client.status()?);
        let (instance, wanted) = (empty.instance.clone(), empty.wanted_blocks());
        let mut backup = self.open(empty)?;
        free_space::note(backup.room(), "the copy is to be", "what is zeros takes none");
        if backup.foreign() > 0 {
            output::note(&begins_anew(backup.foreign()));
        }
        let request = backup.request(&asked);
        let id = match self.pace.create(&client, &request) {
            Ok(task) => task.id,
            Err(error) => {
                backup.discard();
                return Err(error);
            }
        };
        self.control.abort_on_signals(id)?;
        let task = match self.copy(&client, id, &mut backup, (&selection, wanted)) {
            Ok(task) => task,
            Err(error) => {
                let is_there = client.status().is_ok_and(|now| now.instance == instance);
                let is_lost = client.task(id).is_ok_and(|task| task.state == TaskState::Lost);
                return Err(keep(backup, error, is_there && !is_lost));
            }
        };
        let stored = backup.stored();
        let manifest = backup.finish()?;
        // Of what was there, clients may have written over some.
        self.print(&task, (wanted - task.blocks, stored), &manifest)
    }

    /// Begins or continues the copy with this manifest, since an earlier one if that is named.
    fn open(&self, empty: Manifest) -> Result<Backup, Failure> {
        let Some(path) = &self.since else { return Ok(Backup::open(&self.out, empty)?) };
        let parent = Link::read(path).map_err(|error| Failure::from(error).of_option("--since"))?;
        Ok(Backup::open_since(&self.out, empty, parent)?)
    }

    /// Takes what a task of `all` selected blocks reads, to its end.
    fn copy(
        &self,
        client: &ControlClient,
        id: u64,
        backup: &mut Backup,
        (selection, all): (&Selection, u64),
    ) -> Result<Task, Failure> {
        let mut watch = Watch::new(client, id);
        let mut data = client.data(id)?;
        selection.ensure_current(client)?;
        if backup.kept() > 0 {
            // Since it began, the task knows what clients have written of what was there.
            output::note(&goes_on(all - client.task(id)?.blocks, all));
        }
        self.pace.remark(client);
        loop {
            let record = watch.next_record(&mut data)?;
            backup.take(&record)?;
            if let Record::End(_) = record {
                break;
            }
        }
        let task = watch.look()?;
        ensure_done(&task)?;
        Ok(task)
    }

    fn print(
        &self,
        task: &Task,
        (kept, stored): (u64, u64),
        manifest: &Manifest,
    ) -> Result<(), Failure> {
        if self.json {
            output::print_document(&Document {
                out: &self.out,
                task,
                kept_blocks: kept,
                since: self.since.as_deref(),
                stored_blocks: stored,
                unreadable: &manifest.unreadable,
            })?;
        } else {
            let kept = match kept {
                0 => String::new(),
                kept => format!("{} were there from before\n", blocks(kept)),
            };
            let out = self.out.display();
            let since = self.since.as_deref().map(|since| is_left_out(stored, manifest, since));
            let parts = [kept, since.unwrap_or_default()].concat();
            output::print(&format!("{}{parts}read back and right: {out}\n", task.in_words()))?;
        }
        match task.unreadable_blocks {
            0 => Ok(()),
            blocks => Err(Failure::failed(format!(
                "{} could not be read and are zeros in {}; {}.manifest lists them",
                counted(blocks, "block"),
                self.out.display(),
                self.out.display()
            ))),
        }
    }
}

fn is_left_out(stored: u64, manifest: &Manifest, since: &Path) -> String {
    let all = blocks(manifest.wanted_blocks());
    format!("stored {} of {all}, the rest is as in {}\n", blocks(stored), since.display())
}

fn is_complete(out: &Path) -> String {
    let out = out.display();
    format!(
        "{out} is complete, and {out}.manifest has its name now: its backup was killed before that"
    )
}

fn goes_on(kept: u64, all: u64) -> String {
    format!("going on: {} of {} are there and unchanged", blocks(kept), blocks(all))
}

fn begins_anew(foreign: u64) -> String {
    format!(
        "beginning anew: the {} in the file came from another server, or from this one before a restart, so \
         the writes since then are unknown",
        blocks(foreign)
    )
}

/// Records the progress, and says how to continue. A server without its device cannot continue the
/// backup: it has to be restarted.
fn keep(mut backup: Backup, error: Failure, can_go_on: bool) -> Failure {
    let help = if can_go_on {
        "the same command continues it, if the server still runs"
    } else {
        "when a server runs again the same command begins anew: what clients have written since, only the \
         one that has gone knew"
    };
    match backup.put_on_record() {
        Ok(()) => error.with_help(help),
        Err(why) => error.with_help(format!(
            "{help}, from the record before: what came last could not be put on record ({why})"
        )),
    }
}
