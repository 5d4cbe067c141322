//! An extracted drive as a table of a terminal.

use freewheel_extract::Extraction;
use freewheel_units::grouped;

use crate::drive_sheet::held_out;
use crate::numbers::{span, us};
use crate::table::Table;
use crate::text::Text;

impl Text for Extraction {
    fn text(&self) -> String {
        let mut table = Table::new("llll");
        table.row(["value", "found", "how sure", "how"]);
        for value in &self.values {
            let sure = value.confidence.name();
            let (key, text) = (value.key.as_str(), value.value.as_str());
            table.row([key, text, sure, value.source.as_str()]);
        }
        let slips: u64 = self.slips.iter().map(|slip| slip.count).sum();
        format!(
            "{table}\n{}\n{}{}{slips} defects that the drive's layout passes over; answers vary by {}; \
             {} commands, {} of them writes, in {} of the drive's time\n",
            worth(self),
            placed(self),
            unreadable(self),
            us(self.reply_jitter_ns),
            grouped(self.commands),
            grouped(self.writes),
            span(self.drive_ns as f64 / 1e9)
        )
    }
}

/// Blocks that are named in a text.
const SHOWN: usize = 8;

/// Error of the file on requests; or that there were none.
fn worth(found: &Extraction) -> String {
    match found.held_out.is_empty() {
        true => "no request was held against the file\n".into(),
        false => held_out(&found.held_out),
    }
}

/// Words about the blocks: all lie where the file says, or the first that does not.
fn placed(found: &Extraction) -> String {
    let (read, misplaced) = (found.verified, &found.misplaced);
    if misplaced.is_empty() {
        let within = us(found.verified_within_ns as f64);
        return format!(
            "of {read} blocks read afterwards all lie where the file says, as far as their angles tell: \
             to {within}\n"
        );
    }
    let off = misplaced
        .iter()
        .map(|block| format!("block {} by {}", block.block, us(block.off_ns as f64)));
    let (count, shown) = (misplaced.len(), first(off));
    format!(
        "WRONG: of {read} blocks read afterwards {count} lie elsewhere than the file says: {shown}\n"
    )
}

/// Words about blocks that could not be read. Most blocks of a drive are not asked for, so that none says
/// little.
fn unreadable(found: &Extraction) -> String {
    let (bad, failed) = (&found.unreadable, found.failed);
    let what = match (bad.len(), failed) {
        (0, 0) => "every block that was asked for could be read".into(),
        (0, _) => format!("{failed} reads of several blocks failed, none of one block"),
        (count, _) => {
            let shown = first(bad.iter().map(u64::to_string));
            format!(
                "{count} blocks could not be read and were passed over: {shown}; {failed} commands failed"
            )
        }
    };
    format!("{what}; not all of the drive's blocks were asked for\n")
}

/// The first of these, and how many more there are.
fn first(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(SHOWN);
    let shown: Vec<String> = all.take(SHOWN).collect();
    match more {
        0 => shown.join(", "),
        _ => format!("{}, and {more} more", shown.join(", ")),
    }
}
