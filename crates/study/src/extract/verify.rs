//! Whether blocks lie where the file says, of a sample that nothing in it comes from.

use freewheel_model::drive::Drive;
use freewheel_units::Lbn;

use super::clock::{Clock, signed};
use super::host::Host;
use super::map::{SlipFound, ZoneMap};
use super::{ExtractError, ExtractedMisplaced, readable};

/// Blocks anywhere.
const SAMPLE: usize = 2000;
/// And of each zone so many from its first and its last tracks, where pieces of it would go on else.
const AT_ENDS: usize = 8;
const TRACKS_AT_ENDS: u64 = 40;
/// Sectors, and standard deviations of an answer, within which a block is where it is thought to be.
const SECTORS: f64 = 0.75;
const STANDARD_ERRORS: f64 = 8.0;
/// Reads of a block whose first answer was elsewhere: something may have held it up.
const AGAIN: usize = 5;

/// How many blocks were read, and those of them that lie elsewhere than on the drive of the file. A
/// block is answered so many turns after it has passed the head.
pub(super) fn misplaced(
    host: &mut Host<'_>,
    clock: &mut Clock,
    zones: &[ZoneMap],
    file: &Drive,
    answered_after: f64,
) -> Result<(u64, Vec<ExtractedMisplaced>), ExtractError> {
    let (mut count, mut elsewhere) = (0, Vec::new());
    for block in sample(host, zones) {
        let zone = &zones[zones.partition_point(|zone| zone.first <= block) - 1];
        let is_doubtful = |slip: &SlipFound| {
            slip.earliest < slip.latest && (slip.earliest..=slip.latest).contains(&block)
        };
        if zone.slips.iter().any(is_doubtful) {
            continue;
        }
        let varies_ns = STANDARD_ERRORS * clock.jitter_ns() + clock.phase_error_ns();
        let within = SECTORS / zone.per_track as f64 + varies_ns / clock.period_ns();
        let due = passes(file, block) + answered_after;
        let Some(mut off) = off(host, clock, block, due, 1)? else { continue };
        count += 1;
        if off.abs() > within {
            // It might have been held up.
            let Some(again) = self::off(host, clock, block, due, AGAIN)? else { continue };
            off = again;
        }
        if off.abs() > within {
            let off_ns = (off * clock.period_ns()).round() as i64;
            elsewhere.push(ExtractedMisplaced { block, off_ns });
        }
    }
    Ok((count, elsewhere))
}

fn sample(host: &mut Host<'_>, zones: &[ZoneMap]) -> Vec<u64> {
    let all = host.blocks();
    let mut sample: Vec<u64> = (0..SAMPLE).map(|_| host.below(all)).collect();
    for zone in zones {
        let near = (TRACKS_AT_ENDS * zone.per_track).min(zone.blocks);
        for _ in 0..AT_ENDS {
            sample.push(zone.first + host.below(near));
            sample.push(zone.end() - 1 - host.below(near));
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

/// By how many turns a block is answered later than it is due; None if it cannot be read.
fn off(
    host: &mut Host<'_>,
    clock: &mut Clock,
    block: u64,
    due: f64,
    reads: usize,
) -> Result<Option<f64>, ExtractError> {
    let angles = readable(clock.measure(host, &[block], reads))?;
    Ok(angles.map(|angles| signed(angles[0] - due)))
}
