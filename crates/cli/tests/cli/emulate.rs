//! `freewheel emulate`, as its clients and its user see it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use freewheel_live::nbd::{self, ClientLimits};

use super::nbd::{Client, Running, exports};
use super::run::{command, run};

#[test]
fn emulate_answered_writes_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, store) = (folder.path().join("socket"), folder.path().join("store"));
    let (socket_text, store) = (socket.to_str().unwrap(), store.to_str().unwrap());
    let args = ["emulate", "atlas10k", "--socket", socket_text, "--store", store];
    let mut first = Running::start(&args);
    let mut client = Client::connect(&socket);
    for at in 0..20_u64 {
        client.write(at << 20, &[at as u8 + 1; 8192]);
    }
    first.signal("-9");
    assert_eq!(first.end().1, None, "killed");
    // The socket that it left behind is no hindrance.
    let _second = Running::start(&args);
    let mut client = Client::connect(&socket);
    for at in 0..20_u64 {
        assert_eq!(client.read(at << 20, 8192), vec![at as u8 + 1; 8192]);
    }
}

/// Begins of places that are written, 8 KiB each.
fn places() -> impl Iterator<Item = u64> {
    (1..41).map(|at| at << 20)
}

/// Byte that fills the sectors of each place.
fn sectors(store: &str) -> Vec<u8> {
    let file = std::fs::File::open(store).unwrap();
    let mut all = Vec::new();
    for at in places() {
        let mut data = [0; 8192];
        file.read_exact_at(&mut data, at).unwrap();
        for sector in data.chunks(512) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "a torn sector");
            all.push(sector[0]);
        }
    }
    all
}

/// Writes all places, flushes, and writes all again.
fn write_twice(socket: &Path) -> Client {
    let mut client = Client::connect(socket);
    places().for_each(|at| client.write(at, &[1; 8192]));
    client.flush();
    places().for_each(|at| client.write(at, &[2; 8192]));
    client
}

#[test]
fn volatile_cache_keeps_flushed_when_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, store) = (folder.path().join("socket"), folder.path().join("store"));
    let (socket_text, store_text) = (socket.to_str().unwrap(), store.to_str().unwrap());
    let mut held = Vec::new();
    for seed in ["1", "1", "2"] {
        let _ = std::fs::remove_file(&store);
        let args = ["emulate", "atlas10k", "--socket", socket_text, "--store", store_text];
        let volatile = ["--volatile-cache", "--seed", seed];
        let mut running = Running::start(&[&args[..], &volatile].concat());
        let _client = write_twice(&socket);
        running.signal("-9");
        assert_eq!(running.end().1, None, "killed");
        let sectors = sectors(store_text);
        assert!(sectors.iter().all(|byte| [1, 2].contains(byte)), "{sectors:?}");
        assert!([1, 2].iter().all(|byte| sectors.contains(byte)), "{sectors:?}");
        held.push(sectors);
    }
    assert_eq!(held[0], held[1], "the same requests and seed");
    assert_ne!(held[0], held[2], "another seed");
}

#[test]
fn sigusr1_cuts_power_sigterm_flushes() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, store) = (folder.path().join("socket"), folder.path().join("store"));
    let store_text = store.to_str().unwrap();
    let args = ["emulate", "atlas10k", "--volatile-cache", "--socket", socket.to_str().unwrap()];
    let mut running = Running::start(&[&args[..], &["--store", store_text]].concat());
    let client = write_twice(&socket);
    running.signal("-USR1");
    assert!(client.ends_without_answer(), "no answer and no further connection");
    // The next client is taken when the power is back.
    let mut client = Client::connect(&socket);
    let kept = sectors(store_text);
    assert!([1, 2].iter().all(|byte| kept.contains(byte)), "{kept:?}");
    let seen: Vec<u8> = places()
        .flat_map(|at| {
            client.read(at, 8192).chunks(512).map(|sector| sector[0]).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(seen, kept, "nothing is in the cache after a power cut");
    places().for_each(|at| client.write(at, &[3; 8192]));
    running.signal("-TERM");
    let (rest, code) = running.end();
    assert_eq!(code, Some(0));
    assert!(rest.contains("1 power cuts") && rest.contains("waited for the store"), "{rest}");
    assert!(sectors(store_text).iter().all(|byte| *byte == 3));
}

#[test]
fn emulate_says_address_and_lateness() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut emulation =
        Running::start(&["emulate", "atlas10k", "--socket", socket.to_str().unwrap()]);
    let line = emulation.first_line.clone();
    for text in ["Quantum Atlas 10K", "9.199 GB", "nbdinfo 'nbd+unix://", "nbd-client -unix"] {
        assert!(line.contains(text), "{line}");
    }
    assert!(line.contains("priority"), "{line}");
    Client::connect(&socket).read(0, 4096);
    emulation.signal("-INT");
    let (rest, code) = emulation.end();
    assert_eq!(code, Some(0));
    for name in ["late by", "handed over in"] {
        let row = rest.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert_eq!(row.split_whitespace().next(), Some("1"), "{rest}");
    }
    // The one reply has a bar in its bucket for either.
    assert_eq!(rest.matches(&"█".repeat(20)).count(), 2, "{rest}");
    assert!(!socket.exists());
}

