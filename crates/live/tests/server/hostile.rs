//! Hostile and faulty clients on real sockets. Each case has a name, which a failure prints. Each gets the
//! protocol's answer, and other clients are served as before.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use freewheel_live::nbd::{Limits, Memory, ServerTls};

use crate::common::pki::Pki;
use crate::common::{Running, STALLED_REQUESTS_MAX, eventually};

/// Bytes of the export.
const SIZE: u64 = 1 << 20;

/// Client flags: fixed newstyle, no zeroes.
const FLAGS: [u8; 4] = [0, 0, 0, 3];

const EXPORT_NAME: u32 = 1;
const ABORT: u32 = 2;
const LIST: u32 = 3;
const STARTTLS: u32 = 5;
const INFO: u32 = 6;
const GO: u32 = 7;
const STRUCTURED_REPLY: u32 = 8;
const LIST_META_CONTEXT: u32 = 9;
const SET_META_CONTEXT: u32 = 10;

fn running() -> Running {
    Running::of(Memory::new("memory", SIZE))
}

/// An option whose data have another length than it says.
fn claimed(option: u32, length: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &option.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    claimed(option, data.len() as u32, data)
}

/// Data of `INFO` and `GO`: a name, and how many pieces of information are wanted.
fn named(name: &[u8], wanted: u16) -> Vec<u8> {
    [&(name.len() as u32).to_be_bytes(), name, &wanted.to_be_bytes()].concat()
}

/// Data of options about metadata contexts: no name, the number of queries, and the queries.
fn queries(count: u32, rest: &[u8]) -> Vec<u8> {
    [&[0; 4], &count.to_be_bytes()[..], rest].concat()
}

fn request(flags: u16, kind: u16, offset: u64, length: u32) -> Vec<u8> {
    let head = [&0x2560_9513_u32.to_be_bytes()[..], &flags.to_be_bytes(), &kind.to_be_bytes()];
    [&head.concat()[..], &[7; 8], &offset.to_be_bytes(), &length.to_be_bytes()].concat()
}

/// A connection that was greeted.
fn greeted(running: &Running) -> UnixStream {
    let mut stream = UnixStream::connect(running.socket()).unwrap();
    stream.set_read_timeout(Some(STALLED_REQUESTS_MAX)).unwrap();
    stream.set_write_timeout(Some(STALLED_REQUESTS_MAX)).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream
}

/// All that comes until the server ends the connection; `None` if it does not.
fn to_the_end(stream: &mut UnixStream, sent: &[u8]) -> Option<Vec<u8>> {
    let mut writer = stream.try_clone().unwrap();
    thread::scope(|threads| {
        // The server may have ended it before all was sent.
        threads.spawn(move || drop(writer.write_all(sent)));
        let mut all = Vec::new();
        let ended = stream.read_to_end(&mut all);
        let is_over = ended.err().is_none_or(|error| error.kind() == ErrorKind::ConnectionReset);
        // Bytes that have not been sent by now need not be.
        let _ = stream.shutdown(Shutdown::Both);
        is_over.then_some(all)
    })
}

/// That somebody else reads and writes as ever.
fn serves_others(running: &Running, name: &str) {
    let mut other = running.client();
    other.write(4096, name.as_bytes(), false).unwrap();
    assert_eq!(other.read(4096, name.len() as u32).unwrap(), name.as_bytes());
}

#[test]
fn handshake_violation_disconnects_without_data() {
    let running = running();
    let with_flags = |bytes: &[u8]| [&FLAGS, bytes].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("flags that nobody knows", vec![0, 0, 0, 4]),
        ("all flags", vec![0xff; 4]),
        ("HTTP", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
        ("SSH", b"SSH-2.0-x\r\n".to_vec()),
        ("TLS without asking", vec![22, 3, 1, 0, 5, 1, 0, 0, 1, 0]),
        ("a request in place of the flags", request(0, 0, 0, 512)),
        ("an option of a client of the old way", [&[0; 4], &option(LIST, b"")[..]].concat()),
        ("a request before an export", with_flags(&request(0, 0, 0, 512))),
        ("the server's own greeting", with_flags(b"NBDMAGICIHAVEOPT\0\0\0\0")),
        ("an option of 4 GiB", with_flags(&claimed(GO, u32::MAX, b"x"))),
        ("a name of 4 GiB in the old way", with_flags(&claimed(EXPORT_NAME, u32::MAX, b"x"))),
        ("a long name in the old way", with_flags(&option(EXPORT_NAME, &[b'x'; 5000]))),
        ("another export in the old way", with_flags(&option(EXPORT_NAME, b"other"))),
        ("a path in the old way", with_flags(&option(EXPORT_NAME, b"../memory"))),
        ("a zero in a name in the old way", with_flags(&option(EXPORT_NAME, b"memory\0"))),
        ("no UTF-8 in the old way", with_flags(&option(EXPORT_NAME, &[0xff, 0xfe]))),
    ];
    for (name, sent) in &cases {
        let mut stream = greeted(&running);
        assert_eq!(to_the_end(&mut stream, sent), Some(Vec::new()), "{name}");
        serves_others(&running, name);
    }
    // Answers to all of them would be more than any client has use for.
    let mut stream = greeted(&running);
    let endless = with_flags(&option(LIST, b"").repeat(100_000));
    let all = to_the_end(&mut stream, &endless).expect("options without end are cut off");
    assert!(all.len() < 1 << 20, "{}", all.len());
    serves_others(&running, "options without end");
}

