//! PostMark on the log-structured disk: its work, and the cost of cleaning.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use freewheel_freeblock::Options;
use freewheel_model::drive::Drive;
use freewheel_model::log_disk::{Cleaner, Command, LogDiskSpec};
use freewheel_model::sched::PolicySpec;
use freewheel_model::striping::Striping;
use freewheel_sim::PostmarkResult;
use freewheel_sim::config::{SimConfig, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::postmark::{
    CpuTimes, FileOp, FreeReads, MetadataWrites, NoFreeReads, Pass, Postmark, PostmarkProcess,
    PostmarkSpec, SmallFiles, cleaning_task, files_for, used_blocks,
};
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_sim::{Arm, ArmExecutor, Completion, Device, FreeTime, Mechanics, SeekErrors, run};
use freewheel_units::{SimDuration, SimTime};

use crate::common::one_surface::one_surface;

fn operations(spec: PostmarkSpec, transactions: usize, seed: u64) -> (Vec<FileOp>, Vec<FileOp>) {
    let mut generator = Postmark::new(spec, seed);
    let pool = std::iter::from_fn(|| generator.fill_pool()).collect();
    let transactions = (0..transactions).flat_map(|_| generator.transaction()).flatten().collect();
    (pool, transactions)
}

#[test]
fn operations_come_in_given_proportions() {
    let spec = PostmarkSpec::osdi00(5_000);
    let (pool, transactions) = operations(spec, 20_000, 1);
    assert_eq!(pool.len(), 5_000);
    let count = |is: fn(&FileOp) -> bool| transactions.iter().filter(|op| is(op)).count() as f64;
    let reads = count(|op| matches!(op, FileOp::Read(_)));
    let creates = count(|op| matches!(op, FileOp::Create { .. }));
    let deletes = count(|op| matches!(op, FileOp::Delete(_)));
    assert_eq!(creates + deletes, 20_000.0);
    // Ten standard deviations of a fair coin's share over 20,000 are 3.5 %.
    assert!((reads / 20_000.0 - 0.5).abs() < 0.035, "{reads} reads");
    assert!((creates / 20_000.0 - 0.5).abs() < 0.035, "{creates} creations");
    let spec = PostmarkSpec { read_bias: 10, create_bias: 0, ..spec };
    let (_, only) = operations(spec, 1_000, 1);
    assert!(only.iter().all(|op| matches!(op, FileOp::Read(_) | FileOp::Delete(_))));
}

#[test]
fn files_sized_and_spread_as_configured() {
    let (pool, _) = operations(PostmarkSpec::osdi00(20_000), 0, 1);
    let mut by_directory = vec![0u32; 100];
    let mut sum = 0;
    for op in &pool {
        let &FileOp::Create { directory, bytes, .. } = op else { panic!("{op:?}") };
        assert!((5_120..10_240).contains(&bytes));
        by_directory[directory as usize] += 1;
        sum += u64::from(bytes);
    }
    let mean = sum as f64 / 20_000.0;
    assert!((mean - 7_680.0).abs() < 60.0, "mean of {mean} bytes");
    assert!(by_directory.iter().all(|&files| (130..270).contains(&files)), "{by_directory:?}");
}

#[test]
fn operations_hit_existing_files_within_size() {
    let (pool, transactions) = operations(PostmarkSpec::osdi00(300), 20_000, 3);
    let mut sizes = BTreeMap::new();
    for op in pool.iter().chain(&transactions) {
        match *op {
            FileOp::Create { file, bytes, .. } => assert_eq!(sizes.insert(file, bytes), None),
            FileOp::Read(file) => assert!(sizes.contains_key(&file)),
            FileOp::Append { file, bytes } => {
                let size = sizes.get_mut(&file).unwrap();
                *size += bytes;
                assert!(bytes > 0 && *size <= 10_240);
            }
            FileOp::Delete(file) => assert!(sizes.remove(&file).is_some()),
        }
    }
}

#[test]
fn file_read_from_blocks_written() {
    let (pool, transactions) = operations(PostmarkSpec::osdi00(300), 5_000, 3);
    let mut commands = VecDeque::new();
    let mut files = SmallFiles::new(100, MetadataWrites::Delayed, &mut commands);
    commands.clear();
    let metadata = files.used_blocks();
    let (mut sizes, mut writers) = (BTreeMap::new(), BTreeMap::new());
    let mut read_back = 0;
    for &op in pool.iter().chain(&transactions) {
        files.apply(op, &mut commands);
        let file = match op {
            FileOp::Create { file, bytes, .. } => {
                sizes.insert(file, bytes);
                file
            }
            FileOp::Append { file, bytes } => {
                *sizes.get_mut(&file).unwrap() += bytes;
                file
            }
            FileOp::Read(file) | FileOp::Delete(file) => file,
        };
        let blocks = sizes[&file].div_ceil(4096);
        let list: Vec<Command> = commands.drain(..).collect();
        if matches!(op, FileOp::Read(_)) {
            for command in list.iter().rev().take(blocks as usize) {
                let Command::Read(block) = command else { panic!("{command:?}") };
                assert_eq!(writers.get(block), Some(&file));
                read_back += 1;
            }
        }
        let mut deleted = 0;
        for command in list {
            match command {
                Command::Write(block) => _ = writers.insert(block, file),
                Command::Delete(block) => {
                    assert_eq!(writers.remove(&block), Some(file));
                    deleted += 1;
                }
                _ => {}
            }
        }
        if matches!(op, FileOp::Delete(_)) {
            assert_eq!(deleted, blocks);
            sizes.remove(&file);
        }
        let data: u32 = sizes.values().map(|size: &u32| size.div_ceil(4096)).sum();
        // A block a subdirectory, and some for inodes, are added when they are first used.
        assert!((data..=data + metadata + 110).contains(&files.used_blocks()));
    }
    assert!(read_back > 4_000);
}

#[test]
fn metadata_logged_at_once_or_with_data() {
    let commands = |metadata| {
        let mut commands = VecDeque::new();
        let mut files = SmallFiles::new(1, metadata, &mut commands);
        commands.clear();
        files.apply(FileOp::Create { file: 0, directory: 0, bytes: 5_000 }, &mut commands);
        let through = commands.iter().filter(|c| matches!(c, Command::WriteThrough(_))).count();
        let delayed = commands.iter().filter(|c| matches!(c, Command::Write(_))).count();
        (through, delayed)
    };
    // The directory's entry and inode and the file's inode; two blocks of data.
    assert_eq!(commands(MetadataWrites::Immediate), (3, 2));
    assert_eq!(commands(MetadataWrites::Delayed), (0, 5));
}

/// A log of 30 MiB with a cache of 2.4 MiB.
const SMALL_LOG: LogDiskSpec =
    LogDiskSpec { segments: 60, cache_blocks: 600, ..LogDiskSpec::OSDI00 };

fn executor<'p>(drive: &Drive) -> ArmExecutor<'p> {
    ArmExecutor::new(SeekErrors::new(drive, 1, 0))
}

/// Serves all of `source`, and shows every request that was served.
fn serve(
    drive: &Arc<Drive>,
    executor: ArmExecutor<'_>,
    source: &mut impl Source,
) -> (Vec<Completion>, Option<FreeTime>) {
    let policy = PolicySpec::Fcfs.build().unwrap();
    let device = Mechanics::new(drive, executor);
    let mut arms = [Arm { drive: Arc::clone(drive), policy, device }];
    let mut served = Vec::new();
    let striping = Striping::single(drive.blocks());
    run(&striping, None, &mut arms, source, &mut |c| served.push(*c)).unwrap();
    (served, arms[0].device.work(SimTime::MAX).free)
}

fn process<F: FreeReads>(
    files: u32,
    disk: LogDiskSpec,
    free_reads: F,
    seed: u64,
) -> PostmarkProcess<F> {
    let spec = PostmarkSpec { transactions: 3_000, ..PostmarkSpec::osdi00(files) };
    let us = SimDuration::from_us;
    let cpu = CpuTimes { operation: us(100), block: us(50), request: us(100) };
    PostmarkProcess::new(spec, disk, MetadataWrites::Delayed, cpu, 2, free_reads, seed)
}

fn second_pass<F: FreeReads>(process: &PostmarkProcess<F>) -> Pass {
    assert_eq!(process.passes().len(), 2);
    process.passes()[1]
}

fn original(files: u32, seed: u64) -> Pass {
    let drive = one_surface();
    let mut process = process(files, SMALL_LOG, NoFreeReads, seed);
    serve(&drive, executor(&drive), &mut process);
    second_pass(&process)
}

/// The second pass, every request of both, and what became of the gaps.
fn freeblock_served(files: u32, seed: u64) -> (Pass, Vec<Completion>, FreeTime) {
    let drive = one_surface();
    let cleaner = Cleaner::Freeblock { free_below: 6, segments: 6 };
    let disk = LogDiskSpec { cleaner, ..SMALL_LOG };
    let (task, mut planner) = cleaning_task(&drive, disk.block, Options::default());
    let mut process = process(files, disk, task, seed);
    let executor = executor(&drive).with_planner(&mut planner);
    let (served, free) = serve(&drive, executor, &mut process);
    (second_pass(&process), served, free.unwrap())
}

fn freeblock(files: u32, seed: u64) -> Pass {
    freeblock_served(files, seed).0
}

#[test]
fn postmark_run_depends_only_on_seed() {
    assert_eq!(original(1_500, 1), original(1_500, 1));
    assert_ne!(original(1_500, 1), original(1_500, 2));
    assert_eq!(freeblock(1_500, 1), freeblock(1_500, 1));
}

#[test]
fn log_fullness_known_without_run() {
    let spec = PostmarkSpec { transactions: 3_000, ..PostmarkSpec::osdi00(1_500) };
    let share = used_blocks(spec, 2, 1) / f64::from(SMALL_LOG.capacity_blocks());
    assert_eq!(share, original(1_500, 1).utilisation);
}

#[test]
fn cache_of_all_files_leaves_computing() {
    let pass = original(100, 1);
    assert_eq!((pass.work.fetched_blocks, pass.work.segments_written), (0, 0));
    assert_eq!(pass.cleaning.total(), SimDuration::ZERO);
    // Two operations of 100 us, and some tens of blocks at 50 us each.
    assert!((500.0..2_000.0).contains(&pass.rate()), "{} a second", pass.rate());
}

#[test]
fn cleaning_share_grows_with_log_fullness() {
    let passes = [1_000, 1_500, 2_000, 2_250].map(|files| original(files, 1));
    let share = |pass: &Pass| pass.cleaning.total().as_secs_f64() / pass.elapsed.as_secs_f64();
    assert!(passes.windows(2).all(|pair| pair[0].utilisation < pair[1].utilisation));
    assert!(passes.windows(2).all(|pair| share(&pair[0]) < share(&pair[1])));
    assert!(share(&passes[3]) > 0.3, "{:?}", passes[3]);
    for pass in &passes[1..] {
        let rates = [pass.rate(), pass.rate_with_free_reads(), pass.rate_without_cleaning()];
        assert!(rates.is_sorted() && rates[0] < rates[2], "{rates:?}");
    }
}

#[test]
fn freeblock_cleaning_saves_most_of_cost() {
    let (original, freeblock) = (original(2_000, 1), freeblock(2_000, 1));
    let (ideal, rate) = (original.rate_without_cleaning(), freeblock.rate());
    assert!(rate < ideal, "{rate} a second, ideal {ideal}");
    let saved = (rate - original.rate()) / (ideal - original.rate());
    assert!(saved > 0.5, "{saved}: {original:?}, {freeblock:?}");
    assert!(freeblock.work.free_copied_blocks > 4 * freeblock.work.copied_blocks);
}

/// Requests at the times at which they once came.
struct Again(VecDeque<(SimTime, Request)>);

impl Source for Again {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(self.0.front().map(|&(at, _)| at))
    }

    fn take(&mut self) -> Request {
        self.0.pop_front().unwrap().1
    }

    fn completed(&mut self, _: u64, _: SimTime) {}

    fn progress(&self) -> (u64, u64) {
        (0, 0)
    }
}

