//! A drive file from what was measured.

use std::collections::BTreeMap;

use freewheel_model::drive::spec::{
    Advertised, ByOp, CurveSpec, DriveSpec, Mapping, SeekSpec, SpareUnit,
};
use freewheel_model::electronics::spec::{
    AfterOp, BufferSpec, BusSpec, ElectronicsSpec, OverheadSpec, ReadAhead,
};
use freewheel_units::SimDuration;

use super::buffer::Buffer;
use super::bus::BusFound;
use super::fit::{self, Choice};
use super::held_out::{self, Requests};
use super::layout;
use super::passages::TimingSpread;
use super::prober::Prober;
use super::sectors;
use super::surfaces::Surfaces;
use super::{Confidence, ExtractOptions, ExtractedSlip, ExtractedValue, Extraction, Found};

/// Standard deviations of an answer within which blocks are where they are thought to be.
const STANDARD_ERRORS: f64 = 4.0;
/// Answers of reads and writes that differ by less are alike.
const SAME_ANSWER_NS: f64 = 2_000.0;

pub(super) fn describe(
    found: &Found,
    options: &ExtractOptions,
    prober: &Prober<'_>,
    for_fit: &Requests,
    held_out: &Requests,
) -> Extraction {
    let first = spec(found, options);
    let fitted = fit::fitted(first.clone(), for_fit, duration(found.seek_error_ns));
    let (of_sectors, choices) = fitted.unwrap_or((first, Vec::new()));
    let mut values = values(found, &of_sectors, &choices);
    let mut spec = sectors::spec(of_sectors, found.sector);
    sectors::values(&mut values, &spec, found.sector);
    let sector = u64::from(found.sector.physical_blocks());
    let sources = values.iter().map(|value| (value.key.clone(), value.source.clone()));
    spec.sources = sources.collect::<BTreeMap<_, _>>();
    spec.held_out = held_out::compare(&spec, held_out, found.sector);
    let slips = found.zones.iter().flat_map(|zone| &zone.slips).map(|slip| ExtractedSlip {
        block: slip.before,
        count: slip.count,
        plus_minus: (slip.latest - slip.earliest).div_ceil(2),
    });
    let misplaced = found.verified.misplaced.iter();
    Extraction {
        commands: prober.commands(),
        writes: prober.writes(),
        drive_ns: prober.now().ns(),
        reply_jitter_ns: found.jitter_ns,
        slips: slips.map(|slip| slip.in_blocks(sector)).collect(),
        failed: prober.failed(),
        unreadable: prober.bad().map(|bad| bad * sector).collect(),
        verified: found.verified.count,
        verified_within_ns: found.verified.within_ns.round() as u64,
        misplaced: misplaced.map(|block| block.in_blocks(sector)).collect(),
        seeks: found.seeks.clone(),
        write_seeks: found.writes.as_ref().map_or(Vec::new(), |writes| writes.seeks.clone()),
        values,
        held_out: spec.held_out.clone(),
        spec,
    }
}

/// Drive file from the measurements; values that show in no single time are as simple as can be.
pub(super) fn spec(found: &Found, options: &ExtractOptions) -> DriveSpec {
    let writes = found.writes.as_ref();
    let settle_ns = writes.map_or(0.0, |writes| writes.settle_ns);
    let last = found.zones.last().map_or(0, |zone| zone.first_cylinder + zone.cylinders());
    let answers = Answers::of(found);
    let overhead = duration(found.overhead_ns - answers.before_host_ns());
    let mut spec = DriveSpec {
        name: options.name.clone(),
        model: "extracted by timing".into(),
        year: None,
        actuators: 1,
        surfaces: found.zones[0].surfaces() as u32,
        cylinders: last as u32,
        rotation_period: duration(found.period_ns),
        mapping: found.mapping.unwrap_or_default(),
        surface_offsets: Vec::new(),
        sparing: layout::sparing(&found.zones),
        head_switch: duration(found.head_switch_ns.unwrap_or_default()),
        seek: SeekSpec {
            read: curve(&found.seeks, 0.0),
            // Its values are without settling.
            write: writes.filter(|w| !w.like_reads).map(|w| curve(&w.seeks, settle_ns)),
            write_settle: duration(settle_ns),
            tolerance: SimDuration::ZERO,
        },
        zero_latency: ByOp::default(),
        overhead: ByOp {
            read: overhead,
            write: writes.map_or(overhead, |writes| {
                duration(writes.after_write_ns - answers.before_host_ns())
            }),
        },
        zones: layout::zones(
            &found.zones,
            answered_after(found),
            STANDARD_ERRORS * found.jitter_ns / found.period_ns,
        ),
        electronics: electronics(found),
        measured_on: None,
        zoned: None,
        advertised: Advertised::default(),
        held_out: Vec::new(),
        sources: BTreeMap::new(),
    };
    if let Some(surfaces) = &found.surfaces {
        surfaces.put_into(&mut spec, answered_after(found));
    }
    spec
}

