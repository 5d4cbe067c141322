use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use freewheel_live::nbd::{Client, ClientLimits, Memory, Refusal, RequestError};
use freewheel_nbd::{Command, Errno, Span};

use super::Asker;
use crate::common::held::{Held, answer};
use crate::common::{Running, STALLED_REQUESTS_MAX, pattern, stays};

#[test]
fn client_reads_back_and_knows_export() {
    let running = Running::of(Memory::new("memory", 8 << 20));
    let asker = Asker::of(&running.uri());
    let info = asker.client.info();
    assert_eq!((&*info.name, info.size), ("memory", 8 << 20));
    assert!(info.features.flush && info.features.block_status);
    let data = pattern(3 << 20, 1);
    asker.write((1 << 20) - 777, &data, 1);
    asker.answer().result.unwrap();
    assert!(asker.read((1 << 20) - 777, 3 << 20) == data);
    let span = Span { offset: 0, length: 4096 };
    asker.ask(Command::BlockStatus { span, one: false }, 2);
    assert_eq!(asker.answer().extents[0].length, 4096);
    asker.client.close().unwrap();
    assert_eq!(running.stop().broken, 0);
}

#[test]
fn client_threads_get_own_data() {
    let running = Running::of(Memory::new("memory", 4 << 20));
    let asker = Asker::of(&running.uri());
    let data = pattern(4 << 20, 2);
    asker.write(0, &data, 0);
    asker.answer().result.unwrap();
    let (threads, each) = (4, 500);
    thread::scope(|scope| {
        for thread in 0..threads {
            let client = &asker.client;
            scope.spawn(move || {
                for at in 0..each {
                    let tag = thread * each + at;
                    let command = Command::read(tag * 512, 512 + 7 * (tag as u32 % 600));
                    loop {
                        match client.submit(command, &mut Vec::new(), tag) {
                            Ok(_) => break,
                            Err(refused) => {
                                assert!(matches!(refused.why, Refusal::Full { .. }), "{refused}");
                                assert_eq!(refused.tag, tag);
                                thread::yield_now();
                            }
                        }
                    }
                }
            });
        }
    });
    let mut tags = BTreeSet::new();
    for answer in asker.answers((threads * each) as usize) {
        answer.result.unwrap();
        let from = answer.tag as usize * 512;
        assert!(answer.data == data[from..from + answer.command.span().length as usize]);
        assert!(tags.insert(answer.tag));
    }
    assert!(asker.is_quiet());
}

#[test]
fn client_answers_in_server_order_timed() {
    let held = Held::default();
    let running = Running::of(held.clone());
    let asker = Asker::of(&running.uri());
    (0..6).for_each(|tag| asker.ask(Command::read(tag * 4096, 4096), tag));
    let mut taken = held.take(6);
    let mut before = Instant::now();
    for tag in [5, 0, 3, 1, 4, 2] {
        let of_tag = |(command, _): &(Command, _)| command.span().offset / 4096 == tag;
        let request = taken.remove(taken.iter().position(of_tag).unwrap());
        thread::sleep(Duration::from_millis(5));
        let released = Instant::now();
        answer(request, tag as u8);
        let came = asker.answer();
        assert_eq!((came.tag, came.data), (tag, vec![tag as u8; 4096]));
        assert!(released > before && came.at > released && came.at <= Instant::now());
        before = came.at;
    }
}

#[test]
fn client_error_affects_one_request() {
    let held = Held::default();
    let running = Running::of(held.clone());
    let asker = Asker::of(&running.uri());
    (0..2).for_each(|tag| asker.ask(Command::read(tag * 512, 512), tag));
    let mut taken = held.take(2);
    let (command, responder) = taken.remove(0);
    responder.error(Errno::NoMem, "no more");
    let failed = asker.answer();
    assert_eq!((failed.tag, failed.command), (0, command));
    match failed.result {
        Err(RequestError::Failed(failure)) => {
            assert_eq!((failure.errno, &*failure.message), (Errno::NoMem, "no more"));
        }
        other => panic!("{other:?}"),
    }
    answer(taken.remove(0), 3);
    asker.answer().result.unwrap();
}

