//! `freewheel extract --tracks`: the tracks of a drive alone.

use std::fmt::Write as _;
use std::path::Path;

use freewheel::extraction::{TrackMap, track_map, tracks_html};
use freewheel::measures::grouped;

use super::{ExtractArgs, Measured};
use crate::failure::Failure;
use crate::{file, output};

/// Columns of the table.
const HEAD: &str = "first_block,tracks,blocks_per_track,skew_turns,start_turns\n";

/// Finds the tracks of the target and writes them to `table`, and to a page where one is wanted.
pub fn run(args: &ExtractArgs, table: &Path) -> Result<(), Failure> {
    if let Some(page) = &args.page {
        file::ensure_new(page)?;
    }
    let map = args.measured(|Measured { drive, journal, progress }| {
        track_map(drive, &args.options(), journal, progress)
    })?;
    let name = table.file_stem().unwrap_or_default().to_string_lossy();
    let (text, html) = (csv(&map), tracks_html(&name, &map));
    let page = args.page.as_ref().map(|page| (page.as_path(), html.as_str()));
    let files: Vec<(&Path, &str)> = [(table, text.as_str())].into_iter().chain(page).collect();
    file::write_together(&files)?;
    args.forget_journal()?;
    if args.json {
        return output::print_document(&map);
    }
    output::print(&summary(&map, &files))
}

fn csv(map: &TrackMap) -> String {
    let mut text = String::from(HEAD);
    for stretch in &map.stretches {
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "{},{},{},{:.6},{:.6}",
            stretch.first_block,
            stretch.tracks,
            stretch.blocks_per_track,
            stretch.skew_turns,
            stretch.start_turns
        );
    }
    text
}

fn summary(map: &TrackMap, files: &[(&Path, &str)]) -> String {
    let lengths = map.stretches.iter().map(|stretch| stretch.blocks_per_track);
    let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
    format!(
        "{} tracks of {} to {} blocks in {} stretches of the same length and skew; a turn takes {:.4} ms\n\
         {} commands in {:.0} s of the drive's time\nwritten: {}\n",
        grouped(map.tracks()),
        lengths.clone().min().unwrap_or(0),
        lengths.max().unwrap_or(0),
        grouped(map.stretches.len() as u64),
        map.rotation_ns / 1e6,
        grouped(map.commands),
        map.drive_ns as f64 / 1e9,
        names.join(", ")
    )
}
