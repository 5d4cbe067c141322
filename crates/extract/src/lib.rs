//! Extraction of a drive from outside: by sending reads and timing their answers.
//!
//! The job of DIXtrac (Schindler and Ganger, CMU-CS-99-176) without a drive's help: no command is
//! used that says where a block lies. Everything follows from the spindle, which turns evenly: the
//! time of an answer, folded by the period, is the angle of its block, however long the seek was.
//!
//! ```text
//!   buffer    what has to come between two reads of a place          buffer.rs
//!     -> clock    period, phase, jitter                               clock.rs, passages.rs
//!     -> zones    tracks, skews, heads, defects, zones                zones.rs, tracks.rs,
//!                                                                     refine.rs, map.rs
//!                 spares of cylinders, bands                          runs.rs, bands.rs
//!     -> timer    command overhead, head switch, order of heads, seeks   seeks.rs, heads.rs
//!     -> bus      time of a block on the way to the host              bus.rs
//!     -> fit      what of the electronics explains reads best         fit.rs
//!     -> verify   blocks that lie elsewhere than found                verify.rs
//!     -> drive    a drive file with every value's source              describe.rs
//!     -> held out requests that say what the file is worth            held_out.rs
//! ```
//!
//! Of a drive with sectors of several blocks all of this takes a sector for a block (sectors.rs): it is
//! asked for whole ones, and angles differ from sector to sector only.
//!
//! Only reads are sent, unless writes are to be timed as well (writes.rs): then blocks are written
//! with what was read from them. Found are tracks in the order of cylinders, on heads in any of the
//! orders of a drive file, and bands of cylinders; spares after the data of zones, tracks, cylinders
//! and ranges of cylinders; defects that are passed over. Non-goals for now: drives with more than one
//! arm, spare sectors before the data of their tracks or cylinders, bands with spares of their own or
//! narrower than the others, sectors moved to spares one by one. What is none of these is refused, or
//! shows in the blocks that are read in the end.

mod bands;
mod buffer;
mod bus;
mod clock;
mod describe;
mod fit;
mod heads;
mod held_out;
mod journal;
mod layout;
mod limits;
mod map;
mod merge;
mod passages;
mod prober;
mod progress;
mod refine;
mod runs;
mod sectors;
mod seeks;
mod surface_layout;
mod surfaces;
mod track_map;
mod track_table;
mod tracks;
pub mod validate;
mod verify;
mod ways;
mod writes;
mod zones;

use std::collections::VecDeque;
use std::io;

use freewheel_model::drive::BuildDriveError;
use freewheel_model::drive::spec::{DriveSpec, HeldOut, Mapping};
use freewheel_model::electronics::spec::SectorFormat;
use freewheel_sim::black_box::{BlackBox, DriveGone};
use freewheel_units::SimDuration;
use serde::Serialize;
use thiserror::Error;

use buffer::Buffer;
use bus::BusFound;
use clock::Clock;
pub use journal::{JournalEntry, JournalError, JournalHead, read_journal};
use map::ZoneMap;
pub use merge::{MergedValue, TrackMerge};
use passages::TimingSpread;
use prober::{Prober, Shadow};
pub use progress::{ExtractProgress, ExtractStep};
use sectors::InSectors;
use seeks::{Timer, distances};
use surface_layout::SurfaceLayout;
use surfaces::Surfaces;
pub use track_map::{TrackMap, TrackStretch, track_map};
pub use track_table::TrackTableError;
use verify::Verified;
use ways::Ways;
use writes::WriteTimes;
use zones::Surveyor;

