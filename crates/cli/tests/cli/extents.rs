//! Tasks of some extents of a drive: of a list, of files, and of what a file system has in use.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use freewheel_live::control::{Record, Records, TaskState};

use super::control::World;
use super::run::{Ran, run};

/// The file system of `crates/live/tests/ext4/README.md`: blocks of 1 KiB.
const IMAGE: &[u8] = include_bytes!("../../../live/tests/ext4/files.zst");

/// Free blocks by `dumpe2fs`: first and last ones.
const FREE: [(u64, u64); 2] = [(738, 1030), (1990, 6143)];

/// A file of it.
struct ImageFile {
    name: &'static str,
    bytes: usize,
    /// First and last blocks, as `debugfs -R 'stat NAME'` says them.
    extents: &'static [(u64, u64)],
}

const FILES: [ImageFile; 5] = [
    ImageFile { name: "small", bytes: 700, extents: &[(1031, 1031)] },
    ImageFile { name: "page", bytes: 4096, extents: &[(734, 737)] },
    ImageFile { name: "big", bytes: 900_000, extents: &[(1033, 1911)] },
    ImageFile { name: "last", bytes: 50_001, extents: &[(1912, 1960)] },
    ImageFile {
        name: "frag",
        bytes: 320_000,
        extents: &[(64, 65), (67, 81), (467, 733), (1961, 1989)],
    },
];

/// First byte of the file system on the drive.
const OFFSET: u64 = 64 << 10;

/// Contents of a file of the image.
fn contents(name: &str, size: usize) -> Vec<u8> {
    let lines = (0..size.div_ceil(16)).flat_map(|line| format!("{name:8}{line:08}").into_bytes());
    lines.take(size).collect()
}

/// Writes bytes by a client.
fn put(world: &World, offset: u64, bytes: &[u8]) {
    let mut client = world.client();
    for (at, part) in (0..).step_by(64 << 10).zip(bytes.chunks(64 << 10)) {
        client.write(offset + at, part);
    }
}

/// A drive with another pattern in each block, and what is on it.
fn filled() -> (World, Vec<u8>) {
    let world = World::file();
    let block = |number: u64| (0..64u64).flat_map(move |at| (number * 64 + at).to_le_bytes());
    let bytes: Vec<u8> = (0..world.blocks).flat_map(block).collect();
    put(&world, 0, &bytes);
    (world, bytes)
}

/// A drive with the file system on it, as these bytes of its superblock say, and what is on it.
fn with_file_system(change: impl Fn(&mut [u8])) -> (World, Vec<u8>) {
    let (world, mut bytes) = filled();
    let mut image = zstd::decode_all(IMAGE).unwrap();
    change(&mut image[1024..2048]);
    put(&world, OFFSET, &image);
    bytes[OFFSET as usize..][..image.len()].copy_from_slice(&image);
    (world, bytes)
}

