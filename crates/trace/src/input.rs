//! The bytes of a trace: decompressed, with their head for detection and their progress.
//!
//! Goals: gzip and zstd are recognised by their magic bytes under any file name. All bytes before
//! damage or a cut in compressed data are readable.
//! Non-goals: archives (tar, zip), layers of compression, bytes after damage.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use flate2::bufread::GzDecoder;
use freewheel_units::grouped;
use serde::Serialize;

/// Decompressed bytes for the detection of a format; also the longest binary header.
pub(crate) const HEAD_BYTES: usize = 64 << 10;
const BUFFER_BYTES: usize = 128 << 10;
const MAGIC_BYTES: usize = 4;
/// Compressed bytes that a decompressor receives at a time: the accuracy of a damage's place.
const PIECE_BYTES: usize = 4 << 10;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A zstd stream may begin with a frame to be skipped: 0x184D2A50 to 0x184D2A5F, little-endian.
const ZSTD_SKIPPABLE_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];
/// UTF-8's byte order mark, which editors and spreadsheets put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes of the file on disk that have been consumed.
#[derive(Debug, Clone, Default)]
pub(crate) struct BytesConsumed {
    read: Arc<AtomicU64>,
    /// 0 when unknown.
    pub total: u64,
}

impl BytesConsumed {
    pub fn of_total(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// The progress through `files` too.
    pub fn with(mut self, files: &[PathBuf]) -> io::Result<Self> {
        for file in files {
            self.total += file.metadata()?.len();
        }
        Ok(self)
    }

    pub fn advance(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the progress to the end.
    pub fn finish(&self) {
        self.read.store(self.total, Ordering::Relaxed);
    }

    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// Compression of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// As of gzip: `.gz`.
    Gzip,
    /// As of zstd: `.zst`.
    Zstd,
}

/// Place and reason of damage in the compressed bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Expected compression.
    pub compression: Compression,
    /// Byte of the file, as it is on disk, at which the decompressor gave up; bytes up to 128 KiB
    /// before may be the damaged ones.
    pub offset_bytes: u64,
    /// Bytes of the file as it is on disk; 0 when unknown.
    pub file_bytes: u64,
    /// True if the file ends there: its end is missing.
    pub is_cut_off: bool,
    /// Error of the decompressor.
    pub reason: String,
}

impl Damage {
    /// Consequence for the records that were read.
    pub fn consequence(&self) -> &'static str {
        let is_at_end = self.offset_bytes == self.file_bytes;
        match (self.is_cut_off, self.reason.contains("checksum")) {
            (true, _) => "the rest is left out",
            // The file ends here, and a checksum does not tell which bytes are wrong.
            (false, true) if is_at_end => "what was read may be wrong",
            // A checksum covers one of several parts, and tells only that this part is wrong.
            (false, true) => "what was read may be wrong, and the rest is left out",
            (false, false) => {
                "the rest is left out, and records shortly before the damage may be wrong"
            }
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (compression, offset) = (self.compression, grouped(self.offset_bytes));
        if self.is_cut_off {
            return write!(
                out,
                "its {compression} data break off at byte {offset}, where the file ends"
            );
        }
        write!(out, "its {compression} data are damaged at about byte {offset}")?;
        if self.file_bytes > 0 {
            write!(out, " of {}", grouped(self.file_bytes))?;
        }
        write!(out, " ({})", self.reason)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// The first damage, set when the stream reaches it.
pub(crate) type DamageMet = Arc<OnceLock<Damage>>;

/// A decompressed trace with its first [`HEAD_BYTES`] for detection.
pub(crate) struct Input {
    /// The first bytes; shorter than [`HEAD_BYTES`] only when the stream is.
    pub head: Vec<u8>,
    rest: Decompressed,
    pub progress: BytesConsumed,
}

impl Input {
    /// Opens the file at `path`. A lenient stream ends at damage; a strict one fails there.
    pub fn open(path: &Path, lenient: bool) -> io::Result<Self> {
        let file = File::open(path)?;
        let progress = BytesConsumed::of_total(file.metadata()?.len());
        Self::new(file, progress, lenient)
    }

    /// Takes any stream; its length may be unknown.
    pub fn new(
        raw: impl Read + Send + 'static,
        progress: BytesConsumed,
        lenient: bool,
    ) -> io::Result<Self> {
        let mut rest = Decompressed::new(raw, progress.clone())?;
        // The head is read leniently, so that a trace with early damage is recognised too.
        let head = read_up_to(&mut rest, HEAD_BYTES)?;
        rest.ends_at_damage = lenient;
        Ok(Self { head, rest, progress })
    }

    /// Compression of the file, if any.
    pub fn compression(&self) -> Option<Compression> {
        self.rest.compression
    }

    /// Receives the damage when the stream reaches it.
    pub fn damage(&self) -> DamageMet {
        Arc::clone(&self.rest.damage)
    }

    /// The whole stream from its first byte.
    pub fn into_stream(self) -> Stream {
        let damage = self.damage();
        let rest = BufReader::with_capacity(BUFFER_BYTES, self.rest);
        Stream { bytes: Cursor::new(self.head).chain(rest), damage }
    }
}

/// The bytes of a trace, decompressed.
pub(crate) struct Stream {
    bytes: Chain<Cursor<Vec<u8>>, BufReader<Decompressed>>,
    damage: DamageMet,
}

impl Stream {
    /// True if damage has ended the stream, so that its last record is incomplete.
    pub fn ended_at_damage(&self) -> bool {
        self.damage.get().is_some()
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl BufRead for Stream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.bytes.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.bytes.consume(count);
    }
}

/// The file on disk: counts the bytes consumed, and separates failures of the file from damage.
struct Counted<R> {
    inner: BufReader<R>,
    progress: BytesConsumed,
    failed: Arc<AtomicBool>,
}

impl<R: Read> Counted<R> {
    /// Remembers a failure of the file itself.
    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Interrupted) {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer);
        let count = self.noted(read)?;
        self.progress.advance(count as u64);
        Ok(count)
    }
}

impl<R: Read> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        // The buffer is borrowed again afterwards: the first borrow would forbid noting a failure.
        let filled = self.inner.fill_buf().map(drop);
        self.noted(filled)?;
        let bytes = self.inner.buffer();
        Ok(&bytes[..bytes.len().min(PIECE_BYTES)])
    }

    fn consume(&mut self, count: usize) {
        self.inner.consume(count);
        self.progress.advance(count as u64);
    }
}

