//! The client against our own server, and against servers that do not keep to the rules.
#![allow(missing_docs)]

mod asking;
#[path = "../common/mod.rs"]
mod common;
mod encrypted;
mod false_servers;

use std::sync::mpsc;
use std::time::Duration;

use common::STALLED_REQUESTS_MAX;
use freewheel_live::nbd::{Answer, Client, ClientLimits, ConnectError};
use freewheel_nbd::{Command, Uri};

/// A client whose answers come here, and their tags are numbers.
pub struct Asker {
    pub client: Client<u64>,
    answers: mpsc::Receiver<Answer<u64>>,
}

impl Asker {
    pub fn connect(uri: &Uri, limits: ClientLimits) -> Result<Self, ConnectError> {
        let (tell, answers) = mpsc::channel();
        let answered = move |answer| {
            // A test may have seen enough.
            let _ = tell.send(answer);
        };
        Ok(Self { client: Client::connect(uri, limits, answered)?, answers })
    }

    pub fn of(uri: &Uri) -> Self {
        Self::connect(uri, ClientLimits::default()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Asks without data to write.
    pub fn ask(&self, command: Command, tag: u64) {
        self.client.submit(command, &mut Vec::new(), tag).unwrap();
    }

    pub fn write(&self, offset: u64, data: &[u8], tag: u64) {
        let command = Command::write(offset, data.len() as u32);
        self.client.submit(command, &mut data.to_vec(), tag).unwrap();
    }

    /// The next answer.
    pub fn answer(&self) -> Answer<u64> {
        self.answers.recv_timeout(STALLED_REQUESTS_MAX).unwrap()
    }

    pub fn answers(&self, count: usize) -> Vec<Answer<u64>> {
        (0..count).map(|_| self.answer()).collect()
    }

    /// True if no further byte comes.
    pub fn is_quiet(&self) -> bool {
        self.answers.recv_timeout(Duration::from_millis(50)).is_err()
    }

    /// Data of one read.
    pub fn read(&self, offset: u64, length: u32) -> Vec<u8> {
        self.ask(Command::read(offset, length), 0);
        let answer = self.answer();
        answer.result.unwrap();
        answer.data
    }
}
