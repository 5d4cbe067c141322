//! Files on the disks of an array as the workload of an experiment.

use std::path::PathBuf;

use freewheel_freeblock::IDLE_AFTER_MAX;
use freewheel_units::{Bytes, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cooling::CoolingUnit;

/// Files that lie on the disks of the array, each where the placement puts it. Requests come as a Poisson
/// process to the files of `classes`, or at the times of a web server's `log`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesWorkload {
    /// Requests in all. A log ends with its last request if it has fewer.
    #[serde(default = "default_requests")]
    pub requests: u64,
    /// Requests a second to all classes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Files that are alike. Not with `log`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<FileClass>,
    /// Log of a web server, plain, .gz or .zst: each file that it names, read as a whole. A relative path
    /// starts at the folder of the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Factor by which the times of the log become shorter.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub arrival_speedup: f64,
    /// On which disk each file, or each of its extents, lies.
    #[serde(default)]
    pub placement: FilePlacement,
    /// In which order the files of a disk lie on it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: FileOrder,
    /// Over how many disks a file is spread: `whole`, `best`, or `{ unit = "64KiB" }`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stripes: FileStripes,
    /// Requests within files begin at multiples of this.
    #[serde(default = "align")]
    pub align: Bytes,
    /// Movement of the hot set during the run; it stays if nothing is given. Not with `log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// Heat with which a new file counts, where `placement` is `heat`; that of its class if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_heat: Option<NewHeatConfig>,
    /// Disks of other drives, behind those of `array.drives`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_disks: Vec<MoreDisks>,
    /// Moves files, or parts of them, from hot disks to cool ones during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooling: Option<CoolingConfig>,
    /// Copies files to other stripes when the load has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restriping: Option<Box<RestripingConfig>>,
    /// Rates that replace `rate` from these times on, ascending. The shares of files stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<LaterRate>,
}

const fn align() -> Bytes {
    Bytes::from_kib(4)
}

const fn default_requests() -> u64 {
    10_000
}

fn is_one(factor: &f64) -> bool {
    *factor == one()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Files that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileClass {
    /// Name of the class in results; its number if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of files.
    pub files: u32,
    /// Mean size of a file.
    pub size: Bytes,
    /// Size of all files, or mean of an exponential distribution of sizes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sizes: FileSizes,
    /// Size of a request; the whole file if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Bytes>,
    /// Share of all requests, beside the shares of the other classes; 0 for files without requests.
    #[serde(default = "one")]
    pub share: f64,
    /// Share of its requests that read.
    #[serde(default = "one")]
    pub reads: f64,
    /// Skew of the use of files; all alike if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot: Option<HotFiles>,
    /// Files of it that are created a second. Each takes the place of another one, which is deleted, and that
    /// one's share of the requests. Its first request writes it as a whole.
    #[serde(default, skip_serializing_if = "is_default")]
    pub new_files: f64,
}

/// Heat with which a new file counts when it is placed, and when the next ones are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewHeatConfig {
    /// The mean of its class's first files: what is known of a type of files (tr96 section 2.3).
    #[default]
    Class,
    /// Its own, as if somebody had told it before.
    Known,
    /// Its own once five requests to it were seen, and none before (tr96 section 3.1): files that arrive
    /// together pile up on one disk until then.
    AfterAccesses,
}

const fn one() -> f64 {
    1.0
}

/// That some files get most requests, Zipf-like: any share x of the files, hottest first, gets x^e of the
/// requests, and e fits these two shares (tr96 equation 26).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HotFiles {
    /// Share of the files, as 0.3.
    pub files: f64,
    /// Share of the requests that go to them, as 0.7.
    pub requests: f64,
}

/// A hot set that moves: every so often some files of each class change places with others of it, each taking
/// the other's share of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// Time from one change to the next.
    pub every: SimDuration,
    /// Share of each class's files that change, as 0.1.
    pub files: f64,
    /// Most changes between two requests: after many, nothing is left of the old order.
    #[serde(default = "changes_max")]
    pub changes_max: u32,
}

const fn changes_max() -> u32 {
    100
}

/// Another rate from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaterRate {
    /// Time from the start of the run.
    pub from: SimDuration,
    /// Requests a second to all classes together.
    pub rate: f64,
}

