//! Limits of clients of a server.

use std::time::Duration;

/// Limits of clients of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once that have chosen an export, of which one process may have a half, and one user of
    /// this machine, one machine, or all that come over the loopback three quarters; further ones are closed
    /// as they come. The same number may be there that have not chosen; beyond that the oldest are closed.
    pub connections_max: usize,
    /// Requests in flight on one connection; the next is not read before one has been answered.
    pub in_flight_max: u32,
    /// Data of requests in flight on one connection, in bytes, beyond which no further request is
    /// read: at most one request exceeds it.
    pub bytes_in_flight_max: u64,
    /// Data of requests in flight on all connections together, in bytes, beside 1 MiB of each: one peer has
    /// half of them at most, and one user, one machine, or all of the loopback three quarters.
    pub memory_max: u64,
    /// Longest time in which a client takes no part of an answer, or sends no part of a request that it has
    /// begun. A slower client is disconnected.
    pub stall: Duration,
    /// Least rate of a client. A request or an answer may take `stall` and its length at this rate, without
    /// the time that the server makes it wait; a slower client is disconnected.
    pub bytes_per_second_min: u64,
    /// Longest time until a client has chosen an export.
    pub negotiation: Duration,
    /// Least time between two notices of one reason and one owner of connections; while such events go on, it
    /// doubles up to ten minutes. Zero for a notice of each event.
    pub notice_every: Duration,
    /// Longest time at a stop until requests in flight are answered.
    pub grace: Duration,
}

impl Default for Limits {
    /// Each connection up to 64 MiB and a payload of 32 MiB; a stop that takes a drive's slowest
    /// flush and no more.
    fn default() -> Self {
        Self {
            connections_max: 64,
            in_flight_max: 256,
            bytes_in_flight_max: 64 << 20,
            memory_max: 256 << 20,
            stall: Duration::from_secs(20),
            bytes_per_second_min: 64 << 10,
            negotiation: Duration::from_secs(20),
            notice_every: Duration::from_secs(1),
            grace: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// The longest time for this many bytes of one request, or of answers sent together.
    pub(super) fn time_for(&self, bytes: u64) -> Duration {
        self.stall + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second_min.max(1) as f64)
    }
}
