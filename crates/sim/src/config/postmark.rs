//! PostMark on a log-structured disk as the workload of an experiment (osdi00 section 5).

use freewheel_freeblock::{Options, Rule};
use freewheel_model::log_disk::{Cleaner, LogDiskSpec};
use freewheel_units::{Blocks, Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::postmark::{
    CpuTimes, FreeReads, MetadataWrites, PostmarkProcess, PostmarkSpec, file_blocks, files_for,
    used_blocks,
};

/// PostMark (Katcher 1997) on a file system for small files on a log-structured disk. The log is the
/// first 400 MiB of the drive, in segments of 512 KiB. One process computes, and waits for every
/// request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PostmarkWorkload {
    /// Share of the log's blocks in use over the last pass; the number of files follows from it.
    /// Default 0.6 without `files`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
    /// Files before the first transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u32>,
    /// Number of directories with files.
    pub subdirectories: u32,
    /// Smallest size of a file.
    pub size_min: Bytes,
    /// Largest size of a file: creations draw below it, appends grow up to it.
    pub size_max: Bytes,
    /// Transactions of a pass.
    pub transactions: u32,
    /// Number of passes. The last one counts, as the log is not in steady state before.
    pub passes: u32,
    /// Cleaner of the log's segments.
    pub cleaner: PostmarkCleaner,
    /// Time at which changed inodes and directories go to the log.
    pub metadata: MetadataWrites,
}

/// Cleaner of the log's segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PostmarkCleaner {
    /// The process cleans when hardly a segment is free.
    #[default]
    Original,
    /// Freeblock reads in the gaps of the process's requests; the process cleans when they do not keep
    /// up.
    Freeblock,
    /// `original`, minus the time of its cleaning, as in osdi00. Requests, response times and hash are
    /// those of the `original` run.
    Ideal,
}

impl Default for PostmarkWorkload {
    /// Values of osdi00 section 5.2.
    fn default() -> Self {
        let spec = PostmarkSpec::osdi00(0);
        Self {
            utilisation: None,
            files: None,
            subdirectories: spec.subdirectories,
            size_min: Bytes::new(spec.size_min.into()),
            size_max: Bytes::new(spec.size_max.into()),
            transactions: spec.transactions,
            passes: 2,
            cleaner: PostmarkCleaner::default(),
            metadata: MetadataWrites::default(),
        }
    }
}

/// Assumed: between the two values with numbers in osdi00.
const UTILISATION: f64 = 0.6;

/// Largest utilisation, also for a given number of `files`: that of osdi00's fullest log. Cleaning
/// needs the rest.
const UTILISATION_MAX: f64 = 0.93;
const USED_MAX: f64 = 0.94;

/// Largest deviation from the wanted utilisation, unless one file makes a greater difference.
const OFF_MAX: f64 = 0.001;

/// The largest file of the small-file layer: it has no indirect blocks.
const SIZE_MAX: Bytes = Bytes::new(28 << 10);

/// Mean number of files in a directory. So few that the largest directory needs no indirect blocks for
/// its entries, of which it has room for 1792.
const FILES_A_DIRECTORY: u32 = 1000;
const SUBDIRECTORIES_MAX: u32 = 1700;

const TRANSACTIONS_MAX: u32 = 1_000_000;
const PASSES_MAX: u32 = 100;

/// Checks that a value is from 1 to `most`.
fn within(key: &str, value: u32, most: u32) -> Result<(), String> {
    match value {
        0 => Err(format!("`{key}` is 0: at least 1 is needed")),
        _ if value > most => Err(format!("`{key}` is {value}: at most {most} is allowed")),
        _ => Ok(()),
    }
}

