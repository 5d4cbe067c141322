//! Summary of a run.

mod disks;
mod postmark;
mod slices;
mod time;

use freewheel_array::files::FilesRun;
use freewheel_host::{Account, CostSums, FreeCost, MarginInUse};
use freewheel_model::electronics::{LimitEnd, MediaCacheWork};
use freewheel_model::stats::{Distribution, Level, Summary};
use freewheel_model::striping::Piece;
use freewheel_units::{Op, SimDuration, SimTime};
use serde::Serialize;

use self::disks::DiskTallies;
use self::slices::SliceTallies;
use self::time::{BusyTime, share};
use crate::background::{Background, BackgroundResult};
use crate::cache_work::CacheWork;
use crate::completion::{Completion, LimitCounts, Refusal, RefusedWrites};
use crate::config::CoarseTimes;
use crate::device::Work;
use crate::digest::mix;
use crate::free_time::FreeTime;
use crate::idle::IdleTime;
use crate::served_device::ServedDevice;
use crate::source::{InferredCompletions, OutsideScrub};

pub use self::disks::DiskUse;
pub use self::postmark::{PassResult, PostmarkResult};
pub use self::slices::{SliceResponses, SliceResult};
pub use self::time::{BusyShares, FreeResult, HeadTime, Resource, Stages};

/// Sums during a run, and over several runs. All are integers, so any order of addition gives the same
/// sums.
#[derive(Default)]
pub(crate) struct Tally {
    reads: Distribution,
    writes: Distribution,
    /// Writes with FUA; absent in most runs.
    fua_writes: Option<Box<Distribution>>,
    flushes: Distribution,
    read_blocks: u64,
    write_blocks: u64,
    trims: u64,
    refused: RefusedWrites,
    limits: LimitCounts,
    outside_scrub: Option<OutsideScrub>,
    buffer_reads: u64,
    buffer_writes: u64,
    stages: Stages,
    longest_wait: SimDuration,
    outstanding: Level,
    hash: u64,
    measured: Measured,
    slices: SliceTallies,
    /// Tallies of each disk; absent where one volume is striped over all.
    disks: Option<Box<DiskTallies>>,
    ended: Ended,
    background: Vec<BackgroundResult>,
    postmark: Option<PostmarkResult>,
    files: Option<FilesRun>,
}

/// The part of a run that counts.
#[derive(Default)]
struct Measured {
    /// Sequence of its first request: later ones than any during the warm-up.
    first: u64,
    /// Requests of the warm-up.
    warm_up: u64,
    start: SimTime,
    /// State of each arm at its start; empty without a warm-up.
    before: Vec<Work>,
}

/// Values that are known at the end of a run.
#[derive(Default)]
struct Ended {
    /// The longest run.
    elapsed: SimTime,
    /// Sum of the lengths of all runs.
    runs_ns: u128,
    /// Sum over every arm of every run.
    arms_ns: u128,
    busy: BusyTime,
    head_time: HeadTime,
    destaging_ns: u128,
    dirty_blocks: u64,
    /// Integral of outstanding requests over every nanosecond of every run.
    outstanding_area: u128,
    outstanding_max: u64,
    free: Option<FreeTime>,
    idle: Option<IdleTime>,
    cache: Option<CacheWork>,
    media_cache: Option<MediaCacheWork>,
    host: Option<Account>,
    margins: Vec<MarginInUse>,
    cost: Option<CostSums>,
    disks: Vec<DiskUse>,
    /// Mean media rate of the drives.
    media_bytes_per_second: u64,
}

/// A run with the other arrivals that a coarse clock allows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OtherTimes {
    /// Treatment of the requests within a step of a coarse clock.
    pub coarse_times: CoarseTimes,
    /// Response times of reads and writes together.
    pub response: Summary,
}

