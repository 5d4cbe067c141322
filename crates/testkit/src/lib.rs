//! What tests of several crates share: random small drives, and electronics for them.
#![allow(missing_docs)]

pub mod drives;
pub mod electronics;
