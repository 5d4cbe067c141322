//! A result as tables.

use freewheel::host::{Account, MarginInUse};
use freewheel::model::stats::{Distribution, Summary};
use freewheel::report::{self, Finding, PassTable, StageTable};
use freewheel::sim::config::Experiment;
use freewheel::sim::{DriveResult, RefusedWrites, RunResult};
use freewheel::units::{Bytes, grouped};

use crate::failure::Failure;
use crate::number;
use crate::table::Table;

/// Everything, one table after the other; how long decisions took here, if any were made.
pub(super) fn text(
    experiment: &Experiment,
    result: &RunResult,
    decisions: &Distribution,
) -> Result<String, Failure> {
    let config = toml::to_string(&experiment.config);
    let config = config.map_err(|error| Failure::failed(format!("the experiment: {error}")))?;
    let region_weights = "\nregion_weights = true";
    let config =
        config.replace(region_weights, &format!("{region_weights}   # {}", report::PRICES_ARE));
    let mut sections = vec![
        config,
        overview(result).to_string(),
        responses(result).to_string(),
        stages(result).to_string(),
    ];
    let passes = result.postmark.iter().flat_map(report::pass_tables);
    sections.extend(passes.map(|table| postmark(&table)));
    sections.extend(result.host.as_ref().map(|seen| host(seen).to_string()));
    sections.extend((!result.margins.is_empty()).then(|| margins(&result.margins).to_string()));
    sections.extend(free_work(result));
    sections.extend(number::decisions("", decisions));
    if !result.drives.is_empty() {
        sections.push(drives(&result.drives));
    }
    let cautions = report::cautions(&experiment.config, &experiment.spec, result);
    sections.extend(cautions.iter().map(Finding::text));
    sections.push(format!("hash {}\n", result.result_hash));
    Ok(sections.join("\n"))
}

fn overview(result: &RunResult) -> Table {
    let [reads, writes, flushes] =
        [&result.read_response, &result.write_response, &result.flush_response]
            .map(|summary| grouped(summary.count));
    let trims = grouped(result.trims);
    let fua = match &result.fua_write_response {
        Some(forced) => format!(" ({} with FUA)", grouped(forced.count)),
        None => String::new(),
    };
    let mut counts =
        format!("{reads} reads, {writes} writes{fua}, {flushes} flushes, {trims} trims");
    if result.refused_writes.count > 0 {
        counts += &format!(", {} refused writes", grouped(result.refused_writes.count));
    }
    let rate = number::rate(result.bytes_per_second);
    let (mean, max) = (result.outstanding_mean, grouped(result.outstanding_max));
    let mut table = Table::new("ll");
    table.row(["requests", &format!("{} ({counts})", grouped(result.requests))]);
    if result.refused_writes.count > 0 {
        table.row(["refused", &refusals(&result.refused_writes)]);
    }
    table.row(["elapsed", &number::seconds(result.elapsed_ns)]);
    table.row(["throughput", &format!("{:.1} requests/s, {rate}", result.requests_per_second)]);
    table.row(["utilisation", &busy(result)]);
    if result.buffer_reads + result.buffer_writes > 0 {
        let [from, to] = [result.buffer_reads, result.buffer_writes].map(grouped);
        let destaging = number::percent(result.destaging);
        table.row(["buffer", &format!("{from} reads from it, {to} writes to it")]);
        table.row(["writing back", &format!("{destaging} of the time")]);
        let left = Bytes::new(result.left_in_buffer_bytes).human();
        table.row(["unwritten", &format!("{left} left in the buffer at the end")]);
    }
    table.row(["outstanding", &format!("mean {mean:.2}, max {max}")]);
    table.row(["longest wait", &number::ms(result.queue_ns_max as f64)]);
    table
}

/// Of the drive, and of each of its parts that was busy at all.
fn busy(result: &RunResult) -> String {
    let shares = &result.busy_shares;
    let parts =
        [("head", shares.head), ("bus", shares.bus), ("command processing", shares.electronics)];
    let parts = parts.into_iter().filter(|(_, share)| *share > 0.0);
    let parts: Vec<String> =
        parts.map(|(name, share)| format!("{name} {}", number::percent(share))).collect();
    format!("{} ({})", number::percent(result.utilisation), parts.join(", "))
}

fn refusals(writes: &RefusedWrites) -> String {
    let &RefusedWrites { not_at_write_pointer, over_zone_boundary, zone_full, .. } = writes;
    let [not_at_write_pointer, over_zone_boundary, zone_full] =
        [not_at_write_pointer, over_zone_boundary, zone_full].map(grouped);
    format!(
        "{not_at_write_pointer} not at the write pointer, {over_zone_boundary} over a zone boundary, {zone_full} to a full zone"
    )
}

