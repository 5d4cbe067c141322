//! `freewheel sweep`: many configurations of one experiment.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::measures::Text;
use freewheel::sweeps::{Sweep, SweptKey};
use freewheel::{Error, ErrorKind, SimConfig};
use serde::Serialize;
use serde_json::json;

use crate::failure::Failure;
use crate::progress::Bars;
use crate::verbs::sim::explained;
use crate::{dask, file, output};

/// Run an experiment with all combinations of some values of its keys, on all cores, into one table
#[derive(Args)]
#[command(after_help = "\
The table has a row a configuration: its values, rates, response times, mean stage times, and
the hash of its result. Rows are the same with any number of threads. A sweep that was killed
goes on where it was when it is called again: F.parquet.journal has the rows until the table is
whole.

Examples:
  freewheel sweep examples/random.toml --over workload.outstanding=1,4,16 -o sweep.parquet
  freewheel sweep examples/oltp.toml --over seed=1,2,3 --over drive=atlas10k,tr96 -o s.parquet")]
pub struct SweepArgs {
    /// The experiment; its keys are those of `freewheel sim --schema`
    config: PathBuf,
    /// A key and its values, as workload.outstanding=1,4,16; may be given several times, for all combinations.
    /// A comma in brackets or quotes belongs to its value
    #[arg(long, value_name = "KEY=A,B,C", required = true)]
    over: Vec<String>,
    /// Override a key in every configuration; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = super::sim::override_text)]
    overrides: Vec<String>,
    /// Seed of every random stream of every configuration, instead of the experiment's
    #[arg(long, value_parser = crate::verbs::seed)]
    seed: Option<u64>,
    /// The table to write
    #[arg(short, long, value_name = "F.parquet", value_parser = super::sim::parquet)]
    output: PathBuf,
    /// Threads; all cores if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Run on the Dask cluster whose scheduler has this address, by way of the Python package
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "jobs")]
    dask: Option<String>,
    /// Print one JSON document instead of the best configurations
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    file: &'a Path,
    configurations: usize,
    /// Those that an earlier call had run.
    resumed: usize,
}

impl SweepArgs {
    pub fn run(self) -> Result<(), Failure> {
        file::ensure_utf_8(&self.config)?;
        file::ensure_new(&self.output)?;
        let keys = self.over.iter().map(|text| text.parse::<SweptKey>());
        let keys = keys.collect::<Result<Vec<_>, _>>();
        let keys = keys.map_err(|error| Failure::wrong_use(error).of_option("--over:"))?;
        let sweep = Sweep::new(keys, |of| SimConfig::load(&self.config, &self.all(of)));
        let sweep = sweep.map_err(|error| self.explain(error.into()))?;
        let bars = Bars::default();
        let mut resumed = None;
        if let Some(address) = &self.dask {
            let (config, output) = (&self.config, &self.output);
            let (over, overrides, seed) = (&self.over, &self.overrides, self.seed);
            let job = json!({ "config": config, "over": over, "overrides": overrides, "seed": seed, "output": output });
            let known = sweep.open(Some(output)).map_err(|error| self.explain(error.into()))?.len();
            dask::fill(address, job, &bars, "sweep")?;
            resumed = Some(known);
        }
        let threads = self.jobs.map(usize::from);
        let done = freewheel::sweeps::sweep(&sweep, Some(&self.output), threads, &|done, total| {
            bars.set("sweep", done, total)
        });
        drop(bars);
        let mut done = done.map_err(|error| self.explain(error))?;
        done.resumed = resumed.unwrap_or(done.resumed);
        if self.json {
            let (configurations, resumed) = (done.rows.len(), done.resumed);
            let document = Document { file: &self.output, configurations, resumed };
            return output::print_document(&document);
        }
        output::print(&format!("{}table: {}\n", done.text(), self.output.display()))
    }

    /// The overrides of a configuration, after those of all.
    fn all(&self, of_configuration: &[String]) -> Vec<String> {
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        self.overrides.iter().cloned().chain(seed).chain(of_configuration.to_vec()).collect()
    }

    fn explain(&self, error: Error) -> Failure {
        match error.kind() {
            ErrorKind::OtherJournal => Failure::failed(error)
                .with_help("remove it to begin anew, or choose another -o for this sweep"),
            _ => explained(&self.config, error, &self.over),
        }
    }
}
