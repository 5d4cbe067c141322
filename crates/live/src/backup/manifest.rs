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
//! parent CHECKSUM FILE             of a backup that leaves out what its parent has; CHECKSUM is in the
//!                                  last line of the parent's manifest
//! left-out N                       regions of which it has none of the data, as they are the same in the
//!                                  parent; not in a manifest that grows, nor in old ones
//! wanted FIRST BLOCKS              ascending; none where all blocks of the range are wanted
//! region FIRST BLOCKS CHECKSUM     ascending, one line for each of which blocks have been read
//! unreadable FIRST BLOCKS          ascending
//! end CHECKSUM                     XXH3-128 of the text before this line
//! ```
//!
//! Blocks are of 512 bytes. A checksum is the sum, modulo 2^128, of XXH3-128 of each block with its
//! number as the seed, in 32 hexadecimal digits: so blocks may come in any order, and blocks that have
//! changed places are seen. It is for errors and not for adversaries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use freewheel_units::BLOCK_BYTES;
use serde::Serialize;
use thiserror::Error;
use twox_hash::XxHash3_128;

use crate::control::{BLOCKS_END, BlockRange, Record};

/// Blocks of a region: 1 MiB.
pub const REGION_BLOCKS: u64 = crate::serve::REGION_BLOCKS;

const MAGIC: &str = "freewheel-manifest 1";

/// Reasons why a text is no manifest, or not one of this drive.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ManifestError {
    /// A line that is not understood.
    #[error("line {line}: {text:?}: {expected} is expected")]
    Line {
        /// From 1.
        line: usize,
        /// Text in the file.
        text: String,
        /// Text that should be there.
        expected: &'static str,
    },
    /// The last line is missing, or not the last.
    #[error("its last line is not \"end CHECKSUM\": it was not written as a whole")]
    CutOff,
    /// The text is not the one that was written.
    #[error("its text has another checksum than its last line says: it has been changed since")]
    Altered,
    /// The manifest is of other blocks of the same range.
    #[error("it is of {found} of the range, and {wanted} are wanted now, or others of them")]
    OtherBlocks { found: u64, wanted: u64 },
    /// Checksums of something else.
    #[error("it is of {found}, and this is {wanted}")]
    Other {
        /// The drive of the manifest.
        found: String,
        /// Field that was read now.
        wanted: String,
    },
}

/// Field that a server sent and that was not asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the server sent {} blocks from block {} on, {why}: it may be of another version; use one version of \
     `freewheel` for both",
    range.blocks, range.first_block
)]
pub struct UnexpectedField {
    /// Blocks that came.
    range: BlockRange,
    /// Fault of the blocks.
    why: &'static str,
}

/// The backup that another is based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Checksum of its manifest.
    pub checksum: u128,
    /// File of its manifest: a name in the folder of the child, or a whole path.
    pub file: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct BackupRegion {
    sum: u128,
    blocks: u32,
}

/// Checksums of a range of a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Name of the drive.
    pub drive: String,
    /// Range that is covered.
    pub range: BlockRange,
    /// The server that read.
    pub instance: String,
    /// Time at which the backup began, since the server began.
    pub began_ns: u64,
    /// The backup that has the regions that are unchanged; None for a backup of all.
    pub parent: Option<Parent>,
    /// Number of regions left out, as the parent has them; None where that is not known.
    left_out: Option<u64>,
    /// Wanted parts of the range, in ascending order and disjoint; empty for all of it.
    wanted: Vec<BlockRange>,
    /// Regions with blocks, by their places on the drive.
    regions: BTreeMap<u64, BackupRegion>,
    /// Ranges that could not be read.
    pub unreadable: Vec<BlockRange>,
}

/// Causes for which a region may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A client has written in it since it was read.
    Written,
    /// No client has written in it.
    Silent,
    /// The server that could know has ended since.
    Unknown,
    /// Each has other blocks of the region, so that their checksums cannot be compared.
    NotComparable,
}

/// Regions that are other than they were, one after the other, for one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Change {
    pub range: BlockRange,
    pub cause: Cause,
}

/// Changed blocks, by cause. It serialises.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ChangesByCause {
    /// Clients have written there.
    pub written: Vec<BlockRange>,
    /// Nobody has written there.
    pub silently: Vec<BlockRange>,
    /// The server that could know has ended since.
    pub unknown: Vec<BlockRange>,
    /// Other blocks could be read then than now.
    pub not_comparable: Vec<BlockRange>,
}

