//! Runs of all configurations, and what came out of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use freewheel_sim::config::{ConfigError, SimConfig};
use freewheel_sim::experiment::Experiment;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use twox_hash::XxHash3_128;

use super::error::SweepError;
use super::file;
use super::keys::{SweptKey, combination};
use super::loads::SweepLoads;
use super::rows::SweepRow;
use crate::journal::Rows;
use crate::table::{self, Column};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Most configurations: a day at ten a second.
const CONFIGURATIONS_MAX: u128 = 1_000_000;

/// Configurations that follow on each other and run on one thread, for they can share a drive. The last of
/// them should not keep the other threads waiting.
const CHUNK_MAX: usize = 32;
const CHUNKS_A_THREAD: usize = 8;

/// Most drives that are kept for those that follow.
const DRIVES_MAX: usize = 8;

/// Receives done and total, from any thread.
pub type SweepProgressSink<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// All configurations of a sweep, checked.
pub struct Sweep {
    keys: Vec<SweptKey>,
    pub(super) configs: Vec<SimConfig>,
    pub(super) loads: SweepLoads,
}

/// The result of a sweep.
pub struct SweepDone {
    /// Names of the columns with their values, in order: see the documentation of the file.
    pub columns: Vec<(String, Column)>,
    /// Columns of swept keys, behind that of the number.
    pub keys: usize,
    /// Rows, each of a configuration, in order.
    pub rows: Vec<SweepRow>,
    /// Configurations that an earlier run had done.
    pub resumed: usize,
}

impl Sweep {
    /// All combinations of the values of `keys`; `config` makes the experiment with overrides. The experiment's
    /// seed is that of every configuration, unless it is swept.
    ///
    /// Errors: the first configuration that is none, and what is wrong with it.
    pub fn new(
        keys: Vec<SweptKey>,
        config: impl Fn(&[String]) -> Result<SimConfig, ConfigError>,
    ) -> Result<Self, SweepError> {
        let count = keys.iter().map(|key| key.values.len() as u128).product::<u128>();
        if count > CONFIGURATIONS_MAX {
            return Err(SweepError::TooMany { count, most: CONFIGURATIONS_MAX });
        }
        let configs = (0..count as usize).map(|number| {
            let values = combination(&keys, number);
            let overrides = keys.iter().zip(values).map(|(key, value)| key.override_text(value));
            config(&overrides.collect::<Vec<_>>())
        });
        let configs = configs.collect::<Result<Vec<_>, _>>()?;
        // Those that follow on each other share the drive.
        let mut by_drive: Vec<&SimConfig> = configs.iter().collect();
        by_drive.sort_by(|a, b| a.drive.cmp(&b.drive));
        Experiment::check_each(by_drive.into_iter().cloned())?;
        let loads = SweepLoads::default();
        configs.iter().try_for_each(|config| loads.of(config).map(drop))?;
        Ok(Self { keys, configs, loads })
    }

    /// The number of configurations.
    pub fn len(&self) -> usize {
        self.configs.len()
    }

    /// Whether there is none; one key with one value makes one.
    pub fn is_empty(&self) -> bool {
        self.configs.is_empty()
    }

