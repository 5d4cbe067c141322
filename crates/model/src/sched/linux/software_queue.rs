//! Requests that wait where the processor has put them: in order of arrival.

use std::collections::VecDeque;

use super::sorted::MERGED_BLOCKS_MAX;
use super::{IoRequest, Merged};

/// Requests, latest first, that a new one may join.
const MERGE_TRIES: usize = 8;

/// A software queue of `blk-mq`. A new request joins one of the latest eight before or behind it. The first of
/// them that it adjoins decides: where both together are too large, no other is tried. Source: Linux 6.12,
/// `blk_bio_list_merge` and `blk_attempt_bio_merge` in `block/blk-merge.c`, and `blk_mq_sched_bio_merge` in
/// `block/blk-mq-sched.c`. A trace names no processors, so all share one.
#[derive(Debug, Default)]
pub(super) struct SoftwareQueue(VecDeque<IoRequest>);

impl SoftwareQueue {
    pub fn merge(&mut self, new: &IoRequest) -> Option<Merged> {
        let latest = self.0.iter_mut().rev().take(MERGE_TRIES);
        let waiting = { latest }.find(|waiting| {
            (is_like(waiting, new) && !waiting.fua && !new.fua) && adjoins(waiting, new)
        })?;
        if waiting.blocks.saturating_add(new.blocks) > MERGED_BLOCKS_MAX {
            return None;
        }
        waiting.start = waiting.start.min(new.start);
        waiting.blocks += new.blocks;
        Some(Merged { into: waiting.sequence, absorbed: Vec::new() })
    }

    pub fn push(&mut self, request: IoRequest) {
        self.0.push_back(request);
    }

    pub fn pop(&mut self) -> Option<IoRequest> {
        self.0.pop_front()
    }

    /// Takes all out, in order of arrival.
    pub fn take(&mut self) -> VecDeque<IoRequest> {
        std::mem::take(&mut self.0)
    }
}

fn is_like(waiting: &IoRequest, new: &IoRequest) -> bool {
    (waiting.op, waiting.mark) == (new.op, new.mark)
}

fn adjoins(waiting: &IoRequest, new: &IoRequest) -> bool {
    waiting.end() == new.start || new.end() == waiting.start
}
