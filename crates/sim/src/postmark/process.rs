//! The process that runs PostMark, as a source of requests.

use std::collections::VecDeque;

use freewheel_model::log_disk::{Command, FreeRequest, LogDisk, LogDiskSpec, LogIo, LogWork};
use freewheel_units::{Lbn, Op, SimDuration, SimTime, VolumeBlock};

use super::files::{MetadataWrites, SmallFiles};
use super::generator::{FileOp, Postmark, PostmarkSpec};
use crate::source::{Request, Source, SourceError};

/// Cost-free reads of a drive: the part of a freeblock scheduler that cleaning needs.
pub trait FreeReads {
    /// Adds or removes a wish for a block of the log.
    fn wish(&mut self, wish: FreeRequest);

    /// Takes the starts of blocks that were read up to `now`, in order of time, each once. Aborted
    /// wishes are left out.
    fn take_delivered(&mut self, now: SimTime, delivered: &mut Vec<Lbn>);
}

/// No free reads.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFreeReads;

impl FreeReads for NoFreeReads {
    fn wish(&mut self, _: FreeRequest) {}

    fn take_delivered(&mut self, _: SimTime, _: &mut Vec<Lbn>) {}
}

/// Computing time of the process between requests.
///
/// osdi00 measured this on a 550 MHz Pentium III and does not print it: the values are assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    /// A file operation: calls, names, tables.
    pub operation: SimDuration,
    /// A block that goes through the cache, or that the cleaner reads or copies.
    pub block: SimDuration,
    /// A request: call, driver, interrupt.
    pub request: SimDuration,
}

impl CpuTimes {
    /// Assumed. Copying a block into the cache and out of it takes two passes at about 160 MB/s, as
    /// memory of 100 MHz allows. An operation is a few calls and look-ups; a request is a call, a
    /// driver and an interrupt.
    pub const OSDI00: Self = Self {
        operation: SimDuration::from_us(100),
        block: SimDuration::from_us(50),
        request: SimDuration::from_us(100),
    };
}

/// Time that cleaning adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleaningTime {
    /// Reading blocks to find the live ones.
    pub reading: SimDuration,
    /// Copying the live blocks, with their share of segment writes.
    pub copying: SimDuration,
}

impl CleaningTime {
    /// Reading and copying.
    pub fn total(&self) -> SimDuration {
        self.reading + self.copying
    }

    fn since(&self, earlier: &Self) -> Self {
        Self { reading: self.reading - earlier.reading, copying: self.copying - earlier.copying }
    }
}

/// One pass of PostMark's transactions.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct Pass {
    pub transactions: u32,
    /// Time taken.
    pub elapsed: SimDuration,
    /// The part of `elapsed` that cleaning takes.
    pub cleaning: CleaningTime,
    /// Blocks in use over those that the log holds, mean of start and end.
    pub utilisation: f64,
    pub work: LogWork,
}

impl Pass {
    /// Transactions a second.
    pub fn rate(&self) -> f64 {
        f64::from(self.transactions) / self.elapsed.as_secs_f64()
    }

    /// Transactions a second if cleaning took no time: osdi00's IDEAL.
    pub fn rate_without_cleaning(&self) -> f64 {
        f64::from(self.transactions) / (self.elapsed - self.cleaning.total()).as_secs_f64()
    }

    /// Transactions a second if the reads of cleaning took no time: the limit for freeblock reads in
    /// this run.
    pub fn rate_with_free_reads(&self) -> f64 {
        f64::from(self.transactions) / (self.elapsed - self.cleaning.reading).as_secs_f64()
    }
}

/// The number of files with which the last of `passes` passes fills the log to `share`, within a
/// thousandth where such a number exists. Chance moves the share by more than half a per cent; the cost
/// of cleaning changes by a twentieth in that.
pub fn files_for(spec: PostmarkSpec, share: f64, passes: u32, seed: u64) -> u32 {
    const TRIALS: u32 = 32;
    let capacity = f64::from(LogDiskSpec::OSDI00.capacity_blocks());
    let file_blocks = file_blocks(&spec);
    let wanted = share * capacity;
    let (mut files, mut best, mut best_off) = (wanted / file_blocks, 1, f64::INFINITY);
    for _ in 0..TRIALS {
        // A pool has at least one file, however much of the log the directories occupy.
        files = files.max(1.0);
        let spec = PostmarkSpec { files: files as u32, ..spec };
        let off = wanted - used_blocks(spec, passes, seed);
        if off.abs() < best_off {
            (best, best_off) = (spec.files, off.abs());
        }
        if best_off < capacity / 1000.0 {
            break;
        }
        files += off / file_blocks;
    }
    best
}

