//! Emulated drives: their settings besides their files, as options of `emulate` and after the name of a
//! target or backend of other verbs.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use clap::error::ErrorKind;
use clap::{Arg, Args, Command, FromArgMatches};
use freewheel::emulation::{
    Activity, BadBlocks, Behaviour, JitterShape, SectorFormat, SpindleDrift, WriteCache,
};
use freewheel::measures::SimDuration;
use freewheel::{Drive, DriveSpec, PolicySpec};

use crate::failure::Failure;
use crate::verbs::choice::{Choice, choice};

/// Beginning of an emulated drive's name on a command line.
pub const EMULATED: &str = "emulated:";

/// Most bad blocks: each is stored separately.
const BAD_MAX: u64 = 1 << 20;

/// Behaviour of an emulated drive beside its file. These are options of `freewheel emulate`, and with an
/// underscore for each hyphen what may follow [`EMULATED`] and a name.
#[derive(Args, Debug, Clone, PartialEq)]
pub struct BehaviourArgs {
    /// Commands the drive holds at once, instead of its own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub queue_depth: Option<u32>,
    /// Policy by which the drive chooses among its commands, instead of its own: fcfs, look, clook, sstf,
    /// sptf, sptf-sw, sstf-lw or asatf
    #[arg(long, value_name = "NAME")]
    queue_policy: Option<PolicySpec>,
    /// Seeks take up to this time more or less than by the curve, as 50us
    #[arg(long, value_name = "TIME")]
    seek_jitter: Option<SimDuration>,
    /// Distribution of the errors of seeks
    #[arg(long, value_name = "SHAPE", value_parser = choice(SHAPES), default_value = "even")]
    seek_jitter_shape: JitterShape,
    /// Errors of seeks over all cylinders; between, they grow with the distance
    #[arg(long, value_name = "TIME")]
    seek_jitter_far: Option<SimDuration>,
    /// Errors of inward seeks, over any distance
    #[arg(long, value_name = "TIME")]
    seek_jitter_inward: Option<SimDuration>,
    /// Replies are delayed by up to this time, evenly distributed, as 20us
    #[arg(long, value_name = "TIME", default_value = "0us")]
    reply_jitter: SimDuration,
    /// And by up to this time more for each block of 512 bytes
    #[arg(long, value_name = "TIME", default_value = "0us")]
    reply_jitter_a_block: SimDuration,
    /// The spindle's speed drifts from PPM millionths below that of the drive's file to PPM above and
    /// back, in TIME, as 2.5ppm/30min
    #[arg(long, value_name = "PPM/TIME")]
    spindle_drift: Option<SpindleDrift>,
    /// The drive is busy with itself every EVERY in the mean, for LASTS, as 60s/100ms
    #[arg(long, value_name = "EVERY/LASTS")]
    activity: Option<OwnActivity>,
    /// Answer writes from the drive's buffer, or from the media; the drive's own setting if not given
    #[arg(long, value_name = "STATE", value_parser = choice(WRITE_CACHES))]
    write_cache: Option<WriteCache>,
    /// Sectors of the media, and the least that can be asked for: 4096 bytes that answer to blocks of 512
    /// (512e), 4096 and no less (4kn), or 512 (512n), instead of those of the drive's file
    #[arg(long, value_name = "FORMAT", value_parser = choice(SECTORS))]
    sector: Option<SectorFormat>,
    /// Blocks of 512 bytes that cannot be read until they are written; may be given several times
    #[arg(long, value_name = "LBN[-LBN]")]
    bad: Vec<BadRange>,
    /// Time for which the drive tries at each read of a bad block; drives in arrays are often set to 7s
    #[arg(long, value_name = "TIME", default_value = "7s")]
    recovery: SimDuration,
    /// Seed of every random stream
    #[arg(long, default_value_t = 1, value_parser = super::seed)]
    pub seed: u64,
}

const WRITE_CACHES: &[Choice<WriteCache>] = &[
    ("on", WriteCache::On, "Once the buffer has them"),
    ("off", WriteCache::Off, "Once they are on the media"),
];

const SHAPES: &[Choice<JitterShape>] = &[
    ("even", JitterShape::Even, "Evenly, up to the jitter either way"),
    ("normal", JitterShape::Normal, "Normally: the jitter is the standard deviation"),
];

/// Sectors of the media, and the least that can be asked for.
pub const SECTORS: &[Choice<SectorFormat>] = &[
    ("512n", SectorFormat::Native512, "512 bytes on the media"),
    ("512e", SectorFormat::Emulated512, "4096 bytes on the media, which answer to blocks of 512"),
    ("4kn", SectorFormat::Native4096, "4096 bytes, and no less"),
];

/// `EVERY/LASTS`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OwnActivity(Activity);

impl FromStr for OwnActivity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (every, lasts) = text.split_once('/').ok_or("give EVERY/LASTS, as 60s/100ms")?;
        let activity = Activity { every: time(every)?, lasts: time(lasts)? };
        let behaviour = Behaviour { activity: Some(activity), ..Behaviour::default() };
        behaviour.check().map_err(|error| error.to_string())?;
        Ok(Self(activity))
    }
}

