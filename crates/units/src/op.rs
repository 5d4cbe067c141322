//! Operations of requests.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Media to host.
    Read,
    /// Host to media.
    Write,
    /// Complete when every write that arrived earlier is on the media; moves no data itself.
    Flush,
    /// The host no longer needs the blocks; moves no data.
    Trim,
}

impl Op {
    /// True if the head has to visit the media for it.
    #[inline]
    pub const fn moves_data(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Flush => "flush",
            Op::Trim => "trim",
        })
    }
}
