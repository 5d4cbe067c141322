//! Servers that vanish, lie, or stay silent: played byte for byte.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use freewheel_live::nbd::{Address, ClientLimits, ConnectError, Refusal, RequestError};
use freewheel_nbd::{Command, Uri};

use super::Asker;
use crate::common::held::{Held, answer};
use crate::common::{Running, STALLED_REQUESTS_MAX};

/// Plays a server for one connection.
struct Played {
    folder: tempfile::TempDir,
    thread: Option<JoinHandle<()>>,
}

impl Played {
    fn new(play: impl FnOnce(UnixStream) + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let thread = Some(thread::spawn(move || play(listener.accept().unwrap().0)));
        Self { folder, thread }
    }

    fn uri(&self) -> Uri {
        Address::Unix(self.folder.path().join("socket")).uri("", false)
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

/// As far as an export of 1 MiB in the oldest way.
fn start(stream: &mut UnixStream) {
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x02").unwrap();
    stream.read_exact(&mut [0; 4 + 16]).unwrap();
    stream.write_all(&(1_u64 << 20).to_be_bytes()).unwrap();
    stream.write_all(&[0, 1]).unwrap();
}

/// A request's cookie.
fn request(stream: &mut UnixStream) -> [u8; 8] {
    let mut head = [0; 28];
    stream.read_exact(&mut head).unwrap();
    head[8..16].try_into().unwrap()
}

fn simple_reply(cookie: [u8; 8]) -> Vec<u8> {
    [&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0][..], &cookie].concat()
}

/// All answers say that the connection is lost, and further requests are refused with the same.
fn assert_lost(asker: &Asker, outstanding: usize, why: &str) {
    let mut tags = Vec::new();
    for answer in asker.answers(outstanding) {
        match answer.result {
            Err(RequestError::Lost(lost)) => {
                let text = lost.to_string();
                assert!(text.contains("connection lost") && text.contains(why), "{text}");
            }
            other => panic!("{other:?}"),
        }
        tags.push(answer.tag);
    }
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), outstanding);
    let refused = asker.client.submit(Command::read(0, 512), &mut Vec::new(), 99).unwrap_err();
    assert!(matches!(refused.why, Refusal::Lost(_)), "{refused}");
    assert!(asker.is_quiet());
}

#[test]
fn server_vanished_answers_every_request() {
    let server = Played::new(|mut stream| {
        start(&mut stream);
        for _ in 0..50 {
            request(&mut stream);
        }
    });
    let asker = Asker::of(&server.uri());
    (0..50).for_each(|tag| asker.ask(Command::read(tag * 512, 512), tag));
    assert_lost(&asker, 50, "ended");
    assert!(asker.client.close().unwrap_err().to_string().contains("connection lost"));
}

/// Answers reads of a block after this pause, except the first ones; until the client has gone.
fn answer_all_but(stream: &mut UnixStream, first: usize, pause: Duration) {
    for _ in 0..first {
        request(stream);
    }
    let mut head = [0; 28];
    while stream.read_exact(&mut head).is_ok() {
        thread::sleep(pause);
        let reply = [simple_reply(head[8..16].try_into().unwrap()), vec![0; 512]].concat();
        if stream.write_all(&reply).is_err() {
            break;
        }
    }
}

#[test]
fn server_vanished_by_one_overdue_answer() {
    let server = Played::new(|mut stream| {
        start(&mut stream);
        answer_all_but(&mut stream, 1, Duration::from_millis(5));
    });
    let answer = Some(Duration::from_millis(300));
    let limits = ClientLimits { answer, ..ClientLimits::default() };
    let asker = Asker::connect(&server.uri(), limits).unwrap();
    let begun = Instant::now();
    asker.ask(Command::read(0, 512), 0);
    let lost = loop {
        // Refused when the answer to the first has come.
        let _ = asker.client.submit(Command::read(512, 512), &mut Vec::new(), 1);
        let answer = asker.answer();
        match answer.result {
            Ok(()) => assert_eq!(answer.tag, 1),
            Err(error) => break error,
        }
    };
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert!(lost.to_string().contains("no answer for 300ms"), "{lost}");
}

