//! Requests and their replies.

use freewheel_nbd::client::{Event, Failure, Reply, Settings};
use freewheel_nbd::{Command, Errno, Extent, Limits, Span};

use super::Client;
use crate::common::hex;

const LIMITS: Limits = Limits {
    option_bytes_max: 1 << 10,
    name_bytes_max: 16,
    options_max: 16,
    in_flight_max: 3,
    fragments_max: 2,
};
const SIMPLE: Settings = Settings { structured: false, block_status: false, limits: LIMITS };
const STRUCTURED: Settings = Settings { structured: true, ..SIMPLE };
const WITH_STATUS: Settings = Settings { block_status: true, ..STRUCTURED };
/// Everything but read-only.
const FLAGS: u16 = 0x0dfd;

fn span(offset: u64, length: u32) -> Span {
    Span { offset, length }
}

fn only_reply(client: &mut Client) -> Reply {
    assert_eq!(client.events.len(), 1, "{:?} {:?}", client.events, client.error);
    match client.events.pop() {
        Some(Event::Reply(reply)) => reply,
        other => panic!("{other:?}"),
    }
}

#[test]
fn command_headers_are_encoded() {
    let span = span(1024, 512);
    let cases = [
        (Command::read(1024, 512), "0000 0000"),
        (Command::Read { span, dont_fragment: true }, "0004 0000"),
        (Command::write(1024, 512), "0000 0001"),
        (Command::Write { span, fua: true }, "0001 0001"),
        (Command::Trim { span, fua: true }, "0001 0004"),
        (Command::Cache { span }, "0000 0005"),
        (Command::WriteZeroes { span, fua: true, no_hole: true, fast: true }, "0013 0006"),
        (Command::BlockStatus { span, one: true }, "0008 0007"),
    ];
    for (command, kind) in cases {
        let mut client = Client::started(WITH_STATUS, FLAGS);
        let (cookie, head) = client.session.request(command, Vec::new()).unwrap();
        let expected = format!("25609513 {kind} {cookie:016x} 0000000000000400 00000200");
        assert_eq!(*head, hex(&expected));
    }
    let mut client = Client::started(SIMPLE, FLAGS);
    let (_, head) = client.session.request(Command::Flush, Vec::new()).unwrap();
    assert_eq!(*head, hex("25609513 0000 0003 0000000000000001 0000000000000000 00000000"));
    let head = client.session.disconnect().unwrap();
    assert_eq!(*head, hex("25609513 0000 0002 0000000000000000 0000000000000000 00000000"));
    assert_eq!(client.session.ended(), Ok(()));
}

#[test]
fn simple_replies_fill_buffers_any_order() {
    let mut client = Client::started(SIMPLE, FLAGS);
    let buffer = Vec::with_capacity(512);
    let place = buffer.as_ptr();
    client.session.request(Command::read(0, 512), buffer).unwrap();
    client.session.request(Command::write(0, 512), vec![1, 2]).unwrap();
    client.feed(&hex("67446698 00000000 0000000000000002"));
    let reply = only_reply(&mut client);
    assert_eq!((reply.cookie, reply.result, reply.data), (2, Ok(()), vec![1, 2]));
    client.feed(&hex("67446698 00000000 0000000000000001")).feed(&[9; 500]);
    assert!(client.events.is_empty());
    let space = client.session.space().unwrap();
    assert_eq!(space.len(), 12);
    space.fill(8);
    client.session.filled(12);
    assert_eq!(client.session.space(), None, "an empty space would look like a closed connection");
    client.feed(&[]);
    let reply = only_reply(&mut client);
    assert_eq!((reply.cookie, reply.command), (1, Command::read(0, 512)));
    assert_eq!((reply.result, reply.data.as_ptr()), (Ok(()), place));
    assert_eq!((&reply.data[..500], &reply.data[500..]), (&[9; 500][..], &[8; 12][..]));
}

#[test]
fn failed_read_has_no_data() {
    let mut client = Client::started(SIMPLE, FLAGS);
    client.session.request(Command::read(0, 512), Vec::new()).unwrap();
    client.feed(&hex("67446698 00000005 0000000000000001"));
    let failure = Failure { errno: Errno::Io, message: String::new(), offset: None };
    assert_eq!(failure.to_string(), "EIO");
    assert_eq!(only_reply(&mut client).result, Err(failure));
}

/// The header of a chunk of the first request.
fn chunk(flags: u16, kind: u16, length: u32) -> String {
    format!("668e33ef {flags:04x} {kind:04x} 0000000000000001 {length:08x}")
}

#[test]
fn chunks_are_joined_in_any_order() {
    let mut client = Client::started(STRUCTURED, FLAGS);
    client.session.request(Command::read(1024, 1536), vec![7; 1536]).unwrap();
    client.feed(&hex(&format!("{} 0000000000000800", chunk(0, 1, 520)))).feed(&[1; 512]);
    client.feed(&hex(&format!("{} 0000000000000600 00000200", chunk(0, 2, 12))));
    assert!(client.events.is_empty());
    client.feed(&hex(&format!("{} 0000000000000400", chunk(1, 1, 520)))).feed(&[2; 512]);
    let reply = only_reply(&mut client);
    assert_eq!(reply.result, Ok(()));
    assert_eq!(reply.data, [[2; 512], [0; 512], [1; 512]].concat());
}

