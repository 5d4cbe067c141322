//! Power cuts: the whole server by seed, in virtual time, on a disk with a volatile write cache.
//!
//! ```text
//!   clients        sessions of the protocol, bytes both ways; many requests in flight       clients
//!   control        scrubs and backups, which are promoted, aborted and continued            backups
//!   server         the state machine of the server, its scheduler and its tasks             server
//!   faults         planted between them, to see that the checker sees them                  faults
//!   disk           completes in any order; loses, reorders and tears what is not flushed    device
//!   checker        what may be read, what must be there, what a backup may hold             checker
//! ```
//! `FREEWHEEL_POWER_SEED=N` runs seed N alone and prints what happens; `FREEWHEEL_POWER_SEEDS=N` runs N seeds.
#![allow(missing_docs)]

mod backups;
mod checker;
mod clients;
mod device;
mod faults;
mod life;
mod seed;
mod server;
mod summary;

use std::time::Instant;

use checker::Violation;
use faults::FAULTS;
use summary::Summary;

/// Seeds of an ordinary test; `make test-power` runs more.
const SEEDS: u64 = 2000;

/// Seeds in which a planted fault must be found.
const SEEDS_A_FAULT: u64 = 400;

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value}: give a whole number")))
}

#[test]
fn power_cut_keeps_every_promise() {
    let mut summary = Summary::default();
    let alone = number("FREEWHEEL_POWER_SEED");
    let seeds = match alone {
        Some(seed) => seed..seed + 1,
        None => 0..number("FREEWHEEL_POWER_SEEDS").unwrap_or(SEEDS),
    };
    let began = Instant::now();
    for seed in seeds {
        if let Err(Violation { what, .. }) = seed::run(seed, None, &mut summary, alone.is_some()) {
            panic!("seed {seed}: {what}\nreplay it: FREEWHEEL_POWER_SEED={seed} make test-power");
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!("{took:.1} s, {:.0} seeds a second\n{summary}", summary.seeds as f64 / took);
    if alone.is_none() {
        for (name, count) in summary.counts() {
            assert!(count > 0, "{name}: none");
        }
    }
}

#[test]
fn planted_faults_are_all_found() {
    let mut missed = Vec::new();
    for (fault, rule) in FAULTS {
        let found = (0..SEEDS_A_FAULT).find_map(|seed| {
            let result = seed::run(seed, Some(fault), &mut Summary::default(), false);
            Some((seed, result.err().filter(|violation| violation.rule == rule)?))
        });
        match found {
            Some((seed, Violation { what, .. })) => {
                let what = what.lines().next().unwrap_or_default();
                println!("{fault:?}: seed {seed}: {what}");
            }
            None => missed.push(fault),
        }
    }
    assert!(missed.is_empty(), "not found in {SEEDS_A_FAULT} seeds: {missed:?}");
}
