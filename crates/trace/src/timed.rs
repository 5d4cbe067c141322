//! Times of records and of events, for the parts that put a trace in order.

use freewheel_units::SimTime;

/// Something that has a time.
pub(crate) trait Timed {
    /// Time of the event, as recorded.
    fn time(&self) -> SimTime;

    /// End of the request, where known: not before `time`.
    fn end(&self) -> Option<SimTime>;

    /// Device of the event.
    fn device(&self) -> u32;

    /// Record with its times moved by `shift`.
    fn shifted(self, shift: impl Fn(SimTime) -> SimTime) -> Self;
}

/// Something that can be kept in a file.
pub(crate) trait Spill: Timed {
    /// All of it in words of eight bytes.
    fn to_words(&self) -> [u64; 5];

    /// Record from its words.
    fn from_words(words: [u64; 5]) -> Self;
}
