//! Skews, starts and defects of a zone to a part of a sector, from reads all over it.

use super::clock::{fold, signed};
use super::map::{SlipFound, WHOLE_SECTOR, ZoneMap};
use super::zones::{READS, Surveyor};
use super::{ExtractError, readable};

/// Parts of a sector of which one is the standard error of a skew.
const SKEW_PARTS: f64 = 20.0;
/// Pairs of tracks that are measured for a skew at most; with more jitter than that allows, the skew
/// keeps its measured value.
const PAIRS_MAX: f64 = 3000.0;
/// Tracks on which the start of a finished zone is measured.
const CHECKS: u64 = 24;
/// Reads from which it follows.
pub(super) const START_READS: f64 = (CHECKS * READS as u64) as f64;
/// Reads of a block for one of the steps that locate a defect; where it takes more, its track is
/// all that is known.
pub(super) const READS_FOR_SLIP_MAX: usize = 100;

impl Surveyor<'_, '_> {
    /// Takes skews and start from the whole zone.
    pub(super) fn refine(&mut self, zone: &mut ZoneMap) -> Result<(), ExtractError> {
        let cylinders = zone.position(zone.end() - 1) / zone.per_track / zone.heads;
        if zone.heads > 1 && cylinders > 0 {
            self.refine_track_skew(zone, cylinders)?;
        }
        self.refine_steps(zone)?;
        let tracks = zone.position(zone.end() - 1) / zone.per_track;
        let mut errors = Vec::new();
        for _ in 0..CHECKS {
            let track = self.prober.below(tracks.max(1));
            let error = self.error(zone, zone.track_first(track))?;
            errors.extend(error.map(|error| ((track / zone.heads) as f64, error)));
        }
        self.level(zone, cylinders, &mut errors);
        let mean = errors.iter().map(|(_, error)| error).sum::<f64>() / errors.len() as f64;
        zone.start = fold(zone.start + mean);
        self.goes_on_with("defects");
        self.locate_slips(zone)
    }

    /// Takes the skew of cylinders from how tracks all over the zone are off, by cylinder, and what
    /// that explains from them. A single one far away was measured when the spindle may have been off.
    fn level(&self, zone: &mut ZoneMap, cylinders: u64, errors: &mut [(f64, f64)]) {
        let count = errors.len() as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| errors.iter().map(of).sum::<f64>() / count;
        let (middle, off) = (mean(&|at| at.0), mean(&|at| at.1));
        let spread = mean(&|at| (at.0 - middle).powi(2));
        let is_turned = zone.runs.as_ref().is_some_and(|runs| !runs.steps.is_empty());
        if is_turned || spread <= 0.0 {
            return;
        }
        let slope = mean(&|at| (at.0 - middle) * (at.1 - off)) / spread;
        let before = zone.cylinder_step;
        let tolerance = self.tolerance() * zone.per_track as f64;
        let skews = cylinders.max(1) as f64 * WHOLE_SECTOR / tolerance.max(WHOLE_SECTOR);
        zone.cylinder_step = zone.whole_sectors(before + slope, skews.max(1.0));
        let step = signed(zone.cylinder_step - before);
        errors.iter_mut().for_each(|(cylinder, error)| *error -= step * *cylinder);
    }

    /// Pairs of tracks, this many skews apart, that say what one is to a part of a sector.
    pub(super) fn pairs(&self, zone: &ZoneMap, skews: f64) -> usize {
        let jitter = self.clock.jitter_ns() / self.clock.period_ns();
        let ratio = SKEW_PARTS * zone.per_track as f64 * jitter / skews;
        (2.0 * ratio * ratio / READS as f64).ceil().clamp(4.0, PAIRS_MAX) as usize
    }

    /// First and last tracks of enough cylinders to know the skew to a part of a sector;
    /// then it becomes a whole number of them where it is one.
    fn refine_track_skew(
        &mut self,
        zone: &mut ZoneMap,
        cylinders: u64,
    ) -> Result<(), ExtractError> {
        let switches = (zone.heads - 1) as f64;
        let pairs = self.pairs(zone, switches);
        let last = zone.heads - 1;
        let off = self.mean_turned(zone, pairs, |host| {
            let track = host.below(cylinders) * (last + 1);
            [track, track + last]
        })?;
        if let Some(off) = off {
            zone.track_skew = zone.whole_sectors(zone.track_skew + off / switches, 1.0);
        }
        Ok(())
    }

    /// Angle by which a track is turned against another beyond the expected one; None when one of them has
    /// no data, or begins with a block that cannot be read.
    pub(super) fn turned_between(
        &mut self,
        zone: &ZoneMap,
        tracks: [u64; 2],
    ) -> Result<Option<f64>, ExtractError> {
        let ends = tracks.map(|track| zone.track_first(track));
        if ends.map(|block| zone.track_of(block).0) != tracks || ends[1] >= zone.end() {
            return Ok(None);
        }
        let angles = readable(self.clock.measure(self.prober, &ends, READS))?;
        let expected = zone.angle(ends[1]) - zone.angle(ends[0]);
        Ok(angles.map(|angles| signed(angles[1] - angles[0] - expected)))
    }

    /// Reads of a block that tell one sector of this width from the next, by five standard errors.
    pub(super) fn reads_for_sector(&self, width: f64) -> usize {
        let jitter = self.clock.jitter_ns() / self.clock.period_ns();
        (100.0 * (jitter / width).powi(2)).ceil().max(4.0) as usize
    }

    /// Narrows down where in their tracks defects lie, as far as angles are fine enough.
    fn locate_slips(&mut self, zone: &mut ZoneMap) -> Result<(), ExtractError> {
        let mut located: Vec<SlipFound> = Vec::new();
        for slip in zone.slips.clone() {
            located.extend(self.places_of(zone, slip)?);
        }
        zone.slips = located;
        Ok(())
    }

    /// The defective places of one track, each where it is: one after the other, or apart.
    fn places_of(
        &mut self,
        zone: &ZoneMap,
        slip: SlipFound,
    ) -> Result<Vec<SlipFound>, ExtractError> {
        let width = 1.0 / zone.per_track as f64;
        let reads = self.reads_for_sector(width);
        if reads > READS_FOR_SLIP_MAX || slip.earliest == slip.latest {
            return Ok(vec![slip]);
        }
        let counted = if slip.before <= slip.earliest { slip.count } else { 0 };
        let due = zone.angle(slip.earliest) - counted as f64 * width;
        let mut passed_over = |block: u64, side: i64| -> Result<f64, ExtractError> {
            let angle = self.angle_of(block, reads, [side, -side])?;
            Ok(signed(angle - due - (block - slip.earliest) as f64 * width) / width)
        };
        // The first sectors of a track may be defective, too.
        let at_begin = passed_over(slip.earliest, 1)?;
        let mut places: Vec<SlipFound> = Vec::new();
        for place in 0..slip.count {
            let half = place as f64 + 0.5;
            let (mut before, mut behind) = (slip.earliest, slip.latest);
            if at_begin > half {
                behind = before;
            }
            while behind > before + 1 {
                let middle = u64::midpoint(before, behind);
                if passed_over(middle, -1)? < half {
                    before = middle;
                } else {
                    behind = middle;
                }
            }
            match places.last_mut().filter(|last| last.before == behind) {
                Some(last) => last.count += 1,
                None => places.push(SlipFound {
                    before: behind,
                    count: 1,
                    earliest: behind,
                    latest: behind,
                }),
            }
        }
        Ok(places)
    }
}
