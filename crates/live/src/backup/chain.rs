//! Backups that stand on each other: a child leaves out the regions that its parent has.
//!
//! A child names its parent by the checksum of the parent's manifest, and says under which name that
//! was found. The parent is looked for under that name in the child's folder, and then where it was.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use freewheel_trace::read_text_up_to;
use freewheel_units::{BLOCK_BYTES, Bytes};

use super::error::BackupError;
use super::files::folder;
use super::manifest::{Manifest, Parent, checksum_of};
use super::names::name_manifest;
use super::read_back::without;
use crate::control::BlockRange;

/// A manifest of 150 TB is as long.
const MANIFEST_BYTES_MAX: Bytes = Bytes::from_kib(8 << 20);

/// Ending of the name of a manifest: the image has the name without it.
const ENDING: &str = ".manifest";

/// The manifest of a backup in its file.
#[derive(Debug, Clone)]
pub struct Link {
    /// The file.
    pub path: PathBuf,
    /// Contents of the backup.
    pub manifest: Manifest,
    /// The checksum by which children know it.
    pub checksum: u128,
}

/// The file with the blocks of the backup whose manifest has this name.
fn image_of(manifest: &Path) -> Option<PathBuf> {
    let name = manifest.file_name()?.to_str()?.strip_suffix(ENDING)?;
    (!name.is_empty()).then(|| manifest.with_file_name(name))
}

impl Link {
    /// Reads the manifest of a backup. One that a kill has left without its name gets it.
    pub fn read(path: &Path) -> Result<Self, BackupError> {
        let mut text = read_text_up_to(path, MANIFEST_BYTES_MAX);
        if let (Err(error), Some(image)) = (&text, image_of(path))
            && error.kind() == io::ErrorKind::NotFound
            && name_manifest(&image)?
        {
            text = read_text_up_to(path, MANIFEST_BYTES_MAX);
        }
        let text = text.map_err(|source| BackupError::System { path: path.into(), source })?;
        let manifest = Manifest::parse(&text)
            .map_err(|source| BackupError::NoManifest { path: path.into(), source })?;
        let checksum = checksum_of(&text).unwrap_or_default();
        Ok(Self { path: path.into(), manifest, checksum })
    }

    /// The file with the blocks of the backup.
    pub fn image(&self) -> Result<PathBuf, BackupError> {
        image_of(&self.path).ok_or_else(|| BackupError::NoImageName { path: self.path.clone() })
    }

    /// That a backup with this manifest can leave out what this one has.
    pub(super) fn ensure_parent_of(&self, child: &Manifest) -> Result<(), BackupError> {
        self.image()?;
        if !self.manifest.has_all() {
            return Err(BackupError::UnfinishedParent { path: self.path.clone() });
        }
        let same = child.ensure_same(&self.manifest);
        same.map_err(|source| BackupError::OtherDrive { path: self.path.clone(), source })
    }

    /// That all of the backup can be restored, so that others may be based on it.
    pub(super) fn ensure_restorable(&self) -> Result<(), BackupError> {
        Sources::of(self).map(drop)
    }

    /// Name of the file for a child at `out`: the bare name if both are in one folder.
    pub(super) fn name_for(&self, out: &Path) -> Parent {
        let path = whole(&self.path).unwrap_or_else(|| self.path.clone());
        let is_beside = whole(folder(out)).is_some_and(|folder| path.parent() == Some(&folder));
        let file = match path.file_name().filter(|_| is_beside) {
            Some(name) => name.to_string_lossy(),
            None => path.to_string_lossy(),
        };
        Parent { checksum: self.checksum, file: file.into_owned() }
    }

    /// Finds and reads the parent that the manifest names.
    fn parent(&self, named: &Parent) -> Result<Self, BackupError> {
        let beside = Path::new(&named.file).file_name().map(|name| self.path.with_file_name(name));
        let recorded = folder(&self.path).join(&named.file);
        let mut problems = Vec::new();
        for path in beside.into_iter().chain([recorded]) {
            match Self::read(&path) {
                Ok(found) if found.checksum == named.checksum => return Ok(found),
                Ok(_) => {
                    problems.push(BackupError::ChangedParent { path, child: self.path.clone() });
                }
                Err(BackupError::System { source, .. })
                    if source.kind() == io::ErrorKind::NotFound => {}
                Err(error) => problems.push(error),
            }
        }
        let missing =
            BackupError::MissingParent { child: self.path.clone(), file: named.file.clone() };
        Err(problems.into_iter().next().unwrap_or(missing))
    }
}

