//! The way back: a backup, with all that it stands on, to a file or a device.
//!
//! The target is read first and written where it is other than the backup, so a restore that was killed
//! continues when it begins again, without any record. A new file is called `OUT.restoring` until all
//! of it was read back. In a file or device that was there before, what the backup did not select stays.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use freewheel_units::{BLOCK_BYTES, Bytes};
use serde::Serialize;

use super::chain::Chain;
use super::error::BackupError;
use super::files::{give_name, open_partial, restoring, sync_folder};
use super::manifest::{Manifest, REGION_BLOCKS};
use super::read_back::{drop_from_memory, sum_up, without};
use crate::FreeSpace;
use crate::control::BlockRange;
use crate::serve::backend::{Claim, ClaimedFile, OpenError};

/// Least difference that is written: holes of file systems are as large.
const PIECE_BYTES: usize = 4096;

/// A region of a backup that has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Blocks of the difference.
    pub range: BlockRange,
    /// The file that should have them.
    pub image: PathBuf,
    /// Fault of the backup.
    pub why: String,
}

/// Result of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// File or device with the data.
    pub target: PathBuf,
    /// Blocks of the backup.
    pub blocks: u64,
    /// Bytes that were other before.
    pub written_bytes: u64,
    /// Regions of the backup that are damaged and were not written.
    pub damaged: Vec<Damage>,
}

/// A file or device, opened for a restore.
enum Target {
    /// A new file under its first name, and whether it is still empty.
    New { file: File, is_fresh: bool },
    /// Another one.
    There(ClaimedFile),
}

/// A restore to a target that is open.
pub struct Restore {
    chain: Chain,
    out: PathBuf,
    target: Target,
}

