//! The requests of a stream of events of a block layer.

use freewheel_units::grouped;

use super::block_event::BlockEvent;
use super::merging::{LayerCounts, Merging};
use super::pairing::Pairing;
use super::{ClockRuns, EventTimes, Found, Position, RunOptions, Source, Stop, TimeOrder};
use crate::Record;

/// Events that wait for an earlier one. Processors hand over their records in turns, in pieces of
/// at most 512 KiB, which is about 11,000 events.
const WINDOW_EVENTS: usize = 1 << 16;

pub(crate) trait EventStream: Send {
    /// The next event; `None` at the end.
    fn next(&mut self) -> Result<Option<BlockEvent>, Stop>;

    /// Place of that event.
    fn position(&self) -> Position;

    /// True if the end of another recording stands in front of it.
    fn begins_run(&self) -> bool {
        false
    }
}

/// Order in which the events of a source are put.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventOrder {
    /// Rule that tells recordings apart which begin their clock again; `None` where one clock holds for
    /// all.
    pub recordings: Option<RunOptions>,
    /// True if events lie farther out of order than a window reaches.
    pub needs_merge: bool,
    pub deliver: Deliver,
}

/// Requests of a block layer that are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deliver {
    Queued,
    /// Queued requests, with counts of the merged and issued ones.
    QueuedCounted,
    Issued,
}

/// The requests of a stream of events.
pub(crate) struct EventSource<E> {
    events: E,
    runs: Option<ClockRuns<BlockEvent>>,
    order: TimeOrder<BlockEvent>,
    deliver: Deliver,
    merging: Merging,
    pairing: Pairing,
    has_ended: bool,
    at: Position,
}

impl<E: EventStream> EventSource<E> {
    pub fn new(events: E, order: EventOrder) -> Self {
        let runs = order.recordings.map(ClockRuns::new);
        let deliver = order.deliver;
        let order =
            if order.needs_merge { TimeOrder::merge() } else { TimeOrder::window(WINDOW_EVENTS) };
        let (merging, pairing) = (Merging::default(), Pairing::default());
        let at = events.position();
        Self { events, runs, order, deliver, merging, pairing, has_ended: false, at }
    }

    /// The next event on the clock of all recordings.
    fn read(&mut self) -> Result<Option<(BlockEvent, Position)>, Stop> {
        let events = &mut self.events;
        let mut found = || {
            let event = events.next()?;
            let (at, begins) = (events.position(), events.begins_run());
            Ok(event.map(|item| Found { item, at, begins }))
        };
        match &mut self.runs {
            Some(runs) => runs.next(found),
            None => Ok(found()?.map(|found| (found.item, found.at))),
        }
    }

    /// Reads an event, or takes one out of those that wait for an earlier one.
    fn step(&mut self) -> Result<(), Stop> {
        if !self.has_ended && self.order.wants_more() {
            match self.read()? {
                Some(event) => self.order.push(event)?,
                None => self.has_ended = true,
            }
        } else if let Some((event, at)) = self.order.pop()? {
            if self.deliver != Deliver::Issued {
                self.pairing.observe(&event, at);
            }
            if self.deliver != Deliver::Queued {
                self.merging.observe(event, at);
                self.pass_on(false);
            }
        }
        Ok(())
    }

    /// Takes the events that wait for no other out of the line, in which requests become those issued.
    fn pass_on(&mut self, has_ended: bool) {
        while let Some((event, at)) = self.merging.pop(has_ended) {
            if self.deliver == Deliver::Issued {
                self.pairing.observe(&event, at);
            }
        }
    }
}

impl<E: EventStream> Source for EventSource<E> {
    fn next(&mut self) -> Result<Option<Record>, Stop> {
        loop {
            let is_over = self.has_ended && self.order.is_empty();
            if is_over {
                self.pass_on(true);
            }
            if let Some((record, at)) = self.pairing.pop(is_over) {
                self.at = at;
                return Ok(Some(record.checked()?));
            }
            let step = if is_over { Ok(()) } else { self.step() };
            // An error, and the end, are where the trace was read.
            self.at = self.events.position();
            if is_over {
                return Ok(None);
            }
            step?;
        }
    }

    fn position(&self) -> Position {
        self.at
    }

    fn event_times(&self) -> Option<EventTimes> {
        let (runs, second) =
            self.runs.as_ref().map_or((1, None), |runs| (runs.runs(), runs.second()));
        Some(EventTimes { runs, second, needs_merge: self.order.is_too_short() })
    }

    fn layers(&self) -> Option<LayerCounts> {
        (self.deliver != Deliver::Queued).then(|| self.merging.counts())
    }

    fn holds(&self) -> Option<String> {
        let completions = self.pairing.unmatched().completions;
        (completions > 0).then(|| {
            let s = if completions == 1 { "" } else { "s" };
            format!(
                "it holds {} completion{s}, and of no request the queueing or the issue",
                grouped(completions)
            )
        })
    }
}
