//! Table of a drive's tracks as text, a row for each stretch.

use std::fmt::Write as _;
use std::str::FromStr;

use thiserror::Error;

use super::track_map::{TrackMap, TrackStretch};

/// Columns of the table.
const HEAD: &str = "first_block,tracks,blocks_per_track,skew_turns,start_turns,ends_track,turn_ns";

/// A table that is none of tracks, or samples that cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum TrackTableError {
    /// The first line is another one.
    #[error("line 1 is not `{HEAD}`: give a table that `freewheel extract --tracks` wrote")]
    Head,
    /// A row is incomplete, or has a value out of its range.
    #[error(
        "line {line}: `{text}` is no row of tracks: {HEAD}, each stretch where the one before ends"
    )]
    Row { line: usize, text: String },
    /// No tracks follow the first line.
    #[error("no tracks: give a table that `freewheel extract --tracks` wrote")]
    Empty,
    /// Tracks that are in no bands.
    #[error(
        "sample {number} has no bands whose surfaces differ in density: samples with the same density on \
         all surfaces differ in defects alone; merge others, or extract each with -o"
    )]
    NoBands {
        /// Number of the sample, from 1.
        number: usize,
    },
}

impl TrackMap {
    /// The table as text.
    pub fn to_csv(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for stretch in &self.stretches {
            // Writing to a text does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{:.9},{:.9},{},{:.3}",
                stretch.first_block,
                stretch.tracks,
                stretch.blocks_per_track,
                stretch.skew_turns,
                stretch.start_turns,
                u8::from(stretch.ends_track),
                self.rotation_ns
            );
        }
        text
    }

    /// The tracks of a table. Commands and time that it took are not in it.
    pub fn from_csv(text: &str) -> Result<Self, TrackTableError> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(TrackTableError::Head);
        }
        let (mut stretches, mut blocks, mut rotation_ns) = (Vec::<TrackStretch>::new(), 0, 0.0);
        for (line, text) in (2..).zip(lines) {
            let row = row(text).filter(|(stretch, _)| stretch.first_block == blocks);
            let (stretch, turn_ns) =
                row.ok_or_else(|| TrackTableError::Row { line, text: text.into() })?;
            (blocks, rotation_ns) = (stretch.end(), turn_ns);
            stretches.push(stretch);
        }
        if stretches.is_empty() {
            return Err(TrackTableError::Empty);
        }
        Ok(Self { blocks, rotation_ns, stretches, commands: 0, drive_ns: 0 })
    }
}

fn row(text: &str) -> Option<(TrackStretch, f64)> {
    fn parsed<T: FromStr>(text: &str) -> Option<T> {
        text.trim().parse().ok()
    }
    let cells: Vec<&str> = text.split(',').collect();
    let [first, tracks, blocks, skew, start, ends, turn] = cells[..] else { return None };
    let count = |text| parsed::<u64>(text).filter(|count| (1..1 << 40).contains(count));
    let turns = |text| parsed::<f64>(text).filter(|turns| (0.0..=1.0).contains(turns));
    let turn_ns = parsed::<f64>(turn).filter(|turn| *turn > 0.0 && turn.is_finite())?;
    let stretch = TrackStretch {
        first_block: parsed(first)?,
        blocks_per_track: count(blocks)?,
        tracks: count(tracks)?,
        start_turns: turns(start)?,
        skew_turns: turns(skew)?,
        ends_track: parsed::<u8>(ends).filter(|ends| *ends < 2)? == 1,
    };
    // No end lies beyond what a number holds.
    stretch.tracks.checked_mul(stretch.blocks_per_track)?.checked_add(stretch.first_block)?;
    Some((stretch, turn_ns))
}
