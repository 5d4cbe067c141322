//! The frame of every page: one self-contained HTML file with no network references.

use freewheel_sim::config::TraceWorkload;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::finding::Finding;

const STYLE: &str = "
:root { --ink: #1f2933; --faint: #6b7785; --line: #e3e8ee; --paper: #ffffff; --ground: #f4f6f8;
  --accent: #0b6e99; --good: #1b7f5c; --bad: #b3361e; --known: #96630b; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 28px 18px 60px; }
h1 { font-size: 28px; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 20px; margin: 0 0 10px; }
h3 { font-size: 16px; margin: 18px 0 4px; }
p.lead { color: var(--faint); margin: 0 0 22px; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
  padding: 20px 24px; margin: 0 0 18px; }
svg { width: 100%; min-width: 620px; height: auto; display: block; }
ol.findings { padding: 0; margin: 0; list-style: none; counter-reset: finding; }
ol.findings li { counter-increment: finding; padding: 10px 0 10px 44px; position: relative;
  border-top: 1px solid var(--line); }
ol.findings li:first-child { border-top: 0; padding-top: 0; }
ol.findings li::before { content: counter(finding); position: absolute; left: 0; top: 10px;
  width: 28px; height: 28px; border-radius: 50%; background: var(--accent); color: #fff;
  text-align: center; line-height: 28px; font-size: 14px; }
ol.findings li:first-child::before { top: 0; }
ol.findings strong { display: block; }
ol.findings p, div.caution p { margin: 0; }
ol.findings p + p, div.caution p + p { margin-top: 4px; }
div.caution { margin: 0 0 16px; }
.scroll { overflow-x: auto; }
.scroll + .scroll { margin-top: 18px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 8px; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--faint); font-weight: 600; white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
tr.best td { background: #e8f5ef; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 0; font-size: 14px; }
dt { font-weight: 600; }
dd { margin: 0; }
td.words { white-space: normal; text-align: left; }
.inside { color: var(--good); font-weight: 600; }
.known { color: var(--known); font-weight: 600; }
.outside { color: var(--bad); font-weight: 600; }
.note { color: var(--faint); font-size: 14px; margin: 8px 0 0; }
details summary { cursor: pointer; color: var(--accent); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; background: var(--ground);
  padding: 10px; border-radius: 6px; }
";

/// A page with this title, a line below it, and sections.
pub(crate) fn page(title: &str, lead: &str, sections: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " - Freewheel" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (title) }
                    p.lead { (lead) }
                    (sections)
                    p.note { "Freewheel " (env!("CARGO_PKG_VERSION")) ". Every number here is also in the JSON document that the command writes or prints." }
                }
            }
        }
    }
    .into_string()
}

/// A titled part of a page.
pub(crate) fn section(title: &str, content: &Markup) -> Markup {
    html! { section { h2 { (title) } (content) } }
}

/// A finding or caution: each line of its detail is a paragraph.
pub(crate) fn finding(finding: &Finding) -> Markup {
    html! {
        strong { (prose(&finding.headline)) }
        @for line in finding.detail.lines() { p { (prose(line)) } }
    }
}

/// Words in which names that a user types stand between backticks, as for a terminal.
pub(crate) fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    // Between a pair lies every other part; one that is not closed stays as it is.
    let is_code = |at: usize| at % 2 == 1 && at + 1 < parts.len();
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if is_code(at) { code { (part) } }
            @else if at % 2 == 1 { "`" (part) }
            @else { (part) }
        }
    }
}

/// A chart made by [`crate::chart`].
pub(crate) fn chart(svg: &str) -> Markup {
    html! { div.scroll { (PreEscaped(svg)) } }
}

/// A table whose first column is on the left.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> Markup {
    marked_table(head, rows, "")
}