/// Types of the replies to options that have come, in their order.
fn replies(mut bytes: &[u8]) -> Vec<(u32, u32)> {
    let mut all = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<20>() {
        let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        all.push((number(8), number(12)));
        bytes = &rest[number(16) as usize..];
    }
    all
}

#[test]
fn options_inconsistent_refused_one_by_one() {
    const UNSUP: u32 = 1;
    const POLICY: u32 = 2;
    const INVALID: u32 = 3;
    const UNKNOWN: u32 = 6;
    const TOO_BIG: u32 = 9;
    let running = running();
    let long = [b'x'; 4097];
    let query = [&5000_u32.to_be_bytes()[..], &[b'x'; 5000]].concat();
    let cases: Vec<(&str, u32, Vec<u8>, u32)> = vec![
        ("option 0", 0, vec![], UNSUP),
        ("the last of all options", u32::MAX, vec![1, 2, 3], UNSUP),
        ("PEEK_EXPORT, which is withdrawn", 4, vec![], UNSUP),
        ("EXTENDED_HEADERS", 11, vec![], UNSUP),
        ("LIST with data", LIST, vec![0], INVALID),
        ("STRUCTURED_REPLY with data", STRUCTURED_REPLY, vec![0; 4], INVALID),
        ("STARTTLS without TLS", STARTTLS, vec![], POLICY),
        ("STARTTLS with data", STARTTLS, vec![22, 3, 1], INVALID),
        ("GO without data", GO, vec![], INVALID),
        ("GO with half a length", GO, vec![0, 0], INVALID),
        ("GO with a name beyond its data", GO, vec![0, 0, 0, 9, b'x', 0, 0], INVALID),
        ("GO with a name beyond all data", GO, vec![0xff, 0xff, 0xff, 0xff, 0, 0], INVALID),
        ("GO without a count", GO, vec![0, 0, 0, 0], INVALID),
        ("GO that wants more than it says", GO, named(b"", 65_535), INVALID),
        ("GO with more behind", GO, [named(b"", 0), vec![1]].concat(), INVALID),
        ("GO to another export", GO, named(b"other", 0), UNKNOWN),
        ("GO to a path", GO, named(b"../../etc/passwd", 0), UNKNOWN),
        ("GO to a longer name", GO, named(b"memory ", 0), UNKNOWN),
        ("GO to another case", GO, named(b"MEMORY", 0), UNKNOWN),
        ("GO to a format", GO, named(b"{}%s%n", 0), UNKNOWN),
        ("GO to a name with a zero", GO, named(b"memory\0x", 0), INVALID),
        ("GO to no UTF-8", GO, named(&[0xc3, 0x28], 0), INVALID),
        ("GO to a name that is too long", GO, named(&long, 0), TOO_BIG),
        ("GO with a megabyte", GO, vec![0; 1 << 20], TOO_BIG),
        ("INFO of another export", INFO, named(b"other", 0), UNKNOWN),
        ("INFO without data", INFO, vec![], INVALID),
        ("LIST_META_CONTEXT too early", LIST_META_CONTEXT, queries(0, b""), INVALID),
        ("SET_META_CONTEXT too early", SET_META_CONTEXT, queries(0, b""), INVALID),
        ("an unknown option with a megabyte", 99, vec![0; 1 << 20], TOO_BIG),
    ];
    for (name, number, data, error) in &cases {
        refuses(&running, name, &[], (*number, data), *error);
    }
    let first = option(STRUCTURED_REPLY, b"");
    let cases: Vec<(&str, Vec<u8>, u32)> = vec![
        ("no queries", vec![0; 4], INVALID),
        ("4 billion queries", queries(u32::MAX, b""), INVALID),
        ("a query beyond its data", queries(1, &[0, 0, 0, 9, b'x']), INVALID),
        ("a query beyond all data", queries(1, &[0xff; 4]), INVALID),
        ("a query that is too long", queries(1, &query), TOO_BIG),
        ("more behind the queries", queries(0, b"x"), INVALID),
    ];
    for (name, data, error) in &cases {
        refuses(&running, name, &first, (LIST_META_CONTEXT, data), *error);
        refuses(&running, name, &first, (SET_META_CONTEXT, data), *error);
    }
}