fn time(text: &str) -> Result<SimDuration, String> {
    text.parse::<SimDuration>().map_err(|error| error.to_string())
}

/// Form in which behaviour was given, for errors.
#[derive(Debug, Clone, Copy)]
pub enum DriveSource {
    /// As options of a verb.
    Options,
    /// Behind a drive's name.
    Keys,
}

impl DriveSource {
    fn text(self, key: &str, value: impl fmt::Display) -> String {
        match self {
            Self::Options => format!("--{} {value}", key.replace('_', "-")),
            Self::Keys => format!("{key}={value}"),
        }
    }
}

impl BehaviourArgs {
    /// The behaviour of a drive and what cannot be read of it; it has a name in errors.
    pub fn of(
        &self,
        given: DriveSource,
        (spec, drive, name): (&DriveSpec, &Drive, &str),
    ) -> Result<(Behaviour, BadBlocks), Failure> {
        if self.write_cache == Some(WriteCache::On) && spec.electronics.buffer.is_none() {
            return Err(Failure::wrong_use(format!(
                "{}: {name} has no buffer that could hold writes; leave it out",
                given.text("write_cache", "on")
            )));
        }
        let behaviour = Behaviour {
            queue_depth: self.queue_depth,
            queue_policy: self.queue_policy,
            seek_jitter: self.seek_jitter,
            seek_jitter_shape: self.seek_jitter_shape,
            seek_jitter_far: self.seek_jitter_far,
            seek_jitter_inward: self.seek_jitter_inward,
            reply_jitter: self.reply_jitter,
            reply_jitter_a_block: self.reply_jitter_a_block,
            spindle_drift: self.spindle_drift,
            activity: self.activity.map(|own| own.0),
            write_cache: self.write_cache,
            sector: self.sector,
        };
        Ok((behaviour, self.bad_blocks(given, drive, name)?))
    }

    /// All blocks that cannot be read.
    fn bad_blocks(
        &self,
        given: DriveSource,
        drive: &Drive,
        name: &str,
    ) -> Result<BadBlocks, Failure> {
        let blocks = drive.blocks().get();
        if let Some(beyond) = self.bad.iter().find(|range| range.last >= blocks) {
            return Err(Failure::wrong_use(format!(
                "{}: the last block of {name} is {}",
                given.text("bad", beyond),
                blocks - 1
            )));
        }
        let count: u64 = self.bad.iter().map(|range| range.last - range.first + 1).sum();
        if count > BAD_MAX {
            return Err(Failure::wrong_use(format!(
                "{count} bad blocks: at most {BAD_MAX} are taken"
            )));
        }
        let all = self.bad.iter().flat_map(|range| range.first..=range.last);
        Ok(BadBlocks::numbered(all, self.recovery))
    }
}

/// An emulated drive and its disturbances: the text after [`EMULATED`].
#[derive(Debug, Clone, PartialEq)]
pub struct Emulated {
    /// Name or file.
    pub drive: String,
    /// Beside its file.
    pub behaviour: BehaviourArgs,
}

impl FromStr for Emulated {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (drive, keys) = text.split_once('?').unwrap_or((text, ""));
        let options = BehaviourArgs::augment_args(Command::new(EMULATED).no_binary_name(true));
        let mut given: Vec<String> = Vec::new();
        let mut parsed = options.clone().try_get_matches_from(&given);
        for key_and_value in keys.split('&').filter(|text| !text.is_empty()) {
            let (key, value) = key_and_value.split_once('=').unwrap_or((key_and_value, ""));
            let option = options.get_arguments().find(|option| option.get_id() == key);
            let option = option.ok_or_else(|| unknown(key, &options))?;
            given.push(format!("--{}={value}", key.replace('_', "-")));
            // Parsed with each one that comes, an error is about that one.
            parsed = options.clone().try_get_matches_from(&given);
            if let Err(error) = &parsed {
                return Err(format!("{key_and_value}: {}", fault(error, option)));
            }
        }
        let behaviour = parsed.and_then(|found| BehaviourArgs::from_arg_matches(&found));
        Ok(Self { drive: drive.into(), behaviour: behaviour.map_err(|error| error.to_string())? })
    }
}

fn unknown(key: &str, options: &Command) -> String {
    if key == "store" {
        return "store: the data of this drive are gone at the end; `freewheel emulate --store FILE` keeps \
                those of one, and its export can be given here"
            .into();
    }
    if key == "volatile_cache" {
        return "volatile_cache: `freewheel emulate --volatile-cache` serves such a drive, and its export can \
                be given here"
            .into();
    }
    let all = options.get_arguments().map(|option| option.get_id().as_str());
    format!("{key:?} is not known: there are {}", all.collect::<Vec<_>>().join(", "))
}