/// The blocks that a scan with these options delivers; each is right, and comes once.
fn scanned(world: &World, options: &[&str], disk: &[u8]) -> (BTreeSet<u64>, Ran) {
    let out = world.path("scanned");
    let (exec, control) = (format!("cat > {}", out.display()), world.control());
    let args = ["scan", "--promote", "--exec", &exec, "--control", control.to_str().unwrap()];
    let ran = run(&[&args[..], options].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut records = Records::default();
    records.push(&fs::read(&out).unwrap());
    let mut there = BTreeSet::new();
    loop {
        match records.next_record().unwrap().expect("the stream is whole") {
            Record::Data { first_block, data, .. } => {
                let from = first_block as usize * 512;
                assert!(data == disk[from..from + data.len()], "from {first_block} on");
                for block in first_block..first_block + data.len() as u64 / 512 {
                    assert!(there.insert(block), "{block} comes once");
                }
            }
            Record::Unreadable { .. } => panic!("all can be read"),
            Record::End(state) => {
                assert_eq!(state, TaskState::Done);
                return (there, ran);
            }
        }
    }
}

/// Blocks of 512 of the drive that are in use by the file system.
fn in_use() -> BTreeSet<u64> {
    let is_free = |block: &u64| FREE.iter().any(|&(first, last)| (first..=last).contains(block));
    let blocks = (0..6144).filter(|block| !is_free(block));
    blocks.flat_map(|block| [0, 1].map(|half| OFFSET / 512 + block * 2 + half)).collect()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn scan_of_list_delivers_blocks_once() {
    let (world, disk) = filled();
    let list = world.path("list");
    let end = world.blocks * 512;
    let lines =
        format!("# three\n10000 1\n9000 200  # in the same block\n64KiB 40KiB\n{},1\n", end - 1);
    fs::write(&list, lines).unwrap();
    let options = ["--extents", text(&list), "--block-size", "4KiB"];
    let (there, ran) = scanned(&world, &options, &disk);
    let last = (end - 1) / 4096 * 8;
    let expected = (16..24).chain(128..208).chain(last..world.blocks).collect();
    assert_eq!(there, expected);
    let says = "in 3 extents: ";
    assert!(
        ran.stderr.contains(says) && ran.stderr.contains("whole blocks of 4KiB"),
        "{}",
        ran.stderr
    );
    let task = &world.json("tasks")["tasks"][0];
    assert_eq!(task["blocks"], expected.len());
    assert_eq!((&task["blocks_left"], &task["blocks_read"]), (&0.into(), &expected.len().into()));

    fs::write(&list, "offset_bytes,length_bytes\n512,512\n1024,1\n").unwrap();
    let options = ["--extents", text(&list), "--offset", "4KiB", "--block-size", "512B"];
    assert_eq!(scanned(&world, &options, &disk).0, [9, 10].into());
}

#[test]
fn list_malformed_refused_with_line() {
    let (world, _) = filled();
    let (list, control) = (world.path("list"), world.control());
    let args = ["scrub", "--control", text(&control), "--extents", text(&list)];
    for (lines, says) in [
        ("512 512\n1KiB\n", "list: line 2: \"1KiB\": START LENGTH is expected"),
        ("512 5x\n", "list: line 1: \"512 5x\": "),
        ("# nothing\n", "list: there is no extent in it"),
        ("1TiB 512\n", "it ends after"),
    ] {
        fs::write(&list, lines).unwrap();
        let ran = run(&args);
        assert!(ran.code == 1 && ran.stderr.contains(says), "{says}: {}", ran.stderr);
        assert!(ran.stderr.contains("--extents "), "{}", ran.stderr);
    }
    fs::remove_file(&list).unwrap();
    assert!(run(&args).stderr.contains("there is no such file"), "{}", run(&args).stderr);
    for (others, says) in [
        (&["--start", "1MiB"][..], "cannot be used with"),
        (&["--allocated"], "cannot be used with"),
        (&["--offset", "1TiB"], "--offset 1TiB: the drive has"),
    ] {
        let ran = run(&[&args[..], others].concat());
        assert!(ran.code == 2 && ran.stderr.contains(says), "{}", ran.stderr);
    }
    let lone = run(&["scrub", "--control", text(&control), "--offset", "1MiB"]);
    assert!(lone.code == 2 && lone.stderr.contains("--extents"), "{}", lone.stderr);
    assert!(world.verb("tasks").stdout.contains("no tasks"));
}

#[test]
fn scan_of_allocated_has_all_files() {
    let (world, disk) = with_file_system(|_| {});
    let options = ["--allocated", "--offset", "64KiB", "--block-size", "1KiB"];
    let (there, ran) = scanned(&world, &options, &disk);
    assert_eq!(there, in_use());
    assert!(ran.stderr.contains("note: reading "), "{}", ran.stderr);
    for ImageFile { name, bytes: size, extents } in FILES {
        let mut file = Vec::new();
        for &(first, last) in extents {
            let blocks = OFFSET / 512 + first * 2..OFFSET / 512 + (last + 1) * 2;
            assert!(blocks.clone().all(|block| there.contains(&block)), "{name}");
            let bytes = blocks.start as usize * 512..blocks.end as usize * 512;
            file.extend_from_slice(&disk[bytes]);
        }
        file.truncate(size);
        assert!(file == contents(name, size), "{name}");
    }
}

#[test]
fn backup_of_allocated_has_zeros_elsewhere() {
    let (world, disk) = with_file_system(|_| {});
    let (out, control) = (world.path("copy"), world.control());
    let args = ["backup", text(&out), "--promote", "--control", text(&control)];
    let options = ["--allocated", "--offset", "64KiB", "--block-size", "1KiB"];
    let ran = run(&[&args[..], &options].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let (copy, in_use) = (fs::read(&out).unwrap(), in_use());
    assert_eq!(copy.len() as u64, world.blocks * 512);
    for (block, bytes) in (0..).zip(copy.chunks(512)) {
        let from = block as usize * 512;
        let expected = if in_use.contains(&block) { &disk[from..from + 512] } else { &[0; 512] };
        assert!(bytes == expected, "{block}");
    }
    let manifest = fs::read_to_string(world.path("copy.manifest")).unwrap();
    assert_eq!(manifest.lines().filter(|line| line.starts_with("wanted ")).count(), 2);

    let [monday, tuesday] = ["monday", "tuesday"].map(|name| world.path(name));
    let scrub = ["scrub", "--promote", "--control", text(&control)];
    let first = run(&[&scrub[..], &options, &["--manifest", text(&monday)]].concat());
    assert_eq!(first.code, 0, "{}", first.stderr);
    world.client().write(OFFSET + (1033 << 10), &[7; 1024]);
    let against = ["--manifest", text(&tuesday), "--against", text(&monday)];
    let second = run(&[&scrub[..], &options, &against].concat());
    assert_eq!(second.code, 0, "{}", second.stderr);
    assert!(
        second.stdout.contains("changed in regions that clients wrote: 1.0"),
        "{}",
        second.stdout
    );
    assert!(second.stdout.contains("changed silently: 0"), "{}", second.stdout);
}

#[test]
fn mounted_file_system_scanned_not_backed_up() {
    // As the kernel leaves one without a journal while it is mounted.
    let (world, disk) = with_file_system(|superblock| superblock[0x3a] = 0);
    let options = ["--allocated", "--offset", "64KiB"];
    let (there, ran) = scanned(&world, &options, &disk);
    assert!(there.is_superset(&in_use()));
    assert!(ran.stderr.contains("may be left out"), "{}", ran.stderr);
    let (out, control) = (world.path("copy"), world.control());
    let ran = run(&[&["backup", text(&out), "--control", text(&control)][..], &options].concat());
    assert!(ran.code == 1 && ran.stderr.contains("fsfreeze -f"), "{}", ran.stderr);
    assert!(!world.path("copy.partial").exists());
}

#[test]
fn backup_ends_when_bitmaps_change() {
    let (world, disk) = with_file_system(|_| {});
    let superblock = &disk[OFFSET as usize + 1024..][..1024];
    let (is_over, mut client) = (AtomicBool::new(false), world.client());
    let (out, control) = (world.path("copy"), world.control());
    let args = ["backup", text(&out), "--control", text(&control), "--promote"];
    let options = ["--allocated", "--offset", "64KiB"];
    let ran = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                client.write(OFFSET + 1024, superblock);
            }
        });
        let ran = run(&[&args[..], &options].concat());
        is_over.store(true, Ordering::Relaxed);
        ran
    });
    let says = "clients wrote to the file system's bitmaps while they were read";
    assert!(ran.code == 1 && ran.stderr.contains(says), "{}", ran.stderr);
    assert_eq!(run(&[&args[..], &options].concat()).code, 0, "the same command, in peace");
}

#[test]
fn file_system_unknown_refused_by_name() {
    let (world, _) = filled();
    let ran = world.verb("scan --allocated");
    assert!(ran.code == 1 && ran.stderr.contains("but something unknown"), "{}", ran.stderr);
    let mut first = b"LUKS\xba\xbe".to_vec();
    first.resize(2048, 0);
    put(&world, 0, &first);
    let ran = world.verb("scan --allocated");
    let says = "but an encrypted volume (LUKS)";
    assert!(ran.code == 1 && ran.stderr.contains(says), "{}", ran.stderr);
}

#[test]
fn files_without_blocks_are_refused() {
    let (world, _) = filled();
    let ran = world.verb("scan --files /no/such/file");
    assert!(ran.code == 1 && ran.stderr.contains("--files /no/such/file: "), "{}", ran.stderr);
    let folder = world.path("empty");
    fs::create_dir(&folder).unwrap();
    let ran = world.verb(&format!("scan --files {}", folder.display()));
    assert!(ran.code == 1 && ran.stderr.contains("have no blocks to read"), "{}", ran.stderr);
    let ran = world.verb("scan --files /dev/null");
    assert!(ran.code == 1 && ran.stderr.contains("it is no file with data"), "{}", ran.stderr);
}
