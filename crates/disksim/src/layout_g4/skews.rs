//! The skews of a zone from the angles of its tracks.
//!
//! A drive file gives a zone one skew from cylinder to cylinder and one from head to head, and one
//! from each band to the next. Layouts that were measured have others for each head, which differ by
//! the error of the measurement. The mean is taken. Each cylinder, or band, begins where the file
//! has it, so that differences do not add up over a zone.

use super::numbering::{Change, Numbering};
use super::{Run, TURN, Track};
use crate::error::{ImportError, unrepresentable};

/// Longest period of skews that is looked for, in bands. Layouts repeat after one or two.
const PERIOD_MAX: usize = 64;

/// Angles from the start of a track to the start of the next.
pub(super) struct Skews {
    pub cylinder: i64,
    pub head: i64,
    /// From band to band, over and over.
    pub bands: Vec<i64>,
    pub averaged: Averaged,
}

/// Effect of the mean on a zone. Zero where all skews were the same.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Averaged {
    /// Largest distance of a skew from the mean.
    pub skew: i64,
    /// Largest distance of the start of a track from its angle in the file.
    pub start: i64,
}

impl Averaged {
    /// True if the skews were the same but for the rounding of their angles: two are rounded in each.
    pub fn is_rounding(self) -> bool {
        self.skew <= 2
    }
}

/// Angle at which a run's first track begins: the file gives that of its first sector with data.
pub(super) fn start(run: &Run, tracks: &[Track]) -> i64 {
    let track = tracks[run.kind];
    let front = (track.front * TURN + track.sectors / 2) / track.sectors;
    (run.angle - front).rem_euclid(TURN)
}

/// From the first track of a run to its last.
fn along(run: &Run) -> i64 {
    (run.tracks - 1) % TURN * run.angle_each % TURN
}

/// Angle between half a turn back and half a turn on.
fn nearest(angle: i64) -> i64 {
    (angle + TURN / 2).rem_euclid(TURN) - TURN / 2
}

/// Skews of one kind, each with how often it occurs.
#[derive(Default)]
struct Samples(Vec<(i64, i64)>);

impl Samples {
    fn add(&mut self, skew: i64, count: i64) {
        if count > 0 {
            self.0.push((skew.rem_euclid(TURN), count));
        }
    }

    /// The mean, with differences counted the short way around; zero where there are none.
    fn mean(&self) -> i64 {
        let Some(&(first, _)) = self.0.first() else { return 0 };
        let total: i128 = self
            .0
            .iter()
            .map(|(skew, count)| i128::from(nearest(skew - first)) * i128::from(*count))
            .sum();
        let count: i128 = self.0.iter().map(|(_, count)| i128::from(*count)).sum();
        let rounded = (total * 2 + count).div_euclid(count * 2);
        (first + rounded as i64).rem_euclid(TURN)
    }

    /// Largest distance from this skew.
    fn spread(&self, mean: i64) -> i64 {
        self.0.iter().map(|(skew, _)| nearest(skew - mean).abs()).max().unwrap_or(0)
    }
}

/// The skews of a zone whose tracks follow this numbering. An error where a track would begin half a
/// sector or more from its angle in the file: it would be nearer to another sector's place.
pub(super) fn skews(
    runs: &[Run],
    tracks: &[Track],
    numbering: Numbering,
) -> Result<Skews, ImportError> {
    let (cylinder, head, spread) = if numbering.in_bands() {
        within_bands(runs, tracks, numbering)
    } else {
        by_cylinder(runs, tracks, numbering)
    };
    let mut skews = Skews { cylinder, head, bands: Vec::new(), averaged: Averaged::default() };
    skews.bands = band_skews(runs, tracks, numbering, &skews);
    let (start, farthest) = farthest(runs, tracks, numbering, &skews);
    let sectors = tracks[runs[0].kind].sectors;
    if start * sectors * 2 >= TURN {
        return Err(too_far(farthest, start, sectors, spread));
    }
    skews.averaged = Averaged { skew: spread, start };
    skews.bands.truncate(period(&skews.bands));
    Ok(skews)
}

fn too_far(run: &Run, start: i64, sectors: i64, spread: i64) -> ImportError {
    let rule = format!(
        "the skews within a zone differ by up to {:.6} turns from their mean: with one skew for all, \
         tracks of head {} from cylinder {} on would begin {:.6} turns, {:.1} sectors, from their \
         place; below half a sector is allowed",
        turns(spread),
        run.head,
        run.cylinder,
        turns(start),
        turns(start * sectors),
    );
    unrepresentable(&run.at, rule)
}

fn turns(angle: i64) -> f64 {
    angle as f64 / TURN as f64
}

/// From a run's start to the next one's.
fn step(pair: &[Run], tracks: &[Track]) -> i64 {
    start(&pair[1], tracks) - start(&pair[0], tracks)
}

