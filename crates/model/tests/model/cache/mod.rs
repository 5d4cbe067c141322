//! Caches and miss-ratio curves against slow and obvious ones.

mod belady;
mod curves;
mod naive;
mod objects;
mod policies;
mod read_cache;
mod storage;
mod versions;
mod write_buffer;
