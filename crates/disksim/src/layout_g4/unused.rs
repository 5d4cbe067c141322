//! Sectors that hold no data: slipped blocks, and what kinds of tracks leave out.

use std::ops::Range;

use freewheel_model::drive::spec::{SpareUnit, Sparing};

use super::numbering::Numbering;
use super::pieces::Group;
use super::{Media, Run, signed};
use crate::error::{ImportError, unrepresentable, wrong};
use crate::fields::{Report, list, whole};
use crate::parse::Param;

/// Sectors left out one by one, together.
const SLIPS_MAX: i64 = 1_000_000;
const LBN_MAX: u64 = 1 << 50;

/// The blocks of the tree that `Slips` leaves out, ascending: pairs of a block and a count. A block
/// of a pair counts the slipped ones before it. Blocks of a pair that an earlier one has left out
/// already move it on.
pub(super) fn slipped(param: &Param, report: &mut Report) -> Result<Vec<Range<i64>>, ImportError> {
    let items = list(&param.value, "Slips")?;
    if items.len() % 2 == 1 {
        let rule =
            format!("`Slips` has {} numbers; pairs of block and count are expected", items.len());
        return Err(wrong(&param.value.at, rule));
    }
    let mut pairs = Vec::with_capacity(items.len() / 2);
    for pair in items.chunks_exact(2) {
        let block = whole(&pair[0], "Slips", LBN_MAX)? as i64;
        pairs.push((block, signed(&pair[1], "Slips", LBN_MAX as i64)?));
    }
    if pairs.iter().any(|(_, count)| *count < 0) {
        report.lost(param, "a negative count would give two blocks one place: it is left out");
    }
    if !pairs.is_sorted_by_key(|(block, _)| *block) {
        report
            .note(format!("{}: `Slips` does not ascend: it is taken in ascending order", param.at));
    }
    pairs.retain(|(_, count)| *count > 0);
    pairs.sort_by_key(|(block, _)| *block);
    let mut end = 0;
    let ranges = pairs.into_iter().map(|(block, count)| {
        let from = block.max(end);
        end = from.saturating_add(count);
        from..end
    });
    Ok(ranges.collect())
}

/// Sectors of a zone without data.
pub(super) struct ZoneUnused {
    /// Spares of every track.
    pub spares: u64,
    /// Further sectors, counted from the zone's first.
    pub slips: Vec<u64>,
}

/// Sectors of a drive without data.
pub(super) struct Unused {
    pub sparing: Sparing,
    pub places: Vec<ZoneUnused>,
}

impl Unused {
    /// Sectors without data that all tracks of a zone share are spares: behind the data, or before
    /// them if no zone has any behind. All others are slips.
    pub fn new(
        media: &Media<'_>,
        groups: &[Group<'_>],
        in_order: bool,
    ) -> Result<Self, ImportError> {
        let shared: Vec<Ends> =
            groups.iter().map(|group| Ends::shared(media, group.runs)).collect();
        let at_front = shared.iter().all(|ends| ends.behind == 0);
        let mut room = SLIPS_MAX;
        let mut places = Vec::with_capacity(groups.len());
        for (group, ends) in groups.iter().zip(&shared) {
            let spares = spares(ends, at_front);
            let zone = ZoneSectors { media, group, at_front, spares, in_order };
            let slips = zone.slips(&mut room)?;
            places.push(ZoneUnused { spares: spares as u64, slips });
        }
        let has_spares = places.iter().any(|place| place.spares > 0);
        let sparing = Sparing {
            unit: if has_spares { SpareUnit::Track } else { SpareUnit::Zone },
            at_front: has_spares && at_front,
            slip_to_zone_end: places.iter().any(|place| !place.slips.is_empty()),
            ..Sparing::default()
        };
        Ok(Self { sparing, places })
    }
}

fn spares(ends: &Ends, at_front: bool) -> i64 {
    if at_front { ends.front } else { ends.behind }
}

/// Sectors without data at both ends of tracks.
struct Ends {
    front: i64,
    behind: i64,
}

impl Ends {
    fn shared(media: &Media<'_>, runs: &[Run]) -> Self {
        Self {
            front: runs
                .iter()
                .map(|run| media.tracks[run.kind])
                .map(|track| track.front)
                .min()
                .unwrap_or(0),
            behind: runs
                .iter()
                .map(|run| media.tracks[run.kind])
                .map(|track| track.behind())
                .min()
                .unwrap_or(0),
        }
    }
}

struct ZoneSectors<'a> {
    media: &'a Media<'a>,
    group: &'a Group<'a>,
    at_front: bool,
    spares: i64,
    in_order: bool,
}

impl ZoneSectors<'_> {
    /// Sectors that are neither data nor spares, in the order of the zone's tracks.
    fn slips(&self, room: &mut i64) -> Result<Vec<u64>, ImportError> {
        let mut slips = Vec::new();
        let mut number = 0;
        for run in self.group.runs {
            self.left_out_by_kind(run, number, room, &mut slips)?;
            self.slipped(run, number, room, &mut slips)?;
            number += run.tracks;
        }
        slips.sort_unstable();
        Ok(slips)
    }

    fn left_out_by_kind(
        &self,
        run: &Run,
        number: i64,
        room: &mut i64,
        slips: &mut Vec<u64>,
    ) -> Result<(), ImportError> {
        let track = self.media.tracks[run.kind];
        let (front, behind) = if self.at_front { (self.spares, 0) } else { (0, self.spares) };
        let before = front..track.front;
        let after = track.front + track.data..track.sectors - behind;
        let each = before.end - before.start + after.end - after.start;
        take(room, each * run.tracks, run)?;
        if each == 0 {
            return Ok(());
        }
        for nth in 0..run.tracks {
            let sectors = before.clone().chain(after.clone());
            slips.extend(sectors.map(|sector| self.position(run, number, nth, sector)));
        }
        Ok(())
    }

    fn slipped(
        &self,
        run: &Run,
        number: i64,
        room: &mut i64,
        slips: &mut Vec<u64>,
    ) -> Result<(), ImportError> {
        let track = self.media.tracks[run.kind];
        let end = run.lbn + run.tracks * track.data;
        let ranges = self.media.slipped;
        let first = ranges.partition_point(|range| range.end <= run.lbn);
        for range in ranges[first..].iter().take_while(|range| range.start < end) {
            let blocks = range.start.max(run.lbn)..range.end.min(end);
            take(room, blocks.end - blocks.start, run)?;
            slips.extend(blocks.map(|block| {
                let (nth, sector) =
                    ((block - run.lbn) / track.data, (block - run.lbn) % track.data);
                self.position(run, number, nth, track.front + sector)
            }));
        }
        Ok(())
    }

    /// A sector of the nth track of a run that begins with the zone's track of this number.
    fn position(&self, run: &Run, number: i64, nth: i64, sector: i64) -> u64 {
        let track = if self.in_order {
            number + nth
        } else {
            let cylinder = run.cylinder + run.step * nth;
            Numbering::by_cylinder(self.group.span, self.media.surfaces, cylinder, run.head)
        };
        (track * self.media.tracks[run.kind].sectors + sector) as u64
    }
}

/// Takes this many sectors of the room that is left for slips.
fn take(room: &mut i64, sectors: i64, run: &Run) -> Result<(), ImportError> {
    *room -= sectors;
    if *room < 0 {
        let rule = format!(
            "more than {SLIPS_MAX} sectors without data, which the tracks of a zone do not share"
        );
        return Err(unrepresentable(&run.at, rule));
    }
    Ok(())
}