/// Reason why a drive could not be characterised.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ExtractError {
    /// The drive does not answer.
    #[error("block {block}: no answer within a minute; is the drive still there?")]
    NoAnswer { block: u64 },
    /// The connection to it is lost.
    #[error(transparent)]
    DriveGone(#[from] DriveGone),
    /// The journal cannot be written.
    #[error("the journal: {0}")]
    Journal(#[from] io::Error),
    /// A journal of something else.
    #[error("the journal does not fit at {entry:?}: it is of another drive, or of another version")]
    OtherJournal { entry: String },
    /// A block that cannot be read, nor any around it.
    #[error("block {block} and those around it cannot be read: this drive is broken")]
    Unreadable {
        /// LBN of the read without an answer.
        block: u64,
    },
    #[error(
        "block {block} cannot be read, nor {count} others that were tried: the drive, or the way to it, is broken"
    )]
    Broken {
        /// The last that was tried.
        block: u64,
        /// Number of reads that failed.
        count: u32,
    },
    /// The buffer holds about all of it.
    #[error(
        "{blocks} blocks are too few: the drive's buffer holds most of them, and a read of those is no measurement of the media"
    )]
    TooSmall { blocks: u64 },
    /// Writes cannot be timed.
    #[error(
        "writes are answered before they are on the media, so their times do not show the media: switch the drive's write cache off, as with hdparm -W0"
    )]
    WriteCache,
    /// The layout that was found leads beyond the last block.
    #[error(
        "block {block} would have to be read, of {blocks}: the answers contradict one another, as when the host or the drive is busy; begin anew on a quiet one"
    )]
    BeyondEnd {
        /// LBN of the read beyond the end.
        block: u64,
        blocks: u64,
    },
    /// Answers come too evenly.
    #[error(
        "half of {count} reads at random places took {:.0} to {:.0} us, which is too much alike for a platter that \
         turns, even at 20,000 rpm: this is no spinning disk, or a cache answers for it",
        from.ns() as f64 / 1e3,
        to.ns() as f64 / 1e3
    )]
    NoTurn {
        count: usize,
        /// The quarter that came soonest took no longer.
        from: SimDuration,
        /// The quarter that came last took no less.
        to: SimDuration,
    },
    /// Answers have no period.
    #[error(
        "the answers have no period between 3,000 and 20,000 rpm: this is no spinning disk, or something else keeps it busy"
    )]
    NoRotation,
    /// Angles do not rise along a track.
    #[error(
        "block {block}: no track is found from there on; the answers vary too much, or the blocks do not follow one another on the media"
    )]
    NoTrack {
        /// Block at which the track should begin.
        block: u64,
    },
    /// Skews without a pattern.
    #[error(
        "block {block}: the skews there do not repeat like those before; tracks in the order of cylinders, and bands of cylinders, are all that extraction understands; if something kept the drive busy, begin anew on a quiet one or with another seed"
    )]
    NoPattern {
        /// First block of the track.
        block: u64,
    },
    /// More tracks than a surface has, in no order that is understood.
    #[error(
        "{tracks} tracks in a row are more than one surface has, and no order of heads was found in the times of movements either: the drive lays its tracks out in a way that is not understood"
    )]
    Bands { tracks: u64 },
    /// Bands that are not as wide as the others.
    #[error(
        "block {block}: elsewhere tracks lie in bands of {cylinders} cylinders, here they do not. No file is written: a narrower band, or one of which spares take a whole surface, is not understood"
    )]
    NarrowerBand {
        /// The first of the zone.
        block: u64,
        /// Cylinders of a band elsewhere.
        cylinders: u64,
    },
    /// The layout that was found makes another drive.
    #[error(
        "what was found makes a drive of {found} blocks, and this one has {blocks}, so no file is written: the drive lays them out in a way that is not understood, or a file cannot say; if something else kept it busy, begin anew on a quiet one or with another seed"
    )]
    OtherCapacity {
        /// Blocks of the layout.
        found: u64,
        blocks: u64,
    },
    /// The values that were found make no drive.
    #[error(
        "what was found makes no drive, so no file is written: {0}; if something else kept it busy, begin anew on a quiet one or with another seed"
    )]
    NoDrive(#[from] BuildDriveError),
    /// A movement that cannot be timed.
    #[error("{what}: its time could not be measured, every read came from the buffer")]
    NoTime { what: String },
}

impl ExtractError {
    /// True if the tracks make no zones of heads or bands.
    fn is_of_another_layout(&self) -> bool {
        matches!(
            self,
            Self::NoTrack { .. }
                | Self::NoPattern { .. }
                | Self::Bands { .. }
                | Self::NarrowerBand { .. }
        )
    }

    /// True if the journal is worth continuing: its measurements are sound. After others the same answers
    /// lead to the same error.
    pub fn leaves_it_open(&self) -> bool {
        matches!(self, Self::DriveGone(_) | Self::NoAnswer { .. } | Self::Journal(_))
    }
}

/// Name of the drive, and the seed of the places that are chosen at random.
#[derive(Debug, Clone)]
pub struct ExtractOptions {
    /// Name of the drive in its file.
    pub name: String,
    /// Seed of the places that are chosen at random.
    pub seed: u64,
    /// True if writes are timed. Each writes what was read from its block before: no other host may write
    /// to the drive meanwhile, and a block that is being written when the power fails is lost.
    pub writes: bool,
    /// True to go track by track where tracks make no zones of heads or bands, as surfaces differ: hours more.
    pub surfaces: bool,
}

