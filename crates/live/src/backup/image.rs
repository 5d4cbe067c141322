//! A copy of a drive in a file, as of one moment. An interrupted copy can continue; a complete one is
//! read back before it takes its name.
//!
//! A copy under way has two files. `OUT.partial` has the blocks at their places. `OUT.partial.manifest`
//! lists the regions whose blocks are all in it, on the disk. After the last block `OUT.partial` is read
//! back and compared with the checksums of the data from the server. Then both files take their names,
//! `OUT` and `OUT.manifest`, unless such files exist.
//!
//! A copy that continues keeps the complete regions that no client has written since it began. It reads
//! all others again, and becomes a copy as of the moment at which it continued. Only the same server knows
//! what clients wrote. Blocks come in any order: with blocks much smaller than a region, few regions are
//! complete before the end. Until all blocks have come, the record keeps the moment at which the first
//! copy began: a second interruption may come before the blocks written since were sent.
//!
//! A copy since an earlier one, its parent, is a file of the same size. A region that is complete and is
//! the same in the parent's manifest becomes a hole; the manifest of the copy has its checksum all the
//! same. Until a region is complete it is not known, so its blocks are in the file for that time.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use freewheel_units::{BLOCK_BYTES, Blocks, Bytes};

use super::chain::Link;
use super::error::BackupError;
use super::files::{
    ensure_free, give_name, manifest_of, open_partial, partial, read_record, record, replace,
    sync_folder,
};
use super::manifest::{Manifest, REGION_BLOCKS};
use super::names;
use super::read_back::{drop_from_memory, sum_up, without};
use crate::control::{BlockRange, Record, TaskKind, TaskOrder, TaskRequest};
use crate::{FreeSpace, zero_range};

/// Least time between two records of the complete regions: a kill loses this much.
const RECORD_EVERY: Duration = Duration::from_secs(2);

/// The time between two records, in times that writing one takes: the record of a large drive is large.
const RECORD_PART: u32 = 16;

/// A copy that is being made.
pub struct Backup {
    out: PathBuf,
    file: File,
    manifest: Manifest,
    /// The manifest of the backup that has what this one leaves out.
    parent: Option<Manifest>,
    /// Blocks of regions that are kept from before.
    kept: Vec<BlockRange>,
    /// The moment of which the complete copy is.
    began_ns: u64,
    /// Blocks from another server, all of which are read again.
    foreign: u64,
    /// The file has never been written: its unwritten blocks are zeros.
    is_fresh: bool,
    recorded: Instant,
    /// From then to the next record.
    pause: Duration,
}

impl Backup {
    /// Gives the manifest of the copy at `out` its name if a kill came between the names of both files.
    /// Returns whether it was so.
    pub fn name_manifest(out: &Path) -> Result<bool, BackupError> {
        names::name_manifest(out)
    }

    /// Begins a copy at `out` of a range of a drive, or of parts of it, or continues one. `empty` is its
    /// manifest without blocks, begun now.
    pub fn open(out: &Path, empty: Manifest) -> Result<Self, BackupError> {
        Self::open_with(out, empty, None)
    }

    /// Opens a copy that leaves out the regions that are the same in an earlier backup of the drive, all of
    /// which can be restored now.
    pub fn open_since(out: &Path, empty: Manifest, parent: Link) -> Result<Self, BackupError> {
        parent.ensure_parent_of(&empty)?;
        parent.ensure_restorable()?;
        let empty = empty.based_on(parent.name_for(out));
        Self::open_with(out, empty, Some(parent.manifest))
    }

