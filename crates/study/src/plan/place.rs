//! The plan for a JBOD: where new files go, and which files move.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use freewheel_array::plan::{EQUAL_BYTES_MOVES_MAX, Effort, LoadTime, LoadTimes, equal_bytes};
use freewheel_array::rebalance::{Balancer, NoMove, RankedMove, RebalanceSpec};
use freewheel_sim::config::TraceWorkload;
use freewheel_sim::files::LoggedUse;
use freewheel_trace::{LeftOut, PartAnswers};
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, did_you_mean};
use serde::Serialize;

use super::error::{PlanError, wrong};
use super::jbod::Jbod;
use super::outcome::{Outcome, Simulated};
use super::progress::PlanProgressSink;
use super::snapshot::{DiskEntry, FileEntry, Snapshot, relative};
use super::traced::{Traced, of_trace};
use super::web::of_web_log;

/// Source of disks, files and their rates.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum PlaceSource {
    Snapshot(PathBuf),
    /// A trace: each device is a disk, and its fragments are the files.
    Trace {
        trace: TraceWorkload,
        /// The drive of each device: a shipped one, or the path of a drive file.
        drive: String,
        fragment: Bytes,
        /// The time over which loads are means.
        load_time: LoadTime,
    },
    /// The log of a web server: its files are new, and the disks are empty.
    WebLog {
        file: PathBuf,
        /// The drive of each disk: a shipped one, or the path of a drive file.
        drive: String,
        disks: u32,
    },
}

impl PlaceSource {
    /// The file that is read.
    pub fn file(&self) -> &Path {
        match self {
            Self::Snapshot(path) => path,
            Self::Trace { trace, .. } => &trace.file,
            Self::WebLog { file, .. } => file,
        }
    }

    /// The source as results repeat it.
    fn shown(&self) -> Self {
        let mut shown = self.clone();
        if let Self::Trace { trace, .. } = &mut shown {
            *trace = trace.shown();
        }
        shown
    }

    /// Disks and files, and what else is known of them.
    fn load(&self, progress: PlanProgressSink<'_>) -> Result<Loaded, PlanError> {
        match self {
            Self::Snapshot(path) => Ok(Loaded::new(Snapshot::load(path)?)),
            Self::Trace { trace, drive, fragment, load_time } => {
                let Traced { snapshot, times } =
                    of_trace(trace, drive, *fragment, *load_time, |done, total| {
                        progress("reading the trace", done, total)
                    })?;
                Ok(Loaded { times: Some(times), ..Loaded::new(snapshot) })
            }
            Self::WebLog { file, drive, disks } => {
                let (snapshot, log) = of_web_log(file, drive, *disks)?;
                let LoggedUse { left_out, parts, sites, .. } = log;
                let (left_out, parts) = (Some(left_out), Some(parts));
                Ok(Loaded { left_out, parts, sites, ..Loaded::new(snapshot) })
            }
        }
    }

    /// The snapshot's file, if there is one.
    fn origin(&self) -> Option<&Path> {
        match self {
            Self::Snapshot(path) => Some(path),
            Self::Trace { .. } | Self::WebLog { .. } => None,
        }
    }
}

/// Contents of a source.
struct Loaded {
    snapshot: Snapshot,
    left_out: Option<LeftOut>,
    parts: Option<PartAnswers>,
    sites: Vec<String>,
    times: Option<LoadTimes>,
}

impl Loaded {
    fn new(snapshot: Snapshot) -> Self {
        Self { snapshot, left_out: None, parts: None, sites: Vec::new(), times: None }
    }
}

/// Requests of a simulation, for each disk and at least.
const REQUESTS_A_DISK: u64 = 5000;
const REQUESTS_MIN: u64 = 100_000;
/// Fewer requests a second, one in eleven days, are no load, and 100,000 of them take too long to simulate.
const RATE_MIN: f64 = 1e-6;

