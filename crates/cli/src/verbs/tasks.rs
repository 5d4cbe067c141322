//! `freewheel tasks`, `abort` and `promote`: background tasks on a running server.

use clap::Args;
use freewheel::control::{ServerStatus, Task, TaskKind, TaskState, openapi};
use freewheel::measures::{Bytes, Table, Unit, grouped};
use serde::Serialize;

use super::control::{ControlArgs, blocks, decisions, is_starved, starved};
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
        output::print(&text(&status))
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

/// Cost of clients' writes to blocks that a backup had not read yet: each waited for a read.
fn copied(task: &Task) -> String {
    if task.kind == TaskKind::Backup { blocks(task.copied_blocks) } else { "-".to_owned() }
}

fn text(status: &ServerStatus) -> String {
    let (seen, responses) = (&status.scheduling, &status.responses);
    let mut table = Table::new("ll");
    table.row([
        "drive",
        &format!(
            "{}, served for {}",
            status.drive,
            Unit::Seconds.text(status.uptime_ns as f64 / 1e9)
        ),
    ]);
    table.row([
        "responses",
        &format!(
            "{}, mean {}, p50 {}, p99 {}",
            grouped(responses.count),
            ms(responses.mean_ns),
            ms(responses.p50_ns as f64),
            ms(responses.p99_ns as f64)
        ),
    ]);
    table.row([
        "predictions",
        &format!(
            "off by {} in the median, by {} at most in 99 of 100; {} surprises",
            ms(status.prediction_errors.p50_ns as f64),
            ms(status.prediction_errors.p99_ns as f64),
            grouped(seen.surprises)
        ),
    ]);
    if seen.part_sector_writes > 0 {
        let size = Bytes::new(status.sectors.physical_bytes.into());
        let text =
            format!("{}, each a turn more: sectors are {size}", grouped(seen.part_sector_writes));
        table.row(["part-sector writes", &text]);
    }
    let [all, used] = [seen.gaps, seen.gaps_used].map(grouped);
    let gaps = format!("{all}, of them {used} used for {}", blocks(seen.free_blocks));
    table.row(["gaps", &gaps]);
    table.row(["left to the drive", &grouped(seen.gaps_left)]);
    let [delay, lost] = [seen.delay_ns, seen.lost_hit_ns].map(|ns| ms(ns as f64));
    let hits = grouped(seen.lost_hits);
    table.row(["charged", &format!("{delay} of delays, {lost} of {hits} lost buffer hits")]);
    if let Some(cost) = &status.free_cost {
        table.row(["measured", &cost.to_string()]);
    }
    if status.decisions.count > 0 {
        table.row(["decisions", &decisions(&status.decisions)]);
    }
    if status.tasks.is_empty() {
        return format!("{table}no tasks\n");
    }
    format!("{table}\n{}", task_rows(status))
}

fn ms(ns: f64) -> String {
    Unit::Nanoseconds.text(ns)
}

fn task_rows(status: &ServerStatus) -> Table {
    let mut tasks = Table::new("rllrrrrr");
    tasks.row(["task", "kind", "state", "done", "read", "copied", "ends in", "unreadable"]);
    for task in &status.tasks {
        let is_promoted = task.promoted && task.state == TaskState::Running;
        let word = if is_promoted { "promoted" } else { task.state.word() };
        let ends = task.remaining_ns.filter(|_| !is_starved(task, status));
        tasks.row([
            task.id.to_string(),
            task.kind.word().to_owned(),
            word.to_owned(),
            Unit::Share.text(task.done()),
            blocks(task.blocks_read),
            copied(task),
            ends.map_or("-".to_owned(), |ns| Unit::Seconds.text(ns as f64 / 1e9)),
            grouped(task.unreadable_blocks),
        ]);
    }
    tasks
}
