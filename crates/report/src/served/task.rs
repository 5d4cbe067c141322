//! A background task of a server in words.

use std::ops::Range;

use freewheel_units::{BLOCK_BYTES, grouped};

use super::blocks::{amount, block_range};
use crate::numbers::{percent, rate, signed_percent, span};
use crate::table::Table;

/// Numbers of a background task.
#[derive(Debug, Clone, Default)]
pub struct ServedTask {
    /// Number of the task.
    pub id: u64,
    /// Kind of the task in a word.
    pub kind: &'static str,
    /// State of the task in a word.
    pub state: &'static str,
    /// Part of its life.
    pub stage: TaskStage,
    /// True if clients' writes wait until it has read what they overwrite.
    pub copies_before_writes: bool,
    /// Rounds that are complete.
    pub rounds: u64,
    /// The part of the round that is done.
    pub done: f64,
    /// Blocks that were read in all rounds; of a refresh rewritten and read back.
    pub blocks_read: u64,
    /// Blocks that were read before clients wrote there.
    pub copied_blocks: u64,
    /// Time since the first round began.
    pub elapsed_ns: u64,
    /// Predicted rest of the round; None where nothing is known, or clients leave no gaps.
    pub remaining_ns: Option<u64>,
    /// Ranges that are still unreadable.
    pub unreadable: Vec<Range<u64>>,
    /// Number of all unreadable blocks.
    pub unreadable_blocks: u64,
    /// Outcome of a refresh's other blocks.
    pub refresh: Option<RefreshedBlocks>,
    /// Earlier predictions of the end.
    pub expectations: Vec<ExpectedEnd>,
}

/// Parts of a task's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaskStage {
    /// It has not begun.
    #[default]
    Waiting,
    /// It reads in gaps.
    Running,
    /// It reads by foreground requests.
    Promoted,
    /// It has ended.
    Over,
}

/// Blocks that a refresh did not rewrite, or not as they were.
#[derive(Debug, Clone, Default)]
pub struct RefreshedBlocks {
    /// Blocks that clients wrote meanwhile.
    pub superseded: u64,
    /// Blocks that were left because clients wrote there again and again.
    pub busy: u64,
    /// Ranges that were read back with other data.
    pub differing: Vec<Range<u64>>,
    /// Ranges that could not be written.
    pub unwritten: Vec<Range<u64>>,
}

/// A prediction of a round's end.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExpectedEnd {
    /// Percentage of the round that had been read.
    pub percent: u8,
    /// Predicted rest.
    pub expected_ns: u64,
    /// The rest that it took, and the relative error of the prediction.
    pub in_fact: Option<(u64, f64)>,
}

impl ServedTask {
    /// Summary of a task that is over.
    pub fn summary(&self) -> String {
        let mut table = Table::new("ll");
        let took = span(self.elapsed_ns as f64 / 1e9);
        let read = format!("{} in {took}, {}", amount(self.blocks_read), self.rate());
        let is_refresh = self.refresh.is_some();
        table.row([self.kind, self.state]);
        table.row([if is_refresh { "rewritten and read back" } else { "read" }, &read]);
        for (name, value) in self.refresh.iter().flat_map(RefreshedBlocks::rows) {
            table.row([name, &value]);
        }
        if self.copied_blocks > 0 {
            let copied = format!("{} before clients wrote there", amount(self.copied_blocks));
            table.row(["of that", &copied]);
        }
        for range in &self.unreadable {
            table.row(["unreadable", &block_range(range)]);
        }
        for expectation in &self.expectations {
            table.row([format!("at {} %", expectation.percent), expectation.words()]);
        }
        table.to_string()
    }

    /// Cells of the table of running tasks, for [`HEAD`].
    pub(super) fn cells(&self) -> [String; 8] {
        let is_promoted = self.stage == TaskStage::Promoted;
        let state = if is_promoted { "promoted" } else { self.state };
        let is_copying = self.copies_before_writes;
        [
            self.id.to_string(),
            self.kind.to_owned(),
            state.to_owned(),
            percent(self.done),
            amount(self.blocks_read),
            if is_copying { amount(self.copied_blocks) } else { "-".to_owned() },
            self.remaining_ns.map_or_else(|| "-".to_owned(), |ns| span(ns as f64 / 1e9)),
            grouped(self.unreadable_blocks),
        ]
    }

