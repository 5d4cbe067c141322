//! Allowed results of reads, contents that must be there after a power cut, and contents that a backup may
//! hold.
//!
//! Times are numbers of events. Each sector has the requests that may have changed it. Of each is known:
//!
//! ```text
//!   sent .............. answered          it takes effect between, or at any time if it is not answered
//!         shown by ...  replaced by ...   the earliest times at which it is known to have taken effect,
//!                                         and to have been replaced by another
//! ```
//! **Reads** are those of a linearizable register: a read may bring what was sent before it was answered, and
//! was not replaced before it was sent. Requests of one connection that overlap keep their order as well.
//! **After a power cut** a sector may hold anything that was sent, except what was settled before a durable
//! request was sent: one with FUA that was answered, or one that was answered before a FLUSH was sent that
//! succeeded. **A backup** may hold what was sent before it began and was not replaced before.

use std::collections::BTreeSet;

use crate::device::value;

/// A time: the number of an event.
pub type Stamp = u64;

pub const NEVER: Stamp = Stamp::MAX;

/// Change that a request makes to its sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Contents when the power came.
    Before,
    Write,
    Zeroes,
    /// Trimmed sectors, which may become zeroes.
    Trim,
}

/// A request that changes sectors.
#[derive(Debug, Clone)]
pub struct Changing {
    pub connection: u64,
    pub change: Change,
    pub from: u64,
    pub to: u64,
    pub fua: bool,
    sent: Stamp,
    /// Time of the answer, with success or not: the request has no effect after it.
    settled: Stamp,
    is_done: bool,
    is_durable: bool,
}

/// A request in the history of one sector.
#[derive(Debug, Clone, Copy)]
struct Entry {
    request: u32,
    shown: Stamp,
    replaced: Stamp,
}

/// Promise of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A read brings allowed data.
    Read,
    /// After a power cut everything is there that was promised.
    Cut,
    /// A backup holds what was there when it began.
    Backup,
    /// No durability is promised after a flush has failed.
    FailedFlush,
    /// A refresh finds no difference where there is none.
    Refresh,
    /// Every request is answered, with an error that has a reason.
    Answer,
}

/// A rule that was broken, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: Rule,
    pub what: String,
}

/// A broken rule.
pub fn broken<T>(rule: Rule, what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation { rule, what: what.into() })
}

/// Everything since the power came.
pub struct Checker {
    before: Vec<u64>,
    requests: Vec<Changing>,
    sectors: Vec<Vec<Entry>>,
    touched: BTreeSet<u64>,
    /// Done, and not known to be durable.
    volatile: Vec<u32>,
    /// Number of the first request's value.
    first_value: u64,
    clock: Stamp,
}

impl Checker {
    /// The disk is so; values of writes are numbered from here on.
    pub fn new(before: Vec<u64>, first_value: u64) -> Self {
        let durable = Changing {
            connection: NEVER,
            change: Change::Before,
            from: 0,
            to: before.len() as u64,
            fua: false,
            sent: 0,
            settled: 0,
            is_done: true,
            is_durable: true,
        };
        let sectors = vec![Vec::new(); before.len()];
        let (touched, volatile) = (BTreeSet::new(), Vec::new());
        Self { before, requests: vec![durable], sectors, touched, volatile, first_value, clock: 0 }
    }

    /// The next event.
    pub fn tick(&mut self) -> Stamp {
        self.clock += 1;
        self.clock
    }

    /// Numbers of values that no write has had.
    pub fn next_value(&self) -> u64 {
        self.first_value + self.requests.len() as u64
    }

    /// Number of requests that have changed sectors so far.
    pub fn requests(&self) -> u32 {
        self.requests.len() as u32
    }

    pub fn request(&self, number: u32) -> &Changing {
        &self.requests[number as usize]
    }

