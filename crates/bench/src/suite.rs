//! Medians of simulated requests a second.

use std::collections::BTreeMap;

use crate::cache;
use crate::case::{Case, Measured, RUNS, bare_atlas, measure, random};
use crate::disksim::{self, Load, Peer};
use crate::print_origin;
use crate::record::{Figure, Origin, append, cores};

/// Prints a table, and appends its numbers to `file`.
pub fn run(file: Option<&str>) {
    let origin = Origin::here();
    print_origin(&origin, &format!("{RUNS} runs each"));
    let columns = ["median", "slowest", "fastest", "DiskSim", "ratio"];
    let [median, slowest, fastest, disksim, ratio] = columns;
    println!(
        "{:<56} {median:>10} {slowest:>10} {fastest:>10} {disksim:>10} {ratio:>6}  hash",
        "M requests/s"
    );
    let peer = Peer::from_environment();
    let mut hashes = BTreeMap::new();
    for case in cases() {
        let measured = measure(&case, RUNS);
        let hash = hashes.entry(case.config.clone()).or_insert_with(|| measured.hash.clone());
        assert_eq!(*hash, measured.hash, "{}: differs with the threads", case.name);
        // In turn, so that both run under the same conditions.
        let theirs = peer.as_ref().zip(case.disksim).map(|(peer, load)| peer.rate(load));
        print_line(&case, &measured, theirs);
        if let Some(file) = file {
            append(file, &Figure::of_case(&case, &measured, theirs), &origin);
        }
    }
    for (case, measured) in cache::rows() {
        print_line(&case, &measured, None);
        if let Some(file) = file {
            append(file, &Figure::of_case(&case, &measured, None), &origin);
        }
    }
    println!("{}", disksim::note(peer.as_ref()));
    println!("{}", tests_line());
}

/// The seconds of the last `make test`, by stage. The first line of its file is the commit.
fn tests_line() -> String {
    let text = std::fs::read_to_string("out/suite.txt").unwrap_or_default();
    let mut lines = text.lines();
    match lines.next() {
        Some(commit) => format!("make test on {commit}: {}", lines.collect::<Vec<_>>().join(", ")),
        None => "make test: no times; `make test` writes them".into(),
    }
}

fn print_line(case: &Case, measured: &Measured, theirs: Option<f64>) {
    let (slowest, fastest) = (measured.rates[0], measured.rates[RUNS - 1]);
    let [median, slowest, fastest] =
        [measured.median(), slowest, fastest].map(|value| format!("{:.3}", value / 1e6));
    let disksim = theirs.map(|value| format!("{:.3}", value / 1e6)).unwrap_or_default();
    let ratio = theirs.map(|theirs| format!("{:.1}", measured.median() / theirs));
    println!(
        "{:<56} {median:>10} {slowest:>10} {fastest:>10} {disksim:>10} {:>6}  {}",
        case.name,
        ratio.unwrap_or_default(),
        measured.hash
    );
}

/// Every case but those of caches of keys.
pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        closed("fcfs", 1, 4_000_000).beside_disksim(Load::ONE),
        closed("sptf", 20, 1_000_000).beside_disksim(Load {
            policy: "sptf",
            outstanding: 20,
            ..Load::ONE
        }),
    ];
    cases.extend(with_a_scan());
    cases.extend(with_electronics());
    cases.extend(striped());
    cases.extend(independent());
    cases.extend(cache::storage());
    for policy in ["fcfs", "clook", "sstf", "sptf", "sptf-sw", "asatf"] {
        for depth in [1, 4, 16, 64, 256, 1024] {
            cases.push(closed(policy, depth, 400_000));
        }
    }
    let poisson = "\nworkload = { kind = \"open\", mean_gap = \"10ms\", requests = 1000000 }\n";
    let poisson = bare_atlas("sptf") + poisson;
    cases.push(Case::new("open Poisson, 100/s, SPTF", 1_000_000, poisson));
    let policies = ["fcfs", "clook", "look", "sstf", "sptf", "sptf-sw", "asatf"];
    cases.extend(policies.map(overloaded));
    cases
}

