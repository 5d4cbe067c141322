//! Background work of an experiment: rounds, and the promotion of their last blocks.

use freewheel_testkit::electronics::any_electronics;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use freewheel_model::drive::Drive;
use freewheel_model::striping::Striping;

use freewheel_freeblock::tasks::{RoundKind, TaskKind};
use freewheel_sim::background::TaskResult;
use freewheel_sim::config::{Layout, SimConfig, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::source::PatternSpec;
use freewheel_sim::{Completion, HostConfig, RunResult};
use freewheel_units::{Bytes, Prng, SimDuration, SimTime};

/// A closed workload on a small drive.
fn experiment(policy: &str, freeblock: &str) -> Experiment {
    let text = format!(
        "electronics = false\nscheduler.policy = \"{policy}\"\n\
         workload = {{ kind = \"closed\", outstanding = 4, think_time = \"10ms\", pattern = {{ size = \
         \"2KiB\", align = \"512B\" }} }}\n[freeblock]\n{freeblock}"
    );
    let config = SimConfig::parse(&text, "test", &[]).unwrap();
    let mut experiment = Experiment::new(config).unwrap();
    let specs = (0..).map(freewheel_testkit::drives::random_spec);
    let mut drives = specs.filter_map(|spec| Some((Drive::build(&spec).ok()?, spec)));
    let (drive, spec) = drives.find(|(drive, _)| drive.blocks().get() > 3000).unwrap();
    experiment.striping = Striping::single(drive.blocks());
    (experiment.drive, experiment.spec) = (Arc::new(drive), spec);
    experiment
}

fn run(policy: &str, freeblock: &str) -> RunResult {
    experiment(policy, freeblock).run().unwrap()
}

#[test]
fn tail_promotion_ends_rounds_sooner_within_cost() {
    for policy in ["fcfs", "clook", "sstf"] {
        let scan = "rule = \"greedy\"\n[[freeblock.tasks]]\nrounds = 8\nblock_size = \"1KiB\"\n";
        let without = run(policy, scan);
        for cost in [0.05, 0.2] {
            let tail = format!("{scan}promote_tail = {{ cost = {cost}, merged_max = \"4KiB\" }}");
            let with = run(policy, &tail);
            let [before, after] = [&without, &with].map(|result| &result.background[0].tasks[0]);
            let rates = [before, after].map(|background| background.rounds_a_day().unwrap());
            assert!(rates[1] > rates[0], "{policy}, {cost}: {rates:?}");
            let mut requests = 0;
            for round in &after.rounds {
                assert_eq!(round.deliveries.blocks(), after.blocks);
                // The last one may take longer than was expected.
                let longest_ns = 30_000_000.0;
                let paid_ns = cost * round.elapsed_ns as f64 + longest_ns;
                assert!(round.deliveries.promoted.head_ns as f64 <= paid_ns, "{policy}: {round:?}");
                assert!(round.deliveries.promoted.blocks <= 4 * round.deliveries.promoted.requests);
                requests += round.deliveries.promoted.requests;
            }
            assert!(requests > 8, "{policy}: {requests}");
            // The workload's requests are all there, and no others.
            let foreground = with.read_response.count + with.write_response.count;
            assert_eq!(foreground, with.requests);
            assert!(before.rounds.iter().all(|round| round.deliveries.promoted.requests == 0));
        }
    }
}

#[test]
fn decisions_over_node_budget_counted() {
    for rule in ["greedy", "paths"] {
        let scan =
            format!("rule = \"{rule}\"\n[[freeblock.tasks]]\nrounds = 2\nblock_size = \"512B\"\n");
        let [exact, least] = ["", "nodes_max = 1"].map(|key| {
            let result = run("fcfs", &format!("{key}\n{scan}"));
            assert!(result.free.unwrap().time.foreground_delay_ns == 0);
            result.background[0].clone()
        });
        assert_eq!(exact.exhausted, 0);
        assert!(least.exhausted > 0 && least.exhausted <= least.decisions, "{least:?}");
        assert!(least.nodes <= least.decisions, "{least:?}");
    }
}

#[test]
fn patience_reaches_planner_and_result() {
    let of = |key: &str| {
        let result = run("fcfs", &format!("{key}\n[[freeblock.tasks]]\nblock_size = \"2KiB\"\n"));
        result.background[0].clone()
    };
    let [usual, endless, short] = ["", "patience = \"endless\"", "patience = 4"].map(of);
    // The drive of these tests is small.
    assert_eq!(
        [usual.patience_nodes, endless.patience_nodes, short.patience_nodes],
        [None, None, Some(4)]
    );
    assert_eq!(usual.delivered_hash, endless.delivered_hash);
    assert!(short.nodes < endless.nodes, "{} of {}", short.nodes, endless.nodes);
}

#[test]
fn patience_invalid_refused() {
    for wrong in ["0", "\"eternal\"", "1.5"] {
        let text = format!("drive = \"atlas10k\"\n[freeblock]\npatience = {wrong}\n");
        let error = SimConfig::parse(&text, "a file", &[]).unwrap_err().to_string();
        assert!(
            error.contains("a number of nodes, at least 1, or \"endless\" is needed"),
            "{error}"
        );
    }
}

#[test]
fn watched_run_unchanged_with_each_decision_once() {
    let adapt = "{ step = { geometric = 2.0 }, tolerance = 0.05, least = \"1ms\", most = \"1s\" }";
    let idle = format!("idle = {{ after = \"5ms\", adapt = {adapt} }}");
    let host = Some(HostConfig::default());
    for (keys, idle, drives, host) in [
        ("promote_tail = { cost = 0.2 }, ", "", 1, None),
        ("promote_tail = { cost = 0.2 }, ", "", 3, None),
        ("kind = \"backup\", ", "", 1, None),
        ("kind = \"write\", ", "", 1, None),
        ("", &idle[..], 1, None),
        ("", "", 1, host),
    ] {
        let freeblock = format!("{idle}\ntasks = [{{ {keys}block_size = \"2KiB\" }}]\n");
        let mut experiment = experiment("sstf", &freeblock);
        let Workload::Closed { requests, .. } = &mut experiment.config.workload else { panic!() };
        *requests = 2000;
        if drives > 1 {
            let array = &mut experiment.config.array;
            (array.layout, array.drives) = (Layout::Independent, Some(drives));
        }
        experiment.config.host = host;
        let decided = AtomicU64::new(0);
        let around = |decide: &mut dyn FnMut()| {
            decide();
            decided.fetch_add(1, Ordering::Relaxed);
        };
        let watched = experiment.new_run().with_timer(&around).simulate().unwrap();
        assert_eq!(watched, experiment.run().unwrap(), "{keys}");
        let decisions: u64 = watched.background.iter().map(|arm| arm.decisions).sum();
        assert!(decisions > 0, "{keys}");
        assert_eq!(decided.into_inner(), decisions, "{keys}");
    }
}

#[test]
fn run_ends_with_foreground() {
    let mut experiment = experiment("sstf", "tasks = [{ promote_tail = { cost = 1.0 } }]");
    let Workload::Closed { requests, .. } = &mut experiment.config.workload else { panic!() };
    *requests = 2000;
    let mut last = SimTime::ZERO;
    let result = experiment.new_run().with_observer(&mut |c| last = c.end).simulate().unwrap();
    assert_eq!(result.requests, 2000);
    let background = &result.background[0].tasks[0];
    let rounds = background.all_rounds();
    assert!(rounds.map(|round| round.deliveries.promoted.requests).sum::<u64>() > 100);
    // The one that was under way.
    assert!(result.elapsed_ns - last.ns() < 50_000_000);
}

/// Reads and writes so far apart that each is served alone, on a small drive.
fn sparse(seed: u64, idle: &str) -> (RunResult, Vec<Completion>) {
    sparse_on(experiment("fcfs", idle), seed)
}

/// Runs the same load on a drive with electronics.
fn sparse_whole(seed: u64, idle: &str) -> (RunResult, Vec<Completion>) {
    let mut experiment = experiment("fcfs", idle);
    experiment.config.electronics = true;
    experiment.spec.electronics = any_electronics(&mut Prng::new(seed, "electronics"));
    sparse_on(experiment, seed)
}

fn sparse_on(mut experiment: Experiment, seed: u64) -> (RunResult, Vec<Completion>) {
    experiment.config.seed = seed;
    let pattern =
        PatternSpec { size: Bytes::new(2048), align: Bytes::new(512), ..PatternSpec::default() };
    let mean_gap = SimDuration::from_secs(1);
    experiment.config.workload = Workload::Open { requests: 40, mean_gap, pattern };
    let mut done = Vec::new();
    let result = experiment.new_run().with_observer(&mut |c| done.push(*c)).simulate().unwrap();
    (result, done)
}

fn are_apart(done: &[Completion]) -> bool {
    done.windows(2).all(|pair| pair[0].end < pair[1].arrival)
}

#[test]
fn idle_time_foreground_cost_counted_exactly() {
    let (mut compared, mut delayed, mut read) = (0, 0, 0);
    let turn = experiment("fcfs", "").drive.rotation().period().ns() as i64;
    for seed in 0..12 {
        for rule in ["greedy", "paths"] {
            let run = |idle: &str| sparse(seed, &format!("rule = \"{rule}\"\n{idle}"));
            let (without, alone) = run("");
            assert!(without.idle.is_none());
            let idle = "idle = { after = \"20ms\", run_max = \"4KiB\" }";
            let (with, behind) = run(idle);
            if !are_apart(&alone) || !are_apart(&behind) {
                continue;
            }
            let (mut delay_ns, mut gain_ns) = (0, 0);
            for (before, after) in alone.iter().zip(&behind) {
                assert_eq!((before.request, before.arrival), (after.request, after.arrival));
                let delay = after.end.ns() as i64 - before.end.ns() as i64;
                delay_ns += delay.max(0) as u64;
                gain_ns += (-delay).max(0) as u64;
                // The delay is at most the rest of the run under way, the longer seek, and one turn.
                let longer_seek = after.seek.ns() as i64 - before.seek.ns() as i64;
                assert!(delay <= after.queue.ns() as i64 + longer_seek.max(0) + turn, "{delay}");
            }
            let idle = with.idle.unwrap();
            assert_eq!((idle.delay_ns, idle.gain_ns), (delay_ns, gain_ns));
            let background = &with.background[0].tasks[0];
            let rounds = background.all_rounds();
            let blocks: u64 = rounds.map(|round| round.deliveries.in_idle).sum();
            (compared, delayed, read) =
                (compared + 1, delayed + idle.requests_delayed, read + blocks);
        }
    }
    assert!(compared > 8 && delayed > 100 && read > 1000, "{compared}, {delayed}, {read}");
}

#[test]
fn idle_time_absent_changes_nothing() {
    for seed in 0..8 {
        for sparse in [sparse, sparse_whole] {
            let (off, expected) = sparse(seed, "");
            let (late, done) = sparse(seed, "idle = { after = \"1000s\" }");
            assert_eq!((done, late.idle), (expected, None));
            assert_eq!(late.result_hash, off.result_hash);
        }
        let (_, soon) = sparse(seed, "idle = { after = \"20ms\" }");
        assert_ne!(soon, sparse(seed, "").1);
    }
}

#[test]
fn idle_time_behind_electronics_costs_counted() {
    let (mut compared, mut delayed, mut hits, mut read) = (0, 0, 0, 0);
    for seed in 0..40 {
        let (_, alone) = sparse_whole(seed, "");
        let idle = "idle = { after = \"20ms\", run_max = \"4KiB\" }";
        let (with, behind) = sparse_whole(seed, idle);
        let (true, true, Some(idle)) = (are_apart(&alone), are_apart(&behind), with.idle) else {
            continue;
        };
        let later_ns = |(a, b): (&Completion, &Completion)| b.end.ns() as i64 - a.end.ns() as i64;
        // The rest follow so soon that they wait for the drive's work after the previous one. Or they
        // find in the buffer blocks that are not written back yet.
        let is_first = |at: usize| {
            at == 0 || (behind[at].arrival - behind[at - 1].end) > SimDuration::from_ms(20)
        };
        let pairs = alone.iter().zip(&behind).enumerate();
        let firsts =
            pairs.filter(|(at, (a, b))| is_first(*at) && !a.hit && !b.hit).map(|(_, pair)| pair);
        let counted_ns = idle.delay_ns as i64 - idle.gain_ns as i64;
        assert_eq!(firsts.map(later_ns).sum::<i64>(), counted_ns, "{seed}");
        compared += 1;
        delayed += idle.requests_delayed;
        hits += behind.iter().filter(|completion| completion.hit).count();
        read += idle.read_bytes;
    }
    assert!(compared > 15 && delayed > 100 && hits > 100 && read > 1 << 30);
}

#[test]
fn idle_time_under_load_loses_nothing() {
    let (mut runs, mut behind) = (0, 0);
    for seed in 0..30 {
        let mut experiment = experiment("sptf", "idle = { after = \"1ms\" }");
        experiment.config.seed = seed;
        experiment.config.electronics = true;
        experiment.spec.electronics = any_electronics(&mut Prng::new(seed, "electronics"));
        let workload = &mut experiment.config.workload;
        let Workload::Closed { requests, outstanding, .. } = workload else { panic!() };
        (*requests, *outstanding) = (400, 1 + seed as u32 % 3);
        let mut last = SimTime::ZERO;
        let mut in_order = |completion: &Completion| {
            assert!(completion.arrival <= completion.end && last <= completion.end);
            last = completion.end;
        };
        let result = experiment.new_run().with_observer(&mut in_order).simulate().unwrap();
        assert_eq!(result.requests, 400, "{seed}");
        let idle = result.idle.unwrap_or_default();
        (runs, behind) = (runs + idle.runs, behind + idle.requests_behind);
    }
    assert!(runs > 1000 && behind > 500, "{runs} runs, {behind} behind");
}

#[test]
fn idle_time_at_once_awaits_drive_work() {
    for seed in 0..4 {
        let (result, _) = sparse_whole(seed, "idle = { after = \"0s\" }");
        assert_eq!(result.requests, 40);
        assert!(result.idle.is_some_and(|idle| idle.runs > 1000), "{seed}: {:?}", result.idle);
    }
}

/// Bursts of 50 random reads, so far apart, on an Atlas 10K that takes one at a time.
fn bursts(electronics: bool, apart_ns: u64, freeblock: &str) -> RunResult {
    let prng = &mut Prng::new(1, "bursts");
    let header = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n".to_owned();
    let mut line = |number: u64| {
        let offset = prng.below(2_000_000) * 4096;
        format!("{},R,{offset},4096,0,\n", number / 50 * apart_ns)
    };
    let trace = header + &(0..2000).map(&mut line).collect::<String>();
    let name = format!("bursts-{electronics}-{apart_ns}.csv");
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, trace).unwrap();
    let text = format!(
        "drive = \"atlas10k\"\nelectronics = {electronics}\nqueue_depth = 1\n\
         scheduler.policy = \"fcfs\"\nworkload = {{ kind = \"trace\", file = {path:?}, \
         coarse_times = \"bunched\" }}\n\
         {freeblock}\n"
    );
    let config = SimConfig::parse(&text, "test", &[]).unwrap();
    Experiment::new(config).unwrap().run().unwrap()
}

