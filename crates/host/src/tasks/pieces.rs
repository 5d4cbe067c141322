//! Data of blocks that come in parts: a planner with pieces on needs a place for their data.

use std::collections::BTreeMap;

use freewheel_freeblock::tasks::Extent;
use freewheel_units::{BLOCK_BYTES, Lbn};

use crate::task_account::DeliveryPath;

/// Most blocks of 512 B that are kept: 64 MiB, as in the planner. Blocks beyond that are read again
/// separately.
const KEPT_MAX: u64 = (64 << 20) / BLOCK_BYTES;

/// The data of a completed command, and the request that they belong to.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommandData<'a> {
    /// Data by their first block; empty for a command that has failed.
    pub data: &'a [(Lbn, &'a [u8])],
    /// Requested spans, `start..end` of 512 B each. Blocks of tasks lie across their ends.
    pub spans: &'a [(u64, u64)],
    /// Span of these that a client asked for, or a task by itself; the others are of gaps.
    pub requested: Option<(u64, u64)>,
    /// Number of the command, above those of all commands sent before it.
    pub command: u64,
    /// The command could not be done.
    pub has_failed: bool,
}

impl CommandData<'_> {
    /// Path of blocks that nobody asked for: a part of them in a gap makes them the gap's.
    pub(crate) fn path_of(&self, extent: Extent) -> DeliveryPath {
        let (start, end) = (extent.start.get(), extent.start.get() + extent.blocks.get());
        match self.requested {
            Some((from, to)) if from <= start && end <= to => DeliveryPath::Passing,
            _ => DeliveryPath::Gap,
        }
    }
}

/// Parts of blocks, by task and first block of 512 B.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    kept: BTreeMap<(u64, u64), Piece>,
    /// Blocks of 512 B there is room for in what is kept.
    blocks: u64,
}

#[derive(Debug)]
struct Piece {
    data: Vec<u8>,
    /// Flag for each block of 512 B that has come.
    has: Vec<bool>,
}

impl Piece {
    fn new(blocks: u64) -> Self {
        let bytes = (blocks * BLOCK_BYTES) as usize;
        Self { data: vec![0; bytes], has: vec![false; blocks as usize] }
    }

    /// Takes what `data` from `at` on has of the blocks from `start` on and is not there yet.
    fn take(&mut self, start: u64, at: u64, data: &[u8]) {
        let end = (at + data.len() as u64 / BLOCK_BYTES).min(start + self.has.len() as u64);
        for block in at.max(start)..end {
            if !std::mem::replace(&mut self.has[(block - start) as usize], true) {
                let to = bytes(block - start);
                self.data[to].copy_from_slice(&data[bytes(block - at)]);
            }
        }
    }
}

fn bytes(block: u64) -> std::ops::Range<usize> {
    let from = (block * BLOCK_BYTES) as usize;
    from..from + BLOCK_BYTES as usize
}

impl Pieces {
    /// The data of `extent` of a task: from the source, and from what is kept. None when some are
    /// nowhere. What was kept of it is gone.
    pub fn gather(
        &mut self,
        task: u64,
        extent: Extent,
        source: &CommandData<'_>,
    ) -> Option<Vec<u8>> {
        let (start, blocks) = (extent.start.get(), extent.blocks.get());
        let mut whole = Piece::new(blocks);
        for (at, data) in source.data {
            whole.take(start, at.get(), data);
        }
        for (at, piece) in self.remove(task, start, start + blocks) {
            for (number, _) in piece.has.iter().enumerate().filter(|(_, has)| **has) {
                whole.take(start, at + number as u64, &piece.data[bytes(number as u64)]);
            }
        }
        whole.has.iter().all(|&has| has).then_some(whole.data)
    }

    /// Keeps what the source has of a task's block.
    pub fn keep(&mut self, task: u64, block: Extent, source: &CommandData<'_>) {
        let (start, blocks) = (block.start.get(), block.blocks.get());
        if !self.kept.contains_key(&(task, start)) {
            if self.blocks + blocks > KEPT_MAX {
                return;
            }
            self.blocks += blocks;
        }
        let piece = self.kept.entry((task, start)).or_insert_with(|| Piece::new(blocks));
        for (at, data) in source.data {
            piece.take(start, at.get(), data);
        }
    }

    /// Forgets what touches `from..to` of a task, whose blocks have at most `size`.
    pub fn forget(&mut self, task: u64, size: u32, from: u64, to: u64) {
        let before = from.saturating_sub(u64::from(size) - 1);
        self.remove(task, before, to);
    }

    /// Forgets all of a task.
    pub fn forget_task(&mut self, task: u64) {
        self.remove(task, 0, u64::MAX);
    }

    /// Takes what begins in `from..to`.
    fn remove(&mut self, task: u64, from: u64, to: u64) -> Vec<(u64, Piece)> {
        let there: Vec<u64> =
            self.kept.range((task, from)..(task, to)).map(|(&(_, start), _)| start).collect();
        let taken = there.into_iter().filter_map(|start| {
            let piece = self.kept.remove(&(task, start))?;
            self.blocks -= piece.has.len() as u64;
            Some((start, piece))
        });
        taken.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(from: u64, blocks: u64) -> Vec<u8> {
        (from..from + blocks).flat_map(|block| [block as u8; 512]).collect()
    }

    fn source<'a>(data: &'a [(Lbn, &'a [u8])]) -> CommandData<'a> {
        CommandData { data, ..CommandData::default() }
    }

    #[test]
    fn block_assembly_tells_missing_pieces() {
        let mut pieces = Pieces::default();
        let block = Extent::new(16, 8);
        let (head, tail) = (data(10, 9), data(19, 30));
        pieces.keep(1, block, &source(&[(Lbn::new(10), &head)]));
        assert_eq!(pieces.blocks, 8);
        let both = [(Lbn::new(19), &tail[..])];
        assert_eq!(pieces.gather(2, block, &source(&both)), None, "of another task");
        assert_eq!(pieces.gather(1, block, &source(&both)), Some(data(16, 8)));
        assert_eq!(pieces.blocks, 0);
        assert_eq!(pieces.gather(1, block, &source(&both)), None, "given once");
    }

    #[test]
    fn pieces_of_written_blocks_are_forgotten() {
        let mut pieces = Pieces::default();
        let head = data(16, 3);
        pieces.keep(1, Extent::new(16, 8), &source(&[(Lbn::new(16), &head)]));
        pieces.forget(1, 8, 24, 30);
        assert_eq!(pieces.blocks, 8, "behind it");
        pieces.forget(1, 8, 23, 24);
        assert_eq!(pieces.blocks, 0);
    }

    #[test]
    fn kept_pieces_have_a_limit() {
        let mut pieces = Pieces::default();
        let head = data(0, 1);
        for number in 0..KEPT_MAX / 8 + 10 {
            let block = Extent::new(number * 8, 8);
            pieces.keep(1, block, &source(&[(Lbn::new(number * 8), &head)]));
        }
        assert_eq!(pieces.blocks, KEPT_MAX);
    }
}
