//! Commands and answers, kept so that an interrupted extraction can continue.
//!
//! An extraction is determined by its seed and the answers. So none of its findings needs
//! to be saved: the answers are, and when it begins anew they are given again, until there are no
//! more and the drive is asked. It is a text with a line for the extraction and one for each command.

use std::collections::VecDeque;

use freewheel_units::{Op, SimTime};
use thiserror::Error;

/// One command and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct JournalEntry {
    /// Sessions before this one. The clock of each begins anywhere.
    pub session: u32,
    pub op: Op,
    pub block: u64,
    /// Length of the command in blocks.
    pub blocks: u32,
    /// Time at which the command was sent.
    pub sent: SimTime,
    /// Time at which the answer came.
    pub end: SimTime,
    /// True if the block could not be read.
    pub is_bad: bool,
}

/// Identity of an extraction: another one asks for other blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalHead {
    /// Blocks of the drive.
    pub blocks: u64,
    /// Seed of the places.
    pub seed: u64,
    /// True if writes are timed.
    pub writes: bool,
}

/// Reason why a journal cannot be gone on with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JournalError {
    /// The line is no entry.
    #[error("line {line}: {text:?} is not what an extraction of this version writes")]
    Line {
        /// Counted from 1.
        line: usize,
        /// Text of the line.
        text: String,
    },
    /// The journal is of another extraction.
    #[error("it is of {there}, and this is one of {here}")]
    Other {
        /// The line as it is in the journal.
        there: String,
        /// Value of this extraction.
        here: String,
    },
}

/// Times and sessions beyond these are none of an extraction, and sums of them would overflow: 146
/// years.
const TIME_MAX: SimTime = SimTime::from_ns(1 << 62);
const SESSION_MAX: u32 = 1 << 30;

/// Changes when an extraction asks for other things than before.
const VERSION: &str = "freewheel extraction 4";

impl JournalHead {
    /// The first line, without its end.
    pub fn line(&self) -> String {
        let Self { blocks, seed, writes } = self;
        format!("{VERSION}: {blocks} blocks, seed {seed}, writes {writes}")
    }
}

impl JournalEntry {
    /// Line of the entry, without its end.
    pub fn line(&self) -> String {
        let Self { session, block, blocks, sent, end, is_bad, .. } = self;
        let op = if self.op == Op::Write { 'w' } else { 'r' };
        let bad = if *is_bad { " bad" } else { "" };
        format!("{session} {op} {block} {blocks} {} {}{bad}", sent.ns(), end.ns())
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let session = words.next()?.parse().ok()?;
        let op = match words.next()? {
            "r" => Op::Read,
            "w" => Op::Write,
            _ => return None,
        };
        let mut number = || words.next()?.parse::<u64>().ok();
        let (block, blocks) = (number()?, u32::try_from(number()?).ok()?);
        let (sent, end) = (number()?, number()?);
        let is_bad = match words.next() {
            None => false,
            Some("bad") => true,
            Some(_) => return None,
        };
        let (sent, end) = (SimTime::from_ns(sent), SimTime::from_ns(end));
        words.next().is_none().then_some(Self { session, op, block, blocks, sent, end, is_bad })
    }

    /// True if it can come after that one: commands are sent one by one, each when the answer to the one
    /// before is there.
    fn can_follow(&self, before: Option<&Self>) -> bool {
        let (session, now) =
            before.map_or((0, SimTime::ZERO), |before| (before.session, before.end));
        (session..=SESSION_MAX).contains(&self.session)
            && now <= self.sent
            && self.sent <= self.end
            && self.end <= TIME_MAX
    }
}

/// All of a journal's answers, in the order in which they came. A last line that was not finished is left out.
pub fn read_journal(
    text: &str,
    head: &JournalHead,
) -> Result<VecDeque<JournalEntry>, JournalError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.lines().enumerate();
    let Some((_, first)) = lines.next() else { return Ok(VecDeque::new()) };
    if first != head.line() {
        if !first.starts_with(VERSION) {
            return Err(wrong(0, first));
        }
        return Err(JournalError::Other { there: what(first), here: what(&head.line()) });
    }
    let mut entries = VecDeque::new();
    for (at, line) in lines {
        let entry = JournalEntry::parse(line).filter(|entry| entry.can_follow(entries.back()));
        entries.push_back(entry.ok_or_else(|| wrong(at, line))?);
    }
    Ok(entries)
}

fn wrong(at: usize, line: &str) -> JournalError {
    let text = line.chars().take(80).collect();
    JournalError::Line { line: at + 1, text }
}

fn what(line: &str) -> String {
    line[VERSION.len()..].trim_start_matches(": ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use freewheel_units::{Prng, SimDuration};

    const HEAD: JournalHead = JournalHead { blocks: 1000, seed: 7, writes: false };

    fn entry(prng: &mut Prng, number: u32) -> JournalEntry {
        let mut any = || prng.below(u64::MAX);
        let sent = SimTime::from_ns((u64::from(2 * number) << 40) + (any() >> 24));
        JournalEntry {
            session: (number << 24) + (any() >> 40) as u32,
            op: if any() % 2 == 0 { Op::Write } else { Op::Read },
            block: any(),
            blocks: any() as u32,
            sent,
            end: sent + SimDuration::from_ns(any() >> 24),
            is_bad: any() % 2 == 0,
        }
    }

    #[test]
    fn journal_is_read_to_last_whole_line() {
        let mut prng = Prng::new(1, "journal");
        let entries: Vec<JournalEntry> = (0..5).map(|number| entry(&mut prng, number)).collect();
        let mut text = HEAD.line() + "\n";
        let mut ends = Vec::new();
        for entry in &entries {
            text += &(entry.line() + "\n");
            ends.push(text.len());
        }
        for kept in 0..=text.len() {
            let whole = ends.iter().filter(|end| **end <= kept).count();
            let read: Vec<_> = read_journal(&text[..kept], &HEAD).unwrap().into();
            assert_eq!(read, entries[..whole], "{kept}");
        }
    }

    #[test]
    fn foreign_journal_is_refused_with_reason() {
        let error = |text: &str| read_journal(text, &HEAD).unwrap_err().to_string();
        assert!(error("name = \"x\"\n").contains("line 1"));
        let other = JournalHead { seed: 8, ..HEAD }.line() + "\n";
        let text = error(&other);
        assert!(text.contains("seed 8") && text.contains("seed 7"), "{text}");
        for line in ["0 r 1 1 2", "0 x 1 1 2 3", "0 r 1 1 2 3 good", "0 r 1 1 2 3 bad bad"] {
            let text = error(&(HEAD.line() + "\n" + line + "\n"));
            assert!(text.contains("line 2"), "{line}: {text}");
        }
    }

    #[test]
    fn command_before_last_answer_is_refused() {
        let read = |second: &str| {
            let text = format!("{}\n1 r 5 1 100 200\n{second}\n", HEAD.line());
            read_journal(&text, &HEAD).map(|entries| entries.len())
        };
        assert_eq!(read("1 r 6 1 200 200"), Ok(2));
        for line in [
            "1 r 6 1 199 300",
            "1 r 6 1 300 299",
            "0 r 6 1 300 400",
            "4294967295 r 6 1 300 400",
            "1 r 6 1 300 18446744073709551615",
        ] {
            let wrong = JournalError::Line { line: 3, text: line.into() };
            assert_eq!(read(line), Err(wrong), "{line}");
        }
    }
}
