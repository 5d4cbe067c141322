//! A hanging neighbour of a server delays neither its clients nor its end: a terminal, a log, a shortage of
//! threads or descriptors.
//!
//! Each test prints the p99 of a good client's reads before and beside what hangs. Machines are noisy, so
//! the tests themselves only fail where something waits for it.

use std::fs::{self, File, OpenOptions};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::getuid;

use super::nbd::{Client, Running};
use super::run::{command, repository, run, terminal};
use super::serve::disk;

/// No read of a good client may take this long, also on a busy machine.
const HELD_UP: Duration = Duration::from_secs(10);

/// Reads that a good client times.
const READS: u64 = 1500;

/// A folder with a disk, and the arguments that serve it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        disk(folder.path());
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    fn args(&self) -> Vec<String> {
        let text = |name: &str| self.path(name).to_str().unwrap().to_owned();
        let (disk, socket) = (text("disk"), text("socket"));
        let fixed = ["--drive", "atlas10k", "--stop-within", "12s", "--socket"].map(String::from);
        [&["serve".into(), disk], &fixed[..], &[socket]].concat()
    }

    fn command(&self) -> Command {
        let args = self.args();
        command(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket())
    }

    /// A connection that sends rubbish and does not wait for its end.
    fn send_rubbish(&self) {
        if let Ok(mut stream) = UnixStream::connect(self.socket()) {
            let _ = stream.write_all(&[0xff; 64]);
        }
    }

    /// A number of connections that send rubbish, all of which the server has seen.
    fn send_all_rubbish(&self, connections: usize) {
        (0..connections).for_each(|_| self.send_rubbish());
        self.client().read(0, 4096);
    }

    /// `freewheel tasks` has its answer.
    fn assert_controlled(&self) {
        let control = self.path("socket.control");
        let ran = run(&["tasks", "--control", control.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }

    /// The process of this folder's server ends, with this exit code.
    fn assert_ends(&self, server: &mut Running, within: Duration, code: i32) {
        let begun = Instant::now();
        server.signal("-TERM");
        assert_eq!(server.end().1, Some(code));
        assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
    }
}

/// The p99 of a client's reads of 4 KiB, none of which is held up.
fn p99(client: &mut Client) -> Duration {
    let mut times: Vec<Duration> = (0..READS)
        .map(|number| {
            let begun = Instant::now();
            client.read(4096 * (number % 1024), 4096);
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    assert!(times[times.len() - 1] < HELD_UP, "{:?}", times[times.len() - 1]);
    times[times.len() * 99 / 100]
}

fn print(what: &str, quiet: Duration, beside: Duration) {
    println!(
        "{what}: p99 of 4 KiB reads {quiet:?} before, {beside:?} beside it, {:.2} times",
        beside.as_secs_f64() / quiet.as_secs_f64()
    );
}

/// A full pipe without a reader.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'.'; 4096]).is_ok() {}
    while writer.write(b".").is_ok() {}
    // The server's writes are to wait.
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn unread_log_holds_up_nobody() {
    let place = Place::new();
    let (mut reader, writer) = full_pipe();
    let mut server = Running::spawn(place.command().stderr(writer));
    let mut good = place.client();
    let quiet = p99(&mut good);
    place.send_all_rubbish(2000);
    let beside = p99(&mut good);
    print("a log that nobody reads", quiet, beside);
    place.assert_controlled();
    place.assert_ends(&mut server, Duration::from_secs(10), 0);
    // What was written before is there, and not much more came.
    let mut log = Vec::new();
    drop(server);
    reader.read_to_end(&mut log).unwrap();
    assert!(log.len() < 128 << 10, "{} bytes", log.len());
}

/// Waits for a process that is to end in time.
fn ends(child: &mut Child, within: Duration) -> Option<i32> {
    let until = Instant::now() + within;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    panic!("it has not ended within {within:?}");
}

/// All that a terminal shows until this text comes.
fn shows(control: &mut File, text: &str) {
    let mut shown = String::new();
    while !shown.contains(text) {
        let mut bytes = [0; 1024];
        let length = control.read(&mut bytes).unwrap();
        shown += &String::from_utf8_lossy(&bytes[..length]);
    }
}

#[test]
fn ctrl_s_holds_up_no_client() {
    let place = Place::new();
    let (mut control, terminal) = terminal();
    let end = || Stdio::from(terminal.try_clone().unwrap());
    let mut child = place.command().stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    shows(&mut control, "nbdinfo");
    let mut good = place.client();
    let quiet = p99(&mut good);
    control.write_all(b"\x13").unwrap();
    // The page cache is no such drive: a notice says so after some of these reads.
    place.send_all_rubbish(500);
    let beside = p99(&mut good);
    print("Ctrl-S", quiet, beside);
    place.assert_controlled();
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    // Its last table waits for the terminal until the time for a stop is over.
    assert_eq!(ends(&mut child, Duration::from_secs(20)), Some(1));
    drop(terminal);
}

#[test]
fn log_on_full_disk_holds_up_nobody() {
    let place = Place::new();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut server = Running::spawn(place.command().stderr(full));
    let mut good = place.client();
    let quiet = p99(&mut good);
    place.send_all_rubbish(500);
    let beside = p99(&mut good);
    print("a log on a full disk", quiet, beside);
    place.assert_controlled();
    place.assert_ends(&mut server, Duration::from_secs(10), 0);
}

/// True if the server greets a client, or closes its connection; neither is a failure.
fn is_greeted(socket: &Path) -> bool {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    match stream.read(&mut [0; 18]) {
        Ok(length) => length > 0,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
        Err(error) => panic!("it is neither answered nor closed: {error}"),
    }
}

/// Runs the server by this command of the shell; it may do before what limits it.
fn limited(place: &Place, shell: &str, program: &Path, log: File) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh"]).arg(program).args(place.args());
    command.current_dir(repository()).stderr(log);
    command
}

#[test]
fn thread_shortage_closes_only_new_clients() {
    const USER: u32 = 64_321;
    if !getuid().is_root() {
        println!(
            "skipped: a limit of threads counts a user's other processes, unless root takes another user"
        );
        return;
    }
    let place = Place::new();
    fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(place.folder.path(), Some(USER), None).unwrap();
    chown(place.path("disk"), Some(USER), None).unwrap();
    // The program may lie where only its owner may look, as in a clone below `mktemp -d`.
    let program = place.path("program");
    fs::copy(env!("CARGO_BIN_EXE_freewheel"), &program).unwrap();
    let log = place.path("log");
    let shell = format!(
        "exec setpriv --reuid {USER} --regid {USER} --clear-groups prlimit --nproc=15 \"$@\""
    );
    let mut server =
        Running::spawn(&mut limited(&place, &shell, &program, File::create(&log).unwrap()));
    assert!(!server.first_line.is_empty(), "{}", fs::read_to_string(&log).unwrap());
    let mut good = place.client();
    let quiet = p99(&mut good);
    let mut others: Vec<UnixStream> = Vec::new();
    let mut closed = 0;
    for _ in 0..8 {
        let mut stream = UnixStream::connect(place.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        match stream.read(&mut [0; 18]).expect("answered or closed") {
            0 => closed += 1,
            _ => others.push(stream),
        }
    }
    assert!(closed > 0, "the limit has been reached");
    let beside = p99(&mut good);
    print("no thread left", quiet, beside);
    // Places are given again.
    others.clear();
    let until = Instant::now() + HELD_UP;
    while !is_greeted(&place.socket()) {
        assert!(Instant::now() < until);
    }
    place.assert_ends(&mut server, Duration::from_secs(10), 0);
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("no thread for it") && log.contains("TasksMax"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn descriptor_shortage_closes_only_new_clients() {
    let place = Place::new();
    let log = place.path("log");
    let mut server = Running::spawn(&mut limited(
        &place,
        "ulimit -n 32; exec \"$@\"",
        Path::new(env!("CARGO_BIN_EXE_freewheel")),
        File::create(&log).unwrap(),
    ));
    assert!(!server.first_line.is_empty(), "{}", fs::read_to_string(&log).unwrap());
    let mut good = place.client();
    let quiet = p99(&mut good);
    let (mut open, mut closed) = (Vec::new(), 0);
    for _ in 0..40 {
        let mut stream = UnixStream::connect(place.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        match stream.read(&mut [0; 18]) {
            Ok(1..) => open.push(stream),
            Ok(0) => closed += 1,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => closed += 1,
            Err(error) => panic!("it is neither answered nor closed: {error}"),
        }
    }
    assert!(closed > 0 && !open.is_empty(), "{closed} closed, {} open", open.len());
    let beside = p99(&mut good);
    print("no descriptor left", quiet, beside);
    open.clear();
    let until = Instant::now() + HELD_UP;
    while !is_greeted(&place.socket()) {
        assert!(Instant::now() < until);
    }
    place.assert_controlled();
    place.assert_ends(&mut server, Duration::from_secs(10), 0);
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("ulimit -n"), "{log}");
}

#[test]
fn halted_server_is_called_silent() {
    let place = Place::new();
    let server = Running::spawn(&mut place.command());
    let mut server = server;
    server.signal("-STOP");
    let begun = Instant::now();
    let control = place.path("socket.control");
    let ran = run(&["tasks", "--control", control.to_str().unwrap()]);
    server.signal("-CONT");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("no answer within 20s"), "{}", ran.stderr);
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
}