impl Restore {
    /// Opens a target: a name for a new file, a file or a block device. Only with `force` a file is
    /// overwritten, a device that is in use, or a larger one.
    pub fn open(chain: Chain, out: &Path, force: bool) -> Result<Self, BackupError> {
        let target = match out.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => new_file(&chain, out)?,
            _ => there(&chain, out, force)?,
        };
        Ok(Self { chain, out: out.into(), target })
    }

    /// Room of the file system for a new file, if it reports it.
    pub fn room(&self) -> Option<FreeSpace> {
        let wanted = Bytes::new(self.chain.manifest.wanted_blocks() * BLOCK_BYTES);
        match &self.target {
            Target::New { file, is_fresh: true } => FreeSpace::for_more(file, wanted),
            _ => None,
        }
    }

    /// Writes what is other in the target, and reads all of it back. Damaged regions are left out; a new
    /// file takes its name only without any. `progress` gets done and total.
    pub fn run(self, mut progress: impl FnMut(u64, u64)) -> Result<Restored, BackupError> {
        let blocks = self.chain.manifest.wanted_blocks();
        let (written_bytes, damaged) = self.write(|done| progress(done, 2 * blocks))?;
        self.ensure_same(&damaged, |done| progress(blocks + done, 2 * blocks))?;
        let mut target = self.path();
        if let (Target::New { .. }, []) = (&self.target, &damaged[..]) {
            give_name(&target, &self.out)?;
            sync_folder(&self.out)?;
            target.clone_from(&self.out);
        }
        Ok(Restored { target, blocks, written_bytes, damaged })
    }

    fn file(&self) -> &File {
        match &self.target {
            Target::New { file, .. } => file,
            Target::There(claimed) => &claimed.file,
        }
    }

    /// The present name of the target.
    fn path(&self) -> PathBuf {
        match &self.target {
            Target::New { .. } => restoring(&self.out),
            Target::There(_) => self.out.clone(),
        }
    }

    fn at_target<T>(&self, result: io::Result<T>) -> Result<T, BackupError> {
        result.map_err(|source| BackupError::System { path: self.path(), source })
    }

    /// Writes every region that is sound; returns how many bytes were other, and the damaged regions.
    fn write(&self, mut progress: impl FnMut(u64)) -> Result<(u64, Vec<Damage>), BackupError> {
        let manifest = &self.chain.manifest;
        let (mut written, mut done, mut damaged) = (0, 0, Vec::new());
        for range in self.regions() {
            let wanted = manifest.wanted_in(&[range]);
            match self.chain.read(range) {
                Ok(data) => {
                    // Of a new file all is ours: outside of what was selected are zeros.
                    let parts = match self.target {
                        Target::New { .. } => vec![range],
                        Target::There(_) => wanted.clone(),
                    };
                    for part in parts {
                        let from = (part.first_block - range.first_block) * BLOCK_BYTES;
                        let bytes = &data[from as usize..][..(part.blocks * BLOCK_BYTES) as usize];
                        written += self.at_target(self.put(part.first_block, bytes))?;
                    }
                }
                Err((image, why)) => damaged.push(Damage { range, image, why }),
            }
            done += wanted.iter().map(|part| part.blocks).sum::<u64>();
            progress(done);
        }
        Ok((written, damaged))
    }

    /// The regions that may have to be written.
    fn regions(&self) -> Vec<BlockRange> {
        let manifest = &self.chain.manifest;
        match self.target {
            // An older restore may have left something anywhere.
            Target::New { is_fresh: false, .. } => regions_of(manifest, &[manifest.range]),
            _ => regions_of(manifest, &manifest.wanted_in(&[manifest.range])),
        }
    }

    /// Writes the pieces of these blocks that are other in the target; returns their bytes.
    fn put(&self, first_block: u64, bytes: &[u8]) -> io::Result<u64> {
        let place = (first_block - self.chain.manifest.range.first_block) * BLOCK_BYTES;
        let mut there = vec![0; bytes.len()];
        if !matches!(self.target, Target::New { is_fresh: true, .. }) {
            self.file().read_exact_at(&mut there, place)?;
        }
        let (mut at, mut written) = (0, 0);
        for run in bytes
            .chunks(PIECE_BYTES)
            .zip(there.chunks(PIECE_BYTES))
            .collect::<Vec<_>>()
            .chunk_by(|one, next| differ(one) == differ(next))
        {
            let length: usize = run.iter().map(|(wanted, _)| wanted.len()).sum();
            if differ(&run[0]) {
                self.file().write_all_at(&bytes[at..at + length], place + at as u64)?;
                written += length as u64;
            }
            at += length;
        }
        Ok(written)
    }

    /// That the target has what the manifest says, but for regions that are damaged.
    fn ensure_same(
        &self,
        damaged: &[Damage],
        progress: impl FnMut(u64),
    ) -> Result<(), BackupError> {
        let manifest = &self.chain.manifest;
        let damaged: Vec<BlockRange> = damaged.iter().map(|damage| damage.range).collect();
        let Manifest { drive, range, instance, began_ns, .. } = manifest;
        let mut read = Manifest::new(drive, *range, instance, *began_ns);
        let wanted = without(&manifest.wanted_in(&[*range]), &manifest.unreadable);
        self.at_target(drop_from_memory(self.file()))?;
        let stretches = without(&wanted, &damaged);
        self.at_target(sum_up(self.file(), &mut read, &stretches, progress))?;
        read.take_over(&damaged, manifest);
        let differs = read.differs(manifest);
        let differs =
            differs.map_err(|source| BackupError::Manifest { path: self.path(), source })?;
        match differs[..] {
            [] => Ok(()),
            [first, ..] => {
                let count = differs.len();
                Err(BackupError::Differs { path: self.path(), first, count })
            }
        }
    }
}

impl Chain {
    /// The regions of the backup that are damaged. `progress` gets read and total.
    pub fn damaged(&self, mut progress: impl FnMut(u64, u64)) -> Vec<Damage> {
        let (all, mut done, mut damaged) = (self.manifest.wanted_blocks(), 0, Vec::new());
        let wanted = self.manifest.wanted_in(&[self.manifest.range]);
        for range in regions_of(&self.manifest, &wanted) {
            if let Err((image, why)) = self.read(range) {
                damaged.push(Damage { range, image, why });
            }
            let wanted = self.manifest.wanted_in(&[range]);
            done += wanted.iter().map(|part| part.blocks).sum::<u64>();
            progress(done, all);
        }
        damaged
    }
}

fn differ((wanted, there): &(&[u8], &[u8])) -> bool {
    wanted != there
}

