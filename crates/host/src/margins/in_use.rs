//! Margins as they are reported.

use freewheel_units::Op;
use serde::Serialize;

use super::{Learner, number};
use freewheel_model::drive::{
    SEEK_CLASSES, SeekDirection, seek_class_cylinders, seek_class_direction, seek_class_distance,
};

/// The margin of a kind of movement, and the number of movements behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MarginInUse {
    /// Operation at the end of the movement.
    pub op: Op,
    /// Direction of the movement; a change of heads has none.
    pub direction: Option<SeekDirection>,
    /// The shortest movement of this kind, in cylinders; zero is a change of heads.
    pub cylinders_min: u32,
    /// The longest.
    pub cylinders_max: u32,
    /// Time beyond the prediction that free work allows the movement; of several drives the longest.
    pub margin_ns: u64,
    /// Movements that it was learned from: with so little slack, at most an eighth of a turn, that a
    /// margin can say something of them.
    pub movements: u64,
    /// Movements that took longer than their slack, and so came a turn late.
    pub late: u64,
}

/// Observed movements of a kind, and the late ones among them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MarginCounts {
    pub movements: u64,
    pub late: u64,
}

impl Learner {
    /// The margins of all kinds of movements that there have been: reads before writes, short before
    /// long, inward before outward.
    pub fn in_use(&self) -> Vec<MarginInUse> {
        let mut classes: Vec<usize> = (0..SEEK_CLASSES).collect();
        classes.sort_by_key(|&class| seek_class_distance(class));
        let kinds = [Op::Read, Op::Write]
            .into_iter()
            .flat_map(|op| classes.iter().map(move |&class| (op, class)));
        kinds
            .filter_map(|(op, class)| {
                let MarginCounts { movements, late } = self.ended[number(op)].counts[class];
                let cylinders = seek_class_cylinders(class);
                (movements > 0).then(|| MarginInUse {
                    op,
                    direction: seek_class_direction(class),
                    cylinders_min: *cylinders.start(),
                    cylinders_max: *cylinders.end(),
                    margin_ns: self.margins.of(op, class).ns(),
                    movements,
                    late,
                })
            })
            .collect()
    }
}

impl MarginInUse {
    /// Adds those of another drive.
    pub fn add(all: &mut Vec<Self>, other: &[Self]) {
        for theirs in other {
            let kind = |of: &Self| (of.op == Op::Write, of.cylinders_min, of.direction);
            match all.binary_search_by_key(&kind(theirs), kind) {
                Ok(at) => {
                    let ours = &mut all[at];
                    ours.margin_ns = ours.margin_ns.max(theirs.margin_ns);
                    ours.movements += theirs.movements;
                    ours.late += theirs.late;
                }
                Err(at) => all.insert(at, *theirs),
            }
        }
    }
}
