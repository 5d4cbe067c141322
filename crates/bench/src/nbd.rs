//! Cost of a request over NBD when the device costs no time: Freewheel's server and nbdkit's. Cost of
//! the two ways to read and write a file: the system's ring and threads. The same for reads of a given
//! block device.

pub mod hostile;
mod through;

use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use freewheel_live::nbd::{Access, Address, Limits, Memory, Server, Service, Stop};
use freewheel_live::serve::backend::Io;
use freewheel_nbd::Command;
use freewheel_nbd::client::{Event, Session, Settings};
use freewheel_units::Prng;

use self::through::LoadRun;
use crate::record::Origin;

/// Argument that turns this program into the server.
pub const SERVE: &str = "--nbd-serve";

const DISK_BYTES: u64 = 1 << 30;
const ROUNDS: usize = 7;

/// Answers that are expected of a server.
const ANSWERS: &str = "a server that answers";

/// A kind of request that a client repeats.
struct Load {
    name: &'static str,
    length: u32,
    depth: usize,
    random: bool,
    write: bool,
    requests: u32,
}

const LOADS: &[Load] = &[
    load("4 KiB random read, depth 1", 4096, 1, false, 20_000),
    load("4 KiB random write, depth 1", 4096, 1, true, 20_000),
    load("4 KiB random read, depth 32", 4096, 32, false, 100_000),
    load("4 KiB random write, depth 32", 4096, 32, true, 100_000),
    load("1 MiB sequential read, depth 4", 1 << 20, 4, false, 1024),
    load("1 MiB sequential write, depth 4", 1 << 20, 4, true, 1024),
];

const fn load(name: &'static str, length: u32, depth: usize, write: bool, requests: u32) -> Load {
    Load { name, length, depth, random: length < 1 << 20, write, requests }
}

/// Loads of a file: without the long ones, which measure the disk.
const FILE_LOADS: std::ops::Range<usize> = 0..4;

/// The two ways to read and write a file.
const WAYS: [&str; 2] = ["io_uring", "threads"];

/// Most commands of a file at a time: the depth of the deepest load.
const AT_ONCE: u32 = 32;

/// Time of a load on a device: a disk answers a hundred requests a second, and memory a hundred
/// thousand.
const DEVICE_ROUND: Duration = Duration::from_secs(1);

