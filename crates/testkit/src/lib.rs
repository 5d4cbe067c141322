//! Helpers that tests of several crates share: random small drives, electronics for them, and files that
//! may not be redistributed.
#![allow(missing_docs)]

pub mod data;
pub mod drives;
pub mod electronics;
