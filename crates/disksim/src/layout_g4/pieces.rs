//! Runs of tracks cut where all tracks of some cylinders are complete: what a zone can consist of.

use super::{Run, TURN, Track};
use crate::error::{ImportCause, ImportError, Place, unrepresentable};

/// Heads that a message names one by one.
const HEADS_NAMED_MAX: usize = 8;

/// First and last cylinder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub first: i64,
    pub last: i64,
}

impl Span {
    pub fn cylinders(self) -> i64 {
        self.last - self.first + 1
    }

    fn around(self, low: i64, high: i64) -> Self {
        Self { first: self.first.min(low), last: self.last.max(high) }
    }
}

/// The fewest runs in a row that hold every track of their cylinders: a cylinder, or a band.
#[derive(Clone, Copy)]
pub(super) struct CylinderPiece<'a> {
    pub runs: &'a [Run],
    pub span: Span,
}

impl CylinderPiece<'_> {
    /// The kind of all its tracks, None where they differ.
    fn kind(&self) -> Option<usize> {
        let kind = self.runs[0].kind;
        self.runs.iter().all(|run| run.kind == kind).then_some(kind)
    }

    fn parts(&self) -> [Option<usize>; 2] {
        [self.runs[0].part, self.runs[self.runs.len() - 1].part]
    }

    /// True if a zone may hold both: they come from the same entry of the root, their tracks are of one
    /// kind, and their cylinders meet.
    fn continues(&self, next: &Self) -> bool {
        let meet = self.span.last + 1 == next.span.first || next.span.last + 1 == self.span.first;
        meet && self.kind() == next.kind() && self.parts() == next.parts()
    }
}

/// True if the tracks of two pieces have the same angles from their first track on.
pub(super) fn same_angles(a: &CylinderPiece<'_>, b: &CylinderPiece<'_>) -> bool {
    a.runs.len() == b.runs.len()
        && a.runs.iter().zip(b.runs).all(|(x, y)| {
            (x.tracks, x.angle_each) == (y.tracks, y.angle_each)
                && (x.angle - a.runs[0].angle).rem_euclid(TURN)
                    == (y.angle - b.runs[0].angle).rem_euclid(TURN)
        })
}

/// Pieces in a row that are one zone.
#[derive(Clone, Copy)]
pub(super) struct Group<'a> {
    pub runs: &'a [Run],
    pub span: Span,
}

/// Joins pieces in a row where `alike` holds. The pieces together are `runs`.
pub(super) fn join<'a>(
    runs: &'a [Run],
    pieces: &[CylinderPiece<'a>],
    alike: impl Fn(&CylinderPiece<'_>, &CylinderPiece<'_>) -> bool,
) -> Vec<Group<'a>> {
    let mut rest = runs;
    let groups = pieces.chunk_by(|a, b| a.continues(b) && alike(a, b));
    groups
        .map(|group| {
            let count = group.iter().map(|piece| piece.runs.len()).sum();
            let (runs, others) = rest.split_at(count);
            rest = others;
            let ends = group.iter().map(|piece| piece.span);
            let span = ends.reduce(|a, b| a.around(b.first, b.last)).unwrap_or(group[0].span);
            Group { runs, span }
        })
        .collect()
}

/// The runs as pieces. Every track of their cylinders must occur once, and all tracks of a piece must
/// have the same number of sectors.
pub(super) fn pieces<'a>(
    runs: &'a [Run],
    tracks: &[Track],
    surfaces: u32,
) -> Result<Vec<CylinderPiece<'a>>, ImportError> {
    let mut pieces = Vec::new();
    let mut rest = runs;
    while !rest.is_empty() {
        let piece = first_piece(rest, surfaces)?;
        rest = &rest[piece.runs.len()..];
        pieces.push(piece);
    }
    match pieces.iter().position(|piece| !is_even(piece, tracks)) {
        Some(uneven) => Err(uneven_sectors(&pieces[uneven..], tracks, surfaces)),
        None => Ok(pieces),
    }
}

fn first_piece(runs: &[Run], surfaces: u32) -> Result<CylinderPiece<'_>, ImportError> {
    let (low, high) = runs[0].cylinders();
    let mut span = Span { first: low, last: high };
    let mut tracks = 0;
    for (index, run) in runs.iter().enumerate() {
        if run.tracks > 1 && run.step.abs() != 1 {
            let rule =
                "tracks that skip cylinders cannot be represented: a zone is whole cylinders";
            return Err(unrepresentable(&run.at, rule));
        }
        let (low, high) = run.cylinders();
        span = span.around(low, high);
        tracks += run.tracks;
        if tracks >= span.cylinders() * i64::from(surfaces) {
            let piece = CylinderPiece { runs: &runs[..=index], span };
            return each_track_once(piece.runs, surfaces, span).map(|()| piece);
        }
    }
    Err(each_track_once(runs, surfaces, span).err().unwrap_or_else(|| {
        // Fewer tracks than the cylinders have: one of them is not there.
        unrepresentable(&runs[0].at, "not every head has a track on every cylinder")
    }))
}

