//! Work of the caches before the drives, in words: the same in a terminal and on a page.

use freewheel_model::electronics::MediaCacheWork;
use freewheel_sim::{CacheWork, PrefetchWorth, RunResult};
use freewheel_units::{Bytes, grouped};

use crate::numbers::{percent, span};

/// A subject and words about it, for each part that was used; empty without caches.
pub fn cache_rows(result: &RunResult) -> Vec<(&'static str, String)> {
    let mut rows: Vec<_> = result.media_cache.iter().map(media_cache).collect();
    let Some(work) = &result.cache else { return rows };
    let seconds = result.elapsed_ns as f64 / 1e9;
    rows.extend([("cache: reads", reads(work)), ("cache: writes", writes(work))]);
    rows.extend(prefetches(work));
    if work.at_risk_max_bytes > 0 {
        rows.push(("at risk", at_risk(work, seconds)));
    }
    rows
}

/// Work of the media cache of a drive that manages shingled tracks itself.
fn media_cache(work: &MediaCacheWork) -> (&'static str, String) {
    let words = format!(
        "{} writes to it and {} straight to bands; {} bands rewritten in {}, {} of them for a write that waited; {} left in it",
        grouped(work.cached_writes),
        grouped(work.straight_writes),
        grouped(work.bands_cleaned),
        span(work.cleaning_ns as f64 / 1e9),
        grouped(work.bands_waited_for),
        human(work.cached_bytes)
    );
    ("media cache", words)
}

fn reads(work: &CacheWork) -> String {
    let hits = work.reads - work.read_misses;
    format!(
        "{} of {} hit ({}), {} of them on blocks on their way",
        grouped(hits),
        grouped(work.reads),
        share(hits, work.reads),
        grouped(work.reads_of_blocks_in_flight)
    )
}

fn writes(work: &CacheWork) -> String {
    let overwrites = work.writes - work.write_misses;
    let mut words = format!(
        "{} of {} overwrote dirty blocks ({}), {} waited for room, {} destages",
        grouped(overwrites),
        grouped(work.writes),
        share(overwrites, work.writes),
        grouped(work.stalled_writes),
        grouped(work.destages)
    );
    if work.in_gaps_bytes > 0 {
        words += &format!(", {} in rotational gaps", human(work.in_gaps_bytes));
    }
    words
}

fn prefetches(work: &CacheWork) -> impl Iterator<Item = (&'static str, String)> {
    let kinds = [
        ("prefetched with reads", &work.prefetch.with_reads),
        ("prefetched when idle", &work.prefetch.idle),
        ("prefetched free blocks", &work.prefetch.free_blocks),
        ("prefetched before seeks", &work.prefetch.just_in_time_seek),
    ];
    let used = kinds.into_iter().filter(|(_, worth)| worth.brought_bytes > 0);
    used.map(|(kind, worth)| (kind, prefetched(worth)))
}

fn prefetched(worth: &PrefetchWorth) -> String {
    let mut words = format!(
        "{}, {} of it used, {} evicted unused, {} reads waited for it",
        human(worth.brought_bytes),
        share(worth.used_bytes, worth.brought_bytes),
        share(worth.wasted_bytes, worth.brought_bytes),
        grouped(worth.late_reads)
    );
    if worth.disk_ns > 0 {
        words += &format!(", {} of head time", span(worth.disk_ns as f64 / 1e9));
    }
    words
}

/// Data that a power cut would lose if the memory were volatile.
fn at_risk(work: &CacheWork, seconds: f64) -> String {
    let mean = work.at_risk_byte_ns as f64 / 1e9 / seconds.max(1e-9);
    format!(
        "{} on average in memory alone, {} at most",
        human(mean as u64),
        human(work.at_risk_max_bytes)
    )
}

fn human(bytes: u64) -> String {
    Bytes::new(bytes).human()
}

fn share(part: u64, whole: u64) -> String {
    percent(part as f64 / whole.max(1) as f64)
}
