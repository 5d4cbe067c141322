//! The client session, byte for byte against messages worked out by hand from the protocol.

mod negotiation;
mod replies;

use crate::common::hex;
use freewheel_nbd::Violation;
use freewheel_nbd::client::{Event, Session, Settings};

/// A session and what became of it.
struct Client {
    session: Session,
    sent: Vec<u8>,
    events: Vec<Event>,
    error: Option<Violation>,
}

const PLAIN: &str = "'NBDMAGIC' 'IHAVEOPT' 0003";

impl Client {
    fn new(settings: Settings) -> Self {
        let session = Session::new(settings);
        Self { session, sent: Vec::new(), events: Vec::new(), error: None }
    }

    /// Past the greeting.
    fn greeted(settings: Settings) -> Self {
        let mut client = Self::new(settings);
        client.feed(&hex(PLAIN));
        assert_eq!(client.events, [Event::Greeted]);
        client.events.clear();
        client.sent.clear();
        client
    }

    /// Past GO, with these transmission flags, a disk of 1 MiB in blocks of 512 bytes.
    fn started(settings: Settings, flags: u16) -> Self {
        let mut client = Self::greeted(settings);
        client.session.go("disk").unwrap();
        if settings.structured {
            client.feed(&hex("0003e889045565a9 00000008 00000001 00000000"));
        }
        if settings.block_status {
            client.feed(&hex("0003e889045565a9 0000000a 00000004 00000013 00000007"));
            client.feed(b"base:allocation");
            client.feed(&hex("0003e889045565a9 0000000a 00000001 00000000"));
        }
        let head = "0003e889045565a9 00000007";
        client.feed(&hex(&format!(
            "{head} 00000003 0000000c 0000 0000000000100000 {flags:04x} \
             {head} 00000003 0000000e 0003 00000200 00001000 00020000 {head} 00000001 00000000"
        )));
        assert!(matches!(client.events[..], [Event::Started(_)]), "{:?}", client.error);
        client.events.clear();
        client.sent.clear();
        client
    }

    fn feed(&mut self, mut bytes: &[u8]) -> &mut Self {
        loop {
            match self.session.feed(&mut bytes) {
                Ok(Some(Event::Send(sent))) => self.sent.extend(sent),
                Ok(Some(event)) => self.events.push(event),
                Ok(None) => return self,
                Err(violation) => {
                    self.error = Some(violation);
                    return self;
                }
            }
        }
    }

    fn take_sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }

    fn error(&self) -> String {
        self.error.as_ref().unwrap().to_string()
    }
}
