//! `freewheel plan place`: which files of a JBOD to move.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::Error;
use freewheel::drives::DEFAULT_DRIVE;
use freewheel::experiments::TraceWorkload;
use freewheel::files::FileKind;
use freewheel::measures::{Bytes, SimDuration};
use freewheel::plans::{LoadTime, PlaceOptions, PlaceReport, PlaceSource, Snapshot};

use super::{Input, written};
use crate::failure::Failure;
use crate::progress::Bars;
use crate::verbs::choice::{Choice, choice};
use crate::verbs::read_args::ReadArgs;
use crate::verbs::trace_args::default_folder;
use crate::{file, output};

/// Say which files of a JBOD to move so that clients wait less: moves with gain, cost and payback time
#[derive(Args)]
#[command(after_help = "\
The snapshot is a TOML file with [[disks]] and [[files]]; `--schema` prints its schema, and
examples/jbod.toml in Freewheel's source is one to begin with.

Examples:
  freewheel plan place jbod.toml
  freewheel plan place disks.trace.zst --drive atlas10k --fragment 16MiB --load 10
  freewheel plan place access.log.gz --disks 8
  freewheel plan place jbod.toml --horizon 7d --copy-rate 50MB --add-disk exos-x24-24tb")]
pub struct PlaceArgs {
    /// The snapshot: disks with their drives, files with size, disk and requests a second. Or a trace: each
    /// of its devices is a disk, and its fragments are the files. Or the log of a web server, whose files
    /// are new
    #[arg(required_unless_present = "schema")]
    snapshot: Option<PathBuf>,
    /// Drive of every disk of a trace or log: a shipped drive (see `freewheel drive list`), or a drive file
    /// [default: exos-x24-24tb]
    #[arg(long, value_name = "NAME")]
    drive: Option<String>,
    /// Number of disks for the files of a log
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    disks: Option<u32>,
    /// Size of a trace's fragments [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    fragment: Option<Bytes>,
    /// The time over which the loads of a trace's devices are means [default: common]
    #[arg(long, value_parser = choice(LOAD_TIMES))]
    load_time: Option<LoadTime>,
    #[command(flatten)]
    read: ReadArgs,
    /// Only this device of a trace
    #[arg(long, value_name = "N", value_parser = super::super::device)]
    device: Option<u32>,
    /// Answer for this many times as many requests in the same time, as 1.5
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = super::factor, allow_negative_numbers = true)]
    load: f64,
    /// Time within which a move has to pay back what its copy cost, as 12h or 30d
    #[arg(long, value_name = "TIME", default_value = "30d")]
    horizon: SimDuration,
    /// Share by which a move has to make the mean response of its disk's clients shorter; a disk with less
    /// waiting than the mean disk counts as that one
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = super::super::share)]
    min_gain: f64,
    /// Share of each disk that no move fills
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = super::super::share)]
    keep_free: f64,
    /// Bytes a second that a copy takes at most, as 50MB; as many as the disks give if not given
    #[arg(long, value_name = "SIZE", value_parser = super::rate)]
    copy_rate: Option<Bytes>,
    /// Most moves
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_moves: usize,
    /// Answer for one disk more: a shipped drive or a drive file; may be given again, for another answer
    #[arg(long, value_name = "DRIVE")]
    add_disk: Vec<String>,
    /// Answer for a disk that is another drive, as sdc=exos-x24-24tb; may be given again, for another
    /// answer
    #[arg(long, value_name = "DISK=DRIVE", value_parser = replacement)]
    replace: Vec<(String, String)>,
    /// Requests of each simulation, 1000 at least [default: 5000 a disk, and 100000 at least]
    #[arg(long, value_name = "N", value_parser = super::requests)]
    requests: Option<u64>,
    /// Seed of every random stream
    #[arg(long, default_value_t = 1, value_parser = super::super::seed)]
    seed: u64,
    /// Folder for plan.html, plan.json and, where it has commands, moves.sh [default: out/<name of the snapshot>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the JSON document instead of the tables
    #[arg(long)]
    json: bool,
    /// Print the JSON schema of snapshots
    #[arg(long)]
    schema: bool,
}