/// Mean blocks of a file, approximately: its first size, appends, its inode and its entry.
pub fn file_blocks(spec: &PostmarkSpec) -> f64 {
    /// Addition to files of 5 to 10 KiB in osdi00's passes.
    const ADDED: f64 = 0.15;
    let block = LogDiskSpec::OSDI00.block.bytes().get() as f64;
    let sizes = f64::from(spec.size_max - spec.size_min);
    (below(spec.size_max, block) - below(spec.size_min, block)) / sizes + ADDED
}

/// Sum over one file of each smaller size, in blocks.
fn below(size: u32, block: f64) -> f64 {
    let whole = (f64::from(size) / block).floor();
    let rest = f64::from(size) - whole * block;
    block * whole * (whole + 1.0) / 2.0 + rest * (whole + 1.0)
}

/// Blocks in use in the last of `passes` passes, mean of its start and end: the numerator of
/// [`Pass::utilisation`]. No disk takes part, so the result is immediate.
pub fn used_blocks(spec: PostmarkSpec, passes: u32, seed: u64) -> f64 {
    let (mut commands, mut generator) = (VecDeque::new(), Postmark::new(spec, seed));
    let mut files = SmallFiles::new(spec.subdirectories, MetadataWrites::Delayed, &mut commands);
    let mut apply = |op| {
        files.apply(op, &mut commands);
        commands.clear();
        files.used_blocks()
    };
    let mut end = std::iter::from_fn(|| generator.fill_pool()).map(&mut apply).last().unwrap_or(0);
    let mut start = end;
    for _ in 0..passes {
        start = end;
        let operations = (0..spec.transactions).flat_map(|_| generator.transaction()).flatten();
        end = operations.map(&mut apply).last().unwrap_or(end);
    }
    f64::from(start + end) / 2.0
}

/// PostMark's process: fills the pool, then performs its transactions pass after pass.
pub struct PostmarkProcess<F> {
    spec: PostmarkSpec,
    generator: Postmark,
    files: SmallFiles,
    disk: LogDisk,
    free_reads: F,
    cpu: CpuTimes,
    /// Operations of the current transaction.
    operations: VecDeque<FileOp>,
    /// Remaining commands of the current operation.
    commands: VecDeque<Command>,
    /// Time up to which the process has computed.
    clock: SimTime,
    /// The request for which the process waits, with its time of issue.
    request: Option<(SimTime, LogIo)>,
    /// True if `request` was issued.
    is_issued: bool,
    cleaning: CleaningTime,
    /// The log's work for which computing time was charged.
    charged: LogWork,
    passes_wanted: u32,
    passes: Vec<Pass>,
    begun: Option<Begun>,
    transactions_left: u32,
    delivered: Vec<Lbn>,
}

/// State at the start of a pass.
#[derive(Debug, Clone, Copy)]
struct Begun {
    at: SimTime,
    cleaning: CleaningTime,
    used_blocks: u32,
    work: LogWork,
}

impl<F: FreeReads> PostmarkProcess<F> {
    /// A process that starts with an empty file system and ends after `passes` passes.
    pub fn new(
        spec: PostmarkSpec,
        disk: LogDiskSpec,
        metadata: MetadataWrites,
        cpu: CpuTimes,
        passes: u32,
        free_reads: F,
        seed: u64,
    ) -> Self {
        let mut commands = VecDeque::new();
        let files = SmallFiles::new(spec.subdirectories, metadata, &mut commands);
        let mut process = Self {
            spec,
            generator: Postmark::new(spec, seed),
            files,
            disk: LogDisk::new(disk),
            free_reads,
            cpu,
            operations: VecDeque::new(),
            commands,
            clock: SimTime::ZERO,
            request: None,
            is_issued: false,
            cleaning: CleaningTime::default(),
            charged: LogWork::default(),
            passes_wanted: passes,
            passes: Vec::new(),
            begun: None,
            transactions_left: 0,
            delivered: Vec::new(),
        };
        process.go_on(None);
        process
    }

    /// Parameters of the generator.
    pub fn spec(&self) -> &PostmarkSpec {
        &self.spec
    }

