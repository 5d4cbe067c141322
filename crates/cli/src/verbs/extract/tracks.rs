//! `freewheel extract --tracks`: the tracks of a drive alone.

use std::path::{Path, PathBuf};

use freewheel::extraction::{TrackMap, merged_tracks_text, track_map, tracks_html};
use freewheel::measures::Text;

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
    output::print(&(map.text() + &written(&files)))
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
    let names: Vec<String> = samples.iter().map(|path| path.display().to_string()).collect();
    output::print(&(merged_tracks_text(&merged, &names) + &written(&files)))
}

fn read(path: &Path) -> Result<TrackMap, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string(), path))?;
    TrackMap::from_csv(&text).map_err(|error| failed(error.to_string(), path))
}

fn failed(what: String, path: &Path) -> Failure {
    Failure::failed(format!("{}: {what}", path.display()))
}

/// Paths of the files that were written, in a line.
fn written(files: &[(&Path, &str)]) -> String {
    let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
    format!("written: {}\n", names.join(", "))
}
