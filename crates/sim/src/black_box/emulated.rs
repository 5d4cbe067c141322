//! A modelled drive as a black box.

use std::collections::BTreeMap;
use std::sync::Arc;

use freewheel_model::drive::spec::{ByOp, DriveSpec};
use freewheel_model::onboard::spec::{QueueSpec, WriteCache};
use freewheel_model::onboard::{NextEvent, Served, Unit};
use freewheel_model::sched::Waiting;
use freewheel_units::{Blocks, Lbn, Op, Prng, SimDuration, SimTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::firmware::{Activity, BadBlocks, Firmware};
use crate::library::{self, DriveError};
use crate::servo::SeekErrors;

/// What a drive is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Unique; comes back with the reply.
    pub id: u64,
    /// Read, write, or flush.
    pub op: Op,
    /// First block; of no meaning in a flush.
    pub start: Lbn,
    /// Number of blocks, at least one; of no meaning in a flush.
    pub blocks: u32,
}

/// A command that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The command's.
    pub id: u64,
    /// When the host has it.
    pub at: SimTime,
    /// The first block that could not be read, if there is one.
    pub bad: Option<Lbn>,
    /// What it took inside, which a host never knows.
    pub served: Served,
}

/// What a drive has beside its mechanics and its electronics.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Habits {
    /// Seeks take so much longer or shorter than the curve says at most; the drive's own when
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_jitter: Option<SimDuration>,
    /// Replies are under way for so long at most, evenly.
    pub reply_jitter: SimDuration,
    /// And for so much longer at most for each block: how far the bus is behind the media varies
    /// from request to request.
    pub reply_jitter_a_block: SimDuration,
    /// What it does for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    /// Commands that it holds at once; the drive's own number when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// Whether writes are done when its buffer has them; as the drive does when absent. A host can
    /// switch that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<WriteCache>,
}

/// A drive that exists in arithmetic only. It is told the time with every call, and does at each of
/// its events what a drive does then: virtual time goes from event to event, real time is waited
/// for.
pub struct EmulatedDrive {
    unit: Unit,
    blocks: Blocks,
    firmware: Firmware,
    inside: BTreeMap<u64, Command>,
    /// Replies under way, by arrival.
    replies: BTreeMap<(SimTime, u64), Reply>,
    reply_jitter: SimDuration,
    reply_jitter_a_block: SimDuration,
    prng: Prng,
}

impl EmulatedDrive {
    /// The drive of a file, named `name` in errors, at rest.
    pub fn new(
        spec: &DriveSpec,
        name: &str,
        habits: &Habits,
        bad: BadBlocks,
        seed: u64,
    ) -> Result<Self, DriveError> {
        let mut spec = spec.clone();
        if let Some(jitter) = habits.seek_jitter {
            spec.seek.tolerance = jitter;
        }
        if let Some(depth) = habits.queue_depth {
            let queue = spec.onboard.queue.unwrap_or_default();
            spec.onboard.queue = Some(QueueSpec { depth, ..queue });
        }
        if let (Some(cache), Some(buffer)) = (habits.write_cache, &mut spec.onboard.buffer) {
            buffer.write_cache = cache;
        }
        let drive = library::build(&spec, name)?;
        let onboard = spec.onboard.with_processing(spec.overhead);
        let inside = Arc::new(drive.with_overhead(ByOp::default()));
        let unit =
            Unit::new(&inside, &onboard).expect("a drive that builds has a policy that does");
        let errors = SeekErrors::new(&drive, seed, 0);
        Ok(Self {
            unit,
            blocks: drive.blocks(),
            firmware: Firmware::new(errors, bad, habits.activity, seed),
            inside: BTreeMap::new(),
            replies: BTreeMap::new(),
            reply_jitter: habits.reply_jitter,
            reply_jitter_a_block: habits.reply_jitter_a_block,
            prng: Prng::new(seed, "reply jitter"),
        })
    }

    /// The drive's inside, for sums over a run.
    pub(crate) fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Blocks that it has.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Commands that it holds at once, flushes not counted.
    pub fn queue_depth(&self) -> u32 {
        self.unit.queue_depth()
    }

    /// Whether it takes another command but a flush, which it always does.
    pub fn has_room(&self) -> bool {
        self.unit.has_room()
    }

    /// Takes a command at `now`, before which there is no event any more. Panics when it has no
    /// room, or when the command is not one for this drive.
    pub fn submit(&mut self, now: SimTime, command: Command) {
        let Command { id, op, start, blocks } = command;
        let twice = self.inside.insert(id, command);
        assert!(twice.is_none(), "command {id} is inside already");
        if op == Op::Flush {
            if !self.unit.flush(now, id) {
                self.reply(id, Served { end: now, ..Served::default() });
            }
            return;
        }
        let target = self.unit.drive().target(start, Blocks::new(blocks.into()), op);
        let waiting = Waiting { target, arrival: now, sequence: id };
        self.unit.submit(now, &waiting, &mut self.firmware);
    }

    /// What happens next, if nothing is submitted before.
    pub fn next_event(&self) -> Option<NextEvent> {
        let reply = self.replies.first_key_value().map(|((at, _), _)| NextEvent::Completion(*at));
        let inside = self.unit.next_event();
        reply.into_iter().chain(inside).min_by_key(|event| event.time())
    }

    /// Lets the next event happen, whose time is `now`, and returns a reply if that is what it was.
    pub fn advance(&mut self, now: SimTime) -> Option<Reply> {
        if let Some(entry) = self.replies.first_entry()
            && entry.key().0 <= now
        {
            return Some(entry.remove());
        }
        if let Some(done) = self.unit.advance(now, &mut self.firmware) {
            self.reply(done.sequence, done.served);
        }
        None
    }

    /// A command is done inside, and its reply on its way.
    fn reply(&mut self, id: u64, served: Served) {
        let command = self.inside.remove(&id).expect("it is inside");
        let Command { op, start, blocks, .. } = command;
        let bad = match op {
            Op::Read => self.firmware.bad().first_in(start, blocks),
            Op::Write => {
                self.firmware.bad().written(start, blocks);
                None
            }
            _ => None,
        };
        let most = self.reply_jitter + self.reply_jitter_a_block * u64::from(blocks);
        let way = SimDuration::from_ns(self.prng.below(most.ns() + 1));
        let at = served.end + way;
        self.replies.insert((at, id), Reply { id, at, bad, served });
    }
}
