//! The data sheet as tables of a terminal.

use freewheel_model::drive::spec::HeldOut;
use freewheel_units::{SimDuration, grouped};

use super::{DriveSheet, in_unit, ms};
use crate::drive_identity::DriveIdentity;
use crate::numbers::{deviation, rate, rpm};
use crate::plot::Plot;
use crate::table::Table;

impl DriveSheet {
    /// The sheet below the drive in a few numbers, as tables for a terminal.
    pub fn text(&self, drive: &DriveIdentity) -> String {
        let electronics =
            if drive.actuators == 1 { "electronics" } else { "electronics of one actuator" };
        let parts = [
            identity(drive),
            cautions(&self.cautions),
            self_check(self),
            words("why the model is off", &self.miss_words()),
            zones(self),
            seek_curve(self),
            words("shingled zones", &self.shingled_words()),
            words(electronics, &self.electronics_words()),
            held_out(&self.held_out),
            sources(self),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
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
        "{}: {}{year}\n{} blocks of 512 B, {} rpm ({} a turn)\n{arms}{} surfaces, {} cylinders\n",
        drive.name,
        drive.model,
        grouped(drive.blocks),
        rpm(drive.rotation_rpm),
        ms(drive.rotation_period_ns),
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
        let mark = match check.ok {
            Some(true) => "ok",
            Some(false) => "off",
            None => "",
        };
        table.row([
            check.title.to_owned(),
            check.advertised.map_or("-".into(), |value: u64| in_unit(value, check.unit)),
            in_unit(check.modelled, check.unit),
            check.deviation_share.map_or(String::new(), deviation),
            mark.to_owned(),
        ]);
    }
    table.to_string()
}

fn zones(sheet: &DriveSheet) -> String {
    let mut table = Table::new("rrrrrr");
    table.row(["zone", "cylinders", "blocks/track", "sustained", "track skew", "cylinder skew"]);
    for (number, zone) in sheet.zones.iter().enumerate() {
        table.row([
            number.to_string(),
            format!("{}-{}", zone.first_cylinder, zone.last_cylinder),
            zone.track_words(),
            rate(zone.sustained_bytes_per_second as f64),
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
        table.row([seek.distance_cylinders.to_string(), ms(seek.read_ns), ms(seek.write_ns)]);
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
pub(crate) fn held_out(rows: &[HeldOut]) -> String {
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
            ms(row.measured_mean.ns()),
            ms(row.foretold_mean.ns()),
            ms(row.demerit.ns()),
            ms(row.mechanics_demerit.ns()),
        ]);
    }
    // The first are all of them.
    let harm = match rows.first().is_some_and(is_harmful) {
        true => {
            "WRONG: with the electronics in the file, requests are predicted worse than by the mechanics alone: \
             remove `electronics` from the file, or extract it again when the host is idle\n"
        }
        false => "",
    };
    format!("{table}{harm}")
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
    fn drive_sheet_calls_worse_electronics_wrong() {
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
    fn drive_sheet_wraps_between_words() {
        assert_eq!(lines_of("ab cde f", 6), ["ab cde", "f"]);
        assert_eq!(lines_of("abcdefgh i", 6), ["abcdefgh", "i"]);
    }
}
