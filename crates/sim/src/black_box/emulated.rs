//! A modelled drive as a black box.

use std::collections::BTreeMap;
use std::sync::Arc;

use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_model::drive::{BuildDriveError, Drive, Sectors};
use freewheel_model::electronics::spec::{QUEUE_DEPTH_MAX, QueueSpec, SectorFormat, WriteCache};
use freewheel_model::electronics::{DriveUnit, NextEvent, Served};
use freewheel_model::sched::{CommandMark, PolicySpec, Waiting};
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::firmware::{Activity, BadBlocks, Firmware, JitterShape, SeekJitter};
use super::spindle::{Spindle, SpindleDrift};
use crate::seek_errors::SeekErrors;

/// A command for a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Unique; the reply carries it.
    pub id: u64,
    /// Read, write, or flush.
    pub op: Op,
    /// First block; ignored in a flush.
    pub start: Lbn,
    /// Number of blocks, at least one; ignored in a flush.
    pub blocks: u32,
    /// Force unit access; ignored in a flush.
    pub fua: bool,
    /// Mark for the drive's queue; ignored in a flush.
    pub mark: CommandMark,
}

/// A command that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Id of the command.
    pub id: u64,
    /// Arrival at the host.
    pub at: SimTime,
    /// The first block that could not be read, if there is one.
    pub bad: Option<Lbn>,
    /// Stage times inside the drive, by the spindle's clock. A host never sees them.
    pub served: Served,
}

/// Behaviour of a drive beyond its mechanics and electronics.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Behaviour {
    /// Largest error of a seek either way; the drive's own tolerance when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_jitter: Option<SimDuration>,
    /// Distribution of seek errors: `even`, or `normal` with the jitter as standard deviation.
    pub seek_jitter_shape: JitterShape,
    /// Largest error of a seek over all cylinders. Between short and full seeks it grows with the
    /// distance. Equal to that of short seeks when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_jitter_far: Option<SimDuration>,
    /// Largest error of a seek inward, to higher cylinders, over any distance. Equal to that of outward
    /// seeks when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_jitter_inward: Option<SimDuration>,
    /// Longest delay of a reply on its way to the host; evenly distributed.
    pub reply_jitter: SimDuration,
    /// Longest additional delay of a reply for each block, as the bus lags the media by a time that
    /// varies between requests.
    pub reply_jitter_a_block: SimDuration,
    /// Drift of the spindle's speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spindle_drift: Option<SpindleDrift>,
    /// Interruptions by the drive's own maintenance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Number of commands that the drive holds at once; the drive's own number when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Policy that chooses among the commands inside; the drive's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_policy: Option<PolicySpec>,
    /// Condition under which a write is done: when the buffer holds it, or when the media do; the drive's
    /// own setting when absent. A host can switch this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCache>,
    /// Sector format; that of the drive file when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sector: Option<SectorFormat>,
}

/// Behaviour outside the allowed range.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{key}` is {value}: {rule}")]
#[allow(missing_docs)]
pub struct BehaviourError {
    /// Key within the table `behaviour`.
    pub key: &'static str,
    pub value: String,
    pub rule: String,
}

/// Reason why a drive cannot be emulated.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum EmulatedDriveError {
    /// The values of its file do not make a drive.
    #[error("{origin}: {source}")]
    Build {
        origin: String,
        /// Key, value and what is allowed.
        source: BuildDriveError,
    },
    /// Behaviour that no drive has.
    #[error("{origin}: {source}")]
    Behaviour {
        origin: String,
        /// Key, value and what is allowed.
        source: BehaviourError,
    },
}

/// Longest delay or interruption: hosts abandon a command before that.
const LATE_MAX: SimDuration = SimDuration::from_secs(60);

/// Longest delay for each block of a command, which may have 2^32 blocks.
const LATE_A_BLOCK_MAX: SimDuration = SimDuration::from_ms(1);

/// Shortest and longest mean time between activities. A shorter one would leave no time for commands.
const EVERY: [SimDuration; 2] = [SimDuration::from_ms(1), SimDuration::from_secs(365 * 86_400)];

/// Largest deviation of a spindle's speed, in parts of 10^9, with its shortest and longest period.
/// Spindle controllers hold the speed within a thousandth.
const DRIFT_MAX: u32 = 1_000_000;
const DRIFT_WITHIN: [SimDuration; 2] =
    [SimDuration::from_secs(1), SimDuration::from_secs(365 * 86_400)];

/// Longest error of a seek, as in a drive file.
const SEEK_JITTER_MAX: SimDuration = SimDuration::from_secs(1);

