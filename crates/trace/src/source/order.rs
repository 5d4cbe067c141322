//! Puts items into the order of their times, at any distance, in bounded memory.
//!
//! Two ways: a window of some thousand items, for what was logged by completion or by processor; and a
//! merge of sorted pieces in a temporary file, for what lies farther apart, as two volumes one after the other.
//! A first pass tells which way a trace needs (`survey`).
//!
//! Goals: of equal times the item that came first comes first; nothing is left in the file system.
//! Non-goals: guessing the way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::vec;

use freewheel_units::SimTime;

use super::reorder::ReorderBuffer;
use super::{LeftOutRows, Position, Source, Stop};
use crate::Record;
use crate::timed::{Spill, Timed};

/// Items sorted in memory at once: below 32 MiB.
const PIECE_ITEMS: usize = 1 << 18;
/// Words of eight bytes of an item in a file, its position among them.
const WORDS: usize = 8;
const ITEM_BYTES: u64 = (WORDS * size_of::<u64>()) as u64;
/// Bytes of a piece read at once, about 28 KiB as items. So 10^8 items, 400 pieces, take 11 MiB.
const READ_BYTES: u64 = 1 << 14;
const NONE: u64 = u64::MAX;

type Located<T> = (T, Position);

/// Items by time.
pub(crate) enum TimeOrder<T> {
    Window(Window<T>),
    Merge(Merge<T>),
}

impl<T: Spill> TimeOrder<T> {
    /// Order that takes the earliest of the next `items` items first.
    pub fn window(items: usize) -> Self {
        Self::Window(Window::of(items))
    }

    /// Order that takes the earliest of all items first.
    pub fn merge() -> Self {
        Self::Merge(Merge { piece: Vec::new(), pieces: Pieces::default(), merged: None })
    }

    /// True if an item may be missing that comes before the next one.
    pub fn wants_more(&self) -> bool {
        match self {
            Self::Window(window) => !window.is_full(),
            Self::Merge(merge) => merge.merged.is_none(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Window(window) => window.waiting.len() == 0,
            Self::Merge(merge) => merge.merged.as_ref().is_some_and(Merged::is_empty),
        }
    }

    pub fn push(&mut self, located: Located<T>) -> Result<(), Stop> {
        match self {
            Self::Window(window) => window.push(located),
            Self::Merge(merge) => merge.push(located).map_err(Stop::TemporaryFile)?,
        }
        Ok(())
    }

    /// The next item; after the last `push`, or when no more are wanted.
    pub fn pop(&mut self) -> Result<Option<Located<T>>, Stop> {
        match self {
            Self::Window(window) => Ok(window.pop()),
            Self::Merge(merge) => merge.pop().map_err(Stop::TemporaryFile),
        }
    }

    /// True if an item came too late for the window, and so behind later ones.
    pub fn is_too_short(&self) -> bool {
        matches!(self, Self::Window(window) if window.is_too_short())
    }
}

/// See [`TimeOrder::window`].
pub(crate) struct Window<T> {
    waiting: ReorderBuffer<Located<T>>,
    items: usize,
    last: SimTime,
    is_too_short: bool,
}

impl<T: Timed> Window<T> {
    /// Order that takes the earliest of the next `items` items first.
    pub fn of(items: usize) -> Self {
        let waiting = ReorderBuffer::default();
        Self { waiting, items, last: SimTime::ZERO, is_too_short: false }
    }

    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.items
    }

    #[inline]
    pub fn push(&mut self, located: Located<T>) {
        self.waiting.push(located.0.time(), located);
    }

    /// True if an item came too late, and so behind later ones.
    pub fn is_too_short(&self) -> bool {
        self.is_too_short
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Located<T>> {
        let located = self.waiting.pop()?;
        let time = located.0.time();
        self.is_too_short |= time < self.last;
        self.last = self.last.max(time);
        Some(located)
    }
}

/// See [`TimeOrder::merge`].
pub(crate) struct Merge<T> {
    piece: Vec<Located<T>>,
    pieces: Pieces,
    /// From the first `pop` on.
    merged: Option<Merged<T>>,
}

impl<T: Spill> Merge<T> {
    fn push(&mut self, located: Located<T>) -> io::Result<()> {
        self.piece.push(located);
        if self.piece.len() == PIECE_ITEMS {
            self.sort_piece();
            self.pieces.add(&self.piece)?;
            self.piece.clear();
        }
        Ok(())
    }

