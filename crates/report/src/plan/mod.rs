//! Plans for several disks, each with its conclusion.

mod left_out;
mod place;
mod stripe;

pub use place::{PlaceConclusions, PlaceReport};
pub use stripe::{StripeConclusions, StripeReport};
