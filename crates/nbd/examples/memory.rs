//! A server of zeroes in memory on a Unix socket, one thread a connection:
//! `cargo run --release -p freewheel-nbd --example memory -- SOCKET MIB`, then
//! `nbdinfo 'nbd+unix:///?socket=SOCKET'`.

use std::error::Error;
use std::io::{IoSlice, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, RwLock};
use std::{env, mem, thread};

use freewheel_nbd::server::{Event, Request, Session, Settings};
use freewheel_nbd::{Command, Export, Extent, Features, Head, Span};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let usage = "usage: memory SOCKET MIB";
    let (path, mib) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let size = mib.parse::<usize>()? << 20;
    let memory = Arc::new(RwLock::new(vec![0; size]));
    for stream in UnixListener::bind(&path)?.incoming() {
        let (stream, memory) = (stream?, Arc::clone(&memory));
        thread::spawn(move || {
            if let Err(error) = serve(stream, &memory) {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

fn export(size: usize) -> Export {
    let features = Features {
        flush: true,
        fua: true,
        trim: true,
        write_zeroes: true,
        fast_zero: true,
        cache: true,
        multi_conn: true,
        dont_fragment: true,
        block_status: true,
        ..Features::default()
    };
    let description = "zeroes in memory".into();
    Export { name: "memory".into(), description, size: size as u64, features, ..Export::default() }
}

fn serve(mut stream: UnixStream, memory: &RwLock<Vec<u8>>) -> Result<()> {
    let size = memory.read().map_err(|_| "poisoned")?.len();
    let exports = vec![export(size)];
    let mut session = Session::new(Settings { exports, ..Settings::default() })?;
    let mut buffer = vec![0; 64 << 10];
    let mut length = 0;
    loop {
        let mut bytes = &buffer[..length];
        while let Some(event) = session.feed(&mut bytes)? {
            match event {
                Event::Send(bytes) => stream.write_all(&bytes)?,
                Event::Request(request) => answer(&mut stream, &mut session, memory, request)?,
                Event::Start(_) | Event::StartTls => {}
                Event::Close(_) => return Ok(()),
            }
        }
        // The rest of a payload goes where it belongs, all else through the buffer.
        let space = session.space();
        let in_place = space.is_some();
        length = stream.read(space.unwrap_or(&mut buffer))?;
        if length == 0 {
            return Ok(session.ended()?);
        }
        let filled = if in_place { mem::take(&mut length) } else { 0 };
        if let Some(request) = session.filled(filled) {
            answer(&mut stream, &mut session, memory, request)?;
        }
    }
}

fn answer(
    stream: &mut UnixStream,
    session: &mut Session,
    memory: &RwLock<Vec<u8>>,
    request: Request,
) -> Result<()> {
    let at = |span: Span| span.offset as usize..span.end() as usize;
    let ticket = request.ticket;
    match request.command {
        Command::Read { span, .. } => {
            let memory = memory.read().map_err(|_| "poisoned")?;
            send(stream, &ticket.data(), &memory[at(span)])?;
        }
        Command::BlockStatus { span, .. } => {
            let all = Extent { length: span.length, ..Extent::default() };
            stream.write_all(&ticket.status(&[all]))?;
        }
        command => {
            let mut memory = memory.write().map_err(|_| "poisoned")?;
            match command {
                Command::Write { span, .. } => memory[at(span)].copy_from_slice(&request.data),
                Command::WriteZeroes { span, .. } => memory[at(span)].fill(0),
                _ => {}
            }
            stream.write_all(&ticket.done())?;
        }
    }
    session.answered(1);
    session.recycle(request.data);
    Ok(())
}

/// Header and data with one call, and what the kernel did not take with more.
fn send(stream: &mut UnixStream, head: &Head, data: &[u8]) -> Result<()> {
    let mut parts = [IoSlice::new(head), IoSlice::new(data)];
    let mut parts = &mut parts[..];
    while !parts.is_empty() {
        let sent = stream.write_vectored(parts)?;
        IoSlice::advance_slices(&mut parts, sent);
    }
    Ok(())
}