#[test]
fn idle_time_excludes_requests_waiting_outside() {
    let adapt = "{ tolerance = 0.05, least = \"5ms\", most = \"10ms\" }";
    let idle =
        format!("freeblock.idle = {{ after = \"5ms\", run_max = \"256KiB\", adapt = {adapt} }}");
    for electronics in [false, true] {
        // The idle time behind a burst is a part of what the burst takes.
        let longest_ns = bursts(electronics, 10_000_000_000, "").response.max_ns;
        let result = bursts(electronics, longest_ns + 30_000_000, &idle);
        let starts = result.background[0].idle_starts.unwrap();
        let wrong = starts.wrong.unwrap();
        assert!(starts.starts > 20 && wrong * 5 > starts.starts, "{starts:?}");
    }
}

#[test]
fn adaptive_timeout_follows_acceptance() {
    for sparse in [sparse, sparse_whole] {
        let starts = |tolerance: f64| {
            let adapt = format!("{{ tolerance = {tolerance}, least = \"5ms\", most = \"80ms\" }}");
            let (result, _) = sparse(3, &format!("idle = {{ after = \"20ms\", adapt = {adapt} }}"));
            result.background[0].idle_starts.unwrap()
        };
        let (any, none) = (starts(1.0), starts(1e-9));
        assert_eq!((any.wrong, any.timeout_ns), (Some(0), 5_000_000), "{any:?}");
        let wrong = none.wrong.unwrap();
        assert!(wrong > 3 && none.starts > wrong, "{none:?}");
    }
}

