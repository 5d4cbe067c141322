//! Drives whose sectors hold several blocks: they are asked for whole sectors, which all that is measured
//! takes for blocks; results are in blocks again.

use freewheel_model::drive::spec::{DriveSpec, Hole, Turn, ZoneSpec};
use freewheel_model::electronics::spec::{BufferSpec, BusSpec, ElectronicsSpec, SectorFormat};
use freewheel_sim::black_box::{Answer, BlackBox, Command, DriveGone};
use freewheel_units::{Blocks, Lbn, SimDuration, SimTime};

use super::{ExtractError, ExtractedMisplaced, ExtractedSlip, ExtractedValue};

/// A drive, a block of which is a sector of another one.
pub(super) struct InSectors<'a> {
    drive: &'a mut dyn BlackBox,
    blocks: u64,
}

impl<'a> InSectors<'a> {
    /// View of the drive in sectors of this many blocks.
    pub fn new(drive: &'a mut dyn BlackBox, blocks: u32) -> Self {
        Self { drive, blocks: blocks.into() }
    }
}

impl BlackBox for InSectors<'_> {
    fn blocks(&self) -> Blocks {
        Blocks::new(self.drive.blocks().get() / self.blocks)
    }

    fn sector(&self) -> SectorFormat {
        SectorFormat::Native512
    }

    fn now(&self) -> SimTime {
        self.drive.now()
    }

    fn submit(&mut self, command: Command) {
        let start = Lbn::new(command.start.get() * self.blocks);
        let blocks = command.blocks * self.blocks as u32;
        self.drive.submit(Command { start, blocks, ..command });
    }

    fn holds(&self, start: Lbn, blocks: u32) -> bool {
        self.drive.holds(Lbn::new(start.get() * self.blocks), blocks * self.blocks as u32)
    }

    fn next_answer(&mut self, until: SimTime) -> Result<Option<Answer>, DriveGone> {
        let answer = self.drive.next_answer(until)?;
        Ok(answer.map(|answer| Answer {
            bad: answer.bad.map(|block| Lbn::new(block.get() / self.blocks)),
            ..answer
        }))
    }

    fn sleep_until(&mut self, time: SimTime) {
        self.drive.sleep_until(time);
    }
}

/// The drive of a file whose blocks are sectors of this format, with blocks of 512 B.
pub(super) fn spec(of_sectors: DriveSpec, format: SectorFormat) -> DriveSpec {
    let sector = format.physical_blocks();
    if sector == 1 {
        return of_sectors;
    }
    let bus = of_sectors.electronics.bus;
    let block_time = bus.map_or(SimDuration::ZERO, |bus| bus.block_time / u64::from(sector));
    // The bus lags the media by the last block, which was taken to be the last sector.
    let less = block_time * u64::from(sector - 1);
    let period = of_sectors.rotation_period;
    let mut spec = of_sectors;
    for zone in &mut spec.zones {
        *zone = blocks_of(zone, sector, less.ns() as f64 / period.ns() as f64);
    }
    spec.overhead.read += less;
    spec.overhead.write += less;
    let ElectronicsSpec { buffer, overheads, bus, sector: of_file, .. } = &mut spec.electronics;
    *of_file = format;
    if let Some(buffer) = buffer {
        let BufferSpec { segment_blocks, read_ahead_max_blocks, .. } = buffer;
        *segment_blocks *= sector;
        *read_ahead_max_blocks *= sector;
    }
    if let Some(overheads) = overheads {
        for time in [&mut overheads.read_miss, &mut overheads.write_miss] {
            time.after_read += less;
            time.after_write += less;
        }
        overheads.write_completion = overheads.write_completion.saturating_sub(less);
    }
    *bus = bus.map(|bus| BusSpec { block_time, ..bus });
    spec
}

