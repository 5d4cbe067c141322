//! Kinds and priorities of background tasks: the only list of their names.
//!
//! Configurations, results, the control interface and the command line take their words from here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of a task: its rounds repeat, but for a backup, for writes, and for a comparison.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TaskKind {
    /// Reads every block's contents. A foreground read or write of a block counts as read (osdi00
    /// section 6).
    #[default]
    Scan,
    /// Reads every block from the media. A foreground write verifies no media, so it does not count.
    Scrub,
    /// Reads every block once, as it was at the start of the run. Before a foreground write replaces a
    /// block, a foreground request reads it; the write waits for that.
    Backup,
    /// Writes every block once, with data as old as the run: to destage, to wipe, or to refresh fading
    /// media. A foreground write brings newer data, so that block needs no write.
    Write,
    /// Compares two versions of the same data block by block (osdi00 section 2.2). `start` is the first
    /// block of the data, `other_start` that of the reference. Both blocks of a pair must be in memory;
    /// `memory` limits the pairs that wait. Results count comparisons only: simulated drives hold no
    /// data, so no pair can differ.
    Compare,
    /// Rewrites every block with its own data, and reads it back. Tasks of a server alone: a simulated
    /// drive holds no data.
    #[serde(skip_deserializing)]
    Refresh,
}

impl TaskKind {
    /// Name in configurations, on the command line and in the control interface.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Scrub => "scrub",
            Self::Backup => "backup",
            Self::Write => "write",
            Self::Compare => "compare",
            Self::Refresh => "refresh",
        }
    }

    /// True if the task ends with its first round.
    pub const fn is_once(self) -> bool {
        matches!(self, Self::Backup | Self::Write | Self::Compare)
    }
}

/// End of a round: every block, or a sample of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
pub struct RoundKind {
    /// Kind of the task.
    pub task: TaskKind,
    /// True if a number of blocks, in any places, completes a round. Scans and scrubs only.
    pub is_sample: bool,
}

impl RoundKind {
    /// A round of all blocks.
    pub const fn whole(task: TaskKind) -> Self {
        Self { task, is_sample: false }
    }

    /// In words, for people.
    pub const fn words(self) -> &'static str {
        match (self.task, self.is_sample) {
            (TaskKind::Scan, true) => "sample",
            (TaskKind::Scrub, true) => "scrub sample",
            (TaskKind::Compare, _) => "comparison",
            (task, _) => task.word(),
        }
    }

    /// True if the task ends with its first round.
    pub const fn is_once(self) -> bool {
        self.task.is_once()
    }
}

/// Name in JSON results.
impl From<RoundKind> for &'static str {
    fn from(kind: RoundKind) -> Self {
        match (kind.task, kind.is_sample) {
            (TaskKind::Scan, true) => "sample",
            (TaskKind::Scrub, true) => "scrub-sample",
            (task, _) => task.word(),
        }
    }
}

/// Between two priorities. Assumed: with it a track with few blocks of one task beats a track full
/// of another's where both can be had, and the paper gives no weights.
pub(super) const WEIGHT_STEP: u32 = 4;

/// Weight of a task's blocks in a gap, by priority: each counts four times the next lower one. Idle time
/// knows no priorities: the nearest block is done first, for any task, as no gap is taken from another and
/// the head loses least.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Weight 1.
    Low,
    /// Weight 4.
    #[default]
    Normal,
    /// Weight 16.
    High,
}

impl Priority {
    /// All priorities, the lowest first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Normal, Self::High];

    /// Name in configurations, on the command line and in the control interface.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    /// Weight of a block of 512 B.
    pub const fn weight(self) -> u32 {
        match self {
            Self::Low => 1,
            Self::Normal => WEIGHT_STEP,
            Self::High => WEIGHT_STEP * WEIGHT_STEP,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The words of a type's schema: those that its readers accept.
    fn accepted<T: JsonSchema>() -> BTreeSet<String> {
        let schema = schemars::schema_for!(T);
        let words = schema.get("oneOf").unwrap().as_array().unwrap();
        words.iter().map(|one| one["const"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn kind_and_priority_words_match_config() {
        #[derive(Deserialize)]
        struct Line<T> {
            it: T,
        }
        let kinds = accepted::<TaskKind>();
        assert_eq!(kinds.len(), 5);
        for word in kinds {
            let line: Line<TaskKind> = toml::from_str(&format!("it = \"{word}\"")).unwrap();
            assert_eq!(line.it.word(), word);
        }
        assert_eq!(accepted::<Priority>(), Priority::ALL.map(|one| one.word().to_owned()).into());
        for priority in Priority::ALL {
            let text = format!("it = \"{}\"", priority.word());
            assert_eq!(toml::from_str::<Line<Priority>>(&text).unwrap().it, priority);
        }
    }
}
