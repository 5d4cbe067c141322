//! Commands sent to a drive one by one, and kept clear of its buffer.

use std::collections::{BTreeSet, VecDeque};

use freewheel_model::sched::CommandMark;
use freewheel_sim::black_box::{Answer, BlackBox, Command};
use freewheel_units::{Lbn, Op, Prng, SimDuration, SimTime};

use super::journal::JournalEntry;
use super::progress::StepProgress;
use super::{ExtractError, ExtractProgress, Journal, readable};

/// Shadow of the buffer over measurements: blocks that a read leaves in it, and the time that they stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shadow {
    /// A read is forgotten when this many others have come after it.
    pub reads: usize,
    /// Blocks on either side of a read that may be in the buffer after it.
    pub reach: u64,
}

/// One command: when it was sent, and when its answer came.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandDone {
    pub sent: SimTime,
    pub end: SimTime,
    /// In which session.
    pub session: u32,
}

impl CommandDone {
    pub fn took(&self) -> SimDuration {
        self.end - self.sent
    }
}

/// The drive with what has been asked of it.
///
/// Its time is that of the last answer and of what was slept since, not that of the machine: so all
/// that is decided follows from the answers, and those of a journal lead to the same place again.
pub(super) struct Prober<'a> {
    drive: &'a mut dyn BlackBox,
    journal: Journal<'a>,
    now: SimTime,
    session: u32,
    /// This host's time less the drive's, once the drive has been asked.
    ahead: Option<SimDuration>,
    commands: u64,
    writes: u64,
    failed: u64,
    /// The last blocks, the newest at the back.
    recent: VecDeque<u64>,
    bad: BTreeSet<u64>,
    bad_in_a_row: u32,
    shadow: Shadow,
    prng: Prng,
    progress: StepProgress<'a>,
}

/// An answer is waited for this long; drives that recover from errors take some seconds.
const ANSWER_WITHIN: SimDuration = SimDuration::from_secs(60);
/// Blocks that are remembered: more than any buffer has segments.
const RECENT_MAX: usize = 8192;
/// Number of commands that fail one after the other, from which single blocks are not the reason.
const BAD_IN_A_ROW_MAX: u32 = 200;
/// Random places that are tried before the drive is taken to be too small.
const PLACES_TRIED: usize = 10_000;
/// Time that is put between two sessions. How much it was is not known.
const BETWEEN_SESSIONS: SimDuration = SimDuration::from_secs(1);

impl<'a> Prober<'a> {
    pub fn new(
        drive: &'a mut dyn BlackBox,
        seed: u64,
        journal: Journal<'a>,
        progress: ExtractProgress<'a>,
    ) -> Self {
        Self {
            now: SimTime::ZERO,
            session: 0,
            ahead: None,
            drive,
            journal,
            commands: 0,
            writes: 0,
            failed: 0,
            recent: VecDeque::new(),
            bad: BTreeSet::new(),
            bad_in_a_row: 0,
            shadow: Shadow::default(),
            prng: Prng::new(seed, "extraction"),
            progress: StepProgress::new(progress),
        }
    }

    pub fn blocks(&self) -> u64 {
        self.drive.blocks().get()
    }

    pub fn now(&self) -> SimTime {
        self.now
    }

    pub fn commands(&self) -> u64 {
        self.commands
    }

    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Commands for which something could not be read.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Blocks that could not be read.
    pub fn bad(&self) -> impl Iterator<Item = u64> {
        self.bad.iter().copied()
    }

    /// Ends the step before, and begins one of this many units.
    pub fn begin(&mut self, step: &'static str, total: u64) {
        self.end();
        self.progress.begin(step, total);
        self.tell();
    }

    /// The step is as far as that.
    pub fn reached(&mut self, done: u64) {
        self.progress.reached(done);
    }

    /// The step continues with this part of it.
    pub fn part(&mut self, part: String) {
        self.progress.part(part);
    }

    /// Ends the last step.
    pub fn end(&mut self) {
        if self.is_live() {
            self.progress.end(self.now, self.commands);
        }
    }

    fn tell(&mut self) {
        if self.is_live() {
            self.progress.tell(self.now, self.commands);
        }
    }

    /// True if the drive is asked, and not the journal.
    fn is_live(&self) -> bool {
        self.journal.past.is_empty()
    }

    pub fn shadow(&self) -> Shadow {
        self.shadow
    }

    pub fn set_shadow(&mut self, shadow: Shadow) {
        self.shadow = shadow;
    }

    /// The session of the next command.
    pub fn session(&self) -> u32 {
        match (self.journal.past.front(), self.ahead) {
            (Some(next), _) => next.session,
            (None, None) if self.commands > 0 => self.session + 1,
            _ => self.session,
        }
    }

