//! The file with the answers of an extraction that is not done.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use freewheel::extraction::{JournalEntry, JournalHead, read_journal};
use freewheel::files::{Others, open_own};
use freewheel::measures::{SimDuration, SimTime};

use crate::failure::Failure;

/// Interval of flushes: the longest loss when the machine takes the process away.
const FLUSH_EVERY: SimDuration = SimDuration::from_secs(1);

/// Answers that are there already, and a file that takes more.
pub struct JournalFile {
    /// Entries of sessions before.
    pub past: VecDeque<JournalEntry>,
    file: BufWriter<File>,
    flushed: SimTime,
}

/// Beside the drive's file.
pub fn path(output: &Path) -> PathBuf {
    let mut name = OsString::from(output);
    name.push(".journal");
    name.into()
}

/// The extraction is done.
pub fn remove(output: &Path) -> Result<(), Failure> {
    let path = path(output);
    fs::remove_file(&path).map_err(|error| at(&path, &error))
}

fn at(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

impl JournalFile {
    /// Opens the one that is there to go on with it, or makes a new one.
    pub fn open(output: &Path, head: &JournalHead, resume: bool) -> Result<Self, Failure> {
        let path = path(output);
        let opened = if resume { Self::go_on(&path, head) } else { Self::begin(&path, head) };
        opened.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Failure::failed(format!(
                "{}: an extraction was interrupted there: go on with --resume, or remove that file",
                path.display()
            )),
            ErrorKind::NotFound if resume => Failure::failed(format!(
                "{}: there is no extraction to resume; begin without --resume",
                path.display()
            )),
            ErrorKind::InvalidData => Failure::failed(format!(
                "{}: {error}; give the options of that extraction, or remove the file and begin anew",
                path.display()
            )),
            // Answers of others may be false, and a link may lead to a file that is no journal.
            ErrorKind::PermissionDenied if resume => Failure::failed(format!(
                "{}: {error}, and an extraction goes on with this user's answers only: remove it and \
                 begin anew",
                path.display()
            )),
            _ => at(&path, &error),
        })
    }

    fn begin(path: &Path, head: &JournalHead) -> io::Result<Self> {
        // Where the umask lets a group write, as in many a home, it would not be this user's own.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
        let mut file = BufWriter::new(file);
        writeln!(file, "{}", head.line())?;
        file.flush()?;
        Ok(Self { past: VecDeque::new(), file, flushed: SimTime::ZERO })
    }

    fn go_on(path: &Path, head: &JournalHead) -> io::Result<Self> {
        let mut file = open_own(path, true, Others::Read)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let past = read_journal(&text, head);
        let past = past.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        // A line that was not finished would become one with the next.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        let mut file = BufWriter::new(file);
        if whole == 0 {
            writeln!(file, "{}", head.line())?;
        }
        let flushed = past.back().map_or(SimTime::ZERO, |entry| entry.end);
        Ok(Self { past, file, flushed })
    }

    /// Writes an answer down.
    pub fn keep(&mut self, entry: &JournalEntry) -> io::Result<()> {
        writeln!(self.file, "{}", entry.line())?;
        if entry.end >= self.flushed + FLUSH_EVERY {
            self.flushed = entry.end;
            self.file.flush()?;
        }
        Ok(())
    }
}
