//! Tests of the public interface, one binary for all: linking takes longer than most of them.
#![allow(missing_docs)]

mod binary_formats;
mod block_events;
mod common;
mod damaged;
mod host_formats;
mod lenience;
mod published_formats;
mod recognition;
mod recorded;
mod round_trip;
mod text_formats;
mod trials;
mod web_server;
