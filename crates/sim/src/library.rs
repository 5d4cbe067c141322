//! Drives by name: those that ship with Freewheel, and files.

use std::path::{Path, PathBuf};

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::drive::{BuildDriveError, Drive};
use thiserror::Error;

/// The drives of `drives/`, by name.
const SHIPPED: &[(&str, &str)] = &[
    ("atlas10k", include_str!("../../../drives/atlas10k.toml")),
    ("cheetah18lp", include_str!("../../../drives/cheetah18lp.toml")),
    ("cheetah4lp", include_str!("../../../drives/cheetah4lp.toml")),
    ("cheetah9lp", include_str!("../../../drives/cheetah9lp.toml")),
    ("exos-x24-24tb", include_str!("../../../drives/exos-x24-24tb.toml")),
    ("tr96", include_str!("../../../drives/tr96.toml")),
    ("ultrastar73lzx", include_str!("../../../drives/ultrastar73lzx.toml")),
    ("ultrastar9es", include_str!("../../../drives/ultrastar9es.toml")),
];

/// The drive used where none is named: one of today.
pub const DEFAULT_DRIVE: &str = "exos-x24-24tb";

/// Why there is no such drive.
#[derive(Debug, Error)]
pub enum DriveError {
    /// Neither a shipped drive nor a file.
    #[error("no drive is called `{name}`: there are {}, or give the path of a drive file", names().join(", "))]
    Unknown {
        /// The name given.
        name: String,
    },
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The text is not a drive file.
    #[error("{origin}: {message}")]
    Parse {
        /// The file or shipped drive.
        origin: String,
        /// Line, key and what is wrong.
        message: String,
    },
    /// The values do not make a drive.
    #[error("{origin}: {source}")]
    Build {
        /// The file or shipped drive.
        origin: String,
        /// Key, value and what is allowed.
        source: BuildDriveError,
    },
}

/// Names of the shipped drives, sorted.
pub fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// The spec of a shipped drive, or of the drive file at this path.
pub fn spec(name_or_path: &str) -> Result<DriveSpec, DriveError> {
    if let Some((name, text)) = SHIPPED.iter().find(|(name, _)| *name == name_or_path) {
        return parse(text, name);
    }
    let path = Path::new(name_or_path);
    if !path.exists() && !name_or_path.contains(['/', '.']) {
        return Err(DriveError::Unknown { name: name_or_path.into() });
    }
    let text = std::fs::read_to_string(path)
        .map_err(|source| DriveError::Read { path: path.into(), source })?;
    parse(&text, name_or_path)
}

/// The drive of that name or file, ready to answer.
pub fn drive(name_or_path: &str) -> Result<(DriveSpec, Drive), DriveError> {
    let spec = spec(name_or_path)?;
    let drive = build(&spec, name_or_path)?;
    Ok((spec, drive))
}

/// Builds a spec; `origin` names it in errors.
pub fn build(spec: &DriveSpec, origin: &str) -> Result<Drive, DriveError> {
    Drive::build(spec).map_err(|source| DriveError::Build { origin: origin.into(), source })
}

fn parse(text: &str, origin: &str) -> Result<DriveSpec, DriveError> {
    toml::from_str(text).map_err(|error| DriveError::Parse {
        origin: origin.into(),
        message: error.to_string().trim_end().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use freewheel_units::Op;

    #[test]
    fn every_file_in_drives_ships_under_its_name_and_builds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|file| file.strip_suffix(".toml").map(String::from))
            .collect();
        files.sort();
        assert_eq!(files, names());
        for name in names() {
            let (spec, _) = drive(name).unwrap();
            assert_eq!(spec.name, name);
        }
    }

    #[test]
    fn every_value_of_a_shipped_drive_names_its_source() {
        for name in names() {
            let spec = spec(name).unwrap();
            let mut keys = vec!["model", "year", "surfaces", "cylinders", "rotation_period"];
            keys.extend(["head_switch", "mapping", "seek.read", "seek.write_settle", "zones"]);
            keys.extend(["zones.track_skew", "advertised"]);
            if spec.zero_latency.read {
                keys.push("zero_latency");
            }
            for key in keys {
                assert!(spec.source_of(key).is_some(), "{name}: {key}");
            }
        }
    }

    #[test]
    fn capacities_and_mean_seeks_are_near_what_the_maker_promises() {
        for name in names() {
            let (spec, drive) = drive(name).unwrap();
            let near = |ours: f64, promised: f64, tolerance: f64| {
                let off = ours / promised - 1.0;
                assert!(off.abs() <= tolerance, "{name}: {ours} against {promised}");
            };
            if let Some(capacity) = spec.advertised.capacity {
                near(drive.blocks().bytes().get() as f64, capacity.get() as f64, 0.03);
            }
            if let Some(seek) = spec.advertised.average_seek_read {
                // The Atlas 10K's measured curve has a mean of 5.6 ms where 5.0 is advertised.
                near(drive.mean_seek(Op::Read).as_ms_f64(), seek.as_ms_f64(), 0.15);
            }
            if let Some(rate) = spec.advertised.outer_rate_per_second {
                near(drive.sustained_rate_bytes_per_second(0) as f64, rate.get() as f64, 0.15);
            }
        }
    }

    #[test]
    fn an_unknown_drive_is_answered_with_those_there_are() {
        assert!(spec("atlas").unwrap_err().to_string().contains("atlas10k"));
        assert!(matches!(spec("no/such.toml"), Err(DriveError::Read { .. })));
    }
}
