//! Warm-up and slices, against sums over the observed completions.

use freewheel_sim::config::SimConfig;
use freewheel_sim::experiment::Experiment;
use freewheel_sim::{CacheWork, Completion, RunResult, SliceResponses};
use freewheel_units::{Op, SimTime};

fn config(text: &str, overrides: &[&str]) -> SimConfig {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).into()).collect();
    SimConfig::parse(text, "test", &overrides).unwrap()
}

/// The result, and the completions in order of arrival.
fn run(text: &str, overrides: &[&str]) -> (RunResult, Vec<Completion>) {
    let mut list = Vec::new();
    let experiment = Experiment::new(config(text, overrides)).unwrap();
    let result = experiment.new_run().with_observer(&mut |c| list.push(*c)).simulate().unwrap();
    list.sort_by_key(|c| c.arrival);
    (result, list)
}

const OPEN: &str = r#"
    drive = "atlas10k"
    scheduler = { policy = "sptf" }
    [workload]
    kind = "open"
    mean_gap = "7ms"
    requests = 1500
    pattern = { read_share = 0.6, size = "8KiB" }
"#;

const CLOSED: &str = r#"
    drive = "atlas10k"
    scheduler = { policy = "sptf" }
    [workload]
    kind = "closed"
    outstanding = 9
    requests = 1500
    pattern = { read_share = 0.6, size = "8KiB" }
"#;

/// A cache that is just a queue.
const QUEUE: [&str; 2] = ["cache.size=0B", "cache.queue_depth=4096"];

/// Sum and count of the responses of one operation.
fn sum_and_count(list: &[Completion], op: Op) -> (u128, u64) {
    let of = list.iter().filter(|c| c.request.op == op);
    let responses: Vec<u64> = of.map(|c| c.response().ns()).collect();
    (responses.iter().map(|&ns| u128::from(ns)).sum(), responses.len() as u64)
}

/// The response that 99 % do not exceed.
fn p99(list: &[Completion], op: Op) -> f64 {
    let of = list.iter().filter(|c| c.request.op == op);
    let mut responses: Vec<u64> = of.map(|c| c.response().ns()).collect();
    responses.sort_unstable();
    responses[(responses.len() * 99).div_ceil(100) - 1] as f64
}

fn assert_responses(ours: &SliceResponses, list: &[Completion], op: Op) {
    let (sum, count) = sum_and_count(list, op);
    assert_eq!((ours.response_ns_sum, ours.requests), (sum, count));
    assert_eq!(ours.response_ns_mean, sum as f64 / count as f64);
    let exact = p99(list, op);
    assert!((ours.response_ns_p99 as f64 - exact).abs() <= exact * 0.001 + 1.0, "{exact}");
}

/// Head time of all accesses that began in this time, on bare mechanics.
fn head_ns(list: &[Completion], from: SimTime, to: SimTime) -> u128 {
    let began = |c: &&Completion| {
        let begin = SimTime::from_ns(c.end.ns() - c.service().ns());
        from <= begin && begin < to
    };
    let head = list.iter().filter(began).map(|c| c.seek + c.rotate + c.transfer);
    head.map(|time| u128::from(time.ns())).sum()
}

/// Requests times nanoseconds that were outstanding from `from` on.
fn outstanding_ns(list: &[Completion], from: SimTime) -> u128 {
    let since = |c: &Completion| c.end.saturating_since(from.max(c.arrival));
    list.iter().map(|c| u128::from(since(c).ns())).sum()
}

#[test]
fn warm_up_changes_no_nanosecond() {
    for text in [OPEN, CLOSED] {
        let (plain, expected) = run(text, &[]);
        for more in [&["warm_up=0.4"][..], &["slices=5"], &["warm_up=0.43", "slices=7"]] {
            let (result, mut list) = run(text, more);
            // The mark of the warm-up is all that changes.
            let in_warm_up = list.iter().filter(|one| one.is_warm_up).count();
            assert_eq!(in_warm_up > 0, more[0].starts_with("warm_up"), "{more:?}");
            list.iter_mut().for_each(|one| one.is_warm_up = false);
            assert!(result.result_hash == plain.result_hash && list == expected, "{more:?}");
        }
    }
}

#[test]
fn results_sum_arrivals_after_warm_up() {
    for text in [OPEN, CLOSED] {
        let bare = ["warm_up=0.4", "electronics=false"];
        let (result, list) = run(text, &bare);
        let (warm, counted) = list.split_at(600);
        let start = counted[0].arrival;
        assert!(warm[599].arrival < start, "the order of arrival is certain");
        let end = list.iter().map(|c| c.end).max().unwrap();
        assert_eq!((result.warm_up_requests, result.requests), (600, 900));
        assert_eq!(result.elapsed_ns, (end - start).ns());
        let (sum, count) = sum_and_count(counted, Op::Read);
        assert_eq!(result.read_response.mean_ns, sum as f64 / count as f64);
        assert_eq!(result.write_response.count, sum_and_count(counted, Op::Write).1);
        assert_eq!(result.read_bytes, count * 8192);
        let head = head_ns(&list, start, end);
        assert_eq!(result.head_time.total_ns(), head);
        assert_eq!(result.utilisation, head as f64 / (end - start).ns() as f64);
        let outstanding = outstanding_ns(&list, start) as f64 / (end - start).ns() as f64;
        assert_eq!(result.outstanding_mean, outstanding);
        let queue: u128 = counted.iter().map(|c| u128::from(c.queue.ns())).sum();
        assert_eq!(result.stages.queue_ns, queue);
    }
}

