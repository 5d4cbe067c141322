//! Runs of tracks that come again and again: pieces of a zone with spares of their own, or the
//! cylinders of a band on one surface after the other.
//!
//! Where the pattern of skews breaks off, another run of equally many blocks may begin. It has the same
//! tracks and skews, so a few blocks of it tell. By how much it is turned against the run before says
//! which it is: pieces with spares go on as if those were data, and bands have a skew of their own
//! from surface to surface, and perhaps another one from band to band.

use super::clock::{fold, signed};
use super::limits::HEADS_MAX;
use super::map::{TrackRuns, ZoneMap};
use super::prober::Prober;
use super::zones::{SLIPS_A_TRACK_MAX, Surveyor, ZoneWalk};
use super::{ExtractError, readable};

/// Runs after which no skew is expected any more that was not there before: twice what the bands of a
/// drive have surfaces, and as skews may differ from band to band twice that.
const RUNS_MAX: u64 = 4 * HEADS_MAX;
/// Reads of a block at most from which the sectors of a track are counted; with more jitter than that
/// allows, a track is taken to have no spares.
const PITCH_READS_MAX: f64 = 700.0;
/// Pairs of tracks at most from which a skew between runs is taken: with answers that vary by 10 us its
/// standard error is 0.3 us, an eighth of a sector of today.
const STEP_PAIRS_MAX: usize = 600;
/// Standard errors by which another number of sectors is away: 4 either way.
const PITCH_SURE: f64 = 8.0;

impl Surveyor<'_, '_> {
    /// Sectors of a track that begins with `first` and has this many blocks of data: more than that
    /// where each track has its own spares.
    pub(super) fn sectors(&mut self, first: u64, data: u64) -> Result<u64, ExtractError> {
        let jitter = self.clock.jitter_ns() / self.clock.period_ns();
        let reads = (2.0 * (PITCH_SURE * data as f64 * jitter).powi(2)).max(4.0);
        if reads > PITCH_READS_MAX {
            return Ok(data);
        }
        // Together: what is wrong with the clock's phase is wrong with both.
        let ends = [first, first + data - 1];
        let angles = readable(self.clock.measure(self.prober, &ends, reads as usize))?;
        let Some([begin, end]) = angles.as_deref() else { return Ok(data) };
        let sectors = ((data - 1) as f64 / fold(end - begin)).round() as u64;
        Ok(Some(sectors).filter(|n| (data..2 * data).contains(n)).unwrap_or(data))
    }

    /// True if the last tracks of the cylinders that were walked over all lack the same number of blocks:
    /// the spares of a cylinder each. Err when a track is too short for no such reason.
    pub(super) fn spares_of_cylinders(
        &self,
        zone: &mut ZoneMap,
        tracks: &[ZoneWalk],
    ) -> Result<(), ExtractError> {
        let missing: Vec<u64> = tracks
            .windows(2)
            .map(|track| zone.per_track - (track[1].first - track[0].first))
            .collect();
        let (last, others): (Vec<_>, Vec<_>) = missing
            .iter()
            .enumerate()
            .partition(|(track, _)| (*track as u64 + 1).is_multiple_of(zone.heads));
        let Some(&(_, &spares)) = last.first() else { return Ok(()) };
        let all_like = last.iter().all(|found| *found.1 == spares)
            && others.iter().all(|(_, lost)| **lost == 0);
        if spares > 0 && zone.heads > 1 && last.len() > 1 && all_like {
            zone.slips.clear();
            zone.runs = Some(TrackRuns {
                tracks: zone.heads,
                blocks: zone.heads * zone.per_track - spares,
                steps: Vec::new(),
                slips_stay: true,
            });
            return Ok(());
        }
        match missing.iter().position(|&lost| lost > SLIPS_A_TRACK_MAX) {
            Some(short) => Err(ExtractError::NoTrack { block: tracks[short].first }),
            None => Ok(()),
        }
    }

