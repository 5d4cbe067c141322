//! Properties of the event loop for every drive, policy and workload.

use std::collections::BTreeMap;
use std::sync::Arc;

use freewheel_model::sched::POLICIES;
use freewheel_model::striping::Striping;
use freewheel_sim::config::{SimConfig, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::{Fit, Placement, Replay, ReplayTiming};
use freewheel_sim::{Arm, ArmExecutor, Completion, Mechanics, RunResult, SeekErrors, library, run};
use freewheel_trace::Record;
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime, VolumeBlock};
use proptest::prelude::*;

fn experiment(text: &str) -> Experiment {
    Experiment::new(SimConfig::parse(text, "test", &[]).unwrap()).unwrap()
}

fn completions(experiment: &Experiment) -> (RunResult, Vec<Completion>) {
    let mut list = Vec::new();
    let result = experiment.new_run().with_observer(&mut |c| list.push(*c)).simulate().unwrap();
    (result, list)
}

fn closed(drive: &str, policy: &str, outstanding: u32, seed: u64, more: &str) -> Experiment {
    experiment(&format!(
        "seed = {seed}\ndrive = \"{drive}\"\n{more}\nscheduler = {{ policy = \"{policy}\" }}\n\
         [workload]\nkind = \"closed\"\nrequests = 400\noutstanding = {outstanding}\n\
         pattern = {{ size = \"24KiB\", size_distribution = \"exponential\", local_share = 0.3 }}\n"
    ))
}

fn any_experiment() -> impl Strategy<Value = Experiment> {
    let drive = prop::sample::select(library::names());
    let policy = prop::sample::select(POLICIES);
    let more = prop::sample::select(&["", "array.drives = 5", BARE][..]);
    (drive, policy, more, 1u32..40, any::<u64>()).prop_map(
        |(drive, policy, more, outstanding, seed)| {
            closed(drive, policy.name, outstanding, seed >> 1, more)
        },
    )
}

const BARE: &str = "electronics = false";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stage_times_add_up_to_response(experiment in any_experiment()) {
        let (result, list) = completions(&experiment);
        for c in &list {
            prop_assert_eq!(c.queue + c.service(), c.response());
        }
        let stages = &result.stages;
        let head_ns = stages.seek_ns + stages.rotate_ns + stages.transfer_ns;
        let sum = stages.queue_ns + stages.overhead_ns + head_ns + stages.bus_ns;
        let responses: u64 = list.iter().map(|c| c.response().ns()).sum();
        prop_assert_eq!(sum, u128::from(responses));
    }

    #[test]
    fn completions_ordered_and_after_arrival(experiment in any_experiment()) {
        let (_, list) = completions(&experiment);
        prop_assert!(list.windows(2).all(|pair| pair[0].end <= pair[1].end));
        prop_assert!(list.iter().all(|c| c.arrival <= c.end));
    }

    #[test]
    fn head_serves_one_and_never_idles(
        policy in prop::sample::select(POLICIES), outstanding in 1u32..40, seed in 0u64..1 << 63
    ) {
        let experiment = closed("atlas10k", policy.name, outstanding, seed, BARE);
        let (_, list) = completions(&experiment);
        let mut free = SimTime::ZERO;
        for c in &list {
            let began = c.arrival + c.queue;
            prop_assert!(began >= free, "two requests at the head");
            prop_assert!(began == free || began == c.arrival, "idle while one waits");
            free = c.end;
        }
    }

    #[test]
    fn run_repeats_byte_for_byte(experiment in any_experiment()) {
        let bytes = || serde_json::to_string(&experiment.run().unwrap()).unwrap();
        prop_assert_eq!(bytes(), bytes());
    }

    #[test]
    fn requests_complete_exactly_once(experiment in any_experiment()) {
        let (result, list) = completions(&experiment);
        let Workload::Closed { requests, .. } = experiment.config.workload else { unreachable!() };
        prop_assert_eq!(list.len() as u64, requests);
        prop_assert_eq!(result.requests, requests);
    }

    #[test]
    fn arms_work_at_most_whole_time(experiment in any_experiment()) {
        let (result, _) = completions(&experiment);
        prop_assert!((0.0..=1.0).contains(&result.utilisation), "{}", result.utilisation);
        prop_assert!(result.destaging <= result.utilisation);
    }

    #[test]
    fn little_s_law_holds(experiment in any_experiment()) {
        // Requests outstanding = arrivals a second times response time, exactly over a whole run.
        // Those that are refused are never outstanding.
        let (result, list) = completions(&experiment);
        let served = list.iter().filter(|c| c.refused.is_none()).count();
        let by_law = served as f64 * result.response.mean_ns / result.elapsed_ns as f64;
        prop_assert!((result.outstanding_mean / by_law - 1.0).abs() < 1e-9);
    }
}

fn record(arrival_us: u64, op: Op, start: u64) -> Record {
    Record {
        widened: false,
        arrival: SimTime::from_ns(arrival_us * 1000),
        op,
        device: 0,
        start: VolumeBlock::new(start),
        blocks: Blocks::new(if op == Op::Flush { 0 } else { 8 }),
        completion: None,
        fua: false,
    }
}

