//! Background tasks on a running server, by the verbs and by HTTP.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use freewheel::drives;
use freewheel_live::control::{Record, Records, Refusal, TaskState};
use tempfile::TempDir;

use super::nbd::{Client, Running};
use super::run::{Ran, command, finish, run, run_with_files_of};

/// A server of a small drive, and what belongs to it.
pub struct World {
    folder: TempDir,
    pub server: Running,
    pub blocks: u64,
}

impl World {
    /// 7 MB of an Atlas 10K, emulated, with these options behind its name.
    pub fn emulated(options: &str) -> Self {
        Self::start("atlas10k", |drive| format!("emulated:{drive}{options}"))
    }

    /// 1.4 MB of a drive whose tracks have 35 KiB, emulated.
    fn of_short_tracks() -> Self {
        Self::start("tr96", |drive| format!("emulated:{drive}"))
    }

    /// The first drive, taken to be a file, beside its data.
    pub fn file() -> Self {
        Self::start("atlas10k", |drive| drive.replace("small.toml", "data"))
    }

    fn start(name: &str, backend: impl Fn(&str) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut spec, _) = drives::load(name).unwrap();
        spec.electronics = Default::default();
        (spec.surfaces, spec.cylinders) = (2, 20);
        spec.zones.truncate(1);
        let zone = &mut spec.zones[0];
        (zone.last_cylinder, zone.spares) = (19, 0);
        zone.slips.clear();
        let drive = folder.path().join("small.toml");
        fs::write(&drive, toml::to_string(&spec).unwrap()).unwrap();
        let blocks = drives::build(&spec, "small").unwrap().blocks().get();
        fs::File::create(folder.path().join("data")).unwrap().set_len(blocks * 512).unwrap();
        let drive = drive.to_str().unwrap();
        let socket = folder.path().join("socket");
        let args =
            ["serve", &backend(drive), "--drive", drive, "--socket", socket.to_str().unwrap()];
        // With the default a new server leaves most gaps for half a minute of work, until it knows their price.
        let server = Running::start(&[&args[..], &["--budget", "0.5"]].concat());
        Self { server, blocks, folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.path("socket"))
    }

    pub fn control(&self) -> PathBuf {
        self.path("socket.control")
    }

    /// A verb of this server, with the words of `args`.
    pub fn verb(&self, args: &str) -> Ran {
        let control = self.control();
        let args: Vec<&str> = args.split(' ').collect();
        run(&[&args[..], &["--control", control.to_str().unwrap()]].concat())
    }

    pub fn json(&self, args: &str) -> serde_json::Value {
        let ran = self.verb(&format!("{args} --json"));
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr))
    }

    /// Asks, and reads the answer up to a line with these words, or to its end.
    fn get(&self, path: &str, until: &str) -> String {
        read_until(&mut self.ask(path), until)
    }

    fn ask(&self, path: &str) -> BufReader<UnixStream> {
        self.send(&format!("GET {path}"), "", "")
    }

    /// Asks with these header lines and this body.
    fn send(&self, method_and_path: &str, headers: &str, body: &str) -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(self.control()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let length = body.len();
        let request = format!(
            "{method_and_path} HTTP/1.1\r\nhost: freewheel\r\nconnection: close\r\n\
             content-length: {length}\r\n{headers}\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }
}

fn read_until(reader: &mut BufReader<UnixStream>, words: &str) -> String {
    let mut text = String::new();
    while !text.contains(words) && reader.read_line(&mut text).unwrap() > 0 {}
    text
}

fn image(path: &Path, blocks: u64) -> Vec<u8> {
    let mut records = Records::default();
    records.push(&fs::read(path).unwrap());
    let mut image = vec![0xee; (blocks * 512) as usize];
    loop {
        match records.next_record().unwrap().expect("the stream is whole") {
            Record::Data { first_block, data, .. } => {
                image[first_block as usize * 512..][..data.len()].copy_from_slice(&data);
            }
            Record::Unreadable { .. } => {}
            Record::End(state) => {
                assert_eq!(state, TaskState::Done);
                return image;
            }
        }
    }
}

#[test]
fn scan_feeds_every_block_to_command() {
    let world = World::emulated("");
    let mut client = world.client();
    for at in 0..world.blocks / 64 {
        client.write(at * 64 * 512, &[at as u8 + 1; 64 * 512]);
    }
    let out = world.path("out");
    let control = world.control();
    let exec = format!("cat > {}", out.display());
    let args = ["scan", "--promote", "--exec", &exec, "--control", control.to_str().unwrap()];
    let ran = run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("scan     done\nread "), "{}", ran.stdout);
    assert!(ran.stdout.contains("more were expected, it took"), "{}", ran.stdout);
    let image = image(&out, world.blocks);
    for at in 0..world.blocks / 64 {
        assert!(image[(at * 64 * 512) as usize..][..64 * 512].iter().all(|&b| b == at as u8 + 1));
    }
    let ran = run(&["scan", "--promote", "--exec", "exit 3", "--control", args[5]]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("exit status: 3"), "{}", ran.stderr);
    let ran = run(&["scan", "--promote", "--exec", "wc -c", "--json", "--control", args[5]]);
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["task"]["state"], "done", "what the command says stands elsewhere");
}