/// Options of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaceOptions {
    /// Source of disks, files and their rates.
    pub source: PlaceSource,
    /// Factor of the number of requests in the same time.
    pub load: f64,
    /// Within how many seconds a move has to pay back what its copy cost.
    pub horizon_s: f64,
    /// Share by which a move has to make the mean response of its disk's clients shorter at least.
    pub gain_min: f64,
    /// Share of each disk that no move fills.
    pub free_share: f64,
    /// Bytes a second that a copy takes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_rate: Option<Bytes>,
    /// Most moves.
    pub moves_max: usize,
    /// Drives of additional disks.
    pub add: Vec<String>,
    /// Replaced disks: name, and the new drive.
    pub replace: Vec<(String, String)>,
    /// Requests of each simulation; 5,000 a disk and 100,000 at least if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
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
            requests: None,
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

    fn simulated(&self, disks: usize) -> Simulated {
        Simulated {
            requests: self
                .requests
                .unwrap_or_else(|| (REQUESTS_A_DISK * disks as u64).max(REQUESTS_MIN)),
            seed: self.seed,
        }
    }
}

/// A plan: what to move, and what that brings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacePlan {
    /// Options of the plan.
    pub options: PlaceOptions,
    /// Requests a second to all files.
    pub rate: f64,
    /// Files of the snapshot.
    pub files: u64,
    /// Requests of each simulation.
    pub requests: u64,
    /// Lines of a web server's log that count as no request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Answers 206 of a web server's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_answers: Option<PartAnswers>,
    /// The sites that a web server's log tells apart, if it has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<String>,
    /// Over which time the loads of a trace's devices are means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_times: Option<LoadTimes>,
    /// The disks, in the order of the snapshot.
    pub disks: Vec<PlannedDisk>,
    /// Disks for files that had none.
    pub placed: Vec<PlacedFile>,
    /// Moves in the order in which they should be done.
    pub moves: Vec<PlannedMove>,
    /// Reason why there is no further move.
    pub stopped: Stopped,
    /// Files that ask more than any disk can serve. Their disks count in no mean response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hopeless: Vec<String>,
    /// Without the plan: as it is. New files are where most room is.
    pub before: Outcome,
    /// After the plan.
    pub after: Outcome,
    /// Outcome that a balancer of bytes would reach.
    pub equal_bytes: Outcome,
    /// True if that balancer would move even more files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub equal_bytes_is_cut: bool,
    /// Other disks, each with a separate plan.
    pub what_if: Vec<WhatIfPlan>,
}

/// Plan with other disks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatIfPlan {
    /// Outcome for clients after the moves.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Moves in their order.
    pub list: Vec<PlannedMove>,
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

/// A disk of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct PlannedDisk {
    pub name: String,
    pub drive: String,
    /// Capacity of the disk.
    pub size: Bytes,
    /// Bytes of the files that are on it now.
    pub used: Bytes,
    /// Actuators of its drive, of which this disk is one.
    #[serde(skip_serializing_if = "is_one")]
    pub actuators: u32,
    /// True if its drive is shingled.
    pub is_shingled: bool,
    /// Mount point of the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// Reason why a plan has no further move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Stopped {
    /// The number of moves that was asked for.
    MovesMax,
    /// The next move would save too little.
    TooLittleGain,
    /// No disk has room for this file, whose move would save most.
    NoRoom(String),
    /// The disk to which a file's move would save most has no room, and with those that have it the move
    /// would save too little.
    TargetFull { file: String, disk: String },
    /// The next move would not pay back in time.
    NoPayback,
}

/// A disk for a new file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct PlacedFile {
    pub file: String,
    pub disk: String,
    /// Size of the file.
    pub bytes: Bytes,
    /// Moves after which the disk has room for it, if not at once.
    #[serde(skip_serializing_if = "is_none")]
    pub after_moves: usize,
}

