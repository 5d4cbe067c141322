//! DiskSim 4.0's parameter files to Freewheel's drive and electronics.
//!
//! Goals: `.parv`, `.diskspecs`, `.model`, `.layout` and seek files go in as texts, a
//! [`DriveSpec`] with its electronics comes out; every parameter of the drive that it cannot say is
//! listed, with its line and the reason; no text makes the importer panic.
//! Non-goals: everything of DiskSim outside the drive (drivers, buses, workloads), writing the
//! format, reading files: the caller does.
//!
//! | file | subject |
//! |---|---|
//! | `lex`, `parse` | libparam's grammar: texts to blocks of parameters |
//! | `fields` | reading a block so that no parameter is forgotten |
//! | `number` | exact decimals to nanoseconds and parts of a turn |
//! | `mechanics`, `seek`, `layout_g1`, `layout_g4` | `dm_disk` to a drive |
//! | `electronics` | `disksim_disk` to buffer, overheads, bus, queue |
//!
//! Meanings of parameters: CMU-PDL-08-101, the manual of DiskSim 4.0, and its `.modspec` files.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod electronics;
mod error;
mod fields;
mod layout_g1;
mod layout_g4;
mod lex;
mod mechanics;
mod number;
mod parse;
mod seek;

use std::collections::BTreeMap;

use freewheel_model::drive::Drive;
use freewheel_model::drive::spec::DriveSpec;
use freewheel_units::{Op, SimDuration};

pub use error::{ImportCause, ImportError};

use error::{Place, wrong};
use fields::Report;
use lex::Texts;
use parse::{Block, Document, Kind, Param, Value};

/// A drive from DiskSim's parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Geometry, mechanics and electronics (none when there is only a `.model`); it builds.
    pub spec: DriveSpec,
    /// Parameters of the drive that the two do not say, or not quite.
    pub not_represented: Vec<Parameter>,
    /// Remarks on what was made of the others.
    pub notes: Vec<String>,
}

/// A parameter that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Key in the file.
    pub name: String,
    /// Value, long lists cut.
    pub value: String,
    /// Name of the text.
    pub file: String,
    /// Line in it, from 1.
    pub line: u32,
    /// Reason for the failure.
    pub why: String,
}

/// The drive that the texts `(name, text)` describe. `resolver` is asked for the files they name
/// (`source FILE`, `Full seek curve = FILE`) that are not among them. Of several drives the one
/// that is instantiated first counts, else the first.
pub fn import(
    files: &[(&str, &str)],
    resolver: &dyn Fn(&str) -> Option<String>,
) -> Result<Imported, ImportError> {
    import_one(files, resolver).map_err(|error| name_all_missing(error, files, resolver))
}

fn import_one(
    files: &[(&str, &str)],
    resolver: &dyn Fn(&str) -> Option<String>,
) -> Result<Imported, ImportError> {
    let mut texts = Texts::new(files, resolver);
    let document = read_all(files, &mut texts)?;
    let mut report = Report::default();
    let disk = choose(&document, "disksim_disk", &mut report)?;
    let model = match &disk {
        Some(disk) => model_of(disk, &document)?,
        None => choose(&document, "dm_disk", &mut report)?.ok_or_else(|| {
            let file = files.first().map_or("", |(name, _)| name);
            let rule = "no block `disksim_disk` or `dm_disk` in the given files";
            wrong(&Place::new(file, 0), rule).of(ImportCause::NoDrive)
        })?,
    };
    let (mut spec, stated) = mechanics::drive(&model, &mut texts, &mut report)?;
    match &disk {
        Some(disk) => {
            let hosts = electronics::buses(&document.blocks, &mut report)?;
            electronics::add(disk, hosts, &mut spec, &mut report)?;
        }
        None => report.note("no `disksim_disk` block: the drive has no electronics"),
    }
    note_unused(&document, &model, &texts, &mut report);
    note_others(&document, &mut report);
    let drive = check(&spec, stated, &model, &mut report)?;
    if let Some(disk) = &disk {
        electronics::separate_host_bus(&mut spec, &drive, disk, &mut report);
        assume_read_write_switch(&mut spec, &drive, &mut report);
    }
    let Report { not_represented, notes } = report;
    Ok(Imported { spec, not_represented, notes })
}

/// Reports all missing files where one is missing.
fn name_all_missing(
    mut error: ImportError,
    files: &[(&str, &str)],
    resolver: &dyn Fn(&str) -> Option<String>,
) -> ImportError {
    let ImportCause::Missing { names } = &mut error.cause else { return error };
    let given: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let missing = Texts::new(files, resolver).all_missing(&given);
    let others: Vec<String> = missing.into_iter().filter(|name| !names.contains(name)).collect();
    if !others.is_empty() {
        let listed: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
        error.message += &format!("; also missing: {}", listed.join(", "));
    }
    names.extend(others);
    error
}

/// From the outermost file inwards, so that what is sourced is not read a second time.
const READING_ORDER: [&str; 4] = [".parv", ".diskspecs", ".model", ".layout"];

fn read_all(files: &[(&str, &str)], texts: &mut Texts<'_>) -> Result<Document, ImportError> {
    let mut names: Vec<&str> = files
        .iter()
        .filter(|(name, text)| !is_seek_file(name, text))
        .map(|(name, _)| *name)
        .collect();
    names.sort_by_key(|name| rank(name));
    let mut document = Document::default();
    for name in names {
        if !texts.was_read(name) {
            let tokens = texts.tokens(name)?;
            parse::parse(&tokens, name, &mut document)?;
        }
    }
    Ok(document)
}

