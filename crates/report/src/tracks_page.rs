//! The polar picture of a drive's tracks: where each begins in the turn, and how long it is.

use freewheel_extract::{TrackMap, TrackStretch};
use maud::{Markup, html};

use crate::drawing::at;
use crate::legend::LINE_COLOURS;
use crate::numbers::{degrees, turn_ms};
use crate::page::{self, section, table};
use freewheel_units::grouped;

/// Most dots of the picture.
const DOTS_MAX: u64 = 4000;
/// Most rows of the table.
const ROWS_MAX: usize = 200;

/// Radius of the outermost and of the innermost track, in a square of [`SIDE`].
const OUTER: f64 = 280.0;
const INNER: f64 = 90.0;
const SIDE: f64 = 600.0;

/// A track's start in the picture.
struct Dot {
    x: f64,
    y: f64,
    colour: usize,
}

/// A page with the tracks of a drive: angle against place, and their stretches.
pub fn tracks_html(name: &str, map: &TrackMap) -> String {
    let lengths = map.stretches.iter().map(|stretch| stretch.blocks_per_track);
    let (longest, shortest) = (lengths.clone().max().unwrap_or(0), lengths.min().unwrap_or(0));
    let lead = format!(
        "{} tracks of {shortest} to {longest} blocks in {} stretches; a turn takes {} ms.",
        grouped(map.tracks()),
        grouped(map.stretches.len() as u64),
        turn_ms(map.rotation_ns)
    );
    let rows: Vec<Vec<String>> = map.stretches.iter().take(ROWS_MAX).map(row).collect();
    let head = ["first block", "tracks", "blocks a track", "skew, degrees", "start, degrees"];
    page::page(
        &format!("Tracks of {name}"),
        &lead,
        &html! {
            (section("Where tracks begin in the turn", &html! {
                (picture(map, (shortest, longest)))
                p.note { "A dot is the start of a track; outer dots have the lowest LBNs. At most 4,000 tracks are drawn, evenly chosen. A colour stands for a ninth of the range of lengths." }
            }))
            (section("Stretches", &html! {
                (table(&head, &rows))
                @if map.stretches.len() > ROWS_MAX {
                    p.note { "The first " (ROWS_MAX) " of " (grouped(map.stretches.len() as u64)) "; the file has all." }
                }
            }))
        },
    )
}

fn row(stretch: &TrackStretch) -> Vec<String> {
    vec![
        grouped(stretch.first_block),
        grouped(stretch.tracks),
        grouped(stretch.blocks_per_track),
        degrees(stretch.skew_turns),
        degrees(stretch.start_turns),
    ]
}

fn picture(map: &TrackMap, lengths: (u64, u64)) -> Markup {
    let middle = SIDE / 2.0;
    html! {
        svg.tracks viewBox=(format!("0 0 {SIDE} {SIDE}")) role="img" aria-label="Angle of the first block of each track" {
            @for radius in [OUTER, INNER] {
                circle.edge cx=(middle) cy=(middle) r=(radius) {}
            }
            line.edge x1=(middle) y1=(middle - INNER) x2=(middle) y2=(middle - OUTER) {}
            @for Dot { x, y, colour } in dots(map, lengths) {
                circle cx=(at(x)) cy=(at(y)) r="1.6" style=(format!("--c:var(--line{colour})")) {}
            }
        }
    }
}

fn dots(map: &TrackMap, (shortest, longest): (u64, u64)) -> Vec<Dot> {
    let every = map.tracks().div_ceil(DOTS_MAX).max(1);
    let span = (longest - shortest).max(1) as f64;
    let mut dots = Vec::new();
    let mut number = 0u64;
    for stretch in &map.stretches {
        let shorter = (longest - stretch.blocks_per_track) as f64 / span;
        let colour = ((shorter * LINE_COLOURS as f64) as usize).min(LINE_COLOURS - 1);
        let first = (every - number % every) % every;
        for track in (first..stretch.tracks).step_by(every as usize) {
            let block = stretch.first_block + track * stretch.blocks_per_track;
            let inwards = block as f64 / map.blocks.max(1) as f64;
            let radius = OUTER - inwards * (OUTER - INNER);
            let turns = stretch.start_turns + track as f64 * stretch.skew_turns;
            let (sine, cosine) = libm::sincos(turns * std::f64::consts::TAU);
            let (x, y) = (SIDE / 2.0 + radius * sine, SIDE / 2.0 - radius * cosine);
            dots.push(Dot { x, y, colour });
        }
        number += stretch.tracks;
    }
    dots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TrackMap {
        let stretch = |first_block, blocks_per_track, tracks| TrackStretch {
            first_block,
            blocks_per_track,
            tracks,
            start_turns: 0.0,
            skew_turns: 0.25,
            ends_track: false,
        };
        let stretches = vec![stretch(0, 100, 4), stretch(400, 80, 10_000)];
        TrackMap { blocks: 800_400, rotation_ns: 8e6, stretches, commands: 1, drive_ns: 1 }
    }

    #[test]
    fn tracks_page_skews_and_thins_tracks() {
        let dots = dots(&map(), (80, 100));
        assert!((3334..=3336).contains(&dots.len()), "{}", dots.len());
        // The first at the top, of every third the next three quarters of a turn on.
        assert!((dots[0].x - 300.0).abs() < 0.1 && (dots[0].y - 20.0).abs() < 0.1);
        assert!(dots[1].x < 25.0 && (dots[1].y - 300.0).abs() < 0.1);
        assert_eq!((dots[0].colour, dots[9].colour), (0, LINE_COLOURS - 1));
    }

    #[test]
    fn tracks_page_says_what_was_found() {
        let page = tracks_html("mine", &map());
        assert!(page.contains("10,004 tracks of 80 to 100 blocks in 2 stretches"), "{page}");
    }
}
