//! Allocated blocks of an ext2, ext3 or ext4 by its block bitmaps, without mounting it.
//!
//! ```text
//!   superblock at byte 1024   -> size of blocks and groups, features
//!   group descriptors         -> place of each group's bitmap; groups whose bitmap was never written
//!   block bitmaps             -> a bit for each block, or for each cluster with `bigalloc`
//! ```
//! A group whose bitmap was never written has only what `mkfs` put there: copies of the superblock and the
//! descriptors, and bitmaps and inode tables, of any group with `flex_bg`. The number of free blocks in each
//! descriptor is compared with what was found, if the file system was unmounted cleanly.
//!
//! Layout: `fs/ext4/ext4.h` of Linux, and its documentation, "ext4 Data Structures and Algorithms".
//! Non-goals: checksums of metadata; the journal, which may hold newer bitmaps while the file system is
//! mounted.

use std::mem;

use super::file_system::{Allocated, FileSystemError, OTHERS, little_endian, take};
use super::parts::Parts;
use super::ranges::{ByteRange, Extents};

/// Bitmaps that are read at once, at most.
const BITMAPS_AT_ONCE: usize = 4096;

/// Bytes of the descriptors of a larger file system than there are.
const DESCRIPTORS_MAX: u64 = 256 << 20;

/// Beginning of the superblock, from the beginning of the file system.
const SUPERBLOCK: u64 = 1024;

const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const INCOMPAT_RECOVER: u32 = 0x4;
const INCOMPAT_JOURNAL_DEVICE: u32 = 0x8;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_64BIT: u32 = 0x80;
/// Features that change no place of a bitmap, and those above: compression, types of files, recovery,
/// extents, multiple mount protection, flexible groups, values in inodes, data in directories, seeds of
/// checksums, large directories, data in inodes, encryption, case folding.
const INCOMPAT_KNOWN: u32 = 0x3_f7d7;
const RO_COMPAT_SPARSE_SUPER: u32 = 0x1;
const RO_COMPAT_GDT_CSUM: u32 = 0x10;
const RO_COMPAT_BIGALLOC: u32 = 0x200;
const RO_COMPAT_METADATA_CSUM: u32 = 0x400;

/// Flag of a group: its block bitmap was never written.
const BLOCK_UNINIT: u16 = 0x2;

/// State of a file system: unmounted cleanly, and with errors.
const STATE_VALID: u16 = 0x1;
const STATE_ERRORS: u16 = 0x2;

/// Finds what is allocated, with the first bytes of the file system.
pub(super) fn find<E: From<FileSystemError>>(
    head: &[u8],
    size_bytes: u64,
    mut read: impl FnMut(&Extents) -> Result<Parts, E>,
) -> Result<Allocated, E> {
    let layout = Ext4Layout::new(head, size_bytes)?;
    let table = layout.descriptor_blocks();
    let groups = layout.groups(&read(&table)?)?;
    let mut metadata = Vec::new();
    metadata.extend(table.ranges());
    let (mut ranges, mut used) = (Vec::new(), Vec::new());
    for (first, some) in (0..).step_by(BITMAPS_AT_ONCE).zip(groups.chunks(BITMAPS_AT_ONCE)) {
        let bitmaps = some.iter().filter(|group| !group.is_uninit);
        let bitmaps = bitmaps.map(|group| layout.range(group.bitmap, 1));
        let bitmaps = Extents::new(bitmaps.collect());
        let parts = read(&bitmaps)?;
        metadata.extend(bitmaps.ranges());
        for (number, group) in (first..).zip(some) {
            if group.is_uninit {
                layout.own_metadata(number, &mut ranges);
            } else {
                let bitmap = take(&parts, layout.range(group.bitmap, 1))?;
                layout.used(number, &bitmap, &mut used);
            }
            layout.tables(group, &mut ranges);
        }
    }
    ranges.append(&mut used);
    // Before the first block there may be a boot sector.
    ranges.push(layout.range(0, layout.first_data_block));
    let all = layout.range(0, layout.blocks);
    // A cluster is in use as a whole.
    let cluster_bytes = layout.cluster * layout.block_bytes;
    let extents = Extents::new(ranges).widened(cluster_bytes, all);
    if layout.is_clean {
        layout.ensure_free(&groups, extents.ranges())?;
    }
    Ok(Allocated {
        extents,
        size_bytes: all.length_bytes,
        is_clean: layout.is_clean,
        metadata: Extents::new(metadata),
    })
}

