//! Images made by `tests/filesystems/make.sh`, and the free clusters of the bitmap that `ntfscat` prints.

use super::super::testing::Image;
use super::*;

macro_rules! image {
    ($name:literal) => {
        Image::new(
            include_bytes!(concat!("../../../tests/filesystems/", $name, ".zst")),
            include_str!(concat!("../../../tests/filesystems/", $name, ".free")),
        )
    };
}

fn all() -> [(u64, Image); 2] {
    [(4096, image!("ntfs-4k")), (512, image!("ntfs-512"))]
}

/// Place of a record of the file table.
fn record(image: &Image, number: u64) -> usize {
    let layout = NtfsLayout::new(&image.bytes[..512], image.bytes.len() as u64).unwrap();
    layout.place(number).offset_bytes as usize
}

#[test]
fn ntfs_allocated_matches_ntfscat_bitmap() {
    for (cluster_bytes, image) in all() {
        let allocated = image.allocated().unwrap();
        // The last sector has a copy of the boot sector, and no cluster.
        assert_eq!(allocated.size_bytes, image.bytes.len() as u64, "{cluster_bytes}");
        assert!(allocated.is_clean, "{cluster_bytes}");
        let expected = image.expected(cluster_bytes, allocated.size_bytes);
        assert_eq!(allocated.extents, expected, "{cluster_bytes}");
        assert!(allocated.metadata.bytes() < 100 << 10, "{cluster_bytes}");
    }
}

#[test]
fn ntfs_volume_in_use_is_not_clean() {
    let [(_, mut image), _] = all();
    let at = record(&image, VOLUME);
    let volume = image.bytes[at..at + 1024].to_vec();
    let flags = resident(attribute(&volume, VOLUME_INFORMATION).unwrap()).unwrap();
    let offset = flags.as_ptr() as usize - volume.as_ptr() as usize;
    image.bytes[at + offset + 10] |= 1;
    assert!(!image.allocated().unwrap().is_clean);
}

#[test]
fn ntfs_runs_are_relative_to_previous() {
    let layout = NtfsLayout {
        cluster_bytes: 10,
        clusters: 5000,
        size_bytes: 50_000,
        table: 0,
        record_bytes: 1024,
    };
    // Three clusters from 1000 on, two 900 before them, and one 300 behind those.
    let runs = [0x21, 3, 0xe8, 3, 0x21, 2, 0x7c, 0xfc, 0x21, 1, 0x2c, 1, 0];
    let found = layout.places(&runs).unwrap();
    let expected = [(1000, 3), (100, 2), (400, 1)];
    let expected = expected.map(|(from, count)| ByteRange::new(from * 10, count * 10));
    assert_eq!(found, expected);
    for wrong in [&[0x21, 3][..], &[0x21, 3, 0xe8, 3], &[0x01, 3, 0], &[0x11, 1, 0x80, 0]] {
        assert_eq!(layout.places(wrong), None, "{wrong:?}");
    }
}

#[test]
fn ntfs_refuses_impossible_records_and_sizes() {
    for (at, bytes, says) in [
        (0x0b, &[3, 0][..], "impossible size"),
        (0x0d, &[0x81], "impossible size"),
        (0x40, &[0xe0], "records of impossible size"),
        (0x28, &[0xff; 8], "more than the"),
        (0x30, &[0xff; 8], "behind the end"),
    ] {
        let [(_, mut image), _] = all();
        image.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        let error = image.allocated().unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    let [(_, mut image), _] = all();
    let at = record(&image, BITMAP);
    image.bytes[at + 510] ^= 1;
    let error = image.allocated().unwrap_err().to_string();
    assert!(error.contains("record 6 of the file table is none"), "{error}");
}

#[test]
fn ntfs_damage_never_panics() {
    let [(_, image), _] = all();
    let [volume, bitmap] = [VOLUME, BITMAP].map(|number| record(&image, number));
    image.damage_anywhere(&[0..128, volume..volume + 1024, bitmap..bitmap + 1024], 400);
}
