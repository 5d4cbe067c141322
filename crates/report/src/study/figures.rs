//! The pictures of a study as data, for findings and for the sections of its page.

use std::collections::BTreeSet;

use freewheel_study::figure::{Axes, Figure, HeadTimeBar, HeadUseBar, Line, Series};
use freewheel_study::{PolicyRun, ScrubEstimate, Study};
use freewheel_trace::{RateBin, SizeSummary};
use freewheel_units::Bytes;

use crate::numbers::percent;

/// The head's time in a run.
pub(super) fn head_time_bar(run: &PolicyRun) -> HeadTimeBar {
    HeadTimeBar {
        label: run.title.clone(),
        head_time: run.result.head_time,
        writing_back_rotate_ns: run.writing_back_rotate_ns(),
        rotate_share_elsewhere: None,
        note: format!("busy {} of the time", percent(run.result.utilisation)),
    }
}

/// Figures 8 (a) and (c) of osdi00, for this load.
pub(super) fn head_use(estimate: &ScrubEstimate) -> Figure {
    let head_use = estimate.head_use;
    let bar = |label: &str, with: bool| HeadUseBar { label: label.into(), head_use, with };
    Figure::HeadUse { bars: vec![bar("requests alone", false), bar("with the scrub", true)] }
}

/// Requests a second over the trace.
pub(super) fn request_rate(study: &Study) -> Figure {
    over_the_trace(study, "requests/s", &[("requests", |bin| bin.requests as f64)])
}

/// Bytes a second over the trace.
pub(super) fn byte_rate(study: &Study) -> Figure {
    over_the_trace(
        study,
        "MB/s",
        &[
            ("read", |bin| bin.bytes_read as f64 / 1e6),
            ("written", |bin| bin.bytes_written as f64 / 1e6),
        ],
    )
}

/// A quantity of a bin of the trace's time.
type BinValue = fn(&RateBin) -> f64;

fn over_the_trace(study: &Study, y: &'static str, values: &[(&str, BinValue)]) -> Figure {
    let rate = &study.trace.rate;
    let seconds = rate.bin_ns as f64 / 1e9;
    let axes = Axes { x: "time in the trace, s", y, log_x: false };
    Figure::lines(
        values
            .iter()
            .map(|(name, value)| {
                let bins = rate.bins.iter().enumerate();
                Line {
                    name: (*name).into(),
                    points: bins
                        .map(|(i, bin)| ((i as f64 + 0.5) * seconds, value(bin) / seconds))
                        .collect(),
                    dots: false,
                }
            })
            .collect(),
        axes,
    )
}

/// Shares of reads and of writes by size.
pub(super) fn request_sizes(study: &Study) -> Figure {
    let sizes = &study.trace.sizes;
    let ends: BTreeSet<u64> = sizes
        .read
        .buckets
        .iter()
        .chain(&sizes.write.buckets)
        .map(|bucket| bucket.up_to_bytes)
        .collect();
    let shares = |sizes: &SizeSummary| -> Vec<f64> {
        ends.iter()
            .map(|end| {
                let bucket = sizes.buckets.iter().find(|bucket| bucket.up_to_bytes == *end);
                bucket.map_or(0, |bucket| bucket.requests) as f64 / sizes.requests.max(1) as f64
            })
            .collect()
    };
    Figure::Columns {
        labels: ends.iter().map(|&end| Bytes::new(end).to_string()).collect(),
        series: vec![
            Series { name: "reads", shares: shares(&sizes.read) },
            Series { name: "writes", shares: shares(&sizes.write) },
        ],
    }
}