/// Stripes that follow the load (tr96 section 2.3). A check compares the load since the last one with that
/// before it. When another number of disks a request has become best, the hottest files are copied.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RestripingConfig {
    /// Time from one check to the next.
    pub every: SimDuration,
    /// Files that a check stripes anew at most, the hottest ones.
    pub files: u32,
    /// Least change of the mean response by the model.
    pub least_change: SimDuration,
    /// The response whose change counts.
    pub trigger: RestripingTrigger,
    /// Bytes that a copy reads and writes at once.
    pub piece: Bytes,
    /// Bytes a second that are copied at most; the number that the disks allow if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bytes>,
}

impl Default for RestripingConfig {
    /// tr96 states none of these.
    fn default() -> Self {
        Self {
            every: SimDuration::from_secs(60),
            files: 100,
            least_change: SimDuration::from_ms(1),
            trigger: RestripingTrigger::default(),
            piece: Bytes::from_kib(512),
            rate: None,
        }
    }
}

/// The response whose change triggers restriping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestripingTrigger {
    /// The best response is longer than at the last check (tr96). A load that falls never triggers.
    #[default]
    Worsened,
    /// The new stripes are faster than the old ones under the new load.
    Gain,
}

/// Sizes of the files of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileSizes {
    /// All the same.
    #[default]
    Constant,
    /// Exponential, as in tr96.
    Exponential,
}

/// On which disk a file goes. No disk gets two extents of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilePlacement {
    /// The hottest file first, each on the disk that is least busy so far.
    #[default]
    Heat,
    /// The disk after the last file's.
    RoundRobin,
    /// Any disk, by a fixed hash.
    Random,
    /// The disk with the fewest bytes so far: what balancers of bytes end with.
    EqualBytes,
}

/// In which order the files of a disk lie on it, from its outermost track on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileOrder {
    /// As they were placed.
    #[default]
    Placed,
    /// Files with the most requests for their size first: seeks are short, and tracks long.
    HottestOutermost,
}

/// Over how many disks a file is spread.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileStripes {
    /// One: each file is in one piece on one disk.
    #[default]
    Whole,
    /// The number that the model of tr96 finds best for the file's requests under this load.
    Best,
    /// Runs of this many bytes go round all disks that the file reaches.
    Unit(Bytes),
    /// Runs of the size that Chen's closed model gives for this many requests at a time (tr96 equation 1).
    Chen(f64),
}

/// Disks of another drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoreDisks {
    /// Name of a shipped drive, or path of a drive file, from the folder of the experiment.
    pub drive: String,
    /// Number of files.
    pub count: u32,
}

/// Moves extents from the hottest disk while clients use it (tr96 figure 5).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoolingConfig {
    /// From one look at the disks to the next: a time, or a number of clients' requests.
    pub every: CoolingStep,
    /// Share by which the hottest disk must exceed the mean.
    pub threshold: f64,
    /// Unit in which heat is counted.
    pub heat: HeatConfig,
    /// Condition under which a move is worth it: `{ variance = "1h" }`, which also counts what the move
    /// itself costs, or tr96's `target-stays-cooler`.
    pub rule: CoolingRule,
    /// Parts that move, and their targets: `extents`, or `fragments` as in the traces of tr96.
    pub unit: CoolingUnit,
    /// True if requests that wait at the hottest disk forbid moves.
    pub queue_veto: bool,
    /// True if only disks are cooled at which more requests wait or are served than at the mean disk:
    /// `waits_factor` times as many.
    pub waits: bool,
    /// Multiple of the mean disk's requests that `waits` asks for.
    pub waits_factor: f64,
    /// Arrivals at a mean disk over which `waits` averages.
    pub waits_arrivals: u32,
    /// Extents of the hottest disk that a look considers, the best first.
    pub candidates: u32,
    /// True if a moved extent goes near the hot ones of its target, and not into the shortest free range.
    pub near_hot: bool,
    /// True if copies go before all requests that wait for a disk, as far as those have not gone to the
    /// drive.
    pub copies_first: bool,
    /// Moves at once, each between two disks of its own. So many of the hottest disks may be sources.
    pub moves: u32,
    /// How moves are copied: by `requests` among those of clients, or in `gaps`.
    pub copies: CopiesConfig,
    /// Idle time of a disk after which copies in gaps use it, too; they never do if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_after: Option<SimDuration>,
    /// Accesses of an extent over which its heat is averaged.
    pub accesses: u32,
    /// Bytes that a move reads and writes at once.
    pub piece: Bytes,
    /// Bytes a second that moves copy at most; the number that the disks allow if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bytes>,
}