fn damaged(what: impl Into<String>) -> FileSystemError {
    FileSystemError::Damaged { what: what.into(), check: "e2fsck -f" }
}

/// Reads little-endian numbers at their places.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        little_endian(self.0, at, 2) as u16
    }

    fn u32(&self, at: usize) -> u32 {
        little_endian(self.0, at, 4) as u32
    }
}

/// A group of blocks, as its descriptor has it. Places are blocks.
struct Group {
    bitmap: u64,
    inode_bitmap: u64,
    inode_table: u64,
    free: u64,
    is_uninit: bool,
}

/// Layout of a file system. Counts are of blocks, unless another unit is named.
struct Ext4Layout {
    block_bytes: u64,
    blocks: u64,
    first_data_block: u64,
    blocks_per_group: u64,
    /// Blocks of a cluster, for which a bitmap has a bit.
    cluster: u64,
    groups: u64,
    descriptor_bytes: u64,
    reserved_descriptor_blocks: u64,
    inode_table_blocks: u64,
    /// The first block of descriptors that is in a separate group.
    first_meta_block: u64,
    has_checksums: bool,
    copies: Copies,
    is_clean: bool,
}

/// Groups with a copy of the superblock.
enum Copies {
    All,
    /// The first two, and powers of 3, 5 and 7.
    Sparse,
    /// The first, and these.
    Two([u64; 2]),
}

impl Copies {
    fn has(&self, group: u64) -> bool {
        match self {
            Self::All => true,
            Self::Sparse => {
                group <= 1
                    || [3, 5, 7].into_iter().any(|base| {
                        let mut power = base;
                        while power < group {
                            power *= base;
                        }
                        power == group
                    })
            }
            Self::Two(groups) => group == 0 || groups.contains(&group),
        }
    }
}

impl Ext4Layout {
    /// Reads the superblock, which is in the first bytes of the file system.
    fn new(head: &[u8], size_bytes: u64) -> Result<Self, FileSystemError> {
        let superblock = Fields(head.get(SUPERBLOCK as usize..).unwrap_or_default());
        if superblock.u16(0x38) != 0xef53 || superblock.0.len() < 1024 {
            let found = OTHERS
                .iter()
                .find(|&&(at, name, _)| head.get(at..).is_some_and(|rest| rest.starts_with(name)))
                .map_or("something unknown", |other| other.2);
            return Err(FileSystemError::Other { found });
        }
        let (compat, incompat) = (superblock.u32(0x5c), superblock.u32(0x60));
        let ro_compat = superblock.u32(0x64);
        if incompat & INCOMPAT_JOURNAL_DEVICE != 0 {
            return Err(FileSystemError::Other { found: "the journal of one" });
        }
        if incompat & !INCOMPAT_KNOWN != 0 {
            let what = format!("features 0x{:x} that are unknown", incompat & !INCOMPAT_KNOWN);
            return Err(FileSystemError::Unsupported { what });
        }
        let layout = Self::sizes(&superblock, (compat, incompat, ro_compat))?;
        if layout.groups.saturating_mul(layout.descriptor_bytes) > DESCRIPTORS_MAX {
            return Err(damaged(format!("it would have {} groups of blocks", layout.groups)));
        }
        if layout.blocks.checked_mul(layout.block_bytes).is_none_or(|bytes| bytes > size_bytes) {
            return Err(damaged(format!(
                "it has {} blocks of {}, more than the {size_bytes} bytes from there to the drive's end",
                layout.blocks, layout.block_bytes
            )));
        }
        Ok(layout)
    }

