//! Drives of a fleet: their traces, and their places in servers.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use freewheel_trace::{OpenOptions, TraceError, TraceInfo, TraceReader, split_devices};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A drive of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetMember {
    /// Name in the table: the path of its trace in the folder without the ending, or the number of its device.
    pub name: String,
    /// Its trace.
    pub trace: PathBuf,
    /// Server that it is in; empty if unknown.
    pub server: String,
    /// Bay of the server.
    pub bay: String,
    /// Name of a shipped drive, or path of a drive file.
    pub drive: String,
}

/// Reasons why a folder or file is no fleet.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum NotAFleet {
    /// The folder cannot be read.
    #[error("{file}: {source}")]
    Folder {
        /// The folder, or something in it.
        file: String,
        /// Reason that the system gives.
        source: io::Error,
    },
    /// There is no trace in it.
    #[error(
        "{folder}: no trace is in this folder: put one for each drive there, or give one trace with several devices"
    )]
    Empty { folder: String },
    /// The name of a trace is no text.
    #[error("{file}: the name is not UTF-8, and results could not name it")]
    NotUtf8 { file: String },
    /// The file with several devices cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The list of drives is wrong.
    #[error("{file}, line {line}: {fault}")]
    List {
        file: String,
        /// Line of the fault, from 1.
        line: u64,
        fault: String,
    },
    /// The list of drives names a trace that is not there.
    #[error("{file}: no trace is called `{name}`; the first is `{first}`")]
    Unknown { file: String, name: String, first: String },
}

impl NotAFleet {
    fn folder(path: &Path, source: io::Error) -> Self {
        Self::Folder { file: path.display().to_string(), source }
    }
}

/// Endings of files that are no traces, and lie beside them.
const OTHER_ENDINGS: [&str; 6] = ["html", "json", "md", "toml", "pdf", "journal"];

/// The table of an earlier call, where it was written into the folder of the traces.
const TABLE: &str = "fleet.parquet";

/// The drives of a folder of traces, or of one trace with several devices. `spool` is where the devices of such
/// a trace are written as traces of their own; `report` receives its reader now and then.
///
/// A trace in a folder of the folder has its name as server; another one is cut at the last `-` or `_`. What is
/// left is the bay.
pub fn members(
    path: &Path,
    options: &OpenOptions,
    drive: &str,
    spool: &Path,
    report: impl FnMut(&TraceReader),
) -> Result<Vec<FleetMember>, NotAFleet> {
    let mut traces: Vec<(String, PathBuf)> = Vec::new();
    if path.is_dir() {
        // Results that lie among the traces are none.
        let out = spool.parent().filter(|out| *out != path && out.starts_with(path));
        for trace in files(path)? {
            if out.is_some_and(|out| trace.starts_with(out)) {
                continue;
            }
            let inside = trace.strip_prefix(path).unwrap_or(&trace);
            if trace.to_str().is_none() {
                return Err(NotAFleet::NotUtf8 { file: trace.display().to_string() });
            }
            traces.push((without_endings(inside), trace));
        }
        name_apart(path, &mut traces);
    } else {
        traces = of_devices(path, options, spool, report)?;
    }
    if traces.is_empty() {
        return Err(NotAFleet::Empty { folder: path.display().to_string() });
    }
    Ok(traces
        .into_iter()
        .map(|(name, trace)| {
            let (server, bay) = place(&name);
            FleetMember { trace, server, bay, drive: drive.to_owned(), name }
        })
        .collect())
}

/// Gives traces that would have one name the whole name of their file.
fn name_apart(folder: &Path, traces: &mut [(String, PathBuf)]) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in traces.iter() {
        *times.entry(name.clone()).or_default() += 1;
    }
    for (name, path) in traces {
        if times[name] > 1 {
            *name = path.strip_prefix(folder).unwrap_or(path).display().to_string();
        }
    }
}

