//! Tests of the public interface, one binary for all: linking takes longer than most of them.
#![allow(missing_docs)]

mod disksim;
mod extract;
mod live;
mod nbd;
mod sim;
mod trace;
