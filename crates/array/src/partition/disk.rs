//! A disk by the symbols of tr96 section 2, worked out from a drive of the library.

use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Lbn, Op, SimTime};

use super::density::{Cumulative, Density};
use super::distances::{CylinderRange, pairs_by_distance};
use super::moments::{Moments, Weighted};
use freewheel_model::drive::{Drive, FileZone, Position, Zone};

/// Part of a drive that holds data, and the accesses to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskUse {
    /// Share of the capacity that holds data, from block 0 on, in (0, 1].
    pub filled_share: f64,
    /// Share of the requests that read, in \[0, 1\].
    pub read_share: f64,
    /// The unit in which requests and files are counted; tr96 counts 1 KB.
    pub block: Bytes,
}

/// The symbols of tr96, times in seconds and lengths in blocks of [`DiskUse::block`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskSymbols {
    /// C: cylinders that hold data.
    pub cylinders: f64,
    /// T: tracks until the cylinder changes.
    pub tracks_per_cylinder: f64,
    /// B: blocks of a track; with zones, the mean over all tracks.
    pub blocks_per_track: f64,
    /// ROT: time of a turn.
    pub rotation_s: f64,
    /// t_hs: time that going on to a track of the same cylinder loses, skew included.
    pub head_switch_s: f64,
    /// t_cs: time that going on to the next cylinder loses, skew included.
    pub cylinder_switch_s: f64,
    /// e: seconds a cylinder, fitted to the seek curve beyond C/3.
    pub seek_slope_s: f64,
    /// f: seconds, fitted with e.
    pub seek_offset_s: f64,
}

/// A disk: symbols for the closed forms, distributions for the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskModel {
    symbols: DiskSymbols,
    seek: Density,
    seek_moments: Moments,
    positioning: Cumulative,
    zones: Vec<TransferZone>,
}

/// Parameters of a zone for the time of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TransferZone {
    /// Share of all data that lies here.
    share: f64,
    blocks_per_track: f64,
    ends: TrackEnds,
}

/// Ends of tracks with a change of heads alone, and with a change of the cylinder.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct TrackEnds {
    heads: Crossings,
    cylinders: Crossings,
}

/// Ends of tracks that were passed, and the time that this lost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Crossings {
    count: f64,
    sum_s: f64,
}

impl Crossings {
    fn add(&mut self, other: &Self, weight: f64) {
        self.count += weight * other.count;
        self.sum_s += weight * other.sum_s;
    }
}

/// Step of the grid on which times lie.
const STEP_S: f64 = 10e-6;
/// Tracks of a zone whose ends are looked at: some cylinders of any drive.
const TRACKS_MAX: u64 = 512;

impl DiskModel {
    /// Works out the disk that `drive` is. Panics for shares beyond their bounds, and for blocks that
    /// are no multiple of 512 bytes.
    pub fn of(drive: &Drive, usage: &DiskUse) -> Self {
        assert!(usage.filled_share > 0.0 && usage.filled_share <= 1.0, "{}", usage.filled_share);
        assert!((0.0..=1.0).contains(&usage.read_share), "{}", usage.read_share);
        let per_block = usage.block.get() / BLOCK_BYTES;
        assert!(per_block > 0 && usage.block.get().is_multiple_of(BLOCK_BYTES), "{}", usage.block);
        let used = used_zones(drive, usage.filled_share);
        let zones = transfer_zones(drive, &used, per_block as f64);
        let seeks = SeekChances::of(drive, &used, usage.read_share);
        let rotation_s = drive.rotation().period().as_secs_f64();
        let seek = seeks.density();
        Self {
            symbols: symbols(&zones, rotation_s, &seeks),
            positioning: seek.plus_uniform(rotation_s),
            seek_moments: seeks.moments(),
            seek,
            zones,
        }
    }

    /// The symbols of the closed forms.
    pub fn symbols(&self) -> &DiskSymbols {
        &self.symbols
    }

    /// Distribution of a seek.
    pub fn seek(&self) -> &Density {
        &self.seek
    }

    /// Distribution of a seek and the wait for the first sector: the convolution of both densities.
    pub fn positioning(&self) -> &Cumulative {
        &self.positioning
    }

    /// Mean time of a seek and half a turn, in seconds: L of equation 1.
    pub fn latency_s(&self) -> f64 {
        self.seek_moments.mean + self.symbols.rotation_s / 2.0
    }

    /// Moments of the transfer of `blocks` blocks. The mean is that of (12). The paper takes it for
    /// constant; here zones differ, and a transfer passes one end of a track more or fewer.
    /// Zero-latency access is not modelled.
    pub fn transfer(&self, blocks: f64) -> Moments {
        Moments::mixture(self.zones.iter().map(|zone| Weighted {
            chance: zone.share,
            moments: zone.transfer(blocks, self.symbols.rotation_s),
        }))
    }

