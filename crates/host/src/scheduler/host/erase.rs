//! Blocks that are to read as zeroes, or are not needed any more.
//!
//! An erasure has one place in the order of requests that overlap, however large it is, and goes on
//! there piece by piece: first backups read what is in it, then the device erases it beside the
//! scheduler's commands, as it takes a flush; or zeroes are written by the scheduler where it cannot make
//! them. What is not needed any more and cannot be given up stays as it is: TRIM is advice.

use crate::Client;
use crate::device::DeviceErrorKind;
use freewheel_units::{BLOCK_BYTES, Lbn, Op, SimTime};

use super::{HostScheduler, RequestOwner};
use crate::device::{DeviceCommand, DeviceError, DeviceOp};
use crate::tasks::{EraseCopies, OwnRead, READER_WAIT_MAX};

/// Blocks of 512 B that a device is asked to erase at once: 32 MiB, for it may have to write them.
const ERASED_AT_ONCE: u64 = 1 << 16;

/// Pieces that the device erases at once. It is not known how long it takes for one, and what it is
/// given next may wait for all of them.
const PIECES_AT_ONCE: usize = 1;

/// Blocks of 512 B that zeroes are written to at once: 1 MiB, as other requests wait for it.
const WRITTEN_AT_ONCE: u64 = 1 << 11;

/// What a client wants of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erase {
    /// It does not need them any more.
    Trim,
    /// They are to read as zeroes.
    Zeroes {
        /// Room for later writes is to be kept.
        keep: bool,
    },
}

/// An erasure that is not answered.
pub(crate) struct Erasure {
    how: Erase,
    from: u64,
    to: u64,
    /// From here on nothing has been erased.
    next: u64,
    fua: bool,
    whose: RequestOwner,
    /// What is to be read before.
    copies: EraseCopies,
    /// The next of it, for which there was no room yet.
    next_copy: Option<OwnRead>,
    failed: Option<DeviceError>,
}

/// What the device erases of it by one command.
pub(crate) struct Piece {
    erasure: u64,
    /// How many of 512 B.
    blocks: u64,
    how: Erase,
}

impl Erasure {
    fn client(&self) -> Client {
        match self.whose {
            RequestOwner::Client(client)
            | RequestOwner::Piece { client, .. }
            | RequestOwner::Erasure(client) => client,
            RequestOwner::Task(_) => unreachable!("no job erases"),
        }
    }

    /// Whether it is a request of its own.
    pub(crate) fn is_a_clients(&self) -> bool {
        matches!(self.whose, RequestOwner::Client(_))
    }
}

impl HostScheduler {
    /// A client, or a piece of its request, wants the blocks of 512 B `from..to` erased.
    pub(crate) fn erase(
        &mut self,
        how: Erase,
        (from, to): (u64, u64),
        fua: bool,
        whose: RequestOwner,
    ) -> u64 {
        self.written.mark(from, to, self.now);
        let copies = self.tasks.before_erasure(from, to, self.now);
        let id = self.number();
        let erasure = Erasure {
            how,
            from,
            to,
            next: from,
            fua,
            whose,
            copies,
            next_copy: None,
            failed: None,
        };
        self.erasures.insert(id, erasure);
        if self.order.arrived(id, from..to, true) {
            self.erase_on(id);
        }
        id
    }

    /// Whether anything is done for it: nobody writes zeroes over what is not needed any more.
    pub(crate) fn does(&self, how: Erase) -> bool {
        how != Erase::Trim || self.abilities.trim
    }

    /// Goes on with an erasure: nothing is before it, and nothing of it is under way.
    pub(crate) fn erase_on(&mut self, id: u64) {
        let erasure = self.erasures.get_mut(&id).expect("it is not answered");
        while let Some(read) =
            erasure.next_copy.take().or_else(|| self.tasks.next_copy(&mut erasure.copies))
        {
            if self.tasks.still_wants(&read) {
                if !self.tasks.keep_room(&read) {
                    erasure.next_copy = Some(read);
                    self.without_room.entry(id).or_insert(self.now);
                    return;
                }
                self.without_room.remove(&id);
                let data = vec![0; read.blocks as usize * BLOCK_BYTES as usize];
                let copy =
                    self.add(Op::Read, read.start, data, false, RequestOwner::Task(read), id);
                return self.begin(copy);
            }
        }
        self.without_room.remove(&id);
        let (how, start, to) = (erasure.how, Lbn::new(erasure.next), erasure.to);
        let whose = RequestOwner::Erasure(erasure.client());
        // Where there is no flush, only writes can be asked to be on the media.
        let fua = erasure.fua && !self.abilities.flush && how != Erase::Trim;
        if erasure.failed.is_some() || start.get() == to || !self.does(how) {
            return self.all_erased(id);
        }
        let end = |at_once: u64| (start.get() + 1).next_multiple_of(at_once).min(to);
        let blocks = end(ERASED_AT_ONCE) - start.get();
        if let Some(what) = self.by_device(how, blocks).filter(|_| !fua) {
            if self.erase_commands.len() >= PIECES_AT_ONCE {
                return self.erase_later.push_back(id);
            }
            let command = self.own_command();
            self.erase_commands.insert(command, Piece { erasure: id, blocks, how });
            self.out.push_back(DeviceCommand { id: command, what, start, data: Vec::new() });
            return;
        }
        let bytes = (end(WRITTEN_AT_ONCE) - start.get()) * BLOCK_BYTES;
        let zeroes = vec![0; bytes as usize];
        let write = self.add(Op::Write, start, zeroes, fua, whose, id);
        self.begin(write);
    }

