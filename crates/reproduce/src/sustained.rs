//! Sequential reads of a whole drive.

use freewheel_model::drive::Drive;

/// Rate of sequential reads over the whole drive, in MB/s.
pub(super) fn mean_sustained_mb_per_second(drive: &Drive) -> f64 {
    let (mut blocks, mut seconds) = (0.0, 0.0);
    for (number, zone) in drive.layout().file_zones() {
        let of_zone = zone.blocks.get() as f64;
        blocks += of_zone;
        seconds += of_zone * 512.0 / drive.sustained_rate_bytes_per_second(number) as f64;
    }
    blocks * 512.0 / seconds / 1e6
}
