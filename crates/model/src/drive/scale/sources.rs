//! Name of a scaled drive, and the sources of its values.

use std::slice;

use freewheel_units::SimDuration;

use super::Scaling;
use crate::spec::drive::{DriveSpec, Turn, ZoneSpec};

/// Scaled quantity, factor, and the section of tr03 that says so.
type Part = (&'static str, f64, &'static str);

/// Turns the name, the maker's name and the sources of the original into those of the scaled
/// drive. Every key that was scaled, with all below it, gets one source: `derived: ...`; of the
/// skews those do that changed. `original` has the same zones as they were before, and perhaps
/// more of them inwards.
pub fn describe(scaled: &mut DriveSpec, scaling: &Scaling, original: &DriveSpec) {
    let changed: Vec<(&str, f64)> =
        scaling.named().into_iter().filter(|(_, factor)| *factor != 1.0).collect();
    if changed.is_empty() {
        return;
    }
    for (name, factor) in changed {
        scaled.name += &format!("+{name}{}", digits(factor));
    }
    if !scaled.model.ends_with(SCALED) {
        scaled.model += SCALED;
    }
    replace(
        scaled,
        "model",
        format!("derived: {}'s, scaled (tr03 sections 3.3 and 5)", original.name),
    );
    describe_values(scaled, &original.name, scaling);
    describe_skews(scaled, original);
}

const SCALED: &str = ", scaled";

fn describe_values(scaled: &mut DriveSpec, original: &str, scaling: &Scaling) {
    let switches = scaled.electronics.read_write_switch > SimDuration::ZERO;
    let zoned = scaled.zoned.is_some();
    let tracks = |what| (what, scaling.track_density, "5.2.2");
    let mut derive = |key: &str, parts: &[Part]| {
        if let Some(text) = derived(original, parts) {
            replace(scaled, key, text);
        }
    };
    derive("surfaces", &[("number", scaling.surfaces, "3.3")]);
    // Section 5.1.1 speaks of seeks; the head switch goes with them by our assumption.
    derive("head_switch", &[("time, assumed to go with the seeks,", scaling.seek, "5.1.1")]);
    derive("seek", &[("times", scaling.seek, "5.1.1"), tracks("distances")]);
    if switches {
        derive(
            "electronics.read_write_switch",
            &[("time, assumed to go with the seeks,", scaling.seek, "5.1.1")],
        );
    }
    if zoned {
        derive(
            "zoned.conventional_zones",
            &[
                ("number", scaling.linear_density, "5.2.1"),
                tracks("number"),
                ("number", scaling.surfaces, "3.3"),
            ],
        );
    }
    derive("rotation_period", &[("speed", scaling.rpm, "5.1.2")]);
    derive("cylinders", &[tracks("number")]);
    derive(
        "zones",
        &[
            ("blocks a track", scaling.linear_density, "5.2.1"),
            tracks("cylinders"),
            ("blocks", scaling.surfaces, "3.3"),
        ],
    );
    scaled.sources.retain(|key, _| !is_below(key, "advertised") && !is_below(key, "measured_on"));
}

fn is_below(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The skews of a zone that a key gives.
type Skews = fn(&ZoneSpec) -> &[Turn];

fn describe_skews(scaled: &mut DriveSpec, original: &DriveSpec) {
    let skews: [(&str, Skews); 3] = [
        ("zones.track_skew", |zone| slice::from_ref(&zone.track_skew)),
        ("zones.cylinder_skew", |zone| slice::from_ref(&zone.cylinder_skew)),
        ("zones.band_skews", |zone| &zone.band_skews),
    ];
    for (key, skews) in skews {
        let mut zones = original.zones.iter().zip(&scaled.zones);
        if zones.all(|(before, after)| skews(before) == skews(after)) {
            continue;
        }
        let text = format!(
            "derived: {}'s margin over the switch to the next track, in whole sectors (tr03 \
             section 5)",
            original.name
        );
        replace(scaled, key, text);
    }
}

/// None when no part has changed.
fn derived(original: &str, parts: &[Part]) -> Option<String> {
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, factor, _)| *factor != 1.0)
        .map(|(what, factor, section)| {
            format!("{what} x{} (tr03 section {section})", digits(*factor))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("derived: {original}'s, {}", parts.join(", ")))
}

fn is_skew(entry: &str) -> bool {
    entry.ends_with("_skew") || entry.ends_with("_skews")
}

/// Skews of zones have sources of their own, for other factors change them.
fn replace(scaled: &mut DriveSpec, key: &str, text: String) {
    let below = format!("{key}.");
    scaled.sources.retain(|entry, _| !is_covered(entry, key, &below));
    scaled.sources.insert(key.into(), text);
}

fn is_covered(entry: &str, key: &str, below: &str) -> bool {
    entry == key || (entry.starts_with(below) && !is_skew(entry))
}

/// Three decimals, without zeros at the end.
fn digits(factor: f64) -> String {
    let text = format!("{factor:.3}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}