fn rank(name: &str) -> usize {
    READING_ORDER.iter().position(|end| name.ends_with(end)).unwrap_or(READING_ORDER.len())
}

fn is_seek_file(name: &str, text: &str) -> bool {
    name.ends_with(".seek")
        || name.ends_with(".seeks")
        || text.trim_start().starts_with("Seek distances measured")
}

/// The block of this base type: the first that is instantiated, else the first.
fn choose(
    document: &Document,
    base: &str,
    report: &mut Report,
) -> Result<Option<Block>, ImportError> {
    let mut found = Vec::new();
    for block in &document.blocks {
        let whole = inherit(block, document)?;
        if whole.kind == base {
            found.push(whole);
        }
    }
    let at =
        found.iter().position(|block| document.instantiated.contains(&named(block))).unwrap_or(0);
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(named).collect();
        report.note(format!(
            "of the drives {} the one imported is {}",
            names.join(", "),
            names[at]
        ));
    }
    Ok((at < found.len()).then(|| found.swap_remove(at)))
}

fn named(block: &Block) -> String {
    block.name.clone().unwrap_or_default()
}

/// Merges a block with the block of its type: its own parameters win.
fn inherit(block: &Block, document: &Document) -> Result<Block, ImportError> {
    let mut whole = block.clone();
    for _ in 0..document.blocks.len() {
        let Some(parent) =
            document.blocks.iter().find(|other| other.name.as_ref() == Some(&whole.kind))
        else {
            return Ok(whole);
        };
        let inherited: Vec<Param> = parent
            .params
            .iter()
            .filter(|param| !whole.params.iter().any(|mine| mine.key == param.key))
            .cloned()
            .collect();
        whole.params.extend(inherited);
        whole.kind = parent.kind.clone();
    }
    Err(wrong(&block.at, "the types of blocks go around in a circle"))
}

/// The `dm_disk` of a disk: written in its place, or by name.
fn model_of(disk: &Block, document: &Document) -> Result<Block, ImportError> {
    let param = disk.params.iter().rfind(|param| param.key.eq_ignore_ascii_case("Model"));
    let Some(Param { value: Value { kind, at }, .. }) = param else {
        return Err(wrong(&disk.at, "`disksim_disk` needs `Model`"));
    };
    let model = match kind {
        Kind::Block(block) => Some(block),
        Kind::Text(name) => document.blocks.iter().find(|block| block.name.as_ref() == Some(name)),
        Kind::List(_) => None,
    };
    match model.map(|block| inherit(block, document)).transpose()? {
        Some(model) if model.kind == "dm_disk" => Ok(model),
        _ => Err(wrong(at, "`Model` takes a block `dm_disk { ... }` or its name")),
    }
}

/// Names the given files, and the mechanics in them, that play no part.
fn note_unused(document: &Document, model: &Block, texts: &Texts<'_>, report: &mut Report) {
    for block in document.blocks.iter().filter(|b| b.kind == "dm_disk" && b.at != model.at) {
        let name = block.name.as_deref().unwrap_or("without a name");
        report.note(format!(
            "{}: the `dm_disk` {name} is not the drive's and is not used",
            block.at.file
        ));
    }
    for name in texts.unread() {
        report.note(format!("{name}: given, but no file refers to it"));
    }
}

/// Counts what is not about the drive.
fn note_others(document: &Document, report: &mut Report) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for block in document.blocks.iter().filter(|block| !of_drive(&block.kind, document)) {
        *counts.entry(&block.kind).or_default() += block.count();
    }
    let total: usize = counts.values().sum();
    if total > 0 {
        let kinds: Vec<String> = counts.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        let kinds = kinds.join(", ");
        report.note(format!("{total} parameters are not about the drive ({kinds})"));
    }
}

fn of_drive(kind: &str, document: &Document) -> bool {
    let base = document.blocks.iter().find(|block| block.name.as_deref() == Some(kind));
    let kind = base.map_or(kind, |block| &block.kind);
    ["disksim_disk", "dm_disk"].contains(&kind) || kind.starts_with("dm_")
}

/// The spec must build, and its capacity is held against the one stated.
fn check(
    spec: &DriveSpec,
    stated: Option<u64>,
    model: &Block,
    report: &mut Report,
) -> Result<Drive, ImportError> {
    let drive = Drive::build(spec).map_err(|error| {
        wrong(&model.at, format!("the parameters do not make a drive: {error}"))
    })?;
    let blocks = drive.blocks().get();
    if let Some(stated) = stated.filter(|stated| *stated != blocks) {
        let file = &model.at.file;
        report.note(format!(
            "{file} states a block count of {stated}; its layout has {blocks}, which counts"
        ));
    }
    Ok(drive)
}

/// DiskSim's parameters do not say how long the arm takes from writing to reading within a
/// cylinder. The traces measured on four drives show that it takes time, most of a seek of one
/// cylinder.
fn assume_read_write_switch(spec: &mut DriveSpec, drive: &Drive, report: &mut Report) {
    if spec.cylinders < 2 {
        return;
    }
    let single = SimDuration::from_ns(drive.seek().time_ns(Op::Read, 1, false));
    spec.electronics.read_write_switch = single;
    let source =
        "assumed: a seek of one cylinder; the elements of a head that read and write stand apart";
    spec.sources.insert("electronics.read_write_switch".into(), source.into());
    report.note(format!(
        "between reading and writing in a cylinder {single} are assumed, a seek of one cylinder; DiskSim's parameters do not say it"
    ));
}
