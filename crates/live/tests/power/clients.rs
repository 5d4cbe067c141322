//! Clients of the server: their requests, and the answers.

use std::collections::BTreeMap;
use std::rc::Rc;

use freewheel_host::Client;
use freewheel_host::scheduler::Request;
use freewheel_live::serve::machine::Message;
use freewheel_live::serve::request_of;
use freewheel_nbd::client::{self, ExportInfo, Reply};
use freewheel_nbd::server::{self, Event};
use freewheel_nbd::{Command, Errno, Span};
use freewheel_units::{SimDuration, SimTime};

use crate::checker::{Change, Rule, Stamp, Violation, broken};
use crate::device::{SECTOR, bytes_of, value, values_of};
use crate::faults::{FAULTY, Fault};
use crate::life::{Happening, Life};
use crate::server::VirtualReply;

/// Message that a client waits for.
pub enum Open {
    Read { sent: Stamp, behind: u32 },
    Changing(u32),
    Flush(Stamp),
    Cache,
}

pub struct Connection {
    pub client: client::Session,
    pub server: server::Session,
    pub info: ExportInfo,
    pub open: BTreeMap<u64, Open>,
    /// Arrival of the last bytes, in either direction.
    pub to_server: SimTime,
    pub to_client: SimTime,
    /// Leaves in order when all is answered.
    pub is_leaving: bool,
}

