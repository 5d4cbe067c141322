//! Plans for several disks, each with its conclusion.

mod place;
mod stripe;

pub use place::{PlaceConclusions, PlaceReport};
pub use stripe::{StripeConclusions, StripeReport};
