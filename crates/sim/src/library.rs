//! Drives by name: those that ship with Freewheel, and files.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::drive::{BuildDriveError, Drive};
use freewheel_trace::read_text;
use freewheel_units::did_you_mean;
use thiserror::Error;

use crate::black_box::EmulatedDriveError;
use crate::toml_faults;

/// The drives of `drives/`, by name.
const SHIPPED: &[(&str, &str)] = &[
    ("archive-st5000as0011-5tb", include_str!("../../../drives/archive-st5000as0011-5tb.toml")),
    ("atlas10k", include_str!("../../../drives/atlas10k.toml")),
    ("barracuda-7200-11-320gb", include_str!("../../../drives/barracuda-7200-11-320gb.toml")),
    ("barracuda-7200-9-160gb", include_str!("../../../drives/barracuda-7200-9-160gb.toml")),
    ("barracuda-st2000dm006-2tb", include_str!("../../../drives/barracuda-st2000dm006-2tb.toml")),
    ("cheetah-15k7-450gb", include_str!("../../../drives/cheetah-15k7-450gb.toml")),
    ("cheetah18lp", include_str!("../../../drives/cheetah18lp.toml")),
    ("cheetah4lp", include_str!("../../../drives/cheetah4lp.toml")),
    ("cheetah9lp", include_str!("../../../drives/cheetah9lp.toml")),
    ("exos-2x18-18tb", include_str!("../../../drives/exos-2x18-18tb.toml")),
    ("exos-7e8-8tb", include_str!("../../../drives/exos-7e8-8tb.toml")),
    ("exos-x16-16tb", include_str!("../../../drives/exos-x16-16tb.toml")),
    ("exos-x18-18tb", include_str!("../../../drives/exos-x18-18tb.toml")),
    ("exos-x20-20tb", include_str!("../../../drives/exos-x20-20tb.toml")),
    ("exos-x24-24tb", include_str!("../../../drives/exos-x24-24tb.toml")),
    ("hitachi-7k1000c-1tb", include_str!("../../../drives/hitachi-7k1000c-1tb.toml")),
    ("hitachi-7k80-82gb", include_str!("../../../drives/hitachi-7k80-82gb.toml")),
    ("mg08-16tb", include_str!("../../../drives/mg08-16tb.toml")),
    ("mg09-18tb", include_str!("../../../drives/mg09-18tb.toml")),
    ("mg11-24tb", include_str!("../../../drives/mg11-24tb.toml")),
    ("samsung-f3-1tb", include_str!("../../../drives/samsung-f3-1tb.toml")),
    ("toshiba-p300-3tb", include_str!("../../../drives/toshiba-p300-3tb.toml")),
    ("toshiba-x300-5tb", include_str!("../../../drives/toshiba-x300-5tb.toml")),
    ("tr96", include_str!("../../../drives/tr96.toml")),
    ("ultrastar-hc310-6tb", include_str!("../../../drives/ultrastar-hc310-6tb.toml")),
    ("ultrastar-hc550-18tb", include_str!("../../../drives/ultrastar-hc550-18tb.toml")),
    ("ultrastar-hc560-20tb", include_str!("../../../drives/ultrastar-hc560-20tb.toml")),
    ("ultrastar-hc580-24tb", include_str!("../../../drives/ultrastar-hc580-24tb.toml")),
    ("ultrastar-hc620-14tb", include_str!("../../../drives/ultrastar-hc620-14tb.toml")),
    ("ultrastar-hc680-28tb", include_str!("../../../drives/ultrastar-hc680-28tb.toml")),
    ("ultrastar73lzx", include_str!("../../../drives/ultrastar73lzx.toml")),
    ("ultrastar9es", include_str!("../../../drives/ultrastar9es.toml")),
    ("wd-s25-300gb", include_str!("../../../drives/wd-s25-300gb.toml")),
    ("wd-se16-250gb", include_str!("../../../drives/wd-se16-250gb.toml")),
];

/// Their specs, each read once a process: a sweep asks for one with every configuration.
static SHIPPED_SPECS: [OnceLock<DriveSpec>; SHIPPED.len()] =
    [const { OnceLock::new() }; SHIPPED.len()];

/// The drive used where none is named: one of today.
pub const DEFAULT_DRIVE: &str = "exos-x24-24tb";

/// Reason why there is no such drive.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum DriveError {
    /// Neither a shipped drive nor a file.
    #[error(
        "no drive is called `{name}`: give one that ships, or the path of a drive file{}",
        did_you_mean(name, names())
    )]
    Unknown { name: String },
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
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
    /// The drive cannot be emulated.
    #[error(transparent)]
    Emulated(#[from] EmulatedDriveError),
}

/// Names of the shipped drives, sorted.
pub fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

