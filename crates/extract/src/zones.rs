//! Tracks, skews, defects and zones, from the angles at which blocks are answered.
//!
//! Within a track the angle rises by a sector a block; from a track to the next it leaps by a skew.
//! So the end of a track is found to the block by bisection, however coarse the angles are. A few
//! tracks give the pattern of the skews, and with it the place of every later block. The pattern is
//! then tried further and further away; where it fails there is a defect, by which all later blocks
//! have moved on, or the next zone.

use super::clock::{Clock, fold, signed};
use super::map::{SlipFound, TrackRuns, ZoneMap};
use super::prober::Prober;
use super::{ExtractError, readable};

/// Reads of a block where its angle decides between two cases.
pub(super) const READS: usize = 3;
/// A track that is shorter by more than this has not lost them to defects.
pub(super) const SLIPS_A_TRACK_MAX: u64 = 4;
/// Unless it was scratched, which shows within the track. The Cheetah 9LP has eight in a row.
const SCRATCH_MAX: u64 = 32;
/// More places than this that leap to the eye are taken to lie in a row.
const APART_MAX: u64 = 16;
/// A block that is off by less than this part of a turn may have been moved by defects in its own
/// track; skews, in which heads change, are longer. Assumed: 0.1 ms.
const SKEW_MIN: f64 = 1.0 / 64.0;
/// More unreadable blocks one after the other than this are no defect but a broken drive.
const BAD_IN_A_ROW_MAX: i64 = 64;

/// Surveyor of zones, one after the other.
pub(super) struct Surveyor<'s, 'h> {
    pub prober: &'s mut Prober<'h>,
    pub clock: &'s mut Clock,
    /// Number of the zone that is measured, from 1; for reports only.
    pub number: usize,
}

/// A track that was walked over: its first block and the angle of that.
#[derive(Debug, Clone, Copy)]
pub(super) struct ZoneWalk {
    pub first: u64,
    pub angle: f64,
}

impl Surveyor<'_, '_> {
    /// The zone that begins with this block. `heads` is known from the zone before, if there is one.
    pub fn zone(
        &mut self,
        first: u64,
        first_cylinder: u64,
        before: Option<&ZoneMap>,
    ) -> Result<ZoneMap, ExtractError> {
        self.goes_on_with("first tracks");
        let known = before.map(|before| before.heads);
        let runs_known = before.and_then(|before| before.runs.clone());
        let first = before.map_or(Ok(first), |before| self.begin_behind(before, first))?;
        let (first, data) = self.first_tracks(first)?;
        // What holds for one zone holds for all.
        let per_track = match before {
            Some(before) if !before.has_spares_on_tracks() => data,
            _ => {
                self.goes_on_with("sectors of a track");
                self.sectors(first, data)?
            }
        };
        // Spares of cylinders show in two of them.
        let is_spared = before.is_some_and(|before| before.spared().is_some());
        let walked = known.map(|heads| if is_spared { 2 * heads } else { heads });
        let (tracks, slips) = self.walk(first, (data, per_track), walked)?;
        let heads = known.map_or_else(|| self.heads(&tracks), Ok)?;
        let within = |order: u64| steps(order as usize - 1, order as usize, &tracks);
        let switches = (heads - 1) as f64;
        let first_step = if heads > 1 { within(1) } else { 0.0 };
        // Unwrapped by the first step.
        let off: f64 = (1..heads).map(|order| signed(within(order) - first_step)).sum();
        let track_skew = if heads > 1 { fold(first_step + off / switches) } else { 0.0 };
        let mut zone = ZoneMap {
            first,
            blocks: self.prober.blocks() - first,
            per_track,
            heads,
            first_cylinder,
            start: fold(tracks[0].angle - 1.0 / per_track as f64),
            track_skew,
            cylinder_step: fold(steps(0, heads as usize, &tracks)),
            slips,
            runs: (data < per_track).then_some(TrackRuns {
                tracks: 1,
                blocks: data,
                steps: Vec::new(),
                slips_stay: true,
            }),
            in_bands: None,
        };
        if data == per_track {
            self.spares_of_cylinders(&mut zone, &tracks)?;
        }
        for (track, walked) in tracks.iter().enumerate().skip(1) {
            let cylinders = track as u64 / heads;
            if (track as u64).is_multiple_of(heads) {
                let begin = walked.angle - 1.0 / per_track as f64;
                let error = signed(begin - zone.track_start(track as u64));
                zone.cylinder_step = fold(zone.cylinder_step + error / cylinders as f64);
            }
        }
        self.goes_on_with("tracks");
        self.extend(&mut zone, tracks.len() as u64 - 1, runs_known.as_ref())?;
        self.goes_on_with("skews");
        self.find_slips_of_runs(&mut zone)?;
        self.refine(&mut zone)?;
        Ok(zone)
    }

    /// Uncertainty of an angle of [`READS`] reads, in turns.
    pub(super) fn tolerance(&self) -> f64 {
        let off_ns = 4.0 * self.clock.jitter_ns() + self.clock.stray_ns() + 2_000.0;
        off_ns / self.clock.period_ns()
    }

