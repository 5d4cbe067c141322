//! Effect of 64 hostile connections on a well-behaved client and on the server's memory: Freewheel's
//! server and nbdkit's.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Client, Load, ServerProcess, load};
use crate::record::Origin;

/// Argument that turns this program into the hostile process.
pub const CROWD: &str = "--nbd-crowd";

const DISK_BYTES: u64 = 64 << 20;
const CONNECTIONS: usize = 64;
/// Length of each phase: before, during and after.
const PHASE: Duration = Duration::from_secs(10);
/// Pause between the phases, for connections to begin or to be cleaned up.
const PAUSE: Duration = Duration::from_secs(2);
const READ: Load = load("", 4096, 1, false, 1);
const LARGE: u32 = 32 << 20;

/// Kinds of hostile connections, in equal numbers.
const KINDS: &[fn(&Path) -> io::Result<()>] = &[
    says_nothing,
    sends_half_a_greeting,
    sends_nonsense,
    asks_and_reads_no_answer,
    asks_and_leaves,
    reads_large,
    writes_large,
    drips_a_payload,
];

pub fn run() {
    crate::print_origin(
        &Origin::here(),
        &format!("{CONNECTIONS} hostile connections of one process"),
    );
    println!(
        "{:<12}{:<8}{:>12}{:>12}{:>12}{:>16}",
        "server", "phase", "p50, us", "p99, us", "max, ms", "memory, MiB"
    );
    let folder = std::env::temp_dir().join(format!("freewheel-hostile-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for sockets");
    let ours = ServerProcess::ours(&format!("memory:{DISK_BYTES}"), &folder.join("ours"));
    besiege("freewheel", ours);
    match ServerProcess::nbdkit(&folder.join("nbdkit"), DISK_BYTES) {
        Some(nbdkit) => besiege("nbdkit", nbdkit),
        None => println!("nbdkit: not installed"),
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

/// Measures the three rows of one server, or fewer if it dies.
fn besiege(name: &str, mut server: ServerProcess) {
    let mut client = Client::connect(&server.socket);
    client.fill();
    let mut crowd = None;
    for phase in ["before", "during", "after"] {
        if phase == "during" {
            crowd = Some(HostileClients::begin(&server.socket));
        } else if let Some(mut crowd) = crowd.take() {
            crowd.end();
        }
        thread::sleep(PAUSE);
        if let Err(error) = print_phase(name, phase, &mut client, &server) {
            // A server that crashes takes a moment to be gone.
            thread::sleep(PAUSE);
            let ended = server.ended().map_or("still runs".into(), |status| status.to_string());
            println!("{name:<12}{phase:<8}the client is cut off: {error}; the server: {ended}");
            return;
        }
    }
}

/// Reads for the length of a phase and prints how long reads took, and the most memory that the server
/// had meanwhile. An error when the server ends the connection.
fn print_phase(
    name: &str,
    phase: &str,
    client: &mut Client,
    server: &ServerProcess,
) -> io::Result<()> {
    let mut times_us = Vec::new();
    let mut memory_kib = 0;
    let begun = Instant::now();
    let mut looked: Option<Instant> = None;
    while begun.elapsed() < PHASE {
        if looked.is_none_or(|looked| looked.elapsed() > Duration::from_millis(20)) {
            memory_kib = memory_kib.max(resident_kib(&server.child));
            looked = Some(Instant::now());
        }
        times_us.push(1e6 / client.play(&READ, times_us.len() as u64, Duration::MAX)?);
    }
    times_us.sort_by(f64::total_cmp);
    let at = |share: f64| times_us[((times_us.len() - 1) as f64 * share) as usize];
    let (p50, p99, max_ms) = (at(0.5), at(0.99), at(1.0) / 1000.0);
    let memory_mib = memory_kib / 1024;
    println!("{name:<12}{phase:<8}{p50:>12.0}{p99:>12.0}{max_ms:>12.1}{memory_mib:>16}");
    Ok(())
}

/// Resident memory of a process, in KiB.
fn resident_kib(child: &Child) -> u64 {
    let path = format!("/proc/{}/status", child.id());
    let status = std::fs::read_to_string(path).expect("a server that runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let value = line.and_then(|line| line.trim().strip_suffix(" kB"));
    // A process that has crashed has no memory left.
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// The hostile process, killed at the end.
struct HostileClients(Child);

impl HostileClients {
    fn begin(socket: &Path) -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let child = Process::new(program).arg(CROWD).arg(socket).stdout(Stdio::null()).spawn();
        Self(child.expect("this program runs"))
    }

    fn end(&mut self) {
        // The process may have ended before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for HostileClients {
    fn drop(&mut self) {
        self.end();
    }
}

/// Keeps the hostile connections up for a phase and the pauses around it: what is refused or cut off
/// comes again.
pub fn crowd(socket: &str) {
    let until = Instant::now() + PHASE + 2 * PAUSE;
    let socket = Path::new(socket);
    thread::scope(|scope| {
        for index in 0..CONNECTIONS {
            let kind = KINDS[index % KINDS.len()];
            scope.spawn(move || {
                while Instant::now() < until {
                    // The connection expects to be refused or cut off.
                    let _ = kind(socket);
                    thread::sleep(Duration::from_millis(50));
                }
            });
        }
    });
}

fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PHASE))?;
    stream.set_write_timeout(Some(PHASE))?;
    Ok(stream)
}

/// A connection behind its handshake, by the oldest of options.
fn started(socket: &Path) -> io::Result<UnixStream> {
    let mut stream = connect(socket)?;
    stream.read_exact(&mut [0; 18])?;
    stream.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0")?;
    stream.read_exact(&mut [0; 10])?;
    Ok(stream)
}

/// The header of a request for the first `length` bytes.
fn request(kind: u16, length: u32) -> [u8; 28] {
    let mut header = [0; 28];
    header[..4].copy_from_slice(&0x2560_9513_u32.to_be_bytes());
    header[6..8].copy_from_slice(&kind.to_be_bytes());
    header[24..].copy_from_slice(&length.to_be_bytes());
    header
}

const READS: u16 = 0;
const WRITES: u16 = 1;

fn says_nothing(socket: &Path) -> io::Result<()> {
    wait_for_the_end(connect(socket)?)
}

fn sends_half_a_greeting(socket: &Path) -> io::Result<()> {
    let mut stream = connect(socket)?;
    stream.write_all(&[0, 0])?;
    wait_for_the_end(stream)
}

fn sends_nonsense(socket: &Path) -> io::Result<()> {
    let mut stream = started(socket)?;
    stream.write_all(&[0xff; 64])?;
    wait_for_the_end(stream)
}

fn asks_and_reads_no_answer(socket: &Path) -> io::Result<()> {
    let mut stream = started(socket)?;
    stream.write_all(&request(READS, LARGE).repeat(4000))?;
    thread::sleep(PHASE);
    Ok(())
}

fn asks_and_leaves(socket: &Path) -> io::Result<()> {
    started(socket)?.write_all(&request(READS, LARGE).repeat(4000))
}

fn reads_large(socket: &Path) -> io::Result<()> {
    let mut stream = started(socket)?;
    stream.write_all(&request(READS, LARGE).repeat(16))?;
    let mut buffer = vec![0; 1 << 20];
    let mut taken = 0;
    while taken < 16 * u64::from(LARGE) {
        match stream.read(&mut buffer)? {
            0 => break,
            length => taken += length as u64,
        }
    }
    Ok(())
}

fn writes_large(socket: &Path) -> io::Result<()> {
    let mut stream = started(socket)?;
    let data = vec![1; LARGE as usize];
    for _ in 0..16 {
        stream.write_all(&request(WRITES, LARGE))?;
        stream.write_all(&data)?;
    }
    stream.read_exact(&mut [0; 16 * 16])
}

fn drips_a_payload(socket: &Path) -> io::Result<()> {
    let mut stream = started(socket)?;
    stream.write_all(&request(WRITES, LARGE))?;
    for _ in 0..PHASE.as_secs() {
        stream.write_all(&[1])?;
        thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

/// Waits, without sending, until the server cuts the connection off.
fn wait_for_the_end(mut stream: UnixStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}
