//! Freeblock Scheduling Outside of Disk Firmware (FAST 2002): predictions under reads of small files
//! through a file system, figure 7c.
//!
//! The paper's reads came from FreeBSD's FFS and were not published. What stands in for it is where
//! FFS puts the blocks of a file system that is filled once (McKusick et al., ACM TOCS 2(3), 1984):
//! directories in turn in all cylinder groups, files in the group of their directory, one after the
//! other. Blocks that were read stay in memory, which has room for all of them. Assumed: cylinder
//! groups of 32 MiB and an inode of 128 B for every 4 KiB, as FreeBSD 4's newfs made them; inodes that
//! are not written for having been read; one process.

use std::collections::{BTreeSet, VecDeque};

use freewheel_sim::config::ConfigError;
use freewheel_sim::source::{Request, Source, SourceError};
use freewheel_study::figure::Figure;
use freewheel_units::{Blocks, Op, Prng, SimDuration, SimTime, VolumeBlock};

use super::fast02::{BLACK_BOX, line, percent};
use super::fast02_prediction::{ATLAS, AXES, ObservedDelays};
use super::{Context, Outcome, Row};

/// Directories, and files in each (section 5.2).
const DIRECTORIES: u64 = 2000;
const FILES: u64 = 50;

const READS: u64 = 10_000;

/// A block of the file system in blocks of 512 B.
const BLOCK: u64 = 8;

/// Blocks of 512 B of a cylinder group.
const GROUP: u64 = 65_536;

/// Blocks of 512 B of a group before its inodes: a copy of the superblock, and what is free in it.
const BEFORE_INODES: u64 = 6 * BLOCK;

/// Inodes of a block of the file system.
const INODES: u64 = 32;

/// Blocks of 512 B of a group up to its data.
const BEFORE_DATA: u64 = BEFORE_INODES + GROUP / BLOCK / INODES * BLOCK;

/// Blocks of 512 B of a directory's 50 entries, and of a file's 3 KB.
const DIRECTORY_BLOCKS: u64 = 2;
const FILE_BLOCKS: u64 = 6;

/// From one read to the next: the processor is busy 5.1 % of the time (section 5.4), which is so
/// much of some 8 ms.
const COMPUTES: SimDuration = SimDuration::from_us(400);

/// Where something of the file system lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    start: VolumeBlock,
    blocks: u64,
}

#[derive(Debug, Clone, Copy)]
struct FileSystem {
    groups: u64,
}

impl FileSystem {
    fn on(drive: Blocks) -> Self {
        Self { groups: drive.get() / GROUP }
    }

    /// Where a group begins, and the number within it of the directory itself, as inode and block.
    fn place(&self, directory: u64) -> (u64, u64) {
        (directory % self.groups * GROUP, directory / self.groups * (FILES + 1))
    }

    /// What has to be read for a file, in this order: inode and entries of its directory, its own
    /// inode and its data.
    fn reads(&self, directory: u64, file: u64) -> [Extent; 4] {
        let (group, first) = self.place(directory);
        let data = |number: u64, blocks| Extent {
            start: VolumeBlock::new(group + BEFORE_DATA + number * BLOCK),
            blocks,
        };
        let own = first + 1 + file;
        [
            inode(first, group),
            data(first, DIRECTORY_BLOCKS),
            inode(own, group),
            data(own, FILE_BLOCKS),
        ]
    }
}

fn inode(number: u64, group: u64) -> Extent {
    Extent {
        start: VolumeBlock::new(group + BEFORE_INODES + number / INODES * BLOCK),
        blocks: BLOCK,
    }
}

/// A process that reads files at random, one after the other.
struct FileReader {
    files: FileSystem,
    prng: Prng,
    left: u64,
    /// Blocks of the file system in memory.
    in_memory: BTreeSet<VolumeBlock>,
    /// What the file at hand wants of the drive.
    wanted: VecDeque<Extent>,
    arrival: Option<SimTime>,
}

impl FileReader {
    fn new(files: FileSystem, seed: u64) -> Self {
        let mut reader = Self {
            files,
            prng: Prng::new(seed, "small files"),
            left: READS,
            in_memory: BTreeSet::new(),
            wanted: VecDeque::new(),
            arrival: Some(SimTime::ZERO),
        };
        reader.open();
        reader
    }

    /// Continues with the next file that is not wholly in memory.
    fn open(&mut self) {
        while self.wanted.is_empty() && self.left > 0 {
            self.left -= 1;
            let (directory, file) = (self.prng.below(DIRECTORIES), self.prng.below(FILES));
            let Self { files, in_memory, wanted, .. } = self;
            let reads = files.reads(directory, file).into_iter();
            wanted.extend(reads.filter(|extent| in_memory.insert(extent.start)));
        }
    }
}

impl Source for FileReader {
    fn next_arrival(&mut self) -> Result<Option<SimTime>, SourceError> {
        Ok(self.arrival.filter(|_| !self.wanted.is_empty()))
    }

