//! `freewheel serve`, as its clients and its user see it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::nbd::{Client, Running};
use super::run::{command, run};

/// Bytes of the Atlas 10K.
const ATLAS_BYTES: u64 = 9_199_079_936;

/// A file as large as the Atlas 10K, of which nothing is there.
pub fn disk(folder: &Path) -> String {
    let path = folder.join("disk");
    File::create(&path).unwrap().set_len(ATLAS_BYTES).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_was_written_to_a_file_survives_kill_9_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, socket) = (disk(folder.path()), folder.path().join("socket"));
    let socket_text = socket.to_str().unwrap();
    let args = ["serve", &disk, "--drive", "atlas10k", "--socket", socket_text, "--scrub"];
    let mut first = Running::start(&args);
    let mut client = Client::connect(&socket);
    for at in 0..40_u64 {
        client.write(at << 20, &[at as u8 + 1; 8192]);
    }
    first.signal("-9");
    assert_eq!(first.end().1, None, "killed");
    let _second = Running::start(&args);
    let mut client = Client::connect(&socket);
    for at in 0..40_u64 {
        assert_eq!(client.read(at << 20, 8192), vec![at as u8 + 1; 8192]);
    }
}

#[test]
fn a_scrub_behind_reads_of_an_emulated_drive_is_reported_with_what_was_foreseen() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let args = [
        "serve",
        "emulated:exos-7e8-8tb",
        "--drive",
        "exos-7e8-8tb",
        "--socket",
        socket.to_str().unwrap(),
        "--scrub",
        "--json",
    ];
    let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("scrubbed in its gaps"), "{line}");
    let mut client = Client::connect(&socket);
    (0..60_u64).for_each(|at| drop(client.read((at * 7_919 % 6_000) << 30, 4096)));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["responses"]["count"], 60);
    assert!(document["external"]["predicted"].as_u64().unwrap() > 30, "{document}");
    assert!(document["scrub"]["bytes"].as_u64().unwrap() > 0, "{document}");
    assert_eq!(document["scrub"]["unreadable"], serde_json::json!([]));
}

#[test]
fn a_device_that_is_not_the_drive_is_refused_with_both_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(folder.path());
    let socket = folder.path().join("socket");
    let socket = socket.to_str().unwrap();
    let ran = run(&["serve", &disk, "--drive", "cheetah9lp", "--socket", socket]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for text in ["17966953 blocks", "cheetah9lp", "--drive"] {
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    }
    let ran = run(&["serve", "/no/such", "--drive", "atlas10k", "--socket", socket]);
    assert!(ran.stderr.contains("/no/such: "), "{}", ran.stderr);
}
