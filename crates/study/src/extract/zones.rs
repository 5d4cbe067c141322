//! Tracks, skews, defects and zones, from the angles at which blocks are answered.
//!
//! Within a track the angle rises by a sector a block; from a track to the next it leaps by a skew.
//! So the end of a track is found to the block by bisection, however coarse the angles are. A few
//! tracks give the pattern of the skews, and with it the place of every later block. The pattern is
//! then tried further and further away; where it fails there is a defect, by which all later blocks
//! have moved on, or the next zone.

use super::clock::{Clock, fold, signed};
use super::heads::HEADS_MAX;
use super::host::Host;
use super::map::{Runs, SlipFound, ZoneMap};
use super::{ExtractError, readable};

/// Parts of a sector by which a block has to lie nearer to one place than to another.
const CLEARLY: f64 = 0.25;
/// Reads of a block where its angle decides between two cases.
const READS: usize = 3;
/// Blocks from which a first track's size is guessed. A track has more of them on any drive with
/// zones.
const FIRST_STEP: u64 = 32;
/// A track that is shorter by more than this has not lost them to defects.
pub(super) const SLIPS_A_TRACK_MAX: u64 = 4;
/// Unless it was scratched, which shows within the track. The Cheetah 9LP has eight in a row.
const SCRATCH_MAX: u64 = 32;
/// More places than this that leap to the eye are held to lie in a row.
const APART_MAX: u64 = 16;
/// A block that is off by less than this part of a turn may have been moved by defects in its own
/// track; skews, in which heads change, are longer. Assumed: 0.1 ms.
const SKEW_MIN: f64 = 1.0 / 64.0;
/// Parts of a sector of which one is the standard error of a skew.
const SKEW_PARTS: f64 = 20.0;
/// Five standard errors: a skew this near to a whole number of sectors is one.
pub(super) const WHOLE_SECTOR: f64 = 0.25;
/// Pairs of tracks that are measured for a skew at most; with more jitter than that allows, the skew
/// stays what it was measured to be.
const PAIRS_MAX: f64 = 3000.0;
/// More unreadable blocks one after the other than this are no defect but a broken drive.
const BAD_IN_A_ROW_MAX: i64 = 64;
/// Tracks on which the start of a finished zone is measured.
const CHECKS: u64 = 24;
/// Reads from which it follows.
pub(super) const START_READS: f64 = (CHECKS * READS as u64) as f64;
/// Reads of a block for one of the steps that locate a defect; where it takes more, its track is
/// all that is known.
const READS_FOR_SLIP_MAX: usize = 100;

/// What measures zones, one after the other.
pub(super) struct Surveyor<'s, 'h> {
    pub host: &'s mut Host<'h>,
    pub clock: &'s mut Clock,
}

/// A track that was walked over: its first block and the angle of that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walked {
    pub first: u64,
    angle: f64,
}