/// The spec of a shipped drive, or of the drive file at this path.
pub fn spec(name_or_path: &str) -> Result<DriveSpec, DriveError> {
    let Some(number) = SHIPPED.iter().position(|(shipped, _)| *shipped == name_or_path) else {
        return parse(&text(name_or_path)?, name_or_path);
    };
    if let Some(known) = SHIPPED_SPECS[number].get() {
        return Ok(known.clone());
    }
    let spec = parse(SHIPPED[number].1, name_or_path)?;
    Ok(SHIPPED_SPECS[number].get_or_init(|| spec).clone())
}

/// The file of a shipped drive, or the one at this path, as it is.
pub fn text(name_or_path: &str) -> Result<Cow<'static, str>, DriveError> {
    if let Some(text) = shipped(name_or_path) {
        return Ok(Cow::Borrowed(text));
    }
    let path = Path::new(name_or_path);
    if !is_file(name_or_path, path) {
        return Err(DriveError::Unknown { name: name_or_path.into() });
    }
    let text = read_text(path).map_err(|source| DriveError::Read { path: path.into(), source })?;
    Ok(Cow::Owned(text))
}

/// Makes a drive's path that is relative to `folder` relative to the current folder.
pub fn from_folder(name_or_path: &str, folder: &Path) -> String {
    let path = folder.join(name_or_path);
    if shipped(name_or_path).is_none() && is_file(name_or_path, &path) {
        path.display().to_string()
    } else {
        name_or_path.into()
    }
}

/// The path of a drive file; None of a shipped drive.
pub fn file(name_or_path: &str) -> Option<PathBuf> {
    shipped(name_or_path).is_none().then(|| PathBuf::from(name_or_path))
}

fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