/// Like [`table`], with the row of this name marked.
pub(crate) fn marked_table(head: &[&str], rows: &[Vec<String>], marked: &str) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { @for cell in head { th { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr.best[row.first().is_some_and(|name| name == marked)] {
                            @for cell in row { td { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// What a trace is called in titles.
pub(crate) fn trace_name(trace: &TraceWorkload) -> String {
    trace.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Milliseconds with three significant digits or more.
pub(crate) fn ms(ns: f64) -> String {
    let ms = ns / 1e6;
    let decimals = if ms >= 100.0 {
        0
    } else if ms >= 10.0 {
        1
    } else {
        2
    };
    format!("{ms:.decimals$}")
}

/// Longer times are no statement about a drive: it is replaced before.
pub(crate) const TIME_MAX_S: f64 = 5.0 * 365.25 * 86_400.0;

/// How a longer time is told.
pub(crate) const TOO_LONG: &str = "longer than 5 years";

/// A length of time in the unit people would use.
pub(crate) fn span(seconds: f64) -> String {
    if seconds > TIME_MAX_S {
        return TOO_LONG.into();
    }
    let (unit_seconds, unit) = unit_of(seconds);
    format!("{:.1} {unit}", seconds / unit_seconds)
}

/// The same of what is not known closely, with two digits.
pub(crate) fn about(seconds: f64) -> String {
    if seconds > TIME_MAX_S {
        return TOO_LONG.into();
    }
    let (unit_seconds, unit) = unit_of(seconds);
    let text = format!("{:.1e}", seconds / unit_seconds);
    let value: f64 = text.parse().expect("a number that was just written");
    let decimals = if value < 10.0 { 1 } else { 0 };
    format!("about {value:.decimals$} {unit}")
}

fn unit_of(seconds: f64) -> (f64, &'static str) {
    match seconds {
        s if s >= 2.0 * 86_400.0 => (86_400.0, "days"),
        s if s >= 2.0 * 3_600.0 => (3_600.0, "hours"),
        s if s >= 120.0 => (60.0, "minutes"),
        _ => (1.0, "s"),
    }
}

/// How often a day something comes round, with two digits at least.
pub(crate) fn rounds(a_day: f64) -> String {
    let decimals = match a_day {
        r if r >= 1.0 => 1,
        r if r >= 0.1 => 2,
        r if r >= 0.01 => 3,
        _ => 4,
    };
    format!("{a_day:.decimals$}")
}

/// A share in per cent. One that is not all is not rounded up to all.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if (99.5..100.0).contains(&value) {
        return format!("{:.2} %", (value * 100.0).floor() / 100.0);
    }
    if value > 0.0 && value < 0.001 {
        return "less than 0.001 %".into();
    }
    let decimals = if value.abs() >= 10.0 || value == 0.0 {
        0
    } else if value.abs() >= 0.1 {
        1
    } else {
        3
    };
    format!("{value:.decimals$} %")
}

/// Bytes a second in decimal megabytes, as data sheets give them.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let value = bytes_per_second / 1e6;
    let decimals = if value >= 100.0 {
        0
    } else if value >= 1.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} MB/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_between_backticks_are_code_and_everything_is_escaped() {
        let html = prose("`a < b` and `--x`, 5 > 4, one ` alone").into_string();
        let code = "<code>a &lt; b</code> and <code>--x</code>, 5 &gt; 4, one ` alone";
        assert_eq!(html, code);
    }

    #[test]
    fn what_is_about_so_long_has_two_digits() {
        let days = [989.1, 9.96, 15.7, 2.34].map(|days| about(days * 86_400.0));
        assert_eq!(days, ["about 990 days", "about 10 days", "about 16 days", "about 2.3 days"]);
        assert_eq!([about(7_500.0), about(0.0)], ["about 2.1 hours", "about 0.0 s"]);
    }

    #[test]
    fn a_share_that_is_not_all_is_not_rounded_up_to_all() {
        let shares = [1.0, 0.9999, 0.999_999, 0.994].map(percent);
        assert_eq!(shares, ["100 %", "99.99 %", "99.99 %", "99 %"]);
    }

    #[test]
    fn a_time_beyond_five_years_is_no_number() {
        let days = |days: f64| days * 86_400.0;
        assert_eq!(span(days(1826.0)), "1826.0 days");
        assert_eq!([span(days(46_855.0)), about(days(1827.0))], [TOO_LONG, TOO_LONG]);
    }
}
