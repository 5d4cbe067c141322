//! Reads sent to a drive one by one, and kept clear of its buffer.

use std::collections::VecDeque;

use freewheel_sim::black_box::{BlackBox, Command};
use freewheel_units::{Lbn, Op, Prng, SimDuration, SimTime};

use super::ExtractError;

/// How the buffer gets in the way of measurements: what a read leaves in it, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shadow {
    /// A read is forgotten when so many others have come after it.
    pub reads: usize,
    /// Blocks on either side of a read that may be in the buffer after it.
    pub reach: u64,
}

/// One read: when it was sent, and when its answer came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    pub sent: SimTime,
    pub end: SimTime,
}

impl Read {
    pub fn took(&self) -> SimDuration {
        self.end - self.sent
    }
}

/// The drive with what has been asked of it.
pub(super) struct Host<'a> {
    drive: &'a mut dyn BlackBox,
    commands: u64,
    /// The last reads, the newest at the back.
    recent: VecDeque<u64>,
    shadow: Shadow,
    prng: Prng,
}

/// An answer is waited for so long; drives that recover from errors take some seconds.
const ANSWER_WITHIN: SimDuration = SimDuration::from_secs(60);
/// Reads that are remembered: more than any buffer has segments.
const RECENT_MAX: usize = 8192;
/// Random places that are tried before the drive is held to be too small.
const PLACES_TRIED: usize = 10_000;

impl<'a> Host<'a> {
    pub fn new(drive: &'a mut dyn BlackBox, seed: u64) -> Self {
        let prng = Prng::new(seed, "extraction");
        Self { drive, commands: 0, recent: VecDeque::new(), shadow: Shadow::default(), prng }
    }

    pub fn blocks(&self) -> u64 {
        self.drive.blocks().get()
    }

    pub fn now(&self) -> SimTime {
        self.drive.now()
    }

    pub fn commands(&self) -> u64 {
        self.commands
    }

    pub fn shadow(&self) -> Shadow {
        self.shadow
    }

    pub fn set_shadow(&mut self, shadow: Shadow) {
        self.shadow = shadow;
    }

    /// Uniform in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.prng.below(bound)
    }

    pub fn sleep(&mut self, time: SimDuration) {
        let until = self.now() + time;
        self.drive.sleep_until(until);
    }

    /// Reads one block, wherever it is, from a time on or at once if that has passed.
    pub fn read_at(&mut self, time: SimTime, block: u64) -> Result<Read, ExtractError> {
        self.drive.sleep_until(time);
        self.read(block)
    }

    /// Reads one block, wherever it is.
    pub fn read(&mut self, block: u64) -> Result<Read, ExtractError> {
        let (id, sent) = (self.commands, self.now());
        self.commands += 1;
        self.drive.submit(Command { id, op: Op::Read, start: Lbn::new(block), blocks: 1 });
        let answer = self.drive.next_answer(sent + ANSWER_WITHIN);
        let answer = answer.ok_or(ExtractError::NoAnswer { block })?;
        if let Some(bad) = answer.bad {
            return Err(ExtractError::Unreadable { block: bad.get() });
        }
        self.recent.push_back(block);
        if self.recent.len() > RECENT_MAX {
            self.recent.pop_front();
        }
        Ok(Read { sent, end: answer.at })
    }

    /// Whether a block cannot be in the buffer.
    pub fn is_fresh(&self, block: u64) -> bool {
        let Shadow { reads, reach } = self.shadow;
        self.recent.iter().rev().take(reads).all(|&read| read.abs_diff(block) > reach)
    }

    /// Makes all of these blocks ones that cannot be in the buffer, by reads elsewhere.
    pub fn freshen(&mut self, blocks: &[u64]) -> Result<(), ExtractError> {
        while !blocks.iter().all(|&block| self.is_fresh(block)) {
            let elsewhere = self.elsewhere(blocks)?;
            self.read(elsewhere)?;
        }
        Ok(())
    }

    /// A random block that is not in the buffer, nor near any of these.
    pub fn elsewhere(&mut self, avoid: &[u64]) -> Result<u64, ExtractError> {
        let (blocks, reach) = (self.blocks(), self.shadow.reach);
        for _ in 0..PLACES_TRIED {
            let block = self.prng.below(blocks);
            let is_far = avoid.iter().all(|other| other.abs_diff(block) > reach);
            if is_far && self.is_fresh(block) {
                return Ok(block);
            }
        }
        Err(ExtractError::TooSmall { blocks })
    }

    /// Reads a block that is not in the buffer.
    pub fn read_fresh(&mut self, block: u64) -> Result<Read, ExtractError> {
        self.freshen(&[block])?;
        self.read(block)
    }
}
