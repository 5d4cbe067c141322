//! Allocated blocks of an XFS, by its trees of free space.
//!
//! ```text
//!   superblock          -> sizes, number of allocation groups, place of the log
//!   header of a group   -> root and height of its tree of free extents by place (bnobt), count of free blocks
//!   tree                -> inner blocks name blocks below them, leaves have free extents
//!   log                 -> clean if its last record says that the file system was unmounted
//! ```
//! The count in each header is compared with the extents, if the file system was unmounted cleanly.
//!
//! Layout: "XFS Algorithms & Data Structures" (third edition), chapters 11, 14 and 15.
//! Non-goals: checksums of metadata; the real-time device; a log on another device, which counts as not clean.

use std::collections::HashSet;
use std::ops::Range;

use super::file_system::{Allocated, FileSystemError, between, big_endian, take};
use super::parts::Parts;
use super::ranges::{ByteRange, Extents};

/// First bytes of the file system.
pub(super) const NAME: &[u8] = b"XFSB";

/// Groups whose headers are read at once, and blocks of trees, at most.
const AT_ONCE: usize = 4096;
/// More groups than a file system has.
const GROUPS_MAX: u64 = 1 << 24;
/// Highest tree: nodes of 1 KiB with 80 children reach this for all blocks of a group.
const LEVELS_MAX: u64 = 9;

/// Features that change no place of what is read here: types in directories, sparse inodes, a UUID for
/// metadata, large times, many extents, exchanged ranges, parents.
const INCOMPAT_KNOWN: u64 = 0xef;
const INCOMPAT_NEEDS_REPAIR: u64 = 0x10;

/// Blocks of the log, whatever those of the file system are.
const LOG_BLOCK: u64 = 512;
/// Longest record of the log in such blocks, its headers counted in.
const LOG_RECORD_MAX: u64 = 520;
const LOG_RECORD: u64 = 0xfeed_babe;
/// Flag of an operation: the file system was unmounted.
const UNMOUNT: u8 = 0x20;
/// Bytes of a record that a header block describes.
const HEADER_COVERS: u64 = 32 << 10;

fn damaged(what: impl Into<String>) -> FileSystemError {
    FileSystemError::Damaged { what: what.into(), check: "xfs_repair -n" }
}

/// Finds what is allocated, with the first bytes of the file system.
pub(super) fn find<E: From<FileSystemError>>(
    head: &[u8],
    size_bytes: u64,
    mut read: impl FnMut(&Extents) -> Result<Parts, E>,
) -> Result<Allocated, E> {
    let layout = XfsLayout::new(head, size_bytes)?;
    let mut metadata = Vec::new();
    let mut reader = |ranges: Vec<ByteRange>| {
        metadata.extend(ranges.iter().copied());
        read(&Extents::new(ranges))
    };
    let is_clean = layout.is_clean(&mut reader)?;
    let mut free: Vec<ByteRange> = Vec::new();
    let numbers: Vec<u64> = (0..layout.groups).collect();
    for some in numbers.chunks(AT_ONCE) {
        let headers = some.iter().map(|&number| layout.header(number));
        let parts = reader(headers.collect())?;
        let mut groups = Vec::new();
        for &number in some {
            groups.push(layout.group(number, &take(&parts, layout.header(number))?)?);
        }
        layout.free(&groups, is_clean, &mut reader, &mut free)?;
    }
    let all = ByteRange::new(0, layout.blocks * layout.block_bytes);
    let count = free.len();
    let free = Extents::new(free);
    if free.ranges().len() > count
        || free.ranges().last().is_some_and(|last| last.end() > all.end())
    {
        return Err(damaged("free blocks behind the end").into());
    }
    Ok(Allocated {
        extents: between(&free, all),
        size_bytes: all.length_bytes,
        is_clean,
        metadata: Extents::new(metadata),
    })
}

/// Sizes and places of a file system.
struct XfsLayout {
    block_bytes: u64,
    blocks: u64,
    group_blocks: u64,
    groups: u64,
    sector_bytes: u64,
    has_checksums: bool,
    /// Bytes of the log in the file system.
    log: Option<ByteRange>,
}

/// A group, as its header has it.
struct Group {
    number: u64,
    root: u64,
    levels: u64,
    free: u64,
    blocks: u64,
}

/// A block of a tree that is to be read.
struct TreeBlock {
    /// Index of its group among those that are read.
    group: usize,
    block: u64,
    /// Height above the leaves.
    level: u64,
}

