use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use freewheel_live::nbd::{Limits, Memory};
use freewheel_nbd::{Command, Span};
use std::sync::Arc;

use crate::common::held::{Held, answer};
use crate::common::{Client, Running, STALLED_REQUESTS_MAX, eventually, stays};

fn limited(service: impl freewheel_live::nbd::Service + 'static, limits: Limits) -> Running {
    Running::new(vec![Arc::new(service)], limits)
}

#[test]
fn requests_in_flight_have_a_limit() {
    let held = Held::default();
    let limits = Limits { in_flight_max: 3, ..Limits::default() };
    let running = limited(held.clone(), limits);
    let mut client = running.client();
    for at in 0..10 {
        client.ask(Command::read(at, 1), &[]);
    }
    let mut taken = held.take(3);
    assert!(stays(|| held.count() == 0));
    for _ in 0..7 {
        answer(taken.remove(0), 1);
        client.reply();
        taken.extend(held.take(1));
        assert_eq!(held.count(), 0);
    }
    taken.into_iter().for_each(|request| answer(request, 1));
    (0..3).for_each(|_| drop(client.reply()));
}

#[test]
fn data_in_flight_limit_plus_one_request() {
    let held = Held::default();
    let limits = Limits { bytes_in_flight_max: 10_000, ..Limits::default() };
    let running = limited(held.clone(), limits);
    let mut client = running.client();
    let cache = Command::Cache { span: Span { offset: 0, length: 6000 } };
    for (command, answered) in [(Command::read(0, 6000), 6000), (cache, 0)] {
        for _ in 0..4 {
            client.ask(command, &[]);
        }
        let taken = held.take(2);
        assert!(stays(|| held.count() == 0), "{command:?}");
        taken.into_iter().for_each(|request| answer(request, 1));
        held.take(2).into_iter().for_each(|request| answer(request, 1));
        (0..4).for_each(|_| assert_eq!(client.reply().data.len(), answered));
    }
}

#[test]
fn connections_beyond_limit_are_closed() {
    // Half of them are for one process.
    let limits = Limits { connections_max: 4, ..Limits::default() };
    let running = limited(Memory::new("memory", 1 << 20), limits);
    let (one, mut two) = (running.client(), running.client());
    let mut third = UnixStream::connect(running.socket()).unwrap();
    assert_eq!(third.read(&mut [0; 8]).unwrap(), 0);
    one.vanish();
    let greeted = || {
        let mut stream = UnixStream::connect(running.socket()).unwrap();
        matches!(stream.read(&mut [0; 8]), Ok(8))
    };
    assert!(eventually(greeted));
    two.read(0, 512).unwrap();
    assert!(running.stop().refused >= 1);
}

#[test]
fn connections_of_process_at_most_half() {
    let notice_every = Duration::from_secs(60);
    let limits = Limits { connections_max: 4, notice_every, ..Limits::default() };
    let running = limited(Memory::new("memory", 1 << 20), limits);
    let mut clients: Vec<_> = (0..2).map(|_| running.client()).collect();
    for _ in 0..2 {
        let mut third = UnixStream::connect(running.socket()).unwrap();
        assert_eq!(third.read(&mut [0; 8]).unwrap(), 0);
    }
    clients.iter_mut().for_each(|client| drop(client.read(0, 512).unwrap()));
    let says = format!("process {} has 2 connections", std::process::id());
    {
        let notices = running.notices.lock().unwrap();
        assert!(matches!(&notices[..], [one] if one.contains(&says)), "{notices:?}");
    }
    assert_eq!(running.stop().refused, 2);
}

