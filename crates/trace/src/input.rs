//! The bytes of a trace: decompressed, with their beginning at hand and progress counted.
//!
//! Goals: gzip and zstd are seen through by their magic bytes, whatever the file is called.
//! Non-goals: archives (tar, zip), layers of compression.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

/// Decompressed bytes looked at to recognise a format; also the longest binary header.
pub(crate) const HEAD_BYTES: usize = 64 << 10;
const BUFFER_BYTES: usize = 128 << 10;
const MAGIC_BYTES: usize = 4;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A zstd stream may begin with a frame to be skipped: 0x184D2A50 to 0x184D2A5F, little-endian.
const ZSTD_SKIPPABLE_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];

/// How much of the file on disk has been consumed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    read: Arc<AtomicU64>,
    /// 0 when unknown.
    pub total: u64,
}

impl Progress {
    pub fn of_total(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    pub fn advance(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// All is read, whatever was counted.
    pub fn finish(&self) {
        self.read.store(self.total, Ordering::Relaxed);
    }

    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// A decompressed trace of which the first [`HEAD_BYTES`] can be looked at before reading.
pub(crate) struct Input {
    /// The first bytes; shorter than [`HEAD_BYTES`] only when the stream is.
    pub head: Vec<u8>,
    rest: Box<dyn Read + Send>,
    pub progress: Progress,
}

impl Input {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let progress = Progress::of_total(file.metadata()?.len());
        Self::new(file, progress)
    }

    /// Takes any stream, of a length that may be unknown.
    pub fn new(raw: impl Read + Send + 'static, progress: Progress) -> io::Result<Self> {
        let counted = Counted { inner: raw, progress: progress.clone() };
        let mut rest = decompress(BufReader::with_capacity(BUFFER_BYTES, counted))?;
        let head = read_up_to(&mut rest, HEAD_BYTES)?;
        Ok(Self { head, rest, progress })
    }

    /// The whole stream from its first byte.
    pub fn into_stream(self) -> Box<dyn BufRead + Send> {
        let rest = BufReader::with_capacity(BUFFER_BYTES, self.rest);
        Box::new(Cursor::new(self.head).chain(rest))
    }
}

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.advance(count as u64);
        Ok(count)
    }
}

fn decompress(mut raw: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let magic = read_up_to(&mut raw, MAGIC_BYTES)?;
    let (gzip, zstd) = (magic.starts_with(&GZIP_MAGIC), is_zstd(&magic));
    let whole = Cursor::new(magic).chain(raw);
    if gzip {
        return Ok(Box::new(MultiGzDecoder::new(whole)));
    }
    if zstd {
        return Ok(Box::new(zstd::Decoder::with_buffer(whole)?));
    }
    Ok(Box::new(whole))
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
        let input = Input::new(Trickle(Cursor::new(bytes)), Progress::default()).unwrap();
        let mut out = Vec::new();
        input.into_stream().read_to_end(&mut out).unwrap();
        out
    }

    fn long_text() -> Vec<u8> {
        (0..40_000).flat_map(|n: u32| format!("{n}\n").into_bytes()).collect()
    }

    #[test]
    fn plain_gzip_and_zstd_give_the_same_bytes() {
        let text = long_text();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        assert_eq!(read_back(gzip.finish().unwrap()), text);
        assert_eq!(read_back(zstd::encode_all(&text[..], 1).unwrap()), text);
        assert_eq!(read_back(text.clone()), text);
    }

    #[test]
    fn compressed_streams_written_one_after_another_are_one_trace() {
        let mut two = zstd::encode_all(&b"a\n"[..], 1).unwrap();
        two.extend(zstd::encode_all(&b"b\n"[..], 1).unwrap());
        assert_eq!(read_back(two), b"a\nb\n");
    }

    #[test]
    fn a_stream_shorter_than_any_magic_is_read_as_it_is() {
        assert_eq!(read_back(vec![]), b"");
        assert_eq!(read_back(vec![0x1f]), [0x1f]);
    }

    #[test]
    fn progress_counts_compressed_bytes() {
        let bytes = zstd::encode_all(&long_text()[..], 1).unwrap();
        let length = bytes.len() as u64;
        let input = Input::new(Cursor::new(bytes), Progress::of_total(length)).unwrap();
        let progress = input.progress.clone();
        io::copy(&mut input.into_stream(), &mut io::sink()).unwrap();
        assert_eq!(progress.read(), length);
    }
}
