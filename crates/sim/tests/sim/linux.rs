//! Linux's schedulers in front of a drive with its own queue.

use freewheel_model::sched::linux::LINUX_SCHEDULERS;
use freewheel_sim::config::{SimConfig, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{Completion, RunResult, library};
use proptest::prelude::*;

fn config(policy: &str, drive: &str, outstanding: u32, seed: u64, more: &str) -> SimConfig {
    let text = format!(
        "seed = {seed}\ndrive = \"{drive}\"\n{more}\nscheduler = {{ policy = \"{policy}\" }}\n\
         [workload]\nkind = \"closed\"\nrequests = 400\noutstanding = {outstanding}\n\
         pattern = {{ size = \"24KiB\", size_distribution = \"exponential\", local_share = 0.3, \
         fua_share = 0.1 }}\n"
    );
    SimConfig::parse(&text, "test", &[]).unwrap()
}

fn run(config: SimConfig) -> (RunResult, Vec<Completion>) {
    let mut list = Vec::new();
    let experiment = Experiment::new(config).unwrap();
    let result = experiment.new_run().with_observer(&mut |c| list.push(*c)).simulate().unwrap();
    (result, list)
}

const FREE_WORK: &str = "keep_free_blocks_before = false\nfreeblock.tasks = [{ kind = \"scan\", \
                         block_size = \"64KiB\", length = \"1GiB\" }]";
const SYSTEMS: [&str; 6] = [
    "",
    "electronics = false",
    "array.drives = 3",
    "cache.size = \"8MiB\"",
    "cache = { write_buffer = { size = \"1MiB\" } }",
    FREE_WORK,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn requests_done_once_with_stages_summed(
        row in prop::sample::select(LINUX_SCHEDULERS),
        drive in prop::sample::select(&["atlas10k", "exos-x24-24tb", "cheetah4lp"][..]),
        more in prop::sample::select(&SYSTEMS[..]),
        outstanding in 1u32..150, seed in 0u64..1 << 63
    ) {
        // An index of free work over 24 TB takes half a minute.
        let drive = if more == FREE_WORK { "atlas10k" } else { drive };
        let (result, list) = run(config(row.name, drive, outstanding, seed, more));
        prop_assert_eq!((list.len(), result.requests), (400, 400));
        for c in &list {
            prop_assert_eq!(c.host_queue() + c.drive_queue + c.service(), c.response());
        }
        let in_drive: u64 = list.iter().map(|c| c.drive_queue.ns()).sum();
        prop_assert_eq!(result.stages.drive_queue_ns, u128::from(in_drive));
        prop_assert!(list.windows(2).all(|pair| pair[0].end <= pair[1].end));
    }

    #[test]
    fn none_is_fcfs_before_drive(
        // On drives of a few gigabytes some requests adjoin by chance, and are merged.
        drive in prop::sample::select(library::names().into_iter().filter(|name| name.ends_with("tb")).collect::<Vec<_>>()),
        more in prop::sample::select(&SYSTEMS[..3]),
        outstanding in 1u32..60, seed in 0u64..1 << 63
    ) {
        let hash = |policy| {
            let mut config = config(policy, drive, outstanding, seed, more);
            let Workload::Closed { pattern, .. } = &mut config.workload else { panic!("closed") };
            pattern.local_share = 0.0;
            run(config).0.result_hash
        };
        prop_assert_eq!(hash("none"), hash("fcfs"));
    }
}

/// Adjoining writes of one instant, each by another client.
#[test]
fn merged_requests_end_together_and_count() {
    let sequential = "[workload]\nkind = \"closed\"\nrequests = 2000\noutstanding = 60\n\
                      pattern = { read_share = 0.0, local_share = 1.0, local_sd = \"16KiB\" }\n";
    let text = |policy: &str| {
        format!("drive = \"atlas10k\"\nscheduler = {{ policy = \"{policy}\" }}\n{sequential}")
    };
    let ends = |policy: &str| {
        let (result, list) = run(SimConfig::parse(&text(policy), "test", &[]).unwrap());
        assert_eq!(result.requests, 2000);
        list.windows(2).filter(|pair| pair[0].end == pair[1].end).count()
    };
    let (merged, apart) = (ends("mq-deadline"), ends("fcfs"));
    assert!(merged > 10 * (apart + 1), "{merged} against {apart} ends at one instant");
}

/// The host's and the drive's part of the queue time, in ms a request.
fn queues(policy: &str, outstanding: u32, more: &str) -> [f64; 2] {
    let stages = run(config(policy, "exos-x24-24tb", outstanding, 1, more)).0.stages;
    [stages.host_queue_ns(), stages.drive_queue_ns].map(|ns| ns as f64 / 400e6)
}

#[test]
fn queue_time_split_by_place() {
    let [host, drive] = queues("none", 32, "");
    assert!(host == 0.0 && drive > 10.0, "the drive has room for all: {host} and {drive} ms");
    let [host, drive] = queues("none", 100, "");
    assert!(host > 10.0 && drive > 10.0, "68 wait outside: {host} and {drive} ms");
    let [host, drive] = queues("fcfs", 100, "queue_depth = 1");
    // A command alone at the drive still waits for destages.
    assert!(host > 100.0 * drive && drive > 0.0, "one at the drive: {host} and {drive} ms");
    let [host, drive] = queues("fcfs", 100, "electronics = false");
    assert!(host > 100.0 && drive == 0.0, "no queue in the drive: {host} and {drive} ms");
}

#[test]
fn predicting_scheduler_refuses_linux_rules() {
    for row in LINUX_SCHEDULERS {
        let config = config(row.name, "atlas10k", 1, 1, "host = {}");
        let error = Experiment::new(config).unwrap_err().to_string();
        assert!(error.contains("stands in front of a whole drive"), "{error}");
    }
    let depth = config("kyber", "atlas10k", 1, 1, "queue_depth = 1");
    assert!(Experiment::new(depth).is_ok());
}

#[test]
fn scheduler_parameters_are_keys_changing_run() {
    let run = |parameters: &str| {
        let text = format!(
            "drive = \"atlas10k\"\nscheduler = {{ policy = \"mq-deadline\"{parameters} }}\n\
             [workload]\nkind = \"closed\"\nrequests = 400\noutstanding = 100\n"
        );
        let config = SimConfig::parse(&text, "test", &[]).map_err(|error| error.to_string())?;
        Ok::<_, String>(run(config).0.result_hash)
    };
    let usual = run("").unwrap();
    let explicit = ", read_expire = \"500ms\", write_expire = \"5s\", fifo_batch = 16, \
                    writes_starved = 2, front_merges = true, nr_requests = 64";
    assert_eq!(run(explicit), Ok(usual.clone()));
    for other in ["fifo_batch = 1", "read_expire = \"1ms\"", "nr_requests = 16"] {
        assert_ne!(run(&format!(", {other}")), Ok(usual.clone()), "{other}");
    }
    let error = run(", window = 0.4").unwrap_err();
    assert!(error.contains("its parameters are keys: read_expire, write_expire"), "{error}");
}
