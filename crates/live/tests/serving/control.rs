//! The control interface and clients that do not keep to its rules.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use freewheel_live::control::{
    ControlClient, ControlLimits, ControlServer, TaskKind, TaskOrder, TaskRequest,
};

use freewheel_units::Bytes;

use crate::common::{STALLED_REQUESTS_MAX, eventually};
use crate::world::{Beneath, World};

/// A server with its control interface.
struct Controlled {
    control: ControlServer,
    _world: World,
    _folder: tempfile::TempDir,
}

impl Controlled {
    fn new(limits: ControlLimits) -> Self {
        let (world, folder) = (World::over(Beneath::new()), tempfile::tempdir().unwrap());
        let path = folder.path().join("control");
        let control = ControlServer::start(Arc::clone(&world.serving), &path, limits).unwrap();
        Self { control, _world: world, _folder: folder }
    }

    fn path(&self) -> PathBuf {
        self.control.path().into()
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream.set_read_timeout(Some(STALLED_REQUESTS_MAX)).unwrap();
        stream.set_write_timeout(Some(STALLED_REQUESTS_MAX)).unwrap();
        stream
    }

    /// All that comes back on a connection on which this is sent.
    fn answer(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // It may be refused before all of it is taken.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            // What was not taken of it makes the end a reset.
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the connection stays open");
        }
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn answers_others(&self) {
        ControlClient::new(&self.path()).unwrap().status().unwrap();
    }
}

fn short() -> ControlLimits {
    ControlLimits { request: Duration::from_millis(200), ..ControlLimits::default() }
}

#[test]
fn control_half_request_is_cut_off() {
    let server = Controlled::new(short());
    let body = "POST /v1/tasks HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    let cases: [(&str, String, &str); 7] = [
        ("nothing", String::new(), ""),
        ("half a request line", "GET /v1/sta".into(), ""),
        ("a request line", "GET /v1/status HTTP/1.1\r\n".into(), ""),
        ("half a header", "GET /v1/status HTTP/1.1\r\nhost: x".into(), ""),
        ("no body", format!("{body}content-length: 17\r\n\r\n"), "408"),
        ("half a body", format!("{body}content-length: 17\r\n\r\n{{\"kind\""), "408"),
        ("half a chunk", format!("{body}transfer-encoding: chunked\r\n\r\nff\r\n{{"), "408"),
    ];
    for (name, sent, says) in cases {
        let answer = server.answer(sent.as_bytes());
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert_eq!(status, says, "{name}: {answer}");
        assert!(
            says.is_empty() || answer.contains("did not come within 200ms"),
            "{name}: {answer}"
        );
        server.answers_others();
    }
}

#[test]
fn control_dripping_request_is_cut_off() {
    let server = Controlled::new(short());
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 100000\r\n\r\n";
    for (name, sent) in [("a head", "GET /v1/status HTTP/1.1\r\nhost: "), ("a body", head)] {
        let mut stream = server.connect();
        stream.write_all(sent.as_bytes()).unwrap();
        let drips = || {
            thread::sleep(Duration::from_millis(10));
            stream.write_all(b"x").is_err()
        };
        // Were the time counted from the last byte, it would go on for as long as the loop does.
        let mut drips = drips;
        assert!((0..1500).any(|_| drips()), "{name}");
        server.answers_others();
    }
}

#[test]
fn control_connection_asking_again_stays() {
    let server = Controlled::new(short());
    let mut stream = server.connect();
    for _ in 0..3 {
        stream.write_all(b"GET /v1/nothing HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\"}") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        assert!(answer.starts_with(b"HTTP/1.1 404 "));
    }
}

#[test]
fn control_answer_may_outlast_request_limit() {
    let server = Controlled::new(short());
    let mut stream = server.connect();
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    // One a second, which is five times as long.
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert_eq!(lines.filter(|line| line.contains("event: progress")).take(2).count(), 2);
}

#[test]
fn control_connections_beyond_bound_are_told() {
    let limits = ControlLimits { connections_max: 2, request: STALLED_REQUESTS_MAX };
    let server = Controlled::new(limits);
    let open = [server.connect(), server.connect()];
    let third = server.answer(b"");
    assert!(third.starts_with("HTTP/1.1 503 "), "{third}");
    assert!(third.contains("all 2 connections"), "{third}");
    drop(open);
    let client = ControlClient::new(&server.path()).unwrap();
    assert!(eventually(|| client.status().is_ok()), "places are given again");
}

