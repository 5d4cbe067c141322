//! Clients of files, whose requests arrive by chance or at the times of a trace.

use freewheel_units::SimTime;

use super::map::VolumeRequest;
use super::new_files::NewFilesWork;
use super::requests::{DriftWork, FileRequests};
use super::traced::TracedRequests;

/// Clients' requests.
pub enum Clients<'a> {
    /// Independent of each other.
    Poisson(Box<FileRequests<'a>>),
    /// At the times of a trace.
    Traced(TracedRequests<'a>),
}

impl Clients<'_> {
    /// Time of the next arrival; None when no request follows.
    pub fn next_arrival(&self) -> Option<SimTime> {
        match self {
            Self::Poisson(clients) => clients.next_arrival(),
            Self::Traced(clients) => clients.next_arrival(),
        }
    }

    /// Takes the request that arrives next.
    pub fn take(&mut self) -> VolumeRequest {
        match self {
            Self::Poisson(clients) => clients.take(),
            Self::Traced(clients) => clients.take(),
        }
    }

    /// Requests so far, and all.
    pub fn progress(&self) -> (u64, u64) {
        match self {
            Self::Poisson(clients) => clients.progress(),
            Self::Traced(clients) => clients.progress(),
        }
    }

    /// Files created and deleted so far; None where there are none.
    pub fn created(&self) -> Option<NewFilesWork> {
        match self {
            Self::Poisson(clients) => clients.created(),
            Self::Traced(_) => None,
        }
    }

    /// Changes of the hot set so far; None without drift.
    pub fn drifted(&self) -> Option<DriftWork> {
        match self {
            Self::Poisson(clients) => clients.drifted(),
            Self::Traced(_) => None,
        }
    }
}
