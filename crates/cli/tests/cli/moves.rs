//! The commands of a plan, run and killed as a person and a machine do it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::run::{Bench, document, stdout};

/// Imitation of rsync with the options of the script, slow: file by file, each under another name until it
/// is complete. A dry run says where the contents differ.
const RSYNC: &str = r#"
dry=no
while test "$1" != --; do
    case $1 in --*) ;; -*n*) dry=yes ;; esac
    shift
done
root=${2%%/./*} name=${2#*/./} to=${3%/}
if test "$dry" = yes; then
    diff -r -- "$root/$name" "$to/$name" 2>&1 || true
    exit 0
fi
(cd "$root" && find "$name" -type d) | while IFS= read -r folder; do mkdir -p "$to/$folder"; done
(cd "$root" && find "$name" -type f) | while IFS= read -r file; do
    if cmp -s "$root/$file" "$to/$file"; then continue; fi
    folder=$(dirname "$to/$file")
    mkdir -p "$folder"
    for part in 0 1 2 3; do
        dd if="$root/$file" bs=8192 skip=$part count=1 status=none
        sleep 0.01
    done >"$folder/.being copied"
    mv "$folder/.being copied" "$to/$file"
done
"#;

/// A snapshot with disks a and b of this many MB, below the bench.
fn disks(bench: &Bench, megabytes: u32) -> String {
    let disk = |name: &str| {
        let path = bench.at(name);
        format!(
            "[[disks]]\nname = \"{name}\"\ndrive = \"tr96\"\nsize = \"{megabytes}MB\"\npath = \"{path}\"\n"
        )
    };
    disk("a") + &disk("b")
}

fn file(name: &str, size: u32, rate: f64, disk: &str) -> String {
    format!(
        "[[files]]\nname = \"{name}\"\nsize = \"{size}MB\"\nrequest = \"8KiB\"\nrate = {rate}\ndisk = \"{disk}\"\n"
    )
}

/// Writes a file below the bench, and its folders.
fn write(bench: &Bench, name: &str, text: &str) -> String {
    std::fs::create_dir_all(Path::new(&bench.at(name)).parent().unwrap()).unwrap();
    bench.put(name, text);
    bench.at(name)
}

