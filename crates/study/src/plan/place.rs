//! The plan for a JBOD: where new files go, and which files move.

use std::path::{Path, PathBuf};

use freewheel_model::array::rebalance::{BalanceDisk, Balancer, NoMove, RankedMove, RebalanceSpec};
use freewheel_sim::config::TraceWorkload;
use freewheel_units::{BLOCK_BYTES, Bytes, did_you_mean};
use serde::Serialize;

use super::error::PlanError;
use super::jbod::Jbod;
use super::outcome::{Effort, Outcome, Simulated};
use super::progress::PlanProgressSink;
use super::snapshot::{DiskEntry, FileEntry, Snapshot};
use super::spread::equal_bytes;
use super::traced::of_trace;

/// Where disks, files and their rates come from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceSource {
    /// A snapshot.
    Snapshot(PathBuf),
    /// A trace: each device is a disk, and its fragments are the files.
    Trace {
        /// The trace.
        trace: TraceWorkload,
        /// The drive of each device: a shipped one, or the path of a drive file.
        drive: String,
        /// Bytes of a fragment.
        fragment: Bytes,
    },
}

impl PlaceSource {
    /// The file that is read.
    pub fn file(&self) -> &Path {
        match self {
            Self::Snapshot(path) => path,
            Self::Trace { trace, .. } => &trace.file,
        }
    }

    fn load(&self, progress: PlanProgressSink<'_>) -> Result<Snapshot, PlanError> {
        match self {
            Self::Snapshot(path) => Snapshot::load(path),
            Self::Trace { trace, drive, fragment } => {
                of_trace(trace, drive, *fragment, |done, total| {
                    progress("reading the trace", done, total);
                })
            }
        }
    }

    /// The snapshot's file, if there is one.
    fn origin(&self) -> Option<&Path> {
        match self {
            Self::Snapshot(path) => Some(path),
            Self::Trace { .. } => None,
        }
    }
}

/// What is asked of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaceOptions {
    /// Where disks, files and their rates come from.
    pub source: PlaceSource,
    /// What if this many times as many requests came in the same time.
    pub load: f64,
    /// Within how many seconds a move has to pay back what its copy cost.
    pub horizon_s: f64,
    /// Share of the mean response that a move has to save at least.
    pub gain_min: f64,
    /// Share of each disk that no move fills.
    pub free_share: f64,
    /// Bytes a second that a copy takes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_rate: Option<Bytes>,
    /// Most moves.
    pub moves_max: usize,
    /// What if there was one disk more: its drive.
    pub add: Vec<String>,
    /// What if a disk was replaced: its name, and the drive.
    pub replace: Vec<(String, String)>,
    /// Requests of each simulation.
    pub requests: u64,
    /// Seed of the arrivals.
    pub seed: u64,
}

impl PlaceOptions {
    /// The usual ones for this source.
    pub fn new(source: PlaceSource) -> Self {
        let RebalanceSpec { horizon_s, gain_min, free_share, .. } = RebalanceSpec::default();
        Self {
            source,
            load: 1.0,
            horizon_s,
            gain_min,
            free_share,
            copy_rate: None,
            moves_max: 100,
            add: Vec::new(),
            replace: Vec::new(),
            requests: 100_000,
            seed: 1,
        }
    }

    fn spec(&self) -> RebalanceSpec {
        RebalanceSpec {
            free_share: self.free_share,
            rate: self.copy_rate.map(|rate| rate.get() as f64 / BLOCK_BYTES as f64),
            horizon_s: self.horizon_s,
            gain_min: self.gain_min,
            ..RebalanceSpec::default()
        }
    }

    fn simulated(&self) -> Simulated {
        Simulated { requests: self.requests, seed: self.seed }
    }
}

/// A plan: what to move, and what that brings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacePlan {
    /// What was asked.
    pub options: PlaceOptions,
    /// Requests a second to all files.
    pub rate: f64,
    /// Files of the snapshot.
    pub files: u64,
    /// The disks, in the order of the snapshot.
    pub disks: Vec<PlannedDisk>,
    /// Disks for files that had none.
    pub placed: Vec<PlacedFile>,
    /// Moves in the order in which they should be done.
    pub moves: Vec<PlannedMove>,
    /// Why there is no further move.
    pub stopped: String,
    /// Without the plan: as it is. New files are where most room is.
    pub before: Outcome,
    /// After the plan.
    pub after: Outcome,
    /// What a balancer of bytes would reach.
    pub equal_bytes: Outcome,
    /// Other disks, each with a plan of its own.
    pub what_if: Vec<Outcome>,
}

