//! A run that a signal ends leaves no file.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// Names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A trace that takes long to convert.
fn long_trace() -> String {
    let mut text = "arrival_ns,op,offset_bytes,length_bytes,fua,complete_ns\n".to_owned();
    for at in 0..400_000u64 {
        writeln!(text, "{},R,{},4096,0,", at * 1000, at * 7919 % 1_000_000 * 4096).unwrap();
    }
    text
}

/// Waits until the program has a file open in this folder that is none of those that were there, named or
/// not; false if it ends before.
fn has_begun(child: &mut Child, folder: &Path, before: &[String]) -> bool {
    let open = PathBuf::from(format!("/proc/{}/fd", child.id()));
    loop {
        // Of a program that ends meanwhile no file is left.
        let links = fs::read_dir(&open).into_iter().flatten();
        let mut links = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let is_new = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            path.starts_with(folder) && !before.contains(&name)
        };
        if links.any(|path| is_new(&path)) {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        thread::yield_now();
    }
}

/// True if no file can stay in this folder after a signal: SIGKILL leaves files that have a name, where the
/// file system knows no others.
fn may_be_killed(signal: &str, folder: &Path) -> bool {
    // O_TMPFILE with O_DIRECTORY.
    let flags = 0o20_000_000 | if cfg!(target_arch = "x86_64") { 0o200_000 } else { 0o40_000 };
    match File::options().write(true).custom_flags(flags).open(folder) {
        Err(error) if signal == "-KILL" => {
            println!("skipped: SIGKILL: {} has no files without a name: {error}", folder.display());
            false
        }
        _ => true,
    }
}

/// The program, ended by SIGINT also where a shell in the background ignores that for all that it starts.
fn interruptible(args: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_freewheel")]).args(args);
    command
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

#[test]
fn conversion_ended_by_signal_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    fs::write(at("in.csv"), long_trace()).unwrap();
    fs::write(at("old.parquet"), "what was there").unwrap();
    let before = names(&folder);
    let signals = [("-INT", 2), ("-TERM", 15), ("-KILL", 9)];
    for (name, number) in signals.into_iter().filter(|(name, _)| may_be_killed(name, &folder)) {
        for out in ["out.parquet", "out.csv", "old.parquet"] {
            let mut command = interruptible(&["trace", "convert", &at("in.csv"), &at(out)]);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            assert!(has_begun(&mut child, &folder, &before), "{out}: it ended before its signal");
            signal(&child, name);
            let ended = child.wait().unwrap();
            assert_eq!(ended.signal(), Some(number), "{name} {out}: {ended}");
            assert_eq!(names(&folder), before, "{name} {out}");
        }
    }
    assert_eq!(fs::read_to_string(at("old.parquet")).unwrap(), "what was there");
}

#[test]
fn piped_trace_copy_removed_on_signal() {
    let folder = tempfile::tempdir().unwrap();
    let trace = long_trace();
    for (name, number) in [("-INT", 2), ("-TERM", 15)] {
        let mut command = interruptible(&["trace", "info", "-"]);
        command.env("TMPDIR", folder.path()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // More than is kept in memory, and no end.
        pipe.write_all(&trace.as_bytes()[..2 << 20]).unwrap();
        let there = folder.path().canonicalize().unwrap();
        assert!(has_begun(&mut child, &there, &[]), "it ended before its signal");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert!(names(folder.path()).is_empty(), "{name}: {:?}", names(folder.path()));
    }
}

#[test]
fn signal_ignored_by_shell_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_freewheel")])
        .args(["trace", "info", "-"])
        .env("TMPDIR", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&long_trace().as_bytes()[..2 << 20]).unwrap();
    let there = folder.path().canonicalize().unwrap();
    assert!(has_begun(&mut child, &there, &[]), "it ended too early");
    signal(&child, "-HUP");
    pipe.write_all(b"\n").unwrap();
    drop(pipe);
    let ended = child.wait().unwrap();
    assert!(ended.signal().is_none(), "as nohup has it: {ended}");
}
