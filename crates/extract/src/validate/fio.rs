//! A drive beside what fio measured of a real one: random reads and writes, by size and depth.
//!
//! Each job runs again in simulation, with fio's number of requests, over the whole drive. Where both
//! part says which part of a drive file to look at:
//!
//! ```text
//!   one read at a time   seeks and rotation     (mean), what the drive does by itself (99.9 %)
//!   many at a time       how much the queue reorders
//!   writes               the write cache
//! ```
//! Non-goals: sequential jobs, whose rates `drive show` has, and jobs on a part of the drive.

use freewheel_model::stats::Summary;
use freewheel_sim::config::{ConfigError, SimConfig};
use freewheel_sim::experiment::Experiment;
use serde::Serialize;
use serde_json::Value;

use super::ValidateError;

/// Times that fio measured, and times that the drive file predicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FioValidation {
    /// Name of the drive.
    pub drive: String,
    /// Path of fio's output.
    pub file: String,
    /// One for each job, reads and writes of it apart.
    pub rows: Vec<FioRow>,
    /// Jobs that are not compared, and why.
    pub left_out: Vec<String>,
    /// Keys of the drive file to look at; empty where both agree.
    pub advice: Vec<String>,
}

/// Requests of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FioRow {
    /// Name of the job.
    pub job: String,
    /// `read` or `write`.
    pub op: &'static str,
    /// Size of a request.
    pub bytes: u64,
    /// Requests outstanding at once.
    pub depth: u32,
    /// By fio.
    pub measured: FioFigures,
    /// In simulation.
    pub simulated: FioFigures,
}

/// Rate and times of requests.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct FioFigures {
    /// Requests a second.
    pub requests_per_second: f64,
    /// Mean time.
    pub mean_ms: f64,
    /// Median; None where fio does not list it, and so the others.
    pub p50_ms: Option<f64>,
    /// 99 % are no longer.
    pub p99_ms: Option<f64>,
    /// 99.9 % are no longer.
    pub p999_ms: Option<f64>,
}

/// True if a text is fio's output in JSON.
pub fn is_fio(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"fio version\"")
}

/// Most and fewest requests that a job is simulated with.
const REQUESTS: std::ops::RangeInclusive<u64> = 2_000..=100_000;

/// A job that can be compared.
struct Job {
    name: String,
    bytes: u64,
    depth: u32,
    read_share: f64,
    requests: u64,
    /// By operation, where there are any.
    measured: [Option<FioFigures>; 2],
}

/// Runs the jobs of fio's output, whose text is given, on a drive.
pub fn validate_fio(drive: &str, file: &str, text: &str) -> Result<FioValidation, ValidateError> {
    let json: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string(), file))?;
    let jobs =
        json["jobs"].as_array().ok_or_else(|| wrong("it has no list `jobs`".into(), file))?;
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for job in jobs {
        match Job::parse(job, &json["global options"]) {
            Ok(job) => rows.extend(job.rows(drive)?),
            Err(reason) => left_out.push(reason),
        }
    }
    if rows.is_empty() {
        let why = left_out.join("; ");
        return Err(wrong(
            format!("no job of it can be compared ({why}); `--rw=randread` can"),
            file,
        ));
    }
    let advice = advice(&rows);
    Ok(FioValidation { drive: drive.into(), file: file.into(), rows, left_out, advice })
}

fn wrong(reason: String, file: &str) -> ValidateError {
    ValidateError::Fio { file: file.into(), reason }
}

impl Job {
    /// Err says why it is left out.
    fn parse(job: &Value, global: &Value) -> Result<Self, String> {
        let name = job["jobname"].as_str().unwrap_or("without a name").to_owned();
        let rw = option("rw", job, global)
            .or(option("readwrite", job, global))
            .unwrap_or_else(|| "read".into());
        if !["randread", "randwrite", "randrw"].contains(&&*rw) {
            return Err(format!("{name}: `rw={rw}` is not random"));
        }
        let bs = option("bs", job, global)
            .or(option("blocksize", job, global))
            .unwrap_or_else(|| "4k".into());
        let bytes = size(&bs).filter(|bytes| *bytes > 0 && bytes.is_multiple_of(512));
        let bytes = bytes.ok_or_else(|| format!("{name}: `bs={bs}` is not one size"))?;
        let number = |key: &str| option(key, job, global).map_or(Ok(1), |text| text.parse::<u32>());
        let depth = number("iodepth").ok().zip(number("numjobs").ok());
        let depth = depth.and_then(|(depth, jobs)| depth.checked_mul(jobs)).filter(|at| *at > 0);
        let depth = depth.ok_or_else(|| format!("{name}: its depth is not a number"))?;
        let ops = [&job["read"], &job["write"]];
        let totals = ops.map(|op| op["total_ios"].as_u64().unwrap_or(0));
        let all = totals[0] + totals[1];
        if all == 0 {
            return Err(format!("{name}: it has no requests"));
        }
        let times =
            |at: usize| (totals[at] > 0).then(|| measured(ops[at]).ok_or_else(|| untimed(&name)));
        let measured = [times(0).transpose()?, times(1).transpose()?];
        let read_share = totals[0] as f64 / all as f64;
        let requests = all.clamp(*REQUESTS.start(), *REQUESTS.end());
        Ok(Self { name, bytes, depth, read_share, requests, measured })
    }

