//! Numbers for the hosts or files that a trace calls by name.

use crate::fault::Fault;
use crate::scan::Token;

/// Names of one trace: each stays in memory.
const NAMES_MAX: usize = 1024;

/// Names in order of their first record.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Vec<u8>>);

impl Names {
    /// The number of a name: 0 for the first one that the trace has.
    #[inline]
    pub fn number(&mut self, name: Token) -> Result<u32, Fault> {
        // A trace has few names, so a linear search is fast.
        let known = self.0.iter().position(|known| known == name.text);
        Ok(known.map_or_else(|| self.add(name), Ok)? as u32)
    }

    #[cold]
    fn add(&mut self, name: Token) -> Result<usize, Fault> {
        if self.0.len() == NAMES_MAX {
            return Err(name.fault("the trace has more than 1024 such names"));
        }
        self.0.push(name.text.to_vec());
        Ok(self.0.len() - 1)
    }
}