#[test]
fn idle_drive_scanned_with_little_foreground() {
    let (result, _) = sparse(1, "idle = { after = \"20ms\" }\ntasks = [{ block_size = \"512B\" }]");
    let background = &result.background[0].tasks[0];
    assert!(background.rounds.len() > 10, "{}", background.rounds.len());
    let idle = result.idle.unwrap();
    // Tracks one after the other: most of the time is transfer.
    let bytes_per_second = idle.read_bytes as f64 / (idle.head_ns as f64 / 1e9);
    let media = experiment("fcfs", "").drive.mean_media_rate_bytes_per_second();
    assert!(bytes_per_second > media / 3.0, "{bytes_per_second} of {media}");
}

/// Reason why an experiment is refused.
fn refusal(text: &str) -> String {
    let config = SimConfig::parse(text, "test", &[]).unwrap();
    Experiment::check(&config).unwrap_err().to_string()
}

#[test]
fn idle_time_wrong_value_refused() {
    for (idle, message) in [
        ("after = \"2h\"", "idle: `after` is 2h"),
        ("after = \"1ms\", run_max = \"100B\"", "idle: `run_max` is 100B"),
        ("after = \"1ms\", adapt = { tolerance = 2.0 }", "idle: adapt: `tolerance` is 2"),
        ("after = \"2s\", adapt = {}", "idle: adapt: `after` is 2s"),
    ] {
        let text = format!("workload = {{ kind = \"closed\" }}\nfreeblock.idle = {{ {idle} }}\n");
        let error = refusal(&text);
        assert!(error.starts_with(&format!("freeblock: {message}")), "{error}");
    }
}

