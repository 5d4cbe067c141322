//! Greeting and options.

use freewheel_nbd::client::{Event, ExportInfo, ListedExport, Refused, Settings};
use freewheel_nbd::{BlockSizes, Features, Limits, OptionCode, OptionError};

use super::{Client, PLAIN};
use crate::common::hex;

const SIMPLE: Settings = Settings {
    structured: false,
    block_status: false,
    limits: Limits {
        option_bytes_max: 1 << 10,
        name_bytes_max: 16,
        options_max: 8,
        in_flight_max: 4,
        fragments_max: 4,
    },
};
const WITH_STATUS: Settings = Settings { structured: true, block_status: true, ..SIMPLE };
/// GO for `disk`, with name, description and block sizes.
const GO: &str = "'IHAVEOPT' 00000007 00000010 00000004 'disk' 0003 0001 0002 0003";
const SET_CONTEXT: &str =
    "'IHAVEOPT' 0000000a 0000001f 00000004 'disk' 00000001 0000000f 'base:allocation'";
const STRUCTURED: &str = "'IHAVEOPT' 00000008 00000000";
const HEAD: &str = "0003e889045565a9";

fn refused(option: OptionCode, error: OptionError, message: &str) -> Event {
    Event::Refused(Refused { option, error, message: message.into() })
}

#[test]
fn greeting_answered_with_offered_flags() {
    for (offered, answer) in [("0003", "00000003"), ("0001", "00000001"), ("fffe", "00000002")] {
        let mut client = Client::new(SIMPLE);
        client.feed(&hex(&format!("'NBDMAGIC' 'IHAVEOPT' {offered}")));
        assert_eq!((client.sent, client.events), (hex(answer), vec![Event::Greeted]));
    }
}

#[test]
fn go_tells_export_and_begins() {
    let mut client = Client::greeted(SIMPLE);
    assert_eq!(client.session.go("disk").unwrap(), hex(GO));
    client.feed(&hex(&format!(
        "{HEAD} 00000007 00000003 0000000c 0000 0000000000100000 0d7f \
         {HEAD} 00000007 00000003 00000007 0001 'disk0' \
         {HEAD} 00000007 00000003 00000007 0002 'spins' \
         {HEAD} 00000007 00000003 00000004 0063 ffff \
         {HEAD} 00000007 00000003 0000000e 0003 00000200 00001000 00020000"
    )));
    assert!(client.events.is_empty());
    client.feed(&hex(&format!("{HEAD} 00000007 00000001 00000000")));
    let features = Features {
        read_only: true,
        flush: true,
        fua: true,
        rotational: true,
        trim: true,
        write_zeroes: true,
        fast_zero: true,
        cache: true,
        multi_conn: true,
        dont_fragment: false,
        block_status: false,
    };
    let started = ExportInfo {
        name: "disk0".into(),
        description: "spins".into(),
        size: 1 << 20,
        features,
        block_sizes: BlockSizes { minimum: 512, preferred: 4096, payload_max: 1 << 17 },
    };
    assert_eq!(client.events, [Event::Started(started)]);
}

#[test]
fn go_follows_structured_replies_and_context() {
    let mut client = Client::greeted(WITH_STATUS);
    assert_eq!(client.session.go("disk").unwrap(), hex(STRUCTURED));
    client.feed(&hex(&format!("{HEAD} 00000008 00000001 00000000")));
    assert_eq!(client.take_sent(), hex(SET_CONTEXT));
    client.feed(&hex(&format!(
        "{HEAD} 0000000a 00000004 00000013 00000007 'base:allocation' {HEAD} 0000000a 00000001 \
         00000000"
    )));
    assert_eq!(client.take_sent(), hex(GO));
    client.feed(&hex(&format!(
        "{HEAD} 00000007 00000003 0000000c 0000 0000000000100000 0081 {HEAD} 00000007 00000001 \
         00000000"
    )));
    let features = Features { dont_fragment: true, block_status: true, ..Features::default() };
    let started = ExportInfo {
        name: "disk".into(),
        size: 1 << 20,
        features,
        block_sizes: BlockSizes::default(),
        ..ExportInfo::default()
    };
    assert_eq!(client.events, [Event::Started(started)]);
}

