//! Specification of a server's background task.

use freewheel_freeblock::PromoteTail;
use freewheel_freeblock::tasks::{
    Counts, Extent, Pace, Priority, TaskError, TaskKind, TaskSpec, Until,
};
use freewheel_units::{Blocks, Op, SimDuration, SimTime};

use super::sample::Sample;
use crate::runs::Runs;

/// Kinds of a server's tasks. A scan or a scrub reads each block as it is; a backup reads it as it was
/// when the task began, before a client writes over it. A refresh rewrites each block with its own data,
/// and reads it back.
pub const SERVED_KINDS: [TaskKind; 4] =
    [TaskKind::Scan, TaskKind::Scrub, TaskKind::Backup, TaskKind::Refresh];

/// A background task of a server: the blocks to read, and their pace.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedTaskSpec {
    /// One of [`SERVED_KINDS`].
    pub kind: TaskKind,
    /// Blocks of the task.
    pub range: Extent,
    /// Parts of it that are wanted: whole blocks of the task, in ascending order and apart from each
    /// other. Empty for all of it.
    pub wanted: Vec<Extent>,
    /// Parts of it that are not read: whole blocks of the task, in ascending order and apart from
    /// each other.
    pub skip: Vec<Extent>,
    /// Parts of these that a client has written since are read all the same.
    pub skip_since: SimTime,
    /// Fewest blocks that are read at once: `1..=BLOCK_SIZE_MAX`.
    pub block_size: u32,
    /// Weight of a block against those of other tasks.
    pub priority: Priority,
    /// Time from a round's beginning at which it should be complete; blocks weigh more when it is late.
    pub deadline: Option<SimDuration>,
    /// Idle time is used as well, after this time without a client's request.
    pub idle_after: Option<SimDuration>,
    /// The last blocks of a round become foreground requests at this cost.
    pub promote_tail: Option<PromoteTail>,
    /// Begins anew when it is done.
    pub repeats: bool,
    /// Somebody wants the data; it begins when he is there.
    pub has_reader: bool,
    /// Account of the sample that `wanted` is, if it is one.
    pub sample: Option<Sample>,
}

impl ServedTaskSpec {
    /// Reads `range` once.
    pub fn new(kind: TaskKind, range: Extent, block_size: u32) -> Self {
        Self {
            kind,
            range,
            wanted: Vec::new(),
            skip: Vec::new(),
            skip_since: SimTime::ZERO,
            block_size,
            priority: Priority::default(),
            deadline: None,
            idle_after: None,
            promote_tail: None,
            repeats: false,
            has_reader: false,
            sample: None,
        }
    }

    /// True if its data are used: by a reader, or to be written.
    pub(crate) fn wants_data(&self) -> bool {
        self.has_reader || self.kind == TaskKind::Refresh
    }

    /// Extents that a round reads, in ascending order: wanted and not skipped.
    fn parts(&self) -> Vec<Extent> {
        let all = [self.range];
        let wanted = if self.wanted.is_empty() { &all[..] } else { &self.wanted[..] };
        let mut skipped = self.skip.iter().map(|extent| bounds(*extent)).peekable();
        let mut parts = Vec::new();
        for (mut from, end) in wanted.iter().map(|extent| bounds(*extent)) {
            while let Some(&(start, to)) = skipped.peek().filter(|(start, _)| *start < end) {
                if from < start {
                    parts.push(Extent::new(from, start - from));
                }
                from = from.max(to);
                if to > end {
                    // It may cover more of what is wanted.
                    break;
                }
                skipped.next();
            }
            if from < end {
                parts.push(Extent::new(from, end - from));
            }
        }
        parts
    }

    /// Rows of whole blocks; and the rest at the end, which is read separately.
    pub(crate) fn cut(&self) -> (Vec<Extent>, Option<Extent>) {
        let (mut rows, size) = (self.parts(), u64::from(self.block_size));
        let rest = rows.last_mut().and_then(|last| {
            let (start, blocks) = (last.start.get(), last.blocks.get());
            let rest = blocks % size;
            *last = Extent::new(start, blocks - rest);
            (rest > 0).then(|| Extent::new(start + blocks - rest, rest))
        });
        rows.retain(|row| row.blocks > Blocks::ZERO);
        (rows, rest)
    }

