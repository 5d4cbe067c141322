//! Error of a verb for a person, and the exit code.
//!
//! Wrong use (exit 2) is a command line that cannot be understood, or that names a drive, format,
//! policy or claim that does not exist. Everything else is a failure (exit 1), also an experiment in
//! which something is wrong, be it in its file or in what overrides that.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use freewheel::{Error, ErrorKind, Surface};
use miette::{GraphicalReportHandler, GraphicalTheme, MietteDiagnostic};

use crate::terminal;

const FAILED: u8 = 1;
const WRONG_USE: u8 = 2;

/// Reason why a verb failed.
#[derive(Debug)]
pub struct Failure {
    exit_code: u8,
    diagnostic: Box<MietteDiagnostic>,
}

impl Failure {
    /// The command was understood, but it failed.
    pub fn failed(message: impl Display) -> Self {
        let diagnostic = Box::new(MietteDiagnostic::new(message.to_string()));
        Self { exit_code: FAILED, diagnostic }
    }

    /// The command line itself is wrong.
    pub fn wrong_use(message: impl Display) -> Self {
        Self { exit_code: WRONG_USE, ..Self::failed(message) }
    }

    /// The way out, instead of any that was known before.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.diagnostic.help = Some(help.into());
        self
    }

    /// The way out, where one is known.
    pub fn helped(self, help: Option<String>) -> Self {
        match help {
            Some(help) => self.with_help(help),
            None => self,
        }
    }

    /// Calls what is at `path` by a name that people know.
    pub fn naming(mut self, path: &Path, name: &str) -> Self {
        let message = &mut self.diagnostic.message;
        *message = message.replace(&path.display().to_string(), name);
        self
    }

    /// Puts the option whose value is to blame before the message.
    pub fn of_option(mut self, option: &str) -> Self {
        self.diagnostic.message = format!("{option} {}", self.diagnostic.message);
        self
    }

    /// Tells the person and gives the exit code.
    pub fn report(self) -> u8 {
        // A closed stderr leaves only the exit code to tell.
        let _ = std::io::stderr().write_all(self.render().as_bytes());
        self.exit_code
    }

    fn render(&self) -> String {
        let handler = GraphicalReportHandler::new_themed(theme()).with_wrap_lines(false);
        let mut text = String::new();
        match handler.render_report(&mut text, &*self.diagnostic) {
            Ok(()) => text.trim_start().to_owned(),
            Err(_) => format!("error: {}\n", self.diagnostic.message),
        }
    }
}

/// `error:` instead of a symbol, as clap prints it; colours for terminals only.
fn theme() -> GraphicalTheme {
    let mut theme = if terminal::has_colours(&io::stderr()) {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    theme.characters.error = "error:".into();
    theme
}

/// True if an error is in the command line itself: it names what does not exist.
fn is_wrong_use(kind: &ErrorKind) -> bool {
    use ErrorKind::{
        CacheSize, ScrubEffort, UnknownClaim, UnknownDrive, UnknownEnding, UnknownFormat,
        UnknownPolicy,
    };
    // The ending of an output is how its form is named.
    matches!(
        kind,
        UnknownDrive
            | UnknownPolicy
            | UnknownFormat
            | UnknownEnding
            | UnknownClaim
            | ScrubEffort
            | CacheSize
    )
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let failure = match is_wrong_use(error.kind()) {
            true => Self::wrong_use(&error),
            false => Self::failed(&error),
        };
        let failure = match error.kind() {
            ErrorKind::CacheSize => failure.of_option("--size:"),
            ErrorKind::ScrubEffort => failure.of_option("--scrub-effort:"),
            _ => failure,
        };
        failure.helped(error.help(Surface::Options))
    }
}