#[test]
fn old_server_falls_back_to_export_name() {
    let mut client = Client::greeted(WITH_STATUS);
    client.session.go("disk").unwrap();
    client.feed(&hex(&format!("{HEAD} 00000008 80000001 00000000")));
    assert_eq!(client.take_sent(), hex(GO), "without structured replies there is no context");
    client.feed(&hex(&format!("{HEAD} 00000007 80000001 00000000")));
    assert_eq!(client.take_sent(), hex("'IHAVEOPT' 00000001 00000004 'disk'"));
    client.feed(&hex("0000000000100000 0005"));
    let [Event::Started(started)] = &client.events[..] else { panic!("{:?}", client.events) };
    assert_eq!((started.size, started.features.flush), (1 << 20, true));
}

#[test]
fn server_without_fixes_asked_for_export() {
    let mut client = Client::new(WITH_STATUS);
    client.feed(&hex("'NBDMAGIC' 'IHAVEOPT' 0000"));
    assert_eq!(client.sent, hex("00000000"));
    let error = client.session.list().unwrap_err().to_string();
    assert_eq!(error, "this old server only knows the start of an export");
    let asked = client.session.go("").unwrap();
    assert_eq!(asked, hex("'IHAVEOPT' 00000001 00000000"));
    client.feed(&hex("0000000000100000 0001")).feed(&[0; 123]);
    assert_eq!(client.events, [Event::Greeted]);
    client.feed(&[0]);
    assert!(matches!(client.events[1], Event::Started(_)));
}

#[test]
fn context_refusal_is_tolerated() {
    let mut client = Client::greeted(WITH_STATUS);
    client.session.go("disk").unwrap();
    client.feed(&hex(&format!("{HEAD} 00000008 00000001 00000000")));
    client.take_sent();
    client.feed(&hex(&format!("{HEAD} 0000000a 80000001 00000000")));
    assert_eq!(client.sent, hex(GO));
}

#[test]
fn list_gathers_the_exports() {
    let mut client = Client::greeted(SIMPLE);
    assert_eq!(client.session.list().unwrap(), hex("'IHAVEOPT' 00000003 00000000"));
    client.feed(&hex(&format!(
        "{HEAD} 00000003 00000002 00000005 00000001 'a' {HEAD} 00000003 00000002 00000007 \
         00000001 'bno' {HEAD} 00000003 00000001 00000000"
    )));
    let listed = |name: &str, description: &str| ListedExport {
        name: name.into(),
        description: description.into(),
    };
    assert_eq!(client.events, [Event::Exports(vec![listed("a", ""), listed("b", "no")])]);
}

#[test]
fn info_tells_and_does_not_begin() {
    let mut client = Client::greeted(SIMPLE);
    let asked = client.session.info("disk").unwrap();
    assert_eq!(asked, hex(&GO.replace("00000007", "00000006")));
    client.feed(&hex(&format!(
        "{HEAD} 00000006 00000003 0000000c 0000 0000000000100000 0001 {HEAD} 00000006 00000001 \
         00000000"
    )));
    assert!(matches!(client.events[..], [Event::Info(ExportInfo { size: 0x10_0000, .. })]));
    assert!(client.session.go("disk").is_ok());
}

#[test]
fn refusal_has_reason_and_allows_more() {
    let mut client = Client::greeted(SIMPLE);
    client.session.go("disk").unwrap();
    client.feed(&hex(&format!("{HEAD} 00000007 80000006 00000004 'none'")));
    let expected = refused(OptionCode::GO, OptionError::Unknown, "none");
    assert_eq!(client.events, [expected]);
    client.session.start_tls().unwrap();
    client.feed(&hex(&format!("{HEAD} 00000005 80000002 00000000")));
    assert_eq!(client.events[1], refused(OptionCode::STARTTLS, OptionError::Policy, ""));
    client.session.info("disk").unwrap();
    client.feed(&hex(&format!("{HEAD} 00000006 80000063 00000000")));
    assert_eq!(client.events[2], refused(OptionCode::INFO, OptionError::Other(99), ""));
}

