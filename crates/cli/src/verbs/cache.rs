//! `freewheel cache`: how much memory a trace is worth, under which policy.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::caches::{
    CacheCurvesOptions, CacheProgress, CacheReport, CacheSize, ComparedPolicy, ObjectCurvesOptions,
    ObjectReport, ResponseRuns, Share, object_curves,
};
use freewheel::drives::DEFAULT_DRIVE;

use super::trace_args::{CacheDepth, TraceArgs};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::reading::READING;
use crate::standard_input::GivenTrace;
use crate::verbs::choice::{Choice, choice};
use crate::{file, output};

/// Say how much memory a trace is worth: misses by cache policy and size, and the responses with a drive behind
#[derive(Args)]
#[command(after_help = "\
Policies: lru, arc, lirs, 2q, s3-fifo, sieve, w-tinylfu, fifo, clock, lfu.
A bound:  belady (MIN), which knows the future: no policy misses fewer cache blocks.

Examples:
  freewheel cache pgbench.csv.zst
  freewheel cache usr_0.csv.gz --policy lru,sieve --size 64MiB --size 1% --drive atlas10k --scale
  freewheel cache long.oracleGeneral.zst --sample 1%
  freewheel cache objects.oracleGeneral.zst --by-object --policy lru,sieve,belady --size 1%")]
pub struct CacheArgs {
    #[command(flatten)]
    replayed: TraceArgs,
    /// Policies to compare, as lru,arc,belady; those up to w-tinylfu if none is given
    #[arg(long = "policy", value_name = "POLICY", value_delimiter = ',')]
    policies: Vec<ComparedPolicy>,
    /// A size of the cache, as 64MiB, or as 1% of the footprint: the distinct blocks of 4 KiB that the trace
    /// reads or writes. About ten from 1 MiB to the footprint if none is given
    #[arg(long = "size", value_name = "SIZE", value_delimiter = ',')]
    sizes: Vec<CacheSize>,
    /// Estimate miss ratios from this share of the cache blocks, for long traces; LRU then has its error
    #[arg(long, value_name = "SHARE")]
    sample: Option<Share>,
    /// Requests that fill the caches and are not counted, as a share of all, below 100% [default: 43%]
    #[arg(long, value_name = "SHARE", value_parser = super::share)]
    warm_up: Option<f64>,
    /// Policies that run with a drive, too
    #[arg(long, value_parser = choice(RUNS), default_value = "best")]
    response: ResponseRuns,
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file
    #[arg(long, value_name = "NAME", default_value = DEFAULT_DRIVE)]
    drive: String,
    #[command(flatten)]
    depth: CacheDepth,
    /// Folder for cache.html and cache.json [default: out/<name of the trace>, and after a `-` that of the
    /// drive if one is given]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON document instead of the table
    #[arg(long)]
    json: bool,
    /// Count whole objects of their own sizes, as libCacheSim does: every use, without times and a drive
    #[arg(long, conflicts_with_all = ["sample", "warm_up", "response", "drive", "cache_depth", "out"])]
    by_object: bool,
}

const RUNS: &[Choice<ResponseRuns>] = &[
    ("best", ResponseRuns::Best, "LRU, and the other policy that misses least"),
    ("all", ResponseRuns::All, "Every policy"),
    ("none", ResponseRuns::None, "None: miss ratios alone"),
];

impl CacheArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.replayed.check()?;
        if self.by_object {
            return self.print_objects();
        }
        let drives = [self.drive.clone()];
        let folder = self.out.clone().unwrap_or_else(|| self.replayed.default_folder(&drives));
        file::ensure_writable_folder(&folder)?;
        let trace = GivenTrace::new(&self.replayed.trace)?;
        let report = self.curves(trace.path()).map_err(|failure| trace.naming(failure))?;
        let (page, json) = (folder.join("cache.html"), output::json(&report)?);
        let files = [(page.as_path(), &*report.html()), (&folder.join("cache.json"), &*json)];
        file::in_new_folder(&folder, || file::write_together(&files))?;
        if self.json {
            output::print(&json)
        } else {
            output::print_prose(&format!("{}page: {}\n", report.text(), page.display()))
        }
    }

    fn print_objects(&self) -> Result<(), Failure> {
        let trace = GivenTrace::new(&self.replayed.trace)?;
        let report = self.objects(trace.path()).map_err(|failure| trace.naming(failure))?;
        if self.json {
            output::print(&output::json(&report)?)
        } else {
            output::print_prose(&report.text())
        }
    }

    fn objects(&self, trace: &Path) -> Result<ObjectReport, Failure> {
        let mut options = ObjectCurvesOptions::new(self.replayed.workload(trace));
        if !self.policies.is_empty() {
            options.policies = self.policies.clone();
        }
        options.sizes = self.sizes.clone();
        let bars = Bars::default();
        let report = object_curves(&options, &|progress| match progress {
            CacheProgress::Reading { done, total } => bars.set(READING, done, total),
            CacheProgress::Counting { done, total }
            | CacheProgress::Running { done, total, .. } => {
                bars.finish(READING);
                bars.set(COUNTING, done, total);
            }
        })?;
        Ok(report)
    }

    fn curves(&self, trace: &Path) -> Result<CacheReport, Failure> {
        let bars = Bars::default();
        let report = freewheel::cache_curves(&self.options(trace), &|progress| match progress {
            CacheProgress::Reading { done, total } => bars.set(READING, done, total),
            CacheProgress::Counting { done, total } => {
                bars.finish(READING);
                bars.set(COUNTING, done, total);
            }
            CacheProgress::Running { run, done, total } => {
                bars.finish(COUNTING);
                bars.set(run, done, total);
            }
        })?;
        Ok(report)
    }

    fn options(&self, trace: &Path) -> CacheCurvesOptions {
        let trace = self.replayed.workload(trace);
        let mut options = CacheCurvesOptions::new(trace, &self.drive);
        options.electronics = !self.replayed.no_electronics;
        if !self.policies.is_empty() {
            options.policies = self.policies.clone();
        }
        options.sizes = self.sizes.clone();
        options.sample = self.sample;
        options.warm_up = self.warm_up.unwrap_or(options.warm_up);
        options.cache_depth = self.depth.cache_depth;
        options.responses = self.response;
        options.seed = self.replayed.seed;
        options
    }
}

/// Name of the bar of the pass that feeds the caches.
const COUNTING: &str = "counting misses";
