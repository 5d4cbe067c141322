//! Properties of a server's control socket, for any bytes. Each request has an answer, and a refusal
//! gives the reason. A task that begins is the requested one. The server still answers afterwards.
//!
//! Goals: one body for the fuzz target and for the ordinary test over the saved corpus
//! (`tests/fuzz_checks/live.rs`).
//! Non-goals: the progress of a task; HTTP, which a library handles.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use freewheel_freeblock::Rule;
use freewheel_host::{PredictionSpec, PredictiveScheduler};
use freewheel_live::control::{
    ControlClient, ControlLimits, ControlServer, Refusal, Task, TaskRequest,
};
use freewheel_live::serve::backend::{Abilities, Backend, DeviceCommand};
use freewheel_live::serve::{BackendChannel, Serving, Setup};
use freewheel_model::sched::PolicySpec;
use freewheel_sim::library;
use freewheel_units::{Blocks, SimDuration};
use serde_json::Value;

/// A device that never answers, so that tasks make no progress between requests.
struct Silent(Blocks);

impl Backend for Silent {
    fn blocks(&self) -> Blocks {
        self.0
    }

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn submit(&self, _: DeviceCommand) {}
}

/// A server for all requests.
struct World {
    _control: ControlServer,
    socket: PathBuf,
    blocks: u64,
    _folder: tempfile::TempDir,
}

static WORLD: LazyLock<World> = LazyLock::new(World::new);

impl World {
    /// Server of a small drive, so that a task costs little.
    fn new() -> Self {
        let (mut spec, name) = (library::spec("tr96").expect("a drive of ours"), "tr96");
        spec.cylinders = 200;
        spec.zones[0].last_cylinder = 199;
        let drive = Arc::new(library::build(&spec, name).expect("a part of a drive"));
        let blocks = drive.blocks();
        let scheduler = PredictiveScheduler::new(
            &drive,
            SimDuration::ZERO,
            PolicySpec::Fcfs,
            PredictionSpec::default(),
        );
        let setup = Setup {
            drive,
            name: name.into(),
            scheduler: scheduler.expect("a policy without parameters"),
            rule: Rule::Paths,
            task: None,
            notice: Box::new(|_| {}),
            ended: Box::new(|| {}),
        };
        let serving = Serving::start(setup, Arc::new(Silent(blocks)), BackendChannel::new());
        let serving = Arc::new(serving.expect("the drive's own size"));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = folder.path().join("control");
        let control =
            ControlServer::start(serving, &socket, ControlLimits::default()).expect("a new socket");
        Self { _control: control, socket, blocks: blocks.get(), _folder: folder }
    }

    /// Status and body of the answer to a request.
    fn ask(&self, line: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = UnixStream::connect(&self.socket).expect("the server is there");
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: fuzz\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        let mut answer = Vec::new();
        // What need not be read is refused before it is sent.
        let _ = stream.write_all(&[head.as_bytes(), body].concat());
        stream.read_to_end(&mut answer).expect("an answer");
        let text = String::from_utf8_lossy(&answer);
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.unwrap_or_else(|| panic!("{line}: no answer but {text:?}"));
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a body");
        (status, answer.split_off(end + 4))
    }
}

/// Sends what `bytes` say and checks what must hold. Panics otherwise. With a first line `GET PATH`
/// or `POST PATH` it is that, with the other lines as its body; else all is a task to begin.
pub fn check(bytes: &[u8]) {
    let world = &*WORLD;
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let line = std::str::from_utf8(&bytes[..end]).ok().filter(|line| is_request(line));
    let (line, body) = match line {
        Some(line) => (line, bytes.get(end + 1..).unwrap_or_default()),
        None => ("POST /v1/tasks", bytes),
    };
    let (status, answer) = world.ask(line, body);
    match status {
        201 => check_task(world, body, &answer),
        200..300 => {}
        400..500 => {
            let Refusal { error } = serde_json::from_slice(&answer).expect("a refusal");
            assert!(!error.is_empty(), "{line}: {status}");
        }
        _ => panic!("{line}: {status}: {}", String::from_utf8_lossy(&answer)),
    }
}

/// True if a line requests a path with a finite answer in valid HTTP. Hyper answers invalid HTTP without a
/// body, or not at all after a preface of HTTP/2.
fn is_request(line: &str) -> bool {
    let path = line.strip_prefix("GET /").or(line.strip_prefix("POST /"));
    path.is_some_and(|path| {
        path.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~/?=&%:@+,;!*'()".contains(&byte))
            && !path.starts_with("v1/events")
            && !path.ends_with("/data")
    })
}

fn check_task(world: &World, body: &[u8], answer: &[u8]) {
    let task: Task = serde_json::from_slice(answer).expect("a task");
    let asked: Value = serde_json::from_slice(body).expect("a task was asked for in JSON");
    let request: TaskRequest = serde_json::from_value(asked).expect("which was understood");
    let written = serde_json::to_vec(&request).expect("a request can be written");
    let read: TaskRequest = serde_json::from_slice(&written).expect("and read");
    assert_eq!(read, request, "written again");
    let order = &request.order;
    assert_eq!((task.kind, task.first_block * 512), (order.kind, order.start.get()));
    assert_eq!((task.repeat, task.stream), (order.repeat, request.stream));
    assert_eq!(task.priority, order.priority);
    assert!(order.block_size.is_none_or(|block| block.get() == task.block_size_bytes));
    let drawn = task
        .sample
        .as_ref()
        .map(|sample| sample.tenths.iter().map(|tenth| tenth.drawn_blocks).sum::<u64>());
    assert_eq!(drawn, request.sample.map(|_| task.blocks), "{task:?}");
    assert!((1..=world.blocks - task.first_block).contains(&task.blocks), "{task:?}");
    assert_eq!(task.blocks_left, task.blocks, "{task:?}");
    let client = ControlClient::new(&world.socket).expect("a runtime");
    let ended = client.abort(task.id).expect("what began can be ended");
    assert_eq!(ended.id, task.id);
    client.status().expect("the server is there");
}