    /// Complete passes.
    pub fn passes(&self) -> &[Pass] {
        &self.passes
    }

    /// Computes until the process must wait for a request, or to the end.
    fn go_on(&mut self, mut io: Option<LogIo>) {
        loop {
            self.charge_cleaning();
            for wish in self.disk.take_wishes() {
                self.free_reads.wish(wish);
            }
            if let Some(io) = io {
                self.clock += self.cpu.request;
                self.charge(&io, self.cpu.request);
                self.request = Some((self.clock, io));
                return;
            }
            let Some(command) = self.next_command() else { return };
            self.clock += self.cpu.block;
            io = self.disk.command(self.clock, command);
        }
    }

    /// Charges computing time for blocks that cleaning has read and copied.
    fn charge_cleaning(&mut self) {
        let work = self.disk.work();
        let new = work.since(&self.charged);
        self.charged = work;
        let copying = self.cpu.block * (new.copied_blocks + new.free_copied_blocks);
        let reading = self.cpu.block * new.dead_blocks_read;
        self.cleaning.copying += copying;
        self.cleaning.reading += reading;
        self.clock += copying + reading;
    }

    /// The part of the time for a request that would not pass without cleaning.
    fn charge(&mut self, io: &LogIo, time: SimDuration) {
        let part = io.cleaning_part(time);
        match io.op {
            Op::Write => self.cleaning.copying += part,
            _ => self.cleaning.reading += part,
        }
    }

    fn next_command(&mut self) -> Option<Command> {
        loop {
            if let Some(command) = self.commands.pop_front() {
                return Some(command);
            }
            let operation = self.next_operation()?;
            self.clock += self.cpu.operation;
            self.files.apply(operation, &mut self.commands);
        }
    }

    fn next_operation(&mut self) -> Option<FileOp> {
        if let Some(file) = self.generator.fill_pool() {
            return Some(file);
        }
        while self.operations.is_empty() {
            if self.transactions_left == 0 && !self.begin_pass() {
                return None;
            }
            self.transactions_left -= 1;
            self.operations.extend(self.generator.transaction().into_iter().flatten());
        }
        self.operations.pop_front()
    }

    /// Ends the pass before and begins the next; false when it was the last.
    fn begin_pass(&mut self) -> bool {
        let work = self.disk.work();
        let used_blocks = self.files.used_blocks();
        if let Some(begun) = self.begun {
            let mean = f64::from(begun.used_blocks + used_blocks) / 2.0;
            self.passes.push(Pass {
                transactions: self.spec.transactions,
                elapsed: self.clock - begun.at,
                cleaning: self.cleaning.since(&begun.cleaning),
                utilisation: mean / f64::from(self.disk.spec().capacity_blocks()),
                work: work.since(&begun.work),
            });
        }
        self.begun = Some(Begun { at: self.clock, cleaning: self.cleaning, used_blocks, work });
        let more = (self.passes.len() as u32) < self.passes_wanted && self.spec.transactions > 0;
        self.transactions_left = if more { self.spec.transactions } else { 0 };
        more
    }
}

impl<F: FreeReads> Source for PostmarkProcess<F> {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(self.request.filter(|_| !self.is_issued).map(|(issued, _)| issued))
    }

    fn take(&mut self) -> Request {
        let (_, LogIo { op, start, blocks, .. }) = self.request.expect("next_arrival gave a time");
        self.is_issued = true;
        // The log lies on a volume of one drive.
        let start = VolumeBlock::new(start.get());
        Request { op, start, blocks, fua: false, tag: 0 }
    }

    fn completed(&mut self, _: u64, now: SimTime) {
        let (issued, io) = self.request.take().expect("a request was taken");
        self.is_issued = false;
        self.charge(&io, now - issued);
        self.clock = now;
        self.free_reads.take_delivered(now, &mut self.delivered);
        for start in self.delivered.drain(..) {
            self.disk.delivered(start);
        }
        let next = self.disk.completed(now);
        self.go_on(next);
    }

    fn progress(&self) -> (u64, u64) {
        let pass = u64::from(self.spec.transactions);
        let begun = (self.passes.len() as u64 + u64::from(self.begun.is_some())) * pass;
        let done = begun - u64::from(self.transactions_left);
        (done.min(pass * u64::from(self.passes_wanted)), pass * u64::from(self.passes_wanted))
    }
}
