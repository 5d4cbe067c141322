//! The content of a trace, its character, and the fidelity of its replay as tables of a terminal.

use std::cmp::Reverse;

use freewheel_sim::fidelity::ReplayFidelity;
use freewheel_trace::{Character, TraceInfo};
use freewheel_units::{Blocks, Bytes, grouped};

use crate::numbers::{average, ms, percent, ratio, response, span, variation};
use crate::table::Table;
use crate::text::Text;

impl Text for TraceInfo {
    fn text(&self) -> String {
        let mut table = Table::new("ll");
        table.row(["requests".to_owned(), requests(self)]);
        table.row(["force unit access (FUA)", &forced(self)]);
        table.row(["span".to_owned(), span(self.span_ns as f64 / 1e9)]);
        let (read, written) = (human(self.bytes_read), human(self.bytes_written));
        table.row([
            "bytes".into(),
            format!("{} ({read} read, {written} written)", human(self.bytes)),
        ]);
        table.row(["footprint", &self.footprint_bytes.map_or("not counted".into(), human)]);
        table.row(["completions", &completions(self)]);
        times(self, &mut table);
        table.row(["malformed and skipped", &grouped(self.skipped)]);
        if let Some(rows) = self.left_out.in_words() {
            table.row(["rows left out", &rows]);
        }
        if let Some(damage) = &self.damage {
            table.row(["damage", &format!("{damage}; {}", damage.consequence())]);
        }
        if self.widened > 0 {
            table.row(["widened to whole blocks of 512 B", &grouped(self.widened)]);
        }
        format!("{table}\n{}", devices(self))
    }
}

fn human(bytes: u64) -> String {
    Bytes::new(bytes).human()
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
    let mut table = Table::new("rrrrr");
    table.row(["device", "requests", "share", "bytes", "reaches"]);
    for (id, device) in &shown {
        table.row([
            id.to_string(),
            grouped(device.requests),
            percent(device.requests as f64 / all.max(1) as f64),
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
        percent((all - of_shown) as f64 / all.max(1) as f64)
    )
}

impl Text for Character {
    fn text(&self) -> String {
        [
            self.info.text(),
            arrivals(self),
            sizes(self),
            locality(self),
            responses(self),
            queueing(self),
        ]
        .join("\n")
    }
}

fn arrivals(character: &Character) -> String {
    let burst = &character.burstiness;
    let mut table = Table::new("lr");
    table.row(["mean time between arrivals", &response(burst.interarrival_mean_ns)]);
    table.row(["  its standard deviation / mean", &variation(burst.interarrival_cv)]);
    table.row(["busiest 1 s / mean", &ratio(burst.peak_to_mean_1s)]);
    table.row(["busiest 10 s / mean", &ratio(burst.peak_to_mean_10s)]);
    table.row(["busiest 60 s / mean", &ratio(burst.peak_to_mean_60s)]);
    table.row(["dispersion of counts in 1 s", &ratio(burst.dispersion_1s)]);
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
    let mut row = |label: &str, share| table.row([label, &percent(share)]);
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
        let mean = ms(summary.mean_ns);
        let [p50, p99, max] =
            [summary.p50_ns, summary.p99_ns, summary.max_ns].map(|ns| ms(ns as f64));
        table.row([label.to_owned(), grouped(summary.count), mean, p50, p99, max]);
    }
    table.to_string()
}

fn queueing(character: &Character) -> String {
    let mut table = Table::new("ll");
    if let Some(depth) = &character.queue_depth {
        let (mean, p95, max) = (average(depth.mean), depth.p95, depth.max);
        let text = format!("mean {mean}, median {}, p95 {p95}, max {max}", depth.p50);
        table.row(["outstanding at an arrival", &text]);
    }
    let flush = &character.flush;
    let text = match flush.flushes {
        0 => "0".to_owned(),
        some => format!("{} ({} writes a flush)", grouped(some), average(flush.writes_per_flush)),
    };
    table.row(["flushes", &text]);
    table.to_string()
}

impl Text for ReplayFidelity {
    fn text(&self) -> String {
        let of_all = |requests: u64| {
            let share = percent(requests as f64 / self.requests.max(1) as f64);
            format!("{} ({share})", grouped(requests))
        };
        let displaced = |requests: u64, mean_ns: u64, max_ns: u64| match requests {
            0 => "none".to_owned(),
            some => {
                let [mean, max] = [mean_ns, max_ns].map(|ns| ms(ns as f64));
                format!("{}, by {mean} ms on average and {max} ms at most", of_all(some))
            }
        };
        let (held, others) = (&self.delayed_by_window, &self.displaced);
        let mut table = Table::new("ll");
        table.row(["requests", &grouped(self.requests)]);
        table.row(["arrive at their traced times", &of_all(self.exact)]);
        table.row(["enter the full window late", &of_all(self.entered_late)]);
        table.row([
            "  with those that follow",
            &displaced(held.requests, held.mean_ns, held.max_ns),
        ]);
        table.row([
            "displaced otherwise",
            &displaced(others.requests, others.mean_ns, others.max_ns),
        ]);
        table.row(["without a completion", &grouped(self.without_completion)]);
        table.to_string()
    }
}