    /// A block that is off by no more is on the track where it was expected.
    pub(super) fn allowed(&self) -> f64 {
        (4.0 * self.tolerance()).max(SKEW_MIN)
    }

    pub(super) fn angle(&mut self, block: u64) -> Result<f64, ExtractError> {
        self.angle_of(block, READS, [-1, 1])
    }

    /// Angle of a block that is taken to be the first of a track.
    pub(super) fn angle_of_first(&mut self, block: u64) -> Result<f64, ExtractError> {
        self.angle_of(block, READS, [1, -1])
    }

    /// Angle at which a block is answered, or would be if it could be read: as far beyond one beside it as
    /// that is beyond the next one, on either side.
    pub(super) fn angle_of(
        &mut self,
        block: u64,
        reads: usize,
        sides: [i64; 2],
    ) -> Result<f64, ExtractError> {
        if let Some(angle) = self.angle_if_readable(block, reads)? {
            return Ok(angle);
        }
        for step in sides {
            let mut angles = Vec::new();
            for steps in 1..=BAD_IN_A_ROW_MAX {
                let other = block.checked_add_signed(step * steps);
                let Some(other) = other.filter(|&other| other < self.prober.blocks()) else {
                    break;
                };
                if let Some(angle) = self.angle_if_readable(other, reads)? {
                    angles.push((steps as f64, angle));
                }
                if let [(near, first), (far, second)] = angles[..] {
                    return Ok(fold(first - signed(second - first) * near / (far - near)));
                }
            }
        }
        Err(ExtractError::Unreadable { block })
    }

    pub(super) fn angle_if_readable(
        &mut self,
        block: u64,
        reads: usize,
    ) -> Result<Option<f64>, ExtractError> {
        Ok(readable(self.clock.measure(self.prober, &[block], reads))?.map(|angles| angles[0]))
    }

    /// Finds defects and the end of the zone. Tracks before `walked` fit.
    fn extend(
        &mut self,
        zone: &mut ZoneMap,
        walked: u64,
        runs_known: Option<&TrackRuns>,
    ) -> Result<(), ExtractError> {
        let mut good = walked - 1;
        let mut stride = 1;
        loop {
            let next = (good / zone.heads + stride) * zone.heads;
            if self.fits(zone, next)? {
                good = next;
                self.found(zone, good);
                self.tighten(zone, next)?;
                stride *= 2;
                continue;
            }
            let mut bad = self.first_misfit(zone, good, next)?;
            let end = loop {
                let Some(end) = self.end_behind(zone, bad)? else { break None };
                match self.misfit_before(zone, good, bad)? {
                    Some(earlier) => bad = self.first_misfit(zone, good, earlier)?,
                    None => break Some(end),
                }
            };
            let Some(end) = end else {
                (good, stride) = (bad, 1);
                self.found(zone, good);
                continue;
            };
            if zone.runs.is_none()
                && let Some(track) = self.learn_runs(zone, end, runs_known)?
            {
                (good, stride) = (track, 1);
                continue;
            }
            zone.blocks = end - zone.first;
            self.found(zone, zone.track_of(end - 1).0);
            return Ok(());
        }
    }

    pub(super) fn goes_on_with(&mut self, what: &str) {
        self.prober.part(format!("zone {}: {what}", self.number));
    }

    /// Blocks before this track follow the pattern. All before the zone count twice.
    fn found(&mut self, zone: &ZoneMap, track: u64) {
        self.prober.reached(zone.first + zone.track_first(track));
    }

    /// The skews of a zone that was found to its end are known to this part. Where it has several kinds
    /// of skews, the first counts: their number is unknown before.
    pub(super) fn measured(&mut self, zone: &ZoneMap, part: f64) {
        self.prober.reached(zone.first + zone.end() + (part * zone.blocks as f64) as u64);
    }

    /// A track shortly before one that does not fit which does not, either: bisection may have come to
    /// one of another zone that fitted by chance. Of some in a row one does, and of some cylinders.
    fn misfit_before(
        &mut self,
        zone: &ZoneMap,
        good: u64,
        bad: u64,
    ) -> Result<Option<u64>, ExtractError> {
        for back in [1, 2, 3, zone.heads + 1, 2 * zone.heads + 1] {
            let track = bad.saturating_sub(back);
            if track > good && !self.fits(zone, track)? {
                return Ok(Some(track));
            }
        }
        Ok(None)
    }

    /// The first block that does not belong to what came before, in a track that does not fit; None
    /// where only a defect moves later blocks, which is known from now on.
    pub(super) fn end_behind(
        &mut self,
        zone: &mut ZoneMap,
        track: u64,
    ) -> Result<Option<u64>, ExtractError> {
        let begin = zone.track_first(track);
        let misfit = self.first_misfit_in(zone, track)?;
        let missing = zone.track_first(track + 1) - misfit;
        let is_slip = (1..=SLIPS_A_TRACK_MAX).contains(&missing)
            && self.is_slip(zone, track, missing, (begin, misfit))?
            || self.is_scratch(zone, track, misfit)?;
        Ok((!is_slip).then_some(misfit))
    }