fn is_none(count: &usize) -> bool {
    *count == 0
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
    /// Size of the file.
    pub bytes: Bytes,
    /// Requests to the file a second.
    pub rate: f64,
    /// Time by which it makes the mean response of all clients shorter, in seconds.
    pub gain_s: f64,
    /// The mean response when it is done, in seconds; none while a disk cannot serve its load.
    pub response_s: Option<f64>,
    /// Time of the copy and of its comparison with the original, in seconds.
    pub copy_s: f64,
    /// Seconds that clients wait longer during the copy, summed over all of them.
    pub waiting_s: f64,
    /// Time at which the move has saved as much waiting as its copy caused, in seconds after the copy. A
    /// move that makes room pays together with the next one.
    pub payback_s: f64,
    /// True if the target has another file of that name, which a copy would overwrite.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub name_is_taken: bool,
    /// True if it makes room for the next move, and is done for that alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub makes_room: bool,
    /// True if it relieves a file that no disk can serve, beside which every wait is endless.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ends_endless_wait: bool,
}

/// Works out which files of a JBOD to move, and simulates the requests before and after.
pub fn plan_place(
    options: &PlaceOptions,
    progress: PlanProgressSink<'_>,
) -> Result<PlacePlan, PlanError> {
    if options.copy_rate == Some(Bytes::ZERO) {
        return wrong("--copy-rate is 0: leave it out for copies as fast as the disks allow");
    }
    let Loaded { mut snapshot, left_out, parts, sites, times } = options.source.load(progress)?;
    snapshot.files.iter_mut().for_each(|file| file.rate *= options.load);
    let jbod = Jbod::new(&snapshot, options.source.origin())?;
    let rate: f64 = jbod.files.iter().map(|file| file.rate).sum();
    enough_requests(options.source.file(), rate)?;
    let what_ifs = WhatIf::all(&snapshot, options)?;
    let names = |files: Vec<usize>| -> Vec<String> {
        files.into_iter().map(|file| snapshot.files[file].name.clone()).collect()
    };
    let hopeless = names(jbod.balancer().hopeless().collect());
    let start = start(&snapshot, &jbod, options)?;
    let simulated = options.simulated(snapshot.disks.len());
    let as_it_is = match placed_now(&snapshot) {
        true => "as it is",
        false => "as it is, new files by room",
    };
    let before = Outcome::of(as_it_is, &jbod, &start, Effort::default(), simulated, progress)?;
    let mut bytes = start.clone();
    let effort = equal_bytes(&jbod.disks, &mut bytes, &options.spec());
    let equal_bytes = Outcome::of("equal bytes", &jbod, &bytes, effort, simulated, progress)?;
    let Planned { balancer, placed, moves, effort, stopped } =
        Planned::new(&snapshot, &jbod, options)?;
    let after = Outcome::of("after the plan", &jbod, &balancer, effort, simulated, progress)?;
    Ok(PlacePlan {
        options: PlaceOptions { source: options.source.shown(), ..options.clone() },
        rate,
        files: snapshot.files.len() as u64,
        requests: simulated.requests,
        left_out,
        part_answers: parts,
        sites,
        load_times: times,
        disks: disks(&snapshot, &jbod),
        placed,
        moves,
        stopped,
        hopeless,
        before,
        after,
        equal_bytes_is_cut: equal_bytes.moves >= EQUAL_BYTES_MOVES_MAX,
        equal_bytes,
        what_if: what_ifs
            .into_iter()
            .map(|what_if| what_if.outcome(options, progress))
            .collect::<Result<_, _>>()?,
    })
}

/// True if every file has a disk.
fn placed_now(snapshot: &Snapshot) -> bool {
    snapshot.files.iter().all(|file| file.disk.is_some())
}

/// Err for files that nobody uses, and for those that hardly anybody does.
pub(super) fn enough_requests(file: &Path, rate: f64) -> Result<(), PlanError> {
    let file = file.display();
    if rate <= 0.0 {
        return wrong(format!("{file}: no file has a rate above 0, so nobody waits for any"));
    }
    match rate < RATE_MIN {
        true => wrong(format!(
            "{file}: {rate} requests a second in all: fewer than {RATE_MIN}, and so nobody waits for another"
        )),
        false => Ok(()),
    }
}

