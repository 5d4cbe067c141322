//! `freewheel scan`: passes every block of a served drive to a command.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

use clap::Args;
use freewheel::control::{
    ControlClient, InWords, Record, SampleCounter, SampleResult, Task, TaskKind,
};
use serde::Serialize;

use super::control::{ControlArgs, DetachArgs, PaceArgs, RangeArgs, Watch, ensure_done};
use super::sample::{self, SampleArgs};
use super::selection::SelectionArgs;
use crate::failure::Failure;
use crate::output;
use crate::verbs::tasks;

/// Read every block of a served drive in its gaps, and feed them to a command
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel scan --control /tmp/disk.control --exec 'my-virus-scanner'
  freewheel scan --control /tmp/disk.control --detach --repeat
  freewheel scan --control /tmp/disk.control --exec 'my-virus-scanner' --files /mnt/home
  freewheel scan --control /tmp/disk.control --sample 5% --for 10m

The command's standard input is a line `freewheel-blocks 1`, and then records as they come, in
any order: `data FIRST BLOCKS NS` with BLOCKS x 512 bytes behind it, `unreadable FIRST BLOCKS`,
and at the end `end done`, or `end aborted`. Where that line is missing the stream was cut off.
With --json what it prints goes to standard error.

With --sample the units are drawn before anything is read, each with the same chance. The result
estimates the share of blocks of 512 B that are all zero, and of those that cannot be read. Gaps
reach some places more easily than others: of an incomplete sample the result says how the part
that came differs by tenth of the drive, and what can be said all the same.

Without requests of clients there are no gaps: --idle-after 20ms uses idle time too, --promote
does not wait for either.")]
pub struct ScanArgs {
    #[command(flatten)]
    control: ControlArgs,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Command that the blocks are fed to, by sh -c
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["detach", "repeat"])]
    exec: Option<String>,
    #[command(flatten)]
    sample: SampleArgs,
    #[command(flatten)]
    wait: DetachArgs,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    task: &'a Task,
    sample: Option<&'a SampleResult>,
}

impl ScanArgs {
    pub fn run(self) -> Result<(), Failure> {
        let client = self.control.client()?;
        let order = self.range.limit(self.pace.order(TaskKind::Scan))?;
        let mut request = self.wait.request(order);
        self.selection.limit(&client, &mut request)?;
        request.sample = self.sample.request();
        let is_counted = request.sample.is_some() && !self.wait.detach;
        request.stream = self.exec.is_some() || is_counted;
        let task = self.pace.begin(&client, &request)?;
        let id = task.id;
        if self.wait.detach {
            return tasks::print(&task, self.json, "has begun");
        }
        self.control.abort_on_signals(id)?;
        if !is_counted {
            let task = match &self.exec {
                None => Watch::new(&client, id).until_over()?,
                Some(command) => feed(&client, id, (command, self.json), None)?,
            };
            print(&task, self.json)?;
            return ensure_done(&task);
        }
        let counter = sample::counter(&task)?;
        self.take_sample(&client, id, counter)
    }

    /// Reads a sample to its end or for its time, and says what is in it.
    fn take_sample(
        &self,
        client: &ControlClient,
        id: u64,
        mut counter: SampleCounter,
    ) -> Result<(), Failure> {
        if let Some(limit) = self.sample.limit() {
            let client = self.control.client()?;
            thread::spawn(move || {
                thread::sleep(limit);
                // A task that has ended needs no end.
                let _ = client.abort(id);
            });
        }
        let task = match &self.exec {
            Some(command) => feed(client, id, (command, self.json), Some(&mut counter))?,
            None => {
                pass_on(client, id, Some(&mut counter), &mut io::sink())?;
                Watch::new(client, id).look()?
            }
        };
        let result = counter.result();
        if self.json {
            output::print_document(&Document { task: &task, sample: result.as_ref() })?;
        } else {
            let words = task.sample.as_ref().zip(result.as_ref());
            let words = words.map(|both| both.in_words());
            output::print(&(task.in_words() + &words.unwrap_or_default()))?;
        }
        if self.sample.is_over(&task) { Ok(()) } else { ensure_done(&task) }
    }
}

/// Prints the results of a task that is over.
pub fn print(task: &Task, json: bool) -> Result<(), Failure> {
    if json {
        return tasks::print(task, json, "is over");
    }
    output::print(&task.in_words())
}

fn feed(
    client: &ControlClient,
    id: u64,
    (command, json): (&str, bool),
    counter: Option<&mut SampleCounter>,
) -> Result<Task, Failure> {
    let failed = |error| Failure::failed(format!("--exec {command:?}: {error}"));
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        // A document stands on standard output alone.
        .stdout(if json { Stdio::from(io::stderr()) } else { Stdio::inherit() })
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let Some(mut stdin) = child.stdin.take() else { return Err(failed("no pipe".into())) };
    let fed = pass_on(client, id, counter, &mut stdin);
    drop(stdin);
    let ended = ended(&mut child);
    match (fed, ended) {
        // A command that ends has its reason.
        (_, Err(why)) => Err(failed(why)),
        (fed, Ok(())) => fed.and_then(|()| Watch::new(client, id).look()),
    }
}

/// Passes what a task reads to a counter and to a program.
fn pass_on(
    client: &ControlClient,
    id: u64,
    mut counter: Option<&mut SampleCounter>,
    stdin: &mut impl Write,
) -> Result<(), Failure> {
    let broken = |error| Failure::failed(format!("--exec: the command takes no more: {error}"));
    let mut watch = Watch::new(client, id);
    let mut data = client.data(id)?;
    stdin.write_all(b"freewheel-blocks 1\n").map_err(broken)?;
    loop {
        let record = watch.next_record(&mut data)?;
        counter.iter_mut().for_each(|counter| counter.take(&record));
        stdin.write_all(record.line().as_bytes()).map_err(broken)?;
        match record {
            Record::Data { data, .. } => stdin.write_all(&data).map_err(broken)?,
            Record::Unreadable { .. } => {}
            Record::End(_) => return Ok(()),
        }
    }
}

fn ended(child: &mut Child) -> Result<(), String> {
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
}
