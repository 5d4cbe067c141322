//! The result of an experiment as tables of a terminal.

use freewheel_model::stats::{Distribution, Summary};
use freewheel_sim::RunResult;
use freewheel_sim::experiment::Experiment;
use freewheel_units::{Bytes, grouped};

use crate::cache_work::cache_rows;
use crate::command_work::command_rows;
use crate::files_run;
use crate::free_work::free_work_parts;
use crate::numbers::{
    average, decisions, ms, per_second, percent, rate, response, seconds, short_time, span,
    variation,
};
use crate::postmark::pass_tables;
use crate::sim_page::{REGION_WEIGHTS, cautions};
use crate::stages::stage_table;
use crate::table::Table;

/// Cautions, the experiment and all tables, one after the other; `times` are those of decisions on this machine.
pub(crate) fn text(
    experiment: &Experiment,
    result: &RunResult,
    times: &Distribution,
) -> Result<String, toml::ser::Error> {
    let config = toml::to_string(&experiment.config)?;
    let region_weights = "\nregion_weights = true";
    let with_meaning = format!("{region_weights}   # {REGION_WEIGHTS}");
    let config = config.replace(region_weights, &with_meaning);
    let cautions = cautions(experiment, result);
    let mut sections: Vec<String> = cautions.iter().map(|caution| caution.text()).collect();
    sections.extend([
        config,
        overview(result).to_string(),
        responses(result).to_string(),
        stages(result).to_string(),
    ]);
    sections.extend(two_columns(cache_rows(result)));
    sections.extend(two_columns(command_rows(result)));
    sections.extend(files_run::text(result));
    sections.extend(passes(result));
    sections.extend(host(result).map(|table| table.to_string()));
    sections.extend(result.free_cost.map(|cost| format!("{cost}\n")));
    sections.extend((!result.margins.is_empty()).then(|| margins(result).to_string()));
    sections.extend(free_work(result));
    sections.extend(decisions("", times));
    if !result.slices.is_empty() {
        sections.push(slices(result).to_string());
    }
    if !result.drives.is_empty() {
        sections.push(drives(result));
    }
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
    let bytes = rate(result.bytes_per_second);
    let (mean, max) = (average(result.outstanding_mean), grouped(result.outstanding_max));
    let mut table = Table::new("ll");
    table.row(["requests", &format!("{} ({counts})", grouped(result.requests))]);
    if result.warm_up_requests > 0 {
        let before = grouped(result.warm_up_requests);
        table.row(["warm-up", &format!("{before} requests before these")]);
    }
    for inferred in inferred(result) {
        table.row(["completions", &inferred]);
    }
    if result.refused_writes.count > 0 {
        table.row(["refused", &refusals(result)]);
    }
    table.row(["elapsed", &span(result.elapsed_ns as f64 / 1e9)]);
    table.row([
        "throughput",
        &format!("{} requests/s, {bytes}", per_second(result.requests_per_second)),
    ]);
    table.row(["utilisation", &busy(result)]);
    if result.buffer_reads + result.buffer_writes > 0 {
        let [from, to] = [result.buffer_reads, result.buffer_writes].map(grouped);
        let destaging = percent(result.destaging);
        table.row(["buffer", &format!("{from} reads from it, {to} writes to it")]);
        table.row(["writing back", &format!("{destaging} of the time")]);
        let left = Bytes::new(result.left_in_buffer_bytes).human();
        table.row(["unwritten", &format!("{left} left in the buffer at the end")]);
    }
    table.row(["outstanding", &format!("mean {mean}, max {max}")]);
    table.row(["longest wait", &response(result.queue_ns_max as f64)]);
    table
}

/// Source of completions that the trace does not record, and the uncertainty of the replay.
fn inferred(result: &RunResult) -> Vec<String> {
    let words = result.inferred_completions.iter().map(|completions| {
        let mean = response(completions.mean_response_ns as f64);
        let parents = &completions.parents;
        let [halved, doubled] = [parents.halved, parents.doubled].map(percent);
        format!(
            "inferred from {}, mean response {mean}; at half of that {halved} of the requests wait for another one, at twice of it {doubled}",
            completions.drive
        )
    });
    words.collect()
}

/// Busy shares of the drive, and of each of its parts that was busy at all.
fn busy(result: &RunResult) -> String {
    let shares = &result.busy_shares;
    let parts =
        [("head", shares.head), ("bus", shares.bus), ("command processing", shares.electronics)];
    let parts = parts.into_iter().filter(|(_, share)| *share > 0.0);
    let parts: Vec<String> =
        parts.map(|(name, share)| format!("{name} {}", percent(share))).collect();
    format!("{} ({})", percent(result.utilisation), parts.join(", "))
}

fn refusals(result: &RunResult) -> String {
    let writes = &result.refused_writes;
    let [not_at_write_pointer, over_zone_boundary, zone_full] =
        [writes.not_at_write_pointer, writes.over_zone_boundary, writes.zone_full].map(grouped);
    format!(
        "{not_at_write_pointer} not at the write pointer, {over_zone_boundary} over a zone boundary, {zone_full} to a full zone"
    )
}