impl Default for CoolingConfig {
    /// Threshold of tr96, and its step of 100 requests at the 100 requests a second in the middle of its
    /// tables. It states neither the number of accesses nor the size of a piece. The load is taken to stay
    /// for an hour.
    fn default() -> Self {
        Self {
            every: CoolingStep::Time(SimDuration::from_secs(1)),
            threshold: 0.05,
            heat: HeatConfig::default(),
            rule: CoolingRule::Variance(SimDuration::from_secs(3600)),
            unit: CoolingUnit::default(),
            queue_veto: false,
            waits: true,
            waits_factor: 1.5,
            waits_arrivals: 256,
            candidates: 32,
            near_hot: true,
            copies_first: false,
            moves: 1,
            copies: CopiesConfig::default(),
            idle_after: None,
            accesses: 25,
            piece: Bytes::from_kib(512),
            rate: None,
        }
    }
}

/// From one look at the disks to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a time as \"1s\", or a number of requests as 100")]
#[schemars(rename = "CoolingEvery")]
pub enum CoolingStep {
    /// A time, also while clients are idle.
    Time(SimDuration),
    /// Clients' requests, as in the tables of tr96.
    Requests(u64),
}

/// Way in which moves are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopiesConfig {
    /// By reads and writes among those of clients.
    #[default]
    Requests,
    /// In rotational gaps of both disks: clients wait for no copy, or within the budget of a scheduler outside
    /// the drives. Moves cost nothing then, so that both rules are the same.
    Gaps,
}

/// Unit in which heat is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeatConfig {
    /// The time that accesses take of the head: small hot files cost seeks.
    #[default]
    HeadTime,
    /// The blocks that are accessed, as in tr96.
    Blocks,
}

/// Condition under which a move is worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CoolingRuleConfig")]
pub enum CoolingRule {
    /// The target stays cooler than the source was. At light load such moves cost more than they bring.
    TargetStaysCooler,
    /// Within this time the disks' heat variance falls by more than the move costs.
    Variance(SimDuration),
}

impl FilesWorkload {
    /// Err for values out of range, and for keys that exclude each other.
    pub fn check(&self) -> Result<(), String> {
        match (&self.log, self.classes.is_empty(), self.rate) {
            (None, true, _) => {
                return Err("there are no files: add [[workload.classes]], or name a `log`".into());
            }
            (Some(_), false, _) => {
                return Err("`log` and `classes` exclude each other: leave one of them out".into());
            }
            (Some(_), true, Some(_)) => {
                return Err(
                    "`rate` is for `classes`, and a log has times: give `arrival_speedup`".into()
                );
            }
            (None, false, None) => {
                return Err("`rate` is missing: give the requests a second to all classes".into());
            }
            _ => {}
        }
        let rate = self.rate.unwrap_or(1.0);
        if !(RATE_MIN..=RATE_MAX).contains(&rate) {
            return Err(format!("`rate` is {rate}: {RATE_MIN} to {RATE_MAX} are allowed"));
        }
        self.check_drift()?;
        self.check_new_files()?;
        self.check_rates()?;
        self.check_restriping()?;
        if self.requests == 0 {
            return Err("`requests` is 0: at least 1 is needed".into());
        }
        if !(RATE_MIN..=RATE_MAX).contains(&self.arrival_speedup) {
            let is = self.arrival_speedup;
            return Err(format!("`arrival_speedup` is {is}: {RATE_MIN} to {RATE_MAX} are allowed"));
        }
        whole_blocks("align", self.align)?;
        if let FileStripes::Unit(unit) = self.stripes {
            whole_blocks("stripes.unit", unit)?;
        }
        self.check_chen()?;
        if let Some(none) = self.more_disks.iter().position(|disks| disks.count == 0) {
            return Err(format!("`more_disks[{none}].count` is 0: leave the entry out"));
        }
        for (number, class) in self.classes.iter().enumerate() {
            class.check().map_err(|says| format!("`classes[{number}].{says}"))?;
        }
        for (number, class) in self.classes.iter().enumerate() {
            if let Some(first) = self.classes[..number]
                .iter()
                .position(|other| other.name.is_some() && other.name == class.name)
            {
                return Err(format!(
                    "`classes[{number}].name` is that of `classes[{first}]`: give it another"
                ));
            }
        }
        if !self.classes.is_empty() && self.classes.iter().all(|class| class.share == 0.0) {
            return Err("every class has `share` 0: no file is used".into());
        }
        let files: u64 = self.classes.iter().map(|class| u64::from(class.files)).sum();
        if files > FILES_MAX {
            return Err(format!("there are {files} files: at most {FILES_MAX} are simulated"));
        }
        if let Some(cooling) = self.cooling {
            cooling.check()?;
        }
        Ok(())
    }

