//! Reads of a backup's blocks that a foreground write is about to replace.
//!
//! ```text
//!   a write to             |-----------|
//!   blocks of a backup  |a....|b....|c....|d....|     b is read already
//!   claimed             |a....|     |c....|           out of the gaps, as whole blocks
//!   copies               read a      read c           each of at most 1 MiB
//!   the write           waits until both are done
//! ```
//! The simulator and a server use this one machine. The engine that drives it makes the reads and holds
//! the write: both know the order of overlapping requests.
//!
//! Goals: no block of a backup is replaced before it is read; each block is copied once.
//! Non-goals: data; what to do about a failed read.

use std::collections::VecDeque;

use freewheel_freeblock::PromotionId;
use freewheel_freeblock::tasks::{
    BLOCK_SIZE_MAX, BlockSelection, Extent, Promoted, TaskError, TaskId, Tasks,
};
use freewheel_units::SimTime;

use crate::runs::Runs;

/// Most blocks of 512 B in a copy: the largest block of a task. A larger read would keep the arm from
/// other requests longer than any of them does.
const COPY_MAX: u32 = BLOCK_SIZE_MAX;

/// Way in which claimed blocks leave the gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimBy {
    /// The planner promotes them, and reports their delivery when a request has read them. Its account of
    /// the round stays exact. For engines whose reads cannot fail: those of a simulated drive.
    Promotion,
    /// The planner forgets them, and the caller accounts for them. For engines whose reads can fail: the
    /// caller repeats parts of a failed read before the write goes. Blocks that a promoted read is about
    /// to bring are claimed too, because a failed promoted read is repeated after the write.
    Withdrawal,
}

/// A backup that is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    /// The caller's number.
    pub number: u64,
    /// The planner's task that reads for it.
    pub task: TaskId,
}

/// A read that must be done before a write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyRead {
    /// Number of the backup.
    pub backup: u64,
    /// Blocks of 512 B to read.
    pub extent: Extent,
    /// The planner's number of a claim by promotion.
    pub promotion: Option<PromotionId>,
}

/// Claimed blocks of one backup.
#[derive(Debug)]
struct Claimed {
    backup: u64,
    promoted: VecDeque<Promoted>,
    others: Runs,
}

/// Copies that have not begun, of one write: by backup, then by address.
#[derive(Debug, Default)]
pub struct Copies {
    claimed: VecDeque<Claimed>,
}

impl Copies {
    /// Claims all that `backup` still wants of the blocks that a write to `write` touches. Err for a task
    /// that has ended.
    pub fn claim(
        &mut self,
        by: ClaimBy,
        tasks: &mut Tasks,
        backup: Backup,
        write: Extent,
        now: SimTime,
    ) -> Result<(), TaskError> {
        match by {
            ClaimBy::Promotion => {
                let which = BlockSelection::Touching(&[write]);
                let promoted = tasks.promote(backup.task, which, COPY_MAX)?;
                self.of(backup.number).promoted.extend(promoted);
            }
            ClaimBy::Withdrawal => {
                let wanted = tasks.withdraw(now, backup.task, write)?;
                wanted.into_iter().for_each(|extent| self.add(backup.number, extent));
            }
        }
        Ok(())
    }

    /// Adds blocks of a backup of which the planner knows no more. Blocks that were added before count
    /// once.
    pub fn add(&mut self, backup: u64, extent: Extent) {
        self.of(backup).others.insert(extent);
    }

    /// Claims of a backup, which are the last.
    fn of(&mut self, backup: u64) -> &mut Claimed {
        if self.claimed.back().is_none_or(|last| last.backup != backup) {
            let (promoted, others) = (VecDeque::new(), Runs::default());
            self.claimed.push_back(Claimed { backup, promoted, others });
        }
        self.claimed.back_mut().expect("one was added")
    }

    /// Takes the next read. None when the write need not wait for further ones.
    pub fn next_read(&mut self) -> Option<CopyRead> {
        loop {
            let Claimed { backup, promoted, others } = self.claimed.front_mut()?;
            let backup = *backup;
            if let Some(Promoted { id, start, blocks, .. }) = promoted.pop_front() {
                let extent = Extent::new(start.get(), blocks.into());
                return Some(CopyRead { backup, extent, promotion: Some(id) });
            }
            if let Some(extent) = others.take_first(COPY_MAX.into()) {
                return Some(CopyRead { backup, extent, promotion: None });
            }
            self.claimed.pop_front();
        }
    }