    /// Goes on with the erasures whose next copy somebody can take by now. Whoever takes nothing for too
    /// long has no backup any more.
    pub(crate) fn copy_on(&mut self) {
        let waiting: Vec<(u64, SimTime)> =
            self.without_room.iter().map(|(&id, &since)| (id, since)).collect();
        for (id, since) in waiting {
            let next = self.erasures[&id].next_copy;
            if let Some(read) = next.filter(|_| self.now >= since + READER_WAIT_MAX) {
                self.tasks.not_taken(&read, self.now);
            }
            self.erase_on(id);
        }
    }

    /// When [`Self::copy_on`] has something to do.
    pub(crate) fn copies_at(&self) -> Option<SimTime> {
        let at = self.without_room.iter().map(|(id, &since)| {
            let next = self.erasures[id].next_copy.as_ref();
            let is_ready = next.is_none_or(|read| self.tasks.has_room(read));
            if is_ready { self.now } else { since + READER_WAIT_MAX }
        });
        at.min()
    }

    /// How the device does it, if it can.
    fn by_device(&self, how: Erase, blocks: u64) -> Option<DeviceOp> {
        match how {
            Erase::Trim => self.abilities.trim.then_some(DeviceOp::Trim { blocks }),
            Erase::Zeroes { keep } => {
                let can = match keep {
                    true => self.abilities.write_zeroes_kept,
                    false => self.abilities.write_zeroes,
                };
                can.then_some(DeviceOp::WriteZeroes { blocks, keep })
            }
        }
    }

    /// The device has erased a piece, or has not.
    pub(crate) fn piece_erased(&mut self, piece: &Piece, result: Result<(), DeviceError>) {
        match result {
            // It has learnt that it cannot do this; holes are none of it where room is to be kept.
            Err(failed) if failed.kind == DeviceErrorKind::NotSupported => match piece.how {
                Erase::Trim => self.abilities.trim = false,
                Erase::Zeroes { keep: true } => self.abilities.write_zeroes_kept = false,
                Erase::Zeroes { keep: false } => self.abilities.write_zeroes = false,
            },
            result => self.erased(piece.erasure, piece.blocks, result.err()),
        }
        // One after the other, or those behind a large one would wait for all of it.
        while self.erase_commands.len() < PIECES_AT_ONCE
            && let Some(next) = self.erase_later.pop_front()
        {
            self.erase_on(next);
        }
        self.erase_on(piece.erasure);
    }

    /// So many further blocks of 512 B are, or something went wrong.
    pub(crate) fn erased(&mut self, id: u64, blocks: u64, failed: Option<DeviceError>) {
        let erasure = self.erasures.get_mut(&id).expect("it is not answered");
        match failed {
            Some(failed) => erasure.failed = Some(failed),
            None => erasure.next += blocks,
        }
    }

    fn all_erased(&mut self, id: u64) {
        let erasure = &self.erasures[&id];
        if erasure.fua && erasure.failed.is_none() && self.abilities.flush {
            return self.flush(id);
        }
        self.answer_erasure(id, None);
    }

    /// Tells the client, and lets those go on that waited.
    pub(crate) fn answer_erasure(&mut self, id: u64, failed: Option<DeviceError>) {
        let erasure = self.erasures.remove(&id).expect("it is not answered");
        self.written.mark(erasure.from, erasure.to, self.now);
        self.tasks.written(erasure.from, erasure.to);
        let result = failed.or(erasure.failed).map_or(Ok(Vec::new()), Err);
        match erasure.whose {
            RequestOwner::Piece { of, client } => {
                self.piece_done(of, client, (erasure.from, erasure.to), result);
            }
            _ => {
                self.client_gone();
                self.answers.push((id, result));
            }
        }
        self.place_is_free(id);
    }

    /// Blocks of 512 B of the longest piece of a large erasure.
    pub(crate) fn erased_at_once(&self, how: Erase) -> u64 {
        match self.by_device(how, 1) {
            Some(_) => ERASED_AT_ONCE,
            None => WRITTEN_AT_ONCE,
        }
    }

    /// Erasures of a connection end with what is under way.
    pub(crate) fn stop_erasures_of(&mut self, connection: u64, why: &DeviceError) {
        let of_it = self.erasures.values_mut();
        for erasure in of_it.filter(|erasure| erasure.client().connection == connection) {
            erasure.failed.get_or_insert_with(|| why.clone());
        }
    }
}
