//! Results of PostMark.

use serde::Serialize;

use crate::config::PostmarkCleaner;
use crate::postmark::{FreeReads, Pass, PostmarkProcess};

/// Results of PostMark.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PostmarkResult {
    /// The cleaner of the run.
    pub cleaner: PostmarkCleaner,
    /// Files before the first transaction.
    pub files: u32,
    /// Passes of the transactions; the last one counts.
    pub passes: Vec<PassResult>,
}

/// One pass of the transactions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PassResult {
    /// Transactions done.
    pub transactions: u32,
    /// Time taken; of `ideal` without cleaning.
    pub elapsed_ns: u64,
    /// Transactions a second in that time.
    pub transactions_per_second: f64,
    /// Part of the log's blocks in use, mean of start and end.
    pub utilisation: f64,
    /// Time of cleaning reads, which find the live blocks.
    pub cleaning_read_ns: u64,
    /// Time of copying live blocks, with their share of segment writes.
    pub cleaning_copy_ns: u64,
    /// Segments written.
    pub segments_written: u64,
    /// Segments that the process cleaned.
    pub segments_cleaned: u64,
    /// Segments whose live blocks the cleaner requested as freeblock reads.
    pub segments_targeted: u64,
    /// Live blocks that the process read and copied.
    pub copied_blocks: u64,
    /// Dead blocks that the process read.
    pub dead_blocks_read: u64,
    /// Live blocks that freeblock reads brought and the process copied.
    pub free_copied_blocks: u64,
}

impl PostmarkResult {
    /// Results of a process that has ended, with the cleaner that it ran with.
    pub(crate) fn of<F: FreeReads>(process: &PostmarkProcess<F>, cleaner: PostmarkCleaner) -> Self {
        let passes = process.passes().iter().map(|pass| PassResult::new(pass, cleaner)).collect();
        Self { cleaner, files: process.spec().files, passes }
    }
}

impl PassResult {
    fn new(pass: &Pass, cleaner: PostmarkCleaner) -> Self {
        let Pass { transactions, elapsed, cleaning, utilisation, work } = *pass;
        let (elapsed, rate) = match cleaner {
            PostmarkCleaner::Ideal => (elapsed - cleaning.total(), pass.rate_without_cleaning()),
            _ => (elapsed, pass.rate()),
        };
        Self {
            transactions,
            elapsed_ns: elapsed.ns(),
            transactions_per_second: rate,
            utilisation,
            cleaning_read_ns: cleaning.reading.ns(),
            cleaning_copy_ns: cleaning.copying.ns(),
            segments_written: work.segments_written,
            segments_cleaned: work.segments_cleaned,
            segments_targeted: work.segments_targeted,
            copied_blocks: work.copied_blocks,
            dead_blocks_read: work.dead_blocks_read,
            free_copied_blocks: work.free_copied_blocks,
        }
    }
}
