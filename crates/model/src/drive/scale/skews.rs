//! Skews of a scaled drive: "as we scale the performance of the disk, we adjust the skews to make
//! sure that the disk does not miss revolutions" (tr03 section 5).

use freewheel_units::Op;

use super::Scaling;
use crate::drive::mechanics::Drive;
use crate::spec::drive::{Direction, DriveSpec, Mapping, Turn, ZoneSpec};

/// Switches between the end of a track and the start of the next.
#[derive(Debug, Clone, Copy)]
struct Switch {
    /// In a whole band, and in the narrower one at the end of a zone: a skew has to hide both.
    distances: [u32; 2],
    changes_head: bool,
}

/// Switches that the skews of a zone hide.
struct Switches {
    track: Switch,
    cylinder: Switch,
    /// None where LBNs do not run in bands.
    band: Option<Switch>,
}

impl Switch {
    fn over(distance: u32, changes_head: bool) -> Self {
        Self { distances: [distance; 2], changes_head }
    }
}

impl Switches {
    fn of(surfaces: u32, mapping: Mapping, zone: &ZoneSpec) -> Self {
        let several = surfaces > 1;
        let in_place = Switch::over(0, true);
        match mapping {
            Mapping::Cylinder => {
                Self { track: in_place, cylinder: Switch::over(1, several), band: None }
            }
            Mapping::Serpentine | Mapping::SerpentineByZone => {
                Self { track: in_place, cylinder: Switch::over(1, false), band: None }
            }
            Mapping::Band { cylinders, cylinder_order, surface_order } => {
                let turns = cylinder_order == Direction::Serpentine;
                let to_start = !turns && several;
                let back = if to_start { widths(zone, cylinders).map(|w| w - 1) } else { [0; 2] };
                // After an even number of surfaces the head is back where the band began.
                let on = if turns && surfaces.is_multiple_of(2) { cylinders } else { 1 };
                Self {
                    track: Switch { distances: back, changes_head: true },
                    cylinder: Switch::over(1, false),
                    band: Some(Switch::over(on, several && surface_order == Direction::Forward)),
                }
            }
        }
    }
}

/// Cylinders of the widest band of a zone and of its last.
fn widths(zone: &ZoneSpec, band: u32) -> [u32; 2] {
    let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
    let rest = cylinders % band;
    [band.min(cylinders), if rest == 0 { band } else { rest }]
}

/// The time a skew has to hide, and the turn that it is a part of.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Timing {
    switch_ns: u64,
    period_ns: u64,
}

impl Timing {
    fn of(drive: &Drive, switch: Switch) -> Self {
        let time = |distance: u32| {
            // A drive of one cylinder never leaves it.
            let distance = distance.min(drive.seek().distance_max());
            drive.seek().time_ns(Op::Read, distance, switch.changes_head).max(drive.seek().time_ns(
                Op::Write,
                distance,
                switch.changes_head,
            ))
        };
        let [one, other] = switch.distances.map(time);
        Self { switch_ns: one.max(other), period_ns: drive.rotation().period().ns() }
    }
}

/// Gives the zones of `scaled` their skews: in time as long as before, but for what the switch to
/// the next track has become shorter or longer, and never shorter than that switch; in angle
/// rounded up to whole sectors. Where neither a time nor a sector has changed, skews stay.
///
/// A switch that takes longer than a turn loses its whole turns with any skew.
///
/// `spec` has the same zones as they were before, and perhaps more of them inwards.
pub fn choose(
    scaled: &mut DriveSpec,
    scaling: &Scaling,
    spec: &DriveSpec,
    original: &Drive,
    built: &Drive,
) {
    let resectored = scaling.linear_density != 1.0;
    let surfaces_max = spec.surfaces.max(scaled.surfaces);
    for (old, zone) in spec.zones.iter().zip(&mut scaled.zones) {
        let sectors = zone.blocks_per_track;
        let scale = |skew: Turn, before: Switch, after: Switch| {
            let (before, after) = (Timing::of(original, before), Timing::of(built, after));
            if before == after && !resectored {
                return skew;
            }
            skew_after(skew, before, after, sectors)
        };
        let mut before = Switches::of(spec.surfaces, spec.mapping, old);
        // On one surface a track skew hides no switch: the switch that it would have hidden on several
        // keeps its margin.
        before.track = Switches::of(surfaces_max, spec.mapping, old).track;
        let after = Switches::of(scaled.surfaces, spec.mapping, zone);
        zone.track_skew = scale(old.track_skew, before.track, after.track);
        zone.cylinder_skew = scale(old.cylinder_skew, before.cylinder, after.cylinder);
        if let (Some(before), Some(after)) = (before.band, after.band) {
            zone.band_skews = band_skews(old, zone.track_skew, |skew| scale(skew, before, after));
        }
    }
}