fn disks(snapshot: &Snapshot, jbod: &Jbod) -> Vec<PlannedDisk> {
    let mut used = vec![Blocks::ZERO; jbod.disks.len()];
    for file in &jbod.files {
        if let Some(disk) = file.disk {
            used[disk as usize] += file.blocks;
        }
    }
    snapshot
        .disks
        .iter()
        .enumerate()
        .map(|(number, entry)| PlannedDisk {
            name: entry.name.clone(),
            drive: entry.drive.clone(),
            size: jbod.disks[number].blocks.bytes(),
            used: used[number].bytes(),
            actuators: jbod.drives[number].actuators(),
            is_shingled: jbod.shingled[number],
            path: entry.path.clone(),
        })
        .collect()
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
    stopped: Stopped,
}

impl<'j> Planned<'j> {
    fn new(snapshot: &Snapshot, jbod: &'j Jbod, options: &PlaceOptions) -> Result<Self, PlanError> {
        let mut balancer = jbod.balancer();
        let placed = balancer.place_new(options.free_share);
        let placed = placed.map_err(|file| no_room(snapshot, file, options))?;
        // A new file that a move takes elsewhere goes there at once.
        let at_once = placed.into_iter().map(|(file, disk)| (file, (disk, 0)));
        let mut placed: BTreeMap<usize, (u32, usize)> = at_once.collect();
        let (mut moves, mut effort) = (Vec::new(), Effort::default());
        let stopped = loop {
            let left = options.moves_max - moves.len();
            if left == 0 {
                break Stopped::MovesMax;
            }
            // Copies run one after the other, and what came before has used up some of the time.
            let spec = options.spec();
            let spec = RebalanceSpec { horizon_s: spec.horizon_s - effort.copy_s, ..spec };
            let wanted = match balancer.next_move(&spec) {
                Ok(wanted) => vec![wanted],
                Err(why @ (NoMove::NoRoom { .. } | NoMove::TargetFull { .. })) if left > 1 => {
                    match balancer.next_exchange(&spec) {
                        Some(pair) => pair.to_vec(),
                        None => break why_stopped(why, snapshot),
                    }
                }
                Err(why) => break why_stopped(why, snapshot),
            };
            let payback_s = payback_s(&wanted);
            for (number, one) in wanted.iter().enumerate() {
                let ends_endless_wait = balancer.is_lost(one.from);
                balancer.apply(one);
                if let Some(place) = placed.get_mut(&one.file) {
                    *place = (one.to, moves.len());
                    continue;
                }
                effort.moves += 1;
                effort.blocks += jbod.files[one.file].blocks;
                effort.copy_s += one.cost.copy_s;
                let makes_room = number + 1 < wanted.len();
                let response_s = balancer.response_s();
                let planned = planned(snapshot, one, response_s);
                moves.push(PlannedMove { payback_s, makes_room, ends_endless_wait, ..planned });
            }
        };
        let placed = placed
            .into_iter()
            .map(|(file, (disk, after_moves))| PlacedFile {
                file: snapshot.files[file].name.clone(),
                disk: snapshot.disks[disk as usize].name.clone(),
                bytes: snapshot.files[file].size,
                after_moves,
            })
            .collect();
        Ok(Self { balancer, placed, moves, effort, stopped })
    }
}

/// Time at which moves have saved together as much waiting as their copies caused, in seconds after the
/// last copy.
fn payback_s(moves: &[RankedMove]) -> f64 {
    let sum = |of: fn(&RankedMove) -> f64| moves.iter().map(of).sum::<f64>();
    sum(|wanted| wanted.cost.waiting_s) / sum(|wanted| wanted.saved)
}

