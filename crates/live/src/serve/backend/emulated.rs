//! An emulated drive in this process, with the black box's face: for trials without another process.

use std::sync::Arc;
use std::time::Instant;

use freewheel_model::drive::spec::DriveSpec;
use freewheel_nbd::Errno;
use freewheel_units::{BLOCK_BYTES, Blocks, Op};

use super::{Abilities, Back, Backend, BackendCommand, BackendCompletion, BackendOp, Failed};
use crate::emulate::{EmulateError, Emulation, Finished, Options, Request};

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
        let bytes = |blocks: u32| blocks * BLOCK_BYTES as u32;
        Abilities {
            sector_bytes: bytes(sector.logical_blocks()),
            physical_bytes: bytes(sector.physical_blocks()),
            flush: true,
            fua: true,
            trim: true,
            ..Abilities::default()
        }
    }

    fn submit(&self, command: BackendCommand) {
        let BackendCommand { id, what, start, mut data } = command;
        let arrival = self.emulation.device().clock().now();
        let back = Arc::clone(&self.back);
        let offset = start.get() * BLOCK_BYTES;
        let store = self.emulation.store();
        let moved = match what {
            BackendOp::Read => store.read(offset, &mut data),
            BackendOp::Write { .. } => store.write(offset, &data),
            BackendOp::Flush => Ok(()),
            BackendOp::Trim { blocks } => store.zero(offset, blocks * BLOCK_BYTES, false),
            BackendOp::WriteZeroes { blocks, keep } => {
                store.zero(offset, blocks * BLOCK_BYTES, keep)
            }
        };
        if let Err(error) = moved {
            let errno = error.raw_os_error().map_or(Errno::Io, Errno::from_linux);
            let failed = Failed { errno, message: format!("the drive's store: {error}") };
            return back(BackendCompletion { id, at: Instant::now(), result: Err(failed) });
        }
        let blocks = data.len() as u64 / BLOCK_BYTES;
        let request = match what {
            BackendOp::Read => Request { op: Op::Read, start, blocks, fua: false },
            BackendOp::Write { fua } => Request { op: Op::Write, start, blocks, fua },
            BackendOp::Flush => Request { op: Op::Flush, start, blocks, fua: false },
            BackendOp::WriteZeroes { blocks, .. } => {
                Request { op: Op::Write, start, blocks, fua: false }
            }
            // The model knows no trim: it takes the drive no time.
            BackendOp::Trim { .. } => {
                return back(BackendCompletion { id, at: Instant::now(), result: Ok(data) });
            }
        };
        let done = move |finished: &Finished| {
            let result = match finished.bad {
                Some(lbn) => {
                    Err(Failed { errno: Errno::Io, message: format!("{lbn} cannot be read") })
                }
                None => Ok(data),
            };
            back(BackendCompletion { id, at: Instant::now(), result });
        };
        self.emulation.device().submit(arrival, request, None, Box::new(done));
    }
}
