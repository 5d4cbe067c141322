//! The command line of Freewheel.
//!
//! Goals: words in, calls of the library, words out; the same rules for every verb: `--json` is one
//! document on stdout, progress and errors go to stderr
//! (bars on a terminal, elsewhere a line each ten seconds), exit 0 done, 1 failed, 2 wrong use.
//! Non-goals: anything that another surface would need too: that belongs into the library.
//!
//! One verb is one file in `verbs/`. To add one: its file, its variant in `verbs::Verb`.
//!
//! It is a library so that the program `freewheel` and the package for Python have the same command.

mod dask;
mod failure;
mod file;
mod interrupts;
mod itself;
mod one_trace;
mod output;
mod progress;
mod reading;
mod standard_input;
mod terminal;
mod verbs;

use std::ffi::OsString;

use clap::Parser;

pub use itself::starts_by;
pub use output::json_document;

/// Gets the work that a spinning disk wastes: simulate, schedule and tune disks
#[derive(Parser)]
#[command(name = "freewheel", version, arg_required_else_help = true)]
#[command(after_help = "\
Example, the main job: a trace in, one HTML report out
  freewheel study pgbench.csv.zst --drive exos-x24-24tb

Every verb has --help with an example. Exit code: 0 done; 1 failed, also
when an experiment is wrong, in its file or by --set; 2 the command line is wrong.")]
struct CommandLine {
    #[command(subcommand)]
    verb: verbs::Verb,
}

/// Runs a command line, whose first word is the program's name, and gives the exit code.
pub fn run(words: Vec<OsString>) -> u8 {
    let command_line = match CommandLine::try_parse_from(&words) {
        Ok(command_line) => command_line,
        Err(error) => return refuse(error, words),
    };
    match command_line.verb.run() {
        Ok(()) => 0,
        Err(failure) => failure.report(),
    }
}

/// Says what is wrong with the command line, or the help that it asks for.
fn refuse(error: clap::Error, words: Vec<OsString>) -> u8 {
    if let Some(failure) = one_trace::second_trace(&error, words.into_iter()) {
        return failure.report();
    }
    // A closed stream leaves only the exit code to tell.
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(u8::MAX)
}
