//! The formats: one file each, and the registry that everything else asks.
//!
//! Goals: a format is recognised by its content; a guess that could be wrong by a factor is not
//! made, the user is asked to name the format instead.
//! A trace without fine times is read, and its format says so.
//! Non-goals: formats without addresses.

mod alibaba_csv;
mod arc_lis;
mod biosnoop;
pub(crate) mod blkparse;
pub(crate) mod blktrace;
mod block_kind;
mod columns;
mod completed;
mod disksim_ascii;
mod disksim_validate;
mod fio_iolog;
mod fio_lat_log;
mod fiu_text;
mod five_columns;
mod flashnet_csv;
pub(crate) mod freewheel_csv;
mod ftrace;
mod heimdall_text;
mod hfplayer_csv;
mod how;
mod hp_srt;
mod k5cloud_csv;
mod last_fields;
mod lcs;
mod libcachesim;
mod libcachesim_csv;
mod libcachesim_txt;
mod lirs_trc;
mod mqsim;
mod msr_csv;
mod names;
mod oracle_general;
pub(crate) mod parquet;
mod plausible;
mod quoted;
mod spc;
mod systor17;
mod tencent_csv;
mod thesios_csv;
mod vscsi;
mod wpa_csv;
mod xperf_csv;

use std::fmt;
use std::str::FromStr;

use freewheel_units::did_you_mean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::input::Input;
use crate::no_trace::is_log_of_averages;
use crate::source::{Source, Stop, whole_lines};

pub(crate) use five_columns::UnitFound;
pub use five_columns::UnitRate;
pub use how::{Clock, Layer, Numbers};
pub(crate) use how::{How, ObjectPlaces, PAGE_BLOCKS};

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
    /// Events of Linux's block layer as `blktrace` writes them, binary.
    Blktrace,
    /// libCacheSim's `lcs`, versions 1 to 8.
    Lcs,
    /// fio's iolog, version 3.
    FioIolog,
    /// fio's iolog, version 2, which has no times.
    FioIologV2,
    /// CSV of hfplayer.
    HfplayerCsv,
    /// CSV of Google's storage servers, as of Thesios.
    ThesiosCsv,
    /// The table "Disk Usage" of Windows Performance Analyzer as CSV.
    WpaCsv,
    /// Disk events of Windows as `xperf` prints them.
    XperfCsv,
    /// CSV of the MSR Cambridge volumes.
    MsrCsv,
    /// CSV of the Storage Performance Council, as of the UMass repository.
    Spc,
    /// CSV of the virtual desktops of SYSTOR '17.
    Systor17,
    /// CSV of Alibaba Cloud.
    AlibabaCsv,
    /// fio's log of latencies, with offsets.
    FioLatLog,
    /// CSV of FlashNet's replays.
    FlashnetCsv,
    /// CSV of the cloud service FUJITSU K5.
    K5cloudCsv,
    /// CSV of Tencent Cloud, with offsets in sectors.
    TencentCsv,
    /// CSV of mirrors of Tencent Cloud's traces, with offsets in bytes.
    TencentBytesCsv,
    /// Events of Linux's block layer as `blkparse` prints them.
    Blkparse,
    /// Events of Linux's block layer as ftrace, trace-cmd and `perf script` print them.
    Ftrace,
    /// Requests as BCC's `biosnoop` prints them.
    Biosnoop,
    /// Text of Florida International University.
    FiuText,
    /// Text cuts of the Heimdall and FlashNet projects.
    HeimdallText,
    /// DiskSim's default text.
    DisksimAscii,
    /// Text of the SSD simulator MQSim.
    Mqsim,
    /// DiskSim's traces with responses measured on a real drive.
    DisksimValidate,
    /// Page references of the ARC paper.
    ArcLis,
    /// libCacheSim's CSV.
    LibcachesimCsv,
    /// Page references of the LIRS paper.
    LirsTrc,
    /// libCacheSim's text.
    LibcachesimTxt,
    /// VMware's vSCSI binary trace, as of CloudPhysics.
    Vscsi,
    /// libCacheSim's `oracleGeneral`.
    OracleGeneral,
}

/// A format was asked for by a name that none has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{name}` is not a trace format: `freewheel trace formats` lists the {count} there are{meant}",
    count = Format::ALL.len(),
    meant = did_you_mean(name, Format::ALL.map(Format::name))
)]
pub struct UnknownFormatName {
    /// The name given.
    pub name: String,
}

/// Quality of a format's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// Times of requests, as the traced system took them.
    Recorded,
    /// Whole seconds: replays spread the requests of a second over it.
    Seconds,
    /// None: the order of requests, for caches only.
    None,
}

/// Starts reading a stream.
type OpenStream = fn(Input, &How) -> Result<Box<dyn Source>, Stop>;

/// The unit of the times of a trace that begins so; the format may have been named by the person.
type FindUnit = fn(head: &[u8], is_named: bool) -> UnitFound;

