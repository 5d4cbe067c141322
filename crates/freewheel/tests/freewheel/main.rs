//! Tests of the public interface, one binary for all: linking takes longer than most of them.
#![allow(missing_docs)]

mod api;
mod circles;
mod layers;
mod rounding;
mod words;
