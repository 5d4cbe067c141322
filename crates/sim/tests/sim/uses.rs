//! Tasks that request blocks on demand: their keys, their counts, and their effect on the foreground.

use freewheel_freeblock::uses::{CompareCounts, PrefetchCounts};
use freewheel_sim::RunResult;
use freewheel_sim::background::{CompareResult, TaskResult, UseResult, WriteBackResult};
use freewheel_sim::config::{SimConfig, Workload};
use freewheel_sim::experiment::Experiment;
use freewheel_units::{Bytes, Prng, SimDuration};
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

fn write_back(result: &RunResult) -> WriteBackResult {
    match first(result).used {
        Some(UseResult::WriteBack(result)) => result,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_task_cannot_have_is_refused_by_its_key_with_the_way_out() {
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
        ("kind = \"prefetch\"\nrounds = 1", "`rounds` is 1: a task of prefetching goes on"),
        ("kind = \"prefetch\"\nstart = \"1GiB\"", "`start` and `length` of a task of prefetch"),
        ("kind = \"prefetch\"\nshare = 2", "`share` of a task of prefetch: it has normal"),
        ("kind = \"prefetch\"\npriority = \"low\"", "`priority` of a task of prefetch"),
        ("kind = \"write-back\"\ndeadline = \"1s\"", "`deadline` of a task of write-back"),
        ("kind = \"scrub\"\nmemory = \"1MiB\"", "`memory` belongs to a task of compare, prefetch"),
        ("kind = \"scrub\"\ntracks_ahead = 1", "`tracks_ahead` belongs to a task of prefetch"),
        ("other_start = \"1GiB\"", "`other_start` belongs to a task of compare, not of scan"),
        (
            "kind = \"write-back\"\n[[freeblock.tasks]]\nkind = \"write-back\"",
            "tasks[1]: `kind` is write-back, as another task's",
        ),
        (
            "kind = \"backup\"\n[[freeblock.tasks]]\nkind = \"write-back\"",
            "tasks[1]: `kind` is write-back, of blocks of which backup is a backup",
        ),
    ] {
        let config = config(1, 1, "", &format!("[[freeblock.tasks]]\n{task}\n"));
        let error = Experiment::check(&config).unwrap_err().to_string();
        let place = if message.starts_with("tasks") { "" } else { "tasks[0]: " };
        assert!(error.starts_with(&format!("freeblock: {place}{message}")), "{task}: {error}");
    }
}

#[test]
fn a_comparison_without_a_length_takes_what_both_versions_have_room_for() {
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
fn a_comparison_compares_every_pair_once_within_its_memory_whatever_that_is() {
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

/// Consecutive requests from the start of the drive fall on the rest of a track, until the next track
/// begins.
#[test]
fn prefetching_reads_the_rest_of_every_track_and_more_tracks_on_request() {
    let predicted_reads = |ahead: u32| {
        let task = format!("[[freeblock.tasks]]\nkind = \"prefetch\"\ntracks_ahead = {ahead}\n");
        // As good as the same place over and over: the next one lies within some tracks.
        let near = "size = \"4KiB\", local_share = 0.95, local_sd = \"256KiB\"";
        let result = run(config(1, 3000, near, &task));
        let Some(UseResult::Prefetch(came)) = first(&result).used else { panic!() };
        let PrefetchCounts { reads, predicted_reads, hits, predicted_blocks, prefetched, used } =
            came.counts;
        assert_eq!(reads, result.read_response.count);
        assert!(
            hits <= predicted_reads && prefetched <= predicted_blocks && used >= hits && hits > 0
        );
        let in_gaps = first(&result).unfinished.deliveries.in_gaps;
        assert!(in_gaps >= prefetched && first(&result).blocks == 0, "{in_gaps}");
        predicted_reads as f64 / reads as f64
    };
    let [rest, more] = [0, 4].map(predicted_reads);
    assert!(more > 1.3 * rest && rest > 0.05, "{rest}, {more}");
}

/// Writes of one block each, from clients that never think. Memory fills at once, and from then on the
/// drive sets the pace.
#[test]
fn writes_beyond_the_memory_go_to_the_drive() {
    let task = "[[freeblock.tasks]]\nkind = \"write-back\"\nmemory = \"400KiB\"\n";
    let result = run(config(1, 500, "read_share = 0.0, size = \"4KiB\"", task));
    let came = write_back(&result);
    assert_eq!((came.writes, came.dirtied), (500, came.taken));
    assert!((100..500).contains(&came.taken), "{came:?}");
    // Three quarters of 100 blocks wait; the oldest of the others are promoted.
    assert_eq!(came.waiting_max, 75);
    assert!(came.promoted > 20 && came.left <= 100, "{came:?}");
    assert_eq!(result.write_response.min_ns, 0);
    assert!(result.write_response.max_ns > 0);
}

#[test]
fn memory_answers_reads_of_what_it_has_and_a_block_written_twice_is_written_once() {
    let task = "[[freeblock.tasks]]\nkind = \"write-back\"\nmemory = \"16MiB\"\n";
    // All requests lie within some blocks of each other.
    let pattern = "read_share = 0.5, size = \"4KiB\", local_share = 1.0, local_sd = \"32KiB\"";
    let came = write_back(&run(config(2, 3000, pattern, task)));
    assert!(came.reads_answered > 100 && came.absorbed > 100, "{came:?}");
    assert_eq!((came.taken, came.promoted), (came.writes, 0));
    assert_eq!(came.dirtied, came.free + came.absorbed + came.left, "{came:?}");
}

/// A memory in front of a scheduler in front of the drive, which sends writes later than it plans them, or
/// never.
#[test]
fn a_block_that_gaps_write_back_from_outside_the_drive_is_written_once_or_replaced() {
    let task = "host = { behaviour = { seek_jitter = \"50us\" } }\n\
                [[freeblock.tasks]]\nkind = \"write-back\"\nmemory = \"16MiB\"\n";
    for (clients, local) in [(4, ""), (8, ", local_share = 1.0, local_sd = \"256KiB\"")] {
        let pattern = format!("read_share = 0.5, size = \"4KiB\"{local}");
        let came = write_back(&run(config(clients, 3000, &pattern, task)));
        assert!(came.free > 300, "{came:?}");
        let gone = came.free + came.promoted + came.absorbed + came.superseded + came.left;
        assert_eq!(came.dirtied, gone, "{came:?}");
        assert!(came.free_bytes >= came.free * 4096, "{came:?}");
    }
}

#[test]
fn writes_of_parts_of_blocks_go_to_the_drive_and_the_rest_of_a_dirty_block_stays_dirty() {
    let task = "[[freeblock.tasks]]\nkind = \"write-back\"\nmemory = \"16MiB\"\n";
    let pattern = "read_share = 0.3, size = \"2KiB\", align = \"2KiB\", size_distribution = \
                   \"exponential\", local_share = 1.0, local_sd = \"64KiB\"";
    let came = write_back(&run(config(2, 3000, pattern, task)));
    assert!(came.taken > 100 && came.writes - came.taken > 100, "{came:?}");
    let gone = came.free + came.promoted + came.absorbed + came.superseded + came.left;
    assert_eq!(came.dirtied, gone, "{came:?}");
    assert!(came.superseded > 4, "{came:?}");
}

/// Configuration with clients that think.
fn thinking(mut config: SimConfig) -> SimConfig {
    let Workload::Closed { think_time, .. } = &mut config.workload else { unreachable!() };
    *think_time = SimDuration::from_ms(30);
    config
}

/// All that the drive writes back is promoted: memory takes every write, and gaps before destages are
/// none.
#[test]
fn what_promoted_writes_take_of_the_head_is_told_where_the_drive_has_a_cache_of_its_own() {
    let task = "[[freeblock.tasks]]\nkind = \"write-back\"\nmemory = \"1MiB\"\n";
    let pattern = "read_share = 0.6, size = \"8KiB\", align = \"4KiB\"";
    for clients in [1, 10] {
        let mut config = thinking(config(clients, 4000, pattern, task));
        config.electronics = true;
        let result = run(config);
        let WriteBackResult { taken, writes, .. } = write_back(&result);
        assert_eq!(taken, writes);
        let promoted = first(&result).unfinished.deliveries.promoted;
        assert!(promoted.requests > 100, "{promoted:?}");
        let destaging_ns = (result.destaging * result.arms_ns as f64).round() as u64;
        assert!(promoted.head_ns <= destaging_ns, "{promoted:?} of {destaging_ns}");
        // The drive does not report the blocks that its buffer held at the end.
        assert!(
            promoted.head_ns as f64 > 0.97 * destaging_ns as f64,
            "{promoted:?}, {destaging_ns}"
        );
    }
}

#[test]
fn what_gaps_wrote_is_what_write_back_says_to_the_byte() {
    let task = "[[freeblock.tasks]]\nkind = \"write-back\"\nmemory = \"256KiB\"\n";
    let pattern = "read_share = 0.6, size = \"8KiB\", align = \"4KiB\"";
    for table in [task.to_owned(), format!("[freeblock]\nidle = {{ after = \"0ms\" }}\n{task}")] {
        let result = run(config(3, 3000, pattern, &table));
        let came = write_back(&result);
        let in_idle = result.idle.map_or(0, |idle| idle.write_bytes);
        assert_eq!(came.free_bytes, result.free.unwrap().time.write_bytes + in_idle);
        let parts = came.free_bytes - came.free * 4096;
        assert!(parts > 0 && parts < came.free_bytes / 20, "{came:?}");
    }
}

#[test]
fn most_dirty_blocks_go_in_gaps_beside_a_scrub_for_they_are_worth_more_as_memory_fills() {
    let beside = "[[freeblock.tasks]]\nkind = \"scrub\"\nblock_size = \"64KiB\"\n";
    let share = |task: &str, beside: &str| {
        let task = format!("[[freeblock.tasks]]\nkind = \"{task}\"\nmemory = \"1MiB\"\n{beside}");
        let pattern = "read_share = 0.667, size = \"8KiB\", align = \"4KiB\"";
        let result = run(thinking(config(10, 4000, pattern, &task)));
        let WriteBackResult { free, promoted, .. } = write_back(&result);
        let scrubbed =
            result.background[0].tasks.get(1).map_or(0, |task| task.unfinished.deliveries.in_gaps);
        (free as f64 / (free + promoted) as f64, scrubbed)
    };
    let ((alone, _), (rival, scrubbed)) = (share("write-back", ""), share("write-back", beside));
    assert!(alone > 0.8 && rival > 0.5, "{alone} alone, {rival} beside a scrub");
    assert!(scrubbed > 300, "{scrubbed} blocks of a scrub");
}

#[test]
fn references_are_the_run_without_write_back_and_the_run_with_memory_for_all_that_is_written() {
    let pattern = "read_share = 0.6, size = \"8KiB\", align = \"4KiB\"";
    let scrub = "[[freeblock.tasks]]\nkind = \"scrub\"\n";
    let own = "[[freeblock.tasks]]\nkind = \"write-back\"\n";
    let first_or_second = [
        format!("{own}memory = \"64KiB\"\n{scrub}"),
        "[[freeblock.tasks]]\nkind = \"scrub\"\n[[freeblock.tasks]]\nkind = \"write-back\"\n\
         memory = \"64KiB\"\n"
            .to_owned(),
    ];
    let without = run(config(10, 1500, pattern, ""));
    let endless = run(config(10, 1500, pattern, &format!("{own}memory = \"1GiB\"\n")));
    assert_eq!(write_back(&endless).promoted, 0);
    for table in first_or_second {
        let experiment = Experiment::new(config(10, 1500, pattern, &table)).unwrap();
        let references = experiment.run_references(&mut |_, _| {}).unwrap().unwrap();
        for (run, same) in [(references.no_memory, &without), (references.endless_memory, &endless)]
        {
            assert_eq!(run.elapsed_ns, same.elapsed_ns);
            assert_eq!(run.read_distribution, same.read_distribution);
            assert_eq!(run.write_response, same.write_response);
        }
    }
    let none =
        Experiment::new(config(1, 1, pattern, "[[freeblock.tasks]]\nkind = \"scrub\"\n")).unwrap();
    assert_eq!(none.run_references(&mut |_, _| {}).unwrap(), None);
}

#[test]
fn two_arms_each_have_their_own_memory_and_a_request_on_both_is_done_with_its_last_piece() {
    let text = "drive = \"exos-2x18-18tb\"\nelectronics = false\nworkload = { kind = \"closed\", \
                outstanding = 4, requests = 2000, pattern = { read_share = 0.5, size = \"64KiB\" } }\n\
                [[freeblock.tasks]]\nkind = \"write-back\"\nmemory = \"1MiB\"\n";
    let result = run(SimConfig::parse(text, "test", &[]).unwrap());
    let arms: Vec<UseResult> =
        result.background.iter().map(|arm| arm.tasks[0].used.unwrap()).collect();
    let Some(UseResult::WriteBack(both)) = arms.iter().copied().reduce(UseResult::and) else {
        panic!("{arms:?}");
    };
    assert_eq!(arms.len(), 2);
    assert!(both.writes >= result.write_response.count && both.taken > 100, "{both:?}");
    assert_eq!(result.requests, 2000);
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
            format!("kind = \"prefetch\"\ntracks_ahead = {}\n", pick(&["0", "1", "3"])),
            format!("kind = \"prefetch\"\nmemory = \"{}\"\n", pick(&["4KiB", "1MiB"])),
            "kind = \"scan\"\n".to_owned(),
        ];
        let (one, other) = (pick(&["0", "1", "2"]), pick(&["0", "1", "2", "3"]));
        let [one, other] = [one, other].map(|n| tasks[n.parse::<usize>().unwrap()].clone());
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
    fn foreground_untouched_by_comparing_and_prefetching((alone, with) in any_case()) {
        let (alone, with) = (run(alone), run(with));
        prop_assert_eq!(with.requests_hash.as_ref(), Some(&alone.result_hash));
        prop_assert_eq!(with.head_time, alone.head_time);
        let free = with.free.unwrap().time;
        prop_assert_eq!((free.gaps_late, free.foreground_delay_ns), (0, 0));
    }

    /// Reads alone never meet what is in memory.
    #[test]
    fn foreground_untouched_by_write_back_where_nothing_is_written((mut alone, with) in any_case()) {
        let Workload::Closed { pattern, .. } = &mut alone.workload else { unreachable!() };
        pattern.read_share = 1.0;
        let mut with = SimConfig { workload: alone.workload.clone(), ..with };
        let freeblock = with.freeblock.as_mut().unwrap();
        freeblock.tasks[1].kind = freewheel_freeblock::tasks::TaskKind::WriteBack;
        let beside = &mut freeblock.tasks[1];
        (beside.start, beside.other_start, beside.tracks_ahead) = (Bytes::ZERO, None, None);
        let (alone, with) = (run(alone), run(with));
        prop_assert_eq!(with.requests_hash.as_ref(), Some(&alone.result_hash));
    }
}
