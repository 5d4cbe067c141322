//! Images made by `tests/filesystems/make.sh`, and what `xfs_db` says is free on them, less the blocks that each
//! group keeps for its trees: those are in use.

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

fn all() -> [(&'static str, u64, Image); 3] {
    [
        ("xfs-1k", 1024, image!("xfs-1k")),
        ("xfs-4k", 4096, image!("xfs-4k")),
        ("xfs-v4", 4096, image!("xfs-v4")),
    ]
}

#[test]
fn xfs_allocated_matches_xfs_db() {
    for (name, block_bytes, image) in all() {
        let allocated = image.allocated().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(allocated.size_bytes, image.bytes.len() as u64, "{name}");
        assert!(allocated.is_clean, "{name}");
        let expected = image.expected(block_bytes, allocated.size_bytes);
        assert_eq!(allocated.extents, expected, "{name}");
        let read = allocated.metadata.bytes();
        assert!(read < 600 << 10, "{name}: {read} bytes were read");
    }
}

#[test]
fn xfs_first_image_tree_has_height() {
    let (_, _, image) = &all()[0];
    let header = &image.bytes[512..1024];
    assert!(header.starts_with(b"XAGF") && big_endian(header, 28, 4) >= 2, "levels");
}

#[test]
fn xfs_mounted_is_not_clean() {
    let mounted = Image::new(include_bytes!("../../../tests/filesystems/xfs-mounted.zst"), "");
    assert!(!mounted.allocated().unwrap().is_clean);
    let [_, (_, _, mut clean), _] = all();
    // The count of free blocks in the header of the first group.
    clean.bytes[512 + 55] ^= 1;
    let error = clean.allocated().unwrap_err().to_string();
    assert!(error.contains("group 0 has") && error.contains("xfs_repair -n"), "{error}");
}

#[test]
fn xfs_refuses_unknown_features_and_sizes() {
    for (at, bytes, says) in [
        (216, &[0x80, 0, 0, 0][..], "features 0x80000000 that are unknown"),
        (216, &[0, 0, 0, 0x10], "needs a repair"),
        (4, &[0, 0, 0, 3], "impossible size"),
        (84, &[0; 4], "impossible size"),
        (512, b"YAGF", "the header of group 0 is none"),
        (512 + 16, &[0xff; 4], "leads behind its end"),
        (512 + 16, &[0, 0, 0, 3], "no part of its tree"),
    ] {
        let [_, (_, _, mut image), _] = all();
        image.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        let error = image.allocated().unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    let [_, (_, _, mut image), _] = all();
    image.bytes.truncate(32 << 20);
    let error = image.allocated().unwrap_err().to_string();
    assert!(error.contains("more than the 33554432 bytes"), "{error}");
}

#[test]
fn xfs_damage_never_panics() {
    let [_, (_, _, image), _] = all();
    image.damage_anywhere(&[0..256, 512..1024, 4096..12_288], 300);
}
