//! Checks of an order. Each names the key, its value, and what is allowed.

use freewheel_units::{BLOCK_BYTES, Blocks, Bytes, SimDuration};

use super::{ENOUGH_MIN, TaskOrder};
use crate::tasks::{BLOCK_SIZE_MAX, Priority, TaskKind};
use crate::uses::Versions;

/// Size of the whole blocks within `bytes`.
const fn whole_blocks(bytes: u64, block: Bytes) -> Bytes {
    Bytes::new(bytes / block.get() * block.get())
}

/// A most as a key takes it, and for people where that has many digits.
fn exact(bytes: Bytes) -> String {
    let exact = bytes.to_string();
    if exact.len() <= 8 { exact } else { format!("{exact} ({})", bytes.human()) }
}

/// Longest time that a task may be given: a year.
const TIME_MAX: SimDuration = SimDuration::from_secs(365 * 24 * 3600);

/// Names of the place that a range is a part of.
struct Place {
    on: &'static str,
    whose: &'static str,
}

const ARM: Place = Place { on: "an arm", whose: "the arm's" };
const DRIVE: Place = Place { on: "a drive", whose: "the drive's" };

/// Blocks of 512 B in a task's block of this size. Err says what the size is and what is allowed; the name of
/// the key or option goes before it.
pub fn checked_block_size(size: Bytes) -> Result<u32, String> {
    match u32::try_from(size.get() / BLOCK_BYTES) {
        Ok(blocks @ 1..=BLOCK_SIZE_MAX) if size.get().is_multiple_of(BLOCK_BYTES) => Ok(blocks),
        _ => {
            let most = Blocks::new(BLOCK_SIZE_MAX.into()).bytes();
            Err(format!("is {size}: from 512 B to {most} in whole blocks of 512 B are allowed"))
        }
    }
}

impl TaskOrder {
    /// Checks a task of an experiment on `arms` arms of this capacity, and returns the fault.
    pub fn check(&self, capacity: Blocks, arms: u64) -> Result<(), String> {
        self.check_block_size()?;
        if self.kind == TaskKind::Refresh {
            return Err("`kind` is refresh: a simulated drive holds no data that could be read back; use write".into());
        }
        self.check_range(capacity, self.block(), &ARM)?;
        self.check_not_served()?;
        self.check_comparison(capacity)?;
        self.check_sample()?;
        self.check_pace()?;
        if self.name.as_ref().is_some_and(|name| name.trim().is_empty()) {
            return Err("`name` is empty: some letters are needed, or no name".into());
        }
        if self.promote_tail.is_some() && self.kind == TaskKind::Compare {
            return Err(
                "`promote_tail`: the last blocks of comparison are not promoted; leave it out"
                    .into(),
            );
        }
        self.check_tail()?;
        self.check_rounds(capacity, arms)
    }

    /// Checks a task of a server whose drive has this capacity, and returns the fault. Blocks at its end need
    /// not be whole.
    pub fn check_served(&self, capacity: Blocks) -> Result<(), String> {
        self.check_block_size()?;
        self.check_range(capacity, Bytes::new(BLOCK_BYTES), &DRIVE)?;
        self.check_pace()?;
        self.check_tail()
    }

    fn check_block_size(&self) -> Result<(), String> {
        let checked = checked_block_size(self.block());
        checked.map(drop).map_err(|message| format!("`block_size` {message}"))
    }

    fn check_tail(&self) -> Result<(), String> {
        let Some(tail) = &self.promote_tail else { return Ok(()) };
        tail.check(self.block()).map_err(|message| format!("promote_tail: {message}"))
    }

    fn check_pace(&self) -> Result<(), String> {
        for (key, time) in [("deadline", self.deadline), ("idle_after", self.idle_after)] {
            if let Some(time) = time.filter(|time| *time > TIME_MAX) {
                return Err(format!(
                    "`{key}` is {time}: at most {TIME_MAX}, a year, is allowed; leave it out for never"
                ));
            }
        }
        if self.deadline == Some(SimDuration::ZERO) {
            return Err("`deadline` is 0: some time is needed, or no deadline".into());
        }
        if self.share == Some(0) {
            return Err("`share` is 0: at least 1 is needed, or no share".into());
        }
        if self.deadline.is_some() && self.share.is_some() {
            return Err("`deadline` and `share`: one of them sets the pace, not both".into());
        }
        Ok(())
    }

    /// Keys that a server alone understands.
    fn check_not_served(&self) -> Result<(), String> {
        if self.idle_after.is_some() {
            return Err("`idle_after` belongs to a task of a server: in an experiment `freeblock.idle` is for all tasks".into());
        }
        if self.repeat {
            return Err("`repeat` belongs to a task of a server: in an experiment scans and scrubs repeat anyway; leave it out".into());
        }
        Ok(())
    }

