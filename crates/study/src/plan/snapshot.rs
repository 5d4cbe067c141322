//! The disks and files of a JBOD as a TOML file, with the files there or in a CSV file beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use freewheel_sim::library;
use freewheel_sim::toml_faults;
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
    /// Name of the disk, as `sda` or a serial number.
    pub name: String,
    /// Name of a shipped drive, or path of a drive file, from the folder of the snapshot.
    pub drive: String,
    /// Capacity of the disk; the drive's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Mount point of the disk, for the list of commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// A file, or a folder whose files stay together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Path of the file on its disk.
    pub name: String,
    /// Size of the file.
    pub size: Bytes,
    /// Requests a second.
    pub rate: f64,
    /// Mean size of a request; the whole file if absent, up to 1 GB.
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
        if path.extension().is_some_and(|ending| ending == "csv") {
            return Err(parse("a CSV file holds files alone: name it as `files_csv` in a TOML file with [[disks]]".into()));
        }
        let mut snapshot: Self =
            toml_faults::read(&text).map_err(|fault| parse(fault.to_string()))?;
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
            let more = read_csv(&folder.join(csv), &mut faults).map_err(|error| match error {
                PlanError::Read { path, source } => {
                    let line =
                        text.lines().position(|line| line.trim_start().starts_with("files_csv"));
                    let line = line.map_or(String::new(), |line| format!("line {}: ", line + 1));
                    parse(format!("{line}files_csv: {}: {source}", path.display()))
                }
                other => other,
            })?;
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

    pub(super) fn disk_numbers(&self) -> BTreeMap<String, u32> {
        let numbered = self.disks.iter().zip(0..);
        numbered.map(|(disk, number)| (disk.name.clone(), number)).collect()
    }
}

/// A message about a key, with its line.
fn located(text: &str, list: &str, entry: usize, key: &str, message: &str) -> String {
    let line = toml_faults::line_of(text, list, entry, key);
    let line = line.map_or(String::new(), |line| format!("line {line}: "));
    format!("{line}{list}[{entry}].{key}: {message}")
}

/// Fault of a disk of the snapshot in this file; without a file, of one that options made.
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
        let twin =
            disks[..entry].iter().find(|other| disk.path.is_some() && other.path == disk.path);
        if let Some(DiskEntry { name, .. }) = twin {
            return Err((entry, ("path", format!("`{name}` is mounted there, too"))));
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
    /// Paths of files and their disks so far.
    seen: BTreeMap<(String, Option<String>), ()>,
}

impl Faults<'_> {
    fn check(&mut self, file: &FileEntry) -> Result<(), Fault> {
        check_name(&file.name)?;
        if file.size == Bytes::ZERO {
            return Err(("size", "is 0: leave files without bytes out".into()));
        }
        if !(file.rate.is_finite() && file.rate >= 0.0) {
            let says =
                format!("is {}: write requests a second, 0 for a file nobody uses", file.rate);
            return Err(("rate", says));
        }
        check_request(file)?;
        if !(0.0..=1.0).contains(&file.reads) {
            return Err(("reads", format!("is {}: write a share of 0 to 1", file.reads)));
        }
        if let Some(disk) = file.disk.as_ref().filter(|disk| !self.names.contains_key(*disk)) {
            let known = self.names.keys().map(String::as_str);
            let meant = did_you_mean(disk, known);
            return Err(("disk", format!("no disk is called `{disk}`{meant}")));
        }
        if self.seen.insert((relative(&file.name), file.disk.clone()), ()).is_some() {
            let place = file.disk.as_ref().map_or("without a disk", |_| "on this disk");
            return Err(("name", format!("`{}` is there twice {place}", file.name)));
        }
        Ok(())
    }
}

/// Largest request of a whole file that is taken for granted.
const WHOLE_MAX: Bytes = Bytes::new(1_000_000_000);
/// Largest request of all.
const REQUEST_MAX: Bytes = Bytes::new(100_000_000_000);

/// Err for requests that no client sends.
fn check_request(file: &FileEntry) -> Result<(), Fault> {
    match file.request {
        Some(Bytes::ZERO) => {
            wrong_request("is 0: leave the key out for requests of the whole file".into())
        }
        Some(request) if request.min(file.size) > REQUEST_MAX => {
            let [request, most] = [request, REQUEST_MAX].map(Bytes::human_decimal);
            wrong_request(format!("is {request}: at most {most} are allowed"))
        }
        None if file.rate > 0.0 && file.size > WHOLE_MAX => wrong_request(format!(
            "is missing, and `{}` has {}: give the mean size of its requests, as request = \"256KiB\"",
            file.name,
            file.size.human_decimal()
        )),
        _ => Ok(()),
    }
}

