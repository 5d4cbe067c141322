//! Results of a run's free work, in numbers: figures 8 to 10 of osdi00, for every task alike.

mod course;
mod delivered;
mod task;
mod work;

pub use course::{Course, latency_lines, line, over_the_run};
pub use delivered::Delivered;
pub use task::{DeadlineWork, TaskWork};
pub use work::{FreeWork, IdleCost};