impl XfsLayout {
    fn new(head: &[u8], size_bytes: u64) -> Result<Self, FileSystemError> {
        let (block_bytes, blocks) = (number(4, 4, head), number(8, 8, head));
        let (group_blocks, groups) = (number(84, 4, head), number(88, 4, head));
        let (version, sector_bytes) = (number(100, 2, head) & 0xf, number(102, 2, head));
        let is_possible = block_bytes.is_power_of_two()
            && (512..=65_536).contains(&block_bytes)
            && sector_bytes.is_power_of_two()
            && (512..=32_768).contains(&sector_bytes)
            && (4..=5).contains(&version)
            && group_blocks > 4 * sector_bytes / block_bytes
            && (1..=GROUPS_MAX).contains(&groups)
            && blocks.div_ceil(group_blocks) == groups
            // The headers of the last group, which may be shorter, fit as well.
            && (blocks - (groups - 1) * group_blocks) * block_bytes >= 4 * sector_bytes;
        if !is_possible {
            return Err(damaged("blocks, sectors or groups of impossible size"));
        }
        if blocks.checked_mul(block_bytes).is_none_or(|bytes| bytes > size_bytes) {
            return Err(damaged(format!(
                "it has {blocks} blocks of {block_bytes}, more than the {size_bytes} bytes from there to the drive's end"
            )));
        }
        let features = if version == 5 { number(216, 4, head) } else { 0 };
        if features & INCOMPAT_NEEDS_REPAIR != 0 {
            return Err(damaged("it says itself that it needs a repair"));
        }
        if features & !INCOMPAT_KNOWN != 0 {
            let what = format!("features 0x{:x} that are unknown", features & !INCOMPAT_KNOWN);
            return Err(FileSystemError::Unsupported { what });
        }
        let (log_start, log_blocks, log_bits) =
            (number(48, 8, head), number(96, 4, head), number(124, 1, head));
        let (group, within) = if log_bits < 32 {
            (log_start >> log_bits, log_start & ((1 << log_bits) - 1))
        } else {
            return Err(damaged("groups of impossible size"));
        };
        let first = group.saturating_mul(group_blocks).saturating_add(within);
        let is_inside = first.saturating_add(log_blocks) <= blocks && log_blocks > 0;
        let log = ByteRange::new(first.saturating_mul(block_bytes), log_blocks * block_bytes);
        let log = (log_start > 0 && is_inside).then_some(log);
        let has_checksums = version == 5;
        Ok(Self { block_bytes, blocks, group_blocks, groups, sector_bytes, has_checksums, log })
    }

    /// Place of a group's header of free space.
    fn header(&self, number: u64) -> ByteRange {
        let first = number * self.group_blocks * self.block_bytes;
        ByteRange::new(first + self.sector_bytes, self.sector_bytes)
    }

    fn group(&self, number: u64, header: &[u8]) -> Result<Group, FileSystemError> {
        let blocks = self.group_blocks.min(self.blocks - number * self.group_blocks);
        let group = Group {
            number,
            root: field(16, header),
            levels: field(28, header),
            free: field(52, header),
            blocks,
        };
        let is_possible = header.starts_with(b"XAGF")
            && field(8, header) == number
            && field(12, header) == blocks
            && (1..=LEVELS_MAX).contains(&group.levels);
        if is_possible {
            Ok(group)
        } else {
            Err(damaged(format!("the header of group {number} is none")))
        }
    }

    fn range(&self, group: &Group, block: u64) -> Result<ByteRange, FileSystemError> {
        if block >= group.blocks {
            let number = group.number;
            return Err(damaged(format!("the tree of group {number} leads behind its end")));
        }
        let place = (group.number * self.group_blocks + block) * self.block_bytes;
        Ok(ByteRange::new(place, self.block_bytes))
    }

    /// Adds the free extents of groups, level by level of their trees.
    fn free<E: From<FileSystemError>>(
        &self,
        groups: &[Group],
        is_clean: bool,
        reader: &mut impl FnMut(Vec<ByteRange>) -> Result<Parts, E>,
        free: &mut Vec<ByteRange>,
    ) -> Result<(), E> {
        let mut counted = vec![0; groups.len()];
        let mut left: Vec<TreeBlock> = groups
            .iter()
            .enumerate()
            .map(|(group, of)| TreeBlock { group, block: of.root, level: of.levels - 1 })
            .collect();
        let mut seen = HashSet::new();
        while !left.is_empty() {
            let some = left.split_off(left.len().saturating_sub(AT_ONCE));
            let ranges = some.iter().map(|at| self.range(&groups[at.group], at.block));
            let ranges = ranges.collect::<Result<Vec<ByteRange>, _>>()?;
            if let Some(again) = some.iter().find(|at| !seen.insert((at.group, at.block))) {
                let number = groups[again.group].number;
                return Err(damaged(format!("the tree of group {number} has a block twice")).into());
            }
            let parts = reader(ranges.clone())?;
            for (at, range) in some.iter().zip(ranges) {
                let block = take(&parts, range)?;
                let group = &groups[at.group];
                if at.level > 0 {
                    let children = self.children(group, at, &block)?;
                    left.extend(children.map(|block| TreeBlock {
                        block,
                        level: at.level - 1,
                        ..*at
                    }));
                } else {
                    for (first, blocks) in self.leaf(group, at, &block)? {
                        counted[at.group] += blocks;
                        let place = group.number * self.group_blocks + first;
                        let [from, length] = [place, blocks].map(|n| n * self.block_bytes);
                        free.push(ByteRange::new(from, length));
                    }
                }
            }
        }
        for (group, counted) in groups.iter().zip(counted) {
            if is_clean && group.free != counted {
                let Group { number, free, .. } = group;
                return Err(damaged(format!(
                    "group {number} has {counted} free blocks by its tree, and {free} by its header"
                ))
                .into());
            }
        }
        Ok(())
    }

