//! Greeting and options.

use freewheel_nbd::server::{Close, Event, Session, Settings, Started, Tls};
use freewheel_nbd::{BlockSizes, Export, Features, Limits, OptionError};

use crate::common::{Server, disk, go, hex};

const START: Started =
    Started { export: 0, structured: false, block_sizes_agreed: false, block_status: false };

#[test]
fn greeting_offers_fixed_newstyle_no_zeroes() {
    let server = Server::new(Settings::default());
    assert_eq!(server.sent, hex("'NBDMAGIC' 'IHAVEOPT' 0003"));
}

#[test]
fn export_name_answered_with_size_and_flags() {
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 00000001 00000004 'disk'"));
    // All flags but read-only (bit 1), and DF (bit 7), which needs structured replies.
    assert_eq!(server.sent, hex("0000000000100000 0d7d"));
    assert_eq!(server.events, [Event::Start(START)]);
}

#[test]
fn export_name_pads_zeroes_unless_waived() {
    let mut server = Server::new(Settings { exports: vec![disk()], ..Settings::default() });
    server.take_sent();
    server.feed(&hex("00000001 'IHAVEOPT' 00000001 00000004 'disk'"));
    let mut expected = hex("0000000000100000 0d7d");
    expected.extend([0; 124]);
    assert_eq!(server.sent, expected);
}

#[test]
fn go_tells_requested_info_and_begins() {
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 00000007 00000010 00000004 'disk' 0003 0001 0002 0003"));
    let head = "0003e889045565a9 00000007";
    let expected = [
        &format!("{head} 00000003 0000000c 0000 0000000000100000 0d7d"),
        &format!("{head} 00000003 00000006 0001 'disk'"),
        &format!("{head} 00000003 00000007 0002 'spins'"),
        &format!("{head} 00000003 0000000e 0003 00000200 00001000 00020000"),
        &format!("{head} 00000001 00000000"),
    ];
    let expected: Vec<u8> = expected.into_iter().flat_map(|part| hex(part)).collect();
    assert_eq!(server.sent, expected);
    let start = Started { block_sizes_agreed: true, ..START };
    assert_eq!(server.events, [Event::Start(start)]);
}

#[test]
fn plain_export_says_only_flags() {
    let export = Export { name: "x".into(), features: Features::default(), ..disk() };
    let mut server = Server::of(export);
    server.feed(&hex("'IHAVEOPT' 00000001 00000001 'x'"));
    assert_eq!(server.sent, hex("0000000000100000 0001"));
}

/// The final answer to an option, and no byte before it.
fn assert_refused(server: &mut Server, option: u8, error: u8, text: &str) {
    let mut expected = hex("0003e889045565a9 000000");
    expected.extend([option, 0x80, 0, 0, error]);
    expected.extend((text.len() as u32).to_be_bytes());
    expected.extend(text.as_bytes());
    assert_eq!(server.take_sent(), expected, "option {option}");
    assert!(server.events.is_empty() && server.error.is_none());
}

#[test]
fn info_matches_go_without_beginning() {
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 00000006 0000000a 00000004 'disk' 0000"));
    let head = "0003e889045565a9 00000006";
    let export = format!("{head} 00000003 0000000c 0000 0000000000100000 0d7d");
    assert_eq!(server.sent, hex(&format!("{export} {head} 00000001 00000000")));
    assert!(server.events.is_empty());
}

#[test]
fn export_default_is_unnamed_or_first() {
    let nameless = Export { name: String::new(), size: 512, ..disk() };
    for (exports, expected) in [(vec![disk()], 0), (vec![disk(), nameless], 1)] {
        let mut server = Server::negotiating(Settings { exports, ..Settings::default() });
        server.feed(&hex("'IHAVEOPT' 00000001 00000000"));
        assert_eq!(server.events, [Event::Start(Started { export: expected, ..START })]);
    }
}

#[test]
fn export_missing_is_unknown() {
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 00000007 00000008 00000002 'no' 0000"));
    assert_refused(&mut server, 7, 6, "there is no export \"no\" here");
    server.feed(&hex("'IHAVEOPT' 00000001 00000002 'no'"));
    let refused = Close::Refused { name: "no".into(), error: OptionError::Unknown };
    assert_eq!(server.events, [Event::Close(refused)]);
    assert!(server.sent.is_empty());
}

#[test]
fn list_names_exports_with_descriptions() {
    let second = Export { name: "b".into(), description: String::new(), ..disk() };
    let exports = vec![disk(), second];
    let mut server = Server::negotiating(Settings { exports, ..Settings::default() });
    server.feed(&hex("'IHAVEOPT' 00000003 00000000"));
    let head = "0003e889045565a9 00000003";
    let expected = format!(
        "{head} 00000002 0000000d 00000004 'diskspins' {head} 00000002 00000005 00000001 'b' \
         {head} 00000001 00000000"
    );
    assert_eq!(server.sent, hex(&expected));
}

