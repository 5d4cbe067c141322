//! A copy of a drive in a file, as of one moment: it can go on after it was cut off, and is read back
//! before it takes its name.
//!
//! While it is made there are `OUT.partial`, which has the blocks at their places, and
//! `OUT.partial.manifest`, which says of which regions all blocks are in it, on the disk. With the
//! last block, `OUT.partial` is read back and held against the checksums of what came from the
//! server; then both take their names, `OUT` and `OUT.manifest`.
//!
//! One that goes on keeps the complete regions in which no client has written since it began, and
//! reads all others again: it is then a copy as of the moment at which it went on. That the server
//! knows what was written, it must be the same one. Blocks come in any order, so while they are much
//! smaller than a region few regions are complete before the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use freewheel_units::BLOCK_BYTES;
use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

use super::manifest::{Manifest, ManifestError, REGION_BLOCKS};
use crate::control::{BlockRange, Record, TaskKind, TaskRequest};

/// Bytes between two times that what is there is put on record, at least.
const RECORD_EVERY: u64 = 1 << 30;

/// And at least such a part of the whole: the record of a large drive is large itself.
const RECORD_PART: u64 = 1024;

/// Why there is no copy.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The system refuses.
    #[error("{}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is one.
    #[error("{}: is there already: choose another name, or remove it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another process makes it.
    #[error("{}: another backup writes it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The record of what is there is none.
    #[error("{}: {source}: remove it and begin anew", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ManifestError,
    },
    /// What was written is not what came.
    #[error(
        "{}: {count} ranges read back differ from what was written, the first from block {} on: the \
         disk that it is on is not to be trusted",
        path.display(), first.first_block
    )]
    Differs {
        /// The file.
        path: PathBuf,
        /// The first range.
        first: BlockRange,
        /// How many.
        count: usize,
    },
    /// Blocks have not come.
    #[error("{missing} blocks have not come: {} is not complete", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// How many blocks.
        missing: u64,
    },
}

/// A copy that is being made.
pub struct Backup {
    out: PathBuf,
    file: File,
    manifest: Manifest,
    /// Blocks of regions that are kept from before.
    kept: Vec<BlockRange>,
    since_ns: u64,
    /// Nothing was ever written to the file: what is not written is zeros.
    is_fresh: bool,
    unrecorded: u64,
}

