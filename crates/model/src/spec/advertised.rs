//! Promises of the maker, quantity by quantity.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use freewheel_units::{Bytes, SimDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Promises of the maker for the whole drive, all actuators working.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Advertised {
    /// Capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Bytes>,
    /// Mean seek before a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_seek_read: Option<SimDuration>,
    /// Mean seek before a write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_seek_write: Option<SimDuration>,
    /// Seek to the next cylinder before a read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track_to_track_read: Option<SimDuration>,
    /// Seek to the next cylinder before a write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track_to_track_write: Option<SimDuration>,
    /// Best sustained rate, bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer_rate_per_second: Option<Bytes>,
    /// Sustained rate at the inner edge, bytes a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_rate_per_second: Option<Bytes>,
    /// Requests a second at random places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<RandomRates>,
    /// Reason why the model misses one of these values: the value's name, and the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub known_misses: BTreeMap<Quantity, String>,
}

impl Advertised {
    /// True if no value is promised.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Requests a second at random places of the whole drive, and how they are measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomRates {
    /// Reads alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_per_second: Option<u32>,
    /// Writes alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_per_second: Option<u32>,
    /// Size of a request.
    pub blocks: NonZeroU32,
    /// Requests that wait or are served at any time.
    pub outstanding: NonZeroU32,
    /// Further conditions, as published.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub conditions: String,
}

/// A quantity that makers advertise, in bytes, nanoseconds, bytes a second or requests a second.
///
/// In a drive file a quantity has the name of its key in `advertised`; of a key of `random`, with that
/// name before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Capacity of the whole drive.
    Capacity,
    /// Mean seek before a read.
    #[serde(rename = "average_seek_read")]
    MeanSeekRead,
    /// Mean seek before a write.
    #[serde(rename = "average_seek_write")]
    MeanSeekWrite,
    /// Seek to the next cylinder before a read.
    TrackToTrackRead,
    /// Seek to the next cylinder before a write.
    TrackToTrackWrite,
    /// Sustained rate of the outermost zone, all actuators working.
    #[serde(rename = "outer_rate_per_second")]
    OuterRate,
    /// Sustained rate of the innermost zone, all actuators working.
    #[serde(rename = "inner_rate_per_second")]
    InnerRate,
    /// Reads at random places, all actuators working.
    #[serde(rename = "random_reads_per_second")]
    RandomReads,
    /// Writes at random places, all actuators working.
    #[serde(rename = "random_writes_per_second")]
    RandomWrites,
}

/// The unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum QuantityUnit {
    Bytes,
    Nanoseconds,
    /// Bytes a second.
    BytesPerSecond,
    /// Requests a second.
    RequestsPerSecond,
}

impl Quantity {
    /// Every one that follows from the mechanics, in the order of data sheets.
    pub const OF_MECHANICS: [Self; 7] = [
        Self::Capacity,
        Self::OuterRate,
        Self::InnerRate,
        Self::MeanSeekRead,
        Self::MeanSeekWrite,
        Self::TrackToTrackRead,
        Self::TrackToTrackWrite,
    ];

    /// Quantities in which the electronics have a part.
    pub const OF_ELECTRONICS: [Self; 2] = [Self::RandomReads, Self::RandomWrites];

    /// Name of the quantity in documents, with its unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity_bytes",
            Self::MeanSeekRead => "mean_seek_read_ns",
            Self::MeanSeekWrite => "mean_seek_write_ns",
            Self::TrackToTrackRead => "track_to_track_read_ns",
            Self::TrackToTrackWrite => "track_to_track_write_ns",
            Self::OuterRate => "outer_rate_bytes_per_second",
            Self::InnerRate => "inner_rate_bytes_per_second",
            Self::RandomReads => "random_reads_per_second",
            Self::RandomWrites => "random_writes_per_second",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::MeanSeekRead => "mean seek, read",
            Self::MeanSeekWrite => "mean seek, write",
            Self::TrackToTrackRead => "track to track, read",
            Self::TrackToTrackWrite => "track to track, write",
            Self::OuterRate => "sustained rate, outermost zone",
            Self::InnerRate => "sustained rate, innermost zone",
            Self::RandomReads => "random reads",
            Self::RandomWrites => "random writes",
        }
    }

    /// Unit of the quantity.
    pub fn unit(self) -> QuantityUnit {
        match self {
            Self::Capacity => QuantityUnit::Bytes,
            Self::OuterRate | Self::InnerRate => QuantityUnit::BytesPerSecond,
            Self::RandomReads | Self::RandomWrites => QuantityUnit::RequestsPerSecond,
            _ => QuantityUnit::Nanoseconds,
        }
    }

    /// Greatest deviation from the advertised value with which a model passes, as a share of it.
    /// Seeks are promised as typical values of a population of drives. Requests a second depend on
    /// firmware, which is not published. The rest is exact.
    pub fn tolerance(self) -> f64 {
        match self.unit() {
            QuantityUnit::Nanoseconds => 0.05,
            QuantityUnit::RequestsPerSecond => 0.15,
            QuantityUnit::Bytes | QuantityUnit::BytesPerSecond => 0.01,
        }
    }

    /// Value that the maker promises.
    pub(crate) fn advertised(self, by: &Advertised) -> Option<u64> {
        match self {
            Self::Capacity => bytes(by.capacity),
            Self::MeanSeekRead => time(by.average_seek_read),
            Self::MeanSeekWrite => time(by.average_seek_write),
            Self::TrackToTrackRead => time(by.track_to_track_read),
            Self::TrackToTrackWrite => time(by.track_to_track_write),
            Self::OuterRate => bytes(by.outer_rate_per_second),
            Self::InnerRate => bytes(by.inner_rate_per_second),
            Self::RandomReads => random(|rates| rates.reads_per_second, by),
            Self::RandomWrites => random(|rates| rates.writes_per_second, by),
        }
    }
}

fn time(time: Option<SimDuration>) -> Option<u64> {
    time.map(SimDuration::ns)
}

fn bytes(bytes: Option<Bytes>) -> Option<u64> {
    bytes.map(Bytes::get)
}

fn random(rate: fn(&RandomRates) -> Option<u32>, by: &Advertised) -> Option<u64> {
    by.random.as_ref().and_then(rate).map(u64::from)
}