    fn take(&mut self) -> Request {
        let Extent { start, blocks } = self.wanted.pop_front().expect("next_arrival gave a time");
        self.arrival = None;
        self.open();
        Request { op: Op::Read, start, blocks: Blocks::new(blocks), fua: false, tag: 0 }
    }

    fn completed(&mut self, _: u64, now: SimTime) {
        self.arrival = Some(now + COMPUTES);
    }

    fn progress(&self) -> (u64, u64) {
        (READS - self.left, READS)
    }
}

pub(super) fn fig7c(context: &Context<'_>) -> Result<Outcome, ConfigError> {
    let seed = context.seed;
    let seen =
        ATLAS.run(seed, |drive| Ok(FileReader::new(FileSystem::on(drive.blocks()), seed)))?;
    let what = format!("{BLACK_BOX}; the file system is a model of FFS");
    let rows = rows(context, &seen).into_iter().map(|row| row.standing_in(&what)).collect();
    let density = line("3 KB files", seen.density(250.0, 10_000.0));
    Ok(Outcome { rows, figures: vec![Figure::lines(vec![density], AXES)] })
}

fn rows(context: &Context<'_>, seen: &ObservedDelays) -> Vec<Row> {
    let (account, all) = (&seen.account, seen.result.requests);
    let unforeseen = all - account.predicted;
    // Measures the jitter that was chosen.
    let within = percent(account.within_150us, all);
    let well = context.row_in("3 KB files: within 150 us", "%", [76.0, 100.0], within);
    let well = well.of_paper([76.0; 2]).own();
    let overlaps = percent(seen.errors_between(400.0, 1200.0), all);
    vec![
        well,
        part_row(context, "3 KB files: off by 0.4 to 1.2 ms", 5.0, overlaps)
            .deviates(0.11, 0.03, OVERLAPS),
        part_row(context, "3 KB files: turns longer", 4.0, percent(account.late, all)).deviates(
            0.73,
            0.06,
            FEWER_TURNS,
        ),
        part_row(context, "3 KB files: surprises", 4.0, percent(account.surprises, all)),
        part_row(context, "3 KB files: behind a surprise", 8.0, percent(unforeseen, all)).noted(
            "the paper's 8 % are behind extra turns as well; ours does not lose the spindle there",
        ),
        // Those at the beginning, before the spindle is known, are among them.
        context.row_in(
            "3 KB files: commands of which nothing is predicted, for each surprise",
            "",
            [0.0, 1.05],
            unforeseen as f64 / account.surprises.max(1) as f64,
        ),
    ]
}

/// A part of the distribution, whose shape is the paper's within a factor of two.
fn part_row(context: &Context<'_>, what: &str, paper: f64, ours: f64) -> Row {
    let row = context.row_in(what, "%", [paper / 2.0, 2.0 * paper], ours);
    row.of_paper([paper; 2])
}

/// Why fewer commands take a turn longer.
const FEWER_TURNS: &str = "seeks are off as often as under the random 4 KB requests of figure 7, where 0.7 % take a turn longer here and 1.8 % in the paper. The paper does not say why reads of small files are mispredicted twice as often as those";

/// Why no predictions are off by 800 us.
const OVERLAPS: &str = "the paper's errors of 800 us are bus transfers that overlap the media otherwise than predicted; the emulated bus is behind the media by up to 2.5 us a block, 15 us for 3 KB, so it makes none that large";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_system_parts_do_not_overlap() {
        let files = FileSystem { groups: 274 };
        let mut data = Vec::new();
        for directory in 0..DIRECTORIES {
            for file in 0..FILES {
                let [_, entries, inode, own] = files.reads(directory, file);
                let group = own.start.get() / GROUP;
                assert_eq!([entries, inode].map(|extent| extent.start.get() / GROUP), [group; 2]);
                assert!(inode.start.get() % GROUP + inode.blocks <= BEFORE_DATA);
                data.push(own.start);
                if file == 0 {
                    data.push(entries.start);
                }
            }
        }
        data.sort();
        assert!(data.windows(2).all(|pair| pair[0].get() + BLOCK <= pair[1].get()));
        assert!(data.iter().all(|start| start.get() % GROUP >= BEFORE_DATA));
    }

    #[test]
    fn process_reads_each_block_once() {
        let mut reader = FileReader::new(FileSystem { groups: 274 }, 1);
        let (mut now, mut seen) = (SimTime::ZERO, BTreeSet::new());
        while let Some(arrival) = reader.next_arrival().unwrap() {
            assert!(arrival >= now, "{arrival} before {now}");
            assert!(seen.insert(reader.take().start));
            assert_eq!(reader.next_arrival().unwrap(), None);
            now = arrival + SimDuration::from_ms(8);
            reader.completed(0, now);
        }
        // Of 100,000 files each is read by a tenth.
        assert!((13_000..16_000).contains(&seen.len()), "{}", seen.len());
    }
}
