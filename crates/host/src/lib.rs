//! Scheduling in front of a drive, by the host: pure state machines that are given the time.
//!
//! ```text
//!   HostScheduler         requests in, device commands out, data between them     scheduler/host
//!     ServedTasks         background tasks: their rounds, data, copies before writes       tasks
//!     PredictiveScheduler the next command, and free work in the gap before it  scheduler/predictive
//!       FairQueue         shares of clients                                        fair_queue
//!       Prediction        when and where a command ends; the spindle's angle          predict
//!       Learner           margins of free work, for a budget of delays                margins
//!       GapPrices         buffer hits that free work takes from clients                 price
//!       OffSlots          what free work costs, measured in slots without it          off_slots
//!   DecisionDeadline      how long before the drive needs a command a decision begins deadline
//! ```
//! The engine that owns time drives them: `freewheel-sim` in virtual time, `freewheel-live` in real time.
//!
//! Goals: no clock, thread, file or socket; the same calls give the same bytes.
//! Non-goals: moving data to and from a device, and talking to clients.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod copy_before_write;
pub mod deadline;
pub mod device;
mod fair_queue;
mod margins;
mod off_slots;
mod predict;
mod price;
mod promote_tail;
mod runs;
pub mod scheduler;
mod task_account;
pub mod tasks;

pub use copy_before_write::{Backup, ClaimBy, Copies, CopyRead};
pub use deadline::Deciding;
pub use fair_queue::Client;
pub use margins::MarginInUse;
pub use off_slots::{CostSums, FreeCost};
pub use predict::{
    Account, Conservatism, PoorPrediction, PredictionMonitor, PredictionSpec, SameTrack,
};
pub use promote_tail::{PromotionAnchor, TailPromotion};
pub use scheduler::{
    Command, DecisionStart, Finished, ForegroundPart, HostScheduler, PredictiveScheduler,
};
pub use task_account::{Deliveries, DeliveryPath, PromotedWork, TaskAccount};