impl Manifest {
    /// An empty manifest of this range. Line breaks in names become spaces, since each name is one line.
    pub fn new(drive: &str, range: BlockRange, instance: &str, began_ns: u64) -> Self {
        Self {
            drive: in_a_line(drive),
            range,
            instance: in_a_line(instance),
            began_ns,
            parent: None,
            left_out: None,
            wanted: Vec::new(),
            regions: BTreeMap::new(),
            unreadable: Vec::new(),
        }
    }

    /// Manifest of these parts of the range, in ascending order and disjoint.
    pub fn of_parts(self, wanted: Vec<BlockRange>) -> Self {
        Self { wanted, ..self }
    }

    /// Manifest of a backup that leaves out the regions of its parent.
    pub fn based_on(self, Parent { checksum, file }: Parent) -> Self {
        let parent = Some(Parent { checksum, file: in_a_line(&file) });
        Self { parent, left_out: None, ..self }
    }

    /// Counts the regions that the parent has. The manifest has all its blocks.
    pub(super) fn count_left_out(&mut self, parent: &Self) {
        let same = self.regions().filter(|region| self.has_same(parent, *region));
        self.left_out = Some(same.count() as u64);
    }

    /// True if some of its regions may be the parent's.
    pub(super) fn leaves_out(&self) -> bool {
        self.parent.is_some() && self.left_out != Some(0)
    }

    /// Number of wanted blocks.
    pub fn wanted_blocks(&self) -> u64 {
        match self.wanted[..] {
            [] => self.range.blocks,
            _ => count(&self.wanted),
        }
    }

    /// The wanted parts of ranges, which are in ascending order and apart from each other.
    pub fn wanted_in(&self, ranges: &[BlockRange]) -> Vec<BlockRange> {
        if self.wanted.is_empty() {
            return ranges.to_vec();
        }
        ranges.iter().flat_map(|range| within(&self.wanted, *range)).collect()
    }

    /// Number of wanted blocks of a region.
    fn wanted_of(&self, region: u64) -> u64 {
        count(&self.wanted_in(&[self.bounds(region)]))
    }

    /// That the same blocks are wanted in another manifest of the range.
    pub(super) fn ensure_same_parts(&self, other: &Self) -> Result<(), ManifestError> {
        let [parts, others] = [self, other].map(|of| of.wanted_in(&[self.range]));
        if parts == others {
            return Ok(());
        }
        Err(ManifestError::OtherBlocks { found: count(&others), wanted: count(&parts) })
    }

    /// Writes since then may have changed what is here: an answer of a second before it may have
    /// been overtaken.
    pub fn written_since_ns(&self) -> u64 {
        self.began_ns.saturating_sub(1_000_000_000)
    }

    /// Part of a region that lies in the range.
    pub(super) fn bounds(&self, region: u64) -> BlockRange {
        let from = region * REGION_BLOCKS;
        let end = (from + REGION_BLOCKS).min(self.range.first_block + self.range.blocks);
        let first_block = from.max(self.range.first_block);
        BlockRange { first_block, blocks: end - first_block }
    }

    /// Blocks of a region that could not be read.
    fn unreadable_in(&self, region: u64) -> Vec<BlockRange> {
        let parts = within(&self.unreadable, self.bounds(region)).into_iter();
        join(parts.map(|range| (range, ()))).into_iter().map(|(range, ())| range).collect()
    }

    /// True if a region of both has the same blocks: all that are wanted, but for those that neither could
    /// read.
    fn is_comparable(&self, other: &Self, region: u64) -> bool {
        let unreadable = self.unreadable_in(region);
        let missing = count(&unreadable);
        let bounds = [self.bounds(region)];
        let is_whole = |of: &Self| {
            let there = of.regions.get(&region).map_or(0, |region| region.blocks);
            u64::from(there) + missing == of.wanted_of(region)
        };
        self.wanted_in(&bounds) == other.wanted_in(&bounds)
            && unreadable == other.unreadable_in(region)
            && is_whole(self)
            && is_whole(other)
    }

    /// Regions of which blocks have been read, in ascending order.
    pub(super) fn regions(&self) -> impl Iterator<Item = u64> {
        self.regions.keys().copied()
    }

    /// True if a region is complete in both and has the same blocks with the same data.
    pub(super) fn has_same(&self, other: &Self, region: u64) -> bool {
        self.has_same_sum(other, region) && self.is_comparable(other, region)
    }