#[test]
fn abort_with_any_data_is_acknowledged() {
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 00000002 00000003 'why' 00"));
    assert_eq!(server.sent, hex("0003e889045565a9 00000002 00000001 00000000"));
    assert_eq!(server.events, [Event::Close(Close::Aborted)]);
    assert_eq!(server.session.ended(), Ok(()));
}

#[test]
fn options_without_data_refuse_data() {
    let settings = Settings { exports: vec![disk()], tls: Tls::Offered, ..Settings::default() };
    let mut server = Server::negotiating(settings);
    for (option, name) in [(3, "LIST"), (5, "STARTTLS"), (8, "STRUCTURED_REPLY")] {
        server.feed(&hex(&format!("'IHAVEOPT' 000000{option:02x} 00000001 00")));
        assert_refused(&mut server, option, 3, &format!("{name} has no data"));
    }
}

#[test]
fn options_unknown_refused_and_skipped() {
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 0000000b 00000000"));
    assert_refused(&mut server, 11, 1, "EXTENDED_HEADERS is not supported");
    server.feed(&hex("'IHAVEOPT' 00000004 00000003 010203"));
    assert_refused(&mut server, 4, 1, "option 4 is not supported");
    server.feed(&hex("'IHAVEOPT' 00000008 00000000"));
    assert_eq!(server.sent, hex("0003e889045565a9 00000008 00000001 00000000"));
}

#[test]
fn option_lengths_must_add_up() {
    let text = "the lengths within the option do not add up";
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 00000008 00000000"));
    server.take_sent();
    // No name's length; name longer than the data; a wanted item missing; a byte too many.
    for data in ["", "00000005 'disk' 0000", "00000001 'd' 0001", "00000001 'd' 0000 00"] {
        let length = hex(data).len();
        server.feed(&hex(&format!("'IHAVEOPT' 00000006 {length:08x} {data}")));
        assert_refused(&mut server, 6, 3, text);
    }
    // A query missing; one longer than the data; a byte too many.
    for data in ["00000000 00000001", "00000000 00000001 00000002 'b'", "00000000 00000000 00"] {
        let length = hex(data).len();
        server.feed(&hex(&format!("'IHAVEOPT' 0000000a {length:08x} {data}")));
        assert_refused(&mut server, 10, 3, text);
    }
}

#[test]
fn block_sizes_required_from_every_client() {
    let export = Export { block_sizes_required: true, ..disk() };
    let mut server = Server::of(export.clone());
    server.feed(&hex("'IHAVEOPT' 00000007 0000000a 00000004 'disk' 0000"));
    let head = "0003e889045565a9 00000007";
    let expected = format!(
        "{head} 00000003 0000000c 0000 0000000000100000 0d7d \
         {head} 00000003 0000000e 0003 00000200 00001000 00020000 \
         {head} 80000008 0000002e 'clients of \"disk\" must ask for its block sizes'"
    );
    assert_eq!(server.take_sent(), hex(&expected));
    assert!(server.events.is_empty());
    server.feed(&go("disk"));
    assert!(matches!(server.events[..], [Event::Start(Started { block_sizes_agreed: true, .. })]));

    let mut server = Server::of(export);
    server.feed(&hex("'IHAVEOPT' 00000001 00000004 'disk'"));
    let refused = Close::Refused { name: "disk".into(), error: OptionError::BlockSizeReqd };
    assert_eq!(server.events, [Event::Close(refused)]);
}

#[test]
fn starttls_without_tls_refused_by_policy() {
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 00000005 00000000"));
    assert_refused(&mut server, 5, 2, "this server does without TLS");
}

#[test]
fn tls_required_before_any_other_answer() {
    let settings = Settings { exports: vec![disk()], tls: Tls::Required, ..Settings::default() };
    let mut server = Server::negotiating(settings.clone());
    for option in [3_u8, 6, 7, 8, 9, 10, 11, 99] {
        server.feed(&hex(&format!("'IHAVEOPT' 000000{option:02x} 00000000")));
        assert_refused(&mut server, option, 5, "this server requires TLS");
    }
    server.feed(&hex("'IHAVEOPT' 00000005 00000000 16030100"));
    assert_eq!(server.take_sent(), hex("0003e889045565a9 00000005 00000001 00000000"));
    assert_eq!(server.events, [Event::StartTls]);
    server.events.clear();
    server.session.tls_established();
    server.feed(&hex("'IHAVEOPT' 00000005 00000000"));
    assert_refused(&mut server, 5, 3, "TLS has begun already");
    server.feed(&go("disk"));
    assert!(matches!(server.events[..], [Event::Start(_)]));

    let mut server = Server::negotiating(settings);
    server.feed(&hex("'IHAVEOPT' 00000001 00000004 'disk'"));
    let refused = Close::Refused { name: "disk".into(), error: OptionError::TlsReqd };
    assert_eq!(server.events, [Event::Close(refused)]);
}

