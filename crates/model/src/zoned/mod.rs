//! Drives with shingled recording as their host sees them: which writes a zone takes.
//!
//! Terms and rules are those of the Zoned Block Commands (ZBC, SAS) and the Zoned-device ATA
//! Command Set (ZAC, SATA).
//!
//! Reads are taken everywhere, also beyond a write pointer and over the boundary of a zone: drives
//! say with the URSWRZ bit (unrestricted reads in sequential write required zones) whether they
//! do, and Linux runs no others.
//!
//! Goals: a write costs the same with any number of zones. Non-goals: time (a zone's blocks lie where
//! the layout puts them), internal work of drive-managed drives, read-only and offline zones.

mod zones;

pub use crate::spec::zoned as spec;
pub use zones::{Zone, ZoneCondition, ZoneError, ZoneType, Zones};
