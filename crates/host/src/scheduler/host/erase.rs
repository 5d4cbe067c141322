//! TRIM and writes of zeroes.
//!
//! An erasure of any length has one place in the order of overlapping requests, and continues there piece
//! by piece. First, backups read the blocks. Then the device erases them, next to the scheduler's
//! commands; where the device cannot, the scheduler writes zeroes. TRIM is advice: where the device has
//! none, the blocks keep their data.

use crate::Client;
use crate::device::DeviceErrorKind;
use freewheel_units::{BLOCK_BYTES, Lbn, Op, SimTime};

use super::{HostScheduler, RequestOwner};
use crate::Copies;
use crate::device::{DeviceCommand, DeviceError, DeviceOp};
use crate::tasks::{OwnRead, READER_WAIT_MAX};

/// Blocks of 512 B in one command to erase: 32 MiB, since the device may have to write them.
const ERASED_AT_ONCE: u64 = 1 << 16;

/// Pieces that the device erases at once. The time for one is unknown, and the next command may wait for
/// all of them.
const PIECES_AT_ONCE: usize = 1;

/// Blocks of 512 B in one write of zeroes: 1 MiB, since other requests wait for it.
const WRITTEN_AT_ONCE: u64 = 1 << 11;

/// Way in which blocks are erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Erase {
    /// TRIM: the client does not need them any more.
    Trim,
    /// Erased blocks read as zeroes afterwards.
    Zeroes {
        /// The device keeps their space allocated for later writes.
        keep: bool,
    },
}

/// An erasure that is not answered.
pub(crate) struct Erasure {
    how: Erase,
    from: u64,
    to: u64,
    /// First block that has not been erased.
    next: u64,
    fua: bool,
    owner: RequestOwner,
    /// Reads of backups before it.
    copies: Copies,
    /// The next of them, which waits for room.
    next_copy: Option<OwnRead>,
    failed: Option<DeviceError>,
}

/// The part of an erasure in one command of the device.
pub(crate) struct ErasurePiece {
    erasure: u64,
    /// Number of blocks of 512 B.
    blocks: u64,
    how: Erase,
}

impl Erasure {
    fn client(&self) -> Client {
        match self.owner {
            RequestOwner::Client(client)
            | RequestOwner::Piece { client, .. }
            | RequestOwner::Erasure(client) => client,
            RequestOwner::Task(_) | RequestOwner::Refresh(_) => unreachable!("no task erases"),
        }
    }

    /// True if it is a whole request of a client.
    pub(crate) fn is_a_clients(&self) -> bool {
        matches!(self.owner, RequestOwner::Client(_))
    }
}

impl HostScheduler {
    /// A client, or a piece of its request, wants the blocks of 512 B `from..to` erased.
    pub(crate) fn erase(
        &mut self,
        how: Erase,
        (from, to): (u64, u64),
        fua: bool,
        owner: RequestOwner,
    ) -> u64 {
        self.written.mark(from, to, self.now);
        let copies = self.tasks.before_erasure(from, to, self.now);
        // A block of a backup may be larger than what is erased. Its copy is read later, and until then no
        // other request may write over the rest of it.
        let (first, end) =
            copies.bounds().map_or((from, to), |(first, end)| (first.min(from), end.max(to)));
        let id = self.number();
        let erasure = Erasure {
            how,
            from,
            to,
            next: from,
            fua,
            owner,
            copies,
            next_copy: None,
            failed: None,
        };
        self.erasures.insert(id, erasure);
        if self.order.arrived(id, first..end, true) {
            self.continue_erasure(id);
        }
        id
    }

    /// True if the erasure has an effect: a TRIM that the device cannot do has none.
    pub(crate) fn does(&self, how: Erase) -> bool {
        how != Erase::Trim || self.abilities.trim
    }

    /// Continues an erasure that waits for no request and has no command at the device.
    pub(crate) fn continue_erasure(&mut self, id: u64) {
        let erasure = self.erasures.get_mut(&id).expect("it is not answered");
        while let Some(read) =
            erasure.next_copy.take().or_else(|| self.tasks.next_copy(&mut erasure.copies))
        {
            if self.tasks.still_wants(&read) {
                if !self.tasks.keep_room(&read) {
                    erasure.next_copy = Some(read);
                    self.waiting_for_reader.entry(id).or_insert(self.now);
                    return;
                }
                self.waiting_for_reader.remove(&id);
                let data = vec![0; read.blocks as usize * BLOCK_BYTES as usize];
                let copy =
                    self.add(Op::Read, read.start, data, false, RequestOwner::Task(read), id);
                return self.release(copy);
            }
        }
        self.waiting_for_reader.remove(&id);
        let (how, start, to) = (erasure.how, Lbn::new(erasure.next), erasure.to);
        let owner = RequestOwner::Erasure(erasure.client());
        // Without flushes, writes alone can be made durable.
        let fua = erasure.fua && !self.abilities.flush && how != Erase::Trim;
        if erasure.failed.is_some() || start.get() == to || !self.does(how) {
            return self.all_erased(id);
        }
        let blocks = end(ERASED_AT_ONCE, start, to) - start.get();
        if let Some(what) = self.by_device(how, blocks).filter(|_| !fua) {
            if self.erase_commands.len() >= PIECES_AT_ONCE {
                return self.queued_erasures.push_back(id);
            }
            let command = self.own_command();
            self.erase_commands.insert(command, ErasurePiece { erasure: id, blocks, how });
            self.outgoing.push_back(DeviceCommand { id: command, what, start, data: Vec::new() });
            return;
        }
        let bytes = (end(WRITTEN_AT_ONCE, start, to) - start.get()) * BLOCK_BYTES;
        let zeroes = vec![0; bytes as usize];
        let write = self.add(Op::Write, start, zeroes, fua, owner, id);
        self.release(write);
    }

