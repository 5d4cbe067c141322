//! Drives and workloads that several tests share.

pub mod one_surface;
pub mod setting;
