//! Images made by `mkfs.ext4`, and what `dumpe2fs` says is free on them: see `tests/ext4/README.md`.

use super::*;

/// Bytes of a superblock's fields in an image.
const STATE_AT: usize = 1024 + 0x3a;
const INCOMPAT_AT: usize = 1024 + 0x60;

struct Image {
    bytes: Vec<u8>,
    size_bytes: u64,
    block_bytes: u64,
    /// First and last blocks.
    free: Vec<(u64, u64)>,
}

impl Image {
    fn open(compressed: &[u8], free: &str) -> Self {
        let bytes = zstd::decode_all(compressed).unwrap();
        let block_bytes = 1024 << bytes[1024 + 0x18];
        let row = |row: &str| {
            let (first, last) = row.split_once('-').unwrap_or((row, row));
            (first.parse().unwrap(), last.parse().unwrap())
        };
        let size_bytes = bytes.len() as u64;
        Self { bytes, size_bytes, block_bytes, free: free.lines().map(row).collect() }
    }

    fn allocated(&self) -> Result<Allocated, FileSystemError> {
        Allocated::find(self.size_bytes, |ranges: &Extents| {
            let mut parts = Parts::default();
            for range in ranges.ranges() {
                let data = self.bytes.get(range.offset_bytes as usize..range.end() as usize);
                data.into_iter().for_each(|data| parts.insert(range.offset_bytes, data.to_vec()));
            }
            Ok(parts)
        })
    }

    /// Ranges between the free blocks.
    fn expected(&self) -> Extents {
        let blocks = self.size_bytes / self.block_bytes;
        let ends = self.free.iter().map(|(_, last)| last + 1);
        let starts = self.free.iter().map(|(first, _)| *first).chain([blocks]);
        let used = std::iter::once(0).chain(ends).zip(starts);
        let range = |(from, to): (u64, u64)| {
            ByteRange::new(from * self.block_bytes, (to - from) * self.block_bytes)
        };
        Extents::new(used.map(range).collect())
    }
}

macro_rules! images {
    ($($name:literal),* $(,)?) => {
        [$(($name, Image::open(
            include_bytes!(concat!("../../../tests/ext4/", $name, ".zst")),
            include_str!(concat!("../../../tests/ext4/", $name, ".free")),
        ))),*]
    };
}

fn small() -> Image {
    let [(_, image)] = images!["ext4-32bit"];
    image
}

#[test]
fn ext4_allocated_matches_dumpe2fs() {
    let images = images![
        "ext4-1k",
        "ext4-4k",
        "ext4-noflex",
        "ext4-32bit",
        "ext4-meta_bg",
        "ext4-bigalloc",
        "ext4-bigalloc4k",
        "ext4-super2",
        "ext3",
        "ext2-dense",
        "ext2-rev0",
    ];
    for (name, image) in images {
        let allocated = image.allocated().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(allocated.extents, image.expected(), "{name}");
        assert!(allocated.is_clean, "{name}");
        assert_eq!(allocated.size_bytes, image.size_bytes, "{name}");
        let read = allocated.metadata.bytes();
        assert!(read < 400 << 10, "{name}: {read} bytes were read");
    }
}

#[test]
fn ext4_mounted_is_not_clean() {
    let mut mounted = small();
    mounted.bytes[INCOMPAT_AT] |= 4;
    assert!(!mounted.allocated().unwrap().is_clean);
    let mut with_errors = small();
    with_errors.bytes[STATE_AT] |= 2;
    assert!(!with_errors.allocated().unwrap().is_clean);
    // The count of free blocks in the descriptor of the first group.
    let at = 2048 + 12;
    let (mut clean, expected) = (small(), small().expected());
    clean.bytes[at] ^= 1;
    mounted.bytes[at] ^= 1;
    let error = clean.allocated().unwrap_err().to_string();
    assert!(error.contains("group 0 has") && error.contains("e2fsck -f"), "{error}");
    assert_eq!(mounted.allocated().unwrap().extents, expected);
}

#[test]
fn ext4_names_other_file_systems() {
    let found = |at: usize, name: &[u8]| {
        let mut image = small();
        image.bytes[1024 + 0x38] = 0;
        image.bytes[at..at + name.len()].copy_from_slice(name);
        image.allocated().unwrap_err().to_string()
    };
    for (at, name, says) in OTHERS {
        assert!(found(at, name).ends_with(&format!("but {says}")), "{}", found(at, name));
    }
    assert!(found(0, b"").ends_with("something unknown"));
    let short = Image { bytes: vec![0; 1024], size_bytes: 1024, ..small() };
    assert!(matches!(short.allocated(), Err(FileSystemError::Other { .. })));
}

#[test]
fn ext4_refuses_unknown_features_and_sizes() {
    let with = |at: usize, bytes: &[u8]| {
        let mut image = small();
        image.bytes[1024 + at..1024 + at + bytes.len()].copy_from_slice(bytes);
        image.allocated().unwrap_err().to_string()
    };
    for (at, bytes, says) in [
        (0x60, &[0, 0, 0, 0x80][..], "features 0x80000000 that are unknown"),
        (0x60, &[8][..], "the journal of one"),
        (0x18, &[7][..], "blocks or clusters of impossible size"),
        (0x20, &[0; 4][..], "impossible size"),
        (0x14, &[9][..], "impossible size"),
        (0x04, &[0, 0, 0, 1][..], "more than the 67108864 bytes"),
    ] {
        let error = with(at, bytes);
        assert!(error.contains(says), "{says}: {error}");
    }
    let mut image = small();
    // The bitmap of the first group.
    image.bytes[2048..2052].copy_from_slice(&[0xff; 4]);
    let error = image.allocated().unwrap_err().to_string();
    assert!(error.contains("group 0 has bitmaps or inodes behind the end"), "{error}");
    image.bytes.truncate(2048);
    image.bytes[1024 + 0x04..1024 + 0x08].copy_from_slice(&[2, 0, 0, 0]);
    assert!(matches!(image.allocated(), Err(FileSystemError::Unread { .. })));
}

#[test]
fn ext4_damage_never_panics() {
    let image = small();
    let mut prng = freewheel_units::Prng::new(3, "damage");
    for _ in 0..400 {
        let mut bytes = image.bytes[..64 << 10].to_vec();
        for _ in 0..1 + prng.below(6) {
            let at = 1024 + prng.below(1536) as usize;
            bytes[at] = prng.below(256) as u8;
        }
        let damaged = Image { bytes, free: Vec::new(), ..image };
        if let Ok(allocated) = damaged.allocated() {
            let end = allocated.extents.ranges().last().map_or(0, |range| range.end());
            assert!(end <= allocated.size_bytes);
        }
    }
}
