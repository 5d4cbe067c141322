//! Tests of the public interface, one binary for all: linking takes longer than most of them.
#![allow(missing_docs)]

mod cache_work;
mod caches;
mod doubts;
mod free_work;
mod study;
mod validation;
mod wording;
