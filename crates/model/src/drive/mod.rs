//! One drive: its geometry and layout, its seeks and its rotation, and the one function that says
//! how long an access takes.
//!
//! | file | subject |
//! |---|---|
//! | `spec` | what a drive file says, with units and sources |
//! | `layout` | LBN to place on the media and back: zones, skews, slips, spares, remaps |
//! | `seek` | seek curves and head switches |
//! | `rotation` | time to angle and back |
//! | `mechanics` | stage times of an access, from (now, head position, target) |
//! | `check` | what the maker promises beside what the model does |

mod build;
mod check;
mod divide;
mod error;
mod layout;
mod mechanics;
mod rotation;
mod seek;
pub mod spec;

pub use check::{Check, Quantity, QuantityUnit};
pub use error::BuildDriveError;
pub use layout::{Layout, Physical, Run, Zone};
pub use mechanics::{Access, Drive, Position, Positioning, Target};
pub use rotation::Rotation;
pub use seek::SeekCurve;
