//! Places of tracks that hold one extent each.
//!
//! **Problem.** A large drive has tens of millions of tracks. A table with an entry for each would exceed
//! every cache, and searches would wait for it.
//!
//! From cylinder to cylinder tracks mostly follow each other evenly, so a row with a base and a step
//! describes thousands. Serpentine mappings number every other cylinder the other way round, hence the step
//! leads to the next cylinder but one.
//!
//! ```text
//!  cylinder        0      1      2      3      4         500 blocks a track, 3 surfaces
//!  surface 0       0   2500   3000   5500   6000         row 0: base 0, step 3000, on 0, 2, 4
//!  surface 1     500   2000   3500   5000   6500         row 3: base 2500, step 3000, on 1, 3
//!  surface 2    1000   1500   4000   4500   7000
//! ```
//!
//! The track on cylinder 4, surface 0 begins at 0 + 3000 x (4 / 2) = 6000.

use freewheel_units::Bytes;
use prefetch_index::prefetch_index;

use super::track_extent::{TrackExtent, TrackId};
use freewheel_model::drive::Position;

/// Extents by position, of tracks with one.
#[derive(Debug, Clone)]
pub(crate) struct RegularTracks {
    /// By cylinder, the row of its first surface.
    row_of_cylinder: Vec<u32>,
    rows: Vec<Row>,
}

/// Tracks of one surface on every other cylinder, evenly spaced.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// First block on cylinder 0 or 1, if the tracks began there.
    base: i64,
    /// Blocks from a cylinder to the next but one.
    step: i64,
    sector: u32,
    /// Zero on tracks without an extent or with several.
    blocks: u32,
}

impl Row {
    /// The row that begins with a track, `next` being that of the next cylinder but one.
    fn between(cylinder: usize, here: &TrackExtent, next: &TrackExtent) -> Self {
        let step = if next.blocks > 0 { next.first as i64 - here.first as i64 } else { 0 };
        let base = here.first as i64 - step * (cylinder / 2) as i64;
        Self { base, step, sector: here.sector, blocks: here.blocks }
    }

    /// True if the row tells the extent on a cylinder exactly.
    fn is(&self, cylinder: usize, stretch: &TrackExtent) -> bool {
        let here = self.stretch(stretch.id, cylinder as u32).unwrap_or(TrackExtent::NONE);
        here == *stretch
    }

    #[inline]
    fn stretch(&self, id: TrackId, cylinder: u32) -> Option<TrackExtent> {
        let Self { base, step, sector, blocks } = *self;
        let first = base + step * i64::from(cylinder / 2);
        (blocks > 0).then_some(TrackExtent { id, first: first as u64, sector, blocks })
    }
}

impl RegularTracks {
    pub const NONE: Self = Self { row_of_cylinder: Vec::new(), rows: Vec::new() };

    /// `stretches` has an extent a track, of zero blocks where there is none or several.
    pub fn new(stretches: &[TrackExtent], surfaces: u32) -> Self {
        let surfaces = surfaces as usize;
        let cylinders: Vec<&[TrackExtent]> = stretches.chunks_exact(surfaces).collect();
        let (mut row_of_cylinder, mut rows) =
            (Vec::<u32>::with_capacity(cylinders.len()), Vec::new());
        for (cylinder, here) in cylinders.iter().enumerate() {
            // Rows go on while they tell every surface exactly; else new ones begin here.
            let before = cylinder.checked_sub(2).map(|before| row_of_cylinder[before]);
            row_of_cylinder.push(
                before
                    .filter(|&first| go_on(&rows, first, surfaces, here, cylinder))
                    .unwrap_or_else(|| {
                        let first = u32::try_from(rows.len()).expect("below 2^32 tracks");
                        let next = cylinders.get(cylinder + 2).unwrap_or(here);
                        rows.extend(
                            here.iter()
                                .zip(*next)
                                .map(|(here, next)| Row::between(cylinder, here, next)),
                        );
                        first
                    }),
            );
        }
        rows.shrink_to_fit();
        Self { row_of_cylinder, rows }
    }

    /// Prefetches the rows of a cylinder.
    #[inline]
    pub fn prefetch(&self, cylinder: u32) {
        prefetch_index(&self.row_of_cylinder, cylinder as usize);
    }

    /// The extent of the track numbered `id`, if it has just one.
    #[inline]
    pub fn stretch(&self, id: TrackId, at: Position) -> Option<TrackExtent> {
        let first = self.row_of_cylinder[at.cylinder as usize];
        self.rows[first as usize + at.surface as usize].stretch(id, at.cylinder)
    }

    pub fn memory(&self) -> Bytes {
        let rows = self.rows.capacity() * size_of::<Row>();
        Bytes::new((rows + self.row_of_cylinder.capacity() * size_of::<u32>()) as u64)
    }
}

fn go_on(
    rows: &[Row],
    first: u32,
    surfaces: usize,
    here: &&[TrackExtent],
    cylinder: usize,
) -> bool {
    let rows = &rows[first as usize..][..surfaces];
    rows.iter().zip(*here).all(|(row, stretch)| row.is(cylinder, stretch))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SURFACES: u32 = 3;

    /// Tracks of a drive that is even but for some tracks, with none, several or fewer blocks.
    fn stretches(odd: &[(u32, u32)], turned_round: bool) -> Vec<TrackExtent> {
        let (mut stretches, mut first) = (Vec::new(), 0);
        for cylinder in 0..100 {
            let mut tracks = vec![TrackExtent::NONE; SURFACES as usize];
            for surface in 0..SURFACES {
                let is_odd = turned_round && cylinder % 2 == 1;
                let surface = if is_odd { SURFACES - 1 - surface } else { surface };
                let id = cylinder * SURFACES + surface;
                let less = odd.iter().find(|odd| odd.0 == id).map_or(0, |odd| odd.1);
                let stretch = TrackExtent { id, first, sector: less % 3, blocks: 500 - less };
                first += u64::from(stretch.blocks);
                if less < 400 {
                    tracks[surface as usize] = stretch;
                }
            }
            stretches.extend(tracks);
        }
        stretches
    }

    proptest! {
        #[test]
        fn stretches_are_found_as_given(
            odd in prop::collection::vec((0..100 * SURFACES, 0u32..500), 0..20), turned_round: bool,
        ) {
            let stretches = stretches(&odd, turned_round);
            let even = RegularTracks::new(&stretches, SURFACES);
            for (id, stretch) in (0..).zip(&stretches) {
                let at = Position { cylinder: id / SURFACES, surface: id % SURFACES };
                let given = (stretch.blocks > 0).then_some(*stretch);
                prop_assert_eq!(even.stretch(id, at), given);
            }
        }
    }

    #[test]
    fn regular_drive_takes_two_rows_per_surface() {
        for turned_round in [false, true] {
            assert_eq!(RegularTracks::new(&stretches(&[], turned_round), SURFACES).rows.len(), 6);
        }
    }
}
