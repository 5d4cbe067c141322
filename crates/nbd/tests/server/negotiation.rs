//! Greeting and options.

use freewheel_nbd::server::{Event, Settings, Started};
use freewheel_nbd::{Export, Features};

use crate::common::{Server, disk, hex};

const START: Started =
    Started { export: 0, structured: false, block_sizes_agreed: false, block_status: false };

#[test]
fn the_greeting_offers_fixed_newstyle_and_no_zeroes() {
    let server = Server::new(Settings::default());
    assert_eq!(server.sent, hex("'NBDMAGIC' 'IHAVEOPT' 0003"));
}

#[test]
fn export_name_is_answered_with_size_and_flags_alone() {
    let mut server = Server::of(disk());
    server.feed(&hex("'IHAVEOPT' 00000001 00000004 'disk'"));
    // All flags but read-only (bit 1), and DF (bit 7), which needs structured replies.
    assert_eq!(server.sent, hex("0000000000100000 0d7d"));
    assert_eq!(server.events, [Event::Start(START)]);
}

#[test]
fn export_name_is_followed_by_zeroes_unless_the_client_does_without() {
    let mut server = Server::new(Settings { exports: vec![disk()], ..Settings::default() });
    server.take_sent();
    server.feed(&hex("00000001 'IHAVEOPT' 00000001 00000004 'disk'"));
    let mut expected = hex("0000000000100000 0d7d");
    expected.extend([0; 124]);
    assert_eq!(server.sent, expected);
}

#[test]
fn go_tells_what_was_asked_for_and_begins() {
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
fn a_plain_export_says_only_that_it_has_flags() {
    let export = Export { name: "x".into(), features: Features::default(), ..disk() };
    let mut server = Server::of(export);
    server.feed(&hex("'IHAVEOPT' 00000001 00000001 'x'"));
    assert_eq!(server.sent, hex("0000000000100000 0001"));
}
