//! Comparisons, which request blocks on demand: their keys, their counts, and their effect on the foreground.

use freewheel_freeblock::uses::CompareCounts;
use freewheel_sim::RunResult;
use freewheel_sim::background::{CompareResult, TaskResult, UseResult};
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_units::Prng;
use proptest::prelude::*;

/// A closed workload of `requests` requests on an Atlas 10K, with background work.
fn config(clients: u32, requests: u64, pattern: &str, freeblock: &str) -> SimConfig {
    let text = format!(
        "drive = \"atlas10k\"\nelectronics = false\nworkload = {{ kind = \"closed\", outstanding = \
         {clients}, requests = {requests}, pattern = {{ {pattern} }} }}\n{freeblock}"
    );
    SimConfig::parse(&text, "test", &[]).unwrap()
}

fn run(config: SimConfig) -> RunResult {
    Experiment::new(config).unwrap().run().unwrap()
}

fn first(result: &RunResult) -> &TaskResult {
    &result.background[0].tasks[0]
}

#[test]
fn task_impossible_keys_refused() {
    for (task, message) in [
        ("kind = \"compare\"", "`kind` is compare: `other_start`"),
        ("kind = \"compare\"\nother_start = \"100B\"", "`other_start` is 100B: a whole"),
        ("kind = \"compare\"\nother_start = \"0B\"", "`other_start` is 0B: a whole"),
        ("kind = \"compare\"\nother_start = \"1TiB\"", "`other_start` is 1TiB: a whole"),
        (
            "kind = \"compare\"\nother_start = \"1GiB\"\nlength = \"2GiB\"",
            "`other_start` is 1GiB: a whole number of blocks of 512 B is needed, and room for both versions apart from each other, from `start` = 0B on the other one, on an arm of 8.57 GiB: 1GiB each at most, in blocks of 4KiB",
        ),
        (
            "kind = \"compare\"\nother_start = \"1GiB\"\nlength = \"20GiB\"",
            "`length` is 20GiB: from 4KiB to the arm's 8983476KiB (8.57 GiB) behind",
        ),
        (
            "kind = \"compare\"\nother_start = \"1GiB\"\nmemory = \"2KiB\"",
            "`memory` is 2KiB: room for one block of 4KiB",
        ),
        (
            "kind = \"compare\"\nother_start = \"1GiB\"\nrounds = 2",
            "`rounds` is 2: a comparison has 1",
        ),
        (
            "kind = \"compare\"\nother_start = \"1GiB\"\nsample_share = 0.5",
            "`sample_share` of a task of compare",
        ),
        (
            "kind = \"compare\"\nother_start = \"1GiB\"\npromote_tail = { cost = 0.1 }",
            "`promote_tail`: the last blocks of comparison",
        ),
        (
            "kind = \"compare\"\nother_start = \"1GiB\"\ndeadline = \"1s\"",
            "`deadline` of a task of compare",
        ),
        (
            "kind = \"compare\"\nother_start = \"1GiB\"\nshare = 2",
            "`share` of a task of compare: it has normal",
        ),
        (
            "kind = \"compare\"\nother_start = \"1GiB\"\npriority = \"low\"",
            "`priority` of a task of compare",
        ),
        ("kind = \"scrub\"\nmemory = \"1MiB\"", "`memory` belongs to a task of compare, not of"),
        ("other_start = \"1GiB\"", "`other_start` belongs to a task of compare, not of scan"),
    ] {
        let config = config(1, 1, "", &format!("[[freeblock.tasks]]\n{task}\n"));
        let error = Experiment::check(&config).unwrap_err().to_string();
        assert!(error.starts_with(&format!("freeblock: tasks[0]: {message}")), "{task}: {error}");
    }
}