#[test]
fn client_taking_no_answers_is_disconnected() {
    let held = Held::default();
    let limits = Limits { stall: Duration::from_millis(200), ..Limits::default() };
    let running = limited(held.clone(), limits);
    let mut stalled = running.client();
    // More than the socket holds, so that an answer gets stuck.
    for _ in 0..64 {
        stalled.ask(Command::read(0, 1 << 20), &[]);
    }
    held.take(64).into_iter().for_each(|request| answer(request, 1));
    let mut other = running.client();
    for _ in 0..20 {
        let begun = Instant::now();
        other.ask(Command::read(0, 512), &[]);
        held.take(1).into_iter().for_each(|request| answer(request, 2));
        assert_eq!(other.reply().data, [2; 512]);
        assert!(begun.elapsed() < STALLED_REQUESTS_MAX / 2);
    }
    let heard = |running: &Running| running.notices.lock().unwrap().join("\n");
    assert!(eventually(|| heard(&running).contains("200ms")), "{}", heard(&running));
    // Cut off: what the socket still holds comes, and then the end.
    let mut rest = Vec::new();
    let _ = stalled.stream.read_to_end(&mut rest);
    assert!(rest.len() < 64 << 20, "{} bytes came", rest.len());
}

#[test]
fn client_without_export_is_disconnected() {
    let limits = Limits { negotiation: Duration::from_millis(100), ..Limits::default() };
    let running = limited(Memory::new("memory", 1 << 20), limits);
    let mut silent = UnixStream::connect(running.socket()).unwrap();
    let mut all = Vec::new();
    silent.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), 18, "the greeting and no more");
    assert!(eventually(|| running
        .notices
        .lock()
        .unwrap()
        .iter()
        .any(|text| text.contains("100ms"))));
}

#[test]
fn client_vanished_frees_place_after_answers() {
    let held = Held::default();
    let limits = Limits { connections_max: 1, ..Limits::default() };
    let running = limited(held.clone(), limits);
    let mut client = running.client();
    client.ask(Command::read(0, 4096), &[]);
    let taken = held.take(1);
    client.vanish();
    assert!(eventually(|| held.has_left()));
    let mut early = UnixStream::connect(running.socket()).unwrap();
    assert_eq!(early.read(&mut [0; 8]).unwrap(), 0, "its request is still in flight");
    taken.into_iter().for_each(|request| answer(request, 1));
    let greeted = || {
        let mut stream = UnixStream::connect(running.socket()).unwrap();
        matches!(stream.read(&mut [0; 8]), Ok(8))
    };
    assert!(eventually(greeted));
}

#[test]
fn client_leaving_within_message_is_reported() {
    let running = limited(Memory::new("memory", 1 << 20), Limits::default());
    let greeted = || {
        let mut stream = UnixStream::connect(running.socket()).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        stream
    };
    for _ in 0..20 {
        // Without a look at the greeting, and with one.
        drop(UnixStream::connect(running.socket()).unwrap());
        drop(greeted());
        let mut flags = greeted();
        flags.write_all(&[0, 0, 0, 3]).unwrap();
        drop(flags);
        // A list of the exports that the client does not read.
        greeted().write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x03\0\0\0\0").unwrap();
    }
    greeted().write_all(&[0, 0]).unwrap();
    greeted().write_all(b"\0\0\0\x03IHAVE").unwrap();
    // Those before it have been taken.
    running.client().read(0, 512).unwrap();
    let notices = Arc::clone(&running.notices);
    let served = running.stop();
    let mut notices = notices.lock().unwrap().clone();
    notices.sort();
    assert_eq!(
        notices,
        [
            "connection 80: the connection ended within the greeting",
            "connection 81: the connection ended within an option"
        ]
    );
    assert_eq!((served.connections, served.broken), (83, 2));
}