#[test]
fn task_wrong_value_refused() {
    for (task, message) in [
        ("block_size = \"2MiB\"", "`block_size` is 2MiB: from 512 B to 1MiB"),
        ("sample_share = 1.5", "`sample_share` is 1.5"),
        ("share = 0", "`share` is 0"),
        ("deadline = \"0s\"", "`deadline` is 0"),
        ("deadline = \"1s\"\nshare = 2", "`deadline` and `share`"),
    ] {
        for (table, place) in [
            ("[[freeblock.tasks]]", "tasks[0]: "),
            ("[[freeblock.tasks]]\n[[freeblock.tasks]]", "tasks[1]: "),
        ] {
            let text = format!("workload = {{ kind = \"closed\" }}\n{table}\n{task}\n");
            let error = refusal(&text);
            assert!(error.starts_with(&format!("freeblock: {place}{message}")), "{error}");
        }
    }
}

#[test]
fn tasks_share_blocks_and_count_apart() {
    let tasks = "kind = \"scrub\"\nsample_share = 0.02\n\
                 [[freeblock.tasks]]\nkind = \"scrub\"\nsample_share = 0.02\n\
                 [[freeblock.tasks]]\nkind = \"scan\"\npriority = \"low\"\n";
    let text = format!(
        "drive = \"atlas10k\"\nelectronics = false\n\
         workload = {{ kind = \"closed\", outstanding = 10, requests = 3000 }}\n\
         [[freeblock.tasks]]\n{tasks}"
    );
    let config = SimConfig::parse(&text, "test", &[]).unwrap();
    let result = Experiment::new(config).unwrap().run().unwrap();
    let [first, same, low] = &result.background[0].tasks[..] else { panic!("three tasks") };
    assert!(!first.rounds.is_empty(), "a round is complete");
    assert_eq!(same.rounds, first.rounds, "what one reads the other has too");
    assert_eq!((&first.name[..], &same.name[..]), ("scrub sample", "scrub sample 2"));
    assert_eq!((&low.name[..], low.kind), ("scan", RoundKind::whole(TaskKind::Scan)));
    assert!(low.unfinished.deliveries.blocks() > 100 && low.rounds.is_empty(), "{low:?}");
    // The first tasks are the same, so are their ends; the last one has more to do.
    assert_eq!(first.expected_end_ns, same.expected_end_ns);
    assert!(
        low.expected_end_ns > first.expected_end_ns
            && low.expected_end_ns > Some(result.elapsed_ns)
    );
}

