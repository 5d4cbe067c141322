//! Copies of a served drive, by the verb.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use super::control::{World, interrupt};
use super::nbd::Running;
use super::run::{command, run, run_with_files_of};

#[test]
fn backup_is_of_beginning_named_at_end() {
    let mut world = World::file();
    let mut client = world.client();
    for at in 0..world.blocks / 64 {
        client.write(at * 64 * 512, &[at as u8 + 1; 64 * 512]);
    }
    let before = fs::read(world.path("data")).unwrap();
    let (out, control) = (world.path("copy"), world.control());
    let args = ["backup", out.to_str().unwrap(), "--control", control.to_str().unwrap()];
    let mut first = command(&args).spawn().unwrap();
    while world.json("tasks")["tasks"].as_array().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // Reads make gaps; writes overtake what has not been read.
    for at in 0..40 {
        client.write((at * 7919 % world.blocks) / 8 * 4096, &[0xaa; 512]);
    }
    let copied = world.json("tasks")["tasks"][0]["copied_blocks"].as_u64().unwrap();
    assert!(copied > 100, "{copied}");
    world.verb("promote 1");
    assert!(first.wait().unwrap().success());
    assert!(fs::read(&out).unwrap() == before);
    assert!(fs::read(world.path("data")).unwrap() != before);
    assert!(world.path("copy.manifest").exists() && !world.path("copy.partial").exists());
    for name in ["copy", "copy.manifest"] {
        let mode = world.path(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name} is for its maker alone");
    }
    world.server.signal("-TERM");
    assert_eq!(world.server.end().1, Some(0));
    assert!(!world.control().exists());
}

#[test]
fn backup_refused_without_room_leaves_nothing() {
    let world = World::emulated("");
    let (out, control) = (world.path("copy"), world.control());
    let args = ["backup", out.to_str().unwrap(), "--control", control.to_str().unwrap()];
    // Room for the record, but not for the copy.
    for (blocks, says) in
        [(1000, "copy.partial: no file here may have "), (0, "nothing of it remains")]
    {
        let ran = run_with_files_of(blocks, &args);
        assert!(ran.code == 1 && ran.stderr.contains(says), "{}", ran.stderr);
        assert!(!world.path("copy.partial").exists());
        assert!(!world.path("copy.partial.manifest").exists());
    }
    assert_eq!(world.json("tasks")["tasks"].as_array().unwrap().len(), 0);
}

#[test]
fn backup_refuses_partial_open_to_others() {
    let world = World::emulated("");
    let (out, control) = (world.path("copy"), world.control());
    let args = ["backup", out.to_str().unwrap(), "--control", control.to_str().unwrap()];
    let partial = world.path("copy.partial");
    fs::write(&partial, "").unwrap();
    fs::set_permissions(&partial, fs::Permissions::from_mode(0o666)).unwrap();
    let ran = run(&args);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let says = "copy.partial: has the mode 0666, so that other users may open it";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    assert_eq!(fs::metadata(&partial).unwrap().len(), 0);
    assert!(!world.path("copy.partial.manifest").exists());
    assert_eq!(world.json("tasks")["tasks"].as_array().unwrap().len(), 0);
}

