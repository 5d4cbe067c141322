//! Requests and their replies.

use freewheel_nbd::server::{Close, Event, Request, Settings};
use freewheel_nbd::{BlockSizes, Command, Errno, Export, Extent, Features, Limits, Span};
use proptest::prelude::*;

use crate::common::{EVERYTHING, Server, disk, go, hex, request};

fn only_request(server: &mut Server) -> Request {
    assert_eq!(server.events.len(), 1, "{:?}", server.events);
    match server.events.pop() {
        Some(Event::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

const SPAN: Span = Span { offset: 1024, length: 512 };

#[test]
fn read_answered_by_simple_reply() {
    let mut server = Server::transmitting(disk());
    server.feed(&hex("25609513 0000 0000 0102030405060708 0000000000000400 00000200"));
    let request = only_request(&mut server);
    assert_eq!(request.command, Command::Read { span: SPAN, dont_fragment: false });
    assert_eq!(*request.ticket.data(), hex("67446698 00000000 0102030405060708"));
}

#[test]
fn write_comes_with_data() {
    let mut server = Server::transmitting(disk());
    server.feed(&hex("25609513 0001 0001 0102030405060708 0000000000000400 00000200"));
    assert_eq!(server.session.space().map(|space| space.len()), Some(512));
    server.feed(&[7; 512]);
    let request = only_request(&mut server);
    assert_eq!(request.command, Command::Write { span: SPAN, fua: true });
    assert_eq!(request.data, [7; 512]);
    assert_eq!(*request.ticket.done(), hex("67446698 00000000 0102030405060708"));
}

#[test]
fn payload_is_read_in_place() {
    let mut server = Server::transmitting(disk());
    server.feed(&hex("25609513 0000 0001 0000000000000001 0000000000000400 00000200 0a0b"));
    let space = server.session.space().unwrap();
    assert_eq!(space.len(), 510);
    space.fill(9);
    assert_eq!(server.session.filled(500), None);
    let request = server.session.filled(10).unwrap();
    assert_eq!(request.data[..3], [10, 11, 9]);
    assert_eq!(request.data[3..], [9; 509]);
    assert_eq!(server.session.space(), None);
}

#[test]
fn flush_has_neither_span_nor_data() {
    let mut server = Server::transmitting(disk());
    server.feed(&hex("25609513 0000 0003 0000000000000009 0000000000000000 00000000"));
    let request = only_request(&mut server);
    assert_eq!(request.command, Command::Flush);
    assert_eq!(*request.ticket.done(), hex("67446698 00000000 0000000000000009"));
}

#[test]
fn disconnect_closes_without_reply() {
    let mut server = Server::transmitting(disk());
    server.feed(&hex("25609513 0000 0002 0000000000000009 0000000000000000 00000000 ffff"));
    assert_eq!(server.events, [Event::Close(Close::Disconnected)]);
    assert!(server.sent.is_empty() && server.error.is_none());
}

/// A request that is refused: its flags, type, offset, length, and the error.
type Refused = (u16, u16, u64, u32, u32);

/// Feeds each request with data if it is a write, and expects a simple reply with its error.
fn assert_refused(export: &Export, cases: &[Refused]) {
    for (index, &(flags, kind, offset, length, errno)) in cases.iter().enumerate() {
        let mut server = Server::transmitting(export.clone());
        server.feed(&request(flags, kind, index as u64, offset, length));
        if kind == 1 {
            server.feed(&vec![0; length as usize]);
        }
        let expected = format!("67446698 {errno:08x} {index:016x}");
        assert_eq!(server.sent, hex(&expected), "case {index}: {:?}", cases[index]);
        assert!(server.events.is_empty() && server.error.is_none());
        // The stream continues after it.
        server.feed(&request(0, 0, 77, 0, 512));
        assert_eq!(only_request(&mut server).ticket.cookie(), 77);
    }
}

const SIZE: u64 = 1 << 20;

#[test]
fn requests_beyond_end_get_protocol_errors() {
    assert_refused(
        &disk(),
        &[
            (0, 0, SIZE, 512, 22),
            (0, 0, SIZE - 512, 1024, 22),
            (0, 1, SIZE, 512, 28),
            (0, 1, SIZE - 512, 1024, 28),
            (0, 1, u64::MAX - 511, 512, 28),
            (0, 4, SIZE - 512, 1024, 22),
            (0, 5, SIZE - 512, 1024, 22),
            (0, 6, SIZE - 512, 1024, 28),
            (0, 6, 0, u32::MAX, 28),
        ],
    );
}

#[test]
fn requests_unaligned_or_empty_are_invalid() {
    assert_refused(
        &disk(),
        &[
            (0, 0, 256, 512, 22),
            (0, 0, 0, 100, 22),
            (0, 1, 256, 512, 22),
            (0, 1, 0, 100, 22),
            (0, 4, 0, 100, 22),
            (0, 6, 100, 512, 22),
            (0, 0, 0, 0, 22),
            (0, 1, 0, 0, 22),
            (0, 6, 0, 0, 22),
            (0, 3, 0, 512, 22),
            (0, 3, 512, 0, 22),
        ],
    );
}

#[test]
fn payloads_beyond_longest_are_invalid() {
    let longest = 1 << 17;
    assert_refused(&disk(), &[(0, 0, 0, longest + 512, 22), (0, 1, 0, longest + 512, 22)]);
    let mut server = Server::transmitting(disk());
    server.feed(&request(0, 6, 1, 0, longest + 512));
    let span = Span { offset: 0, length: longest + 512 };
    assert_eq!(only_request(&mut server).command.span(), span);
}

#[test]
fn write_beyond_any_payload_ends_session() {
    let mut server = Server::transmitting(disk());
    server.feed(&request(0, 1, 1, 0, (1 << 25) + 1));
    assert_eq!(
        server.error.unwrap().to_string(),
        "the data of a write has length 33554433; expected at most 33554432"
    );
}

#[test]
fn commands_and_flags_unoffered_are_invalid() {
    // READ with DF needs structured replies, BLOCK_STATUS a metadata context; the rest of the
    // flags do not belong to their commands or to any.
    let everything =
        [(4, 0, 0, 512, 22), (0, 7, 0, 512, 22), (0, 8, 0, 512, 22), (0, 99, 0, 512, 22)];
    assert_refused(&disk(), &everything);
    let misplaced = [
        (2, 0, 0, 512, 22),
        (4, 1, 0, 512, 22),
        (8, 1, 0, 512, 22),
        (16, 4, 0, 512, 22),
        (2, 5, 0, 512, 22),
        (2, 3, 0, 0, 22),
        (32, 0, 0, 512, 22),
        (0x8000, 6, 0, 512, 22),
    ];
    assert_refused(&disk(), &misplaced);
    let plain = Export { features: Features::default(), ..disk() };
    let not_offered = [
        (0, 3, 0, 0, 22),
        (0, 4, 0, 512, 22),
        (0, 5, 0, 512, 22),
        (0, 6, 0, 512, 22),
        (1, 0, 0, 512, 22),
        (1, 1, 0, 512, 22),
    ];
    assert_refused(&plain, &not_offered);
    let slow = Export { features: Features { fast_zero: false, ..EVERYTHING }, ..disk() };
    assert_refused(&slow, &[(16, 6, 0, 512, 22)]);
}

#[test]
fn writes_to_read_only_export_refused() {
    let export = Export { features: Features { read_only: true, ..EVERYTHING }, ..disk() };
    let cases = [(0, 1, 0, 512, 1), (0, 4, 0, 512, 1), (0, 6, 0, 512, 1), (0, 1, SIZE, 512, 1)];
    assert_refused(&export, &cases);
}

#[test]
fn commands_come_out_with_flags() {
    let span = SPAN;
    let cases = [
        (0, 0, Command::Read { span, dont_fragment: false }),
        (1, 0, Command::Read { span, dont_fragment: false }),
        (4, 0, Command::Read { span, dont_fragment: true }),
        (1, 4, Command::Trim { span, fua: true }),
        (0, 4, Command::Trim { span, fua: false }),
        (0, 5, Command::Cache { span }),
        (1, 5, Command::Cache { span }),
        (0, 6, Command::WriteZeroes { span, fua: false, no_hole: false, fast: false }),
        (1, 6, Command::WriteZeroes { span, fua: true, no_hole: false, fast: false }),
        (2, 6, Command::WriteZeroes { span, fua: false, no_hole: true, fast: false }),
        (16, 6, Command::WriteZeroes { span, fua: false, no_hole: false, fast: true }),
        (0, 7, Command::BlockStatus { span, one: false }),
        (8, 7, Command::BlockStatus { span, one: true }),
    ];
    for (flags, kind, command) in cases {
        let mut server = Server::with_status(disk());
        server.feed(&request(flags, kind, 5, 1024, 512));
        assert_eq!(only_request(&mut server).command, command);
        assert!(server.sent.is_empty());
    }
}

#[test]
fn structured_read_is_one_last_chunk() {
    let mut server = Server::structured(disk());
    server.feed(&request(4, 0, 5, 1024, 512));
    let ticket = only_request(&mut server).ticket;
    let head = "668e33ef 0001 0001 0000000000000005 00000208 0000000000000400";
    assert_eq!(*ticket.data(), hex(head));
}

#[test]
fn structured_read_parts_holes_and_errors() {
    let mut server = Server::structured(disk());
    server.feed(&request(0, 0, 5, 1024, 1536));
    let mut chunks = only_request(&mut server).ticket.chunks().unwrap();
    let data = "668e33ef 0000 0001 0000000000000005 00000208 0000000000000400";
    assert_eq!(*chunks.data(512), hex(data));
    let hole = "668e33ef 0000 0002 0000000000000005 0000000c 0000000000000600 00000200";
    assert_eq!(*chunks.hole(512), hex(hole));
    let error = "668e33ef 0000 8002 0000000000000005 00000011 00000005 0003 'bad' 0000000000000800";
    assert_eq!(chunks.error(512, Errno::Io, "bad"), hex(error));
    assert_eq!(*chunks.end(), hex("668e33ef 0001 0000 0000000000000005 00000000"));
}

#[test]
fn read_without_structured_replies_unchunked() {
    let mut server = Server::transmitting(disk());
    server.feed(&request(0, 0, 5, 1024, 512));
    assert!(only_request(&mut server).ticket.chunks().is_none());
}

#[test]
fn errors_carry_words_under_structured_replies() {
    let mut server = Server::structured(disk());
    server.feed(&request(0, 3, 5, 0, 0));
    let ticket = only_request(&mut server).ticket;
    let chunk = "668e33ef 0001 8001 0000000000000005 0000000d 0000001c 0007 'no room'";
    assert_eq!(ticket.error(Errno::NoSpc, "no room"), hex(chunk));
    let long = ticket.error(Errno::Io, &"é".repeat(3000));
    assert_eq!(long.len(), 20 + 6 + 4096);
    server.feed(&request(0, 0, 6, SIZE, 512));
    let text = "it ends beyond the end of the export";
    let chunk = format!("668e33ef 0001 8001 0000000000000006 0000002a 00000016 0024 '{text}'");
    assert_eq!(server.take_sent(), hex(&chunk));
    // A read that is too long: chunks would be the way to answer it, so it is an overflow.
    server.feed(&request(0, 0, 7, 0, (1 << 17) + 512));
    assert_eq!(server.sent[20..24], 75_u32.to_be_bytes());
}

#[test]
fn block_status_is_one_extents_chunk() {
    let mut server = Server::with_status(disk());
    server.feed(&request(0, 7, 5, 1024, 1024));
    let ticket = only_request(&mut server).ticket;
    let extents = [
        Extent { length: 512, hole: true, zero: true },
        Extent { length: 4096, hole: false, zero: true },
    ];
    let expected = "668e33ef 0001 0005 0000000000000005 00000014 00000001 \
                    00000200 00000003 00001000 00000002";
    assert_eq!(ticket.status(&extents), hex(expected));
}

#[test]
fn requests_in_flight_are_limited() {
    let limits = Limits { in_flight_max: 2, ..Limits::default() };
    let settings = Settings { exports: vec![disk()], limits, ..Settings::default() };
    let mut server = Server::negotiating(settings);
    server.feed(&go("disk"));
    server.events.clear();
    let stream: Vec<u8> = (0..3).flat_map(|cookie| request(0, 0, cookie, 0, 512)).collect();
    let mut bytes = &stream[..];
    for _ in 0..2 {
        assert!(matches!(server.session.feed(&mut bytes), Ok(Some(Event::Request(_)))));
    }
    assert_eq!(server.session.feed(&mut bytes), Ok(None));
    assert!(server.session.is_full());
    assert_eq!(bytes.len(), 28);
    server.session.answered(1);
    assert!(matches!(server.session.feed(&mut bytes), Ok(Some(Event::Request(_)))));
}

#[test]
fn shutdown_refuses_requests_and_skips_data() {
    let mut server = Server::transmitting(disk());
    server.session.shut_down();
    server.feed(&request(0, 1, 1, 0, 512)).feed(&[0; 512]).feed(&request(0, 0, 2, 0, 512));
    let expected = "67446698 0000006c 0000000000000001 67446698 0000006c 0000000000000002";
    assert_eq!(server.sent, hex(expected));
}

#[test]
fn non_request_ends_session() {
    let mut server = Server::transmitting(disk());
    server.feed(&hex("12560953 0000 0000 0000000000000001 0000000000000000 00000200"));
    assert_eq!(
        server.error.unwrap().to_string(),
        "a request must begin with 0x25609513, found 0x12560953"
    );
}

#[test]
fn connection_ending_within_write_is_early() {
    let mut server = Server::transmitting(disk());
    assert_eq!(server.session.ended(), Ok(()));
    server.feed(&request(0, 1, 1, 0, 512));
    let error = server.session.ended().unwrap_err();
    assert_eq!(error.to_string(), "the connection ended within the data of a write");
}

#[test]
fn payload_memory_is_reused() {
    let mut server = Server::transmitting(disk());
    server.feed(&request(0, 1, 1, 0, 4096)).feed(&[1; 4096]);
    let data = only_request(&mut server).data;
    let place = data.as_ptr();
    server.session.answered(1);
    server.session.recycle(data);
    server.feed(&request(0, 1, 2, 0, 1024)).feed(&[2; 1024]);
    let data = only_request(&mut server).data;
    assert_eq!(data, [2; 1024]);
    assert_eq!(data.as_ptr(), place);
}

#[test]
fn linux_errors_map_to_protocol_errors() {
    let cases = [
        (1, Errno::Perm),
        (13, Errno::Perm),
        (30, Errno::Perm),
        (5, Errno::Io),
        (12, Errno::NoMem),
        (22, Errno::Inval),
        (27, Errno::NoSpc),
        (28, Errno::NoSpc),
        (122, Errno::NoSpc),
        (75, Errno::Io),
        (95, Errno::Io),
        (108, Errno::Shutdown),
    ];
    for (linux, errno) in cases {
        assert_eq!(Errno::from_linux(linux), errno, "{linux}");
    }
    assert_eq!(Errno::from_code(75), Errno::Overflow);
    assert_eq!(Errno::from_code(1234), Errno::Inval);
}

/// Mostly near the borders of what is valid.
fn any_frame() -> impl Strategy<Value = (u16, u16, u64, u32)> {
    let flags = prop_oneof![4 => Just(0_u16), 2 => 0_u16..32, 1 => any::<u16>()];
    let kind = prop_oneof![8 => 0_u16..8, 1 => any::<u16>()];
    let offset =
        prop_oneof![(0..=SIZE / 512).prop_map(|block| block * 512), 0..SIZE + 1024, any::<u64>(),];
    let length = prop_oneof![(0_u32..300).prop_map(|block| block * 512), 0..1_u32 << 18];
    (flags, kind, offset, length)
}

/// The error that the protocol has for a request to an export; a slow reading of "Error values" and
/// "Request types", one rule after the other. 0 is a valid request.
fn errno(export: &Export, (flags, kind, offset, length): (u16, u16, u64, u32)) -> u32 {
    let features = &export.features;
    let writes = [1, 4, 6].contains(&kind);
    let allowed_flags: &[(u16, u16, bool)] = &[
        (1, kind, features.fua),
        (2, 6, features.write_zeroes),
        (4, 0, features.dont_fragment),
        (8, 7, features.block_status),
        (16, 6, features.fast_zero),
    ];
    let allowed = |bit: u16| {
        allowed_flags.iter().any(|(flag, command, on)| *flag == bit && *command == kind && *on)
    };
    let offered = match kind {
        0 | 1 => true,
        3 => features.flush,
        4 => features.trim,
        5 => features.cache,
        6 => features.write_zeroes,
        7 => features.block_status,
        _ => false,
    };
    let beyond = u128::from(offset) + u128::from(length) > u128::from(export.size);
    let minimum = u64::from(export.block_sizes.minimum);
    let longest = export.block_sizes.payload_max;
    if writes && features.read_only {
        1
    } else if !offered || (0..16).any(|bit| flags >> bit & 1 == 1 && !allowed(1 << bit)) {
        22
    } else if kind == 3 {
        if offset == 0 && length == 0 { 0 } else { 22 }
    } else if length == 0 {
        22
    } else if beyond {
        if kind == 1 || kind == 6 { 28 } else { 22 }
    } else if offset % minimum > 0 || u64::from(length) % minimum > 0 {
        22
    } else if matches!(kind, 0 | 1 | 5) && length > longest {
        if kind == 0 { 75 } else { 22 }
    } else {
        0
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn requests_valid_or_answered_with_error(
        frame in any_frame(),
        on in any::<[bool; 8]>(),
    ) {
        let features = Features {
            read_only: on[0] && on[1],
            flush: on[2],
            fua: on[3],
            trim: on[4],
            write_zeroes: on[5],
            fast_zero: on[5] && on[6],
            cache: on[7],
            dont_fragment: on[1],
            block_status: true,
            ..Features::default()
        };
        let export = Export { features, ..disk() };
        let (flags, kind, offset, length) = frame;
        prop_assume!(kind != 2);
        let mut server = Server::with_status(export.clone());
        server.feed(&request(flags, kind, 9, offset, length));
        if kind == 1 {
            server.feed(&vec![0; length as usize]);
        }
        prop_assert_eq!(&server.error, &None);
        let expected = errno(&export, frame);
        if expected == 0 {
            prop_assert!(server.sent.is_empty());
            let request = only_request(&mut server);
            let span = Span { offset, length };
            prop_assert_eq!((request.command.span(), request.ticket.cookie()), (span, 9));
        } else {
            prop_assert!(server.events.is_empty());
            prop_assert_eq!(&server.sent[..8], hex("668e33ef 0001 8001"));
            prop_assert_eq!(&server.sent[20..24], expected.to_be_bytes());
        }
    }
}

#[test]
fn read_beyond_chunk_length_is_overflow() {
    let block_sizes = BlockSizes { minimum: 1, preferred: 4096, payload_max: u32::MAX };
    let mut server = Server::structured(Export { size: 1 << 40, block_sizes, ..disk() });
    server.feed(&request(0, 0, 1, 0, u32::MAX - 8));
    let head = only_request(&mut server).ticket.data();
    assert_eq!(head[16..20], u32::MAX.to_be_bytes());
    server.feed(&request(0, 0, 2, 0, u32::MAX - 7));
    assert_eq!(server.sent[20..24], 75_u32.to_be_bytes());
}

#[test]
fn block_status_bounds_extent_count() {
    let mut server = Server::with_status(Export { size: 1 << 40, ..disk() });
    server.feed(&request(0, 7, 1, 0, 1 << 30));
    let extents = vec![Extent { length: 512, ..Extent::default() }; (1 << 20) + 1];
    let reply = only_request(&mut server).ticket.status(&extents);
    assert_eq!(reply.len(), 20 + 4 + (8 << 20));
}

#[test]
fn payload_memory_follows_received_bytes() {
    let block_sizes = BlockSizes::default();
    let large = Export { size: 1 << 30, block_sizes, ..disk() };
    let length = 32 << 20;
    let mut in_place = Server::transmitting(large.clone());
    in_place.feed(&request(0, 1, 1, 0, length));
    let mut came = 0;
    let done = loop {
        let space = in_place.session.space().unwrap();
        // Room for as much again, once all that there was is filled.
        assert!(!space.is_empty() && space.len() <= came.max(256 << 10), "{came}");
        let now = space.len().min(100_000);
        space[..now].fill((came / 100_000) as u8);
        came += now;
        if let Some(request) = in_place.session.filled(now) {
            break request;
        }
    };
    assert_eq!((came, done.data.len()), (length as usize, length as usize));
    assert!(done.data[..100_000].iter().all(|&byte| byte == 0), "nothing was moved");

    // The same bytes through the buffer, all at once.
    let data: Vec<u8> = (0..length).map(|at| (at / 7) as u8).collect();
    let mut fed = Server::transmitting(large);
    fed.feed(&[request(0, 1, 1, 0, length), data.clone()].concat());
    let request = only_request(&mut fed);
    assert!(request.data == data);
    // What is longer than a MiB is not kept.
    let before = request.data.capacity();
    fed.session.recycle(request.data);
    fed.feed(&crate::common::request(0, 1, 2, 0, 2 << 20));
    assert!(before > 1 << 20 && fed.session.space().unwrap().len() == 256 << 10);
}