fn stub(bench: &Bench, name: &str, script: &str) {
    let path = write(bench, &format!("stubs/{name}"), &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The script with the stubs' commands before the machine's.
fn script(bench: &Bench, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let path = format!("{}:/usr/bin:/bin", bench.at("stubs"));
    command.arg(bench.at("out/moves.sh")).args(args).env("PATH", path);
    command
}

/// Success of the script, and its output.
fn run_moves(bench: &Bench, args: &[&str]) -> (bool, String) {
    let ran = script(bench, args).output().unwrap();
    let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (ran.status.success(), said.concat())
}

/// The SHA-256 of each file below a folder, by its path; none where the folder is not there.
fn checksums(folder: &str) -> Option<BTreeMap<String, String>> {
    if !Path::new(folder).exists() {
        return None;
    }
    let find = "find . -type f -exec sha256sum {} +";
    let ran = Command::new("sh").args(["-c", find]).current_dir(folder).output().unwrap();
    assert!(ran.status.success());
    let text = String::from_utf8(ran.stdout).unwrap();
    let line = |line: &str| line.split_once("  ").map(|(sum, path)| (path.into(), sum.into()));
    Some(text.lines().filter_map(line).collect())
}

/// True if a test may use rsync itself, from where a script of [`script`] finds it.
fn has_rsync() -> bool {
    let is_there =
        Command::new("rsync").env("PATH", "/usr/bin:/bin").arg("--version").output().is_ok();
    if !is_there {
        println!("skipped: rsync is not installed");
    }
    is_there
}

/// Runs a test with the stub for rsync, and with rsync itself where that is installed.
fn with_each_rsync(test: impl Fn(&Bench)) {
    for is_stub in [true, false] {
        let bench = Bench::new("");
        stub(&bench, "mountpoint", "exit 0");
        if is_stub {
            stub(&bench, "rsync", RSYNC);
        }
        if is_stub || has_rsync() {
            test(&bench);
        }
    }
}

/// A plan that moves one of two hot files from a to b, as their folders on the bench are; the file's name.
fn one_move(bench: &Bench, disks: &str, more: &[&str]) -> String {
    let files = file("hot/x", 150, 20.0, "a") + &file("hot/y", 150, 19.0, "a");
    let snapshot = write(bench, "two.toml", &(disks.to_owned() + &files));
    for name in ["hot/x", "hot/y"] {
        write(bench, &format!("a/{name}"), name);
    }
    std::fs::create_dir_all(bench.at("b")).unwrap();
    let args =
        ["plan", "place", &snapshot, "--requests", "2000", "--out", &bench.at("out"), "--json"];
    let moves = document(&[&args[..], more].concat())["moves"].clone();
    assert_eq!(moves.as_array().unwrap().len(), 1);
    moves[0]["file"].as_str().unwrap().to_owned()
}

fn read(bench: &Bench, name: &str) -> Option<String> {
    std::fs::read_to_string(bench.at(name)).ok()
}

/// rsync would cut such a path at its first `/./`.
#[test]
fn dot_in_path_changes_nothing() {
    with_each_rsync(|bench| {
        let dotted = disks(bench, 512).replace(&bench.at("a"), &bench.at("./a/"));
        let name = one_move(bench, &dotted, &[]);
        assert!(run_moves(bench, &[]).0);
        assert_eq!(read(bench, &format!("b/{name}")), Some(name));
    });
}

#[test]
fn copy_onto_original_is_none() {
    with_each_rsync(|bench| {
        let name = one_move(bench, &disks(bench, 512), &[]);
        let stops = |says: &str| {
            let (is_done, said) = run_moves(bench, &[]);
            assert!(!is_done && said.contains(says) && !said.contains("is complete"), "{said}");
            assert_eq!(read(bench, &format!("a/{name}")).as_ref(), Some(&name));
        };
        std::os::unix::fs::symlink(bench.at("a/hot"), bench.at("b/hot")).unwrap();
        stops("is no folder of");
        std::fs::remove_file(bench.at("b/hot")).unwrap();
        std::fs::create_dir(bench.at("b/hot")).unwrap();
        std::fs::hard_link(bench.at(&format!("a/{name}")), bench.at(&format!("b/{name}"))).unwrap();
        stops("are one file");
        std::fs::remove_dir_all(bench.at("b")).unwrap();
        std::os::unix::fs::symlink(bench.at("a"), bench.at("b")).unwrap();
        stops("are one folder");
    });
}

#[test]
fn copy_is_synced_before_complete() {
    let bench = Bench::new("");
    let name = one_move(&bench, &disks(&bench, 512), &[]);
    stub(&bench, "mountpoint", "exit 0");
    stub(&bench, "rsync", RSYNC);
    let (copy, note, log) = (
        bench.at(&format!("b/{name}")),
        bench.at("b/.freewheel-moves/1/complete"),
        bench.at("synced"),
    );
    let sync = format!("if test -e '{copy}' && ! test -e '{note}'; then echo \"$2\" >>'{log}'; fi");
    stub(&bench, "sync", &sync);
    assert!(run_moves(&bench, &[]).0);
    assert_eq!(read(&bench, "synced"), Some(format!("{}\n", bench.at("b"))));
    // Killed between the rename and the note.
    std::fs::remove_file(&note).unwrap();
    assert!(run_moves(&bench, &[]).0);
    write(&bench, &format!("a/{name}"), "newer contents");
    assert!(run_moves(&bench, &["again", "1"]).0);
    assert_eq!(read(&bench, "synced").unwrap().lines().count(), 3);
}

#[test]
fn copy_without_original_is_kept() {
    with_each_rsync(|bench| {
        let name = one_move(bench, &disks(bench, 512), &[]);
        let other = write(bench, "elsewhere", "x");
        write(bench, "b/.freewheel-moves/1/of", &other);
        write(bench, "b/.freewheel-moves/1/copy/elsewhere", "the only copy");
        std::fs::remove_file(&other).unwrap();
        let (is_done, said) = run_moves(bench, &[]);
        assert!(!is_done && said.contains("is not there: move it away"), "{said}");
        let kept = read(bench, "b/.freewheel-moves/1/copy/elsewhere");
        assert_eq!(kept, Some("the only copy".into()));
        // Of one that is there, a part of a copy is worth nothing.
        write(bench, "elsewhere", "x");
        assert!(run_moves(bench, &[]).0);
        std::fs::remove_dir_all(bench.at("b")).unwrap();
        // The original went while it was copied.
        write(bench, "b/.freewheel-moves/1/of", &bench.at(&format!("a/{name}")));
        write(bench, &format!("b/.freewheel-moves/1/copy/{name}"), "the only copy");
        std::fs::remove_file(bench.at(&format!("a/{name}"))).unwrap();
        write(bench, &format!("b/{name}"), "another file");
        let (is_done, said) = run_moves(bench, &[]);
        assert!(!is_done && said.contains("may be its only copy"), "{said}");
        assert!(read(bench, &format!("b/.freewheel-moves/1/copy/{name}")).is_some());
    });
}

/// A file of 4 MB at 1 MB a second, killed after one and a half.
#[test]
fn killed_copy_resumes_and_gets_name_alone() {
    use std::os::unix::fs::MetadataExt;
    if !has_rsync() {
        return;
    }
    let bench = Bench::new("");
    stub(&bench, "mountpoint", "exit 0");
    let name = one_move(&bench, &disks(&bench, 512), &["--copy-rate", "1MB"]);
    let text: String = (0..500_000u32).map(|number| format!("{number:8}")).collect();
    write(&bench, &format!("a/{name}"), &text);
    let mut command = script(&bench, &[]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let child = command.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    kill(child, true);
    let part = bench.at(&format!("b/.freewheel-moves/1/copy/{name}"));
    let before = std::fs::metadata(&part).unwrap();
    assert!((1..text.len() as u64).contains(&before.len()), "{}", before.len());
    // What an older rsync left.
    write(&bench, "b/.freewheel-moves/1/copy/hot/.x.Ab3dEf", "a part");
    assert!(run_moves(&bench, &[]).0);
    assert_eq!(read(&bench, &format!("b/{name}")).as_ref(), Some(&text));
    let after = std::fs::metadata(bench.at(&format!("b/{name}"))).unwrap();
    assert_eq!(before.ino(), after.ino());
    assert_eq!(checksums(&bench.at("b/hot")).unwrap().len(), 1);
}

#[test]
fn again_keeps_copy_and_checks_note() {
    with_each_rsync(|bench| {
        let name = one_move(bench, &disks(bench, 512), &[]);
        std::fs::remove_file(bench.at(&format!("a/{name}"))).unwrap();
        for part in ["one", "two"] {
            write(bench, &format!("a/{name}/{part}"), part);
        }
        assert!(run_moves(bench, &[]).0);
        write(bench, &format!("a/{name}/one"), "changed since");
        let (is_done, said) = run_moves(bench, &[]);
        assert!(!is_done && said.contains("run sh moves.sh again 1"), "{said}");
        assert!(run_moves(bench, &["again", "1"]).0 && run_moves(bench, &[]).0);
        assert_eq!(read(bench, &format!("b/{name}/one")), Some("changed since".into()));
        // The removal of the original was cut off.
        std::fs::remove_file(bench.at(&format!("a/{name}/two"))).unwrap();
        let (is_done, said) = run_moves(bench, &["again", "1"]);
        assert!(!is_done && said.contains(&format!("{name}/two is not in")), "{said}");
        assert_eq!(read(bench, &format!("b/{name}/two")), Some("two".into()));
        std::fs::remove_dir_all(bench.at(&format!("a/{name}"))).unwrap();
        let (is_done, said) = run_moves(bench, &["again", "1"]);
        assert!(!is_done && said.contains("is not there"), "{said}");
        let (is_done, said) = run_moves(bench, &[]);
        assert!(is_done && said.contains("its original is gone"), "{said}");
    });
}

#[test]
fn copy_begins_only_on_documented_usage() {
    let bench = Bench::new("");
    let name = one_move(&bench, &disks(&bench, 512), &[]);
    stub(&bench, "mountpoint", "exit 0");
    stub(&bench, "rsync", RSYNC);
    let usage = "usage: sh moves.sh [N]";
    for args in [&["-n"][..], &["--dry-run"], &["x"], &["new-"], &["again"], &["1", "2"]] {
        let ran = script(&bench, args).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && said.contains(usage), "{args:?}: {said}");
    }
    let (is_done, said) = run_moves(&bench, &["--help"]);
    assert!(is_done && said.starts_with(usage), "{said}");
    for args in [&["2"][..], &["again", "new-1"]] {
        let (is_done, said) = run_moves(&bench, args);
        assert!(!is_done && said.contains("the plan has no such copy"), "{args:?}: {said}");
    }
    assert_eq!(read(&bench, &format!("b/{name}")), None);
}

#[test]
fn taken_name_is_free_after_rename() {
    with_each_rsync(|bench| {
        let twins = disks(bench, 512) + &file("hot//x/", 1, 0.0, "b") + &file("hot/y", 1, 0.0, "b");
        let name = one_move(bench, &twins, &[]);
        write(bench, &format!("b/{name}"), &name);
        let (is_done, said) = run_moves(bench, &[]);
        assert!(!is_done && said.contains("has another"), "{said}");
        std::fs::rename(bench.at(&format!("b/{name}")), bench.at("b/renamed")).unwrap();
        assert!(run_moves(bench, &[]).0 && run_moves(bench, &[]).0);
        std::fs::remove_file(bench.at(&format!("a/{name}"))).unwrap();
        assert!(run_moves(bench, &[]).0);
        assert_eq!(read(bench, &format!("b/{name}")), Some(name));
    });
}

/// The hottest file is new. It goes to b, in whose place an archive is that has to leave first.
#[test]
fn new_file_copied_once_move_makes_room() {
    with_each_rsync(|bench| {
        let new = |text: String| text.replace("disk = \"a\"\n", "");
        let files = [
            file("hot one", 210, 20.0, "a"),
            new(file("hot two", 150, 22.0, "a")),
            file("still", 300, 1.0, "b"),
            file("archive", 100, 0.01, "b"),
            new(file("fresh", 1, 0.0, "a")),
        ];
        let snapshot = write(bench, "new.toml", &(disks(bench, 512) + &files.concat()));
        let args =
            ["plan", "place", &snapshot, "--requests", "2000", "--out", &bench.at("out"), "--json"];
        let plan = document(&args);
        assert_eq!(plan["moves"][0]["file"], "archive");
        let placed = &plan["placed"][0];
        assert_eq!((&placed["disk"], &placed["after_moves"]), (&"b".into(), &1.into()), "{plan}");
        for name in ["a/hot one", "b/archive", "b/still", "new/hot two", "new/fresh"] {
            write(bench, name, name);
        }
        // The move alone needs no folder of new files.
        let (is_done, said) = run_moves(bench, &["1"]);
        assert!(!is_done && said.contains("a/archive is complete"), "{said}");
        let from = ["--from", &bench.at("./new/")];
        let (is_done, said) = run_moves(bench, &from);
        assert!(!is_done && said.contains("new-1: needs the room of"), "{said}");
        assert!(read(bench, "b/hot two").is_none());
        let fresh = plan["placed"][1]["disk"].as_str().unwrap();
        let fresh = format!("{fresh}/fresh");
        assert_eq!(read(bench, &fresh), Some("new/fresh".into()));
        std::fs::remove_file(bench.at("b/archive")).unwrap();
        assert!(run_moves(bench, &[&from[..], &["new-1"]].concat()).0);
        assert_eq!(read(bench, "b/hot two"), Some("new/hot two".into()));
        // One copy again, and no other.
        write(bench, "new/hot two", "newer");
        write(bench, "new/fresh", "newer");
        assert!(run_moves(bench, &[&from[..], &["again", "new-1"]].concat()).0);
        let read_both = ["b/hot two", &fresh].map(|name| read(bench, name).unwrap());
        assert_eq!(read_both, ["newer", "new/fresh"]);
    });
}

/// Disk b is full until its archive has gone to a; then one of the two hot files of a fits.
#[test]
fn moves_stop_when_unmounted_or_name_taken() {
    let bench = Bench::new("");
    let files = [
        file("hot one", 150, 20.0, "a"),
        file("hot two", 150, 20.0, "a"),
        file("archive", 150, 0.01, "b"),
        file("still", 280, 1.0, "b"),
    ];
    let snapshot = write(&bench, "full.toml", &(disks(&bench, 512) + &files.concat()));
    let args =
        ["plan", "place", &snapshot, "--requests", "2000", "--out", &bench.at("out"), "--json"];
    let moves = document(&args)["moves"].clone();
    assert_eq!((&moves[0]["file"], &moves[0]["makes_room"]), (&"archive".into(), &true.into()));
    let hot = moves[1]["file"].as_str().unwrap();
    for name in ["a/hot one", "a/hot two", "b/archive", "b/still"] {
        write(&bench, name, name);
    }
    stub(&bench, "mountpoint", "test -e \"$3/mounted\"");
    stub(&bench, "rsync", RSYNC);
    let (is_done, said) = run_moves(&bench, &[]);
    assert!(!is_done && said.contains("is not mounted"), "{said}");
    assert!(!Path::new(&bench.at("a/archive")).exists());
    write(&bench, "a/mounted", "");
    write(&bench, "b/mounted", "");
    // A file of that name with other contents.
    write(&bench, "a/archive", "older");
    let (is_done, said) = run_moves(&bench, &[]);
    assert!(!is_done && said.contains("is there and differs from"), "{said}");
    assert_eq!(std::fs::read_to_string(bench.at("a/archive")).unwrap(), "older");
    std::fs::remove_file(bench.at("a/archive")).unwrap();
    for _ in 0..2 {
        let (is_done, said) = run_moves(&bench, &[]);
        assert!(!is_done && said.contains("a/archive is complete"), "{said}");
        assert!(said.contains("needs the room of") && said.contains("sh moves.sh 2"), "{said}");
    }
    // What clients changed since.
    write(&bench, "b/archive", "newer");
    let (is_done, said) = run_moves(&bench, &["again", "1"]);
    assert!(is_done && said.contains("a/archive is complete"), "{said}");
    assert_eq!(std::fs::read_to_string(bench.at("a/archive")).unwrap(), "newer");
    std::fs::remove_file(bench.at("b/archive")).unwrap();
    let (is_done, said) = run_moves(&bench, &[]);
    assert!(is_done && said.contains(&format!("b/{hot} is complete")), "{said}");
    let moved = std::fs::read_to_string(bench.at(&format!("b/{hot}"))).unwrap();
    assert_eq!(moved, format!("a/{hot}"));
    assert!(!Path::new(&bench.at("a/.freewheel-moves")).exists(), "its original is gone");
}

/// Kills a script; all that it started, or it alone.
fn kill(mut child: Child, with_children: bool) {
    let id = child.id();
    let target = if with_children { format!("-{id}") } else { id.to_string() };
    let kill = format!("kill -9 {target}");
    let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
    // Where it has ended already no process is left to kill.
    assert!(killed.success() || child.try_wait().unwrap().is_some());
    child.wait().unwrap();
}

/// Folder `hot/x` with eight files goes from a to b. Every step takes a while, and the script is killed in
/// each of thirty parts of that time.
#[test]
fn killed_copy_finished_by_next_run() {
    let bench = Bench::new("");
    let files = file("hot/x", 150, 20.0, "a") + &file("hot/y", 150, 19.0, "a");
    let snapshot = write(&bench, "two.toml", &(disks(&bench, 512) + &files));
    stdout(&["plan", "place", &snapshot, "--requests", "2000", "--out", &bench.at("out")]);
    for number in 0..8u8 {
        let text: String =
            (0..30_000u32).map(|at| char::from(b'a' + (at % 23) as u8 + number % 3)).collect();
        for folder in ["hot/x", "hot/y"] {
            write(&bench, &format!("a/{folder}/{}/{number}", number % 2), &text);
        }
    }
    std::fs::create_dir_all(bench.at("b")).unwrap();
    stub(&bench, "mountpoint", "exit 0");
    stub(&bench, "rsync", RSYNC);
    stub(&bench, "sync", "sleep 0.05");
    stub(&bench, "mv", "sleep 0.05; /bin/mv \"$@\"; sleep 0.05");
    let is_of_x = std::fs::read_to_string(bench.at("out/moves.sh")).unwrap().contains("'hot/x' '");
    let name = if is_of_x { "hot/x" } else { "hot/y" };
    let (original, copy) = (bench.at(&format!("a/{name}")), bench.at(&format!("b/{name}")));
    let whole = checksums(&original).unwrap();
    assert_eq!(whole.len(), 8);
    let started = Instant::now();
    assert!(run_moves(&bench, &[]).0);
    let takes = started.elapsed();
    assert_eq!(checksums(&copy), Some(whole.clone()));
    let (mut in_the_middle, mut after_the_rename) = (0, 0);
    for part in 0..30u32 {
        std::fs::remove_dir_all(bench.at("b")).unwrap();
        std::fs::create_dir_all(bench.at("b")).unwrap();
        // Twice, so that what a killed run leaves behind meets another kill.
        for again in 0..2 {
            let mut command = script(&bench, &[]);
            command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
            let child = command.spawn().unwrap();
            std::thread::sleep(takes * part / 30 / (1 + again));
            kill(child, (part + again) % 2 == 0);
            assert_eq!(checksums(&original).as_ref(), Some(&whole), "the original, part {part}");
            match checksums(&copy) {
                None => {
                    in_the_middle +=
                        u32::from(Path::new(&bench.at("b/.freewheel-moves/1/copy")).exists())
                }
                Some(copied) => {
                    assert_eq!(copied, whole, "a copy in part, part {part}");
                    after_the_rename += 1;
                }
            }
        }
        let (is_done, said) = run_moves(&bench, &[]);
        assert!(is_done && said.contains("is complete"), "part {part}: {said}");
        assert_eq!(checksums(&copy).as_ref(), Some(&whole), "the copy, part {part}");
        assert_eq!(checksums(&original).as_ref(), Some(&whole), "the original, part {part}");
    }
    assert!(in_the_middle > 5 && after_the_rename > 0, "{in_the_middle} {after_the_rename}");
    // Without the original nothing of the copies' own is left.
    std::fs::remove_dir_all(&original).unwrap();
    assert!(run_moves(&bench, &[]).0);
    assert_eq!(
        (checksums(&copy), Path::new(&bench.at("b/.freewheel-moves")).exists()),
        (Some(whole), false)
    );
}

/// A copy whose size is right and whose contents are not, as a power cut leaves it.
#[test]
fn copy_named_only_with_original_contents() {
    let bench = Bench::new("");
    let files = file("hot", 150, 20.0, "a") + &file("warm", 150, 19.0, "a");
    let snapshot = write(&bench, "two.toml", &(disks(&bench, 512) + &files));
    stdout(&["plan", "place", &snapshot, "--requests", "2000", "--out", &bench.at("out")]);
    let commands = std::fs::read_to_string(bench.at("out/moves.sh")).unwrap();
    let name = if commands.contains("'hot' '") { "hot" } else { "warm" };
    write(&bench, &format!("a/{name}"), "contents");
    std::fs::create_dir_all(bench.at("b")).unwrap();
    stub(&bench, "mountpoint", "exit 0");
    // Never copies its files.
    let never =
        RSYNC.replace("mv \"$folder", "echo damaged >\"$folder/.being copied\"; mv \"$folder");
    stub(&bench, "rsync", &never);
    let (is_done, said) = run_moves(&bench, &[]);
    assert!(!is_done && said.contains("changes while it is copied"), "{said}");
    assert!(!Path::new(&bench.at(&format!("b/{name}"))).exists());
    stub(&bench, "rsync", RSYNC);
    assert!(run_moves(&bench, &[]).0);
    assert_eq!(std::fs::read_to_string(bench.at(&format!("b/{name}"))).unwrap(), "contents");
}

/// A log of pages, some of which no folder has.
fn log_of_pages(bench: &Bench) -> String {
    let line = |second: u32, path: &str| {
        format!(
            "www.example:443 192.0.2.1 - - [01/Aug/2024:00:00:0{second} +0000] \"GET {path} HTTP/1.1\" 200 900\n"
        )
    };
    let paths = [
        "/a%20b.html",
        "/a%20b.html?x=1",
        "/../etc/passwd",
        "/%2e%2e/etc/passwd",
        "/gone.gif",
        "/it's",
        "/",
        "/%ff",
        "http://other.example/",
    ];
    let lines: String = (0..).zip(paths).map(|(second, path)| line(second, path)).collect();
    let other = line(9, "/page").replace("www.", "img.");
    write(bench, "access.log", &(lines + &other))
}

#[test]
fn log_files_copied_from_named_folder() {
    let bench = Bench::new("");
    let log = log_of_pages(&bench);
    let args = ["plan", "place", &log, "--disks", "2", "--drive", "tr96", "--requests", "1000"];
    let said = stdout(&[&args[..], &["--out", &bench.at("out")]].concat());
    assert!(said.contains("commands: "), "{said}");
    let commands = std::fs::read_to_string(bench.at("out/moves.sh")).unwrap();
    assert!(!commands.contains("passwd"), "{commands}");
    for reason in [
        "2, as `..` leads out of the folder",
        "1, as a server chooses the page of a folder",
        "1, as their names are no text",
        "1, as their names are no paths",
    ] {
        let comment = format!("\n# New files that are not copied: {reason}");
        assert!(commands.contains(&comment), "{reason}: {commands}");
    }
    assert_eq!(
        commands.lines().filter(|line| line.starts_with("new new-")).count(),
        4,
        "{commands}"
    );
    for (name, text) in [
        ("www.example/a b.html", "one"),
        ("www.example/it's", "two"),
        ("img.example/page", "three"),
    ] {
        write(&bench, &format!("www/{name}"), text);
    }
    for disk in ["one", "two"] {
        std::fs::create_dir_all(bench.at(disk)).unwrap();
    }
    stub(&bench, "mountpoint", "exit 1");
    stub(&bench, "rsync", RSYNC);
    let (is_done, said) = run_moves(&bench, &[]);
    assert!(!is_done && said.contains("--from FOLDER"), "{said}");
    let folders = ["--from", &bench.at("www"), "--to", &bench.at("one"), "--to", &bench.at("two")];
    for _ in 0..2 {
        let (is_done, said) = run_moves(&bench, &folders);
        assert!(
            is_done
                && said.contains("gone.gif is not in")
                && said.contains("new files that are not in"),
            "{said}"
        );
    }
    let [one, two] = ["one", "two"].map(|disk| checksums(&bench.at(disk)).unwrap());
    let mut copied: BTreeMap<String, String> = one.clone().into_iter().chain(two.clone()).collect();
    copied.retain(|path, _| !path.contains(".freewheel-moves"));
    assert_eq!(Some(copied), checksums(&bench.at("www")));
    // The folders may stand in the script as well.
    let filled = commands.replace("from=\n", &format!("from='{}'\n", bench.at("www")));
    let filled = filled.replace("disk_1=\n", &format!("disk_1='{}'\n", bench.at("one")));
    bench.put(
        "out/moves.sh",
        &filled.replace("disk_2=\n", &format!("disk_2='{}'\n", bench.at("two"))),
    );
    assert!(run_moves(&bench, &[]).0);
}

#[test]
fn plan_without_commands_has_no_script() {
    let bench = Bench::new("");
    let line = |number: u64| {
        format!("{}.000000\t{}\t{}\t8\t1\n", number * 9, number % 10 / 9, (number % 40) << 17)
    };
    let text: String = (0..2000).map(line).collect();
    let trace = write(&bench, "two.trace", &text);
    write(&bench, "out/moves.sh", "of an earlier plan");
    let args = ["plan", "place", &trace, "--drive", "atlas10k", "--requests", "2000"];
    let said = stdout(&[&args[..], &["--out", &bench.at("out")]].concat());
    assert!(said.starts_with("Move ") && !said.contains("commands"), "{said}");
    assert!(!Path::new(&bench.at("out/moves.sh")).exists());
    let page = std::fs::read_to_string(bench.at("out/plan.html")).unwrap();
    assert!(!page.contains("Commands"));
}
