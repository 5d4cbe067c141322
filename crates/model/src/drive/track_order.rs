//! In which order LBNs run over the tracks of a zone, and how far each track is turned.
//!
//! Cylinders are counted from the first of the zone. Turns are in units of 2^-64 and wrap: skews
//! multiplied by track numbers stay exact to far below a sector.

use std::ops::Range;

use super::divide::Divisor;
use super::error::{BuildDriveError, invalid};
use crate::spec::drive::{Direction, DriveSpec, Mapping, ZoneSpec};

/// The tracks of a zone in LBN order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TrackOrder {
    Cylinders(Cylinders),
    /// These are elsewhere, so that other zones stay small: look-ups go from zone to zone at random.
    Bands(Box<Bands>),
    Turned(Box<Turned>),
    Surface(Box<SurfaceOrder>),
}

/// 2^64 / sectors, rounded up: the width of a sector.
pub(super) fn sector_steps64(blocks_per_track: u64) -> u64 {
    u64::MAX / blocks_per_track + 1
}

impl TrackOrder {
    pub fn build(drive: &DriveSpec, zone: &ZoneSpec, key: &str) -> Result<Self, BuildDriveError> {
        let turnaround = match drive.mapping {
            Mapping::Cylinder => Turnaround::NEVER,
            Mapping::SerpentineByZone => Turnaround { phase: 0, mask: 1 },
            Mapping::Serpentine => Turnaround { phase: zone.first_cylinder, mask: 1 },
            Mapping::Band { cylinders: 0, .. } => {
                return Err(invalid("mapping.band.cylinders", 0, "at least 1 is needed"));
            }
            Mapping::Band { cylinders, cylinder_order, surface_order } => {
                let turnarounds = [cylinder_order, surface_order].map(Turnaround::of);
                let bands = Bands::new(cylinders, turnarounds, drive, zone);
                return Ok(Self::Bands(Box::new(bands)));
            }
        };
        if let Some(skew) = zone.band_skews.first() {
            let rule = "only the mapping in bands has them";
            return Err(invalid(format!("{key}.band_skews"), skew, rule));
        }
        Ok(Self::Cylinders(Cylinders::new(turnaround, drive, zone)))
    }

    /// Order with the tracks turned by a sector for each slip in the sparing units before theirs. Slips are
    /// positions, sorted; a unit has this number.
    pub fn turned_by_slips(self, slips: &[u64], blocks_per_track: u64, unit: u64) -> Self {
        Self::Turned(Box::new(Turned {
            order: self,
            unit_tracks: Divisor::new(unit / blocks_per_track),
            units: slips.iter().map(|slip| slip / unit).collect(),
            sector_steps64: sector_steps64(blocks_per_track),
        }))
    }

    /// Cylinder and surface of the zone's track with this number.
    #[inline]
    pub fn track(&self, number: u64) -> (u32, u32) {
        match self {
            Self::Cylinders(order) => order.track(number),
            Self::Bands(order) => order.track(number),
            Self::Turned(turned) => turned.order.track(number),
            Self::Surface(order) => order.track(number),
        }
    }

    /// Number of a track: the inverse of [`Self::track`].
    pub fn number(&self, cylinder: u32, surface: u32) -> u64 {
        match self {
            Self::Cylinders(order) => order.number(cylinder, surface),
            Self::Bands(order) => order.number(cylinder, surface),
            Self::Turned(turned) => turned.order.number(cylinder, surface),
            Self::Surface(order) => order.number(cylinder, surface),
        }
    }

    /// From the start of the zone's first track to the start of this one.
    #[inline]
    pub fn turned64(&self, cylinder: u32, surface: u32) -> u64 {
        match self {
            Self::Cylinders(order) => order.turned64(cylinder, surface),
            Self::Bands(order) => order.turned64(cylinder, surface),
            Self::Turned(turned) => turned.turned64(cylinder, surface),
            Self::Surface(order) => order.bands.turned64(cylinder, surface),
        }
    }

    /// Tracks after which the same steps from track to track come again, directions left aside.
    pub fn period(&self) -> u64 {
        match self {
            Self::Cylinders(order) => order.surfaces.get(),
            Self::Bands(order) => order.tracks.get(),
            Self::Turned(turned) => turned.order.period(),
            Self::Surface(order) => order.bands.tracks.get(),
        }
    }

    /// The tracks of one surface alone. Only for bands.
    pub fn on_surface(self, surface: u32) -> Self {
        match self {
            Self::Bands(bands) => Self::Surface(Box::new(SurfaceOrder { bands: *bands, surface })),
            Self::Cylinders(_) | Self::Turned(_) | Self::Surface(_) => {
                unreachable!("surfaces that differ are in bands")
            }
        }
    }

    /// The order of a surface's tracks, if it is one.
    pub fn of_surface(&self) -> Option<&SurfaceOrder> {
        match self {
            Self::Surface(order) => Some(order),
            Self::Cylinders(_) | Self::Bands(_) | Self::Turned(_) => None,
        }
    }
}

