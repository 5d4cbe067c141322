//! Size and rules of the buffer, found by the time of answers.
//!
//! A read that the buffer serves takes the same short time always; one that visits the media waits
//! for a part of a turn that is as good as random.

use freewheel_units::SimDuration;

use super::prober::{Prober, Shadow};
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
/// Reads at random places that say whether a platter turns, where those of the pairs leave it open.
const PLACES_SURE: usize = 128;
/// With seeks of any length, answers come at an angle that is as good as random: the middle half of them spans
/// half a turn or more. No half of 32 lies within an eighth of the shortest one with a probability of one
/// in a million (binomial), and of 128 within a quarter with one in a thousand million.
const TURN_PARTS: u64 = 4;
/// Trials for each number of reads in between. Two of three hits decide: what is far from a hit
/// looks like one in less than a tenth of all cases.
const TRIALS: usize = 9;
/// Places at which the reach is tried: how far a drive reads on depends on where in its track.
const PLACES: usize = 24;
/// Beyond this no value in between is tried.
const SEGMENTS_MAX: usize = 4096;
const REACH_MAX: u64 = 1 << 16;
/// Long enough for a turn of any drive, and to read on for this many blocks on one that takes as long
/// for each as the Cheetah 4LP of 1996 on its inner tracks; or 40 turns of a slow drive.
const PAUSE_MIN: SimDuration = SimDuration::from_ms(25);
const PAUSE_A_BLOCK: SimDuration = SimDuration::from_us(50);
const PAUSE_MAX: SimDuration = SimDuration::from_ms(450);

/// Looks for a buffer; None when a block read twice in a row comes from the media again, or when it comes
/// no sooner than one that was never read. Err where no platter turns.
pub(super) fn measure(prober: &mut Prober<'_>) -> Result<Option<Buffer>, ExtractError> {
    let (mut firsts, mut times) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let (block, first) = prober.read_elsewhere(&[])?;
        firsts.push(first.took());
        times.push(prober.read(block)?.took());
    }
    ensure_turning(prober, &mut firsts)?;
    times.sort_unstable();
    let median = times[PAIRS / 2];
    if median >= SHORTEST_TURN {
        return Ok(None);
    }
    // Twice the slowest of the faster half: jitter of answers is allowed for.
    let spread = median - times[0];
    let hit_below = times[PAIRS * 3 / 4] + spread * 2 + SimDuration::from_us(20);
    // Hits and misses look alike: the clock finds out whether there is a period at all.
    if firsts[firsts.len() * 3 / 4] < hit_below {
        return Ok(None);
    }
    let hits: Vec<u64> = times.iter().filter(|t| **t < hit_below).map(|t| t.ns()).collect();
    let hit = SimDuration::from_ns(hits.iter().sum::<u64>() / hits.len() as u64);
    let mut buffer = Buffer { hit, hit_below, segments: 0, ahead: 0, behind: 0 };
    buffer.segments = segments(prober, hit_below)?;
    prober.set_shadow(Shadow { reads: buffer.segments as usize, reach: 0 });
    buffer.ahead = reach(prober, &buffer, |block, by| block.checked_add(by))?;
    buffer.behind = reach(prober, &buffer, |block, by| block.checked_sub(by))?;
    Ok(Some(buffer))
}

/// Makes sure that the times of reads at random places differ as those of a turning platter do. Few of
/// one may be alike by chance, so that more are read. Sorts them.
fn ensure_turning(
    prober: &mut Prober<'_>,
    times: &mut Vec<SimDuration>,
) -> Result<(), ExtractError> {
    times.sort_unstable();
    if middle_half(times) >= SHORTEST_TURN / 2 {
        return Ok(());
    }
    while times.len() < PLACES_SURE {
        times.push(prober.read_elsewhere(&[])?.1.took());
    }
    times.sort_unstable();
    if middle_half(times) >= SHORTEST_TURN / TURN_PARTS {
        return Ok(());
    }
    let count = times.len();
    Err(ExtractError::NoTurn { count, from: times[count / 4], to: times[count * 3 / 4] })
}

