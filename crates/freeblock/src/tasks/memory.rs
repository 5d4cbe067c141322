//! Memory of tasks.

use freewheel_units::Bytes;

use super::Tasks;
use super::task::Task;

/// Memory by purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bitmaps of what is wanted: about one bit a block of every layer where there is any.
    pub wanted: Bytes,
    /// Bitmaps of tasks that share a layer, and of what is promoted or waits.
    pub tasks: Bytes,
    /// Data of blocks of which pieces are missing; at most [`Options::held_max`].
    ///
    /// [`Options::held_max`]: crate::Options::held_max
    pub held: Bytes,
    /// For finding what is wanted; it goes by the drive's tracks and cylinders alone.
    pub index: Bytes,
}

impl Memory {
    /// All of it.
    pub fn total(&self) -> Bytes {
        self.wanted + self.tasks + self.held + self.index
    }
}

impl Tasks {
    /// Memory of all tasks.
    pub fn memory(&self) -> Memory {
        let tasks = self.tasks.values().map(Task::memory);
        Memory {
            wanted: self.scheduler.wanted_memory(),
            tasks: tasks.fold(Bytes::ZERO, |sum, task| sum + task),
            held: self.scheduler.held(),
            index: self.scheduler.index_memory(),
        }
    }
}
