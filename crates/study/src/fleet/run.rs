//! The study of every drive of a fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use freewheel_sim::config::{ConfigError, TraceWorkload};
use freewheel_sim::library;
use rayon::ThreadPoolBuilder;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use twox_hash::XxHash3_128;

use super::member::FleetMember;
use super::row::{FleetRow, PARTS};
use super::written::WrittenReports;
use crate::changes::Goal;
use crate::file_hash::FileHashes;
use crate::journal::{self, Rows};
use crate::options::StudyOptions;
use crate::study::study;
use crate::table::{self, Column, TableError};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Options of the study of each drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetOptions {
    /// How traces are replayed; its file is none.
    pub replay: TraceWorkload,
    /// True to estimate a scrub in the rotational gaps of each, which is most of the time.
    pub gaps: bool,
    /// True to try what would help.
    pub changes: bool,
    /// True for the second look at the first changes: on another drive, with other assumed values, from other
    /// starts.
    pub checks: bool,
    /// Goal by which changes are ranked.
    pub goal: Goal,
    /// Seed of every random stream.
    pub seed: u64,
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self {
            replay: TraceWorkload::default(),
            gaps: false,
            changes: true,
            checks: false,
            goal: Goal::default(),
            seed: 1,
        }
    }
}

/// Reasons why the study of a fleet fails as a whole.
#[derive(Debug, Error)]
pub enum FleetError {
    /// The table or its journal.
    #[error(transparent)]
    Table(#[from] TableError),
    /// No threads to run on.
    #[error("threads for the fleet: {reason}")]
    Threads {
        /// Reason that the system gives.
        reason: String,
    },
    /// A drive of the fleet does not exist, or cannot be built.
    #[error(transparent)]
    Drive(#[from] ConfigError),
    /// A file here is not the one that the study was begun with.
    #[error(
        "{file} on this worker is not the file that the study of the fleet was begun with: bring that file there"
    )]
    OtherFile {
        /// The file.
        file: String,
    },
    /// A process elsewhere has another version of the program.
    #[error(
        "this worker has Freewheel {own}, and the study of the fleet was begun by {wanted}: install that on the worker"
    )]
    OtherVersion {
        /// Version of this process.
        own: String,
        /// Version of the process that began it.
        wanted: String,
    },
}

/// Receives done and total, from any thread.
pub type FleetProgressSink<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// The rows of a fleet that are known so far, in its journal too.
pub type FleetRows = Rows<FleetRow>;

/// Drives with their traces, and how each is studied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// The file whose devices they are, and how it was read; None of a folder of traces.
    pub source: Option<(PathBuf, TraceWorkload)>,
    /// The drives.
    pub members: Vec<FleetMember>,
    /// Options of each study.
    pub options: FleetOptions,
}

/// The studies of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetDone {
    /// A row for each drive, in order.
    pub rows: Vec<FleetRow>,
    /// Drives that an earlier run had studied.
    pub resumed: usize,
}

impl FleetOptions {
    /// Options of the study of a drive of the fleet.
    pub fn study(&self, member: &FleetMember) -> StudyOptions {
        let trace = TraceWorkload { file: member.trace.clone(), ..self.replay.clone() };
        StudyOptions {
            policies: Vec::new(),
            gaps: self.gaps,
            changes: self.changes,
            checks: self.checks,
            goal: self.goal,
            seed: self.seed,
            ..StudyOptions::new(trace, &member.drive)
        }
    }
}

impl Fleet {
    /// The drives of `path` that [`super::members`] found.
    pub fn new(path: &Path, members: Vec<FleetMember>, options: FleetOptions) -> Self {
        if members.iter().all(|member| member.trace.starts_with(path)) {
            return Self { source: None, members, options };
        }
        // Devices were written as traces of our own, whatever the file was.
        let read = options.replay.clone();
        let TraceWorkload { replay, fit, coarse_times, .. } = options.replay;
        let replay = TraceWorkload { replay, fit, coarse_times, ..TraceWorkload::default() };
        let source = Some((path.to_owned(), read));
        Self { source, members, options: FleetOptions { replay, ..options } }
    }