#[test]
fn control_takes_two_long_bodies_at_once() {
    let limits = ControlLimits { request: Duration::from_secs(2), ..ControlLimits::default() };
    let server = Controlled::new(limits);
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                content-length: 30000000\r\n\r\n";
    let half = [head.as_bytes(), &[b' '; 1 << 20]].concat();
    let answers = thread::scope(|threads| {
        let all: Vec<_> = (0..6).map(|_| threads.spawn(|| server.answer(&half))).collect();
        let begun = Instant::now();
        let client = ControlClient::new(&server.path()).unwrap();
        // A number that is none comes back at once.
        let block_size = Some(Bytes::new(1));
        let short = client.create(&TaskOrder { block_size, ..scan() }.into());
        assert!(short.is_err() && begun.elapsed() < Duration::from_secs(2), "{short:?}");
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<String>>()
    });
    let of = |status: &str| answers.iter().filter(|answer| answer.contains(status)).count();
    // Places that are given up are taken by those that wait, as far as their time reaches.
    assert!(of(" 408 ") >= 2 && of(" 408 ") + of(" 503 ") == 6, "{answers:?}");
    assert!(of("2 requests with long bodies are under way") >= 1, "{answers:?}");
}

fn scan() -> TaskOrder {
    TaskRequest::new(TaskKind::Scan).order
}

