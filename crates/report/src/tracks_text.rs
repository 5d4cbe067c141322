//! The tracks of a drive as text of a terminal.

use freewheel_extract::{TrackMap, TrackMerge};
use freewheel_units::grouped;

use crate::numbers::{span, turn_ms};
use crate::table::Table;
use crate::text::Text;

impl Text for TrackMap {
    fn text(&self) -> String {
        let lengths = self.stretches.iter().map(|stretch| stretch.blocks_per_track);
        format!(
            "{} tracks of {} to {} blocks in {} stretches of the same length and skew; a turn takes {} ms\n\
             {} commands in {} of the drive's time\n",
            grouped(self.tracks()),
            lengths.clone().min().unwrap_or(0),
            lengths.max().unwrap_or(0),
            grouped(self.stretches.len() as u64),
            turn_ms(self.rotation_ns),
            grouped(self.commands),
            span(self.drive_ns as f64 / 1e9)
        )
    }
}

/// Values of samples with these names, of which `merge` has the common part: first those that agree.
pub fn merged_tracks_text(merge: &TrackMerge, samples: &[String]) -> String {
    let (agree, differ): (Vec<_>, Vec<_>) = merge.rows.iter().partition(|row| row.agrees);
    let mut table = Table::new("ll");
    table.row(["the same in all", "value"]);
    for row in &agree {
        table.row([&row.name, &row.values[0]]);
    }
    let mut others = Table::new("lll");
    others.row(["differs", "sample", "value"]);
    for row in &differ {
        for (sample, value) in samples.iter().zip(&row.values) {
            others.row([&row.name, sample, value]);
        }
    }
    let others = if differ.is_empty() { String::new() } else { format!("\n{others}") };
    let own = samples.iter().zip(&merge.own_holes);
    let own: Vec<String> = own.map(|(sample, count)| format!("{count} of {sample}")).collect();
    format!(
        "{table}{others}\n{} holes are in all samples and stay; left out: {}\nzones are those of {}\n",
        merge.shared_holes,
        own.join(", "),
        samples[0]
    )
}