impl Behaviour {
    /// Rejects behaviour outside the allowed ranges.
    pub fn check(&self) -> Result<(), BehaviourError> {
        let none = SimDuration::ZERO;
        let mut times = vec![
            ("reply_jitter", self.reply_jitter, [none, LATE_MAX]),
            ("reply_jitter_a_block", self.reply_jitter_a_block, [none, LATE_A_BLOCK_MAX]),
        ];
        for (key, jitter) in [
            ("seek_jitter", self.seek_jitter),
            ("seek_jitter_far", self.seek_jitter_far),
            ("seek_jitter_inward", self.seek_jitter_inward),
        ] {
            times.push((key, jitter.unwrap_or(none), [none, SEEK_JITTER_MAX]));
        }
        if let Some(drift) = self.spindle_drift {
            let [least, most] = DRIFT_WITHIN;
            if drift.parts_per_billion > DRIFT_MAX || !(least..=most).contains(&drift.within) {
                let most_ppm = DRIFT_MAX / 1000;
                let rule = format!("at most {most_ppm}ppm, within {least} to {most}, are allowed");
                return Err(BehaviourError {
                    key: "spindle_drift",
                    value: drift.to_string(),
                    rule,
                });
            }
        }
        if let Some(Activity { every, lasts }) = self.activity {
            times.push(("activity.every", every, EVERY));
            times.push(("activity.lasts", lasts, [none, LATE_MAX]));
        }
        for (key, value, [least, most]) in times {
            if !(least..=most).contains(&value) {
                let rule = format!("{least} to {most} are allowed");
                return Err(BehaviourError { key, value: value.to_string(), rule });
            }
        }
        if let Some(depth) = self.queue_depth.filter(|d| !(1..=QUEUE_DEPTH_MAX).contains(d)) {
            let rule = format!("1 to {QUEUE_DEPTH_MAX} commands can be held");
            return Err(BehaviourError { key: "queue_depth", value: depth.to_string(), rule });
        }
        Ok(())
    }

    /// Applies the behaviour to the drive's `own` queue. Err for a policy on a queue of depth 1.
    fn queue(&self, own: Option<QueueSpec>) -> Result<Option<QueueSpec>, BehaviourError> {
        if self.queue_depth.is_none() && self.queue_policy.is_none() {
            return Ok(own);
        }
        let own = own.unwrap_or_default();
        let depth = self.queue_depth.unwrap_or(own.depth);
        if let Some(policy) = self.queue_policy.filter(|_| depth == 1) {
            let rule = "the drive holds one command at a time, so a policy has no choice: \
                        give `queue_depth` of 2 or more, or leave the policy out";
            let value = policy.to_string();
            return Err(BehaviourError { key: "queue_policy", value, rule: rule.into() });
        }
        let scheduler = self.queue_policy.unwrap_or(own.scheduler);
        Ok(Some(QueueSpec { depth, scheduler, ..own }))
    }
}

/// A drive that exists in arithmetic only. Callers pass the time with every call and advance the drive
/// at each of its events. A caller in virtual time leaps from event to event; a caller in real time
/// waits for them.
pub struct EmulatedDrive {
    unit: DriveUnit,
    blocks: Blocks,
    sector: SectorFormat,
    firmware: Firmware,
    inside: BTreeMap<u64, Command>,
    /// Replies on their way, by arrival.
    replies: BTreeMap<(SimTime, u64), Reply>,
    reply_jitter: SimDuration,
    reply_jitter_a_block: SimDuration,
    /// Present if the speed drifts. Then everything inside follows the spindle's clock.
    spindle: Option<Spindle>,
    prng: Prng,
}