    fn open_with(
        out: &Path,
        empty: Manifest,
        parent: Option<Manifest>,
    ) -> Result<Self, BackupError> {
        ensure_free(out)?;
        let (file, is_new) = open_partial(&partial(out))?;
        let mut backup = Self {
            out: out.into(),
            file,
            kept: Vec::new(),
            foreign: 0,
            began_ns: empty.began_ns,
            manifest: empty,
            parent,
            is_fresh: true,
            recorded: Instant::now(),
            pause: RECORD_EVERY,
        };
        // The one that had it locked may have given it its name meanwhile.
        if let Err(error) = ensure_free(out).and_then(|()| backup.go_on()) {
            if is_new {
                // What cannot be removed is empty.
                let _ = fs::remove_file(partial(out));
            }
            return Err(error);
        }
        if backup.is_fresh {
            // First of all the record: it tells that the file is ours.
            if let Err(error) = backup.put_on_record().and_then(|()| backup.lay_out()) {
                // What another server sent is of no use to this one, but not gone yet.
                if backup.at_file(backup.file.metadata())?.len() == 0 {
                    backup.discard();
                }
                return Err(error);
            }
        }
        Ok(backup)
    }

    /// Makes the file as large as the drive, all of it zeros.
    fn lay_out(&self) -> Result<(), BackupError> {
        let bytes = self.manifest.range.blocks * BLOCK_BYTES;
        self.at_file(self.file.set_len(0))?;
        match self.file.set_len(bytes) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(BackupError::TooLarge { path: partial(&self.out), bytes: Bytes::new(bytes) })
            }
            set => self.at_file(set),
        }
    }

    /// Room of the file system for the rest of the copy, if it reports it.
    pub fn room(&self) -> Option<FreeSpace> {
        let missing = self.manifest.wanted_blocks() - self.kept();
        FreeSpace::for_more(&self.file, Blocks::new(missing).bytes())
    }

    fn at_file<T>(&self, result: io::Result<T>) -> Result<T, BackupError> {
        result.map_err(|source| BackupError::System { path: partial(&self.out), source })
    }

    /// Takes over what was recorded, if it is by the same server and is still in the file.
    fn go_on(&mut self) -> Result<(), BackupError> {
        let path = record(&self.out);
        let length = self.at_file(self.file.metadata())?.len();
        let Some(text) = read_record(&path)? else {
            // An empty one is of a backup that ended before its first record: nothing is lost.
            let path = partial(&self.out);
            return if length == 0 { Ok(()) } else { Err(BackupError::Foreign { path }) };
        };
        let old = Manifest::parse(&text)
            .and_then(|old| self.manifest.ensure_same(&old).map(|()| old))
            .map_err(|source| BackupError::Manifest { path, source })?;
        if old.parent != self.manifest.parent {
            return Err(BackupError::AnotherParent { path: record(&self.out), parent: old.parent });
        }
        if old.instance != self.manifest.instance {
            self.foreign = old.blocks();
        } else if length == old.range.blocks * BLOCK_BYTES {
            self.keep(old)?;
        }
        Ok(())
    }

    /// Keeps what is complete on record and in the file.
    fn keep(&mut self, mut old: Manifest) -> Result<(), BackupError> {
        old.keep_complete();
        if old.blocks() > 0 {
            let same = self.manifest.ensure_same_parts(&old);
            let path = record(&self.out);
            same.map_err(|source| BackupError::Manifest { path, source })?;
        }
        let there = self.read_back_but(&old, &old.wanted_in(&old.complete()), &[])?;
        for range in differing(&there, &old, &self.out)? {
            let end = range.first_block + range.blocks;
            (range.first_block..end).step_by(REGION_BLOCKS as usize).for_each(|at| old.forget(at));
        }
        if old.blocks() == old.wanted_blocks()
            && let Some(last) = old.wanted_in(&[old.range]).last()
        {
            // A task has something to read, and its server then says what has been written.
            old.forget(last.first_block + last.blocks - 1);
        }
        self.kept = old.complete();
        self.is_fresh = self.kept.is_empty();
        if !self.is_fresh {
            self.manifest = old;
        }
        Ok(())
    }

    /// Blocks that are there from before, unless clients have written there since.
    pub fn kept(&self) -> u64 {
        self.manifest.wanted_in(&self.kept).iter().map(|range| range.blocks).sum()
    }

    /// Blocks of the file that are read again because another server sent them, or this one before a
    /// restart: the writes of clients since then are unknown.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Blocks that are in the file: the others are the same in the parent. After the end of the task.
    pub fn stored(&self) -> u64 {
        let unchanged = self.parent.as_ref().map(|parent| self.manifest.same_as(parent));
        let unchanged = self.manifest.wanted_in(&unchanged.unwrap_or_default());
        self.manifest.wanted_blocks() - unchanged.iter().map(|range| range.blocks).sum::<u64>()
    }

    /// Request for a server.
    pub fn request(&self, request: &TaskRequest) -> TaskRequest {
        let BlockRange { first_block, blocks } = self.manifest.range;
        let order = TaskOrder {
            kind: TaskKind::Backup,
            start: Blocks::new(first_block).bytes(),
            length: Some(Blocks::new(blocks).bytes()),
            ..request.order.clone()
        };
        TaskRequest {
            order,
            skip: self.kept.clone(),
            skip_since_ns: self.manifest.written_since_ns(),
            stream: true,
            ..request.clone()
        }
    }

    /// Removes the files of a copy that has not begun.
    pub fn discard(self) {
        if self.is_fresh && self.manifest.blocks() == 0 {
            // What cannot be removed is empty.
            let _ = fs::remove_file(partial(&self.out));
            let _ = fs::remove_file(record(&self.out));
        }
    }

    /// Takes a record of the task's data.
    pub fn take(&mut self, record: &Record) -> Result<(), BackupError> {
        self.manifest.ensure_asked(record)?;
        match record {
            Record::Data { first_block, data, .. } => {
                self.renew(*first_block, data.len() as u64 / BLOCK_BYTES);
                if !(self.is_fresh && data.iter().all(|&byte| byte == 0)) {
                    let at = (first_block - self.manifest.range.first_block) * BLOCK_BYTES;
                    self.at_file(self.file.write_all_at(data, at))?;
                }
            }
            Record::Unreadable { first_block, blocks } => {
                self.renew(*first_block, *blocks);
                self.clear(BlockRange { first_block: *first_block, blocks: *blocks })?;
            }
            Record::End(_) => {}
        }
        self.manifest.take(record)?;
        self.leave_out_unchanged(record)?;
        if self.recorded.elapsed() >= self.pause {
            self.put_on_record()?;
        }
        Ok(())
    }

    /// Makes holes of the regions of a record that are complete now and that the parent has.
    fn leave_out_unchanged(&self, record: &Record) -> Result<(), BackupError> {
        let Some((parent, range)) = self.parent.as_ref().zip(record.range()) else { return Ok(()) };
        let end = range.first_block + range.blocks;
        for region in range.first_block / REGION_BLOCKS..end.div_ceil(REGION_BLOCKS) {
            if !self.manifest.has_same(parent, region) {
                continue;
            }
            let bounds = self.manifest.bounds(region);
            let at = (bounds.first_block - self.manifest.range.first_block) * BLOCK_BYTES;
            // Where a file system has no holes the data stay, and no restore reads them.
            let made = zero_range::zero(&self.file, at, bounds.blocks * BLOCK_BYTES, false);
            self.at_file(made)?;
        }
        Ok(())
    }

    /// Fills blocks with zeros.
    fn clear(&self, range: BlockRange) -> Result<(), BackupError> {
        if self.is_fresh {
            return Ok(());
        }
        let (mut at, end) = (range.first_block, range.first_block + range.blocks);
        while at < end {
            let blocks = REGION_BLOCKS.min(end - at);
            let zeros = vec![0; (blocks * BLOCK_BYTES) as usize];
            let place = (at - self.manifest.range.first_block) * BLOCK_BYTES;
            self.at_file(self.file.write_all_at(&zeros, place))?;
            at += blocks;
        }
        Ok(())
    }

    /// Blocks of regions that were kept have come, or cannot be read: they were written since, and
    /// come as a whole.
    fn renew(&mut self, first_block: u64, blocks: u64) {
        let first_region = first_block / REGION_BLOCKS;
        let end_region = (first_block + blocks).div_ceil(REGION_BLOCKS);
        for region in first_region..end_region {
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

    /// Records the complete regions, so that the copy can be continued.
    pub fn put_on_record(&mut self) -> Result<(), BackupError> {
        self.at_file(self.file.sync_data())?;
        let begun = Instant::now();
        replace(&record(&self.out), &self.manifest.text())?;
        self.recorded = Instant::now();
        self.pause = RECORD_EVERY.max(RECORD_PART * begun.elapsed());
        Ok(())
    }

    /// Reads the copy back and gives it its name. What could not be read is zeros in it.
    pub fn finish(mut self) -> Result<Manifest, BackupError> {
        self.ensure_all()?;
        let wanted = self.manifest.wanted_in(&[self.manifest.range]);
        let read = self.read_back_but(&self.manifest, &wanted, &self.manifest.unreadable)?;
        let differing = differing(&read, &self.manifest, &self.out)?;
        if let [first, ..] = differing[..] {
            let count = differing.len();
            return Err(BackupError::Differs { path: partial(&self.out), first, count });
        }
        self.manifest.began_ns = self.began_ns;
        if let Some(parent) = &self.parent {
            self.manifest.count_left_out(parent);
        }
        self.put_on_record()?;
        // Both or none, but for one that takes the second name between the two, and for a kill there:
        // `names` then names the second.
        ensure_free(&self.out)?;
        give_name(&partial(&self.out), &self.out)?;
        give_name(&record(&self.out), &manifest_of(&self.out))?;
        sync_folder(&self.out)?;
        Ok(self.manifest)
    }

    /// That every wanted block has come once, or cannot be read.
    fn ensure_all(&self) -> Result<(), BackupError> {
        let blocks = self.manifest.wanted_blocks();
        let unreadable: u64 = self.manifest.unreadable.iter().map(|range| range.blocks).sum();
        let there = self.manifest.blocks() + unreadable;
        let path = partial(&self.out);
        match blocks.checked_sub(there) {
            Some(0) => Ok(()),
            Some(missing) => Err(BackupError::Missing { path, missing }),
            None => Err(BackupError::Twice { path, extra: there - blocks }),
        }
    }

    /// Checksums of what is in the file at these places, but for those, from the disk as far as the
    /// system allows; of what the file leaves out by this manifest, those of the parent.
    fn read_back_but(
        &self,
        on_record: &Manifest,
        ranges: &[BlockRange],
        but_for: &[BlockRange],
    ) -> Result<Manifest, BackupError> {
        self.at_file(drop_from_memory(&self.file))?;
        let Manifest { drive, range, instance, began_ns, .. } = &self.manifest;
        let mut read = Manifest::new(drive, *range, instance, *began_ns);
        read.unreadable = but_for.to_vec();
        let mut stretches = without(ranges, but_for);
        if let Some(parent) = &self.parent {
            let unchanged = on_record.same_as(parent);
            stretches = without(&stretches, &unchanged);
            read.take_over(&unchanged, parent);
        }
        self.at_file(sum_up(&self.file, &mut read, &stretches, |_| {}))?;
        Ok(read)
    }
}

/// Regions in which the file differs from the record; of incomplete ones there is no record.
fn differing(
    read: &Manifest,
    on_record: &Manifest,
    out: &Path,
) -> Result<Vec<BlockRange>, BackupError> {
    let differs = read.differs(on_record);
    differs.map_err(|source| BackupError::Manifest { path: record(out), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
        open_at(out, instance, 3)
    }

    fn open_at(out: &Path, instance: &str, now_s: u64) -> Result<Backup, BackupError> {
        Backup::open(out, Manifest::new("atlas10k", RANGE, instance, now_s * 1_000_000_000))
    }

    /// A copy of which all but the last region was there when it was cut off.
    fn begin(out: &Path) {
        let mut backup = open(out, "1").unwrap();
        backup.take(&data(2048, 4500, 0)).unwrap();
        backup.put_on_record().unwrap();
    }

    #[test]
    fn copy_is_named_when_complete() {
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
    fn copy_of_extents_continues_with_zeros_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let part = |first_block, blocks| BlockRange { first_block, blocks };
        let open = |parts: &[BlockRange]| {
            let empty = Manifest::new("atlas10k", RANGE, "1", 3_000_000_000);
            Backup::open(&out, empty.of_parts(parts.to_vec()))
        };
        let parts = [part(2100, 10), part(4200, 10), part(6500, 4)];
        let mut backup = open(&parts).unwrap();
        backup.take(&data(2100, 10, 0)).unwrap();
        backup.take(&data(4200, 3, 0)).unwrap();
        assert!(backup.take(&data(2110, 1, 0)).is_err(), "it was not asked for");
        backup.put_on_record().unwrap();
        drop(backup);
        let error = open(&parts[..2]).err().unwrap().to_string();
        assert!(error.contains("24 of the range, and 20 are wanted now"), "{error}");
        let mut backup = open(&parts).unwrap();
        assert_eq!(backup.kept(), 10);
        let request = backup.request(&request());
        assert_eq!(request.skip, [part(2048, 2048)], "whole regions");
        backup.take(&data(4200, 10, 1)).unwrap();
        assert!(matches!(backup.ensure_all(), Err(BackupError::Missing { missing: 4, .. })));
        backup.take(&data(6500, 4, 1)).unwrap();
        let manifest = backup.finish().unwrap();
        assert_eq!(manifest.wanted_blocks(), 24);
        let bytes = fs::read(&out).unwrap();
        assert_eq!(bytes.len(), 5000 * 512, "as large as the range");
        for (block, bytes) in (2048..7048u64).zip(bytes.chunks(512)) {
            let salt = if block < 4096 { 0 } else { 1 };
            let inside = |part: &BlockRange| {
                (part.first_block..part.first_block + part.blocks).contains(&block)
            };
            let byte = if parts.iter().any(inside) { block as u8 ^ salt } else { 0 };
            assert!(bytes.iter().all(|&there| there == byte), "{block}");
        }
    }

    #[test]
    fn interrupted_backup_rereads_written_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        begin(&out);
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
        fresh.take(&data(2048, 2048, 0)).unwrap();
        fresh.take(&data(4096, 2048, 9)).unwrap();
        fresh.take(&data(6144, 904, 0)).unwrap();
        assert_eq!(manifest, fresh);
    }

    #[test]
    fn twice_interrupted_backup_asks_since_first() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        begin(&out);
        // No block of the second region, which was written since, comes before the interruption.
        let mut second = open_at(&out, "1", 60).unwrap();
        second.put_on_record().unwrap();
        drop(second);
        let mut third = open_at(&out, "1", 90).unwrap();
        let request = third.request(&request());
        assert_eq!(request.skip, [BlockRange { first_block: 2048, blocks: 4096 }]);
        assert_eq!(request.skip_since_ns, 2_000_000_000);
        third.take(&data(6144, 904, 0)).unwrap();
        third.take(&data(4096, 2048, 9)).unwrap();
        assert_eq!(third.finish().unwrap().began_ns, 90_000_000_000);
    }

    #[test]
    fn unreadable_blocks_are_zeros_in_copy() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        begin(&out);
        let mut backup = open(&out, "1").unwrap();
        // All of a region that is kept, which was written; and a block of the one that is not.
        backup.take(&Record::Unreadable { first_block: 4096, blocks: 2048 }).unwrap();
        backup.take(&Record::Unreadable { first_block: 6144, blocks: 1 }).unwrap();
        backup.take(&data(6145, 903, 0)).unwrap();
        let manifest = backup.finish().unwrap();
        assert_eq!(manifest.blocks(), 5000 - 2049);
        let bytes = fs::read(&out).unwrap();
        let (before, after) = (2048 * 512, 4097 * 512);
        assert!(bytes[before..after].iter().all(|&byte| byte == 0));
        assert_eq!((bytes[before - 1], bytes[after]), (4095u64 as u8, 6145u64 as u8));
    }

    #[test]
    fn incremental_copy_continues_with_parent() {
        let folder = tempfile::tempdir().unwrap();
        let [base, out] = ["base", "out"].map(|name| folder.path().join(name));
        let mut backup = open(&base, "1").unwrap();
        backup.take(&data(2048, 5000, 0)).unwrap();
        backup.finish().unwrap();
        let parent = || Link::read(&manifest_of(&base)).unwrap();
        let empty = || Manifest::new("atlas10k", RANGE, "1", 3_000_000_000);
        let mut first = Backup::open_since(&out, empty(), parent()).unwrap();
        // The first region as it was, the second another; of the third there is a part.
        first.take(&data(2048, 2048, 0)).unwrap();
        first.take(&data(4096, 2048, 9)).unwrap();
        first.take(&data(6144, 100, 0)).unwrap();
        let at = |block: u64| (block - 2048) * BLOCK_BYTES;
        let mut there = [9; 512];
        first.file.read_exact_at(&mut there, at(3000)).unwrap();
        assert_eq!(there, [0; 512], "a hole");
        first.put_on_record().unwrap();
        drop(first);
        let said = open(&out, "1").err().unwrap().to_string();
        assert!(said.contains("was begun with --since base.manifest: give the same"), "{said}");
        let mut second = Backup::open_since(&out, empty(), parent()).unwrap();
        assert_eq!(second.kept(), 4096, "both whole regions");
        // Written since: the first is another now, and the second the parent's.
        second.take(&data(2048, 2048, 9)).unwrap();
        second.take(&data(4096, 2048, 0)).unwrap();
        second.take(&data(6144, 904, 0)).unwrap();
        assert_eq!(second.stored(), 2048);
        let manifest = second.finish().unwrap();
        assert_eq!(manifest.parent.as_ref().unwrap().file, "base.manifest");
        let bytes = fs::read(&out).unwrap();
        let zeros = |from: u64, end: u64| {
            bytes[at(from) as usize..at(end) as usize].iter().all(|&byte| byte == 0)
        };
        assert_eq!(bytes[0], 2048u64 as u8 ^ 9);
        assert!(!zeros(2048, 4096) && zeros(4096, 7048));
        let parent = manifest.parent.clone().unwrap();
        let mut fresh = Manifest::new("atlas10k", RANGE, "1", 3_000_000_000);
        for (first, blocks, salt) in [(2048, 2048, 9), (4096, 2048, 0), (6144, 904, 0)] {
            fresh.take(&data(first, blocks, salt)).unwrap();
        }
        let uncounted = |manifest: Manifest| manifest.based_on(parent.clone());
        assert_eq!(uncounted(manifest), uncounted(fresh), "the manifest is of the whole drive");
    }

    #[test]
    fn backup_records_progress_while_running() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let on_record = || Manifest::parse(&fs::read_to_string(record(&out)).unwrap()).unwrap();
        let mut backup = open(&out, "1").unwrap();
        assert_eq!(on_record().blocks(), 0);
        backup.pause = Duration::from_secs(3600);
        backup.take(&data(2048, 2048, 0)).unwrap();
        assert_eq!(on_record().blocks(), 0);
        backup.pause = Duration::ZERO;
        backup.take(&data(4096, 100, 0)).unwrap();
        assert_eq!(on_record().blocks(), 2148);
        assert!(backup.pause >= RECORD_EVERY);
    }

    #[test]
    fn record_waits_for_its_data() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut backup = open(&out, "1").unwrap();
        backup.pause = Duration::from_secs(3600);
        backup.take(&data(2048, 2048, 0)).unwrap();
        let before = fs::read(record(&out)).unwrap();
        // The system refuses to sync this file.
        backup.file = File::open("/dev/null").unwrap();
        assert!(backup.put_on_record().is_err());
        assert_eq!(fs::read(record(&out)).unwrap(), before);
    }

    #[test]
    fn foreign_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let other = folder.path().join("other");
        fs::write(&other, "mine").unwrap();
        let refused = |path: &Path| {
            let error = open(&out, "1").err().unwrap();
            assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
            for path in [&other, path].into_iter().filter(|path| path.exists()) {
                assert_eq!(fs::read_to_string(path).unwrap(), "mine");
            }
            fs::remove_file(path).unwrap();
        };
        std::os::unix::fs::symlink(&other, partial(&out)).unwrap();
        refused(&partial(&out));
        fs::write(partial(&out), "mine").unwrap();
        refused(&partial(&out));
        fs::write(manifest_of(&out), "mine").unwrap();
        refused(&manifest_of(&out));
        std::os::unix::fs::symlink("nowhere", &out).unwrap();
        refused(&out);
        begin(&out);
        let another = Backup::open(&out, Manifest::new("cheetah9lp", RANGE, "1", 0)).err().unwrap();
        assert!(another.to_string().contains("of atlas10k"), "{another}");
        assert_eq!(open(&out, "1").unwrap().kept(), 4096);
    }

    /// Refused path, of a copy whose partial file or record is not its maker's own.
    fn refused(out: &Path, path: &Path) -> String {
        let before = fs::read(path).unwrap();
        let error = open(out, "1").err().unwrap();
        assert!(matches!(error, BackupError::NotOwn { .. }), "{error}");
        assert_eq!(fs::read(path).unwrap(), before, "nothing was written");
        let said = error.to_string();
        assert!(said.starts_with(&format!("{}: ", path.display())), "{said}");
        assert!(said.ends_with("choose another name, or remove it to begin anew"), "{said}");
        said
    }

    #[test]
    fn backup_refuses_file_of_other_user() {
        for name in [partial, record] {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("out");
            begin(&out);
            let path = name(&out);
            if std::os::unix::fs::chown(&path, Some(65_534), None).is_err() {
                eprintln!("skipped in part: only root can give a file to another user");
            } else {
                let said = refused(&out, &path);
                assert!(said.contains("belongs to user 65534"), "{said}");
                std::os::unix::fs::chown(&path, Some(rustix::process::geteuid().as_raw()), None)
                    .unwrap();
            }
            for mode in [0o666, 0o620, 0o604] {
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                let said = refused(&out, &path);
                assert!(said.contains(&format!("has the mode 0{mode:o}")), "{said}");
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let second = folder.path().join("second");
            fs::hard_link(&path, &second).unwrap();
            let said = refused(&out, &path);
            assert!(said.contains("has 2 names"), "{said}");
            fs::remove_file(second).unwrap();
            assert_eq!(open(&out, "1").unwrap().kept(), 4096, "one's own again");
        }
    }

    #[test]
    fn backup_refuses_empty_shared_file() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        fs::write(partial(&out), "").unwrap();
        fs::set_permissions(partial(&out), fs::Permissions::from_mode(0o666)).unwrap();
        refused(&out, &partial(&out));
        // Its own, of a backup that was killed before its first record.
        fs::set_permissions(partial(&out), fs::Permissions::from_mode(0o600)).unwrap();
        open(&out, "1").unwrap().take(&data(2048, 5000, 0)).unwrap();
    }

    #[test]
    fn distrusted_record_leaves_no_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        fs::write(record(&out), "a record").unwrap();
        fs::set_permissions(record(&out), fs::Permissions::from_mode(0o644)).unwrap();
        refused(&out, &record(&out));
        assert!(!partial(&out).exists());
    }

    #[test]
    fn taken_name_stays_and_copy_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut backup = open(&out, "1").unwrap();
        backup.take(&data(2048, 5000, 0)).unwrap();
        fs::write(&out, "mine").unwrap();
        assert!(matches!(backup.finish(), Err(BackupError::Exists { .. })));
        assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
        let error = give_name(&partial(&out), &out).unwrap_err();
        assert!(matches!(error, BackupError::Exists { .. }), "{error}");
        fs::remove_file(&out).unwrap();
        assert_eq!(open(&out, "1").unwrap().kept(), 4096, "all but the last region");
    }

    #[test]
    fn kill_between_renames_keeps_backup() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut backup = open(&out, "1").unwrap();
        backup.take(&data(2048, 5000, 0)).unwrap();
        let manifest = backup.finish().unwrap();
        let back = || fs::rename(manifest_of(&out), record(&out)).unwrap();
        back();
        assert_eq!(Link::read(&manifest_of(&out)).unwrap().manifest, manifest);
        back();
        let (maker, is_new) = open_partial(&out).unwrap();
        assert!(!is_new && !Backup::name_manifest(&out).unwrap(), "its maker is about to");
        drop(maker);
        assert!(Backup::name_manifest(&out).unwrap());
        assert!(!Backup::name_manifest(&out).unwrap() && !record(&out).exists());
        // What is no copy of that record.
        back();
        let image = fs::OpenOptions::new().write(true).open(&out).unwrap();
        image.set_len(512).unwrap();
        assert!(!Backup::name_manifest(&out).unwrap() && record(&out).exists());
    }

    #[test]
    fn data_of_changed_source_are_reread() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        begin(&out);
        let anew = open(&out, "2").unwrap();
        assert_eq!((anew.kept(), anew.foreign() > 0), (0, true));
        drop(anew);
        begin(&out);
        assert_eq!(open(&out, "1").unwrap().foreign(), 0);
        let file = fs::OpenOptions::new().write(true).open(partial(&out)).unwrap();
        file.write_all_at(&[99], 5).unwrap();
        assert_eq!(open(&out, "1").unwrap().kept(), 2048, "the other region");
    }

    #[test]
    fn missing_blocks_leave_copy_unnamed() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut backup = open(&out, "1").unwrap();
        backup.take(&data(2048, 4990, 0)).unwrap();
        let error = backup.finish().unwrap_err();
        assert!(matches!(error, BackupError::Missing { missing: 10, .. }), "{error}");
        let mut backup = open(&out, "1").unwrap();
        backup.take(&data(2048, 5000, 0)).unwrap();
        backup.take(&Record::Unreadable { first_block: 4000, blocks: 2 }).unwrap();
        let error = backup.finish().unwrap_err();
        assert!(matches!(error, BackupError::Twice { extra: 2, .. }), "{error}");
        let mut backup = open(&out, "1").unwrap();
        backup.take(&data(2048, 5000, 0)).unwrap();
        backup.file.write_all_at(&[99], 5).unwrap();
        let error = backup.finish().unwrap_err();
        assert!(matches!(error, BackupError::Differs { count: 1, .. }), "{error}");
        assert!(!out.exists());
    }

    #[test]
    fn unrequested_blocks_are_refused_before_writing() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        begin(&out);
        let mut backup = open(&out, "1").unwrap();
        let length = || fs::metadata(partial(&out)).unwrap().len();
        for record in [
            data(2047, 2, 0),
            data(7048, 1, 7),
            Record::Unreadable { first_block: 2048, blocks: 1 << 60 },
            Record::Unreadable { first_block: u64::MAX, blocks: u64::MAX },
        ] {
            let error = backup.take(&record).unwrap_err();
            assert!(matches!(error, BackupError::UnexpectedField(_)), "{error}");
            assert_eq!(length(), 5000 * BLOCK_BYTES);
        }
    }
}
