//! The freeblock scheduler against an oracle that lets every wanted piece pass under the head, on
//! every track, one by one.

mod at_size;
mod budget;
mod case;
mod changes;
mod idle;
mod memory;
mod oracle;
mod patience;
mod rules;
mod steps;
mod upkeep;
