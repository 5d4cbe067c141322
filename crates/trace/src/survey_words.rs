//! What a first pass found out, in words for tables and findings.

use freewheel_units::{SimDuration, grouped};

use crate::format::Numbers;
use crate::source::LeftOutRows;
use crate::survey::{NumbersFound, NumbersReason, Survey};

impl Survey {
    /// How recordings follow one another, where there are several.
    pub fn recordings_in_words(&self) -> Option<String> {
        let at = self.second_recording_at.unwrap_or_default();
        (self.recordings > 1).then(|| {
            format!(
                "{}, as the clock starts again (first at line or record {}): one after another",
                grouped(self.recordings),
                grouped(at)
            )
        })
    }

    /// What was done to requests out of order, where there are some.
    pub fn moved_in_words(&self) -> Option<String> {
        let by = spaced(self.moved_ns_max);
        let requests = match self.moved_requests {
            0 => return None,
            1 => "1 request lies".to_owned(),
            some => format!("{} requests lie", grouped(some)),
        };
        Some(format!("{requests} behind later ones in the file, by up to {by}"))
    }

    /// The step of a coarse clock, as `1 s`.
    pub fn granule_in_words(&self) -> Option<String> {
        self.granule_ns.map(spaced)
    }
}

/// A time with a blank before its unit.
fn spaced(ns: u64) -> String {
    let text = SimDuration::from_ns(ns).to_string();
    let unit = text.find(char::is_alphabetic).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

impl NumbersFound {
    /// What numbers name, and why.
    pub fn in_words(&self) -> String {
        let name = match self.name {
            Numbers::Objects => "objects, each with a place of its own",
            Numbers::Addresses => "blocks of 512 bytes",
        };
        let because = match self.because {
            NumbersReason::Asked => "as asked",
            NumbersReason::Overlap => "as they reach over the numbers that follow",
            NumbersReason::Unaligned => "as whole pages begin at any number",
            NumbersReason::BeyondDisks => "as some lie beyond the end of any disk",
            NumbersReason::Aligned => "as nothing speaks for objects",
        };
        format!("{name}, {because}")
    }
}

impl LeftOutRows {
    /// What was left out, where there is something.
    pub fn in_words(&self) -> Option<String> {
        let part = |rows: u64, what: &str| (rows > 0).then(|| format!("{} {what}", grouped(rows)));
        let parts = [
            part(self.cache_hits, "served by a cache in front of the disk"),
            part(self.empty, "of size 0"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}