/// Confidence of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Measured, and any other value would have shown.
    Measured,
    /// Measured; the true value may differ by the stated error.
    Approximate,
    /// Makes no difference to any time that was measured.
    Unobservable,
    /// Not measured: a usual value.
    Assumed,
}

impl Confidence {
    /// The word for it, in documents too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Approximate => "approximate",
            Self::Unobservable => "unobservable",
            Self::Assumed => "assumed",
        }
    }
}

/// A value of the drive file, and how sure it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExtractedValue {
    /// Key in the drive file.
    pub key: String,
    /// The value as the drive file has it.
    pub value: String,
    /// Basis of the value.
    pub confidence: Confidence,
    /// Method of the measurement, and the uncertainty of the value.
    pub source: String,
}

/// A defect that is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ExtractedSlip {
    /// The first block behind it.
    pub block: u64,
    /// Places passed over.
    pub count: u64,
    /// Blocks by which its place may be further forward or back, within its track.
    pub plus_minus: u64,
}

/// A block that lies elsewhere than the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ExtractedMisplaced {
    /// LBN of the misplaced block.
    pub block: u64,
    /// Nanoseconds by which it passes the head later in the turn.
    pub off_ns: i64,
}

/// Cost and results of an extraction.
#[derive(Debug, Clone, Serialize)]
pub struct Extraction {
    /// Commands sent to the drive, writes included.
    pub commands: u64,
    /// Number of writes among them.
    pub writes: u64,
    /// Time on the drive.
    pub drive_ns: u64,
    /// Standard deviation of one answer about its angle.
    pub reply_jitter_ns: f64,
    /// Every value with its confidence.
    pub values: Vec<ExtractedValue>,
    /// Defects that are passed over, in the order of blocks.
    pub slips: Vec<ExtractedSlip>,
    /// Commands that failed because something could not be read.
    pub failed: u64,
    /// Blocks that could not be read, of those that were asked for one by one.
    pub unreadable: Vec<u64>,
    /// Blocks that were read to see whether they lie where the file says.
    pub verified: u64,
    /// One that is off by no more nanoseconds may not have been noticed.
    pub verified_within_ns: u64,
    /// Blocks that lie elsewhere: with any, the file is wrong.
    pub misplaced: Vec<ExtractedMisplaced>,
    /// Seek times before reads: distance in cylinders, and nanoseconds.
    pub seeks: Vec<(u32, u64)>,
    /// And before writes, if they were timed.
    pub write_seeks: Vec<(u32, u64)>,
    /// The worth of the file, measured on requests that took no part in making it.
    pub held_out: Vec<HeldOut>,
    /// The drive file as a value.
    #[serde(skip)]
    pub spec: DriveSpec,
}

/// Writes a command that was answered by the drive down.
pub type KeepEntry<'a> = Box<dyn FnMut(&JournalEntry) -> io::Result<()> + 'a>;

/// Commands and answers of sessions before, and where to keep new ones. The default is of an
/// extraction that begins and is not kept.
pub struct Journal<'a> {
    /// The commands of sessions before, as [`read_journal`] gives them.
    pub past: VecDeque<JournalEntry>,
    /// Called with every command that was answered by the drive.
    pub keep: KeepEntry<'a>,
}

impl Default for Journal<'_> {
    fn default() -> Self {
        Self { past: VecDeque::new(), keep: Box::new(|_| Ok(())) }
    }
}

/// All that was measured.
struct Found {
    /// Sectors of the drive that one block of all that follows is.
    sector: SectorFormat,
    buffer: Option<Buffer>,
    bus: BusFound,
    period_ns: f64,
    period_error_ns: f64,
    /// None after a minute only.
    wander: Option<TimingSpread>,
    jitter_ns: f64,
    /// Stretches of tracks where surfaces differ.
    zones: Vec<ZoneMap>,
    surfaces: Option<Surfaces>,
    /// None when the order of heads shows in no time.
    mapping: Option<Mapping>,
    overhead_ns: f64,
    /// Time of a head switch, on a drive with several heads.
    head_switch_ns: Option<f64>,
    seeks: Vec<(u32, u64)>,
    /// If they were timed.
    writes: Option<WriteTimes>,
    /// Uncertainty of the times of movements.
    seek_error_ns: f64,
    zone_start_error_ns: f64,
    verified: Verified,
}