/// A task's place in the list does not affect its events and service.
#[test]
fn task_fares_same_at_any_position() {
    let scan = "block_size = \"4KiB\"\nsample_share = 0.02\ndeadline = \"10min\"\n";
    let scrub = "kind = \"scrub\"\nblock_size = \"8KiB\"\nname = \"check\"\n";
    let run = |first: &str, second: &str| {
        let text = format!(
            "drive = \"atlas10k\"\nelectronics = false\n\
             workload = {{ kind = \"closed\", outstanding = 10, requests = 3000 }}\n\
             [[freeblock.tasks]]\n{first}[[freeblock.tasks]]\n{second}"
        );
        let config = SimConfig::parse(&text, "test", &[]).unwrap();
        Experiment::new(config).unwrap().run().unwrap()
    };
    let (one, other) = (run(scan, scrub), run(scrub, scan));
    assert_eq!(one.requests_hash, other.requests_hash, "the foreground is what it was");
    assert_ne!(one.result_hash, other.result_hash, "the first is to others what the second is");
    let [sample, check] = &one.background[0].tasks[..] else { panic!("two tasks") };
    let [check_first, sample_second] = &other.background[0].tasks[..] else { panic!("two tasks") };
    assert_eq!((&check.name[..], &sample.name[..]), ("check", "sample"));
    assert_eq!(sample.deadline_ns, Some(600_000_000_000));
    // But for ties, which layers break in the order of the tasks.
    for (first, second) in [(sample, sample_second), (check_first, check)] {
        assert_eq!(
            (&first.name, first.kind, first.blocks),
            (&second.name, second.kind, second.blocks)
        );
        let blocks = |task: &TaskResult| {
            task.all_rounds().map(|round| round.deliveries.blocks()).sum::<u64>()
        };
        let (first, second) = (blocks(first), blocks(second));
        assert!(first > 0 && first.abs_diff(second) * 20 < first, "{first} {second}");
    }
    assert!(!check.unfinished.progress.is_empty(), "its course is noted as well");
}