    /// Specification without the lists of parts, which may be very long.
    pub(crate) fn without_parts(&self) -> Self {
        Self {
            wanted: Vec::new(),
            skip: Vec::new(),
            kind: self.kind,
            range: self.range,
            skip_since: self.skip_since,
            block_size: self.block_size,
            priority: self.priority,
            deadline: self.deadline,
            idle_after: self.idle_after,
            promote_tail: self.promote_tail,
            repeats: self.repeats,
            has_reader: self.has_reader,
            sample: self.sample,
        }
    }

    /// Number of blocks in a round.
    pub(crate) fn blocks(&self) -> u64 {
        self.parts().iter().map(|extent| extent.blocks.get()).sum()
    }

    /// Takes what a client has written out of what is not read: regions, in ascending order and apart
    /// from each other.
    pub(crate) fn read_again_where_written(&mut self, written: &[Extent]) {
        let size = u64::from(self.block_size);
        let first = self.range.start.get();
        let mut left = Runs::default();
        self.skip.iter().for_each(|&extent| left.insert(extent));
        for (from, to) in written.iter().map(|extent| bounds(*extent)) {
            // Whole blocks of the task.
            let from = from.max(first) - (from.max(first) - first) % size;
            let to = first + (to.max(first) - first).next_multiple_of(size);
            left.remove(Extent::new(from, to - from));
        }
        self.skip = left.iter().collect();
    }

    /// Specification for the planner, these blocks first.
    pub(crate) fn planner_spec(&self, first: Vec<Extent>) -> TaskSpec {
        TaskSpec {
            priority: self.priority,
            pace: self.deadline.map_or(Pace::ByPriority, Pace::Deadline),
            // What a write leaves need not be readable, and its data go by no reader.
            counts: Counts::READS,
            holds_pieces: self.wants_data(),
            // Blocks may be wanted again, so only the task knows its end.
            until: Until::Standing,
            ..TaskSpec::new(Op::Read, self.block_size, first)
        }
    }

    /// Checks all that the planner would not see.
    pub(crate) fn check(&self, capacity: Blocks) -> Result<(), TaskError> {
        let extent = self.range;
        let end = extent.start.get().checked_add(extent.blocks.get());
        if extent.blocks == Blocks::ZERO {
            return Err(TaskError::Empty);
        }
        if end.is_none_or(|end| end > capacity.get()) {
            return Err(TaskError::PastEnd { extent, capacity });
        }
        self.check_parts(&self.wanted)?;
        self.check_parts(&self.skip)?;
        if self.blocks() == 0 { Err(TaskError::Empty) } else { Ok(()) }
    }

    fn check_parts(&self, parts: &[Extent]) -> Result<(), TaskError> {
        let (first, size) = (self.range.start.get(), u64::from(self.block_size));
        let end = first + self.range.blocks.get();
        let mut from = first;
        for &extent in parts {
            let (start, to) = bounds(extent);
            let is_whole = |at: u64| (at - first).is_multiple_of(size) || at == end;
            if start < from || to > end || to <= start {
                return Err(TaskError::Overlap { at: extent.start });
            }
            if !is_whole(start) || !is_whole(to) {
                return Err(TaskError::PartBlock { extent, size: self.block_size });
            }
            from = to;
        }
        Ok(())
    }
}