/// Times over which loads are means.
const LOAD_TIMES: &[Choice<LoadTime>] = &[
    (
        "common",
        LoadTime::Common,
        "From the latest first request of a device to the earliest last one",
    ),
    ("own", LoadTime::Own, "For each device from its first request to its last"),
    (
        "whole",
        LoadTime::Whole,
        "From the first request of all to the last; devices are idle before and after their own",
    ),
];

/// The usual size of a trace's fragments.
const FRAGMENT: Bytes = Bytes::from_kib(64 * 1024);

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
        let source = self.source(snapshot)?;
        let drive = self.drive.clone().unwrap_or_else(|| DEFAULT_DRIVE.into());
        let folder = self.out.clone().unwrap_or_else(|| default_folder(snapshot, &[drive]));
        file::ensure_writable_folder(&folder)?;
        let report = self.report(source)?;
        let [page, json, commands] =
            ["plan.html", "plan.json", "moves.sh"].map(|name| folder.join(name));
        let document = output::document(&report)?;
        let (html, script) = (report.html(), report.commands());
        let of_script = script.as_ref().map(|script| (commands.as_path(), script.as_str()));
        let files = [(page.as_path(), &*html), (&json, &*document)];
        let files: Vec<(&Path, &str)> = files.into_iter().chain(of_script).collect();
        written(&folder, &files)?;
        if script.is_none() {
            file::remove_if_there(&commands)?;
        }
        if self.json {
            return output::print(&document);
        }
        let page = format!("page: {}\n", page.display());
        let commands = script.map(|_| format!("commands: {}\n", commands.display()));
        output::print_prose(&(report.text() + &page + &commands.unwrap_or_default()))
    }

    /// Kind of the file. What would be a trace and is of no kind is meant as a log where disks are counted.
    fn input(&self, file: &Path) -> Input {
        match Input::of(file) {
            Input::Trace if self.disks.is_some() && FileKind::of(file).is_none() => Input::WebLog,
            input => input,
        }
    }

    /// Source of disks and files. Err for an option that does not go with it.
    fn source(&self, file: &Path) -> Result<PlaceSource, Failure> {
        let input = self.input(file);
        let is_given = [
            ("--drive", self.drive.is_some(), input == Input::Snapshot),
            ("--disks", self.disks.is_some(), input != Input::WebLog),
            ("--fragment", self.fragment.is_some(), input != Input::Trace),
            ("--device", self.device.is_some(), input != Input::Trace),
            ("--load-time", self.load_time.is_some(), input != Input::Trace),
        ];
        let of_trace =
            self.read.given().map(|(option, given)| (option, given, input != Input::Trace));
        let wrong = is_given
            .into_iter()
            .chain(of_trace)
            .find(|(_, is_given, is_wrong)| *is_given && *is_wrong);
        input.refuse(file, wrong.map(|(option, ..)| option))?;
        let file = file.to_owned();
        Ok(match input {
            Input::Snapshot => PlaceSource::Snapshot(file),
            Input::WebLog => {
                let Some(disks) = self.disks else {
                    let message =
                        format!("{}: a log does not say how many disks there are", file.display());
                    return Err(Failure::wrong_use(message).with_help("give --disks"));
                };
                PlaceSource::WebLog { file, drive: self.drive(), disks }
            }
            Input::Trace => PlaceSource::Trace {
                trace: self.read.apply(TraceWorkload {
                    file,
                    device: self.device,
                    ..TraceWorkload::default()
                }),
                drive: self.drive(),
                fragment: self.fragment.unwrap_or(FRAGMENT),
                load_time: self.load_time.unwrap_or_default(),
            },
        })
    }

    fn drive(&self) -> String {
        self.drive.clone().unwrap_or_else(|| DEFAULT_DRIVE.to_owned())
    }

    fn report(&self, source: PlaceSource) -> Result<PlaceReport, Error> {
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
            ..PlaceOptions::new(source)
        };
        let bars = Bars::default();
        freewheel::plans::plan_place(&options, &|task, done, total| bars.set(task, done, total))
    }
}