/// A tenth of how long an answer may be owed in the tests of slow ways.
const STEP: Duration = Duration::from_millis(50);

/// A client of this server, which may owe an answer for ten steps. Its data come at 20 KiB/s in these tests.
fn impatient(server: &Played) -> Asker {
    let bytes_per_second_min = 4 << 10;
    let answer = Some(10 * STEP);
    let limits = ClientLimits { answer, bytes_per_second_min, ..ClientLimits::default() };
    Asker::connect(&server.uri(), limits).unwrap()
}

#[test]
fn server_with_slow_data_is_awaited() {
    let server = Played::new(|mut stream| {
        start(&mut stream);
        let [first, second] = [(); 2].map(|()| request(&mut stream));
        stream.write_all(&simple_reply(first)).unwrap();
        for _ in 0..30 {
            thread::sleep(STEP);
            stream.write_all(&[1; 1024]).unwrap();
        }
        stream.write_all(&[&simple_reply(second)[..], &[2; 512]].concat()).unwrap();
    });
    let asker = impatient(&server);
    asker.ask(Command::read(0, 30 << 10), 0);
    asker.ask(Command::read(0, 512), 1);
    for (tag, byte) in [(0, 1), (1, 2)] {
        let answer = asker.answer();
        assert_eq!((answer.tag, answer.result), (tag, Ok(())));
        assert!(answer.data.iter().all(|&it| it == byte));
    }
}

#[test]
fn server_vanished_by_trickling_data() {
    // Within data, and within the head of an answer; a byte each fifth of a step would go on for ten minutes.
    for head_bytes in [16, 3] {
        let server = Played::new(move |mut stream| {
            start(&mut stream);
            let cookie = request(&mut stream);
            stream.write_all(&simple_reply(cookie)[..head_bytes]).unwrap();
            let rest = [&simple_reply(cookie)[head_bytes..], &[1; 64 << 10]].concat();
            for byte in rest {
                thread::sleep(STEP / 5);
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
            }
        });
        let asker = impatient(&server);
        let begun = Instant::now();
        asker.ask(Command::read(0, 64 << 10), 0);
        assert_lost(&asker, 1, "no answer for 500ms");
        // Twice as long as it may be, on a busy machine.
        assert!(begun.elapsed() < 20 * STEP, "{:?}", begun.elapsed());
    }
}

#[test]
fn server_vanished_by_dripping_request_reads() {
    let length = 1 << 20;
    let server = Played::new(move |mut stream| {
        start(&mut stream);
        // More than the socket holds is left.
        while let Ok(1..) = stream.read(&mut [0; 4096]) {
            thread::sleep(STEP / 5);
        }
    });
    let limits =
        ClientLimits { stall: 10 * STEP, bytes_per_second_min: 1 << 30, ..ClientLimits::default() };
    let asker = Asker::connect(&server.uri(), limits).unwrap();
    asker.write(0, &vec![1; length], 0);
    assert_lost(&asker, 1, "to read a request");
}

#[test]
fn server_taking_requests_slowly_is_awaited() {
    let length = 1 << 20;
    let server = Played::new(move |mut stream| {
        start(&mut stream);
        let cookie = request(&mut stream);
        let mut data = vec![0; length / 30 + 1];
        let mut left = length;
        while left > 0 {
            thread::sleep(STEP);
            let part = left.min(data.len());
            stream.read_exact(&mut data[..part]).unwrap();
            left -= part;
        }
        stream.write_all(&simple_reply(cookie)).unwrap();
    });
    let asker = impatient(&server);
    asker.write(0, &vec![1; length], 0);
    assert_eq!(asker.answer().result, Ok(()));
}

