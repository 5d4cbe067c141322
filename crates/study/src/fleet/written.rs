//! Reports of single drives that are written, while the study of a fleet goes on.

use std::path::Path;

use crate::file_hash::FileHashes;
use crate::journal::{JournalRow, Rows};
use crate::table::TableError;

/// The report of a drive that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenReport {
    number: usize,
    hash: String,
}

/// The reports of a fleet that are written so far, in a journal of their own.
pub struct WrittenReports(Rows<WrittenReport>);

impl JournalRow for WrittenReport {
    const JOB: &'static str = "fleet reports";

    fn number(&self) -> usize {
        self.number
    }

    fn text(&self) -> String {
        format!("{} {}", self.number, self.hash)
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, hash) = text.split_once(' ')?;
        Some(Self { number: number.parse().ok()?, hash: hash.to_owned() })
    }
}

impl WrittenReports {
    pub(super) fn open(page: &Path, identity: u128) -> Result<Self, TableError> {
        Rows::open(Some(page), identity).map(Self)
    }

    /// True if the report of the drive with this number was written to `path`, and is there as it was.
    pub fn has(&self, number: usize, path: &Path) -> bool {
        let known = self.0.get(number).map(|written| &written.hash);
        known.is_some_and(|known| hash(path).is_ok_and(|hash| hash == *known))
    }

    /// Notes that the report of the drive with this number is written to `path`.
    ///
    /// Errors: the report or the journal cannot be read or written.
    pub fn keep(&mut self, number: usize, path: &Path) -> Result<(), TableError> {
        let hash = hash(path)?;
        self.0.keep_row(WrittenReport { number, hash })
    }

    /// Removes the journal, as everything is written.
    ///
    /// Errors: it cannot be removed.
    pub fn end(self) -> Result<(), TableError> {
        self.0.end().map(drop)
    }
}

fn hash(path: &Path) -> Result<String, TableError> {
    FileHashes::default().hash(path).map(|(hash, _)| hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_known_while_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let (page, report) = (folder.path().join("fleet.html"), folder.path().join("1.html"));
        std::fs::write(&report, "whole").unwrap();
        let mut written = WrittenReports::open(&page, 7).unwrap();
        assert!(!written.has(1, &report));
        written.keep(1, &report).unwrap();
        drop(written);
        let written = WrittenReports::open(&page, 7).unwrap();
        assert!(written.has(1, &report) && !written.has(2, &report));
        std::fs::write(&report, "who").unwrap();
        assert!(!written.has(1, &report));
        std::fs::remove_file(&report).unwrap();
        assert!(!written.has(1, &report));
        written.end().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
