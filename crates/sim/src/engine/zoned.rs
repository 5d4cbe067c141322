//! The zones of a volume's host-managed drives: which writes they refuse.
//!
//! One drive follows the rules of [`freewheel_model::zoned`]. A run adds:
//!
//! - Every zone is empty at the start. Reads are served as if all blocks had been written before.
//! - Writes meet the write pointers in order of arrival, not in the order of the policy: hosts keep the
//!   order of writes to a zone.
//! - A write to several drives is refused as a whole when one of them refuses its part.
//! - A trim resets the write pointer of each zone that lies wholly in its part of a drive. Traces have
//!   no other way to say RESET WRITE POINTER.

use freewheel_model::drive::Drive;
use freewheel_model::striping::{DriveRange, Striping};
use freewheel_model::zoned::spec::{ZonedKind, ZonedSpec};
use freewheel_model::zoned::{ZoneError, Zones};
use freewheel_units::{Blocks, VolumeBlock};

use crate::completion::Refusal;

/// The zones of each drive of a volume.
#[derive(Debug, Clone)]
pub struct VolumeZones {
    striping: Striping,
    drives: Vec<Zones>,
}

impl VolumeZones {
    /// The zones of the drives under `striping`, all empty. None unless they are host-managed:
    /// others take any write.
    pub fn new(spec: Option<&ZonedSpec>, drive: &Drive, striping: &Striping) -> Option<Self> {
        let spec = spec.filter(|spec| spec.kind == ZonedKind::HostManaged)?;
        let zones = Zones::new(spec, drive.total_blocks());
        let drives = vec![zones; striping.drives() as usize];
        Some(Self { striping: striping.clone(), drives })
    }

    /// Takes a write of `blocks` of the volume, or refuses it and leaves everything as it was.
    #[inline(never)]
    pub(crate) fn write(&mut self, start: VolumeBlock, blocks: Blocks) -> Result<(), Refusal> {
        let Self { striping, drives } = self;
        // Two passes: all drives are asked before one is changed, so that a refusal changes no zone.
        let mut checked = Ok(());
        striping.for_each_drive(start, blocks, |DriveRange { drive, start, blocks }| {
            if checked.is_ok() {
                checked = drives[drive as usize].check(start, blocks).map_err(refusal);
            }
        });
        checked?;
        striping.for_each_drive(start, blocks, |DriveRange { drive, start, blocks }| {
            drives[drive as usize].write(start, blocks).expect("a write that was checked");
        });
        Ok(())
    }

    /// Resets the zones that lie wholly within `blocks` of the volume.
    #[inline(never)]
    pub(crate) fn trim(&mut self, start: VolumeBlock, blocks: Blocks) {
        if blocks == Blocks::ZERO {
            return;
        }
        let Self { striping, drives } = self;
        striping.for_each_drive(start, blocks, |DriveRange { drive, start, blocks }| {
            drives[drive as usize].reset_within(start, blocks);
        });
    }
}

fn refusal(error: ZoneError) -> Refusal {
    match error {
        ZoneError::UnalignedWrite { .. } => Refusal::NotAtWritePointer,
        ZoneError::WriteBoundaryViolation { .. } => Refusal::OverZoneBoundary,
        ZoneError::Full { .. } => Refusal::ZoneFull,
        // Requests lie on the volume, and no zone is opened by command.
        ZoneError::OutOfRange { .. }
        | ZoneError::NoWritePointer { .. }
        | ZoneError::InsufficientZoneResources { .. } => unreachable!("a write meets: {error}"),
    }
}
