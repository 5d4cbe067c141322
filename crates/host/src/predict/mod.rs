//! Predictions of commands, and the comparison with their ends.

mod account;
mod clock;
mod monitor;
mod prediction;
mod spec;

pub use account::Account;
pub(crate) use clock::{Clock, Observed, PLAUSIBLE};
pub use monitor::{PoorPrediction, PredictionMonitor};
pub(crate) use prediction::{Head, Prediction};
pub use spec::{Conservatism, PredictionSpec, SameTrack};
