//! The scheduler of a server in virtual time: the same decisions as the predictive scheduler inside it, but for
//! what a server does besides.

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
fn a_server_decides_as_the_scheduler_inside_it_where_requests_are_short_and_apart() {
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
fn a_server_keeps_the_order_of_requests_that_overlap() {
    let pattern =
        "read_share = 0, size = \"8KiB\", align = \"512B\", local_share = 1, local_sd = \"8KiB\"";
    let [(_, alone), (_, in_server)] =
        [false, true].map(|server| observed(&experiment("sptf", pattern, server)));
    assert_eq!(overtaken(&in_server), 0);
    assert!(overtaken(&alone) > 0, "the canary");
}

#[test]
fn a_server_cuts_large_requests_into_pieces() {
    let pattern = "read_share = 1, size = \"3MiB\"";
    let [(_, alone), (_, in_server)] =
        [false, true].map(|server| observed(&experiment("fcfs", pattern, server)));
    let blocks = |list: &[Completion]| list.iter().map(|done| done.request.blocks.get()).sum();
    let [before, after]: [u64; 2] = [blocks(&alone), blocks(&in_server)];
    assert_eq!(before, after);
    assert_ne!(alone, in_server);
}
