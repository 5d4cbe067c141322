//! The server over a Unix socket, with the protocol's own client.
#![allow(missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod emulation;
mod exports;
mod hostile;
mod limits;
mod power;
mod requests;
mod stop;