    fn check_chen(&self) -> Result<(), String> {
        match self.stripes {
            FileStripes::Chen(requests) if !(requests > 1.0 && requests.is_finite()) => {
                Err(format!(
                    "`stripes.chen` is {requests}: more than 1 request at a time is needed, as by the formula one request alone is split into single blocks"
                ))
            }
            _ => Ok(()),
        }
    }

    fn check_rates(&self) -> Result<(), String> {
        if self.log.is_some() && !self.rates.is_empty() {
            return Err("`rates` is for `classes`, and a log has its own: leave it out".into());
        }
        for (number, later) in self.rates.iter().enumerate() {
            if !(RATE_MIN..=RATE_MAX).contains(&later.rate) {
                let is = later.rate;
                return Err(format!(
                    "`rates[{number}].rate` is {is}: {RATE_MIN} to {RATE_MAX} are allowed"
                ));
            }
            if number > 0 && self.rates[number - 1].from >= later.from {
                let is = later.from;
                return Err(format!(
                    "`rates[{number}].from` is {is}: a later time than the one before is needed"
                ));
            }
        }
        Ok(())
    }

    fn check_restriping(&self) -> Result<(), String> {
        let Some(restriping) = &self.restriping else { return Ok(()) };
        let RestripingConfig { every, files, piece, rate, .. } = **restriping;
        if self.cooling.is_some() {
            return Err(
                "`restriping` and `cooling` exclude each other: leave one of them out".into()
            );
        }
        if every < STEP_MIN {
            return Err(format!("`restriping.every` is {every}: at least {STEP_MIN} is needed"));
        }
        if files == 0 {
            return Err("`restriping.files` is 0: at least 1 is needed".into());
        }
        for (key, bytes) in [("piece", piece), ("rate", rate.unwrap_or(piece))] {
            if bytes.get() < 512 {
                return Err(format!("`restriping.{key}` is {bytes}: at least 512 B are needed"));
            }
        }
        Ok(())
    }

    fn check_new_files(&self) -> Result<(), String> {
        let all: f64 = self.classes.iter().map(|class| class.new_files).sum();
        if self.new_heat.is_some() && (all == 0.0 || self.placement != FilePlacement::Heat) {
            return Err(
                "`new_heat` is for `placement = \"heat\"` and a class with `new_files`: leave it out"
                    .into(),
            );
        }
        let share = all / (all + self.rate.unwrap_or_default());
        if self.requests as f64 * share > FILES_MAX as f64 {
            return Err(format!(
                "`new_files` makes more than {FILES_MAX} files in {} requests: lower one of them",
                self.requests
            ));
        }
        Ok(())
    }

    fn check_drift(&self) -> Result<(), String> {
        let Some(Drift { every, files, changes_max }) = self.drift else { return Ok(()) };
        if self.log.is_some() {
            return Err("`drift` is for `classes`, and a log has its own: leave it out".into());
        }
        if every < STEP_MIN {
            return Err(format!("`drift.every` is {every}: at least {STEP_MIN} is needed"));
        }
        if !(files > 0.0 && files <= 1.0) {
            return Err(format!("`drift.files` is {files}: a share as 0.1 is needed"));
        }
        if changes_max == 0 {
            return Err("`drift.changes_max` is 0: at least 1 is needed".into());
        }
        Ok(())
    }
}

fn whole_blocks(key: &str, bytes: Bytes) -> Result<(), String> {
    if bytes.get() > 0 && bytes.get().is_multiple_of(512) {
        Ok(())
    } else {
        Err(format!("`{key}` is {bytes}: whole blocks of 512 B are needed"))
    }
}

