//! Rows of a long job that are known, while it goes on.
//!
//! A text beside the output. Its first line says which job it is. Each further line is a row with a checksum
//! of its own, in the order in which rows came. A line that was cut off counts as none.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_128;

use crate::table::TableError;

/// Between a row and its checksum.
const SEPARATOR: char = ' ';

/// A row of a job, as a text without line breaks.
pub trait JournalRow: Sized {
    /// Name of the job.
    const JOB: &'static str;

    /// Number of the row, from 0.
    fn number(&self) -> usize;

    /// The row as a text. Numbers come back exactly.
    fn text(&self) -> String;

    /// The row of a text; None of one that is none.
    fn parse(text: &str) -> Option<Self>;
}

/// The rows of a job that are known so far, in its journal too.
pub struct Rows<R> {
    journal: Option<Journal>,
    output: Option<PathBuf>,
    rows: BTreeMap<usize, R>,
    resumed: usize,
}

/// The journal of a job that goes on.
struct Journal {
    file: File,
    path: PathBuf,
}

impl Drop for Journal {
    /// Processes that were forked meanwhile have the file open, too, and would keep the lock.
    fn drop(&mut self) {
        // The system releases it in the end.
        let _ = self.file.unlock();
    }
}

/// Where the journal of an output lies.
fn path_of(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".journal");
    output.with_file_name(name)
}

