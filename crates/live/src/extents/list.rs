//! Lists of extents as texts.
//!
//! ```text
//! # START LENGTH: bytes, or sizes as 64KiB
//! 1MiB 64KiB
//! 4194304,4096                       CSV, with or without the header `offset_bytes,length_bytes`
//! ```
//!
//! The output of `filefrag -v` is recognised by its first line. Its numbers are blocks of the size that it
//! names.

use freewheel_units::Bytes;
use thiserror::Error;

use super::ranges::{ByteRange, Extents};

/// Longest part of a line in an error.
const SHOWN_MAX: usize = 80;

/// Flags of `filefrag` for data that do not lie in these blocks as they are.
const NOT_AS_THEY_ARE: [&str; 6] =
    ["unknown", "delalloc", "encoded", "not_aligned", "inline", "tail_packed"];

/// Reason why a text is no list of extents.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {text:?}: {why}")]
pub struct ExtentListError {
    /// From 1.
    pub line: usize,
    /// Text of the line.
    pub text: String,
    /// Fault of the line, and the way out.
    pub why: String,
}

impl Extents {
    /// Reads a list, or the output of `filefrag -v`. None of the extents ends behind byte `end`.
    pub fn parse(text: &str, end: u64) -> Result<Self, ExtentListError> {
        Ok(Self::new(in_order(text, end)?))
    }
}

fn in_order(text: &str, end: u64) -> Result<Vec<ByteRange>, ExtentListError> {
    let mut extents = Vec::new();
    let mut filefrag = None;
    let mut is_first = true;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("Filesystem type is:") {
            filefrag.get_or_insert(Filefrag { block_bytes: 0 });
        }
        let extent = match &mut filefrag {
            Some(filefrag) => filefrag.line(line),
            None => pair(line, std::mem::take(&mut is_first)),
        };
        let within = |range: ByteRange| match range.offset_bytes.checked_add(range.length_bytes) {
            Some(ends) if ends <= end => Ok(range),
            _ => Err(format!(
                "it ends after {}, where the drive ends: is the list of another drive, or --offset missing?",
                Bytes::new(end)
            )),
        };
        let extent = extent.and_then(|extent| extent.map(within).transpose());
        extents.extend(extent.map_err(|why| ExtentListError {
            line: number + 1,
            text: line.chars().take(SHOWN_MAX).collect(),
            why,
        })?);
    }
    Ok(extents)
}

/// The extent of a line with a beginning and a length, if it is not empty or a header.
fn pair(line: &str, is_first: bool) -> Result<Option<ByteRange>, String> {
    let values = line.split('#').next().unwrap_or_default().trim();
    if values.is_empty() || (is_first && values.replace(' ', "") == "offset_bytes,length_bytes") {
        return Ok(None);
    }
    let words: Vec<&str> = if values.contains(',') {
        values.split(',').map(str::trim).collect()
    } else {
        values.split_whitespace().collect()
    };
    let [start, length] = words[..] else {
        return Err("START LENGTH is expected, each in bytes or as a size, as 64KiB".into());
    };
    let (offset_bytes, length_bytes) = (bytes(start)?, bytes(length)?);
    match length_bytes {
        0 => Err("the length is 0: leave the line out".into()),
        _ => Ok(Some(ByteRange { offset_bytes, length_bytes })),
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_err(|_| format!("{text} is more bytes than any drive has"));
    }
    text.parse::<Bytes>().map(Bytes::get).map_err(|error| error.to_string())
}

/// State of reading what `filefrag -v` prints.
struct Filefrag {
    /// Block size of the file whose extents come; 0 before that is known.
    block_bytes: u64,
}

impl Filefrag {
    fn line(&mut self, line: &str) -> Result<Option<ByteRange>, String> {
        let is_numbered = line.split(':').next().is_some_and(|word| word.parse::<u64>().is_ok());
        if is_numbered && line.contains("..") {
            return self.extent(line);
        }
        if line.starts_with("File size of ") {
            let size = line.rsplit_once(" of ").and_then(|(_, size)| size.strip_suffix(" bytes)"));
            self.block_bytes = size.and_then(|size| size.parse().ok()).unwrap_or(0);
        }
        Ok(None)
    }