/// Characterises a drive by reading it. The drive should be idle otherwise. Of a drive with
/// sectors of several blocks the journal counts sectors.
pub fn extract(
    drive: &mut dyn BlackBox,
    options: &ExtractOptions,
    journal: Journal<'_>,
    progress: ExtractProgress<'_>,
) -> Result<Extraction, ExtractError> {
    let (format, blocks) = (drive.sector(), drive.blocks().get());
    let sector = format.physical_blocks();
    if sector == 1 || !blocks.is_multiple_of(sector.into()) {
        return extract_blocks(drive, SectorFormat::Native512, options, journal, progress);
    }
    let mut sectors = InSectors::new(drive, sector);
    let found = extract_blocks(&mut sectors, format, options, journal, progress);
    found.map_err(|error| error.in_blocks(sector.into()))
}

/// Extracts a drive a block of which is a sector of this format.
fn extract_blocks(
    drive: &mut dyn BlackBox,
    sector: SectorFormat,
    options: &ExtractOptions,
    journal: Journal<'_>,
    progress: ExtractProgress<'_>,
) -> Result<Extraction, ExtractError> {
    let mut prober = Prober::new(drive, options.seed, journal, progress);
    prober.begin("buffer", 1);
    let buffer = buffer::measure(&mut prober)?;
    prober.set_shadow(buffer.map_or(Shadow::default(), |buffer| buffer.shadow()));
    let mut clock = Clock::find(&mut prober)?;
    let write_late_ns =
        if options.writes { writes::reach_the_media(&mut prober, &mut clock)? } else { 0.0 };
    let (zones, layout) = tracks(&mut prober, &mut clock, options.surfaces)?;
    prober.begin("bus", 1);
    let bus = bus::measure(&mut prober, &mut clock, &zones, buffer)?;
    let mut timer = Timer::of_reads(&mut prober, &mut clock, &zones);
    timer.write_late_ns = write_late_ns;
    let surfaces = layout.map(|layout| Surfaces::find(&mut timer, layout)).transpose()?;
    let ways = match &surfaces {
        Some(surfaces) => Ways::Surfaces(surfaces),
        None => {
            timer.prober.begin("order of heads", 1);
            Ways::Heads(heads::mapping(&mut timer)?)
        }
    };
    let times = movements_of(&mut timer, ways, "seeks")?;
    let writes =
        if options.writes { Some(writes::measure(&mut timer, &times, ways)?) } else { None };
    clock.settle(&mut prober)?;
    let mut found = Found {
        sector,
        buffer,
        bus,
        period_ns: clock.period_ns(),
        period_error_ns: clock.period_error_ns(),
        wander: clock.wander(),
        jitter_ns: clock.jitter_ns(),
        zones,
        surfaces,
        mapping: times.mapping,
        overhead_ns: times.at_rest_ns,
        head_switch_ns: times.head_switch_ns(),
        seeks: times.seeks(),
        seek_error_ns: times.error_ns,
        writes,
        zone_start_error_ns: clock.jitter_ns() / refine::START_READS.sqrt(),
        verified: Verified::default(),
    };
    let file = layout::drive(&describe::spec(&found, options), prober.blocks())?;
    let after = describe::answered_after(&found);
    found.verified = verify::verify(&mut prober, &mut clock, &found.zones, &file, after)?;
    let for_fit = held_out::measure_for_fit(&mut prober, &mut clock)?;
    let batches = held_out::measure(&mut prober, &mut clock, options.writes)?;
    prober.begin("electronics", 1);
    let found = describe::describe(&found, options, &prober, &for_fit, &batches);
    prober.end();
    Ok(found)
}

/// All tracks: zones of heads or bands, or where there are none stretches and surfaces that differ.
fn tracks(
    prober: &mut Prober<'_>,
    clock: &mut Clock,
    may_differ: bool,
) -> Result<(Vec<ZoneMap>, Option<SurfaceLayout>), ExtractError> {
    let zones = survey(prober, clock).and_then(|zones| heads::regroup(prober, clock, zones));
    let is_open = match &zones {
        Err(error) => error.is_of_another_layout(),
        // Each piece of a surface without holes looks like a zone of a drive with one head.
        Ok(zones) => zones.iter().all(|zone| zone.heads == 1),
    };
    if !(may_differ && is_open) {
        return Ok((zones?, None));
    }
    let stretches = track_map::stretches(prober, clock)?;
    match SurfaceLayout::of(&stretches) {
        Some(layout) => Ok((surfaces::zones_of_stretches(&stretches, &layout), Some(layout))),
        None => Ok((zones?, None)),
    }
}

