//! Caches and miss-ratio curves against slow and obvious ones.

mod curves;
mod naive;
mod policies;
mod read_cache;
mod storage;
mod versions;
mod write_buffer;
