//! `freewheel tasks`, `abort` and `promote`: background tasks on a running server.

use clap::Args;
use freewheel::control::{InWords, Task, openapi};
use serde::Serialize;

use super::control::{ControlArgs, blocks, starved};
use crate::failure::Failure;
use crate::output;

/// Show the background tasks of a running server, and how it does
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel tasks --control /tmp/disk.control
  freewheel tasks --openapi > control.openapi.json
  curl --unix-socket /tmp/disk.control http://freewheel/v1/events")]
pub struct TasksArgs {
    #[command(flatten)]
    control: ControlArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Print the description of the control interface, as OpenAPI
    #[arg(long, conflicts_with = "json")]
    openapi: bool,
}

/// End a background task
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel abort 3 --control /tmp/disk.control")]
pub struct AbortArgs {
    /// The task's number: `freewheel tasks` lists them
    #[arg(value_parser = task_number)]
    id: u64,
    #[command(flatten)]
    control: ControlArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Read the rest of a background task by foreground requests
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel promote 3 --control /tmp/disk.control

Two requests of the task are then among those of the clients at any time, and have turns as those
of one more connection: clients wait longer, and it ends soon, also where no gap would ever be.
There is no way back but to abort it.")]
pub struct PromoteArgs {
    /// The task's number: `freewheel tasks` lists them
    #[arg(value_parser = task_number)]
    id: u64,
    #[command(flatten)]
    control: ControlArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    task: &'a Task,
}

impl TasksArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.openapi {
            return output::print(&openapi());
        }
        let status = self.control.client()?.status()?;
        status.notices.iter().for_each(|notice| output::note(notice));
        if let Some(why) = starved(&status) {
            output::note(&why);
        }
        if self.json {
            return output::print_document(&status);
        }
        output::print(&status.in_words())
    }
}

impl AbortArgs {
    pub fn run(self) -> Result<(), Failure> {
        let task = self.control.client()?.abort(self.id)?;
        print(&task, self.json, "is ended")
    }
}

impl PromoteArgs {
    pub fn run(self) -> Result<(), Failure> {
        let task = self.control.client()?.promote(self.id)?;
        print(&task, self.json, "is read by foreground requests now")
    }
}

fn task_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a task is a number, as 3: `freewheel tasks` lists them".into())
}

/// Prints the effect of a call on a task.
pub fn print(task: &Task, json: bool, done: &str) -> Result<(), Failure> {
    if json {
        return output::print_document(&Document { task });
    }
    let left = blocks(task.blocks_left);
    output::print(&format!("task {} ({}) {done}; {left} are left\n", task.id, task.kind.word()))
}