    /// Err for a drive that does not exist, before any trace is read.
    pub fn check(&self) -> Result<(), FleetError> {
        let drives: BTreeSet<&str> = self.members.iter().map(|member| &*member.drive).collect();
        drives
            .into_iter()
            .try_for_each(|name| Ok(library::drive(name).map(drop).map_err(ConfigError::from)?))
    }

    /// Studies the drives on `threads` threads, each drive on one. `output` is the table that the rows are for: those
    /// that its journal has are taken from there, and each new one is kept there.
    pub fn run(
        &self,
        output: Option<&Path>,
        threads: usize,
        progress: FleetProgressSink<'_>,
    ) -> Result<FleetRows, FleetError> {
        let rows = self.open(output)?;
        let pending = rows.pending(self.members.len());
        let (rows, next) = (Mutex::new(rows), AtomicUsize::new(0));
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.max(1))
                .map(|_| {
                    scope.spawn(|| -> Result<(), FleetError> {
                        let alone = OneThread::new()?;
                        while let Some(&number) = pending.get(next.fetch_add(1, Ordering::Relaxed))
                        {
                            let lock = || rows.lock().unwrap_or_else(PoisonError::into_inner);
                            let total = self.members.len() as u64;
                            let row =
                                alone.row(self, number, &|| progress(lock().len() as u64, total));
                            let mut rows = lock();
                            rows.keep_row(row)?;
                            let done = rows.len() as u64;
                            drop(rows);
                            progress(done, total);
                        }
                        Ok(())
                    })
                })
                .collect();
            let ended = workers.into_iter().map(|worker| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            ended.collect::<Result<(), FleetError>>()
        })?;
        Ok(rows.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The rows of this fleet that are known already, and place for those that come from wherever drives are studied.
    ///
    /// Errors: a drive does not exist, or the journal is of another fleet.
    pub fn open(&self, output: Option<&Path>) -> Result<FleetRows, FleetError> {
        self.check()?;
        let identity = output.map_or(Ok(0), |_| self.identity())?;
        Ok(Rows::open(output, identity)?)
    }

    /// The reports of single drives beside `page` that an earlier run of this fleet has written, and place for others.
    ///
    /// Errors: a drive does not exist, or the journal beside the page is of another fleet.
    pub fn open_reports(&self, page: &Path) -> Result<WrittenReports, FleetError> {
        self.check()?;
        Ok(WrittenReports::open(page, self.identity()?)?)
    }

    /// The studies out of the rows.
    ///
    /// Errors: rows are missing.
    pub fn done(&self, rows: &FleetRows) -> Result<FleetDone, FleetError> {
        let whole = rows.whole(self.members.len())?;
        Ok(FleetDone { rows: whole.into_iter().cloned().collect(), resumed: rows.resumed() })
    }

    /// Writes the table of all rows, which is whole only now, and removes the journal.
    ///
    /// Errors: rows are missing, or the table cannot be written.
    pub fn finish(&self, rows: FleetRows) -> Result<(), FleetError> {
        let whole = rows.whole(self.members.len())?;
        if let Some(output) = rows.output() {
            // Raised when a column changes its meaning or goes; a column that is added does not raise it.
            let metadata = vec![
                ("freewheel.fleet.schema_version", "1".to_owned()),
                ("freewheel.version", VERSION.to_owned()),
            ];
            let columns = columns(whole.iter().copied(), self.options.checks);
            table::write(output, &columns, metadata)?;
        }
        rows.end()?;
        Ok(())
    }

    /// The drives with these numbers, for another process. Relative paths count from `folder`.
    pub fn chunk(&self, numbers: &[usize], folder: &Path) -> FleetChunk {
        let mut hashes = FileHashes::default();
        let (mut files, mut members) = (BTreeMap::new(), Vec::new());
        for &number in numbers {
            let member = &self.members[number];
            let trace = folder.join(&member.trace);
            let drive = library::from_folder(&member.drive, folder);
            // A trace that cannot be read here is none elsewhere either, and its row says so.
            for file in [Some(trace.clone()), library::file(&drive)].into_iter().flatten() {
                if let Ok((hash, _)) = hashes.hash(&file) {
                    files.insert(file, hash);
                }
            }
            members.push((number, FleetMember { trace, drive, ..member.clone() }));
        }
        let options = self.options.clone();
        FleetChunk { version: VERSION.to_owned(), files, members, options }
    }

    /// Everything that the rows depend on: version, drives, options, the content of drive files, and the traces'
    /// lengths and times.
    fn identity(&self) -> Result<u128, FleetError> {
        let stamp = |trace: &PathBuf| {
            let metadata = std::fs::metadata(trace).ok()?;
            Some((metadata.len(), metadata.modified().ok()?))
        };
        // Devices of a file are written anew by each call, so their times say nothing.
        let stamps: Vec<_> = match &self.source {
            Some((file, _)) => vec![stamp(file)],
            None => self.members.iter().map(|member| stamp(&member.trace)).collect(),
        };
        let mut hashes = FileHashes::default();
        let drives: BTreeSet<PathBuf> =
            self.members.iter().filter_map(|member| library::file(&member.drive)).collect();
        let drives = drives.iter().map(|file| Ok(hashes.hash(file)?.0));
        let drives = drives.collect::<Result<Vec<String>, TableError>>()?;
        let all = format!("{VERSION} {self:?} {stamps:?} {drives:?}");
        Ok(XxHash3_128::oneshot(all.as_bytes()))
    }
}

