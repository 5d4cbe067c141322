//! The scheduler of a server in virtual time: the same decisions as the predictive scheduler inside it, but for
//! what a server does besides.

use freewheel_sim::background::Round;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{Completion, RunResult};

/// Eight requests outstanding on a drive with its electronics.
fn experiment(policy: &str, pattern: &str, server: bool) -> Experiment {
    let text = format!(
        "drive = \"atlas10k\"\nscheduler = {{ policy = \"{policy}\" }}\nhost = {{ server = {server} }}\n\
         [workload]\nkind = \"closed\"\noutstanding = 8\nrequests = 1000\npattern = {{ {pattern} }}\n"
    );
    Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap()
}

fn observed(experiment: &Experiment) -> (RunResult, Vec<Completion>) {
    let mut list = Vec::new();
    let result = experiment.new_run().with_observer(&mut |c| list.push(*c)).simulate().unwrap();
    (result, list)
}

#[test]
fn server_decides_as_inside_scheduler() {
    for policy in ["fcfs", "sptf", "sstf", "look"] {
        let pattern = "read_share = 0.6, fua_share = 0.3, size = \"8KiB\"";
        let both = [false, true].map(|server| observed(&experiment(policy, pattern, server)));
        let [(predicted, alone), (served, in_server)] = both;
        assert_eq!(alone, in_server, "{policy}");
        assert_eq!(predicted.result_hash, served.result_hash, "{policy}");
    }
}

/// Pairs of requests that overlap, at least one of them a write, of which the later one is done first.
fn overtaken(completions: &[Completion]) -> usize {
    let bounds = |done: &Completion| {
        let start = done.request.start.get();
        (start, start + done.request.blocks.get())
    };
    let mut pairs = 0;
    for (at, first) in completions.iter().enumerate() {
        for later in &completions[at + 1..] {
            let ((a, b), (c, d)) = (bounds(first), bounds(later));
            // The one that was done later came before.
            pairs += usize::from(a < d && c < b && later.arrival < first.arrival);
        }
    }
    pairs
}

#[test]
fn server_keeps_order_of_overlapping_requests() {
    let pattern =
        "read_share = 0, size = \"8KiB\", align = \"512B\", local_share = 1, local_sd = \"8KiB\"";
    let [(_, alone), (_, in_server)] =
        [false, true].map(|server| observed(&experiment("sptf", pattern, server)));
    assert_eq!(overtaken(&in_server), 0);
    assert!(overtaken(&alone) > 0, "the canary");
}

#[test]
fn server_cuts_large_requests() {
    let pattern = "read_share = 1, size = \"3MiB\"";
    let [(_, alone), (_, in_server)] =
        [false, true].map(|server| observed(&experiment("fcfs", pattern, server)));
    let blocks = |list: &[Completion]| list.iter().map(|done| done.request.blocks.get()).sum();
    let [before, after]: [u64; 2] = [blocks(&alone), blocks(&in_server)];
    assert_eq!(before, after);
    assert_ne!(alone, in_server);
}

/// Blocks of each round by the path of their delivery: in gaps or in passing, and copied before writes.
fn rounds(result: &RunResult) -> Vec<(u64, u64)> {
    let [arm] = &result.background[..] else { panic!("one arm") };
    let came = |round: &Round| {
        let deliveries = round.deliveries;
        (deliveries.in_gaps + deliveries.in_passing, deliveries.copied.blocks)
    };
    arm.tasks[0].all_rounds().map(came).collect()
}

#[test]
fn server_tasks_deliver_like_outside_tasks() {
    // Seed, rounds with the one under way, task. A server gives its planner 128 MiB of a task at a time, so longer
    // tasks would begin otherwise.
    let cases = [
        (1, 2, "kind = \"scan\", length = \"8MiB\", rounds = 1"),
        (2, 3, "kind = \"scrub\", length = \"8MiB\", rounds = 2"),
        (3, 1, "kind = \"backup\", length = \"128MiB\""),
        (4, 1, "kind = \"backup\", start = \"1GiB\", length = \"128MiB\""),
    ];
    for (seed, rounds_expected, task) in cases {
        let run = |server: bool| {
            let text = format!(
                "drive = \"atlas10k\"\nseed = {seed}\nscheduler = {{ policy = \"sptf\" }}\n\
                 host = {{ server = {server} }}\nfreeblock = {{ tasks = [{{ block_size = \"16KiB\", {task} }}] }}\n\
                 [workload]\nkind = \"closed\"\noutstanding = 8\nrequests = 2000\n\
                 pattern = {{ size = \"4KiB\", read_share = 0.5 }}\n"
            );
            observed(&Experiment::new(SimConfig::parse(&text, "test", &[]).unwrap()).unwrap())
        };
        let [(outside, alone), (served, in_server)] = [false, true].map(run);
        assert!(alone == in_server, "{task}: completions differ");
        let came = rounds(&served);
        assert_eq!(rounds(&outside), came, "{task}: blocks of rounds");
        assert_eq!(came.len(), rounds_expected, "{task}: {came:?}");
        let copied: u64 = came.iter().map(|(_, copied)| copied).sum();
        assert_eq!(copied > 3, task.contains("backup"), "{task}: {copied} blocks copied");
    }
}

#[test]
fn server_refuses_tasks_it_has_not() {
    let refused = |task: &str| {
        let text = format!(
            "drive = \"atlas10k\"\nhost = {{ server = true }}\nfreeblock = {{ tasks = [{task}] }}\n\
             workload = {{ kind = \"closed\", requests = 1 }}\n"
        );
        let config = SimConfig::parse(&text, "test", &[]);
        config.and_then(Experiment::new).err().unwrap().to_string()
    };
    let write = refused("{ kind = \"write\" }");
    assert!(write.contains("has no tasks of write in an experiment; take scan, scrub"), "{write}");
    let sample = refused("{ kind = \"scan\", sample_share = 0.5 }");
    assert!(sample.contains("`freeblock.tasks.sample_share` is 0.5"), "{sample}");
}
