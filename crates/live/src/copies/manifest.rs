//! Checksums of a drive by region, as a text:
//!
//! ```text
//! freewheel-manifest 1
//! drive NAME
//! first-block N
//! blocks N
//! region-blocks 2048
//! instance I                       the server that read, see its status
//! began-ns N                       when it began to read, since the server began
//! region FIRST BLOCKS CHECKSUM     one line a region, ascending: how many blocks have been read
//! unreadable FIRST BLOCKS          ascending
//! end
//! ```
//!
//! Blocks are of 512 bytes. A checksum is the sum, modulo 2^128, of XXH3-128 of each block with its
//! number as the seed, in 32 hexadecimal digits: so blocks may come in any order, and blocks that have
//! changed places are seen. It is for errors and not for adversaries.

use std::fmt::Write;

use freewheel_units::BLOCK_BYTES;
use thiserror::Error;
use twox_hash::XxHash3_128;

use crate::control::{BlockRange, Record};

/// Blocks of a region: 1 MiB.
pub const REGION_BLOCKS: u64 = crate::serve::REGION_BLOCKS;

/// The first line.
const MAGIC: &str = "freewheel-manifest 1";

/// Why a text is no manifest, or not one of this drive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// A line that is not understood.
    #[error("line {line}: {text:?}: {expected} is expected")]
    Line {
        /// From 1.
        line: usize,
        /// What is there.
        text: String,
        /// What should be.
        expected: &'static str,
    },
    /// Its last line is missing.
    #[error("its end is missing: it was not written as a whole")]
    CutOff,
    /// Checksums of something else.
    #[error("it is of {found}, and this is {wanted}")]
    Other {
        /// What it is of.
        found: String,
        /// What was read now.
        wanted: String,
    },
}

/// A region's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Region {
    sum: u128,
    /// Blocks in it.
    blocks: u32,
}

/// Checksums of a range of a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Name of the drive.
    pub drive: String,
    /// What is covered.
    pub range: BlockRange,
    /// The server that read.
    pub instance: String,
    /// When it began to, since it began itself.
    pub began_ns: u64,
    regions: Vec<Region>,
    /// What could not be read.
    pub unreadable: Vec<BlockRange>,
}

/// Why a region may be other than it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A client has written in it since it was read.
    Written,
    /// Nobody has written in it.
    Silent,
    /// The server that could know has ended since.
    Unknown,
}

/// Regions that are other than they were, one after the other, for one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub range: BlockRange,
    /// Why.
    pub cause: Cause,
}

impl Manifest {
    /// Nothing has been read of this range.
    pub fn new(drive: &str, range: BlockRange, instance: &str, began_ns: u64) -> Self {
        let end = range.first_block + range.blocks;
        let regions = end.div_ceil(REGION_BLOCKS) - range.first_block / REGION_BLOCKS;
        Self {
            drive: drive.into(),
            range,
            instance: instance.into(),
            began_ns,
            regions: vec![Region::default(); regions as usize],
            unreadable: Vec::new(),
        }
    }

    /// Writes since then may have changed what is here: an answer of a second before it may have
    /// been overtaken.
    pub fn written_since_ns(&self) -> u64 {
        self.began_ns.saturating_sub(1_000_000_000)
    }

    fn first_region(&self) -> u64 {
        self.range.first_block / REGION_BLOCKS
    }

    /// What a region, by its place in the list, has of the range.
    fn bounds(&self, at: usize) -> BlockRange {
        let from = (self.first_region() + at as u64) * REGION_BLOCKS;
        let end = (from + REGION_BLOCKS).min(self.range.first_block + self.range.blocks);
        let first_block = from.max(self.range.first_block);
        BlockRange { first_block, blocks: end - first_block }
    }

