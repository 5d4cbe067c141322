//! Parts of its range that a server's task reads.

use freewheel_freeblock::TaskOrder;
use freewheel_freeblock::tasks::{Counts, Extent, TaskError, TaskKind, TaskSpec, Until};
use freewheel_units::{Blocks, Op, SimTime};

use super::sample::Sample;
use crate::runs::Runs;

/// Kinds of a server's tasks. A scan or a scrub reads each block as it is; a backup reads it as it was
/// when the task began, before a client writes over it. A refresh rewrites each block with its own data,
/// and reads it back.
pub const SERVED_KINDS: [TaskKind; 4] =
    [TaskKind::Scan, TaskKind::Scrub, TaskKind::Backup, TaskKind::Refresh];

/// A task that a server is to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedOrder {
    /// Kind, range and pace. The range and the size of a block are known:
    /// [`TaskOrder::completed`] puts them in.
    pub order: TaskOrder,
    /// Parts of the range that it reads.
    pub parts: TaskParts,
    /// Somebody wants the data; it begins when he is there.
    pub has_reader: bool,
    /// Account of the sample that the wanted parts are, if they are one.
    pub sample: Option<Sample>,
}

impl From<TaskOrder> for ServedOrder {
    /// All of the range, for no reader.
    fn from(order: TaskOrder) -> Self {
        Self { order, parts: TaskParts::default(), has_reader: false, sample: None }
    }
}

/// Parts of a task's range that are read: all of it by default. Each list is of whole blocks of the task,
/// in ascending order and apart from each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskParts {
    /// Parts of it that are wanted. Empty for all of it.
    pub wanted: Vec<Extent>,
    /// Parts of it that are not read.
    pub skip: Vec<Extent>,
    /// Parts of these that a client has written since are read all the same.
    pub skip_since: SimTime,
}