/// The members of a gzip file, one after another. Zeros after the last one are ignored, as in gzip:
/// tapes and block devices pad with them.
struct GzipMembers<R> {
    /// `None` after the last one.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(raw: R) -> Self {
        Self { member: Some(GzDecoder::new(raw)) }
    }

    /// The member after one that has ended; `None` at the end of the file.
    fn after(ended: GzDecoder<R>) -> io::Result<Option<GzDecoder<R>>> {
        let mut raw = ended.into_inner();
        let zeros = skip_zeros(&mut raw)?;
        match (raw.fill_buf()?.is_empty(), zeros) {
            (true, _) => Ok(None),
            (false, 0) => Ok(Some(GzDecoder::new(raw))),
            (false, _) => Err(io::Error::new(
                ErrorKind::InvalidData,
                "other bytes follow the zeros after the gzip data",
            )),
        }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.member = self.member.take().map(Self::after).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// Consumes the zeros that follow, and counts them.
fn skip_zeros(raw: &mut impl BufRead) -> io::Result<u64> {
    let mut skipped = 0;
    loop {
        let zeros = raw.fill_buf()?.iter().take_while(|&&byte| byte == 0).count();
        if zeros == 0 {
            return Ok(skipped);
        }
        raw.consume(zeros);
        skipped += zeros as u64;
    }
}

/// The decompressed bytes up to the first damage.
struct Decompressed {
    inner: Box<dyn Read + Send>,
    /// `None` for a file that is not compressed.
    compression: Option<Compression>,
    progress: BytesConsumed,
    /// True if the file itself could not be read.
    failed: Arc<AtomicBool>,
    damage: DamageMet,
    /// True if the stream ends at damage, instead of failing.
    ends_at_damage: bool,
}

impl Decompressed {
    fn new(raw: impl Read + Send + 'static, progress: BytesConsumed) -> io::Result<Self> {
        let failed = Arc::new(AtomicBool::new(false));
        let inner = BufReader::with_capacity(BUFFER_BYTES, raw);
        let mut file = Counted { inner, progress: progress.clone(), failed: Arc::clone(&failed) };
        let magic = read_up_to(&mut file, MAGIC_BYTES)?;
        let compression = compression(&magic);
        let whole = Cursor::new(magic).chain(file);
        let inner: Box<dyn Read + Send> = match compression {
            Some(Compression::Gzip) => Box::new(GzipMembers::new(whole)),
            Some(Compression::Zstd) => Box::new(zstd::Decoder::with_buffer(whole)?),
            None => Box::new(whole),
        };
        let damage = DamageMet::default();
        Ok(Self { inner, compression, progress, failed, damage, ends_at_damage: true })
    }

    /// Notes damage that stops the decompressor; Err for a failure of the file itself.
    #[cold]
    fn note_damage(&self, error: io::Error) -> io::Result<()> {
        let Some(compression) = self.compression else { return Err(error) };
        if self.failed.load(Ordering::Relaxed) || error.kind() == ErrorKind::Interrupted {
            return Err(error);
        }
        let damage = Damage {
            compression,
            offset_bytes: self.progress.read(),
            file_bytes: self.progress.total,
            is_cut_off: error.kind() == ErrorKind::UnexpectedEof,
            reason: error.to_string(),
        };
        // The first damage ends the stream, so a second one is never set.
        let _ = self.damage.set(damage);
        Ok(())
    }
}

impl Read for Decompressed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.damage.get().is_none() {
            // A failing call loses the bytes that the decompressor produced in it. Small pieces keep
            // that loss small where all bytes before the damage are wanted.
            let is_careful = self.ends_at_damage && self.compression.is_some();
            let end = buffer.len().min(if is_careful { PIECE_BYTES } else { usize::MAX });
            match self.inner.read(&mut buffer[..end]) {
                Ok(count) => return Ok(count),
                Err(error) => self.note_damage(error)?,
            }
        }
        if self.ends_at_damage { Ok(0) } else { Err(ErrorKind::InvalidData.into()) }
    }
}

