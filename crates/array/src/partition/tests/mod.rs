//! The equations against enumeration, numeric integration and simulation.

mod closed_forms;
mod figure_2;
mod fork_join;
mod repartition;
mod service_times;
mod workload;

use freewheel_units::Bytes;

use super::{DiskModel, DiskUse};
use freewheel_model::drive::Drive;

const LIBRARY: &[(&str, &str)] = &[
    ("tr96", include_str!("../../../../../drives/tr96.toml")),
    ("atlas10k", include_str!("../../../../../drives/atlas10k.toml")),
    ("cheetah4lp", include_str!("../../../../../drives/cheetah4lp.toml")),
    ("cheetah9lp", include_str!("../../../../../drives/cheetah9lp.toml")),
    ("cheetah18lp", include_str!("../../../../../drives/cheetah18lp.toml")),
    ("ultrastar9es", include_str!("../../../../../drives/ultrastar9es.toml")),
    ("ultrastar73lzx", include_str!("../../../../../drives/ultrastar73lzx.toml")),
    ("exos-7e8-8tb", include_str!("../../../../../drives/exos-7e8-8tb.toml")),
    ("exos-2x18-18tb", include_str!("../../../../../drives/exos-2x18-18tb.toml")),
    ("exos-x24-24tb", include_str!("../../../../../drives/exos-x24-24tb.toml")),
    ("mg11-24tb", include_str!("../../../../../drives/mg11-24tb.toml")),
    ("ultrastar-hc310-6tb", include_str!("../../../../../drives/ultrastar-hc310-6tb.toml")),
    ("ultrastar-hc580-24tb", include_str!("../../../../../drives/ultrastar-hc580-24tb.toml")),
    ("ultrastar-hc620-14tb", include_str!("../../../../../drives/ultrastar-hc620-14tb.toml")),
    ("ultrastar-hc680-28tb", include_str!("../../../../../drives/ultrastar-hc680-28tb.toml")),
];

fn drive(name: &str) -> Drive {
    let (_, text) = LIBRARY.iter().find(|(known, _)| *known == name).unwrap();
    Drive::build(&toml::from_str(text).unwrap()).unwrap()
}

/// Blocks of 1 KB and 70 % reads, as tr96.
fn usage(filled_share: f64) -> DiskUse {
    DiskUse { filled_share, read_share: 0.7, block: Bytes::new(1024) }
}

/// The paper's disk, half full.
fn tr96() -> DiskModel {
    DiskModel::of(&drive("tr96"), &usage(0.5))
}

/// True if `found` is within a `share` of `expected`.
#[track_caller]
fn assert_near(found: f64, expected: f64, share: f64) {
    assert!((found - expected).abs() <= share * expected.abs(), "{found} for {expected}");
}