#[test]
fn server_silence_limit_unchanged_by_duplex_data() {
    let length = 1 << 20;
    let server = Played::new(move |mut stream| {
        start(&mut stream);
        let reads = request(&mut stream);
        stream.write_all(&simple_reply(reads)).unwrap();
        let writes = request(&mut stream);
        let mut data = vec![0; length / 30 + 1];
        let mut left = length;
        for _ in 0..30 {
            thread::sleep(STEP);
            stream.write_all(&[1; 1024]).unwrap();
            let part = left.min(data.len());
            stream.read_exact(&mut data[..part]).unwrap();
            left -= part;
        }
        stream.write_all(&simple_reply(writes)).unwrap();
        // Until the client goes.
        request(&mut stream);
        let _ = stream.read(&mut [0]);
    });
    let asker = impatient(&server);
    asker.ask(Command::read(0, 30 << 10), 0);
    asker.write(0, &vec![1; length], 1);
    for _ in 0..2 {
        assert_eq!(asker.answer().result, Ok(()));
    }
    let begun = Instant::now();
    asker.ask(Command::read(0, 512), 2);
    assert_lost(&asker, 1, "no answer for 500ms");
    // Twice as long as it may be, on a busy machine; what went both ways took three times as long.
    assert!(begun.elapsed() < 20 * STEP, "{:?}", begun.elapsed());
}

#[test]
fn server_vanished_by_silence_within_data() {
    let server = Played::new(|mut stream| {
        start(&mut stream);
        let cookie = request(&mut stream);
        stream.write_all(&simple_reply(cookie)).unwrap();
        stream.write_all(&[1; 100]).unwrap();
        // Until the client goes.
        let _ = stream.read(&mut [0]);
    });
    let asker = impatient(&server);
    asker.ask(Command::read(0, 4096), 0);
    assert_lost(&asker, 1, "no answer for 500ms");
}

#[test]
fn server_silent_is_awaited_until_overdue() {
    let pause = Duration::from_millis(100);
    let server = Played::new(move |mut stream| {
        start(&mut stream);
        answer_all_but(&mut stream, 0, pause);
    });
    let answer = Some(10 * pause);
    let limits = ClientLimits { answer, ..ClientLimits::default() };
    let asker = Asker::connect(&server.uri(), limits).unwrap();
    thread::sleep(12 * pause);
    for tag in 0..12 {
        asker.ask(Command::read(0, 512), tag);
        asker.answer().result.unwrap();
    }
    asker.client.close().unwrap();
}

#[test]
fn server_vanished_within_data_delivers_none() {
    let server = Played::new(|mut stream| {
        start(&mut stream);
        let first = request(&mut stream);
        request(&mut stream);
        stream.write_all(&simple_reply(first)).unwrap();
        stream.write_all(&[1; 100]).unwrap();
    });
    let asker = Asker::of(&server.uri());
    (0..2).for_each(|tag| asker.ask(Command::read(0, 4096), tag));
    assert_lost(&asker, 2, "ended");
}

#[test]
fn server_stop_answers_or_refuses_then_loses() {
    let held = Held::default();
    let running = Running::of(held.clone());
    let asker = Asker::of(&running.uri());
    asker.ask(Command::read(0, 512), 0);
    let taken = held.take(1);
    running.begin_stop();
    taken.into_iter().for_each(|request| answer(request, 1));
    asker.answer().result.unwrap();
    running.stop();
    let until = Instant::now() + STALLED_REQUESTS_MAX;
    loop {
        assert!(Instant::now() < until);
        match asker.client.submit(Command::read(0, 512), &mut Vec::new(), 1) {
            Err(refused) => break assert!(matches!(refused.why, Refusal::Lost(_)), "{refused}"),
            Ok(_) => {
                let answer = asker.answer();
                assert!(matches!(answer.result, Err(RequestError::Lost(_))), "{answer:?}");
            }
        }
    }
}

