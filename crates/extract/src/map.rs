//! Map of blocks to angles, as far as known.

use super::clock::fold;

/// Five standard errors: a skew this near to a whole number of sectors is one.
pub(super) const WHOLE_SECTOR: f64 = 0.25;

/// The blocks of a zone. Angles are those at which blocks are answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ZoneMap {
    /// First block, which is the first of a track and of a cylinder.
    pub first: u64,
    pub blocks: u64,
    pub per_track: u64,
    pub heads: u64,
    pub first_cylinder: u64,
    /// Angle at which the first block begins.
    pub start: f64,
    /// From a track to the next in its cylinder.
    pub track_skew: f64,
    /// From the first track of a cylinder to the first of the next.
    pub cylinder_step: f64,
    /// Places that are passed over, ascending.
    pub slips: Vec<SlipFound>,
    pub runs: Option<TrackRuns>,
    /// Bands, when the runs are those of surfaces.
    pub in_bands: Option<InBands>,
}

/// Defective places between two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlipFound {
    /// The first block behind them.
    pub before: u64,
    pub count: u64,
    /// From the first to the last block that might be the first behind them.
    pub earliest: u64,
    pub latest: u64,
}

/// Tracks in runs that come again and again: pieces of the zone with spares of their own, or the
/// cylinders of a band on one surface after the other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TrackRuns {
    /// Tracks of a run, those that hold no data counted in.
    pub tracks: u64,
    /// Blocks of data of a run; the places behind them are spares.
    pub blocks: u64,
    /// Turns from the start of a run to that of the next, after the first, the second and so on,
    /// and from the first again. Without any, skews go on from run to run as within them.
    pub steps: Vec<f64>,
    /// A defect takes a place from the spares of its run; else it moves all later blocks of the zone.
    pub slips_stay: bool,
}

/// Runs that are the cylinders of a band on one surface after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InBands {
    pub surfaces: u64,
    /// Every other surface is run through outwards.
    pub cylinders_turn: bool,
    /// Every other band is run through from the last surface to the first; None where it shows in no
    /// time.
    pub surfaces_turn: Option<bool>,
}

/// Index of the zone of a cylinder.
pub(super) fn zone_of(zones: &[ZoneMap], cylinder: u64) -> usize {
    zones.partition_point(|zone| zone.first_cylinder <= cylinder) - 1
}

/// Cylinders of a drive that hold data.
pub(super) fn cylinders(zones: &[ZoneMap]) -> u64 {
    zones.last().map_or(0, |zone| zone.first_cylinder + zone.cylinders())
}

impl ZoneMap {
    /// The runs and the places of one, if its spares are its own.
    pub fn spared(&self) -> Option<(&TrackRuns, u64)> {
        self.runs
            .as_ref()
            .map(|runs| (runs, TrackRuns::places(runs, self.per_track)))
            .filter(|(runs, places)| runs.blocks < *places)
    }

    /// True if each track has its own spares.
    pub fn has_spares_on_tracks(&self) -> bool {
        self.spared().is_some_and(|(runs, _)| runs.tracks == 1)
    }

    fn slipped(&self, from: u64, block: u64) -> u64 {
        let passed = self.slips.iter().filter(|slip| (from..=block).contains(&slip.before));
        passed.map(|slip| slip.count).sum()
    }

    /// Place of a block in its zone, defects and spares counted in.
    pub fn position(&self, block: u64) -> u64 {
        let data = block - self.first;
        match self.spared() {
            None => data + self.slipped(self.first, block),
            Some((runs, places)) if runs.slips_stay => {
                let run = data / runs.blocks;
                let first = self.first + run * runs.blocks;
                run * places + block - first + self.slipped(first, block)
            }
            Some((runs, places)) => {
                let index = data + self.slipped(self.first, block);
                index / runs.blocks * places + index % runs.blocks
            }
        }
    }

    /// The block at a position, or the next one where a defect or a spare is.
    pub fn block_at(&self, position: u64) -> u64 {
        match self.spared() {
            None => self.behind_slips(self.first, self.first + position, u64::MAX),
            Some((runs, places)) if runs.slips_stay => {
                let first = self.first + position / places * runs.blocks;
                self.behind_slips(first, first + position % places, first + runs.blocks)
            }
            Some((runs, places)) => {
                let within = (position % places).min(runs.blocks);
                let index = position / places * runs.blocks + within;
                self.behind_slips(self.first, self.first + index, u64::MAX)
            }
        }
    }

