//! Plans for several disks: how finely to stripe, which file to move where, and what that would do for
//! responses.
//!
//! A plan is a dry run. It takes a snapshot of disks and files, works out moves by the queueing model, and
//! holds the model's answer beside a simulation of the same requests on the same drives.

mod error;
mod jbod;
mod outcome;
mod place;
mod progress;
mod snapshot;
mod stripe;
mod traced;
mod web;

pub use error::PlanError;
pub use outcome::{DiskOutcome, Outcome, SimulatedOutcome};
pub use place::{
    PlaceOptions, PlacePlan, PlaceSource, PlacedFile, PlannedDisk, PlannedMove, Stopped,
    WhatIfPlan, plan_place,
};
pub use progress::PlanProgressSink;
pub use snapshot::{DiskEntry, FileEntry, Snapshot, relative};
pub use stripe::{
    ChenUnit, StripeLoad, StripeOptions, StripePlan, StripeSource, StripeUnit, StripedFile,
    plan_stripe,
};