#[test]
fn comparison_default_length_fits_both_versions() {
    for (versions, pairs) in [
        ("start = \"8GiB\"\nother_start = \"8193MiB\"", 256),
        ("start = \"1MiB\"\nother_start = \"0B\"", 256),
        ("start = \"1MiB\"\nother_start = \"512KiB\"\nblock_size = \"96KiB\"", 5),
    ] {
        let task = format!("[[freeblock.tasks]]\nkind = \"compare\"\n{versions}\n");
        let result = run(config(1, 1, "", &task));
        assert_eq!(first(&result).blocks, 2 * pairs, "{versions}");
    }
}

#[test]
fn comparison_covers_pairs_within_memory() {
    for (memory, kib) in [("4KiB", 4), ("64KiB", 64), ("4MiB", 4096)] {
        let task = format!(
            "[[freeblock.tasks]]\nkind = \"compare\"\nstart = \"1GiB\"\nother_start = \"1027MiB\"\n\
             length = \"2MiB\"\nmemory = \"{memory}\"\nrounds = 1\n"
        );
        let near = "size = \"4KiB\", local_share = 0.99, local_sd = \"4MiB\"";
        let result = run(config(4, 1, near, &task));
        let task = first(&result);
        let Some(UseResult::Compare(came)) = task.used else { panic!("{:?}", task.used) };
        let CompareResult { counts, memory_bytes } = came;
        let CompareCounts { compared, unmatched_bytes_max } = counts;
        assert_eq!((compared, task.blocks, task.rounds.len()), (512, 1024, 1));
        assert_eq!(task.rounds[0].deliveries.settled(), 1024, "each version of a block comes once");
        assert_eq!(task.unfinished.deliveries.settled(), 0);
        assert!(unmatched_bytes_max <= memory_bytes && memory_bytes == kib << 10);
        // A single pair waits with one block.
        assert!(kib > 4 || unmatched_bytes_max == 4096, "{unmatched_bytes_max}");
    }
}

/// A workload, and tasks that leave it as it is.
fn any_case() -> impl Strategy<Value = (SimConfig, SimConfig)> {
    any::<u64>().prop_map(|seed| {
        let prng = &mut Prng::new(seed, "uses");
        let mut pick =
            |values: &[&str]| values[prng.below(values.len() as u64) as usize].to_owned();
        let compare = "kind = \"compare\"\nstart = \"1GiB\"\nother_start = \"3GiB\"\n";
        let tasks = [
            format!("{compare}memory = \"{}\"\n", pick(&["4KiB", "256KiB", "16MiB"])),
            "kind = \"scan\"\n".to_owned(),
        ];
        let other = tasks[pick(&["0", "1"]).parse::<usize>().unwrap()].clone();
        let [one, _] = tasks;
        let (rule, policy) = (pick(&["greedy", "paths"]), pick(&["fcfs", "sptf", "clook"]));
        let (local, size) = (pick(&["0.0", "0.7"]), pick(&["512B", "4KiB", "20KiB"]));
        let (read, electronics) = (pick(&["1.0", "0.6", "0.0"]), pick(&["true", "false"]));
        let pattern = format!(
            "read_share = {read}, size = \"{size}\", local_share = {local}, local_sd = \"256KiB\""
        );
        let table = format!("[freeblock]\nrule = \"{rule}\"\n[[freeblock.tasks]]\n{one}[[freeblock.tasks]]\n{other}\n");
        let mut with = config(1 + seed as u32 % 8, 300, &pattern, &table);
        with.scheduler = policy.parse().unwrap();
        with.electronics = electronics == "true";
        with.keep_free_blocks_before = Some(false);
        with.seed = seed >> 11;
        (SimConfig { freeblock: None, ..with.clone() }, with)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn foreground_untouched_by_comparing((alone, with) in any_case()) {
        let (alone, with) = (run(alone), run(with));
        prop_assert_eq!(with.requests_hash.as_ref(), Some(&alone.result_hash));
        prop_assert_eq!(with.head_time, alone.head_time);
        let free = with.free.unwrap().time;
        prop_assert_eq!((free.gaps_late, free.foreground_delay_ns), (0, 0));
    }
}