    fn rows(&self, drive: &str) -> Result<Vec<FioRow>, ConfigError> {
        let Self { bytes, depth, read_share, requests, .. } = self;
        let text = format!(
            "drive = {drive:?}\n[workload]\nkind = \"closed\"\nrequests = {requests}\noutstanding = {depth}\n\
             pattern = {{ read_share = {read_share}, size = \"{bytes}B\", align = \"{bytes}B\" }}\n"
        );
        let result = Experiment::new(SimConfig::parse(&text, "fio", &[])?)?.run()?;
        let seconds = result.elapsed_ns as f64 / 1e9;
        let ops = [("read", result.read_response), ("write", result.write_response)];
        let rows = ops.into_iter().zip(self.measured).filter_map(|((op, response), measured)| {
            let (job, bytes, depth) = (self.name.clone(), *bytes, *depth);
            Some(FioRow {
                job,
                op,
                bytes,
                depth,
                measured: measured?,
                simulated: simulated(&response, seconds),
            })
        });
        Ok(rows.collect())
    }
}

fn option(key: &str, job: &Value, global: &Value) -> Option<String> {
    let own = job["job options"][key].as_str();
    own.or(global[key].as_str()).map(str::to_owned)
}

fn untimed(name: &str) -> String {
    format!("{name}: it has no mean time, as with `--gtod_reduce=1`")
}

/// None without a mean time or a rate.
fn measured(op: &Value) -> Option<FioFigures> {
    let mut times = [&op["clat_ns"], &op["lat_ns"]].into_iter();
    let times = times.find(|times| times["mean"].as_f64().is_some_and(|mean| mean > 0.0))?;
    Some(FioFigures {
        requests_per_second: op["iops"].as_f64().filter(|rate| *rate > 0.0)?,
        mean_ms: times["mean"].as_f64()? / 1e6,
        p50_ms: percentile("50.000000", times),
        p99_ms: percentile("99.000000", times),
        p999_ms: percentile("99.900000", times),
    })
}

fn percentile(share: &str, times: &Value) -> Option<f64> {
    times["percentile"][share].as_f64().map(|ns| ns / 1e6)
}

fn simulated(response: &Summary, seconds: f64) -> FioFigures {
    FioFigures {
        requests_per_second: response.count as f64 / seconds.max(f64::MIN_POSITIVE),
        mean_ms: response.mean_ns / 1e6,
        p50_ms: ms(response.p50_ns),
        p99_ms: ms(response.p99_ns),
        p999_ms: ms(response.p999_ns),
    }
}

fn ms(ns: u64) -> Option<f64> {
    Some(ns as f64 / 1e6)
}

/// `4k`, `4KiB`, `4096` and the like. fio's units are of 1,024.
fn size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Mean times and rates that differ by no more count as equal; rates hang on more.
const NEAR: [f64; 2] = [0.05, 0.15];

fn is_off(simulated: f64, measured: f64, near: f64) -> bool {
    (simulated / measured - 1.0).abs() > near
}

/// Each row that is off has a sentence, by the part of the file that explains it best.
fn advice(rows: &[FioRow]) -> Vec<String> {
    let alone = rows.iter().find(|row| row.op == "read" && row.depth == 1);
    rows.iter()
        .flat_map(|row| match (row.op, row.depth) {
            ("write", _) => of_writes(row).into_iter().collect::<Vec<_>>(),
            (_, 1) => of_single_reads(row),
            _ => of_deep_reads(row, alone).into_iter().collect(),
        })
        .collect()
}

fn of_single_reads(row: &FioRow) -> Vec<String> {
    let FioRow { measured, simulated, .. } = row;
    let mut advice = Vec::new();
    if is_off(simulated.mean_ms, measured.mean_ms, NEAR[0]) {
        advice.push(format!(
            "One read at a time takes {:.1} ms on the drive and {:.1} ms by the file: look at `seek` and `rotation_period`, and whether fio read the whole drive.",
            measured.mean_ms, simulated.mean_ms
        ));
    }
    if let (Some(there), Some(here)) = (measured.p999_ms, simulated.p999_ms)
        && there > 2.0 * here
    {
        advice.push(format!(
            "One read in a thousand takes {there:.0} ms or more, and {here:.0} ms by the file: retries or the drive's own work, which no drive file has (`freewheel emulate --activity`)."
        ));
    }
    advice
}

/// Against one read at a time where that was measured too: a slower drive is not one that reorders less.
fn of_deep_reads(row: &FioRow, alone: Option<&FioRow>) -> Option<String> {
    let FioRow { depth, .. } = row;
    let [there, here] = [row.measured, row.simulated].map(|of| of.requests_per_second);
    let Some(alone) = alone else {
        return is_off(here, there, NEAR[1]).then(|| format!(
            "{depth} reads at once: {there:.0} a second on the drive, {here:.0} by the file: measure `--iodepth=1` too, which tells seeks from reordering."
        ));
    };
    let there = there / alone.measured.requests_per_second;
    let here = here / alone.simulated.requests_per_second;
    let (does, key) = if here > there {
        ("less", "`scheduler = { policy = \"fcfs\" }` is no reordering")
    } else {
        ("more", "`scheduler = { policy = \"sptf\" }` is most")
    };
    is_off(here, there, NEAR[1]).then(|| format!(
        "{depth} reads at once are {there:.1} times as many a second as one, and {here:.1} times by the file: the drive reorders {does} than `electronics.queue` says ({key})."
    ))
}

fn of_writes(row: &FioRow) -> Option<String> {
    let [there, here] = [row.measured, row.simulated].map(|of| of.requests_per_second);
    is_off(here, there, NEAR[1]).then(|| format!(
        "{} writes at once: {there:.0} a second on the drive, {here:.0} by the file: look at `electronics.buffer.write_cache` and `electronics.buffer.dirty`.",
        row.depth
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_fio() {
        let sizes = ["4k", "4KiB", "4096", "1m", "4k-8k", "x"].map(size);
        assert_eq!(sizes, [Some(4096), Some(4096), Some(4096), Some(1 << 20), None, None]);
    }
}
