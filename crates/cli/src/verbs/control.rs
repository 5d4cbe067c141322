//! Common parts of the verbs that talk to a running server.

use std::cell::Cell;
use std::path::PathBuf;
use std::process;
use std::thread;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use freewheel::control::{
    BlockStream, CONTROL_VARIABLE, ControlClient, Priority, PromoteTail, Record, ServerStatus,
    Task, TaskKind, TaskOrder, TaskRequest, TaskState,
};
use freewheel::measures::{BLOCK_BYTES, Bytes, SimDuration, Unit};
use freewheel::{Error, ErrorKind};

use super::listen;
use crate::failure::Failure;
use crate::output;
use crate::progress::{Bars, RemainingTime};

/// Interval at which a server is asked for the progress of a task.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Bytes of a task's data after which it is asked as well.
const ASK_AFTER: u64 = 4 << 20;

/// Options that name the server.
#[derive(Args)]
pub struct ControlArgs {
    /// Control socket of the server: `freewheel serve` says where it is
    #[arg(long, value_name = "PATH", env = CONTROL_VARIABLE)]
    control: Option<PathBuf>,
}

impl ControlArgs {
    /// A client of it.
    pub fn client(&self) -> Result<ControlClient, Failure> {
        let Some(path) = &self.control else {
            return Err(Failure::wrong_use(format!(
                "no server is named: give its control socket, which `freewheel serve` names when it \
                 starts, by --control PATH or in {CONTROL_VARIABLE}"
            )));
        };
        Ok(ControlClient::new(path)?)
    }

    /// From now on SIGINT and SIGTERM abort this task, and this program ends as the task does. A second
    /// signal ends this program, and so does the first if the task cannot be aborted.
    pub fn abort_on_signals(&self, id: u64) -> Result<(), Failure> {
        let (stop, client) = (listen::stop()?, self.client()?);
        thread::spawn(move || {
            stop.wait();
            thread::spawn(move || {
                if client.abort(id).is_err() {
                    process::exit(INTERRUPTED);
                }
            });
            stop.wait();
            process::exit(INTERRUPTED);
        });
        Ok(())
    }
}

/// Exit code of what a shell takes for ended by SIGINT.
pub const INTERRUPTED: i32 = 130;

/// Options for the competition of a task with clients and other tasks.
#[derive(Args)]
pub struct PaceArgs {
    /// Size of one read, at least; if not given, about an eighth of a track of the drive, from 4KiB to
    /// 64KiB
    #[arg(long, value_name = "SIZE")]
    block_size: Option<Bytes>,
    /// Weight against other tasks: low 1, normal 4, high 16
    #[arg(long, value_name = "PRIORITY", default_value = "normal")]
    priority: PriorityValue,
    /// Time in which the task should be complete, as 8h; a late task weighs more
    #[arg(long, value_name = "TIME")]
    deadline: Option<SimDuration>,
    /// Use idle time as well, after this time without a request, as 20ms; a request that comes then may
    /// wait for one read
    #[arg(long, value_name = "TIME")]
    idle_after: Option<SimDuration>,
    /// Read the last blocks of a round by foreground requests, at a cost of at most this share of its
    /// time, as 0.02: gaps seldom reach them
    #[arg(long, value_name = "SHARE", conflicts_with = "promote")]
    promote_tail: Option<f64>,
    /// Read by foreground requests from the beginning, beside those of clients
    #[arg(long)]
    promote: bool,
}

/// Options for the part of the drive that a task reads.
#[derive(Args)]
pub struct RangeArgs {
    /// Begin at this distance from the drive's beginning, as 1GiB
    #[arg(long, value_name = "SIZE", default_value = "0B", conflicts_with = "selection")]
    start: Bytes,
    /// Read this amount from there on, instead of all to the drive's end
    #[arg(long, value_name = "SIZE", conflicts_with = "selection")]
    length: Option<Bytes>,
}

