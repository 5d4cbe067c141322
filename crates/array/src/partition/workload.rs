//! Dynamic partitioning (tr96 section 2.3): the statistics of all files, readjusted as files come and go.

use std::collections::BTreeMap;

use super::array_model::{ArrayModel, Load};
use super::stripes::{
    FileProfile, LoadLimit, Rules, Starts, Stripes, effective_parallelism, stripes,
};
use crate::placement::FileId;

/// Use of a file by its clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileActivity {
    /// lambda_i: requests a second.
    pub rate: f64,
    /// R_i: mean blocks of a request.
    pub request: f64,
}

/// Files of one type, whose activity is alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileType(pub u32);

/// A file to be partitioned.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct NewFile {
    pub file: FileId,
    pub file_type: FileType,
    /// L_i: its size in blocks.
    pub blocks: u64,
    /// Distribution of the first blocks of requests.
    pub starts: Starts,
    /// Use that an administrator expects; without it, files of the same type are sampled.
    pub hint: Option<FileActivity>,
}

/// Striping of a new file, and the evidence for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Partitioned {
    /// P_eff,i.
    pub parallelism: f64,
    /// SU_i and SW_i.
    pub stripes: Stripes,
    /// lambda_i and R_i as given or estimated.
    pub activity: FileActivity,
}

/// Reason why a file is not partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotPartitioned {
    /// No hint, and no file of its type to sample.
    UnknownActivity,
    /// The disks cannot serve all files together.
    Overload,
}

/// Activity of all files.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Workload {
    files: BTreeMap<FileId, Known>,
    all: Sums,
    of_type: BTreeMap<FileType, Sums>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Known {
    file_type: FileType,
    activity: FileActivity,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Sums {
    files: u64,
    rate: f64,
    /// Blocks a second.
    blocks_rate: f64,
}

impl Sums {
    fn add(&mut self, activity: &FileActivity) {
        self.files += 1;
        self.rate += activity.rate;
        self.blocks_rate += activity.rate * activity.request;
    }

    fn subtract(&mut self, activity: &FileActivity) {
        self.files -= 1;
        self.rate -= activity.rate;
        self.blocks_rate -= activity.rate * activity.request;
        if self.files == 0 {
            // Rounding errors of sums end with the last file.
            *self = Self::default();
        }
    }
}

impl Workload {
    /// Adds a file, or replaces what is known of it.
    pub fn set(&mut self, file: FileId, file_type: FileType, activity: FileActivity) {
        self.remove(file);
        self.files.insert(file, Known { file_type, activity });
        self.all.add(&activity);
        self.of_type.entry(file_type).or_default().add(&activity);
    }

    /// Leaves a file out, if it is known.
    pub fn remove(&mut self, file: FileId) {
        if let Some(known) = self.files.remove(&file) {
            self.all.subtract(&known.activity);
            let sums = self.of_type.get_mut(&known.file_type).expect("the type of a known file");
            sums.subtract(&known.activity);
        }
    }

    /// Known use of a file.
    pub fn activity(&self, file: FileId) -> Option<FileActivity> {
        self.files.get(&file).map(|known| known.activity)
    }

    /// Files with their activity, by number.
    pub fn files(&self) -> impl Iterator<Item = (FileId, FileActivity)> {
        self.files.iter().map(|(&file, known)| (file, known.activity))
    }

    /// lambda-bar and R-bar, each file weighted by its rate. None without requests.
    pub fn load(&self) -> Option<Load> {
        let request = self.all.blocks_rate / self.all.rate;
        (self.all.rate > 0.0).then_some(Load { rate: self.all.rate, request })
    }

    /// Mean activity of the files of a type. None without files of it that have requests.
    pub fn estimate(&self, file_type: FileType) -> Option<FileActivity> {
        let sums = self.of_type.get(&file_type).filter(|sums| sums.rate > 0.0)?;
        let rate = sums.rate / sums.files as f64;
        Some(FileActivity { rate, request: sums.blocks_rate / sums.rate })
    }

    /// Takes a new file into the statistics and partitions it by steps 1 to 4 of figure 2 under the load
    /// with it. A file that cannot be partitioned leaves the statistics as they were.
    pub fn partition(
        &mut self,
        new: &NewFile,
        array: &ArrayModel,
        rules: &Rules,
    ) -> Result<Partitioned, NotPartitioned> {
        let activity = new.hint.or_else(|| self.estimate(new.file_type));
        let activity = activity.ok_or(NotPartitioned::UnknownActivity)?;
        let before = self.files.get(&new.file).copied();
        self.set(new.file, new.file_type, activity);
        let limit = self.load().map(|load| LoadLimit::of(array, &load, rules));
        if limit == Some(None) {
            self.restore(new.file, before);
            return Err(NotPartitioned::Overload);
        }
        let limit = limit.flatten();
        let request = activity.request.clamp(1.0, new.blocks.max(1) as f64);
        let parallelism = effective_parallelism(array, request, limit.as_ref(), rules);
        let profile = FileProfile { blocks: new.blocks, request, starts: new.starts };
        let stripes = stripes(&profile, parallelism, array.disks);
        Ok(Partitioned { parallelism, stripes, activity })
    }

    fn restore(&mut self, file: FileId, known: Option<Known>) {
        self.remove(file);
        if let Some(known) = known {
            self.set(file, known.file_type, known.activity);
        }
    }
}
