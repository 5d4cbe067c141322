//! Time of the bus for each block.
//!
//! A hit ends when its last block is across: its time is linear in its length, and the slope is the
//! bus's time of a block. Where the buffer keeps no block, a read of several blocks is answered later in the
//! turn than a read of its last one alone by what the bus lags the media.

use freewheel_units::{Op, SimDuration};

use super::buffer::Buffer;
use super::clock::{Clock, agreeing, fold, mean_angle, signed};
use super::map::ZoneMap;
use super::prober::Prober;
use super::{ExtractError, readable};

/// Observations of the bus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bus {
    /// Time of a block.
    pub block_ns: f64,
    pub error_ns: f64,
    /// Blocks of the reads that say so.
    pub blocks: u32,
}

/// Result for the bus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BusFound {
    Time(Bus),
    /// No time of the bus shows.
    NoTime,
    /// Too few answers say anything.
    NotMeasured,
}

impl BusFound {
    pub fn time(self) -> Option<Bus> {
        match self {
            Self::Time(bus) => Some(bus),
            Self::NoTime | Self::NotMeasured => None,
        }
    }
}

/// Lengths of hits that are tried, until one fits into the buffer.
const LENGTHS: [u32; 4] = [64, 32, 16, 8];
const READS: usize = 24;
/// Times of hits differ by less from the first quarter to the third; those of reads of the media
/// differ by half a turn, which is 1.5 ms of the fastest spindle.
const ALIKE: SimDuration = SimDuration::from_us(500);
/// Between two reads of the same blocks at most: blocks that are not kept come round at random, and
/// what the drive reads on meanwhile does not take their place.
const PAUSE_MAX: SimDuration = SimDuration::from_ms(5);
/// Blocks read where the buffer keeps no block: few enough that a bus of ten times the media's time is less
/// than half a turn behind.
const FROM_MEDIA: u64 = 16;
/// Part of a turn in which answers lie that waited for the media only.
const IN_STEP: f64 = 1.0 / 32.0;
/// Standard errors from which on a time is one.
const SURE: f64 = 4.0;

/// A time only where it is one beyond its error.
pub(super) fn measure(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    zones: &[ZoneMap],
    buffer: Option<Buffer>,
) -> Result<BusFound, ExtractError> {
    let bus = match buffer {
        Some(buffer) => of_hits(prober, clock, buffer)?,
        None => of_media(prober, clock, zones)?,
    };
    Ok(match bus {
        BusFound::Time(bus) if bus.block_ns <= SURE * bus.error_ns => BusFound::NoTime,
        found => found,
    })
}

fn of_hits(
    prober: &mut Prober<'_>,
    clock: &Clock,
    buffer: Buffer,
) -> Result<BusFound, ExtractError> {
    for blocks in LENGTHS {
        let mut times = Vec::new();
        for _ in 0..READS {
            times.extend(second_read(prober, blocks)?);
        }
        times.sort_unstable();
        let quarter = times.len() / 4;
        if times.is_empty() || times[3 * quarter] - times[quarter] > ALIKE {
            continue;
        }
        // The middle half has no answer that was held up, nor a miss.
        let middle = &times[quarter..=3 * quarter];
        let mean = middle.iter().map(|time| time.ns() as f64).sum::<f64>() / middle.len() as f64;
        let more = f64::from(blocks - 1);
        let error_ns = (clock.jitter_ns() + 1.0) / (READS as f64 / 4.0).sqrt() / more;
        return Ok(BusFound::Time(Bus {
            block_ns: (mean - buffer.hit.ns() as f64) / more,
            error_ns,
            blocks,
        }));
    }
    Ok(BusFound::NotMeasured)
}

/// Time of a read of blocks that were read just before.
fn second_read(prober: &mut Prober<'_>, blocks: u32) -> Result<Option<SimDuration>, ExtractError> {
    let block = prober.elsewhere(&[])?.min(prober.blocks().saturating_sub(blocks.into()));
    if readable(prober.ask_for(Op::Read, block, blocks))?.is_none() {
        return Ok(None);
    }
    let pause = prober.below(PAUSE_MAX.ns());
    prober.sleep(SimDuration::from_ns(pause));
    Ok(readable(prober.ask_for(Op::Read, block, blocks))?.map(|done| done.took()))
}

fn of_media(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    zones: &[ZoneMap],
) -> Result<BusFound, ExtractError> {
    let zone = &zones[0];
    let mut late = Vec::new();
    let tracks = (zone.blocks / zone.per_track).max(1);
    for _ in 0..READS {
        clock.keep(prober)?;
        let block = zone.track_first(prober.below(tracks));
        let last = block + FROM_MEDIA - 1;
        if last >= zone.end() || zone.track_of(last).0 != zone.track_of(block).0 {
            continue;
        }
        let done = readable(prober.ask_for(Op::Read, block, FROM_MEDIA as u32))?;
        let Some(done) = done.filter(|done| clock.times(done)) else { continue };
        late.push(fold(clock.angle(done.end) - zone.angle(last)));
    }
    let agreed = agreeing(&late, IN_STEP);
    if 2 * agreed.len() < READS {
        return Ok(BusFound::NotMeasured);
    }
    let late_ns = signed(mean_angle(agreed.iter().map(|&at| late[at]))) * clock.period_ns();
    let error_ns = (clock.jitter_ns() + 1.0) / (agreed.len() as f64).sqrt();
    if late_ns <= SURE * error_ns {
        return Ok(BusFound::NoTime);
    }
    // Under the head are all of them, and after the last comes the time of one in any case.
    let width_ns = clock.period_ns() / zone.per_track as f64;
    let more = (FROM_MEDIA - 1) as f64;
    let block_ns = (late_ns + FROM_MEDIA as f64 * width_ns) / more;
    Ok(BusFound::Time(Bus { block_ns, error_ns: error_ns / more, blocks: FROM_MEDIA as u32 }))
}