#[test]
fn tls_requirement_found_at_first_option() {
    let mut client = Client::greeted(WITH_STATUS);
    client.session.go("disk").unwrap();
    client.feed(&hex(&format!("{HEAD} 00000008 80000005 00000000")));
    let expected = refused(OptionCode::STRUCTURED_REPLY, OptionError::TlsReqd, "");
    assert_eq!(client.events, [expected]);
}

#[test]
fn tls_begins_after_acknowledgement() {
    let mut client = Client::greeted(WITH_STATUS);
    assert_eq!(client.session.start_tls().unwrap(), hex("'IHAVEOPT' 00000005 00000000"));
    let stream = hex(&format!("{HEAD} 00000005 00000001 00000000 1603"));
    let mut bytes = &stream[..];
    assert_eq!(client.session.feed(&mut bytes), Ok(Some(Event::StartTls)));
    assert_eq!(client.session.feed(&mut bytes), Ok(None));
    assert_eq!(bytes, hex("1603"));
    assert!(client.session.go("disk").is_err());
    client.session.tls_established();
    let error = client.session.start_tls().unwrap_err().to_string();
    assert_eq!(error, "TLS has begun already");
    assert_eq!(client.session.go("disk").unwrap(), hex(STRUCTURED));
}

#[test]
fn abort_ends_session_without_acknowledgement() {
    let mut client = Client::greeted(SIMPLE);
    assert_eq!(client.session.abort().unwrap(), hex("'IHAVEOPT' 00000002 00000000"));
    assert_eq!(client.session.ended(), Ok(()));
    client.feed(&hex(&format!("{HEAD} 00000002 00000001 00000000")));
    assert_eq!(client.events, [Event::Aborted]);
    assert_eq!(client.session.ended(), Ok(()));
}

#[test]
fn greeting_violations_name_expectation() {
    let cases = [
        (
            "'SSH-2.0-' 0000000000000000 0000",
            "a server's greeting must begin with 0x4e42444d41474943, found 0x5353482d322e302d",
        ),
        (
            "'NBDMAGIC' 0000420281861253 0000",
            "the server speaks the oldstyle negotiation; expected the newstyle one",
        ),
        (
            "'NBDMAGIC' 0000000000000001 0000",
            "the second half of a server's greeting must begin with 0x49484156454f5054, found 0x1",
        ),
        (
            "'NBDMAGIC' 'IHAVEOPT' 0003 00",
            "bytes of the server; expected silence until it is asked",
        ),
    ];
    for (bytes, expected) in cases {
        let mut client = Client::new(SIMPLE);
        client.feed(&hex(bytes));
        assert_eq!(client.error(), expected);
    }
}

#[test]
fn answer_violations_name_expectation() {
    let entry = format!("{HEAD} 00000007 00000003");
    let cases = [
        (
            "0003e889045565a8 00000007 00000001 00000000".into(),
            "an answer to an option must begin with 0x3e889045565a9, found 0x3e889045565a8",
        ),
        (format!("{HEAD} 00000003 00000001 00000000"), "an answer to LIST; expected one to GO"),
        (
            format!("{HEAD} 00000007 00000001 00000000"),
            "an acknowledgement of GO; expected the size and flags of the export before it",
        ),
        (
            format!("{HEAD} 00000007 00000001 00000001 00"),
            "an acknowledgement has length 1; expected 0",
        ),
        (
            format!("{HEAD} 00000007 00000002 00000004 00000000"),
            "an answer of type 2 to GO; expected an answer that belongs to this option",
        ),
        (format!("{entry} 00000001 00"), "information has length 1; expected at least 2"),
        (
            format!("{entry} 0000000b 0000 0000000000100000 00"),
            "the size and flags has length 11; expected 12",
        ),
        (
            format!("{entry} 0000000d 0000 0000000000100000 0001 00"),
            "the size and flags has length 13; expected 12",
        ),
        (
            format!("{entry} 0000000c 0000 0000000000100000 0004"),
            "transmission flags 0x0004; expected bit 0 set in them",
        ),
        (
            format!("{entry} 0000000c 0003 00000200 00001000 0000"),
            "the block sizes has length 12; expected 14",
        ),
        (
            format!("{entry} 0000000e 0003 00000003 00001000 00020000"),
            "block sizes 3, 4096, 131072; expected the minimum block size must be a power of two up \
             to 65536",
        ),
        (format!("{entry} 00000003 0001 ff"), "the name of an export; expected UTF-8 without NUL"),
        (
            format!("{entry} 00000013 0001 '0123456789abcdefg'"),
            "the name of an export has length 17; expected at most 16",
        ),
        (
            format!("{entry} 00000401"),
            "an answer to an option has length 1025; expected at most 1024",
        ),
        (format!("{entry} 00000002 0063 ").repeat(9), "more than 8 answers to one option"),
    ];
    for (bytes, expected) in cases {
        let mut client = Client::greeted(SIMPLE);
        client.session.go("disk").unwrap();
        client.feed(&hex(&bytes));
        assert_eq!(client.error(), expected);
    }
}