/// Drives of a fleet for another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetChunk {
    version: String,
    /// Hashes of the files' content.
    files: BTreeMap<PathBuf, String>,
    members: Vec<(usize, FleetMember)>,
    options: FleetOptions,
}

impl FleetChunk {
    /// Studies the drives one after the other, and gives their rows as a text for [`FleetRows`].
    ///
    /// Errors: another version of the program began the study, or a file is not the same here.
    pub fn run(&self, progress: FleetProgressSink<'_>) -> Result<String, FleetError> {
        if self.version != VERSION {
            let (own, wanted) = (VERSION.to_owned(), self.version.clone());
            return Err(FleetError::OtherVersion { own, wanted });
        }
        let mut hashes = FileHashes::default();
        for (file, hash) in &self.files {
            if hashes.hash(file)?.0 != *hash {
                return Err(FleetError::OtherFile { file: file.display().to_string() });
            }
        }
        let alone = OneThread::new()?;
        let (mut lines, total) = (String::new(), self.members.len() as u64);
        for (done, (number, member)) in self.members.iter().enumerate() {
            let row =
                alone.row_of(*number, member, &self.options, &|| progress(done as u64, total));
            lines.push_str(&journal::line(&row));
        }
        Ok(lines)
    }
}

/// A pool of one thread, on which every part of a study runs.
struct OneThread(rayon::ThreadPool);

impl OneThread {
    fn new() -> Result<Self, FleetError> {
        let pool = ThreadPoolBuilder::new().num_threads(1).build();
        pool.map(Self).map_err(|error| FleetError::Threads { reason: error.to_string() })
    }

    fn row(&self, fleet: &Fleet, number: usize, goes_on: &(dyn Fn() + Sync)) -> FleetRow {
        self.row_of(number, &fleet.members[number], &fleet.options, goes_on)
    }

    fn row_of(
        &self,
        number: usize,
        member: &FleetMember,
        options: &FleetOptions,
        goes_on: &(dyn Fn() + Sync),
    ) -> FleetRow {
        let options = options.study(member);
        let study = self.0.install(|| study(&options, &|_| goes_on()));
        FleetRow::of(number, member, study.as_ref().map_err(ToString::to_string))
    }
}

