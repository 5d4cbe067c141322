//! The tracks of a drive alone: for drives whose surfaces differ in density.
//!
//! The zones of [`super::zones`] have one density and one pattern of skews over thousands of tracks. Where
//! each surface has its own density, both change with every turn of a band. Here tracks are found in
//! *stretches*: consecutive tracks of the same length, each turned by the same skew against the one before.
//!
//! ```text
//!   first track     length by bisection: within a track the angle rises by a sector a block
//!   second track    its length says whether the first was whole, its start the skew
//!   far tracks      tried at doubling distances, until one is not where it is expected
//!   end             the first block that is not, by bisection
//! ```
//!
//! Stretches come again: with the bands of a zone all lengths recur. So the stretch that followed the last
//! time is tried first, at its ends and in its middle, which takes a tenth of the reads.
//!
//! Bounds of tracks are exact wherever skews are longer than the error of an angle. A hole of so many tracks
//! that their skews make whole turns cannot be seen, and moves no bound.

use freewheel_sim::black_box::BlackBox;
use serde::Serialize;

use super::clock::{Clock, fold, signed};
use super::prober::{Prober, Shadow};
use super::progress::ExtractProgress;
use super::sectors::InSectors;
use super::zones::Surveyor;
use super::{ExtractError, ExtractOptions, Journal, buffer};

/// Longest row of stretches that is expected to come again: four bands of every surface.
const PERIOD_MAX: usize = 256;
/// Stretches at the end of a row that must have come before.
const LIKE_BEFORE: usize = 2;
/// Tracks before the end of a stretch that are looked at again: a far one may have fitted by chance.
const LOOK_BACK: u64 = 3;

/// Tracks of the same length, one after the other, each turned by the same skew.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrackStretch {
    /// LBN of the first block.
    pub first_block: u64,
    /// Blocks of 512 bytes on each track, those in holes left out.
    pub blocks_per_track: u64,
    /// Number of tracks.
    pub tracks: u64,
    /// Angle at which the first block is answered, in turns.
    pub start_turns: f64,
    /// From the start of a track to that of the next, in turns; of a single track the way to the next stretch.
    pub skew_turns: f64,
    /// True for the end of a track, behind a hole, whose beginning is the stretch before.
    pub ends_track: bool,
}

/// All tracks of a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrackMap {
    /// Capacity in blocks of 512 bytes.
    pub blocks: u64,
    /// Time of one turn.
    pub rotation_ns: f64,
    /// Tracks in the order of their blocks.
    pub stretches: Vec<TrackStretch>,
    /// Commands sent to the drive.
    pub commands: u64,
    /// Time on the drive.
    pub drive_ns: u64,
}

impl TrackStretch {
    /// The block after the last.
    pub fn end(&self) -> u64 {
        self.first_block + self.tracks * self.blocks_per_track
    }

    fn angle_of_track(&self, track: u64) -> f64 {
        fold(self.start_turns + track as f64 * self.skew_turns)
    }

    /// Angle expected of a block of the stretch, or of one that would follow.
    fn angle(&self, block: u64) -> f64 {
        let within = block - self.first_block;
        let (track, sector) = (within / self.blocks_per_track, within % self.blocks_per_track);
        fold(self.angle_of_track(track) + sector as f64 / self.blocks_per_track as f64)
    }
}

impl TrackMap {
    /// First block of each track, ascending.
    pub fn track_firsts(&self) -> impl Iterator<Item = u64> {
        self.stretches.iter().filter(|stretch| !stretch.ends_track).flat_map(|stretch| {
            (0..stretch.tracks).map(|track| stretch.first_block + track * stretch.blocks_per_track)
        })
    }

    /// Number of tracks.
    pub fn tracks(&self) -> u64 {
        let whole = self.stretches.iter().filter(|stretch| !stretch.ends_track);
        whole.map(|stretch| stretch.tracks).sum()
    }
}