fn whole(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// The file of one backup of a chain.
#[derive(Debug)]
struct Image {
    path: PathBuf,
    file: File,
}

/// A backup with all that it stands on.
#[derive(Debug)]
pub struct Chain {
    /// Manifest of the newest.
    pub manifest: Manifest,
    sources: Sources,
}

/// Places of a backup's blocks.
#[derive(Debug, Default)]
struct Sources {
    /// Images of which regions are needed, the newest first.
    images: Vec<Image>,
    /// The image that has each region, by its number, ascending.
    stored: Vec<(u64, usize)>,
    /// Files that must not be written.
    files: Vec<(u64, u64)>,
}

impl Sources {
    /// Follows the parents of a backup. One of which no region is needed may be missing, but if it is there
    /// its files must not be written.
    fn of(newest: &Link) -> Result<Self, BackupError> {
        let mut sources = Self::default();
        let mut child = Cow::Borrowed(newest);
        let mut pending: Vec<u64> = child.manifest.regions().collect();
        let mut seen = vec![child.checksum];
        while let Some(named) = child.manifest.parent.clone() {
            let is_needed = child.manifest.leaves_out() && !pending.is_empty();
            let found = child.parent(&named).and_then(|parent| {
                parent.ensure_parent_of(&child.manifest)?;
                Ok(parent)
            });
            let parent = match found {
                Err(_) if !is_needed => break,
                found => found?,
            };
            if seen.contains(&parent.checksum) {
                return Err(BackupError::Circle { path: parent.path });
            }
            seen.push(parent.checksum);
            let (left_out, own) = pending
                .into_iter()
                .partition(|region| child.manifest.has_same(&parent.manifest, *region));
            sources.add(&child, own)?;
            (pending, child) = (left_out, Cow::Owned(parent));
        }
        sources.add(&child, pending)?;
        sources.stored.sort_unstable();
        Ok(sources)
    }

    /// Adds a backup with the regions that are taken from it.
    fn add(&mut self, link: &Link, regions: Vec<u64>) -> Result<(), BackupError> {
        let image = link.image()?;
        for path in [&link.path, &image] {
            let there = fs::metadata(path);
            self.files.extend(there.ok().map(|there| (there.dev(), there.ino())));
        }
        if regions.is_empty() {
            return Ok(());
        }
        let (file, length) = File::open(&image)
            .and_then(|file| file.metadata().map(|metadata| (file, metadata.len())))
            .map_err(|source| BackupError::Image { path: image.clone(), source })?;
        let wanted = link.manifest.range.blocks * BLOCK_BYTES;
        if length != wanted {
            let [found, wanted] = [length, wanted].map(Bytes::new);
            return Err(BackupError::ImageSize { path: image, found, wanted });
        }
        self.stored.extend(regions.into_iter().map(|region| (region, self.images.len())));
        self.images.push(Image { path: image, file });
        Ok(())
    }
}

impl Chain {
    /// Follows the parents of the backup with this manifest, as far as their regions are needed.
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let newest = Link::read(path)?;
        if !newest.manifest.has_all() {
            return Err(BackupError::Unfinished { path: path.into() });
        }
        let sources = Sources::of(&newest)?;
        Ok(Self { manifest: newest.manifest, sources })
    }

    /// Number of backups that have regions of it.
    pub fn backups(&self) -> usize {
        self.sources.images.len()
    }

    /// True if this file belongs to one of the backups.
    pub(super) fn has(&self, file: &File) -> io::Result<bool> {
        let metadata = file.metadata()?;
        Ok(self.sources.files.contains(&(metadata.dev(), metadata.ino())))
    }

    /// Data of the drive in a range of whole regions: zeros for blocks that are not wanted or could not be
    /// read. Err with the image where its data are not those of the manifest.
    pub(super) fn read(&self, range: BlockRange) -> Result<Vec<u8>, (PathBuf, String)> {
        let mut data = vec![0; (range.blocks * BLOCK_BYTES) as usize];
        let region = range.first_block / super::REGION_BLOCKS;
        let sources = &self.sources;
        let Ok(at) = sources.stored.binary_search_by_key(&region, |(region, _)| *region) else {
            return Ok(data);
        };
        let Image { path, file } = &sources.images[sources.stored[at].1];
        let Manifest { drive, range: all, instance, began_ns, .. } = &self.manifest;
        let mut read = Manifest::new(drive, *all, instance, *began_ns);
        for part in without(&self.manifest.wanted_in(&[range]), &self.manifest.unreadable) {
            let in_region = (part.first_block - range.first_block) * BLOCK_BYTES;
            let bytes = &mut data[in_region as usize..][..(part.blocks * BLOCK_BYTES) as usize];
            let place = (part.first_block - all.first_block) * BLOCK_BYTES;
            file.read_exact_at(bytes, place).map_err(|error| damaged(error.to_string(), path))?;
            read.add(part.first_block, bytes);
        }
        if read.has_same_sum(&self.manifest, region) {
            Ok(data)
        } else {
            Err(damaged("its data have another checksum than the manifest says".into(), path))
        }
    }
}

fn damaged(why: String, path: &Path) -> (PathBuf, String) {
    (path.to_path_buf(), why)
}