#[test]
fn gap_cleaning_delays_no_request() {
    let (pass, served, free) = freeblock_served(2_000, 1);
    assert!(pass.work.free_copied_blocks > 1_000 && free.gaps_used > 1_000, "{free:?}");
    assert_eq!((free.gaps_late, free.foreground_delay_ns), (0, 0));
    let drive = one_surface();
    let requests = served.iter().map(|c| (c.arrival, c.request)).collect();
    let (alone, _) = serve(&drive, executor(&drive), &mut Again(requests));
    assert_eq!(served, alone);
}

/// An experiment with PostMark on a drive with one surface.
fn experiment(cleaner: &str) -> Experiment {
    let text = format!(
        "drive = \"atlas10k\"\nelectronics = false\nworkload = {{ kind = \"postmark\", files = 38500, \
         passes = 1, transactions = 8000, cleaner = \"{cleaner}\" }}\n"
    );
    let config = SimConfig::parse(&text, "test", &[]).unwrap();
    let mut experiment = Experiment::new(config).unwrap();
    experiment.drive = one_surface();
    experiment.striping = Striping::single(experiment.drive.blocks());
    experiment
}

fn postmark(cleaner: &str) -> PostmarkResult {
    experiment(cleaner).run().unwrap().postmark.unwrap()
}