    fn sizes(superblock: &Fields<'_>, features: (u32, u32, u32)) -> Result<Self, FileSystemError> {
        let (compat, incompat, ro_compat) = features;
        let (log_block, log_cluster) = (superblock.u32(0x18), superblock.u32(0x1c));
        let is_wide = incompat & INCOMPAT_64BIT != 0;
        let has_clusters = ro_compat & RO_COMPAT_BIGALLOC != 0;
        if log_block > 6 || (has_clusters && !(log_block..=22).contains(&log_cluster)) {
            return Err(damaged("blocks or clusters of impossible size"));
        }
        let block_bytes = 1024u64 << log_block;
        let cluster = if has_clusters { 1u64 << (log_cluster - log_block) } else { 1 };
        let high = if is_wide { u64::from(superblock.u32(0x150)) } else { 0 };
        let blocks = u64::from(superblock.u32(0x4)) | high << 32;
        let first_data_block = u64::from(superblock.u32(0x14));
        let blocks_per_group = u64::from(superblock.u32(0x20));
        let descriptor_bytes = if is_wide { u64::from(superblock.u16(0xfe)) } else { 32 };
        let clusters_per_group = blocks_per_group / cluster;
        let is_possible = (1..=8 * block_bytes).contains(&clusters_per_group)
            && blocks_per_group.is_multiple_of(8 * cluster)
            && first_data_block < blocks.min(2)
            && descriptor_bytes.is_power_of_two()
            && (32..=block_bytes).contains(&descriptor_bytes);
        if !is_possible {
            return Err(damaged("groups, descriptors or the first block of impossible size"));
        }
        let inode_bytes = if superblock.u32(0x4c) == 0 { 128 } else { superblock.u16(0x58).into() };
        let inodes: u64 = superblock.u32(0x28).into();
        let state = superblock.u16(0x3a);
        Ok(Self {
            block_bytes,
            blocks,
            first_data_block,
            blocks_per_group,
            cluster,
            groups: (blocks - first_data_block).div_ceil(blocks_per_group),
            descriptor_bytes,
            reserved_descriptor_blocks: superblock.u16(0xce).into(),
            inode_table_blocks: (inodes * inode_bytes).div_ceil(block_bytes),
            first_meta_block: if incompat & INCOMPAT_META_BG != 0 {
                superblock.u32(0x104).into()
            } else {
                u64::MAX
            },
            has_checksums: ro_compat & (RO_COMPAT_GDT_CSUM | RO_COMPAT_METADATA_CSUM) != 0,
            copies: if compat & COMPAT_SPARSE_SUPER2 != 0 {
                Copies::Two([superblock.u32(0x24c).into(), superblock.u32(0x250).into()])
            } else if ro_compat & RO_COMPAT_SPARSE_SUPER != 0 {
                Copies::Sparse
            } else {
                Copies::All
            },
            is_clean: state & (STATE_VALID | STATE_ERRORS) == STATE_VALID
                && incompat & INCOMPAT_RECOVER == 0,
        })
    }

    fn range(&self, block: u64, blocks: u64) -> ByteRange {
        ByteRange::new(block * self.block_bytes, blocks * self.block_bytes)
    }

    /// First block and number of blocks of a group.
    fn group(&self, number: u64) -> (u64, u64) {
        let first = self.first_data_block + number * self.blocks_per_group;
        (first, self.blocks_per_group.min(self.blocks - first))
    }

    fn descriptors_per_block(&self) -> u64 {
        self.block_bytes / self.descriptor_bytes
    }

    /// Blocks of descriptors in the file system.
    fn table_blocks(&self) -> u64 {
        self.groups.div_ceil(self.descriptors_per_block())
    }

    /// Blocks of descriptors in each group that has a copy of them, without those of `meta_bg`.
    fn copied_blocks(&self) -> u64 {
        self.table_blocks().min(self.first_meta_block)
    }

    fn descriptor_block(&self, number: u64) -> u64 {
        let superblock = SUPERBLOCK / self.block_bytes;
        if number < self.first_meta_block {
            return superblock + 1 + number;
        }
        let group = number * self.descriptors_per_block();
        let after = if group == 0 { superblock - self.first_data_block } else { 0 };
        self.group(group).0 + after + u64::from(self.copies.has(group))
    }

    fn descriptor_blocks(&self) -> Extents {
        let blocks = (0..self.table_blocks()).map(|number| self.descriptor_block(number));
        // A damaged superblock may place some past the end: `groups` reports them as unread.
        let blocks = blocks.filter(|block| *block < self.blocks);
        Extents::new(blocks.map(|block| self.range(block, 1)).collect())
    }

    fn groups(&self, parts: &Parts) -> Result<Vec<Group>, FileSystemError> {
        let mut groups = Vec::new();
        for number in 0..self.table_blocks() {
            let block = take(parts, self.range(self.descriptor_block(number), 1))?;
            let rows = block.chunks_exact(self.descriptor_bytes as usize);
            let left = self.groups - groups.len() as u64;
            for row in rows.take(left as usize) {
                groups.push(self.descriptor(groups.len(), row)?);
            }
        }
        Ok(groups)
    }

