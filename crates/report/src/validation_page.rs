//! The page of a validation.

use std::iter;
use std::path::Path;

use maud::{Markup, html};

use crate::chart;
use crate::drawing::hundredths;
use crate::numbers::{deviation, fine_ms, p_value, percent, resultant_length, turns};
use crate::page::{self, section, table};
use freewheel_extract::validate::{
    GapReading, Part, PhaseAnalysis, PhaseClass, PhaseDistance, Validation,
};
use freewheel_study::figure::{Axes, Line, Series};

/// A page with both distributions.
pub fn validation_html(validation: &Validation) -> String {
    let file = Path::new(&validation.trace).file_name().unwrap_or_default().to_string_lossy();
    let title = format!("{} against {file}", validation.drive);
    let lead = format!(
        "{} requests: measured mean {} ms, simulated {} ms ({}), demerit {} ms ({} of the mean).",
        validation.requests,
        ms(validation.measured_mean_ms),
        ms(validation.simulated_mean_ms),
        deviation(validation.mean_error_share),
        ms(validation.demerit_ms),
        percent(validation.demerit_share)
    );
    let lines = [line("measured", &validation.curves[0]), line("simulated", &validation.curves[1])];
    let axes = Axes { x: "response time, ms", y: "share of requests, %", log_x: true };
    let parts: Vec<Vec<String>> = validation.parts.iter().map(part_cells).collect();
    let head =
        ["served here as", "requests", "measured mean", "simulated mean", "sd of difference"];
    page::page(
        &title,
        &lead,
        &html! {
            (section("Response times", &html! {
                (chart::lines(&lines, &axes))
                p.note { (validation.gaps_in_words()) }
            }))
            (section("By what our model did", &html! {
                (table(&head, &parts))
                p.note { "Times in ms. The demerit figure is the root mean square of the horizontal distance between the two curves (Ruemmler and Wilkes 1994)." }
            }))
            (section("Is the rotational phase recoverable?", &phase(&validation.phase)))
        },
    )
}

fn line(name: &str, points: &[(f64, f64)]) -> Line {
    Line { name: name.into(), points: points.to_vec(), dots: false }
}
/// Histogram, coherence and what the errors could be.
fn phase(phase: &PhaseAnalysis) -> Markup {
    let (recorded, later) = (&phase.histogram.as_recorded, &phase.histogram.one_later);
    let bins = recorded.len();
    let labels: Vec<String> = (0..bins).map(|bin| hundredths(bin as f64 / bins as f64)).collect();
    let series = [
        Series { name: GapReading::AsRecorded.name(), shares: recorded.clone() },
        Series { name: GapReading::OneLater.name(), shares: later.clone() },
    ];
    let rows = phase.distances.iter().map(|row| distance_cells(row, phase.gaps));
    let distances: Vec<Vec<String>> = rows.collect();
    let mut floors: Vec<Vec<String>> = phase.classes.iter().map(class_cells).collect();
    let all = [Some(phase.achieved_sd_ms), Some(phase.floor_sd_ms), phase.resynchronised_sd_ms];
    floors.push(iter::once("all".to_string()).chain(all.map(ms_if_any)).collect());
    html! {
        p { (phase.verdict) }
        h3 { "Differences of phase between visits to the media" }
        (chart::columns(&labels, &series))
        p.note { "Share of the pairs in % by difference in turns: the time from one visit's end to the next's, less the angle between their last sectors. One peak: the phase is known. All alike: it is not. Pairs: " (phase.main_distance.name()) "." }
        h3 { "By where the visit before was" }
        (table(&DISTANCE_HEAD, &distances))
        p.note { "R is the mean resultant length of the differences of phase, 1 when all are the same; p is Rayleigh's, mean the mean difference in turns, both with the " (phase.gaps.name()) ". Errors are medians of their size in ms; resyn.: our spindle set to the trace's at every visit. " (phase.pairs_in_words()) }
        h3 { "Standard deviation of the error" }
        (table(&["served here as", "achieved", "phase unknown", "resynchronised"], &floors))
        p.note { "In ms. Phase unknown: sqrt(2) times the standard deviation of a rotational latency, the difference of two independent ones, under any model." }
    }
}

const DISTANCE_HEAD: [&str; 9] = [
    "last on the media",
    "requests",
    "R, gaps as recorded",
    "R, gaps one later",
    "R by chance",
    "p",
    "mean",
    "error",
    "error, resyn.",
];

/// Milliseconds to a thousandth: validations differ by little.
fn ms(ms: f64) -> String {
    fine_ms(ms * 1e6)
}

fn ms_if_any(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_string(), ms)
}

fn distance_cells(row: &PhaseDistance, gaps: GapReading) -> Vec<String> {
    let (recorded, later) = (&row.as_recorded, &row.one_later);
    let coherence = row.coherence(gaps);
    vec![
        row.distance.name().to_string(),
        recorded.pairs.to_string(),
        resultant_length(recorded.resultant_length),
        resultant_length(later.resultant_length),
        resultant_length(recorded.resultant_length_by_chance),
        p_value(coherence.p_value),
        turns(coherence.mean_turns),
        ms(row.achieved_median_ms),
        ms_if_any(row.resynchronised_median_ms),
    ]
}

fn class_cells(class: &PhaseClass) -> Vec<String> {
    let times = [Some(class.achieved_sd_ms), Some(class.floor_sd_ms), class.resynchronised_sd_ms];
    iter::once(class.name.to_string()).chain(times.map(ms_if_any)).collect()
}

fn part_cells(part: &Part) -> Vec<String> {
    let times = [part.measured_mean_ms, part.simulated_mean_ms, part.per_request_error_sd_ms];
    let mut cells = vec![part.name.to_string(), part.requests.to_string()];
    cells.extend(times.map(ms));
    cells
}