/// A disk of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedDisk {
    /// Its name.
    pub name: String,
    /// Its drive.
    pub drive: String,
    /// What it can hold.
    pub size: Bytes,
    /// Whether its drive is shingled.
    pub is_shingled: bool,
    /// Where it is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// A disk for a new file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacedFile {
    /// The file.
    pub file: String,
    /// Name of the disk.
    pub disk: String,
}

/// A move of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedMove {
    /// The file.
    pub file: String,
    /// Name of its disk.
    pub from: String,
    /// Name of its disk afterwards.
    pub to: String,
    /// Its size.
    pub bytes: Bytes,
    /// Its requests a second.
    pub rate: f64,
    /// What it makes the mean response of all clients shorter, in seconds.
    pub gain_s: f64,
    /// The mean response when it is done, in seconds; none while a disk cannot serve its load.
    pub response_s: Option<f64>,
    /// How long the copy takes, in seconds.
    pub copy_s: f64,
    /// Seconds that clients wait longer during the copy, summed over all of them.
    pub waiting_s: f64,
    /// When the move has saved as much waiting as its copy caused, in seconds after the copy.
    pub payback_s: f64,
}

/// Works out which files of a JBOD to move, and simulates the requests before and after.
pub fn plan_place(
    options: &PlaceOptions,
    progress: PlanProgressSink<'_>,
) -> Result<PlacePlan, PlanError> {
    if options.copy_rate == Some(Bytes::ZERO) {
        let message = "--copy-rate is 0: leave it out for copies as fast as the disks allow";
        return Err(PlanError::Option { message: message.into() });
    }
    let mut snapshot = options.source.load(progress)?;
    snapshot.files.iter_mut().for_each(|file| file.rate *= options.load);
    let jbod = Jbod::new(&snapshot, options.source.origin())?;
    let rate: f64 = jbod.files.iter().map(|file| file.rate).sum();
    if rate <= 0.0 {
        let message = format!(
            "{}: no file has a rate above 0: without requests there is nothing to balance",
            options.source.file().display()
        );
        return Err(PlanError::Option { message });
    }
    let start = start(&snapshot, &jbod, options)?;
    let outcome = |name: &str, balancer: &Balancer<'_>, effort| {
        Outcome::of(name, &jbod, balancer, effort, options.simulated(), progress)
    };
    let before = outcome("as it is", &start, Effort::default())?;
    let mut bytes = start.clone();
    let effort = equal_bytes(&jbod, &mut bytes, &options.spec());
    let equal_bytes = outcome("equal bytes", &bytes, effort)?;
    let Planned { balancer, placed, moves, effort, stopped } =
        Planned::new(&snapshot, &jbod, options)?;
    let after = outcome("after the plan", &balancer, effort)?;
    Ok(PlacePlan {
        options: options.clone(),
        rate,
        files: snapshot.files.len() as u64,
        disks: disks(&snapshot, &jbod),
        placed,
        moves,
        stopped,
        before,
        after,
        equal_bytes,
        what_if: what_ifs(&snapshot, options, progress)?,
    })
}

fn disks(snapshot: &Snapshot, jbod: &Jbod) -> Vec<PlannedDisk> {
    let disk = |((entry, disk), &is_shingled): ((&DiskEntry, &BalanceDisk), &bool)| PlannedDisk {
        name: entry.name.clone(),
        drive: entry.drive.clone(),
        size: disk.blocks.bytes(),
        is_shingled,
        path: entry.path.clone(),
    };
    snapshot.disks.iter().zip(&jbod.disks).zip(&jbod.shingled).map(disk).collect()
}

/// Without a plan: new files go where most room is, as union file systems put them.
fn start<'j>(
    snapshot: &Snapshot,
    jbod: &'j Jbod,
    options: &PlaceOptions,
) -> Result<Balancer<'j>, PlanError> {
    let mut balancer = jbod.balancer();
    balancer.place_by_room(options.free_share).map_err(|file| no_room(snapshot, file, options))?;
    Ok(balancer)
}

fn no_room(snapshot: &Snapshot, file: usize, options: &PlaceOptions) -> PlanError {
    let FileEntry { name, size, .. } = &snapshot.files[file];
    let message = format!(
        "no disk has room for the new file `{name}` of {} with {:.0} % left free: add a disk, or lower --keep-free",
        size.human_decimal(),
        100.0 * options.free_share
    );
    PlanError::Option { message }
}

