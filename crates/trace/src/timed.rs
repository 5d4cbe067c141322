//! What the parts that put a trace in order know of records and of events.

use freewheel_units::SimTime;

/// Something that has a time.
pub(crate) trait Timed {
    /// When it is said to have happened.
    fn time(&self) -> SimTime;

    /// When it had ended, where that is known: not before `time`.
    fn end(&self) -> Option<SimTime>;

    /// Where it happened.
    fn device(&self) -> u32;

    /// The same with its times moved by `shift`.
    fn shifted(self, shift: impl Fn(SimTime) -> SimTime) -> Self;
}

/// Something that can be kept in a file.
pub(crate) trait Spill: Timed {
    /// All of it in words of eight bytes.
    fn to_words(&self) -> [u64; 5];

    /// The same again.
    fn from_words(words: [u64; 5]) -> Self;
}