/// Finds all tracks of a drive by timing reads of it. The drive should be idle otherwise.
pub fn track_map(
    drive: &mut dyn BlackBox,
    options: &ExtractOptions,
    journal: Journal<'_>,
    progress: ExtractProgress<'_>,
) -> Result<TrackMap, ExtractError> {
    let sector = u64::from(drive.sector().physical_blocks());
    if sector == 1 || !drive.blocks().get().is_multiple_of(sector) {
        return survey(drive, options, journal, progress);
    }
    let mut sectors = InSectors::new(drive, sector as u32);
    let found = survey(&mut sectors, options, journal, progress);
    let mut map = found.map_err(|error| error.in_blocks(sector))?;
    map.blocks *= sector;
    for stretch in &mut map.stretches {
        stretch.first_block *= sector;
        stretch.blocks_per_track *= sector;
    }
    Ok(map)
}

fn survey(
    drive: &mut dyn BlackBox,
    options: &ExtractOptions,
    journal: Journal<'_>,
    progress: ExtractProgress<'_>,
) -> Result<TrackMap, ExtractError> {
    let mut prober = Prober::new(drive, options.seed, journal, progress);
    prober.begin("buffer", 1);
    let buffer = buffer::measure(&mut prober)?;
    prober.set_shadow(buffer.map_or(Shadow::default(), |buffer| buffer.shadow()));
    let mut clock = Clock::find(&mut prober)?;
    let stretches = stretches(&mut prober, &mut clock)?;
    Ok(TrackMap {
        blocks: prober.blocks(),
        rotation_ns: clock.period_ns(),
        stretches,
        commands: prober.commands(),
        drive_ns: prober.now().ns(),
    })
}

/// All stretches of a drive, one after the other.
pub(super) fn stretches(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
) -> Result<Vec<TrackStretch>, ExtractError> {
    let blocks = prober.blocks();
    prober.begin("tracks", blocks);
    let mut stretches: Vec<TrackStretch> = Vec::new();
    let mut next = 0;
    while next < blocks {
        prober.reached(next);
        let number = stretches.len() + 1;
        let mut surveyor = Surveyor { prober: &mut *prober, clock: &mut *clock, number };
        surveyor.goes_on_with("stretch");
        let before = expected(&stretches);
        let found = match before {
            Some(before) => surveyor.stretch_like(&before, next)?,
            None => None,
        };
        let stretch = match found {
            Some(stretch) => stretch,
            None => surveyor.stretch(next, longest(&stretches))?,
        };
        next = stretch.end();
        stretches.push(stretch);
    }
    prober.end();
    let mut surveyor = Surveyor { prober, clock, number: 0 };
    let ends = mark_ends(&mut stretches, surveyor.allowed());
    for (index, per_track) in ends {
        surveyor.find_hole(&mut stretches, index, per_track)?;
    }
    Ok(stretches)
}

/// Most blocks of a track that was found.
fn longest(stretches: &[TrackStretch]) -> u64 {
    stretches.iter().map(|stretch| stretch.blocks_per_track).max().unwrap_or(0)
}

/// Marks the ends of tracks behind holes: each lies where the track, as long as its neighbours, has it. The
/// result are those, and the sectors of their tracks.
fn mark_ends(stretches: &mut [TrackStretch], allowed: f64) -> Vec<(usize, u64)> {
    let mut ends = Vec::new();
    // The track of the stretch before, as far as it is known.
    let mut begun: Option<TrackStretch> = None;
    for index in 0..stretches.len() {
        let part = stretches[index];
        let neighbours = [
            stretches[..index].iter().rev().find(is_whole),
            stretches[index..].iter().find(is_whole),
        ];
        let lengths = neighbours.map(|whole| whole.map(|whole| whole.blocks_per_track));
        let before = begun.filter(|before| before.tracks == 1 && part.tracks == 1);
        let per_track = before.and_then(|before| {
            lengths.into_iter().flatten().find(|&all| is_rest(&before, &part, all, allowed))
        });
        stretches[index].ends_track = per_track.is_some();
        ends.extend(per_track.map(|per_track| (index, per_track)));
        let longer = per_track.and(before).map(|before| TrackStretch {
            blocks_per_track: before.blocks_per_track + part.blocks_per_track,
            ..before
        });
        begun = Some(longer.unwrap_or(part));
    }
    ends
}