/// The regions in which parts of a manifest's range are, each once.
fn regions_of(manifest: &Manifest, parts: &[BlockRange]) -> Vec<BlockRange> {
    let numbers = parts.iter().flat_map(|part| {
        part.first_block / REGION_BLOCKS..(part.first_block + part.blocks).div_ceil(REGION_BLOCKS)
    });
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.dedup();
    numbers.into_iter().map(|region| manifest.bounds(region)).collect()
}

/// A file that has its name when it is complete.
fn new_file(chain: &Chain, out: &Path) -> Result<Target, BackupError> {
    let path = restoring(out);
    let (file, is_fresh) = open_partial(&path)?;
    if !is_fresh {
        ensure_apart(chain, &file, &path)?;
    }
    let bytes = chain.manifest.range.blocks * BLOCK_BYTES;
    let Err(source) = file.set_len(bytes) else { return Ok(Target::New { file, is_fresh }) };
    if is_fresh {
        // What cannot be removed is empty.
        let _ = fs::remove_file(&path);
    }
    Err(match source.kind() {
        io::ErrorKind::FileTooLarge => BackupError::TooLarge { path, bytes: Bytes::new(bytes) },
        _ => BackupError::System { path, source },
    })
}

/// That a target is no file of the backup.
fn ensure_apart(chain: &Chain, target: &File, path: &Path) -> Result<(), BackupError> {
    let path = path.to_path_buf();
    match chain.has(target) {
        Ok(false) => Ok(()),
        Ok(true) => Err(BackupError::TargetOfChain { path }),
        Err(source) => Err(BackupError::System { path, source }),
    }
}

