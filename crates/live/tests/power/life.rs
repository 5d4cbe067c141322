//! One life of the server: from the power coming on to the power going.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

use freewheel_live::serve::machine::Message;
use freewheel_nbd::Export;
use freewheel_units::{Prng, SimDuration, SimTime};

use crate::backups::Backup;
use crate::checker::{Checker, Rule, Violation, broken};
use crate::clients::Connection;
use crate::faults::Fault;
use crate::server::{Machine, Shared};
use crate::summary::Summary;

/// Longest virtual time until a request is answered: else the server hangs.
const ANSWERED_IN: SimDuration = SimDuration::from_secs(100);

/// Turns at one moment that count as spinning.
const IN_VAIN_MAX: u64 = 10_000;

/// Plan of a life.
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
    /// Blocks of 512 B in a logical sector.
    pub sector: u64,
    /// Share of requests that are long.
    pub long: f64,
    /// Most requests are of more than 1 MB, so that they wait for each other in their queue.
    pub floods: bool,
    /// Longest think time of a client.
    pub think_us: u64,
    /// Longest time that bytes are under way.
    pub way_us: u64,
    /// All ends in peace before the power goes.
    pub in_peace: bool,
    /// The server is told to finish when clients have sent all, as by SIGTERM.
    pub finishes: bool,
    /// The device goes at some time.
    pub goes: bool,
    /// Background tasks are there.
    pub tasks: bool,
    /// Chance that a client goes after a request, without a word.
    pub cut: f64,
}

pub enum Happening {
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
    /// The device goes.
    Gone,
}

