//! Tests of the public interface, one binary for all: linking takes longer than most of them.
#![allow(missing_docs)]

mod cache;
mod electronics;
mod layout;
mod linux;
mod log_disk;
mod mechanics;
mod scale;
mod sched;
mod zoned;