/// The columns of a fleet's table with their names, in order; those of the second look where changes had one. What a
/// drive without a study lacks is missing.
pub fn columns<'a>(
    rows: impl Iterator<Item = &'a FleetRow> + Clone,
    checks: bool,
) -> Vec<(String, Column)> {
    let texts = |of: fn(&FleetRow) -> String| Column::Text(rows.clone().map(of).collect());
    let numbers = || rows.clone().map(|row| row.numbers.as_ref());
    let whole = |of: &dyn Fn(&super::FleetNumbers) -> Option<u64>| {
        let values = numbers().map(|numbers| numbers.and_then(of));
        let values = values.map(|value| value.and_then(|value| i64::try_from(value).ok()));
        Column::OptionalWhole(values.collect())
    };
    let real = |of: &dyn Fn(&super::FleetNumbers) -> Option<f64>| {
        Column::OptionalReal(numbers().map(|numbers| numbers.and_then(of)).collect())
    };
    let text = |of: &dyn Fn(&super::FleetNumbers) -> Option<String>| {
        Column::OptionalText(numbers().map(|numbers| numbers.and_then(of)).collect())
    };
    let fault = rows.clone().map(|row| row.fault.clone()).collect();
    let overloaded = numbers().map(|numbers| numbers.map(|of| of.is_overloaded));
    let of_drive = vec![
        ("name", texts(|row| row.member.name.clone())),
        ("server", texts(|row| row.member.server.clone())),
        ("bay", texts(|row| row.member.bay.clone())),
        ("drive", texts(|row| row.member.drive.clone())),
        ("fault", Column::OptionalText(fault)),
        ("requests", whole(&|of| Some(of.requests))),
        ("read_share", real(&|of| Some(of.read_share))),
        ("span_ns", whole(&|of| Some(of.span_ns))),
        ("utilisation", real(&|of| Some(of.utilisation))),
        ("is_overloaded", Column::OptionalFlag(overloaded.collect())),
        ("response_ns_mean", real(&|of| Some(of.response_ns_mean))),
        ("response_ns_p99", whole(&|of| Some(of.response_ns_p99))),
        ("read_response_ns_p99", whole(&|of| reads(of).then_some(of.read_response_ns_p99))),
        ("recorded_response_ns_mean", real(&|of| of.recorded_response_ns_mean)),
        ("outstanding_max", whole(&|of| Some(of.outstanding_max))),
        ("advice", text(&|of| Some(of.advice.as_ref()?.title.clone()))),
        ("advice_cost_class", whole(&|of| Some(of.advice.as_ref()?.cost_class.into()))),
        ("advice_change", real(&|of| Some(of.advice.as_ref()?.goal))),
        ("advice_reads_p99_change", real(&|of| Some(of.advice.as_ref()?.reads_p99))),
        ("idle_scrub_seconds", real(&|of| of.idle_scrub?.seconds)),
        ("idle_scrub_pause_ns", whole(&|of| Some(of.idle_scrub?.pause_ns))),
        ("idle_scrub_mean_change", real(&|of| Some(of.idle_scrub?.mean))),
        ("idle_scrub_reads_p99_change", real(&|of| Some(of.idle_scrub?.reads_p99))),
        ("gap_scrub_seconds", real(&|of| of.gap_scrub?.seconds)),
        ("gap_scrub_read_share", real(&|of| Some(of.gap_scrub?.read_share))),
    ];
    let of_checks = vec![
        ("advice_checks", whole(&|of| Some(of.advice.as_ref()?.checks?.tried))),
        ("advice_check_best_change", real(&|of| Some(of.advice.as_ref()?.checks?.best))),
        ("advice_check_worst_change", real(&|of| Some(of.advice.as_ref()?.checks?.worst))),
        ("turned_advice", text(&|of| Some(of.turned.as_ref()?.title.clone()))),
        ("turned_advice_where", text(&|of| Some(of.turned.as_ref()?.circumstance.clone()))),
    ];
    let of_checks = of_checks.into_iter().filter(|_| checks);
    let mut all: Vec<(String, Column)> = of_drive
        .into_iter()
        .chain(of_checks)
        .map(|(name, column)| (name.to_owned(), column))
        .collect();
    for (part, name) in PARTS {
        let of_part = move |numbers: &super::FleetNumbers| {
            numbers.parts.iter().find(|of| of.part == part).map(|of| of.advice.clone())
        };
        all.push((name.to_owned(), text(&move |of| Some(of_part(of)?.title))));
        all.push((format!("{name}_change"), real(&move |of| Some(of_part(of)?.goal))));
    }
    all
}

