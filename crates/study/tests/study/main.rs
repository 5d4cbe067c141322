//! Tests of the public interface, one binary for all: linking takes longer than most of them.
#![allow(missing_docs)]

mod cache_curves;
mod changes;
mod drive_fit;
mod idle_scrub;
