//! Which block passes the head at which angle, as far as that is known.

use super::clock::fold;

/// The blocks of a zone. Angles are those at which blocks are answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ZoneMap {
    /// First block, which is the first of a track and of a cylinder.
    pub first: u64,
    /// Blocks of data.
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
}

/// Defective places between two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlipFound {
    /// The first block behind them.
    pub before: u64,
    /// How many.
    pub count: u64,
    /// From the first to the last block that might be the first behind them.
    pub earliest: u64,
    pub latest: u64,
}

/// Index of the zone of a cylinder.
pub(super) fn zone_of(zones: &[ZoneMap], cylinder: u64) -> usize {
    zones.partition_point(|zone| zone.first_cylinder <= cylinder) - 1
}

impl ZoneMap {
    /// Place of a block in its zone, defects counted in.
    pub fn position(&self, block: u64) -> u64 {
        let slipped = self.slips.iter().filter(|slip| slip.before <= block);
        block - self.first + slipped.map(|slip| slip.count).sum::<u64>()
    }

    /// The block at a position, or the next one where a defect is.
    pub fn block_at(&self, position: u64) -> u64 {
        let mut block = self.first + position;
        for slip in &self.slips {
            if block < slip.before {
                break;
            }
            block = slip.before.max(block - slip.count);
        }
        block
    }

    /// First block of a track.
    pub fn track_first(&self, track: u64) -> u64 {
        self.block_at(track * self.per_track)
    }

    /// Track of a block, counted from the start of the zone, and its sector.
    pub fn track_of(&self, block: u64) -> (u64, u64) {
        let position = self.position(block);
        (position / self.per_track, position % self.per_track)
    }

    /// Whole cylinders that its blocks lie in.
    pub fn cylinders(&self) -> u64 {
        (self.position(self.first + self.blocks - 1) / self.per_track) / self.heads + 1
    }

    /// Angle at which a track begins.
    pub fn track_start(&self, track: u64) -> f64 {
        let (cylinder, order) = (track / self.heads, track % self.heads);
        let skews = cylinder as f64 * self.cylinder_step + order as f64 * self.track_skew;
        fold(self.start + skews)
    }

    /// Angle at which a block is answered.
    pub fn angle(&self, block: u64) -> f64 {
        let (track, sector) = self.track_of(block);
        fold(self.track_start(track) + (sector + 1) as f64 / self.per_track as f64)
    }

    pub fn end(&self) -> u64 {
        self.first + self.blocks
    }

    /// From the start of a cylinder's last track to that of the next cylinder's first.
    pub fn cylinder_skew(&self) -> f64 {
        fold(self.cylinder_step - (self.heads - 1) as f64 * self.track_skew)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slip(before: u64, count: u64) -> SlipFound {
        SlipFound { before, count, earliest: before, latest: before }
    }

    #[test]
    fn every_block_is_found_at_its_position_and_defects_pass_on_to_the_next() {
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
}
