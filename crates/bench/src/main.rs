//! Measures the speed of Freewheel.
//!
//! Goals: every number is a median over several runs in one process, with its unit, commit and machine.
//! It carries the hash of the results, so that a faster version with other results is noticed.
//! Non-goals: a verdict (machines differ), micro-benchmarks of single functions.
//!
//! - `freewheel-bench [FILE]` prints a table and appends one JSON document a line to FILE. With
//!   `DISKSIM=/path/to/disksim` and `DISKSIM_DRIVE=/path/to/atlas10k.diskspecs` DiskSim runs in turn
//!   with Freewheel.
//! - `freewheel-bench --scale [FILE]` shows growth: time and memory against requests, drives, queue
//!   depth and wanted blocks, and how fast traces are read. Each row runs in a separate process, to
//!   measure its peak memory.
//! - `freewheel-bench --instructions [PART]` counts instructions a request by stage of the engine, with
//!   valgrind, in cases whose names contain PART.
//! - `freewheel-bench --freeblock [PART]` shows the cost of a freeblock decision by the wanted blocks,
//!   in rows whose names contain PART.
//! - `freewheel-bench --files` shows requests a second to files on 32 disks, the time of a plan for 100
//!   disks, and the memory of 1000.
//! - `freewheel-bench --long` shows that memory does not grow with the length of a run: a generated
//!   workload and a trace of 100,000,000 requests each (the trace takes 2 GB of disk).
//! - `freewheel-bench --nbd [DEVICE]` compares the NBD server on a disk in memory with `nbdkit memory`,
//!   where that is installed. It also compares a file by `io_uring` with one by threads, and the reads
//!   of DEVICE, which stays unchanged.
//!
//! A number is invalid with another load on the machine, in a debug build, or with another hash.

mod cache;
mod case;
mod disksim;
mod files;
mod freeblock;
mod instructions;
mod long;
mod nbd;
mod parse;
mod record;
mod scale;
mod suite;

use record::Origin;

const USAGE: &str = "\
usage: freewheel-bench [FILE]              what runs cost; FILE gets one JSON document a line
       freewheel-bench --scale [FILE]      cost against scale
       freewheel-bench --instructions [PART]  instructions a request by stage, under valgrind
       freewheel-bench --freeblock [PART]  what a freeblock decision costs, rows with PART in their names
       freewheel-bench --files             files on many disks: requests a second, memory, time of a plan
       freewheel-bench --long              memory of long runs
       freewheel-bench --nbd [DEVICE]      the NBD server beside nbdkit, and the ways to a file or device
       freewheel-bench --nbd-hostile       what one client notices of 64 hostile connections, likewise";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => suite::run(None),
        ["--scale"] => scale::run(None),
        ["--scale", file] => scale::run(Some(file)),
        [scale::ONE_ROW, row] => scale::run_row(row),
        ["--files"] => files::run(),
        ["--long"] => long::run(),
        ["--nbd"] => nbd::run(None),
        ["--nbd", device] => nbd::run(Some(device)),
        [nbd::SERVE, what, socket] => nbd::serve(what, socket),
        ["--nbd-hostile"] => nbd::hostile::run(),
        [nbd::hostile::CROWD, socket] => nbd::hostile::crowd(socket),
        ["--instructions"] => instructions::run(""),
        ["--instructions", part] => instructions::run(part),
        [instructions::ONE_RUN, config, requests] => instructions::run_once(config, requests),
        ["--freeblock"] => freeblock::run(""),
        ["--freeblock", part] => freeblock::run(part),
        [file] if !file.starts_with('-') => suite::run(Some(file)),
        ["--help" | "-h"] => println!("{USAGE}"),
        _ => {
            eprintln!("freewheel-bench: no such arguments: {arguments:?}\n{USAGE}");
            std::process::exit(2);
        }
    }
}

/// Prints the first line of every table.
fn print_origin(origin: &Origin, more: &str) {
    println!("commit {}, {}; {more}, release build", origin.commit, origin.machine);
}