    /// A client sends a request that changes sectors `from..to`: its number. A write puts values of
    /// [`Self::next_value`] there.
    pub fn sends(
        &mut self,
        connection: u64,
        change: Change,
        (from, to): (u64, u64),
        fua: bool,
    ) -> u32 {
        let (number, sent) = (self.requests.len() as u32, self.tick());
        let (settled, is_done, is_durable) = (NEVER, false, false);
        self.requests.push(Changing {
            connection,
            change,
            from,
            to,
            fua,
            sent,
            settled,
            is_done,
            is_durable,
        });
        for lbn in from..to {
            let history = &mut self.sectors[lbn as usize];
            if history.is_empty() {
                self.touched.insert(lbn);
                history.push(Entry { request: 0, shown: 0, replaced: NEVER });
            }
            history.push(Entry { request: number, shown: NEVER, replaced: NEVER });
        }
        number
    }

    fn value(&self, request: u32, lbn: u64) -> u64 {
        match self.requests[request as usize].change {
            Change::Before => self.before[lbn as usize],
            Change::Write => value(self.first_value + u64::from(request), lbn),
            Change::Zeroes | Change::Trim => 0,
        }
    }

    /// True if `first` took effect before `second` did, or never.
    fn precedes(&self, first: &Entry, second: &Entry) -> bool {
        let [one, other] = [first, second].map(|entry| &self.requests[entry.request as usize]);
        let in_order = one.connection == other.connection && first.request < second.request;
        one.settled.min(first.shown) < other.sent || in_order
    }

    /// An entry has taken effect by `at`: those before it are replaced.
    fn took_effect(&mut self, lbn: u64, index: usize, at: Stamp) {
        let this = self.sectors[lbn as usize][index];
        for other in 0..self.sectors[lbn as usize].len() {
            let entry = self.sectors[lbn as usize][other];
            if other != index && entry.replaced > at && self.precedes(&entry, &this) {
                self.sectors[lbn as usize][other].replaced = at;
            }
        }
    }

    /// A request that changes sectors was answered.
    pub fn answered(&mut self, number: u32, is_done: bool) {
        let at = self.tick();
        let request = &mut self.requests[number as usize];
        (request.settled, request.is_done) = (at, is_done);
        request.is_durable = is_done && request.fua;
        let Changing { from, to, change, fua, .. } = *request;
        if !is_done {
            return;
        }
        if !fua {
            self.volatile.push(number);
        }
        // Trimmed sectors may keep their data.
        if change == Change::Trim {
            return;
        }
        for lbn in from..to {
            let history = &self.sectors[lbn as usize];
            let index =
                history.iter().position(|entry| entry.request == number).expect("it was sent");
            self.took_effect(lbn, index, at);
        }
    }

    /// A FLUSH that was sent then has succeeded.
    pub fn flushed(&mut self, sent: Stamp) {
        let requests = &mut self.requests;
        self.volatile.retain(|&number| {
            let request = &mut requests[number as usize];
            request.is_durable |= request.settled < sent;
            !request.is_durable
        });
    }

    /// A read that was sent then has brought these values, from a sector on.
    pub fn read(
        &mut self,
        (connection, behind): (u64, u32),
        sent: Stamp,
        from: u64,
        values: impl Iterator<Item = u64>,
    ) -> Result<(), Violation> {
        let at = self.tick();
        for (lbn, found) in (from..).zip(values) {
            self.read_one((connection, behind), (sent, at), lbn, found)?;
        }
        Ok(())
    }

    fn read_one(
        &mut self,
        (connection, behind): (u64, u32),
        (sent, at): (Stamp, Stamp),
        lbn: u64,
        found: u64,
    ) -> Result<(), Violation> {
        let history = &self.sectors[lbn as usize];
        if history.is_empty() {
            let before = self.before[lbn as usize];
            return match found == before {
                true => Ok(()),
                false => broken(
                    Rule::Read,
                    format!("sector {lbn}: read {found:#x}, and only {before:#x} was there"),
                ),
            };
        }
        // Requests of the same connection before the read have been done before it.
        let own = |entry: &&Entry| {
            let request = &self.requests[entry.request as usize];
            let writes = request.is_done && request.change != Change::Trim;
            request.connection == connection && entry.request < behind && writes
        };
        let is_replaced = |entry: &Entry| {
            let mut owns = history.iter().filter(own);
            entry.replaced < sent
                || owns.any(|own| own.request != entry.request && self.precedes(entry, own))
        };
        let may_be = |entry: &Entry| self.value(entry.request, lbn) == found && !is_replaced(entry);
        let candidates: Vec<usize> =
            (0..history.len()).filter(|&index| may_be(&history[index])).collect();
        if candidates.is_empty() {
            return broken(
                Rule::Read,
                format!("sector {lbn}: read {found:#x}, sent at {sent}; {}", self.history(lbn)),
            );
        }
        if let [only] = candidates[..] {
            let entry = &mut self.sectors[lbn as usize][only];
            entry.shown = entry.shown.min(at);
            self.took_effect(lbn, only, at);
        }
        // All else that had taken effect before the read has been replaced.
        for index in 0..self.sectors[lbn as usize].len() {
            let entry = self.sectors[lbn as usize][index];
            let request = &self.requests[entry.request as usize];
            let is_sure = request.is_done && request.change != Change::Trim;
            let effect = if is_sure { entry.shown.min(request.settled) } else { entry.shown };
            if !candidates.contains(&index) && effect < sent {
                let replaced = &mut self.sectors[lbn as usize][index].replaced;
                *replaced = at.min(*replaced);
            }
        }
        Ok(())
    }

