//! Foreground scheduling: which waiting request the head serves next.
//!
//! One policy is one file and one row of [`POLICIES`]. A policy owns its waiting requests in the order
//! that suits it, learns of arrivals, and is asked for the next one when the head is free. It sees the
//! drive only through [`Drive`]'s predictions, which are the drive's own. Schedulers of an operating system
//! in front of a drive's own queue are in [`linux`].
//!
//! **Ties** are broken the same way everywhere: of requests that are equal by a policy's rule, the
//! one that arrived first is served first (smallest [`Waiting::sequence`]).
//!
//! To add a policy: write `sched/<name>.rs` with a type that implements [`Policy`]; add a variant to
//! [`PolicySpec`], a row to [`POLICIES`] and an arm of its `build`; add its rule to the oracle in
//! `tests/model/sched.rs`, which fails until every row of the registry has one.

mod asatf;
mod build;
mod by_cylinder;
mod clook;
mod fcfs;
pub mod linux;
mod look;
mod marked_first;
mod sptf;
mod sptf_sw;
mod sstf;
mod sstf_lw;

use freewheel_units::SimTime;

use crate::drive::{Drive, Position, Positionings, Target};

pub use fcfs::Fcfs;
pub use marked_first::MarkedFirst;

pub use crate::spec::linux::{BfqSpec, KyberSpec, MqDeadlineSpec};
pub use crate::spec::policy::{PARAMETERS, POLICIES, ParsePolicyError, PolicyRow, PolicySpec};

/// A request that waits for the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Place on the media.
    pub target: Target,
    /// Time of arrival.
    pub arrival: SimTime,
    /// Unique and ascending in order of arrival.
    pub sequence: u64,
    /// Force unit access: a write is done when its data are on the media, even with a write cache; a
    /// read comes from the media.
    pub fua: bool,
    /// Mark that the host gives the command for the drive's queue.
    pub mark: CommandMark,
}

/// Mark of a command for a drive's queue. One command has a priority or a duration limit, as they share
/// their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommandMark {
    /// Nothing.
    #[default]
    None,
    /// NCQ priority.
    HighPriority,
    /// Duration limit descriptor of this number, 1 to 7.
    DurationLimit(u8),
}

/// State at a decision that a policy may use.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// Time at which the head becomes free.
    pub now: SimTime,
    /// Position of the head at that time.
    pub head: Position,
    /// The drive it belongs to.
    pub drive: &'a Drive,
}

impl<'a> Moment<'a> {
    /// Positioning times from the head.
    #[inline]
    pub fn positionings(&self) -> Positionings<'a> {
        Positionings::new(self.drive, self.now, self.head)
    }
}

/// A foreground scheduling policy with its waiting requests.
///
/// ```
/// use freewheel_model::sched::{Moment, Policy, Waiting};
///
/// /// Serves the request that arrived last.
/// #[derive(Default)]
/// struct Latest(Vec<Waiting>);
///
/// impl Policy for Latest {
///     fn push(&mut self, waiting: Waiting) {
///         self.0.push(waiting);
///     }
///
///     fn pick(&mut self, _: &Moment<'_>) -> Option<Waiting> {
///         self.0.pop()
///     }
///
///     fn take(&mut self, sequence: u64) -> Option<Waiting> {
///         let index = self.0.iter().position(|waiting| waiting.sequence == sequence)?;
///         Some(self.0.remove(index))
///     }
///
///     fn len(&self) -> usize {
///         self.0.len()
///     }
/// }
///
/// assert!(Latest::default().is_empty());
/// ```
pub trait Policy: Send {
    /// A request has arrived.
    fn push(&mut self, waiting: Waiting);

    /// Takes the request to serve next; None when none waits.
    fn pick(&mut self, moment: &Moment<'_>) -> Option<Waiting>;

    /// Takes this request out of turn; None when it does not wait.
    fn take(&mut self, sequence: u64) -> Option<Waiting>;

    /// Number of waiting requests.
    fn len(&self) -> usize;

    /// True if none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