#[test]
fn starttls_leaves_bytes_for_handshake() {
    let settings = Settings { exports: vec![disk()], tls: Tls::Offered, ..Settings::default() };
    let mut session = Server::negotiating(settings).session;
    let stream = hex("'IHAVEOPT' 00000005 00000000 160301");
    let mut bytes = &stream[..];
    assert!(matches!(session.feed(&mut bytes), Ok(Some(Event::Send(_)))));
    assert_eq!(session.feed(&mut bytes), Ok(Some(Event::StartTls)));
    assert_eq!(session.feed(&mut bytes), Ok(None));
    assert_eq!(bytes, hex("160301"));
}

#[test]
fn tls_forgets_what_was_agreed_before() {
    let settings = Settings { exports: vec![disk()], tls: Tls::Offered, ..Settings::default() };
    let mut server = Server::negotiating(settings);
    server.feed(&hex("'IHAVEOPT' 00000008 00000000 'IHAVEOPT' 00000005 00000000"));
    server.session.tls_established();
    server.feed(&go("disk"));
    assert!(matches!(server.events[1], Event::Start(Started { structured: false, .. })));
}

#[test]
fn metadata_context_listed_and_chosen() {
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 00000008 00000000"));
    server.take_sent();
    let query = "0000000f 'base:allocation'";
    let wildcard = "00000005 'base:'";
    let other = "00000003 'x-y'";
    let cases = [
        // Option, queries, whether it is answered, under which number.
        ("09", "00000000".into(), Some("00000000")),
        ("09", format!("00000001 {query}"), Some("00000000")),
        ("09", format!("00000002 {other} {wildcard}"), Some("00000000")),
        ("09", format!("00000001 {other}"), None),
        ("0a", format!("00000001 {query}"), Some("00000001")),
        ("0a", format!("00000001 {wildcard}"), None),
        ("0a", "00000000".into(), None),
    ];
    for (option, queries, told) in cases {
        let data = format!("00000004 'disk' {queries}");
        let length = hex(&data).len();
        server.feed(&hex(&format!("'IHAVEOPT' 000000{option} {length:08x} {data}")));
        let head = format!("0003e889045565a9 000000{option}");
        let context = told.map(|id| format!("{head} 00000004 00000013 {id} 'base:allocation'"));
        let expected = format!("{} {head} 00000001 00000000", context.unwrap_or_default());
        assert_eq!(server.take_sent(), hex(&expected), "{option} {queries}");
    }
}

fn set_context(name: &str) -> Vec<u8> {
    let data = format!("{:08x} '{name}' 00000001 0000000f 'base:allocation'", name.len());
    hex(&format!("'IHAVEOPT' 0000000a {:08x} {data}", hex(&data).len()))
}

#[test]
fn metadata_context_holds_for_last_export() {
    let other = Export { name: "b".into(), ..disk() };
    let without = Features { block_status: false, ..disk().features };
    let without = Export { name: "c".into(), features: without, ..disk() };
    for (chosen, started, expected) in [
        (&["disk"][..], "disk", true),
        (&["b"], "disk", false),
        (&["b", "disk"], "disk", true),
        (&["disk", "b"], "disk", false),
        (&["c"], "c", false),
        (&["disk", "no"], "disk", false),
    ] {
        let exports = vec![disk(), other.clone(), without.clone()];
        let mut server = Server::negotiating(Settings { exports, ..Settings::default() });
        server.feed(&hex("'IHAVEOPT' 00000008 00000000"));
        for name in chosen {
            server.feed(&set_context(name));
        }
        server.feed(&go(started));
        let [Event::Start(start)] = &server.events[..] else { panic!("{:?}", server.events) };
        assert_eq!(start.block_status, expected, "{chosen:?}");
    }
}

#[test]
fn metadata_contexts_need_structured_replies() {
    let mut server = Server::of(disk());
    server.feed(&set_context("disk"));
    assert_refused(&mut server, 10, 3, "metadata contexts need STRUCTURED_REPLY first");
}

#[test]
fn options_beyond_limit_end_session() {
    let limits = Limits { option_bytes_max: 20, name_bytes_max: 3, ..Limits::default() };
    let settings = Settings { exports: vec![disk()], limits, ..Settings::default() };
    let mut server = Server::negotiating(settings.clone());
    server.feed(&hex("'IHAVEOPT' 00000003 00000015")).feed(&[0; 21]);
    assert_refused(&mut server, 3, 9, "LIST has 21 bytes of data; at most 20 are taken");
    server.feed(&hex("'IHAVEOPT' 00000006 0000000a 00000004 'disk' 0000"));
    assert_refused(&mut server, 6, 9, "a name of 4 bytes; at most 3 are taken");
    server.feed(&hex("'IHAVEOPT' 00000003 02000001"));
    let error = server.error.unwrap().to_string();
    assert_eq!(error, "an option has length 33554433; expected at most 20");

    let mut server = Server::negotiating(settings);
    server.feed(&hex("'IHAVEOPT' 00000001 00000015"));
    assert_eq!(server.error.unwrap().to_string(), "an option has length 21; expected at most 20");
}