    fn descriptor(&self, number: usize, row: &[u8]) -> Result<Group, FileSystemError> {
        // A short one ends before the high halves, which are then read as 0.
        let row = Fields(row);
        let place =
            |low: usize, high: usize| u64::from(row.u32(low)) | u64::from(row.u32(high)) << 32;
        let group = Group {
            bitmap: place(0, 32),
            inode_bitmap: place(4, 36),
            inode_table: place(8, 40),
            free: u64::from(row.u16(12)) | u64::from(row.u16(44)) << 16,
            is_uninit: self.has_checksums && row.u16(18) & BLOCK_UNINIT != 0,
        };
        let ends = [
            group.bitmap.saturating_add(1),
            group.inode_bitmap.saturating_add(1),
            group.inode_table.saturating_add(self.inode_table_blocks),
        ];
        if ends.into_iter().any(|end| end > self.blocks) {
            return Err(damaged(format!("group {number} has bitmaps or inodes behind the end")));
        }
        Ok(group)
    }

    /// Adds bitmaps and inodes of a group, wherever they are.
    fn tables(&self, group: &Group, ranges: &mut Vec<ByteRange>) {
        ranges.extend([self.range(group.bitmap, 1), self.range(group.inode_bitmap, 1)]);
        ranges.push(self.range(group.inode_table, self.inode_table_blocks));
    }

    /// Adds copies of the superblock and of descriptors in a group.
    fn own_metadata(&self, number: u64, ranges: &mut Vec<ByteRange>) {
        let (first, all) = self.group(number);
        let has_copy = self.copies.has(number);
        let mut blocks = u64::from(has_copy);
        if number / self.descriptors_per_block() < self.first_meta_block {
            let copied = self.copied_blocks() + self.reserved_descriptor_blocks;
            blocks += if has_copy { copied } else { 0 };
        } else {
            let place = number % self.descriptors_per_block();
            let is_copy = place <= 1 || place == self.descriptors_per_block() - 1;
            blocks += u64::from(is_copy);
        }
        ranges.push(self.range(first, blocks.min(all)));
    }

    /// Adds what a group's bitmap says is in use.
    fn used(&self, number: u64, bitmap: &[u8], ranges: &mut Vec<ByteRange>) {
        let (first, blocks) = self.group(number);
        let bits = blocks.div_ceil(self.cluster);
        let mut from = None;
        let mut bit = 0;
        while bit < bits {
            let byte = bitmap[(bit / 8) as usize];
            let is_even = bit.is_multiple_of(8) && bit + 8 <= bits && (byte == 0 || byte == 0xff);
            match (is_used(bit, bitmap), from) {
                (true, None) => from = Some(bit),
                (false, Some(_)) => {
                    ranges.extend(self.clusters((first, blocks), mem::take(&mut from), bit))
                }
                _ => {}
            }
            bit += if is_even { 8 } else { 1 };
        }
        ranges.extend(self.clusters((first, blocks), from, bits));
    }

    /// Clusters `from..to` of a group.
    fn clusters(
        &self,
        (first, blocks): (u64, u64),
        from: Option<u64>,
        to: u64,
    ) -> Option<ByteRange> {
        let start = from? * self.cluster;
        let end = (to * self.cluster).min(blocks);
        Some(self.range(first + start, end - start))
    }

    /// That each group has the number of free clusters in its descriptor.
    fn ensure_free(&self, groups: &[Group], used: &[ByteRange]) -> Result<(), FileSystemError> {
        let cluster_bytes = self.cluster * self.block_bytes;
        let mut at = 0;
        for (number, group) in (0..).zip(groups) {
            let (first, blocks) = self.group(number);
            let (from, end) = (first * self.block_bytes, (first + blocks) * self.block_bytes);
            at += used[at..].partition_point(|range| range.end() <= from);
            // Clusters before this one are counted.
            let (mut next, mut in_use) = (0, 0);
            for range in used[at..].iter().take_while(|range| range.offset_bytes < end) {
                let start = (range.offset_bytes.max(from) - from) / cluster_bytes;
                let to = (range.end().min(end) - from).div_ceil(cluster_bytes);
                in_use += to.saturating_sub(start.max(next));
                next = to.max(next);
            }
            let free = blocks.div_ceil(self.cluster) - in_use;
            if free != group.free {
                let says = group.free;
                return Err(damaged(format!(
                    "group {number} has {free} free blocks by its bitmap, and {says} by its descriptor"
                )));
            }
        }
        Ok(())
    }
}

fn is_used(bit: u64, bitmap: &[u8]) -> bool {
    bitmap[(bit / 8) as usize] >> (bit % 8) & 1 == 1
}

#[cfg(test)]
mod tests;