fn curve(seeks: &[(u32, u64)], less_ns: f64) -> CurveSpec {
    CurveSpec::Table { cylinders_ms: seeks.iter().map(|&(d, ns)| (d, ms(ns, less_ns))).collect() }
}

fn ms(ns: u64, less_ns: f64) -> f64 {
    (ns as f64 - less_ns).max(0.0) / 1e6
}

fn duration(ns: f64) -> SimDuration {
    SimDuration::from_ns(ns.round() as u64)
}

/// Turns from when a block has passed the head to its answer.
pub(super) fn answered_after(found: &Found) -> f64 {
    Answers::of(found).before_host_ns() / found.period_ns
}

/// Answers that come later than others after their block has passed. What all of them take is in the
/// overheads.
struct Answers {
    /// The last block of a read on the bus.
    bus_ns: f64,
    read_ns: f64,
    write_ns: f64,
}

impl Answers {
    fn of(found: &Found) -> Self {
        let bus_ns = found.bus.time().map_or(0.0, |bus| bus.block_ns);
        // The data of a write are across before.
        let late = found.writes.as_ref().map_or(0.0, |writes| writes.late_ns + bus_ns);
        let late = if late.abs() > found.jitter_ns.max(SAME_ANSWER_NS) { late } else { 0.0 };
        Self { bus_ns, read_ns: (-late).max(0.0), write_ns: late.max(0.0) }
    }

    /// From when a block has passed to when the host has it.
    fn before_host_ns(&self) -> f64 {
        self.bus_ns + self.read_ns
    }
}

/// Command processing of reads and of writes that visit the media, and of their answers.
fn overheads(found: &Found) -> OverheadSpec {
    let answers = Answers::of(found);
    let read = time(found.overhead_ns, &answers);
    let (read_miss, write_miss) = match &found.writes {
        None => (AfterOp::both(read), AfterOp::both(read)),
        Some(writes) => (
            AfterOp { after_read: read, after_write: time(writes.read_after_write_ns, &answers) },
            AfterOp {
                after_read: time(writes.after_read_ns, &answers),
                after_write: time(writes.after_write_ns, &answers),
            },
        ),
    };
    let hit = found.buffer.map_or(read, |buffer| time(buffer.hit.ns() as f64, &answers));
    OverheadSpec {
        read_hit: AfterOp::both(hit),
        read_miss,
        write_hit: AfterOp::both(hit),
        write_miss,
        read_completion: duration(answers.read_ns),
        write_completion: duration(answers.write_ns),
    }
}

fn time(ns: f64, answers: &Answers) -> SimDuration {
    duration(ns - answers.before_host_ns())
}

fn electronics(found: &Found) -> ElectronicsSpec {
    let writes = found.writes.as_ref();
    let is_known = found.buffer.is_some() || writes.is_some() || found.bus.time().is_some();
    ElectronicsSpec {
        buffer: found.buffer.map(|buffer| buffer_spec(found, buffer)),
        overheads: is_known.then(|| overheads(found)),
        bus: found
            .bus
            .time()
            .map(|bus| BusSpec { block_time: duration(bus.block_ns), ..BusSpec::default() }),
        read_write_switch: duration(writes.map_or(0.0, |writes| writes.switch_ns)),
        ..ElectronicsSpec::default()
    }
}