    /// True if the blocks that are in of a region are the same.
    pub(super) fn has_same_sum(&self, other: &Self, region: u64) -> bool {
        self.regions.get(&region) == other.regions.get(&region)
    }

    /// Regions that are the same in another manifest of the range, as ranges of whole regions.
    pub(super) fn same_as(&self, other: &Self) -> Vec<BlockRange> {
        let same = self.regions().filter(|region| self.has_same(other, *region));
        let same = join(same.map(|region| (self.bounds(region), ())));
        same.into_iter().map(|(range, ())| range).collect()
    }

    /// Takes over checksums of these ranges of whole regions.
    pub(super) fn take_over(&mut self, ranges: &[BlockRange], from: &Self) {
        for range in ranges {
            let regions = range.first_block / REGION_BLOCKS
                ..(range.first_block + range.blocks).div_ceil(REGION_BLOCKS);
            self.regions.extend(from.regions.range(regions));
        }
    }

    /// That every wanted block has been read, or could not be.
    pub(super) fn has_all(&self) -> bool {
        self.blocks() + count(&self.unreadable) == self.wanted_blocks()
    }

    /// Takes blocks that have been read, each once.
    pub fn add(&mut self, first_block: u64, data: &[u8]) {
        for (block, bytes) in (first_block..).zip(data.chunks_exact(BLOCK_BYTES as usize)) {
            if !(self.range.first_block..self.range.first_block + self.range.blocks)
                .contains(&block)
            {
                return;
            }
            let region = self.regions.entry(block / REGION_BLOCKS).or_default();
            let hash = XxHash3_128::oneshot_with_seed(block, bytes);
            region.sum = region.sum.wrapping_add(hash);
            region.blocks += 1;
        }
    }

    /// Takes a record of a task's data. Takes no part of a record with blocks that were not requested, or
    /// came before.
    pub fn take(&mut self, record: &Record) -> Result<(), UnexpectedField> {
        self.ensure_asked(record)?;
        let Some(range) = record.range() else { return Ok(()) };
        let again = Err(UnexpectedField { range, why: "some of which it had sent before" });
        match record {
            Record::Data { first_block, data, .. } => {
                if self.has_too_many(range) {
                    return again;
                }
                self.add(*first_block, data);
            }
            _ => {
                let at = self.unreadable.partition_point(|other| end(other) <= range.first_block);
                if self.unreadable.get(at).is_some_and(|next| next.first_block < end(&range)) {
                    return again;
                }
                self.unreadable.insert(at, range);
            }
        }
        Ok(())
    }

    /// Err for a record of blocks that are not wanted.
    pub(super) fn ensure_asked(&self, record: &Record) -> Result<(), UnexpectedField> {
        let Some(range) = record.range() else { return Ok(()) };
        let end = self.range.first_block + self.range.blocks;
        let ends = range.first_block.checked_add(range.blocks);
        let is_inside =
            self.range.first_block <= range.first_block && ends.is_some_and(|ends| ends <= end);
        if is_inside && count(&self.wanted_in(&[range])) == range.blocks {
            return Ok(());
        }
        Err(UnexpectedField { range, why: "which it was not asked for" })
    }

    /// True if a region would have more blocks than there are in it, with these of the range.
    fn has_too_many(&self, range: BlockRange) -> bool {
        let end = range.first_block + range.blocks;
        let regions = range.first_block / REGION_BLOCKS..end.div_ceil(REGION_BLOCKS);
        regions.into_iter().any(|region| {
            let there = self.regions.get(&region).map_or(0, |region| region.blocks.into());
            let from = range.first_block.max(region * REGION_BLOCKS);
            let to = end.min((region + 1) * REGION_BLOCKS);
            there + (to - from) > self.wanted_of(region)
        })
    }

    /// Blocks that are in.
    pub fn blocks(&self) -> u64 {
        self.regions.values().map(|region| u64::from(region.blocks)).sum()
    }

    /// Regions of which all wanted blocks are in, as ranges of whole regions.
    pub fn complete(&self) -> Vec<BlockRange> {
        let complete = self.regions.keys().filter(|region| self.is_complete(**region));
        let complete = join(complete.map(|region| (self.bounds(*region), ())));
        complete.into_iter().map(|(range, ())| range).collect()
    }

    fn is_complete(&self, region: u64) -> bool {
        u64::from(self.regions[&region].blocks) == self.wanted_of(region)
    }

    /// Forgets the region that has this block.
    pub fn forget(&mut self, block: u64) {
        self.regions.remove(&(block / REGION_BLOCKS));
    }