impl EmulatedDrive {
    /// The drive of a file, named `name` in errors, at rest. Err for an invalid file, and for invalid
    /// behaviour.
    pub fn new(
        spec: &DriveSpec,
        name: &str,
        behaviour: &Behaviour,
        bad: BadBlocks,
        seed: u64,
    ) -> Result<Self, EmulatedDriveError> {
        let wrong = |source| EmulatedDriveError::Behaviour { origin: name.into(), source };
        behaviour.check().map_err(wrong)?;
        let mut spec = spec.clone();
        if let Some(jitter) = behaviour.seek_jitter {
            spec.seek.tolerance = jitter;
        }
        spec.electronics.queue = behaviour.queue(spec.electronics.queue).map_err(wrong)?;
        if let (Some(cache), Some(buffer)) = (behaviour.write_cache, &mut spec.electronics.buffer) {
            buffer.write_cache = cache;
        }
        spec.electronics.sector = behaviour.sector.unwrap_or(spec.electronics.sector);
        let drive = Drive::build(&spec)
            .map_err(|source| EmulatedDriveError::Build { origin: name.into(), source })?;
        let electronics = spec.electronics.with_processing(spec.overhead);
        let inside = Arc::new(drive.with_overhead(ByOp::default()));
        let unit = DriveUnit::new(&inside, &electronics)
            .expect("a drive that builds has a policy that does");
        let errors = SeekErrors::new(&drive, seed, 0);
        let [far_ns, inward_ns] = [behaviour.seek_jitter_far, behaviour.seek_jitter_inward]
            .map(|jitter| jitter.map(SimDuration::ns));
        let jitter = SeekJitter { errors, shape: behaviour.seek_jitter_shape, far_ns, inward_ns };
        Ok(Self {
            unit,
            blocks: drive.blocks(),
            sector: spec.electronics.sector,
            firmware: Firmware::new(
                jitter,
                bad.in_sectors(spec.electronics.sector.sectors()),
                behaviour.activity,
                seed,
            ),
            inside: BTreeMap::new(),
            replies: BTreeMap::new(),
            reply_jitter: behaviour.reply_jitter,
            reply_jitter_a_block: behaviour.reply_jitter_a_block,
            spindle: behaviour.spindle_drift.map(|drift| {
                let phase = Prng::new(seed, "spindle drift").below(2 * drift.within.ns());
                Spindle::new(drift, phase)
            }),
            prng: Prng::new(seed, "reply jitter"),
        })
    }

    /// The drive's inside, for sums over a run.
    pub(crate) fn unit(&self) -> &DriveUnit {
        &self.unit
    }

    /// Number of blocks.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Sector format.
    pub fn sector(&self) -> SectorFormat {
        self.sector
    }

    /// Number of commands that it holds at once, without flushes.
    pub fn queue_depth(&self) -> u32 {
        self.unit.queue_depth()
    }

    /// True if the drive takes another command. It always takes a flush.
    pub fn has_room(&self) -> bool {
        self.unit.has_room()
    }

    /// Takes a command at `now`; every earlier event must be handled. Panics when the drive has no room
    /// or the command does not fit.
    pub fn submit(&mut self, now: SimTime, command: Command) {
        let now = self.spindle.map_or(now, |spindle| spindle.own(now));
        let Command { id, op, start, blocks, fua, mark } = command;
        let twice = self.inside.insert(id, command);
        assert!(twice.is_none(), "command {id} is inside already");
        if op == Op::Flush {
            if !self.unit.flush(now, id) {
                self.reply(id, Served { end: now, ..Served::default() });
            }
            return;
        }
        let least = Sectors::of(self.sector.logical_blocks());
        assert!(!least.is_part(start, blocks), "{start} + {blocks} are no whole sectors");
        let target = self.unit.drive().target(start, Blocks::new(blocks.into()), op);
        let waiting = Waiting { target, arrival: now, sequence: id, fua, mark };
        self.unit.submit(now, &waiting, &mut self.firmware);
    }

    /// The power goes and comes back: commands inside and what its buffer held are forgotten, and the head
    /// is at rest. Bad blocks that were written before stay good.
    pub fn power_cut(&mut self) {
        self.unit = self.unit.restarted();
        self.inside.clear();
        self.replies.clear();
    }

    /// The next event, if no command is submitted before.
    pub fn next_event(&self) -> Option<NextEvent> {
        let reply = self.replies.first_key_value().map(|((at, _), _)| NextEvent::Completion(*at));
        let inside = self.unit.next_event().map(|event| match event {
            NextEvent::Completion(time) => {
                NextEvent::Completion(self.spindle.map_or(time, |spindle| spindle.others(time)))
            }
            NextEvent::Decision(time) => {
                NextEvent::Decision(self.spindle.map_or(time, |spindle| spindle.others(time)))
            }
        });
        reply.into_iter().chain(inside).min_by_key(|event| event.time())
    }

    /// Handles the next event, whose time is `now`. Returns a reply if one arrives at the host.
    pub fn advance(&mut self, now: SimTime) -> Option<Reply> {
        if let Some(entry) = self.replies.first_entry()
            && entry.key().0 <= now
        {
            return Some(entry.remove());
        }
        // The clock inside shows the event's own time: `others` rounds up, so converting `now` back
        // could pass it.
        let inside = self.spindle.and_then(|_| self.unit.next_event()).map(NextEvent::time);
        if let Some(done) = self.unit.advance(inside.unwrap_or(now), &mut self.firmware) {
            self.reply(done.sequence, done.served);
        }
        None
    }