fn buffer_spec(found: &Found, buffer: Buffer) -> BufferSpec {
    let longest = found.zones.iter().map(|zone| zone.per_track).max().unwrap_or(1);
    let read_ahead = if buffer.ahead == 0 { ReadAhead::None } else { ReadAhead::Segment };
    BufferSpec {
        segments: buffer.segments,
        segment_blocks: 2 * longest as u32,
        write_segments: 1,
        read_ahead,
        read_ahead_max_blocks: buffer.ahead as u32,
        keep_free_blocks_before: buffer.behind > 0,
        ..BufferSpec::default()
    }
}

/// All values with how sure they are.
fn values(found: &Found, spec: &DriveSpec, choices: &[Choice]) -> Vec<ExtractedValue> {
    let mut values = Vec::new();
    let mut push = |key: &str, value: String, confidence: Confidence, how: String| {
        let source = match confidence {
            Confidence::Assumed | Confidence::Unobservable => format!("assumed: {how}"),
            _ => format!("extracted: {how}"),
        };
        values.push(ExtractedValue { key: key.into(), value, confidence, source });
    };
    use Confidence::{Approximate, Assumed, Measured};
    push("model", "extracted by timing".into(), Assumed, "the drive was not asked".into());
    push("year", "not known".into(), Assumed, "the drive was not asked".into());
    mechanics(found, spec, &mut push);
    let zones = spec.zones.len().to_string();
    let start_us = found.zone_start_error_ns / 1e3;
    let how = format!(
        "by bisection over the angles of blocks, exact; +- {start_us:.2} us of a zone's first angle"
    );
    let (read, elsewhere) = (found.verified.count, found.verified.misplaced.len());
    let within = us(found.verified.within_ns);
    match elsewhere {
        0 => push(
            "zones",
            zones,
            Measured,
            format!("{how}; of {read} blocks read afterwards all pass the head there, +- {within}"),
        ),
        _ => push(
            "zones",
            zones,
            Assumed,
            format!(
                "WRONG: of {read} blocks read afterwards {elsewhere} lie elsewhere than this file says, \
             the drive lays them out in a way that is not understood; do not use it"
            ),
        ),
    }
    let how = "the rest of a zone's last cylinder, +- whole cylinders that no block lies in";
    push("zones.spares", "a number each".into(), Approximate, how.into());
    mapping(found, &mut push);
    let sparing = layout::sparing(&found.zones);
    if sparing.unit == SpareUnit::Zone {
        push("sparing", "zone".into(), Assumed, "spares behind the data of each zone".into());
    } else {
        let how = "from where the data go on behind those of a track, a cylinder or a range, exact";
        push("sparing", format!("{:?}", sparing.unit), Measured, how.into());
    }
    writing(found, &mut push);
    push("seek.tolerance", "0".into(), Assumed, "not measured".into());
    electronics_sources(found, &mut push);
    chosen(found, spec, choices, &mut push);
    values
}

