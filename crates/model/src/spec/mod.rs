//! Plain data of drive files and configurations, with units, sources and checks of their form.
//!
//! The models are built from it, and no code here knows them. Each model gives its part out under the
//! name that its users know: `drive::spec`, `electronics::spec`, `zoned::spec`, `sched`.

pub mod advertised;
pub mod by_op;
pub mod drive;
pub mod duration_limits;
pub mod electronics;
pub mod linux;
pub mod media_cache;
pub mod policy;
pub mod zoned;

/// A key, its value, and what is allowed.
type Impossible = (&'static str, String, String);