fn bounds(extent: Extent) -> (u64, u64) {
    (extent.start.get(), extent.start.get().saturating_add(extent.blocks.get()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn spec(skip: &[(u64, u64)]) -> ServedTaskSpec {
        let skip = skip.iter().map(|&(start, blocks)| Extent::new(start, blocks)).collect();
        ServedTaskSpec { skip, ..ServedTaskSpec::new(TaskKind::Backup, Extent::new(100, 83), 8) }
    }

    #[test]
    fn a_range_is_cut_into_rows_of_whole_blocks_around_what_is_skipped() {
        let rows = |skip: &[(u64, u64)]| spec(skip).cut();
        let row = Extent::new;
        assert_eq!(rows(&[]), (vec![row(100, 80)], Some(row(180, 3))));
        let (some, rest) = rows(&[(100, 8), (116, 16)]);
        assert_eq!((some, rest), (vec![row(108, 8), row(132, 48)], Some(row(180, 3))));
        assert_eq!(rows(&[(108, 75)]), (vec![row(100, 8)], None), "to its end");
        assert_eq!(spec(&[(108, 72)]).blocks(), 11);
    }

    #[test]
    fn wanted_extents_are_read_but_for_what_is_skipped() {
        let row = Extent::new;
        let some = ServedTaskSpec {
            wanted: vec![row(108, 16), row(140, 8), row(172, 11)],
            ..spec(&[(116, 24), (140, 8)])
        };
        assert_eq!(some.cut(), (vec![row(108, 8), row(172, 8)], Some(row(180, 3))));
        assert_eq!(some.blocks(), 19);
        assert_eq!(some.check(Blocks::new(1000)), Ok(()));
        let refused = |wanted: Vec<Extent>, skip: &[(u64, u64)]| {
            ServedTaskSpec { wanted, ..spec(skip) }.check(Blocks::new(1000)).unwrap_err()
        };
        assert!(matches!(refused(vec![row(109, 8)], &[]), TaskError::PartBlock { .. }));
        assert!(matches!(refused(vec![row(180, 8)], &[]), TaskError::Overlap { .. }));
        assert!(matches!(refused(vec![row(108, 8)], &[(100, 24)]), TaskError::Empty));
    }

    proptest! {
        #[test]
        fn parts_are_what_is_wanted_without_what_is_skipped(
            wanted in prop::collection::vec((0u64..5, 1u64..6), 0..8),
            skip in prop::collection::vec((0u64..5, 1u64..6), 0..8),
        ) {
            let ascending = |steps: &[(u64, u64)]| {
                let mut at = 0;
                let next = |&(gap, blocks): &(u64, u64)| {
                    let extent = Extent::new(at + gap, blocks);
                    at += gap + blocks;
                    extent
                };
                steps.iter().map(next).collect::<Vec<_>>()
            };
            let set = |extents: &[Extent]| -> BTreeSet<u64> {
                extents.iter().flat_map(|extent| bounds(*extent).0..bounds(*extent).1).collect()
            };
            let (wanted, skip) = (ascending(&wanted), ascending(&skip));
            let all = Extent::new(0, 100);
            let is_limited = !wanted.is_empty();
            let expected = set(if is_limited { &wanted } else { std::slice::from_ref(&all) });
            let expected: BTreeSet<u64> = expected.difference(&set(&skip)).copied().collect();
            let spec = ServedTaskSpec { wanted, skip, ..ServedTaskSpec::new(TaskKind::Scan, all, 1) };
            prop_assert_eq!(set(&spec.parts()), expected.clone());
            prop_assert_eq!(spec.blocks(), expected.len() as u64);
        }
    }

    #[test]
    fn written_regions_are_not_skipped() {
        let mut spec = spec(&[(100, 40), (156, 27)]);
        spec.read_again_where_written(&[
            Extent::new(0, 101),
            Extent::new(110, 7),
            Extent::new(170, 100),
        ]);
        assert_eq!(spec.skip, [Extent::new(124, 16), Extent::new(156, 8)]);
        assert_eq!(spec.check(Blocks::new(1000)), Ok(()));
    }

    #[test]
    fn skipped_extents_are_whole_blocks_and_leave_some() {
        let check = |skip: &[(u64, u64)]| spec(skip).check(Blocks::new(1000));
        assert_eq!(check(&[(108, 8), (180, 3)]), Ok(()));
        assert!(matches!(check(&[(104, 8)]), Err(TaskError::PartBlock { .. })));
        assert!(matches!(check(&[(108, 8), (108, 8)]), Err(TaskError::Overlap { .. })));
        assert!(matches!(check(&[(180, 8)]), Err(TaskError::Overlap { .. })), "past its end");
        assert!(matches!(check(&[(100, 83)]), Err(TaskError::Empty)));
    }
}
