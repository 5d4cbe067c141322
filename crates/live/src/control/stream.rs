//! Blocks of a task as a stream of bytes, as they come:
//!
//! ```text
//! freewheel-blocks 1\n
//! data FIRST BLOCKS NS\n      then BLOCKS x 512 bytes: read NS nanoseconds after the server began
//! unreadable FIRST BLOCKS\n
//! end STATE\n                 the last line: done, aborted or failed
//! ```
//!
//! Blocks are of 512 bytes. They come in any order and each at most once; a stream that ends without
//! its last line was cut off.

use freewheel_units::BLOCK_BYTES;
use thiserror::Error;

use freewheel_host::tasks::TaskState;

use super::api::BlockRange;

/// First line of the stream.
pub(super) const MAGIC: &str = "freewheel-blocks 1\n";

/// Longest line with its end: three numbers and a word fit.
const LINE_MAX: usize = 128;

/// Bytes of the largest record, beyond which something else was sent.
const DATA_MAX: u64 = 1 << 30;

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Record {
    /// Blocks and what is in them.
    Data {
        first_block: u64,
        /// Time at which they had been read, since the server began.
        at_ns: u64,
        /// 512 bytes each.
        data: Vec<u8>,
    },
    /// Blocks that cannot be read.
    Unreadable {
        first_block: u64,
        blocks: u64,
    },
    End(TaskState),
}

impl Record {
    /// Range of the record's blocks.
    pub fn range(&self) -> Option<BlockRange> {
        match self {
            Self::Data { first_block, data, .. } => {
                let blocks = data.len() as u64 / BLOCK_BYTES;
                Some(BlockRange { first_block: *first_block, blocks })
            }
            Self::Unreadable { first_block, blocks } => {
                Some(BlockRange { first_block: *first_block, blocks: *blocks })
            }
            Self::End(_) => None,
        }
    }

    /// Line of the record; data follow it.
    pub fn line(&self) -> String {
        match self {
            Self::Data { first_block, at_ns, data } => {
                format!("data {first_block} {} {at_ns}\n", data.len() / 512)
            }
            Self::Unreadable { first_block, blocks } => {
                format!("unreadable {first_block} {blocks}\n")
            }
            Self::End(state) => format!("end {}\n", state.word()),
        }
    }
}

/// Error about bytes that are no such stream.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the stream of blocks has {line:?}, which is no record")]
pub struct NotARecord {
    /// Line that was found.
    line: String,
}

/// Takes bytes as they come and makes records of them.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// Beginning of the next record in the memory.
    at: usize,
    has_begun: bool,
}

impl Records {
    /// More has come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next record, if it is there as a whole.
    pub fn next_record(&mut self) -> Result<Option<Record>, NotARecord> {
        let rest = &self.bytes[self.at..];
        // However much has come: a stream means the same in whichever pieces it comes.
        let start = &rest[..rest.len().min(LINE_MAX)];
        let Some(end) = start.iter().position(|&byte| byte == b'\n') else {
            return if start.len() == LINE_MAX { Err(not_a_record(start)) } else { Ok(None) };
        };
        let line = &rest[..=end];
        if !self.has_begun {
            if line != MAGIC.as_bytes() {
                return Err(not_a_record(line));
            }
            self.has_begun = true;
            self.at += line.len();
            return self.next_record();
        }
        let (mut record, bytes) = parse(line).ok_or_else(|| not_a_record(line))?;
        let Some(body) = rest[line.len()..].get(..bytes) else { return Ok(None) };
        if let Record::Data { data, .. } = &mut record {
            *data = body.to_vec();
        }
        self.at += line.len() + bytes;
        Ok(Some(record))
    }
}

fn not_a_record(line: &[u8]) -> NotARecord {
    NotARecord { line: String::from_utf8_lossy(line).into_owned() }
}

/// A record without its data, and how many bytes they have.
fn parse(line: &[u8]) -> Option<(Record, usize)> {
    let line = std::str::from_utf8(line).ok()?;
    let words: Vec<&str> = line.trim_end().split(' ').collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let range = || {
        let (first_block, blocks) = (number(1)?, number(2)?);
        first_block.checked_add(blocks).filter(|_| blocks > 0).map(|_| (first_block, blocks))
    };
    match (words[0], words.len()) {
        ("data", 4) => {
            let ((first_block, blocks), at_ns) = (range()?, number(3)?);
            let bytes = blocks.checked_mul(512).filter(|&bytes| bytes <= DATA_MAX)?;
            Some((Record::Data { first_block, at_ns, data: Vec::new() }, bytes as usize))
        }
        ("unreadable", 3) => {
            range().map(|(first_block, blocks)| (Record::Unreadable { first_block, blocks }, 0))
        }
        ("end", 2) => {
            let state = match words[1] {
                "done" => TaskState::Done,
                "aborted" => TaskState::Aborted,
                "failed" => TaskState::Failed,
                "lost" => TaskState::Lost,
                _ => return None,
            };
            Some((Record::End(state), 0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_reads_records_from_any_chunks() {
        let records = [
            Record::Data { first_block: 7, at_ns: 5, data: vec![b'\n'; 1024] },
            Record::Unreadable { first_block: 9, blocks: 2 },
            Record::Data { first_block: 11, at_ns: 6, data: vec![1; 512] },
            Record::End(TaskState::Done),
        ];
        let mut bytes = MAGIC.as_bytes().to_vec();
        for record in &records {
            bytes.extend(record.line().as_bytes());
            if let Record::Data { data, .. } = record {
                bytes.extend(data);
            }
        }
        for step in [1, 3, 511, 5000] {
            let (mut parser, mut read) = (Records::default(), Vec::new());
            for piece in bytes.chunks(step) {
                parser.push(piece);
                while let Some(record) = parser.next_record().unwrap() {
                    read.push(record);
                }
            }
            assert_eq!(read, records);
        }
    }

    #[test]
    fn stream_refuses_other_bytes() {
        let error = |bytes: &[u8]| {
            let mut parser = Records::default();
            parser.push(bytes);
            parser.next_record().unwrap_err().to_string()
        };
        assert!(error(b"HTTP/1.1 200 OK\n").contains("HTTP/1.1"));
        assert!(error(b"freewheel-blocks 1\ndata 1 x 3\n").contains("data 1 x 3"));
        assert!(error(b"freewheel-blocks 1\ndata 1 99999999999999 3\n").contains("data"));
        assert!(error(&[b'x'; 500]).contains("xxx"));
        let no_range = [
            "data 18446744073709551615 1 3",
            "data 1 0 3",
            "unreadable 18446744073709551615 2",
            "unreadable 1 0",
        ];
        for line in no_range {
            let stream = format!("{MAGIC}{line}\n");
            let mut parser = Records::default();
            parser.push(stream.as_bytes());
            let error = parser.next_record().unwrap_err().to_string();
            assert!(error.contains(line), "{error}");
        }
    }

    #[test]
    fn stream_line_too_long_without_end() {
        let zeros = "0".repeat(LINE_MAX);
        let stream = format!("{MAGIC}unreadable {zeros}1 1\n");
        let read = |step: usize| {
            let mut parser = Records::default();
            stream.as_bytes().chunks(step).find_map(|piece| {
                parser.push(piece);
                parser.next_record().err()
            })
        };
        assert!(read(1).is_some());
        assert_eq!(read(1), read(stream.len()));
    }
}
