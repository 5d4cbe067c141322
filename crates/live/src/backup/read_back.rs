//! Checksums of what a file has, read from its disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use freewheel_units::BLOCK_BYTES;
use rustix::fs::{Advice, fadvise};

use super::manifest::{Manifest, REGION_BLOCKS};
use crate::control::BlockRange;

/// Puts what was written on the disk, and asks the system to forget it, so that it is read from there.
pub fn drop_from_memory(file: &File) -> io::Result<()> {
    file.sync_data()?;
    // What the system keeps in memory all the same is read from there: no error tells.
    let _ = fadvise(file, 0, None, Advice::DontNeed);
    Ok(())
}

/// Adds the checksums of these blocks of a file, whose first block is the first of the manifest's range.
/// `progress` gets the number of blocks read.
pub fn sum_up(
    file: &File,
    manifest: &mut Manifest,
    stretches: &[BlockRange],
    mut progress: impl FnMut(u64),
) -> io::Result<()> {
    let mut done = 0;
    for stretch in stretches {
        let end = stretch.first_block + stretch.blocks;
        let mut at = stretch.first_block;
        while at < end {
            let blocks = REGION_BLOCKS.min(end - at);
            let mut data = vec![0; (blocks * BLOCK_BYTES) as usize];
            let place = (at - manifest.range.first_block) * BLOCK_BYTES;
            file.read_exact_at(&mut data, place)?;
            manifest.add(at, &data);
            at += blocks;
            done += blocks;
            progress(done);
        }
    }
    Ok(())
}

/// Difference of `ranges` and `gone`; both in ascending order and disjoint.
pub fn without(ranges: &[BlockRange], gone: &[BlockRange]) -> Vec<BlockRange> {
    let mut left = Vec::new();
    for range in ranges {
        let (mut at, end) = (range.first_block, end_of(range));
        let from = gone.partition_point(|hole| end_of(hole) <= at);
        for hole in gone[from..].iter().take_while(|hole| hole.first_block < end) {
            if hole.first_block > at {
                left.push(BlockRange { first_block: at, blocks: hole.first_block - at });
            }
            at = end_of(hole).min(end);
        }
        if at < end {
            left.push(BlockRange { first_block: at, blocks: end - at });
        }
    }
    left
}

fn end_of(range: &BlockRange) -> u64 {
    range.first_block + range.blocks
}