impl Backup {
    /// Begins a copy of `range` at `out`, or goes on with one. `now_ns` is the server's time.
    pub fn open(
        out: &Path,
        drive: &str,
        range: BlockRange,
        (instance, now_ns): (&str, u64),
    ) -> Result<Self, BackupError> {
        if out.exists() {
            return Err(BackupError::Exists { path: out.into() });
        }
        let path = partial(out);
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|source| BackupError::System { path: path.clone(), source })?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| BackupError::InUse { path: path.clone() })?;
        let fresh = Manifest::new(drive, range, instance, now_ns);
        let mut backup = Self {
            out: out.into(),
            file,
            manifest: fresh,
            kept: Vec::new(),
            since_ns: 0,
            is_fresh: true,
            unrecorded: 0,
        };
        backup.go_on()?;
        if backup.kept.is_empty() {
            backup.at_file(backup.file.set_len(0))?;
            backup.at_file(backup.file.set_len(range.blocks * BLOCK_BYTES))?;
        }
        Ok(backup)
    }

    fn at_file<T>(&self, result: io::Result<T>) -> Result<T, BackupError> {
        result.map_err(|source| BackupError::System { path: partial(&self.out), source })
    }

    /// Takes over what was recorded, if it is of the same drive by the same server and is still in
    /// the file.
    fn go_on(&mut self) -> Result<(), BackupError> {
        let path = record(&self.out);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read.map_err(|source| BackupError::System { path: path.clone(), source })?,
        };
        let old = Manifest::parse(&text);
        let mut old = old.map_err(|source| BackupError::Manifest { path: path.clone(), source })?;
        let is_same = old.instance == self.manifest.instance
            && (&old.drive, old.range) == (&self.manifest.drive, self.manifest.range);
        let length = self.at_file(self.file.metadata())?.len();
        if !is_same || length != old.range.blocks * BLOCK_BYTES {
            return Ok(());
        }
        old.keep_complete();
        let there = self.read_back_but(&old.complete(), &[])?;
        for range in differing(&there, &old, &self.out)? {
            let end = range.first_block + range.blocks;
            (range.first_block..end).step_by(REGION_BLOCKS as usize).for_each(|at| old.forget(at));
        }
        let end = old.range.first_block + old.range.blocks;
        if old.blocks() == old.range.blocks {
            // A task has something to read, and its server then says what has been written.
            old.forget(end - 1);
        }
        self.kept = old.complete();
        self.since_ns = old.written_since_ns();
        self.is_fresh = self.kept.is_empty();
        old.began_ns = self.manifest.began_ns;
        self.manifest = old;
        Ok(())
    }

    /// Blocks that are there from before, unless clients have written there since.
    pub fn kept(&self) -> u64 {
        self.kept.iter().map(|range| range.blocks).sum()
    }

    /// What a server is to be asked for.
    pub fn request(&self, request: &TaskRequest) -> TaskRequest {
        let BlockRange { first_block, blocks } = self.manifest.range;
        TaskRequest {
            kind: TaskKind::Backup,
            first_block,
            blocks: Some(blocks),
            skip: self.kept.clone(),
            skip_since_ns: self.since_ns,
            stream: true,
            ..request.clone()
        }
    }

    /// Leaves nothing behind of a copy that has not begun.
    pub fn discard(self) {
        if self.is_fresh && self.unrecorded == 0 {
            // What cannot be removed is empty.
            let _ = fs::remove_file(partial(&self.out));
        }
    }

    /// Takes a record of the task's data.
    pub fn take(&mut self, record: &Record) -> Result<(), BackupError> {
        if let Record::Data { first_block, data, .. } = record {
            self.renew(*first_block, data.len() as u64 / BLOCK_BYTES);
            let at = (first_block - self.manifest.range.first_block) * BLOCK_BYTES;
            if !(self.is_fresh && data.iter().all(|&byte| byte == 0)) {
                self.at_file(self.file.write_all_at(data, at))?;
            }
            self.unrecorded += data.len() as u64;
        }
        self.manifest.take(record);
        let whole = self.manifest.range.blocks * BLOCK_BYTES;
        if self.unrecorded >= RECORD_EVERY.max(whole / RECORD_PART) {
            self.put_on_record()?;
        }
        Ok(())
    }

    /// Blocks of regions that were kept have come: they were written since, and come as a whole.
    fn renew(&mut self, first_block: u64, blocks: u64) {
        let first_region = first_block / REGION_BLOCKS;
        let last_region = (first_block + blocks - 1) / REGION_BLOCKS;
        for region in first_region..=last_region {
            let block = (region * REGION_BLOCKS).max(self.manifest.range.first_block);
            let held = self.kept.iter().position(|range| {
                (range.first_block..range.first_block + range.blocks).contains(&block)
            });
            let Some(at) = held else { continue };
            let range = self.kept.remove(at);
            self.manifest.forget(block);
            let end = ((region + 1) * REGION_BLOCKS).min(range.first_block + range.blocks);
            let (before, after) =
                (block - range.first_block, range.first_block + range.blocks - end);
            if after > 0 {
                self.kept.insert(at, BlockRange { first_block: end, blocks: after });
            }
            if before > 0 {
                self.kept.insert(at, BlockRange { blocks: before, ..range });
            }
        }
    }

    /// Puts what is there on record, for one that goes on.
    pub fn put_on_record(&mut self) -> Result<(), BackupError> {
        self.at_file(self.file.sync_data())?;
        self.unrecorded = 0;
        replace(&record(&self.out), &self.manifest.text())
    }

    /// Reads the copy back and gives it its name. What could not be read is zeros in it.
    pub fn finish(self) -> Result<Manifest, BackupError> {
        let blocks = self.manifest.range.blocks;
        let unreadable: u64 = self.manifest.unreadable.iter().map(|range| range.blocks).sum();
        let there = self.manifest.blocks();
        if there + unreadable != blocks {
            let (path, missing) = (partial(&self.out), blocks - there - unreadable);
            return Err(BackupError::Missing { path, missing });
        }
        self.at_file(self.file.sync_data())?;
        let whole = [self.manifest.range];
        let read = self.read_back_but(&whole, &self.manifest.unreadable)?;
        let differing = differing(&read, &self.manifest, &self.out)?;
        if let [first, ..] = differing[..] {
            let count = differing.len();
            return Err(BackupError::Differs { path: partial(&self.out), first, count });
        }
        let manifest = manifest_of(&self.out);
        replace(&manifest, &self.manifest.text())?;
        self.at_file(fs::rename(partial(&self.out), &self.out))?;
        // It may never have been written.
        let _ = fs::remove_file(record(&self.out));
        Ok(self.manifest)
    }

    /// Checksums of what is in the file at these places, but for those.
    fn read_back_but(
        &self,
        ranges: &[BlockRange],
        but_for: &[BlockRange],
    ) -> Result<Manifest, BackupError> {
        let Manifest { drive, range, instance, began_ns, .. } = &self.manifest;
        let mut read = Manifest::new(drive, *range, instance, *began_ns);
        read.unreadable = but_for.to_vec();
        for stretch in without(ranges, but_for) {
            let end = stretch.first_block + stretch.blocks;
            let mut at = stretch.first_block;
            while at < end {
                let blocks = REGION_BLOCKS.min(end - at);
                let mut data = vec![0; (blocks * BLOCK_BYTES) as usize];
                let place = (at - range.first_block) * BLOCK_BYTES;
                self.at_file(self.file.read_exact_at(&mut data, place))?;
                read.add(at, &data);
                at += blocks;
            }
        }
        Ok(read)
    }
}

