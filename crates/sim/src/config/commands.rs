//! The `[commands]` table of an experiment: what hosts say to the drives' queues, and a scrub from outside.

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::electronics::spec::ElectronicsSpec;
use freewheel_model::electronics::{DurationLimit, DurationLimitsSpec, LimitPolicy};
use freewheel_model::sched::CommandMark;
use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, Op, SimDuration, VolumeBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigError, SimConfig, Workload};
use crate::source::{Marks, ScrubReads};
use crate::toml_faults::check_whole;

/// NCQ priority and Command Duration Limits of commands, and a scrub by commands of the host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CommandsConfig {
    /// Overrides the drive's `electronics.queue.high_priority_first`: how long an ordinary command waits behind
    /// those of high priority at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_priority_first: Option<SimDuration>,
    /// Overrides the drive's `electronics.duration_limits.read`, as a host writes that log of a drive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_limits: Vec<DurationLimit>,
    /// Overrides the drive's `electronics.duration_limits.write`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write_limits: Vec<DurationLimit>,
    /// Overrides the drive's `electronics.duration_limits.lead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_lead: Option<SimDuration>,
    /// Marks of the workload's commands.
    pub clients: MarksConfig,
    /// A scrub that the host sends command by command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrub: Option<OutsideScrubConfig>,
}

/// Marks of commands by operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MarksConfig {
    /// NCQ priority.
    pub high_priority: bool,
    /// Number of the duration limit that reads name, from 1 on; 0 for none.
    pub read_limit: u8,
    /// Number of the duration limit that writes name, from 1 on; 0 for none.
    pub write_limit: u8,
}

/// A scrub from outside the drive: reads in the order of addresses, some of them at the drive at all times.
/// After the last address it begins again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutsideScrubConfig {
    /// Bytes of a read.
    pub run: Bytes,
    /// Reads at the drive at once.
    pub outstanding: u32,
    /// First byte of the scrub.
    pub start: Bytes,
    /// Reads after which the workload issues no further request; no bound when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_max: Option<u64>,
    /// NCQ priority of its reads.
    pub high_priority: bool,
    /// Number of the duration limit that its reads name, from 1 on; 0 for none.
    pub read_limit: u8,
}

impl Default for OutsideScrubConfig {
    fn default() -> Self {
        Self {
            run: Bytes::from_kib(256),
            outstanding: 1,
            start: Bytes::new(0),
            reads_max: None,
            high_priority: false,
            read_limit: 0,
        }
    }
}

/// Most reads of a scrub at once.
const SCRUB_OUTSTANDING_MAX: u32 = 256;

/// Longest read of a scrub.
const SCRUB_RUN_MAX: Bytes = Bytes::from_kib(1 << 20);

impl MarksConfig {
    fn of(&self, op: Op) -> CommandMark {
        let limit = if op == Op::Write { self.write_limit } else { self.read_limit };
        match (self.high_priority, limit) {
            (true, _) => CommandMark::HighPriority,
            (_, 0) => CommandMark::None,
            (_, number) => CommandMark::DurationLimit(number),
        }
    }
}

impl OutsideScrubConfig {
    fn marks(&self) -> MarksConfig {
        let Self { high_priority, read_limit, .. } = *self;
        MarksConfig { high_priority, read_limit, write_limit: 0 }
    }

    fn reads(&self) -> ScrubReads {
        ScrubReads {
            mark: self.marks().of(Op::Read),
            start: VolumeBlock::new(self.start.get() / BLOCK_BYTES),
            run: Blocks::new(self.run.get() / BLOCK_BYTES),
            outstanding: self.outstanding as usize,
            most: self.reads_max.unwrap_or(u64::MAX),
        }
    }

    fn check(&self, capacity: Bytes, least: Bytes) -> Result<(), String> {
        let Self { run, outstanding, start, .. } = *self;
        if !(Bytes::new(BLOCK_BYTES)..=SCRUB_RUN_MAX).contains(&run) || run > capacity {
            let most = SCRUB_RUN_MAX.min(capacity);
            return Err(format!("scrub: `run` is {run}: 512 B to {most} are allowed"));
        }
        check_whole("scrub.run", run, least.max(Bytes::new(BLOCK_BYTES)))?;
        check_whole("scrub.start", start, least.max(Bytes::new(BLOCK_BYTES)))?;
        if start >= capacity {
            return Err(format!("scrub: `start` is {start}: the drives hold {capacity}"));
        }
        if !(1..=SCRUB_OUTSTANDING_MAX).contains(&outstanding) {
            return Err(format!(
                "scrub: `outstanding` is {outstanding}: 1 to {SCRUB_OUTSTANDING_MAX} are allowed"
            ));
        }
        Ok(())
    }
}

impl CommandsConfig {
    /// Marks that the host gives its commands.
    pub(crate) fn marks(&self) -> Marks {
        let [reads, writes] = [Op::Read, Op::Write].map(|op| self.clients.of(op));
        Marks { reads, writes, scrub: self.scrub.as_ref().map(OutsideScrubConfig::reads) }
    }