/// Plays records by arrival on the Atlas 10K.
fn play(records: &[Record], policy: &str) -> Vec<Completion> {
    let (_, drive) = library::drive("atlas10k").unwrap();
    let devices = BTreeMap::from([(0, drive.blocks().get())]);
    let placement = Placement::new(&devices, None, drive.blocks(), Fit::AsIs).unwrap();
    let list = records.iter().copied().map(Ok);
    let mut source = Replay::new(list, placement, ReplayTiming::TRACED, records.len() as u64);
    let policy = policy.parse::<freewheel_model::sched::PolicySpec>().unwrap().build().unwrap();
    let mut done = Vec::new();
    let drive = Arc::new(drive);
    let device = Mechanics::new(&drive, ArmExecutor::new(SeekErrors::new(&drive, 1, 0)));
    let striping = Striping::single(drive.blocks());
    let arm = Arm { drive, policy, device };
    run(&striping, None, &mut [arm], &mut source, &mut |c| done.push(*c)).unwrap();
    done
}

/// A flush by its definition: the latest end among the writes that arrived before it.
fn flush_end(records: &[Record], done: &[Completion], index: usize) -> SimTime {
    let earlier_write = |c: &&Completion| c.request.op == Op::Write && c.request.tag < index as u64;
    let last = done.iter().filter(earlier_write).map(|c| c.end).max();
    // Time zero of a replay is its first request.
    let arrival = SimTime::ZERO + (records[index].arrival - records[0].arrival);
    last.unwrap_or(SimTime::ZERO).max(arrival)
}

proptest! {
    #[test]
    fn flush_done_after_earlier_writes(seed: u64) {
        let prng = &mut Prng::new(seed, "flushes");
        let mut now = 0;
        let records: Vec<Record> = (0..60)
            .map(|_| {
                now += prng.below(9_000);
                let op = [Op::Read, Op::Write, Op::Write, Op::Flush][prng.below(4) as usize];
                record(now, op, prng.below(2_000_000) * 8)
            })
            .collect();
        let done = play(&records, "sptf");
        prop_assert_eq!(done.len(), records.len());
        for c in done.iter().filter(|c| c.request.op == Op::Flush) {
            prop_assert_eq!(c.end, flush_end(&records, &done, c.request.tag as usize));
        }
    }
}

#[test]
fn flush_ignores_reads_and_later_writes() {
    let records =
        [record(0, Op::Read, 0), record(10, Op::Flush, 0), record(20, Op::Write, 8_000_000)];
    let done = play(&records, "fcfs");
    let flush = done.iter().find(|c| c.request.op == Op::Flush).unwrap();
    assert_eq!(flush.response(), SimDuration::ZERO);
}

#[test]
fn simultaneous_arrivals_all_considered() {
    // SPTF at time zero: the request on the head's own cylinder wins, though it came last.
    let records =
        [record(0, Op::Read, 16_000_000), record(0, Op::Read, 9_000_000), record(0, Op::Read, 400)];
    assert_eq!(play(&records, "sptf")[0].request.start.get(), 400);
    assert_eq!(play(&records, "fcfs")[0].request.start.get(), 16_000_000);
}

#[test]
fn seek_tolerance_keeps_mean_and_bounds() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/atlas10k.toml"));
    let jittery = text.unwrap().replace("write_settle", "tolerance = \"50us\"\nwrite_settle");
    let spec: freewheel_model::drive::spec::DriveSpec = toml::from_str(&jittery).unwrap();
    let drive = library::build(&spec, "jittery").unwrap();
    let mut experiment = closed("atlas10k", "fcfs", 1, 1, BARE);
    let exact_drive = experiment.drive.clone();
    experiment.drive = Arc::new(drive);
    let (_, list) = completions(&experiment);
    let mut head = freewheel_model::drive::Position::default();
    let mut errors = Vec::new();
    for c in &list {
        let target =
            exact_drive.target(Lbn::new(c.request.start.get()), c.request.blocks, c.request.op);
        let exact = exact_drive.access(c.arrival, head, &target);
        errors.push(c.seek.ns() as i64 - exact.seek.ns() as i64);
        head = exact.end;
    }
    assert!(errors.iter().all(|error| error.abs() <= 50_000), "{:?}", errors.iter().max());
    assert!(errors.iter().any(|error| error.abs() > 40_000), "no error near the tolerance");
    // Uniform within 50 us: the mean of 400 is within 4 times 29 us / sqrt(400) of none.
    let mean = errors.iter().sum::<i64>() as f64 / errors.len() as f64;
    assert!(mean.abs() < 6_000.0, "mean seek error of {mean} ns");
}