#[test]
fn emulate_document_has_every_reply_lateness() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let args = ["emulate", "atlas10k", "--json", "--socket", socket.to_str().unwrap()];
    let mut child = command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("atlas10k"), "{line}");
    let mut client = Client::connect(&socket);
    (0..3).for_each(|at| drop(client.read(at << 24, 512)));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let [drive] = &document["drives"].as_array().unwrap()[..] else { panic!("{document}") };
    assert_eq!(drive["requests"], 3);
    assert_eq!(drive["drive"]["name"], "atlas10k");
    for times in [&drive["lateness"], &drive["handing"]] {
        assert_eq!(times["count"], 3);
        let buckets = times["histogram"].as_array().unwrap();
        let number = |of: &serde_json::Value, key: &str| of[key].as_u64().unwrap();
        assert_eq!(buckets.iter().map(|bucket| number(bucket, "count")).sum::<u64>(), 3);
        let first_and_last = [(&buckets[0], "min_ns"), (buckets.last().unwrap(), "max_ns")];
        for (bucket, key) in first_and_last {
            let range = number(bucket, "from_ns")..number(bucket, "below_ns");
            assert!(range.contains(&number(times, key)), "{times}");
        }
    }
    assert_eq!(document["connections"]["broken"], 0);
    // No request waits for a file without a name.
    assert_eq!((&drive["syncs"]["requests"], &document["power_cuts"]), (&0.into(), &0.into()));
}

#[test]
fn emulate_several_drives_as_named_exports() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let (at, store) = (socket.to_str().unwrap(), folder.path().to_str().unwrap());
    let args = ["emulate", "tr96", "atlas10k", "--socket", at, "--store", store];
    let mut emulation = Running::start(&args);
    let line = emulation.first_line.clone();
    for text in ["tr96 (", "atlas10k (", "nbdinfo --list", "nbd+unix:///atlas10k?", "-N atlas10k"] {
        assert!(line.contains(text), "{text}: {line}");
    }
    assert_eq!(exports(&socket), ["tr96", "atlas10k"]);

    let (tell, told) = mpsc::channel();
    let connect = |name: &'static str| {
        let uri = format!("nbd+unix:///{name}?socket={at}").parse().unwrap();
        let tell = tell.clone();
        let client = nbd::Client::connect(&uri, ClientLimits::default(), move |answer| {
            assert_eq!(answer.result, Ok(()));
            tell.send((name, answer.tag, answer.data)).unwrap();
        });
        client.unwrap_or_else(|error| panic!("{error}"))
    };
    let names = ["tr96", "atlas10k"];
    let clients = names.map(connect);
    for (client, name) in clients.iter().zip(names) {
        let size = std::fs::metadata(folder.path().join(format!("{name}.img"))).unwrap().len();
        assert_eq!(client.info().size, size, "{name}");
        let mut data = vec![name.as_bytes()[0]; 4096];
        client.submit(freewheel_nbd::Command::write(1 << 20, 4096), &mut data, 0).unwrap();
        assert_eq!(told.recv().unwrap().0, name);
    }
    // Twenty reads of each wait at the same time, and none of the drives waits for the other.
    for client in &clients {
        for tag in 0..20_u64 {
            let offset = if tag == 0 { 1 << 20 } else { tag * (25 << 20) };
            client
                .submit(freewheel_nbd::Command::read(offset, 4096), &mut Vec::new(), tag)
                .unwrap();
        }
    }
    let answers: Vec<_> = (0..40).map(|_| told.recv().unwrap()).collect();
    for name in names {
        let first = answers.iter().position(|(of, ..)| *of == name).unwrap();
        let others_last = answers.iter().rposition(|(of, ..)| *of != name).unwrap();
        assert!(first < others_last, "{name} waited for the other");
        let (.., data) = answers.iter().find(|(of, tag, _)| (*of, *tag) == (name, 0)).unwrap();
        assert_eq!(*data, [name.as_bytes()[0]; 4096], "{name} has its own data");
    }
    // The first one is there without a name as well.
    assert_eq!(Client::connect(&socket).read(1 << 20, 512), [b't'; 512]);

    emulation.signal("-INT");
    let (rest, code) = emulation.end();
    assert_eq!(code, Some(0));
    let counts: Vec<&str> = rest
        .lines()
        .filter_map(|line| line.strip_prefix("late by"))
        .filter_map(|row| row.split_whitespace().next())
        .collect();
    assert_eq!(counts, ["22", "21"], "{rest}");
    assert!(names.iter().all(|name| rest.contains(&format!("{name} "))), "{rest}");
}

