//! Skews of a scaled drive: "as we scale the performance of the disk, we adjust the skews to make
//! sure that the disk does not miss revolutions" (tr03 section 5).

use freewheel_units::Op;

use super::Scaling;
use crate::drive::mechanics::Drive;
use crate::drive::spec::{DriveSpec, Mapping, Order, Turn};

/// What lies between the end of a track and the start of the next.
#[derive(Debug, Clone, Copy)]
struct Switch {
    distance: u32,
    changes_head: bool,
}

/// What the three skews of a zone hide.
struct Switches {
    track: Switch,
    cylinder: Switch,
    band: Switch,
}

impl Switches {
    fn of(spec: &DriveSpec) -> Self {
        let several = spec.surfaces > 1;
        let next = |changes_head| Switch { distance: 1, changes_head };
        let in_place = Switch { distance: 0, changes_head: true };
        match spec.mapping {
            Mapping::Cylinder => {
                Self { track: in_place, cylinder: next(several), band: next(several) }
            }
            Mapping::Serpentine | Mapping::SerpentineByZone => {
                Self { track: in_place, cylinder: next(false), band: next(false) }
            }
            Mapping::Band { cylinders, cylinder_order, surface_order } => {
                let turns = cylinder_order == Order::Serpentine;
                let back = if turns { 0 } else { cylinders - 1 };
                // A band may end at its far edge or at its near one: the longer way counts.
                let on = if turns { cylinders } else { 1 };
                Self {
                    track: Switch { distance: back, changes_head: true },
                    cylinder: next(false),
                    band: Switch {
                        distance: on,
                        changes_head: several && surface_order == Order::Forward,
                    },
                }
            }
        }
    }
}

/// The time a skew has to hide, and the turn that it is a part of.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Timing {
    switch_ns: u64,
    period_ns: u64,
}

/// Gives the zones of `scaled` their skews: in time as long as before, but for what the switch to
/// the next track has become shorter or longer, and never shorter than that switch; in angle
/// rounded up to whole sectors. Where neither a time nor a sector has changed, skews stay.
///
/// A switch that takes longer than a turn loses its whole turns, whatever the skew.
pub fn choose(scaled: &mut DriveSpec, scaling: &Scaling, original: &Drive, built: &Drive) {
    let Switches { track, cylinder, band } = Switches::of(scaled);
    let resectored = scaling.linear_density != 1.0;
    let [track, cylinder, band] =
        [track, cylinder, band].map(|switch| [timing(original, switch), timing(built, switch)]);
    for zone in &mut scaled.zones {
        let choose = |skew: Turn, [before, after]: [Timing; 2]| {
            if before == after && !resectored {
                return skew;
            }
            skew_after(skew, before, after, zone.blocks_per_track)
        };
        zone.track_skew = choose(zone.track_skew, track);
        zone.cylinder_skew = choose(zone.cylinder_skew, cylinder);
        let bands = zone.band_skews.iter().map(|skew| choose(*skew, band));
        zone.band_skews = bands.collect();
    }
}

fn timing(drive: &Drive, switch: Switch) -> Timing {
    let layout = drive.layout();
    let cylinders = layout.zones().iter().map(|zone| zone.first_cylinder() + zone.cylinders());
    // A drive of one cylinder never leaves it.
    let distance = switch.distance.min(cylinders.max().unwrap_or(1) - 1);
    let time = |op| drive.seek().time_ns(op, distance, switch.changes_head);
    Timing {
        switch_ns: time(Op::Read).max(time(Op::Write)),
        period_ns: drive.rotation().period().ns(),
    }
}

/// All in nanoseconds times 2^64, which a skew's fraction of a turn fits without a float.
fn skew_after(skew: Turn, before: Timing, after: Timing, sectors: u32) -> Turn {
    let fixed = |ns: u64| i128::from(ns) << 64;
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

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Timing = Timing { switch_ns: 800_000, period_ns: 6_000_000 };

    fn skew(numerator: u64, denominator: u64) -> Turn {
        Turn::from_ratio(numerator, denominator).unwrap()
    }

    #[test]
    fn a_faster_spindle_keeps_the_time_and_so_takes_a_larger_angle() {
        // 1 ms of 6 in 60 sectors of 100 us; then of 4 in 60 sectors of 67 us.
        let after = Timing { period_ns: 4_000_000, ..BEFORE };
        assert_eq!(skew_after(skew(10, 60), BEFORE, after, 60), skew(15, 60));
    }

    #[test]
    fn a_faster_arm_keeps_the_margin() {
        // 0.8 ms and a margin of 0.2; then 0.5 and 0.2, which is 7 sectors.
        let after = Timing { switch_ns: 500_000, ..BEFORE };
        assert_eq!(skew_after(skew(10, 60), BEFORE, after, 60), skew(7, 60));
    }

    #[test]
    fn denser_sectors_keep_the_angle_and_a_part_of_a_sector_counts_as_one() {
        assert_eq!(skew_after(skew(10, 60), BEFORE, BEFORE, 120), skew(20, 120));
        // 100 / 6 sectors are 16.7.
        assert_eq!(skew_after(skew(10, 60), BEFORE, BEFORE, 100), skew(17, 100));
    }

    #[test]
    fn a_skew_that_hid_nothing_hides_the_switch_when_times_change() {
        // 0.8 ms of 4 are 12 sectors of 60, and one more because edges are rounded.
        let after = Timing { period_ns: 4_000_000, ..BEFORE };
        assert_eq!(skew_after(skew(0, 1), BEFORE, after, 60), skew(13, 60));
    }

    #[test]
    fn a_switch_longer_than_a_turn_leaves_its_whole_turns_out() {
        // 0.8 ms are 1.6 turns of 0.5 ms, and 0.2 ms of margin 0.4.
        let after = Timing { period_ns: 500_000, ..BEFORE };
        assert_eq!(skew_after(skew(10, 60), BEFORE, after, 60), skew(0, 60));
    }
}