    /// Records of a block of a tree: their number, and where they begin.
    fn records(
        &self,
        group: &Group,
        at: &TreeBlock,
        block: &[u8],
        bytes: u64,
    ) -> Result<(u64, usize), FileSystemError> {
        let (name, head) = if self.has_checksums { (b"AB3B", 56) } else { (b"ABTB", 16) };
        let (level, count) = (big_endian(block, 4, 2), big_endian(block, 6, 2));
        let fits = count <= (self.block_bytes - head) / bytes;
        if !block.starts_with(name) || level != at.level || !fits {
            let (number, block) = (group.number, at.block);
            return Err(damaged(format!("block {block} of group {number} is no part of its tree")));
        }
        Ok((count, head as usize))
    }

    fn children(
        &self,
        group: &Group,
        at: &TreeBlock,
        block: &[u8],
    ) -> Result<impl Iterator<Item = u64>, FileSystemError> {
        // Keys of eight bytes for all that have room come first, then places of four.
        let (count, head) = self.records(group, at, block, 12)?;
        let room = (self.block_bytes - head as u64) / 12;
        let places = head + 8 * room as usize;
        let children: Vec<u64> =
            (0..count as usize).map(|child| big_endian(block, places + 4 * child, 4)).collect();
        Ok(children.into_iter())
    }

    fn leaf(
        &self,
        group: &Group,
        at: &TreeBlock,
        block: &[u8],
    ) -> Result<Vec<(u64, u64)>, FileSystemError> {
        let (count, head) = self.records(group, at, block, 8)?;
        let extents: Vec<(u64, u64)> = (0..count as usize)
            .map(|record| {
                let place = head + 8 * record;
                (big_endian(block, place, 4), big_endian(block, place + 4, 4))
            })
            .collect();
        if extents.iter().any(|(first, blocks)| first + blocks > group.blocks) {
            Err(damaged(format!("group {} has free blocks behind its end", group.number)))
        } else {
            Ok(extents)
        }
    }

    /// True if the last record of the log says that the file system was unmounted.
    fn is_clean<E: From<FileSystemError>>(
        &self,
        reader: &mut impl FnMut(Vec<ByteRange>) -> Result<Parts, E>,
    ) -> Result<bool, E> {
        let Some(log) = self.log else { return Ok(false) };
        let blocks = log.length_bytes / LOG_BLOCK;
        let mut bytes = |blocks: Range<u64>| -> Result<Vec<u8>, E> {
            let length = (blocks.end - blocks.start) * LOG_BLOCK;
            let range = ByteRange::new(log.offset_bytes + blocks.start * LOG_BLOCK, length);
            Ok(take(&reader(vec![range])?, range)?)
        };
        let newest = cycle(&bytes(0..1)?);
        // Blocks of the newest turn through the log come first, those of the turn before behind them.
        let (mut new, mut old) = (0, blocks);
        if cycle(&bytes(blocks - 1..blocks)?) == newest {
            new = blocks - 1;
        }
        while old - new > 1 {
            let middle = u64::midpoint(new, old);
            if cycle(&bytes(middle..middle + 1)?) == newest {
                new = middle;
            } else {
                old = middle;
            }
        }
        let first = old.saturating_sub(LOG_RECORD_MAX);
        let last = bytes(first..old)?;
        let all: Vec<&[u8]> = last.chunks_exact(LOG_BLOCK as usize).collect();
        Ok(all
            .iter()
            .rposition(|block| big_endian(block, 0, 4) == LOG_RECORD)
            .is_some_and(|at| is_unmount(&all[at..])))
    }
}

fn number(at: usize, bytes: usize, head: &[u8]) -> u64 {
    big_endian(head, at, bytes)
}

fn field(at: usize, header: &[u8]) -> u64 {
    big_endian(header, at, 4)
}

fn cycle(block: &[u8]) -> u64 {
    match big_endian(block, 0, 4) {
        LOG_RECORD => big_endian(block, 4, 4),
        cycle => cycle,
    }
}

/// True if a record of the log, which begins with its header, has nothing but the mark of an unmount.
fn is_unmount(record: &[&[u8]]) -> bool {
    let header = record[0];
    let number = |at: usize| big_endian(header, at, 4);
    // In version 2 a header names the largest record, and has a block for each 32 KiB of it.
    let size = if number(8) & 2 != 0 { number(320) } else { 0 };
    let headers = size.div_ceil(HEADER_COVERS).max(1) as usize;
    let operation = record.get(headers).map(|block| block[9]);
    number(40) == 1 && operation.is_some_and(|flags| flags & UNMOUNT != 0)
}

#[cfg(test)]
mod tests;
