//! Virtual time: sources of requests, the event loop, and what a run is summed up in.

mod completion;
pub mod config;
mod engine;
mod events;
pub mod library;
pub mod log;
mod result;
pub mod source;

pub use completion::Completion;
pub use engine::run;
pub use events::EventQueue;
pub use result::{RunResult, Stages};