    /// A stable sort: of equal times the item that came first stays first.
    fn sort_piece(&mut self) {
        self.piece.sort_by_key(|(item, _)| item.time());
    }

    fn pop(&mut self) -> io::Result<Option<Located<T>>> {
        if self.merged.is_none() {
            self.sort_piece();
            let last = std::mem::take(&mut self.piece).into_iter();
            self.merged = Some(Merged::new(std::mem::take(&mut self.pieces), last)?);
        }
        self.merged.as_mut().map_or(Ok(None), Merged::pop)
    }
}

/// Sorted pieces in a file that has no name.
#[derive(Default)]
struct Pieces {
    file: Option<File>,
    /// First byte of each piece, and the end of the last.
    bounds: Vec<u64>,
}

impl Pieces {
    fn add<T: Spill>(&mut self, piece: &[Located<T>]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                self.bounds.push(0);
                none.insert(tempfile::tempfile()?)
            }
        };
        let mut writer = BufWriter::new(file);
        for located in piece {
            writer.write_all(&to_bytes(located))?;
        }
        writer.flush()?;
        let begin = self.bounds.last().copied().unwrap_or_default();
        self.bounds.push(begin + piece.len() as u64 * ITEM_BYTES);
        Ok(())
    }
}

fn to_bytes<T: Spill>((item, at): &Located<T>) -> [u8; ITEM_BYTES as usize] {
    let [a, b, c, d, e] = item.to_words();
    let place = [at.record, at.line.unwrap_or(NONE), at.offset_bytes.unwrap_or(NONE)];
    let mut bytes = [0; ITEM_BYTES as usize];
    let words = [a, b, c, d, e].into_iter().chain(place);
    for (to, word) in bytes.chunks_exact_mut(size_of::<u64>()).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn from_bytes<T: Spill>(bytes: &[u8]) -> Located<T> {
    let word = |at: usize| {
        let bytes = &bytes[at * size_of::<u64>()..][..size_of::<u64>()];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    };
    let at = Position {
        record: word(5),
        line: Some(word(6)).filter(|&value| value != NONE),
        offset_bytes: Some(word(7)).filter(|&value| value != NONE),
    };
    (T::from_words([0, 1, 2, 3, 4].map(word)), at)
}

/// The items of all pieces by time.
struct Merged<T> {
    file: Option<File>,
    readers: Vec<PieceReader<T>>,
    /// The last piece was never written.
    last: vec::IntoIter<Located<T>>,
    /// Time and piece of the next item of each; of equal times the earlier piece's comes first.
    heads: BinaryHeap<Reverse<(SimTime, usize)>>,
}

/// A piece of the file that is read bit by bit.
struct PieceReader<T> {
    next_byte: u64,
    end: u64,
    read: vec::IntoIter<Located<T>>,
}

impl<T: Spill> Merged<T> {
    fn new(pieces: Pieces, last: vec::IntoIter<Located<T>>) -> io::Result<Self> {
        let readers = pieces
            .bounds
            .windows(2)
            .map(|bounds| PieceReader {
                next_byte: bounds[0],
                end: bounds[1],
                read: Vec::new().into_iter(),
            })
            .collect();
        let mut merged = Self { file: pieces.file, readers, last, heads: BinaryHeap::new() };
        for piece in 0..=merged.readers.len() {
            merged.show(piece)?;
        }
        Ok(merged)
    }

    fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Puts the time of the piece's next item among the heads.
    fn show(&mut self, piece: usize) -> io::Result<()> {
        let items = match self.readers.get_mut(piece) {
            Some(reader) => {
                if reader.read.as_slice().is_empty()
                    && let Some(file) = &mut self.file
                {
                    reader.fill(file)?;
                }
                &reader.read
            }
            None => &self.last,
        };
        if let Some((item, _)) = items.as_slice().first() {
            self.heads.push(Reverse((item.time(), piece)));
        }
        Ok(())
    }

    fn pop(&mut self) -> io::Result<Option<Located<T>>> {
        let Some(Reverse((_, piece))) = self.heads.pop() else { return Ok(None) };
        let located = match self.readers.get_mut(piece) {
            Some(reader) => reader.read.next(),
            None => self.last.next(),
        };
        self.show(piece)?;
        Ok(located)
    }
}

impl<T: Spill> PieceReader<T> {
    /// Reads the next items of the piece, none at its end.
    fn fill(&mut self, file: &mut File) -> io::Result<()> {
        let mut bytes = vec![0; READ_BYTES.min(self.end - self.next_byte) as usize];
        file.seek(SeekFrom::Start(self.next_byte))?;
        file.read_exact(&mut bytes)?;
        self.next_byte += bytes.len() as u64;
        let items = bytes.chunks_exact(ITEM_BYTES as usize).map(from_bytes).collect::<Vec<_>>();
        self.read = items.into_iter();
        Ok(())
    }
}

/// A source whose records are delivered by arrival.
pub(crate) struct Ordered<S> {
    inner: S,
    order: TimeOrder<Record>,
    has_ended: bool,
    at: Position,
}

impl<S: Source> Ordered<S> {
    pub fn new(inner: S, order: TimeOrder<Record>) -> Self {
        let at = inner.position();
        Self { inner, order, has_ended: false, at }
    }

    /// Reads until enough records wait.
    fn fill(&mut self) -> Result<(), Stop> {
        while !self.has_ended && self.order.wants_more() {
            match self.inner.next()? {
                Some(record) => self.order.push((record, self.inner.position()))?,
                None => self.has_ended = true,
            }
        }
        Ok(())
    }
}

impl<S: Source> Source for Ordered<S> {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        let filled = self.fill();
        // An error, and the end, are where the trace was read; a record is where it was found.
        self.at = self.inner.position();
        filled?;
        Ok(self.order.pop()?.map(|(record, position)| {
            self.at = position;
            record
        }))
    }

    fn position(&self) -> Position {
        self.at
    }

    fn left_out(&self) -> LeftOutRows {
        self.inner.left_out()
    }

    fn holds(&self) -> Option<String> {
        self.inner.holds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Extent;
    use freewheel_units::{Op, Prng};

    fn item(time: u64, number: u64) -> Located<Record> {
        let at = Position { record: number, line: Some(number), offset_bytes: None };
        (Extent::NONE.request(SimTime::from_ns(time), Op::Flush, 7), at)
    }

    fn in_order(times: &[u64], mut order: TimeOrder<Record>) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        let mut take = |order: &mut TimeOrder<Record>| {
            order.pop().unwrap().map(|(record, at)| out.push((record.arrival.ns(), at.record)))
        };
        for (number, &time) in times.iter().enumerate() {
            if !order.wants_more() {
                take(&mut order);
            }
            order.push(item(time, number as u64)).unwrap();
        }
        while take(&mut order).is_some() {}
        assert!(order.is_empty());
        out
    }

    #[test]
    fn merge_over_files_is_stable_sort() {
        let mut prng = Prng::new(1, "times");
        let times: Vec<u64> = (0..PIECE_ITEMS * 5 / 2).map(|_| prng.below(100_000)).collect();
        let mut expected: Vec<(u64, u64)> =
            times.iter().zip(0..).map(|(&time, number)| (time, number)).collect();
        expected.sort_by_key(|&(time, _)| time);
        assert!(in_order(&times, TimeOrder::merge()) == expected);
    }

    #[test]
    fn window_reports_being_too_short() {
        let late = [10, 20, 30, 5];
        let mut order = TimeOrder::window(3);
        assert!(in_order(&late, TimeOrder::window(4)).is_sorted());
        for (number, &time) in late.iter().enumerate() {
            if !order.wants_more() {
                order.pop().unwrap();
            }
            order.push(item(time, number as u64)).unwrap();
        }
        assert!(!order.is_too_short());
        order.pop().unwrap();
        assert!(order.is_too_short());
    }
}
