//! `freewheel plan place`: which files of a JBOD to move.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::drives::DEFAULT_DRIVE;
use freewheel::experiments::TraceWorkload;
use freewheel::files::FileKind;
use freewheel::measures::{Bytes, SimDuration};
use freewheel::plans::{PlaceOptions, PlaceReport, PlaceSource, Snapshot};
use freewheel::traces::Format;
use freewheel::{Error, ErrorKind};

use super::written;
use crate::failure::{Failure, is_not_a_file, with_near_file};
use crate::progress::Bars;
use crate::{file, output, wrong_file_kind};

/// Say which files of a JBOD to move so that clients wait less: moves with gain, cost and payback time
#[derive(Args)]
#[command(after_help = "\
The snapshot is a TOML file with [[disks]] and [[files]]; `--schema` prints its schema, and
examples/jbod.toml in Freewheel's source is one to begin with.

Examples:
  freewheel plan place jbod.toml
  freewheel plan place disks.trace.zst --drive atlas10k --fragment 16MiB --load 10
  freewheel plan place jbod.toml --horizon 7d --copy-rate 50MB --add-disk exos-x24-24tb")]
pub struct PlaceArgs {
    /// The snapshot: disks with their drives, files with size, disk and requests a second. Or a trace: each
    /// of its devices is a disk, and its fragments are the files
    #[arg(required_unless_present = "schema")]
    snapshot: Option<PathBuf>,
    /// Drive of every device of a trace: a shipped drive (see `freewheel drive list`), or a drive file
    #[arg(long, value_name = "NAME", default_value = DEFAULT_DRIVE)]
    drive: String,
    /// Size of a trace's fragments
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    fragment: Bytes,
    /// Format of a trace (see `freewheel trace formats`); recognised by its contents if not given
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// What if this many times as many requests came in the same time, as 1.5
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = super::factor)]
    load: f64,
    /// Time within which a move has to pay back what its copy cost, as 12h or 30d
    #[arg(long, value_name = "TIME", default_value = "30d")]
    horizon: SimDuration,
    /// Share of the mean response that a move has to save
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = super::super::share)]
    min_gain: f64,
    /// Share of each disk that no move fills
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = super::super::share)]
    keep_free: f64,
    /// Bytes a second that a copy takes at most, as 50MB; as many as the disks give if not given
    #[arg(long, value_name = "SIZE")]
    copy_rate: Option<Bytes>,
    /// Most moves
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_moves: usize,
    /// What if there was one disk more: a shipped drive or a drive file; may be given again
    #[arg(long, value_name = "DRIVE")]
    add_disk: Vec<String>,
    /// What if a disk was another drive, as sdc=exos-x24-24tb; may be given again
    #[arg(long, value_name = "DISK=DRIVE", value_parser = replacement)]
    replace: Vec<(String, String)>,
    /// Requests of each simulation
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    requests: u64,
    /// Seed of every random stream
    #[arg(long, default_value_t = 1, value_parser = super::super::seed)]
    seed: u64,
    /// Folder for plan.html, plan.json and moves.sh [default: out/<name of the snapshot>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON document instead of the tables
    #[arg(long)]
    json: bool,
    /// Print the JSON schema of snapshots
    #[arg(long)]
    schema: bool,
}

/// A disk and the drive that it becomes.
fn replacement(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(disk, drive)| !disk.is_empty() && !drive.is_empty());
    let parts = parts.map(|(disk, drive)| (disk.to_owned(), drive.to_owned()));
    parts.ok_or_else(|| "write DISK=DRIVE, as sdc=exos-x24-24tb".into())
}

impl PlaceArgs {
    pub fn run(self) -> Result<(), Failure> {
        let snapshot = match &self.snapshot {
            Some(snapshot) if !self.schema => snapshot,
            _ => return output::print(&output::json(&schemars::schema_for!(Snapshot))?),
        };
        file::ensure_utf_8(snapshot)?;
        let name = snapshot.file_stem().unwrap_or(OsStr::new("plan"));
        let folder = self.out.clone().unwrap_or_else(|| Path::new("out").join(name));
        file::ensure_writable_folder(&folder)?;
        let report = self.report(snapshot).map_err(|error| failure(snapshot, error))?;
        let [page, json, commands] =
            ["plan.html", "plan.json", "moves.sh"].map(|name| folder.join(name));
        let document = output::document(&report)?;
        let files = [
            (page.as_path(), &*report.html()),
            (&json, &*document),
            (&commands, &*report.commands()),
        ];
        written(&folder, &files)?;
        if self.json {
            return output::print(&document);
        }
        let written = format!("page: {}\ncommands: {}\n", page.display(), commands.display());
        output::print(&(report.text() + &written))
    }

    fn source(&self, file: &Path) -> PlaceSource {
        match FileKind::of(file) {
            Some(FileKind::Trace) => PlaceSource::Trace {
                trace: TraceWorkload {
                    file: file.to_owned(),
                    format: self.format.map(|format| format.name().to_owned()),
                    ..TraceWorkload::default()
                },
                drive: self.drive.clone(),
                fragment: self.fragment,
            },
            _ => PlaceSource::Snapshot(file.to_owned()),
        }
    }

    fn report(&self, snapshot: &Path) -> Result<PlaceReport, Error> {
        let options = PlaceOptions {
            horizon_s: self.horizon.as_secs_f64(),
            gain_min: self.min_gain,
            free_share: self.keep_free,
            copy_rate: self.copy_rate,
            moves_max: self.max_moves,
            add: self.add_disk.clone(),
            replace: self.replace.clone(),
            requests: self.requests,
            seed: self.seed,
            load: self.load,
            ..PlaceOptions::new(self.source(snapshot))
        };
        let bars = Bars::default();
        freewheel::plans::plan_place(&options, &|task, done, total| bars.set(task, done, total))
    }
}

/// An error with its way out.
fn failure(snapshot: &Path, error: Error) -> Failure {
    const EXAMPLE: &str = "`freewheel plan place --schema` describes snapshots, and examples/jbod.toml in Freewheel's source is one";
    match error.kind() {
        ErrorKind::Unreadable { wanted: FileKind::Snapshot, path, reason }
            if is_not_a_file(*reason) =>
        {
            let help = with_near_file(EXAMPLE, path);
            Failure::failed(error).with_help(help)
        }
        ErrorKind::NotOfKind { wanted: FileKind::Snapshot, .. } => {
            match wrong_file_kind::for_a_snapshot(snapshot) {
                Some(wrong) => Failure::failed(wrong.message).with_help(wrong.help),
                None => Failure::failed(error).with_help(EXAMPLE),
            }
        }
        _ => error.into(),
    }
}