    /// A task whose server has ended, in a row.
    pub(super) fn last_row(&self) -> [String; 2] {
        let state = match self.stage {
            TaskStage::Waiting => "not begun",
            TaskStage::Running | TaskStage::Promoted => "cut short",
            TaskStage::Over => self.state,
        };
        let words = format!(
            "{state}: {}, {}, complete rounds {}, {} blocks unreadable",
            amount(self.blocks_read),
            self.rate(),
            grouped(self.rounds),
            grouped(self.unreadable_blocks)
        );
        [format!("{} {}", self.kind, self.id), words]
    }

    /// Bytes a second since its begin.
    fn rate(&self) -> String {
        let bytes = (self.blocks_read * BLOCK_BYTES) as f64;
        rate(bytes / (self.elapsed_ns.max(1) as f64 / 1e9))
    }
}

/// Heading of the table of running tasks.
pub(super) const HEAD: [&str; 8] =
    ["task", "kind", "state", "done", "read", "copied", "ends in", "unreadable"];

impl RefreshedBlocks {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let counts = [("written by clients", self.superseded), ("left as busy", self.busy)];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        let mut rows: Vec<_> = counts.map(|(name, count)| (name, amount(count))).collect();
        for (name, ranges) in
            [("read back differently", &self.differing), ("not written", &self.unwritten)]
        {
            rows.extend(ranges.iter().map(|range| (name, block_range(range))));
        }
        rows
    }
}

impl ExpectedEnd {
    fn words(&self) -> String {
        let expected = format!("{} more were expected", span(self.expected_ns as f64 / 1e9));
        match self.in_fact {
            Some((took_ns, error)) => {
                let took = span(took_ns as f64 / 1e9);
                format!("{expected}, it took {took} ({})", signed_percent(error))
            }
            None => expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_summary_names_its_blocks_and_predictions() {
        let expectation = ExpectedEnd {
            percent: 50,
            expected_ns: 9_000_000_000,
            in_fact: Some((10_000_000_000, -0.1)),
        };
        let task = ServedTask {
            kind: "refresh",
            state: "done",
            stage: TaskStage::Over,
            blocks_read: 2048,
            elapsed_ns: 1_000_000_000,
            unreadable: std::iter::once(7..8).collect(),
            refresh: Some(RefreshedBlocks {
                superseded: 2,
                unwritten: std::iter::once(9..12).collect(),
                ..Default::default()
            }),
            expectations: vec![expectation],
            ..ServedTask::default()
        };
        let text = task.summary();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|row| row.split("  ").filter(|cell| !cell.is_empty()).collect())
            .collect();
        let rows: Vec<Vec<&str>> =
            rows.into_iter().map(|row| row.into_iter().map(str::trim).collect()).collect();
        let expected = [
            ["refresh", "done"],
            ["rewritten and read back", "1.00 MiB in 1.0 s, 1.0 MB/s"],
            ["written by clients", "1.00 KiB"],
            ["not written", "3 blocks of 512 B from 9 on"],
            ["unreadable", "1 block of 512 B from 7 on"],
            ["at 50 %", "9.0 s more were expected, it took 10.0 s (-10 %)"],
        ];
        assert_eq!(rows, expected, "{text}");
    }

    #[test]
    fn task_state_in_words_of_its_stage() {
        let of = |stage| ServedTask { state: "running", stage, ..ServedTask::default() };
        assert_eq!(of(TaskStage::Promoted).cells()[2], "promoted");
        assert_eq!(of(TaskStage::Running).cells()[2], "running");
        assert!(of(TaskStage::Running).last_row()[1].starts_with("cut short: "));
        assert!(of(TaskStage::Waiting).last_row()[1].starts_with("not begun: "));
    }
}