    /// Takes blocks that have been read, each once.
    pub fn add(&mut self, first_block: u64, data: &[u8]) {
        let first_region = self.first_region();
        for (block, bytes) in (first_block..).zip(data.chunks_exact(BLOCK_BYTES as usize)) {
            let region = (block / REGION_BLOCKS - first_region) as usize;
            let Some(region) = self.regions.get_mut(region) else { return };
            let hash = XxHash3_128::oneshot_with_seed(block, bytes);
            region.sum = region.sum.wrapping_add(hash);
            region.blocks += 1;
        }
    }

    /// Takes a record of a task's data.
    pub fn take(&mut self, record: &Record) {
        match record {
            Record::Data { first_block, data, .. } => self.add(*first_block, data),
            Record::Unreadable { first_block, blocks } => {
                let range = BlockRange { first_block: *first_block, blocks: *blocks };
                let at = self.unreadable.partition_point(|other| other.first_block < *first_block);
                self.unreadable.insert(at, range);
            }
            Record::End(_) => {}
        }
    }

    /// Blocks that are in.
    pub fn blocks(&self) -> u64 {
        self.regions.iter().map(|region| u64::from(region.blocks)).sum()
    }

    /// Regions of which all blocks are in, as ranges.
    pub fn complete(&self) -> Vec<BlockRange> {
        let complete = (0..self.regions.len())
            .map(|at| (self.bounds(at), u64::from(self.regions[at].blocks)))
            .filter(|(range, blocks)| range.blocks == *blocks);
        join(complete.map(|(range, _)| (range, ()))).into_iter().map(|(range, ())| range).collect()
    }

    /// Forgets the region that has this block.
    pub fn forget(&mut self, block: u64) {
        let at = (block / REGION_BLOCKS - self.first_region()) as usize;
        self.regions[at] = Region::default();
    }

    /// Forgets every region that is not complete, and what could not be read.
    pub fn keep_complete(&mut self) {
        for at in 0..self.regions.len() {
            if u64::from(self.regions[at].blocks) != self.bounds(at).blocks {
                self.regions[at] = Region::default();
            }
        }
        self.unreadable.clear();
    }

    /// Where this manifest and another of the same range differ, as ranges of whole regions.
    pub fn differs(&self, other: &Self) -> Result<Vec<BlockRange>, ManifestError> {
        let name = |of: &Self| {
            let BlockRange { first_block, blocks } = of.range;
            format!("{blocks} blocks of {} from {first_block} on", of.drive)
        };
        if (&self.drive, self.range) != (&other.drive, other.range) {
            return Err(ManifestError::Other { found: name(other), wanted: name(self) });
        }
        let pairs = self.regions.iter().zip(&other.regions).enumerate();
        let other = pairs.filter(|(_, (new, old))| new != old);
        let ranges = join(other.map(|(at, _)| (self.bounds(at), ())));
        Ok(ranges.into_iter().map(|(range, ())| range).collect())
    }

    /// What has changed since an older manifest; clients have written in the regions of `written`, in
    /// ascending order, since that was begun, if its server still runs.
    pub fn changes(
        &self,
        old: &Self,
        written: Option<&[BlockRange]>,
    ) -> Result<Vec<Change>, ManifestError> {
        let mut changes = Vec::new();
        for range in self.differs(old)? {
            let mut at = range.first_block;
            while at < range.first_block + range.blocks {
                let end = (at / REGION_BLOCKS + 1) * REGION_BLOCKS;
                let end = end.min(range.first_block + range.blocks);
                let cause = written.map_or(Cause::Unknown, |written| cause(written, at));
                changes.push((BlockRange { first_block: at, blocks: end - at }, cause));
                at = end;
            }
        }
        let changes = join(changes.into_iter());
        Ok(changes.into_iter().map(|(range, cause)| Change { range, cause }).collect())
    }