impl<R: JournalRow> Rows<R> {
    /// The rows that the journal of `output` has already; none without an output.
    ///
    /// Errors: the journal is of another job, or cannot be read.
    pub fn open(output: Option<&Path>, identity: u128) -> Result<Self, TableError> {
        let Some(output) = output else {
            return Ok(Self { journal: None, output: None, rows: BTreeMap::new(), resumed: 0 });
        };
        let path = path_of(output);
        let wrong = |error: io::Error| TableError::of(&path, &error);
        let options = OpenOptions::new().read(true).append(true).create(true).clone();
        let mut file = options.open(&path).map_err(wrong)?;
        // The lock goes with the file, also of a process that is killed.
        if file.try_lock().is_err() {
            return Err(TableError::Busy { file: path.display().to_string() });
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(wrong)?;
        let text = String::from_utf8_lossy(&text);
        let head = format!("freewheel {} {identity:032x}\n", R::JOB);
        let mut rows = BTreeMap::new();
        match text.strip_prefix(&*head) {
            Some(lines) => {
                let known = lines.split_inclusive('\n').filter_map(row::<R>);
                rows.extend(known.map(|row| (row.number(), row)));
                // After a line that was cut off the next one begins anew.
                if !text.ends_with('\n') {
                    file.write_all(b"\n").map_err(wrong)?;
                }
            }
            // One that was killed before its first line was whole has no row.
            None if text.is_empty() || head.starts_with(&*text) => {
                file.set_len(0).and_then(|()| file.write_all(head.as_bytes())).map_err(wrong)?;
            }
            None => return Err(TableError::OtherJournal { file: path.display().to_string() }),
        }
        let (resumed, journal) = (rows.len(), Some(Journal { file, path }));
        Ok(Self { journal, output: Some(output.to_owned()), rows, resumed })
    }

    /// Numbers below `total` of the rows that are not known.
    pub fn pending(&self, total: usize) -> Vec<usize> {
        (0..total).filter(|number| !self.rows.contains_key(number)).collect()
    }

    /// The number of rows that are known.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if no row is known.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of rows that an earlier run had made.
    pub fn resumed(&self) -> usize {
        self.resumed
    }

    /// The row with this number, if it is known.
    pub(crate) fn get(&self, number: usize) -> Option<&R> {
        self.rows.get(&number)
    }

    /// The output, if there is one.
    pub(crate) fn output(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// Adds rows that came as lines from elsewhere.
    ///
    /// Errors: a line that is no whole row.
    pub fn keep(&mut self, lines: &str) -> Result<(), TableError> {
        for line in lines.lines() {
            let row = row::<R>(line).ok_or(TableError::Row)?;
            // A worker that was thought to be lost may answer late.
            if !self.rows.contains_key(&row.number()) {
                self.keep_row(row)?;
            }
        }
        Ok(())
    }

    pub(crate) fn keep_row(&mut self, row: R) -> Result<(), TableError> {
        if let Some(Journal { file, path }) = &mut self.journal {
            file.write_all(line(&row).as_bytes()).map_err(|error| TableError::of(path, &error))?;
        }
        self.rows.insert(row.number(), row);
        Ok(())
    }

    /// The rows in order, of a job of `total`.
    ///
    /// Errors: some are missing.
    pub(crate) fn whole(&self, total: usize) -> Result<Vec<&R>, TableError> {
        match total - self.rows.len() {
            0 => Ok(self.rows.values().collect()),
            missing => Err(TableError::Missing { missing }),
        }
    }

    /// Removes the journal, as the output is whole, and gives the rows in order.
    pub(crate) fn end(self) -> Result<Vec<R>, TableError> {
        if let Some(Journal { path, .. }) = &self.journal {
            std::fs::remove_file(path).map_err(|error| TableError::of(path, &error))?;
        }
        Ok(self.rows.into_values().collect())
    }
}

/// A row as a line with its checksum.
pub(crate) fn line(row: &impl JournalRow) -> String {
    let text = row.text();
    format!("{text}{SEPARATOR}{:x}\n", XxHash3_128::oneshot(text.as_bytes()))
}

/// The row of a line; None of one that is not whole.
fn row<R: JournalRow>(line: &str) -> Option<R> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let (text, checksum) = line.rsplit_once(SEPARATOR)?;
    let is_whole = checksum == format!("{:x}", XxHash3_128::oneshot(text.as_bytes()));
    is_whole.then(|| R::parse(text)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Pair(usize, u64);

    impl JournalRow for Pair {
        const JOB: &'static str = "test";

        fn number(&self) -> usize {
            self.0
        }

        fn text(&self) -> String {
            format!("{} {}", self.0, self.1)
        }

        fn parse(text: &str) -> Option<Self> {
            let (number, value) = text.split_once(' ')?;
            Some(Self(number.parse().ok()?, value.parse().ok()?))
        }
    }

    fn example(number: usize) -> Pair {
        Pair(number, u64::MAX - number as u64)
    }

    #[test]
    fn journal_rows_return_except_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("table.parquet");
        let mut rows = Rows::open(Some(&output), 7).unwrap();
        assert!(rows.is_empty());
        rows.keep_row(example(3)).unwrap();
        rows.keep_row(example(1)).unwrap();
        drop(rows);
        let whole = std::fs::read(path_of(&output)).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(path_of(&output), &whole[..cut]).unwrap();
            let mut rows = Rows::<Pair>::open(Some(&output), 7).unwrap();
            assert!(rows.rows.values().all(|row| *row == example(row.0)), "{cut}");
            let before = rows.len();
            // What comes after it is read.
            rows.keep_row(example(2)).unwrap();
            drop(rows);
            let after = Rows::<Pair>::open(Some(&output), 7).unwrap();
            assert_eq!((after.len(), after.rows.get(&2)), (before + 1, Some(&example(2))), "{cut}");
        }
        let held = Rows::<Pair>::open(Some(&output), 7).unwrap();
        assert!(matches!(Rows::<Pair>::open(Some(&output), 7), Err(TableError::Busy { .. })));
        drop(held);
        let other = Rows::<Pair>::open(Some(&output), 8);
        assert!(matches!(other, Err(TableError::OtherJournal { .. })));
    }

    #[test]
    fn journal_line_with_changed_digit_rejected() {
        let line = line(&example(3));
        assert_eq!(row(&line), Some(example(3)));
        for at in 0..line.len() {
            let mut other = line.clone().into_bytes();
            other[at] = if other[at] == b'1' { b'2' } else { b'1' };
            assert_eq!(row::<Pair>(&String::from_utf8(other).unwrap()), None, "{at}");
        }
    }
}