/// A plan that is worked out, before it is simulated.
struct Planned<'j> {
    balancer: Balancer<'j>,
    placed: Vec<PlacedFile>,
    moves: Vec<PlannedMove>,
    effort: Effort,
    stopped: String,
}

impl<'j> Planned<'j> {
    fn new(snapshot: &Snapshot, jbod: &'j Jbod, options: &PlaceOptions) -> Result<Self, PlanError> {
        let mut balancer = jbod.balancer();
        let placed = balancer.place_new(options.free_share);
        let placed = placed.map_err(|file| no_room(snapshot, file, options))?;
        let placed_file = |&(file, disk): &(usize, u32)| PlacedFile {
            file: snapshot.files[file].name.clone(),
            disk: snapshot.disks[disk as usize].name.clone(),
        };
        let placed = placed.iter().map(placed_file).collect();
        let (mut moves, mut effort) = (Vec::new(), Effort::default());
        let stopped = loop {
            if moves.len() == options.moves_max {
                break format!("{} moves are asked for at most", options.moves_max);
            }
            let wanted = match balancer.next_move(&options.spec()) {
                Ok(wanted) => wanted,
                Err(why) => break why_stopped(why, options),
            };
            balancer.apply(&wanted);
            effort.moves += 1;
            effort.blocks += jbod.files[wanted.file].blocks;
            effort.copy_s += wanted.cost.copy_s;
            moves.push(planned(snapshot, &wanted, balancer.response_s()));
        };
        Ok(Self { balancer, placed, moves, effort, stopped })
    }
}

fn planned(snapshot: &Snapshot, wanted: &RankedMove, response_s: Option<f64>) -> PlannedMove {
    let file = &snapshot.files[wanted.file];
    let name = |disk: u32| snapshot.disks[disk as usize].name.clone();
    PlannedMove {
        file: file.name.clone(),
        from: name(wanted.from),
        to: name(wanted.to),
        bytes: file.size,
        rate: file.rate,
        gain_s: wanted.gain_s,
        response_s,
        copy_s: wanted.cost.copy_s,
        waiting_s: wanted.cost.waiting_s,
        payback_s: wanted.payback_s(),
    }
}

fn why_stopped(why: NoMove, options: &PlaceOptions) -> String {
    let percent = 100.0 * options.gain_min;
    match why {
        NoMove::NoLoad | NoMove::TooLittleGain => {
            format!("the next move would save less than {percent} % of the mean response")
        }
        NoMove::NoRoom => {
            format!("no disk has room for a file that would save {percent} % of the mean response")
        }
        NoMove::NoPayback => "the next move would not pay back within the horizon".into(),
    }
}

/// Plans for the same files on other disks.
fn what_ifs(
    snapshot: &Snapshot,
    options: &PlaceOptions,
    progress: PlanProgressSink<'_>,
) -> Result<Vec<Outcome>, PlanError> {
    let mut outcomes = Vec::new();
    for (number, drive) in options.add.iter().enumerate() {
        let name = format!("added disk {}", number + 1);
        let disk = DiskEntry { name, drive: drive.clone(), size: None, path: None };
        let mut more = snapshot.clone();
        more.disks.push(disk);
        outcomes.push(what_if(&format!("with one {drive} more"), &more, options, progress)?);
    }
    for (name, drive) in &options.replace {
        let mut other = snapshot.clone();
        let known = snapshot.disks.iter().map(|disk| disk.name.as_str());
        let meant = did_you_mean(name, known);
        let disk = other.disks.iter_mut().find(|disk| disk.name == *name);
        let disk = disk.ok_or_else(|| PlanError::Option {
            message: format!("--replace: no disk is called `{name}`{meant}"),
        })?;
        disk.drive.clone_from(drive);
        disk.size = None;
        outcomes.push(what_if(&format!("with {name} as {drive}"), &other, options, progress)?);
    }
    Ok(outcomes)
}

fn what_if(
    name: &str,
    snapshot: &Snapshot,
    options: &PlaceOptions,
    progress: PlanProgressSink<'_>,
) -> Result<Outcome, PlanError> {
    let jbod = Jbod::new(snapshot, None)?;
    let planned = Planned::new(snapshot, &jbod, options)?;
    let simulated = options.simulated();
    Ok(Outcome::of(name, &jbod, &planned.balancer, planned.effort, simulated, progress)?)
}
