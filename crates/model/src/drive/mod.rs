//! One drive: its geometry and layout, its seeks and its rotation, and the one function that says
//! how long an access takes.
//!
//! | file | subject |
//! |---|---|
//! | `layout` | LBN to place on the media and back: zones, slips, spares, remaps |
//! | `track_order` | order of the tracks of a zone, and their skews |
//! | `seek` | seek curves and head switches |
//! | `rotation` | time to angle and back |
//! | `scale` | the same drive with other technology: arm, spindle, densities |
//! | `access` | places of the head and stage times, as values |
//! | `mechanics` | stage times of an access, from (now, head position, target) |
//! | `positionings` | positioning times of many targets from one place, as policies compare them |
//! | `legs` | the parts of one access in order of time |
//! | `sectors` | sectors that hold several blocks: what the head does of a command of part ones |
//! | `actuator` | who carries accesses out, and what is known of the head before one |
//! | `check` | what the maker promises beside what the model does |

mod access;
mod actuator;
mod build;
mod check;
mod divide;
mod error;
mod layout;
mod legs;
mod margins;
mod mechanics;
mod positionings;
mod rotation;
pub mod scale;
mod sectors;
mod seek;
mod surface_zones;
mod track_order;
mod zone;

pub use access::{Access, Departure, HeadTime, Position, Positioning};
pub use actuator::{Actuator, Exact, Latency};
pub use check::{BusLimit, Check};
pub use divide::Divisor;
pub use error::BuildDriveError;
pub use layout::{Layout, Run};
pub use legs::{Leg, RemainingAccess};
pub use margins::{
    SEEK_CLASSES, SEEK_DISTANCES, SeekDirection, SeekMargins, seek_class, seek_class_cylinders,
    seek_class_direction, seek_class_distance,
};
pub use mechanics::{Drive, Target};
pub use positionings::{Positionings, RunStart};
pub use rotation::Rotation;
pub use sectors::Sectors;
pub use seek::SeekCurve;
pub use zone::{FileZone, Physical, Zone};

pub use crate::spec::advertised::{Quantity, QuantityUnit};
pub use crate::spec::drive as spec;