impl PostmarkWorkload {
    /// PostMark's parameters on a drive of this capacity, with the number of files; Err for keys that
    /// do not fit.
    pub(crate) fn spec(&self, capacity: Blocks, seed: u64) -> Result<PostmarkSpec, String> {
        let Self { files, subdirectories, size_min, size_max, .. } = *self;
        self.check_keys()?;
        let disk = LogDiskSpec::OSDI00;
        let log = Blocks::new(u64::from(disk.segments * disk.segment_blocks) * disk.block.get());
        if capacity < log {
            return Err(format!(
                "`kind` is postmark: its log takes {}, and the drive has {}; take a larger one",
                log.bytes(),
                capacity.bytes()
            ));
        }
        let files_max = subdirectories * FILES_A_DIRECTORY;
        if let Some(files) = files {
            within("files", files, files_max.min(disk.capacity_blocks()))?;
        }
        let mut spec = PostmarkSpec {
            subdirectories,
            size_min: size_min.get() as u32,
            size_max: size_max.get() as u32,
            transactions: self.transactions,
            ..PostmarkSpec::osdi00(0)
        };
        let files = files.unwrap_or_else(|| files_for(spec, self.share(), self.passes, seed));
        if files > files_max {
            return Err(format!(
                "`subdirectories` is {subdirectories}: {files} files are too many for them; {FILES_A_DIRECTORY} each are allowed"
            ));
        }
        spec.files = files;
        let used = used_blocks(spec, self.passes, seed);
        let used = used / f64::from(disk.capacity_blocks());
        let off = (used - self.share()).abs();
        let off_max = OFF_MAX.max(file_blocks(&spec) / f64::from(disk.capacity_blocks()));
        if self.files.is_none() && off > off_max {
            return Err(format!(
                "`utilisation` is {}: the nearest found is {used:.4}, with {files} files; ask for that, for a number of `files`, or for fewer `transactions` or `subdirectories`",
                self.share()
            ));
        }
        if used > USED_MAX {
            return Err(format!(
                "`files` is {files}: they take {:.0} % of the log, and {:.0} % is the most with which cleaning comes to its end",
                100.0 * used,
                100.0 * USED_MAX
            ));
        }
        Ok(spec)
    }

    /// Checks the keys that do not depend on the drive.
    fn check_keys(&self) -> Result<(), String> {
        let Self { utilisation, files, subdirectories, size_min, size_max, .. } = *self;
        within("subdirectories", subdirectories, SUBDIRECTORIES_MAX)?;
        within("transactions", self.transactions, TRANSACTIONS_MAX)?;
        within("passes", self.passes, PASSES_MAX)?;
        if size_min == Bytes::ZERO || size_min >= size_max || size_max > SIZE_MAX {
            return Err(format!(
                "`size_min` is {size_min} and `size_max` {size_max}: a file has a byte at least, {SIZE_MAX} at most, and the one must be less than the other"
            ));
        }
        if utilisation.is_some() && files.is_some() {
            return Err(
                "`utilisation` and `files`: one follows from the other; leave one out".into()
            );
        }
        if let Some(utilisation) = utilisation
            && !(0.01..=UTILISATION_MAX).contains(&utilisation)
        {
            return Err(format!(
                "`utilisation` is {utilisation}: from 0.01 to {UTILISATION_MAX} is allowed, for cleaning needs room"
            ));
        }
        Ok(())
    }

    /// Wanted utilisation, where `files` is absent.
    fn share(&self) -> f64 {
        self.utilisation.unwrap_or(UTILISATION)
    }

    /// The process for the parameters of [`Self::spec`].
    pub(crate) fn process<F: FreeReads>(
        &self,
        spec: PostmarkSpec,
        free_reads: F,
        seed: u64,
    ) -> PostmarkProcess<F> {
        let cleaner = match self.cleaner {
            PostmarkCleaner::Freeblock => Cleaner::OSDI00_FREEBLOCK,
            PostmarkCleaner::Original | PostmarkCleaner::Ideal => Cleaner::Foreground,
        };
        let disk = LogDiskSpec { cleaner, ..LogDiskSpec::OSDI00 };
        let (metadata, passes) = (self.metadata, self.passes);
        PostmarkProcess::new(spec, disk, metadata, CpuTimes::OSDI00, passes, free_reads, seed)
    }
}

/// Options of the planner for the freeblock cleaner: the paper's rule.
pub(crate) fn cleaning_options() -> Options {
    Options { rule: Rule::Greedy, region_weights: false, ..Options::default() }
}
