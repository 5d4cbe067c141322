//! Caches and miss-ratio curves against slow and obvious ones.
#![allow(missing_docs)]

mod curves;
mod naive;
mod policies;
mod read_cache;
mod storage;
mod versions;