#[test]
fn client_leaving_owed_answers_is_reported() {
    let held = Held::default();
    let running = limited(held.clone(), Limits::default());
    for says_so in [true, false] {
        let mut client = running.client();
        client.ask(Command::read(0, 1 << 20), &[]);
        let taken = held.take(1);
        if says_so {
            let head = client.session.disconnect().unwrap();
            client.stream.write_all(&head).unwrap();
        }
        let before = held.times_left();
        client.vanish();
        assert!(eventually(|| held.times_left() > before));
        taken.into_iter().for_each(|request| answer(request, 1));
    }
    // All of this answer is sent, and the client does not read it.
    let mut client = running.client();
    client.ask(Command::read(0, 512), &[]);
    held.take(1).into_iter().for_each(|request| answer(request, 1));
    assert!(client.is_told());
    drop(client);
    assert!(eventually(|| running.notices.lock().unwrap().len() == 1));
    let notices = Arc::clone(&running.notices);
    let served = running.stop();
    assert_eq!((served.connections, served.broken), (3, 1));
    let notices = notices.lock().unwrap();
    assert!(notices[0].starts_with("connection 1: "), "{notices:?}");
}

#[test]
fn nonsense_closes_only_own_connection() {
    let running = limited(Memory::new("memory", 1 << 20), Limits::default());
    let mut client = running.client();
    let mut fool = UnixStream::connect(running.socket()).unwrap();
    fool.write_all(&[0xff; 64]).unwrap();
    let mut all = Vec::new();
    let _ = fool.read_to_end(&mut all);
    assert!(eventually(|| running.notices.lock().unwrap().len() == 1));
    client.read(0, 512).unwrap();
    assert_eq!(running.stop().broken, 1);
}

#[test]
fn requests_of_closed_client_are_dropped() {
    let held = Held::default();
    let running = limited(held.clone(), Limits::default());
    let mut client = running.client();
    // Sent by hand: the session below keeps fewer in flight.
    let (_, head) = client.session.request(Command::read(0, 32 << 20), Vec::new()).unwrap();
    client.stream.write_all(&head.repeat(4000)).unwrap();
    let taken = held.take(3);
    assert!(!held.has_left());
    let begun = Instant::now();
    drop(client);
    assert!(eventually(|| held.has_left()), "the service is told");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    // The server drops the requests that it has not begun: the place is free, and the rest is not read.
    drop(taken);
    assert!(eventually(|| !running.notices.lock().unwrap().is_empty()));
    assert_eq!(held.count(), 0, "requests without a client");
    assert_eq!(running.stop().connections, 1);
}

#[test]
fn client_closing_send_half_gets_answers() {
    let held = Held::default();
    let running = limited(held.clone(), Limits::default());
    let mut client = running.client();
    for at in 0..5 {
        client.ask(Command::read(at * 4096, 4096), &[]);
    }
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    let taken = held.take(5);
    assert!(stays(|| !held.has_left()), "it reads on");
    taken.into_iter().for_each(|request| answer(request, 7));
    for _ in 0..5 {
        assert_eq!(client.reply().data, [7; 4096]);
    }
    assert_eq!(client.event(), None, "and then the end");
    assert_eq!(running.stop().broken, 0);
}

#[test]
fn client_stopping_amid_request_cut_off() {
    let limits = Limits { stall: Duration::from_millis(200), ..Limits::default() };
    let running = limited(Memory::new("memory", 64 << 20), limits);
    let mut patient = running.client();
    for sent in [27, 28, 1000] {
        let mut client = running.client();
        let span = Span { offset: 0, length: 32 << 20 };
        let (_, head) =
            client.session.request(Command::Write { span, fua: false }, Vec::new()).unwrap();
        let mut bytes = head.to_vec();
        bytes.resize(1000, 7);
        client.stream.write_all(&bytes[..sent]).unwrap();
        assert_eq!(client.stream.read(&mut [0]).unwrap(), 0, "cut off after {sent} bytes");
    }
    assert!(eventually(|| running.notices.lock().unwrap().len() == 3));
    let notices = running.notices.lock().unwrap().join("\n");
    assert!(notices.contains("sent no further part of a request for 200ms"), "{notices}");
    patient.read(0, 512).unwrap();
}

