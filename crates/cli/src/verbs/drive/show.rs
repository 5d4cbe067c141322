//! `freewheel drive show`: a drive's data sheet as the model has it.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::DriveSheet;
use freewheel::drives::{self, DriveIdentity, HeldOut, QuantityUnit};
use freewheel::measures::{SimDuration, grouped};
use serde::Serialize;

use crate::failure::Failure;
use crate::plot::Plot;
use crate::table::Table;
use crate::{file, number, output};

/// Show a drive: its advertised and its modelled values, zones, seek curve, electronics, and the source of
/// each value
#[derive(Args)]
#[command(after_help = "\
Examples:
  freewheel drive show atlas10k
  freewheel drive show exos-x24-24tb --html exos.html
  freewheel drive show my-drive.toml --json
  freewheel drive show exos-x24-24tb --toml > mine.toml")]
pub struct ShowArgs {
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file
    name: String,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page with charts of seeks and rates
    #[arg(long, value_name = "F.html")]
    html: Option<PathBuf>,
    /// Print the drive file itself: the start of one of your own
    #[arg(long, conflicts_with_all = ["json", "html"])]
    toml: bool,
}

/// Everything that is shown.
#[derive(Serialize)]
struct Document {
    drive: DriveIdentity,
    #[serde(flatten)]
    sheet: DriveSheet,
}

impl ShowArgs {
    pub fn run(self) -> Result<(), Failure> {
        if self.toml {
            return output::print(&drives::text(&self.name)?);
        }
        let (spec, drive) = drives::load(&self.name)?;
        if let Some(page) = &self.html {
            file::ensure_not_read(page, Path::new(&self.name))?;
        }
        let sheet = DriveSheet::new(&spec, &drive);
        if let Some(path) = &self.html {
            file::write_together(&[(path, &sheet.html())])?;
        }
        let document = Document { drive: DriveIdentity::new(&spec, &drive), sheet };
        if self.json { output::print_document(&document) } else { output::print(&text(&document)) }
    }
}

