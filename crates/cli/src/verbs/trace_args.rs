//! Options of a trace that is replayed on a drive, as several verbs have them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::caches::CACHE_DEPTH;
use freewheel::drives::DEFAULT_DRIVE;
use freewheel::experiments::{CoarseTimes, Fit, ReplayMode, TraceWorkload};

use super::read_args::ReadArgs;
use crate::failure::Failure;
use crate::file;
use crate::standard_input;
use crate::verbs::choice::{Choice, choice};

/// A trace and how it is replayed.
#[derive(Args)]
pub struct TraceArgs {
    /// The trace, or - for standard input; .gz and .zst are read as they are
    pub trace: PathBuf,
    #[command(flatten)]
    replay: ReplayArgs,
    /// Only this device of the trace; all of them laid end to end if not given
    #[arg(long, value_name = "N", value_parser = super::device)]
    device: Option<u32>,
    /// Leave out the drive's buffer, command queue, overheads and bus
    #[arg(long)]
    pub no_electronics: bool,
    /// Seed of every random stream
    #[arg(long, default_value_t = 1, value_parser = super::seed)]
    pub seed: u64,
}

/// How traces are read and replayed.
#[derive(Args)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub read: ReadArgs,
    /// Treatment of requests whose clock has steps of 1 ms or more
    #[arg(long, value_parser = choice(COARSE_TIMES), default_value = "spread")]
    coarse_times: CoarseTimes,
    /// Fold addresses past the end of the drive back to its start
    #[arg(long, conflicts_with = "scale")]
    wrap: bool,
    /// Spread the trace's addresses over the whole drive, or squeeze them onto it
    #[arg(long)]
    scale: bool,
    /// Timing of arrivals
    #[arg(long, value_parser = choice(REPLAYS), default_value = "auto")]
    replay: ReplayMode,
}

impl ReplayArgs {
    /// The replay of a trace.
    pub fn workload(&self, file: PathBuf) -> TraceWorkload {
        self.read.apply(TraceWorkload {
            file,
            coarse_times: self.coarse_times,
            fit: self.fit(),
            replay: self.replay,
            ..TraceWorkload::default()
        })
    }

    fn fit(&self) -> Fit {
        match (self.wrap, self.scale) {
            (true, _) => Fit::Wrap,
            (_, true) => Fit::Scale,
            _ => Fit::AsIs,
        }
    }
}

/// Depth of a cache before the drive.
#[derive(Args)]
pub struct CacheDepth {
    /// Most requests in the storage system at once where a cache stands before the drive, 1 to 4096. Further
    /// ones wait before the cache, and hits among them too
    #[arg(long, value_name = "N", default_value_t = CACHE_DEPTH, value_parser = clap::value_parser!(u32).range(1..=i64::from(CACHE_DEPTH)))]
    pub cache_depth: u32,
}

const COARSE_TIMES: &[Choice<CoarseTimes>] = &[
    ("spread", CoarseTimes::Spread, "Spread evenly over the step, in order"),
    ("bunched", CoarseTimes::Bunched, "All of a step at its beginning, as the trace has them"),
];

const REPLAYS: &[Choice<ReplayMode>] = &[
    (
        "auto",
        ReplayMode::Auto,
        "Dependent where the trace records completions of more than 99 % of its requests, else by arrival",
    ),
    ("arrivals", ReplayMode::Arrivals, "At the traced times"),
    ("dependent", ReplayMode::Dependent, "A think time after the request each one waited for"),
];

impl TraceArgs {
    /// Err for a path that cannot be written into results, or a file that cannot be read twice.
    pub fn check(&self) -> Result<(), Failure> {
        file::ensure_utf_8(&self.trace)?;
        file::check_rereadable(&self.trace).map_err(Failure::failed)
    }

    /// The replay of the trace at `path`, where standard input may have been copied to.
    pub fn workload(&self, path: &Path) -> TraceWorkload {
        let shown_as = Some(standard_input::path_for_results(&self.trace));
        let workload = self.replay.workload(path.to_owned());
        TraceWorkload { device: self.device, shown_as, ..workload }
    }

    /// The first option that was given and that only a trace takes.
    pub fn for_traces_alone(&self) -> Option<&'static str> {
        let given = [
            ("--coarse-times", self.replay.coarse_times == CoarseTimes::Bunched),
            ("--device", self.device.is_some()),
            ("--wrap", self.replay.wrap),
            ("--scale", self.replay.scale),
            ("--no-electronics", self.no_electronics),
            ("--replay", self.replay.replay != ReplayMode::Auto),
        ];
        let all = self.replay.read.given().into_iter().chain(given);
        all.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// `out/pgbench` for `data/pgbench.csv.zst` on the usual drive, `out/pgbench-mine` on `./mine.toml`.
    pub fn default_folder(&self, drives: &[String]) -> PathBuf {
        default_folder(&self.trace, drives)
    }
}

/// The folder for results about a file on some drives.
pub fn default_folder(trace: &Path, drives: &[String]) -> PathBuf {
    let trace = &standard_input::path_for_results(trace);
    let compression = trace.extension().and_then(OsStr::to_str);
    let is_compressed = matches!(compression, Some("gz" | "zst"));
    let plain = if is_compressed { trace.with_extension("") } else { trace.clone() };
    let mut name = plain.file_stem().unwrap_or(OsStr::new("study")).to_owned();
    if drives != [DEFAULT_DRIVE] {
        for drive in drives {
            name.push("-");
            name.push(Path::new(drive).file_stem().unwrap_or(OsStr::new("drive")));
        }
    }
    Path::new("out").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(trace: &str, drives: &[&str]) -> PathBuf {
        let drives: Vec<String> = drives.iter().map(|&drive| drive.into()).collect();
        default_folder(Path::new(trace), &drives)
    }

    #[test]
    fn study_folder_named_after_trace() {
        let folder = |trace| folder(trace, &[DEFAULT_DRIVE]);
        assert_eq!(folder("data/pgbench-ext4.csv.zst"), Path::new("out/pgbench-ext4"));
        assert_eq!(folder("usr.0.parquet"), Path::new("out/usr.0"));
        assert_eq!(folder("cello"), Path::new("out/cello"));
        assert_eq!(folder("-"), Path::new("out/stdin"));
    }

    #[test]
    fn study_folders_differ_by_drive() {
        assert_eq!(folder("usr.csv", &["atlas10k"]), Path::new("out/usr-atlas10k"));
        assert_eq!(folder("usr.csv", &["./drives/mine.toml"]), Path::new("out/usr-mine"));
        let both = folder("usr.csv", &["atlas10k", "./drives/mine.toml"]);
        assert_eq!(both, Path::new("out/usr-atlas10k-mine"));
    }
}