    /// Runs the configurations on `threads` threads, all cores if none are given, and writes the rows to `output`
    /// if one is given. Then rows that its journal has are taken from there.
    pub fn run(
        &self,
        output: Option<&Path>,
        threads: Option<usize>,
        progress: SweepProgressSink<'_>,
    ) -> Result<SweepDone, SweepError> {
        let rows = Mutex::new(self.open(output)?);
        match threads {
            Some(threads) => {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build();
                let pool =
                    pool.map_err(|error| SweepError::Threads { reason: error.to_string() })?;
                pool.install(|| self.run_pending(&rows, progress))?;
            }
            None => self.run_pending(&rows, progress)?,
        }
        self.finish(rows.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The rows of this sweep that `output` has already, and place for those that come from wherever they are run.
    pub fn open(&self, output: Option<&Path>) -> Result<SweepRows, SweepError> {
        // Nothing is hashed where no journal could be another's.
        let identity = output.map_or(Ok(0), |_| self.identity())?;
        Ok(Rows::open(output, identity)?)
    }

    /// Writes the table of all rows, which is whole only now, and removes the journal.
    ///
    /// Errors: rows are missing, or the table cannot be written.
    pub fn finish(&self, rows: SweepRows) -> Result<SweepDone, SweepError> {
        let columns = self.columns(&rows.whole(self.len())?);
        if let Some(output) = rows.output() {
            table::write(output, &columns, self.metadata()?)?;
        }
        let resumed = rows.resumed();
        Ok(SweepDone { columns, keys: self.keys.len(), rows: rows.end()?, resumed })
    }

    /// Runs what is not known yet on the threads of this pool.
    fn run_pending(
        &self,
        rows: &Mutex<SweepRows>,
        progress: SweepProgressSink<'_>,
    ) -> Result<(), SweepError> {
        let lock = || rows.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = lock().pending(self.len());
        let total = self.len() as u64;
        let chunk = pending.len() / (CHUNKS_A_THREAD * rayon::current_num_threads());
        let chunks = pending.par_chunks(chunk.clamp(1, CHUNK_MAX));
        chunks.try_for_each(|numbers| {
            let configs = numbers.iter().map(|&number| (number, &self.configs[number]));
            run_each(configs, &self.loads, &|| progress(lock().len() as u64, total), &mut |row| {
                let mut rows = lock();
                rows.keep_row(row)?;
                let done = rows.len() as u64;
                drop(rows);
                progress(done, total);
                Ok(())
            })
        })
    }

    fn columns(&self, rows: &[&SweepRow]) -> Vec<(String, Column)> {
        let numbers = 0..self.configs.len();
        let values: Vec<Vec<usize>> =
            numbers.map(|number| combination(&self.keys, number)).collect();
        let seeds: Vec<u64> = self.configs.iter().map(|config| config.seed).collect();
        file::columns(&self.keys, &values, &seeds, rows)
    }

    fn metadata(&self) -> Result<Vec<(&'static str, String)>, SweepError> {
        let over = self.keys.iter().map(|key| format!("{}={}\n", key.key, key.values.join(",")));
        let first = self.configs.first().map_or(Ok(String::new()), toml::to_string);
        let first = first.map_err(SweepError::experiment)?;
        Ok(vec![
            // Raised when a column changes its meaning or goes; a column that is added does not raise it.
            ("freewheel.sweep.schema_version", "1".to_owned()),
            ("freewheel.version", VERSION.to_owned()),
            ("freewheel.sweep.over", over.collect()),
            ("freewheel.sweep.first_config", first),
        ])
    }

    /// Everything that the rows depend on: version, configurations, and the content of all files.
    fn identity(&self) -> Result<u128, SweepError> {
        let files: BTreeSet<PathBuf> = self.configs.iter().flat_map(SimConfig::files).collect();
        let hashes = files.iter().map(|file| self.loads.hash(file));
        let hashes = hashes.collect::<Result<Vec<String>, _>>()?;
        let all = (VERSION, &self.keys, &self.configs, hashes);
        Ok(XxHash3_128::oneshot(format!("{all:?}").as_bytes()))
    }
}

/// Runs configurations one after the other, so that they share drives and what is known of traces. `goes_on` is
/// called now and then, and `keep` with each row.
pub(super) fn run_each<'a>(
    configs: impl Iterator<Item = (usize, &'a SimConfig)>,
    loads: &SweepLoads,
    goes_on: &(dyn Fn() + Sync),
    keep: &mut dyn FnMut(SweepRow) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    let mut before: Vec<Experiment> = Vec::new();
    for (number, config) in configs {
        let config = config.clone();
        let same_load = loads.of(&config)?;
        let experiment = match same_load
            .as_deref()
            .or_else(|| before.iter().find(|it| has_drive_of(&it.config, &config)))
        {
            Some(beside) => beside.beside(config)?,
            None => Experiment::new(config)?,
        };
        let result = experiment.new_run().with_progress(&mut |_, _| goes_on()).simulate()?;
        keep(SweepRow::new(number, &result))?;
        if before.len() < DRIVES_MAX
            && !before.iter().any(|it| has_drive_of(&it.config, &experiment.config))
        {
            before.push(experiment);
        }
    }
    Ok(())
}

/// Whether two configurations have the same drive, as far as is known before it is built.
fn has_drive_of(one: &SimConfig, other: &SimConfig) -> bool {
    one.drive == other.drive && one.scale == other.scale
}

/// The rows of a sweep that are known so far, in its journal too.
pub type SweepRows = Rows<SweepRow>;

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENT: &str = r#"
        drive = "atlas10k"
        workload = { kind = "closed", outstanding = 4, requests = 300 }
    "#;

    fn sweep(over: &[&str]) -> Sweep {
        let keys = over.iter().map(|text| text.parse().unwrap()).collect();
        Sweep::new(keys, |overrides| SimConfig::parse(EXPERIMENT, "test", overrides)).unwrap()
    }

    const OVER: [&str; 3] =
        ["drive=atlas10k,tr96", "scheduler.policy=fcfs,sptf", "workload.outstanding=1,4,16"];

    #[test]
    fn sweep_rows_match_single_configurations() {
        let done = sweep(&OVER).run(None, None, &|_, _| {}).unwrap();
        assert_eq!(done.rows.len(), 12);
        for (number, config) in sweep(&OVER).configs.into_iter().enumerate() {
            let alone = Experiment::new(config).unwrap().run().unwrap();
            assert_eq!(done.rows[number], SweepRow::new(number, &alone), "{number}");
        }
    }

    #[test]
    fn sweep_bytes_same_across_threads_and_kill() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for threads in [1, 3] {
            let output = folder.path().join(format!("{threads}.parquet"));
            let done = sweep(&OVER).run(Some(&output), Some(threads), &|_, _| {}).unwrap();
            assert_eq!(done.resumed, 0);
            files.push(std::fs::read(&output).unwrap());
        }
        // Killed after some configurations: the file is not there, and nothing runs again.
        let output = folder.path().join("killed.parquet");
        let (sweep, rows) = (sweep(&OVER), sweep(&OVER).run(None, None, &|_, _| {}).unwrap().rows);
        let mut known = sweep.open(Some(&output)).unwrap();
        rows[3..8].iter().for_each(|row| known.keep_row(row.clone()).unwrap());
        drop(known);
        assert!(!output.exists());
        let done = sweep.run(Some(&output), None, &|_, _| {}).unwrap();
        assert_eq!(done.resumed, 5);
        files.push(std::fs::read(&output).unwrap());
        assert!(files.iter().all(|file| *file == files[0]));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "no journal is left");
    }

    #[test]
    fn sweep_rejects_rows_of_other_drive() {
        let folder = tempfile::tempdir().unwrap();
        let (drive, output) = (folder.path().join("mine.toml"), folder.path().join("s.parquet"));
        let text = freewheel_sim::library::text("atlas10k").unwrap();
        std::fs::write(&drive, &*text).unwrap();
        let sweep = || {
            let key = format!("drive={}", drive.display()).parse().unwrap();
            Sweep::new(vec![key], |of| SimConfig::parse(EXPERIMENT, "test", of)).unwrap()
        };
        drop(sweep().open(Some(&output)).unwrap());
        assert!(sweep().open(Some(&output)).unwrap().is_empty());
        std::fs::write(&drive, format!("{text}\n# changed\n")).unwrap();
        let other = sweep().open(Some(&output)).err().unwrap();
        assert!(other.to_string().contains("belongs to another"), "{other}");
    }

    #[test]
    fn sweep_checks_configurations_before_running() {
        let keys = vec!["workload.outstanding=1,0".parse().unwrap()];
        let wrong = Sweep::new(keys, |of| SimConfig::parse(EXPERIMENT, "test", of));
        assert!(wrong.err().unwrap().to_string().contains("outstanding"));
    }
}
