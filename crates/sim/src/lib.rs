//! Virtual time: sources of requests, the event loop, and what a run is summed up in.

mod arm_executor;
pub mod background;
pub mod black_box;
pub mod config;
mod device;
pub mod document;
mod engine;
mod events;
mod fleet;
mod host;
mod idle;
pub mod library;
pub mod log;
pub mod postmark;
mod result;
pub mod source;

pub use arm_executor::{ArmExecutor, FreeTime, SeekErrors};
pub use device::{Device, Mechanics, WholeDrive, Work};
pub use engine::{Arm, Completion, Refusal, RefusedWrites, VolumeZones, run};
pub use events::EventQueue;
pub use host::{CONSERVATISM_MAX, CommandObserver, HostConfig, HostDevice};
pub use idle::IdleTime;
pub use result::{BusyShares, DriveResult, FreeResult, HeadTime, Resource, RunResult, Stages};
