//! Verbs that take one trace, called with several: `freewheel study traces/*`.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

/// The verbs, with the words before the trace.
const VERBS: [&[&str]; 4] =
    [&["study"], &["cache"], &["trace", "info"], &["trace", "characterize"]];

/// Error of a command line with a second trace, if that is what `error` is about: the word names a file.
pub fn second_trace(error: &clap::Error, words: impl Iterator<Item = OsString>) -> Option<Failure> {
    let other = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(other))) => other,
        _ => return None,
    };
    let words: Vec<String> = words.skip(1).map(|word| word.to_string_lossy().into()).collect();
    let is_file = Path::new(other).is_file();
    let verb = VERBS
        .into_iter()
        .find(|verb| words.iter().take(verb.len()).eq(verb.iter()))
        .filter(|_| is_file)?
        .join(" ");
    let message = format!("`freewheel {verb}` takes one trace at a time, and `{other}` is another");
    let help =
        format!("call it for each: for trace in FILES; do freewheel {verb} \"$trace\"; done");
    Some(Failure::wrong_use(message).with_help(help))
}
