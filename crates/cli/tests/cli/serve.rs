//! `freewheel serve`, as its clients and its user see it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use super::nbd::{Client, Running};
use super::run::{command, finish, run};

/// Bytes of the Atlas 10K.
const ATLAS_BYTES: u64 = 9_199_079_936;

/// A file as large as the Atlas 10K, all holes.
pub fn disk(folder: &Path) -> String {
    let path = folder.join("disk");
    File::create(&path).unwrap().set_len(ATLAS_BYTES).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Starts a server with `--io uring`; None where the system has no ring or forbids it, which is printed.
fn with_ring(args: &[&str]) -> Option<Running> {
    let running = Running::start(args);
    if !running.first_line.is_empty() {
        return Some(running);
    }
    let why = run(args).stderr;
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    let is_disabled = disabled.is_ok_and(|how| how.trim() != "0");
    // EPERM and ENOSYS.
    let is_absent = ["(os error 1)", "(os error 38)"].iter().any(|code| why.contains(code));
    assert!(why.contains("no io_uring") && (is_disabled || is_absent), "{why}");
    println!("skipped: {why}");
    None
}

#[test]
fn shared_device_is_called_shared() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, socket) = (disk(folder.path()), folder.path().join("socket"));
    let mut command = command(&["serve", &disk, "--drive", "atlas10k", "--shared-device"]);
    command.arg("--socket").arg(&socket).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    // It listens.
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    server.kill().unwrap();
    let said = String::from_utf8(server.wait_with_output().unwrap().stderr).unwrap();
    let note = format!("{disk} is shared (no other use is known): another program may write");
    assert!(said.contains(&note), "{said}");
}

#[test]
fn served_file_writes_survive_kill_9() {
    for io in ["threads", "uring"] {
        let folder = tempfile::tempdir().unwrap();
        let (disk, socket) = (disk(folder.path()), folder.path().join("socket"));
        let socket_text = socket.to_str().unwrap();
        let drive = ["--drive", "atlas10k", "--socket", socket_text, "--scrub", "--io", io];
        let args = [&["serve", &disk], &drive[..]].concat();
        let mut first = match io {
            "uring" => match with_ring(&args) {
                Some(running) => running,
                None => continue,
            },
            _ => Running::start(&args),
        };
        assert!(first.first_line.contains(&format!(" by {io}")), "{}", first.first_line);
        let mut client = Client::connect(&socket);
        for at in 0..40_u64 {
            client.write(at << 20, &[at as u8 + 1; 8192]);
        }
        first.signal("-9");
        assert_eq!(first.end().1, None, "killed");
        let _second = Running::start(&args);
        let mut client = Client::connect(&socket);
        for at in 0..40_u64 {
            assert_eq!(client.read(at << 20, 8192), vec![at as u8 + 1; 8192], "{io}");
        }
    }
}

#[test]
fn scrub_behind_emulated_reads_reports_predictions() {
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
    let (child, _stderr) = documented(&args);
    let mut client = Client::connect(&socket);
    (0..60_u64).for_each(|at| drop(client.read((at * 7_919 % 6_000) << 30, 4096)));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["responses"]["count"], 60);
    assert!(document["host"]["predicted"].as_u64().unwrap() > 30, "{document}");
    let decisions = &document["decisions"];
    let count = decisions["count"].as_u64().unwrap();
    assert!(count >= document["host"]["gaps_used"].as_u64().unwrap(), "{document}");
    assert!(decisions["nodes"].as_u64().unwrap() > 0, "{document}");
    assert!(decisions["exhausted"].as_u64().unwrap() <= count, "{document}");
    assert_eq!(decisions["times"]["count"], count);
    let scrub = &document["tasks"][0];
    assert!(scrub["blocks_read"].as_u64().unwrap() > 0, "{document}");
    assert_eq!((&scrub["kind"], &scrub["unreadable_blocks"]), (&"scrub".into(), &0.into()));
}

#[test]
fn sectors_512e_told_partial_writes_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (socket, control) = (path("socket"), path("socket.control"));
    let drive = "emulated:exos-7e8-8tb?sector=512e";
    let running = Running::start(&["serve", drive, "--drive", "exos-7e8-8tb", "--socket", &socket]);
    let told = "sectors of 512B logical and 4KiB physical";
    assert!(running.first_line.contains(told), "{}", running.first_line);
    let mut client = Client::connect(Path::new(&socket));
    client.write(1 << 30, &[1; 4096]);
    (0..3_u64).for_each(|at| client.write((1 << 30) + at * 512, &[2; 512]));
    client.write((2 << 30) - 512, &[3; 4096]);
    assert_eq!(client.read(1 << 30, 4096), [[2; 1536].as_slice(), &[1; 2560]].concat());
    let text = run(&["tasks", "--control", &control]).stdout;
    assert!(text.contains("part-sector writes  4, each a turn more: sectors are 4KiB"), "{text}");
    let status = run(&["tasks", "--control", &control, "--json"]).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["sectors"]["physical_bytes"], 4096, "{status}");
    assert_eq!(status["scheduling"]["part_sector_writes"], 4, "{status}");
}

/// Starts a server that prints one document at the end; its stderr from the second line on.
fn documented(args: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("nbdinfo"), "{line}");
    (child, stderr)
}