#[test]
fn emulate_marked_exports_mark_commands() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, file) = (folder.path().join("socket"), folder.path().join("marked.toml"));
    let spec = run(&["drive", "show", "exos-x24-24tb", "--toml"]).stdout;
    let marked = spec.replace(
        "[electronics.queue]",
        "[electronics.duration_limits]\nread = [{ inactive = \"1s\" }]\nwrite = [{ inactive = \"1s\" }]\n\n\
         [electronics.queue]\nhigh_priority_first = \"1s\"",
    );
    assert_ne!(spec, marked);
    std::fs::write(&file, marked).unwrap();
    let (file, socket_text) = (file.to_str().unwrap(), socket.to_str().unwrap());
    let marks = ["--marked", "db=high-priority", "--marked", "scrub=limit:1"];
    let args = [&["emulate", file, "--socket", socket_text][..], &marks].concat();
    let mut running = Running::start(&args);
    assert_eq!(exports(&socket), ["exos-x24-24tb", "db", "scrub"]);
    let mut client = Client::connect(&socket);
    client.write(4096, &[7; 4096]);
    assert_eq!(client.read(4096, 4096), [7; 4096]);
    running.signal("-TERM");
    assert_eq!(running.end().1, Some(0));
    for (mark, says) in [
        ("db=low", "the mark is high-priority, or limit:"),
        ("scrub=limit:2", "the drive has 1 descriptors of reads"),
        ("high-priority", "give NAME=high-priority"),
    ] {
        refused(&[file, "--socket", socket_text, "--marked", mark], 1, &[says]);
    }
    let plain = ["exos-x24-24tb", "--socket", socket_text];
    let says = ["give `electronics.queue.high_priority_first`"];
    refused(&[&plain[..], &["--marked", "db=high-priority"]].concat(), 1, &says);
}

#[test]
fn emulate_refuses_indistinct_or_folderless_drives() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (socket, file) = (at("socket"), at("file"));
    std::fs::write(&file, []).unwrap();
    let twice = ["tr96", "tr96", "--socket", &socket];
    refused(&twice, 2, &["both named tr96", "another `name`", "drive show tr96 --toml"]);
    for store in [at("nowhere"), file] {
        let args = ["tr96", "atlas10k", "--socket", &socket, "--store", &store];
        refused(&args, 2, &[&format!("--store {store}"), "mkdir", "NAME.img"]);
    }
    let bad = ["atlas10k", "tr96", "--bad", "17000000", "--socket", &socket];
    refused(&bad, 2, &["the last block of tr96"]);
    assert!(!Path::new(&socket).exists());
}