    /// Forgets every region that is not complete, and what could not be read: the manifest grows again.
    pub fn keep_complete(&mut self) {
        self.left_out = None;
        let regions: Vec<u64> = self.regions.keys().copied().collect();
        for region in regions {
            if !self.is_complete(region) {
                self.regions.remove(&region);
            }
        }
        self.unreadable.clear();
    }

    /// Differences between this manifest and another of the same range, as ranges of whole regions.
    pub fn differs(&self, other: &Self) -> Result<Vec<BlockRange>, ManifestError> {
        self.ensure_same(other)?;
        let regions: BTreeSet<u64> =
            self.regions.keys().chain(other.regions.keys()).copied().collect();
        let regions = regions
            .into_iter()
            .filter(|region| self.regions.get(region) != other.regions.get(region));
        let ranges = join(regions.map(|region| (self.bounds(region), ())));
        Ok(ranges.into_iter().map(|(range, ())| range).collect())
    }

    /// That another manifest is of the same range of the same drive.
    pub fn ensure_same(&self, other: &Self) -> Result<(), ManifestError> {
        let name = |of: &Self| {
            let BlockRange { first_block, blocks } = of.range;
            format!("{blocks} blocks of {} from {first_block} on", of.drive)
        };
        if (&self.drive, self.range) != (&other.drive, other.range) {
            return Err(ManifestError::Other { found: name(other), wanted: name(self) });
        }
        Ok(())
    }

    /// Changes since an older manifest; clients have written in the regions of `written`, in ascending
    /// order, since that was begun, if its server still runs.
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
                let cause = match written.map_or(Cause::Unknown, |written| cause(written, at)) {
                    Cause::Written => Cause::Written,
                    _ if !self.is_comparable(old, at / REGION_BLOCKS) => Cause::NotComparable,
                    cause => cause,
                };
                changes.push((BlockRange { first_block: at, blocks: end - at }, cause));
                at = end;
            }
        }
        let changes = join(changes.into_iter());
        Ok(changes.into_iter().map(|(range, cause)| Change { range, cause }).collect())
    }

    /// Changes, by cause.
    pub fn changes_by_cause(
        &self,
        old: &Self,
        written: Option<&[BlockRange]>,
    ) -> Result<ChangesByCause, ManifestError> {
        let mut changed = ChangesByCause::default();
        for Change { range, cause } in self.changes(old, written)? {
            match cause {
                Cause::Written => changed.written.push(range),
                Cause::Silent => changed.silently.push(range),
                Cause::Unknown => changed.unknown.push(range),
                Cause::NotComparable => changed.not_comparable.push(range),
            }
        }
        Ok(changed)
    }

    /// The manifest as a text.
    pub fn text(&self) -> String {
        let BlockRange { first_block, blocks } = self.range;
        let mut text = format!(
            "{MAGIC}\ndrive {}\nfirst-block {first_block}\nblocks {blocks}\nregion-blocks \
             {REGION_BLOCKS}\ninstance {}\nbegan-ns {}\n",
            self.drive, self.instance, self.began_ns
        );
        if let Some(Parent { checksum, file }) = &self.parent {
            // A string takes all that is written to it.
            let _ = writeln!(text, "parent {checksum:032x} {file}");
        }
        if let Some(left_out) = self.left_out {
            let _ = writeln!(text, "left-out {left_out}");
        }
        for BlockRange { first_block, blocks } in &self.wanted {
            let _ = writeln!(text, "wanted {first_block} {blocks}");
        }
        for (region, BackupRegion { sum, blocks }) in &self.regions {
            let first = self.bounds(*region).first_block;
            let _ = writeln!(text, "region {first} {blocks} {sum:032x}");
        }
        for BlockRange { first_block, blocks } in &self.unreadable {
            let _ = writeln!(text, "unreadable {first_block} {blocks}");
        }
        let seal = seal(&text);
        text + &seal
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        Lines::new(text).expect(is_one, MAGIC)?;
        let mut lines = Lines::new(sealed(text)?);
        lines.expect(is_one, MAGIC)?;
        let drive = lines.word("drive", "drive NAME")?;
        let first_block = lines.number("first-block", "first-block N")?;
        let expected = "blocks N, of which there are some and not more than 2^48";
        let blocks = lines.expect(|line| range_blocks(line, first_block), expected)?;
        lines.expect(
            |line| (word(line, "region-blocks")? == "2048").then_some(()),
            "region-blocks 2048",
        )?;
        let instance = lines.word("instance", "instance I")?;
        let began_ns = lines.number("began-ns", "began-ns N")?;
        let range = BlockRange { first_block, blocks };
        let mut manifest = Self::new(&drive, range, &instance, began_ns);
        if lines.has("parent") {
            manifest.parent = Some(lines.expect(parent, "parent CHECKSUM FILE")?);
            if lines.has("left-out") {
                manifest.left_out = Some(lines.number("left-out", "left-out N")?);
            }
        }
        while lines.has("wanted") {
            let range = lines.expect(
                |line| manifest.next_range(line, "wanted", &manifest.wanted),
                "wanted FIRST BLOCKS, ascending, of the range",
            )?;
            manifest.wanted.push(range);
        }
        while lines.has("region") {
            let (region, sum) = lines.expect(
                |line| manifest.next_region(line),
                "region FIRST BLOCKS CHECKSUM, ascending and of the range",
            )?;
            manifest.regions.insert(region, sum);
        }
        while lines.has("unreadable") {
            let range = lines.expect(
                |line| manifest.next_range(line, "unreadable", &manifest.unreadable),
                "unreadable FIRST BLOCKS, ascending, of the range",
            )?;
            manifest.unreadable.push(range);
        }
        match lines.lines.peek() {
            None => Ok(manifest),
            Some(_) => {
                lines.expect(|_| None, "parent, left-out, wanted, region, unreadable or end")
            }
        }
    }

    /// Reads a line of a region that comes after those that are there.
    fn next_region(&self, line: &str) -> Option<(u64, BackupRegion)> {
        let mut words = word(line, "region")?.split(' ');
        let first: u64 = words.next()?.parse().ok()?;
        let blocks: u32 = words.next()?.parse().ok()?;
        let sum = checksum(words.next()?)?;
        let BlockRange { first_block, blocks: all } = self.range;
        let region = first / REGION_BLOCKS;
        let fits = (first_block..first_block + all).contains(&first) && {
            let bounds = self.bounds(region);
            first == bounds.first_block && (1..=self.wanted_of(region)).contains(&blocks.into())
        };
        let is_next = self.regions.last_key_value().is_none_or(|(last, _)| *last < region);
        (fits && is_next && words.next().is_none())
            .then_some((region, BackupRegion { sum, blocks }))
    }

    /// Reads a line of blocks that come after those that are there.
    fn next_range(&self, line: &str, key: &str, there: &[BlockRange]) -> Option<BlockRange> {
        let (first, blocks) = word(line, key)?.split_once(' ')?;
        let (first_block, blocks): (u64, u64) = (first.parse().ok()?, blocks.parse().ok()?);
        let last = there.last();
        let from = last.map_or(self.range.first_block, |range| range.first_block + range.blocks);
        let end = first_block.checked_add(blocks)?;
        let fits = from <= first_block && end <= self.range.first_block + self.range.blocks;
        (fits && blocks > 0).then_some(BlockRange { first_block, blocks })
    }
}