#[test]
fn slices_sum_own_arrivals() {
    for text in [OPEN, CLOSED] {
        let (result, list) = run(text, &["warm_up=0.2", "slices=4", "electronics=false"]);
        let counted = &list[300..];
        assert_eq!(result.slices.len(), 4);
        let end = list.iter().map(|c| c.end).max().unwrap();
        for (number, slice) in result.slices.iter().enumerate() {
            let own = &counted[number * 300..(number + 1) * 300];
            assert_responses(&slice.reads, own, Op::Read);
            assert_responses(&slice.writes, own, Op::Write);
            let start = own[0].arrival;
            let next = counted.get((number + 1) * 300).map_or(end, |c| c.arrival);
            assert_eq!((slice.start_ns, slice.elapsed_ns), (start.ns(), (next - start).ns()));
            assert_eq!(slice.head_ns, head_ns(&list, start, next), "slice {number}");
            assert_eq!(slice.cache, None);
        }
    }
}

#[test]
fn slices_without_warm_up_cover_run() {
    let (whole, _) = run(OPEN, &[]);
    let (mut result, _) = run(OPEN, &["slices=6"]);
    let slices = std::mem::take(&mut result.slices);
    assert_eq!(result, whole, "nothing else differs");
    assert_eq!(slices.iter().map(|slice| slice.elapsed_ns).sum::<u64>(), whole.elapsed_ns);
    assert_eq!(slices.iter().map(|slice| slice.head_ns).sum::<u128>(), whole.head_time.total_ns());
    let requests = slices.iter().map(|slice| slice.reads.requests + slice.writes.requests);
    assert_eq!(requests.sum::<u64>(), whole.requests);
}

#[test]
fn busy_drive_stays_busy_after_warm_up() {
    let (result, _) = run(CLOSED, &["warm_up=0.5", "queue_depth=4"]);
    assert!((0.98..=1.0).contains(&result.utilisation), "{}", result.utilisation);
    let shares = result.busy_shares;
    assert!(shares.head + shares.electronics <= 1.01 && shares.bus < 0.1, "{shares:?}");
}

#[test]
fn cache_counters_start_after_warm_up() {
    let with = |more: &[&str]| run(OPEN, &[&["electronics=false"], &QUEUE[..], more].concat());
    let (result, list) = with(&["warm_up=0.4", "slices=3"]);
    let work = result.cache.unwrap();
    let count = |op| sum_and_count(&list[600..], op).1;
    assert_eq!((work.reads, work.writes), (count(Op::Read), count(Op::Write)));
    assert_eq!((work.read_misses, work.write_misses), (work.reads, work.writes));
    let sum: u64 = result.slices.iter().map(|slice| slice.cache.unwrap().reads).sum();
    assert_eq!(sum, work.reads);
    let (whole, _) = with(&[]);
    assert_eq!(whole.cache.unwrap().reads, sum_and_count(&list, Op::Read).1);
}

#[test]
fn warm_cache_misses_less_than_cold() {
    let local = ["cache.size=64MiB", "workload.pattern.local_share=0.9", "workload.mean_gap=20ms"];
    let misses = |work: CacheWork| work.read_misses as f64 / work.reads as f64;
    let (cold, _) = run(OPEN, &local);
    let (warm, _) = run(OPEN, &[&local[..], &["warm_up=0.7"]].concat());
    let (cold, warm) = (misses(cold.cache.unwrap()), misses(warm.cache.unwrap()));
    assert!(warm < cold, "{warm} against {cold}");
}

#[test]
fn independent_drives_have_own_warm_up() {
    let drives = ["array.layout=independent", "array.drives=3", "warm_up=0.4", "slices=2"];
    let experiment = Experiment::new(config(OPEN, &drives)).unwrap();
    let result = experiment.run().unwrap();
    assert_eq!((result.warm_up_requests, result.requests), (1800, 2700));
    let alone: Vec<RunResult> = result
        .drives
        .iter()
        .map(|drive| {
            let seed = format!("seed={}", drive.seed);
            run(OPEN, &[&seed, "warm_up=0.4", "slices=2"]).0
        })
        .collect();
    for (number, slice) in result.slices.iter().enumerate() {
        let reads = |of: &RunResult| of.slices[number].reads.response_ns_sum;
        assert_eq!(slice.reads.response_ns_sum, alone.iter().map(reads).sum::<u128>());
        let head = |of: &RunResult| of.slices[number].head_ns;
        assert_eq!(slice.head_ns, alone.iter().map(head).sum::<u128>());
    }
}

#[test]
fn warm_up_refused_where_impossible() {
    let refusal = |overrides: &[&str]| {
        let error = Experiment::new(config(OPEN, overrides)).unwrap_err();
        error.to_string()
    };
    for wrong in ["warm_up=1", "warm_up=-0.1", "warm_up=nan"] {
        assert!(refusal(&[wrong]).ends_with("a share of 0 to below 1 is needed, as 0.4"));
    }
    assert_eq!(refusal(&["slices=0"]), "`slices` is 0: 1 to 100 are allowed");
    let excluded = "exclude each other: leave one of them out";
    let freeblock = refusal(&["warm_up=0.4", "freeblock.tasks=[{ kind = 'scan' }]"]);
    assert_eq!(freeblock, format!("`warm_up` and `freeblock` {excluded}"));
    let host = refusal(&["slices=2", "host.scheduler.queue_depth=2"]);
    assert_eq!(host, format!("`slices` and `host` {excluded}"));
    let postmark = "warm_up = 0.4\nworkload = { kind = 'postmark', utilisation = 0.5 }";
    let postmark = SimConfig::parse(postmark, "test", &[]).unwrap();
    let postmark = Experiment::new(postmark).unwrap_err().to_string();
    assert_eq!(postmark, format!("`warm_up` and `workload.kind = \"postmark\"` {excluded}"));
}
