//! One life of the server: from the power coming on to the power going.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

use freewheel_freeblock::tasks::{Extent, TaskKind};
use freewheel_host::Client;
use freewheel_host::scheduler::Request;
use freewheel_live::serve::machine::Message;
use freewheel_live::serve::{Item, Reader, ServedTaskSpec, ServedTaskState, request_of};
use freewheel_nbd::client::{self, ExportInfo, Reply};
use freewheel_nbd::server::{self, Event};
use freewheel_nbd::{Command, Errno, Export, Span};
use freewheel_units::{Prng, SimDuration, SimTime};
use futures_util::FutureExt;

use crate::checker::{Change, Checker, Stamp, Violation};
use crate::device::{SECTOR, bytes_of, value, values_of};
use crate::faults::Fault;
use crate::server::{Machine, Shared, VirtualReply};
use crate::summary::Summary;

/// A request is answered after at most so much virtual time: else the server hangs.
const ANSWERED_IN: SimDuration = SimDuration::from_secs(100);

/// What a life is like.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Requests of all clients until the power goes.
    pub requests: u64,
    /// Clients at once.
    pub connections: u64,
    /// Most requests of one in flight.
    pub depth: u64,
    /// Sectors that most requests go to.
    pub hot: (u64, u64),
    /// Of 512 B, of a logical sector.
    pub sector: u64,
    /// Share of requests that are long.
    pub long: f64,
    /// How long a client thinks, at most.
    pub think_us: u64,
    /// How long bytes are under way, at most.
    pub way_us: u64,
    /// All ends in peace before the power goes.
    pub in_peace: bool,
    /// Background tasks are there.
    pub tasks: bool,
    /// Chance that a client goes after a request, without a word.
    pub cut: f64,
}

/// What a client waits for.
enum Open {
    Read { sent: Stamp, behind: u32 },
    Changing(u32),
    Flush(Stamp),
    Cache,
}

struct Connection {
    client: client::Session,
    server: server::Session,
    info: ExportInfo,
    open: BTreeMap<u64, Open>,
    /// When the last bytes arrive, either way.
    to_server: SimTime,
    to_client: SimTime,
    /// Leaves in order when all is answered.
    is_leaving: bool,
}

/// A backup under way.
struct Backup {
    task: u64,
    began: Stamp,
    range: (u64, u64),
    reader: Option<Reader>,
    image: BTreeMap<u64, u64>,
    unreadable: BTreeSet<u64>,
}

enum Happening {
    /// A client of this number may ask.
    Asks(u64),
    ToServer(u64, Vec<u8>),
    ToClient(u64, Vec<u8>),
    Cut(u64),
    Comes,
    /// Somebody asks the control interface.
    Controls,
    /// Readers of backups take data.
    Takes,
}

pub struct Life<'a> {
    plan: Plan,
    export: Export,
    shared: Rc<RefCell<Shared>>,
    machine: Machine,
    pub checker: Checker,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    happenings: BinaryHeap<Reverse<(SimTime, u64, usize)>>,
    what: Vec<Option<Happening>>,
    asked: u64,
    backups: Vec<Backup>,
    last_answer: SimTime,
    prng: Prng,
    fault_prng: Prng,
    summary: &'a mut Summary,
    trace: bool,
}