/// Summary of a run, with its distributions. Over independent drives, sums and counts are totals.
/// Shares of time are means weighted by each drive's time. Outstanding requests are those on one drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// Reads, writes, flushes, trims and refused writes. Like all sums it is without the warm-up.
    pub requests: u64,
    /// Requests that arrived during the warm-up.
    #[serde(skip_serializing_if = "is_zero")]
    pub warm_up_requests: u64,
    /// Time that the warm-up took; the longest of independent drives.
    #[serde(skip_serializing_if = "is_zero")]
    pub warm_up_ns: u64,
    /// Trims.
    pub trims: u64,
    /// Writes that a host-managed drive refused. They count in no other sum.
    pub refused_writes: RefusedWrites,
    /// Requests that did not keep their duration limits, where there were some.
    #[serde(skip_serializing_if = "LimitCounts::is_empty")]
    pub duration_limits: LimitCounts,
    /// The scrub that the host sent command by command, where there was one. On independent drives the first
    /// drive's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside_scrub: Option<OutsideScrub>,
    /// Time from the start, or the end of the warm-up, to the last completion; the longest of independent
    /// drives.
    pub elapsed_ns: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sums of stage times over reads and writes.
    pub stages: Stages,
    /// Time of all arms together: the denominator of the utilisation.
    pub arms_ns: u128,
    /// Work of the heads.
    pub head_time: HeadTime,
    /// Free work in rotational gaps, where it was planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<FreeResult>,
    /// Work in idle time, where there was some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleTime>,
    /// The storage system's caches, all together, where there were some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheWork>,
    /// The media caches of drives that manage shingled tracks themselves, all together, over the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_cache: Option<MediaCacheWork>,
    /// Observations and decisions of a host scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Account>,
    /// Margins of free work that the host scheduler has learned, by direction, distance and purpose of
    /// a movement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub margins: Vec<MarginInUse>,
    /// Cost of free work behind a host scheduler to clients, measured in slots without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_cost: Option<FreeCost>,
    /// The reference drives of the traces whose completions are inferred, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inferred_completions: Vec<InferredCompletions>,
    /// The equal parts of what is measured, where several were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<SliceResult>,
    /// The disks that files lie on, in order; empty where one volume is striped over all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskUse>,
    /// The background work of each arm, where there was any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundResult>,
    /// Results of PostMark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postmark: Option<PostmarkResult>,
    /// Files by class, where the workload is files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesRun>,
    /// Results of the run with the other arrivals that a coarse clock of the trace allows, where
    /// [`Experiment::run_other_times`](crate::experiment::Experiment::run_other_times) was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_times: Option<OtherTimes>,
    /// Response times of reads and writes together.
    pub response: Summary,
    /// Response times of reads.
    pub read_response: Summary,
    /// Response times of writes.
    pub write_response: Summary,
    /// Response times of writes with force unit access, where there were some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fua_write_response: Option<Summary>,
    /// Response times of flushes.
    pub flush_response: Summary,
    /// Longest time a read or write waited for the head.
    pub queue_ns_max: u64,
    /// Reads that the drive's buffer served.
    pub buffer_reads: u64,
    /// Writes that were done once the drive's buffer held them.
    pub buffer_writes: u64,
    /// Share of time in which the drive had a command inside, or wrote back its buffer. The mean of
    /// several arms.
    pub utilisation: f64,
    /// Share of time in which each part of the drive was busy, and the busiest part.
    pub busy_shares: BusyShares,
    /// Bytes in the buffer that were not written back at the end of the run.
    pub left_in_buffer_bytes: u64,
    /// Share of time in which the arm wrote back the buffer.
    pub destaging: f64,
    /// Reads and writes a second.
    pub requests_per_second: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Mean number of outstanding requests over time, with flushes; on one of independent drives.
    pub outstanding_mean: f64,
    /// Most outstanding requests at once; on one of independent drives.
    pub outstanding_max: u64,
    /// Hash over every completion, warm-up included, and every delivery of free work. Independent drives:
    /// hash over their hashes. Equal runs have equal hashes.
    pub result_hash: String,
    /// Hash over the completions alone, where there is free work. It equals the hash of the run without
    /// free work if that delayed no request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_hash: Option<String>,
    /// Independent drives, in order of their numbers; none when all drives are one volume.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<DriveResult>,
    /// Distribution of response times of reads and writes together.
    #[serde(skip)]
    pub response_distribution: Distribution,
    /// Distribution of response times of reads.
    #[serde(skip)]
    pub read_distribution: Distribution,
    /// Distribution of response times of writes.
    #[serde(skip)]
    pub write_distribution: Distribution,
}