/// That an option is refused, after the bytes before it, and the next one is answered.
fn refuses(running: &Running, name: &str, before: &[u8], (number, data): (u32, &[u8]), error: u32) {
    let mut stream = greeted(running);
    let sent = [&FLAGS, before, &option(number, data), &option(ABORT, b"")].concat();
    let all = to_the_end(&mut stream, &sent).expect(name);
    let replies = replies(&all);
    let expected = [(number, 1 << 31 | error), (ABORT, 1)];
    assert!(replies.ends_with(&expected), "{name}: {replies:x?}");
    assert_eq!(replies.len(), expected.len() + usize::from(!before.is_empty()), "{name}");
    serves_others(running, name);
}

/// A connection on which the export was chosen in the old way.
fn chosen(running: &Running) -> UnixStream {
    let mut stream = greeted(running);
    stream.write_all(&[&FLAGS, &option(EXPORT_NAME, b"")[..]].concat()).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

#[test]
fn requests_invalid_get_errors() {
    const INVALID: u32 = 22;
    const NO_SPACE: u32 = 28;
    const WRITE: u16 = 1;
    let running = running();
    let cases = [
        ("a command that is not", request(0, 8, 0, 512), INVALID),
        ("the last of all commands", request(0, u16::MAX, 0, 512), INVALID),
        ("a read with all flags", request(u16::MAX, 0, 0, 512), INVALID),
        ("a flag that is not", request(1 << 15, 0, 0, 512), INVALID),
        ("NO_HOLE of a read", request(1 << 1, 0, 0, 512), INVALID),
        ("REQ_ONE of a read", request(1 << 3, 0, 0, 512), INVALID),
        ("DF without chunks", request(1 << 2, 0, 0, 512), INVALID),
        ("a read of nothing", request(0, 0, 0, 0), INVALID),
        ("a read over the end", request(0, 0, SIZE - 1, 2), INVALID),
        ("a read behind the end", request(0, 0, SIZE, 1), INVALID),
        ("a read at the end of numbers", request(0, 0, u64::MAX, 1), INVALID),
        ("a read over the end of numbers", request(0, 0, u64::MAX - 511, 1024), INVALID),
        ("a read of 4 GiB", request(0, 0, 0, u32::MAX), INVALID),
        ("a read from the upper half", request(0, 0, 1 << 63, 512), INVALID),
        ("a write of nothing", request(0, WRITE, 0, 0), INVALID),
        ("a write over the end", request(0, WRITE, SIZE - 1, 2), NO_SPACE),
        ("a write at the end of numbers", request(0, WRITE, u64::MAX, 1), NO_SPACE),
        ("a write over the end of numbers", request(0, WRITE, u64::MAX - 1, 4), NO_SPACE),
        ("a write with all flags", request(u16::MAX, WRITE, 0, 1024), INVALID),
        ("a write of 32 MiB to 1 MiB", request(0, WRITE, 0, 32 << 20), NO_SPACE),
        ("a flush of something", request(0, 3, 0, 512), INVALID),
        ("a flush at somewhere", request(0, 3, 512, 0), INVALID),
        ("a trim over the end", request(0, 4, SIZE - 1, 2), INVALID),
        ("a trim over the end of numbers", request(0, 4, u64::MAX, u32::MAX), INVALID),
        ("a cache of 4 GiB", request(0, 5, 0, u32::MAX), INVALID),
        ("zeroes over the end", request(0, 6, SIZE - 1, 2), NO_SPACE),
        ("zeroes over the end of numbers", request(0, 6, u64::MAX, u32::MAX), NO_SPACE),
        ("a status that was not agreed on", request(0, 7, 0, 512), INVALID),
    ];
    for (name, head, error) in &cases {
        let mut stream = chosen(&running);
        stream.write_all(head).unwrap();
        if head[6..8] == WRITE.to_be_bytes() {
            // Its data must go nowhere.
            let length = u32::from_be_bytes(head[24..].try_into().unwrap());
            stream.write_all(&vec![0xbb; length as usize]).unwrap();
        }
        let mut reply = [0; 16];
        stream.read_exact(&mut reply).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(reply[..4], 0x6744_6698_u32.to_be_bytes(), "{name}");
        assert_eq!(reply[4..8], error.to_be_bytes(), "{name}: {reply:?}");
        assert_eq!(reply[8..], [7; 8], "{name}: the cookie");
        stream.write_all(&request(0, 0, SIZE - 512, 512)).unwrap();
        let mut data = [1; 16 + 512];
        stream.read_exact(&mut data).unwrap();
        assert_eq!(data[4..8], [0; 4], "{name}: the connection continues");
        assert_eq!(data[16..], [0; 512], "{name}: nothing was written");
        serves_others(&running, name);
    }
}

#[test]
fn bytes_without_request_close_connection() {
    let running = running();
    let write = |length: u32| request(0, 1, 0, length);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("zeroes", vec![0; 28]),
        ("an option", option(LIST, b"")),
        ("a reply", [&0x6744_6698_u32.to_be_bytes()[..], &[0; 24]].concat()),
        (
            "a request with extended headers",
            [&0x21e4_1c71_u32.to_be_bytes()[..], &[0; 28]].concat(),
        ),
        ("a write of 4 GiB", write(u32::MAX)),
        ("a write of a byte more than 32 MiB", write((32 << 20) + 1)),
        (
            "a write of which data are missing",
            [write(512), vec![0xbb; 100], request(0, 2, 0, 0)].concat(),
        ),
        ("a write behind a farewell", [request(0, 2, 0, 0), write(4), vec![0xbb; 4]].concat()),
        ("a request of the other byte order", {
            let mut head = write(4);
            head[..4].reverse();
            [head, vec![0xbb; 4]].concat()
        }),
    ];
    for (name, sent) in &cases {
        let mut stream = chosen(&running);
        // It may be over before all was sent.
        let _ = stream.write_all(sent);
        let _ = stream.shutdown(Shutdown::Write);
        assert_eq!(to_the_end(&mut stream, b""), Some(Vec::new()), "{name}");
        let mut other = running.client();
        assert_eq!(other.read(0, 4).unwrap(), [0; 4], "{name}: nothing was written");
        serves_others(&running, name);
    }
}

