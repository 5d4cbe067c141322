//! A web server's log as files and requests to them.

use std::path::Path;

use freewheel_array::files::{FileRequest, LoggedFiles, whole_sectors};
use freewheel_trace::{LeftOut, PartAnswers, TraceError, WebLog};
use freewheel_units::{Blocks, Bytes, Op};

/// Files of a log, their use, and what its lines are that are no requests of whole files.
pub struct LoggedUse {
    /// The files, by number.
    pub files: Vec<LoggedFile>,
    /// Their sizes, and all requests.
    pub logged: LoggedFiles,
    /// Lines that are no request.
    pub left_out: LeftOut,
    /// Answers with a part of a file.
    pub parts: PartAnswers,
    /// The sites that names of files begin with; none where one site has all.
    pub sites: Vec<String>,
}

/// A file of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct LoggedFile {
    pub name: String,
    /// Most bytes that a request was answered with.
    pub bytes: Bytes,
    pub requests: u64,
    /// Bytes that all of them were answered with.
    pub answered: u128,
}

impl LoggedUse {
    /// Reads a log. Sizes of files and requests are whole sectors of so many blocks; lines that break the
    /// format are left out.
    pub fn read(path: &Path, sector: Blocks) -> Result<Self, TraceError> {
        let WebLog { files, requests, left_out, parts, sites } = WebLog::open(path, true)?;
        let sizes: Vec<Blocks> =
            files.iter().map(|file| whole_sectors(Bytes::new(file.bytes), sector)).collect();
        let mut files: Vec<LoggedFile> = files
            .into_iter()
            .map(|file| LoggedFile {
                name: file.name,
                bytes: Bytes::new(file.bytes),
                requests: 0,
                answered: 0,
            })
            .collect();
        let mut in_sectors = Vec::with_capacity(requests.len());
        for request in requests {
            let number = request.file as usize;
            files[number].requests += 1;
            files[number].answered += u128::from(request.bytes);
            in_sectors.push(FileRequest {
                arrival: request.arrival,
                op: Op::Read,
                file: request.file,
                first: 0,
                blocks: whole_sectors(Bytes::new(request.bytes), sector).min(sizes[number]),
            });
        }
        let logged = LoggedFiles { sizes, requests: in_sectors };
        Ok(Self { files, logged, left_out, parts, sites })
    }
}
