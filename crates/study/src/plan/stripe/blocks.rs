//! The block in which units and requests are counted.

use freewheel_units::{BLOCK_BYTES, Blocks, Bytes};

pub(super) const BLOCK: Bytes = Bytes::from_kib(4);

pub(super) fn in_blocks(bytes: Bytes) -> u64 {
    bytes.get().div_ceil(BLOCK.get())
}

pub(super) fn sectors(blocks: u64) -> Blocks {
    Blocks::new(blocks * (BLOCK.get() / BLOCK_BYTES))
}

pub(super) fn bytes(blocks: u64) -> Bytes {
    Bytes::new(blocks * BLOCK.get())
}
