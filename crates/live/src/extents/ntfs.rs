//! Allocated clusters of an NTFS, by its bitmap.
//!
//! ```text
//!   boot sector       -> sizes, place of the file table
//!   record 3, $Volume -> clean if its flag says that nobody has it mounted
//!   record 6, $Bitmap -> places of its data: a bit for each cluster
//! ```
//! Layout: as the headers of ntfs-3g (`include/ntfs-3g/layout.h`) describe it.
//! Non-goals: the journal; a hibernated Windows, which leaves the flag of a clean volume; a bitmap in so many
//! pieces that their list is outside of its record.

use super::file_system::{Allocated, FileSystemError, between, little_endian, take};
use super::parts::Parts;
use super::ranges::{ByteRange, Extents};

/// Name of the file system, from the third byte on.
pub(super) const NAME: &[u8] = b"NTFS    ";

/// Records of the file table.
const VOLUME: u64 = 3;
const BITMAP: u64 = 6;

const VOLUME_INFORMATION: u64 = 0x70;
const ATTRIBUTE_LIST: u64 = 0x20;
const DATA: u64 = 0x80;
const END: u64 = 0xffff_ffff;

/// Flag of a volume that is mounted, or was not unmounted cleanly.
const DIRTY: u64 = 1;

/// Blocks with a number at their end that tells whether all of a record was written.
const FIXED_UP: usize = 512;

/// Bytes of the bitmap that are read at once.
const AT_ONCE: u64 = 16 << 20;

fn damaged(what: impl Into<String>) -> FileSystemError {
    FileSystemError::Damaged { what: what.into(), check: "chkdsk, or ntfsfix -n" }
}

/// Finds what is allocated, with the first bytes of the file system.
pub(super) fn find<E: From<FileSystemError>>(
    head: &[u8],
    size_bytes: u64,
    mut read: impl FnMut(&Extents) -> Result<Parts, E>,
) -> Result<Allocated, E> {
    let layout = NtfsLayout::new(head, size_bytes)?;
    let mut metadata = Vec::new();
    let mut reader = |range: ByteRange| -> Result<Vec<u8>, E> {
        metadata.push(range);
        Ok(take(&read(&Extents::new(vec![range]))?, range)?)
    };
    let volume = layout.record(VOLUME, reader(layout.place(VOLUME))?)?;
    let flags = attribute(&volume, VOLUME_INFORMATION)
        .and_then(resident)
        .ok_or_else(|| damaged("the volume has no flags"))?;
    let is_clean = little_endian(flags, 10, 2) & DIRTY == 0;
    let record = layout.record(BITMAP, reader(layout.place(BITMAP))?)?;
    let mut free = Free { ranges: Vec::new(), from: None, next: 0, clusters: layout.clusters };
    for range in layout.bitmap(&record)? {
        let mut at = range.offset_bytes;
        while at < range.end() && free.next < layout.clusters {
            let part = ByteRange::new(at, AT_ONCE.min(range.end() - at));
            free.add(&reader(part)?);
            at = part.end();
        }
    }
    if free.next < layout.clusters {
        return Err(damaged("the bitmap is shorter than the volume").into());
    }
    free.end();
    let free = Extents::new(free.ranges.into_iter().map(|range| bytes(range, &layout)).collect());
    // Behind the clusters there is a copy of the boot sector.
    let all = ByteRange::new(0, layout.size_bytes);
    Ok(Allocated {
        extents: between(&free, all),
        size_bytes: all.length_bytes,
        is_clean,
        metadata: Extents::new(metadata),
    })
}

fn bytes(range: ByteRange, layout: &NtfsLayout) -> ByteRange {
    let [from, length] = [range.offset_bytes, range.length_bytes].map(|n| n * layout.cluster_bytes);
    ByteRange::new(from, length)
}

/// Sizes and places of a volume.
struct NtfsLayout {
    cluster_bytes: u64,
    clusters: u64,
    /// Bytes of the volume with the copy of its boot sector, where that fits the drive.
    size_bytes: u64,
    /// Place of the file table.
    table: u64,
    record_bytes: u64,
}

impl NtfsLayout {
    fn new(head: &[u8], size_bytes: u64) -> Result<Self, FileSystemError> {
        let (sector, sectors) = (number(0x0b, 2, head), number(0x28, 8, head));
        let per_cluster = match number(0x0d, 1, head) {
            byte if byte > 0x80 => power(byte),
            byte => Some(byte),
        };
        let cluster_bytes = per_cluster.and_then(|sectors| sectors.checked_mul(sector));
        let Some(cluster_bytes) = cluster_bytes
            .filter(|&bytes| is_possible(sector, 256, 4096) && is_possible(bytes, sector, 2 << 20))
        else {
            return Err(damaged("sectors or clusters of impossible size"));
        };
        let record_bytes = match number(0x40, 1, head) {
            byte if byte >= 0x80 => power(byte),
            byte => Some(byte * cluster_bytes),
        };
        let record_bytes = record_bytes.filter(|&bytes| is_possible(bytes, 512, 64 << 10));
        let record_bytes = record_bytes.ok_or_else(|| damaged("records of impossible size"))?;
        let bytes = sectors.checked_mul(sector).filter(|&bytes| bytes <= size_bytes);
        let Some(bytes) = bytes else {
            return Err(damaged(format!(
                "it has {sectors} sectors of {sector}, more than the {size_bytes} bytes from there to the drive's end"
            )));
        };
        let clusters = bytes / cluster_bytes;
        let table = number(0x30, 8, head);
        let records = (BITMAP + 1) * record_bytes;
        let end = table.saturating_mul(cluster_bytes).saturating_add(records);
        if end > bytes {
            return Err(damaged("the file table is behind the end"));
        }
        Ok(Self {
            cluster_bytes,
            clusters,
            size_bytes: (bytes + sector).min(size_bytes),
            table: table * cluster_bytes,
            record_bytes,
        })
    }

