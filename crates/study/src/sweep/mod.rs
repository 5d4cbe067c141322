//! Many configurations of one experiment, all combinations of some values of its keys.
//!
//! Every configuration runs alone, so the rows are the same with any number of threads. A journal beside the
//! output has each row as soon as it is known: a sweep that was killed goes on where it was. The Parquet file
//! appears under its name when it is whole, with the rows in order.

mod chunk;
mod error;
mod file;
mod keys;
mod loads;
mod rows;
mod run;

pub use crate::table::Column;
pub use chunk::SweepChunk;
pub use error::SweepError;
pub use keys::SweptKey;
pub use loads::SweepLoads;
pub use rows::{REAL_COLUMNS, SweepRow, WHOLE_COLUMNS};
pub use run::{Sweep, SweepDone, SweepProgressSink, SweepRows};
