//! The schedulers: commands by predicted positioning time, and a whole host with requests and data.

mod command;
mod host;
mod predictive;

pub use command::{Command, Finished, ForegroundPart};
pub use host::{
    Answer, Erase, HostScheduler, OWN_COMMANDS, REGION_BLOCKS, Request, WrittenRegions,
};
pub use predictive::{DecisionStart, PredictiveScheduler};
