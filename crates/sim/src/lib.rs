//! Virtual time: sources of requests, the event loop, and what a run is summed up in.

mod arm_executor;
pub mod background;
pub mod black_box;
mod cache_work;
mod cached;
mod cached_arm;
mod completion;
pub mod config;
mod device;
mod digest;
mod engine;
mod events;
pub mod experiment;
pub mod fidelity;
pub mod files;
mod free_time;
mod gap_destages;
mod idle;
pub mod library;
mod linux_device;
pub mod log;
pub mod postmark;
mod predicted_device;
mod result;
mod seek_errors;
mod served_device;
pub mod source;
pub mod toml_faults;

pub use arm_executor::ArmExecutor;
pub use background::CONSERVATISM_MAX;
pub use cache_work::{CacheWork, PrefetchWork, PrefetchWorth, ServiceParts};
pub use completion::{Completion, LimitCounts, Refusal, RefusedWrites};
pub use config::HostConfig;
pub use device::{Device, Mechanics, WholeDrive, Work};
pub use engine::{Arm, VolumeZones, run};
pub use events::EventQueue;
pub use free_time::FreeTime;
pub use idle::IdleTime;
pub use linux_device::LinuxDevice;
pub use predicted_device::{CommandObserver, PredictedDevice};
pub use result::{
    BusyShares, DriveResult, FreeResult, HeadTime, OtherTimes, PassResult, PostmarkResult,
    Resource, RunResult, SliceResponses, SliceResult, Stages,
};
pub use seek_errors::SeekErrors;
pub use served_device::ServedDevice;