#[test]
fn emulate_failed_start_leaves_stores_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (socket, store) = (at("socket"), at("store"));
    std::fs::create_dir(&store).unwrap();
    let names = || {
        let entries = std::fs::read_dir(&store).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let base = ["atlas10k", "tr96", "--store", &store, "--socket", &socket];
    // The second drive has no such block.
    refused(&[&base[..], &["--bad", "17000000"]].concat(), 2, &["the last block of tr96"]);
    assert!(names().is_empty(), "{:?}", names());
    // Something is where its file should be.
    std::fs::write(format!("{store}/tr96.img"), [0; 512]).unwrap();
    refused(&base, 1, &["tr96.img", "512B"]);
    assert_eq!(names(), ["tr96.img"]);
    std::fs::remove_file(format!("{store}/tr96.img")).unwrap();
    // Somebody else listens there, or there is no certificate.
    let other = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    refused(&base, 1, &["another server listens here"]);
    assert!(names().is_empty(), "{:?}", names());
    drop(other);
    refused(&[&base[..], &["--tls-certificates", &store]].concat(), 1, &["server-cert.pem"]);
    assert!(names().is_empty(), "{:?}", names());
    // Two of them from before are as they were.
    drop(Running::start(&[&["emulate"], &base[..]].concat()));
    refused(&[&base[..], &["--tls-certificates", &store]].concat(), 1, &["server-cert.pem"]);
    let mut both = names();
    both.sort();
    assert_eq!(both, ["atlas10k.img", "tr96.img"]);
}

#[test]
fn drive_file_name_is_no_store_path() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (socket, store, file) = (at("socket"), at("a/b"), at("drive.toml"));
    std::fs::create_dir_all(&store).unwrap();
    let (mut spec, _) = freewheel::drives::load("tr96").unwrap();
    let absolute = at("outside");
    for name in ["../outside", &absolute, "..", "", "x/y", "x\0y", "x\ny", &"x".repeat(252)] {
        spec.name = name.into();
        std::fs::write(&file, toml::to_string(&spec).unwrap()).unwrap();
        let args = [&file, "atlas10k", "--store", &store, "--socket", &socket];
        refused(&args, 2, &["drive.toml: its `name`", "cannot name a file in --store"]);
    }
    assert_eq!(std::fs::read_dir(&store).unwrap().count(), 0);
    assert!(!Path::new(&absolute).exists() && !Path::new(&at("a/outside.img")).exists());
}

#[test]
fn sockets_and_stores_private_whatever_umask() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (socket, store) = (at("socket"), at("store"));
    let mode = |path: &str| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    for (umask, option, of_socket) in [
        ("000", "", 0o600),
        ("022", "", 0o600),
        ("077", "--socket-mode 0660", 0o660),
        ("022", "--socket-mode 666", 0o666),
    ] {
        let _ = std::fs::remove_file(&store);
        let program = env!("CARGO_BIN_EXE_freewheel");
        let line = format!(
            "umask {umask}; exec {program} emulate tr96 --socket {socket} --store {store} {option}"
        );
        let mut child =
            Command::new("sh").args(["-c", &line]).stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let modes = (mode(&socket), mode(&store));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(modes, (of_socket, 0o600), "umask {umask} {option}");
    }
    for mode in ["0066", "0400", "7777", "0800", "rw", "+660", ""] {
        let args = ["tr96", "--socket", &socket, "--socket-mode", mode];
        refused(&args, 2, &["--socket-mode", "0600 to 0777"]);
    }
    let args = ["tr96", "--listen", "127.0.0.1:0", "--socket-mode", "0660"];
    refused(&args, 2, &["--socket-mode", "cannot be used with", "--listen"]);
}