/// The tracks of one surface, band by band.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SurfaceOrder {
    bands: Bands,
    surface: u32,
}

impl SurfaceOrder {
    /// Bands of the zone, the narrower one at its end counted in.
    pub fn bands(&self) -> u64 {
        self.bands.whole + u64::from(self.bands.has_rest)
    }

    /// The surface that comes `order`-th in a band.
    pub fn surface_at(&self, band: u64, order: u32) -> u32 {
        self.bands.surface_turnaround.mirrored(band as u32, order, self.bands.surfaces)
    }

    /// Numbers of a band's tracks on this surface.
    pub fn tracks_of(&self, band: u64) -> Range<u64> {
        let first = band * self.bands.cylinders.get();
        first..first + self.bands.width(band).get()
    }

    // Both ways are the same but for the place of a track in its band, which a mirror gives.
    fn in_band(&self, band: u64, step: u64) -> u64 {
        let order = self.surface_at(band, self.surface);
        let width = self.bands.width(band).get() as u32;
        self.bands.cylinder_turnaround.mirrored(order, step as u32, width).into()
    }

    #[inline(never)]
    fn track(&self, number: u64) -> (u32, u32) {
        let (band, step) = self.bands.cylinders.divide(number);
        let cylinder = band * self.bands.cylinders.get() + self.in_band(band, step);
        (cylinder as u32, self.surface)
    }

    fn number(&self, cylinder: u32, surface: u32) -> u64 {
        debug_assert_eq!(surface, self.surface, "a track of the zone");
        self.track(cylinder.into()).0.into()
    }
}

/// An order whose tracks are turned by slips.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turned {
    order: TrackOrder,
    /// Tracks of a sparing unit.
    unit_tracks: Divisor,
    /// Sparing unit of every slip, ascending.
    units: Vec<u64>,
    sector_steps64: u64,
}

impl Turned {
    #[inline(never)]
    fn turned64(&self, cylinder: u32, surface: u32) -> u64 {
        let unit = self.unit_tracks.divide(self.order.number(cylinder, surface)).0;
        let slips = self.units.partition_point(|&slipped| slipped < unit) as u64;
        let skews64 = self.order.turned64(cylinder, surface);
        skews64.wrapping_add(slips.wrapping_mul(self.sector_steps64))
    }
}

/// Members of a row that are run through from the last to the first. Without branches: whether one is, is
/// as good as random on the path of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turnaround {
    phase: u32,
    mask: u32,
}

impl Turnaround {
    const NEVER: Self = Self { phase: 0, mask: 0 };

    fn of(order: Direction) -> Self {
        match order {
            Direction::Forward => Self::NEVER,
            Direction::Serpentine => Self { phase: 0, mask: 1 },
        }
    }

    /// Place among `count` of the item `order`-th in this member, and the other way round: a
    /// mirror.
    #[inline]
    fn mirrored(self, member: u32, order: u32, count: u32) -> u32 {
        if (member ^ self.phase) & self.mask == 1 { count - 1 - order } else { order }
    }
}

/// Cylinder by cylinder, each from head to head.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cylinders {
    surfaces: Divisor,
    turnaround: Turnaround,
    /// From track to track.
    track_steps64: u64,
    /// From the first track of a cylinder to the first of the next.
    cylinder_steps64: u64,
}

impl Cylinders {
    fn new(turnaround: Turnaround, drive: &DriveSpec, zone: &ZoneSpec) -> Self {
        let track_steps64 = zone.track_skew.steps64();
        let switches64 = track_steps64.wrapping_mul(u64::from(drive.surfaces - 1));
        Self {
            surfaces: Divisor::new(drive.surfaces.into()),
            turnaround,
            track_steps64,
            cylinder_steps64: switches64.wrapping_add(zone.cylinder_skew.steps64()),
        }
    }

    #[inline]
    fn mirrored(&self, cylinder: u32, order: u32) -> u32 {
        self.turnaround.mirrored(cylinder, order, self.surfaces.get() as u32)
    }

    #[inline]
    fn track(&self, number: u64) -> (u32, u32) {
        let (cylinder, order) = self.surfaces.divide(number);
        // A zone has fewer than 2^32 tracks (limits in `build`).
        (cylinder as u32, self.mirrored(cylinder as u32, order as u32))
    }

    fn number(&self, cylinder: u32, surface: u32) -> u64 {
        let order = self.mirrored(cylinder, surface);
        u64::from(cylinder) * self.surfaces.get() + u64::from(order)
    }

    #[inline]
    fn turned64(&self, cylinder: u32, surface: u32) -> u64 {
        let order = u64::from(self.mirrored(cylinder, surface));
        let cylinders64 = u64::from(cylinder).wrapping_mul(self.cylinder_steps64);
        cylinders64.wrapping_add(order.wrapping_mul(self.track_steps64))
    }
}

