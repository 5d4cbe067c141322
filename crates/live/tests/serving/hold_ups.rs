//! A backend that hangs holds up neither its clients for ever nor the end of the server.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use freewheel_live::nbd::{Address, Limits};
use freewheel_live::serve::BackendChannel;
use freewheel_live::serve::FinishError;
use freewheel_live::serve::backend::NbdBackend;
use freewheel_nbd::{Command, Errno, Span};

use crate::common::{Running, STALLED_REQUESTS_MAX};
use crate::world::{Beneath, Front, World, drive};

/// Lets a client in, in the oldest way.
fn let_in(stream: &mut UnixStream) -> std::io::Result<()> {
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x02")?;
    stream.read_exact(&mut [0; 4 + 16])?;
    stream.write_all(&drive().blocks().bytes().get().to_be_bytes())?;
    stream.write_all(&[0, 1])
}

/// Plays an NBD server whose answers trickle, a byte each 20 ms.
fn trickle(mut stream: UnixStream) {
    let mut play = || -> std::io::Result<()> {
        let_in(&mut stream)?;
        loop {
            let mut head = [0; 28];
            stream.read_exact(&mut head)?;
            let length = u32::from_be_bytes(head[24..].try_into().unwrap());
            stream.write_all(&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0])?;
            stream.write_all(&head[8..16])?;
            for _ in 0..length {
                thread::sleep(Duration::from_millis(20));
                stream.write_all(&[7])?;
            }
        }
    };
    // Until the server has had enough.
    let _ = play();
}

#[test]
fn backend_trickling_is_gone_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let beneath = thread::spawn(move || trickle(listener.accept().unwrap().0));
    let way = BackendChannel::new();
    let uri = Address::Unix(path).uri("", false);
    let longest = Some(Duration::from_millis(500));
    let device = NbdBackend::connect(&uri, longest, way.back(), way.gone()).unwrap();
    let front = Front::of(Arc::new(device), way);
    let begun = Instant::now();
    thread::scope(|threads| {
        for at in 0..8 {
            let mut client = front.front.client();
            threads.spawn(move || {
                // At a byte each 20 ms one answer alone would take more than a minute.
                assert_eq!(client.read(at << 20, 4096), Err(Errno::Shutdown));
            });
        }
    });
    assert!(begun.elapsed() < STALLED_REQUESTS_MAX, "{:?}", begun.elapsed());
    assert!(front.serving.finish_within(STALLED_REQUESTS_MAX).is_ok());
    beneath.join().unwrap();
}

#[test]
fn backend_not_reading_does_not_block_scheduler() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let (end, ends) = mpsc::channel::<()>();
    let beneath = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let_in(&mut stream).unwrap();
        let _ = ends.recv();
    });
    let way = BackendChannel::new();
    let uri = Address::Unix(path).uri("", false);
    let device = NbdBackend::connect(&uri, None, way.back(), way.gone()).unwrap();
    let front = Front::of(Arc::new(device), way);
    let mut client = front.front.client();
    let span = Span { offset: 0, length: 8 << 20 };
    // More than the socket holds.
    client.ask(Command::Write { span, fua: false }, &vec![7; 8 << 20]);
    thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    front.serving.ask(|thread| thread.status()).blocking_recv().unwrap();
    // A twentieth of the time in which the backend has to read something.
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    drop(end);
    beneath.join().unwrap();
    assert_eq!(client.reply().result.unwrap_err().errno, Errno::Shutdown);
}

#[test]
fn device_owing_answer_does_not_delay_end() {
    let mut beneath = Beneath::new();
    beneath.silent = Some(60 << 20);
    let world = World::over(beneath.clone());
    let mut client = world.front.client();
    client.ask(Command::read(60 << 20, 512), &[]);
    client.read(0, 512).unwrap();
    let begun = Instant::now();
    let ended = world.serving.finish_within(Duration::from_millis(200));
    assert!(matches!(ended, Err(FinishError::DeviceOwes { .. })), "{ended:?}");
    let says = ended.unwrap_err().to_string();
    assert!(says.contains("within 0.2 s"), "{says}");
    assert!(begun.elapsed() < STALLED_REQUESTS_MAX);
    beneath.forget();
}

#[test]
fn stop_cuts_off_clients_device_owes() {
    let mut beneath = Beneath::new();
    beneath.silent = Some(60 << 20);
    let world = World::over(beneath.clone());
    let limits = Limits { grace: Duration::from_millis(200), ..Limits::default() };
    let serving = Arc::clone(&world.serving);
    let front = Running::new(vec![serving], limits);
    let mut client = front.client();
    client.ask(Command::read(60 << 20, 512), &[]);
    client.read(0, 512).unwrap();
    let begun = Instant::now();
    front.stop();
    assert!(begun.elapsed() < STALLED_REQUESTS_MAX, "{:?}", begun.elapsed());
    assert_eq!(client.event(), None, "closed");
    beneath.forget();
}
