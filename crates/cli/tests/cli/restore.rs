//! Backups since an earlier one, and the way back, by the verb.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::control::World;
use super::run::{Ran, command, run};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Fills a drive by a client.
fn fill(world: &World) {
    let mut client = world.client();
    for at in 0..world.blocks / 64 {
        client.write(at * 64 * 512, &[at as u8 + 1; 64 * 512]);
    }
}

fn back_up(world: &World, name: &str, options: &[&str]) -> Ran {
    let (out, control) = (world.path(name), world.control());
    let args = ["backup", text(&out), "--promote", "--control", text(&control)];
    run(&[&args[..], options].concat())
}

/// Restores a backup of this name with these options.
fn restore(world: &World, name: &str, options: &[&str]) -> Ran {
    let manifest = world.path(&format!("{name}.manifest"));
    run(&[&["restore", text(&manifest)], options].concat())
}

#[test]
fn restore_of_base_and_changes_is_exact() {
    let world = World::file();
    fill(&world);
    let first = fs::read(world.path("data")).unwrap();
    let ran = back_up(&world, "monday", &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut client = world.client();
    // Two regions: that of block 100, and that of block 5000.
    client.write(100 * 512, &[0xaa; 512]);
    client.write(5000 * 512, &[0; 64 * 512]);
    let since = world.path("monday.manifest");
    let ran = back_up(&world, "tuesday", &["--since", text(&since)]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let says = "stored 2.00 MiB of 6.52 MiB, the rest is as in ";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
    let second = fs::read(world.path("data")).unwrap();
    for (name, expected) in [("monday", first), ("tuesday", second)] {
        let out = world.path(&format!("{name}.back"));
        let ran = restore(&world, name, &["--to", text(&out)]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(fs::read(&out).unwrap() == expected, "{name}");
    }
    let ran = restore(&world, "tuesday", &[]);
    assert!(ran.stdout.contains("of 2 backups\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("every checksum is right"), "{}", ran.stdout);
    let scrub = format!("scrub --promote --against {}", world.path("tuesday.manifest").display());
    let ran = world.verb(&scrub);
    assert!(ran.stdout.contains("changed silently: 0 B"), "{}", ran.stdout);
}

#[test]
fn killed_restore_goes_on_when_repeated() {
    let world = World::file();
    fill(&world);
    assert_eq!(back_up(&world, "copy", &[]).code, 0);
    let (manifest, out) = (world.path("copy.manifest"), world.path("back"));
    let args = ["restore", text(&manifest), "--to", text(&out)];
    let mut first = command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !world.path("back.restoring").exists() && first.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(100));
    }
    first.kill().unwrap();
    // It may have been fast enough to end.
    if first.wait().unwrap().code().is_none() {
        assert!(!out.exists());
        let ran = run(&args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert!(fs::read(&out).unwrap() == fs::read(world.path("data")).unwrap());
    assert!(!world.path("back.restoring").exists());
    let ran = run(&args);
    let says = "is there already: choose another name, or overwrite it with --force";
    assert!(ran.code == 1 && ran.stderr.contains(says), "{}", ran.stderr);
    let ran = run(&[&args[..], &["--force", "--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["written_bytes"], 0, "it is there already");
}

#[test]
fn restore_names_damage_and_missing_parents() {
    let world = World::file();
    fill(&world);
    assert_eq!(back_up(&world, "monday", &[]).code, 0);
    let since = world.path("monday.manifest");
    assert_eq!(back_up(&world, "tuesday", &["--since", text(&since)]).code, 0);
    let image = fs::File::options().write(true).open(world.path("monday")).unwrap();
    image.write_all_at(&[7], 512 * 3000).unwrap();
    let out = world.path("back");
    for options in [&[][..], &["--to", text(&out)]] {
        let ran = restore(&world, "tuesday", options);
        assert_eq!(ran.code, 1);
        let says = "2,048 blocks of 512 B from 2048 on, in ";
        assert!(ran.stdout.contains(says), "{}", ran.stdout);
        assert!(ran.stderr.contains("1 region of the backup cannot be restored"), "{}", ran.stderr);
        assert!(ran.stderr.contains("put a sound copy of each named image"), "{}", ran.stderr);
    }
    assert!(world.path("back.restoring").exists() && !out.exists());
    fs::rename(world.path("monday.manifest"), world.path("away")).unwrap();
    let ran = restore(&world, "tuesday", &[]);
    let says = "its parent monday.manifest is neither beside it nor where it was";
    assert!(ran.code == 1 && ran.stderr.contains(says), "{}", ran.stderr);
    let ran = back_up(&world, "friday", &["--since", text(&since)]);
    assert!(ran.code == 1 && ran.stderr.contains("error: --since "), "{}", ran.stderr);
    assert!(!world.path("friday.partial").exists());
}

#[test]
fn restore_of_extents_since_backup() {
    let world = World::file();
    fill(&world);
    let list = world.path("list");
    fs::write(&list, "1MiB 128KiB\n5MiB 64KiB\n").unwrap();
    let extents = ["--extents", text(&list)];
    assert_eq!(back_up(&world, "monday", &extents).code, 0);
    world.client().write(5 << 20, &[0xee; 4096]);
    fs::write(&list, "1MiB 128KiB\n5MiB 64KiB\n6MiB 64KiB\n").unwrap();
    let since = world.path("monday.manifest");
    let ran = back_up(&world, "tuesday", &[&extents[..], &["--since", text(&since)]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("stored 128 KiB of 256 KiB"), "{}", ran.stdout);
    let out = world.path("back");
    assert_eq!(restore(&world, "tuesday", &["--to", text(&out)]).code, 0);
    let (disk, back) = (fs::read(world.path("data")).unwrap(), fs::read(&out).unwrap());
    let mut expected = vec![0; disk.len()];
    for (at, length) in [(1 << 20, 128 << 10), (5 << 20, 64 << 10), (6 << 20, 64 << 10)] {
        expected[at..at + length].copy_from_slice(&disk[at..at + length]);
    }
    assert!(back == expected);
}

#[test]
fn restore_refuses_served_disk_despite_force() {
    let world = World::file();
    fill(&world);
    assert_eq!(back_up(&world, "copy", &[]).code, 0);
    let served = world.path("data");
    let before = fs::read(&served).unwrap();
    world.client().write(0, &[9; 4096]);
    for options in [&["--to", text(&served)][..], &["--to", text(&served), "--force"]] {
        let ran = restore(&world, "copy", options);
        let says = "as a server or a restore has: end that one first";
        assert!(ran.code == 1 && ran.stderr.contains(says), "{}", ran.stderr);
    }
    let after = fs::read(&served).unwrap();
    assert!(after[..4096] == [9; 4096] && after[4096..] == before[4096..]);
}

#[test]
fn restore_zeros_and_names_unreadable_blocks() {
    // What is written can be read again: nothing is.
    let world = World::emulated("?bad=9000");
    assert_eq!(back_up(&world, "copy", &[]).code, 1);
    let out = world.path("back");
    let ran = restore(&world, "copy", &["--to", text(&out)]);
    assert_eq!(ran.code, 1);
    let says = "1 block could not be read when the backup was made, and is zeros in it";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    assert!(fs::read(&out).unwrap() == fs::read(world.path("copy")).unwrap());
}
