//! The formats: one file each, and the registry that everything else asks.
//!
//! Goals: a format is recognised by its content; a guess that could be wrong by a factor is not
//! made, the user is asked to name the format instead.
//! Non-goals: formats without addresses or without times.

mod disksim_ascii;
mod disksim_validate;
pub(crate) mod freewheel_csv;
mod heimdall_text;
mod hp_srt;
mod msr_csv;
pub(crate) mod parquet;
mod spc;
mod vscsi;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::UnknownFormatName;
use crate::input::Input;
use crate::source::{Source, Stop};

/// A format of block-I/O traces.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Freewheel's Parquet.
    Parquet,
    /// HP's Single-disk Request Trace, binary, as of HP-UX and `cello`.
    HpSrt,
    /// Freewheel's recorded CSV.
    FreewheelCsv,
    /// CSV of the MSR Cambridge volumes.
    MsrCsv,
    /// CSV of the Storage Performance Council, as of the UMass repository.
    Spc,
    /// Text cuts of the Heimdall and FlashNet projects.
    HeimdallText,
    /// DiskSim's default text.
    DisksimAscii,
    /// DiskSim's traces with responses measured on a real drive.
    DisksimValidate,
    /// VMware's vSCSI binary trace, as of CloudPhysics.
    Vscsi,
}

/// Starts reading a stream.
type OpenStream = fn(Input) -> Result<Box<dyn Source>, Stop>;

/// What the registry knows of a format.
pub(crate) struct Row {
    pub format: Format,
    pub name: &'static str,
    pub description: &'static str,
    /// Whether its times count from some calendar or boot, so that the first arrival becomes 0.
    pub rebased: bool,
    /// Whether a trace that begins with these bytes is of this format.
    pub detect: fn(&[u8]) -> bool,
    /// Starts reading. `None` for Parquet, which needs a file and not a stream.
    pub open: Option<OpenStream>,
}

/// In the order of [`Format`], which is the order of detection: the surest mark first.
const REGISTRY: &[Row] = &[
    parquet::ROW,
    hp_srt::ROW,
    freewheel_csv::ROW,
    msr_csv::ROW,
    spc::ROW,
    heimdall_text::ROW,
    disksim_ascii::ROW,
    disksim_validate::ROW,
    vscsi::ROW,
];

impl Format {
    /// Every format, in the order of detection.
    pub const ALL: [Self; REGISTRY.len()] = {
        let mut all = [Self::Parquet; REGISTRY.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = REGISTRY[index].format;
            index += 1;
        }
        all
    };

    pub(crate) fn row(self) -> &'static Row {
        &REGISTRY[self as usize]
    }

    /// The name used on the command line and in JSON; it never changes.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// One line for people: layout and units.
    pub fn description(self) -> &'static str {
        self.row().description
    }

    /// Whether times of this format count from a calendar or a boot, so that the reader makes
    /// them relative to the first record. Otherwise their zero has a meaning and is kept.
    pub fn is_rebased(self) -> bool {
        self.row().rebased
    }

    /// The format of a decompressed trace that begins with `head`. Give the first 64 KiB, or all
    /// when it is shorter: then the last line counts as whole.
    pub fn detect(head: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|format| (format.row().detect)(head))
    }

    /// All names, for messages.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormatName;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormatName { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_has_each_format_at_its_own_place() {
        for format in Format::ALL {
            assert_eq!(format.row().format, format);
        }
    }

    #[test]
    fn a_name_is_the_same_on_the_command_line_and_in_json() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_names() {
        let text = "blktrace".parse::<Format>().unwrap_err().to_string();
        assert!(Format::ALL.iter().all(|format| text.contains(format.name())), "{text}");
    }

    #[test]
    fn nothing_is_recognised_in_nothing() {
        for head in [&b""[..], b"\n\n", b"# only a comment\n", b"hello, world\n", &[0; 64]] {
            assert_eq!(Format::detect(head), None, "{head:?}");
        }
    }
}