/// Prints the tables, with one of reads of a device if given. Servers take turns, so that another load
/// on the machine affects both.
pub fn run(device: Option<&str>) {
    crate::print_origin(&Origin::here(), &format!("median of {ROUNDS} rounds"));
    let folder = std::env::temp_dir().join(format!("freewheel-bench-nbd-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for sockets");
    let ours = ServerProcess::ours(&format!("memory:{DISK_BYTES}"), &folder.join("ours"));
    let nbdkit = ServerProcess::nbdkit(&folder.join("nbdkit"), DISK_BYTES);
    table(LOADS, ["freewheel", "nbdkit memory"], [Some(ours), nbdkit]);
    println!();
    let file = |name: &str, how: &str| {
        let path = folder.join(name);
        let made = std::fs::File::create(&path).and_then(|file| file.set_len(DISK_BYTES));
        made.expect("room for a file");
        ServerProcess::ours(&format!("{how}:{}", path.display()), &folder.join(how))
    };
    let files = [Some(file("a", "uring")), Some(file("b", "threads"))];
    println!("a file in {}:", std::env::temp_dir().display());
    table(&LOADS[FILE_LOADS], WAYS, files);
    if let Some(device) = device {
        println!();
        println!("reads of {device}, {DEVICE_ROUND:?} a round:");
        device_table(device, &folder);
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

/// A table with a row for each load, for two servers, of which the second may be missing.
fn table(loads: &[Load], names: [&str; 2], servers: [Option<ServerProcess>; 2]) {
    print_names(names);
    let mut clients: Vec<Client> =
        servers.iter().flatten().map(|server| Client::connect(&server.socket)).collect();
    for client in &mut clients {
        client.fill();
    }
    for load in loads {
        print_row(load, &mut clients);
    }
}

fn print_row(load: &Load, servers: &mut [Client]) {
    let mut rates = vec![Vec::new(); servers.len()];
    for round in 0..ROUNDS {
        for (server, rates) in servers.iter_mut().zip(&mut rates) {
            rates.push(server.play(load, round as u64, Duration::MAX).expect(ANSWERS));
        }
    }
    print_medians(load, rates);
}

/// A table with a row for each reading load, of a device that one server at a time may open.
fn device_table(device: &str, folder: &Path) {
    print_names(WAYS);
    let loads: Vec<&Load> = LOADS.iter().filter(|load| !load.write).collect();
    let mut rates = vec![vec![Vec::new(); WAYS.len()]; loads.len()];
    for round in 0..ROUNDS {
        for (way, how) in ["uring-reads", "threads-reads"].into_iter().enumerate() {
            let server = ServerProcess::ours(&format!("{how}:{device}"), &folder.join(how));
            let mut client = Client::connect(&server.socket);
            for (load, rates) in loads.iter().zip(&mut rates) {
                rates[way].push(client.play(load, round as u64, DEVICE_ROUND).expect(ANSWERS));
            }
        }
    }
    loads.into_iter().zip(rates).for_each(|(load, rates)| print_medians(load, rates));
}

fn print_names(names: [&str; 2]) {
    println!("{:<34}{:>16}{:>16}{:>8}", "requests a second", names[0], names[1], "ratio");
}

fn print_medians(load: &Load, rates: Vec<Vec<f64>>) {
    let medians: Vec<f64> = rates.into_iter().map(median).collect();
    match medians[..] {
        [ours, other] => {
            println!("{:<34}{ours:>16.0}{other:>16.0}{:>8.2}", load.name, ours / other);
        }
        _ => println!("{:<34}{:>16.0}{:>16}", load.name, medians[0], "not installed"),
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Serves `memory:BYTES`, or a file by one of two ways (`uring:PATH`, `threads:PATH`), until it is
/// killed. `uring-reads:PATH` and `threads-reads:PATH` open the file for reads only.
pub fn serve(what: &str, socket: &str) {
    let file = |path: &str, io, writes| {
        let file = LoadRun::new(&PathBuf::from(path), io, AT_ONCE, writes);
        if !file.is_direct() {
            eprintln!("{path}: through the page cache");
        }
        Arc::new(file)
    };
    let disk: Arc<dyn Service> = match what.split_once(':') {
        Some(("uring", path)) => file(path, Io::Uring, true),
        Some(("threads", path)) => file(path, Io::Threads, true),
        Some(("uring-reads", path)) => file(path, Io::Uring, false),
        Some(("threads-reads", path)) => file(path, Io::Threads, false),
        Some(("memory", bytes)) => {
            Arc::new(Memory::new("memory", bytes.parse().expect("a number of bytes")))
        }
        _ => panic!("{what}: no such disk"),
    };
    let address = Address::Unix(socket.into());
    let server = Server::bind(&address, Access::default(), vec![disk], Limits::default(), notice);
    let stop = Stop::new().expect("a pair of sockets");
    server.expect("a free socket").run(&stop).expect("a socket that listens");
}

/// Notices about hostile clients would hide the table.
fn notice(_: &str) {}

/// A server in a separate process, killed at the end.
struct ServerProcess {
    child: Child,
    socket: PathBuf,
}

impl ServerProcess {
    fn ours(what: &str, socket: &Path) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let child = Process::new(program).args([SERVE, what]).arg(socket).spawn();
        Self { child: child.expect("this program runs"), socket: socket.into() }
    }

    /// Starts nbdkit; None when it is not installed.
    fn nbdkit(socket: &Path, disk_bytes: u64) -> Option<Self> {
        let mut command = Process::new("nbdkit");
        command.args(["-f", "-U"]).arg(socket).args(["memory", &disk_bytes.to_string()]);
        command.stderr(Stdio::null());
        Some(Self { child: command.spawn().ok()?, socket: socket.into() })
    }
}

impl ServerProcess {
    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of this process")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // The process may have ended before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One connection, which keeps a number of requests in flight.
struct Client {
    stream: UnixStream,
    session: Session,
    /// Size of the export.
    bytes: u64,
    buffer: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl Client {
    fn connect(socket: &Path) -> Self {
        let until = Instant::now() + Duration::from_secs(10);
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > until => panic!("{}: {error}", socket.display()),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let session = Session::new(Settings::default());
        let (buffer, spare) = (vec![0; 256 << 10], Vec::new());
        let mut client = Self { stream, session, bytes: 0, buffer, spare };
        while client.bytes == 0 {
            let mut bytes = 0;
            let greeted = client.receive(|event, session, stream| match event {
                Event::Greeted => {
                    let go = session.go("").expect("the greeting is over");
                    stream.write_all(&go).expect("a server that reads");
                }
                Event::Started(info) => bytes = info.size,
                other => panic!("{other:?}"),
            });
            greeted.expect(ANSWERS);
            client.bytes = bytes;
        }
        client
    }

    /// Reads once; passes every event to `call`, and sends the events with outgoing bytes.
    fn receive(
        &mut self,
        mut call: impl FnMut(Event, &mut Session, &mut UnixStream),
    ) -> io::Result<()> {
        let Self { stream, session, buffer, .. } = self;
        let space = session.space();
        let in_place = space.is_some();
        let length = stream.read(space.unwrap_or(buffer))?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if in_place {
            session.filled(length);
        }
        let mut bytes = if in_place { &[][..] } else { &buffer[..length] };
        while let Some(event) = session.feed(&mut bytes).expect("a server that keeps the rules") {
            match event {
                Event::Send(bytes) => stream.write_all(&bytes)?,
                event => call(event, session, stream),
            }
        }
        Ok(())
    }

    /// Writes the whole disk, so that the server has memory for every block.
    fn fill(&mut self) {
        let requests = (self.bytes >> 20) as u32;
        self.play(&Load { requests, ..load("", 1 << 20, 4, true, 0) }, 0, Duration::MAX)
            .expect(ANSWERS);
    }

    /// Issues the whole load, or as much of it as fits in `longest`; returns the requests a second. Err
    /// when the server closes the connection.
    fn play(&mut self, load: &Load, seed: u64, longest: Duration) -> io::Result<f64> {
        let places = self.bytes / u64::from(load.length);
        let mut prng = Prng::new(seed, "places");
        let data = vec![1; load.length as usize];
        let begun = Instant::now();
        let (mut asked, mut answered) = (0, 0);
        let mut last = load.requests;
        while answered < last {
            if begun.elapsed() >= longest {
                last = asked;
            }
            let mut parts = Vec::new();
            while asked < last && self.session.in_flight() < load.depth {
                let place =
                    if load.random { prng.below(places) } else { u64::from(asked) % places };
                let offset = place * u64::from(load.length);
                let command = if load.write {
                    Command::write(offset, load.length)
                } else {
                    Command::read(offset, load.length)
                };
                let buffer = self.spare.pop().unwrap_or_default();
                let (_, head) = self.session.request(command, buffer).expect("a valid request");
                parts.push(head);
                asked += 1;
            }
            self.send(&parts, if load.write { &data } else { &[] })?;
            let mut spare = std::mem::take(&mut self.spare);
            let received = self.receive(|event, _, _| match event {
                Event::Reply(reply) => {
                    reply.result.expect("memory does not fail");
                    answered += 1;
                    spare.push(reply.data);
                }
                other => panic!("{other:?}"),
            });
            self.spare = spare;
            received?;
        }
        Ok(f64::from(answered) / begun.elapsed().as_secs_f64())
    }

    /// Sends these headers, each followed by the data.
    fn send(&mut self, heads: &[freewheel_nbd::Head], data: &[u8]) -> io::Result<()> {
        let both = heads.iter().flat_map(|head| [&head[..], data]);
        let mut parts: Vec<IoSlice<'_>> = both.map(IoSlice::new).collect();
        let mut parts = &mut parts[..];
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let sent = self.stream.write_vectored(parts)?;
            IoSlice::advance_slices(&mut parts, sent);
        }
        Ok(())
    }
}
