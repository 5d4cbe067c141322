//! The default size of a scan's blocks.

use std::ops::RangeInclusive;

use freewheel_units::Blocks;

use freewheel_model::drive::Drive;

/// Shortest and longest blocks of a task for which none are asked: 4 KiB, a page, which is what file
/// systems and clients write; and 64 KiB, for which a write may have to wait where a backup reads.
/// Larger ones would make no other task faster either, on tracks of today: the rest of a gap is lost,
/// and more of a task lies in blocks on two tracks.
const USUAL_MIN: Blocks = Blocks::new(8);
const USUAL_MAX: Blocks = Blocks::new(128);

/// The default block size of a task, on a device with sectors of `sector` blocks of 512 B: it fits the
/// tracks of the drive, and is whole sectors.
pub fn usual_block(drive: &Drive, sector: Blocks) -> Blocks {
    block_size(drive, USUAL_MIN.max(sector)..=USUAL_MAX.max(sector))
}

/// About an eighth of a mean track: a power of two of blocks of 512 B, within `bounds`, which are powers
/// of two as well. A part of a gap that is smaller than a block is lost, so blocks are a small part of a
/// track; blocks as long as a track or longer lie on several, come in pieces and are seldom whole. Much
/// smaller ones cost memory, and more decisions, and bring little.
pub fn block_size(drive: &Drive, bounds: RangeInclusive<Blocks>) -> Blocks {
    let blocks = u128::from(drive.blocks().get());
    let zones = drive.layout().zones().iter();
    let tracks: u128 = zones
        .map(|zone| u128::from(zone.blocks().get()) * u128::from(zone.blocks_per_track()))
        .sum();
    let below = 1 << (tracks / (8 * blocks)).max(1).ilog2();
    // The nearer of two powers of two by ratio: from the square root of two times the lower one on.
    let lower = 8 * blocks * below;
    let is_above = tracks * tracks >= 2 * lower * lower;
    let size = Blocks::new(if is_above { 2 * below } else { below } as u64);
    size.clamp(*bounds.start(), *bounds.end())
}
