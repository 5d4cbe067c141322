//! Values that differ between reads and writes.

use freewheel_units::Op;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value for reads and one for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByOp<T> {
    /// For reads.
    pub read: T,
    /// For writes.
    pub write: T,
}

impl<T: Copy> ByOp<T> {
    /// That of `op`; any operation but a write counts as a read.
    #[inline]
    pub fn of(&self, op: Op) -> T {
        if op == Op::Write { self.write } else { self.read }
    }
}
