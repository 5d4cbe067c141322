//! `freewheel trace info`.

use std::cmp::Reverse;

use clap::Args;
use freewheel::TraceInfo;
use freewheel::measures::{Blocks, Bytes, grouped};

use super::LookArgs;
use crate::failure::Failure;
use crate::table::Table;
use crate::{number, output, reading};

/// Say what a trace holds: requests, span, bytes, footprint, devices
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel trace info pgbench.csv.zst --json")]
pub struct InfoArgs {
    #[command(flatten)]
    look: LookArgs,
}

impl InfoArgs {
    pub fn run(self) -> Result<(), Failure> {
        let info = reading::watched(&mut self.look.open()?, TraceInfo::scan_watched)?;
        if self.look.json {
            return output::print_document(&info);
        }
        output::print(&format!("{} ({})\n\n{}", self.look.name(), info.format, text(&info)))
    }
}

/// Content of a trace, for people.
pub fn text(info: &TraceInfo) -> String {
    let human = |bytes| Bytes::new(bytes).human();
    let mut table = Table::new("ll");
    table.row(["requests".to_owned(), requests(info)]);
    table.row(["force unit access (FUA)", &forced(info)]);
    table.row(["span".to_owned(), number::seconds(info.span_ns)]);
    let (read, written) = (human(info.bytes_read), human(info.bytes_written));
    table.row(["bytes".into(), format!("{} ({read} read, {written} written)", human(info.bytes))]);
    table.row(["footprint", &info.footprint_bytes.map_or("not counted".into(), human)]);
    table.row(["completions", &completions(info)]);
    times(info, &mut table);
    table.row(["malformed and skipped", &grouped(info.skipped)]);
    if let Some(rows) = info.left_out.in_words() {
        table.row(["rows left out", &rows]);
    }
    if let Some(damage) = &info.damage {
        table.row(["damage", &format!("{damage}; {}", damage.consequence())]);
    }
    if info.widened > 0 {
        table.row(["widened to whole blocks of 512 B", &grouped(info.widened)]);
    }
    format!("{table}\n{}", devices(info))
}

/// Results of the first pass.
fn times(info: &TraceInfo, table: &mut Table) {
    let Some(survey) = &info.survey else { return };
    if let Some(unit) = info.time_unit {
        table.row(["unit of times", unit.symbol()]);
    }
    if let Some(recordings) = survey.recordings_in_words() {
        table.row(["recordings", &(recordings + "; `--clock absolute` sorts them")]);
    }
    let hint = "; `--clock from-start` takes steps back for recordings";
    let sorted = survey.sorted_in_words().map(|sorted| sorted + hint);
    table.row(["arrivals out of order", &sorted.unwrap_or("none".into())]);
    if let Some(granule) = survey.granule_in_words() {
        let shared = grouped(survey.shared_times);
        let says = "requests have the time of the one in front of them; replays spread them";
        table.row(["step of the clock", &format!("{granule}: {shared} {says}")]);
    }
    if let Some(layers) = &survey.layers {
        table.row(["block layer", &layers.in_words()]);
    }
    if let Some(numbers) = &survey.numbers {
        table.row(["numbers name", &numbers.in_words()]);
    }
}

fn requests(info: &TraceInfo) -> String {
    format!(
        "{} ({} reads, {} writes, {} flushes, {} trims)",
        grouped(info.requests),
        grouped(info.reads),
        grouped(info.writes),
        grouped(info.flushes),
        grouped(info.trims)
    )
}

fn forced(info: &TraceInfo) -> String {
    match (info.fua_writes, info.fua_reads) {
        (0, 0) => "none".into(),
        (writes, 0) => format!("{} writes", grouped(writes)),
        (writes, reads) => format!("{} writes, {} reads", grouped(writes), grouped(reads)),
    }
}

fn completions(info: &TraceInfo) -> String {
    match info.completions {
        0 => "not recorded".into(),
        _ if info.has_completions => "recorded".into(),
        some => {
            let (all, replayed) = (grouped(info.requests), info.replay_in_words());
            format!("recorded of {} of {all} requests: {replayed}", grouped(some))
        }
    }
}

/// Devices in the text.
const DEVICES_SHOWN: usize = 20;

/// All devices by number, or of many the busiest with their share, and how many others there are.
fn devices(info: &TraceInfo) -> String {
    let mut shown: Vec<_> = info.devices.iter().collect();
    let others = shown.len().saturating_sub(DEVICES_SHOWN);
    if others > 0 {
        shown.sort_by_key(|(id, device)| (Reverse(device.requests), **id));
        shown.truncate(DEVICES_SHOWN);
    }
    let all: u64 = info.devices.values().map(|device| device.requests).sum();
    let share = |requests: u64| number::percent(requests as f64 / all.max(1) as f64);
    let mut table = Table::new("rrrrr");
    table.row(["device", "requests", "share", "bytes", "reaches"]);
    for (id, device) in &shown {
        table.row([
            id.to_string(),
            grouped(device.requests),
            share(device.requests),
            Bytes::new(device.bytes).human(),
            Blocks::new(device.end_block).bytes().human(),
        ]);
    }
    if others == 0 {
        return table.to_string();
    }
    let of_shown: u64 = shown.iter().map(|(_, device)| device.requests).sum();
    format!(
        "The busiest {DEVICES_SHOWN} of {} devices:\n{table}{} others have {} of the requests; `--json` has all devices.\n",
        grouped(info.devices.len() as u64),
        grouped(others as u64),
        share(all - of_shown)
    )
}
