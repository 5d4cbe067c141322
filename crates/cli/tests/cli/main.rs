//! The built program, run as a person or a script runs it.
#![allow(clippy::disallowed_types)]

mod backups;
mod caches;
mod control;
mod damaged_formats;
mod determinism;

mod drives;
mod emulate;
mod examples;
mod exit_codes;
mod extents;
mod extract;
mod files;
mod fleets;
mod help;
mod hold_ups;
mod json;
mod kills;
mod leftovers;
mod memory;
mod messages;
mod moves;
mod nbd;
mod no_traces;
mod plans;
mod real_time;
mod replays;
mod restore;
mod run;
mod samples;
mod scaled_drives;
mod schemas;
mod serve;
mod shingled;
mod sweeps;
mod terminals;
mod traces;
mod trials;
mod ways_out;