    /// Handles the end of a write. A sector written in part had to be read first: returns its first
    /// block when that read failed.
    fn written(&mut self, start: Lbn, blocks: u32) -> Option<Lbn> {
        let sectors = self.sector.sectors();
        let bad = self.firmware.bad();
        if sectors.is_part(start, blocks) {
            let end = start + Blocks::new(blocks.into());
            let (first, behind) = sectors.cover(start, end);
            let ends = [(first < start, start), (end < behind, Lbn::new(end.get() - 1))];
            let amid = ends.into_iter().filter(|(is_part, _)| *is_part);
            if let Some(unreadable) = amid.filter_map(|(_, block)| bad.first_in(block, 1)).next() {
                return Some(unreadable);
            }
        }
        bad.written(start, blocks);
        None
    }

    /// A command is done inside; its reply leaves for the host.
    fn reply(&mut self, id: u64, served: Served) {
        let command = self.inside.remove(&id).expect("it is inside");
        let Command { op, start, blocks, .. } = command;
        let bad = match op {
            Op::Read => self.firmware.bad().first_in(start, blocks),
            Op::Write => self.written(start, blocks),
            _ => None,
        };
        let most = self.reply_jitter + self.reply_jitter_a_block * u64::from(blocks);
        let way = SimDuration::from_ns(self.prng.below(most.ns() + 1));
        let end = self.spindle.map_or(served.end, |spindle| spindle.others(served.end));
        let at = end + way;
        self.replies.insert((at, id), Reply { id, at, bad, served });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library;

    #[test]
    fn impossible_habits_refused_by_name() {
        let ms = SimDuration::from_ms;
        let own = |every, lasts| Some(Activity { every, lasts });
        let usual = Behaviour::default();
        let cases = [
            (
                Behaviour { activity: own(ms(0), ms(1)), ..usual },
                "`activity.every` is 0ns: 1ms to 365d",
            ),
            (
                Behaviour { activity: own(ms(1), ms(60_001)), ..usual },
                "`activity.lasts` is 60.001s: 0ns to 60s",
            ),
            (
                Behaviour { seek_jitter: Some(ms(1001)), ..usual },
                "`seek_jitter` is 1.001s: 0ns to 1s",
            ),
            (Behaviour { seek_jitter_far: Some(ms(1001)), ..usual }, "`seek_jitter_far` is 1.001s"),
            (
                Behaviour { seek_jitter_inward: Some(ms(1001)), ..usual },
                "`seek_jitter_inward` is 1.0",
            ),
            (Behaviour { reply_jitter: SimDuration::MAX, ..usual }, "`reply_jitter` is "),
            (Behaviour { reply_jitter_a_block: ms(2), ..usual }, "`reply_jitter_a_block` is 2ms"),
            (Behaviour { queue_depth: Some(0), ..usual }, "`queue_depth` is 0: 1 to 65536"),
        ];
        let spec = library::spec("atlas10k").unwrap();
        for (behaviour, message) in cases {
            let error = behaviour.check().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
            let drive = EmulatedDrive::new(&spec, "my drive", &behaviour, BadBlocks::default(), 1);
            assert_eq!(drive.err().unwrap().to_string(), format!("my drive: {error}"));
        }
        // A choice depends on the drive: Exos 7E8 holds 32 commands, TR96 has no electronics.
        let policy = Behaviour { queue_policy: Some(PolicySpec::Sptf), ..usual };
        let [today, bare] = ["exos-7e8-8tb", "tr96"].map(|name| library::spec(name).unwrap());
        let one = Behaviour { queue_depth: Some(1), ..policy };
        let two = Behaviour { queue_depth: Some(2), ..policy };
        let start = |spec, behaviour: &Behaviour| {
            EmulatedDrive::new(spec, "it", behaviour, BadBlocks::default(), 1).err()
        };
        for (spec, behaviour) in [(&today, &one), (&bare, &one), (&bare, &policy)] {
            let error = start(spec, behaviour).unwrap().to_string();
            assert!(
                error.starts_with("it: `queue_policy` is sptf: the drive holds one"),
                "{error}"
            );
        }
        for (spec, behaviour) in [(&today, &policy), (&today, &two), (&bare, &two)] {
            assert!(start(spec, behaviour).is_none());
        }
        let extreme = Behaviour { activity: own(ms(1), ms(60_000)), ..usual };
        assert_eq!((extreme.check(), usual.check()), (Ok(()), Ok(())));
    }
}
