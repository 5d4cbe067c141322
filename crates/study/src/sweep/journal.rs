//! Rows that are known, while a sweep goes on.
//!
//! A text beside the output. Its first line says which sweep it is. Each further line is a row with a checksum
//! of its own, in the order in which configurations ended. A line that was cut off counts as none.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_128;

use super::error::SweepError;
use super::rows::{REAL_COLUMNS, SweepRow, WHOLE_COLUMNS};

/// Between the parts of a line.
const SEPARATOR: char = ' ';

/// The journal of a sweep that goes on.
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

/// Where the journal of an output lies.
pub(super) fn path_of(output: &Path) -> PathBuf {
    let mut name = output.file_name().unwrap_or_default().to_owned();
    name.push(".journal");
    output.with_file_name(name)
}

impl Journal {
    /// Opens the journal of this sweep, with the rows that it has already. Err for that of another sweep.
    pub fn open(
        output: &Path,
        identity: u128,
    ) -> Result<(Self, BTreeMap<usize, SweepRow>), SweepError> {
        let path = path_of(output);
        let wrong = |error: io::Error| file_error(&path, &error);
        let options = OpenOptions::new().read(true).append(true).create(true).clone();
        let mut file = options.open(&path).map_err(wrong)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(wrong)?;
        let text = String::from_utf8_lossy(&text);
        let head = format!("freewheel sweep {identity:032x}\n");
        match text.strip_prefix(&*head) {
            Some(lines) => {
                let rows = lines.split_inclusive('\n').filter_map(row);
                let rows = rows.map(|row| (row.configuration, row)).collect();
                // After a line that was cut off the next one begins anew.
                if !text.ends_with('\n') {
                    file.write_all(b"\n").map_err(wrong)?;
                }
                Ok((Self { file, path }, rows))
            }
            // One that was killed before its first line was whole has no row.
            None if text.is_empty() || head.starts_with(&*text) => {
                file.set_len(0).and_then(|()| file.write_all(head.as_bytes())).map_err(wrong)?;
                Ok((Self { file, path }, BTreeMap::new()))
            }
            None => Err(SweepError::OtherJournal { file: path.display().to_string() }),
        }
    }

    /// Adds a row.
    pub fn keep(&mut self, row: &SweepRow) -> Result<(), SweepError> {
        let written = self.file.write_all(line(row).as_bytes());
        written.map_err(|error| file_error(&self.path, &error))
    }

    /// Removes it: the output is whole.
    pub fn remove(self) -> Result<(), SweepError> {
        std::fs::remove_file(&self.path).map_err(|error| file_error(&self.path, &error))
    }
}

pub(super) fn file_error(path: &Path, error: &io::Error) -> SweepError {
    SweepError::File { file: path.display().to_string(), reason: error.to_string() }
}

/// A row as a line. Numbers come back exactly.
fn line(row: &SweepRow) -> String {
    let whole = row.whole.iter().map(u64::to_string);
    let real = row.real.iter().map(|value| format!("{:x}", value.to_bits()));
    let words = std::iter::once(row.configuration.to_string()).chain(whole).chain(real);
    let words: Vec<String> = words.chain([row.result_hash.clone()]).collect();
    let text = words.join(" ");
    format!("{text} {:x}\n", XxHash3_128::oneshot(text.as_bytes()))
}

/// The row of a line; None of one that is not whole.
fn row(line: &str) -> Option<SweepRow> {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let (text, checksum) = line.rsplit_once(SEPARATOR)?;
    if checksum != format!("{:x}", XxHash3_128::oneshot(text.as_bytes())) {
        return None;
    }
    let mut words = text.split(SEPARATOR);
    let configuration = words.next()?.parse().ok()?;
    let mut whole = [0; WHOLE_COLUMNS.len()];
    for value in &mut whole {
        *value = words.next()?.parse().ok()?;
    }
    let mut real = [0.0; REAL_COLUMNS.len()];
    for value in &mut real {
        *value = f64::from_bits(u64::from_str_radix(words.next()?, 16).ok()?);
    }
    let result_hash = words.next()?.to_owned();
    words.next().is_none().then_some(SweepRow { configuration, whole, real, result_hash })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(configuration: usize) -> SweepRow {
        let mut row = SweepRow {
            configuration,
            whole: [7; WHOLE_COLUMNS.len()],
            real: [0.1; REAL_COLUMNS.len()],
            result_hash: "abc".into(),
        };
        row.whole[1] = u64::MAX;
        row.real[2] = f64::MIN_POSITIVE;
        row
    }

    #[test]
    fn rows_come_back_and_one_that_was_cut_off_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("sweep.parquet");
        let (mut journal, rows) = Journal::open(&output, 7).unwrap();
        assert!(rows.is_empty());
        journal.keep(&example(3)).unwrap();
        journal.keep(&example(1)).unwrap();
        drop(journal);
        let whole = std::fs::read(path_of(&output)).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(path_of(&output), &whole[..cut]).unwrap();
            let (mut journal, rows) = Journal::open(&output, 7).unwrap();
            assert!(rows.values().all(|row| *row == example(row.configuration)), "{cut}");
            // What comes after it is read.
            journal.keep(&example(2)).unwrap();
            drop(journal);
            let (_, after) = Journal::open(&output, 7).unwrap();
            assert_eq!((after.len(), after.get(&2)), (rows.len() + 1, Some(&example(2))), "{cut}");
        }
        assert!(matches!(Journal::open(&output, 8), Err(SweepError::OtherJournal { .. })));
    }

    #[test]
    fn a_line_with_another_digit_is_no_row() {
        let line = line(&example(3));
        assert_eq!(row(&line), Some(example(3)));
        for at in 0..line.len() {
            let mut other = line.clone().into_bytes();
            other[at] = if other[at] == b'1' { b'2' } else { b'1' };
            assert_eq!(row(&String::from_utf8(other).unwrap()), None, "{at}");
        }
    }
}
