//! A server of zeroes in memory on a Unix socket, one thread a connection:
//! `cargo run --release -p freewheel-nbd --example memory -- SOCKET MIB`, then
//! `nbdinfo 'nbd+unix:///?socket=SOCKET'`.

use std::error::Error;
use std::io::{BufWriter, IoSlice, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, PoisonError, RwLock};
use std::{env, mem, thread};

use freewheel_nbd::server::{Event, Request, Session, Settings};
use freewheel_nbd::{Command, Export, Features};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let usage = "usage: memory SOCKET MIB";
    let (path, mib) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let memory = Arc::new(RwLock::new(vec![0; mib.parse::<usize>()? << 20]));
    for stream in UnixListener::bind(&path)?.incoming() {
        let (stream, memory) = (stream?, Arc::clone(&memory));
        thread::spawn(move || {
            serve(stream, &memory).unwrap_or_else(|error| eprintln!("{error}"));
        });
    }
    Ok(())
}

fn export(size: usize) -> Export {
    let features = Features {
        flush: true,
        fua: true,
        write_zeroes: true,
        multi_conn: true,
        ..Features::default()
    };
    Export { name: "memory".into(), size: size as u64, features, ..Export::default() }
}

fn serve(stream: UnixStream, memory: &RwLock<Vec<u8>>) -> Result<()> {
    let exports = vec![export(memory.read().unwrap_or_else(PoisonError::into_inner).len())];
    let mut session = Session::new(Settings { exports, ..Settings::default() })?;
    // Gathers short replies; a longer one goes by without a copy.
    let mut out = BufWriter::with_capacity(16 << 10, &stream);
    let (mut buffer, mut length) = (vec![0; 64 << 10], 0);
    loop {
        let mut bytes = &buffer[..length];
        while let Some(event) = session.feed(&mut bytes)? {
            match event {
                Event::Send(bytes) => out.write_all(&bytes)?,
                Event::Request(request) => answer(&mut out, &mut session, memory, request)?,
                Event::Start(_) | Event::StartTls => {}
                Event::Close(_) => return Ok(out.flush()?),
            }
        }
        out.flush()?;
        // The rest of a payload goes where it belongs, all else through the buffer.
        let space = session.space();
        let in_place = space.is_some();
        length = (&stream).read(space.unwrap_or(&mut buffer))?;
        if length == 0 {
            return Ok(session.ended()?);
        }
        let filled = if in_place { mem::take(&mut length) } else { 0 };
        if let Some(request) = session.filled(filled) {
            answer(&mut out, &mut session, memory, request)?;
        }
    }
}

fn answer(
    out: &mut impl Write,
    session: &mut Session,
    memory: &RwLock<Vec<u8>>,
    Request { ticket, command, data }: Request,
) -> Result<()> {
    let at = command.span().offset as usize..command.span().end() as usize;
    if let Command::Read { .. } = command {
        let memory = memory.read().unwrap_or_else(PoisonError::into_inner);
        let head = ticket.data();
        let mut parts = &mut [IoSlice::new(&head), IoSlice::new(&memory[at])][..];
        while !parts.is_empty() {
            let sent = out.write_vectored(parts)?;
            IoSlice::advance_slices(&mut parts, sent);
        }
    } else {
        let mut memory = memory.write().unwrap_or_else(PoisonError::into_inner);
        match command {
            Command::Write { .. } => memory[at].copy_from_slice(&data),
            Command::WriteZeroes { .. } => memory[at].fill(0),
            _ => {}
        }
        out.write_all(&ticket.done())?;
    }
    session.answered(1);
    session.recycle(data);
    Ok(())
}