    /// Error of the angle of a block, or of one near it on its track if it cannot be read; None beyond the
    /// end of the drive.
    pub(super) fn error(
        &mut self,
        zone: &ZoneMap,
        block: u64,
    ) -> Result<Option<f64>, ExtractError> {
        let blocks = self.prober.blocks();
        if block >= blocks {
            return Ok(None);
        }
        let track = zone.track_of(block).0;
        let (begin, end) = (zone.track_first(track), zone.track_first(track + 1).min(blocks));
        let others = (block..end).chain((begin..block).rev());
        for other in others.take(BAD_IN_A_ROW_MAX as usize) {
            if let Some(angle) = self.angle_if_readable(other, READS)? {
                return Ok(Some(signed(angle - zone.angle(other))));
            }
        }
        Err(ExtractError::Unreadable { block })
    }

    pub(super) fn fits_block(&mut self, zone: &ZoneMap, block: u64) -> Result<bool, ExtractError> {
        let allowed = self.allowed();
        Ok(self.error(zone, block)?.is_some_and(|error| error.abs() <= allowed))
    }

    /// True if a track is where it is expected, whole.
    pub(super) fn fits(&mut self, zone: &ZoneMap, track: u64) -> Result<bool, ExtractError> {
        let begin = zone.track_first(track);
        let end = zone.track_first(track + 1) - 1;
        for block in [begin, end, u64::midpoint(begin, end)] {
            if !self.fits_block(zone, block)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A cylinder far from the zone's start says how far cylinders are turned, all the better.
    fn tighten(&mut self, zone: &mut ZoneMap, track: u64) -> Result<(), ExtractError> {
        let block = zone.track_first(track);
        let cylinders = (track / zone.heads) as f64;
        if let Some(error) = self.error(zone, block)? {
            if let Some(runs) = zone.runs.as_mut().filter(|runs| !runs.steps.is_empty()) {
                runs.turn_by(track / runs.tracks, error);
                return Ok(());
            }
            zone.cylinder_step = fold(zone.cylinder_step + error / cylinders);
        }
        Ok(())
    }

    pub(super) fn first_misfit(
        &mut self,
        zone: &mut ZoneMap,
        mut good: u64,
        mut bad: u64,
    ) -> Result<u64, ExtractError> {
        while bad - good > 1 {
            let middle = u64::midpoint(good, bad);
            if self.fits(zone, middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(bad)
    }

    /// The first block of a track that does not fit.
    fn first_misfit_in(&mut self, zone: &ZoneMap, track: u64) -> Result<u64, ExtractError> {
        let begin = zone.track_first(track);
        if !self.fits_block(zone, begin)? {
            return Ok(begin);
        }
        let (mut good, mut bad) = (begin, zone.track_first(track + 1));
        let middle = u64::midpoint(begin, bad - 1);
        if self.fits_block(zone, middle)? {
            good = middle;
        } else {
            bad = middle;
        }
        while bad - good > 1 {
            let middle = u64::midpoint(good, bad);
            if self.fits_block(zone, middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(bad)
    }

    /// Tries whether blocks behind a track fit when this many places in it are passed over.
    fn is_slip(
        &mut self,
        zone: &mut ZoneMap,
        track: u64,
        missing: u64,
        (earliest, latest): (u64, u64),
    ) -> Result<bool, ExtractError> {
        let before = u64::midpoint(earliest, latest);
        zone.slips.push(SlipFound { before, count: missing, earliest, latest });
        // The next track may be shorter, too.
        let next = zone.track_first(track + 1);
        let mut tries = vec![next, next + zone.per_track / 2];
        if missing > SLIPS_A_TRACK_MAX {
            tries.push(next + zone.per_track - zone.per_track / 16);
            tries.push(zone.track_first(track + zone.heads));
        }
        for block in tries {
            if !self.fits_block(zone, block)? {
                zone.slips.pop();
                return Ok(false);
            }
        }
        self.moves_next_run(zone, track)?;
        Ok(true)
    }

    /// Tests the places in a row that the angle of the block behind them suggests.
    fn is_scratch(
        &mut self,
        zone: &mut ZoneMap,
        track: u64,
        misfit: u64,
    ) -> Result<bool, ExtractError> {
        let Some(error) = self.error(zone, misfit)? else { return Ok(false) };
        let count = (error * zone.per_track as f64).round();
        if !(1.0..=SCRATCH_MAX as f64).contains(&count) {
            return Ok(false);
        }
        let count = count as u64;
        // Few of them may lie apart, and only the last leaps to the eye.
        let earliest = if count <= APART_MAX { zone.track_first(track) } else { misfit };
        self.is_slip(zone, track, count, (earliest, misfit))
    }
}

fn steps(from: usize, to: usize, tracks: &[ZoneWalk]) -> f64 {
    signed(tracks[to].angle - tracks[from].angle)
}
