//! The program `freewheel`: the command line of `freewheel_cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    freewheel_cli::run(std::env::args_os().collect()).into()
}