fn postmark((head, rows): &PassTable) -> String {
    let mut table = Table::new("lrrrrr");
    table.row(*head);
    rows.iter().for_each(|row| table.row(row));
    table.to_string()
}

fn responses(result: &RunResult) -> Table {
    let mut table = Table::new("lrrrrrrrrr");
    let columns = ["count", "mean", "variation", "p50", "p95", "p99", "p99.9", "p99.99", "max"];
    table.row(std::iter::once("response, ms").chain(columns));
    table.row(response_cells("reads", &result.read_response));
    table.row(response_cells("writes", &result.write_response));
    if let Some(forced) = &result.fua_write_response {
        table.row(response_cells("writes with FUA", forced));
    }
    table.row(response_cells("reads and writes", &result.response));
    if result.flush_response.count > 0 {
        table.row(response_cells("flushes", &result.flush_response));
    }
    table
}

fn response_cells(label: &str, summary: &Summary) -> Vec<String> {
    let &Summary { p50_ns, p95_ns, p99_ns, p999_ns, p9999_ns, max_ns, .. } = summary;
    let tail = [p50_ns, p95_ns, p99_ns, p999_ns, p9999_ns, max_ns];
    // Standard deviation over mean.
    let variation = format!("{:.2}", summary.coefficient_of_variation);
    [label.to_owned(), grouped(summary.count), number::bare_ms(summary.mean_ns), variation]
        .into_iter()
        .chain(tail.map(|ns| number::bare_ms(ns as f64)))
        .collect()
}

fn stages(result: &RunResult) -> Table {
    let StageTable { head, rows } = report::stage_table(result);
    let mut table = Table::new(if head.len() == 4 { "lrrr" } else { "lrr" });
    let columns = head.len();
    table.row(head);
    rows.iter().for_each(|row| table.row(row.cells(columns, number::bare_ms, number::percent)));
    table
}

/// What a scheduler outside the drive foresaw.
fn host(seen: &Account) -> Table {
    let share = |count: u64| number::percent(count as f64 / seen.predicted.max(1) as f64);
    let mut table = Table::new("lr");
    table.row(["outside the drive", "head times"]);
    table.row(["predicted", &grouped(seen.predicted)]);
    table.row(["within 50 us", &share(seen.within_50us)]);
    table.row(["within 150 us", &share(seen.within_150us)]);
    table.row(["turns longer", &share(seen.late)]);
    table.row(["behind free work", &share(seen.late_behind_free)]);
    table.row(["turns shorter", &share(seen.early)]);
    table.row(["surprises", &grouped(seen.surprises)]);
    table
}

/// The learned margins.
fn margins(learned: &[MarginInUse]) -> Table {
    let mut table = Table::new("lllrrr");
    table.row(["learned margins", "seek", "cylinders", "margin", "movements", "of them late"]);
    for of in learned {
        let cylinders = match of.cylinders_min == of.cylinders_max {
            true => of.cylinders_min.to_string(),
            false => format!("{} to {}", of.cylinders_min, of.cylinders_max),
        };
        let margin = number::us(of.margin_ns as f64);
        let (movements, late) = (grouped(of.movements), grouped(of.late));
        let seek = of.direction.map_or("none".into(), |direction| direction.to_string());
        table.row([of.op.to_string(), seek, cylinders, margin, movements, late]);
    }
    table
}

fn free_work(result: &RunResult) -> impl Iterator<Item = String> {
    report::free_work_parts(result).into_iter().map(|part| {
        let mut table = Table::new("ll");
        for (what, value) in part.rows {
            table.row([what, &value]);
        }
        format!("{}\n{table}", part.title)
    })
}

/// Independent drives in the text.
const DRIVES_SHOWN: usize = 10;

/// Those that worked longest first; of equals the first.
fn drives(all: &[DriveResult]) -> String {
    let busy_ns = |drive: &DriveResult| drive.utilisation * drive.elapsed_ns as f64;
    let mut busiest: Vec<&DriveResult> = all.iter().collect();
    busiest.sort_by(|a, b| busy_ns(b).total_cmp(&busy_ns(a)));
    busiest.truncate(DRIVES_SHOWN);
    let mut table = Table::new("lrrrrr");
    table.row(["drive", "requests", "mean, ms", "p99, ms", "utilisation", "elapsed"]);
    for drive in &busiest {
        let device = drive.device.map(|device| format!(" (device {device})"));
        table.row([
            format!("{}{}", drive.number, device.unwrap_or_default()),
            grouped(drive.requests),
            number::bare_ms(drive.response_ns_mean),
            number::bare_ms(drive.response_ns_p99 as f64),
            number::percent(drive.utilisation),
            number::seconds(drive.elapsed_ns),
        ]);
    }
    format!("{} of {} independent drives, busiest first\n{table}", busiest.len(), all.len())
}