/// A zone of sectors in blocks, which are answered this many turns sooner behind their last one.
fn blocks_of(zone: &ZoneSpec, sector: u32, sooner: f64) -> ZoneSpec {
    let by = u64::from(sector);
    let skew = |skew: Turn| match skew.ratio() {
        (sectors, track) if track == u64::from(zone.blocks_per_track) => {
            Turn::from_ratio(sectors * by, track * by).unwrap_or_default()
        }
        _ => skew,
    };
    ZoneSpec {
        blocks_per_track: zone.blocks_per_track * sector,
        first_block: super::layout::turn(zone.first_block.angle().turns() + sooner),
        reserved_blocks: zone.reserved_blocks * by,
        track_skew: skew(zone.track_skew),
        cylinder_skew: skew(zone.cylinder_skew),
        band_skews: zone.band_skews.iter().map(|&turn| skew(turn)).collect(),
        spares: zone.spares * by,
        slips: zone.slips.iter().flat_map(|slip| slip * by..(slip + 1) * by).collect(),
        surface_blocks_per_track: zone
            .surface_blocks_per_track
            .iter()
            .map(|count| count * sector)
            .collect(),
        holes: zone
            .holes
            .iter()
            .map(|hole| Hole {
                first_block: hole.first_block * sector,
                blocks: hole.blocks.map(|blocks| blocks * sector),
                ..*hole
            })
            .collect(),
        ..zone.clone()
    }
}

/// Values that were counted in sectors.
const COUNTED: [&str; 2] =
    ["electronics.buffer.segment_blocks", "electronics.buffer.read_ahead_max_blocks"];

/// Values of a drive of sectors in blocks, and that of the sectors.
pub(super) fn values(values: &mut Vec<ExtractedValue>, spec: &DriveSpec, format: SectorFormat) {
    let sector = format.physical_blocks();
    if sector == 1 {
        return;
    }
    for value in values.iter_mut() {
        if COUNTED.contains(&value.key.as_str())
            && let Ok(sectors) = value.value.parse::<u64>()
        {
            value.value = (sectors * u64::from(sector)).to_string();
            value.source += &format!("; numbers here are of sectors of {sector} blocks");
        }
        if value.key == "electronics.bus.block_time"
            && let Some(bus) = spec.electronics.bus
        {
            value.value = format!("{:.1} us", bus.block_time.ns() as f64 / 1e3);
            value.source += &format!("; of sectors of {sector} blocks, this is an eighth");
        }
    }
    values.push(ExtractedValue {
        key: "electronics.sector".into(),
        value: format.to_string(),
        confidence: super::Confidence::Assumed,
        source: "assumed: the sector size that the device or the command line states; all was measured in whole sectors"
            .into(),
    });
}

impl ExtractedSlip {
    pub(super) fn in_blocks(self, sector: u64) -> Self {
        let Self { block, count, plus_minus } = self;
        Self { block: block * sector, count: count * sector, plus_minus: plus_minus * sector }
    }
}

impl ExtractedMisplaced {
    pub(super) fn in_blocks(self, sector: u64) -> Self {
        Self { block: self.block * sector, ..self }
    }
}

impl ExtractError {
    /// View of a drive of blocks, of which each sector has this many.
    pub(super) fn in_blocks(mut self, sector: u64) -> Self {
        match &mut self {
            Self::NoAnswer { block: count }
            | Self::Unreadable { block: count }
            | Self::Broken { block: count, .. }
            | Self::TooSmall { blocks: count }
            | Self::NoTrack { block: count }
            | Self::NoPattern { block: count }
            | Self::NarrowerBand { block: count, .. } => *count *= sector,
            Self::BeyondEnd { block: one, blocks: all }
            | Self::OtherCapacity { found: one, blocks: all } => {
                *one *= sector;
                *all *= sector;
            }
            Self::DriveGone(_)
            | Self::Journal(_)
            | Self::OtherJournal { .. }
            | Self::WriteCache
            | Self::NoTurn { .. }
            | Self::NoRotation
            | Self::Bands { .. }
            | Self::NoDrive(_)
            | Self::NoTime { .. } => {}
        }
        self
    }
}