    /// The manifest as a text.
    pub fn text(&self) -> String {
        let BlockRange { first_block, blocks } = self.range;
        let mut text = format!(
            "{MAGIC}\ndrive {}\nfirst-block {first_block}\nblocks {blocks}\nregion-blocks \
             {REGION_BLOCKS}\ninstance {}\nbegan-ns {}\n",
            self.drive, self.instance, self.began_ns
        );
        for (at, Region { sum, blocks }) in self.regions.iter().enumerate() {
            let first = self.bounds(at).first_block;
            // A string takes all that is written to it.
            let _ = writeln!(text, "region {first} {blocks} {sum:032x}");
        }
        for BlockRange { first_block, blocks } in &self.unreadable {
            let _ = writeln!(text, "unreadable {first_block} {blocks}");
        }
        text + "end\n"
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let mut lines = Lines { lines: text.lines().enumerate().peekable() };
        lines.expect(|line| (line == MAGIC).then_some(()), "freewheel-manifest 1")?;
        let drive = lines.word("drive", "drive NAME")?;
        let first_block = lines.number("first-block", "first-block N")?;
        let blocks = lines.number("blocks", "blocks N")?;
        let known = |line: &str| (word(line, "region-blocks")? == "2048").then_some(());
        lines.expect(known, "region-blocks 2048")?;
        let instance = lines.word("instance", "instance I")?;
        let began_ns = lines.number("began-ns", "began-ns N")?;
        let is_sound = first_block.checked_add(blocks).is_some_and(|end| end < 1 << 48);
        if !is_sound || blocks == 0 {
            return Err(ManifestError::CutOff);
        }
        let range = BlockRange { first_block, blocks };
        let mut manifest = Self::new(&drive, range, &instance, began_ns);
        for at in 0..manifest.regions.len() {
            let bounds = manifest.bounds(at);
            let region = |line: &str| region(line, bounds);
            manifest.regions[at] = lines.expect(region, "region FIRST BLOCKS CHECKSUM")?;
        }
        while let Some(range) = lines.unreadable() {
            manifest.unreadable.push(range);
        }
        lines.expect(|line| (line == "end").then_some(()), "end")?;
        Ok(manifest)
    }
}

fn region(line: &str, bounds: BlockRange) -> Option<Region> {
    let mut words = word(line, "region")?.split(' ');
    let first: u64 = words.next()?.parse().ok()?;
    let blocks: u32 = words.next()?.parse().ok()?;
    let sum = u128::from_str_radix(words.next()?, 16).ok()?;
    let fits = first == bounds.first_block && u64::from(blocks) <= bounds.blocks;
    fits.then_some(Region { sum, blocks })
}

/// What follows a keyword.
fn word<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.strip_prefix(' ')
}

struct Lines<'a> {
    lines: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
}

impl Lines<'_> {
    fn expect<T>(
        &mut self,
        parse: impl FnOnce(&str) -> Option<T>,
        expected: &'static str,
    ) -> Result<T, ManifestError> {
        let (number, text) = self.lines.next().ok_or(ManifestError::CutOff)?;
        parse(text).ok_or_else(|| ManifestError::Line {
            line: number + 1,
            text: text.chars().take(80).collect(),
            expected,
        })
    }

    fn word(&mut self, key: &str, expected: &'static str) -> Result<String, ManifestError> {
        self.expect(|line| word(line, key).map(Into::into), expected)
    }

    fn number(&mut self, key: &str, expected: &'static str) -> Result<u64, ManifestError> {
        self.expect(|line| word(line, key)?.parse().ok(), expected)
    }

    fn unreadable(&mut self) -> Option<BlockRange> {
        let range = |line: &str| {
            let (first, blocks) = word(line, "unreadable")?.split_once(' ')?;
            Some(BlockRange { first_block: first.parse().ok()?, blocks: blocks.parse().ok()? })
        };
        let range = self.lines.peek().and_then(|(_, line)| range(line))?;
        self.lines.next();
        Some(range)
    }
}

