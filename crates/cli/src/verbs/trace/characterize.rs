//! `freewheel trace characterize`.

use clap::Args;
use freewheel::measures::{Bytes, grouped};
use freewheel::traces::Character;

use super::{LookArgs, info};
use crate::failure::Failure;
use crate::table::Table;
use crate::{number, output, reading};

/// Say how the load of a trace behaves: rate, bursts, sizes, locality, queueing, flushes
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel trace characterize pgbench.csv.zst")]
pub struct CharacterizeArgs {
    #[command(flatten)]
    look: LookArgs,
}

impl CharacterizeArgs {
    pub fn run(self) -> Result<(), Failure> {
        let character = reading::watched(&mut self.look.open()?, Character::scan)?;
        if self.look.json {
            return output::print_document(&character);
        }
        let heading = format!("{} ({})", self.look.name(), character.info.format);
        output::print(&format!("{heading}\n\n{}", text(&character)))
    }
}

fn text(character: &Character) -> String {
    [
        info::text(&character.info),
        arrivals(character),
        sizes(character),
        locality(character),
        responses(character),
        queueing(character),
    ]
    .join("\n")
}

fn arrivals(character: &Character) -> String {
    let burst = &character.burstiness;
    let mut table = Table::new("lr");
    table.row(["mean time between arrivals", &number::ms(burst.interarrival_mean_ns)]);
    table.row(["  its standard deviation / mean", &format!("{:.2}", burst.interarrival_cv)]);
    table.row(["busiest 1 s / mean", &format!("{:.1}", burst.peak_to_mean_1s)]);
    table.row(["busiest 10 s / mean", &format!("{:.1}", burst.peak_to_mean_10s)]);
    table.row(["busiest 60 s / mean", &format!("{:.1}", burst.peak_to_mean_60s)]);
    table.row(["dispersion of counts in 1 s", &format!("{:.1}", burst.dispersion_1s)]);
    table.to_string()
}

fn sizes(character: &Character) -> String {
    let mut table = Table::new("lrrrr");
    table.row(["size", "requests", "mean", "median", "max"]);
    let sizes = &character.sizes;
    for (label, sizes) in [("reads", &sizes.read), ("writes", &sizes.write)] {
        table.row([
            label.to_owned(),
            grouped(sizes.requests),
            Bytes::new(sizes.mean_bytes.round() as u64).human(),
            Bytes::new(sizes.median_bytes).human(),
            Bytes::new(sizes.max_bytes).human(),
        ]);
    }
    table.to_string()
}

fn locality(character: &Character) -> String {
    let Character { mix, sequentiality, reuse, skew, .. } = character;
    let mut table = Table::new("lr");
    let mut row = |label: &str, share| table.row([label, &number::percent(share)]);
    row("reads among requests", mix.read_request_share);
    row("reads among bytes", mix.read_bytes_share);
    row("sequential", sequentiality.sequential_share);
    row("  among reads", sequentiality.read_sequential_share);
    row("  among writes", sequentiality.write_sequential_share);
    row("blocks read that were touched before", reuse.read_again_share);
    row("blocks written that were touched before", reuse.written_after_touch_share);
    row("accesses to the hottest 1 % of regions", skew.hottest_1_percent_share);
    row("accesses to the hottest 10 % of regions", skew.hottest_10_percent_share);
    row("accesses to the hottest 20 % of regions", skew.hottest_20_percent_share);
    table.to_string()
}

fn responses(character: &Character) -> String {
    let response = &character.response;
    let mut table = Table::new("lrrrrr");
    table.row(["traced response, ms", "count", "mean", "p50", "p99", "max"]);
    let kinds = [
        ("reads", &response.read),
        ("writes", &response.write),
        ("flushes", &response.flush),
        ("trims", &response.trim),
    ];
    for (label, summary) in kinds {
        let Some(summary) = summary else { continue };
        let mean = number::bare_ms(summary.mean_ns);
        let [p50, p99, max] =
            [summary.p50_ns, summary.p99_ns, summary.max_ns].map(|ns| number::bare_ms(ns as f64));
        table.row([label.to_owned(), grouped(summary.count), mean, p50, p99, max]);
    }
    table.to_string()
}

fn queueing(character: &Character) -> String {
    let mut table = Table::new("ll");
    if let Some(depth) = &character.queue_depth {
        let (mean, p95, max) = (depth.mean, depth.p95, depth.max);
        let text = format!("mean {mean:.2}, median {}, p95 {p95}, max {max}", depth.p50);
        table.row(["outstanding at an arrival", &text]);
    }
    let flush = &character.flush;
    let text = format!("{} ({:.1} writes a flush)", grouped(flush.flushes), flush.writes_per_flush);
    table.row(["flushes", &text]);
    table.to_string()
}
