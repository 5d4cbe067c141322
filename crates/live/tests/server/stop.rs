use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use freewheel_live::nbd::{Limits, Memory};
use freewheel_nbd::{Command, Errno};

use crate::common::Running;
use crate::common::held::{Held, answer};

#[test]
fn stop_answers_requests_and_closes_connection() {
    let held = Held::default();
    let running = Running::of(held.clone());
    let mut client = running.client();
    let idle = running.client();
    client.ask(Command::read(0, 4096), &[]);
    let taken = held.take(1);
    running.begin_stop_and_wait(idle);
    taken.into_iter().for_each(|request| answer(request, 5));
    assert_eq!(client.reply().data, vec![5; 4096]);
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    let served = running.stop();
    assert_eq!((served.connections, served.broken), (2, 0));
}

#[test]
fn stop_not_delayed_by_idle_clients() {
    let running = Running::of(Memory::new("memory", 1 << 20));
    let mut client = running.client();
    client.read(0, 512).unwrap();
    let mut silent = UnixStream::connect(running.socket()).unwrap();
    silent.read_exact(&mut [0; 18]).unwrap();
    assert_eq!(running.stop().connections, 2);
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn stop_delayed_at_most_by_grace() {
    let held = Held::default();
    let limits = Limits { grace: Duration::from_millis(100), ..Limits::default() };
    let running = Running::new(vec![Arc::new(held.clone())], limits);
    let mut client = running.client();
    client.ask(Command::read(0, 4096), &[]);
    let taken = held.take(1);
    running.stop();
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    drop(taken);
}

#[test]
fn stop_loses_no_earlier_requests() {
    let held = Held::default();
    let limits = Limits { in_flight_max: 1, ..Limits::default() };
    let running = Running::new(vec![Arc::new(held.clone())], limits);
    let mut client = running.client();
    let idle = running.client();
    for _ in 0..3 {
        client.ask(Command::read(0, 512), &[]);
    }
    let taken = held.take(1);
    running.begin_stop_and_wait(idle);
    taken.into_iter().for_each(|request| answer(request, 5));
    assert!(client.reply().result.is_ok());
    for _ in 0..2 {
        assert_eq!(client.reply().result.unwrap_err().errno, Errno::Shutdown);
    }
}
