//! The server session, byte for byte against messages worked out by hand from the protocol.
#![allow(missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod negotiation;
mod requests;
