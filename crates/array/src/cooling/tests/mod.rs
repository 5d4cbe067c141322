//! Cooling against exhaustive rules, and moves against crashes.

mod crashes;
mod decisions;
mod movers;
