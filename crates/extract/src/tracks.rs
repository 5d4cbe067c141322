//! The first tracks of a zone: where it begins, how long they are, and how many make a cylinder.

use super::clock::{fold, signed};
use super::limits::HEADS_MAX;
use super::map::{SlipFound, ZoneMap};
use super::refine::READS_FOR_SLIP_MAX;
use super::zones::{SLIPS_A_TRACK_MAX, Surveyor, ZoneWalk};
use super::{ExtractError, readable};

/// Parts of a sector by which a block has to lie nearer to one place than to another.
const CLEARLY: f64 = 0.25;
/// Blocks from which a first track's size is guessed. A track has more of them on any drive with
/// zones.
const FIRST_STEP: u64 = 32;

impl Surveyor<'_, '_> {
    /// First block of a zone that was taken to begin with `first`. Its first blocks may lie where those
    /// of the zone before would nearly be, and were taken for some of it: they lie still nearer to where
    /// their own track goes back to.
    pub(super) fn begin_behind(
        &mut self,
        before: &ZoneMap,
        first: u64,
    ) -> Result<u64, ExtractError> {
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
    pub(super) fn first_tracks(&mut self, first: u64) -> Result<(u64, u64), ExtractError> {
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

    /// Blocks of the track that begins with `first`, of unknown size, and turns from one
    /// to the next.
    pub(super) fn first_track(&mut self, first: u64) -> Result<(u64, f64), ExtractError> {
        let blocks = self.prober.blocks();
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
    pub(super) fn walk(
        &mut self,
        first: u64,
        (data, per_track): (u64, u64),
        count: Option<u64>,
    ) -> Result<(Vec<ZoneWalk>, Vec<SlipFound>), ExtractError> {
        let mut tracks = vec![ZoneWalk { first, angle: self.angle_of_first(first)? }];
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
            self.goes_on_with(&format!("track {}", tracks.len()));
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
        track: ZoneWalk,
        (data, per_track): (u64, u64),
    ) -> Result<ZoneWalk, ExtractError> {
        // Over one track no error adds up: all but defects would show.
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
        Ok(ZoneWalk { first, angle: self.angle_of_first(first)? })
    }

    /// Blocks of a track that seems to have a block for each sector, the last of them off: defects would
    /// have moved that one to the next track, so all that are off are of that already.
    fn leap_in(&mut self, track: ZoneWalk, per_track: u64) -> Result<Option<u64>, ExtractError> {
        let width = 1.0 / per_track as f64;
        // Of two angles each.
        let reads = 2 * self.reads_for_sector(width);
        if reads > READS_FOR_SLIP_MAX {
            return Ok(None);
        }
        // Together: what is wrong with the clock's phase is wrong with both.
        let mut error = |at: u64| -> Result<f64, ExtractError> {
            let ends = [track.first, track.first + at];
            let angles = readable(self.clock.measure(self.prober, &ends, reads))?;
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
    fn first_other_step(&self, tracks: &[ZoneWalk]) -> Option<usize> {
        let steps: Vec<f64> = tracks.windows(2).map(|pair| pair[1].angle - pair[0].angle).collect();
        steps.iter().position(|step| signed(step - steps[0]).abs() > 2.0 * self.tolerance())
    }

    /// Heads, from the pattern of skews.
    pub(super) fn heads(&self, tracks: &[ZoneWalk]) -> Result<u64, ExtractError> {
        let Some(switch) = self.first_other_step(tracks) else { return Ok(1) };
        let allowed = 2.0 * self.tolerance();
        for index in 0..tracks.len() - 1 {
            let like = if index % (switch + 1) == switch { switch } else { 0 };
            if signed(step(index, tracks) - step(like, tracks)).abs() > allowed {
                return Err(ExtractError::NoPattern { block: tracks[index + 1].first });
            }
        }
        Ok(switch as u64 + 1)
    }
}

fn step(index: usize, tracks: &[ZoneWalk]) -> f64 {
    tracks[index + 1].angle - tracks[index].angle
}
