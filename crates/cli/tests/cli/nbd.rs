//! Servers of this program, and a client for them.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use freewheel_nbd::client::{Event, Session, Settings};

use super::run::command;

/// A server that runs, killed at the end if it has not ended.
pub struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub first_line: String,
}

impl Running {
    /// Starts it, and waits until it says that it listens.
    pub fn start(args: &[&str]) -> Self {
        Self::spawn(&mut command(args))
    }

    /// Starts a command that has been made ready.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first_line = String::new();
        stdout.read_line(&mut first_line).unwrap();
        Self { child, stdout, first_line }
    }

    pub fn signal(&mut self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits for the end: output and exit code.
    pub fn end(&mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names of all exports, as this project's client gets them.
pub fn exports(socket: &Path) -> Vec<String> {
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut session = Session::new(Settings::default());
    loop {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "the server has hung up");
        let mut bytes = &buffer[..length];
        while let Some(event) = session.feed(&mut bytes).unwrap() {
            match event {
                Event::Send(bytes) => stream.write_all(&bytes).unwrap(),
                Event::Greeted => stream.write_all(&session.list().unwrap()).unwrap(),
                Event::Exports(all) => return all.into_iter().map(|listed| listed.name).collect(),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A client that knows one way of asking.
pub struct Client(UnixStream);

impl Client {
    /// Chooses the export without a name in the oldest way, whose answer is a size and flags.
    pub fn connect(socket: &Path) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        stream.write_all(&[0, 0, 0, 3]).unwrap();
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Self(stream)
    }

    fn call(&mut self, kind: u8, offset: u64, length: u32, data: &[u8]) {
        let mut head = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, kind];
        head.extend([7; 8]);
        head.extend(offset.to_be_bytes());
        head.extend(length.to_be_bytes());
        self.0.write_all(&head).unwrap();
        self.0.write_all(data).unwrap();
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).unwrap();
        assert_eq!(reply, [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7]);
    }

    /// True if the server ends the connection without a further byte.
    pub fn ends_without_answer(mut self) -> bool {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(error) => rest.is_empty() && error.kind() == ErrorKind::ConnectionReset,
        }
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        self.call(1, offset, data.len() as u32, data);
    }

    pub fn flush(&mut self) {
        self.call(3, 0, 0, &[]);
    }

    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        self.call(0, offset, length, &[]);
        let mut data = vec![0; length as usize];
        self.0.read_exact(&mut data).unwrap();
        data
    }
}