/// Band by band, each surface by surface, each of these cylinder by cylinder.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bands {
    surfaces: u32,
    cylinders: Divisor,
    tracks: Divisor,
    /// Whole bands; what remains of the zone behind them is a narrower one.
    whole: u64,
    has_rest: bool,
    /// Cylinders of the narrower band, one if there is none.
    rest: Divisor,
    cylinder_turnaround: Turnaround,
    surface_turnaround: Turnaround,
    cylinder_steps64: u64,
    track_steps64: u64,
    /// From a band's first track to its last, if it is whole.
    band_steps64: u64,
    skews: BandSkews,
}

/// Skews that recur after a number of bands.
#[derive(Debug, Clone, PartialEq)]
struct BandSkews {
    period: Divisor,
    /// Sums of the skews after the first 0, 1, ... bands of a period.
    sums64: Vec<u64>,
    /// Sum of a whole period.
    total64: u64,
}

/// Place of a track within its zone.
struct InBand {
    band: u64,
    /// Number of surfaces of the band before it.
    order: u32,
    /// Number of tracks of the band on the same surface before it.
    step: u32,
    /// Cylinders of the band.
    width: Divisor,
}

impl BandSkews {
    fn new(zone: &ZoneSpec) -> Self {
        let given = zone.band_skews.iter().map(|skew| skew.steps64());
        let skews: Vec<u64> = if zone.band_skews.is_empty() {
            vec![zone.track_skew.steps64()]
        } else {
            given.collect()
        };
        let mut total64 = 0u64;
        let mut sums64 = Vec::with_capacity(skews.len());
        for skew in &skews {
            sums64.push(total64);
            total64 = total64.wrapping_add(*skew);
        }
        Self { period: Divisor::new(skews.len() as u64), sums64, total64 }
    }

    /// Sum of the skews after the bands before this one.
    fn before64(&self, band: u64) -> u64 {
        let (periods, within) = self.period.divide(band);
        periods.wrapping_mul(self.total64).wrapping_add(self.sums64[within as usize])
    }
}

impl Bands {
    fn new(
        cylinders: u32,
        [cylinder_turnaround, surface_turnaround]: [Turnaround; 2],
        drive: &DriveSpec,
        zone: &ZoneSpec,
    ) -> Self {
        let in_zone = zone.last_cylinder - zone.first_cylinder + 1;
        let mut built = Self {
            surfaces: drive.surfaces,
            cylinders: Divisor::new(cylinders.into()),
            tracks: Divisor::new(u64::from(cylinders) * u64::from(drive.surfaces)),
            whole: u64::from(in_zone / cylinders),
            has_rest: !in_zone.is_multiple_of(cylinders),
            rest: Divisor::new(u64::from(in_zone % cylinders).max(1)),
            cylinder_turnaround,
            surface_turnaround,
            cylinder_steps64: zone.cylinder_skew.steps64(),
            track_steps64: zone.track_skew.steps64(),
            band_steps64: 0,
            skews: BandSkews::new(zone),
        };
        built.band_steps64 = built.within64(built.cylinders, drive.surfaces - 1, cylinders - 1);
        built
    }

    fn width(&self, band: u64) -> Divisor {
        if band < self.whole { self.cylinders } else { self.rest }
    }

    // Not inlined: the path of a request on a drive without bands stays short.
    #[inline(never)]
    fn track(&self, number: u64) -> (u32, u32) {
        let (band, within) = self.tracks.divide(number);
        let width = self.width(band);
        let (order, step) = width.divide(within);
        // A zone has fewer than 2^32 tracks (limits in `build`).
        let (band, order, step) = (band as u32, order as u32, step as u32);
        let step = self.cylinder_turnaround.mirrored(order, step, width.get() as u32);
        let surface = self.surface_turnaround.mirrored(band, order, self.surfaces);
        (band * self.cylinders.get() as u32 + step, surface)
    }

    fn locate(&self, cylinder: u32, surface: u32) -> InBand {
        let (band, step) = self.cylinders.divide(cylinder.into());
        let width = self.width(band);
        let order = self.surface_turnaround.mirrored(band as u32, surface, self.surfaces);
        let step = self.cylinder_turnaround.mirrored(order, step as u32, width.get() as u32);
        InBand { band, order, step, width }
    }

    fn number(&self, cylinder: u32, surface: u32) -> u64 {
        let at = self.locate(cylinder, surface);
        at.band * self.tracks.get() + u64::from(at.order) * at.width.get() + u64::from(at.step)
    }

    /// From the first track of a band of this width.
    fn within64(&self, width: Divisor, order: u32, step: u32) -> u64 {
        let surface64 =
            (width.get() - 1).wrapping_mul(self.cylinder_steps64).wrapping_add(self.track_steps64);
        let surfaces64 = u64::from(order).wrapping_mul(surface64);
        surfaces64.wrapping_add(u64::from(step).wrapping_mul(self.cylinder_steps64))
    }

    #[inline(never)]
    fn turned64(&self, cylinder: u32, surface: u32) -> u64 {
        let at = self.locate(cylinder, surface);
        let bands64 = at.band.wrapping_mul(self.band_steps64);
        bands64
            .wrapping_add(self.skews.before64(at.band))
            .wrapping_add(self.within64(at.width, at.order, at.step))
    }
}