impl TaskParts {
    /// Extents that a round reads, in ascending order: wanted and not skipped.
    fn of(&self, range: Extent) -> Vec<Extent> {
        let all = [range];
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
    pub(crate) fn cut(&self, order: &TaskOrder) -> (Vec<Extent>, Option<Extent>) {
        let (mut rows, size) = (self.of(order.range()), u64::from(order.size()));
        let rest = rows.last_mut().and_then(|last| {
            let (start, blocks) = (last.start.get(), last.blocks.get());
            let rest = blocks % size;
            *last = Extent::new(start, blocks - rest);
            (rest > 0).then(|| Extent::new(start + blocks - rest, rest))
        });
        rows.retain(|row| row.blocks > Blocks::ZERO);
        (rows, rest)
    }

    /// Number of blocks in a round.
    pub(crate) fn blocks(&self, order: &TaskOrder) -> u64 {
        self.of(order.range()).iter().map(|extent| extent.blocks.get()).sum()
    }

    /// Reads skipped blocks all the same where a client has written: regions, in ascending order and apart
    /// from each other.
    pub(crate) fn read_again_where_written(&mut self, order: &TaskOrder, written: &[Extent]) {
        let size = u64::from(order.size());
        let first = order.range().start.get();
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

    /// Checks that the lists fit into the order's range, and leave something to read.
    pub(crate) fn check(&self, order: &TaskOrder) -> Result<(), TaskError> {
        check_list(&self.wanted, order)?;
        check_list(&self.skip, order)?;
        if self.blocks(order) == 0 { Err(TaskError::Empty) } else { Ok(()) }
    }
}

fn check_list(parts: &[Extent], order: &TaskOrder) -> Result<(), TaskError> {
    let (range, size) = (order.range(), u64::from(order.size()));
    let (first, end) = bounds(range);
    let mut from = first;
    for &extent in parts {
        let (start, to) = bounds(extent);
        let is_whole = |at: u64| (at - first).is_multiple_of(size) || at == end;
        if start < from || to > end || to <= start {
            return Err(TaskError::Overlap { at: extent.start });
        }
        if !is_whole(start) || !is_whole(to) {
            return Err(TaskError::PartBlock { extent, size: order.size() });
        }
        from = to;
    }
    Ok(())
}

/// Task for the planner, these blocks first. Its data may be used: by a reader, or to be written.
pub(crate) fn planner_spec(order: &TaskOrder, wants_data: bool, first: Vec<Extent>) -> TaskSpec {
    TaskSpec {
        priority: order.priority,
        pace: order.pace(),
        // What a write leaves need not be readable, and its data go by no reader.
        counts: Counts::READS,
        holds_pieces: wants_data,
        // Blocks may be wanted again, so only the task knows its end.
        until: Until::Standing,
        ..TaskSpec::new(Op::Read, order.size(), first)
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

    fn order() -> TaskOrder {
        TaskOrder::served(TaskKind::Backup, Extent::new(100, 83), 8)
    }

    fn without(skip: &[(u64, u64)]) -> TaskParts {
        let skip = skip.iter().map(|&(start, blocks)| Extent::new(start, blocks)).collect();
        TaskParts { skip, ..TaskParts::default() }
    }

    #[test]
    fn range_is_cut_around_skipped_blocks() {
        let rows = |skip: &[(u64, u64)]| without(skip).cut(&order());
        let row = Extent::new;
        assert_eq!(rows(&[]), (vec![row(100, 80)], Some(row(180, 3))));
        let (some, rest) = rows(&[(100, 8), (116, 16)]);
        assert_eq!((some, rest), (vec![row(108, 8), row(132, 48)], Some(row(180, 3))));
        assert_eq!(rows(&[(108, 75)]), (vec![row(100, 8)], None), "to its end");
        assert_eq!(without(&[(108, 72)]).blocks(&order()), 11);
    }

    #[test]
    fn wanted_extents_exclude_skipped() {
        let row = Extent::new;
        let some = TaskParts {
            wanted: vec![row(108, 16), row(140, 8), row(172, 11)],
            ..without(&[(116, 24), (140, 8)])
        };
        assert_eq!(some.cut(&order()), (vec![row(108, 8), row(172, 8)], Some(row(180, 3))));
        assert_eq!(some.blocks(&order()), 19);
        assert_eq!(some.check(&order()), Ok(()));
        let refused = |wanted: Vec<Extent>, skip: &[(u64, u64)]| {
            TaskParts { wanted, ..without(skip) }.check(&order()).unwrap_err()
        };
        assert!(matches!(refused(vec![row(109, 8)], &[]), TaskError::PartBlock { .. }));
        assert!(matches!(refused(vec![row(180, 8)], &[]), TaskError::Overlap { .. }));
        assert!(matches!(refused(vec![row(108, 8)], &[(100, 24)]), TaskError::Empty));
    }

    proptest! {
        #[test]
        fn parts_are_wanted_minus_skipped(
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
            let parts = TaskParts { wanted, skip, ..TaskParts::default() };
            prop_assert_eq!(set(&parts.of(all)), expected.clone());
            let order = TaskOrder::served(TaskKind::Scan, all, 1);
            prop_assert_eq!(parts.blocks(&order), expected.len() as u64);
        }
    }

    #[test]
    fn written_regions_are_not_skipped() {
        let mut parts = without(&[(100, 40), (156, 27)]);
        parts.read_again_where_written(
            &order(),
            &[Extent::new(0, 101), Extent::new(110, 7), Extent::new(170, 100)],
        );
        assert_eq!(parts.skip, [Extent::new(124, 16), Extent::new(156, 8)]);
        assert_eq!(parts.check(&order()), Ok(()));
    }

    #[test]
    fn skipped_extents_are_whole_blocks() {
        let check = |skip: &[(u64, u64)]| without(skip).check(&order());
        assert_eq!(check(&[(108, 8), (180, 3)]), Ok(()));
        assert!(matches!(check(&[(104, 8)]), Err(TaskError::PartBlock { .. })));
        assert!(matches!(check(&[(108, 8), (108, 8)]), Err(TaskError::Overlap { .. })));
        assert!(matches!(check(&[(180, 8)]), Err(TaskError::Overlap { .. })), "past its end");
        assert!(matches!(check(&[(100, 83)]), Err(TaskError::Empty)));
    }
}