fn mechanics(
    found: &Found,
    spec: &DriveSpec,
    push: &mut impl FnMut(&str, String, Confidence, String),
) {
    use Confidence::{Approximate, Measured, Unobservable};
    let period = format!("{:.3} ns", found.period_ns);
    let ppm = found.period_error_ns / found.period_ns * 1e6;
    let wander = found.wander;
    // The spindle may drift again as it did meanwhile.
    let off = wander.map_or(0.0, |wander| wander.most.max(-wander.least) * 1e6);
    // Of the file, which has whole nanoseconds.
    let rounded = (found.period_ns.round() - found.period_ns).abs() / found.period_ns * 1e6;
    let how = format!(
        "folded answers over all the extraction, +- {:.6} ppm{}",
        ppm.max(off) + rounded,
        wander.map_or(String::new(), |wander| changes(&wander))
    );
    push("rotation_period", period, Measured, how);
    let zone = &found.zones[0];
    let (confidence, how) = match zone.surfaces() {
        _ if found.surfaces.is_some() => {
            (Measured, "after how many runs of tracks densities come again")
        }
        _ if zone.in_bands.is_some() => {
            (Measured, "after how many runs of tracks movements go on to other cylinders")
        }
        1 => (Unobservable, "all skews are alike, as with one head"),
        _ if zone.track_skew == zone.cylinder_step => {
            (Measured, "skews are all alike; from where in the zones movements change heads")
        }
        _ => (Measured, "the pattern in which skews repeat, exact"),
    };
    push("surfaces", spec.surfaces.to_string(), confidence, how.into());
    push("cylinders", spec.cylinders.to_string(), Measured, "tracks over heads, exact".into());
    if !spec.surface_offsets.is_empty() {
        let how = "the middle of the tracks that a movement from the first surface reaches in the same time";
        push("surface_offsets", format!("{:?}", spec.surface_offsets), Approximate, how.into());
    }
    let error = us(found.seek_error_ns);
    let how = format!(
        "the least lag of a read on the track where the head is, what an answer takes included, \
         +- {error}"
    );
    push("overhead.read", us(found.overhead_ns), Approximate, how);
    let how = format!("the least lag with which half of the reads are in time, +- {error}");
    match found.head_switch_ns {
        Some(measured) => {
            let less = measured - spec.head_switch.ns() as f64;
            // Both are whole nanoseconds but for rounding.
            let how = if less > 1.0 {
                format!(
                    "{how}; {} less than that, as else reads over the ends of tracks would lose turns",
                    us(less)
                )
            } else {
                how.clone()
            };
            push("head_switch", us(spec.head_switch.ns() as f64), Approximate, how);
        }
        None => push("head_switch", us(0.0), Unobservable, "there is one head".into()),
    }
    push("seek", format!("{} distances", found.seeks.len()), Approximate, how);
}

/// The order of tracks, as far as it shows.
fn mapping(found: &Found, push: &mut impl FnMut(&str, String, Confidence, String)) {
    use Confidence::{Measured, Unobservable};
    let hidden = "the order of heads makes no difference to any time";
    let Some(mapping) = found.mapping else {
        return push("mapping", "Cylinder".into(), Unobservable, hidden.into());
    };
    let how = "from which tracks of two cylinders are next to each other, exact";
    push("mapping", format!("{mapping:?}"), Measured, how.into());
    if let Some(surfaces) = &found.surfaces {
        let how = "from which end of a band on the second surface is nearer to the first, exact";
        let (sure, how) = match surfaces.cylinders_turn {
            Some(_) => (Measured, how),
            None => (Unobservable, "the direction of surfaces makes no difference to any time"),
        };
        return push("mapping.cylinder_order", String::from(order(surfaces)), sure, how.into());
    }
    if let Mapping::Band { surface_order, .. } = mapping {
        let turn = found.zones[0].in_bands.and_then(|bands| bands.surfaces_turn);
        let (sure, how) = match turn {
            Some(_) => (Measured, "from which surface a movement to the next band is short, exact"),
            None => (Unobservable, hidden),
        };
        push("mapping.surface_order", format!("{surface_order:?}"), sure, how.into());
    }
}

fn order(surfaces: &Surfaces) -> &'static str {
    match surfaces.cylinders_turn {
        Some(true) => "Serpentine",
        _ => "Forward",
    }
}

/// Words about the period's change: steady, or the times of a turn between which it varied.
fn changes(wander: &TimingSpread) -> String {
    let [least, most] = [wander.least, wander.most].map(|parts| parts * 1e6);
    let hours = wander.within.as_secs_f64() / 3600.0;
    let seconds = wander.within.as_secs_f64();
    match wander.change.map(|parts| parts * 1e6) {
        Some(change) => {
            let which = if change < 0.0 { "shorter" } else { "longer" };
            format!(
                "; from the first minutes to the last it became {:.3} ppm {which} in {seconds:.0} s, \
                 {:+.3} ppm an hour",
                change.abs(),
                change / hours
            )
        }
        None => format!(
            "; it wandered between {least:+.3} and {most:+.3} ppm of that in {seconds:.0} s"
        ),
    }
}

