//! `freewheel plan stripe`: how finely to stripe.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::Error;
use freewheel::drives::DEFAULT_DRIVE;
use freewheel::plans::{StripeOptions, StripeReport, StripeSource};

use super::{Input, written};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::verbs::trace_args::TraceArgs;
use crate::{file, output};

/// Say how finely to stripe files or a volume over equal disks, by model and simulation
#[derive(Args)]
#[command(after_help = "\
TRACE is a trace, the log of a web server, or a TOML file with [[files]] and [[disks]] as for
`freewheel plan place`.

Examples:
  freewheel plan stripe pgbench.csv.zst --disks 8 --scale
  freewheel plan stripe access.log.gz --disks 8
  freewheel plan stripe jbod.toml --disks 8 --drive exos-x24-24tb")]
pub struct StripeArgs {
    #[command(flatten)]
    replayed: TraceArgs,
    /// Number of disks; that of the snapshot if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    disks: Option<u32>,
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file; that of the snapshot
    /// if not given
    #[arg(long, value_name = "NAME")]
    drive: Option<String>,
    /// Answer for this many times as many requests in the same time, as 1.5
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = super::factor, allow_negative_numbers = true)]
    load: f64,
    /// Largest factor of the load at which the unit must still be the best
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0, value_parser = headroom, allow_negative_numbers = true)]
    headroom: f64,
    /// Requests of each simulation of files, 1000 at least; a trace is replayed as a whole
    /// [default: 50000]
    #[arg(long, value_name = "N", value_parser = super::requests)]
    requests: Option<u64>,
    /// Folder for stripes.html and stripes.json [default: out/<name of the file>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON document instead of the tables
    #[arg(long)]
    json: bool,
}

const HEADROOM_MAX: f64 = 1000.0;

fn headroom(text: &str) -> Result<f64, String> {
    let factor = crate::verbs::decimal(text)?;
    if (1.0..=HEADROOM_MAX).contains(&factor) {
        Ok(factor)
    } else {
        Err(format!("write a factor of 1 to {HEADROOM_MAX}, as 2: 1 for this load alone"))
    }
}

impl StripeArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.replayed.check()?;
        let source = self.source()?;
        let drive = self.drive.clone().unwrap_or_else(|| DEFAULT_DRIVE.into());
        let folder = self.out.clone().unwrap_or_else(|| self.replayed.default_folder(&[drive]));
        file::ensure_writable_folder(&folder)?;
        let report = self.report(source)?;
        let [page, json] = ["stripes.html", "stripes.json"].map(|name| folder.join(name));
        let document = output::document(&report)?;
        written(&folder, &[(page.as_path(), &*report.html()), (&json, &*document)])?;
        if self.json {
            return output::print(&document);
        }
        output::print_prose(&format!("{}page: {}\n", report.text(), page.display()))
    }

    /// Source of the data to be striped. Err for an option that does not go with it.
    fn source(&self) -> Result<StripeSource, Failure> {
        let path: &Path = &self.replayed.trace;
        let input = Input::of(path);
        let wrong = match input {
            Input::Trace => self.requests.map(|_| "--requests"),
            Input::Snapshot | Input::WebLog => self.replayed.for_traces_alone(),
        };
        input.refuse(path, wrong)?;
        Ok(match input {
            Input::Trace => StripeSource::Trace(self.replayed.workload(path)),
            Input::Snapshot => StripeSource::Files(path.to_owned()),
            Input::WebLog => StripeSource::WebLog(path.to_owned()),
        })
    }

    fn report(&self, source: StripeSource) -> Result<StripeReport, Error> {
        let is_snapshot = matches!(source, StripeSource::Files(_));
        let usual = (!is_snapshot).then(|| DEFAULT_DRIVE.to_owned());
        let usual_requests = StripeOptions::new(source.clone()).requests;
        let options = StripeOptions {
            drive: self.drive.clone().or(usual),
            disks: self.disks,
            load: self.load,
            headroom: self.headroom,
            requests: self.requests.unwrap_or(usual_requests),
            electronics: !self.replayed.no_electronics,
            seed: self.replayed.seed,
            ..StripeOptions::new(source)
        };
        let bars = Bars::default();
        freewheel::plans::plan_stripe(&options, &|task, done, total| bars.set(task, done, total))
    }
}