#[test]
fn arms_and_drives_multiply_random_throughput() {
    let rate = |drive: &str, drives: u32| {
        let text = format!(
            "drive = \"{drive}\"\nelectronics = false\narray.drives = {drives}\n\
             [workload]\nkind = \"closed\"\nrequests = 4000\noutstanding = 64\n"
        );
        completions(&experiment(&text)).0.requests_per_second
    };
    let one = rate("exos-x24-24tb", 1);
    let two_arms = rate("exos-2x18-18tb", 1) / one;
    assert!((1.85..2.05).contains(&two_arms), "{two_arms}");
    let four = rate("exos-x24-24tb", 4) / one;
    assert!((3.6..4.05).contains(&four), "{four}");
}

#[test]
fn flush_waits_for_buffered_writes() {
    let text = "drive = \"atlas10k\"\n[workload]\nkind = \"closed\"\nrequests = 1\n\
                pattern = { read_share = 0.0 }\n";
    let mut experiment = experiment(text);
    let records = [record(0, Op::Write, 8_000_000), record(5_000, Op::Flush, 0)];
    let end_of_flush = |experiment: &Experiment| {
        let devices = BTreeMap::from([(0, experiment.drive.blocks().get())]);
        let blocks = experiment.drive.blocks();
        let placement = Placement::new(&devices, None, blocks, Fit::AsIs).unwrap();
        let mut source =
            Replay::new(records.iter().copied().map(Ok), placement, ReplayTiming::TRACED, 2);
        let mut done = Vec::new();
        experiment
            .new_run()
            .with_observer(&mut |c| done.push(*c))
            .simulate_source(&mut source)
            .unwrap();
        let of = |op| done.iter().find(|c| c.request.op == op).unwrap().end;
        (of(Op::Write), of(Op::Flush))
    };
    // The write is done in about a millisecond; the arm needs longer for half a stroke.
    let (write, flush) = end_of_flush(&experiment);
    assert!(write < SimTime::ZERO + SimDuration::from_ms(2), "{write}");
    assert!(flush > SimTime::ZERO + SimDuration::from_ms(7), "{flush}");
    experiment.config.electronics = false;
    let (write, flush) = end_of_flush(&experiment);
    assert!(write > SimTime::ZERO + SimDuration::from_ms(7), "{write}");
    assert_eq!(flush, write.max(SimTime::ZERO + SimDuration::from_ms(5)));
}

#[test]
fn flush_done_soon_despite_later_writes() {
    // A far write, a flush, and then near writes, one a millisecond, on a drive that orders them.
    let text = "drive = \"exos-x24-24tb\"\n[workload]\nkind = \"closed\"\nrequests = 1\n";
    let experiment = experiment(text);
    let mut records = vec![record(0, Op::Write, 40_000_000_000), record(100, Op::Flush, 0)];
    records.extend((0..3000u64).map(|i| record(200 + i * 1000, Op::Write, i * 997 % 4096 * 64)));
    let devices = BTreeMap::from([(0, experiment.drive.blocks().get())]);
    let placement = Placement::new(&devices, None, experiment.drive.blocks(), Fit::AsIs).unwrap();
    let mut source =
        Replay::new(records.iter().copied().map(Ok), placement, ReplayTiming::TRACED, 3002);
    let mut flush = SimTime::ZERO;
    let mut observe = |c: &Completion| {
        if c.request.op == Op::Flush {
            flush = c.end;
        }
    };
    experiment.new_run().with_observer(&mut observe).simulate_source(&mut source).unwrap();
    assert!(flush < SimTime::ZERO + SimDuration::from_ms(60), "{flush}");
}

#[test]
fn drive_queue_depth_settable_within_range() {
    let text = |depth: u32| {
        format!("queue_depth = {depth}\n[workload]\nkind = \"closed\"\noutstanding = 20\n")
    };
    let hash = |depth| experiment(&text(depth)).run().unwrap().result_hash;
    assert_ne!(hash(1), hash(32));
    // What the drive's file says is 32.
    assert_eq!(
        hash(32),
        experiment(text(32).split_once('\n').unwrap().1).run().unwrap().result_hash
    );
    for depth in [0, 65_537] {
        let config = SimConfig::parse(&text(depth), "test", &[]).unwrap();
        let message = Experiment::check(&config).unwrap_err().to_string();
        assert!(message.contains(&format!("`queue_depth` is {depth}: 1 to 65536")), "{message}");
    }
}

#[test]
fn configs_checked_together_keep_own_faults() {
    let config = |text: &str| SimConfig::parse(text, "test", &[]).unwrap();
    let closed = "[workload]\nkind = \"closed\"\nrequests = 1";
    let good = config(&format!("drive = \"atlas10k\"\n{closed}"));
    let other = config(&format!("drive = \"exos-x24-24tb\"\n{closed}"));
    // More than the Atlas 10K holds, and less than the other drive.
    let far = format!("{closed}\npattern = {{ size = \"64GiB\" }}");
    let faulty = config(&format!("drive = \"atlas10k\"\n{far}"));
    let alone = Experiment::check(&faulty).unwrap_err().to_string();
    for before in [&good, &other] {
        let all = [good.clone(), before.clone(), faulty.clone()];
        let together = Experiment::check_each(all.into_iter()).unwrap_err();
        assert_eq!(together.to_string(), alone);
    }
    Experiment::check_each([good.clone(), other, good].into_iter()).unwrap();
}
