//! Requests and their replies.

use freewheel_nbd::server::{Close, Event, Request};
use freewheel_nbd::{Command, Span};

use crate::common::{Server, disk, hex};

fn only_request(server: &mut Server) -> Request {
    match server.events.drain(..).collect::<Vec<_>>().as_slice() {
        [Event::Request(request)] => request.clone(),
        other => panic!("{other:?}"),
    }
}

const SPAN: Span = Span { offset: 1024, length: 512 };

#[test]
fn a_read_is_answered_by_a_simple_reply_and_its_data() {
    let mut server = Server::transmitting(disk());
    server.feed(&hex("25609513 0000 0000 0102030405060708 0000000000000400 00000200"));
    let request = only_request(&mut server);
    assert_eq!(request.command, Command::Read { span: SPAN, dont_fragment: false });
    assert_eq!(*request.ticket.data(), hex("67446698 00000000 0102030405060708"));
}

#[test]
fn a_write_comes_with_its_data() {
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
fn a_payload_is_read_in_place() {
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
fn a_flush_has_neither_span_nor_data() {
    let mut server = Server::transmitting(disk());
    server.feed(&hex("25609513 0000 0003 0000000000000009 0000000000000000 00000000"));
    let request = only_request(&mut server);
    assert_eq!(request.command, Command::Flush);
    assert_eq!(*request.ticket.done(), hex("67446698 00000000 0000000000000009"));
}

#[test]
fn a_disconnect_closes_without_a_reply() {
    let mut server = Server::transmitting(disk());
    server.feed(&hex("25609513 0000 0002 0000000000000009 0000000000000000 00000000 ffff"));
    assert_eq!(server.events, [Event::Close(Close::Disconnected)]);
    assert!(server.sent.is_empty() && server.error.is_none());
}
