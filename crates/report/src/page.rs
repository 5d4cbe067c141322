//! The frame of every page: one self-contained HTML file with no network references.

use std::path::Path;

use freewheel_sim::config::TraceWorkload;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart;
use crate::finding::Finding;

pub(crate) const STYLE: &str = "
:root { --ink: #1f2933; --faint: #5f6b79; --line: #e3e8ee; --paper: #ffffff; --ground: #f4f6f8;
  --accent: #0b6e99; --good: #1b7f5c; --bad: #b3361e; --known: #96630b; --best: #e8f5ef;
  --c0: var(--ink); --c1: #e69f00; --c2: #56b4e9; --c3: #009e73; --c4: #d55e00; --c5: #0072b2;
  --c6: #cc79a7; --c7: #999999; --c8: #8c564b; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.45 system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 20px 18px 32px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 2px; }
h2 { font-size: 18px; line-height: 1.3; margin: 0 0 6px; }
h3 { font-size: 15px; margin: 16px 0 4px; }
p.lead { color: var(--faint); margin: 0 0 12px; }
p.lead strong { color: var(--ink); }
section { container-type: inline-size; background: var(--paper); border: 1px solid var(--line);
  border-radius: 10px; padding: 14px 20px; margin: 0 0 14px; }
div.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 14px; margin: 0 0 14px; }
div.tile { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px; }
div.tile .label { display: block; font-size: 12px; text-transform: uppercase; letter-spacing: .05em;
  color: var(--faint); }
