//! Bytes written by hand, and a server session driven by them.
#![allow(dead_code)]

use freewheel_nbd::server::{Event, Session, Settings};
use freewheel_nbd::{BlockSizes, Export, Features, Violation};

/// Bytes of a text: hexadecimal digits, and 'letters' between quotes; spaces do not count.
pub fn hex(text: &str) -> Vec<u8> {
    let parts = text.split('\'').enumerate();
    parts.flat_map(|(at, part)| if at % 2 == 1 { part.into() } else { digits(part) }).collect()
}

fn digits(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    assert!(digits.len().is_multiple_of(2), "half a byte in {text:?}");
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// All that is offered.
pub const EVERYTHING: Features = Features {
    read_only: false,
    flush: true,
    fua: true,
    rotational: true,
    trim: true,
    write_zeroes: true,
    fast_zero: true,
    cache: true,
    multi_conn: true,
    dont_fragment: true,
    block_status: true,
};

/// `disk`: 1 MiB in blocks of 512 bytes, with every feature.
pub fn disk() -> Export {
    Export {
        name: "disk".into(),
        description: "spins".into(),
        size: 1 << 20,
        features: EVERYTHING,
        block_sizes: BlockSizes { minimum: 512, preferred: 4096, payload_max: 1 << 17 },
        block_sizes_required: false,
    }
}

/// A session and what became of it.
pub struct Server {
    pub session: Session,
    pub sent: Vec<u8>,
    pub events: Vec<Event>,
    pub error: Option<Violation>,
}

impl Server {
    pub fn new(settings: Settings) -> Self {
        let session = Session::new(settings).unwrap();
        let mut server = Self { session, sent: Vec::new(), events: Vec::new(), error: None };
        server.feed(&[]);
        server
    }

    /// One export, past greeting and client flags.
    pub fn of(export: Export) -> Self {
        Self::negotiating(Settings { exports: vec![export], ..Settings::default() })
    }

    pub fn negotiating(settings: Settings) -> Self {
        let mut server = Self::new(settings);
        server.feed(&hex("00000003"));
        server.sent.clear();
        server
    }

    /// Past GO, without structured replies.
    pub fn transmitting(export: Export) -> Self {
        let mut server = Self::of(export);
        server.feed(&go("disk"));
        server.forget()
    }

    /// Past STRUCTURED_REPLY and GO.
    pub fn structured(export: Export) -> Self {
        let mut server = Self::of(export);
        server.feed(&hex("'IHAVEOPT' 00000008 00000000"));
        server.feed(&go("disk"));
        server.forget()
    }

    /// Past STRUCTURED_REPLY, SET_META_CONTEXT and GO.
    pub fn with_status(export: Export) -> Self {
        let mut server = Self::of(export);
        server.feed(&hex("'IHAVEOPT' 00000008 00000000 'IHAVEOPT' 0000000a 0000001f"));
        server.feed(&hex("00000004 'disk' 00000001 0000000f 'base:allocation'"));
        server.feed(&go("disk"));
        server.forget()
    }

    fn forget(mut self) -> Self {
        assert!(matches!(self.events.last(), Some(Event::Start(_))), "{:?}", self.events);
        self.sent.clear();
        self.events.clear();
        self
    }

    /// Feeds all; what is to be sent and what has happened is kept.
    pub fn feed(&mut self, mut bytes: &[u8]) -> &mut Self {
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

    /// Bytes that were sent since the last call.
    pub fn take_sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }
}

/// GO that asks for the block sizes.
pub fn go(name: &str) -> Vec<u8> {
    let length = name.len() as u32;
    let mut bytes = hex("'IHAVEOPT' 00000007");
    bytes.extend((length + 8).to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend(hex("0001 0003"));
    bytes
}

/// A request by its fields.
pub fn request(flags: u16, kind: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = hex("25609513");
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}
