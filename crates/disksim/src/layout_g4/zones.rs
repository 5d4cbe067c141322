//! Runs of tracks to zones: whole cylinders with one kind of track, the tracks of all zones numbered
//! in one order.

use freewheel_model::drive::spec::{Direction, Mapping, SpareUnit, Sparing, Turn, ZoneSpec};

use super::{Run, TURN, Track};
use crate::error::{ImportError, Place, wrong};

/// The order of the tracks of all zones, and the zones. Where no order fits, cylinder by cylinder, with
/// a note in `lost`.
pub(super) fn zones(
    runs: &[Run],
    tracks: &[Track],
    surfaces: u32,
    lost: impl FnOnce(String),
) -> Result<(Mapping, Vec<ZoneSpec>), ImportError> {
    let groups: Vec<&[Run]> = runs.chunk_by(same_zone).collect();
    let spans: Result<Vec<(i64, i64)>, ImportError> =
        groups.iter().map(|group| whole_cylinders(group, surfaces)).collect();
    let spans = spans?;
    let zones_in = |mapping: Option<Mapping>| -> Result<Vec<ZoneSpec>, ImportError> {
        let zones = groups.iter().zip(&spans).map(|(group, &span)| {
            let numbering = mapping.map(|mapping| Numbering::new(mapping, span, surfaces));
            zone(group, span, tracks[group[0].kind], numbering)
        });
        zones.collect()
    };
    let mut refused = None;
    for mapping in orders(&groups, &spans, surfaces) {
        match zones_in(Some(mapping)) {
            Ok(zones) => return Ok((mapping, zones)),
            // Bands have skews that cylinders have not.
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    if let Some(error) = refused {
        return Err(error);
    }
    lost(out_of_order(&groups, &spans, surfaces));
    Ok((Mapping::Cylinder, zones_in(None)?))
}

fn same_zone(a: &Run, b: &Run) -> bool {
    a.part == b.part && a.kind == b.kind && a.angle_each == b.angle_each
}

/// First and last cylinder of a zone, every track of which must occur once.
fn whole_cylinders(group: &[Run], surfaces: u32) -> Result<(i64, i64), ImportError> {
    let first = group.iter().map(|run| run.cylinders().0).min().unwrap_or(0);
    let last = group.iter().map(|run| run.cylinders().1).max().unwrap_or(0);
    let at = &group[0].at;
    let mut pieces: Vec<(i64, i64, i64)> = Vec::with_capacity(group.len());
    for run in group {
        if run.tracks > 1 && run.step.abs() != 1 {
            let rule =
                "tracks that skip cylinders cannot be represented: a zone is whole cylinders";
            return Err(wrong(&run.at, rule));
        }
        let (low, high) = run.cylinders();
        pieces.push((run.head, low, high));
    }
    pieces.sort_unstable();
    let mut due = (0, first);
    for (head, low, high) in pieces {
        if (head, low) != due {
            let (head, cylinder) = due;
            let rule = format!(
                "cylinders {first} to {last} cannot be represented as a zone: head {head} of \
                 cylinder {cylinder} is missing, mapped twice or of another kind"
            );
            return Err(wrong(at, rule));
        }
        due = if high == last { (head + 1, first) } else { (head, high + 1) };
    }
    if due != (i64::from(surfaces), first) {
        let rule = format!(
            "cylinders {first} to {last} cannot be represented as a zone: head {} is missing",
            due.0
        );
        return Err(wrong(at, rule));
    }
    Ok((first, last))
}

/// The tracks of a zone in the order of a mapping.
#[derive(Clone, Copy)]
struct Numbering {
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

/// What changes from one track to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Cylinder,
    Head,
    Band,
}

impl Numbering {
    fn new(mapping: Mapping, (first, last): (i64, i64), surfaces: u32) -> Self {
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
            first,
            cylinders: last - first + 1,
            surfaces: surfaces.into(),
            in_bands: matches!(mapping, Mapping::Band { .. }),
            width,
            cylinder_order,
            surface_order,
            before: if mapping == Mapping::Serpentine { first } else { 0 },
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
        let back = |order: Direction, n: i64| order == Direction::Serpentine && n % 2 == 1;
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

    /// From the track before to this one.
    fn change_to(&self, track: i64) -> Change {
        match self.in_band(track) {
            (_, 0) if self.in_bands => Change::Band,
            (_, 0) => Change::Cylinder,
            (band, within) if within % self.width_of(band) == 0 => Change::Head,
            _ => Change::Cylinder,
        }
    }
}

/// The mappings that number the tracks of all zones as the runs do.
fn orders(groups: &[&[Run]], spans: &[(i64, i64)], surfaces: u32) -> impl Iterator<Item = Mapping> {
    let follows = move |mapping: &Mapping| {
        let zones = || groups.iter().zip(spans);
        zones().all(|(group, &span)| follows(group, Numbering::new(*mapping, span, surfaces)))
    };
    let by_cylinder = [Mapping::Cylinder, Mapping::SerpentineByZone, Mapping::Serpentine];
    let width = groups.iter().map(|group| first_stretch(group, surfaces)).max().unwrap_or(1);
    let both = [Direction::Forward, Direction::Serpentine];
    let in_bands = both.into_iter().flat_map(move |cylinder_order| {
        both.map(|surface_order| Mapping::Band {
            cylinders: width as u32,
            cylinder_order,
            surface_order,
        })
    });
    by_cylinder.into_iter().chain(in_bands).filter(follows)
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
fn out_of_order(groups: &[&[Run]], spans: &[(i64, i64)], surfaces: u32) -> String {
    let mut farthest = 0;
    let mut longest = 0;
    for (group, &span) in groups.iter().zip(spans) {
        let numbering = Numbering::new(Mapping::Cylinder, span, surfaces);
        let mut track = 0;
        for run in *group {
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
         to track the skew is that of the file"
    )
}

fn turn(angle: i64) -> Turn {
    Turn::from_ratio(angle.rem_euclid(TURN) as u64, TURN as u64).unwrap_or_default()
}

fn zone(
    group: &[Run],
    (first, last): (i64, i64),
    track: Track,
    numbering: Option<Numbering>,
) -> Result<ZoneSpec, ImportError> {
    let skews = match numbering {
        Some(numbering) => uniform_skews(group, numbering)?,
        None => {
            let each = group[0].angle_each;
            Skews { cylinder: each, head: each, bands: Vec::new() }
        }
    };
    // The file gives the angle of the first sector with data.
    let front = (track.front * TURN + track.sectors / 2) / track.sectors;
    Ok(ZoneSpec {
        first_cylinder: first as u32,
        last_cylinder: last as u32,
        blocks_per_track: track.sectors as u32,
        first_block: turn(group[0].angle - front),
        reserved_blocks: 0,
        track_skew: turn(skews.head),
        cylinder_skew: turn(skews.cylinder),
        band_skews: skews.bands.into_iter().map(turn).collect(),
        spares: (track.sectors - track.data) as u64,
        slips: Vec::new(),
        remaps: Vec::new(),
    })
}

/// Angles from the start of a track to the start of the next.
struct Skews {
    cylinder: i64,
    head: i64,
    /// From band to band, over and over.
    bands: Vec<i64>,
}

/// The skews of a zone. Those from cylinder to cylinder and from head to head must be the same in
/// all of it.
fn uniform_skews(group: &[Run], numbering: Numbering) -> Result<Skews, ImportError> {
    // Where LBNs run cylinder by cylinder, a run of several tracks is one on the only surface.
    let mut cylinder = group.iter().find(|run| run.tracks > 1).map(|run| run.angle_each);
    let mut head = None;
    let mut bands = Vec::new();
    let mut next = group[0].tracks;
    for pair in group.windows(2) {
        let number = next;
        next += pair[1].tracks;
        let last = pair[0].angle + (pair[0].tracks - 1) % TURN * pair[0].angle_each;
        let skew = (pair[1].angle - last).rem_euclid(TURN);
        let known = match numbering.change_to(number) {
            Change::Cylinder => &mut cylinder,
            Change::Head => &mut head,
            Change::Band => {
                bands.push(skew);
                continue;
            }
        };
        if *known.get_or_insert(skew) != skew {
            let rule = "skews that differ within a zone cannot be represented";
            return Err(wrong(&pair[1].at, rule));
        }
    }
    bands.truncate(period(&bands));
    Ok(Skews { cylinder: cylinder.unwrap_or(0), head: head.unwrap_or(0), bands })
}

/// Longest period of skews that is looked for, in bands. Layouts repeat after one or two.
const PERIOD_MAX: usize = 64;

/// Length of the shortest beginning of a list that repeats to its end.
fn period(list: &[i64]) -> usize {
    let repeats = |n: &usize| list[*n..].iter().zip(list).all(|(a, b)| a == b);
    (1..list.len().min(PERIOD_MAX)).find(repeats).unwrap_or(list.len())
}

/// Sectors of a track without data are spares, all before or all after the data.
pub(super) fn sparing(tracks: &[Track], at: &Place) -> Result<Sparing, ImportError> {
    let front = tracks.iter().any(|track| track.front > 0);
    let behind = tracks.iter().any(|track| track.front + track.data < track.sectors);
    if front && behind {
        let rule = "`TP`: sectors without data both before and behind those with data cannot be \
                    represented";
        return Err(wrong(at, rule));
    }
    let unit = if front || behind { SpareUnit::Track } else { SpareUnit::Zone };
    Ok(Sparing { unit, at_front: front, ..Sparing::default() })
}