div.tile strong { display: block; font-size: 22px; line-height: 1.3; }
div.tile .words { display: block; font-size: 13px; line-height: 1.4; color: var(--faint); }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 0 14px; }
main > .panels { grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); }
main > .panels > section:last-child:nth-child(odd) { grid-column: 1 / -1; }
svg { width: 100%; height: auto; display: block; }
svg.parts { height: 24px; margin: 6px 0; border-radius: 3px; }
svg.parts rect { fill: var(--part); stroke: var(--paper); stroke-width: .5; }
svg.parts text { fill: #101820; font-size: 12px; text-anchor: middle; }
svg.parts .queue text { fill: #ffffff; }
svg.parts line { stroke: #101820; stroke-width: 2; }
.queue { --part: #56616e; } .waiting { --part: #cdd4dc; } .seek { --part: #5b8fd6; }
.seek-extra { --part: #b9cde8; } .rotate { --part: #e69f00; } .rotate-back { --part: #f6d9ae; }
.transfer { --part: #009e73; } .transfer-free { --part: #8fd3bb; } .idle-work { --part: #cc79a7; }
.processing { --part: #cc79a7; } .bus { --part: #f0e442; }
.c0 { --c: var(--c0); --part: var(--c0); } .c1 { --c: var(--c1); --part: var(--c1); }
.c2 { --c: var(--c2); --part: var(--c2); } .c3 { --c: var(--c3); } .c4 { --c: var(--c4); }
.c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); } .c8 { --c: var(--c8); }
ul.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; list-style: none; padding: 0; margin: 0 0 8px;
  font-size: 13px; }
.key { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin: 0 7px -1px 0;
  background: var(--part); }
.swatch { display: inline-block; width: 18px; height: 0; border-top: 3px solid var(--c); margin: 0 6px 4px 0; }
.swatch.without { border-top: 2px dashed var(--faint); }
.chart .wide svg { max-width: 920px; }
.chart .narrow { display: none; }
div.bars { display: grid; grid-template-columns: fit-content(200px) 1fr fit-content(180px); gap: 0 12px;
  align-items: center; font-size: 14px; }
div.bars > div { display: contents; }
div.bars .name { text-align: right; }
div.bars .note { margin: 0; font-size: 13px; }
div.map { display: grid; grid-template-columns: max-content 1fr; gap: 6px 8px; line-height: 1.2; font-size: 12px; color: var(--faint); }
div.map .names { display: flex; flex-direction: column; justify-content: space-between; text-align: right; }
div.map .times { display: flex; justify-content: space-between; }
div.map svg { height: 160px; }
div.map svg.places { fill: var(--accent); border: 1px solid var(--line); }
div.map svg.tails { height: 64px; border-bottom: 1px solid var(--line); overflow: visible; }
div.map .begin { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 4 3; vector-effect: non-scaling-stroke; }
div.map polyline { fill: none; stroke: var(--c4); stroke-width: 2; vector-effect: non-scaling-stroke; }
table.stages { font-size: 14px; }
table.stages td { padding: 3px 8px; }
table.stages td:first-child { padding-left: 0; white-space: normal; }
table.stages small { color: var(--faint); font-size: 13px; margin-left: 8px; }
ol.ranking { list-style: none; margin: 0 0 8px; padding: 0; }
ol.ranking li { display: grid; grid-template-columns: 7fr 5fr 120px 152px; gap: 0 14px; align-items: center;
  padding: 4px 0; border-top: 1px solid var(--line); }
ol.ranking li:first-child { border-top: 0; }
ol.ranking .name { font-weight: 600; line-height: 1.35; }
ol.ranking small { display: block; font-weight: 400; font-size: 12.5px; line-height: 1.35; color: var(--faint); }
ol.ranking .axis { padding: 0; }
ol.ranking .axis + li { border-top: 0; }
ol.ranking small.warning { color: var(--bad); }
ol.ranking .bar { position: relative; height: 22px; }
ol.ranking .bar * { position: absolute; display: block; }
ol.ranking .bar i { top: 2px; height: 18px; border-radius: 3px; }
ol.ranking .bar .better { background: var(--good); }
ol.ranking .bar .worse { background: var(--bad); }
ol.ranking .bar .doubtful { opacity: .45; }
ol.ranking .bar .same { background: var(--faint); }
ol.ranking .bar .drive { background: var(--accent); }
ol.ranking .bar u { top: 10px; height: 2px; background: var(--ink); box-shadow: 0 0 0 1px var(--paper); }
ol.ranking .bar em { right: -10px; top: 0; font-style: normal; color: var(--ink); }
ol.ranking .bar b { top: -4px; height: 30px; width: 1px; background: var(--faint); }
ol.ranking .value { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; font-weight: 600; }
ol.findings { padding: 0; margin: 0; list-style: none; counter-reset: finding; }
ol.findings > li { counter-increment: finding; padding: 8px 0 8px 40px; position: relative;
  border-top: 1px solid var(--line); }
ol.findings > li:first-child { border-top: 0; padding-top: 0; }
ol.findings > li:last-child { padding-bottom: 0; }
ol.findings > li::before { content: counter(finding); position: absolute; left: 0; top: 8px;
  width: 26px; height: 26px; border-radius: 50%; background: var(--accent); color: var(--paper);
  text-align: center; line-height: 26px; font-size: 14px; }
ol.findings > li:first-child::before { top: 0; }
ol.findings strong { display: block; }
ol.findings p, div.caution p { margin: 0; }
ol.findings p + p, div.caution p + p { margin-top: 4px; }
div.caution { margin: 0 0 16px; }
.scroll { overflow-x: auto; }
.scroll th:first-child, .scroll td:first-child { position: sticky; left: 0; background: var(--paper); }
.scroll + .scroll { margin-top: 18px; }
.scroll td:first-child { min-width: 220px; max-width: 300px; white-space: normal; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 8px; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--faint); font-weight: 600; white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
tr.best td, .scroll tr.best td:first-child { background: var(--best); font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 0; font-size: 14px; }
dt { font-weight: 600; }
dd { margin: 0; }
div.dense table { font-size: 13px; }
.dense th, .dense td { padding: 5px; }
.scroll td small { display: block; font-size: 12.5px; color: var(--faint); }
.scroll td small.warning { color: var(--bad); }
td.words { white-space: normal; text-align: left; min-width: 170px; } th.words { text-align: left; }
.inside { color: var(--good); font-weight: 600; }
.known { color: var(--known); font-weight: 600; }
.outside { color: var(--bad); font-weight: 600; }
section > p { margin: 0 0 8px; }
.note { color: var(--faint); font-size: 13.5px; margin: 6px 0 0; }
section > p.note { margin: 6px 0 4px; }
main > p.note { margin-bottom: 14px; }
details summary { cursor: pointer; color: var(--accent); }
summary h2 { display: inline; font-size: 16px; margin: 0; }
details > summary + * { margin-top: 8px; }
section.folds { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 320px), 1fr)); gap: 6px 20px; }
section.folds > details { min-width: 0; container-type: inline-size; }
section.folds > details[open] { grid-column: 1 / -1; padding-bottom: 12px; }
p.facts { color: var(--faint); font-size: 13.5px; margin: 2px 0 6px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; background: var(--ground);
  padding: 10px; border-radius: 6px; }
.fleet .server { display: flex; gap: 3px; align-items: center; margin: 0 0 3px; width: max-content; }
.fleet .name { width: 90px; font-size: 12px; color: var(--faint); overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.cell { display: inline-block; width: 18px; height: 18px; font-size: 9px; line-height: 17px; text-align: center;
  color: var(--ink); text-decoration: none; border-radius: 3px; border: 1px solid var(--line);
  background: color-mix(in srgb, var(--accent) var(--share, 0%), var(--paper)); }
.cell.overloaded { background: var(--bad); } .cell.overloaded, .cell.dark { color: var(--paper); }
dd { overflow-wrap: anywhere; }
.cell.none { background: repeating-linear-gradient(45deg, var(--line) 0 3px, var(--paper) 3px 6px); }
.legend .cell { margin-bottom: -4px; }
.fleet + ul.legend { margin: 8px 0 0; }
.unnoticed { --part: var(--good); } .noticed { --part: var(--bad); } .endless { --part: #8a95a1; }
p.headline { font-size: 18px; font-weight: 600; line-height: 1.4; margin: 0 0 10px; }
figure { margin: 0 0 10px; }
figcaption { font-size: 14px; font-weight: 600; margin: 0 0 4px; }
svg.plot { font-size: 12.5px; fill: var(--faint); }
svg.plot polyline { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
svg.plot circle, svg.plot .column { fill: var(--c); }
svg.plot .axis { fill: var(--ink); font-size: 13.5px; }
svg.sizes, .sizes svg { max-width: 600px; }
svg.tracks { max-width: 600px; }
svg.tracks circle { fill: var(--c); }
svg.tracks .edge { fill: none; stroke: var(--line); }
svg.plot .grid { stroke: var(--line); }
svg.plot .tick { stroke: var(--faint); }
svg.plot .without { stroke: var(--faint); stroke-width: 1.5; stroke-dasharray: 5 4; }
@container (max-width: 660px) {
  .chart .wide { display: none; }
  .chart .narrow { display: block; }
  ol.ranking li { grid-template: auto 1fr auto / 1fr 130px; gap: 0 10px; align-items: start; }
  ol.ranking li > .bar { grid-column: 1 / 3; grid-row: 3; }
  ol.ranking li > .name { grid-row: 1 / 3; }
  ol.ranking .axis { display: none; }
  div.bars { display: block; }
  div.bars > div { display: grid; grid-template-columns: 1fr max-content; }
  div.bars .name { text-align: left; }
  div.bars .parts { grid-column: 1 / 3; grid-row: 2; margin: 2px 0 8px; }
}
@container (max-width: 480px) {
  .scroll::before { content: 'scroll sideways'; display: block; position: sticky; left: 0; font-size: 12px; color: var(--faint); }
  .scroll td:first-child { min-width: 130px; max-width: 150px; }
  dl { display: block; }
  table.stages small { display: none; }
}
@media (max-width: 800px) { div.tiles { grid-template-columns: 1fr 1fr; } }
@media (max-width: 600px) {
  main { padding: 16px 10px 32px; }
  section { padding: 12px 14px; }
  h1 { font-size: 22px; overflow-wrap: anywhere; }
  p.headline { font-size: 17px; }
}
@media print { details { display: block; } body { background: none; } }
@media (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ink: #e3e8ee; --faint: #9aa7b5; --line: #34404c; --paper: #1b232c;
    --ground: #12181f; --accent: #5bb3dc; --good: #5cc79d; --bad: #f0806a; --known: #d9a441;
    --best: #1d3b31; --c5: #4a9be0; --c8: #b98476; }
}
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

/// Parts of a page that open on a click, beside each other.
pub(crate) fn folds(all: &Markup) -> Markup {
    html! { section.folds { (all) } }
}

/// A titled part that opens on a click, for [`folds`].
pub(crate) fn fold(title: &str, content: &Markup) -> Markup {
    html! { details { summary { h2 { (title) } } (content) } }
}

/// A finding or caution: a line, its number, what to do, its picture; the rest folded away.
pub(crate) fn finding(finding: &Finding) -> Markup {
    html! {
        strong { (prose(&finding.headline)) }
        p.facts { (finding.facts()) }
        @if let Some(action) = &finding.action { p { (prose(action)) } }
        @if let Some(figure) = &finding.figure { (chart::draw(figure)) }
        @if !finding.details.is_empty() {
            details {
                summary { "Details" }
                @for paragraph in &finding.details { p { (prose(paragraph)) } }
            }
        }
    }
}

/// Words in which names that a user types stand between backticks, as for a terminal.
pub(crate) fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if is_code(at, &parts) { code { (part) } }
            @else if at % 2 == 1 { "`" (part) }
            @else { (part) }
        }
    }
}

/// Between a pair lies every other part; one that is not closed stays as it is.
fn is_code(at: usize, parts: &[&str]) -> bool {
    at % 2 == 1 && at + 1 < parts.len()
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

/// A row with words below its name.
pub(crate) struct NotedRow {
    pub name: String,
    /// Faint words.
    pub note: String,
    /// Words in the colour of harm.
    pub warning: String,
    pub cells: Vec<String>,
}

/// Like [`table`], with words below names.
pub(crate) fn noted_table(head: &[&str], rows: &[NotedRow]) -> Markup {
    html! {
        div.scroll.dense {
            table {
                thead { tr { @for cell in head { th { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            td {
                                (row.name)
                                @if !row.note.is_empty() { small { (row.note) } }
                                @if !row.warning.is_empty() { small.warning { (row.warning) } }
                            }
                            @for cell in &row.cells { td { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// Name of a trace in titles.
pub(crate) fn trace_name(trace: &TraceWorkload) -> String {
    name_of(&trace.file)
}

/// Name of a file without its folder.
pub(crate) fn name_of(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_escapes_text_and_marks_code() {
        let html = prose("`a < b` and `--x`, 5 > 4, one ` alone").into_string();
        let code = "<code>a &lt; b</code> and <code>--x</code>, 5 &gt; 4, one ` alone";
        assert_eq!(html, code);
    }
}
