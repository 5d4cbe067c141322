//! `dm_disk`: geometry and mechanics.

use std::collections::BTreeMap;

use freewheel_model::drive::spec::{Advertised, ByOp, DriveSpec, SeekSpec, ZoneSpec};
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_units::SimDuration;

use crate::error::{ImportError, unrepresentable, wrong};
use crate::fields::{Fields, Leftover, Report, block, text};
use crate::layout_g1::ImportedLayout;
use crate::lex::Texts;
use crate::number::Decimal;
use crate::parse::{Block, Param};
use crate::{layout_g1, layout_g4, seek};

const MECH_LEFTOVERS: &[Leftover] = &[
    Leftover {
        key: "Percent error in rpms",
        off: Some(0),
        why: "the spindle turns with a constant period",
    },
    Leftover { key: "Single cylinder seek time", off: None, why: UNUSED },
    Leftover { key: "Average seek time", off: None, why: UNUSED },
    Leftover { key: "Full strobe seek time", off: None, why: UNUSED },
    Leftover { key: "Constant seek time", off: None, why: UNUSED },
    Leftover { key: "HPL seek equation values", off: None, why: UNUSED },
    Leftover { key: "First ten seek times", off: None, why: UNUSED },
    Leftover { key: "Full seek curve", off: None, why: UNUSED },
    Leftover {
        key: "Constant access time",
        off: Some(0),
        why: "an access consists of seek, rotation and transfer",
    },
];
const UNUSED: &str = "the seek type does not use it";

struct Mechanics {
    seek: SeekSpec,
    head_switch: SimDuration,
    rotation_period: SimDuration,
}

/// The drive of a `dm_disk` block, without the electronics; and the capacity it states.
pub(crate) fn drive(
    source: &Block,
    texts: &mut Texts<'_>,
    report: &mut Report,
) -> Result<(DriveSpec, Option<u64>), ImportError> {
    let mut fields = Fields::new(source);
    let surfaces = fields.need_whole("Number of data surfaces", 64u32)?;
    let cylinders = fields.need_whole("Number of cylinders", 4_000_000u32)?;
    if surfaces == 0 || cylinders == 0 {
        return Err(wrong(&source.at, "a drive has at least one surface and one cylinder"));
    }
    let stated = fields.whole("Block count", u64::MAX)?;
    let mechanical = block(&fields.need("Mechanical Model")?.value, "Mechanical Model")?;
    let layout = block(&fields.need("Layout Model")?.value, "Layout Model")?;
    let ImportedLayout { mapping, sparing, zones } = layout_model(layout, surfaces, report)?;
    let cylinders =
        cylinders_of_zones(fields.need("Number of cylinders")?, cylinders, &zones, report);
    let mechanics = mechanical_model(mechanical, cylinders, texts, report)?;
    fields.finish(&[], report);
    let spec = DriveSpec {
        name: stem(&source.at.file),
        model: source.name.clone().unwrap_or_else(|| stem(&source.at.file)),
        year: None,
        actuators: 1,
        surfaces,
        cylinders,
        rotation_period: mechanics.rotation_period,
        mapping,
        surface_offsets: Vec::new(),
        sparing,
        head_switch: mechanics.head_switch,
        seek: mechanics.seek,
        zero_latency: ByOp { read: false, write: false },
        overhead: ByOp::default(),
        zones,
        electronics: ElectronicsSpec::default(),
        measured_on: None,
        zoned: None,
        advertised: Advertised::default(),
        held_out: Vec::new(),
        sources: sources(&source.at.file, &mechanical.at.file, &layout.at.file),
    };
    Ok((spec, stated))
}

/// The cylinders of the drive: the number that the zones reach, if the file states fewer. DiskSim takes
/// blocks from zones and does not compare the two.
fn cylinders_of_zones(param: &Param, stated: u32, zones: &[ZoneSpec], report: &mut Report) -> u32 {
    let reached = zones.iter().map(|zone| zone.last_cylinder.saturating_add(1)).max();
    let Some(reached) = reached.filter(|reached| *reached > stated) else { return stated };
    report.note(format!(
        "{}: `{}` is {stated}, but a zone ends at cylinder {}, counted from 0: {reached} cylinders are \
         taken, as the zones hold the blocks",
        param.at,
        param.key,
        reached - 1
    ));
    reached
}

/// Source of a value: the file it comes from.
pub(crate) fn source(file: &str) -> String {
    format!("measured: imported from {file} (DiskSim parameters)")
}

fn sources(model: &str, mechanics: &str, layout: &str) -> BTreeMap<String, String> {
    let mut sources = sources_of(model, &["model", "surfaces", "cylinders"]);
    sources.extend(sources_of(mechanics, &["rotation_period", "head_switch", "seek"]));
    sources.extend(sources_of(layout, &["mapping", "sparing", "zones"]));
    sources.into_iter().collect()
}

fn sources_of(file: &str, keys: &[&str]) -> Vec<(String, String)> {
    keys.iter().map(|key| (key.to_string(), source(file))).collect()
}

/// `atlas10k` of `some/atlas10k.model`.
fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.split_once('.').map_or(name, |(stem, _)| stem).to_string()
}

fn mechanical_model(
    source: &Block,
    cylinders: u32,
    texts: &mut Texts<'_>,
    report: &mut Report,
) -> Result<Mechanics, ImportError> {
    if source.kind != "dm_mech_g1" {
        let rule = format!("a mechanical model `{}`; dm_mech_g1 is expected", source.kind);
        return Err(unrepresentable(&source.at, rule));
    }
    let mut fields = Fields::new(source);
    let access = fields.need("Access time type")?;
    if text(&access.value, "Access time type")? != "trackSwitchPlusRotation" {
        report.lost(access, "seek, head switch and rotation are always computed");
    }
    let seek = seek::seek_spec(&mut fields, cylinders, texts, report)?;
    let head_switch = fields.time("Head switch time", Decimal::ONE, report)?;
    let (rpm, param) = fields.need_number("Rotation speed (in rpms)")?;
    let rotation_period = rpm
        .period_of_rpm()
        .ok_or_else(|| wrong(&param.value.at, "`Rotation speed (in rpms)` must exceed zero"))?;
    fields.finish(MECH_LEFTOVERS, report);
    Ok(Mechanics { seek, head_switch, rotation_period })
}

fn layout_model(
    source: &Block,
    surfaces: u32,
    report: &mut Report,
) -> Result<ImportedLayout, ImportError> {
    match source.kind.as_str() {
        "dm_layout_g1" => layout_g1::layout(source, surfaces, report),
        "dm_layout_g4" => layout_g4::layout(source, surfaces, report),
        other => {
            let rule =
                format!("a layout model `{other}`; dm_layout_g1 or dm_layout_g4 is expected");
            Err(unrepresentable(&source.at, rule))
        }
    }
}
