//! `freewheel reproduce`: what the papers claim, and what this program finds.

mod real_time;

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use freewheel::claims::{CLAIMS, Claim, ClaimsReport, ReproduceOptions, Reproduction, Row, SEEDS};
use freewheel::experiments::timed;
use freewheel::measures::{SimDuration, Table, Unit};
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Bars;
use crate::{file, output};

/// Run the papers' experiments and compare the results with the published ones
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel reproduce --list
  freewheel reproduce --quick --report claims.html
  freewheel reproduce osdi00.fig8 beyond.fig8
  freewheel reproduce fast02.scan --real-time 60s

Every number is a median over seeds 1 to 5, with its range; --seeds 6-10 takes others, --seed N shows one.
Claims beyond the papers take the first three of them, and long ones the first.
A paper's number counts as reproduced (inside a band on either side, predicted), calibrated (inside, a free
parameter was chosen for it), a known deviation (outside, within a tolerance of the value recorded with its
reason), or unsteady (inside on some seeds, or so near that others may be). Orders, shapes and limits hold or do not.
Where a public trace is missing, a generated one stands in, and its numbers are compared with nothing.
Exit code 1 if the median of five seeds or more is outside its band and of no known deviation, or if a
recording is missing. One seed decides nothing: --seed N exits with 0.")]
pub struct ReproduceArgs {
    /// Claims to reproduce; all there are if none is given
    #[arg(value_name = "ID", hide_possible_values = true, value_parser = ids())]
    ids: Vec<String>,
    /// List the claims only
    #[arg(long)]
    list: bool,
    /// Shorter runs: noisier numbers in a fraction of the time
    #[arg(long)]
    quick: bool,
    /// Run fast02.scan by the clock, for this time without the scan and again with it, against an emulated
    /// drive in another process; compare with the same number of requests in virtual time
    #[arg(long, value_name = "TIME", conflicts_with_all = ["list", "quick", "report"])]
    real_time: Option<SimDuration>,
    /// Seeds whose medians are shown, from the first to the last [default: 1-5]
    #[arg(long, value_name = "A-B", value_parser = seeds)]
    seeds: Option<Seeds>,
    /// One seed alone
    #[arg(long, value_name = "SEED", conflicts_with = "seeds", value_parser = super::seed)]
    seed: Option<u64>,
    /// Folder with the recorded traces, if they are not found by themselves [default: data/recorded of
    /// the repository]
    #[arg(long, value_name = "DIR")]
    recordings: Option<PathBuf>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page with the tables and the figures; what goes beyond the papers goes to F-beyond.html
    /// beside it
    #[arg(long, value_name = "F.html", conflicts_with = "list")]
    report: Option<PathBuf>,
}

/// Seeds of a run.
#[derive(Debug, Clone)]
struct Seeds(Vec<u64>);

/// Most seeds of a run.
const SEEDS_MAX: u64 = 100;

fn seeds(text: &str) -> Result<Seeds, String> {
    let ends =
        text.split_once('-').map(|(first, last)| (first.parse::<u64>(), last.parse::<u64>()));
    match ends {
        Some((Ok(first), Ok(last))) if first <= last && last - first < SEEDS_MAX => {
            Ok(Seeds((first..=last).collect()))
        }
        _ => Err(format!("two numbers with a hyphen, such as 6-10, and at most {SEEDS_MAX} seeds")),
    }
}

fn ids() -> PossibleValuesParser {
    PossibleValuesParser::new(CLAIMS.iter().map(|claim| claim.id))
}

#[derive(Serialize)]
struct ClaimList {
    claims: Vec<ClaimRow>,
}

#[derive(Serialize)]
struct ClaimRow {
    id: &'static str,
    title: &'static str,
    setting: &'static str,
}