/// Range of rates: from one in twelve days.
const RATE_MIN: f64 = 1e-6;
const RATE_MAX: f64 = 1e9;
/// Shortest time between two looks: each sorts the extents of a disk.
const STEP_MIN: SimDuration = SimDuration::from_us(100);
/// Most moves at once.
const MOVES_MAX: u32 = 64;
/// Most files: each takes about 200 bytes.
const FILES_MAX: u64 = 20_000_000;

impl FileClass {
    /// Err begins with the key and its closing mark.
    fn check(&self) -> Result<(), String> {
        if self.files == 0 {
            return Err("files` is 0: leave the class out".into());
        }
        if self.size == Bytes::ZERO || self.request == Some(Bytes::ZERO) {
            let key = if self.size == Bytes::ZERO { "size" } else { "request" };
            return Err(format!("{key}` is 0: files and requests have at least one byte"));
        }
        if !(self.share.is_finite() && self.share >= 0.0) {
            return Err(format!("share` is {}: a number of 0 or more is needed", self.share));
        }
        if !(0.0..=RATE_MAX).contains(&self.new_files) {
            let is = self.new_files;
            return Err(format!("new_files` is {is}: 0 to {RATE_MAX} a second are allowed"));
        }
        if !(0.0..=1.0).contains(&self.reads) {
            return Err(format!("reads` is {}: a share of 0 to 1 is needed", self.reads));
        }
        if let Some(HotFiles { files, requests }) = self.hot
            && !(is_share(files) && is_share(requests) && requests >= files)
        {
            return Err(format!(
                "hot` is {{ files = {files}, requests = {requests} }}: a share of the files and a larger one of the requests are needed, as {{ files = 0.3, requests = 0.7 }}"
            ));
        }
        Ok(())
    }
}

fn is_share(share: f64) -> bool {
    share > 0.0 && share < 1.0
}

impl CoolingConfig {
    fn check(&self) -> Result<(), String> {
        let Self { every, threshold, accesses, piece, rate, .. } = *self;
        match every {
            CoolingStep::Requests(0) => {
                return Err("`cooling.every` is 0: at least 1 request is needed".into());
            }
            CoolingStep::Time(time) if time < STEP_MIN => {
                return Err(format!("`cooling.every` is {time}: at least {STEP_MIN} is needed"));
            }
            _ => {}
        }
        if !(threshold >= 0.0 && threshold.is_finite()) {
            return Err(format!("`cooling.threshold` is {threshold}: a share as 0.05 is needed"));
        }
        if !(2..=1000).contains(&accesses) {
            return Err(format!("`cooling.accesses` is {accesses}: 2 to 1000 are allowed"));
        }
        let Self { waits_factor, waits_arrivals, candidates, .. } = *self;
        if !(waits_factor >= 1.0 && waits_factor.is_finite()) {
            return Err(format!(
                "`cooling.waits_factor` is {waits_factor}: a number of 1 or more is needed"
            ));
        }
        for (key, count) in [("waits_arrivals", waits_arrivals), ("candidates", candidates)] {
            if count == 0 {
                return Err(format!("`cooling.{key}` is 0: at least 1 is needed"));
            }
        }
        for (key, bytes) in [("piece", piece), ("rate", rate.unwrap_or(piece))] {
            if bytes.get() < 512 {
                return Err(format!("`cooling.{key}` is {bytes}: at least 512 B are needed"));
            }
        }
        self.check_copies()
    }

    fn check_copies(&self) -> Result<(), String> {
        let Self { moves, copies, idle_after, rate, copies_first, .. } = *self;
        if !(1..=MOVES_MAX).contains(&moves) {
            return Err(format!("`cooling.moves` is {moves}: 1 to {MOVES_MAX} are allowed"));
        }
        let given = match copies {
            CopiesConfig::Requests => [("idle_after", idle_after.is_some()), ("", false)],
            CopiesConfig::Gaps => [("rate", rate.is_some()), ("copies_first", copies_first)],
        };
        if let Some((key, _)) = given.iter().find(|(_, is_given)| *is_given) {
            let other = match copies {
                CopiesConfig::Requests => "gaps",
                CopiesConfig::Gaps => "requests",
            };
            return Err(format!(
                "`cooling.{key}` is for `copies = \"{other}\"`: leave it out, or say that"
            ));
        }
        match idle_after.filter(|after| *after > IDLE_AFTER_MAX) {
            Some(after) => {
                Err(format!("`cooling.idle_after` is {after}: at most an hour is allowed"))
            }
            None => Ok(()),
        }
    }
}