    /// Place of one of the first records, which are always together.
    fn place(&self, number: u64) -> ByteRange {
        ByteRange::new(self.table + number * self.record_bytes, self.record_bytes)
    }

    /// A record as it was before the ends of its blocks were marked.
    fn record(&self, number: u64, mut record: Vec<u8>) -> Result<Vec<u8>, FileSystemError> {
        let marks = little_endian(&record, 4, 2) as usize;
        let count = little_endian(&record, 6, 2) as usize;
        let blocks = record.len() / FIXED_UP;
        if !record.starts_with(b"FILE") || count != blocks + 1 || marks + 2 * count > record.len() {
            return Err(fault(number));
        }
        for block in 0..blocks {
            let end = (block + 1) * FIXED_UP - 2;
            if record[end..end + 2] != record[marks..marks + 2] {
                return Err(fault(number));
            }
            let own = marks + 2 * (block + 1);
            (record[end], record[end + 1]) = (record[own], record[own + 1]);
        }
        Ok(record)
    }

    /// Places of the bitmap's data in the drive.
    fn bitmap(&self, record: &[u8]) -> Result<Vec<ByteRange>, FileSystemError> {
        let fault = || damaged("the bitmap has no places");
        let data = match attribute(record, DATA) {
            Some(data) => data,
            None if attribute(record, ATTRIBUTE_LIST).is_some() => {
                let what = "a bitmap in more pieces than its record holds".into();
                return Err(FileSystemError::Unsupported { what });
            }
            None => return Err(fault()),
        };
        if data.get(8) != Some(&1) || little_endian(data, 0x10, 8) != 0 {
            return Err(fault());
        }
        let runs = data.get(little_endian(data, 0x20, 2) as usize..).ok_or_else(fault)?;
        self.places(runs).ok_or_else(fault)
    }

    /// Places of runs of clusters, each from the one before.
    fn places(&self, mut runs: &[u8]) -> Option<Vec<ByteRange>> {
        let mut places = Vec::new();
        let mut at = 0i64;
        loop {
            let (&head, rest) = runs.split_first()?;
            if head == 0 {
                return Some(places);
            }
            let [length, step] = [head & 0xf, head >> 4].map(usize::from);
            // A run without a place has no data, which a bitmap has everywhere.
            if !(1..=8).contains(&length) || !(1..=8).contains(&step) {
                return None;
            }
            let clusters = little_endian(rest.get(..length)?, 0, length);
            let number = little_endian(rest.get(length..length + step)?, 0, step);
            // The sign is in the highest bit of the last byte.
            let unused = 64 - 8 * step as u32;
            at = at.checked_add((number << unused) as i64 >> unused)?;
            let first = u64::try_from(at).ok()?;
            if first.checked_add(clusters)? > self.clusters {
                return None;
            }
            places.push(ByteRange::new(first * self.cluster_bytes, clusters * self.cluster_bytes));
            runs = &rest[length + step..];
        }
    }
}

fn number(at: usize, bytes: usize, head: &[u8]) -> u64 {
    little_endian(head, at, bytes)
}

/// Large numbers stand for powers of two: less than zero as a byte with a sign.
fn power(byte: u64) -> Option<u64> {
    1u64.checked_shl((256 - byte) as u32).filter(|&power| power > 0)
}

fn is_possible(bytes: u64, least: u64, most: u64) -> bool {
    bytes.is_power_of_two() && (least..=most).contains(&bytes)
}

fn fault(number: u64) -> FileSystemError {
    damaged(format!("record {number} of the file table is none"))
}

/// The first attribute of a kind in a record.
fn attribute(record: &[u8], kind: u64) -> Option<&[u8]> {
    let mut rest = record.get(little_endian(record, 0x14, 2) as usize..)?;
    loop {
        let (own, length) = (little_endian(rest, 0, 4), little_endian(rest, 4, 4) as usize);
        if own == END || length < 16 || length > rest.len() {
            return None;
        }
        // An attribute with a name is another one.
        if own == kind && rest[9] == 0 {
            return Some(&rest[..length]);
        }
        rest = &rest[length..];
    }
}

/// Data of an attribute that has them in its record.
fn resident(attribute: &[u8]) -> Option<&[u8]> {
    let (length, at) = (little_endian(attribute, 0x10, 4), little_endian(attribute, 0x14, 2));
    let data = attribute.get(at as usize..)?.get(..length as usize)?;
    (attribute[8] == 0).then_some(data)
}

/// Free clusters, as the bitmap is read.
struct Free {
    ranges: Vec<ByteRange>,
    /// First of the free clusters that are read.
    from: Option<u64>,
    next: u64,
    clusters: u64,
}

impl Free {
    fn add(&mut self, bitmap: &[u8]) {
        for &byte in bitmap {
            let is_even = self.next + 8 <= self.clusters
                && (byte == 0xff && self.from.is_none() || byte == 0 && self.from.is_some());
            if is_even {
                self.next += 8;
                continue;
            }
            for bit in 0..8.min(self.clusters - self.next) {
                if byte >> bit & 1 == 1 {
                    self.end();
                } else if self.from.is_none() {
                    self.from = Some(self.next);
                }
                self.next += 1;
            }
        }
    }

    /// Ends the free clusters before the next one.
    fn end(&mut self) {
        if let Some(from) = self.from.take() {
            self.ranges.push(ByteRange::new(from, self.next - from));
        }
    }
}

#[cfg(test)]
mod tests;