    /// Moments of t_serv of a subrequest of `blocks` blocks: seek, rotation and transfer, independent
    /// of each other. Adding moments is convolving the densities.
    pub fn service(&self, blocks: f64) -> Moments {
        let rotation = Moments::uniform(self.symbols.rotation_s);
        self.seek_moments.plus(rotation).plus(self.transfer(blocks))
    }
}

impl DiskSymbols {
    /// Mean time that the end of a track loses: of T ends, one changes the cylinder.
    pub fn crossing_s(&self) -> f64 {
        let cylinder_share = 1.0 / self.tracks_per_cylinder;
        (1.0 - cylinder_share) * self.head_switch_s + cylinder_share * self.cylinder_switch_s
    }
}

/// The part of a zone that holds data.
struct UsedZone<'a> {
    zone: &'a Zone,
    cylinders: CylinderRange,
    blocks: u64,
}

/// Zones from the outermost on that hold the first `share` of the blocks. The last one is used in
/// proportion, whichever order its tracks are numbered in.
fn used_zones(drive: &Drive, share: f64) -> Vec<UsedZone<'_>> {
    let wanted = libm::ceil(drive.blocks().get() as f64 * share) as u64;
    let mut used = Vec::new();
    for zone in drive.layout().zones().iter().filter(|zone| zone.blocks() > Blocks::ZERO) {
        let FileZone { first_lbn, blocks: all, .. } = zone.of_file();
        let left = wanted.saturating_sub(first_lbn.get()).min(all.get());
        if left == 0 {
            break;
        }
        // The zones of surfaces that differ are filled together.
        let part = u128::from(zone.blocks().get()) * u128::from(left);
        let blocks = part.div_ceil(u128::from(all.get())) as u64;
        let part = u128::from(zone.cylinders()) * u128::from(blocks);
        let cylinders = part.div_ceil(u128::from(zone.blocks().get())) as u32;
        let first = zone.first_cylinder();
        let weight = zone.blocks().get() / u64::from(zone.cylinders()).max(1);
        let range = CylinderRange { first, end: first + cylinders, weight: weight.max(1) };
        used.push(UsedZone { zone, cylinders: range, blocks });
    }
    used
}

