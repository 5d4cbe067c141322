//! Rules of plans for several disks: what loads are means of, which stripe unit to take, and what a balancer
//! of bytes would do.
//!
//! Which file moves next is in [`rebalance`](crate::rebalance). `study` reads disks, files and traces, and
//! simulates what these rules compare.

mod confidence;
mod equal_bytes;
mod headroom;
mod load_time;
mod runs;

pub use confidence::{PARTS, PartSums, half_interval};
pub use equal_bytes::{EQUAL_BYTES_MOVES_MAX, Effort, equal_bytes};
pub use headroom::{AtLoad, BEYOND, Mean, StripeChoice, StripeTurn, holds, unit_to_take};
pub use load_time::{
    COMMON_OF_LONGEST, COMMON_SHARE, DeviceTime, DiskTime, LoadTime, LoadTimes, REQUESTS_TELL,
};
pub use runs::Runs;