/// Subjects and words about them, if there are some.
fn two_columns(rows: Vec<(&'static str, String)>) -> Option<String> {
    let mut table = Table::new("ll");
    rows.iter().for_each(|(part, words)| table.row([*part, words]));
    (!rows.is_empty()).then(|| table.to_string())
}

/// The passes of PostMark, if that was the workload.
fn passes(result: &RunResult) -> Vec<String> {
    let text = result.postmark.iter().flat_map(pass_tables).map(|(head, rows)| {
        let mut table = Table::new("lrrrrr");
        table.row(head);
        rows.iter().for_each(|row| table.row(row));
        table.to_string()
    });
    text.collect()
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
    let variation = variation(summary.coefficient_of_variation);
    [label.to_owned(), grouped(summary.count), ms(summary.mean_ns), variation]
        .into_iter()
        .chain(tail.map(|ns| ms(ns as f64)))
        .collect()
}

/// The equal parts of what was measured.
fn slices(result: &RunResult) -> Table {
    let mut table = Table::new("lrrrrrrrr");
    let reads = ["reads", "mean, ms", "p99, ms"];
    let writes = ["writes", "mean, ms", "p99, ms"];
    let head =
        ["slice", "begins, s"].into_iter().chain(reads).chain(writes).chain(["head busy, s"]);
    table.row(head);
    for (number, slice) in result.slices.iter().enumerate() {
        let begins = [(number + 1).to_string(), seconds(slice.start_ns as f64)];
        let [reads, writes] = [&slice.reads, &slice.writes].map(|of| {
            let mean = ms(of.response_ns_mean);
            [grouped(of.requests), mean, ms(of.response_ns_p99 as f64)]
        });
        let head = seconds(slice.head_ns as f64);
        table.row(begins.into_iter().chain(reads).chain(writes).chain([head]));
    }
    table
}

fn stages(result: &RunResult) -> Table {
    let stages = stage_table(result);
    let columns = stages.head.len();
    let mut table = Table::new(if columns == 4 { "lrrr" } else { "lrr" });
    table.row(stages.head);
    stages.rows.iter().for_each(|row| table.row(row.cells(columns)));
    table
}

/// Predictions of a scheduler in front of the drive, if there was one.
fn host(result: &RunResult) -> Option<Table> {
    let seen = result.host.as_ref()?;
    let share = |count: u64| percent(count as f64 / seen.predicted.max(1) as f64);
    let mut table = Table::new("lr");
    table.row(["outside the drive", "head times"]);
    table.row(["predicted", &grouped(seen.predicted)]);
    table.row(["within 50 us", &share(seen.within_50us)]);
    table.row(["within 150 us", &share(seen.within_150us)]);
    table.row(["turns longer", &share(seen.late)]);
    table.row(["behind free work", &share(seen.late_behind_free)]);
    table.row(["turns shorter", &share(seen.early)]);
    table.row(["surprises", &grouped(seen.surprises)]);
    if result.free.is_some() {
        table.row(["gaps left to the drive", &grouped(seen.gaps_left)]);
        table.row(["delays", &response(seen.delay_ns as f64)]);
        table.row(["lost buffer hits", &grouped(seen.lost_hits)]);
        table.row(["their time", &response(seen.lost_hit_ns as f64)]);
    }
    Some(table)
}

fn margins(result: &RunResult) -> Table {
    let mut table = Table::new("lllrrr");
    table.row(["learned margins", "seek", "cylinders", "margin", "movements", "of them late"]);
    for of in &result.margins {
        let cylinders = if of.cylinders_min == of.cylinders_max {
            of.cylinders_min.to_string()
        } else {
            format!("{} to {}", of.cylinders_min, of.cylinders_max)
        };
        let margin = short_time(of.margin_ns);
        let (movements, late) = (grouped(of.movements), grouped(of.late));
        let seek = of.direction.map_or("none".into(), |direction| direction.to_string());
        table.row([of.op.to_string(), seek, cylinders, margin, movements, late]);
    }
    table
}

fn free_work(result: &RunResult) -> impl Iterator<Item = String> {
    free_work_parts(result).into_iter().map(|part| {
        let mut table = Table::new("ll");
        for (what, value) in part.rows {
            table.row([what, &value]);
        }
        format!("{}\n{table}", part.title)
    })
}

/// Independent drives in the text.
const DRIVES_SHOWN: usize = 10;

/// Drives that worked longest; of equals the first.
fn drives(result: &RunResult) -> String {
    let all = &result.drives;
    let mut busiest: Vec<_> = all.iter().collect();
    busiest.sort_by(|a, b| b.busy_ns().total_cmp(&a.busy_ns()));
    busiest.truncate(DRIVES_SHOWN);
    let mut table = Table::new("lrrrrr");
    table.row(["drive", "requests", "mean, ms", "p99, ms", "utilisation", "elapsed, s"]);
    for drive in &busiest {
        let device = drive.device.map(|device| format!(" (device {device})"));
        table.row([
            format!("{}{}", drive.number, device.unwrap_or_default()),
            grouped(drive.requests),
            ms(drive.response_ns_mean),
            ms(drive.response_ns_p99 as f64),
            percent(drive.utilisation),
            seconds(drive.elapsed_ns as f64),
        ]);
    }
    format!("{} of {} independent drives, busiest first\n{table}", busiest.len(), all.len())
}
