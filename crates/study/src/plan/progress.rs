//! Progress of a plan.

/// Shows what is worked on, and how much of it is done: done and total.
pub type PlanProgressSink<'a> = &'a dyn Fn(&str, u64, u64);
