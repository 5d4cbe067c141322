//! Settings of a scheduler in front of a drive.

use std::fmt;
use std::str::FromStr;

use freewheel_units::{Lbn, Op, ParseQuantityError, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::off_slots::OFF_SHARE_MAX;
use freewheel_freeblock::Ends;
use freewheel_model::drive::spec::ByOp;
use freewheel_model::drive::{Drive, SeekMargins};

/// Settings of a scheduler in front of a drive (fast02 sections 3, 4).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PredictionSpec {
    /// Commands at the drive at once. With two the drive has its next command when it completes one,
    /// and cannot reorder them.
    pub queue_depth: u32,
    /// Time that a seek to or from free work may take beyond its prediction: one for all, or `learned` for
    /// each kind of seek from the ends of commands.
    pub conservatism: Conservatism,
    /// For learned conservatism: the largest delay of the foreground by free work, as a share of the
    /// head's time at work. 0.000001 to 1.
    pub budget: f64,
    /// Free work on the tracks of foreground requests.
    pub same_track: SameTrack,
    /// Time before the drive needs its command at which the next request is chosen; requests that arrive
    /// before the choice take part in it. The choice is earlier where decisions take longer. With a time
    /// longer than any command, the choice is made as soon as the drive takes the command.
    pub lead_time: SimDuration,
    /// Share of slots in which free work in gaps is switched off, at random places, to measure what free
    /// work costs clients. 0 to 0.25; with 0 no cost is measured.
    pub off_share: f64,
    /// Length of such a slot. Its first quarter is not measured.
    pub off_slot: SimDuration,
}

impl Default for PredictionSpec {
    /// Two commands, as in fast02. Half a per cent is what `beyond.fast02` allows the foreground to lose.
    /// The time before the drive needs a command is assumed, and the least: see [`crate::Deciding`].
    /// Slots without free work are assumed: several times the time in which a busy drive replaces its
    /// buffer, and a hundredth of the free bandwidth.
    fn default() -> Self {
        Self {
            queue_depth: 2,
            conservatism: Conservatism::Learned,
            budget: 0.005,
            same_track: SameTrack::default(),
            lead_time: SimDuration::from_us(300),
            off_share: 0.01,
            off_slot: SimDuration::from_secs(1),
        }
    }
}

impl PredictionSpec {
    /// `drive` as planners of free work should see it: each movement longer by a constant margin, and no
    /// time for the processing of commands. Planners get learned margins later.
    pub fn planners_drive(&self, drive: &Drive) -> Drive {
        let drive = drive.with_overhead(ByOp::default());
        match self.conservatism {
            Conservatism::Constant(margin) => {
                drive.with_seek_margins(SeekMargins::constant(margin))
            }
            Conservatism::Learned => drive,
        }
    }

    /// Err with what is allowed, for a budget that is not.
    pub fn check_budget(&self) -> Result<(), &'static str> {
        // With less the account would never earn anything, and free work once overdrawn never go on.
        let is_allowed = (1.0 / MILLION..=1.0).contains(&self.budget);
        is_allowed.then_some(()).ok_or(
            "0.000001 to 1 is allowed; with 0.005, free work may delay clients by half a per cent of the \
             head's time, and without tasks it delays none",
        )
    }

    /// Err with key, value and what is allowed, for slots without free work that cannot be.
    pub fn check_off_slots(&self) -> Result<(), (&'static str, String, &'static str)> {
        let Self { off_share, off_slot, .. } = *self;
        if !(0.0..=OFF_SHARE_MAX).contains(&off_share) {
            return Err(("off_share", off_share.to_string(), "0 to 0.25 is allowed"));
        }
        if !(OFF_SLOT_MIN..=OFF_SLOT_MAX).contains(&off_slot) {
            return Err(("off_slot", off_slot.to_string(), "1ms to 1h is allowed"));
        }
        Ok(())
    }
}

const MILLION: f64 = 1e6;

/// Shorter slots hold no request, and longer ones hold phases of a load.
const OFF_SLOT_MIN: SimDuration = SimDuration::from_ms(1);
const OFF_SLOT_MAX: SimDuration = SimDuration::from_secs(3600);

/// Length of the margins of seeks to and from free work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Conservatism {
    /// One margin for every seek (fast02 section 4.2).
    Constant(SimDuration),
    /// Learned for each kind of seek, so that delays of the foreground hold a budget.
    Learned,
}

const LEARNED: &str = "learned";

impl FromStr for Conservatism {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == LEARNED { Ok(Self::Learned) } else { text.parse().map(Self::Constant) }
    }
}

impl TryFrom<String> for Conservatism {
    type Error = ParseQuantityError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for Conservatism {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(margin) => margin.fmt(out),
            Self::Learned => out.pad(LEARNED),
        }
    }
}

impl From<Conservatism> for String {
    fn from(conservatism: Conservatism) -> Self {
        conservatism.to_string()
    }
}

impl JsonSchema for Conservatism {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Conservatism".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let time = generator.subschema_for::<SimDuration>();
        schemars::json_schema!({
            "description": "A length of time, or learned from the ends of commands",
            "anyOf": [time, { "const": LEARNED }],
        })
    }
}

/// Free work on the track of a foreground request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SameTrack {
    /// On the destination track, in one command with the foreground request; on the source track not
    /// at all, for its command has been given (fast02 section 4.2).
    #[default]
    Merge,
    /// As a separate command as well: for drives that do not take two commands on a track for a
    /// sequential stream.
    Distinct,
    /// Not at all.
    Never,
}

impl SameTrack {
    /// Allowed free work on the tracks at the ends of the gap before a request that begins with `edge`.
    pub fn ends(self, drive: &Drive, op: Op, edge: Lbn) -> Ends {
        let nothing = Ends { source_closed: true, destination_before: Some(SimDuration::ZERO) };
        match self {
            Self::Distinct => Ends::default(),
            // A command that ends where the request begins is one with it.
            Self::Merge if op == Op::Read => {
                Ends { destination_before: Some(track_before(drive, edge)), ..nothing }
            }
            Self::Merge | Self::Never => nothing,
        }
    }
}

/// Time from the beginning of a block's track, by its blocks, to the block.
fn track_before(drive: &Drive, block: Lbn) -> SimDuration {
    let layout = drive.layout();
    let at = layout.locate(block);
    let zone = layout.run(block, 1).zone;
    let sectors = u64::from(layout.zones()[zone].blocks_per_track());
    let before = u64::from(at.sector) - first_sector(drive, block).min(u64::from(at.sector));
    SimDuration::from_ns((before * drive.rotation().period().ns()).div_ceil(sectors))
}

/// Sector of the first block on a block's track.
fn first_sector(drive: &Drive, block: Lbn) -> u64 {
    let layout = drive.layout();
    layout.locate(layout.track_bounds(block).0).sector.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(budget: f64) -> PredictionSpec {
        PredictionSpec { budget, ..PredictionSpec::default() }
    }

    #[test]
    fn budget_below_millionth_is_refused() {
        for budget in [f64::NAN, -0.1, 0.0, 4e-7, 9e-7, 1.001, f64::INFINITY] {
            let error = spec(budget).check_budget().unwrap_err();
            assert!(error.contains("0.000001 to 1 is allowed"), "{budget}: {error}");
        }
        for budget in [1e-6, 0.005, 1.0] {
            assert_eq!(spec(budget).check_budget(), Ok(()), "{budget}");
        }
    }
}
