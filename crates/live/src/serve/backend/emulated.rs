//! An emulated drive in this process, with the black box's face: for trials without another process.

use std::sync::Arc;
use std::time::Instant;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_model::sched::CommandMark;
use freewheel_units::{BLOCK_BYTES, Blocks, Op};

use super::{
    Abilities, Back, Backend, BackendCompletion, DeviceCommand, DeviceError, DeviceErrorKind,
    DeviceOp, kind_of_system,
};
use crate::emulate::{EmulateError, Emulation, Options, Request};

/// A modelled drive that takes as long as a real one.
pub struct EmulatedBackend {
    emulation: Arc<Emulation>,
    blocks: Blocks,
    back: Back,
}

impl EmulatedBackend {
    /// Starts the drive of a file, named `name` in errors.
    pub fn start(
        spec: &DriveSpec,
        name: &str,
        options: Options,
        back: Back,
    ) -> Result<Self, EmulateError> {
        let emulation = Arc::new(Emulation::start(spec, name, options)?);
        let blocks = emulation.blocks();
        Ok(Self { emulation, blocks, back })
    }
}

impl Backend for EmulatedBackend {
    fn blocks(&self) -> Blocks {
        self.blocks
    }

    fn abilities(&self) -> Abilities {
        let sector = self.emulation.sector();
        Abilities {
            sector_bytes: bytes(sector.logical_blocks()),
            physical_bytes: bytes(sector.physical_blocks()),
            flush: true,
            fua: true,
            trim: true,
            ..Abilities::default()
        }
    }

    fn submit(&self, command: DeviceCommand) {
        let DeviceCommand { id, what, start, mut data } = command;
        let arrival = self.emulation.device().clock().now();
        let back = Arc::clone(&self.back);
        let offset = start.get() * BLOCK_BYTES;
        let contents = self.emulation.contents();
        let moved = match what {
            DeviceOp::Read => contents.read(offset, &mut data),
            DeviceOp::Write { fua } => contents.write(offset, &data, fua),
            DeviceOp::Flush => Ok(()),
            DeviceOp::Trim { blocks } => contents.zero(offset, blocks * BLOCK_BYTES, false, false),
            DeviceOp::WriteZeroes { blocks, keep } => {
                contents.zero(offset, blocks * BLOCK_BYTES, keep, false)
            }
        };
        if let Err(error) = moved {
            let kind = kind_of_system(&error);
            let failed = DeviceError { kind, message: format!("the drive's store: {error}") };
            return back(BackendCompletion { id, at: Instant::now(), result: Err(failed) });
        }
        let blocks = data.len() as u64 / BLOCK_BYTES;
        let plain = |op| Request { op, start, blocks, fua: false, mark: CommandMark::None };
        let request = match what {
            DeviceOp::Read => plain(Op::Read),
            DeviceOp::Write { fua } => Request { fua, ..plain(Op::Write) },
            DeviceOp::Flush => plain(Op::Flush),
            DeviceOp::WriteZeroes { blocks, .. } => Request { blocks, ..plain(Op::Write) },
            // The model knows no trim: it takes the drive no time.
            DeviceOp::Trim { .. } => {
                return back(BackendCompletion { id, at: Instant::now(), result: Ok(data) });
            }
        };
        self.emulation.at_drive(arrival, request, None, move |ended| {
            let result = ended.map(|()| data).map_err(|fault| DeviceError {
                kind: DeviceErrorKind::Io,
                message: fault.to_string(),
            });
            back(BackendCompletion { id, at: Instant::now(), result });
        });
    }
}

fn bytes(blocks: u32) -> u32 {
    blocks * BLOCK_BYTES as u32
}