    /// Learns runs, if `end` begins another one like all of the zone before: returns the last track that is
    /// known to fit. `known` are those of the zone before.
    pub(super) fn learn_runs(
        &mut self,
        zone: &mut ZoneMap,
        end: u64,
        known: Option<&TrackRuns>,
    ) -> Result<Option<u64>, ExtractError> {
        let hidden = if zone.runs.is_none() { self.hidden_end(zone, end)? } else { None };
        if let Some(hidden) = hidden
            && let Some(track) = self.learn_runs_to(zone, hidden, known)?
        {
            return Ok(Some(track));
        }
        self.learn_runs_to(zone, end, known)
    }

    /// The end of a run whose last track the first one of the next seems to go on with, as their
    /// places differ by nearly whole turns: the block in the last track before `end` from which on
    /// all are off.
    fn hidden_end(&mut self, zone: &ZoneMap, end: u64) -> Result<Option<u64>, ExtractError> {
        let track = zone.track_of(end - 1).0;
        let (mut good, mut bad) = (zone.track_first(track), end - 1);
        let begin = self.error(zone, good)?.unwrap_or_default();
        let last = self.error(zone, bad)?.unwrap_or_default();
        if signed(last - begin).abs() < 2.0 * self.tolerance() {
            return Ok(None);
        }
        while bad - good > 1 {
            let middle = u64::midpoint(good, bad);
            let here = self.error(zone, middle)?.unwrap_or_default();
            if signed(here - begin).abs() < signed(here - last).abs() {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(Some(bad))
    }

    fn learn_runs_to(
        &mut self,
        zone: &mut ZoneMap,
        end: u64,
        known: Option<&TrackRuns>,
    ) -> Result<Option<u64>, ExtractError> {
        let used = zone.position(end - 1) + 1;
        let tracks = used.div_ceil(zone.per_track * zone.heads) * zone.heads;
        let is_full = used == tracks * zone.per_track;
        // Without spares only its angle would set a run apart.
        for slips_stay in [true, false].into_iter().filter(|_| !is_full) {
            let blocks = if slips_stay { end - zone.first } else { used };
            zone.runs = Some(TrackRuns { tracks, blocks, steps: Vec::new(), slips_stay });
            let off = self.error(zone, end)?;
            let is_due = off.is_some_and(|off| off.abs() < 2.0 * self.tolerance());
            if is_due && self.run_fits(zone, 1)? && self.fits(zone, 2 * tracks)? {
                return Ok(Some(2 * tracks));
            }
        }
        zone.runs = None;
        if is_full { self.learn_steps(zone, tracks, known) } else { Ok(None) }
    }

    /// Learns the steps of runs without spares, which are turned against each other in their own way.
    fn learn_steps(
        &mut self,
        zone: &mut ZoneMap,
        tracks: u64,
        known: Option<&TrackRuns>,
    ) -> Result<Option<u64>, ExtractError> {
        // Bands are as wide everywhere.
        let known = known.filter(|runs| runs.tracks == tracks).map(|runs| runs.steps.len());
        let blocks = tracks * zone.per_track;
        let mut start = zone.start;
        let mut steps: Vec<f64> = Vec::new();
        for run in 1..RUNS_MAX {
            zone.runs = None;
            let first = zone.block_at(run * blocks);
            if first >= self.prober.blocks() || self.is_cyclic(&steps, known) {
                break;
            }
            let begin = fold(self.angle_of_first(first)? - 1.0 / zone.per_track as f64);
            steps.push(fold(begin - start));
            // Where skews go on as they do everywhere, no run ends.
            let on = fold(zone.track_start(tracks) - zone.track_start(0));
            let goes_on = signed(begin - start - on).abs() < 2.0 * self.tolerance();
            start = begin;
            zone.runs = Some(TrackRuns { tracks, blocks, steps: steps.clone(), slips_stay: false });
            if goes_on || !self.run_fits(zone, run)? {
                steps.pop();
                break;
            }
        }
        let seen = steps.len() as u64;
        if seen < 2 && known.is_none() || seen == 0 {
            zone.runs = None;
            return Ok(None);
        }
        let steps = self.averaged(&steps);
        zone.runs = Some(TrackRuns { tracks, blocks, steps, slips_stay: false });
        Ok(Some(seen * tracks))
    }

    /// Looks for defects that move only the rest of their run: behind one, the end of the last
    /// whole track but one lies on the next track.
    pub(super) fn find_slips_of_runs(&mut self, zone: &mut ZoneMap) -> Result<(), ExtractError> {
        let Some(runs) = zone.runs.clone().filter(|runs| runs.slips_stay && runs.tracks > 1) else {
            return Ok(());
        };
        for run in 0..zone.blocks / runs.blocks {
            let first = run * runs.tracks;
            loop {
                let last = zone.track_of(zone.track_first(first + runs.tracks) - 1).0;
                let end = zone.track_first(last) - 1;
                if last == first || self.fits_block(zone, end)? {
                    break;
                }
                let bad = if self.fits(zone, first)? {
                    self.first_misfit(zone, first, last)?
                } else {
                    first
                };
                if self.end_behind(zone, bad)?.is_some() {
                    break;
                }
                zone.slips.sort_by_key(|slip| slip.before);
            }
        }
        Ok(())
    }

    /// After a defect was found in a track: whether it moves the blocks of the next run as well.
    pub(super) fn moves_next_run(
        &mut self,
        zone: &mut ZoneMap,
        track: u64,
    ) -> Result<(), ExtractError> {
        let Some(runs) = zone.runs.clone().filter(|runs| runs.slips_stay && runs.tracks > 1) else {
            return Ok(());
        };
        let next = (track / runs.tracks + 1) * runs.tracks;
        if !self.fits(zone, next)? {
            zone.runs = Some(TrackRuns { slips_stay: false, ..runs.clone() });
            if !self.fits(zone, next)? {
                zone.runs = Some(runs);
            }
        }
        Ok(())
    }

    /// Takes the skews of runs that are turned in their own way from the whole zone.
    pub(super) fn refine_steps(&mut self, zone: &mut ZoneMap) -> Result<(), ExtractError> {
        let Some(runs) = zone.runs.clone().filter(|runs| !runs.steps.is_empty()) else {
            return Ok(());
        };
        let count = (zone.track_of(zone.end() - 1).0 + 1) / runs.tracks;
        let within = runs.tracks / zone.heads - 1;
        if within > 0 && count > 0 {
            let pairs = self.pairs(zone, 1.0).min(STEP_PAIRS_MAX);
            let last = runs.tracks - zone.heads;
            let off = self.mean_turned(zone, pairs, |prober| {
                let first = prober.below(count) * runs.tracks;
                [first, first + last]
            })?;
            if let Some(off) = off {
                let step = zone.cylinder_step + off / within as f64;
                let whole = zone.whole_sectors(step, within as f64);
                zone.cylinder_step = if zone.heads == 1 { whole } else { fold(step) };
            }
        }
        for like in self.alike(&runs.steps) {
            self.refine_step(zone, &like, count)?;
        }
        // The last run is where it was: else skews are no whole numbers of sectors, or not these.
        let refined = zone.track_start(count.saturating_sub(1) * runs.tracks);
        let after = zone.runs.replace(runs.clone());
        if signed(refined - zone.track_start(count.saturating_sub(1) * runs.tracks)).abs()
            < self.tolerance()
        {
            zone.runs = after;
        }
        Ok(())
    }

    /// Takes a skew between runs from pairs of tracks behind which it comes: those of the steps with
    /// these numbers.
    fn refine_step(
        &mut self,
        zone: &mut ZoneMap,
        like: &[usize],
        count: u64,
    ) -> Result<(), ExtractError> {
        let Some(runs) = zone.runs.clone() else { return Ok(()) };
        if !(0..count.saturating_sub(1)).any(|run| comes(run, like, &runs)) {
            return Ok(());
        }
        let pairs = self.pairs(zone, 1.0).min(STEP_PAIRS_MAX);
        let off = self.mean_turned(zone, pairs, |prober| {
            loop {
                let run = prober.below(count - 1);
                if comes(run, like, &runs) {
                    break [run * runs.tracks + runs.tracks - 1, (run + 1) * runs.tracks];
                }
            }
        })?;
        let Some(off) = off else { return Ok(()) };
        let to_last = zone.track_start(runs.tracks - 1) - zone.track_start(0);
        let mean: f64 = like
            .iter()
            .map(|&at| {
                signed(
                    skew(&runs.steps[at], to_last, off) - skew(&runs.steps[like[0]], to_last, off),
                )
            })
            .sum();
        let skew = zone.whole_sectors(
            skew(&runs.steps[like[0]], to_last, off) + mean / like.len() as f64,
            1.0,
        );
        let mut steps = runs.steps.clone();
        like.iter().for_each(|&at| steps[at] = fold(skew + to_last));
        zone.runs = Some(TrackRuns { steps, ..runs });
        Ok(())
    }

    /// Mean of how much further the second of two tracks is turned than expected; None if of no pair
    /// both can be read.
    pub(super) fn mean_turned(
        &mut self,
        zone: &ZoneMap,
        pairs: usize,
        mut choose: impl FnMut(&mut Prober<'_>) -> [u64; 2],
    ) -> Result<Option<f64>, ExtractError> {
        let mut off = Vec::new();
        // A pair may have a block that cannot be read.
        for _ in 0..2 * pairs {
            self.measured(zone, off.len() as f64 / pairs as f64);
            let tracks = choose(self.prober);
            off.extend(self.turned_between(zone, tracks)?);
            if off.len() == pairs {
                break;
            }
        }
        let mean = off.iter().sum::<f64>() / off.len().max(1) as f64;
        Ok(Some(mean).filter(|_| !off.is_empty()))
    }

    /// Numbers of the steps that are the same, as far as a few reads say.
    fn alike(&self, steps: &[f64]) -> Vec<Vec<usize>> {
        let allowed = 2.0 * self.tolerance();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for at in 0..steps.len() {
            match groups
                .iter_mut()
                .find(|group| signed(steps[at] - steps[group[0]]).abs() < allowed)
            {
                Some(group) => group.push(at),
                None => groups.push(vec![at]),
            }
        }
        groups
    }

    /// True if a run has the same tracks as the first.
    fn run_fits(&mut self, zone: &ZoneMap, run: u64) -> Result<bool, ExtractError> {
        let tracks = zone.runs.as_ref().map_or(1, |runs| runs.tracks);
        let (begin, next) = (run * tracks, zone.track_first((run + 1) * tracks));
        if next > self.prober.blocks() {
            return Ok(false);
        }
        let last = zone.track_of(next - 1).0;
        for track in [begin, (begin + zone.heads).min(last), u64::midpoint(begin, last), last] {
            if !self.fits(zone, track)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The number of steps after which they come again; all of them if they do not.
    fn period_of(&self, steps: &[f64]) -> usize {
        let allowed = 2.0 * self.tolerance();
        (1..=steps.len())
            .find(|period| {
                (*period..steps.len())
                    .all(|at| signed(steps[at] - steps[at - period]).abs() < allowed)
            })
            .unwrap_or(1)
    }

    /// True if no other step is expected any more.
    fn is_cyclic(&self, steps: &[f64], known: Option<usize>) -> bool {
        let period = self.period_of(steps);
        match known {
            Some(known) => steps.len() > known && period <= known,
            None => period > 1 && steps.len() > 2 * period,
        }
    }

    /// One step for all of those that come again.
    fn averaged(&self, steps: &[f64]) -> Vec<f64> {
        let period = self.period_of(steps);
        (0..period)
            .map(|first| {
                let like = steps[first..].iter().step_by(period);
                let off: f64 = like.clone().map(|step| signed(step - steps[first])).sum();
                fold(steps[first] + off / like.count() as f64)
            })
            .collect()
    }
}

fn comes(run: u64, like: &[usize], runs: &TrackRuns) -> bool {
    like.contains(&((run % runs.steps.len() as u64) as usize))
}

fn skew(step: &f64, to_last: f64, off: f64) -> f64 {
    step - to_last + off
}