#[test]
fn bytes_without_tls_handshake_close_connection() {
    let pki = Pki::new("localhost");
    let disk = Arc::new(Memory::new("memory", SIZE));
    let tls = Some(ServerTls::load(pki.path(), false).unwrap());
    let running = Running::encrypted(vec![disk], Limits::default(), tls);
    let record = |kind: u8, version: [u8; 2], data: &[u8]| {
        [&[kind, version[0], version[1]], &(data.len() as u16).to_be_bytes()[..], data].concat()
    };
    // A client that knows this version and no newer one.
    let hello = |version: [u8; 2]| {
        let body = [&version[..], &[7; 32], &[0], &[0, 2, 0, 0x2f], &[1, 0]].concat();
        let head = [1, 0, 0, body.len() as u8];
        record(22, [3, 1], &[&head[..], &body].concat())
    };
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("zeroes", vec![0; 64]),
        ("ones", vec![0xff; 64]),
        ("HTTP", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n".to_vec()),
        ("an option without encryption", option(GO, &named(b"", 0))),
        ("a request without encryption", request(0, 0, 0, 512)),
        ("a hello of SSL 2", vec![0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10]),
        ("a hello of SSL 3", hello([3, 0])),
        ("a hello of TLS 1.0", hello([3, 1])),
        ("a hello of TLS 1.2 without a cipher that is sound", hello([3, 3])),
        ("data before the handshake", record(23, [3, 3], b"IHAVEOPT")),
        ("a change of ciphers before any", record(20, [3, 3], &[1])),
        ("an alert", record(21, [3, 3], &[2, 40])),
        ("a kind of record that is not", record(99, [3, 3], b"x")),
        ("a record longer than any", [&[22, 3, 1, 0xff, 0xff][..], &[1; 70_000]].concat()),
        ("a message of 16 MiB", record(22, [3, 1], &[1, 0xff, 0xff, 0xff, 3, 3])),
        ("a server's hello", record(22, [3, 3], &[2, 0, 0, 2, 3, 3])),
        ("records without data", record(22, [3, 1], b"").repeat(10_000)),
        ("half a hello", hello([3, 3])[..20].to_vec()),
    ];
    for (count, (name, sent)) in (1..).zip(&cases) {
        let mut stream = greeted(&running);
        stream.write_all(&[&FLAGS, &option(STARTTLS, b"")[..]].concat()).unwrap();
        let mut ack = [0; 20];
        stream.read_exact(&mut ack).unwrap();
        assert_eq!(ack[8..16], [0, 0, 0, 5, 0, 0, 0, 1], "{name}");
        let _ = stream.write_all(sent);
        let _ = stream.shutdown(Shutdown::Write);
        let said = to_the_end(&mut stream, b"").expect(name);
        // An alert at most.
        assert!(said.is_empty() || said[0] == 21, "{name}: {said:?}");
        let notices = || running.notices.lock().unwrap().join("\n");
        let is_told = || notices().matches("TLS handshake").count() == count;
        assert!(eventually(is_told), "{name}: {}", notices());
        serves_others(&running, name);
    }
}
