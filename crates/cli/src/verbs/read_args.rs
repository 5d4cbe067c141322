//! Options for how a trace is read, as all verbs have them that read one.

use clap::Args;
use freewheel::experiments::TraceWorkload;
use freewheel::traces::{Clock, Format, Layer, Numbers, OpenOptions, TimeUnit};

use crate::verbs::choice::{Choice, choice};

/// Options that read a trace.
#[derive(Args)]
pub struct ReadArgs {
    /// Format of the trace (see `freewheel trace formats`); recognised by its contents if not given
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Count and skip malformed records, and read a damaged .gz or .zst up to the damage, instead of
    /// stopping there
    #[arg(long)]
    pub lenient: bool,
    /// Unit of the trace's times, s, ms, us or ns, in formats that come with several; found out if not
    /// given
    #[arg(long, value_name = "UNIT")]
    time_unit: Option<TimeUnit>,
    /// Origin of the trace's times; what its format says if not given
    #[arg(long, value_parser = choice(CLOCKS))]
    clock: Option<Clock>,
    /// Numbers of a cache simulator's trace name objects, each with a place of its own
    #[arg(long)]
    objects: bool,
    /// Numbers of a cache simulator's trace name blocks of 512 bytes
    #[arg(long, conflicts_with = "objects")]
    addresses: bool,
    /// Requests of a block layer's trace (blkparse, blktrace, ftrace): as issued if one in a hundred was merged,
    /// else as queued, if not given
    #[arg(long, value_parser = choice(LAYERS))]
    layer: Option<Layer>,
}

const LAYERS: &[Choice<Layer>] = &[
    ("queued", Layer::Queued, "As the file system asked for them"),
    ("issued", Layer::Issued, "As the drive got them, each with all that was merged into it"),
];

const CLOCKS: &[Choice<Clock>] = &[
    (
        "from-start",
        Clock::FromStart,
        "The start of a recording: where the clock steps back to the beginning, a second one follows",
    ),
    ("absolute", Clock::Absolute, "One moment for all records: they are sorted"),
];

impl ReadArgs {
    pub fn options(&self) -> OpenOptions {
        OpenOptions {
            format: self.format,
            lenient: self.lenient,
            time_unit: self.time_unit,
            clock: self.clock,
            numbers: self.numbers(),
            layer: self.layer.unwrap_or(Layer::Auto),
            ..OpenOptions::default()
        }
    }

    /// Applies the options to a replay.
    pub fn apply(&self, workload: TraceWorkload) -> TraceWorkload {
        TraceWorkload {
            format: self.format.map(|format| format.name().to_owned()),
            lenient: self.lenient,
            time_unit: self.time_unit,
            clock: self.clock,
            numbers: self.numbers(),
            layer: self.layer.unwrap_or(Layer::Auto),
            ..workload
        }
    }

    /// Each option, and whether it was given.
    pub fn given(&self) -> [(&'static str, bool); 7] {
        [
            ("--format", self.format.is_some()),
            ("--lenient", self.lenient),
            ("--time-unit", self.time_unit.is_some()),
            ("--clock", self.clock.is_some()),
            ("--objects", self.objects),
            ("--addresses", self.addresses),
            ("--layer", self.layer.is_some()),
        ]
    }

    fn numbers(&self) -> Option<Numbers> {
        let objects = self.objects.then_some(Numbers::Objects);
        objects.or(self.addresses.then_some(Numbers::Addresses))
    }
}