/// All zones, one after the other.
fn survey(prober: &mut Prober<'_>, clock: &mut Clock) -> Result<Vec<ZoneMap>, ExtractError> {
    let blocks = prober.blocks();
    // Each counts when its zone is found, and again when that is measured all over.
    prober.begin("tracks and zones", 2 * blocks);
    let mut zones: Vec<ZoneMap> = Vec::new();
    let mut next = 0;
    while next < blocks {
        prober.reached(2 * next);
        let first_cylinder = zones.last().map_or(0, |zone| zone.first_cylinder + zone.cylinders());
        let number = zones.len() + 1;
        let mut zone =
            Surveyor { prober, clock, number }.zone(next, first_cylinder, zones.last())?;
        if let Some(before) = zones.last_mut() {
            // The zone may begin before the block that was thought to be its first.
            before.end_at(zone.first).ok_or(ExtractError::NoTrack { block: zone.first })?;
            zone.first_cylinder = before.first_cylinder + before.cylinders();
        }
        next = zone.end();
        zones.push(zone);
    }
    Ok(zones)
}

/// Least lags of movements, before reads or before writes.
struct Movements {
    mapping: Option<Mapping>,
    /// Without any movement.
    at_rest_ns: f64,
    /// Lag of a head switch, on a drive with several heads.
    switch_lag_ns: Option<f64>,
    /// Distance in cylinders, and lag in nanoseconds.
    lags: Vec<(u64, f64)>,
    error_ns: f64,
}

impl Movements {
    fn time_ns(&self, lag_ns: f64) -> f64 {
        (lag_ns - self.at_rest_ns).max(0.0)
    }

    fn head_switch_ns(&self) -> Option<f64> {
        self.switch_lag_ns.map(|lag| self.time_ns(lag))
    }

    fn seeks(&self) -> Vec<(u32, u64)> {
        self.lags.iter().map(|&(d, lag)| (d as u32, self.time_ns(lag).round() as u64)).collect()
    }

    /// A movement in the middle of those that were timed.
    fn known(&self) -> (u64, f64) {
        self.lags[self.lags.len() / 2]
    }
}

/// Times of one movement that say how much one may be off.
const REPEATS: usize = 8;

/// Times all movements, as the timer is set.
fn movements_of(
    timer: &mut Timer<'_, '_>,
    ways: Ways<'_>,
    step: &'static str,
) -> Result<Movements, ExtractError> {
    let all = distances(ways.cylinders(timer));
    // Behind them come a command without movement and a change of heads.
    timer.prober.begin(step, (all.len() + REPEATS + 2) as u64);
    let mut timed = 0;
    let mut lag_ns = |timer: &mut Timer<'_, '_>, distance| {
        let lag = ways.seek_lag_ns(timer, distance)?;
        timed += 1;
        timer.prober.reached(timed);
        Ok::<f64, ExtractError>(lag)
    };
    let mut lags = Vec::new();
    for distance in all {
        lags.push((distance, lag_ns(timer, distance)?));
    }
    let known = lags.get(lags.len() / 2).copied();
    let (distance, lag) = known.ok_or_else(|| no_time("a seek of a single cylinder"))?;
    let mut again = Vec::new();
    for _ in 0..REPEATS {
        again.push(lag_ns(timer, distance)?);
    }
    let (least, most) = again.iter().fold((lag, lag), |(a, b), &x| (a.min(x), b.max(x)));
    let zones = timer.zones;
    let at_rest =
        timer.least_lag_at_rest_ns(timer.to, lag, |prober| ways.pair(zones, prober, distance))?;
    Ok(Movements {
        mapping: ways.mapping(),
        at_rest_ns: at_rest.ok_or_else(|| no_time("a command without movement"))?,
        switch_lag_ns: ways.switch_lag_ns(timer)?,
        lags,
        error_ns: most - least + seeks::RESOLUTION_NS,
    })
}

fn no_time(what: &str) -> ExtractError {
    ExtractError::NoTime { what: what.into() }
}

/// None for a block that cannot be read.
fn readable<T>(result: Result<T, ExtractError>) -> Result<Option<T>, ExtractError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ExtractError::Unreadable { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