#[test]
fn tasks_may_cover_part_of_drive() {
    let world = World::emulated("");
    let out = world.path("out");
    let control = world.control();
    let control = control.to_str().unwrap();
    let range = ["--start", "64KiB", "--length", "96KiB", "--promote", "--control", control];
    let exec = format!("grep -a ^data > {}", out.display());
    let ran = run(&[&["scan", "--exec", &exec][..], &range].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let blocks: u64 = std::fs::read_to_string(&out)
        .unwrap()
        .lines()
        .map(|line| {
            let words: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            assert!(words[0] >= 128 && words[0] + words[1] <= 128 + 192, "{line}");
            words[1]
        })
        .sum();
    assert_eq!(blocks, 192);
    let scrub = run(&[&["scrub", "--json"][..], &range].concat());
    let document: serde_json::Value = serde_json::from_str(&scrub.stdout).unwrap();
    assert_eq!(document["task"]["blocks"], 192);
    let odd = run(&["scan", "--start", "1000B", "--control", control]);
    assert!(odd.code == 2 && odd.stderr.contains("multiple of 512B"), "{}", odd.stderr);
}

#[test]
fn tasks_listed_promoted_aborted_by_number() {
    let world = World::emulated("");
    assert!(world.verb("tasks").stdout.contains("no tasks"));
    let begun = world.json("scrub --detach --block-size 4KiB");
    assert_eq!(begun["task"]["state"], "running");
    let other = world.json("scan --detach --repeat --priority low");
    assert_eq!(other["task"]["id"], 2);
    let ran = world.verb("tasks");
    for text in ["1  scrub  running", "2  scan   running", "ends in", "responses"] {
        assert!(ran.stdout.contains(text), "{}", ran.stdout);
    }
    assert!(world.verb("abort 2").stdout.contains("task 2 (scan) is ended"));
    let again = world.verb("abort 2");
    assert!(again.code == 1 && again.stderr.contains("task 2 has ended"), "{}", again.stderr);
    assert!(world.verb("promote 9").stderr.contains("there is no task 9"));
    let promoted = world.json("promote 1");
    assert_eq!(promoted["task"]["promoted"], true);
    while world.json("tasks")["tasks"][0]["state"] != "done" {
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn task_without_clients_says_no_gaps() {
    let world = World::emulated("");
    while world.json("tasks")["idle_ns"].as_u64().unwrap() < 5_000_000_000 {
        std::thread::sleep(Duration::from_millis(500));
    }
    let uses_idle_time = world.verb("scan --detach --idle-after 10s --priority high");
    assert_eq!(uses_idle_time.stderr, "");
    let begun = world.verb("scrub --detach --deadline 1h");
    assert!(begun.stderr.contains("so there are no gaps, and task 2 reads"), "{}", begun.stderr);
    assert!(begun.stderr.contains("`freewheel promote 2`"), "{}", begun.stderr);
    assert!(world.verb("tasks").stderr.contains("and task 2 reads no block"));
    let tasks = &world.json("tasks")["tasks"];
    assert_eq!(tasks[0]["idle_after_ns"], 10_000_000_000_u64);
    assert_eq!(tasks[0]["priority"], "high");
    assert_eq!(tasks[1]["deadline_ns"], 3_600_000_000_000_u64);
    assert_eq!(tasks[1]["priority"], "normal");
    world.verb("promote 2");
    assert_eq!(world.verb("tasks").stderr, "", "both go on by themselves");
    let mut client = world.client();
    client.write(0, &[1; 512]);
    assert!(world.json("tasks")["idle_ns"].as_u64().unwrap() < 5_000_000_000);
}

#[test]
fn verb_waiting_without_clients_says_so() {
    let world = World::emulated("");
    let control = world.control();
    let args = ["scan", "--control", control.to_str().unwrap()];
    let mut waiting = command(&args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("so there are no gaps, and task 1 reads"), "{line}");
    line.clear();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "scan: 0 %, no end in sight: no gaps\n");
    assert_eq!(world.json("tasks")["tasks"][0]["state"], "running");
    interrupt(&waiting);
    assert_eq!(waiting.wait().unwrap().code(), Some(1));
    assert_eq!(world.json("tasks")["tasks"][0]["state"], "aborted", "nobody waits for it");
}

pub fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

#[test]
fn manifest_is_not_overwritten() {
    let world = World::emulated("");
    fs::write(world.path("monday"), "kept").unwrap();
    let ran = world.verb(&format!("scrub --promote --manifest {}", world.path("monday").display()));
    assert!(ran.code == 1 && ran.stderr.contains("is there already"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(world.path("monday")).unwrap(), "kept");
}

#[test]
fn scrub_findings_survive_unwritable_manifest() {
    let world = World::emulated("");
    let (path, control) = (world.path("monday"), world.control());
    let [path, control] = [&path, &control].map(|path| path.to_str().unwrap());
    let ran =
        run_with_files_of(0, &["scrub", "--promote", "--manifest", path, "--control", control]);
    assert!(ran.stdout.starts_with("scrub    done\nread "), "{}", ran.stdout);
    assert!(!ran.stdout.contains("checksums"), "{}", ran.stdout);
    let says = format!("error: --manifest {path}: the file would be larger than is allowed here");
    assert!(ran.code == 1 && ran.stderr.contains(&says), "{}", ran.stderr);
    assert!(!ran.stderr.contains(".part"), "of the file that was asked for: {}", ran.stderr);
    let ran = run(&["scrub", "--promote", "--manifest", path, "--control", control]);
    assert!(ran.stdout.ends_with(&format!("checksums: {path}\n")), "{}", ran.stdout);
}

#[test]
fn control_verbs_without_server_give_help() {
    let by_option = run(&["tasks", "--control", "/no/such/socket"]);
    let mut command = command(&["promote", "3"]);
    let by_environment =
        finish(command.env("FREEWHEEL_CONTROL", "/no/such/socket").output().unwrap());
    for ran in [by_option, by_environment] {
        assert_eq!(ran.code, 1);
        for text in ["/no/such/socket: ", "PATH.control", "--control PATH", "FREEWHEEL_CONTROL"] {
            assert!(ran.stderr.contains(text), "{}", ran.stderr);
        }
    }
}

#[test]
fn control_description_needs_no_server() {
    let openapi = ["tasks", "--openapi"];
    let without = finish(command(&openapi).env_remove("FREEWHEEL_CONTROL").output().unwrap());
    let named = finish(command(&openapi).env("FREEWHEEL_CONTROL", "/no/such").output().unwrap());
    assert_eq!((without.code, named.code), (0, 0), "{}{}", without.stderr, named.stderr);
    assert!(without.stdout.contains("/v1/tasks") && without.stdout == named.stdout);
}

#[test]
fn control_verbs_without_server_name_both_ways() {
    for args in [&["tasks"][..], &["abort", "3"], &["scan"], &["scrub"], &["backup", "copy"]] {
        let ran = finish(command(args).env_remove("FREEWHEEL_CONTROL").output().unwrap());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        for text in ["--control PATH", "FREEWHEEL_CONTROL"] {
            assert!(ran.stderr.contains(text), "{args:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn task_number_malformed_is_refused() {
    for verb in ["promote", "abort"] {
        for text in ["foo", "-1", "1.5", ""] {
            let ran = run(&[verb, "--control", "/no/such/socket", "--", text]);
            assert_eq!(ran.code, 2, "{verb} {text}: {}", ran.stderr);
            let says =
                format!("'{text}' for '<ID>': a task is a number, as 3: `freewheel tasks` lists");
            assert!(ran.stderr.contains(&says), "{}", ran.stderr);
        }
    }
}

#[test]
fn control_slips_answered_with_valid_choices() {
    let world = World::emulated("");
    let export = world.path("socket");
    let ran = run(&["tasks", "--control", export.to_str().unwrap()]);
    assert!(ran.code == 1 && ran.stderr.contains("as of a control socket"), "{}", ran.stderr);
    assert!(ran.stderr.contains("PATH.control"), "{}", ran.stderr);
    let ran = world.verb("abort 7");
    assert!(ran.code == 1 && ran.stderr.contains("no task 7: `freewheel tasks`"), "{}", ran.stderr);
    let ran = world.verb("scrub --against /no/such/manifest");
    let says = "error: --against /no/such/manifest: there is no such file\n";
    assert!(ran.code == 1 && ran.stderr.starts_with(says), "{}", ran.stderr);
    assert!(ran.stderr.contains("help: give what `freewheel scrub --manifest"), "{}", ran.stderr);
    let answer = world.get("/v1/task", "\0");
    assert!(
        answer.starts_with("HTTP/1.1 404") && answer.contains("there is no /v1/task: GET / lists")
    );
    let answer = world.get("/v1/tasks/1/abort", "\0");
    assert!(
        answer.starts_with("HTTP/1.1 405") && answer.contains("no GET /v1/tasks/1/abort: GET /")
    );
    let answer = world.get("/", "\0");
    for route in [r#""method":"GET","path":"/metrics""#, r#""method":"POST","path":"/v1/tasks""#] {
        assert!(answer.contains(route), "{answer}");
    }
    assert!(answer.contains("The server in the text format of Prometheus"), "{answer}");
}

#[test]
fn control_http_errors_are_json_with_field() {
    let world = World::emulated("");
    let json = "content-type: application/json\r\n";
    for (asked, headers, body, status, says) in [
        ("POST /v1/tasks", json, r#"{"kind":"scrubb"}"#, 422, "kind: \"scrubb\": one of `scan`, "),
        (
            "POST /v1/tasks",
            json,
            r#"{"kind":"scan","skip_since_ns":"all"}"#,
            422,
            "skip_since_ns: \"all\": a whole number",
        ),
        ("POST /v1/tasks", json, r#"{"kind":"scan","block":1}"#, 422, "there is no field `block`"),
        ("POST /v1/tasks", json, "{}", 422, "the field `kind` is missing"),
        ("POST /v1/tasks", json, r#"{"kind":"#, 400, "the body is no JSON: "),
        (
            "POST /v1/tasks",
            "",
            r#"{"kind":"scan"}"#,
            415,
            "a body needs the header `Content-Type: application/json`",
        ),
        ("GET /v1/tasks/first", "", "", 400, "a task's number is expected"),
        ("POST /v1/tasks/first/abort", "", "", 400, "a task's number is expected"),
        ("GET /v1/written?since_ns=now", "", "", 400, "since_ns: a whole number of nanoseconds"),
    ] {
        let answer = read_until(&mut world.send(asked, headers, body), "\0");
        let (head, document) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{asked} {body}: {answer}");
        assert!(head.contains("content-type: application/json"), "{asked} {body}: {answer}");
        let refusal: Refusal = serde_json::from_str(document).unwrap();
        assert!(refusal.error.starts_with(says), "{asked} {body}: {answer}");
        assert!(refusal.error.contains("`freewheel tasks --openapi`"), "{answer}");
    }
    assert_eq!(world.json("tasks")["tasks"], serde_json::json!([]));
}

#[test]
fn scrub_names_bad_blocks_and_fails() {
    let world = World::emulated("?bad=77-78&bad=9000&recovery=1ms");
    let ran = world.verb("scrub --promote");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("3 blocks cannot be read"), "{}", ran.stderr);
    for text in ["2 blocks of 512 B from 77 on", "1 block of 512 B from 9000 on"] {
        assert!(ran.stdout.contains(text), "{}", ran.stdout);
    }
}

#[test]
fn scrub_tells_writes_from_silent_changes() {
    let world = World::file();
    let old = world.path("old");
    let ran = world.verb(&format!("scrub --promote --manifest {}", old.display()));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    std::thread::sleep(Duration::from_millis(1100));
    world.client().write(0, &[7; 4096]);
    let against = format!("scrub --promote --against {} --json", old.display());
    let document: serde_json::Value = serde_json::from_str(&world.verb(&against).stdout).unwrap();
    assert_eq!(document["changed"]["written"][0]["blocks"], 2048, "{document}");
    assert_eq!(document["changed"]["silently"], serde_json::json!([]));
    let data = fs::OpenOptions::new().write(true).open(world.path("data")).unwrap();
    data.write_all_at(&[9], 3000 * 512).unwrap();
    let ran = world.verb(against.trim_end_matches(" --json"));
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("silently changed: 1 range"), "{}", ran.stderr);
    assert!(ran.stdout.contains("2,048 blocks of 512 B from 2048 on"), "{}", ran.stdout);
}

#[test]
fn control_socket_is_private_http() {
    let world = World::emulated("");
    let mode = fs::metadata(world.control()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(world.client().read(0, 4096));
    let metrics = world.get("/metrics", "freewheel_task_remaining_seconds");
    for text in [
        "200 OK",
        "text/plain; version=0.0.4",
        "# TYPE freewheel_gaps_total counter",
        "freewheel_response_seconds_count 1",
        "# TYPE freewheel_decision_seconds summary",
        "# TYPE freewheel_decisions_exhausted_total counter",
        "freewheel_decision_nodes_total ",
        "# HELP freewheel_free_bytes_total Bytes",
        "# TYPE freewheel_margin_seconds gauge",
    ] {
        assert!(metrics.contains(text), "{text}: {metrics}");
    }
    world.json("scan --detach");
    // By then the server has taken in its tasks, and only a listener wakes it.
    std::thread::sleep(Duration::from_millis(500));
    let mut events = world.ask("/v1/events");
    let progress = read_until(&mut events, "\"kind\":\"scan\"");
    assert!(progress.contains("event: progress"), "{progress}");
    world.verb("abort 1");
    let over = read_until(&mut events, "\"state\":\"aborted\"");
    assert!(over.contains("event: over"), "{over}");
    assert!(world.get("/v1/tasks/7", "}").contains("404"));
    assert!(world.get("/v1/written?since_ns=0", "}").contains("\"ranges\":[]"));
}

#[test]
fn status_tells_decision_costs_after_gaps() {
    let world = World::emulated("");
    world.json("scan --detach --repeat");
    let mut client = world.client();
    for at in 0..200 {
        drop(client.read(at * 7_919 % (world.blocks / 8) * 4096, 4096));
    }
    let status = world.json("tasks");
    let count = |pointer: &str| status.pointer(pointer).unwrap().as_u64().unwrap();
    let decisions = count("/decisions/count");
    assert!(count("/scheduling/gaps_used") > 0, "{status}");
    assert!(decisions >= count("/scheduling/gaps_used"), "{status}");
    assert!(decisions <= count("/scheduling/gaps"), "{status}");
    assert_eq!(decisions, count("/decisions/times/count"), "each is timed");
    assert!(count("/decisions/exhausted") <= decisions, "{status}");
    assert!(status["decisions"]["nodes"].as_u64().unwrap() > 0, "{status}");
    assert!(count("/decisions/times/max_ns") > 0, "{status}");
    let text = world.verb("tasks").stdout;
    let row = text.lines().find(|line| line.starts_with("decisions ")).unwrap();
    assert!(row.contains(" us, p99 ") && row.contains(" stopped for want of time"), "{row}");
}

#[test]
fn control_socket_in_use_refused_stale_replaced() {
    let mut world = World::emulated("");
    let control = world.control();
    let other = world.path("other");
    let args = [
        "serve",
        "emulated:atlas10k",
        "--drive",
        "atlas10k",
        "--socket",
        other.to_str().unwrap(),
        "--control",
        control.to_str().unwrap(),
    ];
    let ran = run(&args);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("socket.control"), "{}", ran.stderr);
    world.server.signal("-9");
    world.server.end();
    let mut second = Running::start(&args);
    assert!(second.first_line.contains("socket.control"), "{}", second.first_line);
    second.signal("-TERM");
    let rest = second.end().0;
    assert!(rest.contains("foreground"), "{rest}");
}

#[test]
fn scrub_default_blocks_fit_drive_tracks() {
    let size = |task: &serde_json::Value| task["task"]["block_size_bytes"].as_u64().unwrap();
    let world = World::of_short_tracks();
    assert_eq!(size(&world.json("scrub --detach")), 4096, "of 35 KiB");
    assert_eq!(size(&world.json("scan --detach --block-size 64KiB")), 65_536);
    // Every block of 64 KiB lies on at least two tracks, so that the same number of gaps reads hardly
    // any of them, except the part at the end.
    let mut client = world.client();
    for at in 0..60 {
        client.read(at * 7919 % (world.blocks - 8) * 512, 4096);
    }
    let tasks = &world.json("tasks")["tasks"];
    let read: Vec<u64> = (0..2).map(|at| tasks[at]["blocks_read"].as_u64().unwrap()).collect();
    assert!(read[0] > 500 && read[1] <= 128 + world.blocks % 128, "{tasks}");
    assert_eq!(size(&World::emulated("").json("scrub --detach")), 16_384, "of 167 KiB");
}

#[test]
fn scrub_remarks_blocks_longer_than_track() {
    let world = World::of_short_tracks();
    assert_eq!(world.verb("scan --detach --block-size 32KiB").stderr, "");
    let ran = world.verb("scan --detach --block-size 64KiB");
    let says = "note: blocks of 64KiB lie on several tracks, the shortest of which have 35.0 KiB";
    assert!(ran.code == 0 && ran.stderr.starts_with(says), "{}", ran.stderr);
    assert_eq!(world.verb("scan --detach --block-size 64KiB --promote").stderr, "", "no gaps");
    let drive = world.path("small.toml");
    let (drive, socket) = (drive.to_str().unwrap(), world.path("another"));
    let backend = format!("emulated:{drive}");
    let args = ["serve", &backend, "--drive", drive, "--socket", socket.to_str().unwrap()];
    let scrub = [&args[..], &["--scrub", "--block-size", "64KiB"]].concat();
    let mut server = command(&scrub).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    interrupt(&server);
    assert!(said.starts_with(says), "{said}");
    assert!(server.wait().unwrap().success());
}

#[test]
fn endless_scrub_refused_with_manifest() {
    for option in ["--manifest", "--against"] {
        for args in [&["--repeat"][..], &["--detach"], &["--repeat", "--detach"]] {
            let ran = run(&[&["scrub", "--control", "/no/such", option, "file"], args].concat());
            assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("cannot be used with"), "{args:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn refresh_rewrites_and_verifies_own_data() {
    let world = World::emulated("");
    let mut client = world.client();
    let data: Vec<u8> = (0..64 * 1024_u32).map(|byte| (byte / 7) as u8).collect();
    client.write(128 * 512, &data);
    let ran = world.verb("refresh --promote --start 32KiB --length 96KiB");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("refresh                  done\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("rewritten and read back  96"), "{}", ran.stdout);
    assert!(client.read(128 * 512, 64 * 1024) == data);
    let all = &world.json("refresh --promote")["task"];
    assert_eq!(all["blocks_read"], world.blocks, "refreshed");
    assert_eq!(all["refresh"]["differing_blocks"], 0);
    assert!(client.read(128 * 512, 64 * 1024) == data);
    let refused = world.verb("refresh --promote-tail 0.02");
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("leave `promote_tail` out"), "{}", refused.stderr);
    let metrics = world.get("/metrics", "freewheel_task_remaining_seconds{");
    let line = "freewheel_task_differing_bytes{task=\"2\",kind=\"refresh\"} 0\n";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn refresh_names_unreadable_refreshes_rest() {
    let world = World::emulated("?bad=77-78&recovery=1ms");
    let ran = world.verb("refresh --promote --length 64KiB");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("2 blocks cannot be read"), "{}", ran.stderr);
    assert!(ran.stdout.contains("unreadable               2 blocks of 512 B from 77 on"));
    assert!(ran.stdout.contains("rewritten and read back  63.0 KiB"), "{}", ran.stdout);
}