#[test]
fn chunks_of_several_requests_may_mix() {
    let mut client = Client::started(STRUCTURED, FLAGS);
    client.session.request(Command::read(0, 1024), Vec::new()).unwrap();
    client.session.request(Command::Flush, Vec::new()).unwrap();
    client.feed(&hex(&format!("{} 0000000000000000", chunk(0, 1, 520)))).feed(&[1; 512]);
    client.feed(&hex("668e33ef 0001 0000 0000000000000002 00000000"));
    assert_eq!(only_reply(&mut client).command, Command::Flush);
    client.feed(&hex(&format!("{} 0000000000000200 00000200", chunk(0, 2, 12))));
    client.feed(&hex(&chunk(1, 0, 0)));
    assert_eq!(only_reply(&mut client).data, [[1; 512], [0; 512]].concat());
}

#[test]
fn error_chunks_tell_what_and_where() {
    let mut client = Client::started(STRUCTURED, FLAGS);
    client.session.request(Command::read(1024, 1024), Vec::new()).unwrap();
    client.feed(&hex(&format!("{} 00000005 0003 'bad' 0000000000000600", chunk(0, 0x8002, 17))));
    client.feed(&hex(&format!("{} 0000001c 0000", chunk(1, 0x8001, 6))));
    let reply = only_reply(&mut client);
    let failure = Failure { errno: Errno::Io, message: "bad".into(), offset: Some(0x600) };
    assert_eq!(failure.to_string(), "EIO: bad");
    assert_eq!(reply.result, Err(failure), "the first error counts");
    // An error of an unknown type, with its own fields, is an error all the same.
    client.session.request(Command::Flush, Vec::new()).unwrap();
    client.feed(&hex("668e33ef 0001 8063 0000000000000002 00000008 0000001c 0000 ffff"));
    assert_eq!(only_reply(&mut client).result.unwrap_err().errno, Errno::NoSpc);
}

#[test]
fn block_status_comes_as_extents() {
    let mut client = Client::started(WITH_STATUS, FLAGS);
    let command = Command::BlockStatus { span: span(0, 1024), one: false };
    client.session.request(command, Vec::new()).unwrap();
    let extents = "00000007 00000200 00000003 00001000 00000000";
    client.feed(&hex(&format!("{} {extents}", chunk(1, 5, 20))));
    let expected = [
        Extent { length: 512, hole: true, zero: true },
        Extent { length: 4096, hole: false, zero: false },
    ];
    assert_eq!(only_reply(&mut client).extents, expected);
}

/// Replies to a read of 1024 bytes at 1024 that break the protocol, and their errors.
fn violations() -> Vec<(String, &'static str)> {
    let data = format!("{} 0000000000000400 {}", chunk(0, 1, 520), "00".repeat(512));
    vec![
        (
            "00000000 00000000 0000000000000001".into(),
            "a reply must begin with 0x668e33ef, found 0x0",
        ),
        (
            "668e33ef 0000 0001 0000000000000009".into(),
            "a reply with cookie 0x9; expected the cookie of a request in flight",
        ),
        (
            "67446698 00000005 0000000000000001".into(),
            "a simple reply to a command with data; expected chunks",
        ),
        (chunk(0, 0, 0), "an empty chunk that is not the last; expected the flag DONE with it"),
        (chunk(1, 0, 4), "a chunk of a reply has length 4; expected 0"),
        (chunk(0, 1, 8), "a chunk of a reply has length 8; expected 9 to 1032"),
        (chunk(0, 1, 1033), "a chunk of a reply has length 1033; expected 9 to 1032"),
        (chunk(0, 2, 13), "a chunk of a reply has length 13; expected 12"),
        (chunk(0, 0x8001, 5), "a chunk of a reply has length 5; expected 6 to 4352"),
        (chunk(0, 0x8002, 13), "a chunk of a reply has length 13; expected 14 to 4352"),
        (
            chunk(0, 5, 12),
            "a chunk of type 5 in reply to Read { span: Span { offset: 1024, length: 1024 }, \
             dont_fragment: false }; expected a type that belongs to the command",
        ),
        (
            format!("{} 0000000000000200", chunk(0, 1, 520)),
            "512 bytes at 512; expected a part of 1024 bytes at 1024",
        ),
        (
            format!("{} 0000000000000600 00000201", chunk(0, 2, 12)),
            "513 bytes at 1536; expected a part of 1024 bytes at 1024",
        ),
        (
            format!("{} ffffffffffffffff 00000200", chunk(0, 2, 12)),
            "512 bytes at 18446744073709551615; expected a part of 1024 bytes at 1024",
        ),
        (
            format!("{} 0000000000000400 00000000", chunk(0, 2, 12)),
            "a hole of no bytes; expected at least one",
        ),
        (
            format!("{data} {} 00000000000005ff 00000001", chunk(0, 2, 12)),
            "1 bytes at 1535; expected parts that do not overlap with earlier ones",
        ),
        (
            format!("{data} {}", chunk(1, 0, 0)),
            "the end of the reply to Read { span: Span { offset: 1024, length: 1024 }, \
             dont_fragment: false }; expected all that was asked for, or an error, before it",
        ),
        (
            [1024, 1026, 1028]
                .map(|at| format!("{} {at:016x} 00000001", chunk(0, 2, 12)))
                .join(" "),
            "more than 2 parts of a read apart",
        ),
    ]
}