#[test]
fn postmark_experiment_runs_same_process() {
    let experiment = experiment("original");
    let Workload::Postmark(workload) = &experiment.config.workload else { unreachable!() };
    let spec = PostmarkSpec { transactions: workload.transactions, ..PostmarkSpec::osdi00(38_500) };
    let (disk, metadata) = (LogDiskSpec::OSDI00, MetadataWrites::Delayed);
    let drive = &experiment.drive;
    let mut process =
        PostmarkProcess::new(spec, disk, metadata, CpuTimes::OSDI00, 1, NoFreeReads, 1);
    let device = Mechanics::new(drive, ArmExecutor::new(SeekErrors::new(drive, 1, 0)));
    let policy = PolicySpec::Fcfs.build().unwrap();
    let mut arms = [Arm { drive: Arc::clone(drive), policy, device }];
    run(&experiment.striping, None, &mut arms, &mut process, &mut |_| {}).unwrap();
    let [pass] = process.passes() else { panic!("{:?}", process.passes()) };
    let [original, ideal, freeblock] = ["original", "ideal", "freeblock"].map(postmark);
    let ours = original.passes[0];
    assert_eq!((ours.elapsed_ns, original.files), (pass.elapsed.ns(), 38_500));
    assert_eq!(ours.segments_cleaned, pass.work.segments_cleaned);
    assert_eq!(ours.copied_blocks, pass.work.copied_blocks);
    assert!(ours.segments_cleaned > 20, "{ours:?}");
    assert_eq!(ideal.passes[0].transactions_per_second, pass.rate_without_cleaning());
    let took = ours.cleaning_read_ns + ours.cleaning_copy_ns;
    assert_eq!(ideal.passes[0].elapsed_ns, ours.elapsed_ns - took);
    let free = freeblock.passes[0];
    assert!(free.free_copied_blocks > 500 && free.segments_targeted > 10, "{free:?}");
    assert!(free.transactions_per_second > ours.transactions_per_second, "{free:?}");
}

