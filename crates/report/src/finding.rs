//! What follows from numbers.

use serde::Serialize;

/// A sentence to remember, and the numbers behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The sentence.
    pub headline: String,
    /// The numbers; each of its lines is of one thing.
    pub detail: String,
}