#[test]
fn backup_keeps_old_parts_when_record_fails() {
    let (before, world) = (World::emulated(""), World::emulated(""));
    let [partial, record] = ["copy.partial", "copy.partial.manifest"]
        .map(|name| world.path(name).display().to_string());
    let ran = before.verb(&format!("scrub --promote --manifest {record}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    fs::write(&partial, "days of it").unwrap();
    for path in [&partial, &record] {
        // As a backup makes them.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let (out, control) = (world.path("copy"), world.control());
    let args = ["backup", out.to_str().unwrap(), "--control", control.to_str().unwrap()];
    let ran = run_with_files_of(0, &args);
    assert!(ran.code == 1 && ran.stderr.contains("nothing of it remains"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&partial).unwrap(), "days of it");
    assert!(fs::metadata(&record).unwrap().len() > 0);
}

#[test]
fn killed_backup_resumes_from_record() {
    // Reading the bad block again and again leaves the time to kill.
    let world = World::emulated("?bad=9000&recovery=1s");
    let mut client = world.client();
    client.write(512 * 100, &[5; 8192]);
    std::thread::sleep(Duration::from_millis(1100));
    let (out, control) = (world.path("copy"), world.control());
    let args =
        ["backup", out.to_str().unwrap(), "--promote", "--control", control.to_str().unwrap()];
    let mut first = command(&args).stderr(Stdio::null()).spawn().unwrap();
    let record = || fs::read_to_string(world.path("copy.partial.manifest")).unwrap_or_default();
    while !record().contains("\nregion 6144 2048 ") {
        assert!(first.try_wait().unwrap().is_none(), "it ended without a record");
        std::thread::sleep(Duration::from_millis(10));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // A block that is written can be read again.
    client.write(512 * 9000, &[6; 512]);
    let ran = run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("read back and right"), "{}", ran.stdout);
    let tasks = world.json("tasks");
    assert_eq!(tasks["tasks"][0]["state"], "aborted", "its reader went");
    let read = tasks["tasks"][1]["blocks"].as_u64().unwrap();
    assert!(read <= world.blocks - 4 * 2048, "four MiB at least are kept: {read}");
    let copy = fs::read(&out).unwrap();
    for at in 0..world.blocks / 64 {
        let here = &copy[at as usize * 64 * 512..][..64 * 512];
        assert!(here == client.read(at * 64 * 512, 64 * 512), "{at}");
    }
    let ran = run(&args);
    assert!(ran.stderr.contains("is there already"), "{}", ran.stderr);
}

#[test]
fn backup_interrupted_by_ctrl_c_resumes() {
    let world = World::emulated("?bad=9000&recovery=1s");
    let (out, control) = (world.path("copy"), world.control());
    let args =
        ["backup", out.to_str().unwrap(), "--promote", "--control", control.to_str().unwrap()];
    let mut first = command(&args).stderr(Stdio::piped()).spawn().unwrap();
    while world.json("tasks")["tasks"][0]["blocks_read"].as_u64().unwrap_or(0) < 8192 {
        assert!(first.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(10));
    }
    interrupt(&first);
    let ended = first.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("the same command continues it"), "{said}");
    world.client().write(512 * 9000, &[6; 512]);
    let ran = run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("note: going on: "), "{}", ran.stderr);
    assert!(ran.stderr.contains(" are there and unchanged\n"), "{}", ran.stderr);
    assert!(world.verb("tasks").stdout.contains("backup  aborted"), "not promoted any more");
}

#[test]
fn aborted_backup_keeps_blocks_not_rewritten() {
    // Reading the bad block again and again leaves the time to abort.
    let world = World::emulated("?bad=9000&recovery=300ms");
    let mut client = world.client();
    // A block that is written can be read again.
    for at in (0..world.blocks / 64).filter(|&at| at != 9000 / 64) {
        client.write(at * 64 * 512, &[at as u8 + 1; 64 * 512]);
    }
    // What was written in the second before counts as written since.
    std::thread::sleep(Duration::from_millis(1100));
    let (out, control) = (world.path("copy"), world.control());
    let args =
        ["backup", out.to_str().unwrap(), "--promote", "--control", control.to_str().unwrap()];
    let mut first = command(&args).stderr(Stdio::null()).spawn().unwrap();
    let read = || world.json("tasks")["tasks"][0]["blocks_read"].as_u64().unwrap_or(0);
    while read() < 8400 {
        std::thread::sleep(Duration::from_millis(10));
    }
    world.verb("abort 1");
    assert_eq!(first.wait().unwrap().code(), Some(1));
    client.write(3000 * 512, &[0xbb; 512]);
    // Long enough that it was not written since the second began, only since the first.
    std::thread::sleep(Duration::from_millis(1100));
    let waiting = args.iter().filter(|&&arg| arg != "--promote").copied().collect::<Vec<_>>();
    let mut second = command(&waiting).stderr(Stdio::null()).spawn().unwrap();
    while world.json("tasks")["tasks"][1]["state"] != "running" {
        std::thread::sleep(Duration::from_millis(10));
    }
    world.verb("abort 2");
    assert_eq!(second.wait().unwrap().code(), Some(1));
    // It was not promoted: what was written has mostly not been sent again, and is on record as it
    // was.
    let ran = run(&args);
    assert!(ran.stderr.contains("1 block could not be read"), "{}", ran.stderr);
    assert!(ran.stdout.contains("MiB were there from before"), "{}", ran.stdout);
    let task = &world.json("tasks")["tasks"][2];
    assert!(task["blocks"].as_u64().unwrap() < world.blocks - 2 * 2048, "{task}");
    let copy = fs::read(&out).unwrap();
    for at in (0..world.blocks / 64).filter(|&at| at != 9000 / 64) {
        let here = &copy[at as usize * 64 * 512..][..64 * 512];
        assert!(here == client.read(at * 64 * 512, 64 * 512), "{at}");
    }
}

#[test]
fn backup_restarts_after_server_goes() {
    let mut world = World::emulated("?bad=9000&recovery=1s");
    let (out, control) = (world.path("copy"), world.control());
    let control = control.to_str().unwrap();
    let copy = ["backup", out.to_str().unwrap(), "--promote", "--control", control];
    let start = |args: &[&str]| {
        let mut command = command(args);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let copying = start(&copy);
    while world.json("tasks")["tasks"][0]["blocks_read"].as_u64().unwrap_or(0) < 8192 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let waiting = start(&["scan", "--control", control]);
    while world.json("tasks")["tasks"].as_array().unwrap().len() < 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
    world.server.signal("-KILL");
    world.server.end();
    for (child, help) in [
        (copying, "when a server runs again the same command begins anew"),
        (waiting, "start `freewheel serve` again, and then this command"),
    ] {
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(said.contains("error: the server has gone"), "{said}");
        assert!(said.contains(help) && !said.contains("--control"), "{said}");
    }
    let (drive, socket) = (world.path("small.toml"), world.path("socket"));
    let (drive, socket) = (drive.to_str().unwrap(), socket.to_str().unwrap());
    let backend = format!("emulated:{drive}");
    world.server = Running::start(&["serve", &backend, "--drive", drive, "--socket", socket]);
    let ran = run(&copy);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("note: beginning anew: the "), "{}", ran.stderr);
    assert!(!ran.stdout.contains("were there from before"), "{}", ran.stdout);
}

#[test]
fn backup_of_lost_device_gives_one_help() {
    let mut world = World::file();
    let (out, control) = (world.path("copy"), world.control());
    let args = ["backup", out.to_str().unwrap(), "--control", control.to_str().unwrap()];
    let backup = command(&args).stderr(Stdio::piped()).spawn().unwrap();
    while world.json("tasks")["tasks"].as_array().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::File::options().write(true).open(world.path("data")).unwrap().set_len(4096).unwrap();
    // The next reader learns of it.
    world.verb("promote 1");
    let said = backup.wait_with_output().unwrap();
    let stderr = String::from_utf8(said.stderr).unwrap();
    assert!(!said.status.success());
    assert!(stderr.contains("has lost its device: start it again"), "{stderr}");
    assert!(stderr.contains("when a server runs again"), "{stderr}");
    assert!(!stderr.contains("if the server still runs"), "{stderr}");

    let again = run(&args);
    assert!(again.code == 1 && again.stderr.contains("the device is gone"), "{}", again.stderr);
    assert!(again.stderr.contains("start it again when the device is back"), "{}", again.stderr);
    world.server.signal("-TERM");
    world.server.end();
}
