//! Somebody else's NBD export as a device.

use freewheel_nbd::{Command, Errno, Uri};
use freewheel_units::{BLOCK_BYTES, Blocks, Op};

use crate::nbd::{Answer, Client, ClientLimits, ConnectError, Refused, RequestError};
use crate::serve::backend::{Back, Backend, BackendCommand, CameBack, Failed};

/// What comes back with an answer: the command's number, and the data of a write.
type Tag = (u64, Option<Vec<u8>>);

/// An export that is asked over NBD.
pub struct NbdBackend {
    client: Client<Tag>,
    back: Back,
}

impl NbdBackend {
    /// Connects. What is sent fails as [`Errno::Shutdown`] when the connection is lost.
    pub fn connect(uri: &Uri, back: Back) -> Result<Self, ConnectError> {
        let answers = back.clone();
        let client = Client::connect(uri, ClientLimits::default(), move |answer: Answer<Tag>| {
            let (id, written) = answer.tag;
            let result = match answer.result {
                Ok(()) => Ok(written.unwrap_or(answer.data)),
                Err(error) => Err(failed(&error)),
            };
            answers(CameBack { id, at: answer.at, result });
        })?;
        Ok(Self { client, back })
    }

    /// Bytes of which offsets and lengths have to be multiples.
    pub fn least_bytes(&self) -> u64 {
        self.client.info().block_sizes.minimum.into()
    }

    /// Whether it takes no writes.
    pub fn is_read_only(&self) -> bool {
        self.client.info().features.read_only
    }
}

fn failed(error: &RequestError) -> Failed {
    let errno = match error {
        RequestError::Failed(failure) => failure.errno,
        RequestError::Lost(_) => Errno::Shutdown,
    };
    Failed { errno, message: error.to_string() }
}

impl Backend for NbdBackend {
    fn blocks(&self) -> Blocks {
        Blocks::new(self.client.info().size / BLOCK_BYTES)
    }

    fn submit(&self, command: BackendCommand) {
        let BackendCommand { id, op, start, mut data } = command;
        let (offset, length) = (start.get() * BLOCK_BYTES, data.len() as u32);
        let (command, written) = match op {
            Op::Read => (Command::read(offset, length), None),
            Op::Write => (Command::write(offset, length), Some(data.clone())),
            _ => (Command::Flush, Some(Vec::new())),
        };
        if let Err(Refused { why, .. }) = self.client.submit(command, &mut data, (id, written)) {
            let failed = Failed { errno: Errno::Shutdown, message: why.to_string() };
            (self.back)(CameBack { id, at: std::time::Instant::now(), result: Err(failed) });
        }
    }
}
