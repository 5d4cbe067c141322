//! Check of the file with a sample of blocks that took no part in making it.

use freewheel_model::drive::Drive;
use freewheel_units::Lbn;

use super::clock::{Clock, signed};
use super::map::ZoneMap;
use super::prober::Prober;
use super::{ExtractError, ExtractedMisplaced, readable};

/// Blocks at random places.
const SAMPLE: usize = 2000;
/// And of each zone this many from its first and its last tracks, where pieces of it would go on else.
const AT_ENDS: usize = 8;
const TRACKS_AT_ENDS: u64 = 40;
/// Sectors, and standard deviations of an answer, within which a block is where it is thought to be.
const SECTORS: f64 = 0.75;
const STANDARD_ERRORS: f64 = 8.0;
/// Reads of a block whose first answer was elsewhere: something may have held it up.
const AGAIN: usize = 5;

/// Result of the sample.
#[derive(Debug, Default)]
pub(super) struct Verified {
    /// Blocks that were read.
    pub count: u64,
    /// One that is off by no more may be taken to lie where it should.
    pub within_ns: f64,
    /// Blocks that lie elsewhere than on the drive of the file.
    pub misplaced: Vec<ExtractedMisplaced>,
}

/// Holds a sample against the drive of the file. A block is answered this many turns after it has passed
/// the head. Only angles are compared: cylinders and heads whose tracks begin at the same angle
/// are alike.
pub(super) fn verify(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    zones: &[ZoneMap],
    file: &Drive,
    answered_after: f64,
) -> Result<Verified, ExtractError> {
    let mut verified = Verified::default();
    let sample = sample(prober, zones);
    prober.begin("blocks of a sample", sample.len() as u64);
    for (at, block) in (0..).zip(sample) {
        prober.reached(at);
        let zone = &zones[zones.partition_point(|zone| zone.first <= block) - 1];
        if zone.slips.iter().any(|slip| {
            slip.earliest < slip.latest && (slip.earliest..=slip.latest).contains(&block)
        }) {
            continue;
        }
        let width_ns = clock.period_ns() / zone.per_track as f64;
        let due = passes(file, block) + answered_after;
        let Some(off_ns) = off_ns(prober, clock, block, due, 1)? else { continue };
        verified.count += 1;
        verified.within_ns = verified.within_ns.max(within_ns(clock, 1, width_ns));
        if off_ns.abs() <= within_ns(clock, 1, width_ns) {
            continue;
        }
        // It might have been held up.
        let Some(off_ns) = self::off_ns(prober, clock, block, due, AGAIN)? else { continue };
        if off_ns.abs() > within_ns(clock, AGAIN, width_ns) {
            let off_ns = off_ns.round() as i64;
            verified.misplaced.push(ExtractedMisplaced { block, off_ns });
        }
    }
    Ok(verified)
}

fn within_ns(clock: &Clock, reads: usize, width_ns: f64) -> f64 {
    let varies_ns = STANDARD_ERRORS * clock.jitter_ns() / (reads as f64).sqrt();
    SECTORS * width_ns + varies_ns + clock.phase_error_ns()
}

fn sample(prober: &mut Prober<'_>, zones: &[ZoneMap]) -> Vec<u64> {
    let all = prober.blocks();
    let mut sample: Vec<u64> = (0..SAMPLE).map(|_| prober.below(all)).collect();
    for zone in zones {
        let near = (TRACKS_AT_ENDS * zone.per_track).min(zone.blocks);
        for _ in 0..AT_ENDS {
            sample.push(zone.first + prober.below(near));
            sample.push(zone.end() - 1 - prober.below(near));
        }
    }
    sample
}

/// The angle at which a block of the file has passed the head.
fn passes(file: &Drive, block: u64) -> f64 {
    let layout = file.layout();
    let run = layout.run(Lbn::new(block), 1);
    let start = layout.track_start(run.at.cylinder, run.at.surface);
    let sectors = f64::from(layout.zones()[run.zone].blocks_per_track());
    start.map_or(0.0, |start| start.turns()) + f64::from(run.at.sector + 1) / sectors
}

/// By how much a block is answered later than it is due; None if it cannot be read.
fn off_ns(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    block: u64,
    due: f64,
    reads: usize,
) -> Result<Option<f64>, ExtractError> {
    let angles = readable(clock.measure(prober, &[block], reads))?;
    Ok(angles.map(|angles| signed(angles[0] - due) * clock.period_ns()))
}
