//! `freewheel refresh`: rewrites every block of a served drive with its own data, and reads it back.

use clap::Args;
use freewheel::control::{Task, TaskKind};
use freewheel::measures::counted;

use super::control::{ControlArgs, DetachArgs, PaceArgs, RangeArgs, Watch, ensure_done};
use super::selection::SelectionArgs;
use crate::failure::Failure;
use crate::verbs::{scan, tasks};

/// Rewrite every block of a served drive with its own data in its gaps, and read it back
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel refresh --control /tmp/disk.control
  freewheel refresh --control /tmp/disk.control --idle-after 20ms
  freewheel refresh --control /tmp/disk.control --extents weak-sectors

A block is read in one gap, written in a later one and read back in a third. What a client writes
meanwhile is refreshed by that, and the block is not written, or is read anew. No other program
may write to the drive beside the server. Blocks that cannot be read or written, or read back
differently, make the exit code 1. At most 64 MiB wait in memory.")]
pub struct RefreshArgs {
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    wait: DetachArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl RefreshArgs {
    pub fn run(self) -> Result<(), Failure> {
        let client = self.control.client()?;
        let order = self.range.limit(self.pace.order(TaskKind::Refresh))?;
        let mut request = self.wait.request(order);
        self.selection.limit(&client, &mut request)?;
        let task = self.pace.begin(&client, &request)?;
        if self.wait.detach {
            return tasks::print(&task, self.json, "has begun");
        }
        self.control.abort_on_signals(task.id)?;
        let task = Watch::new(&client, task.id).until_over()?;
        scan::print(&task, self.json)?;
        ensure_done(&task)?;
        verdict(&task)
    }
}

fn verdict(task: &Task) -> Result<(), Failure> {
    let refresh = task.refresh.as_ref();
    let wrong = [
        blocks_that(Some(task.unreadable_blocks), "cannot be read"),
        blocks_that(refresh.map(|refresh| refresh.unwritten_blocks), "cannot be written"),
        blocks_that(refresh.map(|refresh| refresh.differing_blocks), "read back differently"),
    ];
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    if wrong.is_empty() { Ok(()) } else { Err(Failure::failed(wrong.join("; "))) }
}

fn blocks_that(count: Option<u64>, what: &str) -> Option<String> {
    let count = count.filter(|count| *count > 0);
    count.map(|count| format!("{} {what}", counted(count, "block")))
}