    /// The extent of a row, unless its blocks have never been written.
    fn extent(&self, line: &str) -> Result<Option<ByteRange>, String> {
        let expected = "`EXT: LOGICAL..LOGICAL: PHYSICAL..PHYSICAL: LENGTH: EXPECTED: FLAGS` of \
                        `filefrag -v` is expected";
        if self.block_bytes == 0 {
            return Err(
                "the size of its blocks is unknown: leave the line before it that begins with \
                        \"File size of\" in the list"
                    .into(),
            );
        }
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let [_, _, physical, length, .., flags] = fields[..] else { return Err(expected.into()) };
        if let Some(flag) = NOT_AS_THEY_ARE.into_iter().find(|flag| has(flag, flags)) {
            return Err(format!(
                "{flag}: these data do not lie in blocks as they are: `sync` the file, or leave it out"
            ));
        }
        if has("unwritten", flags) {
            return Ok(None);
        }
        let first = physical.split("..").next().and_then(|word| word.trim().parse::<u64>().ok());
        let in_bytes = |blocks: u64| blocks.checked_mul(self.block_bytes);
        let offset = first.and_then(in_bytes);
        let length = length.parse().ok().and_then(in_bytes).filter(|length| *length > 0);
        let range = offset.zip(length).map(|(offset, length)| ByteRange::new(offset, length));
        range.map(Some).ok_or_else(|| expected.into())
    }
}

fn has(flag: &str, flags: &str) -> bool {
    flags.split(',').any(|word| word.starts_with(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u64, u64)> {
        let extents = in_order(text, 1 << 40).unwrap();
        extents.iter().map(|range| (range.offset_bytes, range.length_bytes)).collect()
    }

    fn refused(text: &str) -> String {
        in_order(text, 1 << 40).unwrap_err().to_string()
    }

    #[test]
    fn extent_list_line_is_start_and_length() {
        let text = "# a list\n\n 512 1024\n1MiB\t64KiB # a file\n5,6\n";
        assert_eq!(read(text), [(512, 1024), (1 << 20, 64 << 10), (5, 6)]);
        assert_eq!(read(""), []);
    }

    #[test]
    fn extent_list_csv_header_is_optional() {
        assert_eq!(
            read("offset_bytes,length_bytes\n1024,512\r\n4KiB, 1KiB\r\n"),
            [(1024, 512), (4096, 1024)]
        );
        assert!(refused("1,2\noffset_bytes,length_bytes\n").starts_with("line 2: "));
    }

    #[test]
    fn extent_list_refuses_bad_line_by_number() {
        for (line, says) in [
            ("12", "START LENGTH is expected"),
            ("1 2 3", "START LENGTH is expected"),
            ("1,2,3", "START LENGTH is expected"),
            ("4096 0", "the length is 0"),
            ("4096 64K", "64K"),
            ("-1 5", "-1"),
            ("1 18446744073709551616", "more bytes than any drive has"),
            ("1 18446744073709551615", "it ends after 1TiB"),
            ("1TiB 1", "it ends after 1TiB"),
        ] {
            let error = refused(&format!("# one\n0 512\n{line}\n"));
            assert!(error.starts_with(&format!("line 3: {line:?}: ")), "{error}");
            assert!(error.contains(says), "{error}");
        }
    }

    const FILEFRAG: &str = "\
Filesystem type is: ef53
File size of /mnt/a: 1 b is 1060864 (259 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..     255:      34816..     35071:    256:            
   1:      256..     257:      40960..     40961:      2:      35072: unwritten
   2:      258..     258:      50000..     50000:      1:      40962: last,eof
/mnt/a: 1 b: 3 extents found
File size of c is 512 (1 block of 512 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       0:          9..         9:      1:             last,eof
c: 1 extent found
";

    #[test]
    fn extent_list_reads_filefrag_in_blocks() {
        assert_eq!(
            read(FILEFRAG),
            [(34816 * 4096, 256 * 4096), (50000 * 4096, 4096), (9 * 512, 512)]
        );
        let inline = FILEFRAG.replace("last,eof", "last,not_aligned,inline,eof");
        assert!(
            refused(&inline).contains("do not lie in blocks as they are"),
            "{}",
            refused(&inline)
        );
        let delayed = FILEFRAG.replace("unwritten", "unknown_loc,delalloc");
        assert!(refused(&delayed).starts_with("line 5: "), "{}", refused(&delayed));
        let unknown = FILEFRAG.replace("File size", "Size");
        assert!(refused(&unknown).contains("size of its blocks"), "{}", refused(&unknown));
        let cut = FILEFRAG.replace(":    256:            ", "");
        assert!(refused(&cut).starts_with("line 4: "), "{}", refused(&cut));
    }
}