/// Span of the middle half of sorted times.
fn middle_half(times: &[SimDuration]) -> SimDuration {
    times[times.len() * 3 / 4] - times[times.len() / 4]
}

fn segments(prober: &mut Prober<'_>, hit_below: SimDuration) -> Result<u32, ExtractError> {
    let mut kept = 0;
    let mut gone = 1;
    while stays(prober, gone, hit_below)? {
        kept = gone;
        gone *= 2;
        if gone > SEGMENTS_MAX {
            return Ok(kept as u32);
        }
    }
    while gone - kept > 1 {
        let middle = usize::midpoint(kept, gone);
        if stays(prober, middle, hit_below)? {
            kept = middle;
        } else {
            gone = middle;
        }
    }
    Ok(gone as u32)
}

/// True if a block is still in the buffer after this many reads elsewhere.
fn stays(
    prober: &mut Prober<'_>,
    others: usize,
    hit_below: SimDuration,
) -> Result<bool, ExtractError> {
    let mut hits = 0;
    for _ in 0..TRIALS {
        let (block, _) = prober.read_elsewhere(&[])?;
        let mut came = 0;
        while came < others {
            // A hit by chance replaces no segment.
            let (_, other) = prober.read_elsewhere(&[block])?;
            came += usize::from(other.took() >= hit_below);
        }
        hits += usize::from(prober.read(block)?.took() < hit_below);
    }
    Ok(3 * hits > 2 * TRIALS)
}

/// The greatest power of two for which a block so far away was in the buffer anywhere.
fn reach(
    prober: &mut Prober<'_>,
    buffer: &Buffer,
    away: impl Fn(u64, u64) -> Option<u64>,
) -> Result<u64, ExtractError> {
    let mut reach = 0;
    let mut by = 1;
    while by <= REACH_MAX && by <= 4 * reach.max(1) {
        let mut hits = 0;
        for _ in 0..PLACES {
            let block = prober.elsewhere(&[])?;
            let Some(other) = away(block, by).filter(|&other| other < prober.blocks()) else {
                continue;
            };
            prober.freshen(&[block, other])?;
            hits += usize::from(comes_along(prober, block, other, buffer.hit_below)?);
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

/// True if a block is in the buffer a while after another one was read.
fn comes_along(
    prober: &mut Prober<'_>,
    read: u64,
    other: u64,
    hit_below: SimDuration,
) -> Result<bool, ExtractError> {
    if readable(prober.read(read))?.is_none() {
        return Ok(false);
    }
    // What lies before is in the buffer when the block is, as it passes the head first.
    let on = other.saturating_sub(read);
    prober.sleep((PAUSE_MIN + PAUSE_A_BLOCK * on).min(PAUSE_MAX));
    Ok(readable(prober.read(other))?.is_some_and(|done| done.took() < hit_below))
}

impl Buffer {
    /// Shadow of the buffer, which measurements must stay clear of. Its reach is less than twice the
    /// greatest power of two that was found, and more where the next one is found too seldom; its segments
    /// may be some more.
    pub fn shadow(&self) -> Shadow {
        let segments = self.segments as usize;
        Shadow { reads: segments + segments / 8 + 1, reach: 5 * self.ahead.max(self.behind) / 2 }
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::Prng;

    use super::*;

    /// Times of reads at random places of a disk that takes no time for seeks.
    fn times(prng: &mut Prng, turn: SimDuration, count: usize) -> Vec<SimDuration> {
        let overhead = SimDuration::from_us(100);
        let mut times: Vec<SimDuration> =
            (0..count).map(|_| overhead + SimDuration::from_ns(prng.below(turn.ns()))).collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn shortest_turn_is_told_from_none() {
        let mut prng = Prng::new(1, "turns");
        let least = SHORTEST_TURN / TURN_PARTS;
        for _ in 0..20_000 {
            assert!(middle_half(&times(&mut prng, SHORTEST_TURN, PLACES_SURE)) > least);
            assert!(middle_half(&times(&mut prng, SHORTEST_TURN / 4, PLACES_SURE)) < least);
        }
    }
}