#[test]
fn tasks_of_same_name_refused() {
    let text = "workload = { kind = \"closed\" }\n[[freeblock.tasks]]\nname = \"a\"\n\
                [[freeblock.tasks]]\n[[freeblock.tasks]]\nname = \"a\"\n";
    let config = SimConfig::parse(text, "test", &[]).unwrap();
    let error = Experiment::check(&config).unwrap_err().to_string();
    assert!(error.starts_with("freeblock: tasks[2]: `name` is a, as another"), "{error}");
}

#[test]
fn promotion_wrong_value_refused() {
    for (tail, message) in [
        ("cost = 0.0", "`cost` is 0: more than 0 and at most 1 is allowed"),
        ("cost = 1.5", "`cost` is 1.5"),
        ("cost = 0.1, outstanding = 0", "`outstanding` is 0"),
        ("cost = 0.1, merged_max = \"2KiB\"", "from a block of 4"),
    ] {
        let text = format!(
            "workload = {{ kind = \"closed\" }}\nfreeblock.tasks = [{{ promote_tail = {{ {tail} }} }}]\n"
        );
        let error = refusal(&text);
        assert!(
            error.starts_with("freeblock: tasks[0]: promote_tail: ") && error.contains(message),
            "{error}"
        );
    }
}

#[test]
fn rounds_zero_or_uncountable_refused() {
    let drives = "array = { drives = 100, layout = \"independent\" }\n";
    for (rounds, array, says) in [
        ("0", "", "at least 1 is needed; without `rounds`"),
        ("9000000000000000000", "", "with "),
        ("9000000000000000", drives, "with "),
    ] {
        let text = format!(
            "{array}workload = {{ kind = \"closed\" }}\nfreeblock.tasks = [{{ rounds = {rounds} }}]\n"
        );
        let config = SimConfig::parse(&text, "test", &[]).unwrap();
        for error in [Experiment::check(&config).err(), Experiment::new(config).err()] {
            let error = error.unwrap().to_string();
            assert!(
                error.starts_with(&format!("freeblock: tasks[0]: `rounds` is {rounds}: {says}")),
                "{error}"
            );
        }
    }
}