fn is_whole(stretch: &&TrackStretch) -> bool {
    stretch.tracks > 1
}

/// True if `part` is the end of the track of `all` sectors that `before` is the beginning of.
fn is_rest(before: &TrackStretch, part: &TrackStretch, all: u64, allowed: f64) -> bool {
    let both = before.blocks_per_track + part.blocks_per_track;
    let due = before.start_turns - part.blocks_per_track as f64 / all as f64;
    both < all && signed(part.start_turns - due).abs() <= allowed
}

/// The stretch that came the last time behind stretches like the last ones.
fn expected(stretches: &[TrackStretch]) -> Option<TrackStretch> {
    let count = stretches.len();
    let period = (1..=PERIOD_MAX.min(count)).find(|period| {
        (1..=LIKE_BEFORE).all(|back| {
            let both = count.checked_sub(back).zip(count.checked_sub(back + period));
            both.is_some_and(|(now, then)| is_like(&stretches[now], &stretches[then]))
        })
    })?;
    Some(stretches[count - period])
}

fn is_like(a: &TrackStretch, b: &TrackStretch) -> bool {
    (a.blocks_per_track, a.tracks) == (b.blocks_per_track, b.tracks)
}

impl Surveyor<'_, '_> {
    /// The stretch that begins with this block, if it has tracks as those of `before` and as many.
    fn stretch_like(
        &mut self,
        before: &TrackStretch,
        first: u64,
    ) -> Result<Option<TrackStretch>, ExtractError> {
        let blocks = self.prober.blocks();
        let per_track = before.blocks_per_track;
        if first + (before.tracks + 1) * per_track > blocks || before.tracks < LOOK_BACK {
            return Ok(None);
        }
        let start_turns = self.angle_of_first(first)?;
        let second = self.angle_of_first(first + per_track)?;
        let skew_turns = fold(second - start_turns);
        let mut found = TrackStretch { first_block: first, start_turns, skew_turns, ..*before };
        for track in [1, before.tracks / 2, before.tracks - 1] {
            if !self.track_fits(&found, track)? {
                return Ok(None);
            }
            self.tighten_skew(&mut found, track)?;
        }
        // The next track is none of these.
        Ok((!self.track_fits(&found, before.tracks)?).then_some(found))
    }

    /// The stretch that begins with this block; tracks before have `longest` blocks at most.
    fn stretch(&mut self, first: u64, longest: u64) -> Result<TrackStretch, ExtractError> {
        let blocks = self.prober.blocks();
        let start_turns = self.angle_of_first(first)?;
        let (length, next) = match self.first_track(first) {
            Ok((length, _)) => (length, first + length),
            // The last track of the drive has no end that shows.
            Err(ExtractError::NoTrack { .. }) if blocks - first <= longest => {
                (blocks - first, blocks)
            }
            Err(error) => return Err(error),
        };
        let single = |skew_turns| TrackStretch {
            first_block: first,
            blocks_per_track: length,
            tracks: 1,
            start_turns,
            skew_turns,
            ends_track: false,
        };
        if next >= blocks {
            return Ok(single(0.0));
        }
        let skew_turns = fold(self.angle_of_first(next)? - start_turns);
        let mut found = single(skew_turns);
        if next + length > blocks || !self.track_fits(&found, 1)? || self.goes_on(&found)? {
            return Ok(found);
        }
        self.extend_stretch(&mut found)?;
        Ok(found)
    }