#[test]
fn served_remote_drive_scrubs_and_keeps_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (beneath, front) = (path("beneath"), path("front"));
    let drive = "exos-7e8-8tb";
    let mut emulated = Running::start(&["emulate", drive, "--socket", &beneath]);
    let uri = format!("nbd+unix:///?socket={beneath}");
    let other = run(&["serve", &uri, "--drive", "atlas10k", "--socket", &front]);
    assert_eq!(other.code, 1, "{}", other.stderr);
    for size in ["15,628,053,168 blocks", "17,966,953 blocks"] {
        assert!(other.stderr.contains(size), "{}", other.stderr);
    }
    let args = ["serve", &uri, "--drive", drive, "--socket", &front, "--scrub", "--json"];
    let (mut first, _stderr) = documented(&args);
    let mut client = Client::connect(Path::new(&front));
    let place = |at: u64| (at * 7_919 % 6_000) << 30;
    for at in 0..40_u64 {
        client.write(place(at), &[at as u8 + 1; 8192]);
    }
    client.flush();
    first.kill().unwrap();
    first.wait().unwrap();
    let (second, mut stderr) = documented(&args);
    let mut client = Client::connect(Path::new(&front));
    for at in 0..40_u64 {
        assert_eq!(client.read(place(at), 8192), vec![at as u8 + 1; 8192]);
    }
    emulated.signal("-TERM");
    assert_eq!(emulated.end().1, Some(0));
    let mut said = String::new();
    while !said.contains("is gone") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(said.contains(&uri), "{said}");
    let id = second.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let document = second.wait_with_output().unwrap().stdout;
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let scrub = &document["tasks"][0];
    assert!(scrub["blocks_read"].as_u64().unwrap() > 0, "{document}");
    assert_eq!((&scrub["state"], &scrub["unreadable_blocks"]), (&"lost".into(), &0.into()));
}

#[test]
fn device_unlike_drive_refused_with_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(folder.path());
    let socket = folder.path().join("socket");
    let socket = socket.to_str().unwrap();
    let ran = run(&["serve", &disk, "--drive", "cheetah9lp", "--socket", socket]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for text in ["17,966,953 blocks", "cheetah9lp", "--drive"] {
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    }
    let ran = run(&["serve", "/no/such", "--drive", "atlas10k", "--socket", socket]);
    assert!(ran.stderr.contains("/no/such: "), "{}", ran.stderr);
}

#[test]
fn control_socket_needs_name_without_user_folder() {
    let args = ["serve", "emulated:atlas10k", "--drive", "atlas10k", "--listen", "127.0.0.1:0"];
    let ran = finish(command(&args).env_remove("XDG_RUNTIME_DIR").output().unwrap());
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("--control PATH is missing"), "{}", ran.stderr);
}

#[test]
fn serve_refuses_impossible_with_allowed_values() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let socket = socket.to_str().unwrap();
    let refused = |backend: &str, drive: &str, more: &[&str], code: i32, texts: &[&str]| {
        let args = ["serve", backend, "--drive", drive, "--socket", socket];
        let ran = run(&[&args[..], more].concat());
        assert_eq!(ran.code, code, "{}", ran.stderr);
        for text in texts {
            assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
    };
    refused("/no/such", "exos-2x18-18tb", &[], 1, &["2 actuators", "actuators = 1"]);
    refused("/no/such", "ultrastar-hc620-14tb", &[], 1, &["host-managed"]);
    let emulated = "emulated:atlas10k";
    let long = ["--conservatism", "200ms"];
    refused(emulated, "atlas10k", &long, 2, &["--conservatism 200ms", "at most 100ms"]);
    let none = ["--budget", "0"];
    refused(emulated, "atlas10k", &none, 2, &["--budget 0", "0.000001 to 1 is allowed"]);
    let large = ["--scrub", "--block-size", "2MiB"];
    refused(emulated, "atlas10k", &large, 2, &["--block-size is 2MiB", "512 B to 1MiB"]);
    let part = ["--scrub", "--block-size", "1000B"];
    refused(emulated, "atlas10k", &part, 2, &["--block-size is 1KB", "whole blocks of 512 B"]);
    refused("http://localhost/", "atlas10k", &[], 2, &["http://localhost/", "nbd"]);
    let nobody = format!("nbd+unix:///?socket={}/nobody", folder.path().display());
    refused(&nobody, "atlas10k", &["--timeout", "1ms"], 2, &["--timeout 1ms", "1s to"]);
    refused(&nobody, "atlas10k", &[], 1, &[&nobody, "No such file"]);
    refused(emulated, "atlas10k", &["--io", "uring"], 2, &["--io is about files", emulated]);
    let shared = ["--shared-device"];
    refused(emulated, "atlas10k", &shared, 2, &["--shared-device is about files", emulated]);
    let timeout = ["--timeout", "60s"];
    refused(emulated, "atlas10k", &timeout, 2, &["--timeout is about NBD servers", emulated]);
    refused("/no/such", "atlas10k", &timeout, 2, &["--timeout is about NBD servers", "/no/such"]);
    refused("emulated:atlas10k?depth=2", "atlas10k", &[], 2, &["depth", "seek_jitter"]);
    refused("emulated:atlas10k?bad=99999999", "atlas10k", &[], 2, &["last block of atlas10k"]);
    refused("emulated:atlas10k?store=x", "atlas10k", &[], 2, &["freewheel emulate --store"]);
    refused(
        "emulated:tr96?write_cache=on",
        "tr96",
        &[],
        2,
        &["write_cache=on: tr96 has no buffer"],
    );
    let one = "emulated:atlas10k?queue_depth=1&queue_policy=sptf";
    refused(one, "atlas10k", &[], 1, &["`queue_policy` is sptf", "one command", "`queue_depth`"]);
}
