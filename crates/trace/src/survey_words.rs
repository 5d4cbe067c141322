//! Results of a first pass, in words for tables and findings.

use freewheel_units::grouped;

use crate::format::{Layer, Numbers};
use crate::scan::TimeUnit;
use crate::source::LeftOutRows;
use crate::survey::{LayersFound, NumbersFound, NumbersReason, Survey};

impl Survey {
    /// Order of the recordings, where there are several.
    pub fn recordings_in_words(&self) -> Option<String> {
        let at = grouped(self.second_recording_at.unwrap_or_default());
        let before = match self.moved_requests {
            0 => String::new(),
            some => format!(
                "; {} have times before the latest in front of them, by up to {}",
                requests(some),
                spaced(self.moved_ns_max)
            ),
        };
        (self.recordings > 1).then(|| {
            format!(
                "{}, as the clock starts again (the second from line or record {at} on): one after another{before}",
                grouped(self.recordings)
            )
        })
    }

    /// Treatment of requests that lie out of order within their recording, where there are some.
    pub fn sorted_in_words(&self) -> Option<String> {
        let by = spaced(self.sorted_ns_max);
        (self.sorted_requests > 0).then(|| {
            format!("{} behind later ones, by up to {by}: sorted", requests(self.sorted_requests))
        })
    }

    /// The step of a coarse clock, as `1 s`.
    pub fn granule_in_words(&self) -> Option<String> {
        self.granule_ns.map(spaced)
    }
}

fn requests(count: u64) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} request{s}", grouped(count))
}

/// A time in the longest unit that it fills, with three decimals at most.
fn spaced(ns: u64) -> String {
    let unit = TimeUnit::ALL.into_iter().find(|unit| ns >= unit.ns());
    let unit = unit.unwrap_or(TimeUnit::Nanoseconds);
    let text = format!("{:.3}", ns as f64 / unit.ns() as f64);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

impl NumbersFound {
    /// Meaning of numbers, and the reason.
    pub fn in_words(&self) -> String {
        let name = match self.name {
            Numbers::Objects => "objects, each with a place of its own",
            Numbers::Addresses => "blocks of 512 bytes",
        };
        format!("{name}, {}", self.because.in_words())
    }

    /// Reason why numbers that count as addresses may be those of objects, with the way out; none where
    /// little speaks for it.
    pub fn doubt_in_words(&self) -> Option<String> {
        if self.name != Numbers::Addresses {
            return None;
        }
        if let Some(against) = self.against {
            return Some(format!(
                "Numbers count as addresses of blocks, as asked, and look like numbers of objects, {}. As addresses, objects share memory, and too few reads miss: leave `--addresses` out, or give `--objects`.",
                against.in_words()
            ));
        }
        (self.reached_over >= DOUBTFUL).then(|| {
            format!(
                "{:.1} % of the numbers reach over another one less than 4 KiB behind, as few requests to a disk do. They count as addresses of blocks; if they name objects, give `--objects`.",
                100.0 * self.reached_over
            )
        })
    }
}

/// From this share of numbers that reach over others on, they may be those of objects.
const DOUBTFUL: f64 = 0.01;

impl NumbersReason {
    fn in_words(self) -> &'static str {
        match self {
            Self::Asked => "as asked",
            Self::Overlap => "as they reach over the numbers that follow",
            Self::Unaligned => "as whole pages begin at any number",
            Self::OddSizes => "as most sizes are no whole blocks of 512 bytes",
            Self::BeyondDisks => "as some lie beyond the end of any disk",
            Self::Aligned => "as nothing speaks for objects (`--objects` decides)",
        }
    }
}

impl LayersFound {
    /// Numbers of requests at each layer, and the layer that is read.
    pub fn in_words(&self) -> String {
        let [queued, merged, issued] =
            [self.counts.queued, self.counts.merged, self.counts.issued].map(grouped);
        let read = match self.read {
            Layer::Issued => "read as issued (`--layer queued` reads them as queued)",
            Layer::Auto | Layer::Queued => "read as queued (`--layer issued` reads them as issued)",
        };
        format!(
            "{queued} queued, {merged} merged into others, {issued} issued to the drive; {read}"
        )
    }
}

impl LeftOutRows {
    /// Requests that were left out, where there are some.
    pub fn in_words(&self) -> Option<String> {
        let parts = [
            part(self.cache_hits, "served by a cache in front of the disk"),
            part(self.empty, "of size 0"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn part(rows: u64, what: &str) -> Option<String> {
    (rows > 0).then(|| format!("{} {what}", grouped(rows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_use_longest_filled_unit() {
        let times = [7_000_000_000, 15_625_000, 2_999_987_783_363, 1_500, 0];
        let says = ["7 s", "15.625 ms", "2999.988 s", "1.5 us", "0 ns"];
        assert_eq!(times.map(spaced), says.map(str::to_owned));
    }
}