/// What `gone` leaves of `ranges`; both in ascending order and apart from each other.
fn without(ranges: &[BlockRange], gone: &[BlockRange]) -> Vec<BlockRange> {
    let mut left = Vec::new();
    for range in ranges {
        let (mut at, end) = (range.first_block, range.first_block + range.blocks);
        for hole in gone {
            let (from, to) = (hole.first_block.clamp(at, end), hole.first_block + hole.blocks);
            if from > at {
                left.push(BlockRange { first_block: at, blocks: from - at });
            }
            at = at.max(to.min(end));
        }
        if at < end {
            left.push(BlockRange { first_block: at, blocks: end - at });
        }
    }
    left
}

/// Where what is in the file is other than on record; of what is not complete there is no record.
fn differing(
    read: &Manifest,
    on_record: &Manifest,
    out: &Path,
) -> Result<Vec<BlockRange>, BackupError> {
    let differs = read.differs(on_record);
    differs.map_err(|source| BackupError::Manifest { path: record(out), source })
}

fn with(out: &Path, ending: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn partial(out: &Path) -> PathBuf {
    with(out, ".partial")
}

fn record(out: &Path) -> PathBuf {
    with(out, ".partial.manifest")
}

fn manifest_of(out: &Path) -> PathBuf {
    with(out, ".manifest")
}

/// Writes a file anew, as a whole or not at all.
fn replace(path: &Path, text: &str) -> Result<(), BackupError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = || {
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map(drop).map_err(|error| error.error)
    };
    written().map_err(|source| BackupError::System { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: BlockRange = BlockRange { first_block: 2048, blocks: 5000 };

    fn data(first_block: u64, blocks: u64, salt: u8) -> Record {
        let bytes = (first_block..first_block + blocks).flat_map(|b| [b as u8 ^ salt; 512]);
        Record::Data { first_block, at_ns: 0, data: bytes.collect() }
    }

    fn request() -> TaskRequest {
        TaskRequest::new(TaskKind::Backup)
    }

    fn open(out: &Path, instance: &str) -> Result<Backup, BackupError> {
        Backup::open(out, "atlas10k", RANGE, (instance, 3_000_000_000))
    }

    #[test]
    fn a_copy_takes_its_name_when_it_is_complete_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut backup = open(&out, "1").unwrap();
        assert!(matches!(open(&out, "1"), Err(BackupError::InUse { .. })));
        backup.take(&data(4096, 2952, 0)).unwrap();
        backup.take(&data(2048, 2000, 0)).unwrap();
        backup.take(&data(4049, 47, 0)).unwrap();
        assert!(!out.exists());
        backup.take(&Record::Unreadable { first_block: 4048, blocks: 1 }).unwrap();
        let manifest = backup.finish().unwrap();
        assert_eq!(manifest.unreadable.len(), 1);
        let bytes = fs::read(&out).unwrap();
        assert_eq!(bytes.len(), 5000 * 512);
        let block = |number: u64| &bytes[(number - 2048) as usize * 512..][..512];
        assert!(block(4048).iter().all(|&byte| byte == 0));
        assert!(block(5000).iter().all(|&byte| byte == 5000u64 as u8));
        let text = fs::read_to_string(folder.path().join("out.manifest")).unwrap();
        assert_eq!(Manifest::parse(&text), Ok(manifest));
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 2, "nothing else stays behind");
        assert!(matches!(open(&out, "1"), Err(BackupError::Exists { .. })));
    }

    #[test]
    fn one_that_was_cut_off_goes_on_where_it_was_and_takes_what_has_been_written_since() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut backup = open(&out, "1").unwrap();
        backup.take(&data(2048, 4500, 0)).unwrap();
        backup.put_on_record().unwrap();
        drop(backup);
        let mut backup = open(&out, "1").unwrap();
        assert_eq!(backup.kept(), 4096, "two whole regions");
        let request = backup.request(&request());
        assert_eq!(request.skip, [BlockRange { first_block: 2048, blocks: 4096 }]);
        assert_eq!(request.skip_since_ns, 2_000_000_000);
        backup.take(&data(6144, 904, 0)).unwrap();
        backup.take(&data(4096, 2048, 9)).unwrap();
        let manifest = backup.finish().unwrap();
        let bytes = fs::read(&out).unwrap();
        assert_eq!(bytes[2048 * 512], 4096u64 as u8 ^ 9, "written since");
        let mut fresh = Manifest::new("atlas10k", RANGE, "1", 3_000_000_000);
        fresh.take(&data(2048, 2048, 0));
        fresh.take(&data(4096, 2048, 9));
        fresh.take(&data(6144, 904, 0));
        assert_eq!(manifest, fresh);
    }

    #[test]
    fn nothing_is_kept_of_another_server_or_of_what_is_not_in_the_file_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let begin = || {
            let mut backup = open(&out, "1").unwrap();
            backup.take(&data(2048, 4500, 0)).unwrap();
            backup.put_on_record().unwrap();
        };
        begin();
        assert_eq!(open(&out, "2").unwrap().kept(), 0);
        begin();
        let file = OpenOptions::new().write(true).open(partial(&out)).unwrap();
        file.write_all_at(&[99], 5).unwrap();
        assert_eq!(open(&out, "1").unwrap().kept(), 2048, "the other region");
    }

    #[test]
    fn what_is_missing_or_differs_is_said_and_the_copy_gets_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut backup = open(&out, "1").unwrap();
        backup.take(&data(2048, 4990, 0)).unwrap();
        let error = backup.finish().unwrap_err();
        assert!(matches!(error, BackupError::Missing { missing: 10, .. }), "{error}");
        let mut backup = open(&out, "1").unwrap();
        backup.take(&data(2048, 5000, 0)).unwrap();
        backup.file.write_all_at(&[99], 5).unwrap();
        let error = backup.finish().unwrap_err();
        assert!(matches!(error, BackupError::Differs { count: 1, .. }), "{error}");
        assert!(!out.exists());
    }
}