impl Surveyor<'_, '_> {
    /// The zone that begins with this block. `heads` is known from the zone before, if there is one.
    pub fn zone(
        &mut self,
        first: u64,
        first_cylinder: u64,
        before: Option<&ZoneMap>,
    ) -> Result<ZoneMap, ExtractError> {
        let known = before.map(|before| before.heads);
        let runs_known = before.and_then(|before| before.runs.clone());
        let first = before.map_or(Ok(first), |before| self.begin_behind(before, first))?;
        let (first, data) = self.first_tracks(first)?;
        // What holds for one zone holds for all.
        let per_track = match before {
            Some(before) if !before.has_spares_on_tracks() => data,
            _ => self.sectors(first, data)?,
        };
        // Spares of cylinders show in two of them.
        let is_spared = before.is_some_and(|before| before.spared().is_some());
        let walked = known.map(|heads| if is_spared { 2 * heads } else { heads });
        let (tracks, slips) = self.walk(first, (data, per_track), walked)?;
        let heads = known.map_or_else(|| self.heads(&tracks), Ok)?;
        let steps = |from: usize, to: usize| signed(tracks[to].angle - tracks[from].angle);
        let within = |order: u64| steps(order as usize - 1, order as usize);
        let switches = (heads - 1) as f64;
        let first_step = if heads > 1 { within(1) } else { 0.0 };
        // Unwrapped by the first step.
        let off: f64 = (1..heads).map(|order| signed(within(order) - first_step)).sum();
        let track_skew = if heads > 1 { fold(first_step + off / switches) } else { 0.0 };
        let mut zone = ZoneMap {
            first,
            blocks: self.host.blocks() - first,
            per_track,
            heads,
            first_cylinder,
            start: fold(tracks[0].angle - 1.0 / per_track as f64),
            track_skew,
            cylinder_step: fold(steps(0, heads as usize)),
            slips,
            runs: (data < per_track).then_some(Runs {
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
        self.extend(&mut zone, tracks.len() as u64 - 1, runs_known.as_ref())?;
        self.find_slips_of_runs(&mut zone)?;
        self.refine(&mut zone)?;
        Ok(zone)
    }

    /// What an angle of [`READS`] reads may be off, in turns.
    pub(super) fn tolerance(&self) -> f64 {
        let off_ns = 4.0 * self.clock.jitter_ns() + self.clock.stray_ns() + 2_000.0;
        off_ns / self.clock.period_ns()
    }

    /// A block that is off by no more is on the track where it was expected.
    fn allowed(&self) -> f64 {
        (4.0 * self.tolerance()).max(SKEW_MIN)
    }

    fn angle(&mut self, block: u64) -> Result<f64, ExtractError> {
        self.angle_of(block, READS, [-1, 1])
    }

    /// The same of a block that is held to be the first of a track.
    pub(super) fn angle_of_first(&mut self, block: u64) -> Result<f64, ExtractError> {
        self.angle_of(block, READS, [1, -1])
    }

    /// Where a block is answered, or would be if it could be read: as far beyond one beside it as that
    /// is beyond the next one, on either side.
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
                let Some(other) = other.filter(|&other| other < self.host.blocks()) else { break };
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

    fn angle_if_readable(&mut self, block: u64, reads: usize) -> Result<Option<f64>, ExtractError> {
        Ok(readable(self.clock.measure(self.host, &[block], reads))?.map(|angles| angles[0]))
    }

    /// First block of a zone that was held to begin with `first`. Its first blocks may lie where those
    /// of the zone before would nearly be, and were taken for some of it: they lie still nearer to where
    /// their own track goes back to.
    fn begin_behind(&mut self, before: &ZoneMap, first: u64) -> Result<u64, ExtractError> {
        let (blocks, turns) = self.first_track(first)?;
        // Where the phase may be off by half a sector, it would be moved to and fro.
        if 2.0 * self.clock.phase_error_ns() > turns * self.clock.period_ns() {
            return Ok(first);
        }
        let begin = self.angle_of_first(first)?;
        let clearly = (CLEARLY * turns).max(self.tolerance() / 4.0);
        // By how much a block is nearer to where the zone before has it.
        let mut nearer_before = |back: u64| -> Result<f64, ExtractError> {
            let block = first - back;
            let angle = self.angle(block)?;
            let own = signed(angle - begin + back as f64 * turns).abs();
            Ok(own - signed(angle - before.angle(block)).abs())
        };
        // Its track has no more.
        let most = ((1.0 / turns).round() as u64).saturating_sub(blocks).min(before.blocks - 1);
        if most == 0 || nearer_before(1)? > -clearly {
            return Ok(first);
        }
        let (mut own, mut other) = (1, most + 1);
        while other - own > 1 {
            let middle = u64::midpoint(own, other);
            // Where both have it at one place, too.
            if nearer_before(middle)? < clearly {
                own = middle;
            } else {
                other = middle;
            }
        }
        Ok(first - own)
    }

    /// First block of a zone, and blocks a track. The end of the zone before may have been taken to
    /// be too late, where its last angles fit by chance: the second track says how long the first
    /// is.
    fn first_tracks(&mut self, first: u64) -> Result<(u64, u64), ExtractError> {
        let (short, _) = self.first_track(first)?;
        let second = first + short;
        let (whole, _) = self.first_track(second)?;
        if first > 0 && whole > short + SLIPS_A_TRACK_MAX {
            let first = second.checked_sub(whole);
            let first = first.ok_or(ExtractError::NoTrack { block: second })?;
            return Ok((first, whole));
        }
        if whole.abs_diff(short) == 0 || whole.abs_diff(short) > SLIPS_A_TRACK_MAX {
            return Ok((first, whole.max(short)));
        }
        // One of them has a defect, or the second begins with a block that cannot be read.
        let mut tracks = [short, whole, self.first_track(second + whole)?.0];
        tracks.sort_unstable();
        Ok((first, tracks[1]))
    }

    /// Blocks of the track that begins with `first`, of whose size nothing is known, and turns from one
    /// to the next.
    fn first_track(&mut self, first: u64) -> Result<(u64, f64), ExtractError> {
        let blocks = self.host.blocks();
        let begin = self.angle_of_first(first)?;
        let mut turns = 0.0;
        let mut on = 0;
        let mut next = FIRST_STEP;
        let mut off = None;
        let allowed = self.allowed();
        while off.is_none_or(|off| off - on > 1) {
            let expected = turns * next as f64 / (on as f64).max(1.0);
            if first + next >= blocks {
                off = Some(blocks - first);
            } else if expected >= 1.0 + allowed {
                // No track has more than a turn.
                off = Some(next);
            } else {
                let angle = self.angle(first + next)?;
                let error = signed(angle - begin - expected);
                if on == 0 {
                    (on, turns) = (next, fold(angle - begin));
                } else if error.abs() <= allowed {
                    (on, turns) = (next, expected + error);
                } else {
                    off = Some(next);
                }
            }
            next = off.map_or(2 * on, |off| u64::midpoint(on, off));
        }
        let off = off.filter(|&off| first + off < blocks);
        off.map(|off| (off, turns / on as f64)).ok_or(ExtractError::NoTrack { block: first })
    }

    /// The first tracks of a zone, until the pattern of their skews has come twice, or once where the
    /// number of heads is known; and tracks that are shorter.
    fn walk(
        &mut self,
        first: u64,
        (data, per_track): (u64, u64),
        count: Option<u64>,
    ) -> Result<(Vec<Walked>, Vec<SlipFound>), ExtractError> {
        let mut tracks = vec![Walked { first, angle: self.angle_of_first(first)? }];
        let mut slips = Vec::new();
        let mut wanted = count.unwrap_or(2 * HEADS_MAX) as usize + 1;
        while tracks.len() < wanted {
            let last = tracks[tracks.len() - 1];
            let next = self.next_track(last, (data, per_track))?;
            let missing = data - (next.first - last.first);
            if (1..=SLIPS_A_TRACK_MAX).contains(&missing) {
                let before = u64::midpoint(last.first, next.first);
                let (earliest, latest) = (last.first, next.first);
                slips.push(SlipFound { before, count: missing, earliest, latest });
            }
            tracks.push(next);
            if count.is_none()
                && let Some(switch) = self.first_other_step(&tracks)
            {
                wanted = 2 * switch + 3;
            }
        }
        Ok((tracks, slips))
    }

    fn next_track(
        &mut self,
        track: Walked,
        (data, per_track): (u64, u64),
    ) -> Result<Walked, ExtractError> {
        // Over one track nothing adds up: all but defects would show.
        let slipped = (SLIPS_A_TRACK_MAX + 1) as f64 / per_track as f64;
        let allowed = (1.5 * self.tolerance()).max(slipped);
        let mut on = 0;
        let mut off = data;
        let mut at = data - 1;
        while off - on > 1 {
            let angle = self.angle(track.first + at)?;
            let error = signed(angle - track.angle - at as f64 / per_track as f64);
            if error.abs() <= allowed {
                on = at;
            } else {
                off = at;
            }
            at = u64::midpoint(on, off);
        }
        if off == data && data == per_track {
            off = self.leap_in(track, per_track)?.unwrap_or(off);
        }
        let first = track.first + off;
        Ok(Walked { first, angle: self.angle_of_first(first)? })
    }

    /// Blocks of a track that seems to have as many as it has sectors, the last of them off: defects would
    /// have moved that one to the next track, so all that are off are of that already.
    fn leap_in(&mut self, track: Walked, per_track: u64) -> Result<Option<u64>, ExtractError> {
        let width = 1.0 / per_track as f64;
        // Of two angles each.
        let reads = 2 * self.reads_for_sector(width);
        if reads > READS_FOR_SLIP_MAX {
            return Ok(None);
        }
        // Together: what is wrong with the clock's phase is wrong with both.
        let mut error = |at: u64| -> Result<f64, ExtractError> {
            let ends = [track.first, track.first + at];
            let angles = readable(self.clock.measure(self.host, &ends, reads))?;
            let turned = angles.map(|angles| angles[1] - angles[0] - at as f64 * width);
            Ok(turned.map_or(0.0, signed))
        };
        let last = error(per_track - 1)?;
        if last.abs() < 0.5 * width {
            return Ok(None);
        }
        let (mut on, mut off) = (0, per_track - 1);
        while off - on > 1 {
            let middle = u64::midpoint(on, off);
            if error(middle)?.abs() < last.abs() / 2.0 {
                on = middle;
            } else {
                off = middle;
            }
        }
        Ok(Some(off))
    }

    /// The first step from track to track that is unlike the very first: it changes cylinders.
    fn first_other_step(&self, tracks: &[Walked]) -> Option<usize> {
        let steps: Vec<f64> = tracks.windows(2).map(|pair| pair[1].angle - pair[0].angle).collect();
        let differs = |step: &f64| signed(step - steps[0]).abs() > 2.0 * self.tolerance();
        steps.iter().position(differs)
    }

    /// Heads, from the pattern of skews.
    fn heads(&self, tracks: &[Walked]) -> Result<u64, ExtractError> {
        let Some(switch) = self.first_other_step(tracks) else { return Ok(1) };
        let step = |index: usize| tracks[index + 1].angle - tracks[index].angle;
        let allowed = 2.0 * self.tolerance();
        for index in 0..tracks.len() - 1 {
            let like = if index % (switch + 1) == switch { switch } else { 0 };
            if signed(step(index) - step(like)).abs() > allowed {
                return Err(ExtractError::NoPattern { block: tracks[index + 1].first });
            }
        }
        Ok(switch as u64 + 1)
    }

    /// Finds defects and the end of the zone. Tracks before `walked` fit.
    fn extend(
        &mut self,
        zone: &mut ZoneMap,
        walked: u64,
        runs_known: Option<&Runs>,
    ) -> Result<(), ExtractError> {
        let mut good = walked - 1;
        let mut stride = 1;
        loop {
            let next = (good / zone.heads + stride) * zone.heads;
            if self.fits(zone, next)? {
                good = next;
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
                continue;
            };
            if zone.runs.is_none()
                && let Some(track) = self.learn_runs(zone, end, runs_known)?
            {
                (good, stride) = (track, 1);
                continue;
            }
            zone.blocks = end - zone.first;
            return Ok(());
        }
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
    /// where nothing but a defect moves later blocks, which is known from now on.
    pub(super) fn end_behind(
        &mut self,
        zone: &mut ZoneMap,
        track: u64,
    ) -> Result<Option<u64>, ExtractError> {
        let begin = zone.track_first(track);
        let misfit = self.first_misfit_in(zone, track)?;
        let missing = zone.track_first(track + 1) - misfit;
        let is_slip = missing <= SLIPS_A_TRACK_MAX
            && self.is_slip(zone, track, missing, (begin, misfit))?
            || self.is_scratch(zone, track, misfit)?;
        Ok((!is_slip).then_some(misfit))
    }

    /// How far the angle of a block is off, or of one near it on its track if it cannot be read;
    /// None beyond the end of the drive.
    pub(super) fn error(
        &mut self,
        zone: &ZoneMap,
        block: u64,
    ) -> Result<Option<f64>, ExtractError> {
        let blocks = self.host.blocks();
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

    /// Whether a track is where it is expected, whole.
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

    /// Tries whether blocks behind a track fit when so many places in it are passed over.
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

    /// The same for as many places in a row as leap to the eye in the angle of the block behind them.
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

    /// Takes skews and start from the whole zone.
    fn refine(&mut self, zone: &mut ZoneMap) -> Result<(), ExtractError> {
        let cylinders = zone.position(zone.end() - 1) / zone.per_track / zone.heads;
        if zone.heads > 1 && cylinders > 0 {
            self.refine_track_skew(zone, cylinders)?;
        }
        self.refine_steps(zone)?;
        let tracks = zone.position(zone.end() - 1) / zone.per_track;
        let mut errors = Vec::new();
        for _ in 0..CHECKS {
            let track = self.host.below(tracks.max(1));
            let error = self.error(zone, zone.track_first(track))?;
            errors.extend(error.map(|error| ((track / zone.heads) as f64, error)));
        }
        self.level(zone, cylinders, &mut errors);
        let mean = errors.iter().map(|(_, error)| error).sum::<f64>() / errors.len() as f64;
        zone.start = fold(zone.start + mean);
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

    /// Pairs of tracks, so many skews apart, that say what one is to a part of a sector.
    pub(super) fn pairs(&self, zone: &ZoneMap, skews: f64) -> usize {
        let jitter = self.clock.jitter_ns() / self.clock.period_ns();
        let ratio = SKEW_PARTS * zone.per_track as f64 * jitter / skews;
        (2.0 * ratio * ratio / READS as f64).ceil().clamp(4.0, PAIRS_MAX) as usize
    }

    /// First and last tracks of as many cylinders as it takes to know the skew to a part of a sector;
    /// then it becomes a whole number of them where it is one.
    fn refine_track_skew(
        &mut self,
        zone: &mut ZoneMap,
        cylinders: u64,
    ) -> Result<(), ExtractError> {
        let switches = (zone.heads - 1) as f64;
        let pairs = self.pairs(zone, switches);
        let mut off = 0.0;
        let mut done = 0;
        while done < pairs {
            let track = self.host.below(cylinders) * zone.heads;
            let Some(turned) = self.turned_between(zone, [track, track + zone.heads - 1])? else {
                continue;
            };
            off += turned;
            done += 1;
        }
        zone.track_skew = zone.whole_sectors(zone.track_skew + off / pairs as f64 / switches, 1.0);
        Ok(())
    }

    /// How much further a track is turned against another than expected; None when one of them has
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
        let angles = readable(self.clock.measure(self.host, &ends, READS))?;
        let expected = zone.angle(ends[1]) - zone.angle(ends[0]);
        Ok(angles.map(|angles| signed(angles[1] - angles[0] - expected)))
    }

    /// Reads of a block that tell one sector of this width from the next, by five standard errors.
    fn reads_for_sector(&self, width: f64) -> usize {
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