fn end(range: &BlockRange) -> u64 {
    range.first_block + range.blocks
}

fn is_one(line: &str) -> Option<()> {
    (line == MAGIC).then_some(())
}

/// A name without line breaks.
fn in_a_line(name: &str) -> String {
    name.replace(char::is_control, " ")
}

/// Reads the line of a parent.
fn parent(line: &str) -> Option<Parent> {
    let (sum, file) = word(line, "parent")?.split_once(' ')?;
    let file = (!file.is_empty() && !file.contains(char::is_control)).then(|| file.to_owned())?;
    Some(Parent { checksum: checksum(sum)?, file })
}

/// Reads a checksum: 32 hexadecimal digits.
fn checksum(word: &str) -> Option<u128> {
    let is_one = word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| u128::from_str_radix(word, 16).ok())?
}

/// The checksum in the last line of a manifest's text, which others know it by.
pub(super) fn checksum_of(text: &str) -> Option<u128> {
    checksum(text.lines().last()?.strip_prefix("end ")?)
}

/// The last line for the text before it.
fn seal(text: &str) -> String {
    format!("end {:032x}\n", XxHash3_128::oneshot(text.as_bytes()))
}

/// Text before the last line, if that line is its checksum.
fn sealed(text: &str) -> Result<&str, ManifestError> {
    let lines = text.strip_suffix('\n').ok_or(ManifestError::CutOff)?;
    let (before, last) = text.split_at(lines.rfind('\n').map_or(0, |at| at + 1));
    if !last.starts_with("end ") {
        return Err(ManifestError::CutOff);
    }
    if last == seal(before) { Ok(before) } else { Err(ManifestError::Altered) }
}