/// Row of a format in the registry.
pub(crate) struct Row {
    pub format: Format,
    pub name: &'static str,
    pub description: &'static str,
    /// True if its times count from some calendar or boot, so that the first arrival becomes 0.
    pub rebased: bool,
    pub clock: Clock,
    pub timing: Timing,
    /// Tells the unit of its times, where traces of this format come with several.
    pub unit: Option<FindUnit>,
    /// True if the numbers of blocks may be those of objects.
    pub may_be_objects: bool,
    /// True if a trace that begins with these bytes is of this format.
    pub detect: fn(&[u8]) -> bool,
    /// Starts reading. `None` for Parquet, which needs a file and not a stream.
    pub open: Option<OpenStream>,
}

/// In the order of [`Format`], which is the order of detection: the surest mark first.
const REGISTRY: &[Row] = &[
    parquet::ROW,
    hp_srt::ROW,
    freewheel_csv::ROW,
    blktrace::ROW,
    lcs::ROW,
    fio_iolog::ROW,
    fio_iolog::V2_ROW,
    hfplayer_csv::ROW,
    thesios_csv::ROW,
    wpa_csv::ROW,
    xperf_csv::ROW,
    msr_csv::ROW,
    spc::ROW,
    systor17::ROW,
    alibaba_csv::ROW,
    fio_lat_log::ROW,
    flashnet_csv::ROW,
    k5cloud_csv::ROW,
    tencent_csv::ROW,
    tencent_csv::BYTES_ROW,
    blkparse::ROW,
    ftrace::ROW,
    biosnoop::ROW,
    fiu_text::ROW,
    heimdall_text::ROW,
    disksim_ascii::ROW,
    mqsim::ROW,
    disksim_validate::ROW,
    arc_lis::ROW,
    libcachesim_csv::ROW,
    lirs_trc::ROW,
    libcachesim_txt::ROW,
    vscsi::ROW,
    oracle_general::ROW,
];

/// Lines that are looked at one by one where no format fits the whole.
const NEAR_LINES: usize = 64;

/// Question where a trace fits two formats that differ by a factor.
pub(crate) struct Question {
    /// True if a trace that begins with these bytes fits both.
    pub is_met: fn(&[u8]) -> bool,
    /// The question, without its mark.
    pub says: &'static str,
    pub choices: [Format; 2],
}

const QUESTIONS: &[Question] = &[tencent_csv::QUESTION];

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

    /// True if times of this format count from a calendar or a boot, so that the reader makes them relative
    /// to the first record. Otherwise their zero has a meaning and is kept.
    pub fn is_rebased(self) -> bool {
        self.row().rebased
    }

    /// The format of a decompressed trace that begins with `head`. Give the first 64 KiB, or all
    /// when it is shorter: then the last line counts as whole.
    pub fn detect(head: &[u8]) -> Option<Self> {
        (!is_log_of_averages(head))
            .then(|| Self::ALL.into_iter().find(|format| (format.row().detect)(head)))
            .flatten()
    }

    /// True if its numbers may name objects, instead of blocks.
    pub fn may_hold_objects(self) -> bool {
        self.row().may_be_objects
    }

    /// True if it has the requests that were queued beside those that were issued.
    pub(crate) fn has_layers(self) -> bool {
        matches!(self, Self::Blkparse | Self::Blktrace | Self::Ftrace)
    }

    /// Quality of the format's times.
    pub fn timing(self) -> Timing {
        self.row().timing
    }

    /// Question about a trace that begins with `head` and that [`detect`](Self::detect) does not recognise.
    pub(crate) fn question(head: &[u8]) -> Option<&'static Question> {
        QUESTIONS.iter().find(|question| (question.is_met)(head))
    }

    /// The format that fits the most of the first lines of `head`, each alone; of equal ones the first.
    pub(crate) fn nearest(head: &[u8]) -> Option<Self> {
        let lines = whole_lines(head).take(NEAR_LINES);
        let found: Vec<Self> = lines.filter_map(Self::detect).collect();
        found
            .iter()
            .copied()
            .rev()
            .max_by_key(|format| found.iter().filter(|other| *other == format).count())
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
    fn registry_has_formats_in_place() {
        for format in Format::ALL {
            assert_eq!(format.row().format, format);
        }
    }

    #[test]
    fn format_name_same_in_cli_and_json() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
        }
    }

    #[test]
    fn unknown_name_answered_with_nearest() {
        let text = "blktraces".parse::<Format>().unwrap_err().to_string();
        for says in [&*format!("the {} there are", Format::ALL.len()), "did you mean `blktrace`?"] {
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn nearest_format_matches_most_first_lines() {
        let head =
            b"a title\nand words\n0,8,512,r,1.5\n0,16,512,w,2.5\n1,1.5,R,0,512\nthe end of it\n";
        assert_eq!(Format::detect(head), None);
        assert_eq!(Format::nearest(head), Some(Format::Spc));
        assert_eq!(Format::nearest(b"hello, world\n"), None);
    }

    #[test]
    fn empty_input_recognised_as_nothing() {
        for head in [&b""[..], b"\n\n", b"# only a comment\n", b"hello, world\n", &[0; 64]] {
            assert_eq!(Format::detect(head), None, "{head:?}");
        }
    }
}
