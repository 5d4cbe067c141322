//! Output of verbs on stdout.

use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::failure::Failure;
use crate::terminal;

/// A verb's JSON with what all of them begin with.
#[derive(Serialize)]
struct Document<'a, T> {
    schema_version: u32,
    version: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

const SCHEMA_VERSION: u32 = 1;

/// Prints `body`, which must serialise as an object, as the one document of this run.
pub fn print_document(body: &impl Serialize) -> Result<(), Failure> {
    print(&document(body)?)
}

/// The text of this document.
pub fn document(body: &impl Serialize) -> Result<String, Failure> {
    json_document(body).map_err(no_json)
}

/// The JSON of a verb whose result is `body`, which must serialise as an object.
pub fn json_document(body: &impl Serialize) -> Result<String, serde_json::Error> {
    let version = env!("CARGO_PKG_VERSION");
    pretty(&Document { schema_version: SCHEMA_VERSION, version, body })
}

/// JSON for people and programs, with a line end.
pub fn json(value: &impl Serialize) -> Result<String, Failure> {
    pretty(value).map_err(no_json)
}

fn pretty(value: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// A path that is not UTF-8 is the only thing here that JSON cannot hold.
fn no_json(error: serde_json::Error) -> Failure {
    Failure::failed(format!("JSON: {error}"))
}

/// Prints a text. A reader that has gone away, as `head` does, has had enough: no error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::StorageFull => Err(Failure::failed(
            "standard output: there is no room left where it goes: make room, or write elsewhere",
        )),
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints sentences and tables for people, within the width of a terminal.
pub fn print_prose(text: &str) -> Result<(), Failure> {
    print(&terminal::prose(text))
}

/// A remark besides the result, on stderr; dropped when stderr is closed.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "note: {text}");
}

/// A text besides the result, on stderr; dropped when stderr is closed.
pub fn aside(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