fn wrong_request<T>(says: String) -> Result<T, (&'static str, String)> {
    Err(("request", says))
}

/// The path of a file below its disk, with single slashes between its parts alone.
pub fn relative(name: &str) -> String {
    let parts = name.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.collect::<Vec<_>>().join("/")
}

/// Err for a name that is no path on a disk.
fn check_name(name: &str) -> Result<(), Fault> {
    if relative(name).is_empty() {
        let says =
            format!("`{name}` names no file: write the path of a file or folder on its disk");
        return Err(("name", says));
    }
    if name.split('/').any(|part| part == "..") {
        return Err(("name", format!("`{name}` leads out of its disk: write it without `..`")));
    }
    Ok(())
}

const COLUMN_NAMES: [&str; 6] = ["name", "size", "rate", "request", "reads", "disk"];
/// Columns of a CSV file.
const COLUMNS: &str =
    "the first line names the columns: name,size,rate and any of request,reads,disk";

fn read_csv(path: &Path, faults: &mut Faults<'_>) -> Result<Vec<FileEntry>, PlanError> {
    let text = read(path)?;
    let parse = |message: String| PlanError::Parse { path: path.into(), message };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| parse(format!("{error}; {COLUMNS}")))?.clone();
    if let Some(unknown) = headers.iter().find(|header| !COLUMN_NAMES.contains(header)) {
        let meant = did_you_mean(unknown, COLUMN_NAMES);
        return Err(parse(format!("line 1: there is no column `{unknown}`{meant}; {COLUMNS}")));
    }
    for needed in ["name", "size", "rate"] {
        if !headers.iter().any(|header| header == needed) {
            return Err(parse(format!("line 1: there is no column `{needed}`; {COLUMNS}")));
        }
    }
    let mut files = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| parse(unreadable(&error)))?;
        let file: FileEntry = match record.deserialize(Some(&headers)) {
            Ok(file) => file,
            Err(error) => {
                let (key, says) = csv_fault(&error, &headers, &record);
                return Err(parse(format!("line {}: {key}: {says}", line_of(&text, &record))));
            }
        };
        faults.check(&file).map_err(|(key, says)| {
            parse(format!("line {}: {key}: {says}", line_of(&text, &record)))
        })?;
        files.push(file);
    }
    if files.is_empty() {
        return Err(parse("it names no files: add a line for each".into()));
    }
    Ok(files)
}

/// Fault of a line that has no columns to blame.
fn unreadable(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or(1, csv::Position::line);
            format!(
                "line {line}: it has {len} fields, and the first line names {expected_len} columns"
            )
        }
        _ => format!("{error}; {COLUMNS}"),
    }
}

/// The line in which a record begins. Its position is before the empty lines that the reader skips.
fn line_of(text: &str, record: &csv::StringRecord) -> usize {
    let at = record.position().map_or(0, csv::Position::byte) as usize;
    let rest = text.get(at..).unwrap_or_default();
    let skipped = rest.len() - rest.trim_start_matches(['\r', '\n']).len();
    1 + text[..at + skipped].matches('\n').count()
}

/// The column of a record that is wrong, and what is wrong with it.
fn csv_fault<'h>(
    error: &csv::Error,
    headers: &'h csv::StringRecord,
    record: &csv::StringRecord,
) -> (&'h str, String) {
    for (key, value) in headers.iter().zip(record) {
        let needed = match key {
            "size" => value.parse::<Bytes>().err().map(|error| error.to_string()),
            "request" if !value.is_empty() => {
                value.parse::<Bytes>().err().map(|error| error.to_string())
            }
            "rate" if value.parse::<f64>().is_err() => {
                Some(format!("is \"{value}\": write requests a second, as 12.5"))
            }
            "reads" if !value.is_empty() && value.parse::<f64>().is_err() => {
                Some(format!("is \"{value}\": write a share of 0 to 1, as 0.7"))
            }
            _ => None,
        };
        if let Some(says) = needed {
            return (key, says);
        }
    }
    ("record", format!("{error}; {COLUMNS}"))
}