fn reads(of: &super::FleetNumbers) -> bool {
    of.read_share > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/recorded/sqlite-ext4.csv.zst");

    /// The first requests of a recorded trace, and a file that is no trace.
    fn fleet(folder: &Path) -> Fleet {
        let options = freewheel_trace::OpenOptions::default();
        let reader = freewheel_trace::TraceReader::open(Path::new(TRACE), &options).unwrap();
        let records: Vec<freewheel_trace::TraceRow> =
            reader.take(3_000).map(|record| (&record.unwrap()).into()).collect();
        let mut members = Vec::new();
        for (name, from, to) in [("a-1", 0, 1_500), ("a-2", 1_500, 3_000)] {
            let path = folder.join(format!("{name}.csv"));
            let rows =
                records[from..to].iter().map(|row| Ok::<_, freewheel_trace::TraceError>(*row));
            freewheel_trace::write_rows(&path, rows).unwrap();
            members.push(path);
        }
        std::fs::write(folder.join("broken.csv"), "no trace at all\n").unwrap();
        let members = super::super::members(folder, &options, "atlas10k", folder, |_| {}).unwrap();
        let options = FleetOptions {
            replay: TraceWorkload {
                fit: freewheel_sim::source::Fit::Wrap,
                ..TraceWorkload::default()
            },
            ..FleetOptions::default()
        };
        Fleet::new(folder, members, options)
    }

    #[test]
    fn fleet_run_matches_own_studies() {
        let folder = tempfile::tempdir().unwrap();
        let fleet = fleet(folder.path());
        let outputs = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for threads in [1, 3] {
            let output = outputs.path().join(format!("{threads}.parquet"));
            let rows = fleet.run(Some(&output), threads, &|_, _| {}).unwrap();
            let done = fleet.done(&rows).unwrap();
            assert_eq!(done.resumed, 0);
            let faults: Vec<bool> = done.rows.iter().map(|row| row.fault.is_some()).collect();
            assert_eq!(faults, [false, false, true]);
            let tried = done.rows.iter().filter_map(|row| row.numbers.as_ref());
            assert!(tried.clone().all(|of| of.idle_scrub.is_some()));
            assert!(tried.clone().any(|of| of.advice.is_some() && !of.parts.is_empty()));
            assert!(!output.exists(), "the table is the last thing to appear");
            fleet.finish(rows).unwrap();
            files.push(std::fs::read(output).unwrap());
        }
        // Killed with one row, and gone on elsewhere.
        let output = outputs.path().join("resumed.parquet");
        let whole = fleet.done(&fleet.run(None, 2, &|_, _| {}).unwrap()).unwrap();
        let mut rows = fleet.open(Some(&output)).unwrap();
        rows.keep_row(whole.rows[1].clone()).unwrap();
        drop(rows);
        let mut rows = fleet.open(Some(&output)).unwrap();
        let chunk = fleet.chunk(&rows.pending(3), Path::new("/"));
        rows.keep(&chunk.run(&|_, _| {}).unwrap()).unwrap();
        let done = fleet.done(&rows).unwrap();
        assert_eq!((done.resumed, &done.rows), (1, &whole.rows));
        fleet.finish(rows).unwrap();
        files.push(std::fs::read(output).unwrap());
        assert!(files.iter().all(|file| *file == files[0]));
        for (row, member) in whole.rows.iter().zip(&fleet.members).take(2) {
            let study = study(&fleet.options.study(member), &|_| {}).unwrap();
            assert_eq!(*row, FleetRow::of(row.number, member, Ok(&study)));
        }
        let other = FleetChunk { version: "0.0.1".into(), ..chunk };
        assert!(matches!(other.run(&|_, _| {}), Err(FleetError::OtherVersion { .. })));
    }

    #[test]
    fn fleet_run_refuses_differing_rows() {
        let folder = tempfile::tempdir().unwrap();
        let mut fleet = fleet(folder.path());
        let outputs = tempfile::tempdir().unwrap();
        let drive = outputs.path().join("mine.toml");
        let text = library::text("atlas10k").unwrap();
        std::fs::write(&drive, &*text).unwrap();
        fleet.members[0].drive = drive.display().to_string();
        let output = outputs.path().join("fleet.parquet");
        drop(fleet.open(Some(&output)).unwrap());
        let chunk = fleet.chunk(&[0], Path::new("/"));
        std::fs::write(&drive, format!("{text}\n# changed\n")).unwrap();
        assert!(matches!(chunk.run(&|_, _| {}), Err(FleetError::OtherFile { .. })));
        let other = fleet.open(Some(&output)).err().unwrap();
        assert!(matches!(other, FleetError::Table(TableError::OtherJournal { .. })), "{other}");
        fleet.members[0].drive = "atlas11k".into();
        assert!(matches!(fleet.open(None), Err(FleetError::Drive(_))));
    }
}