/// Fault of an option's value.
fn fault(error: &clap::Error, option: &Arg) -> String {
    match (error.kind(), error.source()) {
        (ErrorKind::ArgumentConflict, _) => "give it once".into(),
        (_, Some(source)) => source.to_string(),
        (_, None) => {
            let values = option.get_possible_values();
            let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
            format!("there are {}", names.join(", "))
        }
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

fn number(text: &str) -> Result<u64, String> {
    text.parse::<u64>().map_err(|_| format!("{text:?} is no block number: give 4096-4103"))
}

impl fmt::Display for BadRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulated_drive_parses_drive_and_disturbances() {
        let text = "a/b.toml?seek_jitter=50us&reply_jitter=1ms&spindle_drift=2.5ppm/30min&bad=7&bad=9-11&recovery=2ms&seed=7";
        let Emulated { drive, behaviour } = text.parse().unwrap();
        assert_eq!((drive.as_str(), behaviour.seed), ("a/b.toml", 7));
        assert_eq!(behaviour.seek_jitter, Some(SimDuration::from_us(50)));
        assert_eq!(behaviour.reply_jitter, SimDuration::from_ms(1));
        let drift = behaviour.spindle_drift.unwrap();
        assert_eq!((drift.parts_per_billion, drift.within), (2500, SimDuration::from_secs(1800)));
        assert_eq!(behaviour.bad, ["7-7".parse().unwrap(), "9-11".parse().unwrap()]);
        assert_eq!(behaviour.recovery, SimDuration::from_ms(2));
    }

    #[test]
    fn emulated_drive_options_are_named_keys() {
        let options = BehaviourArgs::augment_args(Command::new(EMULATED));
        let value = |key: &str| match key {
            "queue_depth" | "seed" | "bad" => "9",
            "queue_policy" => "sptf-sw:0.5",
            "activity" => "60s/100ms",
            "spindle_drift" => "2.5ppm/30min",
            "write_cache" => "on",
            "seek_jitter_shape" => "normal",
            "sector" => "512e",
            _ => "3us",
        };
        let keys: Vec<String> = options
            .get_arguments()
            .map(|option| option.get_id().as_str())
            .map(|key| format!("{key}={}", value(key)))
            .collect();
        let with = |keys: &str| format!("exos-7e8-8tb?{keys}").parse::<Emulated>().unwrap();
        // Each of them changes something.
        for key in &keys {
            assert_ne!(with(key), with(""), "{key}");
        }
        let Emulated { drive: name, behaviour } = with(&keys.join("&"));
        let (spec, drive) = freewheel::drives::load(&name).unwrap();
        let (behaviour, bad) = behaviour.of(DriveSource::Keys, (&spec, &drive, &name)).unwrap();
        let us = SimDuration::from_us;
        let expected = Behaviour {
            queue_depth: Some(9),
            queue_policy: Some(PolicySpec::SptfSw { window: 0.5 }),
            seek_jitter: Some(us(3)),
            seek_jitter_shape: JitterShape::Normal,
            seek_jitter_far: Some(us(3)),
            seek_jitter_inward: Some(us(3)),
            reply_jitter: us(3),
            reply_jitter_a_block: us(3),
            spindle_drift: Some("2.5ppm/30min".parse().unwrap()),
            activity: Some(Activity {
                every: SimDuration::from_secs(60),
                lasts: SimDuration::from_ms(100),
            }),
            write_cache: Some(WriteCache::On),
            sector: Some(SectorFormat::Emulated512),
        };
        assert_eq!(behaviour, expected);
        assert_eq!(bad, BadBlocks::numbered([9], SimDuration::from_us(3)));
    }

    #[test]
    fn emulated_drive_names_unknown_words() {
        let error = |text: &str| text.parse::<Emulated>().unwrap_err();
        let unknown = error("atlas10k?depth=2");
        assert!(
            unknown.starts_with("\"depth\" is not known: there are queue_depth, "),
            "{unknown}"
        );
        assert!(unknown.ends_with(", recovery, seed"), "{unknown}");
        assert!(error("atlas10k?store=/tmp/x").contains("freewheel emulate --store FILE"));
        assert!(error("atlas10k?volatile_cache=on").contains("freewheel emulate --volatile-cache"));
        for (keys, fault) in [
            ("seed=x", "seed=x: write a whole number of 0 to 9223372036854775807"),
            ("seed=1&seek_jitter=5", "seek_jitter=5: `5` has no unit"),
            ("seek_jitter", "seek_jitter: `` does not begin with a decimal number"),
            ("seed=1&seed=2", "seed=2: give it once"),
            ("write_cache=maybe", "write_cache=maybe: there are on, off"),
            ("queue_depth=0", "queue_depth=0: 0 is not in 1..=65536"),
            (
                "queue_policy=best",
                "queue_policy=best: no policy is called `best`: there are fcfs, ",
            ),
            ("activity=1s", "activity=1s: give EVERY/LASTS, as 60s/100ms"),
            ("bad=9-7", "bad=9-7: 9 is after 7: give the lower one first"),
        ] {
            let error = error(&format!("atlas10k?{keys}"));
            assert!(error.starts_with(fault), "{error}");
        }
    }
}