/// Writes and reads of 4 KiB all over an Atlas 10K, and a background task.
fn with_task(read_share: f64, task: &str) -> RunResult {
    let text = format!(
        "drive = \"atlas10k\"\nelectronics = false\n\
         workload = {{ kind = \"closed\", outstanding = 6, requests = 3000, pattern = {{ size = \
         \"4KiB\", read_share = {read_share} }} }}\n[[freeblock.tasks]]\n{task}"
    );
    Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap().run().unwrap()
}

#[test]
fn rounds_unchanged_by_decision_timer() {
    let text = "drive = \"tr96\"\nworkload = { kind = \"closed\", outstanding = 4, requests = 100 }\n\
                [[freeblock.tasks]]\nsample_share = 0.05\nrounds = 2\ndeadline = \"1h\"\nblock_size = \"4KiB\"\n\
                [[freeblock.tasks]]\nkind = \"scrub\"\nblock_size = \"4KiB\"\n";
    let experiment = Experiment::new(SimConfig::parse(text, "test", &[]).unwrap()).unwrap();
    let around = |decide: &mut dyn FnMut()| decide();
    let timed = experiment.new_run().with_timer(&around).simulate().unwrap();
    assert_eq!(timed.background[0].tasks[0].rounds.len(), 2);
    assert_eq!(timed, experiment.run().unwrap());
}

#[test]
fn delivery_hash_apart_from_request_hash() {
    for array in ["", "array = { layout = \"independent\", drives = 2 }\n"] {
        let run = |freeblock: &str| {
            let text = format!(
                "{array}drive = \"atlas10k\"\nelectronics = false\n\
                 workload = {{ kind = \"closed\", outstanding = 6, requests = 1000 }}\n{freeblock}"
            );
            Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap().run().unwrap()
        };
        let alone = run("");
        assert_eq!(alone.requests_hash, None);
        let [paths, again, greedy] = ["paths", "paths", "greedy"].map(|rule| {
            run(&format!("[freeblock]\nrule = \"{rule}\"\n[[freeblock.tasks]]\nkind = \"scrub\"\n"))
        });
        for with in [&paths, &greedy] {
            assert_eq!(with.requests_hash.as_ref(), Some(&alone.result_hash));
            assert_ne!(with.result_hash, alone.result_hash);
        }
        assert_eq!(paths.result_hash, again.result_hash);
        assert_ne!(paths.result_hash, greedy.result_hash);
    }
}

#[test]
fn backup_copies_blocks_before_overwrite() {
    let part = "kind = \"backup\"\nstart = \"1GiB\"\nlength = \"2GiB\"\nblock_size = \"64KiB\"\n";
    let result = with_task(0.5, &format!("{part}rounds = 1\n"));
    let task = &result.background[0].tasks[0];
    let [round] = &task.rounds[..] else { panic!("one round: {}", task.rounds.len()) };
    assert_eq!((task.blocks, round.deliveries.blocks()), (32_768, 32_768));
    assert!(
        task.is_done()
            && task.unfinished.deliveries.blocks() == 0
            && task.expected_end_ns.is_none()
    );
    let copied = round.deliveries.copied;
    // A write of 4 KiB may lie in two blocks, which are one request.
    assert!(copied.requests > 100 && copied.blocks >= copied.requests, "{copied:?}");
    assert!(copied.blocks <= 2 * copied.requests && copied.head_ns > copied.requests * 1_000_000);
    // Nobody else pays.
    let reads_only = with_task(1.0, part);
    assert_eq!(reads_only.background[0].tasks[0].unfinished.deliveries.copied.requests, 0);
    assert_eq!(reads_only.requests_hash, with_task(1.0, "").requests_hash);
}

