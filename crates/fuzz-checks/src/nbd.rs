//! Properties of NBD sessions, for any bytes. No input panics, cuts of the stream make no difference,
//! and every output is valid.
//!
//! Goals: one body for the fuzz targets and for the ordinary test over the saved corpus
//! (`tests/fuzz_checks/nbd.rs`).
//! Non-goals: the values of a clean stream; tests of the crate check them.

use freewheel_nbd::client::{self, ExportInfo};
use freewheel_nbd::server::{self, Request, Tls};
use freewheel_nbd::{BlockSizes, Command, Export, Features, Limits, Span, Violation};

/// Small, so that damage reaches them.
const LIMITS: Limits = Limits {
    option_bytes_max: 512,
    name_bytes_max: 32,
    options_max: 16,
    in_flight_max: 4,
    fragments_max: 4,
};
/// Longer than any one answer under these limits and exports.
const SENT_BYTES_MAX: usize = 8 << 10;
const SIZE: u64 = 1 << 20;
const BLOCK: u32 = 512;

fn exports() -> Vec<Export> {
    let features = Features {
        flush: true,
        fua: true,
        trim: true,
        write_zeroes: true,
        fast_zero: true,
        cache: true,
        dont_fragment: true,
        block_status: true,
        ..Features::default()
    };
    let block_sizes = BlockSizes { minimum: BLOCK, preferred: 4096, payload_max: 1 << 16 };
    let disk =
        Export { name: "disk".into(), size: SIZE, features, block_sizes, ..Export::default() };
    let read_only = Features { read_only: true, ..features };
    vec![
        Export { block_sizes_required: true, name: "strict".into(), ..disk.clone() },
        Export {
            description: "fixed".into(),
            name: "rom".into(),
            features: read_only,
            ..disk.clone()
        },
        disk,
    ]
}

/// A client's bytes, the first of which chooses how the server deals with TLS.
pub fn check_server(bytes: &[u8]) {
    let (tls, stream) = match bytes.split_first() {
        Some((first, stream)) => {
            ([Tls::Off, Tls::Offered, Tls::Required][*first as usize % 3], stream)
        }
        None => return,
    };
    let whole = serve(stream, tls, stream.len().max(1));
    for piece in [1, 13] {
        assert_eq!(whole, serve(stream, tls, piece), "pieces of {piece} bytes make a difference");
    }
}

type Outcome<Event> = (Vec<Event>, Option<Violation>, Result<(), Violation>);

fn serve(stream: &[u8], tls: Tls, piece: usize) -> Outcome<server::Event> {
    let settings = server::Settings { exports: exports(), tls, limits: LIMITS };
    let mut session = server::Session::new(settings).expect("the exports are valid");
    let mut events = Vec::new();
    let pieces = std::iter::once(&[][..]).chain(stream.chunks(piece));
    for mut bytes in pieces {
        loop {
            match session.feed(&mut bytes) {
                Ok(Some(event)) => {
                    take(&mut session, &event);
                    events.push(event);
                }
                Ok(None) => break,
                Err(violation) => return (events, Some(violation), session.ended()),
            }
        }
        assert!(bytes.is_empty(), "bytes are left while no event waits");
    }
    (events, None, session.ended())
}

fn take(session: &mut server::Session, event: &server::Event) {
    match event {
        server::Event::Send(bytes) => assert!((1..SENT_BYTES_MAX).contains(&bytes.len())),
        server::Event::StartTls => session.tls_established(),
        server::Event::Request(request) => {
            check_request(request);
            session.answered(1);
        }
        server::Event::Start(_) | server::Event::Close(_) => {}
    }
}

fn check_request(request: &Request) {
    let Span { offset, length } = request.command.span();
    assert!(offset.checked_add(length.into()).is_some_and(|end| end <= SIZE), "{request:?}");
    assert!(offset.is_multiple_of(BLOCK.into()) && length.is_multiple_of(BLOCK), "{request:?}");
    let is_write = matches!(request.command, Command::Write { .. });
    assert_eq!(request.data.len(), if is_write { length as usize } else { 0 });
    assert_eq!(length == 0, request.command == Command::Flush, "{request:?}");
}

/// A server's bytes, the first of which chooses what the client asks for.
pub fn check_client(bytes: &[u8]) {
    let Some((first, stream)) = bytes.split_first() else { return };
    let whole = ask(stream, *first, stream.len().max(1));
    for piece in [1, 13] {
        assert_eq!(whole, ask(stream, *first, piece), "pieces of {piece} bytes make a difference");
    }
}

fn ask(stream: &[u8], wish: u8, piece: usize) -> Outcome<client::Event> {
    let (structured, block_status) = (wish & 1 != 0, wish & 2 != 0);
    let settings = client::Settings { structured, block_status, limits: LIMITS };
    let mut session = client::Session::new(settings);
    let mut events = Vec::new();
    for mut bytes in stream.chunks(piece) {
        loop {
            match session.feed(&mut bytes) {
                Ok(Some(event)) => {
                    answer(&mut session, &event, wish);
                    events.push(event);
                }
                Ok(None) => break,
                Err(violation) => return (events, Some(violation), session.ended()),
            }
        }
        assert!(bytes.is_empty(), "bytes are left while no event waits");
    }
    (events, None, session.ended())
}

/// Answers an event as the client. A question that the session does not allow is not asked.
fn answer(session: &mut client::Session, event: &client::Event, wish: u8) {
    match event {
        client::Event::Greeted => {
            let _ = match wish >> 2 & 3 {
                0 => session.go("disk"),
                1 => session.list(),
                2 => session.info("disk"),
                _ => session.start_tls(),
            };
        }
        client::Event::Exports(_) | client::Event::Info(_) => drop(session.go("disk")),
        client::Event::Refused(_) => drop(session.abort()),
        client::Event::StartTls => {
            session.tls_established();
            drop(session.go("disk"));
        }
        client::Event::Started(info) => request(session, info),
        client::Event::Reply(reply) => {
            let length = reply.command.span().length as usize;
            let is_read = matches!(reply.command, Command::Read { .. });
            assert!(!is_read || reply.data.len() == length);
        }
        client::Event::Send(bytes) => assert!((1..SENT_BYTES_MAX).contains(&bytes.len())),
        client::Event::Aborted => {}
    }
}

/// A request of each kind with a separate reply, as far as the export allows.
fn request(session: &mut client::Session, info: &ExportInfo) {
    let length = info.block_sizes.minimum.max(BLOCK);
    let span = Span { offset: u64::from(length), length };
    let commands = [
        Command::read(0, length),
        Command::read(span.offset, length),
        Command::BlockStatus { span, one: false },
        Command::Flush,
    ];
    for command in commands {
        let _ = session.request(command, Vec::new());
    }
}
