//! The layers of the scheduler, and the tasks on each.

use freewheel_units::Op;

use super::spec::{Counts, Pace, TaskId, TaskSpec};
use super::task::Task;

/// Properties that the tasks on a layer share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub op: Op,
    pub size: u32,
    pub offset: u32,
    pub counts: Counts,
    pub holds_pieces: bool,
    pub weight: Weight,
}

/// Who decides about a layer's weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Fixed(u32),
    Of(TaskId),
}

/// A layer of the scheduler and the tasks on it, whose blocks together it has.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub shape: Shape,
    pub members: Vec<TaskId>,
}

impl Shape {
    pub fn new(id: TaskId, task: &Task, offset: u32) -> Self {
        let weight = match task.spec.pace {
            Pace::ByPriority => Weight::Fixed(task.spec.priority.weight()),
            Pace::Deadline(_) | Pace::Share(_) | Pace::Room(_) => Weight::Of(id),
        };
        let TaskSpec { op, block_size, counts, holds_pieces, .. } = task.spec;
        Self { op, size: block_size, offset, counts, holds_pieces, weight }
    }
}