/// Cylinders of one head in a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    head: i64,
    first: i64,
    last: i64,
    sectors: i64,
}

fn stretches(runs: &[Run], sectors: impl Fn(&Run) -> i64) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = runs
        .iter()
        .map(|run| {
            let (first, last) = run.cylinders();
            Stretch { head: run.head, first, last, sectors: sectors(run) }
        })
        .collect();
    stretches.sort_unstable();
    stretches
}

/// Names the first track of the cylinders that has no blocks, or that has blocks twice.
fn each_track_once(runs: &[Run], surfaces: u32, span: Span) -> Result<(), ImportError> {
    let mut due = (0, span.first);
    for Stretch { head, first, last, .. } in stretches(runs, |_| 0) {
        if (head, first) < due {
            let rule = format!("head {head} has blocks twice on cylinder {first}");
            return Err(unrepresentable(&runs[0].at, rule));
        }
        if (head, first) != due {
            return Err(without_blocks(runs, due, span));
        }
        due = if last == span.last { (head + 1, span.first) } else { (head, last + 1) };
    }
    if due.0 < i64::from(surfaces) {
        return Err(without_blocks(runs, due, span));
    }
    Ok(())
}

fn without_blocks(runs: &[Run], (head, cylinder): (i64, i64), span: Span) -> ImportError {
    let Span { first, last } = span;
    let rule = format!(
        "`IDX` has no track on head {head} of cylinder {cylinder}; a zone needs all heads on all of \
         its cylinders, here {first} to {last}"
    );
    unrepresentable(&runs[0].at, rule)
}

fn is_even(piece: &CylinderPiece<'_>, tracks: &[Track]) -> bool {
    piece.runs.iter().all(|run| sectors(run, tracks) == sectors(&piece.runs[0], tracks))
}

fn sectors(run: &Run, tracks: &[Track]) -> i64 {
    tracks[run.kind].sectors
}

/// Reason for tracks of different density in the first of these pieces: heads differ, or LBNs run through
/// several densities on one head before they come to the next.
fn uneven_sectors(pieces: &[CylinderPiece<'_>], tracks: &[Track], surfaces: u32) -> ImportError {
    let CylinderPiece { runs, span } = pieces[0];
    let at = &runs[0].at;
    let stretches = stretches(runs, |run| tracks[run.kind].sectors);
    let heads: Vec<&[Stretch]> = stretches.chunk_by(|a, b| a.head == b.head).collect();
    let cylinders = heads.iter().filter_map(|head| first_difference(heads[0], head));
    let Some(cylinder) = cylinders.min() else {
        let rule = format!(
            "LBNs run over cylinders {} to {} on one head before the next, through different blocks \
             per track; a zone has one number of blocks per track",
            span.first, span.last
        );
        return unrepresentable(at, rule);
    };
    let sectors: Vec<i64> = stretches
        .iter()
        .filter(|s| (s.first..=s.last).contains(&cylinder))
        .map(|s| s.sectors)
        .collect();
    let last = match pieces
        .iter()
        .take_while(|piece| by_head(piece, tracks, surfaces).as_ref() == Some(&sectors))
        .last()
    {
        Some(piece) => piece.span.last,
        None => {
            let next = stretches.iter().map(|s| s.first).filter(|first| *first > cylinder).min();
            next.map_or(span.last, |next| next - 1)
        }
    };
    heads_differ(at, (cylinder, last), &sectors)
}

/// The first cylinder on which two heads have different numbers of sectors. Both have all cylinders.
fn first_difference(a: &[Stretch], b: &[Stretch]) -> Option<i64> {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.sectors != y.sectors {
            return Some(x.first.max(y.first));
        }
        i += usize::from(x.last <= y.last);
        j += usize::from(y.last <= x.last);
    }
    None
}

/// Sectors of the tracks of each head, None where one head has several numbers.
fn by_head(piece: &CylinderPiece<'_>, tracks: &[Track], surfaces: u32) -> Option<Vec<i64>> {
    let mut heads = vec![None; surfaces as usize];
    for run in piece.runs {
        let sectors = tracks[run.kind].sectors;
        let known = heads.get_mut(run.head as usize)?;
        if *known.get_or_insert(sectors) != sectors {
            return None;
        }
    }
    heads.into_iter().collect()
}

fn heads_differ(at: &Place, (first, last): (i64, i64), sectors: &[i64]) -> ImportError {
    let named: Vec<String> = sectors
        .iter()
        .enumerate()
        .take(HEADS_NAMED_MAX)
        .map(|(head, sectors)| format!("head {head} has {sectors}"))
        .collect();
    let more = if sectors.len() > HEADS_NAMED_MAX { ", ..." } else { "" };
    let rule = format!(
        "heads have different blocks per track on cylinders {first} to {last}: {}{more}; a zone of a \
         drive file has one number for all heads",
        named.join(", ")
    );
    unrepresentable(at, rule).of(ImportCause::UnevenHeads)
}