#[test]
fn memory_budget_spans_all_connections() {
    let held = Held::default();
    let limits = Limits { memory_max: 8 << 20, ..Limits::default() };
    let running = limited(held.clone(), limits);
    let mut clients: Vec<_> = (0..3).map(|_| running.client()).collect();
    for client in &mut clients {
        for _ in 0..4 {
            client.ask(Command::read(0, 3 << 20), &[]);
        }
    }
    assert!(eventually(|| held.count() > 0) && stays(|| held.count() <= 2));
    let in_flight = held.count();
    // This process may have 4 MiB, and 1 MiB on each connection.
    assert!((1..=2).contains(&in_flight), "{in_flight} reads of 3 MiB");
    let mut small = running.client();
    small.ask(Command::read(0, 4096), &[]);
    assert!(eventually(|| held.count() == in_flight + 1), "it waits for nobody");
    // What is answered is given back when it is sent.
    thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| (0..4).for_each(|_| assert_eq!(client.reply().data.len(), 3 << 20)));
        }
        for _ in 0..13 {
            held.take(1).into_iter().for_each(|request| answer(request, 1));
        }
    });
    // One client goes within its data, and its memory is free again.
    let mut half = running.client();
    let span = Span { offset: 0, length: 4 << 20 };
    let (_, head) = half.session.request(Command::Write { span, fua: false }, Vec::new()).unwrap();
    half.stream.write_all(&[&head[..], &[7; 300_000]].concat()).unwrap();
    thread::sleep(Duration::from_millis(50));
    half.vanish();
    clients[0].ask(Command::read(0, 5 << 20), &[]);
    held.take(1).into_iter().for_each(|request| answer(request, 1));
    assert_eq!(clients[0].reply().data.len(), 5 << 20);
}

/// The head of a write of `length` bytes, without its data.
fn write_head(client: &mut crate::common::Client, length: u32) -> Vec<u8> {
    let span = Span { offset: 0, length };
    let command = Command::Write { span, fua: false };
    client.session.request(command, Vec::new()).unwrap().1.to_vec()
}

#[test]
fn client_dripping_requests_is_cut_off() {
    // Were the time counted from the last byte, each would go on for as long as the loop does.
    let limits = Limits {
        stall: Duration::from_millis(200),
        bytes_per_second_min: 1 << 20,
        ..Limits::default()
    };
    let running = limited(Memory::new("memory", 64 << 20), limits);
    let mut patient = running.client();
    let whole = write_head(&mut running.client(), 64 << 10);
    let refused = {
        // Beyond the end: its data are dropped.
        let mut head = whole.clone();
        head[16..24].copy_from_slice(&(64_u64 << 20).to_be_bytes());
        head
    };
    for (name, at_once, after) in [
        ("a head", 1, whole.clone()),
        ("the data of a write", 28, whole.clone()),
        ("the data of a write that is refused", 28, refused),
    ] {
        let mut client = running.client();
        client.stream.write_all(&after[..at_once]).unwrap();
        let rest = after[at_once..].iter().copied().chain(std::iter::repeat(7));
        let is_cut = rest.take(1500).any(|byte| {
            thread::sleep(Duration::from_millis(if at_once == 1 { 15 } else { 1 }));
            client.stream.write_all(&[byte]).is_err()
        });
        assert!(is_cut, "{name}");
    }
    assert!(eventually(|| running.notices.lock().unwrap().len() == 3));
    let notices = running.notices.lock().unwrap().join("\n");
    assert_eq!(notices.matches("to send a request").count(), 3, "{notices}");
    patient.read(0, 512).unwrap();
}