    /// Block that stands in the place of `block` without defects, from `first` to before `end`.
    fn behind_slips(&self, first: u64, mut block: u64, end: u64) -> u64 {
        for slip in self.slips.iter().filter(|slip| (first..end).contains(&slip.before)) {
            if block < slip.before {
                break;
            }
            block = slip.before.max(block - slip.count);
        }
        block.min(end)
    }

    /// First block of a track, or of the next one with data.
    pub fn track_first(&self, track: u64) -> u64 {
        self.block_at(track * self.per_track)
    }

    /// The block of a track in this sector, or the one before if there is none; None on a track
    /// without data.
    pub fn block_on(&self, track: u64, sector: u64) -> Option<u64> {
        let block = self.block_at(track * self.per_track + sector).min(self.end() - 1);
        let near = [block, block.saturating_sub(1).max(self.first)];
        near.into_iter().find(|&block| self.track_of(block).0 == track)
    }

    /// Track of a block, counted from the start of the zone, and its sector.
    pub fn track_of(&self, block: u64) -> (u64, u64) {
        let position = self.position(block);
        (position / self.per_track, position % self.per_track)
    }

    /// Tracks of the zone, to the end of its last run if that is whole.
    fn tracks(&self) -> u64 {
        let track = self.track_of(self.end() - 1).0;
        self.spared()
            .and_then(|(runs, _)| {
                let next = (track / runs.tracks + 1) * runs.tracks;
                Some(next).filter(|&next| self.track_first(next) == self.end())
            })
            .unwrap_or(track + 1)
    }

    /// Whole cylinders that its blocks lie in.
    pub fn cylinders(&self) -> u64 {
        match self.bands() {
            None => self.tracks().div_ceil(self.heads),
            Some((bands, width)) => self.tracks().div_ceil(bands.surfaces * width) * width,
        }
    }

    /// The bands, and the cylinders of one.
    fn bands(&self) -> Option<(InBands, u64)> {
        let width = self.runs.as_ref().map(|runs| runs.tracks);
        self.in_bands.zip(width)
    }

    pub fn surfaces(&self) -> u64 {
        self.in_bands.map_or(self.heads, |bands| bands.surfaces)
    }

    /// The track of a cylinder of the zone that comes `order`-th there.
    pub fn track_at(&self, cylinder: u64, order: u64) -> u64 {
        let Some((bands, width)) = self.bands() else { return cylinder * self.heads + order };
        let (band, step) = (cylinder / width, cylinder % width);
        let is_back = bands.cylinders_turn && order % 2 == 1;
        let step = if is_back { width - 1 - step } else { step };
        (band * bands.surfaces + order) * width + step
    }

    /// True if a cylinder of the zone begins with the last head, where bands do.
    pub fn turns_back_in_band(&self, cylinder: u64) -> Option<bool> {
        let (bands, width) = self.bands()?;
        Some(bands.surfaces_turn == Some(true) && cylinder / width % 2 == 1)
    }

    /// Angle at which a track begins.
    pub fn track_start(&self, track: u64) -> f64 {
        let stepped = self.runs.as_ref().filter(|runs| !runs.steps.is_empty());
        let (runs, within) = match stepped {
            Some(runs) => (runs.turned(track / runs.tracks), track % runs.tracks),
            None => (0.0, track),
        };
        let (cylinder, order) = (within / self.heads, within % self.heads);
        let skews = cylinder as f64 * self.cylinder_step + order as f64 * self.track_skew;
        fold(self.start + runs + skews)
    }

    /// Angle at which a block is answered.
    pub fn angle(&self, block: u64) -> f64 {
        let (track, sector) = self.track_of(block);
        fold(self.track_start(track) + (sector + 1) as f64 / self.per_track as f64)
    }

    /// A skew, in whole sectors where this many of them are some.
    pub fn whole_sectors(&self, skew: f64, skews: f64) -> f64 {
        let sectors = self.per_track as f64;
        let whole = (skew * sectors).round();
        let is_whole = (skew * sectors - whole).abs() * skews < WHOLE_SECTOR;
        fold(if is_whole { whole / sectors } else { skew })
    }

