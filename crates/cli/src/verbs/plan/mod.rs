//! `freewheel plan`: what to do with several disks.

mod place;
mod stripe;

use std::ffi::OsStr;
use std::path::Path;

use clap::Subcommand;
use freewheel::files::FileKind;

use crate::failure::Failure;
use crate::file;

/// Plan where files lie on several disks: a dry run that moves nothing
#[derive(Subcommand)]
pub enum PlanVerb {
    Place(place::PlaceArgs),
    Stripe(stripe::StripeArgs),
}

impl PlanVerb {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Self::Place(args) => args.run(),
            Self::Stripe(args) => args.run(),
        }
    }
}

/// Input of a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Snapshot,
    Trace,
    WebLog,
}

impl Input {
    /// Kind of a file: a document by its name, else a trace.
    fn of(file: &Path) -> Self {
        match FileKind::of(file) {
            Some(FileKind::Trace) => Self::Trace,
            Some(FileKind::WebLog) => Self::WebLog,
            Some(_) => Self::Snapshot,
            None => {
                let ending = file.extension().and_then(OsStr::to_str);
                if matches!(ending, Some("toml" | "csv")) { Self::Snapshot } else { Self::Trace }
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Snapshot => "a snapshot",
            Self::Trace => "a trace",
            Self::WebLog => "a log of a web server",
        }
    }

    /// Err for an option that was given and that this kind of input does not take.
    fn refuse(self, file: &Path, option: Option<&str>) -> Result<(), Failure> {
        let Some(option) = option else { return Ok(()) };
        let (file, is) = (file.display(), self.name());
        let message = format!("{option} has no effect here: {file} is {is}");
        Err(Failure::wrong_use(message).with_help(format!("leave {option} out")))
    }
}

/// Writes all these files into a folder that is made if it is not there.
fn written(folder: &Path, files: &[(&Path, &str)]) -> Result<(), Failure> {
    file::in_new_folder(folder, || file::write_together(files))
}

/// Highest factor of the load.
const FACTOR_MAX: f64 = 1e6;
/// Requests that a simulation may have: fewer say little, and more take hours.
const REQUESTS: std::ops::RangeInclusive<u64> = 1000..=100_000_000;

/// Requests of a simulation.
fn requests(text: &str) -> Result<u64, String> {
    let count = text.replace(['_', ','], "").parse::<u64>().ok();
    count
        .filter(|count| REQUESTS.contains(count))
        .ok_or_else(|| format!("write a number of {} to {}", REQUESTS.start(), REQUESTS.end()))
}

/// Bytes a second, as 50MB or 50MB/s.
fn rate(text: &str) -> Result<freewheel::measures::Bytes, String> {
    let bytes = text.strip_suffix("/s").unwrap_or(text);
    bytes.parse::<freewheel::measures::Bytes>().map_err(|error| error.to_string())
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = super::decimal(text)?;
    if factor > 0.0 && factor <= FACTOR_MAX {
        Ok(factor)
    } else {
        Err(format!("write a factor above 0 and up to {FACTOR_MAX}, as 1.5"))
    }
}