    /// Continues the erasures whose next copy has room by now. A reader without room for too long loses its
    /// backup.
    pub(crate) fn continue_copies(&mut self) {
        let waiting: Vec<(u64, SimTime)> =
            self.waiting_for_reader.iter().map(|(&id, &since)| (id, since)).collect();
        for (id, since) in waiting {
            let next = self.erasures[&id].next_copy;
            if let Some(read) = next.filter(|_| self.now >= since + READER_WAIT_MAX) {
                self.tasks.not_taken(&read, self.now);
            }
            self.continue_erasure(id);
        }
    }

    /// Time at which [`Self::continue_copies`] has work.
    pub(crate) fn copies_at(&self) -> Option<SimTime> {
        let at = self.waiting_for_reader.iter().map(|(id, &since)| {
            let next = self.erasures[id].next_copy.as_ref();
            let is_ready = next.is_none_or(|read| self.tasks.has_room(read));
            if is_ready { self.now } else { since + READER_WAIT_MAX }
        });
        at.min()
    }

    /// The device's command for it, if it has one.
    fn by_device(&self, how: Erase, blocks: u64) -> Option<DeviceOp> {
        match how {
            Erase::Trim => self.abilities.trim.then_some(DeviceOp::Trim { blocks }),
            Erase::Zeroes { keep } => {
                let can = if keep {
                    self.abilities.write_zeroes_kept
                } else {
                    self.abilities.write_zeroes
                };
                can.then_some(DeviceOp::WriteZeroes { blocks, keep })
            }
        }
    }

    /// The device has erased a piece, or has not.
    pub(crate) fn piece_erased(&mut self, piece: &ErasurePiece, result: Result<(), DeviceError>) {
        match result {
            // The device cannot do this after all: do not ask again.
            Err(failed) if failed.kind == DeviceErrorKind::NotSupported => match piece.how {
                Erase::Trim => self.abilities.trim = false,
                Erase::Zeroes { keep: true } => self.abilities.write_zeroes_kept = false,
                Erase::Zeroes { keep: false } => self.abilities.write_zeroes = false,
            },
            result => self.erased(piece.erasure, piece.blocks, result.err()),
        }
        // In turn: small erasures would otherwise wait for all of a large one.
        while self.erase_commands.len() < PIECES_AT_ONCE
            && let Some(next) = self.queued_erasures.pop_front()
        {
            self.continue_erasure(next);
        }
        self.continue_erasure(piece.erasure);
    }

    /// The device has erased this many further blocks of 512 B, or has failed.
    pub(crate) fn erased(&mut self, id: u64, blocks: u64, failed: Option<DeviceError>) {
        let erasure = self.erasures.get_mut(&id).expect("it is not answered");
        match failed {
            Some(failed) => erasure.failed = Some(failed),
            None => erasure.next += blocks,
        }
    }

    fn all_erased(&mut self, id: u64) {
        let erasure = &self.erasures[&id];
        let by_flush = self.abilities.flush || self.failed_flush().is_some();
        if erasure.fua && erasure.failed.is_none() && by_flush {
            return self.flush(id);
        }
        self.answer_erasure(id, None);
    }

    /// Answers the client, and lets the requests continue that waited for the erasure.
    pub(crate) fn answer_erasure(&mut self, id: u64, failed: Option<DeviceError>) {
        let erasure = self.erasures.remove(&id).expect("it is not answered");
        self.client_wrote((erasure.from, erasure.to), false);
        let result = failed.or(erasure.failed).map_or(Ok(Vec::new()), Err);
        match erasure.owner {
            RequestOwner::Piece { of, client } => {
                self.piece_done(of, client, (erasure.from, erasure.to), result);
            }
            _ => {
                self.client_request_ended();
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

fn end(at_once: u64, start: Lbn, to: u64) -> u64 {
    (start.get() + 1).next_multiple_of(at_once).min(to)
}