/// Summary of one of several independent drives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveResult {
    /// Number of the drive, from zero.
    pub number: u32,
    /// Device of the trace on this drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    /// Seed of the drive: an experiment with this seed and this drive alone has the same result.
    pub seed: u64,
    /// Reads, writes, flushes and trims.
    pub requests: u64,
    /// Mean response time of reads and writes.
    pub response_ns_mean: f64,
    /// 99 % of the response times of reads and writes are no longer.
    pub response_ns_p99: u64,
    /// Time from its start to its last completion.
    pub elapsed_ns: u64,
    /// Share of that time in which it was busy.
    pub utilisation: f64,
    /// Hash over its completions and deliveries of free work.
    pub result_hash: String,
    /// Hash over its completions alone, where there is free work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_hash: Option<String>,
}

impl DriveResult {
    /// Time in which it was busy.
    pub fn busy_ns(&self) -> f64 {
        self.utilisation * self.elapsed_ns as f64
    }
}

impl RunResult {
    /// Mean response time of writes without force unit access; None where all have it.
    pub fn plain_write_ns_mean(&self) -> Option<f64> {
        let (count, sum_ns) = self.fua_write_response.as_ref().map_or((0, 0.0), count_and_sum);
        let (all, all_ns) = count_and_sum(&self.write_response);
        (all > count).then(|| (all_ns - sum_ns) / (all - count) as f64)
    }
}

fn count_and_sum(summary: &Summary) -> (u64, f64) {
    (summary.count, summary.mean_ns * summary.count as f64)
}

impl Tally {
    /// Sums of a run with a warm-up of this many requests, zero for none.
    pub(crate) fn with_warm_up(warm_up: u64) -> Self {
        let first = if warm_up > 0 { u64::MAX } else { 0 };
        Self { measured: Measured { first, warm_up, ..Measured::default() }, ..Self::default() }
    }

    /// A part begins with the request of sequence `first`; `work` has an entry for each arm.
    pub(crate) fn begin_part(&mut self, now: SimTime, first: u64, work: Vec<Work>, is_slice: bool) {
        if is_slice {
            self.slices.begin(first, now, &work);
        }
        if self.measured.first == u64::MAX {
            // Requests that are under way count as outstanding only.
            let waiting = self.outstanding.value();
            self.outstanding = Level::default();
            self.outstanding.set(now, waiting);
            self.measured = Measured { first, start: now, before: work, ..self.measured };
            if let Some(disks) = &mut self.disks {
                disks.begin(now);
            }
        }
    }

    #[inline]
    pub(crate) fn arrived(&mut self, now: SimTime) {
        self.outstanding.set(now, self.outstanding.value() + 1);
    }

    /// Counts from now on what each of `disks` disks does.
    pub(crate) fn count_disks(&mut self, disks: usize) {
        self.disks = Some(Box::new(DiskTallies::new(disks)));
    }

    /// True if it counts what each disk does.
    #[inline]
    pub(crate) fn counts_disks(&self) -> bool {
        self.disks.is_some()
    }

    /// A piece of a request has reached its disk.
    #[inline]
    pub(crate) fn piece_arrived(&mut self, now: SimTime, piece: &Piece) {
        if let Some(disks) = &mut self.disks {
            disks.arrived(now, piece);
        }
    }

    /// A piece of a request is done at this disk.
    #[inline]
    pub(crate) fn piece_done(&mut self, now: SimTime, disk: u32) {
        if let Some(disks) = &mut self.disks {
            disks.done(now, disk);
        }
    }

    /// A request is done that is no client's: only the hash knows of it.
    pub(crate) fn own_work(&mut self, completion: &Completion) {
        self.hash = mix(self.hash, word(completion));
    }