#[test]
fn client_keeping_least_rate_is_served() {
    let limits = Limits {
        stall: Duration::from_millis(200),
        bytes_per_second_min: 1 << 10,
        ..Limits::default()
    };
    let running = limited(Memory::new("memory", 64 << 20), limits);
    let mut client = running.client();
    // Half a second for each write: longer than it may be silent. Two of them back to back.
    for _ in 0..2 {
        let head = write_head(&mut client, 1 << 20);
        client.stream.write_all(&head).unwrap();
        for _ in 0..64 {
            thread::sleep(Duration::from_millis(8));
            client.stream.write_all(&[7; 16 << 10]).unwrap();
        }
        client.reply().result.unwrap();
    }
    assert_eq!(client.read(1000, 512).unwrap(), [7; 512]);
}

#[test]
fn client_dripping_answers_is_cut_off() {
    let limits = Limits {
        stall: Duration::from_millis(500),
        bytes_per_second_min: 1 << 30,
        ..Limits::default()
    };
    let running = limited(Memory::new("memory", 64 << 20), limits);
    let mut client = running.client();
    client.ask(Command::read(0, 32 << 20), &[]);
    // More than the socket holds is left: 100 KiB each 20 ms would take six seconds.
    let mut part = vec![0; 100 << 10];
    let mut taken = 0;
    while let Ok(length @ 1..) = client.stream.read(&mut part) {
        taken += length;
        thread::sleep(Duration::from_millis(20));
    }
    assert!(taken < 32 << 20, "{taken}");
    let notices = || running.notices.lock().unwrap().join("\n");
    assert!(eventually(|| notices().contains("took an answer too slowly")), "{}", notices());
    running.client().read(0, 512).unwrap();
}

#[test]
fn clients_without_export_keep_none_out() {
    let limits = Limits { connections_max: 8, ..Limits::default() };
    let running = limited(Memory::new("memory", 1 << 20), limits);
    let connect = || UnixStream::connect(running.socket()).unwrap();
    let mut silent: Vec<UnixStream> = (0..40).map(|_| connect()).collect();
    // While others are being closed, which takes milliseconds, a client may have to come again.
    let newcomer = || {
        let until = Instant::now() + STALLED_REQUESTS_MAX / 2;
        let mut client = Client::try_connect(&running.socket(), "");
        while client.is_none() && Instant::now() < until {
            client = Client::try_connect(&running.socket(), "");
        }
        client.expect("a place, sooner than those that are silent time out")
    };
    let mut early = newcomer();
    early.read(0, 512).unwrap();
    // One of the silent waits no longer than it takes to close it.
    silent[0].set_read_timeout(Some(STALLED_REQUESTS_MAX)).unwrap();
    let mut all = Vec::new();
    silent[0].read_to_end(&mut all).unwrap();
    assert!(all.len() <= 18, "the greeting at most, and then the end");
    let _more: Vec<UnixStream> = (0..40).map(|_| connect()).collect();
    early.read(0, 512).unwrap();
    newcomer().read(0, 512).unwrap();
    let notices = running.notices.lock().unwrap().join("\n");
    assert!(notices.contains("had chosen no export, and was closed for newer ones"), "{notices}");
    assert!(running.stop().refused >= 30);
}

#[test]
fn rubbish_connections_write_few_lines() {
    let limits = Limits { notice_every: Duration::from_secs(2), ..Limits::default() };
    let running = limited(Memory::new("memory", 1 << 20), limits);
    let mut good = running.client();
    let begun = Instant::now();
    for _ in 0..10_000 {
        let mut stream = UnixStream::connect(running.socket()).unwrap();
        let _ = stream.write_all(&[0xff; 64]);
    }
    good.read(0, 512).unwrap();
    let elapsed = begun.elapsed().as_secs() as usize;
    let notices = Arc::clone(&running.notices);
    let served = running.stop();
    let notices = notices.lock().unwrap();
    // A second for the rubbish, of which a part is closed before it was greeted; three reasons at most.
    assert!(notices.len() <= 3 * (1 + elapsed), "{} lines in {elapsed} s", notices.len());
    assert!(notices.iter().all(|text| text.len() < 400));
    assert!(served.broken > 1000, "{served:?}");
}
