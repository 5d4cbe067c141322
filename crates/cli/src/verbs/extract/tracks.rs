//! `freewheel extract --tracks`: the tracks of a drive alone.

use std::path::{Path, PathBuf};

use freewheel::extraction::{TrackMap, TrackMerge, track_map, tracks_html};
use freewheel::measures::{Table, grouped};

use super::{ExtractArgs, Measured};
use crate::failure::Failure;
use crate::{file, output};

/// Finds the tracks of the target and writes them to `table`, and to a page where one is wanted.
pub fn run(args: &ExtractArgs, table: &Path) -> Result<(), Failure> {
    if let Some(page) = &args.page {
        file::ensure_new(page)?;
    }
    let map = args.measured(|Measured { drive, journal, progress }| {
        track_map(drive, &args.options(), journal, progress)
    })?;
    let name = table.file_stem().unwrap_or_default().to_string_lossy();
    let (text, html) = (map.to_csv(), tracks_html(&name, &map));
    let page = args.page.as_ref().map(|page| (page.as_path(), html.as_str()));
    let files: Vec<(&Path, &str)> = [(table, text.as_str())].into_iter().chain(page).collect();
    file::write_together(&files)?;
    args.forget_journal()?;
    if args.json {
        return output::print_document(&map);
    }
    output::print(&summary(&map, &files))
}

/// Merges the tables of samples into one.
pub fn merge(args: &ExtractArgs, samples: &[PathBuf], table: &Path) -> Result<(), Failure> {
    if let Some(page) = &args.page {
        file::ensure_new(page)?;
    }
    let maps = samples.iter().map(|path| read(path)).collect::<Result<Vec<TrackMap>, _>>()?;
    let merged = TrackMap::merged(&maps).map_err(|error| Failure::failed(error.to_string()))?;
    let name = table.file_stem().unwrap_or_default().to_string_lossy();
    let (text, html) = (merged.map.to_csv(), tracks_html(&name, &merged.map));
    let page = args.page.as_ref().map(|page| (page.as_path(), html.as_str()));
    let files: Vec<(&Path, &str)> = [(table, text.as_str())].into_iter().chain(page).collect();
    file::write_together(&files)?;
    if args.json {
        return output::print_document(&merged);
    }
    output::print(&comparison(&merged, samples, &files))
}

fn read(path: &Path) -> Result<TrackMap, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string(), path))?;
    TrackMap::from_csv(&text).map_err(|error| failed(error.to_string(), path))
}

fn failed(what: String, path: &Path) -> Failure {
    Failure::failed(format!("{}: {what}", path.display()))
}

/// Values of all samples: first those that agree.
fn comparison(merged: &TrackMerge, samples: &[PathBuf], files: &[(&Path, &str)]) -> String {
    let (agree, differ): (Vec<_>, Vec<_>) = merged.rows.iter().partition(|row| row.agrees);
    let mut table = Table::new("ll");
    table.row(["the same in all", "value"]);
    for row in &agree {
        table.row([row.name.as_str(), row.values[0].as_str()]);
    }
    let mut others = Table::new("lll");
    others.row(["differs", "sample", "value"]);
    for row in &differ {
        for (path, value) in samples.iter().zip(&row.values) {
            others.row([row.name.as_str(), &path.display().to_string(), value.as_str()]);
        }
    }
    let others = if differ.is_empty() { String::new() } else { format!("\n{others}") };
    let own = samples.iter().zip(&merged.own_holes);
    let own: Vec<String> =
        own.map(|(path, count)| format!("{count} of {}", path.display())).collect();
    let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
    format!(
        "{table}{others}\n{} holes are in all samples and stay; left out: {}\nzones are those of {}\n\
         written: {}\n",
        merged.shared_holes,
        own.join(", "),
        samples[0].display(),
        names.join(", ")
    )
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
