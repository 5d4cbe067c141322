//! How this program starts itself again.

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::sync::OnceLock;

/// The words before those of a verb, where another program runs this command line.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// From now on `words` start this program again, and no longer the file of this process. Only the first
/// call counts.
pub fn starts_by(words: Vec<OsString>) {
    let _ = WORDS.set(words);
}

/// This program, about to be called with the words of a verb.
pub fn command() -> io::Result<Command> {
    let Some((program, words)) = WORDS.get().and_then(|words| words.split_first()) else {
        return Ok(Command::new(env::current_exe()?));
    };
    let mut command = Command::new(program);
    command.args(words);
    Ok(command)
}

/// The Python that started this command line; else what the variable `named` says, or `python3`.
pub fn python(named: &str) -> Command {
    let started = WORDS.get().and_then(|words| words.first()).cloned();
    Command::new(started.or_else(|| env::var_os(named)).unwrap_or_else(|| "python3".into()))
}
