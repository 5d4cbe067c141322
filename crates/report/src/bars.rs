//! Horizontal bars of parts of a whole.

use freewheel_study::figure::{HeadTimeBar, HeadUseBar};
use freewheel_units::four_digits;
use maud::{Markup, html};

use crate::drawing::length;
use crate::legend::{area, legend};
use crate::numbers::percent;

/// A kind of part, with the class of its colour.
struct Kind {
    name: &'static str,
    colour: &'static str,
}

/// The parts of head time. What is wasted comes first, so that it is easy to compare.
const HEAD_TIME: [Kind; 4] = [
    Kind { name: "rotational latency", colour: "rotate" },
    Kind { name: "latency while writing back", colour: "rotate-back" },
    Kind { name: "seek", colour: "seek" },
    Kind { name: "transfer", colour: "transfer" },
];
/// The parts of all time: latency first again, then the other needs of requests, then free work.
const HEAD_USE: [Kind; 6] = [
    Kind { name: "rotational latency", colour: "rotate" },
    Kind { name: "seek", colour: "seek" },
    Kind { name: "extra seek", colour: "seek-extra" },
    Kind { name: "transfer", colour: "transfer" },
    Kind { name: "free transfer", colour: "transfer-free" },
    Kind { name: "work in idle time", colour: "idle-work" },
];
const PASSES: [Kind; 3] = [
    Kind { name: "transactions", colour: "seek" },
    Kind { name: "reads of cleaning", colour: "rotate" },
    Kind { name: "copies of cleaning", colour: "bus" },
];

/// Shares of head time: osdi00's figure 2 and its kin.
pub(crate) fn head_time(all: &[HeadTimeBar]) -> Markup {
    bars(&HEAD_TIME, &all.iter().map(bar).collect::<Vec<_>>())
}

fn bar(bar: &HeadTimeBar) -> Bar {
    let time = &bar.head_time;
    let unusable = bar.writing_back_rotate_ns as f64 / time.total_ns().max(1) as f64;
    let usable = time.rotate_share() - unusable;
    Bar {
        label: bar.label.clone(),
        shares: vec![usable, unusable, time.seek_share(), time.transfer_share()],
        whole: 1.0,
        mark: bar.rotate_share_elsewhere,
        note: bar.note.clone(),
    }
}

/// Shares of all time: osdi00's figures 8 (a) and (c).
pub(crate) fn head_use(all: &[HeadUseBar]) -> Markup {
    bars(
        &HEAD_USE,
        &all.iter()
            .map(|bar| {
                let head = &bar.head_use;
                let (left, extra, free, idle_work) = if bar.with {
                    (head.rotate_left(), head.extra_seek, head.free_transfer, head.idle_work)
                } else {
                    (head.rotate, 0.0, 0.0, 0.0)
                };
                let shares = vec![left, head.seek, extra, head.transfer, free, idle_work];
                let idle = 1.0 - shares.iter().sum::<f64>();
                let note = format!("not busy {}", percent(idle));
                Bar { label: bar.label.clone(), shares, whole: 1.0, mark: None, note }
            })
            .collect::<Vec<_>>(),
    )
}

/// Time of one pass of PostMark's transactions by use, in seconds.
pub(crate) struct PassBar {
    pub label: String,
    /// Transactions without cleaning.
    pub work: f64,
    pub reading: f64,
    pub copying: f64,
    /// Text to the right of the bar.
    pub note: String,
}

/// Times, of which the longest has the whole width.
pub(crate) fn passes(all: &[PassBar]) -> Markup {
    let totals: Vec<f64> = all.iter().map(|bar| times(bar).iter().sum()).collect();
    let longest = totals.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    bars(
        &PASSES,
        &all.iter()
            .zip(&totals)
            .map(|(bar, total)| Bar {
                label: bar.label.clone(),
                shares: times(bar).iter().map(|time| time / longest).collect(),
                whole: total / longest,
                mark: None,
                note: bar.note.clone(),
            })
            .collect::<Vec<_>>(),
    )
}

fn times(bar: &PassBar) -> [f64; 3] {
    [bar.work, bar.reading, bar.copying]
}

/// Values, of which the largest has the whole width.
pub(crate) fn values(quantity: &'static str, all: &[(String, f64)]) -> Markup {
    let longest = all.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |(label, value): &(String, f64)| Bar {
        label: label.clone(),
        shares: vec![value / longest],
        // Shares would repeat the lengths: the value itself is to the right.
        whole: f64::INFINITY,
        mark: None,
        note: four_digits(*value),
    };
    let kind = Kind { name: quantity, colour: "seek" };
    bars(&[kind], &all.iter().map(bar).collect::<Vec<_>>())
}