/// Scaled skews of a band: where a zone has none, the track skew is theirs. The two hide different
/// switches, and may part.
fn band_skews(old: &ZoneSpec, track_skew: Turn, scale: impl Fn(Turn) -> Turn) -> Vec<Turn> {
    if !old.band_skews.is_empty() {
        return old.band_skews.iter().map(|skew| scale(*skew)).collect();
    }
    let behind_bands = scale(old.track_skew);
    if behind_bands == track_skew { Vec::new() } else { vec![behind_bands] }
}

/// All in nanoseconds times 2^64, which a skew's fraction of a turn fits without a float.
fn skew_after(skew: Turn, before: Timing, after: Timing, sectors: u32) -> Turn {
    let was = i128::from(skew.steps64()) * i128::from(before.period_ns);
    let time = if before == after {
        was
    } else {
        // Edges of sectors are whole nanoseconds: one more keeps a skew without margin safe.
        let least = fixed(after.switch_ns + 1);
        (was - fixed(before.switch_ns) + fixed(after.switch_ns)).max(least)
    };
    let (sectors, turn) = (i128::from(sectors), fixed(after.period_ns));
    let whole = (time * sectors + turn - 1) / turn % sectors;
    Turn::from_ratio(whole as u64, sectors as u64).expect("a remainder of the sectors")
}

fn fixed(ns: u64) -> i128 {
    i128::from(ns) << 64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Timing = Timing { switch_ns: 800_000, period_ns: 6_000_000 };

    fn skew(numerator: u64, denominator: u64) -> Turn {
        Turn::from_ratio(numerator, denominator).unwrap()
    }

    #[test]
    fn skew_angle_grows_with_faster_spindle() {
        // 1 ms of 6 in 60 sectors of 100 us; then of 4 in 60 sectors of 67 us.
        let after = Timing { period_ns: 4_000_000, ..BEFORE };
        assert_eq!(skew_after(skew(10, 60), BEFORE, after, 60), skew(15, 60));
    }

    #[test]
    fn skew_keeps_margin_with_faster_arm() {
        // 0.8 ms and a margin of 0.2; then 0.5 and 0.2, which is 7 sectors.
        let after = Timing { switch_ns: 500_000, ..BEFORE };
        assert_eq!(skew_after(skew(10, 60), BEFORE, after, 60), skew(7, 60));
    }

    #[test]
    fn skew_keeps_angle_with_denser_sectors() {
        assert_eq!(skew_after(skew(10, 60), BEFORE, BEFORE, 120), skew(20, 120));
        // 100 / 6 sectors are 16.7.
        assert_eq!(skew_after(skew(10, 60), BEFORE, BEFORE, 100), skew(17, 100));
    }

    #[test]
    fn skew_without_effect_gains_switch_hiding() {
        // 0.8 ms of 4 are 12 sectors of 60, and one more because edges are rounded.
        let after = Timing { period_ns: 4_000_000, ..BEFORE };
        assert_eq!(skew_after(skew(0, 1), BEFORE, after, 60), skew(13, 60));
    }

    #[test]
    fn skew_of_long_switch_drops_whole_turns() {
        // 0.8 ms are 1.6 turns of 0.5 ms, and 0.2 ms of margin 0.4.
        let after = Timing { period_ns: 500_000, ..BEFORE };
        assert_eq!(skew_after(skew(10, 60), BEFORE, after, 60), skew(0, 60));
    }
}