#[test]
fn emulate_tls_reads_and_required_tls() {
    let folder = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (name, text) in [
        ("server-cert.pem", own.cert.pem()),
        ("ca-cert.pem", own.cert.pem()),
        ("server-key.pem", own.signing_key.serialize_pem()),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let socket = format!("{path}/socket");
    let tls = ["--tls-certificates", path, "--tls-required"];
    let emulation =
        Running::start(&[&["emulate", "atlas10k", "--socket", &socket], &tls[..]].concat());
    let line = &emulation.first_line;
    assert!(line.contains("nbdinfo 'nbds+unix://") && line.contains("=DIR'"), "{line}");
    let uri = format!("nbds+unix:///?socket={socket}&tls-certificates={path}").parse().unwrap();
    let (tell, told) = mpsc::channel();
    let client = nbd::Client::connect(&uri, ClientLimits::default(), move |answer| {
        tell.send((answer.result, answer.data, answer.tag)).unwrap();
    });
    let client = client.unwrap_or_else(|error| panic!("{error}"));
    client.submit(freewheel_nbd::Command::read(0, 4096), &mut Vec::new(), 'a').unwrap();
    assert_eq!(told.recv().unwrap(), (Ok(()), vec![0; 4096], 'a'));
    // What the oldest way of asking gets there.
    let mut plain = UnixStream::connect(&socket).unwrap();
    plain.read_exact(&mut [0; 18]).unwrap();
    plain.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    assert_eq!(plain.read(&mut [0; 10]).unwrap(), 0);
}

fn refused(args: &[&str], code: i32, texts: &[&str]) {
    let ran = run(&[&["emulate"][..], args].concat());
    assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
    for text in texts {
        assert!(ran.stderr.contains(text), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn emulate_impossible_options_refused_with_help() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let socket = at("socket");
    std::fs::write(at("small"), [0; 512]).unwrap();
    refused(&["atlas10k"], 2, &["--socket"]);
    refused(&["nosuch", "--socket", &socket], 2, &["`freewheel drive list` shows them"]);
    let there = ["atlas10k", "--socket", &socket];
    let with = |more: &[&'static str]| [&there[..], more].concat();
    refused(&with(&["--bad", "17967353"]), 2, &["--bad 17967353", "the last block", "17967"]);
    refused(&with(&["--bad", "9-3"]), 2, &["9 is after 3"]);
    refused(&with(&["--bad", "0-9999999"]), 2, &["10000000 bad blocks", "1048576"]);
    refused(&with(&["--activity", "1s"]), 2, &["60s/100ms"]);
    refused(&with(&["--activity", "0s/1ms"]), 2, &["`activity.every` is 0ns", "1ms to 365d"]);
    refused(&with(&["--seek-jitter", "5"]), 2, &["no unit"]);
    refused(&with(&["--queue-policy", "best"]), 2, &["sptf-sw", "best"]);
    let one = ["--queue-policy", "sptf", "--queue-depth", "1"];
    refused(&with(&one), 1, &["`queue_policy` is sptf", "one command", "`queue_depth`"]);
    let bare = ["tr96", "--queue-policy", "sptf", "--socket", &socket];
    refused(&bare, 1, &["tr96: `queue_policy`", "one command at a time"]);
    let cache = ["tr96", "--write-cache", "on", "--socket", &socket];
    refused(&cache, 2, &["tr96 has no buffer", "leave it out"]);
    let nothing_volatile = ["--write-cache on", "--volatile-cache out"];
    let bare = ["tr96", "--volatile-cache", "--socket", &socket];
    refused(&bare, 1, &nothing_volatile);
    refused(&with(&["--volatile-cache", "--write-cache", "off"]), 1, &nothing_volatile);
    let store = at("small");
    let args = [&there[..], &["--store", &store]].concat();
    refused(&args, 1, &["small", "512B", "9199079936B", "path where there is none"]);
    let everywhere = ["atlas10k", "--listen", "0.0.0.0:0"];
    let files = ["server-cert.pem", "server-key.pem", "ca-cert.pem"];
    let ways_out = ["--tls-verify-peer", "--tls-certificates DIR", "127.0.0.1", "ssh -L"];
    refused(&everywhere, 1, &[&files[..], &ways_out].concat());
    refused(&with(&["--tls-required"]), 2, &["--tls-certificates"]);
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    for (name, text) in
        [("server-cert.pem", own.cert.pem()), ("server-key.pem", own.signing_key.serialize_pem())]
    {
        std::fs::create_dir_all(at("tls")).unwrap();
        std::fs::write(folder.path().join("tls").join(name), text).unwrap();
    }
    let certificates = at("tls");
    let encrypted = [&everywhere[..], &["--tls-certificates", &certificates]].concat();
    let way_out = ["--tls-verify-peer", "ca-cert.pem", "--allow-clients-without-certificate"];
    refused(&encrypted, 1, &way_out);
    let both = ["--tls-verify-peer", "--allow-clients-without-certificate"];
    refused(&[&encrypted[..], &both].concat(), 2, &["cannot be used with"]);
    refused(&with(&["--allow-clients-without-certificate"]), 2, &["--tls-certificates"]);
    let nothing = folder.path().display().to_string();
    let args = [&everywhere[..], &["--tls-certificates", &nothing]].concat();
    refused(&args, 1, &["server-cert.pem", "No such file"]);
    refused(&["exos-2x18-18tb", "--socket", &socket], 1, &["2 actuators"]);
    assert!(!Path::new(&socket).exists());
}