/// A file or device that is there.
fn there(chain: &Chain, out: &Path, force: bool) -> Result<Target, BackupError> {
    let claim = if force { Claim::Shared } else { Claim::Exclusive };
    let is_file = fs::metadata(out).is_ok_and(|there| there.is_file());
    let claimed = ClaimedFile::open(out, claim).map_err(|error| match error {
        OpenError::Busy { path, by } => BackupError::TargetBusy { path, by },
        OpenError::InUse { path } => BackupError::TargetLocked { path },
        error => BackupError::Target(error),
    })?;
    ensure_apart(chain, &claimed.file, out)?;
    let path = out.to_path_buf();
    let wanted = chain.manifest.range.blocks * BLOCK_BYTES;
    let [found, wanted] = [claimed.bytes, wanted].map(Bytes::new);
    match found.cmp(&wanted) {
        std::cmp::Ordering::Less => Err(BackupError::TargetTooSmall { path, found, wanted }),
        _ if is_file && !force => Err(BackupError::TargetExists { path }),
        std::cmp::Ordering::Greater if !force => {
            Err(BackupError::TargetTooLarge { path, found, wanted })
        }
        _ => Ok(Target::There(claimed)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::super::chain::Link;
    use super::super::files::manifest_of;
    use super::super::image::Backup;
    use super::*;
    use crate::control::Record;

    /// Neither end is that of a region.
    const RANGE: BlockRange = BlockRange { first_block: 100, blocks: 9000 };

    type Drive = Vec<u8>;

    fn drive() -> Drive {
        let block = |number: u64| [(number * 7) as u8 | 1; 512];
        (0..RANGE.blocks).flat_map(block).collect()
    }

    fn bytes_of(drive: &Drive, first_block: u64, blocks: u64) -> &[u8] {
        &drive[((first_block - RANGE.first_block) * 512) as usize..][..(blocks * 512) as usize]
    }

    /// A backup in pieces of 100 blocks in an order in which no region is complete before the end.
    fn back_up(
        out: &Path,
        drive: &Drive,
        (parent, parts): (Option<&Path>, Vec<BlockRange>),
        unreadable: Option<u64>,
    ) -> (Manifest, u64) {
        let empty = Manifest::new("atlas10k", RANGE, "1", 0).of_parts(parts);
        let mut backup = match parent {
            None => Backup::open(out, empty.clone()).unwrap(),
            Some(parent) => {
                Backup::open_since(out, empty.clone(), Link::read(parent).unwrap()).unwrap()
            }
        };
        let pieces: Vec<BlockRange> = (100..9100)
            .step_by(100)
            .map(|first_block| BlockRange { first_block, blocks: 100 })
            .collect();
        for piece in pieces.iter().step_by(2).chain(pieces.iter().skip(1).step_by(2)) {
            for part in empty.wanted_in(&[*piece]) {
                let BlockRange { first_block, blocks } = part;
                let mut data = bytes_of(drive, first_block, blocks);
                let mut from = first_block;
                if let Some(bad) = unreadable.filter(|bad| (from..from + blocks).contains(bad)) {
                    let before = data[..((bad - from) * 512) as usize].to_vec();
                    backup.take(&Record::Data { first_block, at_ns: 0, data: before }).unwrap();
                    backup.take(&Record::Unreadable { first_block: bad, blocks: 1 }).unwrap();
                    data = bytes_of(drive, bad + 1, blocks - (bad + 1 - from));
                    from = bad + 1;
                }
                let record = Record::Data { first_block: from, at_ns: 0, data: data.to_vec() };
                backup.take(&record).unwrap();
            }
        }
        let stored = backup.stored();
        (backup.finish().unwrap(), stored)
    }

    /// Three backups of a drive that changes: names of their manifests, and what the drive has at the end.
    fn three(folder: &Path) -> ([PathBuf; 3], Drive) {
        let paths = ["base", "tuesday", "friday"].map(|name| folder.join(name));
        let manifests = paths.each_ref().map(|path| manifest_of(path));
        let mut drive = drive();
        back_up(&paths[0], &drive, (None, Vec::new()), None);
        // The first region ends in block 2047, the third in 6143.
        drive[5] ^= 1;
        drive[512 * 5000] ^= 1;
        let (_, stored) = back_up(&paths[1], &drive, (Some(&manifests[0]), Vec::new()), None);
        assert_eq!(stored, 1948 + 2048);
        drive[512 * 5001] ^= 1;
        drive[512 * 8999..].fill(0);
        let (_, stored) = back_up(&paths[2], &drive, (Some(&manifests[1]), Vec::new()), None);
        assert_eq!(stored, 2048 + 908);
        (manifests, drive)
    }

    fn open(manifest: &Path, out: &Path) -> Result<Restore, BackupError> {
        Restore::open(Chain::open(manifest)?, out, false)
    }

    fn restore(manifest: &Path, out: &Path) -> Restored {
        open(manifest, out).unwrap().run(|_, _| {}).unwrap()
    }

    fn refused(result: Result<Restore, BackupError>) -> String {
        result.err().expect("it is refused").to_string()
    }

    #[test]
    fn restore_returns_every_backup_of_chain() {
        let folder = tempfile::tempdir().unwrap();
        let (manifests, last) = three(folder.path());
        let out = folder.path().join("restored");
        let restored = restore(&manifests[2], &out);
        assert_eq!((restored.blocks, &restored.target), (9000, &out));
        assert!(fs::read(&out).unwrap() == last);
        assert_eq!(Chain::open(&manifests[2]).unwrap().backups(), 3);
        let first = folder.path().join("first");
        restore(&manifests[0], &first);
        assert!(fs::read(&first).unwrap() == drive());
        assert!(!restoring(&out).exists());
    }

    #[test]
    fn unchanged_data_take_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let (manifests, _) = three(folder.path());
        let room = |path: &Path| fs::metadata(path.with_extension("")).unwrap().blocks();
        let [base, tuesday, friday] = manifests.each_ref().map(|path| room(path));
        assert!(base >= 9000, "{base}");
        // The holes of a file system are whole pages.
        assert!(tuesday < 4000 + 200, "{tuesday}");
        assert!(friday < 2956 + 200, "{friday}");
    }

    #[test]
    fn restored_zeros_are_holes() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let mut drive = drive();
        drive[512 * 1000..512 * 8000].fill(0);
        back_up(&base, &drive, (None, Vec::new()), None);
        let out = folder.path().join("out");
        let restored = restore(&manifest_of(&base), &out);
        assert!(fs::read(&out).unwrap() == drive);
        assert!(restored.written_bytes <= 512 * 2000 + 2 * 4096, "{}", restored.written_bytes);
        assert!(fs::metadata(&out).unwrap().blocks() < 2100);
    }

    #[test]
    fn killed_restore_writes_only_missing() {
        let folder = tempfile::tempdir().unwrap();
        let (manifests, last) = three(folder.path());
        let out = folder.path().join("out");
        let first = open(&manifests[2], &out).unwrap();
        let is_in_use = open(&manifests[2], &out).err().unwrap();
        assert!(matches!(is_in_use, BackupError::InUse { .. }), "{is_in_use}");
        let (written, _) = first.write(|_| {}).unwrap();
        assert!(written >= 8990 * 512, "{written}");
        // What a kill may leave: a part of a region, and what is of no backup.
        first.file().write_all_at(&[9; 8192], 512 * 6000).unwrap();
        drop(first);
        assert!(!out.exists());
        let restored = restore(&manifests[2], &out);
        assert!((8192..=8192 + 2 * 4096).contains(&restored.written_bytes));
        assert!(fs::read(&out).unwrap() == last);
    }

    #[test]
    fn damaged_region_is_named_with_file() {
        let folder = tempfile::tempdir().unwrap();
        let (manifests, last) = three(folder.path());
        // Block 3000 of the drive: unchanged since the first.
        let base = folder.path().join("base");
        let sound = fs::read(&base).unwrap();
        let mut damaged = sound.clone();
        damaged[(3000 - 100) * 512] ^= 1;
        fs::write(&base, damaged).unwrap();
        let region = BlockRange { first_block: 2048, blocks: 2048 };
        let found = Chain::open(&manifests[2]).unwrap().damaged(|_, _| {});
        let [Damage { range, image, why }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((range, image), (&region, &base));
        assert!(why.contains("another checksum"), "{why}");
        let out = folder.path().join("out");
        let restored = restore(&manifests[2], &out);
        assert_eq!(restored.damaged, found);
        assert_eq!(restored.target, restoring(&out));
        assert!(!out.exists());
        let rest = fs::read(restoring(&out)).unwrap();
        let end = (4096 - 100) * 512;
        assert!(rest[end..] == last[end..] && rest[..1948 * 512] == last[..1948 * 512]);
        fs::write(&base, sound).unwrap();
        let restored = restore(&manifests[2], &out);
        assert_eq!(restored.written_bytes, 2048 * 512, "the missing region alone");
        assert!(fs::read(&out).unwrap() == last);
    }

    #[test]
    fn damage_below_childs_blocks_is_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let (manifests, last) = three(folder.path());
        let tuesday = fs::File::options().write(true).open(folder.path().join("tuesday")).unwrap();
        tuesday.write_all_at(&[9; 512], 512 * 5100).unwrap();
        let out = folder.path().join("out");
        assert!(restore(&manifests[2], &out).damaged.is_empty());
        assert!(fs::read(&out).unwrap() == last);
        assert_eq!(Chain::open(&manifests[1]).unwrap().damaged(|_, _| {}).len(), 1);
    }

    #[test]
    fn missing_or_wrong_parent_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (manifests, last) = three(folder.path());
        let out = folder.path().join("out");
        let away = folder.path().join("away");
        fs::rename(&manifests[1], &away).unwrap();
        let said = refused(open(&manifests[2], &out));
        assert!(said.contains("its parent tuesday.manifest is neither beside it"), "{said}");
        fs::copy(&manifests[0], &manifests[1]).unwrap();
        let said = refused(open(&manifests[2], &out));
        assert!(said.starts_with(&format!("{}: is not the manifest", manifests[1].display())));
        fs::rename(&away, &manifests[1]).unwrap();
        let image = folder.path().join("tuesday");
        let cut = fs::File::options().write(true).open(&image).unwrap();
        cut.set_len(8999 * 512).unwrap();
        let said = refused(open(&manifests[2], &out));
        assert!(said.contains("put the whole image there again"), "{said}");
        cut.set_len(9000 * 512).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        for name in ["base", "tuesday", "friday"] {
            for name in [name.to_owned(), format!("{name}.manifest")] {
                fs::copy(folder.path().join(&name), elsewhere.path().join(&name)).unwrap();
            }
        }
        drop(folder);
        let out = elsewhere.path().join("out");
        restore(&elsewhere.path().join("friday.manifest"), &out);
        assert!(fs::read(&out).unwrap() == last);
    }

    #[test]
    fn unneeded_parent_may_be_missing() {
        let folder = tempfile::tempdir().unwrap();
        let (manifests, mut drive) = three(folder.path());
        drive.iter_mut().for_each(|byte| *byte ^= 1);
        let [last, later, out] = ["last", "later", "out"].map(|name| folder.path().join(name));
        back_up(&last, &drive, (Some(&manifests[2]), Vec::new()), None);
        let base = folder.path().join("base");
        let is_own = Restore::open(Chain::open(&manifest_of(&last)).unwrap(), &base, true);
        assert!(refused(is_own).contains("belongs to the backup"));
        drive[5] ^= 1;
        back_up(&later, &drive, (Some(&manifest_of(&last)), Vec::new()), None);
        for manifest in &manifests {
            fs::remove_file(manifest).unwrap();
        }
        for newest in [&last, &later] {
            restore(&manifest_of(newest), &out);
            fs::rename(&out, folder.path().join("restored")).unwrap();
        }
        assert!(fs::read(folder.path().join("restored")).unwrap() == drive);
        // As before there was that line.
        let path = manifest_of(&last);
        let text = fs::read_to_string(&path).unwrap();
        let mut old = Link::read(&path).unwrap().manifest;
        old = old.clone().based_on(old.parent.unwrap());
        assert_eq!(text.lines().count(), old.text().lines().count() + 1);
        fs::write(&path, old.text()).unwrap();
        assert!(matches!(Chain::open(&path), Err(BackupError::MissingParent { .. })));
    }

    #[test]
    fn parent_is_found_by_whole_path() {
        let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let base = old.path().join("base");
        let mut drive = drive();
        back_up(&base, &drive, (None, Vec::new()), None);
        drive[0] ^= 1;
        let child = new.path().join("child");
        back_up(&child, &drive, (Some(&manifest_of(&base)), Vec::new()), None);
        let out = new.path().join("out");
        restore(&manifest_of(&child), &out);
        assert!(fs::read(&out).unwrap() == drive);
    }

    #[test]
    fn target_of_wrong_size_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (manifests, last) = three(folder.path());
        let chain = || Chain::open(&manifests[2]).unwrap();
        let out = folder.path().join("out");
        let with = |bytes: usize, force: bool| {
            fs::write(&out, vec![3; bytes]).unwrap();
            Restore::open(chain(), &out, force)
        };
        for force in [false, true] {
            let said = refused(with(8999 * 512, force));
            assert!(said.contains("choose a larger one"), "{said}");
        }
        let said = refused(with(9000 * 512, false));
        assert!(said.contains("overwrite it with --force"), "{said}");
        assert!(fs::read(&out).unwrap() == vec![3; 9000 * 512]);
        with(9010 * 512, true).unwrap().run(|_, _| {}).unwrap();
        let restored = fs::read(&out).unwrap();
        assert!(restored[..9000 * 512] == last && restored[9000 * 512..] == [3; 5120]);
        let base = folder.path().join("base");
        let before = fs::read(&base).unwrap();
        for own in [&base, &folder.path().join("tuesday")] {
            let said = refused(Restore::open(chain(), own, true));
            assert!(said.contains("belongs to the backup"), "{said}");
        }
        assert!(fs::read(&base).unwrap() == before);
    }

    #[test]
    fn chain_file_called_restoring_is_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let [base, child] = ["disk.restoring", "tuesday"].map(|name| folder.path().join(name));
        let mut drive = drive();
        back_up(&base, &drive, (None, Vec::new()), None);
        let before = fs::read(&base).unwrap();
        drive[5] ^= 1;
        back_up(&child, &drive, (Some(&manifest_of(&base)), Vec::new()), None);
        let said = refused(open(&manifest_of(&child), &folder.path().join("disk")));
        assert!(said.contains("disk.restoring: belongs to the backup"), "{said}");
        assert!(fs::read(&base).unwrap() == before);
    }

    #[test]
    fn unselected_data_are_zeros_or_kept() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        let part = |first_block, blocks| BlockRange { first_block, blocks };
        let parts = vec![part(300, 50), part(2000, 100), part(7000, 1)];
        let mut drive = drive();
        back_up(&base, &drive, (None, parts.clone()), Some(2010));
        // Others are selected then: the region of 7000 is stored for that alone.
        drive[(300 - 100) * 512] ^= 1;
        let parts = [&parts[..], &[part(7100, 10)]].concat();
        let child = folder.path().join("child");
        let since = manifest_of(&base);
        let (manifest, stored) = back_up(&child, &drive, (Some(&since), parts.clone()), Some(2010));
        assert_eq!(manifest.wanted_blocks(), 161);
        assert_eq!(stored, 98 + 11, "the region with the rest of the second part is unchanged");
        let expected = |outside: u8| {
            let is_in = |at: u64| {
                parts
                    .iter()
                    .any(|part| (part.first_block..part.first_block + part.blocks).contains(&at))
            };
            let block = |at: u64| match at {
                2010 => vec![0; 512],
                at if is_in(at) => bytes_of(&drive, at, 1).to_vec(),
                _ => vec![outside; 512],
            };
            (100..9100).flat_map(block).collect::<Vec<u8>>()
        };
        let new = folder.path().join("new");
        // Left by an older restore.
        fs::write(restoring(&new), vec![5; 10_000 * 512]).unwrap();
        let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(restoring(&new), own).unwrap();
        restore(&manifest_of(&child), &new);
        assert!(fs::read(&new).unwrap() == expected(0));
        let there = folder.path().join("there");
        fs::write(&there, vec![5; 9000 * 512]).unwrap();
        let chain = Chain::open(&manifest_of(&child)).unwrap();
        Restore::open(chain, &there, true).unwrap().run(|_, _| {}).unwrap();
        assert!(fs::read(&there).unwrap() == expected(5));
    }

    #[test]
    fn backup_since_imageless_parent_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (manifests, _) = three(folder.path());
        let out = folder.path().join("out");
        let since = || {
            let empty = Manifest::new("atlas10k", RANGE, "1", 0);
            Backup::open_since(&out, empty, Link::read(&manifests[2]).unwrap())
        };
        let scrubbed = folder.path().join("scrub.manifest");
        let whole = Link::read(&manifests[0]).unwrap().manifest.text();
        fs::write(&scrubbed, whole).unwrap();
        let empty = Manifest::new("atlas10k", RANGE, "1", 0);
        let of_scrub = Backup::open_since(&out, empty, Link::read(&scrubbed).unwrap());
        let said = of_scrub.err().unwrap().to_string();
        assert!(said.contains("the manifest of a scrub has none"), "{said}");
        let [away, friday, base] = ["away", "friday", "base"].map(|name| folder.path().join(name));
        fs::rename(&friday, &away).unwrap();
        assert!(matches!(since(), Err(BackupError::Image { .. })));
        fs::write(&friday, "cut off").unwrap();
        assert!(matches!(since(), Err(BackupError::ImageSize { .. })));
        fs::rename(&away, &friday).unwrap();
        fs::rename(&base, &away).unwrap();
        assert!(matches!(since(), Err(BackupError::Image { path, .. }) if path == base));
        assert!(!super::super::files::partial(&out).exists());
        fs::rename(&away, &base).unwrap();
        assert!(since().is_ok());
    }

    #[test]
    fn backup_since_other_drive_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (base, out) = (folder.path().join("base"), folder.path().join("out"));
        back_up(&base, &drive(), (None, Vec::new()), None);
        let parent = || Link::read(&manifest_of(&base)).unwrap();
        let refused = |empty: Manifest, parent: Link| {
            let said = Backup::open_since(&out, empty, parent).err().unwrap().to_string();
            assert!(fs::read_dir(folder.path()).unwrap().all(|entry| {
                let name = entry.unwrap().file_name();
                !name.to_str().unwrap().starts_with("out")
            }));
            said
        };
        let said = refused(Manifest::new("cheetah9lp", RANGE, "1", 0), parent());
        assert!(said.contains("name a backup of this drive"), "{said}");
        let empty = || Manifest::new("atlas10k", RANGE, "1", 0);
        let mut unfinished = parent();
        unfinished.manifest.forget(4000);
        let said = refused(empty(), unfinished.clone());
        assert!(said.contains("not complete"), "{said}");
        fs::write(manifest_of(&base), unfinished.manifest.text()).unwrap();
        assert!(matches!(Chain::open(&manifest_of(&base)), Err(BackupError::Unfinished { .. })));
        let scrubbed = Link { path: folder.path().join("monday"), ..parent() };
        let said = refused(empty(), scrubbed);
        assert!(said.contains("its name does not end in .manifest"), "{said}");
    }
}