    /// True if requests have arrived and are not done.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.outstanding.value() > 0
    }

    /// True if the request of this sequence arrived during the warm-up. Sequences rise with arrivals.
    #[inline]
    pub(crate) fn is_warm_up(&self, sequence: u64) -> bool {
        sequence < self.measured.first
    }

    /// Counts a request that is done.
    #[inline]
    pub(crate) fn completed(&mut self, sequence: u64, completion: &Completion) {
        self.outstanding.set(completion.end, self.outstanding.value() - 1);
        self.hash = mix(self.hash, word(completion));
        if self.is_warm_up(sequence) {
            return;
        }
        if !self.slices.is_empty() {
            self.slices.completed(sequence, completion);
        }
        if completion.limit == LimitEnd::Missed {
            self.limits.missed += 1;
        }
        let response = completion.response();
        match completion.request.op {
            Op::Read => {
                self.reads.record(response);
                self.read_blocks += completion.request.blocks.get();
            }
            Op::Write => {
                self.writes.record(response);
                if completion.request.fua {
                    self.fua_writes.get_or_insert_default().record(response);
                }
                self.write_blocks += completion.request.blocks.get();
            }
            Op::Flush => return self.flushes.record(response),
            Op::Trim => return self.trims += 1,
        }
        if completion.hit {
            let reads = completion.request.op == Op::Read;
            *(if reads { &mut self.buffer_reads } else { &mut self.buffer_writes }) += 1;
        }
        self.longest_wait = self.longest_wait.max(completion.queue);
        self.stages.queue_ns += u128::from(completion.queue.ns());
        self.stages.drive_queue_ns += u128::from(completion.drive_queue.ns());
        self.stages.overhead_ns += u128::from(completion.overhead.ns());
        self.stages.seek_ns += u128::from(completion.seek.ns());
        self.stages.rotate_ns += u128::from(completion.rotate.ns());
        self.stages.transfer_ns += u128::from(completion.transfer.ns());
        self.stages.bus_ns += u128::from(completion.bus.ns());
    }

    /// Counts a refused write; `sequence` is that of the next request.
    pub(crate) fn refused(&mut self, sequence: u64, completion: &Completion, refusal: Refusal) {
        self.outstanding.set(completion.end, self.outstanding.value() - 1);
        self.hash = mix(self.hash, word(completion));
        if !self.is_warm_up(sequence) {
            self.refused.add(refusal);
        }
    }

    /// Counts a request that its duration limit has ended.
    pub(crate) fn aborted(&mut self, sequence: u64, completion: &Completion) {
        self.outstanding.set(completion.end, self.outstanding.value() - 1);
        self.hash = mix(self.hash, word(completion));
        if !self.is_warm_up(sequence) {
            self.limits.abort(completion.request.op);
        }
    }

    /// Adds the results of a scrub by the host.
    pub(crate) fn outside_scrub(&mut self, scrub: Option<OutsideScrub>) {
        self.outside_scrub = scrub;
    }

    /// Ends the run. `work` has an entry for each arm; `media_bytes_per_second` is their mean media
    /// rate.
    pub(crate) fn end(&mut self, now: SimTime, work: &[Work], media_bytes_per_second: u64) {
        self.slices.end(now, work);
        if self.measured.first == u64::MAX {
            // The run was shorter than its warm-up.
            self.begin_part(now, u64::MAX, work.to_vec(), false);
        }
        let Measured { start, before, .. } = &self.measured;
        let since: Vec<Work>;
        let work = if before.is_empty() {
            work
        } else {
            since = work.iter().zip(before).map(|(after, before)| after.since(before)).collect();
            &since
        };
        let sum = |time: fn(&Work) -> SimDuration| {
            work.iter().map(|work| u128::from(time(work).ns())).sum::<u128>()
        };
        self.ended = Ended {
            disks: self.disks.as_ref().map_or(Vec::new(), |disks| disks.results(*start, now, work)),
            elapsed: SimTime::ZERO + (now - *start),
            runs_ns: u128::from((now - *start).ns()),
            arms_ns: work.iter().map(|work| u128::from((now.max(work.until) - *start).ns())).sum(),
            dirty_blocks: work.iter().map(|work| work.dirty_blocks.get()).sum(),
            busy: BusyTime::of(work),
            head_time: HeadTime::of(work),
            destaging_ns: sum(|work| work.destaging),
            outstanding_area: self.outstanding.area(now),
            outstanding_max: self.outstanding.max(),
            free: work.iter().filter_map(|work| work.free).reduce(FreeTime::and),
            idle: work.iter().filter_map(|work| work.idle).reduce(IdleTime::and),
            cache: work.iter().filter_map(|work| work.cache).reduce(CacheWork::and),
            media_cache: work
                .iter()
                .filter_map(|work| work.media_cache)
                .reduce(MediaCacheWork::and),
            host: work.iter().filter_map(|work| work.host).reduce(Account::and),
            margins: margins_of(work),
            cost: work.iter().filter_map(|work| work.cost).reduce(CostSums::and),
            media_bytes_per_second,
        };
    }

    /// Adds the background results of every arm at the end of the run.
    pub(crate) fn background(&mut self, arms: impl IntoIterator<Item = Background>) {
        let end = self.ended.elapsed;
        self.background.extend(arms.into_iter().map(|arm| arm.result(end)));
    }

    /// Adds the background results of servers at the end of the run.
    pub(crate) fn served(&mut self, servers: impl IntoIterator<Item = ServedDevice>) {
        let end = self.ended.elapsed;
        self.background.extend(servers.into_iter().filter_map(|one| one.into_background(end)));
    }

    /// Adds the results of PostMark.
    pub(crate) fn postmark(&mut self, result: PostmarkResult) {
        self.postmark = Some(result);
    }

    /// Adds the results of files.
    pub(crate) fn files(&mut self, run: FilesRun) {
        self.files = Some(run);
    }

    /// Adds another run that has ended, except its hash, which depends on the order.
    pub(crate) fn add(&mut self, other: &Self) {
        self.background.extend_from_slice(&other.background);
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
        if let Some(fua_writes) = &other.fua_writes {
            self.fua_writes.get_or_insert_default().add(fua_writes);
        }
        self.flushes.add(&other.flushes);
        self.read_blocks += other.read_blocks;
        self.write_blocks += other.write_blocks;
        self.trims += other.trims;
        self.refused.merge(&other.refused);
        self.limits.merge(&other.limits);
        self.outside_scrub = self.outside_scrub.take().or(other.outside_scrub.clone());
        self.buffer_reads += other.buffer_reads;
        self.buffer_writes += other.buffer_writes;
        self.stages.add(&other.stages);
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.measured.warm_up += other.measured.warm_up;
        self.measured.start = self.measured.start.max(other.measured.start);
        self.slices.add(&other.slices);
        self.ended.add(&other.ended);
    }

    /// Summary of a run that has ended.
    pub(crate) fn result(self) -> RunResult {
        let Ended { elapsed, runs_ns, arms_ns, .. } = self.ended;
        let (result_hash, requests_hash) = self.hashes();
        let both = self.both();
        let seconds = (elapsed - SimTime::ZERO).as_secs_f64();
        let (read_bytes, write_bytes) = (self.read_blocks * 512, self.write_blocks * 512);
        RunResult {
            requests: self.requests(),
            warm_up_requests: self.measured.warm_up,
            warm_up_ns: self.measured.start.ns(),
            trims: self.trims,
            refused_writes: self.refused,
            duration_limits: self.limits,
            outside_scrub: self.outside_scrub,
            elapsed_ns: elapsed.ns(),
            read_bytes,
            write_bytes,
            stages: self.stages,
            arms_ns,
            head_time: self.ended.head_time,
            free: self
                .ended
                .free
                .map(|free| FreeResult::new(free, self.ended.media_bytes_per_second, elapsed.ns())),
            idle: self.ended.idle,
            cache: self.ended.cache,
            media_cache: self.ended.media_cache,
            host: self.ended.host,
            margins: self.ended.margins,
            free_cost: self.ended.cost.map(|sums| sums.cost()),
            disks: self.ended.disks,
            slices: self.slices.results(),
            background: self.background,
            postmark: self.postmark,
            files: self.files,
            inferred_completions: Vec::new(),
            other_times: None,
            response: both.summary(),
            read_response: self.reads.summary(),
            write_response: self.writes.summary(),
            fua_write_response: self.fua_writes.map(|fua_writes| fua_writes.summary()),
            flush_response: self.flushes.summary(),
            queue_ns_max: self.longest_wait.ns(),
            buffer_reads: self.buffer_reads,
            buffer_writes: self.buffer_writes,
            utilisation: self.ended.busy.utilisation(arms_ns),
            busy_shares: self.ended.busy.shares(arms_ns),
            destaging: share(self.ended.destaging_ns, arms_ns),
            left_in_buffer_bytes: self.ended.dirty_blocks * 512,
            requests_per_second: per_second(both.count(), seconds),
            bytes_per_second: per_second(read_bytes + write_bytes, seconds),
            outstanding_mean: share(self.ended.outstanding_area, runs_ns),
            outstanding_max: self.ended.outstanding_max,
            result_hash,
            requests_hash,
            drives: Vec::new(),
            response_distribution: both,
            read_distribution: self.reads,
            write_distribution: self.writes,
        }
    }

    /// Summary of the sum of these independent drives, in order of their numbers.
    pub(crate) fn result_of(self, drives: Vec<DriveResult>) -> RunResult {
        let result_hash = over(|drive| &drive.result_hash, &drives);
        let requests_hash = (!self.background.is_empty()).then(|| {
            over(|drive| drive.requests_hash.as_ref().unwrap_or(&drive.result_hash), &drives)
        });
        RunResult { drives, result_hash, requests_hash, ..self.result() }
    }

    /// Hash over completions and free work; with free work also over the completions alone.
    fn hashes(&self) -> (String, Option<String>) {
        let requests = hash_text(self.hash);
        if self.background.is_empty() {
            return (requests, None);
        }
        let arms = self.background.iter();
        let all = arms.fold(self.hash, |hash, arm| mix(hash, arm.delivered_hash));
        (hash_text(all), Some(requests))
    }

    /// Summary as the independent drive of this number, seed and device.
    pub(crate) fn drive_result(&self, number: u32, seed: u64, device: Option<u32>) -> DriveResult {
        let both = self.both();
        let (result_hash, requests_hash) = self.hashes();
        DriveResult {
            number,
            device,
            seed,
            requests: self.requests(),
            response_ns_mean: both.mean_ns(),
            response_ns_p99: both.quantile_ns(0.99),
            elapsed_ns: self.ended.elapsed.ns(),
            utilisation: self.ended.busy.utilisation(self.ended.arms_ns),
            result_hash,
            requests_hash,
        }
    }

    fn both(&self) -> Distribution {
        let mut both = self.reads.clone();
        both.add(&self.writes);
        both
    }

    fn requests(&self) -> u64 {
        self.reads.count()
            + self.writes.count()
            + self.flushes.count()
            + self.trims
            + self.refused.count
            + self.limits.aborted()
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

fn over(of: fn(&DriveResult) -> &String, drives: &[DriveResult]) -> String {
    let bytes = drives.iter().flat_map(|drive| of(drive).bytes());
    hash_text(bytes.fold(0, |hash, byte| mix(hash, u64::from(byte))))
}

impl Ended {
    fn add(&mut self, other: &Self) {
        self.elapsed = self.elapsed.max(other.elapsed);
        self.runs_ns += other.runs_ns;
        self.arms_ns += other.arms_ns;
        self.busy.add(&other.busy);
        self.head_time.add(&other.head_time);
        self.destaging_ns += other.destaging_ns;
        self.dirty_blocks += other.dirty_blocks;
        self.outstanding_area += other.outstanding_area;
        self.outstanding_max = self.outstanding_max.max(other.outstanding_max);
        self.free = self.free.into_iter().chain(other.free).reduce(FreeTime::and);
        self.idle = self.idle.into_iter().chain(other.idle).reduce(IdleTime::and);
        self.cache = self.cache.into_iter().chain(other.cache).reduce(CacheWork::and);
        let media_caches = self.media_cache.into_iter().chain(other.media_cache);
        self.media_cache = media_caches.reduce(MediaCacheWork::and);
        self.host = self.host.into_iter().chain(other.host).reduce(Account::and);
        MarginInUse::add(&mut self.margins, &other.margins);
        self.cost = self.cost.into_iter().chain(other.cost).reduce(CostSums::and);
        self.media_bytes_per_second = self.media_bytes_per_second.max(other.media_bytes_per_second);
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Margins of all arms.
fn margins_of(work: &[Work]) -> Vec<MarginInUse> {
    let mut all = Vec::new();
    work.iter().for_each(|work| MarginInUse::add(&mut all, &work.margins));
    all
}

fn hash_text(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Combines address and end into one word.
#[inline]
fn word(completion: &Completion) -> u64 {
    completion.end.ns() ^ completion.request.start.get().rotate_left(40)
}

#[cfg(test)]
mod tests {
    use freewheel_model::drive;
    use freewheel_model::electronics::Served;
    use freewheel_units::{Blocks, VolumeBlock};

    use super::*;
    use crate::source::Request;

    fn ms(n: u64) -> SimDuration {
        SimDuration::from_ms(n)
    }

    fn completion(op: Op, arrival_ms: u64, end_ms: u64, served: Served) -> Completion {
        let arrival = SimTime::ZERO + ms(arrival_ms);
        let request =
            Request { op, start: VolumeBlock::ZERO, blocks: Blocks::new(8), fua: false, tag: 0 };
        Completion::new(request, arrival, &Served { end: SimTime::ZERO + ms(end_ms), ..served })
    }

    /// A read of 6 ms at 0, a write that waits 3 ms and takes 5 ms, a flush: 20 ms in all.
    fn tally() -> Tally {
        let mut tally = Tally::default();
        let read = Served { seek: ms(3), rotate: ms(2), transfer: ms(1), ..Served::default() };
        let write = Served { overhead: ms(1), rotate: ms(4), hit: true, ..Served::default() };
        tally.arrived(SimTime::ZERO);
        tally.arrived(SimTime::ZERO + ms(3));
        tally.completed(0, &completion(Op::Read, 0, 6, read));
        tally.completed(1, &completion(Op::Write, 3, 11, write));
        tally.arrived(SimTime::ZERO + ms(20));
        tally.completed(2, &completion(Op::Flush, 20, 20, Served::default()));
        let head_time = drive::HeadTime { seek: ms(3), rotate: ms(6), transfer: ms(1) };
        let (busy, processing, bus) = (ms(11), ms(1), ms(2));
        let work = Work { busy, head_time, processing, bus, destaging: ms(5), ..Work::default() };
        tally.end(SimTime::ZERO + ms(20), &[work], 0);
        tally
    }

    #[test]
    fn result_sums_match_single_requests() {
        let result = tally().result();
        assert_eq!((result.requests, result.response.count), (3, 2));
        // Busy 6 + 5 of 20 ms; head time 6 + 4, of which 6 rotating.
        assert_eq!((result.utilisation, result.destaging), (0.55, 0.25));
        let BusyShares { head, bus, electronics, busiest } = result.busy_shares;
        assert_eq!((head, bus, electronics, busiest), (0.5, 0.1, 0.05, Resource::Head));
        assert_eq!((result.buffer_reads, result.buffer_writes), (0, 1));
        assert_eq!(result.head_time.rotate_share(), 0.6);
        assert_eq!(result.stages.queue_ns, 3_000_000);
        assert_eq!(result.requests_per_second, 100.0);
        assert_eq!((result.read_bytes, result.write_bytes), (4096, 4096));
        assert_eq!(result.bytes_per_second, 409_600.0);
        assert_eq!(result.queue_ns_max, 3_000_000);
        // Responses of 6 and 8 ms.
        assert_eq!(result.response.mean_ns, 7e6);
    }

    #[test]
    fn outstanding_requests_are_weighed_by_time() {
        // One from 0 to 3, two to 6, one to 11, none to 20 ms: 3 + 6 + 5 of 20.
        let result = tally().result();
        assert_eq!((result.outstanding_mean, result.outstanding_max), (0.7, 2));
    }

    /// A read of 4 ms in a run of 10 ms.
    fn short_tally() -> Tally {
        let mut tally = Tally::default();
        let read = Served { seek: ms(4), ..Served::default() };
        tally.arrived(SimTime::ZERO);
        tally.completed(0, &completion(Op::Read, 0, 4, read));
        tally.end(SimTime::ZERO + ms(10), &[Work { busy: ms(4), ..Work::default() }], 0);
        tally
    }

    #[test]
    fn shares_of_runs_weighed_by_time() {
        let mut sum = tally();
        sum.add(&short_tally());
        let result = sum.result();
        assert_eq!((result.requests, result.elapsed_ns), (4, 20_000_000));
        // Busy 11 of 20 and 4 of 10 ms.
        assert_eq!((result.utilisation, result.destaging), (15.0 / 30.0, 5.0 / 30.0));
        // 14 ms outstanding of 20 and 4 of 10.
        assert_eq!((result.outstanding_mean, result.outstanding_max), (18.0 / 30.0, 2));
        assert_eq!(result.response.mean_ns, 6e6);
        assert_eq!(result.requests_per_second, 150.0);
    }

    #[test]
    fn tally_sums_independent_of_grouping() {
        let left = || {
            let mut sum = Tally::default();
            [tally(), short_tally(), tally()].iter().for_each(|run| sum.add(run));
            sum
        };
        let mut right = short_tally();
        right.add(&tally());
        let mut sum = tally();
        sum.add(&right);
        let hash = |drives| left().result_of(drives).result_hash;
        let (a, b) = (tally().drive_result(0, 1, None), short_tally().drive_result(1, 2, None));
        assert_ne!(hash(vec![a.clone(), b.clone()]), hash(vec![b.clone(), a.clone()]));
        let drives = vec![a, b];
        assert_eq!(left().result_of(drives.clone()), sum.result_of(drives));
    }
}