/// A horizontal bar of shares of a whole.
struct Bar {
    label: String,
    /// Parts of the width.
    shares: Vec<f64>,
    /// The part of the width that labels are shares of.
    whole: f64,
    /// A share that is marked.
    mark: Option<f64>,
    /// Text to the right of the bar.
    note: String,
}

/// Bars under their legend. What does not happen in any of them has no name either.
fn bars(kinds: &[Kind], all: &[Bar]) -> Markup {
    let happening: Vec<usize> = (0..kinds.len()).filter(|&part| happens(part, all)).collect();
    let keys: Vec<_> =
        happening.iter().map(|&part| area(kinds[part].name, kinds[part].colour)).collect();
    html! {
        (legend(&keys))
        div.bars {
            @for bar in all {
                div {
                    span.name { (bar.label) }
                    (one(&parts_of(bar, &happening, kinds), bar.mark))
                    span.note { (bar.note) }
                }
            }
        }
    }
}

fn happens(part: usize, all: &[Bar]) -> bool {
    all.iter().any(|bar| bar.shares[part] != 0.0)
}

fn parts_of(bar: &Bar, happening: &[usize], kinds: &[Kind]) -> Vec<BarPart> {
    happening.iter().map(|&part| part_of(bar, part, &kinds[part])).collect()
}

fn part_of(bar: &Bar, part: usize, kind: &Kind) -> BarPart {
    /// Smaller parts have no room for words.
    const WORDS_FROM: f64 = 0.09;
    let share = bar.shares[part];
    let of_whole = share / bar.whole;
    let (says, words) = match bar.whole.is_finite() {
        true if share >= WORDS_FROM => (percent(of_whole), percent(of_whole)),
        true => (percent(of_whole), String::new()),
        false => (bar.note.clone(), String::new()),
    };
    BarPart { says: format!("{} {says}", kind.name), colour: kind.colour, share, words }
}

pub(crate) struct BarPart {
    /// Name and amount of the part, for a pointer and for those who see no colours.
    pub says: String,
    /// Class of its colour.
    pub colour: &'static str,
    /// Part of the width.
    pub share: f64,
    /// Words in it.
    pub words: String,
}

/// A bar, with a line at the share that is marked.
///
/// The picture has no units of its own: widths are shares of it, so that words keep their size.
pub(crate) fn one(parts: &[BarPart], mark: Option<f64>) -> Markup {
    let all = parts.iter().map(|part| part.says.as_str()).collect::<Vec<_>>().join(", ");
    let parts = parts.iter().filter(|part| part.share > 0.0).scan(0.0, |end, part| {
        let begin = *end;
        *end += part.share;
        Some((begin, part))
    });
    html! {
        svg.parts role="img" aria-label=(all) {
            @for (begin, part) in parts {
                g.(part.colour) {
                    title { (part.says) }
                    rect x=(length(begin)) width=(length(part.share)) height="100%" {}
                    @if !part.words.is_empty() {
                        text x=(length(begin + part.share / 2.0)) y="16.5" { (part.words) }
                    }
                }
            }
            @if let Some(share) = mark {
                line x1=(length(share)) x2=(length(share)) y1="0" y2="100%" {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_length_follows_share() {
        let html = values("ms", &[("a".into(), 5.0), ("b".into(), 10.0)]).into_string();
        assert!(html.contains("width=\"50.00%\"") && html.contains("width=\"100.00%\""), "{html}");
        assert!(html.contains("<title>ms 5</title>") && html.contains(">10<"), "{html}");
        assert!(!html.contains(" %"), "{html}");
    }

    #[test]
    fn bar_parts_begin_where_previous_ends() {
        let part =
            |share| BarPart { says: String::new(), colour: "seek", share, words: String::new() };
        let html = one(&[part(0.25), part(0.0), part(0.5)], Some(0.6)).into_string();
        assert!(html.contains("<rect x=\"0.00%\" width=\"25.00%\""), "{html}");
        assert!(html.contains("<rect x=\"25.00%\" width=\"50.00%\""), "{html}");
        assert!(html.contains("<line x1=\"60.00%\""), "{html}");
    }

    #[test]
    fn bar_part_unused_has_no_name() {
        let pass = PassBar {
            label: "pass 1".into(),
            work: 3.0,
            reading: 1.0,
            copying: 0.0,
            note: String::new(),
        };
        let html = passes(&[pass]).into_string();
        assert!(html.contains("reads of cleaning") && !html.contains("copies of cleaning"));
        assert!(html.contains(">75 %<") && html.contains(">25 %<"), "{html}");
    }
}
