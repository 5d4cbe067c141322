//! Marks of commands for the drive's queue, and a scrub from outside.

use freewheel_sim::RunResult;
use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_units::SimDuration;

/// Random reads that a drive serves while a scrub of 256 KiB a read continues.
const READS: &str = "workload = { kind = \"open\", mean_gap = \"25ms\", requests = 3000, \
                     pattern = { read_share = 1 } }\n";

/// Reads and writes, more than the drive serves at once.
const BUSY: &str = "workload = { kind = \"closed\", outstanding = 32, requests = 2000, \
                    pattern = { read_share = 0.7 } }\nwrite_cache = \"off\"\n";

fn experiment(text: &str) -> Result<Experiment, String> {
    let config = SimConfig::parse(&format!("drive = \"exos-x24-24tb\"\n{text}"), "test", &[]);
    Experiment::new(config.map_err(|error| error.to_string())?).map_err(|error| error.to_string())
}

fn run(text: &str) -> RunResult {
    experiment(text).unwrap().run().unwrap()
}

#[test]
fn commands_without_marks_change_nothing() {
    for load in [READS, BUSY] {
        let with = run(&format!("commands = {{ high_priority_first = \"1s\" }}\n{load}"));
        assert_eq!(with.result_hash, run(load).result_hash);
        assert!(with.outside_scrub.is_none());
    }
}

#[test]
fn high_priority_clients_wait_one_scrub_read() {
    let alone = run(READS);
    let scrub = "scrub = { outstanding = 8 }";
    let plain = run(&format!("commands = {{ {scrub} }}\n{READS}"));
    let by_priority = run(&format!(
        "commands = {{ high_priority_first = \"10s\", clients = {{ high_priority = true }}, {scrub} }}\n{READS}"
    ));
    let mean = |run: &RunResult| run.read_response.mean_ns / 1e6;
    // A read of the scrub takes less than a turn and a seek, of which a request waits for half.
    assert!(mean(&by_priority) < mean(&alone) + 15.0, "{} {}", mean(&by_priority), mean(&alone));
    assert!(mean(&by_priority) < mean(&plain), "{} {}", mean(&by_priority), mean(&plain));
    for run in [&plain, &by_priority] {
        let scrub = run.outside_scrub.as_ref().unwrap();
        assert_eq!(scrub.read_bytes, scrub.reads * (256 << 10));
        assert_eq!(scrub.response.count, scrub.reads);
        assert!(scrub.bytes_per_second() > 1e6, "{scrub:?}");
        // The scrub is no client.
        assert_eq!(run.requests, alone.requests);
    }
}

#[test]
fn client_limit_bounds_wait_behind_scrub() {
    let with = |limit: &str| {
        let limits =
            format!("read_limits = [{{ inactive = \"{limit}\" }}, {{ inactive = \"2s\" }}]");
        let marks = "clients = { read_limit = 1 }, scrub = { outstanding = 8, read_limit = 2 }";
        run(&format!("commands = {{ {limits}, {marks} }}\n{READS}"))
    };
    let [short, long] = ["20ms", "500ms"].map(with);
    let read = |run: &RunResult| run.outside_scrub.as_ref().unwrap().read_bytes;
    assert!(short.read_response.mean_ns < long.read_response.mean_ns);
    assert!(read(&short) < read(&long), "{} {}", read(&short), read(&long));
    assert_eq!(short.duration_limits.aborted(), 0, "the policy is to complete");
    assert!(short.duration_limits.missed > long.duration_limits.missed);
}

#[test]
fn clients_without_limit_end_beside_scrub() {
    let run = run("commands = { read_limits = [{ inactive = \"5ms\" }], \
                   scrub = { outstanding = 2, read_limit = 1, reads_max = 20000 } }\n\
                   workload = { kind = \"open\", mean_gap = \"25ms\", requests = 100, \
                   pattern = { read_share = 1 } }");
    assert_eq!(run.read_response.count, 100);
    let scrub = run.outside_scrub.unwrap();
    // The drive's queue holds 32 commands.
    assert!((1600..20_000).contains(&scrub.reads), "{scrub:?}");
}

#[test]
fn limited_requests_counted_apart() {
    let abort = "[{ inactive = \"60ms\", policy = \"abort\" }]";
    let run = run(&format!(
        "commands = {{ read_limits = {abort}, write_limits = {abort}, \
         clients = {{ read_limit = 1, write_limit = 1 }} }}\n{BUSY}"
    ));
    let limits = run.duration_limits;
    assert!(limits.aborted_reads > 0 && limits.aborted_writes > 0, "{limits:?}");
    assert_eq!(limits.missed, 0);
    let done = run.read_response.count + run.write_response.count;
    assert_eq!(done + limits.aborted(), 2000);
    assert_eq!(run.requests, 2000);
    // Nothing that was done waited for longer in the drive, whose queue takes all 32.
    assert!(run.queue_ns_max <= 61_000_000, "{}", run.queue_ns_max);
}