    /// Finds the block behind a hole, in a track whose sectors are known: those before lie further on by the
    /// hole than those behind.
    fn find_hole(
        &mut self,
        stretches: &mut [TrackStretch],
        end: usize,
        per_track: u64,
    ) -> Result<(), ExtractError> {
        let [before, rest] = &mut stretches[end - 1..=end] else { return Ok(()) };
        let hole = fold(
            rest.start_turns - before.start_turns - sector(before.blocks_per_track, per_track),
        );
        let (mut good, mut bad) = (before.first_block, rest.end());
        while bad - good > 1 {
            let middle = u64::midpoint(good, bad);
            let due = before.start_turns + sector(middle - before.first_block, per_track);
            if signed(self.angle(middle)? - due).abs() < hole / 2.0 {
                good = middle;
            } else {
                bad = middle;
            }
        }
        let rest_end = rest.end();
        if bad < rest_end {
            before.blocks_per_track = bad - before.first_block;
            (rest.first_block, rest.blocks_per_track) = (bad, rest_end - bad);
            rest.start_turns = self.angle_of_first(bad)?;
        }
        Ok(())
    }

    /// True if the second track is longer than the first: the first was the end of one.
    fn goes_on(&mut self, found: &TrackStretch) -> Result<bool, ExtractError> {
        let behind = found.first_block + 2 * found.blocks_per_track;
        if behind >= self.prober.blocks() {
            return Ok(false);
        }
        let last = behind - 1;
        let on = fold(found.angle(last) + 1.0 / found.blocks_per_track as f64);
        let angle = self.angle_of_first(behind)?;
        // Of a track that ends here the next begins a skew further on.
        let skew = signed(found.skew_turns);
        Ok(signed(angle - on).abs() <= self.allowed() && skew.abs() > 2.0 * self.allowed())
    }

    /// Finds the last track like the first.
    fn extend_stretch(&mut self, found: &mut TrackStretch) -> Result<(), ExtractError> {
        let (mut good, mut stride) = (1, 1);
        let mut bad = loop {
            let track = good + stride;
            if !self.track_fits(found, track)? {
                break track;
            }
            self.tighten_skew(found, track)?;
            (good, stride) = (track, 2 * stride);
        };
        loop {
            while bad - good > 1 {
                let middle = u64::midpoint(good, bad);
                if self.track_fits(found, middle)? {
                    good = middle;
                } else {
                    bad = middle;
                }
            }
            match self.misfit_shortly_before(found, bad)? {
                Some(earlier) => (good, bad) = (1, earlier),
                None => break,
            }
        }
        found.tracks = bad;
        Ok(())
    }

    /// A track shortly before the end that does not fit either.
    fn misfit_shortly_before(
        &mut self,
        found: &TrackStretch,
        bad: u64,
    ) -> Result<Option<u64>, ExtractError> {
        for back in 1..=LOOK_BACK {
            let track = bad.saturating_sub(back);
            if track > 1 && !self.track_fits(found, track)? {
                return Ok(Some(track));
            }
        }
        Ok(None)
    }

    /// True if a track is whole and where it is expected.
    fn track_fits(&mut self, found: &TrackStretch, track: u64) -> Result<bool, ExtractError> {
        let begin = found.first_block + track * found.blocks_per_track;
        let end = begin + found.blocks_per_track;
        if end > self.prober.blocks() {
            return Ok(false);
        }
        let allowed = self.allowed();
        for block in [begin, end - 1, u64::midpoint(begin, end - 1)] {
            let angle = self.angle(block)?;
            if signed(angle - found.angle(block)).abs() > allowed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A far track says how far tracks are turned, all the better.
    fn tighten_skew(&mut self, found: &mut TrackStretch, track: u64) -> Result<(), ExtractError> {
        let block = found.first_block + track * found.blocks_per_track;
        let error = signed(self.angle_of_first(block)? - found.angle(block));
        found.skew_turns = fold(found.skew_turns + error / track as f64);
        Ok(())
    }
}

fn sector(blocks: u64, per_track: u64) -> f64 {
    blocks as f64 / per_track as f64
}