fn transfer_zones(drive: &Drive, used: &[UsedZone<'_>], per_block: f64) -> Vec<TransferZone> {
    let all: u64 = used.iter().map(|used| used.blocks).sum();
    used.iter()
        .map(|used| TransferZone {
            share: used.blocks as f64 / all as f64,
            blocks_per_track: f64::from(used.zone.blocks_per_track()) / per_block,
            ends: TrackEnds::of(drive, used.zone),
        })
        .collect()
}

impl TrackEnds {
    /// Looks at the first tracks of a zone: whole cylinders, or a whole band.
    fn of(drive: &Drive, zone: &Zone) -> Self {
        let mut ends = Self::default();
        let FileZone { first_lbn: mut at, blocks, .. } = zone.of_file();
        let zone_end = at + blocks;
        let tracks = zone.track_period().max(4 * u64::from(drive.layout().surfaces()));
        for _ in 0..tracks.min(TRACKS_MAX) {
            let next = drive.layout().track_bounds(at).1;
            if next.get() >= zone_end.get() {
                break;
            }
            let kind = if drive.layout().locate(at).cylinder == drive.layout().locate(next).cylinder
            {
                &mut ends.heads
            } else {
                &mut ends.cylinders
            };
            kind.count += 1.0;
            kind.sum_s += crossing_s(drive, next);
            at = next;
        }
        ends
    }

    fn count(&self) -> f64 {
        self.heads.count + self.cylinders.count
    }

    fn mean_s(&self) -> f64 {
        mean_s(self.heads.sum_s + self.cylinders.sum_s, self.count())
    }
}

/// Zero when there is none.
fn mean_s(sum_s: f64, count: f64) -> f64 {
    if count > 0.0 { sum_s / count } else { 0.0 }
}

impl TransferZone {
    /// Parameters of a zone of `drive` that holds data, counted in blocks of 512 bytes.
    pub(crate) fn of(drive: &Drive, zone: &Zone) -> Self {
        Self {
            share: 1.0,
            blocks_per_track: f64::from(zone.blocks_per_track()),
            ends: TrackEnds::of(drive, zone),
        }
    }

    /// Right-hand sides of (13) and (14), which are exact for whole numbers of blocks.
    pub(crate) fn transfer(&self, blocks: f64, rotation_s: f64) -> Moments {
        let crossings = (blocks - 1.0).max(0.0) / self.blocks_per_track;
        let fewest = libm::floor(crossings);
        let media_s = blocks / self.blocks_per_track * rotation_s;
        let one_more = crossings - fewest;
        Moments::mixture([
            Weighted {
                chance: 1.0 - one_more,
                moments: Moments::constant(media_s + fewest * self.ends.mean_s()),
            },
            Weighted {
                chance: one_more,
                moments: Moments::constant(media_s + (fewest + 1.0) * self.ends.mean_s()),
            },
        ])
    }
}

/// Time lost between the track before `next` and the one that begins there.
fn crossing_s(drive: &Drive, next: Lbn) -> f64 {
    let last = Lbn::new(next.get() - 1);
    let place = drive.layout().locate(last);
    let from = Position { cylinder: place.cylinder, surface: place.surface };
    let target = drive.target(last, Blocks::new(2), Op::Read);
    let access = drive.media_access(SimTime::ZERO, from, &target);
    // Without command processing the wait for the last sector before the crossing is the same.
    let first = drive.media_access(SimTime::ZERO, from, &drive.first_run(last, 1, Op::Read));
    ((access.seek + access.rotate).saturating_sub(first.seek + first.rotate)).as_secs_f64()
}

/// Mean time of a seek over `distance` cylinders: any surface to any surface, reads and writes by share.
pub(crate) fn mean_seek_s(drive: &Drive, read_share: f64, distance: u32) -> f64 {
    let surfaces = f64::from(drive.layout().surfaces());
    let ns = |op, switches| drive.seek().time_ns(op, distance, switches) as f64;
    let of = |op| (ns(op, false) + (surfaces - 1.0) * ns(op, true)) / surfaces;
    (read_share * of(Op::Read) + (1.0 - read_share) * of(Op::Write)) * 1e-9
}

/// Chance and time of a seek of every distance.
struct SeekChances {
    chance: Vec<f64>,
    time_s: Vec<f64>,
}

impl SeekChances {
    /// Places before and after a seek are drawn by capacity, surfaces evenly.
    fn of(drive: &Drive, used: &[UsedZone<'_>], read_share: f64) -> Self {
        let ranges: Vec<CylinderRange> = used.iter().map(|used| used.cylinders).collect();
        let first = ranges.first().map_or(0, |range| range.first);
        let last = ranges.iter().map(|range| range.end).max().unwrap_or(1) - 1;
        let pairs = pairs_by_distance(&ranges, last);
        let all = pairs.iter().sum::<u128>() as f64;
        let pairs = &pairs[..=(last - first) as usize];
        let time_s = |distance| mean_seek_s(drive, read_share, distance);
        Self {
            chance: pairs.iter().map(|&pairs| pairs as f64 / all).collect(),
            time_s: (0..pairs.len() as u32).map(time_s).collect(),
        }
    }

    fn density(&self) -> Density {
        let longest = self.time_s.iter().copied().fold(0.0, f64::max);
        let mut density = Density::empty(STEP_S, longest);
        for (&time_s, &chance) in self.time_s.iter().zip(&self.chance) {
            density.add(time_s, chance);
        }
        density
    }

    fn moments(&self) -> Moments {
        let moments = self.time_s.iter().map(|&time_s| Moments::constant(time_s));
        let chances = self.chance.iter();
        Moments::mixture(
            chances.zip(moments).map(|(&chance, moments)| Weighted { chance, moments }),
        )
    }

    /// Least squares of the seek curve over the distances from C/3 on, where the mean of the longest of
    /// several seeks lies.
    fn line(&self) -> SeekLine {
        let from = self.time_s.len() / 3;
        let points = || self.time_s.iter().enumerate().skip(from).map(|(d, &t)| (d as f64, t));
        let count = (self.time_s.len() - from) as f64;
        let mean_distance = points().map(|(distance, _)| distance).sum::<f64>() / count;
        let mean_s = points().map(|(_, time)| time).sum::<f64>() / count;
        let spread: f64 = points().map(|(d, _)| (d - mean_distance) * (d - mean_distance)).sum();
        let shared: f64 = points().map(|(d, t)| (d - mean_distance) * (t - mean_s)).sum();
        let slope_s = if spread > 0.0 { shared / spread } else { 0.0 };
        SeekLine { slope_s, offset_s: mean_s - slope_s * mean_distance }
    }
}

struct SeekLine {
    slope_s: f64,
    offset_s: f64,
}

/// Means over zones, each weighted by the tracks that its data fill: then the closed form of the
/// transfer is the mean over the zones.
fn symbols(zones: &[TransferZone], rotation_s: f64, seeks: &SeekChances) -> DiskSymbols {
    let mut tracks = 0.0;
    let mut ends = TrackEnds::default();
    for zone in zones {
        let of_zone = zone.share / zone.blocks_per_track;
        let weight = of_zone / zone.ends.count().max(1.0);
        ends.heads.add(&zone.ends.heads, weight);
        ends.cylinders.add(&zone.ends.cylinders, weight);
        tracks += of_zone;
    }
    let line = seeks.line();
    DiskSymbols {
        cylinders: seeks.time_s.len() as f64,
        tracks_per_cylinder: match ends.cylinders.count {
            0.0 => f64::INFINITY,
            cylinders => ends.count() / cylinders,
        },
        blocks_per_track: 1.0 / tracks,
        rotation_s,
        head_switch_s: mean_s(ends.heads.sum_s, ends.heads.count),
        cylinder_switch_s: mean_s(ends.cylinders.sum_s, ends.cylinders.count),
        seek_slope_s: line.slope_s,
        seek_offset_s: line.offset_s,
    }
}