/// osdi00's random workload on the Atlas 10K with this many requests outstanding.
fn closed(policy: &str, outstanding: u64, requests: u64) -> Case {
    let name = format!("random 4 KB closed, {policy}, {outstanding} outstanding");
    Case::new(name, requests, random(&bare_atlas(policy), outstanding, requests))
}

/// osdi00's transactions (section 6.2) with about one scan of the drive in their gaps. Two cases have a
/// scheduler outside the drive. The drive serves 109 requests a second: 109 over the number here is the
/// largest share of a processor that such a scheduler needs.
fn with_a_scan() -> [Case; 4] {
    let inside = ["greedy", "paths"].map(|rule| (rule, "", ""));
    let outside = ["greedy", "paths"].map(|rule| (rule, "\nhost = {}", ", from outside"));
    let [first, second] = inside;
    let [third, fourth] = outside;
    [first, second, third, fourth].map(|(rule, host, name)| {
        let config = bare_atlas("fcfs")
            + host
            + &format!("\nfreeblock = {{ rule = \"{rule}\" }}\n")
            + "workload = { kind = \"closed\", outstanding = 10, think_time = \"30ms\", requests = 200000, \
               pattern = { size = \"8KiB\", size_distribution = \"exponential\", align = \"4KiB\" } }\n";
        Case::new(format!("transactions with a free scan, {rule}{name}"), 200_000, config)
    })
}

/// Requests that arrive within 0.2 seconds.
pub const BURST: u64 = 20_000;

/// A queue that only grows.
fn overloaded(policy: &str) -> Case {
    let burst =
        format!("\nworkload = {{ kind = \"open\", mean_gap = \"10us\", requests = {BURST} }}\n");
    let name = format!("20,000 waiting at once, {policy}");
    Case::new(name, BURST, bare_atlas(policy) + &burst)
}

/// Whole drives: buffer, write cache, command queue, bus.
fn with_electronics() -> Vec<Case> {
    let case = |what: &str, drive: &str, outstanding, requests| {
        let config = random(&format!("drive = \"{drive}\""), outstanding, requests);
        Case::new(format!("random 4 KB closed, {what}"), requests, config)
    };
    vec![
        case("fcfs, 1 outstanding, electronics", "atlas10k", 1, 300_000),
        read_ahead(),
        case("drive of today, 32 in its queue", "exos-x24-24tb", 32, 50_000),
        case("drive of today, two arms, 64 waiting", "exos-2x18-18tb", 64, 50_000),
    ]
}

/// Reads near the one before, so that most are in the buffer or on their way there. One in fifty goes
/// elsewhere.
fn read_ahead() -> Case {
    let config = "drive = \"atlas10k\"\n[workload]\nkind = \"closed\"\nrequests = 300000\n\
                  [workload.pattern]\nread_share = 1.0\nlocal_share = 0.98\nlocal_sd = \"64KiB\"\n";
    Case::new("reads near the one before, 1 outstanding, electronics", 300_000, config.into())
}

/// 32 drives as one volume, a request for each of them outstanding.
fn striped() -> [Case; 2] {
    [(false, "bare", 1_000_000), (true, "electronics", 300_000)].map(|row| {
        let (electronics, what, requests) = row;
        let keys = format!("drive = \"atlas10k\"\nelectronics = {electronics}\narray.drives = 32");
        let name = format!("random 4 KB closed, 32 striped drives, {what}");
        let case = Case::new(name, requests, random(&keys, 32, requests));
        if electronics {
            case
        } else {
            case.beside_disksim(Load { outstanding: 32, drives: 32, ..Load::ONE })
        }
    })
}

/// 100 drives side by side, on one core and on all.
fn independent() -> [Case; 2] {
    [(1, "1 thread"), (cores(), "all cores")].map(|(threads, what)| {
        let keys = bare_atlas("fcfs") + "\narray = { layout = \"independent\", drives = 100 }";
        let name = format!("random 4 KB closed, 100 independent drives, {what}");
        Case::new(name, 4_000_000, random(&keys, 1, 40_000)).on_threads(threads)
    })
}