    /// Uniform in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.prng.below(bound)
    }

    pub fn sleep(&mut self, time: SimDuration) {
        self.now += time;
    }

    /// Reads or writes one block, wherever it is, from a time on or at once if that has passed.
    pub fn ask_at(
        &mut self,
        time: SimTime,
        op: Op,
        block: u64,
    ) -> Result<CommandDone, ExtractError> {
        self.now = self.now.max(time);
        self.ask(op, block)
    }

    /// Reads one block, wherever it is.
    pub fn read(&mut self, block: u64) -> Result<CommandDone, ExtractError> {
        self.ask(Op::Read, block)
    }

    /// Writes what is in a block, which has been read a moment ago.
    pub fn write(&mut self, block: u64) -> Result<CommandDone, ExtractError> {
        self.ask(Op::Write, block)
    }

    /// Reads or writes one block. One that could not be read before is not asked for again, which
    /// would take seconds.
    pub fn ask(&mut self, op: Op, block: u64) -> Result<CommandDone, ExtractError> {
        if self.bad.contains(&block) {
            return Err(ExtractError::Unreadable { block });
        }
        if block >= self.blocks() {
            return Err(ExtractError::BeyondEnd { block, blocks: self.blocks() });
        }
        self.ask_for(op, block, 1)
    }

    /// Reads or writes this many blocks with one command.
    pub fn ask_for(
        &mut self,
        op: Op,
        block: u64,
        blocks: u32,
    ) -> Result<CommandDone, ExtractError> {
        let entry = match self.journal.past.pop_front() {
            Some(entry) if (entry.op, entry.block, entry.blocks) == (op, block, blocks) => entry,
            Some(entry) => return Err(ExtractError::OtherJournal { entry: entry.line() }),
            None => self.ask_drive(op, block, blocks)?,
        };
        self.commands += 1;
        self.writes += u64::from(op == Op::Write);
        (self.session, self.now) = (entry.session, entry.end);
        if self.progress.is_due(self.now) {
            self.tell();
        }
        self.recent.push_back(block);
        if self.recent.len() > RECENT_MAX {
            self.recent.pop_front();
        }
        if entry.is_bad {
            self.failed += 1;
            // Of several it is not known which.
            if blocks == 1 {
                self.bad.insert(block);
            }
            self.bad_in_a_row += 1;
            return Err(match self.bad_in_a_row {
                BAD_IN_A_ROW_MAX.. => ExtractError::Broken { block, count: self.bad_in_a_row },
                _ => ExtractError::Unreadable { block },
            });
        }
        self.bad_in_a_row = 0;
        let JournalEntry { sent, end, session, .. } = entry;
        Ok(CommandDone { sent, end, session })
    }

    fn ask_drive(&mut self, op: Op, block: u64, blocks: u32) -> Result<JournalEntry, ExtractError> {
        let session = self.session();
        let ahead = self.ahead.unwrap_or_else(|| self.join());
        self.ahead = Some(ahead);
        // What was read in another session, or long ago, is not there to be written.
        let is_held = op != Op::Write || self.drive.holds(Lbn::new(block), blocks);
        let first = if is_held { op } else { Op::Read };
        let (mut sent, mut answer) = self.time_at_drive(first, block, blocks, ahead)?;
        if !is_held && answer.bad.is_none() {
            (sent, answer) = self.time_at_drive(op, block, blocks, ahead)?;
        }
        let (end, is_bad) = (answer.at + ahead, answer.bad.is_some());
        let entry = JournalEntry { session, op, block, blocks, sent, end, is_bad };
        (self.journal.keep)(&entry)?;
        Ok(entry)
    }

    /// Sends a command when it is time for it: when it was sent, and its answer.
    fn time_at_drive(
        &mut self,
        op: Op,
        block: u64,
        blocks: u32,
        ahead: SimDuration,
    ) -> Result<(SimTime, Answer), ExtractError> {
        self.drive.sleep_until(SimTime::from_ns(self.now.ns() - ahead.ns()));
        let sent = self.drive.now() + ahead;
        Ok((sent, self.answer(op, block, blocks)?))
    }

    fn answer(&mut self, op: Op, block: u64, blocks: u32) -> Result<Answer, ExtractError> {
        let id = self.commands;
        let (start, mark) = (Lbn::new(block), CommandMark::None);
        self.drive.submit(Command { id, op, start, blocks, fua: false, mark });
        let until = self.drive.now() + ANSWER_WITHIN;
        let answer = self.drive.next_answer(until)?.ok_or(ExtractError::NoAnswer { block })?;
        Ok(answer)
    }

    /// The drive's time begins where that of the journal ends.
    fn join(&mut self) -> SimDuration {
        if self.commands > 0 {
            self.now += BETWEEN_SESSIONS;
        }
        let drives = self.drive.now();
        self.now = self.now.max(drives);
        self.now - drives
    }

    /// True if a block cannot be in the buffer.
    pub fn is_fresh(&self, block: u64) -> bool {
        let Shadow { reads, reach } = self.shadow;
        self.recent.iter().rev().take(reads).all(|&read| read.abs_diff(block) > reach)
    }

    /// Makes all of these blocks ones that cannot be in the buffer, by reads elsewhere.
    pub fn freshen(&mut self, blocks: &[u64]) -> Result<(), ExtractError> {
        while !blocks.iter().all(|&block| self.is_fresh(block)) {
            self.read_elsewhere(blocks)?;
        }
        Ok(())
    }

    /// Reads a random block that can be read, is not in the buffer, nor near any of these.
    pub fn read_elsewhere(&mut self, avoid: &[u64]) -> Result<(u64, CommandDone), ExtractError> {
        loop {
            let block = self.elsewhere(avoid)?;
            if let Some(done) = readable(self.read(block))? {
                return Ok((block, done));
            }
        }
    }

    /// A random block that is not in the buffer, nor near any of these.
    pub fn elsewhere(&mut self, avoid: &[u64]) -> Result<u64, ExtractError> {
        let (blocks, reach) = (self.blocks(), self.shadow.reach);
        for _ in 0..PLACES_TRIED {
            let block = self.prng.below(blocks);
            let is_far = avoid.iter().all(|other| other.abs_diff(block) > reach);
            if is_far && self.is_fresh(block) && !self.bad.contains(&block) {
                return Ok(block);
            }
        }
        Err(ExtractError::TooSmall { blocks })
    }

    /// Reads a block that is not in the buffer.
    pub fn read_fresh(&mut self, block: u64) -> Result<CommandDone, ExtractError> {
        self.freshen(&[block])?;
        self.read(block)
    }
}

