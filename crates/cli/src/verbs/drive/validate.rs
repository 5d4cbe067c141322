//! `freewheel drive validate`.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::experiments::TraceWorkload;
use freewheel::extraction::{
    GapReading, fit_to_measured, is_fio, is_rates, validate_fio, validate_rates, validation_html,
};
use freewheel::files::read_text_up_to;
use freewheel::measures::{Bytes, Text};
use freewheel::traces::Format;
use freewheel::{Error, ErrorKind, validate};

use crate::failure::Failure;
use crate::verbs::choice::{Choice, choice};
use crate::{file, output};

/// Hold a drive against a trace measured on the real one
///
/// The trace has one request at a time, with its response time. Each is sent as long after our
/// completion of the one before as in the trace. Of fio's output in JSON the random jobs run again,
/// and their rates and percentiles stand beside those of fio. A rate log of ddrescue, or a series of accesses,
/// is compared by zone.
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel drive validate atlas10k atlas10k.trace --report atlas10k.html
  fio --name=a --filename=/dev/sdx --readonly --direct=1 --rw=randread --bs=4k --iodepth=1 \
      --runtime=60 --time_based --output-format=json --output=fio.json
  freewheel drive validate barracuda-st2000dm006-2tb fio.json
  ddrescue --log-rates=rates.log /dev/sdx /dev/null --force
  freewheel drive validate barracuda-st2000dm006-2tb rates.log

A series of accesses begins with the line `# lbn ms`. Then each line has the first block of a read,
in blocks of 512 B, and its time in ms; a read ends where the next one begins.")]
pub struct ValidateArgs {
    /// Name of a shipped drive, or path of a drive file
    drive: String,
    /// The trace, fio's output in JSON, or sequential rates
    trace: PathBuf,
    /// Format of the trace, where its contents do not tell
    #[arg(long)]
    format: Option<Format>,
    /// Side of its request on which the delay of a record lies; as the spindle's phase tells if not given,
    /// and before it where that tells nothing
    #[arg(long, value_parser = choice(DELAYS))]
    delays: Option<GapReading>,
    /// Look for values of the drive file that the first half of the trace prefers, and judge them on the second
    #[arg(long, conflicts_with = "report")]
    fit: bool,
    /// Write the fitted drive file
    #[arg(short, long, value_name = "F.toml", requires = "fit")]
    output: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Write a page with both distributions
    #[arg(long, value_name = "F.html")]
    report: Option<PathBuf>,
}

const DELAYS: &[Choice<GapReading>] = &[
    ("before", GapReading::AsRecorded, "Between the request before and it"),
    ("after", GapReading::OneLater, "Between it and the next request"),
];

/// Bytes at the beginning of a file that tell whether it is no trace: fio's version is among its first
/// keys, and the columns of rates stand below a few lines of remarks.
const HEAD: u64 = 4096;

/// Longest output of fio, and longest log of rates: a week of seconds has a tenth.
const TEXT_MAX: Bytes = Bytes::from_kib(64 << 10);

/// Kind of a file without single requests.
enum Summary {
    Fio(String),
    Rates(String),
}

impl ValidateArgs {
    pub fn run(self) -> Result<(), Failure> {
        if let Some(path) = &self.report {
            for read in [&self.trace, Path::new(&self.drive)] {
                file::ensure_not_read(path, read)?;
            }
            file::ensure_writable(path)?;
        }
        let trace = TraceWorkload {
            file: self.trace.clone(),
            format: self.format.map(|format| format.name().to_owned()),
            ..TraceWorkload::default()
        };
        if let Some(summary) = self.summary()? {
            return self.compare(&summary);
        }
        if self.fit {
            return self.fit(&trace);
        }
        let validation = validate(&self.drive, &trace, self.delays).map_err(explain)?;
        if let Some(path) = &self.report {
            file::write_together(&[(path, &validation_html(&validation))])?;
        }
        if self.json {
            return output::print_document(&validation);
        }
        output::print(&validation.text())
    }

    /// The text of the file, if it is no trace.
    fn summary(&self) -> Result<Option<Summary>, Failure> {
        let mut beginning = Vec::new();
        let file = std::fs::File::open(&self.trace);
        // The reader of traces says what is wrong with a file that cannot be read.
        if file.and_then(|file| file.take(HEAD).read_to_end(&mut beginning)).is_err() {
            return Ok(None);
        }
        let beginning = String::from_utf8_lossy(&beginning);
        let (of, what): (fn(String) -> Summary, _) = match () {
            () if is_fio(&beginning) => (Summary::Fio, "fio's output has"),
            () if is_rates(&beginning) => (Summary::Rates, "sequential rates have"),
            () => return Ok(None),
        };
        if self.fit || self.report.is_some() || self.delays.is_some() {
            return Err(Failure::wrong_use(format!(
                "{what} no single requests: leave out --fit, --report and --delays"
            )));
        }
        let text = read_text_up_to(&self.trace, TEXT_MAX);
        text.map(|text| Some(of(text)))
            .map_err(|error| Failure::failed(format!("{}: {error}", self.trace.display())))
    }

    fn compare(&self, summary: &Summary) -> Result<(), Failure> {
        let file = self.trace.display().to_string();
        match summary {
            Summary::Fio(text) => {
                let validation = validate_fio(&self.drive, &file, text)?;
                match self.json {
                    true => output::print_document(&validation),
                    false => output::print(&validation.text()),
                }
            }
            Summary::Rates(text) => {
                let validation = validate_rates(&self.drive, &file, text)?;
                match self.json {
                    true => output::print_document(&validation),
                    false => output::print(&validation.text()),
                }
            }
        }
    }

    fn fit(&self, trace: &TraceWorkload) -> Result<(), Failure> {
        self.output.as_deref().map_or(Ok(()), file::ensure_new)?;
        let gaps = self.delays;
        let fit = fit_to_measured(&self.drive, trace, gaps).map_err(explain)?;
        if let Some(path) = &self.output {
            let toml = toml::to_string(&fit.spec)
                .map_err(|error| Failure::failed(format!("the drive: {error}")))?;
            file::write_together(&[(path, &toml)])?;
        }
        if self.json {
            return output::print_document(&fit);
        }
        output::print(&fit.text())
    }
}

/// The way out, which is not to read less of the trace.
fn explain(error: Error) -> Failure {
    use ErrorKind::{DamagedHeader, DamagedTrace, MalformedHeader, MalformedRecord, OtherFormat};
    match error.kind() {
        // A measured trace is complete: each request follows the one before after its own time.
        DamagedHeader
        | MalformedHeader
        | MalformedRecord { .. }
        | OtherFormat { .. }
        | DamagedTrace { .. } => Failure::failed(error).with_help(
            "a measured trace has to be whole: mend that record, or copy the file again",
        ),
        _ => error.into(),
    }
}