#[test]
fn scrub_continues_and_wraps_at_end() {
    let mut ends = Vec::new();
    let config = "drive = \"atlas10k\"\ncommands = { scrub = { run = \"1MiB\", start = \"8700MiB\" } }\n\
                  workload = { kind = \"open\", mean_gap = \"1s\", requests = 20 }";
    let config = SimConfig::parse(config, "test", &[]).unwrap();
    let experiment = Experiment::new(config).unwrap();
    let mut observe = |done: &freewheel_sim::Completion| ends.push(done.end);
    let result = experiment.new_run().with_observer(&mut observe).simulate().unwrap();
    assert_eq!(ends.len(), 20, "an observer sees clients");
    let scrub = result.outside_scrub.unwrap();
    let rest = experiment.drive.blocks().bytes().get() - (8700 << 20);
    assert!(scrub.read_bytes > rest, "{} behind the end", scrub.read_bytes);
    // The media rate of the inner zones, 18 MB/s, is the least; head switches take a part.
    assert!(scrub.bytes_per_second() > 12e6, "{}", scrub.bytes_per_second());
}

#[test]
fn unread_marks_refused_with_remedy() {
    let refused = |text: &str| experiment(&format!("{text}\n{READS}")).unwrap_err();
    for (text, way_out) in [
        (
            "commands = { clients = { high_priority = true } }",
            "give `commands.high_priority_first`",
        ),
        ("commands = { clients = { read_limit = 1 } }", "give `commands.read_limits`"),
        ("commands = { scrub = { read_limit = 1 } }", "give `commands.read_limits`"),
        (
            "commands = { read_limits = [{ active = \"1s\" }], high_priority_first = \"1s\", \
             clients = { high_priority = true, read_limit = 1 } }",
            "leave one out",
        ),
        (
            "commands = { clients = { high_priority = true, read_limit = 200, write_limit = 56 } }",
            "leave one out",
        ),
        ("commands = { scrub = { run = \"100B\" } }", "512 B to"),
        ("commands = { scrub = { outstanding = 0 } }", "1 to 256"),
        ("commands = { scrub = { start = \"30TB\" } }", "the drives hold"),
        ("electronics = false\ncommands = {}", "give `electronics = true`"),
        (
            "cache = { size = \"8MiB\" }\ncommands = { clients = { read_limit = 1 }, \
             read_limits = [{ inactive = \"1s\", policy = \"abort\" }] }",
            "`policy = \"complete\"`",
        ),
        (
            "queue_depth = 1\ncommands = { high_priority_first = \"1s\", clients = { high_priority = true } }",
            "give `queue_depth` of 2 or more",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(way_out), "{text}: {error}");
    }
}

/// Mean and greatest response of clients beside a deep scrub, with and without high priority, and the bytes of
/// the scrub.
fn beside_a_scrub(around: &str) -> [(f64, u64); 2] {
    let of = |priority: bool| {
        let run = run(&format!(
            "{around}commands = {{ high_priority_first = \"10s\", \
             clients = {{ high_priority = {priority} }}, scrub = {{ outstanding = 8 }} }}\n{READS}"
        ));
        (run.read_response.mean_ns / 1e6, run.outside_scrub.unwrap().read_bytes)
    };
    [of(false), of(true)]
}

#[test]
fn marks_pass_linux_cache_and_scheduler() {
    for around in [
        "scheduler = { policy = \"none\" }\n",
        "scheduler = { policy = \"mq-deadline\" }\n",
        "cache = { size = \"8MiB\" }\nwrite_cache = \"off\"\n",
        "host = { scheduler = { queue_depth = 32 } }\n",
    ] {
        let [plain, marked] = beside_a_scrub(around);
        println!("{around}: {plain:?} without priority, {marked:?} with");
        assert!(marked.0 < plain.0, "{around}: {plain:?}, {marked:?}");
    }
}

/// Responses of random reads beside a sequential stream of 16 commands, on a drive that serves streams
/// first until another command has waited for two seconds.
fn beside_a_stream(queue_depth: u32) -> RunResult {
    let experiment = experiment(&format!(
        "queue_depth = {queue_depth}\ncommands = {{ scrub = {{ outstanding = 16 }} }}\n\
         workload = {{ kind = \"open\", mean_gap = \"300ms\", requests = 60, pattern = {{ read_share = 1 }} }}"
    ))
    .unwrap();
    let mut spec = experiment.spec.clone();
    spec.electronics.queue.as_mut().unwrap().streams_first = Some(SimDuration::from_secs(2));
    experiment.on_drive(spec).unwrap().run().unwrap()
}

#[test]
fn deadline_command_cures_stream_starvation() {
    let deep = beside_a_stream(32);
    // Behind the deadline a read in its turn takes some milliseconds, and others may be due before it.
    let p50_ms = deep.read_response.p50_ns / 1_000_000;
    assert!((1_990..2_200).contains(&p50_ms), "{p50_ms} ms");
    let one = beside_a_stream(1);
    // Sixteen reads of a millisecond are before it.
    assert!(one.read_response.p99_ns < 100_000_000, "{} ns", one.read_response.p99_ns);
}