/// True if `name_or_path` means a file and no shipped drive: the file is there, or would be at `path`.
fn is_file(name_or_path: &str, path: &Path) -> bool {
    path.exists() || name_or_path.contains(['/', '.'])
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

/// The spec that the text of a drive file says; `origin` names it in errors.
pub fn parse(text: &str, origin: &str) -> Result<DriveSpec, DriveError> {
    toml_faults::read(text)
        .map_err(|fault| DriveError::Parse { origin: origin.into(), message: fault.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use freewheel_model::drive::Quantity;
    use freewheel_model::electronics::spec::SectorFormat;
    use freewheel_model::electronics::{DriveUnit, random_checks};
    use freewheel_units::{BLOCK_BYTES, Lbn, Op, SimDuration, SimTime};

    #[test]
    fn drive_identity_ignores_queue_not_seek() {
        let spec = spec(DEFAULT_DRIVE).unwrap();
        let is_same = |change: fn(&mut DriveSpec)| {
            let mut changed = spec.clone();
            change(&mut changed);
            assert_ne!(changed, spec);
            Drive::is_same(&spec, &changed)
        };
        assert!(is_same(|spec| spec.electronics.queue.as_mut().unwrap().depth = 1));
        assert!(is_same(|spec| spec.electronics.buffer.as_mut().unwrap().segments += 1));
        assert!(!is_same(|spec| spec.seek.write_settle += SimDuration::from_us(1)));
        assert!(!is_same(|spec| spec.electronics.sector = SectorFormat::Native4096));
        // None can be built.
        assert!(!is_same(|spec| spec.electronics.queue.as_mut().unwrap().depth = 0));
    }

    #[test]
    fn shipped_drives_build_under_file_names() {
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

    /// Dotted keys of all values of a table, those of `zones` once and not by number.
    fn keys_of(prefix: &str, value: &toml::Value) -> Vec<String> {
        match value {
            toml::Value::Table(table) => table
                .iter()
                .flat_map(|(key, value)| keys_of(&format!("{prefix}.{key}"), value))
                .collect(),
            toml::Value::Array(list) if list.iter().all(toml::Value::is_table) => {
                list.iter().flat_map(|value| keys_of(prefix, value)).collect()
            }
            _ => vec![prefix.trim_start_matches('.').to_owned()],
        }
    }

    #[test]
    fn shipped_drive_values_name_sources() {
        for (name, text) in SHIPPED {
            let mut file: toml::Table = text.parse().unwrap();
            file.remove("name");
            file.remove("sources");
            let spec = spec(name).unwrap();
            for key in keys_of("", &file.into()) {
                assert!(spec.source_of(&key).is_some(), "{name}: {key}");
            }
        }
    }

    /// Quantities that miss the maker's promise by more than their tolerance, with the largest miss. The
    /// reasons are in the drive files, under `advertised.known_misses`.
    const MISSES: &[(&str, Quantity, f64)] = &[
        ("atlas10k", Quantity::Capacity, 0.012),
        ("atlas10k", Quantity::MeanSeekRead, 0.13),
        ("cheetah-15k7-450gb", Quantity::OuterRate, 0.081),
        ("cheetah-15k7-450gb", Quantity::InnerRate, 0.032),
        ("cheetah4lp", Quantity::Capacity, 0.012),
        ("exos-2x18-18tb", Quantity::RandomWrites, 0.70),
        ("exos-x24-24tb", Quantity::RandomWrites, 0.25),
        ("ultrastar73lzx", Quantity::Capacity, 0.022),
        ("ultrastar73lzx", Quantity::OuterRate, 0.13),
        ("ultrastar73lzx", Quantity::InnerRate, 0.20),
        ("ultrastar9es", Quantity::Capacity, 0.015),
    ];

    #[test]
    fn shipped_drives_match_maker_data() {
        let mut missed = Vec::new();
        for name in names() {
            let (spec, drive) = drive(name).unwrap();
            let mut checks = drive.self_check(&spec.advertised);
            checks.extend(random_checks(&spec, &drive).unwrap());
            for check in checks.iter().filter(|check| check.passes() == Some(false)) {
                let miss = (name, check.quantity);
                let known = MISSES.iter().find(|known| (known.0, known.1) == miss);
                let off = check.deviation().unwrap_or_default();
                let allowed = known.map_or(0.0, |known| known.2);
                assert!(off.abs() <= allowed, "{miss:?}: {:.2} %", off * 100.0);
                missed.push(miss);
            }
            let misses = missed.iter().filter(|miss| miss.0 == name).map(|miss| miss.1);
            let reasons = spec.advertised.known_misses.keys().copied();
            let sorted = misses.collect::<std::collections::BTreeSet<_>>();
            assert!(
                reasons.eq(sorted),
                "{name}: each miss has its reason, and no other value has one"
            );
        }
        let known: Vec<_> = MISSES.iter().map(|miss| (miss.0, miss.1)).collect();
        assert_eq!(missed, known, "misses that are no longer ones leave the list");
    }

    #[test]
    fn shipped_buses_not_slower_than_media() {
        for name in names() {
            let (spec, drive) = drive(name).unwrap();
            let limit = spec.electronics.bus.and_then(|bus| drive.limit_of_bus(bus));
            assert_eq!(limit, None, "{name}");
        }
    }

    /// Bytes a second of reads of 64 KiB from block `first` on, each sent when the one before is done.
    fn sequential_rate(spec: &DriveSpec, drive: &Arc<Drive>, first: u64) -> f64 {
        const BLOCKS: u32 = 128;
        const READS: u64 = 300;
        let mut unit = DriveUnit::new(drive, &spec.electronics).unwrap();
        let mut read = |now, number| {
            let start = Lbn::new(first + number * u64::from(BLOCKS));
            unit.serve(now, Op::Read, start, BLOCKS).end
        };
        // The first one moves the arm there.
        let begin = read(SimTime::ZERO, 0);
        let end = (1..=READS).fold(begin, read);
        let bytes = READS * u64::from(BLOCKS) * BLOCK_BYTES;
        bytes as f64 / (end - begin).as_secs_f64()
    }

    #[test]
    fn sequential_reads_near_sustained_rate() {
        for name in names() {
            let (spec, drive) = drive(name).unwrap();
            let drive = Arc::new(drive);
            let last = spec.zones.len() - 1;
            for zone in [0, last / 2, last] {
                let (index, of_file) = drive.layout().file_zones().nth(zone).unwrap();
                let rate = sequential_rate(&spec, &drive, of_file.first_lbn.get());
                let sustained = drive.sustained_rate_bytes_per_second(index) as f64;
                println!("{name}, zone {zone}: {:.2} of {:.2} MB/s", rate / 1e6, sustained / 1e6);
                assert!(
                    (0.8..1.02).contains(&(rate / sustained)),
                    "{name}, zone {zone}: {rate:.0} of {sustained:.0} B/s"
                );
            }
        }
    }

    #[test]
    fn modern_drives_hold_advertised_capacity() {
        for name in names() {
            let (spec, drive) = drive(name).unwrap();
            let Some(capacity) =
                spec.advertised.capacity.filter(|_| spec.year.is_some_and(|year| year >= 2018))
            else {
                continue;
            };
            let off = drive.total_blocks().bytes().get() as f64 / capacity.get() as f64 - 1.0;
            assert!(off.abs() <= 0.001, "{name}: {off}");
        }
    }

    #[test]
    fn unknown_drive_answered_with_list() {
        assert!(spec("atlas").unwrap_err().to_string().contains("atlas10k"));
        assert!(matches!(spec("no/such.toml"), Err(DriveError::Read { .. })));
    }
}