fn cause(written: &[BlockRange], block: u64) -> Cause {
    let after = written.partition_point(|range| range.first_block <= block);
    let before = after.checked_sub(1).map(|at| written[at]);
    match before.filter(|range| block < range.first_block + range.blocks) {
        Some(_) => Cause::Written,
        None => Cause::Silent,
    }
}

/// Makes ranges that touch one, if what is said of them is the same.
fn join<T: PartialEq>(ranges: impl Iterator<Item = (BlockRange, T)>) -> Vec<(BlockRange, T)> {
    let mut joined: Vec<(BlockRange, T)> = Vec::new();
    for (range, said) in ranges {
        let touches = |(last, of): &&mut (BlockRange, T)| {
            *of == said && last.first_block + last.blocks == range.first_block
        };
        match joined.last_mut().filter(touches) {
            Some((last, _)) => last.blocks += range.blocks,
            None => joined.push((range, said)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: BlockRange = BlockRange { first_block: 100, blocks: 6000 };

    fn manifest(order: &[u64], change: Option<u64>) -> Manifest {
        let mut manifest = Manifest::new("atlas10k", RANGE, "7", 5);
        for &part in order {
            let first = 100 + part * 1000;
            let data: Vec<u8> = (first..first + 1000)
                .flat_map(|block| [(block * 7) as u8 ^ u8::from(change == Some(block)); 512])
                .collect();
            manifest.add(first, &data);
        }
        manifest
    }

    fn range(first_block: u64, blocks: u64) -> BlockRange {
        BlockRange { first_block, blocks }
    }

    #[test]
    fn the_order_in_which_blocks_come_does_not_matter_and_their_places_do() {
        let whole = manifest(&[0, 1, 2, 3, 4, 5], None);
        assert_eq!(whole, manifest(&[3, 5, 0, 4, 1, 2], None));
        let mut swapped = Manifest::new("atlas10k", RANGE, "7", 5);
        swapped.add(100, &[[1; 512], [2; 512]].concat());
        let mut other = Manifest::new("atlas10k", RANGE, "7", 5);
        other.add(100, &[[2; 512], [1; 512]].concat());
        assert_ne!(swapped, other);
    }

    #[test]
    fn a_changed_block_is_found_with_its_region_and_put_down_to_its_cause() {
        let old = manifest(&[0, 1, 2, 3, 4, 5], None);
        let new = manifest(&[5, 1, 2, 3, 4, 0], Some(2050));
        assert_eq!(new.differs(&old), Ok(vec![range(2048, 2048)]));
        let cause = |written: Option<&[BlockRange]>| new.changes(&old, written).unwrap()[0].cause;
        assert_eq!(cause(None), Cause::Unknown);
        assert_eq!(cause(Some(&[range(0, 2048)])), Cause::Silent);
        assert_eq!(cause(Some(&[range(0, 2048), range(2048, 2048)])), Cause::Written);
        let mut elsewhere = old.clone();
        elsewhere.drive = "cheetah9lp".into();
        assert!(new.differs(&elsewhere).unwrap_err().to_string().contains("cheetah9lp"));
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_a_part_of_it_is_refused() {
        let mut manifest = manifest(&[0, 2, 3, 4, 5], None);
        manifest.take(&Record::Unreadable { first_block: 1500, blocks: 2 });
        manifest.take(&Record::Unreadable { first_block: 1100, blocks: 1 });
        let text = manifest.text();
        assert_eq!(Manifest::parse(&text), Ok(manifest.clone()));
        assert_eq!(manifest.unreadable, [range(1100, 1), range(1500, 2)]);
        let cut = &text[..text.len() - 4];
        assert_eq!(Manifest::parse(cut), Err(ManifestError::CutOff));
        let wrong = text.replace("blocks 6000", "blocks many");
        assert!(Manifest::parse(&wrong).unwrap_err().to_string().contains("line 4"));
        assert_eq!(manifest.complete(), [range(4096, 2004)]);
    }
}
