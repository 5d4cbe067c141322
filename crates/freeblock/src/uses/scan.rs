//! Scans of a whole drive: each block once, in any order (osdi00 section 2.2, "scanning
//! applications").

use freewheel_units::{Blocks, Op};

use crate::tasks::{Counts, Extent, TaskSpec, Until};

/// A drive in blocks of `block_size` x 512 B. When they do not come out even the last one overlaps
/// the one before, so that every sector is in one.
pub fn whole_drive(capacity: Blocks, block_size: u32) -> Vec<Extent> {
    let (capacity, size) = (capacity.get(), u64::from(block_size.max(1)));
    let even = capacity / size * size;
    let mut extents = vec![Extent::new(0, even)];
    if even > 0 && even < capacity {
        extents.push(Extent::new(capacity - size, size));
    }
    extents
}

fn one_scan(capacity: Blocks, block_size: u32) -> TaskSpec {
    TaskSpec::new(Op::Read, block_size, whole_drive(capacity, block_size))
}

/// Scans that follow on each other and take what passes by (osdi00 section 6).
pub fn scan(capacity: Blocks, block_size: u32) -> TaskSpec {
    TaskSpec { until: Until::Repeated, ..one_scan(capacity, block_size) }
}

/// Scans that follow on each other and verify what is on the media: only what is read counts, and
/// what has been verified need not be held until the rest of its block is.
pub fn scrub(capacity: Blocks, block_size: u32) -> TaskSpec {
    TaskSpec {
        until: Until::Repeated,
        counts: Counts::READS,
        holds_pieces: false,
        ..one_scan(capacity, block_size)
    }
}

/// Every block written once: a wipe, a refresh, the destaging of a whole image.
pub fn write(capacity: Blocks, block_size: u32) -> TaskSpec {
    let even = capacity.get() / u64::from(block_size.max(1)) * u64::from(block_size);
    TaskSpec::new(Op::Write, block_size, vec![Extent::new(0, even)])
}

/// One scan of what the drive holds when it begins: a physical backup. A foreground write delivers no
/// block, and blocks that it would overwrite are to be read before.
pub fn backup(capacity: Blocks, block_size: u32) -> TaskSpec {
    TaskSpec { counts: Counts::READS, precedes_writes: true, ..one_scan(capacity, block_size) }
}

/// A statistical sample of what a scan reads: the first blocks to pass, `parts_per_million` of all,
/// rounded up. Which ones depends on the foreground's places and times, so it is a sample of blocks
/// whose contents do not depend on those.
pub fn sample(scan: TaskSpec, parts_per_million: u32) -> TaskSpec {
    let enough = u128::from(scan.blocks()) * u128::from(parts_per_million);
    let enough = u64::try_from(enough.div_ceil(1_000_000)).unwrap_or(u64::MAX);
    TaskSpec { until: Until::Enough(enough), ..scan }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scan_blocks_cover_every_sector() {
        assert_eq!(whole_drive(Blocks::new(64), 8), [Extent::new(0, 64)]);
        assert_eq!(whole_drive(Blocks::new(67), 8), [Extent::new(0, 64), Extent::new(59, 8)]);
    }

    #[test]
    fn sample_is_rounded_up_to_blocks() {
        let until = |ppm| sample(backup(Blocks::new(67), 8), ppm).until;
        assert_eq!(until(1), Until::Enough(1));
        assert_eq!(until(500_000), Until::Enough(5), "of 9");
        assert_eq!(until(1_000_000), Until::Enough(9));
        let hundred = backup(Blocks::new(800), 8);
        assert_eq!(sample(hundred, 70_000).until, Until::Enough(7), "as exact as millionths are");
    }
}