    pub fn end(&self) -> u64 {
        self.first + self.blocks
    }

    /// Ends the zone earlier, and leaves out what was found behind. None if no block is left.
    pub fn end_at(&mut self, end: u64) -> Option<()> {
        self.blocks = end.checked_sub(self.first).filter(|&blocks| blocks > 0)?;
        self.slips.retain(|slip| slip.before < end);
        Some(())
    }

    /// From the start of a cylinder's last track to that of the next cylinder's first.
    pub fn cylinder_skew(&self) -> f64 {
        fold(self.cylinder_step - (self.heads - 1) as f64 * self.track_skew)
    }
}

impl TrackRuns {
    fn places(&self, per_track: u64) -> u64 {
        self.tracks * per_track
    }

    /// Takes into account that a run begins this much of a turn later.
    pub fn turn_by(&mut self, run: u64, turns: f64) {
        for step in &mut self.steps {
            *step = fold(*step + turns / run.max(1) as f64);
        }
    }

    /// Turns from the start of the first run to that of another.
    fn turned(&self, run: u64) -> f64 {
        let count = self.steps.len() as u64;
        let all: f64 = self.steps.iter().sum();
        let rest: f64 = self.steps[..(run % count) as usize].iter().sum();
        // Whole turns are left out, so that a product keeps its digits.
        fold((run / count) as f64 * fold(all)) + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slip(before: u64, count: u64) -> SlipFound {
        SlipFound { before, count, earliest: before, latest: before }
    }

    #[test]
    fn map_finds_blocks_and_passes_defects() {
        let zone = ZoneMap {
            first: 1000,
            blocks: 500,
            per_track: 50,
            heads: 3,
            first_cylinder: 4,
            start: 0.25,
            track_skew: 0.1,
            cylinder_step: 0.3,
            slips: vec![slip(1060, 1), slip(1200, 3)],
            runs: None,
            in_bands: None,
        };
        for block in zone.first..zone.end() {
            assert_eq!(zone.block_at(zone.position(block)), block);
        }
        assert_eq!(zone.position(1059), 59);
        assert_eq!(zone.position(1060), 61);
        assert_eq!(zone.block_at(60), 1060);
        assert_eq!(zone.position(1200), 204);
        assert_eq!([201, 202, 203].map(|position| zone.block_at(position)), [1200; 3]);
        assert_eq!(zone.track_of(1060), (1, 11));
        assert!((zone.angle(1060) - 0.59).abs() < 1e-12);
        // 504 positions, 150 a cylinder.
        assert_eq!(zone.cylinders(), 4);
    }

    #[test]
    fn zone_ending_earlier_loses_later_defects() {
        let mut zone = ZoneMap {
            first: 1000,
            blocks: 500,
            per_track: 50,
            heads: 3,
            first_cylinder: 0,
            start: 0.0,
            track_skew: 0.1,
            cylinder_step: 0.3,
            slips: vec![slip(1060, 1), slip(1300, 2)],
            runs: None,
            in_bands: None,
        };
        assert_eq!(zone.end_at(1300), Some(()));
        assert_eq!((zone.end(), &zone.slips[..]), (1300, &[slip(1060, 1)][..]));
        assert_eq!([1000, 900].map(|end| zone.end_at(end)), [None; 2]);
    }

    #[test]
    fn spares_of_runs_are_passed_over() {
        for slips_stay in [true, false] {
            let runs = TrackRuns { tracks: 6, blocks: 280, steps: Vec::new(), slips_stay };
            let zone = ZoneMap {
                first: 1000,
                blocks: 1100,
                per_track: 50,
                heads: 3,
                first_cylinder: 0,
                start: 0.0,
                track_skew: 0.1,
                cylinder_step: 0.3,
                slips: vec![slip(1060, 1), slip(1600, 3)],
                runs: Some(runs),
                in_bands: None,
            };
            let mut before = None;
            for block in zone.first..zone.end() {
                let position = zone.position(block);
                assert_eq!(zone.block_at(position), block, "{slips_stay}");
                assert!(before < Some(position), "they ascend");
                before = Some(position);
            }
            // A defect takes a spare of its run, or moves the next one.
            assert_eq!(zone.block_at(300), if slips_stay { 1280 } else { 1279 });
            assert_eq!(zone.block_at(299), zone.block_at(300), "a spare");
        }
    }
}
