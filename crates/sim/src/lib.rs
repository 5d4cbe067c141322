//! Virtual time: sources of requests, the event loop, and what a run is summed up in.

pub mod background;
pub mod black_box;
mod calendar;
mod completion;
pub mod config;
mod device;
pub mod document;
mod engine;
mod events;
mod fleet;
mod flush;
mod idle;
pub mod library;
pub mod log;
mod outside;
mod pending;
pub mod postmark;
mod promoted;
mod result;
mod servo;
pub mod source;
mod zoned;

pub use completion::Completion;
pub use device::{Device, Mechanics, WholeDrive, Work};
pub use engine::{Arm, run};
pub use events::EventQueue;
pub use idle::IdleTime;
pub use outside::{CONSERVATISM_MAX, CommandObserver, ExternalConfig, Outside};
pub use result::{BusyShares, DriveResult, FreeResult, HeadTime, Resource, RunResult, Stages};
pub use servo::{FreeTime, SeekErrors, Servo};
pub use zoned::{Refusal, RefusedWrites, VolumeZones};
