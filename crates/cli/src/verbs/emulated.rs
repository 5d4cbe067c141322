//! Drives that exist in arithmetic only, as targets and backends of other verbs.

use std::str::FromStr;

use freewheel::model::drive::Drive;
use freewheel::sim::black_box::{BadBlocks, Habits};
use freewheel::units::{Lbn, SimDuration};

use crate::failure::Failure;

/// What a drive of this kind begins with on a command line.
pub const EMULATED: &str = "emulated:";

/// Most bad blocks: each is remembered by itself.
const BAD_MAX: u64 = 1 << 20;

/// An emulated drive and what makes it hard to foresee: what follows [`EMULATED`].
#[derive(Debug, Clone, PartialEq)]
pub struct Emulated {
    /// Name or file.
    pub drive: String,
    /// Beside its file.
    pub habits: Habits,
    /// Of every random stream.
    pub seed: u64,
    bad: Vec<BadRange>,
    recovery: SimDuration,
}

impl Emulated {
    /// What cannot be read of it.
    pub fn bad_blocks(&self, drive: &Drive) -> Result<BadBlocks, Failure> {
        bad_blocks("bad=", &self.bad, self.recovery, (drive, &self.drive))
    }
}

impl FromStr for Emulated {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (drive, options) = text.split_once('?').unwrap_or((text, ""));
        let habits = Habits::default();
        let recovery = SimDuration::from_secs(7);
        let mut target = Self { drive: drive.into(), habits, seed: 1, bad: Vec::new(), recovery };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let time = || value.parse::<SimDuration>().map_err(|error| format!("{key}: {error}"));
            match key {
                "seek_jitter" => target.habits.seek_jitter = Some(time()?),
                "seek_jitter_far" => target.habits.seek_jitter_far = Some(time()?),
                "seek_jitter_inward" => target.habits.seek_jitter_inward = Some(time()?),
                "reply_jitter" => target.habits.reply_jitter = time()?,
                "spindle_drift" => target.habits.spindle_drift = Some(value.parse()?),
                "recovery" => target.recovery = time()?,
                "bad" => target.bad.push(value.parse().map_err(|error| format!("bad: {error}"))?),
                "seed" => {
                    let seed = value.parse();
                    target.seed = seed.map_err(|_| format!("seed: {value:?} is no number"))?;
                }
                _ => {
                    return Err(format!(
                        "{key:?} is not known: there are seek_jitter, seek_jitter_far, \
                         seek_jitter_inward, reply_jitter, spindle_drift, bad, recovery, seed"
                    ));
                }
            }
        }
        Ok(target)
    }
}

/// `LBN` or `LBN-LBN`, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRange {
    first: u64,
    last: u64,
}

impl FromStr for BadRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse::<u64>().map_err(|_| format!("{text:?} is no block number: give 4096-4103"))
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range = Self { first: number(first)?, last: number(last)? };
        if range.first > range.last {
            return Err(format!(
                "{} is after {}: give the lower one first",
                range.first, range.last
            ));
        }
        Ok(range)
    }
}

/// All blocks of `ranges`, which a drive tries for so long to read. `option` introduced the ranges,
/// and the drive has a name: both are for errors.
pub fn bad_blocks(
    option: &str,
    ranges: &[BadRange],
    recovery: SimDuration,
    (drive, name): (&Drive, &str),
) -> Result<BadBlocks, Failure> {
    let blocks = drive.blocks().get();
    if let Some(BadRange { first, last }) = ranges.iter().find(|range| range.last >= blocks) {
        return Err(Failure::wrong_use(format!(
            "{option}{first}-{last}: the last block of {name} is {}",
            blocks - 1
        )));
    }
    let count: u64 = ranges.iter().map(|range| range.last - range.first + 1).sum();
    if count > BAD_MAX {
        return Err(Failure::wrong_use(format!("{count} bad blocks: at most {BAD_MAX} are taken")));
    }
    let all = ranges.iter().flat_map(|range| range.first..=range.last).map(Lbn::new);
    Ok(BadBlocks::new(all, recovery))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_drive_is_a_drive_and_what_disturbs_it() {
        let text = "a/b.toml?seek_jitter=50us&reply_jitter=1ms&spindle_drift=2.5ppm/30min&bad=7&bad=9-11&recovery=2ms&seed=7";
        let target: Emulated = text.parse().unwrap();
        assert_eq!((target.drive.as_str(), target.seed), ("a/b.toml", 7));
        assert_eq!(target.habits.seek_jitter, Some(SimDuration::from_us(50)));
        assert_eq!(target.habits.reply_jitter, SimDuration::from_ms(1));
        let drift = target.habits.spindle_drift.unwrap();
        assert_eq!((drift.parts_per_billion, drift.within), (2500, SimDuration::from_secs(1800)));
        assert_eq!(target.bad, ["7-7".parse().unwrap(), "9-11".parse().unwrap()]);
        assert_eq!(target.recovery, SimDuration::from_ms(2));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let error = |text: &str| text.parse::<Emulated>().unwrap_err();
        assert!(error("atlas10k?depth=2").contains("seek_jitter"));
        assert!(error("atlas10k?seed=x").contains("no number"));
        assert!(error("atlas10k?seek_jitter=5").contains("seek_jitter"));
        assert!(error("atlas10k?bad=9-7").contains("lower one first"));
    }
}