#[test]
fn client_refuses_requests_beyond_limits() {
    let held = Held::default();
    let running = Running::of(held.clone());
    let limits = ClientLimits { in_flight_max: 2, ..ClientLimits::default() };
    let asker = Asker::connect(&running.uri(), limits).unwrap();
    let why =
        |command, data: &[u8]| asker.client.submit(command, &mut data.to_vec(), 9).unwrap_err().why;
    for (command, data, text) in [
        (Command::read(1 << 30, 512), &[][..], "beyond the end"),
        (Command::write(0, 512), &[0; 511][..], "511 bytes of data"),
        (
            Command::Trim { span: Span { offset: 0, length: 512 }, fua: false },
            &[][..],
            "not offered",
        ),
    ] {
        let why = why(command, data);
        assert!(matches!(&why, Refusal::Invalid(said) if said.contains(text)), "{why}");
    }
    (0..2).for_each(|tag| asker.ask(Command::read(0, 512), tag));
    assert_eq!(why(Command::Flush, &[]), Refusal::Full { requests: 2, bytes: 1024 });
    held.take(2).into_iter().for_each(|request| answer(request, 1));
    asker.answers(2);
    asker.ask(Command::Flush, 2);
    held.take(1).into_iter().for_each(|request| answer(request, 1));
    asker.answer().result.unwrap();
}

#[test]
fn client_bounds_data_in_flight() {
    let held = Held::default();
    let running = Running::of(held.clone());
    let limits = ClientLimits { bytes_in_flight_max: 10_000, ..ClientLimits::default() };
    let asker = Asker::connect(&running.uri(), limits).unwrap();
    asker.ask(Command::read(0, 20_000), 0);
    let refused = asker.client.submit(Command::read(0, 1), &mut Vec::new(), 1).unwrap_err();
    assert_eq!(refused.why, Refusal::Full { requests: 1, bytes: 20_000 });
    held.take(1).into_iter().for_each(|request| answer(request, 1));
    asker.answer();
    asker.ask(Command::read(0, 10_000), 2);
    held.take(1).into_iter().for_each(|request| answer(request, 1));
    asker.answer().result.unwrap();
}

#[test]
fn client_answer_callback_may_ask() {
    let running = Running::of(Memory::new("memory", 1 << 20));
    let own: Arc<Mutex<Option<Client<u64>>>> = Arc::default();
    let (tell, told) = mpsc::channel();
    let mine = Arc::clone(&own);
    let limits = ClientLimits { in_flight_max: 1, ..ClientLimits::default() };
    let client =
        Client::connect(&running.uri(), limits, move |answer: freewheel_live::nbd::Answer<u64>| {
            answer.result.unwrap();
            if answer.tag == 0 {
                return tell.send(()).unwrap();
            }
            let client = mine.lock().unwrap();
            let client = client.as_ref().unwrap();
            client.submit(Command::read(0, 512), &mut Vec::new(), answer.tag - 1).unwrap();
        });
    let mut place = own.lock().unwrap();
    let client = place.insert(client.unwrap());
    client.submit(Command::read(0, 512), &mut Vec::new(), 100).unwrap();
    drop(place);
    told.recv_timeout(STALLED_REQUESTS_MAX).unwrap();
    drop(own.lock().unwrap().take());
}

#[test]
fn client_close_waits_but_drop_not() {
    let held = Held::default();
    let running = Running::of(held.clone());
    let asker = Asker::of(&running.uri());
    asker.ask(Command::read(0, 512), 7);
    let request = held.take(1).remove(0);
    let Asker { client, answers } = asker;
    let closing = thread::spawn(move || client.close());
    assert!(stays(|| !closing.is_finished()));
    answer(request, 1);
    closing.join().unwrap().unwrap();
    assert_eq!(answers.recv().unwrap().tag, 7);
    let asker = Asker::of(&running.uri());
    asker.ask(Command::read(0, 512), 8);
    // Taken before the drop: a server need not start what a client that has gone had asked for.
    let request = held.take(1).remove(0);
    let Asker { client, answers } = asker;
    drop(client);
    let unanswered = answers.recv().unwrap();
    assert!(matches!(unanswered.result, Err(RequestError::Lost(_))), "{unanswered:?}");
    answer(request, 1);
}