impl<'a> Life<'a> {
    pub fn new(
        plan: Plan,
        export: Export,
        (shared, machine): (Rc<RefCell<Shared>>, Machine),
        checker: Checker,
        (prng, fault_prng): (Prng, Prng),
        (summary, trace): (&'a mut Summary, bool),
    ) -> Self {
        let last_answer = shared.borrow().now;
        Self {
            plan,
            export,
            shared,
            machine,
            checker,
            connections: BTreeMap::new(),
            next_connection: 0,
            happenings: BinaryHeap::new(),
            what: Vec::new(),
            asked: 0,
            backups: Vec::new(),
            last_answer,
            prng,
            fault_prng,
            summary,
            trace,
        }
    }

    fn now(&self) -> SimTime {
        self.shared.borrow().now
    }

    fn tell(&self, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>12} {}", self.now().ns() / 1000, text());
        }
    }

    fn at(&mut self, at: SimTime, what: Happening) {
        let number = self.what.len();
        self.what.push(Some(what));
        self.happenings.push(Reverse((at, number as u64, number)));
    }

    fn after_us(&mut self, most: u64, what: Happening) {
        let at = self.now() + SimDuration::from_us(self.prng.below(most + 1));
        self.at(at, what);
    }

    fn fault(&self) -> Option<Fault> {
        self.shared.borrow().disk.fault
    }

    /// Lives until the power goes, which may be at any moment.
    pub fn run(&mut self) -> Result<(), Violation> {
        for _ in 0..self.plan.connections {
            self.after_us(1000, Happening::Comes);
        }
        if self.plan.tasks {
            self.scrub();
            for _ in 0..1 + self.prng.below(4) {
                let most = self.plan.requests * 2000;
                self.after_us(most, Happening::Controls);
            }
        }
        while !self.is_over() {
            if !self.step()? {
                break;
            }
        }
        if self.plan.in_peace { self.peace() } else { Ok(()) }
    }

    fn is_over(&self) -> bool {
        let is_asked = self.asked >= self.plan.requests;
        let is_idle = self.connections.values().all(|connection| connection.open.is_empty());
        is_asked && (!self.plan.in_peace || is_idle && self.backups.is_empty())
    }

    /// After the end all is answered, and a last flush makes it durable.
    fn peace(&mut self) -> Result<(), Violation> {
        self.summary.peaceful += 1;
        let open: usize = self.connections.values().map(|connection| connection.open.len()).sum();
        if open > 0 {
            return Err(Violation(format!("{open} requests were never answered")));
        }
        Ok(())
    }

    /// One event. False when nothing happens any more.
    fn step(&mut self) -> Result<bool, Violation> {
        let events = {
            let shared = self.shared.borrow();
            let event = self.happenings.peek().map(|Reverse((at, _, _))| *at);
            let is_heard = !shared.inbox.is_empty() || self.machine.has_messages();
            let heard = is_heard.then_some(shared.now);
            event.into_iter().chain(shared.disk.next_event()).chain(heard).min()
        };
        let wakes = self.machine.wakes_at();
        let Some(at) = events.into_iter().chain(wakes).min() else { return Ok(false) };
        {
            let mut shared = self.shared.borrow_mut();
            shared.now = shared.now.max(at);
        }
        while let Some(&Reverse((at, _, number))) = self.happenings.peek()
            && at <= self.now()
        {
            self.happenings.pop();
            let what = self.what[number].take().expect("it happens once");
            self.happens(what)?;
        }
        self.machine.turn();
        if self.shared.borrow().is_promised_after_failure {
            let text = "durable data were promised after a flush had failed at the disk";
            return Err(Violation(text.into()));
        }
        let answers = std::mem::take(&mut self.shared.borrow_mut().answers);
        for (connection, bytes) in answers {
            self.send_back(connection, bytes);
        }
        if self.now() > self.last_answer + ANSWERED_IN {
            let open: usize =
                self.connections.values().map(|connection| connection.open.len()).sum();
            if open > 0 {
                return Err(Violation(format!(
                    "{open} requests are not answered in {ANSWERED_IN}"
                )));
            }
            return Ok(false);
        }
        Ok(true)
    }

    fn happens(&mut self, what: Happening) -> Result<(), Violation> {
        match what {
            Happening::Comes => self.comes(),
            Happening::Asks(number) => self.asks(number),
            Happening::ToServer(number, bytes) => self.to_server(number, &bytes),
            Happening::ToClient(number, bytes) => return self.to_client(number, &bytes),
            Happening::Cut(number) => self.cut(number),
            Happening::Controls => self.controls(),
            Happening::Takes => return self.takes(),
        }
        Ok(())
    }

    /// A client connects, and chooses the export.
    fn comes(&mut self) {
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
    fn asks(&mut self, number: u64) {
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

    fn span(&mut self) -> (u64, u64) {
        let sector = self.plan.sector;
        let all = self.export.size / SECTOR as u64;
        let (most, (from, to)) = match self.prng.unit() {
            long if long < self.plan.long / 8.0 => (2600, (0, all)),
            long if long < self.plan.long => (300, (0, all)),
            _ if self.prng.chance(0.05) => (40, (0, all)),
            _ => (20, self.plan.hot),
        };
        let blocks = (1 + self.prng.below(most)).next_multiple_of(sector).min(to - from);
        let start = from + self.prng.below(to - from - blocks + 1) / sector * sector;
        (start, start + blocks)
    }

    fn ask(&mut self, number: u64) {
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
    fn send(&mut self, number: u64, mut bytes: Vec<u8>) {
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
            self.at(at, Happening::ToServer(number, part));
        }
    }

    fn send_back(&mut self, number: u64, bytes: Vec<u8>) {
        self.last_answer = self.now();
        let at = self.now() + SimDuration::from_us(self.prng.below(self.plan.way_us + 1));
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.server.answered(1);
        connection.to_client = connection.to_client.max(at);
        let at = connection.to_client;
        self.at(at, Happening::ToClient(number, bytes));
    }

    /// Bytes arrive at the server.
    fn to_server(&mut self, number: u64, mut bytes: &[u8]) {
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

    fn arrives(&mut self, number: u64, request: server::Request) {
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
        let is_planted = self.fault().is_some() && self.fault_prng.chance(0.5);
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
    fn to_client(&mut self, number: u64, mut bytes: &[u8]) -> Result<(), Violation> {
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

    fn hears(&mut self, number: u64, open: Open, reply: Reply) -> Result<(), Violation> {
        let errno = reply.result.as_ref().err().map(|failure| failure.errno);
        let allowed = matches!(errno, None | Some(Errno::Io));
        if !allowed {
            return Err(Violation(format!("{:?} failed with {errno:?}", reply.command)));
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
    fn leaves(&mut self, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.is_leaving && connection.open.is_empty() {
            let head = connection.client.disconnect().expect("it has an export").to_vec();
            self.send(number, head);
        }
    }

    /// A client goes without a word.
    fn cut(&mut self, number: u64) {
        if self.connections.remove(&number).is_none() {
            return;
        }
        self.tell(|| format!("connection {number} is cut"));
        self.summary.cut_connections += 1;
        self.shared.borrow_mut().inbox.push_back(Message::Left(number));
        self.after_us(2000, Happening::Comes);
    }

    fn scrub(&mut self) {
        if self.prng.chance(0.6) {
            let all = Extent::new(0, self.export.size / SECTOR as u64);
            let idle_after = self.prng.chance(0.5).then(|| SimDuration::from_ms(2));
            let spec = ServedTaskSpec {
                repeats: true,
                idle_after,
                ..ServedTaskSpec::new(TaskKind::Scrub, all, 8)
            };
            self.machine.create(spec).expect("a valid task");
        }
    }

    /// What somebody asks the control interface for.
    fn controls(&mut self) {
        let all = self.export.size / SECTOR as u64;
        let whole = (0, all);
        let range = if self.prng.chance(0.5) { self.plan.hot } else { whole };
        let block_size = [8, 16, 64, 128][self.prng.below(4) as usize];
        let range = (range.0 / self.plan.sector * self.plan.sector, range.1);
        let spec = ServedTaskSpec {
            has_reader: true,
            idle_after: self
                .prng
                .chance(0.5)
                .then(|| SimDuration::from_us(self.prng.below(20_000))),
            ..ServedTaskSpec::new(
                TaskKind::Backup,
                Extent::new(range.0, range.1 - range.0),
                block_size,
            )
        };
        let report = self.machine.create(spec).expect("a valid task");
        self.tell(|| format!("backup {} of {range:?} is asked for", report.id));
        self.summary.backups += 1;
        self.backups.push(Backup {
            task: report.id,
            began: 0,
            range,
            reader: None,
            image: BTreeMap::new(),
            unreadable: BTreeSet::new(),
        });
        self.after_us(5000, Happening::Takes);
        let status = self.machine.status();
        assert!(!status.tasks.is_empty());
    }

    /// Readers take what has come, begin, or give up.
    fn takes(&mut self) -> Result<(), Violation> {
        for mut backup in std::mem::take(&mut self.backups) {
            if backup.reader.is_none() {
                backup.began = self.checker.tick();
                backup.reader = Some(self.machine.read(backup.task).expect("nobody reads it"));
                self.tell(|| format!("backup {} begins", backup.task));
            } else if self.prng.chance(0.02) {
                // It may just have ended.
                let _ = self.machine.abort(backup.task);
                self.summary.backups_aborted += 1;
            } else if self.prng.chance(0.1) && self.machine.promote(backup.task).is_ok() {
                self.summary.backups_promoted += 1;
            }
            if !self.take_items(&mut backup)? {
                self.backups.push(backup);
            }
        }
        if !self.backups.is_empty() {
            self.after_us(20_000, Happening::Takes);
        }
        Ok(())
    }

    /// Takes the items of a backup; true when it is over.
    fn take_items(&mut self, backup: &mut Backup) -> Result<bool, Violation> {
        loop {
            let reader = backup.reader.as_mut().expect("it has begun");
            match reader.next().now_or_never() {
                None => return Ok(false),
                Some(None) => return Ok(true),
                Some(Some(Item::Data { start, data, .. })) => {
                    let falsified = self.fault() == Some(Fault::CopyBeforeWriteSkipped);
                    let from = start.get();
                    for (lbn, found) in (from..).zip(values_of(&data)) {
                        let found = match falsified {
                            true => self.shared.borrow().disk.disk.current(lbn),
                            false => found,
                        };
                        if backup.image.insert(lbn, found).is_some() {
                            return Err(Violation(format!("sector {lbn} is twice in a backup")));
                        }
                    }
                }
                Some(Some(Item::Unreadable(extent))) => {
                    let from = extent.start.get();
                    backup.unreadable.extend(from..from + extent.blocks.get());
                }
                Some(Some(Item::Over(report))) => {
                    self.tell(|| format!("backup {} is {:?}", backup.task, report.state));
                    self.summary.copied += report.copied.get();
                    if report.state == ServedTaskState::Done {
                        self.check_backup(backup)?;
                    }
                    return Ok(true);
                }
            }
        }
    }

    fn check_backup(&mut self, backup: &Backup) -> Result<(), Violation> {
        self.summary.backups_done += 1;
        self.summary.unreadable += backup.unreadable.len() as u64;
        for lbn in backup.range.0..backup.range.1 {
            match backup.image.get(&lbn) {
                Some(&found) => self.checker.copied(backup.began, lbn, found)?,
                None if backup.unreadable.contains(&lbn) => {}
                None => return Err(Violation(format!("sector {lbn} is not in a finished backup"))),
            }
        }
        Ok(())
    }

    /// The power goes.
    pub fn end(self) -> Checker {
        let status = { self.machine }.status();
        self.summary.served(&status);
        self.checker
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