impl ReproduceArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.list {
            return self.print_list();
        }
        if let Some(length) = self.real_time {
            return real_time::run(&self.ids, length, self.seed.unwrap_or(SEEDS[0]), self.json);
        }
        if let Some(report) = &self.report {
            file::ensure_writable(report)?;
        }
        let recordings = self.recordings.clone();
        let seeds = match (self.seed, &self.seeds) {
            (Some(seed), _) => vec![seed],
            (None, Some(Seeds(seeds))) => seeds.clone(),
            (None, None) => SEEDS.to_vec(),
        };
        let options = ReproduceOptions { quick: self.quick, seeds, recordings };
        let mut done = Ok(Vec::new());
        let took = timed(|| done = self.reproduce(&options));
        let done = done?;
        let report = ClaimsReport::new(&done, &options);
        if let Some(path) = &self.report {
            write_pages(path, report.html())?;
        }
        self.print(&report)?;
        let took = Unit::Seconds.text(took.ns() as f64 / 1e9);
        output::aside(&format!("{}. Took {took}.\n", report.words()));
        judge(&report.rows, options.seeds.len())
    }

    fn print_list(&self) -> Result<(), Failure> {
        let list = ClaimList {
            claims: self
                .claims()
                .into_iter()
                .map(|claim| ClaimRow { id: claim.id, title: claim.title, setting: claim.setting })
                .collect(),
        };
        if self.json {
            return output::print_document(&list);
        }
        let mut table = Table::new("lll");
        list.claims.iter().for_each(|claim| table.row([claim.id, claim.title, claim.setting]));
        output::print(&table.to_string())
    }

    /// Claims that are wanted, in the order of the papers.
    fn claims(&self) -> Vec<&'static Claim> {
        CLAIMS
            .iter()
            .filter(|claim| self.ids.is_empty() || self.ids.iter().any(|id| id == claim.id))
            .collect()
    }

    fn reproduce(&self, options: &ReproduceOptions) -> Result<Vec<Reproduction>, Failure> {
        let bars = Bars::default();
        self.claims()
            .into_iter()
            .map(|claim| {
                let reproduction = freewheel::reproduce(claim.id, options, &|done, total| {
                    bars.set(claim.id, done, total)
                });
                bars.finish(claim.id);
                Ok(reproduction?)
            })
            .collect()
    }

    fn print(&self, report: &ClaimsReport<'_>) -> Result<(), Failure> {
        if self.json {
            return output::print_document(report);
        }
        output::print(&report.text())
    }
}

/// The papers' page at `path` and the other beside it; a page alone at `path`.
fn write_pages(path: &Path, pages: [Option<String>; 2]) -> Result<(), Failure> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!("{stem}-beyond.html"));
    let [papers, beyond] = pages;
    let beyond_path = if papers.is_some() { &beside } else { path };
    let files = [(path, papers), (beyond_path, beyond)];
    let some: Vec<(&Path, &str)> =
        files.iter().filter_map(|(path, page)| Some((*path, page.as_deref()?))).collect();
    file::write_together(&some)
}

/// A median outside its band is a failure unless it is a known deviation. Fewer seeds decide nothing.
fn judge(rows: &[&Row], seeds: usize) -> Result<(), Failure> {
    let failed: Vec<&&Row> = rows.iter().filter(|row| !row.verdict.passes()).collect();
    let faults: Vec<String> = failed
        .iter()
        .copied()
        .filter(|row| seeds >= SEEDS.len() || !row.verdict.was_run())
        .map(|row| ClaimsReport::fault(row))
        .collect();
    if !faults.is_empty() {
        let numbers = if faults.len() == 1 { "number fails" } else { "numbers fail" };
        let text = format!("{} {numbers}:\n  {}", faults.len(), faults.join("\n  "));
        return Err(Failure::failed(text));
    }
    if !failed.is_empty() {
        let least = SEEDS.len();
        output::aside(&format!(
            "{} outside on so few seeds: medians of {least} or more decide, as without --seed.\n",
            failed.len()
        ));
    }
    Ok(())
}