    /// From the first block of 512 B to the end of the last one that has no read yet; None without any.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let extents: Vec<Extent> = self
            .claimed
            .iter()
            .flat_map(|claimed| {
                let promoted = claimed.promoted.iter();
                let promoted =
                    promoted.map(|part| Extent::new(part.start.get(), part.blocks.into()));
                promoted.chain(claimed.others.iter()).collect::<Vec<_>>()
            })
            .collect();
        let first = extents.iter().map(|extent| extent.start.get()).min()?;
        let end = extents.iter().map(|extent| extent.start.get() + extent.blocks.get()).max()?;
        Some((first, end))
    }

    /// Blocks of 512 B of a backup that no read has been taken for and the planner has forgotten.
    pub fn withdrawn_blocks(&self, backup: u64) -> u64 {
        let of_it = self.claimed.iter().filter(|claimed| claimed.backup == backup);
        of_it.map(|claimed| claimed.others.blocks()).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use freewheel_freeblock::tasks::{CADENCE, TaskSpec};
    use freewheel_freeblock::{Options, uses};
    use freewheel_model::drive::Drive;
    use freewheel_sim::library;
    use freewheel_units::{Lbn, Prng};

    use super::*;

    /// Backups of a drive of which parts are read and other parts are promoted.
    struct World {
        tasks: Tasks,
        backups: Vec<Backup>,
        sizes: Vec<u64>,
        prng: Prng,
    }

    impl World {
        fn new(seed: u64) -> Self {
            let spec = library::spec("atlas10k").unwrap();
            let drive = Arc::new(Drive::build(&spec).unwrap());
            let mut tasks = Tasks::new(&drive, Options::default(), CADENCE);
            let sizes = [8, 128];
            let task = |size: u64| {
                let extents = vec![Extent::new(3, END / size * size)];
                TaskSpec { extents, ..uses::backup(drive.blocks(), size as u32) }
            };
            let specs = sizes.map(task);
            let backups = specs.into_iter().zip(1..).map(|(spec, number)| Backup {
                number,
                task: tasks.register(SimTime::ZERO, spec).unwrap(),
            });
            let backups = backups.collect();
            Self { tasks, backups, sizes: sizes.to_vec(), prng: Prng::new(seed, "copies") }
        }

        fn any_extent(&mut self, most: u64) -> Extent {
            let start = self.prng.below(END);
            Extent::new(start, 1 + self.prng.below(most))
        }

        /// Some blocks are read, and others are promoted.
        fn scatter(&mut self) {
            for _ in 0..40 {
                let backup = self.backups[self.prng.below(2) as usize];
                let extents = [self.any_extent(900)];
                let which = BlockSelection::Touching(&extents);
                if self.prng.chance(0.6) {
                    self.tasks.abort(SimTime::ZERO, backup.task, which).unwrap();
                } else {
                    self.tasks.promote(backup.task, which, 512).unwrap();
                }
            }
        }

        /// First blocks of what a backup wants of the blocks that a write touches, found one by one.
        fn wanted(&self, number: usize, write: Extent, promoted_too: bool) -> BTreeSet<u64> {
            let (size, task) = (self.sizes[number], self.backups[number].task);
            let (from, to) = (write.start.get(), write.start.get() + write.blocks.get());
            let blocks = (3..3 + END / size * size).step_by(size as usize);
            let touched = blocks.filter(|&at| at < to && from < at + size);
            // A backup that has everything has ended, and wants no more.
            let is_wanted = |at: &u64| {
                let wanted = self.tasks.wanted(task, Lbn::new(*at));
                wanted.is_ok_and(|wanted| wanted.in_gap || promoted_too && wanted.promoted)
            };
            touched.filter(is_wanted).collect()
        }
    }

    const END: u64 = 20_000;

    /// First blocks of all reads, of each backup.
    fn all_reads(copies: &mut Copies, sizes: &[u64]) -> Vec<BTreeSet<u64>> {
        let mut starts = vec![BTreeSet::new(); sizes.len()];
        while let Some(read) = copies.next_read() {
            let number = read.backup as usize - 1;
            let (from, blocks) = (read.extent.start.get(), read.extent.blocks.get());
            assert!(blocks <= COPY_MAX.into());
            for at in (from..from + blocks).step_by(sizes[number] as usize) {
                assert!(starts[number].insert(at), "each block is read once");
            }
        }
        starts
    }

    #[test]
    fn write_waits_for_blocks_backup_wants() {
        for (seed, by) in
            (0..40).flat_map(|seed| [ClaimBy::Promotion, ClaimBy::Withdrawal].map(|by| (seed, by)))
        {
            let mut world = World::new(seed);
            world.scatter();
            for _ in 0..20 {
                let write = world.any_extent(6000);
                let promoted_too = by == ClaimBy::Withdrawal;
                let wanted: Vec<_> =
                    (0..2).map(|number| world.wanted(number, write, promoted_too)).collect();
                let mut copies = Copies::default();
                for (backup, wanted) in world.backups.clone().into_iter().zip(&wanted) {
                    let claimed = copies.claim(by, &mut world.tasks, backup, write, SimTime::ZERO);
                    assert!(claimed.is_ok() || wanted.is_empty(), "{claimed:?}");
                }
                let counted = [1, 2].map(|number| copies.withdrawn_blocks(number));
                let reads = all_reads(&mut copies, &world.sizes);
                assert_eq!(reads, wanted, "{by:?}, {write}");
                // The planner counts promoted blocks itself.
                let blocks = |number: usize| reads[number].len() as u64 * world.sizes[number];
                let left = if promoted_too { [blocks(0), blocks(1)] } else { [0, 0] };
                assert_eq!(counted, left);
                let again = (0..2).map(|number| world.wanted(number, write, promoted_too));
                assert!(again.into_iter().all(|wanted| wanted.is_empty()), "claimed");
            }
        }
    }

    #[test]
    fn unplanned_blocks_are_read_in_parts() {
        let mut copies = Copies::default();
        let most = u64::from(COPY_MAX);
        copies.add(1, Extent::new(0, most + 8));
        copies.add(1, Extent::new(most, 16));
        copies.add(2, Extent::new(0, 8));
        assert_eq!(copies.withdrawn_blocks(1), most + 16);
        let reads = std::iter::from_fn(|| copies.next_read());
        let reads: Vec<_> = reads.map(|read| (read.backup, read.extent)).collect();
        let expected =
            [(1, Extent::new(0, most)), (1, Extent::new(most, 16)), (2, Extent::new(0, 8))];
        assert_eq!(reads, expected);
    }
}