impl RangeArgs {
    /// The same order for that part alone, of whole blocks.
    pub fn limit(&self, order: TaskOrder) -> Result<TaskOrder, Failure> {
        let options = [("--start", Some(self.start)), ("--length", self.length)];
        for (option, size) in options.into_iter().filter_map(|(option, size)| Some((option, size?)))
        {
            if !size.get().is_multiple_of(BLOCK_BYTES) {
                return Err(Failure::wrong_use(format!(
                    "{option} is {size}: a multiple of 512B is allowed"
                )));
            }
        }
        Ok(TaskOrder { start: self.start, length: self.length, ..order })
    }
}

/// Options to return before the end of a task.
#[derive(Args)]
pub struct DetachArgs {
    /// Begin it and do not wait for its end
    #[arg(long)]
    pub detach: bool,
    /// Begin anew when it is done, until it is aborted
    #[arg(long, requires = "detach")]
    repeat: bool,
}

impl DetachArgs {
    /// A request for this task, repeated if they say so.
    pub fn request(&self, order: TaskOrder) -> TaskRequest {
        TaskOrder { repeat: self.repeat, ..order }.into()
    }
}

/// A priority by its word.
#[derive(Clone)]
struct PriorityValue(Priority);

impl ValueEnum for PriorityValue {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [PriorityValue; Priority::ALL.len()] = [
            PriorityValue(Priority::ALL[0]),
            PriorityValue(Priority::ALL[1]),
            PriorityValue(Priority::ALL[2]),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.0.word());
        Some(match self.0 {
            Priority::Low => value.help("A quarter of normal"),
            Priority::Normal => value,
            Priority::High => value.help("Four times normal"),
        })
    }
}

impl PaceArgs {
    /// An order with them, for the whole drive.
    pub fn order(&self, kind: TaskKind) -> TaskOrder {
        TaskOrder {
            kind,
            block_size: self.block_size,
            priority: self.priority.0,
            deadline: self.deadline,
            idle_after: self.idle_after,
            promote_tail: self.promote_tail.map(PromoteTail::at),
            ..TaskOrder::default()
        }
    }

    /// Begins a task; warns when it cannot make progress as things are.
    pub fn begin(&self, client: &ControlClient, request: &TaskRequest) -> Result<Task, Failure> {
        let task = self.create(client, request)?;
        self.remark(client);
        Ok(task)
    }

    /// Begins a task, without a warning.
    pub fn create(&self, client: &ControlClient, request: &TaskRequest) -> Result<Task, Failure> {
        let task = client.create(request)?;
        if self.promote { Ok(client.promote(task.id)?) } else { Ok(task) }
    }

    /// Says what makes a task that has begun slow, or keeps it from ending, as things are.
    pub fn remark(&self, client: &ControlClient) {
        // The task has begun: an error of the warning must not fail it.
        let Some(status) = client.status().ok().filter(|_| !self.promote) else { return };
        // A server that does not say how long tracks are has 0.
        let track = Some(Bytes::new(status.track_bytes_min)).filter(|track| *track > Bytes::ZERO);
        let pieces = self.block_size.zip(track).and_then(|(block, track)| in_pieces(block, track));
        pieces.iter().chain(&starved(&status)).for_each(|text| output::note(text));
    }
}

/// Watch on the progress of a task, on stderr.
pub struct Watch<'a> {
    client: &'a ControlClient,
    bars: Bars,
    id: u64,
    unasked: u64,
    /// The warning has been given.
    is_told: Cell<bool>,
}

impl<'a> Watch<'a> {
    pub fn new(client: &'a ControlClient, id: u64) -> Self {
        Self { client, bars: Bars::default(), id, unasked: 0, is_told: Cell::new(false) }
    }