pub struct Life<'a> {
    pub plan: Plan,
    pub export: Export,
    pub shared: Rc<RefCell<Shared>>,
    pub machine: Machine,
    pub checker: Checker,
    pub connections: BTreeMap<u64, Connection>,
    pub next_connection: u64,
    pub happenings: BinaryHeap<Reverse<(SimTime, u64, usize)>>,
    pub what: Vec<Option<Happening>>,
    pub asked: u64,
    /// Pieces of requests on their way to the server.
    pub on_the_way: u64,
    pub is_finishing: bool,
    pub has_ended: bool,
    pub is_gone: bool,
    pub turns_in_vain: u64,
    pub backups: Vec<Backup>,
    pub last_answer: SimTime,
    pub prng: Prng,
    pub fault_prng: Prng,
    pub summary: &'a mut Summary,
    pub trace: bool,
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
            on_the_way: 0,
            is_finishing: false,
            has_ended: false,
            is_gone: false,
            turns_in_vain: 0,
            backups: Vec::new(),
            last_answer,
            prng,
            fault_prng,
            summary,
            trace,
        }
    }

    pub fn now(&self) -> SimTime {
        self.shared.borrow().now
    }

    pub fn tell(&self, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>12} {}", self.now().ns() / 1000, text());
        }
    }

    pub fn at(&mut self, at: SimTime, what: Happening) {
        let number = self.what.len();
        self.what.push(Some(what));
        self.happenings.push(Reverse((at, number as u64, number)));
    }

    pub fn after_us(&mut self, most: u64, what: Happening) {
        let at = self.now() + SimDuration::from_us(self.prng.below(most + 1));
        self.at(at, what);
    }

    pub fn fault(&self) -> Option<Fault> {
        self.shared.borrow().disk.fault
    }

    /// Lives until the power goes, which may be at any moment.
    pub fn run(&mut self) -> Result<(), Violation> {
        for _ in 0..self.plan.connections {
            self.after_us(1000, Happening::Comes);
        }
        if self.plan.tasks {
            self.scrub();
            self.refresh();
            for _ in 0..1 + self.prng.below(4) {
                let most = self.plan.requests * 2000;
                self.after_us(most, Happening::Controls);
            }
        }
        if self.plan.goes {
            let most = self.plan.requests * 2000;
            self.after_us(most, Happening::Gone);
        }
        while !self.is_over() && self.step()? {
            self.finish();
        }
        self.check_refreshes()?;
        if self.plan.in_peace { self.peace() } else { Ok(()) }
    }

    /// True if clients have sent all requests.
    pub fn is_asked(&self) -> bool {
        self.asked >= self.plan.requests
    }

    fn is_over(&self) -> bool {
        let is_idle = self.connections.values().all(|connection| connection.open.is_empty());
        let has_ended = self.has_ended || !self.plan.finishes;
        self.is_asked() && (!self.plan.in_peace || is_idle && self.backups.is_empty() && has_ended)
    }

    /// Tells the server to finish, once all requests have arrived.
    fn finish(&mut self) {
        let is_time = self.is_asked() && self.on_the_way == 0;
        if self.plan.in_peace && self.plan.finishes && is_time && !self.is_finishing {
            self.is_finishing = true;
            self.shared.borrow_mut().inbox.push_back(Message::Finish);
        }
    }

    /// After the end all is answered, and a last flush makes it durable.
    fn peace(&mut self) -> Result<(), Violation> {
        self.summary.peaceful += 1;
        let open: usize = self.connections.values().map(|connection| connection.open.len()).sum();
        if open > 0 {
            return broken(Rule::Answer, format!("{open} requests were never answered"));
        }
        Ok(())
    }

    /// One event. False when no event is left.
    fn step(&mut self) -> Result<bool, Violation> {
        let events = {
            let shared = self.shared.borrow();
            let event = self.happenings.peek().map(|Reverse((at, _, _))| *at);
            let is_heard = !shared.inbox.is_empty() || self.machine.has_messages();
            let heard = is_heard.then_some(shared.now);
            let of_server = heard.into_iter().chain(shared.disk.next_event());
            // What has ended gets no message any more.
            let of_server = of_server.filter(|_| !self.has_ended);
            event.into_iter().chain(of_server).min()
        };
        let wakes = self.machine.wakes_at().filter(|_| !self.has_ended);
        let Some(at) = events.into_iter().chain(wakes).min() else { return Ok(false) };
        {
            let mut shared = self.shared.borrow_mut();
            self.turns_in_vain = if at > shared.now { 0 } else { self.turns_in_vain + 1 };
            shared.now = shared.now.max(at);
        }
        if self.turns_in_vain > IN_VAIN_MAX {
            return broken(Rule::Answer, "the server turns without an end while no time passes");
        }
        while let Some(&Reverse((at, _, number))) = self.happenings.peek()
            && at <= self.now()
        {
            self.happenings.pop();
            let what = self.what[number].take().expect("it happens once");
            self.happens(what)?;
        }
        if !self.has_ended {
            self.has_ended = self.machine.turn().is_some();
            self.summary.finished += u64::from(self.has_ended);
        }
        if self.shared.borrow().is_promised_after_failure {
            let text = "durable data were promised after a flush had failed at the disk";
            return broken(Rule::FailedFlush, text);
        }
        let answers = std::mem::take(&mut self.shared.borrow_mut().answers);
        for (connection, bytes) in answers {
            self.send_back(connection, bytes);
        }
        if self.now() > self.last_answer + ANSWERED_IN {
            let open = self.connections.values().map(|connection| connection.open.len());
            let (open, tasks) = (open.sum::<usize>(), self.backups.len());
            return match (open, tasks) {
                (0, 0) => Ok(false),
                (0, _) => {
                    broken(Rule::Answer, format!("{tasks} tasks do not end in {ANSWERED_IN}"))
                }
                _ => {
                    let what = format!("{open} requests are not answered in {ANSWERED_IN}");
                    broken(Rule::Answer, what)
                }
            };
        }
        Ok(true)
    }

    fn happens(&mut self, what: Happening) -> Result<(), Violation> {
        match what {
            Happening::Comes => self.comes(),
            Happening::Asks(number) => self.asks(number),
            Happening::ToServer(number, bytes) => {
                self.on_the_way -= 1;
                self.server_gets(number, &bytes);
            }
            Happening::ToClient(number, bytes) => return self.client_gets(number, &bytes),
            Happening::Cut(number) => self.cut(number),
            Happening::Controls => self.controls(),
            Happening::Takes => return self.takes(),
            Happening::Gone => self.gone(),
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