impl Life<'_> {
    /// A client connects, and chooses the export.
    pub fn comes(&mut self) {
        let number = self.next_connection;
        self.next_connection += 1;
        self.summary.connections += 1;
        let structured = self.prng.chance(0.5);
        let settings = client::Settings { structured, ..client::Settings::default() };
        let mut client = client::Session::new(settings);
        let settings =
            server::Settings { exports: vec![self.export.clone()], ..server::Settings::default() };
        let mut server = server::Session::new(settings).expect("a valid export");
        let info = handshake(&mut client, &mut server, &self.export.name);
        let (to_server, to_client) = (self.now(), self.now());
        let connection = Connection {
            client,
            server,
            info,
            open: BTreeMap::new(),
            to_server,
            to_client,
            is_leaving: false,
        };
        self.connections.insert(number, connection);
        self.tell(|| format!("connection {number} comes"));
        self.after_us(100, Happening::Asks(number));
    }

    /// A client sends requests until it has enough in flight.
    pub fn asks(&mut self, number: u64) {
        let burst = 1 + self.prng.below(self.plan.depth);
        for _ in 0..burst {
            let Some(connection) = self.connections.get(&number) else { return };
            let has_room = (connection.open.len() as u64) < self.plan.depth;
            if !has_room || connection.is_leaving || self.asked >= self.plan.requests {
                return;
            }
            self.ask(number);
        }
        if self.prng.chance(self.plan.cut) {
            self.after_us(3000, Happening::Cut(number));
        } else if self.prng.chance(0.02) {
            self.connections.get_mut(&number).expect("it is there").is_leaving = true;
            self.leaves(number);
        }
    }

    pub fn span(&mut self) -> (u64, u64) {
        let sector = self.plan.sector;
        let all = self.export.size / SECTOR as u64;
        let (most, (from, to)) = match self.prng.unit() {
            any if self.plan.floods && any < 0.5 => (2600, (0, all)),
            long if long < self.plan.long / 8.0 => (2600, (0, all)),
            long if long < self.plan.long => (300, (0, all)),
            _ if self.prng.chance(0.05) => (40, (0, all)),
            _ => (20, self.plan.hot),
        };
        let blocks = (1 + self.prng.below(most)).next_multiple_of(sector).min(to - from);
        let start = from + self.prng.below(to - from - blocks + 1) / sector * sector;
        (start, start + blocks)
    }

    pub fn ask(&mut self, number: u64) {
        let (from, to) = self.span();
        let features = self.connections[&number].info.features;
        let fua = features.fua && self.prng.chance(0.2);
        let span =
            Span { offset: from * SECTOR as u64, length: ((to - from) * SECTOR as u64) as u32 };
        let command = match self.prng.below(100) {
            0..45 => Command::Write { span, fua },
            45..70 => Command::Read { span, dont_fragment: false },
            70..80 if features.flush => Command::Flush,
            80..87 if features.trim => Command::Trim { span, fua },
            87..97 => {
                Command::WriteZeroes { span, fua, no_hole: self.prng.chance(0.5), fast: false }
            }
            97..100 => Command::Cache { span },
            _ => Command::Write { span, fua },
        };
        self.asked += 1;
        let changing = |change| Some((change, fua));
        let change = match command {
            Command::Write { .. } => changing(Change::Write),
            Command::Trim { .. } => changing(Change::Trim),
            Command::WriteZeroes { .. } => changing(Change::Zeroes),
            _ => None,
        };
        let mut data = Vec::new();
        let open = match (change, command) {
            (Some((change, fua)), _) => {
                if change == Change::Write {
                    let this = self.checker.next_value();
                    data = bytes_of((from..to).map(|lbn| value(this, lbn)));
                }
                Open::Changing(self.checker.sends(number, change, (from, to), fua))
            }
            (_, Command::Flush) => Open::Flush(self.checker.tick()),
            (_, Command::Read { .. }) => {
                let behind = self.checker.requests();
                Open::Read { sent: self.checker.tick(), behind }
            }
            _ => Open::Cache,
        };
        self.tell(|| {
            let of = match &open {
                Open::Changing(request) => format!(" (request {request})"),
                _ => String::new(),
            };
            format!("connection {number} sends {from}..{to} {command:?}{of}")
        });
        let connection = self.connections.get_mut(&number).expect("it is there");
        let (cookie, head) =
            connection.client.request(command, Vec::new()).expect("a valid request");
        connection.open.insert(cookie, open);
        let mut bytes = head.to_vec();
        bytes.extend(data);
        self.send(number, bytes);
    }

    /// Bytes leave for the server, in one piece or two.
    pub fn send(&mut self, number: u64, mut bytes: Vec<u8>) {
        let rest = match self.prng.chance(0.1) {
            true => bytes.split_off(self.prng.below(bytes.len() as u64) as usize),
            false => Vec::new(),
        };
        for part in [bytes, rest] {
            if part.is_empty() {
                continue;
            }
            let at = self.now() + SimDuration::from_us(self.prng.below(self.plan.way_us + 1));
            let Some(connection) = self.connections.get_mut(&number) else { return };
            connection.to_server = connection.to_server.max(at);
            let at = connection.to_server;
            self.on_the_way += 1;
            self.at(at, Happening::ToServer(number, part));
        }
    }

    pub fn send_back(&mut self, number: u64, bytes: Vec<u8>) {
        self.last_answer = self.now();
        let at = self.now() + SimDuration::from_us(self.prng.below(self.plan.way_us + 1));
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.server.answered(1);
        connection.to_client = connection.to_client.max(at);
        let at = connection.to_client;
        self.at(at, Happening::ToClient(number, bytes));
    }

    /// Bytes arrive at the server.
    pub fn server_gets(&mut self, number: u64, mut bytes: &[u8]) {
        let mut requests = Vec::new();
        let mut is_closed = false;
        let Some(connection) = self.connections.get_mut(&number) else { return };
        while let Some(event) =
            connection.server.feed(&mut bytes).expect("a client that keeps the rules")
        {
            match event {
                Event::Request(request) => requests.push(request),
                Event::Close(_) => is_closed = true,
                other => panic!("{other:?}"),
            }
        }
        assert!(bytes.is_empty(), "fewer requests than a session takes");
        for request in requests {
            self.arrives(number, request);
        }
        if is_closed {
            self.connections.remove(&number);
            self.shared.borrow_mut().inbox.push_back(Message::Left(number));
            self.summary.left += 1;
            if self.asked < self.plan.requests {
                self.after_us(2000, Happening::Comes);
            }
        }
    }

    pub fn arrives(&mut self, number: u64, request: server::Request) {
        let server::Request { ticket, command, mut data } = request;
        let request = request_of(command, &mut data, |length| vec![0; length as usize]);
        let mut request = request.expect("one that is offered");
        let client = Client { peer: number % 2, connection: number };
        let is_flush = command == Command::Flush;
        let shared = Rc::clone(&self.shared);
        let has_fua = shared.borrow().disk.disk.character.abilities.fua;
        let is_durable = is_flush || !has_fua && has_fua_flag(&command);
        let mut reply =
            VirtualReply { ticket, client, is_flush, is_durable, is_answered: false, shared };
        let is_planted = self.fault().is_some() && self.fault_prng.chance(FAULTY);
        match (self.fault().filter(|_| is_planted), &mut request) {
            (
                Some(Fault::FuaDropped),
                Request::Transfer { fua, .. } | Request::Erase { fua, .. },
            ) => {
                *fua = false;
            }
            (Some(Fault::WriteAnsweredOnArrival), _)
                if matches!(command, Command::Write { .. }) =>
            {
                reply.answer_early();
            }
            _ => {}
        }
        let now = self.now();
        self.shared.borrow_mut().inbox.push_back(Message::Arrived(now, request, reply));
    }

    /// Bytes arrive at a client.
    pub fn client_gets(&mut self, number: u64, mut bytes: &[u8]) -> Result<(), Violation> {
        let mut replies = Vec::new();
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        while let Some(event) =
            connection.client.feed(&mut bytes).expect("a server that keeps the rules")
        {
            match event {
                client::Event::Reply(reply) => {
                    let open = connection.open.remove(&reply.cookie).expect("it was asked");
                    replies.push((open, reply));
                }
                other => panic!("{other:?}"),
            }
        }
        for (open, reply) in replies {
            self.tell(|| {
                let of = match &open {
                    Open::Changing(request) => format!(" (request {request})"),
                    _ => String::new(),
                };
                format!("connection {number} hears {:?} of {:?}{of}", reply.result, reply.command)
            });
            self.hears(number, open, reply)?;
        }
        let think = self.plan.think_us;
        self.after_us(think, Happening::Asks(number));
        self.leaves(number);
        Ok(())
    }

    pub fn hears(&mut self, number: u64, open: Open, reply: Reply) -> Result<(), Violation> {
        let errno = reply.result.as_ref().err().map(|failure| failure.errno);
        let allowed = match errno {
            None | Some(Errno::Io) => true,
            Some(errno) => self.is_gone && errno == Errno::Shutdown,
        };
        if !allowed {
            return broken(Rule::Answer, format!("{:?} failed with {errno:?}", reply.command));
        }
        let is_done = errno.is_none();
        self.summary.errors += u64::from(!is_done);
        match open {
            Open::Read { sent, behind } if is_done => {
                let from = reply.command.span().offset / SECTOR as u64;
                self.summary.reads += 1;
                self.summary.bytes_read += reply.data.len() as u64;
                self.checker.read((number, behind), sent, from, values_of(&reply.data))?;
            }
            Open::Changing(request) => {
                let asked = self.checker.request(request).clone();
                self.summary.changed(&asked, is_done);
                self.checker.answered(request, is_done);
            }
            Open::Flush(sent) => {
                if is_done {
                    self.summary.flushes += 1;
                    self.checker.flushed(sent);
                } else {
                    self.summary.flushes_refused += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A client that is done says so.
    pub fn leaves(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.is_leaving && connection.open.is_empty() {
            let head = connection.client.disconnect().expect("it has an export").to_vec();
            self.send(number, head);
        }
    }

    /// A client goes without a word.
    pub fn cut(&mut self, number: u64) {
        if self.connections.remove(&number).is_none() {
            return;
        }
        self.tell(|| format!("connection {number} is cut"));
        self.summary.cut_connections += 1;
        self.shared.borrow_mut().inbox.push_back(Message::Left(number));
        self.after_us(2000, Happening::Comes);
    }
}

fn has_fua_flag(command: &Command) -> bool {
    match command {
        Command::Write { fua, .. }
        | Command::Trim { fua, .. }
        | Command::WriteZeroes { fua, .. } => *fua,
        _ => false,
    }
}

/// Both ends speak until the client has the export.
fn handshake(client: &mut client::Session, server: &mut server::Session, name: &str) -> ExportInfo {
    let (mut to_client, mut to_server): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    loop {
        let mut bytes = &std::mem::take(&mut to_server)[..];
        while let Some(event) = server.feed(&mut bytes).expect("a client that keeps the rules") {
            match event {
                Event::Send(bytes) => to_client.extend(bytes),
                Event::Start(_) => {}
                other => panic!("{other:?}"),
            }
        }
        let mut bytes = &std::mem::take(&mut to_client)[..];
        while let Some(event) = client.feed(&mut bytes).expect("a server that keeps the rules") {
            match event {
                client::Event::Send(bytes) => to_server.extend(bytes),
                client::Event::Greeted => to_server.extend(client.go(name).expect("it may ask")),
                client::Event::Started(info) => return info,
                other => panic!("{other:?}"),
            }
        }
    }
}