fn planned(snapshot: &Snapshot, wanted: &RankedMove, response_s: Option<f64>) -> PlannedMove {
    let file = &snapshot.files[wanted.file];
    let path = relative(&file.name);
    PlannedMove {
        file: file.name.clone(),
        from: disk_name(snapshot, wanted.from),
        to: disk_name(snapshot, wanted.to),
        bytes: file.size,
        rate: file.rate,
        gain_s: wanted.gain_s,
        response_s,
        copy_s: wanted.cost.copy_s,
        waiting_s: wanted.cost.waiting_s,
        payback_s: wanted.payback_s(),
        makes_room: false,
        ends_endless_wait: false,
        name_is_taken: snapshot.files.iter().any(|other| {
            other.disk.as_ref() == Some(&disk_name(snapshot, wanted.to))
                && relative(&other.name) == path
        }),
    }
}

fn disk_name(snapshot: &Snapshot, disk: u32) -> String {
    snapshot.disks[disk as usize].name.clone()
}

fn why_stopped(why: NoMove, snapshot: &Snapshot) -> Stopped {
    match why {
        NoMove::NoLoad | NoMove::TooLittleGain => Stopped::TooLittleGain,
        NoMove::NoRoom { file } => Stopped::NoRoom(snapshot.files[file].name.clone()),
        NoMove::TargetFull { file, to } => Stopped::TargetFull {
            file: snapshot.files[file].name.clone(),
            disk: snapshot.disks[to as usize].name.clone(),
        },
        NoMove::NoPayback => Stopped::NoPayback,
    }
}

/// Placement of the files on other disks.
struct WhatIf {
    name: String,
    option: String,
    snapshot: Snapshot,
    jbod: Jbod,
}

impl WhatIf {
    /// All that are asked for. What is wrong with one of them is known before anything is simulated.
    fn all(snapshot: &Snapshot, options: &PlaceOptions) -> Result<Vec<Self>, PlanError> {
        let mut all = Vec::new();
        for drive in &options.add {
            let name = (1..).map(|number| format!("added disk {number}"));
            let name = name
                .into_iter()
                .find(|name| snapshot.disks.iter().all(|disk| disk.name != *name))
                .expect("there are more names than disks");
            let disk = DiskEntry { name, drive: drive.clone(), size: None, path: None };
            let mut more = snapshot.clone();
            more.disks.push(disk);
            let name = format!("with one {drive} more");
            all.push(Self::new(name, format!("--add-disk {drive}"), more)?);
        }
        for (name, drive) in &options.replace {
            let option = format!("--replace {name}={drive}");
            let mut other = snapshot.clone();
            let known = snapshot.disks.iter().map(|disk| disk.name.as_str());
            let meant = did_you_mean(name, known);
            let disk = other.disks.iter_mut().find(|disk| disk.name == *name);
            let Some(disk) = disk else {
                return wrong(format!("{option}: no disk is called `{name}`{meant}"));
            };
            disk.drive.clone_from(drive);
            disk.size = None;
            all.push(Self::new(format!("with {name} as {drive}"), option, other)?);
        }
        Ok(all)
    }

    fn new(name: String, option: String, snapshot: Snapshot) -> Result<Self, PlanError> {
        let jbod =
            Jbod::new(&snapshot, None).or_else(|error| wrong(format!("{option}: {error}")))?;
        Ok(Self { name, option, snapshot, jbod })
    }

    fn outcome(
        &self,
        options: &PlaceOptions,
        progress: PlanProgressSink<'_>,
    ) -> Result<WhatIfPlan, PlanError> {
        let planned = Planned::new(&self.snapshot, &self.jbod, options)
            .or_else(|error| wrong(format!("{}: {error}", self.option)))?;
        let simulated = options.simulated(self.snapshot.disks.len());
        let Planned { balancer, effort, moves: list, .. } = planned;
        let outcome = Outcome::of(&self.name, &self.jbod, &balancer, effort, simulated, progress)?;
        Ok(WhatIfPlan { outcome, list })
    }
}