fn compression(magic: &[u8]) -> Option<Compression> {
    if magic.starts_with(&GZIP_MAGIC) {
        Some(Compression::Gzip)
    } else {
        is_zstd(magic).then_some(Compression::Zstd)
    }
}

/// `beginning`, of a file, without UTF-8's byte order mark.
pub(crate) fn without_byte_order_mark(beginning: &[u8]) -> &[u8] {
    beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning)
}

fn is_zstd(magic: &[u8]) -> bool {
    let skippable =
        magic.len() == MAGIC_BYTES && magic[0] & 0xf0 == 0x50 && magic[1..] == ZSTD_SKIPPABLE_MAGIC;
    magic == ZSTD_MAGIC || skippable
}

/// The next `limit` bytes, fewer only at the end of the stream.
fn read_up_to(stream: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.by_ref().take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Gives one byte at a time, as a slow pipe may.
    struct Trickle(Cursor<Vec<u8>>);

    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(1);
            self.0.read(&mut buffer[..count])
        }
    }

    fn read_back(bytes: Vec<u8>) -> Vec<u8> {
        let input =
            Input::new(Trickle(Cursor::new(bytes)), BytesConsumed::default(), false).unwrap();
        let mut out = Vec::new();
        input.into_stream().read_to_end(&mut out).unwrap();
        out
    }

    fn long_text() -> Vec<u8> {
        (0..40_000).flat_map(|n: u32| format!("{n}\n").into_bytes()).collect()
    }

    #[test]
    fn compressed_inputs_give_same_bytes() {
        let text = long_text();
        assert_eq!(read_back(gzip(&text)), text);
        assert_eq!(read_back(zstd::encode_all(&text[..], 1).unwrap()), text);
        assert_eq!(read_back(text.clone()), text);
    }

    #[test]
    fn compressed_streams_concatenated_are_one_trace() {
        let mut two = zstd::encode_all(&b"a\n"[..], 1).unwrap();
        two.extend(zstd::encode_all(&b"b\n"[..], 1).unwrap());
        assert_eq!(read_back(two), b"a\nb\n");
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn gzip_trailing_zeros_ignored() {
        let two = [gzip(b"a\n"), gzip(b"b\n")].concat();
        assert_eq!(read_back(two.clone()), b"a\nb\n");
        let padded = [&two[..], &[0; 10_000]].concat();
        assert_eq!(read_back(padded.clone()), b"a\nb\n");
        for garbage in [[&two[..], b"x"].concat(), [padded, gzip(b"c\n")].concat()] {
            let raw = Cursor::new(garbage);
            let input = Input::new(raw, BytesConsumed::default(), false).unwrap();
            let damage = input.damage();
            assert!(input.into_stream().read_to_end(&mut Vec::new()).is_err());
            assert!(damage.get().is_some());
        }
    }

    #[test]
    fn stream_shorter_than_magic_read() {
        assert_eq!(read_back(vec![]), b"");
        assert_eq!(read_back(vec![0x1f]), [0x1f]);
    }

    #[test]
    fn progress_counts_compressed_bytes() {
        let bytes = zstd::encode_all(&long_text()[..], 1).unwrap();
        let length = bytes.len() as u64;
        let input = Input::new(Cursor::new(bytes), BytesConsumed::of_total(length), false).unwrap();
        let progress = input.progress.clone();
        io::copy(&mut input.into_stream(), &mut io::sink()).unwrap();
        assert_eq!(progress.read(), length);
    }
}