    /// Shows the progress. If clients stay away, warns once that the task makes none.
    pub fn look(&self) -> Result<Task, Failure> {
        let task = self.client.task(self.id).map_err(gone)?;
        let status = task.needs_gaps().then(|| self.client.status().map_err(gone)).transpose()?;
        let status = status.filter(|status| status.starves(&task));
        let rest = match (&status, task.remaining_ns) {
            (Some(_), _) => RemainingTime::Endless("no gaps"),
            (None, Some(ns)) => RemainingTime::Expected(Duration::from_nanos(ns)),
            (None, None) => RemainingTime::Unknown,
        };
        let done = task.blocks.saturating_sub(task.blocks_left);
        self.bars.expect(task.kind.word(), done, task.blocks, rest);
        if task.elapsed_ns >= ServerStatus::AWAY_AFTER.ns()
            && let Some(why) = status.as_ref().and_then(starved)
            && !self.is_told.replace(true)
        {
            self.bars.say(&why);
        }
        Ok(task)
    }

    /// Waits until it is over.
    pub fn until_over(&self) -> Result<Task, Failure> {
        loop {
            let task = self.look()?;
            if task.state.is_over() {
                return Ok(task);
            }
            thread::sleep(ASK_EVERY);
        }
    }

    /// The next record of its data.
    pub fn next_record(&mut self, data: &mut BlockStream<'_>) -> Result<Record, Failure> {
        loop {
            if self.unasked >= ASK_AFTER {
                self.look()?;
                self.unasked = 0;
            }
            match data.next_record(ASK_EVERY).map_err(gone)? {
                Some(record) => {
                    if let Record::Data { data, .. } = &record {
                        self.unasked += data.len() as u64;
                    }
                    return Ok(record);
                }
                None => self.unasked = ASK_AFTER,
            }
        }
    }
}

/// Reason why tasks read no blocks, and the way out, when clients leave no gaps.
pub fn starved(status: &ServerStatus) -> Option<String> {
    let tasks = status.tasks.iter().filter(|task| status.starves(task));
    let numbers: Vec<String> = tasks.map(|task| task.id.to_string()).collect();
    let (last, idle) = (numbers.last()?, status.idle_ns?);
    let (word, read) = if numbers.len() > 1 { ("tasks", "read") } else { ("task", "reads") };
    Some(format!(
        "no request of a client has come for {}, so there are no gaps, and {word} {} {read} no block until \
         one comes: `freewheel promote {last}` does not wait for gaps, and a task begun with \
         --idle-after 20ms uses idle time",
        Unit::Seconds.text(idle as f64 / 1e9),
        numbers.join(", ")
    ))
}

/// Bytes of blocks, for people.
pub fn blocks(blocks: u64) -> String {
    Bytes::new(blocks * BLOCK_BYTES).human()
}

/// A task that did not come to its end is a failure.
pub fn ensure_done(task: &Task) -> Result<(), Failure> {
    let (kind, id) = (task.kind.word(), task.id);
    match task.state {
        TaskState::Done => Ok(()),
        TaskState::Failed if task.refresh.is_some() => Err(Failure::failed(format!(
            "{kind}: a flush failed at the device, so that nothing written is known to last: check the \
             device, and start the server again"
        ))),
        TaskState::Failed => Err(Failure::failed(format!(
            "{kind}: clients overwrote blocks faster than their data were read from the server: read them \
             faster, or begin when clients write less"
        ))),
        TaskState::Lost => Err(Failure::failed(format!(
            "{kind}: the server has lost its device: start it again when that is back"
        ))),
        _ => Err(Failure::failed(format!("{kind}: task {id} was aborted"))),
    }
}

/// The cost of blocks that are longer than the shortest track of a drive, if they are.
pub fn in_pieces(block: Bytes, track: Bytes) -> Option<String> {
    (block > track).then(|| {
        format!(
            "blocks of {block} lie on several tracks, the shortest of which have {}: they come in pieces, \
             and hardly any is whole before much of the drive was read; smaller ones come sooner",
            track.human()
        )
    })
}

/// Failure of a server that answered before.
fn gone(error: impl Into<Error>) -> Failure {
    let error = error.into();
    if !matches!(error.kind(), ErrorKind::NoServer | ErrorKind::ServerGone) {
        return error.into();
    }
    Failure::failed("the server has gone, and the task with it: it was ended, or has failed")
        .with_help("start `freewheel serve` again, and then this command")
}