/// Violations in chunks that report an error.
fn violations_in_errors() -> Vec<(String, &'static str)> {
    vec![
        (
            format!("{} 00000000 0000", chunk(1, 0x8001, 6)),
            "an error chunk without an error; expected a code that is not zero",
        ),
        (
            format!("{} 00000005 0002 0000", chunk(1, 0x8001, 7)),
            "the text of an error has length 2; expected at most 1",
        ),
        (
            format!("{} 00000005 0000 0000000000000800", chunk(1, 0x8002, 14)),
            "an error at 2048; expected one in 1024 bytes at 1024",
        ),
    ]
}

#[test]
fn read_reply_violations_name_expectation() {
    for (bytes, expected) in violations().into_iter().chain(violations_in_errors()) {
        let mut client = Client::started(STRUCTURED, FLAGS);
        client.session.request(Command::read(1024, 1024), Vec::new()).unwrap();
        client.feed(&hex(&bytes));
        assert_eq!(client.error(), expected);
    }
}

#[test]
fn chunks_need_structured_replies() {
    let mut client = Client::started(SIMPLE, FLAGS);
    client.session.request(Command::Flush, Vec::new()).unwrap();
    client.feed(&hex(&chunk(1, 0, 0)));
    assert_eq!(client.error(), "a chunk of a structured reply; expected simple replies");
}

#[test]
fn read_marked_unsplit_is_not_split() {
    let mut client = Client::started(STRUCTURED, FLAGS);
    let command = Command::Read { span: span(0, 1024), dont_fragment: true };
    client.session.request(command, Vec::new()).unwrap();
    for at in [0, 512] {
        client.feed(&hex(&format!("{} {at:016x} 00000200", chunk(0, 2, 12))));
    }
    assert_eq!(client.error(), "a second part of a read; expected one, as the flag DF asks");
}

#[test]
fn block_status_violations_name_expectation() {
    let cases = [
        (
            false,
            "00000008 00000400 00000000",
            "the status of metadata context 8; expected that of 7 once",
        ),
        (
            false,
            "00000007 00000000 00000000",
            "an extent of 0 bytes after 0; expected extents of some bytes that begin in 1024",
        ),
        (
            false,
            "00000007 00000400 00000000 00000400 00000000",
            "an extent of 1024 bytes after 1024; expected extents of some bytes that begin in 1024",
        ),
        (
            true,
            "00000007 00000200 00000000 00000200 00000000",
            "2 extents of 1024 bytes; expected one of at most 1024",
        ),
        (
            true,
            "00000007 00000800 00000000",
            "1 extents of 2048 bytes; expected one of at most 1024",
        ),
    ];
    for (one, body, expected) in cases {
        let mut client = Client::started(WITH_STATUS, FLAGS);
        let command = Command::BlockStatus { span: span(0, 1024), one };
        client.session.request(command, Vec::new()).unwrap();
        client.feed(&hex(&format!("{} {body}", chunk(1, 5, hex(body).len() as u32))));
        assert_eq!(client.error(), expected);
    }
}

#[test]
fn requests_server_would_refuse_not_sent() {
    let cases = [
        (Command::read(1 << 20, 512), "it ends beyond the end of the export"),
        (Command::read(0, 100), "it is not aligned to the minimum block size"),
        (Command::read(0, 0), "the length is zero"),
        (Command::read(0, 1 << 18), "it is longer than the longest payload"),
        (Command::Flush, "this command was not offered"),
        (Command::Write { span: span(0, 512), fua: true }, "a flag is not valid with this command"),
    ];
    let mut client = Client::started(SIMPLE, 0x0001);
    for (command, expected) in cases {
        let error = client.session.request(command, Vec::new()).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    let error = client.session.request(Command::read(512, 100), Vec::new()).unwrap_err();
    let expected = "offset 512, length 100: it is not aligned to the minimum block size";
    assert_eq!(error.to_string(), expected);
    for _ in 0..3 {
        client.session.request(Command::read(0, 512), Vec::new()).unwrap();
    }
    let error = client.session.request(Command::read(0, 512), Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "3 requests are in flight, which is in_flight_max");
    let mut client = Client::greeted(SIMPLE);
    let error = client.session.request(Command::read(0, 512), Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "no export has been started: no request may be made");
}
