//! The orders in which a drive file can number the tracks of a zone.

use freewheel_model::drive::spec::{Direction, Mapping};

use super::Run;
use super::pieces::{Group, Span};

/// The tracks of a zone in the order of a mapping.
#[derive(Clone, Copy)]
pub(super) struct Numbering {
    first: i64,
    cylinders: i64,
    surfaces: i64,
    in_bands: bool,
    /// Cylinders of a band, one where LBNs run cylinder by cylinder.
    width: i64,
    cylinder_order: Direction,
    surface_order: Direction,
    /// Bands before the zone's first that the serpentine counts.
    before: i64,
}

/// Tracks one after the other on one head.
struct SectorRun {
    cylinder: i64,
    head: i64,
    step: i64,
    tracks: i64,
}

/// Change from one track to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Cylinder,
    Head,
    Band,
}

impl Numbering {
    pub fn new(mapping: Mapping, span: Span, surfaces: u32) -> Self {
        let (width, cylinder_order, surface_order) = match mapping {
            Mapping::Band { cylinders, cylinder_order, surface_order } => {
                (i64::from(cylinders), cylinder_order, surface_order)
            }
            Mapping::Cylinder => (1, Direction::Forward, Direction::Forward),
            Mapping::SerpentineByZone | Mapping::Serpentine => {
                (1, Direction::Forward, Direction::Serpentine)
            }
        };
        Self {
            first: span.first,
            cylinders: span.cylinders(),
            surfaces: surfaces.into(),
            in_bands: matches!(mapping, Mapping::Band { .. }),
            width,
            cylinder_order,
            surface_order,
            before: if mapping == Mapping::Serpentine { span.first } else { 0 },
        }
    }

    /// Band of a track, and the number of the band's tracks before it.
    fn in_band(&self, track: i64) -> (i64, i64) {
        (track / (self.width * self.surfaces), track % (self.width * self.surfaces))
    }

    /// Cylinders of a band; the last may be narrower.
    fn width_of(&self, band: i64) -> i64 {
        self.width.min(self.cylinders - band * self.width)
    }

    /// The track of this number and those that follow on the same head.
    fn at(&self, track: i64) -> SectorRun {
        let (band, within) = self.in_band(track);
        let width = self.width_of(band);
        let (nth, step) = (within / width, within % width);
        let outwards = back(self.cylinder_order, nth);
        let head = if back(self.surface_order, band + self.before) {
            self.surfaces - 1 - nth
        } else {
            nth
        };
        SectorRun {
            cylinder: self.first
                + band * self.width
                + if outwards { width - 1 - step } else { step },
            head,
            step: if outwards { -1 } else { 1 },
            // With a single surface the next cylinder is on the same head.
            tracks: if self.surfaces == 1 && !self.in_bands { i64::MAX } else { width - step },
        }
    }

    pub fn in_bands(&self) -> bool {
        self.in_bands
    }

    /// Number of a track where LBNs fill cylinder by cylinder from head to head.
    pub fn by_cylinder(span: Span, surfaces: u32, cylinder: i64, head: i64) -> i64 {
        (cylinder - span.first) * i64::from(surfaces) + head
    }

    /// From the track before to this one.
    pub fn change_to(&self, track: i64) -> Change {
        match self.in_band(track) {
            (_, 0) if self.in_bands => Change::Band,
            (_, 0) => Change::Cylinder,
            (band, within) if within % self.width_of(band) == 0 => Change::Head,
            _ => Change::Cylinder,
        }
    }
}

fn back(order: Direction, n: i64) -> bool {
    order == Direction::Serpentine && n % 2 == 1
}

/// The mappings that number the tracks of all zones as the runs do.
pub(super) fn orders(groups: &[Group<'_>], surfaces: u32) -> impl Iterator<Item = Mapping> {
    let by_cylinder = [Mapping::Cylinder, Mapping::SerpentineByZone, Mapping::Serpentine];
    let width = groups.iter().map(|group| first_stretch(group.runs, surfaces)).max().unwrap_or(1);
    let both = [Direction::Forward, Direction::Serpentine];
    let in_bands = both.into_iter().flat_map(move |cylinder_order| {
        both.map(|surface_order| Mapping::Band {
            cylinders: width as u32,
            cylinder_order,
            surface_order,
        })
    });
    by_cylinder.into_iter().chain(in_bands).filter(move |mapping: &Mapping| {
        groups
            .iter()
            .all(|group| follows(group.runs, Numbering::new(*mapping, group.span, surfaces)))
    })
}

fn follows(group: &[Run], numbering: Numbering) -> bool {
    let mut track = 0;
    group.iter().all(|run| {
        let due = numbering.at(track);
        track += run.tracks;
        (due.cylinder, due.head) == (run.cylinder, run.head)
            && (run.tracks == 1 || (run.step == due.step && run.tracks <= due.tracks))
    })
}

/// Tracks on the head that a zone begins with before another comes, or of its first run where
/// there is but one head.
fn first_stretch(group: &[Run], surfaces: u32) -> i64 {
    if surfaces == 1 {
        return group[0].tracks;
    }
    let mut tracks = 0;
    for run in group {
        if run.head != group[0].head || run.cylinder != group[0].cylinder + tracks {
            break;
        }
        tracks += run.tracks;
    }
    tracks
}

/// Says how the LBNs really run, and how far a block is from where it is put instead.
pub(super) fn out_of_order(groups: &[Group<'_>], surfaces: u32) -> String {
    let mut farthest = 0;
    let mut longest = 0;
    for group in groups {
        let numbering = Numbering::new(Mapping::Cylinder, group.span, surfaces);
        let mut track = 0;
        for run in group.runs {
            let ends =
                [(0, run.cylinder), (run.tracks - 1, run.cylinder + run.step * (run.tracks - 1))];
            for (beyond, cylinder) in ends {
                farthest = farthest.max((numbering.at(track + beyond).cylinder - cylinder).abs());
            }
            track += run.tracks;
            longest = longest.max(run.tracks);
        }
    }
    format!(
        "order of tracks: LBNs run over up to {longest} cylinders on one head before the next, not \
         in bands of the same width; here every cylinder is filled before the next, so that a block \
         is up to {farthest} cylinders from its place. Zones and capacity are exact, and from track \
         to track the skew is that of the zone's first run"
    )
}