/// Reads how many blocks a range has.
fn range_blocks(line: &str, first_block: u64) -> Option<u64> {
    let blocks = word(line, "blocks")?.parse().ok()?;
    let end = first_block.checked_add(blocks)?;
    (blocks > 0 && end < BLOCKS_END).then_some(blocks)
}

/// Rest of a line after a keyword.
fn word<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.strip_prefix(' ')
}

struct Lines<'a> {
    lines: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Self { lines: text.lines().enumerate().peekable() }
    }

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

    /// True if the next line is of this kind.
    fn has(&mut self, key: &str) -> bool {
        self.lines.peek().is_some_and(|(_, line)| word(line, key).is_some())
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

/// Number of blocks in disjoint ranges.
fn count(ranges: &[BlockRange]) -> u64 {
    ranges.iter().map(|range| range.blocks).sum()
}

/// The parts of ranges, in ascending order, that are in another range.
fn within(ranges: &[BlockRange], part: BlockRange) -> Vec<BlockRange> {
    let end = part.first_block + part.blocks;
    let from = ranges.partition_point(|range| range.first_block + range.blocks <= part.first_block);
    let ranges = ranges[from..].iter().take_while(|range| range.first_block < end);
    let inside = ranges.map(|range| {
        let first_block = range.first_block.max(part.first_block);
        let to = (range.first_block + range.blocks).min(end);
        BlockRange { first_block, blocks: to - first_block }
    });
    inside.collect()
}

/// Joins ranges that touch, if their values are equal.
fn join<T: PartialEq>(ranges: impl Iterator<Item = (BlockRange, T)>) -> Vec<(BlockRange, T)> {
    let mut joined: Vec<(BlockRange, T)> = Vec::new();
    for (range, said) in ranges {
        match joined
            .last_mut()
            .filter(|(last, of)| *of == said && last.first_block + last.blocks == range.first_block)
        {
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
    fn manifest_ignores_block_order_not_places() {
        let whole = manifest(&[0, 1, 2, 3, 4, 5], None);
        assert_eq!(whole, manifest(&[3, 5, 0, 4, 1, 2], None));
        let mut swapped = Manifest::new("atlas10k", RANGE, "7", 5);
        swapped.add(100, &[[1; 512], [2; 512]].concat());
        let mut other = Manifest::new("atlas10k", RANGE, "7", 5);
        other.add(100, &[[2; 512], [1; 512]].concat());
        assert_ne!(swapped, other);
    }

    #[test]
    fn manifest_finds_changed_block_and_cause() {
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
    fn manifest_round_trips_and_refuses_part() {
        let mut manifest = manifest(&[0, 2, 3, 4, 5], None);
        manifest.take(&Record::Unreadable { first_block: 1500, blocks: 2 }).unwrap();
        manifest.take(&Record::Unreadable { first_block: 1100, blocks: 1 }).unwrap();
        let text = manifest.text();
        assert_eq!(Manifest::parse(&text), Ok(manifest.clone()));
        assert_eq!(manifest.unreadable, [range(1100, 1), range(1500, 2)]);
        for cut in [text.len() - 1, text.rfind("end").unwrap(), text.find("region").unwrap()] {
            assert_eq!(Manifest::parse(&text[..cut]), Err(ManifestError::CutOff));
        }
        assert_eq!(Manifest::parse(&format!("{text}more\n")), Err(ManifestError::CutOff));
        assert_eq!(manifest.complete(), [range(4096, 2004)]);
    }

    #[test]
    fn manifest_with_wrong_byte_is_refused() {
        let mut manifest = manifest(&[0, 2], None);
        manifest.take(&Record::Unreadable { first_block: 1500, blocks: 2 }).unwrap();
        let text = manifest.text();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(Manifest::parse(&String::from_utf8(bytes).unwrap()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn unknown_lines_are_refused_by_number() {
        let mut manifest = manifest(&[0, 1, 2, 3, 4, 5], None);
        manifest.take(&Record::Unreadable { first_block: 1500, blocks: 2 }).unwrap();
        let text = manifest.text();
        let (body, _) = text.split_at(text.rfind("end").unwrap());
        let refused = |from: &str, to: &str, line: usize| {
            assert!(body.contains(from), "{from}");
            let body = body.replacen(from, to, 1);
            let error = Manifest::parse(&format!("{body}{}", seal(&body))).unwrap_err();
            assert!(error.to_string().starts_with(&format!("line {line}: ")), "{to}: {error}");
        };
        refused("blocks 6000", "blocks many", 4);
        refused("blocks 6000", "blocks 281474976710656", 4);
        refused("region 100 1948", "region 101 1948", 8);
        refused("region 100 1948", "region 100 1949", 8);
        refused("region 2048", "region 100", 9);
        refused("region 4096", "region 8192", 10);
        for unreadable in [
            "unreadable 99 2",
            "unreadable 6099 2",
            "unreadable 6101 1",
            "unreadable 18446744073709551615 2",
            "unreadable 200 0",
        ] {
            refused("unreadable 1500 2", unreadable, 11);
        }
        for wanted in ["wanted 99 2", "wanted 6099 2", "wanted 200 0", "wanted 200 2\nwanted 201 9"]
        {
            let line = 7 + wanted.lines().count();
            refused("began-ns 5\n", &format!("began-ns 5\n{wanted}\n"), line);
        }
        refused("unreadable 1500 2", "unreadable 1500 2\nunreadable 1501 9", 12);
        refused("unreadable 1500 2", "unreadable 1500 2\nend\nmore", 12);
    }

    #[test]
    fn manifest_names_parent_in_one_line() {
        let whole = manifest(&[0, 1, 2, 3, 4, 5], None);
        let parent = Parent { checksum: 0xabc, file: "a\nname with spaces.manifest".into() };
        let child = whole.clone().based_on(parent);
        let text = child.text();
        let line = format!("\nparent {:032x} a name with spaces.manifest\n", 0xabc);
        assert!(text.contains(&line), "{text}");
        assert_eq!(Manifest::parse(&text), Ok(child.clone()));
        assert_ne!(checksum_of(&text), checksum_of(&whole.text()));
        let sum = format!("end {:032x}\n", checksum_of(&text).unwrap());
        assert!(text.ends_with(&sum), "{sum}");
        let (body, _) = text.split_at(text.rfind("end").unwrap());
        for wrong in ["parent abc a", &line.replace("a name with spaces.manifest", "")[1..]] {
            let body = body.replacen(line.trim(), wrong.trim_end_matches('\n'), 1);
            let error = Manifest::parse(&format!("{body}{}", seal(&body))).unwrap_err();
            assert!(error.to_string().starts_with("line 8: "), "{wrong:?}: {error}");
        }
        assert_eq!(child.differs(&whole), Ok(Vec::new()), "the data are the same");
        let mut counted = child.clone();
        counted.count_left_out(&whole);
        assert!(counted.text().contains(&format!("{line}left-out 3\n")), "{}", counted.text());
        assert_eq!(Manifest::parse(&counted.text()), Ok(counted));
    }

    #[test]
    fn manifest_memory_grows_with_text() {
        let whole = BlockRange { first_block: 0, blocks: (1 << 48) - 1 };
        let text = Manifest::new("atlas10k", whole, "7", 5).text();
        assert!(text.len() < 200);
        assert_eq!(Manifest::parse(&text).unwrap().blocks(), 0);
    }

    #[test]
    fn region_of_other_blocks_is_not_compared() {
        let all = manifest(&[0, 1, 2, 3, 4, 5], None);
        let without = |first_block: u64, change| {
            let mut manifest = manifest(&[0, 1, 3, 4, 5], change);
            let data = |blocks: std::ops::Range<u64>| -> Vec<u8> {
                blocks.flat_map(|block| [(block * 7) as u8; 512]).collect()
            };
            manifest.add(2100, &data(2100..first_block));
            manifest.add(first_block + 1, &data(first_block + 1..3100));
            manifest.take(&Record::Unreadable { first_block, blocks: 1 }).unwrap();
            manifest
        };
        let one = without(3000, None);
        let causes = |new: &Manifest, old: &Manifest, written: Option<&[BlockRange]>| {
            let changes = new.changes(old, written).unwrap();
            changes
                .iter()
                .map(|change| (change.range.first_block, change.cause))
                .collect::<Vec<_>>()
        };
        let not_comparable = vec![(2048, Cause::NotComparable)];
        assert_eq!(causes(&one, &all, Some(&[])), not_comparable);
        assert_eq!(causes(&all, &one, Some(&[])), not_comparable, "it can be read again");
        assert_eq!(causes(&all, &one, None), not_comparable);
        assert_eq!(causes(&without(2500, None), &one, Some(&[])), not_comparable);
        let written = [range(2048, 2048)];
        assert_eq!(causes(&all, &one, Some(&written)), [(2048, Cause::Written)]);
        assert_eq!(causes(&one, &without(3000, None), Some(&[])), [], "the same cannot be read");
        let changed = without(3000, Some(3500));
        assert_eq!(causes(&changed, &one, Some(&[])), [(2048, Cause::Silent)]);
    }

    #[test]
    fn manifest_of_extents_counts_selected_blocks() {
        let parts = vec![range(200, 100), range(2000, 96), range(5000, 8)];
        let new = || Manifest::new("atlas10k", RANGE, "7", 5).of_parts(parts.clone());
        let data = |first_block, blocks: usize| Record::Data {
            first_block,
            at_ns: 0,
            data: vec![7; blocks * 512],
        };
        let mut manifest = new();
        assert_eq!(manifest.wanted_blocks(), 204);
        for record in [data(199, 2), data(299, 2), data(5008, 1), data(2000, 97)] {
            let error = manifest.take(&record).unwrap_err().to_string();
            assert!(error.contains("not asked for"), "{record:?}: {error}");
        }
        manifest.take(&data(2000, 96)).unwrap();
        assert!(manifest.take(&data(2048, 48)).is_err(), "sent before");
        assert_eq!(manifest.complete(), [range(2048, 2048)], "its 48 wanted blocks are there");
        manifest.take(&data(200, 100)).unwrap();
        manifest.take(&Record::Unreadable { first_block: 5000, blocks: 1 }).unwrap();
        manifest.take(&data(5001, 7)).unwrap();
        assert_eq!(manifest.complete(), [range(100, 3996)]);
        assert_eq!(manifest.wanted_in(&manifest.complete()), parts[..2]);
        assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest.clone()));

        let mut other = Manifest::new("atlas10k", RANGE, "7", 5).of_parts(vec![
            range(200, 100),
            range(2000, 97),
            range(5000, 8),
        ]);
        for (first, blocks) in [(200, 100), (2000, 97), (5001, 7)] {
            other.take(&data(first, blocks)).unwrap();
        }
        other.take(&Record::Unreadable { first_block: 5000, blocks: 1 }).unwrap();
        let changes = manifest.changes(&other, Some(&[])).unwrap();
        let not_comparable = Change { range: range(2048, 2048), cause: Cause::NotComparable };
        assert_eq!(changes, [not_comparable], "other blocks of that region were wanted");
        assert!(matches!(
            manifest.ensure_same_parts(&other),
            Err(ManifestError::OtherBlocks { found: 205, wanted: 204 })
        ));
        assert_eq!(manifest.ensure_same_parts(&new()), Ok(()));
        let all = Manifest::new("atlas10k", RANGE, "7", 5);
        assert_eq!(all.ensure_same_parts(&all.clone().of_parts(vec![RANGE])), Ok(()));
    }

    #[test]
    fn unrequested_or_repeated_blocks_are_refused() {
        let data = |first_block, blocks: usize| Record::Data {
            first_block,
            at_ns: 0,
            data: vec![0; blocks * 512],
        };
        let unreadable = |first_block, blocks| Record::Unreadable { first_block, blocks };
        let mut manifest = Manifest::new("atlas10k", RANGE, "7", 5);
        manifest.take(&data(4096, 2004)).unwrap();
        manifest.take(&unreadable(2000, 10)).unwrap();
        let before = manifest.clone();
        for (record, says) in [
            (data(99, 2), "not asked for"),
            (data(6099, 2), "not asked for"),
            (data(u64::MAX, 1), "not asked for"),
            (unreadable(u64::MAX, u64::MAX), "not asked for"),
            (unreadable(0, 1 << 60), "not asked for"),
            (data(4095, 2), "sent before"),
            (data(6099, 1), "sent before"),
            (unreadable(2009, 1), "sent before"),
            (unreadable(1999, 2), "sent before"),
        ] {
            let error = manifest.take(&record).unwrap_err().to_string();
            assert!(error.contains(says), "{record:?}: {error}");
            assert_eq!(manifest, before, "{record:?}");
        }
        manifest.take(&unreadable(2010, 1)).unwrap();
        manifest.take(&unreadable(1999, 1)).unwrap();
        assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
    }

    #[test]
    fn multiline_name_is_written_in_one() {
        let manifest = Manifest::new("a\r\nblocks 7", RANGE, "1\n", 5);
        assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest));
    }
}