#[test]
fn context_unasked_is_violation() {
    let mut client = Client::greeted(WITH_STATUS);
    client.session.go("disk").unwrap();
    client.feed(&hex(&format!(
        "{HEAD} 00000008 00000001 00000000 {HEAD} 0000000a 00000004 00000007 00000001 'x-y'"
    )));
    assert_eq!(client.error(), "metadata context \"x-y\"; expected base:allocation once");
}

#[test]
fn server_hangup_midway_is_detected() {
    let mut client = Client::new(SIMPLE);
    let ended = |client: &Client| client.session.ended().unwrap_err().to_string();
    assert_eq!(ended(&client), "the connection ended within its greeting");
    client.feed(&hex(PLAIN));
    assert_eq!(ended(&client), "the connection ended within the negotiation");
    client.session.go("disk").unwrap();
    assert_eq!(ended(&client), "the connection ended within an answer to an option");
    client.feed(&hex(&format!("{HEAD} 00000007 80000001 00000000")));
    let expected = "the connection ended within the answer to EXPORT_NAME, as servers do that lack \
                    the export";
    assert_eq!(ended(&client), expected);
}

#[test]
fn questions_mistimed_are_callers_fault() {
    let mut client = Client::new(SIMPLE);
    let error = client.session.go("disk").unwrap_err().to_string();
    assert_eq!(error, "no option may be sent now: wait for the answer");
    client.feed(&hex(PLAIN));
    let error = client.session.go(&"a".repeat(5000)).unwrap_err().to_string();
    let expected = "an export's name has at most 4096 bytes and no NUL; this one has 5000";
    assert_eq!(error, expected);
    assert!(client.session.disconnect().is_err());
}

#[test]
fn context_chosen_anew_for_other_export() {
    let mut client = Client::greeted(WITH_STATUS);
    client.session.info("tape").unwrap();
    client.feed(&hex(&format!(
        "{HEAD} 00000008 00000001 00000000 \
         {HEAD} 0000000a 00000004 00000013 00000007 'base:allocation' \
         {HEAD} 0000000a 00000001 00000000 \
         {HEAD} 00000006 00000003 0000000c 0000 0000000000100000 0001 \
         {HEAD} 00000006 00000001 00000000"
    )));
    assert!(matches!(client.events[..], [Event::Info(_)]));
    assert_eq!(client.session.go("disk").unwrap(), hex(SET_CONTEXT));
}

#[test]
fn tls_forgets_what_was_agreed_before() {
    let mut client = Client::greeted(Settings { structured: true, ..SIMPLE });
    client.session.info("disk").unwrap();
    client.feed(&hex(&format!(
        "{HEAD} 00000008 00000001 00000000 {HEAD} 00000006 80000005 00000000"
    )));
    assert_eq!(client.events, [refused(OptionCode::INFO, OptionError::TlsReqd, "")]);
    client.session.start_tls().unwrap();
    client.feed(&hex(&format!("{HEAD} 00000005 00000001 00000000")));
    client.session.tls_established();
    assert_eq!(client.session.go("disk").unwrap(), hex(STRUCTURED));
}