fn text(document: &Document) -> String {
    let Document { drive, sheet } = document;
    let electronics =
        if drive.actuators == 1 { "electronics" } else { "electronics of one actuator" };
    let parts = [
        identity(drive),
        cautions(&sheet.cautions),
        self_check(sheet),
        words("why the model is off", &sheet.miss_words()),
        zones(sheet),
        seek_curve(sheet),
        words("shingled zones", &sheet.shingled_words()),
        words(electronics, &sheet.electronics_words()),
        held_out(&sheet.held_out),
        sources(sheet),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn identity(drive: &DriveIdentity) -> String {
    let arms = match drive.actuators {
        1 => String::new(),
        count => format!(
            "{count} actuators, LBNs over the first one's part and then the next one's; of each:\n"
        ),
    };
    let year = drive.year.map_or(String::new(), |year| format!(" ({year})"));
    format!(
        "{}: {}{year}\n{} blocks of 512 B, {:.0} rpm ({} a turn)\n{arms}{} surfaces, {} cylinders\n",
        drive.name,
        drive.model,
        grouped(drive.blocks),
        drive.rotation_rpm,
        number::ms(drive.rotation_period_ns as f64),
        drive.surfaces,
        grouped(drive.cylinders),
    )
}

fn cautions(cautions: &[String]) -> String {
    match cautions {
        [] => String::new(),
        _ => wrapped(cautions.iter().map(|text| ("WARNING", text.as_str()))),
    }
}

fn self_check(sheet: &DriveSheet) -> String {
    let mut table = Table::new("lrrrl");
    table.row(["self-check", "advertised", "modelled", "deviation", ""]);
    for check in &sheet.self_check {
        let value = |value: u64| in_unit(value, check.unit);
        let mark = match check.ok {
            Some(true) => "ok",
            Some(false) => "off",
            None => "",
        };
        table.row([
            check.title.to_owned(),
            check.advertised.map_or("-".into(), value),
            value(check.modelled),
            check.deviation_share.map_or(String::new(), |off| format!("{:+.2} %", off * 100.0)),
            mark.to_owned(),
        ]);
    }
    table.to_string()
}

fn in_unit(value: u64, unit: QuantityUnit) -> String {
    match unit {
        QuantityUnit::Bytes => number::capacity(value),
        QuantityUnit::BytesPerSecond => number::rate(value as f64),
        QuantityUnit::Nanoseconds => number::ms(value as f64),
        QuantityUnit::RequestsPerSecond => format!("{value} /s"),
    }
}

fn zones(sheet: &DriveSheet) -> String {
    let mut table = Table::new("rrrrrr");
    table.row(["zone", "cylinders", "blocks/track", "sustained", "track skew", "cylinder skew"]);
    for (number, zone) in sheet.zones.iter().enumerate() {
        table.row([
            number.to_string(),
            format!("{}-{}", zone.first_cylinder, zone.last_cylinder),
            zone.track_words(),
            number::rate(zone.sustained_bytes_per_second as f64),
            zone.track_skew.clone(),
            zone.cylinder_skew.clone(),
        ]);
    }
    table.to_string()
}

fn seek_curve(sheet: &DriveSheet) -> String {
    let mut table = Table::new("rrr");
    table.row(["seek, cylinders", "read", "write"]);
    for seek in &sheet.seeks {
        table.row([
            seek.distance_cylinders.to_string(),
            number::ms(seek.read_ns as f64),
            number::ms(seek.write_ns as f64),
        ]);
    }
    let words = sheet.seek_table_words().map_or(String::new(), |words| {
        lines_of(&words, WIDTH).into_iter().map(|line| line + "\n").collect()
    });
    format!("{}\n{table}{words}", seek_picture(sheet))
}

fn seek_picture(sheet: &DriveSheet) -> String {
    let Some(last) = sheet.seek_curve.last() else { return String::new() };
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for seek in &sheet.seek_curve {
        let distance = f64::from(seek.distance_cylinders);
        reads.push((distance, seek.read_ns as f64 / 1e6));
        writes.push((distance, seek.write_ns as f64 / 1e6));
    }
    let highest = reads.iter().chain(&writes).fold(0.0, |most: f64, point| most.max(point.1));
    let mut plot = Plot::new(f64::from(last.distance_cylinders), highest, "ms");
    plot.curve(&reads, false);
    let names = if reads == writes {
        "before a read or write"
    } else {
        plot.curve(&writes, true);
        "before a read (whole line) and a write (dashed)"
    };
    format!("seek {names}, by cylinders\n{plot}")
}

fn words(title: &str, words: &[(&str, String)]) -> String {
    if words.is_empty() {
        return String::new();
    }
    let rows = words.iter().map(|(name, text)| (*name, text.as_str()));
    format!("{title}\n{}", wrapped(rows))
}

/// The validation of an extracted file; empty for others.
pub fn held_out(rows: &[HeldOut]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new("lrrrrr");
    let of_mechanics = "of the mechanics alone";
    table.row(["held against the drive", "number", "mean", "foretold", "demerit", of_mechanics]);
    for row in rows {
        table.row([
            row.requests.clone(),
            grouped(row.count),
            ms(row.measured_mean),
            ms(row.foretold_mean),
            ms(row.demerit),
            ms(row.mechanics_demerit),
        ]);
    }
    // The first are all of them.
    let harm = if rows.first().is_some_and(is_harmful) {
        "WRONG: with the electronics in the file, requests are predicted worse than by the mechanics alone: \
             remove `electronics` from the file, or extract it again when the host is idle\n"
    } else {
        ""
    };
    format!("{table}{harm}")
}

fn ms(time: SimDuration) -> String {
    number::ms(time.ns() as f64)
}

/// True if the electronics found predict worse than none, by more than chance: an extraction is right to
/// 0.1 ms.
fn is_harmful(row: &HeldOut) -> bool {
    const CHANCE: SimDuration = SimDuration::from_us(100);
    row.demerit > row.mechanics_demerit + CHANCE
}

fn sources(sheet: &DriveSheet) -> String {
    let rows = sheet.sources.iter().map(|(key, text)| (key.as_str(), text.as_str()));
    format!("where values come from\n{}", wrapped(rows))
}

/// Columns that a terminal has at least.
const WIDTH: usize = 80;

/// Names and texts in two columns, the texts wrapped at the terminal's edge.
fn wrapped<'a>(rows: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let names = rows.clone().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut table = Table::new("ll");
    for (name, text) in rows {
        let lines = lines_of(text, WIDTH - names - 4);
        for (index, line) in lines.into_iter().enumerate() {
            let name = if index == 0 { format!("  {name}") } else { String::new() };
            table.row([name, line]);
        }
    }
    table.to_string()
}

/// Words of a text in lines of at most `width`.
fn lines_of(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("one line at least");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn electronics_that_foretell_worse_than_none_are_said_to_be_wrong() {
        let us = SimDuration::from_us;
        let row = |demerit, mechanics_demerit| HeldOut {
            requests: "all".into(),
            count: 40,
            measured_mean: us(9000),
            foretold_mean: us(9000),
            demerit: us(demerit),
            mechanics_mean: us(9000),
            mechanics_demerit: us(mechanics_demerit),
        };
        assert!(held_out(&[row(1177, 257)]).contains("remove `electronics`"));
        assert!(!held_out(&[row(300, 257)]).contains("WRONG"));
        assert!(!held_out(&[row(50, 1200)]).contains("WRONG"));
    }

    #[test]
    fn texts_are_wrapped_between_words() {
        assert_eq!(lines_of("ab cde f", 6), ["ab cde", "f"]);
        assert_eq!(lines_of("abcdefgh i", 6), ["abcdefgh", "i"]);
    }
}
