//! The disks and files of a JBOD as a TOML file, with the files there or in a CSV file beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use freewheel_sim::document;
use freewheel_sim::library;
use freewheel_trace::read_text;
use freewheel_units::{Bytes, did_you_mean};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::PlanError;

/// The disks and files of a JBOD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The disks.
    pub disks: Vec<DiskEntry>,
    /// The files, or folders whose files stay together.
    #[serde(default)]
    pub files: Vec<FileEntry>,
    /// A CSV file with more files, from the folder of this one. Its first line names the columns: `name`,
    /// `size`, `rate`, and any of `request`, `reads` and `disk`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_csv: Option<PathBuf>,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskEntry {
    /// Its name, as `sda` or a serial number.
    pub name: String,
    /// Name of a shipped drive, or path of a drive file, from the folder of the snapshot.
    pub drive: String,
    /// What it can hold; the drive's capacity if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Where it is mounted, for the list of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// A file, or a folder whose files stay together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its path on its disk.
    pub name: String,
    /// Its size.
    pub size: Bytes,
    /// Requests a second.
    pub rate: f64,
    /// Mean size of a request; the whole file if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Bytes>,
    /// Share of the requests that read.
    #[serde(default = "all", skip_serializing_if = "is_all")]
    pub reads: f64,
    /// Name of the disk that it is on. Without one, the plan chooses a disk for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
}

fn all() -> f64 {
    1.0
}

fn is_all(share: &f64) -> bool {
    *share == 1.0
}

impl Snapshot {
    /// Reads a snapshot, and the CSV file that it names.
    pub fn load(path: &Path) -> Result<Self, PlanError> {
        let text = read(path)?;
        let parse = |message: String| PlanError::Parse { path: path.into(), message };
        let mut snapshot: Self = document::read(&text).map_err(|fault| parse(fault.to_string()))?;
        let names = snapshot.disk_numbers();
        let mut faults = Faults { names: &names, seen: BTreeMap::new() };
        let says =
            |list, entry, (key, message): Fault| parse(located(&text, list, entry, key, &message));
        check_disks(&snapshot.disks).map_err(|(entry, fault)| says("disks", entry, fault))?;
        for (entry, file) in snapshot.files.iter().enumerate() {
            faults.check(file).map_err(|fault| says("files", entry, fault))?;
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        if let Some(csv) = &snapshot.files_csv {
            let more = read_csv(&folder.join(csv), &mut faults)?;
            snapshot.files.extend(more);
        }
        for disk in &mut snapshot.disks {
            disk.drive = library::from_folder(&disk.drive, folder);
        }
        if snapshot.files.is_empty() {
            let message = "it has no files: add [[files]], or `files_csv` above the first table";
            return Err(parse(message.into()));
        }
        Ok(snapshot)
    }

    /// Numbers of the disks by name.
    pub(super) fn disk_numbers(&self) -> BTreeMap<String, u32> {
        let numbered = self.disks.iter().zip(0..);
        numbered.map(|(disk, number)| (disk.name.clone(), number)).collect()
    }
}

/// A message about a key, with its line.
fn located(text: &str, list: &str, entry: usize, key: &str, message: &str) -> String {
    let line = document::line_of(text, list, entry, key);
    let line = line.map_or(String::new(), |line| format!("line {line}: "));
    format!("{line}{list}[{entry}].{key}: {message}")
}

/// What is wrong with a disk of the snapshot in this file; without a file, of one that options made.
pub(super) fn of_disk(
    origin: Option<&Path>,
    entry: usize,
    key: &str,
    message: String,
) -> PlanError {
    let Some(path) = origin else { return PlanError::Option { message } };
    match read(path) {
        Ok(text) => {
            let message = located(&text, "disks", entry, key, &message);
            PlanError::Parse { path: path.into(), message }
        }
        Err(error) => error,
    }
}

fn read(path: &Path) -> Result<String, PlanError> {
    read_text(path).map_err(|source| PlanError::Read { path: path.into(), source })
}

/// A key and what is wrong with its value.
type Fault = (&'static str, String);

fn check_disks(disks: &[DiskEntry]) -> Result<(), (usize, Fault)> {
    if disks.is_empty() {
        return Err((0, ("name", "there is no disk: add [[disks]]".into())));
    }
    for (entry, disk) in disks.iter().enumerate() {
        if disks[..entry].iter().any(|other| other.name == disk.name) {
            return Err((entry, ("name", format!("`{}` is there twice", disk.name))));
        }
        if disk.size == Some(Bytes::ZERO) {
            return Err((entry, ("size", "a disk without room: leave the key out".into())));
        }
    }
    Ok(())
}

/// Checks file after file.
struct Faults<'a> {
    names: &'a BTreeMap<String, u32>,
    /// Names of files and their disks so far.
    seen: BTreeMap<(String, Option<String>), ()>,
}

impl Faults<'_> {
    fn check(&mut self, file: &FileEntry) -> Result<(), Fault> {
        if file.size == Bytes::ZERO {
            return Err(("size", "is 0: leave files without bytes out".into()));
        }
        if !(file.rate.is_finite() && file.rate >= 0.0) {
            let says =
                format!("is {}: write requests a second, 0 for a file nobody uses", file.rate);
            return Err(("rate", says));
        }
        if file.request == Some(Bytes::ZERO) {
            return Err((
                "request",
                "is 0: leave the key out for requests of the whole file".into(),
            ));
        }
        if !(0.0..=1.0).contains(&file.reads) {
            return Err(("reads", format!("is {}: write a share of 0 to 1", file.reads)));
        }
        if let Some(disk) = file.disk.as_ref().filter(|disk| !self.names.contains_key(*disk)) {
            let known = self.names.keys().map(String::as_str);
            let meant = did_you_mean(disk, known);
            return Err(("disk", format!("no disk is called `{disk}`{meant}")));
        }
        if self.seen.insert((file.name.clone(), file.disk.clone()), ()).is_some() {
            return Err(("name", format!("`{}` is on this disk twice", file.name)));
        }
        Ok(())
    }
}

/// The files of a CSV file.
fn read_csv(path: &Path, faults: &mut Faults<'_>) -> Result<Vec<FileEntry>, PlanError> {
    let text = read(path)?;
    let parse = |message: String| PlanError::Parse { path: path.into(), message };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let mut files = Vec::new();
    for record in reader.deserialize() {
        let file: FileEntry = record.map_err(|error| parse(csv_fault(&error)))?;
        // The header is line 1; a quoted name may hold ends of lines, which count here as well.
        let line = files.len() + 2;
        faults.check(&file).map_err(|(key, says)| parse(format!("line {line}: {key}: {says}")))?;
        files.push(file);
    }
    Ok(files)
}

/// What is wrong with a record, with its line and column.
fn csv_fault(error: &csv::Error) -> String {
    const COLUMNS: &str =
        "the first line names the columns: name,size,rate and any of request,reads,disk";
    let csv::ErrorKind::Deserialize { pos, err } = error.kind() else {
        return format!("{error}; {COLUMNS}");
    };
    let line = pos.as_ref().map_or(1, csv::Position::line);
    let column = err.field().map_or(String::new(), |field| format!(", column {}", field + 1));
    format!("line {line}{column}: {}; {COLUMNS}", err.kind())
}
