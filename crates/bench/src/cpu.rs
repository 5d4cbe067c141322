//! What a scheduler outside a drive takes of a processor (fast02 section 5.4, claim fast02.cpu).
//!
//! Transactions of the paper on an emulated drive in virtual time, timed from outside: what is printed
//! is at most what the scheduler takes, for the drive's own arithmetic is in it.

use std::time::Instant;

use crate::case::{self, RUNS, bare_atlas};
use crate::print_origin;
use crate::record::Origin;

const REQUESTS: u64 = 20_000;

/// Most of a core that both schedulers may take, in %.
const MOST: f64 = 2.0;

/// What is run, the keys that make it so, and what the paper had of a Pentium III of 550 MHz, in %.
const ROWS: [(&str, &str, &str); 3] = [
    ("foreground scheduler", "", "0.3"),
    ("both, greedy rule", "freeblock = { rule = \"greedy\" }", "9"),
    ("both, several stops in a gap", "freeblock = { rule = \"paths\" }", ""),
];

/// Prints a table. Panics when a row takes more than it may.
pub fn run() {
    print_origin(&Origin::here(), &format!("{RUNS} runs each, one core"));
    let [each, rate, share, paper] = ["us each", "requests/s", "of a core", "paper"];
    println!("{:<32} {each:>8} {rate:>10} {share:>10} {paper:>6}  hash", "SPTF, ten clients");
    for (name, keys, paper) in ROWS {
        let config = format!(
            "{}\nexternal = {{}}\n{keys}\nworkload = {{ kind = \"closed\", outstanding = 10, \
             think = \"30ms\", requests = {REQUESTS}, pattern = {{ size = \"8KiB\", \
             size_distribution = \"exponential\", align = \"4KiB\" }} }}\n",
            bare_atlas("sptf")
        );
        let mut took = Vec::new();
        let mut result = case::run(&config);
        for _ in 0..RUNS {
            let start = Instant::now();
            result = case::run(&config);
            took.push(start.elapsed().as_secs_f64());
        }
        took.sort_by(f64::total_cmp);
        let seconds = took[RUNS / 2];
        let us = seconds * 1e6 / REQUESTS as f64;
        let share = 100.0 * seconds * 1e9 / result.elapsed_ns as f64;
        let (rate, hash) = (result.requests_per_second, &result.result_hash);
        println!("{name:<32} {us:>8.1} {rate:>10.1} {share:>8.2} % {paper:>6}  {hash}");
        assert!(share < MOST, "{name}: {share:.2} % of a core, and {MOST} % are allowed");
    }
}
