//! Comparison of the maker's promises with the model.

use freewheel_units::{BLOCK_BYTES, Blocks, Op};

use super::mechanics::Drive;
use super::zone::FileZone;
use crate::spec::advertised::{Advertised, Quantity};
use crate::spec::electronics::BusSpec;

/// A quantity as modelled and as advertised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Quantity that is compared.
    pub quantity: Quantity,
    /// Value of the model.
    pub modelled: u64,
    /// Value that the maker promises, where it was published.
    pub advertised: Option<u64>,
}

impl Check {
    /// Deviation of the model, as a share of the advertised value.
    pub fn deviation(&self) -> Option<f64> {
        self.advertised.map(|promised| self.share(promised as f64))
    }

    /// In this order a deviation of exactly the tolerance passes.
    fn share(&self, promised: f64) -> f64 {
        (self.modelled as f64 - promised) / promised
    }

    /// True if the model is within the tolerance, where something is advertised.
    pub fn passes(&self) -> Option<bool> {
        self.deviation().map(|off| off.abs() <= self.quantity.tolerance())
    }
}

/// A bus that is slower than the media, and so limits every long read and write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusLimit {
    /// Rate of the bus.
    pub bus_bytes_per_second: f64,
    /// Sustained rate of the fastest zone.
    pub media_bytes_per_second: f64,
}

impl Drive {
    /// The rates of this bus and of the media; None where the bus is at least as fast.
    pub fn limit_of_bus(&self, bus: BusSpec) -> Option<BusLimit> {
        let zones = 0..self.layout().zones().len();
        let media = zones.map(|zone| self.sustained_rate_bytes_per_second(zone)).max()?;
        let media_bytes_per_second = media as f64;
        let bus_bytes_per_second = BLOCK_BYTES as f64 / bus.block_time.as_secs_f64();
        (bus_bytes_per_second < media_bytes_per_second)
            .then_some(BusLimit { bus_bytes_per_second, media_bytes_per_second })
    }

    /// Compares the advertised mechanics with the drive.
    pub fn self_check(&self, advertised: &Advertised) -> Vec<Check> {
        Quantity::OF_MECHANICS
            .iter()
            .filter_map(|&quantity| {
                let modelled = self.quantity(quantity)?;
                Some(Check { quantity, modelled, advertised: quantity.advertised(advertised) })
            })
            .collect()
    }

    /// None of what does not follow from the mechanics.
    fn quantity(&self, quantity: Quantity) -> Option<u64> {
        let single = |op| {
            let distance = self.seek().distance_max().min(1);
            self.seek().time_ns(op, distance, false)
        };
        let outermost = self.layout().file_zones().find(with_data).map_or(0, |zone| zone.0);
        let innermost = self.layout().file_zones().rfind(with_data).map_or(0, |zone| zone.0);
        Some(match quantity {
            Quantity::Capacity => self.total_blocks().bytes().get(),
            Quantity::MeanSeekRead => self.mean_seek(Op::Read).ns(),
            Quantity::MeanSeekWrite => self.mean_seek(Op::Write).ns(),
            Quantity::TrackToTrackRead => single(Op::Read),
            Quantity::TrackToTrackWrite => single(Op::Write),
            Quantity::OuterRate => {
                self.sustained_rate_bytes_per_second(outermost) * u64::from(self.actuators())
            }
            Quantity::InnerRate => {
                self.sustained_rate_bytes_per_second(innermost) * u64::from(self.actuators())
            }
            Quantity::RandomReads | Quantity::RandomWrites => return None,
        })
    }
}

/// Zones without data have no rate.
fn with_data(zone: &(usize, FileZone)) -> bool {
    zone.1.blocks > Blocks::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(modelled: u64, advertised: Option<u64>) -> Check {
        Check { quantity: Quantity::Capacity, modelled, advertised }
    }

    #[test]
    fn check_passes_within_tolerance() {
        assert_eq!(capacity(1010, Some(1000)).passes(), Some(true));
        assert_eq!(capacity(990, Some(1000)).passes(), Some(true));
        assert_eq!(capacity(1011, Some(1000)).passes(), Some(false));
        assert_eq!(capacity(989, Some(1000)).passes(), Some(false));
    }

    #[test]
    fn check_of_unadvertised_neither_passes_nor_fails() {
        assert_eq!((capacity(1, None).deviation(), capacity(1, None).passes()), (None, None));
    }
}