/// Skew between cylinders, skew between heads, and how far they lie apart, in a zone of bands. The
/// second is what brings the heads of a band to their starts when the first leads along them.
fn within_bands(runs: &[Run], tracks: &[Track], numbering: Numbering) -> (i64, i64, i64) {
    let (mut cylinders, mut heads) = (Samples::default(), Samples::default());
    runs.iter().for_each(|run| cylinders.add(run.angle_each, run.tracks - 1));
    each_change(runs, numbering, |pair, change| {
        if change == Change::Cylinder {
            cylinders.add(step(pair, tracks) - along(&pair[0]), 1);
        }
    });
    let cylinder = cylinders.mean();
    // Runs of a head one after the other are one stretch.
    let mut before = 0;
    each_change(runs, numbering, |pair, change| {
        let led = (pair[0].tracks - 1) % TURN * cylinder % TURN;
        match change {
            Change::Cylinder => before += step(pair, tracks) - led - cylinder,
            Change::Head => {
                heads.add(before + step(pair, tracks) - led, 1);
                before = 0;
            }
            Change::Band => before = 0,
        }
    });
    let head = heads.mean();
    (cylinder, head, cylinders.spread(cylinder).max(heads.spread(head)))
}

/// Skews where LBNs run cylinder by cylinder. The second skew is what brings the cylinders to their starts
/// when the first leads from head to head.
fn by_cylinder(runs: &[Run], tracks: &[Track], numbering: Numbering) -> (i64, i64, i64) {
    let (mut cylinders, mut heads) = (Samples::default(), Samples::default());
    each_change(runs, numbering, |pair, change| {
        if change == Change::Head {
            heads.add(step(pair, tracks) - along(&pair[0]), 1);
        }
    });
    let head = heads.mean();
    // On a single surface a run is a row of cylinders.
    runs.iter().for_each(|run| cylinders.add(run.angle_each, run.tracks - 1));
    let mut before = 0;
    each_change(runs, numbering, |pair, change| {
        let moved = step(pair, tracks) - along(&pair[0]);
        if change == Change::Cylinder {
            cylinders.add(before + moved, 1);
            before = 0;
        } else {
            before += moved - head;
        }
    });
    let cylinder = cylinders.mean();
    (cylinder, head, cylinders.spread(cylinder).max(heads.spread(head)))
}

/// Calls with every two runs that follow each other, and with what changes between them.
fn each_change(runs: &[Run], numbering: Numbering, mut call: impl FnMut(&[Run], Change)) {
    let mut next = 0;
    for pair in runs.windows(2) {
        next += pair[0].tracks;
        call(pair, numbering.change_to(next));
    }
}

/// Skews that bring every band to its start.
fn band_skews(runs: &[Run], tracks: &[Track], numbering: Numbering, skews: &Skews) -> Vec<i64> {
    let mut bands = Vec::new();
    // From the start of the band to the start of the run.
    let mut led = 0;
    let mut band = start(&runs[0], tracks);
    each_change(runs, numbering, |pair, change| {
        led += (pair[0].tracks - 1) % TURN * skews.cylinder % TURN;
        match change {
            Change::Cylinder => led += skews.cylinder,
            Change::Head => led += skews.head,
            Change::Band => {
                let next = start(&pair[1], tracks);
                bands.push((next - band - led).rem_euclid(TURN));
                (band, led) = (next, 0);
            }
        }
    });
    bands
}

/// Largest distance of a track's beginning from its angle in the file, and the run of that track.
fn farthest<'a>(
    runs: &'a [Run],
    tracks: &[Track],
    numbering: Numbering,
    skews: &Skews,
) -> (i64, &'a Run) {
    let mut bands = skews.bands.iter();
    let mut at = start(&runs[0], tracks);
    let mut next = 0;
    let mut worst = (0, &runs[0]);
    for (index, run) in runs.iter().enumerate() {
        if index > 0 {
            at += match numbering.change_to(next) {
                Change::Cylinder => skews.cylinder,
                Change::Head => skews.head,
                Change::Band => bands.next().copied().unwrap_or(0),
            };
        }
        let apart = farthest_of_run(nearest(start(run, tracks) - at), run, skews);
        at = (at + (run.tracks - 1) % TURN * skews.cylinder) % TURN;
        if apart > worst.0 {
            worst = (apart, run);
        }
        next += run.tracks;
    }
    worst
}

/// Largest distance of a beginning in a run from its angle, where the first one is `begin` off. Tracks
/// drift apart evenly, so it is the first or the last, unless the last is farther than half a turn: those
/// in the middle were that far off then, and the last may lie near its angle by whole turns.
fn farthest_of_run(begin: i64, run: &Run, skews: &Skews) -> i64 {
    let end = begin + (run.tracks - 1) * nearest(run.angle_each - skews.cylinder);
    begin.abs().max(end.abs()).min(TURN / 2)
}

/// Length of the shortest beginning of a list that repeats to its end.
fn period(list: &[i64]) -> usize {
    (1..list.len().min(PERIOD_MAX))
        .find(|n| list[*n..].iter().zip(list).all(|(a, b)| a == b))
        .unwrap_or(list.len())
}