#[cfg(test)]
mod tests {
    use freewheel_model::electronics::spec::SectorFormat;
    use freewheel_sim::black_box::DriveGone;
    use freewheel_units::Blocks;

    use super::*;

    /// A drive that answers after a millisecond, with blocks that cannot be read, and what was sent.
    #[derive(Default)]
    struct Plain {
        now: SimTime,
        bad: BTreeSet<u64>,
        held: BTreeSet<u64>,
        sent: Vec<(Op, u64, u32)>,
    }

    impl Plain {
        fn span(start: Lbn, blocks: u32) -> impl Iterator<Item = u64> {
            (start.get()..).take(blocks as usize)
        }
    }

    impl BlackBox for Plain {
        fn blocks(&self) -> Blocks {
            Blocks::new(10_000)
        }

        fn sector(&self) -> SectorFormat {
            SectorFormat::Native512
        }

        fn now(&self) -> SimTime {
            self.now
        }

        fn submit(&mut self, Command { op, start, blocks, .. }: Command) {
            assert!(op == Op::Read || self.holds(start, blocks), "{op:?} of {start:?} has no data");
            self.sent.push((op, start.get(), blocks));
        }

        fn holds(&self, start: Lbn, blocks: u32) -> bool {
            Self::span(start, blocks).all(|block| self.held.contains(&block))
        }

        fn next_answer(&mut self, _: SimTime) -> Result<Option<Answer>, DriveGone> {
            self.now += SimDuration::from_ms(1);
            let (_, start, blocks) = self.sent[self.sent.len() - 1];
            let start = Lbn::new(start);
            let bad = Self::span(start, blocks).find(|block| self.bad.contains(block));
            if bad.is_none() {
                self.held.extend(Self::span(start, blocks));
            }
            let (id, at) = (self.sent.len() as u64 - 1, self.now);
            Ok(Some(Answer { id, at, bad: bad.map(Lbn::new) }))
        }

        fn sleep_until(&mut self, time: SimTime) {
            self.now = self.now.max(time);
        }
    }

    /// Reads of one block each, in a session before.
    fn read_before(blocks: &[u64]) -> VecDeque<JournalEntry> {
        let entry = |(at, &block): (u64, &u64)| {
            let (sent, end) = (SimTime::from_ns(at * 1000), SimTime::from_ns(at * 1000 + 900));
            JournalEntry { session: 0, op: Op::Read, block, blocks: 1, sent, end, is_bad: false }
        };
        (0..).zip(blocks).map(entry).collect()
    }

    #[test]
    fn prober_replays_earlier_reads_before_writes() {
        let mut drive = Plain { bad: BTreeSet::from([8]), ..Plain::default() };
        let mut kept = Vec::new();
        let journal = Journal {
            past: read_before(&[7, 8]),
            keep: Box::new(|entry| {
                kept.push(*entry);
                Ok(())
            }),
        };
        let mut prober = Prober::new(&mut drive, 1, journal, &|_| {});
        prober.read(7).unwrap();
        prober.read(8).unwrap();
        let done = prober.write(7).unwrap();
        assert_eq!(done.took(), SimDuration::from_ms(1), "of the write alone");
        prober.write(7).unwrap();
        assert!(matches!(prober.write(8), Err(ExtractError::Unreadable { block: 8 })));
        assert_eq!(prober.bad().collect::<Vec<_>>(), [8]);
        // Of several one is at hand.
        prober.ask_for(Op::Write, 5, 3).unwrap();
        drop(prober);
        let (read, write) = (Op::Read, Op::Write);
        let due =
            [(read, 7, 1), (write, 7, 1), (write, 7, 1), (read, 8, 1), (read, 5, 3), (write, 5, 3)];
        assert_eq!(drive.sent, due);
        let written: Vec<(u64, bool)> =
            kept.iter().map(|entry| (entry.block, entry.is_bad)).collect();
        assert_eq!(written, [(7, false), (7, false), (8, true), (5, false)]);
    }
}