#[test]
fn postmark_conflicts_refused_with_remedy() {
    for (keys, message) in [
        ("workload.size_min = \"10KiB\"", "`size_min` is 10KiB and `size_max` 10KiB"),
        ("workload.size_max = \"1MiB\"", "`size_min` is 5KiB and `size_max` 1MiB"),
        ("workload.utilisation = 0.99", "`utilisation` is 0.99: from 0.01 to 0.93"),
        ("workload.utilisation = 0.5\nworkload.files = 9", "`utilisation` and `files`"),
        ("workload.files = 60000", "`files` is 60000: they take"),
        (
            "workload.utilisation = 0.01\nworkload.subdirectories = 1700",
            "`utilisation` is 0.01: the nearest found is 0.0",
        ),
        ("workload.files = 0", "`files` is 0: at least 1"),
        ("workload.files = 5000\nworkload.subdirectories = 2", "`files` is 5000: at most 2000"),
        ("workload.passes = 0", "`passes` is 0"),
        ("workload.transactions = 5000000", "`transactions` is 5000000: at most"),
        ("freeblock.rule = \"greedy\"", "`kind` is postmark: `freeblock` does not go with it"),
        ("host = {}", "`kind` is postmark: `host`"),
        ("array.drives = 2", "`kind` is postmark: its log is on one drive"),
        ("drive = \"exos-2x18-18tb\"", "`kind` is postmark: its log is on one drive"),
        ("drive = \"ultrastar-hc680-28tb\"", "`kind` is postmark: a host-managed drive"),
    ] {
        let text = format!("workload.kind = \"postmark\"\n{keys}\n");
        let config = SimConfig::parse(&text, "test", &[]).unwrap();
        let error = Experiment::check(&config).unwrap_err().to_string();
        assert!(error.starts_with(&format!("workload: {message}")), "{keys}: {error}");
    }
    let rounds = "workload = { kind = \"postmark\", requests = 9 }\n";
    let error = SimConfig::parse(rounds, "test", &[]).unwrap_err().to_string();
    assert!(error.contains("there is no key `workload.requests`"), "{error}");
}

#[test]
fn log_fullness_matches_at_any_file_size() {
    for (size_min, size_max) in [(1, 28), (1, 4), (5, 10), (10, 20), (20, 28), (27, 28)] {
        for share in [0.1, 0.6, 0.9] {
            let keys = format!(
                "workload = {{ kind = \"postmark\", utilisation = {share}, size_min = \"{size_min}KiB\", size_max = \"{size_max}KiB\", subdirectories = 200 }}"
            );
            let config = SimConfig::parse(&keys, "test", &[]).unwrap();
            Experiment::check(&config).unwrap();
            let (size_min, size_max) = (size_min << 10, size_max << 10);
            let osdi00 = PostmarkSpec::osdi00(0);
            let spec = PostmarkSpec { subdirectories: 200, size_min, size_max, ..osdi00 };
            let files = files_for(spec, share, 2, 1);
            let used = used_blocks(PostmarkSpec { files, ..spec }, 2, 1);
            let off = used / f64::from(LogDiskSpec::OSDI00.capacity_blocks()) - share;
            assert!(off.abs() < 0.001, "{keys}: {files} files are {off} off");
        }
    }
}
