//! What the buffer keeps, from how soon answers come.
//!
//! A read that the buffer serves takes the same short time always; one that visits the media waits
//! for a part of a turn that is as good as random.

use freewheel_units::SimDuration;

use super::host::{Host, Shadow};
use super::{ExtractError, readable};

/// The buffer as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buffer {
    /// Mean time of a read of one block that it serves.
    pub hit: SimDuration,
    /// A read faster than this was served by it.
    pub hit_below: SimDuration,
    /// Reads elsewhere after which a block is gone, the one that takes its place included.
    pub segments: u32,
    /// The greatest power of two that was found in it that many blocks behind a block read before.
    pub ahead: u64,
    /// And that many blocks before.
    pub behind: u64,
}

/// Reads of a block twice in a row for the time of a hit.
const PAIRS: usize = 32;
/// A drive serves no second read of a block from the media in less: a turn of 20,000 rpm.
const SHORTEST_TURN: SimDuration = SimDuration::from_ms(3);
/// Trials for each number of reads in between. Two of three hits decide: what is far from a hit
/// looks like one in less than a tenth of all cases.
const TRIALS: usize = 9;
/// Places at which the reach is tried: how far a drive reads on depends on where in its track.
const PLACES: usize = 24;
/// Nothing in between is tried beyond this.
const SEGMENTS_MAX: usize = 4096;
const REACH_MAX: u64 = 1 << 16;
/// Long enough for a turn of any drive, and to read on for so many blocks on one that takes as long
/// for each as the Cheetah 4LP of 1996 on its inner tracks; or 40 turns of a slow drive.
const PAUSE_MIN: SimDuration = SimDuration::from_ms(25);
const PAUSE_A_BLOCK: SimDuration = SimDuration::from_us(50);
const PAUSE_MAX: SimDuration = SimDuration::from_ms(450);

/// Looks for a buffer; None when a block read twice in a row comes from the media again.
pub(super) fn measure(host: &mut Host<'_>) -> Result<Option<Buffer>, ExtractError> {
    let mut times = Vec::new();
    for _ in 0..PAIRS {
        let (block, _) = host.read_elsewhere(&[])?;
        times.push(host.read(block)?.took());
    }
    times.sort_unstable();
    let median = times[PAIRS / 2];
    if median >= SHORTEST_TURN {
        return Ok(None);
    }
    // Twice the slowest of the faster half: jitter of answers is allowed for.
    let spread = median - times[0];
    let hit_below = times[PAIRS * 3 / 4] + spread * 2 + SimDuration::from_us(20);
    let hits: Vec<u64> = times.iter().filter(|t| **t < hit_below).map(|t| t.ns()).collect();
    let hit = SimDuration::from_ns(hits.iter().sum::<u64>() / hits.len() as u64);
    let mut buffer = Buffer { hit, hit_below, segments: 0, ahead: 0, behind: 0 };
    buffer.segments = segments(host, hit_below)?;
    host.set_shadow(Shadow { reads: buffer.segments as usize, reach: 0 });
    buffer.ahead = reach(host, &buffer, |block, by| block.checked_add(by))?;
    buffer.behind = reach(host, &buffer, |block, by| block.checked_sub(by))?;
    Ok(Some(buffer))
}

fn segments(host: &mut Host<'_>, hit_below: SimDuration) -> Result<u32, ExtractError> {
    let mut kept = 0;
    let mut gone = 1;
    while stays(host, gone, hit_below)? {
        kept = gone;
        gone *= 2;
        if gone > SEGMENTS_MAX {
            return Ok(kept as u32);
        }
    }
    while gone - kept > 1 {
        let middle = usize::midpoint(kept, gone);
        if stays(host, middle, hit_below)? {
            kept = middle;
        } else {
            gone = middle;
        }
    }
    Ok(gone as u32)
}

/// Whether a block is still in the buffer after so many reads elsewhere.
fn stays(host: &mut Host<'_>, others: usize, hit_below: SimDuration) -> Result<bool, ExtractError> {
    let mut hits = 0;
    for _ in 0..TRIALS {
        let (block, _) = host.read_elsewhere(&[])?;
        let mut came = 0;
        while came < others {
            // What is in the buffer by chance takes nothing's place.
            let (_, other) = host.read_elsewhere(&[block])?;
            came += usize::from(other.took() >= hit_below);
        }
        hits += usize::from(host.read(block)?.took() < hit_below);
    }
    Ok(3 * hits > 2 * TRIALS)
}

/// The greatest power of two for which a block so far away was in the buffer anywhere.
fn reach(
    host: &mut Host<'_>,
    buffer: &Buffer,
    away: impl Fn(u64, u64) -> Option<u64>,
) -> Result<u64, ExtractError> {
    let mut reach = 0;
    let mut by = 1;
    while by <= REACH_MAX && by <= 4 * reach.max(1) {
        let mut hits = 0;
        for _ in 0..PLACES {
            let block = host.elsewhere(&[])?;
            let Some(other) = away(block, by).filter(|&other| other < host.blocks()) else {
                continue;
            };
            host.freshen(&[block, other])?;
            hits += usize::from(comes_along(host, block, other, buffer.hit_below)?);
            // One might be a miss that was quick by chance.
            if hits > 1 {
                reach = by;
                break;
            }
        }
        by *= 2;
    }
    Ok(reach)
}

/// Whether a block is in the buffer a while after another one was read.
fn comes_along(
    host: &mut Host<'_>,
    read: u64,
    other: u64,
    hit_below: SimDuration,
) -> Result<bool, ExtractError> {
    if readable(host.read(read))?.is_none() {
        return Ok(false);
    }
    // What lies before is in the buffer when the block is, as it passes the head first.
    let on = other.saturating_sub(read);
    host.sleep((PAUSE_MIN + PAUSE_A_BLOCK * on).min(PAUSE_MAX));
    Ok(readable(host.read(other))?.is_some_and(|done| done.took() < hit_below))
}

impl Buffer {
    /// What keeps measurements clear of it. Its reach is less than twice the greatest power of two
    /// that was found, and more where the next one is found too seldom; its segments may be some more.
    pub fn shadow(&self) -> Shadow {
        let segments = self.segments as usize;
        Shadow { reads: segments + segments / 8 + 1, reach: 5 * self.ahead.max(self.behind) / 2 }
    }
}