/// A trace for each device of the trace at `path`; the trace itself where it has one.
fn of_devices(
    path: &Path,
    options: &OpenOptions,
    spool: &Path,
    report: impl FnMut(&TraceReader),
) -> Result<Vec<(String, PathBuf)>, NotAFleet> {
    let mut reader = TraceReader::open(path, options)?;
    let devices = TraceInfo::scan_without_footprint(&mut reader, &mut |_| {})?.devices.len();
    if devices <= 1 {
        let name = without_endings(Path::new(path.file_name().unwrap_or_default()));
        return Ok(vec![(name, path.to_owned())]);
    }
    fs::create_dir_all(spool).map_err(|error| NotAFleet::folder(spool, error))?;
    let split = split_devices(path, spool, options, report)?;
    Ok(split.into_iter().map(|of| (of.device.to_string(), of.path)).collect())
}

/// All files below `folder` that may be traces, in order of their paths.
fn files(folder: &Path) -> Result<Vec<PathBuf>, NotAFleet> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| NotAFleet::folder(folder, error))?;
    for entry in entries {
        let path = entry.map_err(|error| NotAFleet::folder(folder, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if name.starts_with('.')
            || name.starts_with("README")
            || OTHER_ENDINGS.contains(&&*ending)
            || name == TABLE
        {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A path without the endings of formats and compressors, as `web1/3` of `web1/3.csv.zst`.
fn without_endings(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let mut name = &*file;
    while let Some((before, ending)) = name.rsplit_once('.') {
        if before.is_empty() || !ENDINGS.contains(&&*ending.to_lowercase()) {
            break;
        }
        name = before;
    }
    path.with_file_name(name).display().to_string()
}

/// Endings that say how a trace is written, and nothing of the drive.
const ENDINGS: [&str; 15] = [
    "gz",
    "zst",
    "csv",
    "parquet",
    "txt",
    "trace",
    "bin",
    "srt",
    "lis",
    "log",
    "json",
    "vscsi",
    "iolog",
    "blktrace",
    "oraclegeneral",
];

/// Server and bay of a name.
fn place(name: &str) -> (String, String) {
    let parts = name.rsplit_once('/').or_else(|| name.rsplit_once(['-', '_']));
    let (server, bay) = parts.unwrap_or(("", name));
    (server.to_owned(), bay.to_owned())
}

/// Drive and place of a trace, as a list says; what is None stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Name of a shipped drive, or path of a drive file.
    pub drive: Option<String>,
    /// Server that it is in.
    pub server: Option<String>,
    /// Bay of the server.
    pub bay: Option<String>,
}

/// Drives and places by the names of their traces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// For messages.
    pub origin: String,
    /// By name.
    pub by_name: BTreeMap<String, Place>,
}

impl Places {
    /// Reads a CSV with the columns `trace` and `drive`, `server` or `bay`.
    pub fn read(path: &Path) -> Result<Self, NotAFleet> {
        let text =
            freewheel_trace::read_text(path).map_err(|error| NotAFleet::folder(path, error))?;
        let origin = path.display().to_string();
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let heads = reader.headers().map_err(|error| wrong(&origin, 1, error.to_string()))?.clone();
        let known = ["trace", "drive", "server", "bay"];
        if let Some(unknown) = heads.iter().find(|head| !known.contains(head)) {
            let fault =
                format!("the column `{unknown}` is not known; columns are {}", known.join(", "));
            return Err(wrong(&origin, 1, fault));
        }
        let column = |name: &str| heads.iter().position(|head| head == name);
        let trace = column("trace")
            .ok_or_else(|| wrong(&origin, 1, "the column `trace` is missing".into()))?;
        let mut by_name = BTreeMap::new();
        for (number, row) in reader.records().enumerate() {
            let line = number as u64 + 2;
            let row = row.map_err(|error| wrong(&origin, line, error.to_string()))?;
            let value = |name: &str| {
                let text = column(name).and_then(|column| row.get(column)).unwrap_or_default();
                (!text.is_empty()).then(|| text.to_owned())
            };
            let place = Place { drive: value("drive"), server: value("server"), bay: value("bay") };
            by_name.insert(row.get(trace).unwrap_or_default().to_owned(), place);
        }
        Ok(Self { origin, by_name })
    }

    /// Gives each member its drive and place. Err for a name that no member has.
    pub fn apply(&self, members: &mut [FleetMember]) -> Result<(), NotAFleet> {
        let names: Vec<&str> = members.iter().map(|member| &*member.name).collect();
        if let Some(name) = self.by_name.keys().find(|name| !names.contains(&&***name)) {
            let first = names.first().map_or(String::new(), |first| (*first).to_owned());
            return Err(NotAFleet::Unknown {
                file: self.origin.clone(),
                name: name.clone(),
                first,
            });
        }
        for member in members {
            let Some(place) = self.by_name.get(&member.name) else { continue };
            take(&mut member.drive, &place.drive);
            take(&mut member.server, &place.server);
            take(&mut member.bay, &place.bay);
        }
        Ok(())
    }
}

fn wrong(origin: &str, line: u64, fault: String) -> NotAFleet {
    NotAFleet::List { file: origin.to_owned(), line, fault }
}

fn take(into: &mut String, from: &Option<String>) {
    into.clone_from(from.as_ref().unwrap_or(&into.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> FleetMember {
        let (server, bay) = place(name);
        let trace = PathBuf::from(name);
        FleetMember { name: name.into(), trace, server, bay, drive: "tr96".into() }
    }

    #[test]
    fn member_names_tell_server_and_bay() {
        let name = |path: &str| without_endings(Path::new(path));
        assert_eq!(name("web1/3.csv.zst"), "web1/3");
        assert_eq!(name("hm_0.oracleGeneral.bin"), "hm_0");
        assert_eq!(name("db.2024"), "db.2024");
        assert_eq!(name("db.host1.csv"), "db.host1");
        let (of_folder, of_name) = (member("web1/3"), member("usr_0"));
        assert_eq!([&of_folder.server, &of_folder.bay], ["web1", "3"]);
        assert_eq!([&of_name.server, &of_name.bay], ["usr", "0"]);
        assert_eq!([&member("7").server, &member("7").bay], ["", "7"]);
    }

    #[test]
    fn member_folders_searched_for_traces_only() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("b")).unwrap();
        for name in ["b/2.csv", "a-1.csv", "report.html", ".hidden.csv", "c.csv", "c.csv.gz"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let none = OpenOptions::default();
        let found = members(folder.path(), &none, "tr96", Path::new("unused"), |_| {}).unwrap();
        let names: Vec<&str> = found.iter().map(|member| &*member.name).collect();
        assert_eq!(names, ["a-1", "b/2", "c.csv", "c.csv.gz"]);
        let empty = tempfile::tempdir().unwrap();
        let none = members(empty.path(), &none, "tr96", Path::new("unused"), |_| {});
        assert!(matches!(none, Err(NotAFleet::Empty { .. })));
    }

    #[test]
    fn member_list_names_unknown_entries() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("drives.csv");
        fs::write(&list, "trace,drive,bay\nusr_0,atlas10k,4\nusr_1,,5\n").unwrap();
        let mut all = [member("usr_0"), member("usr_1"), member("usr_2")];
        Places::read(&list).unwrap().apply(&mut all).unwrap();
        let said = all.each_ref().map(|member| format!("{} {}", member.drive, member.bay));
        assert_eq!(said, ["atlas10k 4", "tr96 5", "tr96 2"]);
        assert!(all.iter().all(|member| member.server == "usr"));
        let error = Places::read(&list).unwrap().apply(&mut all[..1]).unwrap_err();
        assert!(error.to_string().contains("`usr_1`"), "{error}");
        fs::write(&list, "trace,rack\n").unwrap();
        let error = Places::read(&list).unwrap_err();
        assert!(error.to_string().contains("`rack`"), "{error}");
    }
}
