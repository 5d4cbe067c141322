//! Tells what a server on a Unix socket or a TCP port offers, and with `--overwrite` fills the
//! export with a pattern and reads it back:
//! `cargo run -p freewheel-nbd --example probe -- 'nbd+unix:///?socket=SOCKET' [--overwrite]`.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::{env, mem};

use freewheel_nbd::client::{Event, ExportInfo, Reply, Session, Settings};
use freewheel_nbd::{Address, Command, Uri};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A connection: a session, and the bytes that it has not taken yet.
struct Connection {
    stream: Box<dyn Stream>,
    session: Session,
    buffer: Vec<u8>,
    unread: std::ops::Range<usize>,
}

impl Connection {
    fn open(address: &Address) -> Result<Self> {
        let stream: Box<dyn Stream> = match address {
            Address::Tcp { host, port } => Box::new(TcpStream::connect((host.as_str(), *port))?),
            Address::Unix { socket } => Box::new(UnixStream::connect(socket)?),
        };
        let session = Session::new(Settings { block_status: true, ..Settings::default() });
        Ok(Self { stream, session, buffer: vec![0; 64 << 10], unread: 0..0 })
    }

    fn next(&mut self) -> Result<Event> {
        loop {
            let mut bytes = &self.buffer[self.unread.clone()];
            let event = self.session.feed(&mut bytes)?;
            self.unread.start = self.unread.end - bytes.len();
            match event {
                Some(Event::Send(bytes)) => self.stream.write_all(&bytes)?,
                Some(event) => return Ok(event),
                None => self.read()?,
            }
        }
    }

    /// Data go where they belong, all else through the buffer.
    fn read(&mut self) -> Result<()> {
        let space = self.session.space();
        let in_place = space.is_some();
        let length = self.stream.read(space.unwrap_or(&mut self.buffer))?;
        if length == 0 {
            self.session.ended()?;
        }
        self.unread = if in_place { 0..0 } else { 0..length };
        self.session.filled(if in_place { length } else { 0 });
        Ok(())
    }

    fn go(&mut self, name: &str) -> Result<ExportInfo> {
        let bytes = self.session.list()?;
        self.stream.write_all(&bytes)?;
        println!("{:?}", self.next()?);
        let bytes = self.session.go(name)?;
        self.stream.write_all(&bytes)?;
        match self.next()? {
            Event::Started(info) => Ok(info),
            Event::Refused(refused) => Err(refused.into()),
            other => Err(format!("{other:?}").into()),
        }
    }

    /// A request and its reply, with the memory of the one before.
    fn request(&mut self, command: Command, data: &[u8], memory: &mut Vec<u8>) -> Result<Reply> {
        let (_, head) = self.session.request(command, mem::take(memory))?;
        self.stream.write_all(&head)?;
        self.stream.write_all(data)?;
        match self.next()? {
            Event::Reply(reply) => Ok(reply),
            other => Err(format!("{other:?}").into()),
        }
    }
}

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let uri: Uri = arguments.next().ok_or("usage: probe URI [--overwrite]")?.parse()?;
    if uri.tls {
        return Err("TLS is not supported here: nbd:// or nbd+unix://".into());
    }
    let mut connection = Connection::open(&uri.address)?;
    println!("{:?}", connection.next()?);
    let info = connection.go(&uri.export)?;
    println!("{info:#?}");
    let length = info.block_sizes.payload_max.min(1 << 20);
    let mut memory = Vec::new();
    if info.features.block_status {
        let span = Command::read(0, length).span();
        let command = Command::BlockStatus { span, one: false };
        println!("{:?}", connection.request(command, &[], &mut memory)?.extents);
    }
    if arguments.any(|argument| argument == "--overwrite") {
        overwrite(&mut connection, info.size, length)?;
    }
    let farewell = connection.session.disconnect()?;
    Ok(connection.stream.write_all(&farewell)?)
}

/// Writes every piece of `length` bytes, then reads every one back.
fn overwrite(connection: &mut Connection, size: u64, length: u32) -> Result<()> {
    let mut memory = Vec::new();
    let pattern = |at: u64| vec![(at / u64::from(length) % 251) as u8; length as usize];
    let pieces = || (0..size - size % u64::from(length)).step_by(length as usize);
    for at in pieces() {
        let reply = connection.request(Command::write(at, length), &pattern(at), &mut memory)?;
        reply.result?;
    }
    for at in pieces() {
        let reply = connection.request(Command::read(at, length), &[], &mut memory)?;
        reply.result?;
        if reply.data != pattern(at) {
            return Err(format!("what is read at {at} is not what was written").into());
        }
        memory = reply.data;
    }
    println!("{} bytes written and read back", pieces().count() as u64 * u64::from(length));
    Ok(())
}
