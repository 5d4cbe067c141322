//! The command line of Freewheel.
//!
//! Goals: words in, calls of the library, words out; the same rules for every verb: `--json` is one
//! document on stdout, progress and errors go to stderr
//! (bars on a terminal, elsewhere a line each ten seconds), exit 0 done, 1 failed, 2 wrong use.
//! Non-goals: anything that another surface would need too: that belongs into the library.
//!
//! One verb is one file in `verbs/`. To add one: its file, its variant in `verbs::Verb`.

mod failure;
mod file;
mod interrupts;
mod number;
mod one_trace;
mod output;
mod plot;
mod progress;
mod reading;
mod standard_input;
mod table;
mod terminal;
mod verbs;
mod wrong_file_kind;

use std::process::ExitCode;

use clap::Parser;

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

fn main() -> ExitCode {
    let command_line = match CommandLine::try_parse() {
        Ok(command_line) => command_line,
        Err(error) => return refuse(error),
    };
    match command_line.verb.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Says what is wrong with the command line.
fn refuse(error: clap::Error) -> ExitCode {
    match one_trace::second_trace(&error, std::env::args_os()) {
        Some(failure) => failure.report(),
        None => error.exit(),
    }
}
