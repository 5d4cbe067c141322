//! Parts of a sweep that other processes run, on this machine or on others.
//!
//! A chunk is a text: the experiments with every key, and hashes of the files that they read. Whoever runs it
//! reads those files from their paths, and refuses others.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use freewheel_sim::config::SimConfig;
use serde::{Deserialize, Serialize};

use super::error::SweepError;
use super::loads::SweepLoads;
use super::run::{Sweep, SweepProgressSink, VERSION, run_each};
use crate::journal;

/// Configurations for another process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepChunk {
    version: String,
    /// Hashes of the files' content.
    files: BTreeMap<PathBuf, String>,
    /// Numbers and experiments, as TOML.
    configurations: Vec<(usize, String)>,
}

impl Sweep {
    /// The configurations with these numbers. Relative paths count from `folder`.
    ///
    /// Errors: a file cannot be read.
    pub fn chunk(&self, numbers: &[usize], folder: &Path) -> Result<SweepChunk, SweepError> {
        let (mut files, mut configurations) = (BTreeMap::new(), Vec::new());
        for &number in numbers {
            let mut config = self.configs[number].clone();
            config.start_paths_at(folder);
            for file in config.files() {
                if let Entry::Vacant(place) = files.entry(file) {
                    let hash = self.loads.hash(place.key())?;
                    place.insert(hash);
                }
            }
            let text = toml::to_string(&config).map_err(SweepError::experiment)?;
            configurations.push((number, text));
        }
        Ok(SweepChunk { version: VERSION.to_owned(), files, configurations })
    }
}

impl SweepChunk {
    /// Runs the configurations one after the other, and gives their rows as a text for [`super::SweepRows`].
    ///
    /// Errors: another version of the program began the sweep, or a file is not the same here.
    pub fn run(
        &self,
        loads: &SweepLoads,
        progress: SweepProgressSink<'_>,
    ) -> Result<String, SweepError> {
        if self.version != VERSION {
            let (own, wanted) = (VERSION.to_owned(), self.version.clone());
            return Err(SweepError::OtherVersion { own, wanted });
        }
        for (file, hash) in &self.files {
            if loads.hash(file)? != *hash {
                return Err(SweepError::OtherFile { file: file.display().to_string() });
            }
        }
        let configs = self
            .configurations
            .iter()
            .map(|(number, text)| Ok((*number, SimConfig::parse(text, "the experiment", &[])?)));
        let configs = configs.collect::<Result<Vec<_>, SweepError>>()?;
        let (mut lines, total) = (String::new(), configs.len() as u64);
        let each = configs.iter().map(|(number, config)| (*number, config));
        run_each(each, loads, &|| progress(0, total), &mut |row| {
            lines.push_str(&journal::line(&row));
            Ok(())
        })?;
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TableError;

    /// Two policies on a drive file, in a folder of their own.
    fn sweep(folder: &Path) -> Sweep {
        let drive = freewheel_sim::library::text("atlas10k").unwrap();
        std::fs::write(folder.join("mine.toml"), &*drive).unwrap();
        let text = "drive = \"mine.toml\"\nworkload = { kind = \"closed\", requests = 300 }";
        std::fs::write(folder.join("experiment.toml"), text).unwrap();
        let keys = vec!["scheduler.policy=fcfs,sptf".parse().unwrap()];
        let path = folder.join("experiment.toml");
        Sweep::new(keys, |overrides| SimConfig::load(&path, overrides)).unwrap()
    }

    fn travelled(chunk: &SweepChunk) -> SweepChunk {
        toml::from_str(&toml::to_string(chunk).unwrap()).unwrap()
    }

    #[test]
    fn chunks_join_into_table_of_run() {
        let folder = tempfile::tempdir().unwrap();
        let sweep = sweep(folder.path());
        let outputs = ["here.parquet", "elsewhere.parquet"].map(|name| folder.path().join(name));
        sweep.run(Some(&outputs[0]), None, &|_, _| {}).unwrap();
        let mut rows = sweep.open(Some(&outputs[1])).unwrap();
        let worker = SweepLoads::default();
        for number in [1, 0] {
            assert!(rows.pending(sweep.len()).contains(&number));
            let chunk = travelled(&sweep.chunk(&[number], Path::new("/")).unwrap());
            let lines = chunk.run(&worker, &|_, _| {}).unwrap();
            // It may come twice.
            rows.keep(&lines).unwrap();
            rows.keep(&lines).unwrap();
        }
        assert!(matches!(rows.keep("0 1 2\n"), Err(TableError::Row)));
        sweep.finish(rows).unwrap();
        let [here, elsewhere] = outputs.map(|output| std::fs::read(output).unwrap());
        assert!(here == elsewhere);
    }

    #[test]
    fn chunks_refuse_other_version_or_file() {
        let folder = tempfile::tempdir().unwrap();
        let sweep = sweep(folder.path());
        let chunk = sweep.chunk(&[0], Path::new("/")).unwrap();
        let worker = SweepLoads::default();
        let other = SweepChunk { version: "0.0.1".into(), ..chunk.clone() };
        let error = other.run(&worker, &|_, _| {}).unwrap_err();
        assert!(matches!(error, SweepError::OtherVersion { .. }), "{error}");
        let drive = folder.path().join("mine.toml");
        let text = std::fs::read_to_string(&drive).unwrap();
        std::fs::write(&drive, text + "\n# another line\n").unwrap();
        let error = chunk.run(&worker, &|_, _| {}).unwrap_err();
        assert!(matches!(error, SweepError::OtherFile { .. }), "{error}");
        let error = sweep.finish(sweep.open(None).unwrap()).err().unwrap();
        assert!(matches!(error, SweepError::Table(TableError::Missing { missing: 2 })), "{error}");
    }
}