    fn check_sample(&self) -> Result<(), String> {
        let Some(sample_share) = self.sample_share else { return Ok(()) };
        if !(ENOUGH_MIN..=1.0).contains(&sample_share) {
            return Err(format!(
                "`sample_share` is {sample_share}: from {ENOUGH_MIN} to 1 is allowed"
            ));
        }
        if self.result_kind().is_once() {
            let kind = self.result_kind().words();
            return Err(format!("`sample_share`: a {kind} is of all its blocks; leave it out"));
        }
        Ok(())
    }

    /// Checks the rounds. The blocks of all arms are counted together.
    fn check_rounds(&self, capacity: Blocks, arms: u64) -> Result<(), String> {
        let words = self.result_kind().words();
        let Some(rounds) = self.rounds else { return Ok(()) };
        let blocks = self.blocks_of_a_round(capacity);
        let most = blocks.checked_mul(arms).map_or(0, |blocks| u64::MAX / blocks);
        if self.result_kind().is_once() && rounds > 1 {
            return Err(format!("`rounds` is {rounds}: a {words} has 1, and is complete then"));
        }
        let without = "without `rounds` the work goes on as long as the workload";
        match rounds {
            0 => Err(format!("`rounds` is 0: at least 1 is needed; {without}")),
            _ if rounds > most => Err(format!(
                "`rounds` is {rounds}: with {blocks} blocks in a round and {arms} arms more than {most} cannot be counted; {without}"
            )),
            _ => Ok(()),
        }
    }

    /// Whole units, at least one, of the place.
    fn check_range(&self, capacity: Blocks, unit: Bytes, place: &Place) -> Result<(), String> {
        let Self { start, length, .. } = *self;
        let capacity = capacity.bytes();
        let has_room =
            capacity.get().checked_sub(unit.get()).is_some_and(|last| start.get() <= last);
        if !start.get().is_multiple_of(BLOCK_BYTES) || !has_room {
            let (capacity, on) = (capacity.human(), place.on);
            return Err(format!(
                "`start` is {start}: a whole number of blocks of 512 B is needed, and room for one of {unit} on {on} of {capacity}"
            ));
        }
        let Some(length) = length else { return Ok(()) };
        let most = whole_blocks(capacity.get() - start.get(), unit);
        if length == Bytes::ZERO
            || !length.get().is_multiple_of(unit.get())
            || length.get() > most.get()
        {
            let (whose, most) = (place.whose, exact(most));
            return Err(format!(
                "`length` is {length}: from {unit} to {whose} {most} behind `start` in whole blocks of {unit} are allowed"
            ));
        }
        Ok(())
    }

    /// Keys that a comparison has and other tasks have not, or the other way round.
    fn check_comparison(&self, capacity: Blocks) -> Result<(), String> {
        let Self { kind, other_start, memory, .. } = *self;
        if kind != TaskKind::Compare {
            let of_comparisons =
                [(other_start.is_some(), "other_start"), (memory.is_some(), "memory")];
            return match of_comparisons.iter().find(|(is_there, _)| *is_there) {
                None => Ok(()),
                Some((_, key)) => Err(format!(
                    "`{key}` belongs to a task of compare, not of {}: leave it out",
                    kind.word()
                )),
            };
        }
        let by_normal = "it has normal priority; give the other `tasks` a higher or a lower one";
        let not_its = [
            (self.sample_share.is_some(), "sample_share", "it has all of its blocks"),
            (
                self.deadline.is_some(),
                "deadline",
                "it asks for blocks as they come up, and has none",
            ),
            (self.share.is_some(), "share", by_normal),
            (self.priority != Priority::Normal, "priority", by_normal),
        ];
        if let Some((_, key, why)) = not_its.iter().find(|(is_there, ..)| *is_there) {
            return Err(format!("`{key}` of a task of compare: {why}; leave it out"));
        }
        if self.memory() < self.block() {
            let (memory, block_size) = (self.memory(), self.block());
            return Err(format!(
                "`memory` is {memory}: room for one block of {block_size} at least is needed"
            ));
        }
        self.check_versions(capacity)
    }

    /// Two rows of blocks that are apart, on the arm.
    fn check_versions(&self, capacity: Blocks) -> Result<(), String> {
        let (start, block_size) = (self.start, self.block());
        let Some(other) = self.other_start else {
            return Err(
                "`kind` is compare: `other_start`, where the other version begins, is needed"
                    .into(),
            );
        };
        let Versions { current, .. } = self.versions(capacity);
        let length = current.blocks.bytes();
        let room = self.room_for_versions(capacity);
        if !other.get().is_multiple_of(BLOCK_BYTES) || room < block_size || length > room {
            let room = whole_blocks(room.get(), block_size);
            return Err(format!(
                "`other_start` is {other}: a whole number of blocks of 512 B is needed, and room for both versions apart from each other, from `start` = {start} on the other one, on an arm of {}: {} each at most, in blocks of {block_size}",
                capacity.bytes().human(),
                exact(room)
            ));
        }
        Ok(())
    }
}
