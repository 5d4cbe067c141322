//! True if numbers in the columns of a format have their meaning there.
//!
//! Other tools write the same columns in other units: a size of 8 sectors would be read as one of 8 bytes.
//! A format whose lines could be anybody's is recognised only where most records are plausible. Otherwise
//! the person names it.

use crate::record::Record;
use crate::source::{LineDecoder, most_lines_parse, parsed_lines};

/// Blocks of 512 bytes in a page of 4 KiB.
const PAGE_BLOCKS: u64 = 8;

/// True if most lines are records of `decoder`, and most of these are whole blocks of 512 bytes.
pub(super) fn most_lines_are_blocks(head: &[u8], decoder: &mut dyn LineDecoder) -> bool {
    most_lines_parse(head, decoder) && most_are_blocks(&parsed_lines(head, decoder))
}

pub(super) fn most_are_blocks(records: &[Record]) -> bool {
    most(records, |record| !record.widened)
}

/// True if most sizes are whole pages of 4 KiB, as file systems and data bases ask for.
pub(super) fn most_are_pages(records: &[Record]) -> bool {
    most(records, |record| record.blocks.get().is_multiple_of(PAGE_BLOCKS))
}

/// True if at least half are so.
pub(super) fn most(records: &[Record], is: impl Fn(&Record) -> bool) -> bool {
    records.iter().filter(|record| is(record)).count() * 2 >= records.len()
}