#[test]
fn client_never_beginning_is_cut_off() {
    let limits = Limits { options_max: 3, ..Limits::default() };
    let mut server = Server::negotiating(Settings { limits, ..Settings::default() });
    server.feed(&hex("'IHAVEOPT' 00000003 00000000").repeat(3));
    assert_eq!(server.error, None);
    server.feed(&hex("'IHAVEOPT' 00000003 00000000"));
    assert_eq!(server.error.unwrap().to_string(), "more than 3 options");
}

#[test]
fn violations_say_what_was_expected() {
    let cases = [
        ("00000004", "the client set flags 0x4; only 0x3 were offered"),
        (
            "00000003 'IHAVEOPS' 00000003 00000000",
            "an option must begin with 0x49484156454f5054, found 0x49484156454f5053",
        ),
        (
            "00000000 'IHAVEOPT' 00000003 00000000",
            "LIST of a client that does not speak fixed newstyle; expected EXPORT_NAME",
        ),
    ];
    for (bytes, expected) in cases {
        let mut server = Server::new(Settings { exports: vec![disk()], ..Settings::default() });
        server.feed(&hex(bytes));
        assert_eq!(server.error.clone().unwrap().to_string(), expected);
        server.error = None;
        server.feed(&hex("00"));
        assert_eq!(server.error.unwrap().to_string(), expected, "the error stays");
    }
}

#[test]
fn shutdown_refuses_options_but_abort() {
    let mut server = Server::of(disk());
    server.session.shut_down();
    server.feed(&go("disk"));
    assert_refused(&mut server, 7, 7, "the server is shutting down");
    server.feed(&hex("'IHAVEOPT' 00000002 00000000"));
    assert_eq!(server.events, [Event::Close(Close::Aborted)]);
}

#[test]
fn client_may_leave_after_greeting() {
    let mut server = Server::new(Settings::default());
    assert_eq!(server.session.ended(), Ok(()));
    server.feed(&hex("0000"));
    let error = server.session.ended().unwrap_err();
    assert_eq!(error.to_string(), "the connection ended within the greeting");
}

#[test]
fn connection_ending_within_option_is_early() {
    let mut server = Server::of(disk());
    assert_eq!(server.session.ended(), Ok(()));
    server.feed(&hex("'IHAVE"));
    let error = server.session.ended().unwrap_err();
    assert_eq!(error.to_string(), "the connection ended within an option");
}

#[test]
fn exports_not_allowed_are_not_offered() {
    let sizes = |minimum, preferred, payload_max| Export {
        block_sizes: BlockSizes { minimum, preferred, payload_max },
        ..disk()
    };
    let fast = Features { fast_zero: true, ..Features::default() };
    let cases = [
        (Export { name: "a\0".into(), ..disk() }, "its name must"),
        (Export { name: "a".repeat(4097), ..disk() }, "its name must"),
        (Export { description: "a".repeat(4097), ..disk() }, "its description must"),
        (Export { features: fast, ..disk() }, "fast_zero needs write_zeroes"),
        (sizes(3, 4096, 1 << 20), "the minimum block size"),
        (sizes(1 << 17, 1 << 17, 1 << 20), "the minimum block size"),
        (sizes(1, 256, 1 << 20), "the preferred block size"),
        (sizes(4096, 2048, 1 << 20), "the preferred block size"),
        (sizes(512, 1 << 18, 1 << 17), "the longest payload"),
        (sizes(512, 4096, 4096), "dont_fragment needs"),
        (Export { size: 1000, ..disk() }, "its size must"),
    ];
    for (export, fault) in cases {
        let error = Session::new(Settings { exports: vec![export], ..Settings::default() });
        let error = error.unwrap_err();
        assert!(error.fault.starts_with(fault), "{error}");
    }
}

#[test]
fn refusal_text_fits_string_limit() {
    let mut server = Server::of(disk());
    let name = "\u{1}".repeat(4096);
    let mut option = hex("'IHAVEOPT' 00000006 00001006 00001000");
    option.extend(name.as_bytes());
    option.extend([0, 0]);
    server.feed(&option);
    assert_eq!(server.sent[..20], hex("0003e889045565a9 00000006 80000006 00001000"));
    assert_eq!(server.sent.len(), 20 + 4096);
}