/// Values found by writing, or that no block was written.
fn writing(found: &Found, push: &mut impl FnMut(&str, String, Confidence, String)) {
    use Confidence::{Approximate, Assumed};
    let Some(writes) = &found.writes else {
        push("overhead.write", "as of reads".into(), Assumed, "nothing was written".into());
        push("seek.write_settle", "0".into(), Assumed, "nothing was written".into());
        return;
    };
    let error = us(writes.error_ns);
    let how = format!("the least lag of a write on the track where the head wrote, +- {error}");
    push("overhead.write", us(writes.after_write_ns), Approximate, how);
    let how = format!("how much longer movements before writes take in the middle, +- {error}");
    push("seek.write_settle", us(writes.settle_ns), Approximate, how);
    if !writes.like_reads {
        let how = format!("the least lag with which half of the writes are in time, +- {error}");
        push("seek.write", format!("{} distances", writes.seeks.len()), Approximate, how);
    }
    let how = format!(
        "by how much longer a write after a read takes on the same track than elsewhere, +- {error}"
    );
    push("electronics.read_write_switch", us(writes.switch_ns), Approximate, how);
}

fn us(ns: f64) -> String {
    format!("{:.1} us", ns / 1e3)
}

fn electronics_sources(found: &Found, push: &mut impl FnMut(&str, String, Confidence, String)) {
    use Confidence::{Approximate, Assumed, Measured};
    let Some(buffer) = found.buffer else { return };
    let how = "reads elsewhere after which a block is gone, +- 1";
    push("electronics.buffer", buffer.segments.to_string(), Measured, how.into());
    push("electronics.buffer.write_segments", "1".into(), Assumed, "nothing was written".into());
    let how = "the mean of reads that the buffer served; others as overhead.read; +- 5 us";
    push("electronics.overheads", buffer.hit.to_string(), Approximate, how.into());
}

/// Words about the value that explains requests near one another better than all others tried.
fn chosen(
    found: &Found,
    spec: &DriveSpec,
    choices: &[Choice],
    push: &mut impl FnMut(&str, String, Confidence, String),
) {
    use Confidence::{Approximate, Assumed, Unobservable};
    match found.bus {
        BusFound::Time(bus) => {
            let how = match found.buffer {
                Some(_) => format!("how much longer hits of {} blocks take", bus.blocks),
                None => format!("how far the bus is behind after {} blocks", bus.blocks),
            };
            let how = format!("{how}, +- {:.3} us", bus.error_ns / 1e3);
            push("electronics.bus.block_time", us(bus.block_ns), Approximate, how);
        }
        BusFound::NoTime => {
            let how = "longer answers take no longer than the media";
            push("electronics.bus", us(0.0), Unobservable, how.into());
        }
        BusFound::NotMeasured => {
            let how =
                "not measured: too few reads of several blocks were answered as they were due";
            push("electronics.bus", us(0.0), Assumed, how.into());
        }
    }
    for key in fit::KEYS {
        let Some(value) = fit::value(spec, key) else { continue };
        let choice = choices.iter().find(|choice| choice.key == key);
        let Some((choice, other)) = choice.and_then(|choice| Some((choice, choice.nearest()?)))
        else {
            push(key, value, Assumed, "no requests were served to tell".into());
            continue;
        };
        let [misfit, lead, error] = [choice.misfit_ns, other.lead_ns, other.error_ns].map(us);
        let how = format!(
            "what explains reads near one another best: they are off by {misfit} in the mean, by {lead} \
             (+- {error}) more with {}, the next best",
            other.value
        );
        let (sure, how) = match value.parse().map(|number| choice.range(number)) {
            Err(_) => (choice.confidence(), how),
            Ok(None) => (Unobservable, how),
            Ok(Some([least, most])) => {
                (Approximate, format!("{how}; {least} to {most} explain them as well"))
            }
        };
        push(key, value, sure, how);
    }
}

#[cfg(test)]
mod tests {
    use freewheel_units::SimDuration;

    use super::*;

    #[test]
    fn period_change_shows_direction_and_hourly_rate() {
        let within = SimDuration::from_secs(1800);
        let wander = TimingSpread { least: -1e-6, most: 2e-6, change: None, within };
        assert_eq!(
            changes(&wander),
            "; it wandered between -1.000 and +2.000 ppm of that in 1800 s"
        );
        let steady = |change| changes(&TimingSpread { change: Some(change), ..wander });
        assert!(steady(3e-6).contains("3.000 ppm longer in 1800 s, +6.000 ppm an hour"));
        assert!(steady(-3e-6).contains("3.000 ppm shorter in 1800 s, -6.000 ppm an hour"));
    }
}