#[test]
fn control_socket_is_private_to_user() {
    let server = Controlled::new(ControlLimits::default());
    let mode = std::fs::metadata(server.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// A request with this body.
fn post(body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// A request without one.
fn ask(line: &str) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").into_bytes()
}

/// A request to begin a task with these header lines and this body.
fn posted(headers: &str, body: &str) -> Vec<u8> {
    format!("POST /v1/tasks HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n{body}").into()
}

/// That each of these gets an answer with its status, and others are served as before.
fn refuses_all(cases: &[(&str, Vec<u8>, &str)]) {
    let request = Duration::from_secs(2);
    let server = Controlled::new(ControlLimits { request, ..ControlLimits::default() });
    let mut wrong = Vec::new();
    for (name, sent, says) in cases {
        let answer = server.answer(sent);
        let status = answer.split(' ').nth(1).unwrap_or_default();
        if status != *says {
            wrong.push(format!("{name}: {status} and not {says}: {answer}"));
        }
        server.answers_others();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn control_refuses_non_http() {
    let many = |count: usize| {
        let headers: String = (0..count).map(|at| format!("x-{at}: y\r\n")).collect();
        format!("GET / HTTP/1.1\r\n{headers}\r\n").into_bytes()
    };
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("no HTTP at all", b"hello there\r\n\r\n".to_vec(), "400"),
        ("NBD in place of HTTP", b"IHAVEOPT\0\0\0\x07\0\0\0\0".to_vec(), "400"),
        ("TLS in place of HTTP", vec![22, 3, 1, 0, 5, 1, 0, 0, 1, 0], "400"),
        ("a version that is not", b"GET / HTTP/9.9\r\n\r\n".to_vec(), "400"),
        ("a zero in the path", b"GET /\0 HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), "400"),
        ("a header without a name", b"GET / HTTP/1.1\r\n: x\r\n\r\n".to_vec(), "400"),
        ("a folded header", b"GET / HTTP/1.1\r\nhost: x\r\n y\r\n\r\n".to_vec(), "400"),
        ("a thousand headers", many(1000), "431"),
        (
            "a megabyte of a header",
            [b"GET / HTTP/1.1\r\nx: ", &[b'y'; 1 << 20][..]].concat(),
            "431",
        ),
        ("a path of a megabyte", ask(&format!("GET /{}", "x".repeat(1 << 20))), "431"),
    ];
    refuses_all(&cases);
}

#[test]
fn control_refuses_unknown_paths_and_methods() {
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a path out of the root", ask("GET /../../etc/passwd"), "404"),
        ("an escaped path out of the root", ask("GET /v1/tasks/..%2f..%2fstatus"), "400"),
        ("a method that is not", ask("BREW /v1/tasks"), "405"),
        ("a task removed", ask("DELETE /v1/tasks/1"), "405"),
        ("a tunnel", ask("CONNECT elsewhere:80"), "404"),
        ("a negative task", ask("GET /v1/tasks/-1"), "400"),
        ("a task beyond all numbers", ask("GET /v1/tasks/18446744073709551616"), "400"),
        ("a task that is not there", ask("POST /v1/tasks/18446744073709551615/abort"), "404"),
        ("a time that is none", ask("GET /v1/written?since_ns=yesterday"), "400"),
        ("a time that is there twice", ask("GET /v1/written?since_ns=1&since_ns=2"), "400"),
    ];
    refuses_all(&cases);
}

#[test]
fn control_refuses_wrong_body_length_or_type() {
    let json = "content-type: application/json\r\n";
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "two lengths",
            posted(&format!("{json}content-length: 2\r\ncontent-length: 3\r\n"), "{}"),
            "400",
        ),
        ("a negative length", posted(&format!("{json}content-length: -2\r\n"), "{}"), "400"),
        (
            "a length of 4 GiB",
            posted(&format!("{json}content-length: 4294967296\r\n"), "{}"),
            "408",
        ),
        (
            "a chunk of no length",
            posted(&format!("{json}transfer-encoding: chunked\r\n"), "zz\r\n{}\r\n0\r\n\r\n"),
            "400",
        ),
        (
            "a chunk longer than any",
            posted(&format!("{json}transfer-encoding: chunked\r\n"), "fffffffffffffffffff\r\n{}"),
            "400",
        ),
        (
            "a coding that is not",
            posted(&format!("{json}transfer-encoding: rot13\r\n"), "{}"),
            "400",
        ),
        ("no type", posted("content-length: 15\r\n", r#"{"kind":"scan"}"#), "415"),
    ];
    refuses_all(&cases);
}

#[test]
fn control_refuses_unknown_documents() {
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("no body", post(""), "400"),
        ("no JSON", post("kind=scan"), "400"),
        ("half of a document", post(r#"{"kind":"scan""#), "400"),
        ("more behind a document", post(r#"{"kind":"scan"} {"kind":"scan"}"#), "400"),
        ("a number that is none", post(r#"{"kind":"scan","skip_since_ns":NaN}"#), "400"),
        ("a number beyond all", post(r#"{"kind":"scan","skip_since_ns":1e999}"#), "400"),
        ("a deep nest, by its first list", post(&"[".repeat(1 << 20)), "422"),
        ("a deep nest of objects, by its first field", post(&r#"{"a":"#.repeat(1 << 18)), "422"),
        ("a field twice", post(r#"{"kind":"scan","kind":"scrub"}"#), "422"),
        ("a field twice below", post(r#"{"kind":"scan","skip":[{"blocks":1,"blocks":2}]}"#), "422"),
        ("nothing", post("null"), "422"),
        ("a list", post("[]"), "422"),
        ("a field that is not", post(r#"{"kind":"scan","root":true}"#), "422"),
        (
            "a number too large",
            post(r#"{"kind":"scan","skip_since_ns":18446744073709551616}"#),
            "422",
        ),
        ("no blocks", post(r#"{"kind":"scan","length":"0B"}"#), "422"),
        (
            "blocks beyond the end of numbers",
            post(r#"{"kind":"scan","start":"512B","length":"18446744073709551104B"}"#),
            "422",
        ),
        ("blocks of no size", post(r#"{"kind":"scan","block_size":"0B"}"#), "422"),
        ("blocks of a part", post(r#"{"kind":"scan","block_size":"513B"}"#), "422"),
        (
            "blocks without end",
            post(r#"{"kind":"scan","block_size":"18446744073709551104B"}"#),
            "422",
        ),
        (
            "ranges over each other",
            post(
                r#"{"kind":"scan","skip":[{"first_block":0,"blocks":8},{"first_block":4,"blocks":8}]}"#,
            ),
            "422",
        ),
        (
            "a range beyond the end of numbers",
            post(r#"{"kind":"scan","skip":[{"first_block":18446744073709551615,"blocks":8}]}"#),
            "422",
        ),
    ];
    refuses_all(&cases);
}

#[test]
fn control_names_duplicate_field() {
    let server = Controlled::new(ControlLimits::default());
    let twice = server.answer(&post(r#"{"kind":"scan","repeat":true,"repeat":false}"#));
    assert!(twice.contains("the field `repeat` is there twice"), "{twice}");
}