#[test]
fn backup_and_part_refused_where_impossible() {
    for (task, message) in [
        ("kind = \"backup\"\nsample_share = 0.5", "`sample_share`: a backup is of all its blocks"),
        ("kind = \"backup\"\nrounds = 2", "`rounds` is 2: a backup has 1"),
        ("start = \"100B\"", "`start` is 100B: a whole number"),
        ("start = \"1TiB\"", "`start` is 1TiB: a whole number"),
        ("length = \"5KiB\"", "`length` is 5KiB: from 4KiB to the arm's"),
        ("start = \"1GiB\"\nlength = \"8GiB\"", "`length` is 8GiB: from 4KiB to the arm's"),
        ("length = \"0B\"", "`length` is 0"),
        ("kind = \"write\"\nrounds = 3", "`rounds` is 3: a write has 1"),
        (
            "kind = \"backup\"\nlength = \"1GiB\"\n[[beside]]\nkind = \"write\"\nstart = \"1023MiB\"",
            "tasks[1]: `kind` is write, of blocks of which backup is a backup",
        ),
    ] {
        let task = task.replace("[[beside]]", "[[freeblock.tasks]]");
        let text = format!(
            "drive = \"atlas10k\"\nworkload = {{ kind = \"closed\" }}\n[[freeblock.tasks]]\n{task}\n"
        );
        let error = refusal(&text);
        let place = if message.starts_with("tasks") { "" } else { "tasks[0]: " };
        assert!(error.starts_with(&format!("freeblock: {place}{message}")), "{error}");
    }
}

#[test]
fn gap_writes_refused_without_writer() {
    let error = refusal(
        "drive = \"ultrastar-hc680-28tb\"\nworkload = { kind = \"closed\" }\n\
         freeblock.tasks = [{ kind = \"write\" }]\n",
    );
    assert!(error.starts_with("freeblock: `kind` is write, and a host-managed"), "{error}");
    let text = "drive = \"atlas10k\"\nworkload = { kind = \"closed\" }\n\
                freeblock.tasks = [{ kind = \"refresh\" }]\n";
    let error = SimConfig::parse(text, "test", &[]).unwrap_err().to_string();
    assert!(error.contains("is \"refresh\": one of `scan`"), "{error}");
}

#[test]
fn outside_scheduler_writes_every_task_block() {
    let text = "drive = \"atlas10k\"\nelectronics = false\n\
         host = { behaviour = { seek_jitter = \"50us\" } }\n\
         workload = { kind = \"closed\", outstanding = 6, requests = 3000, pattern = { size = \
         \"4KiB\", read_share = 0.2 } }\n[[freeblock.tasks]]\n\
         kind = \"write\"\nstart = \"3GiB\"\nlength = \"64MiB\"\nblock_size = \"32KiB\"\nrounds = 1\n";
    let config = SimConfig::parse(text, "test", &[]).unwrap();
    let result = Experiment::new(config).unwrap().run().unwrap();
    let round = &result.background[0].tasks[0].rounds[0];
    assert_eq!(round.deliveries.settled(), 2048);
    assert!(round.deliveries.superseded > 0 && round.deliveries.in_gaps > 1000, "{round:?}");
    let free = result.free.unwrap().time;
    assert!(
        (round.deliveries.in_gaps * 32_768..=2048 * 32_768).contains(&free.write_bytes),
        "{free:?}"
    );
    let head = result.elapsed_ns as f64;
    assert!(free.foreground_delay_ns as f64 / head < 0.005, "{free:?}");
}

#[test]
fn write_round_settles_every_block() {
    let task = "kind = \"write\"\nstart = \"3GiB\"\nlength = \"64MiB\"\nblock_size = \"32KiB\"\nrounds = 1\n";
    let result = with_task(0.2, task);
    let task = &result.background[0].tasks[0];
    assert_eq!((task.kind, task.rounds.len()), (RoundKind::whole(TaskKind::Write), 1));
    let round = &task.rounds[0];
    assert_eq!((task.blocks, round.deliveries.settled()), (2048, 2048));
    assert!(round.deliveries.superseded > 0 && round.deliveries.in_gaps > 1000, "{round:?}");
    // Of blocks on two tracks a part may have been written before the rest was superseded.
    let written = result.free.unwrap().time.write_bytes;
    assert!((round.deliveries.in_gaps * 32_768..=2048 * 32_768).contains(&written), "{written}");
}