    /// Gives a drive's electronics what hosts set up in them.
    pub(super) fn apply(&self, electronics: &mut ElectronicsSpec) {
        if let Some(longest) = self.high_priority_first {
            electronics.queue.get_or_insert_default().high_priority_first = Some(longest);
        }
        let Self { read_limits, write_limits, limit_lead, .. } = self;
        if read_limits.is_empty() && write_limits.is_empty() && limit_lead.is_none() {
            return;
        }
        let limits = electronics.duration_limits.get_or_insert_default();
        if !read_limits.is_empty() {
            limits.read.clone_from(read_limits);
        }
        if !write_limits.is_empty() {
            limits.write.clone_from(write_limits);
        }
        limits.lead = limit_lead.or(limits.lead);
    }

    /// True if a limit that commands name ends them without data.
    fn may_abort(&self, electronics: &ElectronicsSpec) -> bool {
        let scrub = self.scrub.as_ref().map(OutsideScrubConfig::marks);
        let limits = electronics.duration_limits.clone().unwrap_or_default();
        [self.clients].into_iter().chain(scrub).any(|marks| {
            let named = [(marks.read_limit, &limits.read), (marks.write_limit, &limits.write)];
            named.into_iter().any(|(number, all)| {
                let index = usize::from(number).checked_sub(1);
                let limit = index.and_then(|index| all.get(index));
                limit.is_some_and(|limit| limit.policy == LimitPolicy::Abort)
            })
        })
    }

    /// Err for marks that this drive does not look at.
    fn check_marks(&self, electronics: &ElectronicsSpec) -> Result<(), String> {
        let scrub = self.scrub.as_ref().map(|scrub| ("scrub", scrub.marks()));
        for (who, marks) in [("clients", self.clients)].into_iter().chain(scrub) {
            check_marks(who, marks, electronics)?;
        }
        Ok(())
    }
}

fn check_marks(who: &str, marks: MarksConfig, drive: &ElectronicsSpec) -> Result<(), String> {
    let MarksConfig { high_priority, read_limit, write_limit } = marks;
    let queue = drive.queue.unwrap_or_default();
    if high_priority && (read_limit > 0 || write_limit > 0) {
        return Err(format!(
            "`{who}` have a priority and a duration limit, and a command has bits for one of them: leave one out"
        ));
    }
    if high_priority && (queue.high_priority_first.is_none() || queue.depth == 1) {
        let lacks = match queue.depth {
            1 => "the drive holds one command, and has no choice: give `queue_depth` of 2 or more",
            _ => {
                "the drive does not look at priorities: give `commands.high_priority_first`, or `electronics.queue.high_priority_first` in the drive file"
            }
        };
        return Err(format!("`{who}.high_priority` is true, and {lacks}"));
    }
    let limits: DurationLimitsSpec = drive.duration_limits.clone().unwrap_or_default();
    for (key, number, all) in
        [("read", read_limit, &limits.read), ("write", write_limit, &limits.write)]
    {
        if usize::from(number) > all.len() {
            return Err(format!(
                "`{who}.{key}_limit` is {number}, and the drive has {} descriptors of {key}s: give `commands.{key}_limits`, or `electronics.duration_limits.{key}` in the drive file",
                all.len()
            ));
        }
    }
    Ok(())
}

/// Electronics of the drive with as many commands as come to it: those of a scheduler outside.
fn electronics_behind(config: &SimConfig, spec: &DriveSpec) -> ElectronicsSpec {
    let mut electronics = spec.electronics.clone();
    if let Some(host) = &config.host {
        let depth = host.behaviour.queue_depth.unwrap_or(host.scheduler.queue_depth);
        electronics.queue.get_or_insert_default().depth = depth;
    }
    electronics
}

/// Err for a `[commands]` table that does not fit the experiment.
pub(crate) fn check_commands(
    config: &SimConfig,
    spec: &DriveSpec,
    volume: Blocks,
    least: Bytes,
) -> Result<(), ConfigError> {
    let Some(commands) = &config.commands else { return Ok(()) };
    let beside = [
        ("postmark", matches!(config.workload, Workload::Postmark(_))),
        ("files", matches!(config.workload, Workload::Files(_))),
    ];
    let checked = match beside.iter().find(|(_, is_there)| *is_there) {
        Some((kind, _)) => Err(format!(
            "`workload.kind` is {kind}, whose commands have no marks: leave `commands` out, or give closed, open or trace"
        )),
        None if config.cache.is_some() && commands.may_abort(&spec.electronics) => Err(
            "a cache takes a command that its duration limit ended for one with data: give the limits `policy = \"complete\"`, or leave `cache` or `commands` out".into(),
        ),
        None if !config.has_electronics(spec) => Err(
            "the drive has no queue that looks at commands: give `electronics = true`, or name another drive"
                .into(),
        ),
        None => commands.check_marks(&electronics_behind(config, spec)).and_then(|()| {
            let scrub = commands.scrub.as_ref();
            scrub.map_or(Ok(()), |scrub| scrub.check(volume.bytes(), least))
        }),
    };
    checked.map_err(|message| ConfigError::Commands { message })
}