    /// The power has gone, and the media are so.
    pub fn after_cut(&self, media: &[u64]) -> Result<(), Violation> {
        for (lbn, (&found, before)) in media.iter().zip(&self.before).enumerate() {
            let history = &self.sectors[lbn];
            if history.is_empty() {
                if found != *before {
                    return broken(
                        Rule::Cut,
                        format!("sector {lbn}: {found:#x} after the cut, and nothing was sent"),
                    );
                }
                continue;
            }
            let lbn = lbn as u64;
            let is_durable = |entry: &Entry| {
                let request = &self.requests[entry.request as usize];
                request.is_durable && request.change != Change::Trim
            };
            let is_lost = |entry: &Entry| {
                let mut durable = history.iter().filter(|entry| is_durable(entry));
                durable.any(|durable| {
                    durable.request != entry.request && self.precedes(entry, durable)
                })
            };
            let may_be =
                |entry: &&Entry| self.value(entry.request, lbn) == found && !is_lost(entry);
            if history.iter().find(may_be).is_none() {
                return broken(
                    Rule::Cut,
                    format!("sector {lbn}: {found:#x} after the cut; {}", self.history(lbn)),
                );
            }
        }
        Ok(())
    }

    /// A sector of a scan that began then: it was so at some time since.
    pub fn scanned(&self, began: Stamp, lbn: u64, found: u64) -> Result<(), Violation> {
        self.copied_by((began, NEVER), lbn, found)
    }

    /// A sector of a backup that began then.
    pub fn copied(&self, began: Stamp, lbn: u64, found: u64) -> Result<(), Violation> {
        self.copied_by((began, began), lbn, found)
    }

    /// A sector that was so at some time between these two.
    fn copied_by(
        &self,
        (began, ended): (Stamp, Stamp),
        lbn: u64,
        found: u64,
    ) -> Result<(), Violation> {
        let history = &self.sectors[lbn as usize];
        let may_be = |entry: &&Entry| {
            let sent = self.requests[entry.request as usize].sent;
            self.value(entry.request, lbn) == found && sent < ended && entry.replaced >= began
        };
        let is_right = match history.is_empty() {
            true => found == self.before[lbn as usize],
            false => history.iter().any(|entry| may_be(&entry)),
        };
        if is_right {
            return Ok(());
        }
        broken(
            Rule::Backup,
            format!(
                "sector {lbn}: {found:#x} in a copy that began at {began}; {}",
                self.history(lbn)
            ),
        )
    }

    /// The history of a sector.
    fn history(&self, lbn: u64) -> String {
        let told = self.sectors[lbn as usize].iter().map(|entry| {
            let Changing { connection, change, sent, settled, is_done, is_durable, .. } =
                &self.requests[entry.request as usize];
            let time = |stamp: Stamp| if stamp == NEVER { "-".into() } else { stamp.to_string() };
            format!(
                "\n  {:#x} {change:?} by connection {}: sent {sent}, answered {}{}{}, shown {}, replaced {}",
                self.value(entry.request, lbn),
                time(*connection),
                time(*settled),
                if *is_done { "" } else { " with an error" },
                if *is_durable { ", durable" } else { "" },
                time(entry.shown),
                time(entry.replaced)
            )
        });
        told.collect()
    }
}
