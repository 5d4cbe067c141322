//! `freewheel reproduce`: what the papers claim, and what this program finds.

mod real_time;

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use freewheel::study::claims::{self, CLAIMS, Claim, ReproduceOptions, Reproduction, Row};
use freewheel::study::four_digits;
use freewheel::units::SimDuration;
use serde::Serialize;

use crate::failure::Failure;
use crate::progress::Bars;
use crate::table::Table;
use crate::{file, output};

/// Run the papers' experiments and compare the results with the published ones
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel reproduce --list
  freewheel reproduce --quick --report claims.html
  freewheel reproduce fast02.scan --real-time 60s

Exit code 1 if a value is outside its band and no reason is recorded.")]
pub struct ReproduceArgs {
    /// Claims to reproduce; all there are if none is given
    #[arg(value_name = "ID", hide_possible_values = true, value_parser = ids())]
    ids: Vec<String>,
    /// List the claims and do nothing else
    #[arg(long)]
    list: bool,
    /// Shorter runs: noisier numbers in a fraction of the time
    #[arg(long)]
    quick: bool,
    /// Run fast02.scan by the clock, for so long without the scan and for so long with it, against an
    /// emulated drive in another process, beside as many requests in virtual time
    #[arg(long, value_name = "TIME", conflicts_with_all = ["list", "quick", "report"])]
    real_time: Option<SimDuration>,
    /// Seed of every random stream
    #[arg(long, default_value_t = 1, value_parser = super::seed)]
    seed: u64,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page with the tables and the figures
    #[arg(long, value_name = "F.html", conflicts_with = "list")]
    report: Option<PathBuf>,
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

#[derive(Serialize)]
struct Rows<'a> {
    rows: Vec<&'a Row>,
}

impl ReproduceArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.list {
            return self.print_list();
        }
        if let Some(length) = self.real_time {
            return real_time::run(&self.ids, length, self.seed, self.json);
        }
        if let Some(report) = &self.report {
            file::ensure_writable(report)?;
        }
        let options = ReproduceOptions { quick: self.quick, seed: self.seed };
        let done = self.reproduce(&options)?;
        if let Some(path) = &self.report {
            file::write_together(&[(path, &claims::html(&done, &options))])?;
        }
        self.print(&done)?;
        judge(&done)
    }

    fn print_list(&self) -> Result<(), Failure> {
        let row =
            |claim: &Claim| ClaimRow { id: claim.id, title: claim.title, setting: claim.setting };
        let list = ClaimList { claims: self.claims().into_iter().map(row).collect() };
        if self.json {
            return output::print_document(&list);
        }
        let mut table = Table::new("lll");
        list.claims.iter().for_each(|claim| table.row([claim.id, claim.title, claim.setting]));
        output::print(&table.to_string())
    }

    /// Those that are wanted, in the order of the papers.
    fn claims(&self) -> Vec<&'static Claim> {
        let is_wanted =
            |claim: &&Claim| self.ids.is_empty() || self.ids.iter().any(|id| id == claim.id);
        CLAIMS.iter().filter(is_wanted).collect()
    }

    fn reproduce(&self, options: &ReproduceOptions) -> Result<Vec<Reproduction>, Failure> {
        let bars = Bars::default();
        let reproduce = |claim: &Claim| {
            let show = |done, total| bars.set(claim.id, done, total);
            let reproduction = claims::reproduce(claim.id, options, &show);
            bars.finish(claim.id);
            Ok(reproduction?)
        };
        self.claims().into_iter().map(reproduce).collect()
    }

    fn print(&self, done: &[Reproduction]) -> Result<(), Failure> {
        if self.json {
            let rows = done.iter().flat_map(|reproduction| &reproduction.rows).collect();
            return output::print_document(&Rows { rows });
        }
        let texts: Vec<String> = done.iter().map(text).collect();
        output::print(&texts.join("\n"))
    }
}

/// A value outside its band is a failure unless a reason for it is recorded.
fn judge(done: &[Reproduction]) -> Result<(), Failure> {
    let rows = done.iter().flat_map(|reproduction| &reproduction.rows);
    let unexplained: Vec<String> = rows
        .filter(|row| !row.is_explained())
        .map(|row| format!("{} {}", row.id, row.quantity))
        .collect();
    if unexplained.is_empty() {
        return Ok(());
    }
    let count = unexplained.len();
    let list = unexplained.join("; ");
    Err(Failure::failed(format!("{count} outside the band without a recorded reason: {list}")))
}

fn text(reproduction: &Reproduction) -> String {
    let claim = CLAIMS.iter().find(|claim| claim.id == reproduction.id);
    let (title, setting) = claim.map_or(("", ""), |claim| (claim.title, claim.setting));
    let mut table = Table::new("llrrrl");
    table.row(["quantity", "unit", "paper", "ours", "band", "inside"]);
    reproduction.rows.iter().for_each(|row| table.row(cells(row)));
    let notes: String = reproduction.rows.iter().map(notes).collect();
    format!("{}: {title}\n{setting}\n\n{table}{notes}", reproduction.id)
}

fn cells(row: &Row) -> [String; 6] {
    let [low, high] = row.band.map(four_digits);
    [
        row.quantity.to_string(),
        row.unit.to_string(),
        row.paper.map_or("-".into(), four_digits),
        four_digits(row.ours),
        format!("{low} to {high}"),
        if row.inside { "yes" } else { "NO" }.to_owned(),
    ]
}

fn notes(row: &Row) -> String {
    let stands_in = row.stands_in.iter().map(|text| format!("stands in: {text}"));
    let texts = stands_in.chain(row.note.iter().map(ToString::to_string));
    texts.map(|text| format!("  {}: {text}\n", row.quantity)).collect()
}