#[test]
fn server_excess_data_ends_connection() {
    let server = Played::new(|mut stream| {
        start(&mut stream);
        let first = request(&mut stream);
        request(&mut stream);
        stream.write_all(&simple_reply(first)).unwrap();
        // The rest would be a header.
        stream.write_all(&[1; 512 + 100]).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let asker = Asker::of(&server.uri());
    (0..2).for_each(|tag| asker.ask(Command::read(0, 512), tag));
    let whole = asker.answer();
    assert_eq!((whole.tag, whole.data), (0, vec![1; 512]));
    assert_lost(&asker, 1, "a reply must begin with");
}

#[test]
fn server_oversized_chunk_takes_no_memory() {
    let server = Played::new(|mut stream| {
        stream.write_all(b"NBDMAGICIHAVEOPT\0\x03").unwrap();
        stream.read_exact(&mut [0; 4 + 16]).unwrap();
        let reply = |option: u32, kind: u32, data: &[u8]| {
            let length = data.len() as u32;
            let head = [option, kind, length].map(u32::to_be_bytes).concat();
            [&0x0003_e889_0455_65a9_u64.to_be_bytes()[..], &head, data].concat()
        };
        // Structured replies, no metadata contexts, and what GO tells.
        stream.write_all(&reply(8, 1, &[])).unwrap();
        let mut options = [0; 16 + 4 + 4 + 4 + 15];
        stream.read_exact(&mut options).unwrap();
        stream.write_all(&reply(10, 0x8000_0001, &[])).unwrap();
        stream.read_exact(&mut [0; 16 + 4 + 2 + 6]).unwrap();
        let told = [&[0, 0][..], &(1_u64 << 20).to_be_bytes(), &[0, 1]].concat();
        stream.write_all(&reply(7, 3, &told)).unwrap();
        stream.write_all(&reply(7, 1, &[])).unwrap();
        let cookie = request(&mut stream);
        let chunk = [&[0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 1][..], &cookie, &[0xff; 4]].concat();
        stream.write_all(&chunk).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let asker = Asker::of(&server.uri());
    asker.ask(Command::read(0, 512), 0);
    assert_lost(&asker, 1, "a chunk of a reply has length 4294967295; expected 9 to 520");
}

#[test]
fn server_answer_unasked_closes_connection() {
    let server = Played::new(|mut stream| {
        start(&mut stream);
        request(&mut stream);
        stream.write_all(&simple_reply([7; 8])).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let asker = Asker::of(&server.uri());
    asker.ask(Command::read(0, 512), 0);
    assert_lost(&asker, 1, "cookie");
}

#[test]
fn server_not_reading_is_given_up() {
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let server = Played::new(move |mut stream| {
        start(&mut stream);
        let _ = told.recv_timeout(STALLED_REQUESTS_MAX);
    });
    let stall = Duration::from_millis(100);
    let limits = ClientLimits { stall, ..ClientLimits::default() };
    let asker = Asker::connect(&server.uri(), limits).unwrap();
    let data = vec![0; 1 << 20];
    // A socket holds less than this.
    asker.write(0, &data, 0);
    assert_lost(&asker, 1, "read no part of a request for 100ms");
    drop(tell);
}

#[test]
fn server_not_admitting_is_given_up() {
    for talks in [false, true] {
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let server = Played::new(move |mut stream| {
            // Byte by byte, each within the time, until the client has gone.
            let mut greeting = b"NBDMAGICIHAVEOPT".iter().take(if talks { 16 } else { 0 });
            while greeting.next().is_some_and(|byte| stream.write_all(&[*byte]).is_ok()) {
                thread::sleep(Duration::from_millis(50));
            }
            let _ = told.recv_timeout(STALLED_REQUESTS_MAX);
        });
        let negotiation = Duration::from_millis(150);
        let limits = ClientLimits { negotiation, ..ClientLimits::default() };
        let error = Asker::connect(&server.uri(), limits).err().unwrap();
        assert!(matches!(error, ConnectError::Slow { .. }), "{error}");
        assert!(error.to_string().contains("150ms"), "{error}");
        drop(tell);
    }
}

#[test]
fn server_or_export_missing_names_uri() {
    let missing: Uri = "nbd+unix:///?socket=/nonexistent/socket".parse().unwrap();
    let error = Asker::connect(&missing, ClientLimits::default()).err().unwrap().to_string();
    assert!(error.contains("/nonexistent/socket") && error.contains("No such file"), "{error}");
    let running = Running::of(Held::default());
    let other = Uri { export: "other".into(), ..running.uri() };
    let error = Asker::connect(&other, ClientLimits::default()).err().unwrap().to_string();
    assert!(error.contains("/other?socket=") && error.contains("GO"), "{error}");
}
